"""Prometheus' client library reads what `use-service prometheus-exporter` writes.

Usage: prometheus.py PROGRAM. Exits with 1 and says what is wrong if anything is.
"""

import pathlib
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as openmetrics,
)
from prometheus_client.parser import text_string_to_metric_families as text

# Seconds that anything may take.
DEADLINE = 30

CONFIG = """
defaults
    mode http
    timeout client 5s
    timeout server 5s
    timeout connect 5s
frontend fe
    bind 127.0.0.1:%d
    option socket-stats
    option latency-histograms
    option tracing endpoint http://127.0.0.1:9
    http-request use-service prometheus-exporter if { path /metrics }
    http-request return status 200
    default_backend be
backend be
    server odd.name:1 127.0.0.1:9 maxconn 7
    server s2 127.0.0.1:9 disabled
"""

# Family, labels, value.
WANTED = [
    ("haproxy_frontend_http_requests", {"proxy": "fe"}, None),
    ("haproxy_frontend_status", {"proxy": "fe", "state": "UP"}, 1),
    ("haproxy_listener_connections", {"proxy": "fe", "listener": "sock-1"}, None),
    ("haproxy_backend_status", {"proxy": "be", "state": "UP"}, 1),
    ("haproxy_server_limit_sessions", {"proxy": "be", "server": "odd.name:1"}, 7),
    ("haproxy_server_status", {"proxy": "be", "server": "s2", "state": "MAINT"}, 1),
]


def main(program):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "proxy.cfg"
        file.write_text(CONFIG % port)
        proxy = subprocess.Popen([program, "-f", str(file)])
        try:
            url = f"http://127.0.0.1:{port}/metrics"
            families = read(url, "text/plain", text)
            opened = read(url, "application/openmetrics-text", openmetrics)
        finally:
            proxy.terminate()
            proxy.wait(DEADLINE)
    faults = [*check(families), *check(opened), *check_exemplars(opened)]
    for fault in faults:
        print(f"interop: {fault}", file=sys.stderr)
    print(
        f"interop: Prometheus' client library reads {len(families)} metrics, and {len(opened)} of OpenMetrics"
    )
    return bool(faults)


def read(url, accept, parse):
    request = urllib.request.Request(url, headers={"Accept": accept})
    until = time.monotonic() + DEADLINE
    while True:
        try:
            with urllib.request.urlopen(request, timeout=DEADLINE) as answer:
                if accept not in answer.headers["Content-Type"]:
                    raise ValueError(answer.headers["Content-Type"])
                return list(parse(answer.read().decode()))
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)


def check(families):
    names = [family.name for family in families]
    for name in {name for name in names if names.count(name) > 1}:
        yield f"{name} stands in several places"
    by_name = {family.name: family for family in families}
    for name, labels, value in WANTED:
        samples = by_name[name].samples if name in by_name else []
        found = [sample.value for sample in samples if sample.labels == labels]
        if len(found) != 1 or value not in (None, found[0]):
            yield f"{name}{labels} is {found}, not {value}"


def check_exemplars(families):
    """The request before this one was traced, and stands for its bucket."""
    name = "haproxy_frontend_total_time_seconds"
    for family in families:
        if family.name == name and family.type == "histogram":
            kept = [sample.exemplar for sample in family.samples if sample.exemplar]
            if not any(len(one.labels["trace_id"]) == 32 for one in kept):
                yield f"{name} has no exemplar: {family.samples}"
            return
    yield f"no histogram {name}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
