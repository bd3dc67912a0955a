// The form `explain` of the page Configuration: what the configuration does with a request.

import { get } from "./api.js";
import { announce, make, text } from "./dom.js";

const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

function step(one, show) {
  const place = one.file ? `${one.file}:${one.line}` : "";
  return make("tr", { class: one.matches ? "" : "unmatched" },
    make("td", {}, make("span", { class: `tag ${one.matches ? "good" : ""}` }, one.matches ? "matches" : "no")),
    make("td", { class: "rule" }, make("code", {}, one.text ?? one.keyword),
      make("span", { class: "sub" }, one.result, one.unknown.length ? `; unknown here: ${one.unknown.join(", ")}` : "",
        one.file ? [" · ", make("button", { type: "button", class: "link mono", onclick: () => show(one.file, one.line) }, place)] : "")));
}

function outcome(place, explained, show) {
  let part = null;
  const rows = explained.steps.flatMap((one) => {
    const title = one.message === "response" ? `${one.proxy}, response` : one.proxy;
    const head = title === part ? [] : [make("tr", { class: "group" }, make("th", { colspan: 2, scope: "rowgroup" }, title))];
    part = title;
    return [...head, step(one, show)];
  });
  const none = make("tr", {}, make("td", { colspan: 2, class: "soft" }, "No rule stands in its way."));
  const verdict = [explained.outcome, explained.response_outcome].filter(Boolean).join(" ");
  place.replaceChildren(
    make("p", { class: "pad verdict" }, verdict),
    make("div", { class: "scroll" }, make("table", {}, make("caption", { class: "hidden" }, "Rules, in their order"),
      make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "Condition"), make("th", { scope: "col" }, "Rule, and what it came to"))),
      make("tbody", {}, rows.length ? rows : none))),
    explained.servers.length ? make("p", { class: "pad" }, `Servers: ${explained.servers.map((server) => `${server.name} (${server.address}, weight ${server.weight})`).join(", ")}`) : "",
    explained.request.length === 0 ? "" : make("details", { class: "pad" }, make("summary", {}, "The request as it leaves the rules"), make("pre", {}, explained.request.join("\n"))),
    explained.response.length === 0 ? "" : make("details", { class: "pad" }, make("summary", {}, "The response that the client gets"), make("pre", {}, explained.response.join("\n"))),
    make("p", { class: "pad soft" }, `Frontend ${explained.frontend}: ${explained.frontend_why}. ${explained.limits}`));
  announce(verdict);
}

/** The form; `show(file, line)` highlights a line of the configuration. */
export function form(show) {
  const method = make("select", { name: "method" }, METHODS.map((name) => make("option", {}, name)));
  const url = make("input", { name: "url", type: "text", required: true, placeholder: "https://shop.example/cart", spellcheck: "false", autocapitalize: "off" });
  const fields = make("textarea", { name: "fields", rows: 2, placeholder: "cookie: a=b", spellcheck: "false" });
  const source = make("input", { name: "source", type: "text", placeholder: "unknown", spellcheck: "false" });
  const frontend = make("input", { name: "frontend", type: "text", placeholder: "by the port", spellcheck: "false" });
  const response = make("input", { name: "response", type: "text", placeholder: "none, or 404", spellcheck: "false" });
  const responseFields = make("textarea", { name: "response_fields", rows: 2, placeholder: "location: /login", spellcheck: "false" });
  const fault = make("p", { class: "fault", role: "alert" });
  const result = make("div", { id: "explained" });
  const element = make("form", { class: "form explain", onsubmit: async (event) => {
    event.preventDefault();
    text(fault, "");
    const lines = (area) => area.value.split("\n").map((line) => line.trim()).filter(Boolean);
    try {
      outcome(result, await get("/api/explain", {
        method: method.value, url: url.value.trim(), header: lines(fields), source: source.value.trim(), frontend: frontend.value.trim(),
        response: response.value.trim(), response_header: lines(responseFields),
      }), show);
    } catch (error) {
      result.replaceChildren();
      text(fault, error.message);
    }
  } },
    make("label", { class: "narrow-field" }, "Method", method), make("label", { class: "wide-field half-field" }, "URL", url),
    make("label", {}, "Client's address", source), make("label", {}, "Frontend", frontend),
    make("label", { class: "wide-field half-field" }, "Header fields, one a line", fields),
    make("label", {}, "Assumed response", response),
    make("label", { class: "wide-field" }, "Its header fields, one a line", responseFields),
    make("div", { class: "row" }, make("button", { class: "main" }, "Explain")), fault);
  return make("section", { class: "card" }, make("div", { class: "title" }, make("h2", {}, "Explain a request"), make("span", { class: "soft" }, "Which rules match, and where it goes; with an assumed response, also the way back. Nothing is sent.")), element, result);
}
