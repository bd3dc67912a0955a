//! `prometheus_remote_write`: metrics that are pushed to Prometheus and to systems that take what it
//! does.

use otlp::Signal;
use telemetry::settings::Encoding;

use super::prometheus::{self, CONSTANT_LABELS, CONVERSION, Naming, STRATEGY_WORDS};
use super::{Exporter, ExporterSettings};
use crate::config::components::extensions::file_storage::FileStorage;
use crate::config::components::id::ComponentId;
use crate::config::components::shared::http::{self, HttpClient};
use crate::config::components::shared::queue::{Queue, Sizer};
use crate::config::components::shared::retry::{self, Retry};
use crate::config::components::{Entry, Parse, name};
use crate::config::options::{COUNT_MAX, Kind, Opt, Section, Table, opt};

/// An exporter that pushes metrics to Prometheus.
#[derive(Clone, Debug, PartialEq)]
pub struct RemoteWriteExporter {
    /// Where requests go.
    pub url: String,
    /// How the server is spoken to.
    pub client: HttpClient,
    /// What waits before it.
    pub queue: Option<Queue>,
    /// Treatment of failures.
    pub retry: Option<Retry>,
    /// Names and labels.
    pub naming: Naming,
    /// Resources have a metric `target_info`.
    pub target_info: bool,
    /// Type, help and unit of metrics are sent too; version 2 sends them always.
    pub send_metadata: bool,
    /// Format of requests.
    pub version: WriteVersion,
    /// Bytes of a request before compression, about.
    pub request_bytes_max: usize,
    /// Requests of a batch in flight at a time.
    pub parallelism: usize,
}

/// A version of Prometheus' protocol for pushed samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteVersion {
    /// `prometheus.WriteRequest` (Prometheus Remote-Write 1.0).
    One,
    /// `io.prometheus.write.v2.Request` (Prometheus Remote-Write 2.0).
    Two,
}

impl ExporterSettings for RemoteWriteExporter {
    fn queue(&self) -> Option<&Queue> {
        self.queue.as_ref()
    }

    fn retry(&self) -> Option<Retry> {
        self.retry
    }

    fn is_remote(&self) -> bool {
        true
    }

    /// Prometheus takes the samples of a series in the order of their times only.
    fn is_ordered(&self) -> bool {
        true
    }

    fn auth(&self) -> Option<&ComponentId> {
        self.client.auth.as_ref()
    }

    fn writes_files(&self) -> bool {
        let folder = self.queue.as_ref().and_then(|queue| queue.folder.as_ref());
        folder.is_some()
    }
}

const VERSIONS: [(&str, WriteVersion); 2] = [
    ("prometheus.WriteRequest", WriteVersion::One),
    ("io.prometheus.write.v2.Request", WriteVersion::Two),
];
const VERSION_WORDS: &[&str] = &["prometheus.WriteRequest", "io.prometheus.write.v2.Request"];

/// Bytes of a request where nothing is written.
const REQUEST_BYTES: usize = 3_000_000;
/// The first wait of `retry_on_failure`.
const RETRY_FIRST: &[Opt] = &[opt(
    "initial_interval",
    Kind::Duration,
    "50ms",
    "wait after the first failure",
)];
const RETRY: Table = &[RETRY_FIRST, retry::OPTIONS];

#[rustfmt::skip]
const QUEUE: &[Opt] = &[
    opt("enabled", Kind::Flag, "true", "data wait in a queue; else senders do"),
    opt("queue_size", Kind::Int(1, COUNT_MAX), "10000", "batches that wait"),
    opt("num_consumers", Kind::Int(0, 1024), "5", "requests of one batch in flight at a time; batches are sent one after the other"),
];
#[rustfmt::skip]
const WAL: &[Opt] = &[
    opt("directory", Kind::Text, "", "the folder, which no other exporter may have"),
    opt("buffer_size", Kind::Int(0, COUNT_MAX), "300", "batches that are read at a time").no_effect(WAL_REASON),
    opt("truncate_frequency", Kind::Duration, "1m", "how often what was sent is removed").no_effect(WAL_REASON),
    opt("lag_record_frequency", Kind::Duration, "15s", "how often the lag is told").no_effect("the metrics of the queue tell what waits"),
];
const WAL_REASON: &str =
    "batches are read one by one, and files are removed when all in them was sent";
