// The frame of all pages: the current page, its refresh, the theme, the keys.

import { byId, make, text } from "./dom.js";
import { listen } from "./keys.js";
import * as configuration from "./configuration.js";
import * as now from "./now.js";
import * as sampling from "./sampling.js";
import * as traces from "./traces.js";

const PAGES = [
  { name: "now", title: "Now", open: now.open },
  { name: "traces", title: "Traces", open: traces.open },
  { name: "sampling", title: "Sampling", open: sampling.open },
  { name: "configuration", title: "Configuration", open: configuration.open },
];
const POLL_MS = 1000;
/** Time between two renewals of a page that has `renew`. */
const RENEW_MS = 4000;
const THEME = "spangate-theme";

let current = null;
let opening = null;

const links = new Map(PAGES.map((page) => [page.name, make("a", { href: `#/${page.name}` }, page.title)]));
byId("pages").append(...PAGES.map((page) => make("li", {}, links.get(page.name))));

/** The page and the parameters in the address. */
function address() {
  const [path, query] = location.hash.replace(/^#\//, "").split("?");
  const [name, ...rest] = path.split("/");
  return { name: name || "now", rest, query: new URLSearchParams(query ?? "") };
}

async function show(moved) {
  const { name, rest, query } = address();
  const page = PAGES.find((one) => one.name === name) ?? PAGES[0];
  opening?.abort();
  const mine = (opening = new AbortController());
  current?.close();
  current = null;
  clearTimeout(renewal);
  const main = byId("main");
  main.replaceChildren();
  for (const [key, link] of links) {
    if (key === page.name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${page.title} · Spangate`;
  try {
    const opened = await page.open(main, poll, mine.signal, { rest, query });
    if (mine.signal.aborted) opened?.close();
    else current = opened;
    scheduleRenewal();
  } catch (error) {
    if (!mine.signal.aborted) main.append(make("p", { class: "card pad", role: "alert" }, `This page cannot be shown: ${error.message}`));
  }
  if (moved) {
    scrollTo(0, 0);
    main.focus({ preventScroll: true });
  }
}

let renewal = null;

/** Schedules the next renewal of the open page. A page that is paused or hidden is not renewed. */
function scheduleRenewal() {
  clearTimeout(renewal);
  if (current?.renew && !paused && !document.hidden) renewal = setTimeout(renew, RENEW_MS);
}

async function renew() {
  const page = current;
  try {
    const showIt = await page?.renew?.();
    if (showIt && page === current && !paused && !document.hidden) showIt();
  } catch {
    // `poll` reports that the process does not answer.
  }
  if (page === current) scheduleRenewal();
}

let paused = false;
let timer = null;
let asking = null;
let lost = null;

function trouble(message) {
  const place = byId("trouble");
  place.hidden = !message;
  text(place, message ?? "");
}

/** Requests the newest state once, and schedules the next request. */
async function poll() {
  if (asking) return asking;
  clearTimeout(timer);
  asking = now.poll().then(() => {
    lost = null;
    trouble(null);
    text(byId("freshness"), paused ? `paused at ${now.newest()}` : `updated ${now.newest()}`);
  }, (error) => {
    lost ??= new Date();
    trouble(`No answer from the process since ${lost.toLocaleTimeString()}: ${error.message}. Trying again.`);
  }).finally(() => {
    asking = null;
    schedule();
  });
  return asking;
}

function schedule() {
  clearTimeout(timer);
  // A hidden page requests nothing.
  if (!paused && !document.hidden) timer = setTimeout(poll, POLL_MS);
}

function pause() {
  paused = !paused;
  const button = byId("pause");
  button.setAttribute("aria-pressed", String(paused));
  text(button, paused ? "Resume" : "Pause");
  text(byId("freshness"), paused ? `paused at ${now.newest()}` : "");
  clearTimeout(renewal);
  if (paused) {
    clearTimeout(timer);
    return;
  }
  poll();
  renew();
}

function theme(wanted) {
  const root = document.documentElement;
  if (wanted === "system") root.removeAttribute("data-theme");
  else root.dataset.theme = wanted;
  byId("theme").value = wanted;
  localStorage.setItem(THEME, wanted);
  current?.themeChanged?.();
}

function nextTheme() {
  const all = ["system", "light", "dark"];
  theme(all[(all.indexOf(byId("theme").value) + 1) % all.length]);
}

const known = localStorage.getItem(THEME);
theme(known === "light" || known === "dark" ? known : "system");
byId("theme").addEventListener("change", (event) => theme(event.target.value));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => current?.themeChanged?.());
byId("pause").addEventListener("click", pause);
document.addEventListener("visibilitychange", () => {
  clearTimeout(renewal);
  if (document.hidden) {
    clearTimeout(timer);
  } else if (!paused) {
    poll();
    renew();
  }
});
window.addEventListener("hashchange", () => show(true));
// The address `#content` is not a page.
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  byId("main").focus();
});
const go = (name) => () => { location.hash = `#/${name}`; };
listen([
  ...PAGES.map((page, place) => [String(place + 1), page.title, go(page.name)]),
  ["/", "The first field of the page", () => byId("main").querySelector("input, textarea")?.focus()],
  ["r", "Shows the page anew", () => show(false)],
  ["p", "Pauses and resumes", pause],
  ["t", "The next theme", nextTheme],
]);
show(false);
poll();
