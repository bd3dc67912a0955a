// One trace: its waterfall, and the details of each span.

import { get } from "./api.js";
import { make } from "./dom.js";
import { clock, milliseconds, number } from "./format.js";
import { decision } from "./traces.js";

/** Most spans shown at a time. */
const SPANS_MAX = 2000;
/** Number of colours that distinguish services. */
const COLOURS = 6;

/** Spans in the order of the tree, each with its depth. */
function ordered(spans) {
  const known = new Map(spans.map((span) => [span.id, span]));
  const children = new Map();
  const roots = [];
  for (const span of spans) {
    if (span.parent && known.has(span.parent) && span.parent !== span.id) {
      const list = children.get(span.parent) ?? [];
      list.push(span);
      children.set(span.parent, list);
    } else roots.push(span);
  }
  const rows = [];
  const seen = new Set();
  const stack = roots.toReversed().map((span) => [span, 0]);
  while (stack.length) {
    const [span, depth] = stack.pop();
    if (seen.has(span.id)) continue;
    seen.add(span.id);
    rows.push({ span, depth });
    for (const child of (children.get(span.id) ?? []).toReversed()) stack.push([child, depth + 1]);
  }
  // Spans that are each other's parents have no root.
  for (const span of spans) if (!seen.has(span.id)) rows.push({ span, depth: 0 });
  return rows;
}

const shown = (value) => (typeof value === "string" ? value : JSON.stringify(value));

function value(key, content) {
  const place = key.startsWith("proxy.") && key.endsWith("rule") && /^(.*):(\d+)$/.exec(content);
  return place ? make("a", { href: `#/configuration?file=${encodeURIComponent(place[1])}&line=${place[2]}` }, content) : shown(content);
}

/** The parts of a name, which may be broken after a dot or an underscore. */
const parts = (key) => key.split(/(?<=[._])/).flatMap((part, place) => (place === 0 ? [part] : [make("wbr"), part]));

function pairs(title, entries) {
  if (entries.length === 0) return null;
  return make("section", { class: "pairs" }, make("h3", {}, title),
    make("table", {}, make("caption", { class: "hidden" }, title),
      make("tbody", {}, entries.map(([key, content]) => make("tr", {}, make("th", { scope: "row" }, make("code", {}, parts(key))), make("td", { class: "mono" }, value(key, content)))))));
}

function details(span) {
  const all = Object.entries(span.attributes ?? {});
  const ofProxy = all.filter(([key]) => key.startsWith("proxy."));
  const others = all.filter(([key]) => !key.startsWith("proxy."));
  const own = [["span id", span.id], ["parent", span.parent ?? "none"], ["kind", span.kind], ["start", clock(span.start_ms, true)], ["status", span.status.message ? `${span.status.code}: ${span.status.message}` : span.status.code]];
  const events = (span.events ?? []).map((event) => pairs(`Event ${event.name}, at ${milliseconds(event.offset_ms)}`, Object.entries(event.attributes ?? {}).concat(Object.keys(event.attributes ?? {}).length ? [] : [["time", clock(event.time_ms, true)]])));
  const links = (span.links ?? []).length
    ? make("section", { class: "pairs" }, make("h3", {}, "Links"), make("ul", {}, span.links.map((link) => make("li", {}, make("a", { href: `#/traces/${link.trace}`, class: "mono" }, link.trace), ` span ${link.span}`))))
    : null;
  const scope = span.scope?.name ? [["scope", [span.scope.name, span.scope.version].filter(Boolean).join(" ")]] : [];
  return make("div", { class: "details" },
    pairs("What the proxy decided", ofProxy), pairs("Attributes", others), events, links, pairs("Resource", Object.entries(span.resource ?? {})), pairs("Span", own.concat(scope)));
}

/** The row of a span, and the row of its details below it. */
function lines({ span, depth }, place, total, services, all) {
  const failed = span.status.code === "error";
  const extra = make("tr", { class: "extra", hidden: true }, make("td", { colspan: 3 }));
  const button = make("button", { type: "button", class: "link", "aria-expanded": "false", onclick: () => {
    const open = extra.hidden;
    if (open && !extra.firstChild.hasChildNodes()) extra.firstChild.append(details(span));
    extra.hidden = !open;
    button.setAttribute("aria-expanded", String(open));
  } }, span.name);
  const start = Math.min(100, (100 * span.offset_ms) / total);
  const width = Math.max(0.3, Math.min(100 - start, (100 * span.duration_ms) / total));
  const bar = make("span", { class: `bar c${services.get(span.service) % COLOURS}${failed ? " failed" : ""}` });
  bar.style.marginLeft = `${start}%`;
  bar.style.width = `${width}%`;
  const marks = (span.events ?? []).map((event) => {
    const mark = make("span", { class: "mark", title: event.name });
    mark.style.left = `${Math.min(100, (100 * event.offset_ms) / total)}%`;
    return mark;
  });
  const head = make("th", { scope: "row", class: "span-name" }, make("span", { class: `chip c${services.get(span.service) % COLOURS}`, "aria-hidden": "true" }), button,
    failed ? make("span", { class: "tag bad" }, "error") : "", make("span", { class: "sub" }, span.service));
  head.style.paddingLeft = `${10 + Math.min(depth, 12) * 14}px`;
  const row = make("tr", { "aria-level": depth + 1, "aria-posinset": place + 1, "aria-setsize": all, class: "span-row" }, head,
    make("td", { class: "track", "aria-label": `from ${milliseconds(span.offset_ms)}, ${milliseconds(span.duration_ms)}` }, make("span", { class: "lane" }, bar, marks)),
    make("td", { class: "num" }, milliseconds(span.duration_ms)));
  return [row, extra];
}

