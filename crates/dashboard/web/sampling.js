// The page Sampling: traces that collectors accepted, kept and dropped, their policies, and a dry run of others.

import { get, post, Refused } from "./api.js";
import { announce, make, Table, text } from "./dom.js";
import { bytes, clock, number, percent } from "./format.js";
import { listOf, rowsOf } from "./traces.js";

const REFRESH_MS = 2000;

const ACCOUNT = [["accepted", "Accepted"], ["exported", "Exported"], ["dropped", "Dropped"], ["failed", "Failed"], ["held", "Held"]];

const POLICY_COLUMNS = [
  { title: "Policy", cell: (cell, row) => text(cell, row.name) },
  { title: "Sampled", class: "num", cell: (cell, row) => text(cell, number(row.sampled)) },
  { title: "Not sampled", class: "num", cell: (cell, row) => text(cell, number(row.not_sampled)) },
  { title: "Share", class: "num", cell: (cell, row) => text(cell, percent(row.sampled, row.sampled + row.not_sampled)) },
  { title: "Spans sampled", class: "num p1", cell: (cell, row) => text(cell, number(row.sampled_spans)) },
  { title: "Errors", class: "num p1", cell: (cell, row) => { text(cell, number(row.errors)); cell.classList.toggle("hot", row.errors > 0); } },
];

function collectorCard(name) {
  const values = {};
  const boxes = [...ACCOUNT, ["pending", "Waiting in memory"]].map(([key, title]) => {
    values[key] = make("dd", {}, "–");
    return make("div", {}, make("dt", {}, title), values[key]);
  });
  const table = new Table(`Policies of ${name}`, POLICY_COLUMNS);
  const card = make("section", { class: "card" },
    make("div", { class: "title" }, make("h2", {}, `Collector ${name}`), make("span", { class: "soft" }, "spans since the start; policies count traces")),
    make("dl", { class: "figures" }, boxes), table.element);
  return { card, values, table };
}

function fill(card, collector) {
  for (const [key] of ACCOUNT) text(card.values[key], number(collector.spans[key]));
  card.values.failed.classList.toggle("hot", collector.spans.failed > 0);
  text(card.values.pending, `${bytes(collector.pending_bytes)}${collector.pending_bytes_max ? ` of ${bytes(collector.pending_bytes_max)}` : ""}`);
  const policies = collector.samplers.flatMap((sampler) => sampler.policies.map((policy) => ({ ...policy, key: `${sampler.pipeline} ${sampler.id} ${policy.name}` })));
  card.table.update(policies);
}

const KEPT_COLUMNS = [
  { title: "Policy", cell: (cell, row) => text(cell, row.name) },
  { title: "Would keep", class: "num", cell: (cell, row) => text(cell, number(row.kept)) },
  { title: "Of all", class: "num", cell: (cell, row) => text(cell, percent(row.kept, row.of)) },
];

function outcome(place, result) {
  const figures = [
    ["Traces", number(result.traces)],
    ["It would keep", `${number(result.kept)} (${percent(result.kept, result.traces)})`],
    ["Running policies kept", number(result.running_kept)],
    ["Spans it would keep", `${number(result.kept_spans)} of ${number(result.spans)}`],
    ["Bytes it would keep", result.bytes === undefined ? "–" : `${bytes(result.kept_bytes)} of ${bytes(result.bytes)}`],
  ];
  const table = new Table("What each policy would keep", KEPT_COLUMNS);
  table.update(result.policies.map((policy) => ({ ...policy, key: policy.name, of: result.traces })));
  const sample = listOf("Traces that it would keep");
  sample.update(rowsOf(result.sample));
  place.replaceChildren(
    make("dl", { class: "figures" }, figures.map(([title, content]) => make("div", {}, make("dt", {}, title), make("dd", {}, content)))),
    table.element,
    make("p", { class: "pad soft" }, `Over the traces that are held${result.since_ms ? `, since ${clock(result.since_ms)}` : ""}, also those that were not kept.${result.is_cut ? " Not all of them were looked at." : ""}`),
    (result.warnings ?? []).length ? make("ul", { class: "fault" }, result.warnings.map((warning) => make("li", {}, `Line ${warning.line}: ${warning.message}`))) : "",
    result.sample.length ? make("div", {}, make("div", { class: "title" }, make("h3", {}, "Some that it would keep")), sample.element) : "");
  announce(`The dry run would keep ${result.kept} of ${result.traces} traces`);
}

function dryRun(yaml) {
  const editor = make("textarea", { id: "policies", rows: 14, spellcheck: "false", autocapitalize: "off", "aria-describedby": "policies-fault" });
  editor.value = yaml;
  const fault = make("p", { id: "policies-fault", class: "fault", role: "alert" });
  const result = make("div", { id: "dry-run-result" });
  const button = make("button", { class: "main" }, "Try it");
  const form = make("form", { class: "pad", onsubmit: async (event) => {
    event.preventDefault();
    button.disabled = true;
    text(fault, "");
    editor.removeAttribute("aria-invalid");
    try {
      outcome(result, await post("/api/dry-run", editor.value, "application/yaml"));
    } catch (error) {
      const { line, column } = error instanceof Refused ? error.details : {};
      text(fault, line ? `Line ${line}, column ${column}: ${error.message}` : error.message);
      editor.setAttribute("aria-invalid", "true");
      if (line) select(editor, line, column);
    } finally {
      button.disabled = false;
    }
  } }, make("label", { class: "field", for: "policies" }, "Policies, as in the processor tail_sampling"), editor, fault,
    make("div", { class: "row" }, button, make("button", { type: "button", onclick: () => { editor.value = yaml; } }, "The running ones")));
  return make("section", { class: "card" }, make("div", { class: "title" }, make("h2", {}, "Dry run"), make("span", { class: "soft" }, "What other policies would have kept of the traces held here. Nothing changes.")), form, result);
}

/** Moves the cursor to the fault. */
function select(editor, line, column) {
  const before = editor.value.split("\n").slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
  editor.focus();
  editor.setSelectionRange(before + Math.max(0, (column ?? 1) - 1), before + (column ?? 1));
}

/** Shows the page. */
export async function open(main, _again, signal) {
  const first = await get("/api/sampling", {}, signal);
  const cards = new Map();
  const place = make("div");
  const none = make("p", { class: "card empty", hidden: true }, "This process has no section ", make("code", {}, "collector"), " that samples.");
  const show = ({ collectors }) => {
    for (const collector of collectors) {
      if (!cards.has(collector.name)) {
        cards.set(collector.name, collectorCard(collector.name));
        place.append(cards.get(collector.name).card);
      }
      fill(cards.get(collector.name), collector);
    }
    none.hidden = collectors.length > 0;
  };
  main.append(make("div", { class: "head" }, make("h1", {}, "Sampling")), place, none);
  show(first);
  const yaml = first.collectors.flatMap((collector) => collector.samplers).map((sampler) => sampler.yaml).find(Boolean) ?? "policies:\n";
  main.append(dryRun(yaml));
  const timer = setInterval(() => {
    // The page Now reports that the process does not answer.
    if (!document.hidden) get("/api/sampling", {}, signal).then(show, () => {});
  }, REFRESH_MS);
  return { close: () => clearInterval(timer) };
}
