// The dialog of a server: the results of its checks, and the available actions.

import { act, mayAct } from "./api.js";
import { announce, make, text } from "./dom.js";
import { milliseconds, number, span } from "./format.js";

/** The class and the word for the state of a server, backend or frontend. */
export function health(status) {
  const state = String(status ?? "");
  if (/^(UP|OPEN)$/.test(state)) return "good";
  if (/^no check/.test(state)) return "idle";
  if (/^(MAINT|STOP|PAUSED)/.test(state)) return "idle";
  if (/^DOWN/.test(state)) return "bad";
  return "warn";
}

/** The last check in one line. */
export function checkLine(server) {
  const check = server.check;
  if (!check) return server.tracked ? `follows ${server.tracked}` : "no check";
  const parts = [check.status.replace(/^\* /, "")];
  if (check.code) parts.push(check.code);
  if (check.duration_ms !== undefined) parts.push(`in ${milliseconds(check.duration_ms)}`);
  // The status already says that a check passed.
  const said = check.found || (/OK$/.test(parts[0]) ? "" : check.meaning);
  return said ? `${parts.join(" ")}: ${said}` : parts.join(" ");
}

const ACTIONS = [
  ["ready", "Ready", "New requests go to it again."],
  ["drain", "Drain", "No new clients are sent to it; persistent ones still are."],
  ["maintenance", "Maintenance", "No requests are sent to it, and it is not checked."],
  ["enable-health", "Enable checks", "Its health checks run."],
  ["disable-health", "Disable checks", "Its health checks stop; its state stays."],
];

/** Opens the dialog. `changed` is called after an action and returns the server's new state. */
export function openServer(backend, server, changed) {
  const outcome = make("p", { role: "status" });
  const run = async (body, said) => {
    text(outcome, "…");
    try {
      const answer = await act({ backend: backend.name, server: server.name, ...body });
      text(outcome, answer.message || `${said}: done`);
      announce(`${backend.name}/${server.name}: ${said} done`);
    } catch (error) {
      text(outcome, error.message);
    }
    tell(await changed());
  };
  const state = make("span");
  const weights = make("dd");
  const last = make("dd");
  // `newest` is undefined if the server no longer exists.
  const tell = (newest) => {
    text(state, newest?.status ?? "gone");
    state.className = `state ${health(newest?.status)}`;
    text(weights, newest ? `${newest.weight} now, ${newest.configured_weight} set` : "–");
    text(last, newest ? checkLine(newest) : "–");
  };
  tell(server);
  const weight = make("input", { type: "text", inputmode: "numeric", value: server.configured_weight ?? "", size: 6, maxlength: 5, "aria-label": "Weight, from 0 to 256 or per cent" });
  const actions = mayAct()
    ? [
        make("div", { class: "row" }, ACTIONS.map(([action, title, hint]) =>
          make("button", { type: "button", title: hint, onclick: () => run({ action }, title) }, title))),
        make("form", { class: "row", onsubmit: (event) => {
          event.preventDefault();
          run({ action: "weight", weight: weight.value.trim() }, "Weight");
        } }, make("label", {}, "Weight ", weight), make("button", {}, "Set weight")),
        outcome,
      ]
    : [make("p", { class: "soft" }, "This dashboard only reads: actions need the word ", make("code", {}, "admin"), " in the section ", make("code", {}, "dashboard"), ".")];
  const fact = (name, value) => [make("dt", { class: "soft" }, name), make("dd", {}, value)];
  const dialog = make("dialog", { "aria-label": `Server ${backend.name}/${server.name}`, onclose: () => dialog.remove() },
    make("h2", {}, `${backend.name}/${server.name}`),
    make("dl", { class: "facts" },
      fact("State", state),
      fact("For", span(server.since_change_s)),
      [make("dt", { class: "soft" }, "Last check"), last],
      server.check ? fact("Health", `${server.check.health} (up from ${server.check.rise}, of ${server.check.rise + server.check.fall - 1})`) : [],
      server.agent_status ? fact("Agent", `${server.agent_status} ${server.agent_found ?? ""}`) : [],
      fact("Failed checks", number(server.check?.failures ?? 0)),
      fact("Address", make("code", {}, server.address ?? "–")),
      [make("dt", { class: "soft" }, "Weight"), weights]),
    actions,
    make("form", { method: "dialog" }, make("button", {}, "Close")));
  document.body.append(dialog);
  dialog.showModal();
}