/** Arrow keys move between spans; right opens, left closes. */
function keys(event) {
  const button = event.target.closest(".span-row button");
  if (!button) return;
  const all = [...event.currentTarget.querySelectorAll(".span-row button")];
  const at = all.indexOf(button);
  const isOpen = button.getAttribute("aria-expanded") === "true";
  if (event.key === "ArrowDown") all[Math.min(at + 1, all.length - 1)].focus();
  else if (event.key === "ArrowUp") all[Math.max(at - 1, 0)].focus();
  else if (event.key === "Home") all[0].focus();
  else if (event.key === "End") all.at(-1).focus();
  else if ((event.key === "ArrowRight" && !isOpen) || (event.key === "ArrowLeft" && isOpen)) button.click();
  else return;
  event.preventDefault();
}

/** The root's name, and the route if the name does not contain it. */
function title(spans, root) {
  if (!root) return "Trace";
  const route = spans.map((span) => span.attributes?.["http.route"]).find(Boolean);
  return route && !root.name.includes(" ") ? `${root.name} ${route}` : root.name;
}

/** Shows the trace with an identifier. */
export async function open(main, id, signal) {
  const found = await get(`/api/traces/${encodeURIComponent(id)}`, {}, signal);
  const rows = ordered(found.spans);
  const names = [...new Set(rows.map(({ span }) => span.service))];
  const services = new Map(names.map((name, place) => [name, place]));
  const ends = found.spans.map((span) => span.offset_ms + span.duration_ms);
  const total = Math.max(found.duration_ms, ...ends, 0.001);
  const root = rows[0]?.span;
  const marks = [0, 0.25, 0.5, 0.75, 1].map((part) => {
    const mark = make("span", {}, milliseconds(total * part));
    return mark;
  });
  const table = make("table", { class: "waterfall", role: "treegrid", "aria-label": "Spans. Up and down go from span to span, right opens one, left closes it.", onkeydown: keys },
    make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "Span"), make("th", { scope: "col", class: "scale" }, make("span", { class: "hidden" }, "Timeline"), make("span", { class: "marks", "aria-hidden": "true" }, marks)), make("th", { scope: "col", class: "num" }, "Duration"))),
    make("tbody", {}, rows.slice(0, SPANS_MAX).flatMap((row, place) => lines(row, place, total, services, rows.length))));
  main.append(
    make("p", { class: "back" }, make("a", { href: "#/traces", onclick: (event) => {
      if (window.history.length > 1) {
        event.preventDefault();
        window.history.back();
      }
    } }, "‹ Traces")),
    make("div", { class: "head" }, make("h1", {}, title(found.spans, root)), make("code", { class: "soft id" }, id)),
    make("section", { class: "card" },
      make("dl", { class: "figures" }, [
        ["Start", root ? clock(found.start_ms, true) : "–"],
        ["Duration", milliseconds(found.duration_ms)],
        ["Spans", number(found.spans.length)],
        ["Services", number(names.length)],
        ["Decision", decision(found.kept)],
        ["Policy", found.policy ?? "–"],
      ].map(([title, content]) => make("div", {}, make("dt", {}, title), make("dd", {}, content)))),
      found.left_out ? make("p", { class: "pad soft" }, `${number(found.left_out)} spans of it are not held.`) : ""),
    make("section", { class: "card" }, make("div", { class: "title" }, make("h2", {}, "Spans"), names.map((name) => make("span", {}, make("span", { class: `chip c${services.get(name) % COLOURS}`, "aria-hidden": "true" }), name))),
      make("div", { class: "scroll" }, table),
      rows.length > SPANS_MAX ? make("p", { class: "pad soft" }, `The first ${number(SPANS_MAX)} of ${number(rows.length)} spans.`) : ""));
  return { close() {} };
}
