// Plots over time (uPlot), and sparklines.

import { make, svg } from "./dom.js";
import { clock } from "./format.js";

const HEIGHT = 150;

/** The colour of a style sheet variable in the current theme. */
export function colour(name) {
  const probe = make("span", { hidden: true });
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

/** A plot of lines over time: { title, unit(value), lines: [{ label, colour }] }. */
export class Plot {
  constructor(settings) {
    this.settings = settings;
    this.place = make("div", { class: "plot", role: "img", "aria-label": settings.title });
    this.element = make("section", { class: "card" },
      make("div", { class: "title" }, make("h2", {}, settings.title), make("span", { class: "soft" }, settings.note ?? "")), this.place);
    this.data = [[], ...settings.lines.map(() => [])];
    this.width = 0;
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(this.place);
  }

  /** Shows times in seconds, and one list of values per line. */
  update(data) {
    this.data = data;
    if (!this.plot) {
      this.draw();
      return;
    }
    this.plot.setData(data);
    this.newest();
  }

  /** The legend shows the newest values unless the pointer is on others. */
  newest() {
    if (this.plot && (this.plot.cursor.left ?? -1) < 0 && this.data[0].length) this.plot.setLegend({ idx: this.data[0].length - 1 });
  }

  resize() {
    const width = Math.floor(this.place.clientWidth - 16);
    if (width <= 0 || width === this.width) return;
    this.width = width;
    if (this.plot) this.plot.setSize({ width, height: HEIGHT });
    else this.draw();
  }

  /** Draws the plot again, in the colours of the current theme. */
  draw() {
    if (this.width <= 0) return;
    this.plot?.destroy();
    const axis = { stroke: colour("--soft"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false }, font: "11px system-ui, sans-serif" };
    const { unit, lines } = this.settings;
    this.plot = new window.uPlot({
      width: this.width,
      height: HEIGHT,
      cursor: { y: false, drag: { x: false, y: false } },
      legend: { live: true },
      scales: { y: { range: (_, low, high) => [0, Math.max(high * 1.15, this.settings.least ?? 1)] } },
      axes: [{ ...axis, size: 26, space: 90, values: (_, times) => times.map((time) => clock(time * 1000)) }, { ...axis, size: 58, values: (_, values) => values.map(unit) }],
      series: [{ label: "at", value: (_, time) => (time === null || time === undefined ? "–" : clock(time * 1000)) }, ...lines.map((line) => ({
        label: line.label,
        stroke: colour(line.colour),
        dash: line.dash,
        width: 1.5,
        points: { show: false },
        value: (_, value) => (value === null || value === undefined ? "–" : unit(value)),
      }))],
    }, this.data, this.place);
    this.newest();
  }

  end() {
    this.observer.disconnect();
    this.plot?.destroy();
    this.plot = null;
  }
}

/** A sparkline: decoration beside a number with the same meaning. */
export function sparkline() {
  const line = svg("polyline", { points: "" });
  return { element: svg("svg", { class: "spark", viewBox: "0 0 60 20", preserveAspectRatio: "none", "aria-hidden": "true", focusable: "false" }, line), line };
}

/** Shows values in it, the newest one at the right. */
export function drawSpark(spark, values, count) {
  const most = Math.max(...values, 0.001);
  const points = values.map((value, place) => {
    const x = 60 - ((values.length - 1 - place) * 60) / (count - 1);
    return `${x.toFixed(1)},${(19 - (18 * value) / most).toFixed(1)}`;
  });
  spark.line.setAttribute("points", points.join(" "));
}
