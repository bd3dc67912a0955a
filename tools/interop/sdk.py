"""Spans, metrics and log records of OpenTelemetry's SDK for Python go through a collector and come out as they were.

Usage: sdk.py PROGRAM. Exits with 1 and says what differs if anything does.
"""

import json
import logging
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading

from opentelemetry.exporter.otlp.proto.grpc import _log_exporter as grpc_logs
from opentelemetry.exporter.otlp.proto.grpc import metric_exporter as grpc_metrics
from opentelemetry.exporter.otlp.proto.grpc import trace_exporter as grpc_traces
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http import _log_exporter as http_logs
from opentelemetry.exporter.otlp.proto.http import metric_exporter as http_metrics
from opentelemetry.exporter.otlp.proto.http import trace_exporter as http_traces
from opentelemetry.sdk._logs import LoggerProvider, LoggingHandler
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Link, SpanKind, Status, StatusCode, TraceState
from opentelemetry.trace.span import SpanContext, TraceFlags
import grpc

TRACES = 300
# One trace in so many has an error, and is kept.
KEPT_ONE_IN = 10
# Seconds that anything may take.
DEADLINE = 60

CONFIG = """
receivers: { otlp: { protocols: { grpc: { endpoint: '127.0.0.1:0' }, http: { endpoint: '127.0.0.1:0' } } } }
processors:
  tail_sampling:
    decision_wait: 1s
    policies: [ { name: errors, type: status_code, status_code: { status_codes: [ERROR] } } ]
exporters: { file: { path: '%s' } }
service:
  telemetry: { metrics: { level: none } }
  pipelines:
    traces: { receivers: [otlp], processors: [tail_sampling], exporters: [file] }
    metrics: { receivers: [otlp], exporters: [file] }
    logs: { receivers: [otlp], exporters: [file] }
"""

ATTRIBUTES = {
    "text": "grüße \N{SNOWMAN}",
    "long": "x" * 5000,
    "empty": "",
    "yes": True,
    "number": -(2**53),
    "real": 0.1,
    "texts": ("a", "b"),
    "numbers": (1, -1),
    "reals": (0.5, 1.5),
    "none": (),
}


class Collector:
    """A running collector and what it wrote."""

    def __init__(self, program, folder):
        self.output = folder / "out"
        config = folder / "collector.yaml"
        config.write_text(CONFIG % self.output)
        self.process = subprocess.Popen(
            [program, "collect", "--config", str(config)], stderr=subprocess.PIPE, text=True
        )
        # Whatever happens, it ends.
        self.timer = threading.Timer(DEADLINE, self.process.kill)
        self.timer.start()
        self.addresses = {}
        for line in self.process.stderr:
            listens = re.search(r"otlp (\w+) listens on (\S+)", line)
            if listens:
                self.addresses[listens[1]] = listens[2]
            if "running" in line:
                break
        # What else it says is not waited for.
        threading.Thread(target=self.process.stderr.read, daemon=True).start()

    def end(self):
        """Ends it; what it wrote, by the kind of request."""
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait()
        self.timer.cancel()
        assert code == 0, f"the collector ended with {code}"
        requests = [json.loads(line) for line in self.output.read_text().splitlines()]
        return {
            kind: [one for request in requests for one in request.get(kind, ())]
            for kind in ("resourceSpans", "resourceMetrics", "resourceLogs")
        }


def value(any_value):
    """A value of OTLP's JSON as the SDK has it."""
    ((kind, content),) = any_value.items() if any_value else (("none", None),)
    if kind == "intValue":
        return int(content)
    if kind == "arrayValue":
        return tuple(value(one) for one in content.get("values", ()))
    return content


def attributes(pairs):
    return {pair["key"]: value(pair["value"]) for pair in pairs}


def wrote(span):
    """A span of the collector's, as `had` tells those of the SDK."""
    return {
        "trace": span["traceId"],
        "id": span["spanId"],
        "parent": span.get("parentSpanId", ""),
        "state": span.get("traceState", ""),
        "name": span["name"],
        "kind": span["kind"],
        "times": (int(span["startTimeUnixNano"]), int(span["endTimeUnixNano"])),
        "attributes": attributes(span.get("attributes", ())),
        "events": [
            (event["name"], int(event["timeUnixNano"]), attributes(event.get("attributes", ())))
            for event in span.get("events", ())
        ],
        "links": [
            (link["traceId"], link["spanId"], attributes(link.get("attributes", ())))
            for link in span.get("links", ())
        ],
        "status": (span.get("status", {}).get("code", 0), span.get("status", {}).get("message", "")),
    }


def had(span):
    """A span as the SDK has it."""
    context = span.get_span_context()
    return {
        "trace": f"{context.trace_id:032x}",
        "id": f"{context.span_id:016x}",
        "parent": f"{span.parent.span_id:016x}" if span.parent else "",
        "state": context.trace_state.to_header(),
        "name": span.name,
        "kind": span.kind.value + 1,
        "times": (span.start_time, span.end_time),
        "attributes": dict(span.attributes),
        "events": [(event.name, event.timestamp, dict(event.attributes)) for event in span.events],
        "links": [
            (f"{link.context.trace_id:032x}", f"{link.context.span_id:016x}", dict(link.attributes))
            for link in span.links
        ],
        "status": (span.status.status_code.value, span.status.description or ""),
    }


