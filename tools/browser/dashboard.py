"""The dashboard in a real browser: every page, click paths, keyboard, both themes, the width of a telephone.

Usage: dashboard.py SPANGATE SPANGATE_BENCH [FOLDER]. Starts the demo on free ports, and exits with 1 and says what is wrong if
anything is. FOLDER gets a screenshot of each page.
"""

import json
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
import urllib.error
import urllib.request

from webdriver import Browser, Failed, until

# Until traces are there: the demo's collector decides after 5 s.
TRACES_SECONDS = 40
# Contrast of text that is read (WCAG 2.2, 1.4.3).
CONTRAST_MIN = 4.5

PAGES = ["now", "traces", "sampling", "configuration"]


def free_ports(count):
    """The first of so many ports in a row that are free."""
    for _ in range(200):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            first = free.getsockname()[1]
        try:
            held = []
            for port in range(first, first + count):
                one = socket.socket()
                held.append(one)
                one.bind(("127.0.0.1", port))
            return first
        except OSError:
            continue
        finally:
            for one in held:
                one.close()
    raise Failed("no free ports")


class Demo:
    """The demo, with a load, until it is ended."""

    def __init__(self, program, bench):
        self.port = free_ports(4)
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [bench, "demo", "--subject", program, "--port", str(self.port)],
            stdout=self.log,
            stderr=subprocess.STDOUT,
        )
        self.url = f"http://127.0.0.1:{self.port + 2}/"

    def text(self):
        self.log.seek(0)
        return self.log.read().decode(errors="replace")

    def get(self, path):
        with urllib.request.urlopen(self.url + path, timeout=20) as answer:
            return json.load(answer)

    def await_traces(self):
        def there():
            if self.process.poll() is not None:
                raise Failed("the demo ended")
            try:
                found = self.get("api/traces?kept=1&min_ms=300&limit=1")
            except (OSError, urllib.error.HTTPError):
                return None
            return found["traces"]

        until("a slow trace is kept", there, TRACES_SECONDS)

    def end(self):
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise Failed("the demo does not end at Ctrl-C") from None


def check(what, holds):
    if not holds:
        raise Failed(what)


def page_now(browser, demo):
    browser.open(demo.url)
    browser.see("catalog")
    browser.see("checkout")
    check("the page is Now", browser.text("nav a[aria-current]") == "Now")
    rate = "return parseFloat(document.querySelector('.figures dd').innerText)"
    until("requests are counted", lambda: (browser.run(rate) or 0) > 0)
    browser.see("L7OK 200", "main > section:last-of-type")
    browser.wait("canvas")
    until("sparklines have points", lambda: browser.run(
        "return document.querySelector('.spark polyline').getAttribute('points').split(' ').length > 2"))
    until("percentiles are shown", lambda: browser.run(
        "return / ms| s/.test(document.querySelector('tr.group td:nth-child(12)').innerText)"))


def pause_stops_the_requests(browser, demo):
    browser.open(demo.url)
    browser.see("updated")
    browser.click("#pause")
    browser.see("paused at")
    count = "return performance.getEntriesByType('resource').filter((one) => one.name.includes('/api/now')).length"
    before = browser.run(count)
    browser.run("window.shown = document.querySelector('#freshness').innerText")
    until("a moment has passed", lambda: browser.run(
        "window.ticks = (window.ticks ?? 0) + 1; return window.ticks > 30"))
    check("nothing is asked for while paused", browser.run(count) - before <= 1)
    browser.click("#pause")
    browser.see("updated")


def a_server_is_drained(browser, demo):
    browser.open(demo.url)
    browser.click("tr.member button")
    browser.see("Last check", "dialog[open]")
    browser.click("dialog[open] button[title^='No new clients']")
    browser.see("Drain: done", "dialog[open]")
    browser.see("DRAIN", "dialog[open] .state")
    until("the server drains", lambda: "DRAIN" in browser.text("tr.member"))
    check("it is announced", "done" in browser.text("#live") or "DRAIN" in browser.text("#live"))
    browser.fill("dialog[open] input", "50%")
    browser.keys("Enter")
    browser.see("Weight: done", "dialog[open]")
    browser.fill("dialog[open] input", "100%")
    browser.keys("Enter")
    browser.click("dialog[open] button[title^='New requests']")
    browser.see("Ready: done", "dialog[open]")
    browser.keys("Escape")
    until("the dialog closes", lambda: not browser.find("dialog[open]:not(#keys)"))
    until("the server is up again", lambda: "UP" in browser.text("tr.member"))


