// The page Traces: the search, the heat map, the list.

import { get } from "./api.js";
import { make, Table, text } from "./dom.js";
import { bytes, clock, milliseconds, number } from "./format.js";
import { HeatMap } from "./heat.js";
import * as trace from "./trace.js";

const LIST_MAX = 100;
/** Most rows that stay at a renewal although newer traces follow. */
const KEPT_MAX = 100;
/** The shortest period of the heat map. */
const SPAN_MIN_MS = 60_000;
const SPANS_OF_TIME = [["5", "Last 5 minutes"], ["15", "Last 15 minutes"], ["60", "Last hour"], ["all", "All that is held"]];

/** The parameters that the address may have. */
const FIELDS = ["service", "name", "route", "status", "min_ms", "max_ms", "policy", "kept", "error", "since", "until", "last"];

/** A cell with the decision on a trace. */
export function decision(kept) {
  if (kept === null || kept === undefined) return make("span", { class: "tag" }, "undecided");
  return kept ? make("span", { class: "tag good" }, "kept") : make("span", { class: "tag" }, "not kept");
}

const COLUMNS = [
  { title: "Time", class: "time", cell: (cell, row) => once(cell, row, () => make("a", { href: `#/traces/${row.id}` }, clock(row.start_ms, true))) },
  { title: "Duration", class: "num", cell: (cell, row) => text(cell, milliseconds(row.duration_ms)) },
  { title: "Service", class: "p1", cell: (cell, row) => text(cell, row.service) },
  { title: "Name", class: "text-cell", cell: (cell, row) => text(cell, row.route && !row.name.includes(row.route) ? `${row.name} ${row.route}` : row.name) },
  { title: "Status", class: "num", cell: (cell, row) => { text(cell, row.status ?? "–"); cell.classList.toggle("hot", Boolean(row.error)); } },
  { title: "Spans", class: "num p1", cell: (cell, row) => text(cell, number(row.spans)) },
  { title: "Decision", class: "p1", cell: (cell, row) => once(cell, { id: `${row.id}${row.kept}` }, () => decision(row.kept)) },
  { title: "Policy", class: "p2", cell: (cell, row) => text(cell, row.policy ?? "") },
];

/** Puts an element into a cell; creates it again only for another row. */
function once(cell, row, element) {
  if (cell.id_shown === row.id) return;
  cell.id_shown = row.id;
  cell.replaceChildren(element());
}

/** The list of traces. */
export const listOf = (caption) => new Table(caption, COLUMNS);
export const rowsOf = (traces) => traces.map((row) => ({ ...row, key: row.id }));

function field(label, name, attributes = {}) {
  return make("label", {}, label, make("input", { name, type: "text", autocomplete: "off", spellcheck: "false", ...attributes }));
}

function choice(label, name, options) {
  return make("label", {}, label, make("select", { name }, options.map(([value, title]) => make("option", { value }, title))));
}

/** The parameters for the API from a form. */
function parameters(values) {
  const { last, ...rest } = values;
  const asked = { ...rest };
  if (!asked.since && last !== "all") asked.since = Date.now() - Number(last || 15) * 60_000;
  return asked;
}

function valuesOf(query) {
  const values = {};
  for (const name of FIELDS) if (query.get(name)) values[name] = query.get(name);
  return values;
}

function addressOf(values) {
  const query = new URLSearchParams();
  for (const name of FIELDS) if (values[name]) query.set(name, values[name]);
  const shown = query.toString();
  return shown ? `#/traces?${shown}` : "#/traces";
}

function searchForm(values, names) {
  const list = (id, all) => make("datalist", { id }, [...new Set(all)].map((value) => make("option", { value })));
  const services = names.services ?? [];
  const form = make("form", { class: "form", role: "search", "aria-label": "Traces" },
    field("Service", "service", { list: "known-services" }),
    field("Span name", "name", { list: "known-names" }),
    field("Route", "route", { list: "known-routes", placeholder: "/products/*" }),
    field("Status", "status", { placeholder: "404, 5xx, 500-599" }),
    field("At least, ms", "min_ms", { inputmode: "decimal" }),
    field("At most, ms", "max_ms", { inputmode: "decimal" }),
    field("Policy", "policy", { list: "known-policies" }),
    choice("Decision", "kept", [["", "Any"], ["1", "Kept"], ["0", "Not kept"]]),
    choice("Time", "last", SPANS_OF_TIME),
    make("label", { class: "check" }, make("input", { type: "checkbox", name: "error", value: "1" }), "With errors only"),
    make("div", { class: "row" }, make("button", { class: "main" }, "Search"), make("a", { href: "#/traces" }, "Clear")),
    list("known-services", services.map((service) => service.name)),
    list("known-names", services.flatMap((service) => service.names)),
    list("known-routes", services.flatMap((service) => service.routes)),
    list("known-policies", names.policies ?? []));
  for (const element of form.elements) {
    if (element.type === "checkbox") element.checked = values[element.name] === "1";
    else if (element.name) element.value = values[element.name] ?? (element.name === "last" ? "15" : "");
  }
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const asked = Object.fromEntries(new FormData(form));
    if (asked.last === "15") delete asked.last;
    const address = addressOf(asked);
    if (location.hash === address) window.dispatchEvent(new HashChangeEvent("hashchange"));
    else location.hash = address;
  });
  return form;
}

