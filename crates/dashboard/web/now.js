// The page Now: the process, frontends, and backends with their servers, once a second.

import { get, setRights } from "./api.js";
import { announce, className, make, Table, text } from "./dom.js";
import { bytes, clock, milliseconds, number, shortMilliseconds, span } from "./format.js";
import { backendKey, frontendKey, History, percentile, requests, serverKey, SPARK_SAMPLES, WINDOW_S } from "./history.js";
import { drawSpark, Plot, sparkline } from "./plot.js";
import { checkLine, health, openServer } from "./servers.js";

/** Seconds that the plots show. */
const PLOT_SAMPLES = 240;

const history = new History();
/** Points of the plots, which are kept for when the page is opened again. */
const points = [];
/** The states of servers, for announcing changes. */
const states = new Map();
let latest = null;

const setNumber = (cell, value, shown = number(value)) => {
  text(cell, shown);
  cell.classList.toggle("zero", value === 0);
};

const hot = (cell, value) => {
  setNumber(cell, value);
  cell.classList.toggle("hot", value > 0);
};

const rate = (of) => (cell, item) => setNumber(cell, item.series.rate(of));
const failures = (of) => (cell, item) => hot(cell, item.series.rate((sample) => sample.errors[of] ?? 0));
const latency = (share) => (cell, item) => text(cell, milliseconds(item.series.percentile(share, latest.bounds_ms)));

function state(cell, item) {
  if (!cell.firstChild) cell.append(make("span"));
  text(cell.firstChild, item.row.status);
  className(cell.firstChild, `state ${health(item.row.status)}`);
}

function spark(cell, item) {
  cell.spark ??= sparkline();
  if (!cell.firstChild) cell.append(cell.spark.element);
  drawSpark(cell.spark, item.series.steps(requests, SPARK_SAMPLES), SPARK_SAMPLES);
}

const LATENCY_HINT = `Of the last ${3 * WINDOW_S} s, from the histograms of 'option latency-histograms'`;
const RATE_HINT = `A second, over the last ${WINDOW_S} s`;
const percentiles = [
  { title: "p50", hint: LATENCY_HINT, class: "num p2", cell: latency(0.5) },
  { title: "p90", hint: LATENCY_HINT, class: "num p2", cell: latency(0.9) },
  { title: "p99", hint: LATENCY_HINT, class: "num", cell: latency(0.99) },
];
const sparkColumn = { title: "Last minute", class: "p2", cell: spark };

const FRONTEND_COLUMNS = [
  { title: "Frontend", cell: (cell, item) => text(cell, item.row.name) },
  { title: "State", class: "p1", cell: state },
  { title: "Req/s", hint: RATE_HINT, class: "num", cell: rate(requests) },
  sparkColumn,
  { title: "4xx/s", hint: RATE_HINT, class: "num p1", cell: rate((sample) => sample.errors["4xx"] ?? 0) },
  { title: "5xx/s", hint: RATE_HINT, class: "num", cell: failures("5xx") },
  { title: "Denied/s", hint: RATE_HINT, class: "num p3", cell: rate((sample) => sample.errors.denied_requests ?? 0) },
  { title: "Bad requests/s", hint: RATE_HINT, class: "num p3", cell: rate((sample) => sample.errors.request ?? 0) },
  ...percentiles,
  { title: "Sessions", class: "num p1", cell: (cell, item) => text(cell, `${number(item.row.sessions)} / ${number(item.row.sessions_max)}`) },
  { title: "In/s", class: "num p3", cell: (cell, item) => text(cell, bytes(item.series.rate((sample) => sample.bytes_in))) },
  { title: "Out/s", class: "num p3", cell: (cell, item) => text(cell, bytes(item.series.rate((sample) => sample.bytes_out))) },
];