def from_the_heat_map_to_a_span(browser, demo):
    browser.open(demo.url + "#/traces?min_ms=300&kept=1")
    browser.see("Held in memory")
    browser.wait("tbody a")
    # The cell that holds most, where it is drawn.
    place = browser.run("""
        const canvas = document.querySelector('.heat canvas');
        const box = canvas.getBoundingClientRect();
        const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
        for (let y = 4; y < canvas.height - 24; y += 2) {
          for (let x = canvas.width - 4; x > 70; x -= 2) {
            const at = 4 * (y * canvas.width + x);
            if (pixels.data[at + 3] > 40 && Math.abs(pixels.data[at] - pixels.data[at + 2]) > 20) return [box.left + x, box.top + y];
          }
        }
        return null;""")
    check("the heat map has a cell", place)
    x, y = (int(value) for value in place)
    moves = [
        {"type": "pointerMove", "x": x, "y": y},
        {"type": "pointerDown", "button": 0},
        {"type": "pointerUp", "button": 0},
    ]
    source = {"type": "pointer", "id": "mouse", "actions": moves}
    browser.command("POST", "/actions", {"actions": [source]})
    browser.see("All times and durations")
    check("the address has the cell", "since=" in browser.run("return location.hash"))
    browser.click("tbody a")
    browser.see("Decision")
    browser.click(".span-row button")
    browser.see("What the proxy decided")
    browser.see("proxy.backend", ".details")
    check("spans of two services", len(set(browser.run(
        "return [...document.querySelectorAll('.span-name .sub')].map((one) => one.innerText)"))) > 1)
    bars = browser.run("return [...document.querySelectorAll('.bar')].map((one) => one.getBoundingClientRect().width)")
    check("bars have a width", bars and all(width >= 1 for width in bars))
    rule = browser.run("return [...document.querySelectorAll('.details a')].find((one) => /cfg:/.test(one.innerText))?.innerText ?? ''")
    check("the rule is a link", re.search(r"demo\.cfg:\d+", rule))
    browser.run("[...document.querySelectorAll('.details a')].find((one) => /cfg:/.test(one.innerText)).click()")
    browser.see("Explain a request")
    until("the line is marked", lambda: "backend" in browser.text(".marked"))


def a_search(browser, demo):
    browser.open(demo.url + "#/traces")
    browser.fill("input[name=route]", "/checkout*")
    browser.keys("Enter")
    until("the address has the search", lambda: "route=" in browser.run("return location.hash"))
    until("only such traces are listed", lambda: browser.run("""
        const names = [...document.querySelectorAll('tbody tr td:nth-child(4)')].map((one) => one.innerText);
        return names.length > 0 && names.every((name) => name.includes('checkout'));"""))
    browser.fill("input[name=status]", "nonsense")
    browser.keys("Enter")
    browser.see("must be a status")


# The answers to requests of the page, by the start of their path.
ANSWERS = """
return performance.getEntriesByType('resource').filter((one) => new URL(one.name).pathname === arguments[0]).length"""
PLACE = "return document.activeElement.getBoundingClientRect().top"
# A scroll position is a whole pixel.
PLACE_ERROR_MAX = 2


def answers(browser, path):
    return browser.run(ANSWERS, path)


def is_near(one, other):
    return abs(one - other) <= PLACE_ERROR_MAX


def await_answers(browser, path, count):
    wanted = answers(browser, path) + count
    until(f"{count} answers of {path}", lambda: answers(browser, path) >= wanted)


def open_fresh(browser, url):
    """Opens a page with no state of an earlier one."""
    browser.open("about:blank")
    browser.open(url)
    browser.wait("main h1")
    browser.run("performance.setResourceTimingBufferSize(100000)")


