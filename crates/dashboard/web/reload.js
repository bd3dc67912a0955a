// The form `reload` of the page Configuration: what a reload in place would do, and the reload.

import { mayAct, post } from "./api.js";
import { announce, make, text } from "./dom.js";

const ask = (apply) => post("/api/reload", JSON.stringify({ apply }), "application/json");

/** The form; `changed` is called after a reload, when other files are in use. */
export function form(changed) {
  const title = make("div", { class: "title" }, make("h2", {}, "Reload in place"), make("span", { class: "soft" }, "The files are read again. No connection is closed."));
  if (!mayAct()) {
    return make("section", { class: "card" }, title, make("p", { class: "pad soft" }, "This dashboard only reads: a reload needs the word ", make("code", {}, "admin"), " in the section ", make("code", {}, "dashboard"), "."));
  }
  const verdict = make("p", { class: "pad verdict", role: "status" });
  const effects = make("pre", { class: "pad scroll", tabindex: "0", "aria-label": "Effects of a reload" });
  const result = make("div", { id: "reload-result", hidden: true }, verdict, effects);
  const run = async (apply) => {
    for (const button of [preview, reload]) button.disabled = true;
    text(verdict, "…");
    result.hidden = false;
    let isPossible = false;
    try {
      const answer = await ask(apply);
      isPossible = !apply && !answer.refused;
      const said = answer.refused ? "The files cannot be applied in place." : apply ? "The files are in use." : "The effects of a reload:";
      text(verdict, said);
      text(effects, answer.text.trim());
      announce(said);
      if (apply && !answer.refused) await changed();
    } catch (error) {
      text(verdict, error.message);
      text(effects, "");
    }
    preview.disabled = false;
    // Only what was looked at is applied; the answer shows the effects of the files as they are then.
    reload.disabled = !isPossible;
  };
  const preview = make("button", { type: "button", class: "main", onclick: () => run(false) }, "Show the effects");
  const reload = make("button", { type: "button", disabled: true, title: "Show the effects first", onclick: () => run(true) }, "Reload");
  return make("section", { class: "card reload" }, title, make("div", { class: "pad row" }, preview, reload), result);
}
