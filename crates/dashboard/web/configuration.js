// The page Configuration: the files that run, and what was said of them.

import { get } from "./api.js";
import { make } from "./dom.js";

const SECTIONS = /^(global|defaults|frontend|backend|listen|userlist|peers|mailers|resolvers|cache|ring|program|http-errors|log-forward|log-profile|crt-store|collector|dashboard|healthcheck|traces)\b/;

function kind(line) {
  if (/^\s*#/.test(line)) return "comment";
  return SECTIONS.test(line) ? "section" : null;
}

/** The element of a file's line, so that others can point at it. */
export const lineId = (file, line) => `line-${file}-${line}`;

function file(one, place, notices) {
  const lines = one.lines.map((line, index) => {
    const said = notices.filter((notice) => notice.file === one.name && notice.line === index + 1);
    const id = lineId(one.name, index + 1);
    return [
      make("div", { id, class: kind(line) }, make("span", { class: "no", "aria-hidden": "true" }, index + 1), make("code", {}, line || " ")),
      said.map((notice) => make("div", { class: "said" }, make("span", { class: "note" }, `${notice.severity}: ${notice.message}`))),
    ];
  });
  return make("section", { class: "card", "aria-labelledby": `file-${place}` },
    make("div", { class: "title" }, make("h2", { id: `file-${place}` }, make("code", {}, one.name)), make("span", { class: "soft" }, `${one.lines.length} lines${one.cut ? ", more are not shown" : ""}`)),
    make("div", { class: "code", tabindex: "0", role: "group", "aria-labelledby": `file-${place}` }, lines.flat(2)));
}

/** Shows the page. */
export async function open(main, _again, signal) {
  const { files, notices } = await get("/api/config", {}, signal);
  const elsewhere = notices.filter((notice) => !notice.line);
  main.append(
    make("div", { class: "head" }, make("h1", {}, "Configuration"), make("span", { class: "soft" },
      `${files.length === 1 ? "One file" : `${files.length} files`}. ${notices.length === 0 ? "No messages at the start" : `Messages at the start: ${notices.length}, each below its line`}. Passwords are hidden.`)),
    elsewhere.length ? make("section", { class: "card pad" }, make("h2", {}, "Messages without a line"), make("ul", {}, elsewhere.map((notice) => make("li", {}, `${notice.severity}: ${notice.message}`)))) : "",
    ...files.map((one, place) => file(one, place, notices)));
  return { close() {} };
}