def the_list_of_traces_renews(browser, demo):
    open_fresh(browser, demo.url + "#/traces")
    browser.wait("tbody a")
    first = "return document.querySelector('tbody a')?.hash"
    before = browser.run(first)
    until("newer traces come", lambda: browser.run(first) != before)
    # Nothing is announced, and the reader stays at the same row with the same text selected.
    browser.run("""
        window.announced = 0;
        new MutationObserver(() => { window.announced += 1; })
            .observe(document.querySelector('#live'), { childList: true, characterData: true, subtree: true });
        const rows = document.querySelectorAll('tbody tr');
        rows[40].querySelector('a').focus();
        rows[40].scrollIntoView({ block: 'center', behavior: 'instant' });
        getSelection().selectAllChildren(rows[42].querySelector('td:nth-child(4)'));""")
    focused = "return document.activeElement.hash"
    selected = "return String(getSelection()) + getSelection().anchorNode.parentElement.closest('tr').querySelector('a').hash"
    was = [browser.run(script) for script in (focused, selected, PLACE, first)]
    await_answers(browser, "/api/heatmap", 3)
    until("the list is renewed around it", lambda: browser.run(first) != was[3])
    now = [browser.run(script) for script in (focused, selected, PLACE)]
    check(f"focus and selection stay: {was} and {now}", now[:2] == was[:2])
    check(f"the place stays: {was} and {now}", is_near(now[2], was[2]))
    check("nothing is announced", browser.run("return window.announced") == 0)
    check("the list does not grow", browser.run("return document.querySelectorAll('tbody tr').length") <= 200)
    # A list that is scrolled without a focus stays too.
    browser.run("""
        getSelection().removeAllRanges();
        document.activeElement.blur();
        window.row = document.querySelectorAll('tbody tr')[60];
        window.row.scrollIntoView({ block: 'start', behavior: 'instant' });""")
    row = "return [window.row.isConnected, window.row.getBoundingClientRect().top]"
    was = browser.run(row)
    await_answers(browser, "/api/heatmap", 2)
    now = browser.run(row)
    check(f"the rows in view stay: {was} and {now}", now[0] and is_near(now[1], was[1]))


def the_chosen_cell_stays(browser, demo):
    open_fresh(browser, demo.url + "#/traces")
    browser.see("Held in memory")
    browser.run("document.querySelector('.heat canvas').focus()")
    browser.keys("\ue012")
    browser.see(" to ", ".heat-about")
    await_answers(browser, "/api/heatmap", 2)
    check("the heat map has the focus", browser.run("return document.activeElement.tagName") == "CANVAS")
    check("a cell is chosen", " to " in browser.text(".heat-about"))


def traces_do_not_renew_while_paused_or_searched(browser, demo):
    open_fresh(browser, demo.url + "#/traces")
    browser.see("Held in memory")
    browser.run("document.querySelector('input[name=service]').focus()")
    # A renewal that was under way ends.
    await_answers(browser, "/api/now", 2)
    before = answers(browser, "/api/traces")
    await_answers(browser, "/api/now", 9)
    check("no renewal while a field has the focus", answers(browser, "/api/traces") == before)
    browser.run("document.activeElement.blur()")
    await_answers(browser, "/api/traces", 1)
    browser.click("#pause")
    browser.see("paused at")
    before = answers(browser, "/api/traces")
    browser.run("window.start = performance.now()")
    until("two periods have passed", lambda: browser.run("return performance.now() - window.start > 9000"))
    check("no renewal while paused", answers(browser, "/api/traces") - before <= 1)
    browser.click("#pause")
    await_answers(browser, "/api/traces", 1)


def a_dry_run(browser, demo):
    browser.open(demo.url + "#/sampling")
    browser.see("Collector demo")
    browser.see("errors", "table")
    until("spans are accepted", lambda: browser.text(".figures dd") not in ("–", "0"))
    browser.click("form.pad button.main")
    browser.see("It would keep", "#dry-run-result")
    browser.fill("#policies", "- { name: all, type: always_sample }")
    browser.click("form.pad button.main")
    browser.see("(100 %)", "#dry-run-result")
    browser.fill("#policies", "- { name: x, type: latncy }")
    browser.click("form.pad button.main")
    browser.see("Line 1", "#policies-fault")
    check("the field is marked", browser.run("return document.querySelector('#policies').getAttribute('aria-invalid')") == "true")


def an_explanation(browser, demo):
    browser.open(demo.url + "#/configuration")
    browser.see("demo.cfg")
    browser.fill("input[name=url]", f"http://127.0.0.1:{demo.port}/cart")
    browser.keys("Enter")
    browser.see("It goes to backend 'checkout'", "#explained")
    browser.see("use_backend checkout if", "#explained")
    browser.click("#explained tr:not(.unmatched) button")
    until("the line is marked", lambda: "use_backend checkout" in browser.text(".marked"))
    browser.fill("input[name=response]", "500")
    browser.fill("textarea[name=response_fields]", "x: y")
    browser.click(".explain button.main")
    browser.see("The client gets the server's response, with status 500.", "#explained .verdict")
    check("the response has its field", "x: y" in browser.run(
        "return [...document.querySelectorAll('#explained pre')].at(-1).textContent"))
    browser.fill("input[name=url]", "nonsense")
    browser.keys("Enter")
    browser.see("is not an http or https URL", ".explain .fault")


