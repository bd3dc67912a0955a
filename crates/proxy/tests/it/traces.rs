//! The filter `opentelemetry` in scripted lives: what comes out of it, decoded.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value::Value};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ScopeLogs};
use opentelemetry_proto::tonic::trace::v1::{ScopeSpans, Span};
use prost::Message as _;
use spangate_proxy::{FilterExport, RuntimeConfig};
use telemetry::account::{Account, Signal};
use telemetry::queue::{Queue, QueueLimits};

use crate::rules::script::{DEFAULTS, play_running};
use crate::setups::load_running;

/// An `otel.yml`; its exporter is never started.
const SETTINGS: &str = "exporters:
  e: { type: memory }
processors:
  p: { type: single }
signals:
  traces: { default: { scope_name: s, exporters: e, processors: p } }
";

/// What a filter exported.
#[derive(Debug)]
pub struct Exported {
    pub spans: Vec<Span>,
    pub logs: Vec<LogRecord>,
    pub account: Arc<Account>,
    pub counters: Counted,
    /// Its streams are written down in short until their end.
    pub taped: bool,
}

/// What the filter counted.
#[derive(Debug)]
pub struct Counted {
    pub attached: u64,
    pub hard_errors: u64,
    pub soft_errors: u64,
    pub lines_suppressed: u64,
}

/// Plays a script behind a filter `f` whose file is `otel` under `[f]`; the lines are those of its
/// `listen`, in which `{file}` is that file.
pub fn traced(name: &str, otel: &str, lines: &str, script: &str) -> Exported {
    let settings = TempFile::new(SETTINGS);
    let otel = otel.replace("otel.yml", &settings.0);
    let file = TempFile::new(&format!("[f]\n{otel}\n"));
    let filter =
        format!("filter opentelemetry id f config {}\n{lines}", file.0).replace("{file}", &file.0);
    exported(name, &filter, script)
}

/// Plays a script; the lines are those of its `listen`, the first filter of it exports.
pub fn exported(name: &str, lines: &str, script: &str) -> Exported {
    let server = if lines.contains("\n server ") {
        ""
    } else {
        "    server one 127.0.0.1:81\n"
    };
    let config = format!("{DEFAULTS}    {lines}\n{server}");
    let mut runtime_config: RuntimeConfig = load_running(&config);
    let limits = QueueLimits {
        records_max: 1 << 20,
        bytes_max: 1 << 30,
    };
    let queue = |signal| {
        let account = Arc::new(Account::default());
        Arc::new(Queue::new(signal, limits, account, || {}))
    };
    let (spans, logs) = (queue(Signal::Traces), queue(Signal::Logs));
    runtime_config.export_filter(
        0,
        FilterExport {
            spans: vec![Arc::clone(&spans)],
            logs: vec![Arc::clone(&logs)],
            sampler: sampler(&runtime_config),
            ..FilterExport::default()
        },
    );
    let runtime_config = Arc::new(runtime_config);
    play_running(name, Arc::clone(&runtime_config), script);
    let counters = &runtime_config.filters()[0].counters;
    let mut exported = Exported {
        spans: Vec::new(),
        logs: Vec::new(),
        account: Arc::clone(&spans.account),
        counters: Counted {
            attached: counters.attached.load(Relaxed),
            hard_errors: counters.hard_errors.load(Relaxed),
            soft_errors: counters.soft_errors.load(Relaxed),
            lines_suppressed: counters.lines_suppressed.load(Relaxed),
        },
        taped: runtime_config.config.otel[0].program.is_taped,
    };
    while let Some(batch) = spans.take() {
        let decoded = ScopeSpans::decode(&batch.bytes[..]).expect("spans");
        assert_eq!(decoded.spans.len(), batch.records as usize, "{name}");
        exported.spans.extend(decoded.spans);
    }
    while let Some(batch) = logs.take() {
        let decoded = ScopeLogs::decode(&batch.bytes[..]).expect("log records");
        assert_eq!(decoded.log_records.len(), batch.records as usize, "{name}");
        exported.logs.extend(decoded.log_records);
    }
    exported
}

fn sampler(runtime_config: &RuntimeConfig) -> telemetry::sampler::Sampler {
    let traces = runtime_config.config.otel[0].settings.traces.as_ref();
    traces
        .map(|traces| (&traces.sampler).into())
        .expect("traces")
}

impl Exported {
    /// The only span of a name.
    pub fn span(&self, name: &str) -> &Span {
        let named: Vec<&Span> = self.spans.iter().filter(|span| span.name == name).collect();
        assert_eq!(named.len(), 1, "spans named {name:?} of {:?}", self.tree());
        named[0]
    }

    /// Each span with the name of its parent: `parent>name`, in their order.
    pub fn tree(&self) -> Vec<String> {
        let parent = |span: &Span| {
            let parent = self
                .spans
                .iter()
                .find(|one| one.span_id == span.parent_span_id);
            match (parent, span.parent_span_id.is_empty()) {
                (Some(parent), _) => parent.name.clone(),
                (None, true) => String::new(),
                (None, false) => "?".into(),
            }
        };
        let named = |span: &Span| format!("{}>{}", parent(span), span.name);
        self.spans.iter().map(named).collect()
    }
}

/// Attributes as `key=value`, one blank between.
pub fn shown(attributes: &[KeyValue]) -> String {
    let one = |pair: &KeyValue| format!("{}={}", pair.key, shown_value(pair.value.as_ref()));
    attributes.iter().map(one).collect::<Vec<_>>().join(" ")
}

/// A value: texts in quotes.
pub fn shown_value(value: Option<&AnyValue>) -> String {
    match value.and_then(|value| value.value.as_ref()) {
        Some(Value::StringValue(text)) => format!("{text:?}"),
        Some(Value::IntValue(number)) => number.to_string(),
        Some(Value::BoolValue(value)) => value.to_string(),
        other => format!("{other:?}"),
    }
}

/// A file that is gone with this.
struct TempFile(String);

impl TempFile {
    fn new(text: &str) -> TempFile {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Relaxed);
        let name = format!("spangate-otel-{}-{number}.cfg", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, text).expect("a file");
        TempFile(path.to_str().expect("a name").to_owned())
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
