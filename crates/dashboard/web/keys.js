// Single-key shortcuts, which can be disabled (WCAG 2.1.4).

import { byId, make } from "./dom.js";

const SETTING = "spangate-keys";

/** Listens for keys: [[key, meaning, run], …]. */
export function listen(shortcuts) {
  const dialog = byId("keys");
  const switcher = byId("keys-on");
  switcher.checked = localStorage.getItem(SETTING) !== "off";
  switcher.addEventListener("change", () => localStorage.setItem(SETTING, switcher.checked ? "on" : "off"));
  const open = () => dialog.open || dialog.showModal();
  byId("help").addEventListener("click", open);
  const all = [...shortcuts, ["?", "This list", open]];
  byId("key-list").append(...all.flatMap(([key, meaning]) => [make("dt", {}, make("kbd", {}, key)), make("dd", {}, meaning)]),
    make("dt", {}, make("kbd", {}, "Tab")), make("dd", {}, "The next link, button or field"),
    make("dt", {}, make("kbd", {}, "Esc")), make("dd", {}, "Closes a dialog"));
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest("input, select, textarea");
    if (!switcher.checked || typing || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    const found = all.find(([key]) => key === event.key);
    if (!found) return;
    event.preventDefault();
    found[2]();
  });
}