def send_traces(exporter, resource):
    """Sends traces; the spans of those that are to be kept."""
    provider = TracerProvider(resource=resource)
    processor = BatchSpanProcessor(exporter)
    provider.add_span_processor(processor)
    tracer = provider.get_tracer("interop", "1.0")
    elsewhere = SpanContext(1, 2, True, TraceFlags(1), TraceState([("vendor", "x:1")]))
    kept = []
    for number in range(TRACES):
        failed = number % KEPT_ONE_IN == 0
        spans = []
        with tracer.start_as_current_span("root", kind=SpanKind.SERVER, attributes=ATTRIBUTES) as root:
            spans.append(root)
            with tracer.start_as_current_span(
                f"call {number}", kind=SpanKind.CLIENT, links=[Link(elsewhere, {"why": "test"})]
            ) as call:
                spans.append(call)
                call.add_event("asked", {"retries": number, "hosts": ("a", "b")})
                if failed:
                    call.set_status(Status(StatusCode.ERROR, "it failed"))
        if failed:
            kept += spans
    assert processor.force_flush(DEADLINE * 1000), "spans were not taken"
    provider.shutdown()
    return kept


def send_metrics(exporter, resource):
    reader = PeriodicExportingMetricReader(exporter, export_interval_millis=DEADLINE * 1000)
    provider = MeterProvider(metric_readers=[reader], resource=resource)
    meter = provider.get_meter("interop")
    meter.create_counter("requests").add(7, {"route": "/"})
    meter.create_histogram("duration").record(0.25)
    assert provider.force_flush(DEADLINE * 1000), "metrics were not taken"
    provider.shutdown()


def send_logs(exporter, resource):
    provider = LoggerProvider(resource=resource)
    provider.add_log_record_processor(BatchLogRecordProcessor(exporter))
    logger = logging.Logger("interop")
    logger.addHandler(LoggingHandler(logger_provider=provider))
    logger.warning("it is %s", "late")
    assert provider.force_flush(DEADLINE * 1000), "log records were not taken"
    provider.shutdown()


def exporters(transport, compressed, address):
    """Of traces, metrics and logs."""
    if transport == "grpc":
        compression = grpc.Compression.Gzip if compressed else grpc.Compression.NoCompression
        options = {"endpoint": f"http://{address}", "insecure": True, "compression": compression}
        kinds = (
            grpc_traces.OTLPSpanExporter,
            grpc_metrics.OTLPMetricExporter,
            grpc_logs.OTLPLogExporter,
        )
        return [kind(**options) for kind in kinds]
    compression = Compression.Gzip if compressed else Compression.NoCompression
    kinds = {
        "traces": http_traces.OTLPSpanExporter,
        "metrics": http_metrics.OTLPMetricExporter,
        "logs": http_logs.OTLPLogExporter,
    }
    return [
        kind(endpoint=f"http://{address}/v1/{signal_}", compression=compression)
        for signal_, kind in kinds.items()
    ]


def check(program, transport, compressed):
    with tempfile.TemporaryDirectory() as folder:
        collector = Collector(program, pathlib.Path(folder))
        try:
            resource = Resource.create({"service.name": "interop", "service.instance.id": "a"})
            traces, metrics, logs = exporters(transport, compressed, collector.addresses[transport])
            kept = {(one["trace"], one["id"]): one for one in map(had, send_traces(traces, resource))}
            send_metrics(metrics, resource)
            send_logs(logs, resource)
        finally:
            out = collector.end()
    spans = [
        span
        for resource_spans in out["resourceSpans"]
        for scope_spans in resource_spans["scopeSpans"]
        for span in scope_spans["spans"]
    ]
    came = {(one["trace"], one["id"]): one for one in map(wrote, spans)}
    assert len(came) == len(spans), "a span came twice"
    assert came.keys() == kept.keys(), f"{len(came)} spans came, not {len(kept)}"
    for key, span in kept.items():
        assert came[key] == span, f"sent {span}\ncame {came[key]}"
    services = {
        attributes(one["resource"]["attributes"])["service.name"]
        for kind in out.values()
        for one in kind
    }
    assert services == {"interop"}, services
    metrics = {
        metric["name"]: metric
        for one in out["resourceMetrics"]
        for scope in one["scopeMetrics"]
        for metric in scope["metrics"]
    }
    assert metrics["requests"]["sum"]["dataPoints"][0]["asInt"] in (7, "7"), metrics
    assert metrics["duration"]["histogram"]["dataPoints"][0]["sum"] == 0.25, metrics
    (log,) = [
        record
        for one in out["resourceLogs"]
        for scope in one["scopeLogs"]
        for record in scope["logRecords"]
    ]
    assert log["body"]["stringValue"] == "it is late", log
    encoding = "gzip" if compressed else "plain"
    print(f"interop: {transport} {encoding}: {TRACES} traces, {len(spans)} spans kept, as they were")


def main():
    for transport in ("grpc", "http"):
        for compressed in (False, True):
            check(sys.argv[1], transport, compressed)


if __name__ == "__main__":
    main()
