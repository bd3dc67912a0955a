//! The exporter `debug`: what passes, in the log.

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use prost::Message;
use syntax::hex;

use crate::config::Signal;
use crate::config::components::exporters::debug::{DebugExporter, Verbosity};
use crate::run::Log;
use crate::run::data::Batch;

pub(super) struct Debug {
    name: String,
    verbosity: Verbosity,
    log: Log,
}

impl Debug {
    pub(super) fn new(name: &str, settings: &DebugExporter, log: &Log) -> Result<Debug, String> {
        let written = settings.output_paths.iter();
        let to_own_log = { written }.all(|path| path == "stdout" || path == "stderr");
        if !to_own_log {
            return Err("'output_paths' other than stdout and stderr are not written yet".into());
        }
        Ok(Debug {
            name: name.to_owned(),
            verbosity: settings.verbosity,
            log: log.clone(),
        })
    }

    pub(super) fn tell(&self, batch: &Batch) {
        let (signal, records, bytes) = (batch.signal, batch.records, batch.bytes.len());
        let what = match signal {
            Signal::Traces => "spans",
            Signal::Metrics => "data points",
            Signal::Logs => "log records",
        };
        self.log.info(&format!(
            "exporter {}: {signal}: {records} {what}, {bytes} bytes",
            self.name
        ));
        if self.verbosity == Verbosity::Basic {
            return;
        }
        let text = match signal {
            Signal::Traces => spans(&batch.bytes, self.verbosity),
            Signal::Metrics => detailed::<ExportMetricsServiceRequest>(&batch.bytes),
            Signal::Logs => detailed::<ExportLogsServiceRequest>(&batch.bytes),
        };
        for line in text.lines() {
            self.log.info(line);
        }
    }
}

fn detailed<M: Message + Default + std::fmt::Debug>(bytes: &[u8]) -> String {
    match M::decode(bytes) {
        Ok(request) => format!("{request:#?}"),
        Err(error) => format!("not to be read: {error}"),
    }
}

fn spans(bytes: &[u8], verbosity: Verbosity) -> String {
    if verbosity == Verbosity::Detailed {
        return detailed::<ExportTraceServiceRequest>(bytes);
    }
    let Ok(request) = ExportTraceServiceRequest::decode(bytes) else {
        return String::new();
    };
    let spans = request
        .resource_spans
        .iter()
        .flat_map(|resource| &resource.scope_spans)
        .flat_map(|scope| &scope.spans);
    let line = |span: &opentelemetry_proto::tonic::trace::v1::Span| {
        format!(
            "{} {} {}\n",
            span.name,
            hex::text(&span.trace_id),
            hex::text(&span.span_id)
        )
    };
    spans.map(line).collect()
}