#[rustfmt::skip]
const TARGET_INFO: &[Opt] = &[opt("enabled", Kind::Flag, "true", "it is sent")];
/// Options of the client that differ from those of other clients.
#[rustfmt::skip]
const OWN_CLIENT: &[Opt] = &[
    opt("endpoint", Kind::Text, "", "URL of the receiver"),
    opt("timeout", Kind::Duration, "5s", "a whole request; 0: no bound"),
    opt("compression", Kind::Word(&["snappy", ""]), "snappy", "of bodies").no_effect("the protocol has no other than snappy"),
    opt("compression_params", Kind::Section(&[http::COMPRESSION_PARAMS]), "", "how much").no_effect("snappy has no levels"),
];
const HTTP: Table = &[OWN_CLIENT, http::CLIENT];
#[rustfmt::skip]
const OPTIONS: &[Opt] = &[
    opt("http", Kind::Maybe(HTTP), "", "the options of the client, which may also stand beside this one; where it is written they count here only"),
    opt("namespace", Kind::Text, "", "the first part of each metric's name"),
    opt("external_labels", Kind::Pairs, "", "labels of each series that has none of the name"),
    opt("remote_write_queue", Kind::Section(&[QUEUE]), "", "what waits before it"),
    opt("retry_on_failure", Kind::Section(RETRY), "", "what becomes of failures"),
    opt("max_batch_size_bytes", Kind::Int(0, 1 << 30), "3000000", "bytes of a request before compression, about; 0: the default"),
    opt("max_batch_request_parallelism", Kind::Int(0, 1024), "0", "requests of one batch in flight at a time; `num_consumers` where it is not written"),
    opt("resource_constant_labels", Kind::Section(&[CONSTANT_LABELS]), "", "attributes of the resource that become labels of its series"),
    opt("resource_to_telemetry_conversion", Kind::Section(&[CONVERSION]), "", "the same, in its older form; `resource_constant_labels` counts where both are written"),
    opt("wal", Kind::Maybe(&[WAL]), "", "batches are in files before they are answered, and outlive the process; none where it is not written"),
    opt("target_info", Kind::Section(&[TARGET_INFO]), "", "the metric `target_info`, with the attributes of the resource"),
    opt("disable_scope_info", Kind::Flag, "false", "series have no labels `otel_scope_*`"),
    opt("translation_strategy", Kind::Word(STRATEGY_WORDS), "", "how names of metrics and labels are made; where it is not written: with underscores, and with suffixes unless `add_metric_suffixes` is false"),
    opt("add_metric_suffixes", Kind::Flag, "true", "names end with the unit and the type").deprecated("write 'translation_strategy', which counts where both are written"),
    opt("send_metadata", Kind::Flag, "false", "type, help and unit of metrics are sent too; version 2 of the protocol sends them always"),
    opt("protobuf_message", Kind::Word(VERSION_WORDS), "prometheus.WriteRequest", "what requests are: version 1 or 2 of the protocol"),
    opt("include_metadata_keys", Kind::Texts, "", "fields of a client that go along").refused("the extension 'headers_setter' sends fields of clients on"),
    opt("convert_explicit_histograms_to_nhcb", Kind::Flag, "false", "native histograms with custom buckets").refused("histograms are sent with their buckets as series"),
    opt("keep_classic_histograms", Kind::Flag, "false", "the series of buckets too").no_effect("histograms are sent with their buckets as series"),
];

pub(crate) const ENTRY: Entry = Entry {
    names: &[
        name("prometheus_remote_write"),
        name("prometheusremotewrite"),
    ],
    doc: "metrics that are pushed to Prometheus and to what takes the same",
    takes: &[Signal::Metrics],
    carries: &[Signal::Metrics],
    options: &[OPTIONS, OWN_CLIENT, http::CLIENT],
    parse: Parse::Exporter(parse),
};