function serverName(cell, item) {
  if (!item.server) {
    text(cell, item.row.name);
    return;
  }
  cell.item = item;
  if (!cell.firstChild) {
    const open = () => {
      const { backend, server } = cell.item;
      openServer(backend, server, async () => {
        // An answer that was already in flight may be older than the action.
        await refresh();
        await refresh();
        const found = latest.backends.find((one) => one.name === backend.name);
        return found?.servers.find((one) => one.name === server.name);
      });
    };
    cell.append(make("button", { type: "button", class: "link", "aria-haspopup": "dialog", onclick: open }), make("span", { class: "sub narrow" }));
  }
  text(cell.firstChild, item.row.name);
  text(cell.lastChild, checkLine(item.row));
}

const BACKEND_COLUMNS = [
  { title: "Backend / server", cell: serverName },
  { title: "State", cell: state },
  { title: "For", hint: "Since the state changed", class: "num p3", cell: (cell, item) => text(cell, item.row.since_change_s === undefined ? "" : span(item.row.since_change_s)) },
  { title: "Weight", class: "num p2", cell: (cell, item) => text(cell, item.row.weight) },
  { title: "Req/s", hint: RATE_HINT, class: "num", cell: rate(requests) },
  sparkColumn,
  { title: "5xx/s", hint: RATE_HINT, class: "num", cell: failures("5xx") },
  { title: "Failed/s", hint: `Connections and responses that failed; ${RATE_HINT}`, class: "num p1", cell: (cell, item) => hot(cell, item.series.rate((sample) => (sample.errors.connect ?? 0) + (sample.errors.response ?? 0))) },
  { title: "Retries/s", hint: RATE_HINT, class: "num p3", cell: rate((sample) => sample.errors.retries ?? 0) },
  ...percentiles,
  { title: "Queue", class: "num p1", cell: (cell, item) => setNumber(cell, item.row.queue ?? 0) },
  { title: "Sessions", class: "num p1", cell: (cell, item) => setNumber(cell, item.row.sessions ?? 0) },
  { title: "Last check", class: "text p1", cell: (cell, item) => text(cell, item.server ? checkLine(item.row) : `${item.row.algorithm ?? ""}, ${item.row.active ?? 0} active${item.row.backup ? `, ${item.row.backup} backup` : ""}`) },
];

const FIGURES = [
  ["requests", "Requests/s"],
  ["errors", "5xx/s"],
  ["p99", "p99"],
  ["connections", "Connections"],
  ["servers", "Servers up"],
  ["memory", "Memory"],
  ["uptime", "Uptime"],
];

let shown = null;
let refresh = () => {};

/** The values of the process at one time. */
function total() {
  const all = latest.frontends.map((frontend) => history.series(frontendKey(frontend)));
  const sum = (of) => {
    const rates = all.map((series) => series.rate(of)).filter((one) => one !== null);
    return rates.length ? rates.reduce((one, other) => one + other, 0) : null;
  };
  const windows = all.map((series) => series.ends(3 * WINDOW_S)).filter((ends) => ends?.last.counts && ends.first.counts);
  const counts = latest.bounds_ms.map(() => 0).concat(0);
  for (const { first, last } of windows) last.counts.forEach((count, place) => { counts[place] += count - first.counts[place]; });
  return { requests: sum(requests), errors: sum((sample) => sample.errors["5xx"] ?? 0), counts };
}

function tellChanges() {
  for (const backend of latest.backends) {
    for (const server of backend.servers) {
      const key = serverKey(backend, server);
      const before = states.get(key);
      if (before !== undefined && before !== server.status) announce(`${backend.name}/${server.name} is ${server.status}`);
      states.set(key, server.status);
    }
  }
}

/** Requests the newest state, and shows it if the page is open. */
export async function poll(signal) {
  latest = await get("/api/now", {}, signal);
  setRights(latest);
  history.add(latest);
  tellChanges();
  const all = total();
  const at = (share) => percentileOf(all.counts, share);
  points.push([latest.process.now_ms / 1000, all.requests, all.errors, at(0.5), at(0.9), at(0.99)]);
  if (points.length > PLOT_SAMPLES) points.shift();
  if (shown) update(all);
  return latest;
}

const percentileOf = (counts, share) => percentile(counts, share, latest.bounds_ms);

