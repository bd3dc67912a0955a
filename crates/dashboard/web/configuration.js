// The page Configuration: the files of the running configuration, and the messages about them.

import { get, setRights } from "./api.js";
import { byId, make, text } from "./dom.js";
import * as explain from "./explain.js";
import * as reload from "./reload.js";

const SECTIONS = /^(global|defaults|frontend|backend|listen|userlist|peers|mailers|resolvers|cache|ring|program|http-errors|log-forward|log-profile|crt-store|collector|dashboard|healthcheck|traces)\b/;

function kind(line) {
  if (/^\s*#/.test(line)) return "comment";
  return SECTIONS.test(line) ? "section" : null;
}

/** The element of a line of a file, for links to it. */
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

/** Highlights a line. */
function show(name, line) {
  const element = byId(lineId(name, line));
  if (!element) return;
  document.querySelector(".marked")?.classList.remove("marked");
  element.classList.add("marked");
  element.tabIndex = -1;
  element.focus({ preventScroll: true });
  element.scrollIntoView({ block: "center" });
}

/** The part of the page about the files. */
function content({ files, notices }) {
  const elsewhere = notices.filter((notice) => !notice.line);
  return [
    elsewhere.length ? make("section", { class: "card pad" }, make("h2", {}, "Messages without a line"), make("ul", {}, elsewhere.map((notice) => make("li", {}, `${notice.severity}: ${notice.message}`)))) : "",
    ...files.map((one, place) => file(one, place, notices))];
}

const summary = ({ files, notices }) =>
  `${files.length === 1 ? "One file" : `${files.length} files`}. ${notices.length === 0 ? "No messages when they were read" : `Messages when they were read: ${notices.length}, each below its line`}. Passwords, keys and values with the name of a secret are hidden.`;

/** Shows the page. */
export async function open(main, _again, signal, { query }) {
  const read = () => get("/api/config", {}, signal);
  // The page may be the first one, before the rights are known.
  const [config, now] = await Promise.all([read(), get("/api/now", {}, signal)]);
  setRights(now);
  const about = make("span", { class: "soft" }, summary(config));
  const files = make("div", {}, content(config));
  const renew = async () => {
    const renewed = await read();
    text(about, summary(renewed));
    files.replaceChildren(...content(renewed));
  };
  main.append(
    make("div", { class: "head" }, make("h1", {}, "Configuration"), about),
    explain.form(show), reload.form(renew), files);
  // After the frame has moved the focus to the page.
  if (query.get("file")) setTimeout(() => show(query.get("file"), query.get("line")));
  return { close() {} };
}