def a_reload(browser, demo):
    open_fresh(browser, demo.url + "#/configuration")
    browser.see("demo.cfg")
    check("a reload needs a look at its effects", browser.run(
        "return document.querySelectorAll('.reload button')[1].disabled"))
    browser.click(".reload button.main")
    browser.see("The effects of a reload:", "#reload-result")
    browser.see("No differences.", "#reload-result pre")
    browser.click(".reload button:not(.main)")
    browser.see("The files are in use.", "#reload-result")
    browser.see("is in use", "#reload-result pre")
    browser.see("demo.cfg", ".title code")


def the_keyboard_alone(browser, demo):
    browser.open(demo.url)
    browser.see("catalog")
    for number, page in enumerate(PAGES, 1):
        browser.keys(str(number))
        until(f"page {page}", lambda page=page: browser.run("return location.hash") == f"#/{page}")
    browser.keys("?")
    browser.see("Keyboard", "#keys")
    browser.keys("Escape")
    until("the list closes", lambda: not browser.find("#keys[open]"))
    browser.keys("2")
    browser.wait("input[name=service]")
    browser.see("Held in memory")
    browser.keys("/")
    check("a field is focused", browser.run("return document.activeElement.name") == "service")
    # Keys that are typed are no shortcuts.
    browser.keys("1")
    check("typing stays typing", browser.run("return location.hash") == "#/traces")
    browser.open(demo.url + "#/traces?kept=1")
    browser.see("Held in memory")
    browser.wait("tbody a")
    browser.run("document.querySelector('.heat canvas').focus()")
    browser.keys("\ue012", "\ue014", "Enter")
    browser.see("All times and durations")
    order = []
    # A page that is loaded anew begins with nothing focused.
    browser.open("about:blank")
    browser.open(demo.url)
    browser.see("catalog")
    for _ in range(12):
        browser.keys("Tab")
        order.append(browser.run("return document.activeElement.id || document.activeElement.innerText"))
        outline = browser.run("return getComputedStyle(document.activeElement).outlineStyle")
        check(f"{order[-1]} shows that it is focused", outline != "none")
    wanted = ["Skip to the content", "Spangate", "Now", "Traces", "Sampling", "Configuration", "pause", "theme", "help"]
    found = [one.strip() for one in order]
    check(f"the order of focus: {found}", found[: len(wanted)] == wanted)
    check("servers come after", "a" in found)


def a_waterfall_by_keys(browser, demo):
    browser.open(demo.url + "#/traces?kept=1&min_ms=300")
    browser.click("tbody a")
    browser.wait(".span-row button")
    browser.run("document.querySelector('.span-row button').focus()")
    browser.keys("\ue015")
    second = "return [...document.querySelectorAll('.span-row button')].indexOf(document.activeElement)"
    check("down goes to the next span", browser.run(second) == 1)
    browser.keys("\ue014")
    check("right opens it", browser.run("return document.activeElement.getAttribute('aria-expanded')") == "true")
    browser.keys("\ue012")
    check("left closes it", browser.run("return document.activeElement.getAttribute('aria-expanded')") == "false")


def themes(browser, demo):
    back = "return getComputedStyle(document.body).backgroundColor"
    browser.open(demo.url)
    browser.see("catalog")
    browser.scheme("dark")
    dark = browser.run(back)
    browser.scheme("light")
    light = browser.run(back)
    check("the themes differ", dark != light)
    browser.run("const s = document.querySelector('#theme'); s.value = 'dark'; s.dispatchEvent(new Event('change'))")
    check("the choice counts", browser.run(back) == dark)
    browser.open(demo.url)
    browser.see("catalog")
    check("it is remembered", browser.run(back) == dark)
    browser.run("localStorage.clear()")
    # An open page keeps its theme.
    browser.open("about:blank")


