//! Settings from OpenTelemetry's environment variables.

use super::check::{check_url, collector_name, header};
use super::exporter::{
    Compression, Encoding, Exporter, Headers, InProcess, OtlpGrpc, OtlpHttp, REQUESTS_DEFAULT,
    TIMEOUT_DEFAULT_MS, Target,
};
use super::pipeline::{BatchProcessor, MetricPipeline, Pipeline, Processor, Reader};
use super::resource;
use super::sampler::{Delegate, ParentBased, Sampler};
use super::signal::FLUSH_DEFAULT_MS;
use super::tls::{Pem, Tls};
use super::{Histogram, Logs, Metrics, Provider, Settings, Signal, Temporality, Traces};

/// Name of the instrumentation scope.
const SCOPE: &str = "spangate";

/// See [`Settings::from_environment`].
pub(super) fn settings(get: &dyn Fn(&str) -> Option<String>) -> (Settings, Vec<String>) {
    let mut variables = Variables {
        get,
        warnings: Vec::new(),
    };
    let settings = variables.settings();
    (settings, variables.warnings)
}

/// `OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE`. All our instruments are synchronous, so
/// `lowmemory` is delta.
pub(super) fn temporality(
    get: &dyn Fn(&str) -> Option<String>,
    warn: &mut dyn FnMut(String),
) -> Temporality {
    let name = "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE";
    let words = [
        ("cumulative", Temporality::Cumulative),
        ("delta", Temporality::Delta),
        ("lowmemory", Temporality::Delta),
    ];
    word(get, warn, name, &words).unwrap_or_default()
}

/// `OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION`.
pub(super) fn histogram(
    get: &dyn Fn(&str) -> Option<String>,
    warn: &mut dyn FnMut(String),
) -> Histogram {
    let name = "OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION";
    let words = [
        ("explicit_bucket_histogram", Histogram::Explicit),
        ("base2_exponential_bucket_histogram", Histogram::Exponential),
    ];
    word(get, warn, name, &words).unwrap_or_default()
}

/// One of several words, in any case. An empty variable counts as unset, as the specification says.
fn word<T: Copy>(
    get: &dyn Fn(&str) -> Option<String>,
    warn: &mut dyn FnMut(String),
    name: &str,
    words: &[(&str, T)],
) -> Option<T> {
    let text = get(name)?;
    let text = text.trim();
    let found = words
        .iter()
        .find(|(word, _)| word.eq_ignore_ascii_case(text));
    if found.is_none() && !text.is_empty() {
        warn(format!("{name}: '{}' is not taken", text.escape_debug()));
    }
    found.map(|(_, value)| *value)
}

struct Variables<'a> {
    get: &'a dyn Fn(&str) -> Option<String>,
    warnings: Vec<String>,
}