function update(all) {
  const { process } = latest;
  const servers = latest.backends.flatMap((backend) => backend.servers);
  const up = servers.filter((server) => /^(UP|no check)/.test(server.status)).length;
  const values = {
    requests: number(all.requests),
    errors: number(all.errors),
    p99: milliseconds(percentileOf(all.counts, 0.99)),
    connections: `${number(process.connections)} / ${number(process.connections_max)}`,
    servers: `${up} / ${servers.length}`,
    memory: bytes(process.memory_bytes),
    uptime: span(process.uptime_s),
  };
  for (const [name] of FIGURES) text(shown.figures[name], values[name]);
  shown.figures.errors.classList.toggle("hot", all.errors > 0);
  shown.figures.servers.classList.toggle("hot", up < servers.length);
  text(shown.about, `${process.node ?? ""} · version ${process.version} · pid ${process.pid} · ${process.workers} workers${process.stopping ? " · stopping" : ""}`);
  const columns = [0, 1, 2, 3, 4, 5].map((place) => points.map((point) => point[place]));
  shown.traffic.update([columns[0], columns[1], columns[2]]);
  shown.times.update([columns[0], columns[3], columns[4], columns[5]]);
  shown.frontends.update(latest.frontends.map((row) => {
    const key = frontendKey(row);
    return { key, row, series: history.series(key) };
  }));
  shown.backends.update(latest.backends.flatMap((backend) => {
    const key = backendKey(backend);
    const group = { key, row: backend, series: history.series(key), class: "group" };
    const members = backend.servers.map((server) => {
      const own = serverKey(backend, server);
      return { key: own, row: server, backend, server, series: history.series(own), class: "member" };
    });
    return [group, ...members];
  }));
  shown.none.hidden = latest.frontends.concat(latest.backends).some((row) => row.latency);
}

/** Shows the page. `again`: requests the newest state at once. */
export function open(main, again) {
  refresh = again;
  const figures = {};
  const boxes = FIGURES.map(([name, title]) => {
    figures[name] = make("dd", {}, "–");
    return make("div", {}, make("dt", {}, title), figures[name]);
  });
  const traffic = new Plot({ title: "Requests", note: "a second, all frontends", unit: number, least: 1, lines: [
    { label: "requests/s", colour: "--plot-a" }, { label: "5xx/s", colour: "--plot-b", dash: [4, 3] }] });
  const times = new Plot({ title: "Latency", note: `of the last ${3 * WINDOW_S} s, all frontends`, unit: shortMilliseconds, least: 1, lines: [
    { label: "p50", colour: "--plot-c" }, { label: "p90", colour: "--plot-d", dash: [6, 3] }, { label: "p99", colour: "--plot-b", dash: [2, 3] }] });
  const about = make("span", { class: "soft" });
  const none = make("p", { class: "pad soft", hidden: true }, "No percentiles: they need ", make("code", {}, "option latency-histograms"), " in a frontend, backend or defaults.");
  shown = {
    figures, traffic, times, about, none,
    frontends: new Table("Frontends", FRONTEND_COLUMNS),
    backends: new Table("Backends and their servers", BACKEND_COLUMNS),
  };
  main.append(
    make("div", { class: "head" }, make("h1", {}, "Now"), about),
    make("section", { class: "card", "aria-label": "The process" }, make("dl", { class: "figures" }, boxes)),
    make("div", { class: "plots" }, traffic.element, times.element),
    make("section", { class: "card" }, make("div", { class: "title" }, make("h2", {}, "Frontends")), shown.frontends.element, none),
    make("section", { class: "card" }, make("div", { class: "title" }, make("h2", {}, "Backends")), shown.backends.element));
  if (latest) update(total());
  return {
    close() {
      traffic.end();
      times.end();
      shown = null;
    },
    themeChanged() {
      traffic.draw();
      times.draw();
    },
  };
}

/** The time of the newest state, for the head of the page. */
export const newest = () => (latest ? clock(latest.process.now_ms) : "");
