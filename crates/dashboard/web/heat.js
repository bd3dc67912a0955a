// The heat map: traces by time and duration. A click, or Enter on the selected cell, shows the traces of that cell.

import { announce, make, text } from "./dom.js";
import { clock, milliseconds, number, shortMilliseconds } from "./format.js";
import { colour } from "./plot.js";

const HEIGHT = 190;
const LEFT = 62;
const BOTTOM = 20;

/** A heat map; `chosen(cell)` is called with { since, until, min_ms, max_ms }. */
export class HeatMap {
  constructor(chosen) {
    this.chosen = chosen;
    this.data = null;
    this.cell = null;
    /** The time and duration in the middle of the chosen cell, which outlast a renewal. */
    this.mark = null;
    this.canvas = make("canvas", {
      tabindex: "0", role: "application", "aria-roledescription": "heat map", "aria-label": "Traces by time and duration. Arrow keys choose a cell, Enter shows its traces.",
      onclick: (event) => this.click(event),
      onmousemove: (event) => this.point(event),
      onmouseleave: () => this.choose(null),
      onkeydown: (event) => this.key(event),
    });
    this.about = make("p", { class: "pad soft heat-about" }, "");
    this.element = make("div", { class: "heat" }, this.canvas, this.about);
    this.observer = new ResizeObserver(() => this.draw());
    this.observer.observe(this.element);
  }

  update(data) {
    this.data = data;
    this.cell = this.mark && this.cellOf(this.mark);
    this.draw();
    this.tell();
  }

  size() {
    const width = Math.max(200, this.element.clientWidth - 16);
    const columns = this.data.columns.length;
    const rows = this.data.bounds_ms.length - 1;
    return { width, columns, rows, cellWidth: (width - LEFT) / columns, cellHeight: (HEIGHT - BOTTOM) / rows };
  }