CONTRAST = """
const numbers = (colour) => colour.match(/[\\d.]+/g).map(Number);
const light = ([r, g, b]) => [r, g, b].map((value) => {
  const part = value / 255;
  return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
}).reduce((sum, value, place) => sum + value * [0.2126, 0.7152, 0.0722][place], 0);
const behind = (element) => {
  for (let one = element; one; one = one.parentElement) {
    const back = numbers(getComputedStyle(one).backgroundColor);
    if (back.length < 4 || back[3] > 0.99) return back;
  }
  return [255, 255, 255];
};
const low = [];
for (const element of document.querySelectorAll('body *')) {
  const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
  const box = element.getBoundingClientRect();
  if (!own || box.width < 2 || box.height < 2 || element.closest('.hidden, svg, option, dialog:not([open])')) continue;
  const [one, other] = [light(numbers(getComputedStyle(element).color)), light(behind(element))].sort((a, b) => b - a);
  const contrast = (one + 0.05) / (other + 0.05);
  if (contrast < arguments[0]) low.push(`${element.tagName} .${element.className} '${element.innerText.slice(0, 20)}' ${contrast.toFixed(2)}`);
}
return [...new Set(low)].slice(0, 8);
"""

NAMES = """
const unnamed = [];
for (const element of document.querySelectorAll('button, a[href], input, select, textarea, canvas, [role=img]')) {
  const name = element.getAttribute('aria-label') || element.innerText?.trim() || element.labels?.[0]?.innerText.trim() || element.title;
  if (!name && !element.closest('[hidden]') && !element.parentElement.closest('[role=img]')) unnamed.push(element.outerHTML.slice(0, 80));
}
for (const table of document.querySelectorAll('table')) {
  if (table.closest('.u-legend') || table.classList.contains('u-legend')) continue;
  if (!table.caption && !table.getAttribute('aria-label')) unnamed.push('a table without a name');
}
for (const name of ['header', 'nav[aria-label]', 'main', 'h1']) if (document.querySelectorAll(name).length !== 1) unnamed.push(`not one ${name}`);
return unnamed;
"""


def every_page_in_every_form(browser, demo, folder):
    trace = demo.get("api/traces?kept=1&min_ms=300&limit=1")["traces"][0]["id"]
    for width, height in [(1400, 900), (360, 740)]:
        browser.size(width, height)
        for scheme in ["light", "dark"]:
            browser.scheme(scheme)
            for page in [*PAGES, f"traces/{trace}"]:
                name = "trace" if "/" in page else page
                form = f"{name}, {scheme}, {width} pixels"
                browser.open(f"{demo.url}#/{page}")
                browser.wait("main h1")
                browser.wait("main .card")
                dark = browser.run("return getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0] < 128")
                check(f"{form}: it has this theme", dark == (scheme == "dark"))
                until(f"{form}: it is drawn", lambda: len(browser.text("main")) > 80)
                if page == "now":
                    browser.wait("canvas")
                if page == "traces":
                    browser.see("Held in memory")
                wide = browser.run("return document.documentElement.scrollWidth")
                check(f"{form}: it is {wide} pixels wide", wide <= width)
                low = browser.run(CONTRAST, CONTRAST_MIN)
                check(f"{form}: contrast of {low}", not low)
                unnamed = browser.run(NAMES)
                check(f"{form}: without a name: {unnamed}", not unnamed)
                if folder:
                    browser.screenshot(folder / f"{name}-{scheme}-{width}.png")
    browser.size(1280, 900)
    browser.scheme("light")


TESTS = [
    page_now,
    pause_stops_the_requests,
    a_server_is_drained,
    from_the_heat_map_to_a_span,
    a_search,
    the_list_of_traces_renews,
    the_chosen_cell_stays,
    traces_do_not_renew_while_paused_or_searched,
    a_dry_run,
    an_explanation,
    a_reload,
    the_keyboard_alone,
    a_waterfall_by_keys,
    themes,
]


def main(program, bench, folder=None):
    folder = pathlib.Path(folder) if folder else None
    if folder:
        folder.mkdir(parents=True, exist_ok=True)
    failed = 0
    demo = Demo(program, bench)
    browser = None
    try:
        demo.await_traces()
        browser = Browser()
        for test in [*TESTS, every_page_in_every_form]:
            more = [folder] if test is every_page_in_every_form else []
            try:
                test(browser, demo, *more)
                complaints = [one for one in browser.complaints() if "status of 400" not in one]
                check(f"the console says {complaints}", not complaints)
                print(f"browser: {test.__name__} ... ok", flush=True)
            except Failed as error:
                failed += 1
                print(f"browser: {test.__name__} ... FAILED: {error}", flush=True)
    except Failed:
        failed += 1
        traceback.print_exc()
        print(demo.text()[-3000:])
    finally:
        if browser:
            browser.close()
        demo.end()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
