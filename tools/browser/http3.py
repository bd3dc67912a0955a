"""HTTP/3 in a real browser: the shop and the dashboard in Chromium with the origin forced to QUIC.

Usage: http3.py SPANGATE SPANGATE_BENCH. Starts the demo on free ports, and exits with 1 and says what is wrong if anything is.
"""

import pathlib
import re
import subprocess
import sys
import tempfile
import traceback

from dashboard import Demo, check
from webdriver import CHROMIUM_OPTIONS, Browser, until

# A second program with the dashboard behind HTTP/3 alone: nothing of it can come over TCP.
CONFIG = """
defaults
    mode http
    timeout connect 5s
    timeout client 30s
    timeout server 30s

frontend quic
    bind quic4@127.0.0.1:{port} ssl crt {certificate} alpn h3
    default_backend dashboard

backend dashboard
    server demo 127.0.0.1:{dashboard}
"""

# By which HTTP version the page itself and all that it has loaded came.
VERSIONS = """
const of = (kind) => performance.getEntriesByType(kind).map((one) => one.nextHopProtocol);
return [...of('navigation'), ...of('resource')]
"""


def browser(pin, *options):
    # `localhost` may be ::1 first, where nobody listens. Nothing else has an address: the browser's own requests stay here.
    CHROMIUM_OPTIONS[:] = [
        *(one for one in CHROMIUM_OPTIONS if one != "--disable-quic"),
        "--host-resolver-rules=MAP localhost 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
        f"--ignore-certificate-errors-spki-list={pin}",
        *options,
    ]
    return Browser()


def forced(port):
    return f"--origin-to-force-quic-on=localhost:{port}"


def pin_of(demo):
    found = until("the demo prints the pin", lambda: re.search(r"spki-list=(\S+)", demo.text()))
    return found[1]


def the_shop_comes_over_http3(page, url):
    page.open(url + "products/42")
    page.see("42")
    check("the page came over HTTP/3", page.run(VERSIONS)[0] == "h3")
    offer = "return fetch('/').then((answer) => answer.headers.get('alt-svc'))"
    check("HTTP/3 is offered", re.match(r'h3=":\d+"', page.run(offer)))
    status = "return fetch('/?status=503').then((answer) => answer.status)"
    check("an error of the shop arrives", page.run(status) == 503)


def the_dashboard_comes_over_http3(page, url):
    page.open(url)
    page.see("catalog")
    page.see("updated")
    versions = page.run(VERSIONS)
    check(f"all of it came over HTTP/3: {versions}", set(versions) == {"h3"} and len(versions) > 10)
    page.open(url + "#/configuration")
    page.see("backend catalog", "main")


def main(program, bench):
    demo = Demo(program, bench)
    open_pages = []
    try:
        pin = pin_of(demo)
        port = demo.port + 1
        shop = f"https://localhost:{port}/"
        page = browser(pin, forced(port))
        open_pages.append(page)
        the_shop_comes_over_http3(page, shop)
        print("ok: the shop over HTTP/3")
        with tempfile.TemporaryDirectory(prefix="spangate-http3-") as folder:
            certificate = re.search(r"--cacert (\S+)/ca.pem", demo.text())[1] + "/server.pem"
            text = CONFIG.format(port=port + 2, certificate=certificate, dashboard=demo.port + 2)
            config = pathlib.Path(folder, "dashboard.cfg")
            config.write_text(text)
            front = subprocess.Popen([program, "-db", "-f", config], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                page = browser(pin, forced(port + 2))
                open_pages.append(page)
                the_dashboard_comes_over_http3(page, f"https://localhost:{port + 2}/")
                print("ok: the dashboard over HTTP/3")
            finally:
                front.terminate()
                front.wait()
    except BaseException:
        traceback.print_exc()
        print(demo.text()[-3000:], file=sys.stderr)
        return 1
    finally:
        for page in open_pages:
            page.close()
        demo.end()
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