function heldLine(held) {
  const age = held.oldest_ms ? `, the oldest from ${clock(held.oldest_ms)}` : "";
  return `Held in memory: ${number(held.traces)} traces of ${number(held.spans)} spans, ${bytes(held.bytes)} of ${bytes(held.bytes_max)}${age}.`;
}

/** Shows the page, or one trace. */
export async function open(main, again, signal, { rest, query }) {
  if (rest[0]) return trace.open(main, rest[0], signal);
  const values = valuesOf(query);
  const names = await get("/api/services", {}, signal);
  const heat = new HeatMap((cell) => {
    location.hash = addressOf({ ...values, ...cell });
  });
  const table = listOf("Traces, the newest first");
  const found = make("span", { class: "soft" });
  const empty = make("p", { class: "empty", hidden: true }, "No trace fits. Traces come here from a collector's exporter ", make("code", {}, "dashboard"), ".");
  const held = make("p", { class: "pad soft" });
  const cell = values.since ? make("p", { class: "pad" }, `Only ${clock(Number(values.since))} to ${clock(Number(values.until))}${values.min_ms ? `, from ${milliseconds(Number(values.min_ms))}` : ""}${values.max_ms ? ` to ${milliseconds(Number(values.max_ms))}` : ""}. `,
    make("a", { href: addressOf({ ...values, since: "", until: "", min_ms: "", max_ms: "" }) }, "All times and durations")) : "";
  main.append(
    make("div", { class: "head" }, make("h1", {}, "Traces")),
    make("section", { class: "card", "aria-label": "Search" }, searchForm(values, names)),
    make("section", { class: "card" }, make("div", { class: "title" }, make("h2", {}, "Duration over time")), heat.element),
    make("section", { class: "card moving" }, make("div", { class: "title" }, make("h2", {}, "Traces"), found), cell, table.element, empty, held));
  const view = { values, main, signal, heat, table, found, empty, held, rows: new Map() };
  (await request(view))();
  // A search that is being written is not disturbed.
  const renew = () => (main.querySelector("form :is(input, select):focus") ? null : request(view));
  return { close: () => heat.end(), themeChanged: () => heat.draw(), renew };
}

/** Requests the list and the heat map. Returns the function that shows them. */
async function request(view) {
  const { values, main, signal } = view;
  const asked = parameters(values);
  // The heat map also shows the surroundings of a cell.
  const { since: _since, until: _until, min_ms: _min, max_ms: _max, ...around } = values.since ? asked : { ...asked, since: undefined };
  const wide = values.since ? parameters({ ...around, last: values.last }) : asked;
  const columns = Math.max(20, Math.min(120, Math.floor((main.clientWidth - 80) / 9)));
  const list = await get("/api/traces", { ...asked, limit: LIST_MAX }, signal);
  // No period is shown for which no traces are stored.
  const oldest = Math.min(list.held.oldest_ms ?? 0, Date.now() - SPAN_MIN_MS);
  const map = await get("/api/heatmap", { ...wide, since: Math.max(wide.since ?? 0, oldest), columns, rows: 24 }, signal);
  return () => show(view, list, map);
}

function show({ heat, table, found, empty, held, rows }, list, map) {
  // Rows that the reader looks at stay, although newer traces follow.
  const read = readRows(table);
  const kept = new Map([...read.keys].map((key) => [key, rows.get(key)]));
  for (const row of rowsOf(list.traces)) kept.set(row.key, row);
  rows.clear();
  for (const row of [...kept.values()].sort((one, other) => other.start_ms - one.start_ms)) rows.set(row.key, row);
  const top = read.anchor?.getBoundingClientRect().top;
  heat.update(map);
  table.update([...rows.values()]);
  empty.hidden = rows.size > 0;
  text(found, list.matched > list.traces.length ? `${number(list.matched)} found, the newest ${list.traces.length} shown` : `${number(list.matched)} found`);
  text(held, heldLine(list.held));
  if (read.anchor) scrollBy({ top: read.anchor.getBoundingClientRect().top - top, behavior: "instant" });
}

/**
 * The keys of the rows that have the focus or selected text, and, once the list is scrolled, of those in view. `anchor`: the row
 * that keeps its place on the screen.
 */
function readRows(table) {
  const keys = new Set();
  const selection = document.getSelection();
  const isScrolled = table.element.getBoundingClientRect().top < 0;
  let [anchor, focused] = [null, null];
  for (const [key, { element }] of table.rows) {
    const box = element.getBoundingClientRect();
    const isInView = box.bottom > 0 && box.top < innerHeight;
    const hasFocus = element.contains(document.activeElement);
    const isSelected = selection && !selection.isCollapsed && selection.containsNode(element, true);
    const isRead = isSelected || (isScrolled && isInView);
    if (!hasFocus && !(isRead && keys.size < KEPT_MAX)) continue;
    keys.add(key);
    if (hasFocus && isInView) focused = element;
    if (isInView) anchor ??= element;
  }
  return { keys, anchor: focused ?? anchor };
}