fn parse(section: &Section<'_>) -> Exporter {
    let own = section.maybe("http");
    let at = own.as_ref().unwrap_or(section);
    let url = http::url(at, "endpoint");
    if url.is_none() && at.text("endpoint").is_empty() {
        at.error("endpoint", "is missing: the URL of the receiver");
    }
    let naming = naming(section);
    let version = section.choice("protobuf_message", &VERSIONS);
    if naming.translation.utf8 && version == WriteVersion::One {
        let message =
            "needs version 2 of the protocol: 'protobuf_message: io.prometheus.write.v2.Request'";
        section.error("translation_strategy", message);
    }
    let queue = section.section("remote_write_queue");
    let consumers: usize = queue.int("num_consumers");
    let parallelism = section.int_unless_zero("max_batch_request_parallelism");
    if parallelism.is_none() && section.has("max_batch_request_parallelism") {
        section.error("max_batch_request_parallelism", "must be 1 at least");
    }
    let bytes_max = section.int_unless_zero("max_batch_size_bytes");
    Exporter::new(RemoteWriteExporter {
        url: url.unwrap_or_default(),
        client: http::client(at, Encoding::Protobuf),
        queue: own_queue(section, &queue),
        retry: retry::retry(&section.section("retry_on_failure")),
        naming,
        target_info: section.section("target_info").flag("enabled"),
        send_metadata: section.flag("send_metadata"),
        version,
        request_bytes_max: bytes_max.unwrap_or(REQUEST_BYTES),
        parallelism: parallelism.unwrap_or(consumers).max(1),
    })
}

fn naming(section: &Section<'_>) -> Naming {
    let labels = section.pairs("external_labels");
    for (label, value) in &labels {
        if label.is_empty() || value.is_empty() {
            section.error("external_labels", "a label must have a name and a value");
        }
    }
    Naming {
        namespace: section.text("namespace"),
        const_labels: labels,
        const_labels_first: false,
        translation: prometheus::translation(section),
        scope_labels: !section.flag("disable_scope_info"),
        resource_labels: prometheus::resource_labels(section),
    }
}

fn own_queue(section: &Section<'_>, queue: &Section<'_>) -> Option<Queue> {
    let folder = section.maybe("wal").map(|wal| {
        let directory = wal.text("directory");
        if directory.is_empty() {
            wal.error("directory", "must name a folder");
        }
        FileStorage::folder(directory)
    });
    if !queue.flag("enabled") && folder.is_none() {
        return None;
    }
    Some(Queue {
        sizer: Sizer::Requests,
        size_max: queue.int("queue_size"),
        block_on_overflow: false,
        wait_for_result: false,
        storage: None,
        folder,
        consumers: 1,
        batch: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::exporter;

    fn read(options: &str) -> RemoteWriteExporter {
        let exporter = exporter(&format!("prometheus_remote_write: {{ {options} }}"));
        let settings = exporter.get::<RemoteWriteExporter>();
        settings.expect("settings").clone()
    }

    #[test]
    fn options_of_the_client_stand_in_either_place() {
        let plain = read("endpoint: 'http://x'").client;
        for option in [
            "timeout: 1s",
            "headers: { a: b }",
            "tls: { server_name_override: y }",
            "max_conns_per_host: 3",
            "max_idle_conns: 3",
            "idle_conn_timeout: 3s",
            "disable_keep_alives: true",
            "cookies: { }",
            "proxy_url: 'http://p:1'",
        ] {
            let beside = read(&format!("endpoint: 'http://x', {option}")).client;
            assert_ne!(beside, plain, "{option}");
            let within = read(&format!("http: {{ endpoint: 'http://x', {option} }}")).client;
            assert_eq!(within, beside, "{option}");
            // What stands beside does not count.
            let both = read(&format!("http: {{ endpoint: 'http://x' }}, {option}"));
            assert_eq!(both.client, plain, "{option}");
        }
    }

    #[test]
    fn a_queue_and_parallel_requests_are_what_is_written() {
        let of = |options: &str| {
            let read = read(&format!("endpoint: 'http://x', {options}"));
            let queue = read.queue.map(|queue| queue.size_max);
            (queue, read.parallelism)
        };
        assert_eq!(of(""), (Some(10_000), 5));
        assert_eq!(
            of("remote_write_queue: { queue_size: 7, num_consumers: 3 }"),
            (Some(7), 3)
        );
        assert_eq!(of("remote_write_queue: { enabled: false }"), (None, 5));
        assert_eq!(of("max_batch_request_parallelism: 9"), (Some(10_000), 9));
        // A write-ahead log is a queue.
        assert_eq!(
            of("remote_write_queue: { enabled: false }, wal: { directory: d }").0,
            Some(10_000)
        );
    }
}