impl Variables<'_> {
    fn settings(&mut self) -> Settings {
        if self.word("OTEL_SDK_DISABLED", &[("true", true), ("false", false)]) == Some(true) {
            return Settings::default();
        }
        let provider = self.provider();
        Settings {
            traces: self.traces(&provider),
            metrics: self.metrics(&provider),
            logs: self.logs(&provider),
        }
    }

    fn traces(&mut self, provider: &Provider) -> Option<Traces> {
        let exporter = self.exporter(Signal::Traces)?;
        let processor = self.processor(Signal::Traces, "OTEL_BSP");
        Some(Traces {
            provider: provider.clone(),
            sampler: self.sampler(),
            pipelines: vec![Pipeline {
                exporter,
                processor,
            }],
        })
    }

    fn logs(&mut self, provider: &Provider) -> Option<Logs> {
        let exporter = self.exporter(Signal::Logs)?;
        let processor = self.processor(Signal::Logs, "OTEL_BLRP");
        Some(Logs {
            provider: provider.clone(),
            min_severity: 1,
            pipelines: vec![Pipeline {
                exporter,
                processor,
            }],
        })
    }

    fn metrics(&mut self, provider: &Provider) -> Option<Metrics> {
        let exporter = self.exporter(Signal::Metrics)?;
        let default = Reader::default();
        let interval_ms = self.number(
            "OTEL_METRIC_EXPORT_INTERVAL",
            100..=3_600_000,
            default.interval_ms,
        );
        let timeout_ms = self.number(
            "OTEL_METRIC_EXPORT_TIMEOUT",
            100..=3_600_000,
            default.timeout_ms,
        );
        let mut warn = |text| self.warnings.push(text);
        Some(Metrics {
            provider: provider.clone(),
            temporality: temporality(self.get, &mut warn),
            histogram: histogram(self.get, &mut warn),
            pipelines: vec![MetricPipeline {
                exporter,
                reader: Reader {
                    interval_ms,
                    timeout_ms,
                },
            }],
        })
    }

    fn provider(&mut self) -> Provider {
        let warn = |text| self.warnings.push(text);
        Provider {
            scope_name: SCOPE.to_owned(),
            resource: resource::attributes(&[], self.get, warn),
            flush_timeout_ms: FLUSH_DEFAULT_MS,
        }
    }

    /// `OTEL_TRACES_SAMPLER`; `parentbased_always_on` by default.
    fn sampler(&mut self) -> Sampler {
        #[derive(Clone, Copy)]
        enum Root {
            On,
            Off,
            Ratio,
        }
        let words = [
            ("always_on", (false, Root::On)),
            ("always_off", (false, Root::Off)),
            ("traceidratio", (false, Root::Ratio)),
            ("parentbased_always_on", (true, Root::On)),
            ("parentbased_always_off", (true, Root::Off)),
            ("parentbased_traceidratio", (true, Root::Ratio)),
        ];
        let kind = self.word("OTEL_TRACES_SAMPLER", &words);
        let (parent, root) = kind.unwrap_or((true, Root::On));
        let delegate = match root {
            Root::On => Delegate::AlwaysOn,
            Root::Off => Delegate::AlwaysOff,
            Root::Ratio => Delegate::Ratio(self.ratio("OTEL_TRACES_SAMPLER_ARG")),
        };
        match (parent, delegate) {
            (true, delegate) => Sampler::ParentBased(ParentBased::new(delegate)),
            (false, Delegate::AlwaysOn) => Sampler::AlwaysOn,
            (false, Delegate::AlwaysOff) => Sampler::AlwaysOff,
            (false, Delegate::Ratio(ratio)) => Sampler::Ratio(ratio),
        }
    }

    fn ratio(&mut self, name: &str) -> f64 {
        let Some(text) = self.text(name) else {
            return 1.0;
        };
        match text.parse::<f64>() {
            Ok(ratio) if (0.0..=1.0).contains(&ratio) => ratio,
            _ => {
                self.not_taken(name, &text);
                1.0
            }
        }
    }

    fn processor(&mut self, signal: Signal, prefix: &str) -> Processor {
        let default = BatchProcessor::new(signal);
        let mut number =
            |name: &str, range, default| self.number(&format!("{prefix}_{name}"), range, default);
        let queue_records_max = number("MAX_QUEUE_SIZE", 1..=1_048_576, default.queue_records_max);
        let fits = default.batch_records_max.min(queue_records_max);
        let batch_records_max = number("MAX_EXPORT_BATCH_SIZE", 1..=queue_records_max, fits);
        Processor::Batch(BatchProcessor {
            queue_records_max,
            delay_ms: number("SCHEDULE_DELAY", 1..=3_600_000, default.delay_ms),
            export_timeout_ms: number("EXPORT_TIMEOUT", 1..=3_600_000, default.export_timeout_ms),
            batch_records_max,
        })
    }

    /// `OTEL_<SIGNAL>_EXPORTER`; `otlp` by default.
    fn exporter(&mut self, signal: Signal) -> Option<Exporter> {
        #[derive(Clone, Copy)]
        enum Kind {
            Otlp,
            Console,
            None,
        }
        let name = format!("OTEL_{}_EXPORTER", signal.name().to_ascii_uppercase());
        let words = [
            ("otlp", Kind::Otlp),
            ("console", Kind::Console),
            ("none", Kind::None),
        ];
        match self.word(&name, &words).unwrap_or(Kind::Otlp) {
            Kind::Otlp => Some(self.otlp(signal)),
            Kind::Console => Some(Exporter::Ostream(Target::Stdout)),
            Kind::None => None,
        }
    }

    fn otlp(&mut self, signal: Signal) -> Exporter {
        let endpoint = self.text(&self.otlp_name(signal, "ENDPOINT"));
        if let Some(name) = endpoint.as_deref().and_then(collector_name) {
            return Exporter::Collector(InProcess {
                name: name.to_owned(),
                at: None,
            });
        }
        let protocols = [
            ("http/protobuf", Some(Encoding::Protobuf)),
            ("http/json", Some(Encoding::Json)),
            ("grpc", None),
        ];
        let name = self.otlp_name(signal, "PROTOCOL");
        let protocol = self.word(&name, &protocols);
        let headers = self.headers(signal);
        let tls = self.tls(signal);
        let name = self.otlp_name(signal, "TIMEOUT");
        let timeout_ms = self.number(&name, 1..=3_600_000, TIMEOUT_DEFAULT_MS);
        let name = self.otlp_name(signal, "COMPRESSION");
        let compressions = [("gzip", Compression::Gzip), ("none", Compression::None)];
        let compression = self.word(&name, &compressions).unwrap_or(Compression::None);
        match protocol.unwrap_or(Some(Encoding::Protobuf)) {
            Some(encoding) => Exporter::OtlpHttp(Box::new(OtlpHttp {
                endpoint: self.http_endpoint(signal),
                encoding,
                headers,
                timeout_ms,
                requests_max: REQUESTS_DEFAULT,
                compression,
                tls,
            })),
            None => Exporter::OtlpGrpc(Box::new(OtlpGrpc {
                endpoint: self.grpc_endpoint(signal),
                headers,
                timeout_ms,
                requests_max: REQUESTS_DEFAULT,
                compression,
                user_agent: None,
                tls,
            })),
        }
    }

    /// The variable that applies to a signal: its own if set, else the general one.
    fn otlp_name(&self, signal: Signal, what: &str) -> String {
        let own = own_name(signal, what);
        match self.text(&own) {
            Some(_) => own,
            None => format!("OTEL_EXPORTER_OTLP_{what}"),
        }
    }

    /// The signal's own endpoint unchanged, or else the general endpoint with the path of the
    /// signal appended.
    fn http_endpoint(&mut self, signal: Signal) -> String {
        let path = format!("v1/{}", signal.name());
        if let Some(url) = self.url(&own_name(signal, "ENDPOINT"), false) {
            return url;
        }
        let base = self.url("OTEL_EXPORTER_OTLP_ENDPOINT", false);
        let base = base.unwrap_or_else(|| "http://localhost:4318".to_owned());
        format!("{}/{path}", base.trim_end_matches('/'))
    }

    /// An endpoint without a scheme uses TLS, unless `OTEL_EXPORTER_OTLP_INSECURE` says otherwise.
    fn grpc_endpoint(&mut self, signal: Signal) -> String {
        let name = self.otlp_name(signal, "INSECURE");
        let insecure = self.word(&name, &[("true", true), ("false", false)]);
        let name = self.otlp_name(signal, "ENDPOINT");
        let bare = self.text(&name).is_some_and(|text| !text.contains("://"));
        let url = self.url(&name, bare && insecure != Some(true));
        url.unwrap_or_else(|| "http://localhost:4317".to_owned())
    }

    fn url(&mut self, name: &str, tls: bool) -> Option<String> {
        let text = self.text(name)?;
        let url = check_url(&text, tls);
        url.map_err(|why| {
            let text = text.escape_debug();
            let warning = format!("{name}: '{text}' is not taken: {why}");
            self.warnings.push(warning);
        })
        .ok()
    }

    fn headers(&mut self, signal: Signal) -> Headers {
        let name = self.otlp_name(signal, "HEADERS");
        let Some(text) = self.text(&name) else {
            return Headers::default();
        };
        let pairs = resource::pairs(&text).and_then(|pairs| {
            let wrong = pairs
                .iter()
                .find_map(|(name, value)| header(name, value).err());
            wrong.map_or(Ok(pairs), Err)
        });
        match pairs {
            Ok(pairs) => Headers(pairs),
            Err(_) => {
                // Without its text, which may contain a secret.
                self.warnings
                    .push(format!("{name} is not taken: no list of key=value"));
                Headers::default()
            }
        }
    }

    fn tls(&mut self, signal: Signal) -> Tls {
        let pem = |what| self.text(&self.otlp_name(signal, what)).map(Pem::Path);
        let tls = Tls {
            ca: pem("CERTIFICATE"),
            certificate: pem("CLIENT_CERTIFICATE"),
            key: pem("CLIENT_KEY"),
            ..Tls::default()
        };
        if tls.certificate.is_some() == tls.key.is_some() {
            return tls;
        }
        self.warnings.push(
            "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE and _CLIENT_KEY need each other: neither is taken"
                .to_owned(),
        );
        Tls {
            certificate: None,
            key: None,
            ..tls
        }
    }

    fn text(&self, name: &str) -> Option<String> {
        let text = (self.get)(name)?;
        let text = text.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    fn word<T: Copy>(&mut self, name: &str, words: &[(&str, T)]) -> Option<T> {
        word(self.get, &mut |text| self.warnings.push(text), name, words)
    }

    fn number(&mut self, name: &str, range: std::ops::RangeInclusive<u32>, default: u32) -> u32 {
        let Some(text) = self.text(name) else {
            return default;
        };
        match text.parse::<u32>() {
            Ok(value) if range.contains(&value) => value,
            _ => {
                self.not_taken(name, &text);
                default
            }
        }
    }

    fn not_taken(&mut self, name: &str, text: &str) {
        let text = text.escape_debug();
        self.warnings.push(format!("{name}: '{text}' is not taken"));
    }
}

fn own_name(signal: Signal, what: &str) -> String {
    let signal = signal.name().to_ascii_uppercase();
    format!("OTEL_EXPORTER_OTLP_{signal}_{what}")
}