  draw() {
    if (!this.data) return;
    const { width, columns, rows, cellWidth, cellHeight } = this.size();
    const scale = window.devicePixelRatio || 1;
    this.canvas.width = width * scale;
    this.canvas.height = HEIGHT * scale;
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${HEIGHT}px`;
    const context = this.canvas.getContext("2d");
    context.scale(scale, scale);
    context.clearRect(0, 0, width, HEIGHT);
    const most = Math.max(1, ...this.data.columns.flat());
    const [good, bad, soft, line] = ["--plot-a", "--plot-b", "--soft", "--line"].map(colour);
    context.strokeStyle = line;
    context.strokeRect(LEFT + 0.5, 0.5, width - LEFT - 1, HEIGHT - BOTTOM - 1);
    for (let column = 0; column < columns; column += 1) {
      for (let row = 0; row < rows; row += 1) {
        const count = this.data.columns[column][row];
        if (!count) continue;
        const failed = this.data.errors?.[column]?.[row] ?? 0;
        // A single trace is visible; larger numbers differ by their logarithm.
        context.globalAlpha = 0.25 + 0.75 * (Math.log(1 + count) / Math.log(1 + most));
        context.fillStyle = failed > 0 ? bad : good;
        context.fillRect(LEFT + column * cellWidth + 0.5, (rows - 1 - row) * cellHeight, Math.max(1, cellWidth - 1), Math.max(1, cellHeight - 1));
      }
    }
    context.globalAlpha = 1;
    this.axes(context, soft);
    if (this.cell) {
      const [column, row] = this.cell;
      context.strokeStyle = colour("--text");
      context.lineWidth = 2;
      context.strokeRect(LEFT + column * cellWidth, (rows - 1 - row) * cellHeight, cellWidth, cellHeight);
    }
  }

  axes(context, soft) {
    const { width, rows, cellHeight } = this.size();
    context.fillStyle = soft;
    context.font = "11px system-ui, sans-serif";
    context.textAlign = "right";
    context.textBaseline = "middle";
    let last = Infinity;
    for (let row = 0; row <= rows; row += 1) {
      const bound = this.data.bounds_ms[row];
      const y = (rows - row) * cellHeight;
      const power = Math.log10(bound);
      if (Math.abs(power - Math.round(power)) > 1e-6 || last - y < 14) continue;
      last = y;
      context.fillText(shortMilliseconds(bound), LEFT - 6, Math.min(HEIGHT - BOTTOM - 5, Math.max(6, y)));
    }
    context.textBaseline = "bottom";
    const { since, until } = this.data;
    const marks = Math.max(2, Math.floor((width - LEFT) / 130));
    for (let mark = 0; mark <= marks; mark += 1) {
      context.textAlign = mark === 0 ? "left" : mark === marks ? "right" : "center";
      context.fillText(clock(since + ((until - since) * mark) / marks), LEFT + ((width - LEFT) * mark) / marks, HEIGHT - 2);
    }
  }

  at(event) {
    const box = this.canvas.getBoundingClientRect();
    const { columns, rows, cellWidth, cellHeight } = this.size();
    const column = Math.floor((event.clientX - box.left - LEFT) / cellWidth);
    const row = rows - 1 - Math.floor((event.clientY - box.top) / cellHeight);
    const inside = column >= 0 && column < columns && row >= 0 && row < rows;
    return inside ? [column, row] : null;
  }

  point(event) {
    if (this.data) this.choose(this.at(event));
  }

  click(event) {
    if (!this.data) return;
    const cell = this.at(event);
    // If the cell is empty, a neighbour with traces is selected.
    const found = cell && this.near(cell);
    if (found) this.open(found);
  }

  near([column, row]) {
    const steps = [[0, 0], [0, 1], [0, -1], [1, 0], [-1, 0], [1, 1], [1, -1], [-1, 1], [-1, -1]];
    const all = steps.map(([x, y]) => [column + x, row + y]);
    return all.find(([x, y]) => this.data.columns[x]?.[y] > 0);
  }

  choose(cell) {
    this.cell = cell;
    this.mark = cell && this.middle(cell);
    this.draw();
    this.tell();
  }

  range([column, row]) {
    const { since, until, bounds_ms: bounds, columns } = this.data;
    const step = (until - since) / columns.length;
    return { since: Math.floor(since + column * step), until: Math.ceil(since + (column + 1) * step), min_ms: row === 0 ? "" : bounds[row], max_ms: row + 2 === bounds.length ? "" : bounds[row + 1] };
  }

  middle([column, row]) {
    const { since, until, bounds_ms: bounds, columns } = this.data;
    return { time: since + ((column + 0.5) * (until - since)) / columns.length, ms: (bounds[row] + bounds[row + 1]) / 2 };
  }

  /** The cell at a time and duration; none if the map does not have it. */
  cellOf({ time, ms }) {
    const { since, until, bounds_ms: bounds, columns } = this.data;
    const column = Math.floor(((time - since) * columns.length) / (until - since));
    const row = bounds.findLastIndex((bound) => bound <= ms);
    return column >= 0 && column < columns.length && row >= 0 && row + 1 < bounds.length ? [column, row] : null;
  }

  open(cell) {
    this.chosen(this.range(cell));
  }

  words() {
    const [column, row] = this.cell;
    const { since, until } = this.range(this.cell);
    const count = this.data.columns[column][row];
    const failed = this.data.errors?.[column]?.[row] ?? 0;
    const [low, high] = [this.data.bounds_ms[row], this.data.bounds_ms[row + 1]];
    return `${clock(since)} to ${clock(until)}, ${milliseconds(low)} to ${milliseconds(high)}: ${number(count)} traces${failed ? `, ${number(failed)} with errors` : ""}`;
  }

  tell() {
    text(this.about, this.cell ? this.words() : `${number(this.data?.matched ?? 0)} traces. Blue: without errors, red: with errors; the stronger, the more.`);
  }

  key(event) {
    if (!this.data) return;
    const { columns, rows } = this.size();
    const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
    const move = moves[event.key];
    if (move) {
      const [column, row] = this.cell ?? this.first();
      const to = this.cell ? [column + move[0], row + move[1]] : [column, row];
      this.choose([Math.min(columns - 1, Math.max(0, to[0])), Math.min(rows - 1, Math.max(0, to[1]))]);
      announce(this.words());
    } else if (event.key === "Enter" && this.cell) this.open(this.cell);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** The newest cell with traces. */
  first() {
    for (let column = this.data.columns.length - 1; column >= 0; column -= 1) {
      const row = this.data.columns[column].findLastIndex((count) => count > 0);
      if (row >= 0) return [column, row];
    }
    return [0, 0];
  }

  end() {
    this.observer.disconnect();
  }
}
