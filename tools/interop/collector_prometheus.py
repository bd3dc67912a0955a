"""Prometheus' client library reads what the collector's exporter `prometheus` writes.

Metrics of OpenTelemetry's SDK for Python go in over OTLP. Usage: collector_prometheus.py PROGRAM. Exits with 1 and says
what is wrong if anything is.
"""

import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as openmetrics,
)
from prometheus_client.parser import text_string_to_metric_families as text

# Seconds that anything may take.
DEADLINE = 30

CONFIG = """
receivers: { otlp: { protocols: { http: { endpoint: '127.0.0.1:0' } } } }
exporters: { prometheus: { endpoint: '127.0.0.1:0', enable_open_metrics: true, send_timestamps: %s } }
service:
  telemetry: { metrics: { level: none } }
  pipelines:
    metrics: { receivers: [otlp], exporters: [prometheus] }
"""

VALUE = 'a "b"\\\nc'
# Samples by their names in OpenMetrics, with a label that they have and their values.
WANTED = [
    ("http_requests_total", ("url_path", VALUE), 7),
    ("queue_length", ("url_path", VALUE), -3),
    ("cpu_use_ratio", ("url_path", VALUE), 0.5),
    ("call_time_seconds_bucket", ("le", "+Inf"), 2),
    ("call_time_seconds_count", ("url_path", VALUE), 2),
    ("call_time_seconds_sum", ("url_path", VALUE), 1.25),
    ("target_info", ("deployment_environment", "test"), 1),
]
TYPES = {
    "http_requests": "counter",
    "queue_length": "gauge",
    "cpu_use_ratio": "gauge",
    "call_time_seconds": "histogram",
    "target_info": "gauge",
}


def addresses(process):
    """Where the receiver and the page listen."""
    found = {}
    for line in process.stderr:
        listens = re.search(r"(otlp http|prometheus) listens on (\S+)", line)
        if listens:
            found[listens[1]] = listens[2]
        if "running" in line:
            break
    # What else it says is not waited for.
    threading.Thread(target=process.stderr.read, daemon=True).start()
    return found


def send(address):
    exporter = OTLPMetricExporter(endpoint=f"http://{address}/v1/metrics")
    reader = PeriodicExportingMetricReader(exporter, export_interval_millis=3_600_000)
    resource = Resource.create(
        {"service.name": "interop", "service.instance.id": "a", "deployment.environment": "test"}
    )
    provider = MeterProvider(metric_readers=[reader], resource=resource)
    meter = provider.get_meter("lib", "1.0")
    attributes = {"url.path": VALUE}
    meter.create_counter("http.requests", description='Requests, "all".').add(7, attributes)
    meter.create_up_down_counter("queue.length").add(-3, attributes)
    meter.create_gauge("cpu.use", unit="1").set(0.5, attributes)
    histogram = meter.create_histogram("call.time", unit="s", explicit_bucket_boundaries_advisory=[0.5, 1])
    for seconds in (0.25, 1):
        histogram.record(seconds, attributes)
    provider.shutdown()


def read(address, accept, parse):
    """The metrics of the page, once it has some."""
    request = urllib.request.Request(f"http://{address}/metrics", headers={"Accept": accept})
    until = time.monotonic() + DEADLINE
    while time.monotonic() < until:
        with urllib.request.urlopen(request, timeout=DEADLINE) as answer:
            assert accept in answer.headers["Content-Type"], answer.headers["Content-Type"]
            families = list(parse(answer.read().decode()))
        if families:
            return families
        time.sleep(0.05)
    raise TimeoutError("the page stays empty")


def check(families, has_times):
    types = {family.name: family.type for family in families}
    for name, kind in TYPES.items():
        if types.get(name) != kind:
            yield f"{name} is of the type {types.get(name)}, not {kind}"
    samples = [sample for family in families for sample in family.samples]
    for name, (label, value), wanted in WANTED:
        found = [one for one in samples if one.name == name and one.labels.get(label) == value]
        if [one.value for one in found] != [wanted]:
            yield f"{name} with {label} {value!r} is {found}, not {wanted}"
        for one in found:
            if (one.labels.get("job"), one.labels.get("instance")) != ("interop", "a"):
                yield f"{name} has the labels {one.labels}"
            if name != "target_info" and (one.timestamp is not None) != has_times:
                yield f"{name} has the time {one.timestamp}"


def run(program, has_times):
    """What is wrong with the pages, and how many metrics they have."""
    with tempfile.TemporaryDirectory() as folder:
        config = pathlib.Path(folder) / "collector.yaml"
        config.write_text(CONFIG % str(has_times).lower())
        process = subprocess.Popen(
            [program, "collect", "--config", str(config)], stderr=subprocess.PIPE, text=True
        )
        # Whatever happens, it ends.
        timer = threading.Timer(2 * DEADLINE, process.kill)
        timer.start()
        try:
            at = addresses(process)
            send(at["otlp http"])
            plain = read(at["prometheus"], "text/plain", text)
            opened = read(at["prometheus"], "application/openmetrics-text", openmetrics)
        finally:
            process.terminate()
            process.wait(DEADLINE)
            timer.cancel()
    faults = [*check(plain, has_times), *check(opened, has_times)]
    return faults, len(plain), len(opened)


def main(program):
    faults = []
    for has_times in (False, True):
        own, plain, opened = run(program, has_times)
        faults += own
    for fault in faults:
        print(f"interop: {fault}", file=sys.stderr)
    print(
        f"interop: Prometheus' client library reads {plain} metrics of the collector's exporter, and {opened} of OpenMetrics"
    )
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
