"""A small WebDriver client: chromedriver speaks HTTP and JSON, so the standard library is enough.

W3C WebDriver, https://www.w3.org/TR/webdriver2/.
"""

import base64
import json
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

# Seconds that anything may take.
DEADLINE = 20
# The member that names an element (W3C WebDriver 12.2).
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
# Keys that are no characters (W3C WebDriver 17.4.2).
KEYS = {"Tab": "\ue004", "Enter": "\ue007", "Escape": "\ue00c", "Down": "\ue015"}

CHROMIUM_OPTIONS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
]


class Failed(Exception):
    """The driver refused a command, or a deadline passed."""


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def until(what, condition, seconds=DEADLINE):
    """Waits until `condition` gives something true, and gives that."""
    end = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > end:
            raise Failed(f"not within {seconds} s: {what}")
        time.sleep(0.05)


class Browser:
    """One headless Chromium behind one chromedriver."""

    def __init__(self, width=1280, height=900, dark=False, reduced=False):
        self.profile = tempfile.mkdtemp(prefix="spangate-browser-")
        port = free_port()
        self.driver = subprocess.Popen(
            ["chromedriver", f"--port={port}"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.base = f"http://127.0.0.1:{port}"
        self.session = None
        try:
            until("chromedriver answers", self.is_ready)
            options = [*CHROMIUM_OPTIONS, f"--user-data-dir={self.profile}"]
            if reduced:
                options.append("--force-prefers-reduced-motion")
            asked = {
                "capabilities": {
                    "alwaysMatch": {
                        "goog:chromeOptions": {"args": options},
                        "goog:loggingPrefs": {"browser": "ALL"},
                    }
                }
            }
            self.session = self.send("POST", "/session", asked)["sessionId"]
            self.size(width, height)
            self.scheme("dark" if dark else "light")
        except BaseException:
            self.close()
            raise

    def is_ready(self):
        try:
            return self.send("GET", "/status").get("ready")
        except OSError:
            return False

    def send(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self.base + path,
            data,
            {"content-type": "application/json"},
            method=method,
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise Failed(f"{path}: {error.read().decode()[:400]}") from None

    def command(self, method, path, body=None):
        return self.send(method, f"/session/{self.session}{path}", body)

    def devtools(self, name, **parameters):
        """A command of Chromium's own protocol."""
        body = {"cmd": name, "params": parameters}
        return self.command("POST", "/goog/cdp/execute", body)

    def size(self, width, height):
        """The size of the page itself, as a telephone's is."""
        self.devtools(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )

    def scheme(self, name):
        features = [{"name": "prefers-color-scheme", "value": name}]
        self.devtools("Emulation.setEmulatedMedia", features=features)

    def open(self, url):
        self.command("POST", "/url", {"url": url})

    def run(self, script, *arguments):
        """The value of a function's body in the page."""
        body = {"script": script, "args": list(arguments)}
        return self.command("POST", "/execute/sync", body)

    def find(self, selector):
        """The first element, or None."""
        body = {"using": "css selector", "value": selector}
        found = self.command("POST", "/elements", body)
        return found[0][ELEMENT] if found else None

    def wait(self, selector):
        return until(f"an element {selector}", lambda: self.find(selector))

    def click(self, selector):
        self.command("POST", f"/element/{self.wait(selector)}/click", {})

    def fill(self, selector, text):
        element = self.wait(selector)
        self.command("POST", f"/element/{element}/clear", {})
        self.command("POST", f"/element/{element}/value", {"text": text})

    def keys(self, *keys):
        """Presses keys, one after another."""
        actions = []
        for key in keys:
            value = KEYS.get(key, key)
            actions.append({"type": "keyDown", "value": value})
            actions.append({"type": "keyUp", "value": value})
        source = {"type": "key", "id": "keyboard", "actions": actions}
        self.command("POST", "/actions", {"actions": [source]})

    def text(self, selector="body"):
        script = "return document.querySelector(arguments[0])?.innerText ?? ''"
        return self.run(script, selector)

    def see(self, text, selector="body"):
        """Waits until an element has a text."""
        return until(f"'{text}' in {selector}", lambda: text in self.text(selector))

    def complaints(self):
        """What the page has written to its console as errors."""
        log = self.command("POST", "/se/log", {"type": "browser"})
        return [one["message"] for one in log if one["level"] == "SEVERE"]

    def screenshot(self, path):
        picture = base64.b64decode(self.command("GET", "/screenshot"))
        with open(path, "wb") as file:
            file.write(picture)

    def close(self):
        try:
            if self.session:
                self.command("DELETE", "")
        finally:
            self.driver.terminate()
            self.driver.wait()
            shutil.rmtree(self.profile, ignore_errors=True)
