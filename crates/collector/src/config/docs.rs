//! The reference of the collector's configuration, generated from the tables.

use std::fmt::Write as _;

use super::components::connectors::{count, dimension};
use super::components::processors::{action, matching, records, tail_sampling};
use super::components::shared::{queue, retry, tls};
use super::components::{Entry, Parse, Role, Signal, known};
use super::options::{Kind, Opt, Rank, State, Table, all};
use super::{diagnostic, pattern, service, source};

const HEADER: &str = "\
# Collector

<!-- Generated from the tables of crates/collector. Do not edit: run `UPDATE_DOCS=1 cargo test -p spangate-collector --test it`. -->

`spangate collect --config a.yaml [--config b.yaml …]` reads an OpenTelemetry Collector's configuration. Every component and
every option that is known is in the tables below, with its default and what writing it means. A section `collector` of the
proxy's configuration runs the same within the proxy ([tracing.md](tracing.md#a-collector-of-the-same-process)).

| state | meaning |
|---|---|
| works | It does what the Collector's does. `src/config/proofs.tsv` names a test that fails when it is not read. |
| untested | It is read, and is meant to work; no test shows yet that it has its effect. |
| works, old | It works under this name; a warning tells the new one. |
| untested, old | Likewise, and no test shows yet that it has its effect. |
| no effect | It is taken, and a warning tells why it does nothing. |
| refused | It is an error, which tells why. A value that says no more than the default is taken. |

An unknown key is an error, with the nearest key as a suggestion. Several files are merged: maps merge, everything else is
replaced by the later file. A key without a value has its default.

| written | stands for |
|---|---|
| `${env:X}`, `${X}` | the variable X; nothing, with a warning, where it is not set |
| `${env:X:-d}` | the variable X, or `d` |
| `${file:path}` | what is in the file: a text, a number, a list or a map |
| `${yaml:text}` | the text as YAML |
| `$$` | a dollar |

Where a reference is all of a value, what it stands for is typed anew, in quotes too; within a longer text it is text.

A traces pipeline with a part that is missing is refused; `--drop-part ID` (or `exporter:ID` and the like) leaves a part out.
A pipeline of metrics or logs with a part that is missing is listed and not started; `--strict` refuses it. A part in no
pipeline is not started.

A duration is written as in Go (`300ms`, `1m30s`); a bare number is nanoseconds.
";

/// The text of `docs/collector.md`.
#[must_use]
pub fn collector_markdown() -> String {
    let mut out = String::from(HEADER);
    summary(&mut out);
    for role in Role::ALL {
        for entry in role.entries() {
            component(&mut out, role, entry);
        }
    }
    let _ = writeln!(out, "\n## `service`\n\n{COLUMNS}");
    options(&mut out, ("`service`", service::TABLE), "");
    let _ = writeln!(
        out,
        "\n### A pipeline\n\nIts key is `traces`, `metrics` or `logs`, or one of them with `/name`.\n\n{COLUMNS}"
    );
    options(&mut out, ("A pipeline", service::pipelines::TABLE), "");
    for (title, table) in SHARED {
        let _ = writeln!(out, "\n## {title}\n\n{COLUMNS}");
        options(&mut out, (title, table), "");
    }
    out.push_str(DURABLE);
    out.push_str(METADATA);
    out.push_str(DASHBOARD);
    out.push_str(PROMETHEUS);
    out.push_str(PROXIES);
    out.push_str(KAFKA);
    out.push_str(REDACTION);
    out.push_str(STREAMS);
    out.push_str(CONNECTORS);
    ottl(&mut out);
    limits(&mut out);
    lacking(&mut out);
    out
}

const DURABLE: &str = "
## What outlives the process

`tail_sampling` and `groupbytrace` with `storage: file_storage` (and `groupbytrace` with `store_on_disk: true`) lose no span that
was accepted, also when the process is killed:

- What their receivers take is written to the folder of the extension before it is answered, processors before them included. Decisions are written
  beside it.
- The next process takes it again before anything else: what was dropped stays dropped, what was kept is sent again unless it was
  delivered some ten seconds before, what waited waits again, for all its spans. A back end may get a span twice, never not at all.
- An ordinary end does the same: what waits is not decided early, but by the next start.
- All pipelines of a receiver that keep spans keep them in the same extension. One process at a time has a folder.

A `sending_queue` with `storage` keeps what waits in it, in memory too. A sender is answered when it is written, unless a
processor between (`batch`, a sampler) holds it; those are kept as above.

With `wait_for_result`, or without a queue, a sender is answered when what it sent was sent on; what was given up is refused, and counts as `failed` here. Jaeger's
UDP waits for nothing.

When `limit_mib` is reached, or the disk does not take what is written, requests are refused with the status that makes senders try again. Nothing
of a refused request is kept, neither in memory nor on the disk.
Without `fsync` what was accepted survives the end of the process, but not a loss of power. After one, files may be empty or have zeros in
them: the collector starts with what can be read, logs each such file, and counts them in `spangate_storage_damaged_files` and
`spangate_storage_damaged_bytes`.

An exporter `file` whose disk is full keeps the batch that it writes and tries again until the disk has room. At most 64 more wait in memory; then
senders are told to come back. A record that the file took in part is cut off again, so that a reader sees whole records only.
";

const METADATA: &str = "
## A client's metadata

With `include_metadata: true` the header fields of a request go along with its data, as far as a component of the configuration asks for
them: nothing is kept for nobody. Of one request these are 64 values and 16 KiB at most; one with more is refused (413,
`RESOURCE_EXHAUSTED`). The client's address and what `basicauth` found (`username`, `raw`) go along without that option.

- `from_context` of `attributes` and `resource` takes `metadata.NAME` (or just `NAME`; several values are put together with `;`),
  `client.address` and `auth.NAME`. What is not known changes nothing; only an address that is not known is an empty text.
- `from_context` of `headers_setter` sends a header field on, and `from_attribute` what the authenticator found; `default_value` is sent where
  they are not known. Data of a request that had several such fields are not sent: whose they are cannot be told.
- `metadata_keys` of `batch` and of a queue's `batch::partition` make a batch for each combination of values; behind it only these are
  known. Of more combinations than `metadata_cardinality_limit` data are refused for good. In all, 10000 batches and 256 MiB wait at
  most: the oldest is sent then.
- Lost: behind `tail_sampling` and `groupbytrace`, whose traces come from several requests, and behind a `batch`, a queue's too, without
  `metadata_keys`. UDP has none.
- A `storage` keeps them with the data, but not what an authenticator found (there are passwords in it): where that is asked for, a
  `storage` is refused.
";

const DASHBOARD: &str = "
## Traces for the dashboard

An exporter `dashboard` keeps the traces of the last minutes in memory, for the dashboard of the
same process:

```yaml
receivers:
  otlp: { protocols: { grpc: } }
processors:
  tail_sampling:
    policies:
      - { name: errors, type: status_code, status_code: { status_codes: [ERROR] } }
exporters:
  dashboard:
  otlp: { endpoint: 'tempo:4317' }
service:
  pipelines:
    traces: { receivers: [otlp], processors: [tail_sampling], exporters: [otlp, dashboard] }
```

- One exporter in the pipeline is enough. Where a `tail_sampling` stands in its pipeline, or in one
  that feeds it through a connector, the store also gets what comes to that sampler, and each
  decision with the policy that made it. So the dashboard shows what was dropped, and a dry run
  evaluates other policies over everything. A second pipeline without the sampler is not needed, and
  nothing of what other exporters send changes.
- `unsampled: false` keeps only what the exporter gets. That takes less memory, and no time per span
  that is dropped.
- A span is shown as it came to the sampler, without what processors after the sampler change. What
  must not be shown is removed before the sampler; else write `unsampled: false`.
- All exporters `dashboard` of a process share one store; the largest `max_bytes` and the largest
  `max_age` count.
- A trace holds 10000 spans, and an eighth of `max_bytes` or 4 MiB, whichever is less; further spans
  are counted.
- A store holds 1000000 traces at most.
- The store is outside of the account: it copies what it is shown, and refuses nothing. It ends with
  the process. Its bytes count in what data may take (`memory_limiter`), of which it has a quarter
  at most; `spangate_dashboard_held_bytes` and its kin tell what it holds.
";

const PROMETHEUS: &str = "
## Metrics for Prometheus

An exporter `prometheus` holds the last value of each series and serves them at `/metrics`:

```yaml
receivers:
  otlp: { protocols: { grpc: } }
exporters:
  prometheus: { endpoint: '0.0.0.0:8889', enable_open_metrics: true }
service:
  pipelines:
    metrics: { receivers: [otlp], exporters: [prometheus] }
```

- Names and labels are those of the Collector: units and types as suffixes, `job` and `instance` from the attributes `service.*`,
  `otel_scope_*`, and `target_info` for each resource that has `service.name` and `service.instance.id`. Values of attributes whose keys
  make the same label are joined with `;`. An attribute `le` of a histogram, or `quantile` of a summary, becomes `exported_le` or
  `exported_quantile`.
- Deltas of sums that only rise and of histograms are added up; a gap between two of them is a reset. Deltas of sums that may fall are
  dropped, as in the Collector.
- A client gets the format that it accepts: Prometheus' text, OpenMetrics with `enable_open_metrics`, or protobuf. Exemplars are in the
  latter two. Exponential histograms have their buckets in protobuf only: set `scrape_native_histograms: true` in Prometheus.
- An exporter holds 500000 series and 1 GiB of them at most, a series has 256 labels and 64 KiB of them, and a histogram 4096 buckets of
  each sign. Data points beyond that are rejected, and a line of the log says why. So are data points whose metric has the name of one of
  another type.
- The page is not compressed. 16 are sent at a time; further clients get 503. After a reload it begins with nothing, as the Collector's does.
";

const PROXIES: &str = "
## Proxies of the environment

Exporters, and readers that send the own metrics, heed `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY` (or the same in small letters) as they
are when the configuration is read, as the Collector does; an exporter with a `proxy_url` heeds that alone.

- `HTTP_PROXY` is for `http://` URLs, `HTTPS_PROXY` for `https://` URLs and for everything over gRPC, with TLS or without. Each is
  `host:port`, or a URL as in `proxy_url`; one that is neither is ignored, with a warning. `https://` proxies must have a certificate
  that the exporter's `tls` trusts.
- `NO_PROXY` has parts with commas between: `*`, an address, a network (`10.0.0.0/8`), `example.com` (and all below it) or `.example.com`
  (only what is below); an address or a domain may have a port. `localhost` and loopback addresses are never reached through a proxy.
- `http://` URLs are asked of a proxy of HTTP, all else goes through a tunnel (`CONNECT`, or SOCKS 5). The proxy finds the address: then a
  gRPC exporter has one connection, whatever `balancer_name` says.
";

const KAFKA: &str = "
## Kafka

The receiver and the exporter `kafka` need a build with the cargo feature `kafka`
(`cargo build --release -p spangate --features kafka`), which adds librdkafka. TLS and SCRAM need
the feature `kafka-tls`, which links OpenSSL. They carry traces. [scaling.md](scaling.md) shows a
fleet of samplers behind a topic.

Nothing that was read is lost (at least once):

- The receiver commits the offset of the first message of a partition that is not settled. A
  message is settled when all of its spans were delivered by the exporters, or dropped by a
  processor. Behind `tail_sampling` and `groupbytrace` that is after the decision. An exporter whose
  `sending_queue` has a `storage` counts as delivered what it has written there.
- Messages that come within half a second are settled together, in the order of their partition. So
  a few seconds of messages are read again after a crash, and after a rebalance all that wait for
  a decision. A back end may get a span twice, never not at all.
- A member that ends leaves undecided what waits, if all receivers of the pipeline are `kafka`. The
  next owner of the partition reads it again and decides on the whole trace.
- A message that cannot be read is counted, and skipped. With `message_marking: { after: true }` its
  partition stands still.
- With `message_marking: { after: true }` what exporters give up or refuse for good is not committed
  either. `error_backoff` reads what was given up again; without it the partition stands still until
  it is assigned anew. The default commits it, as lost; it is counted. The Collector's default
  commits messages when it reads them; here that is never done.
- What the pipeline has no room for waits in the receiver, and its partition is paused. So is one of
  which 1 GiB of messages are not settled. 16 MiB are fetched ahead for each partition.

What a crash can change:

- After a crash or a rebalance the next owner may read a part of a trace that was decided and
  delivered before. It decides on that part alone. A policy for which a part of a trace is sampled
  only if the whole is (a status, an attribute, a latency, a probability) adds nothing but
  duplicates. One that counts, limits a rate or inverts a match may sample such a part.
- Spans that come after their trace was decided follow the decision of their member. The next owner
  of the partition does not know it.

The exporter:

- `partition_traces_by_id: true` writes a message for each trace of a batch. Its key is the trace's
  identifier in hexadecimal, as the Collector writes it, and the partitioner is the Collector's too:
  both may write to one topic.
- A batch that is larger than `max_message_bytes` is divided into several messages. A single span
  that is larger is refused, and counted.
- A message counts as sent when the broker has acknowledged it. With `required_acks: 1` (the
  default, as in the Collector) a message is lost with the leader that alone has it; `all` is safe.
- After a failure only the messages that failed are sent again.

Metrics are the Collector's, with the label `receiver` or `exporter`. Only those of brokers have the
label `node_id`, and none has `server.address`. They are `otelcol_kafka_receiver_records`,
`_bytes_uncompressed`, `_current_offset`, `_offset_lag`, `_partition_start`, `_partition_close` and
`_unmarshal_failed_spans` (messages: how many spans one has is not known),
`otelcol_kafka_exporter_records` and `_bytes_uncompressed`, `otelcol_kafka_broker_connects` and
`_closed`; `_messages` is the old name of `_records`. Missing are latencies, throttling, and bytes
as brokers count them.
";

const REDACTION: &str = "
## What `redaction` looks at

- Attributes of resources, scopes, spans, events of spans, data points and log records, and the bodies of log records at any depth. As in the
  Collector, it does not look at names, links of spans, exemplars and metadata of metrics.
- An ignored key comes first, then keys that are not allowed, then allowed values, then blocked keys, then blocked values. In bodies, blocked keys
  come before allowed values, and keys are compared at each level by themselves.
- Without `redact_all_types` an attribute that is no text counts as an empty text. In bodies all types are looked at.
- A summary of one record names keys of 64 KiB at most; of further ones only the count is told. A request whose masked values take more than
  128 MiB is refused.
";

const STREAMS: &str = "
## Metrics that are remembered

- `cumulativetodelta` remembers the last data point of each stream: 1048576 streams and 256 MiB of buckets at most. Data points of
  further streams are dropped, with the reason `limit` in `otelcol_cumulativetodelta_datapoints_dropped`.
- `deltatocumulative` remembers the sum of each stream, within the same bounds. Data points that are not later than the one before, or
  whose start time is before that of the sum, are dropped: see `error` in `otelcol_deltatocumulative_datapoints`.
- A stream is told by its resource, scope (with its schema URL), name, unit, kind and attributes, and that of `cumulativetodelta` by its start time
  too. It is forgotten when no data point has come for `max_staleness` or `max_stale`, by the time of the collector.
- A batch that the next component does not take is forgotten again, so that it may be sent once more. Data points must come in their order: one
  that is less than the last one counts as a reset.
- As in the Collector, the first data point with `initial_value: keep` has no start time, and a histogram that was reset is passed on whole.
";

const CONNECTORS: &str = "
## Connectors

A connector is the exporter of some pipelines and the receiver of others, of the same signal or of another one:

```yaml
receivers:
  otlp: { protocols: { grpc: } }
connectors:
  count:
    spans:
      checkout.errors:
        description: failed spans by route
        conditions: ['status.code == STATUS_CODE_ERROR']
        attributes: [ { key: http.route, default_value: unknown } ]
exporters:
  otlp: { endpoint: 'tempo:4317' }
  prometheus: { endpoint: '0.0.0.0:8889' }
service:
  pipelines:
    traces: { receivers: [otlp], exporters: [otlp, count] }
    metrics: { receivers: [count], exporters: [prometheus] }
```

- The signals that each kind takes and gives are in the table at the top. A connector that is used as an exporter must be the receiver of a
  started pipeline of a signal that it gives, and the other way round.
- A batch is taken by a connector when the pipelines behind it have room for what it makes of it. So a pipeline that is full holds up the
  senders of what is counted, as an exporter does.
- Records that a connector makes are accepted in the account of their signal. What they were made of counts as exported when they are
  taken; a journal keeps it, and a sender that waits is answered, when they are delivered. After a crash it may be counted twice.
- `count` makes deltas for each resource of a batch, from the first to the last time of its records. Where a name is written for a kind of
  record, its default metric is not there. A condition that fails refuses the batch.
- `span_metrics` counts a batch when it is taken. Its metrics are handed on every `metrics_flush_interval`, and once more when the
  collector ends. Cumulative metrics that a pipeline has no room for are replaced by the next ones; deltas are added up until there is
  room. What was counted is lost when the process is killed.
- `span_metrics` holds 200000 series and 256 MiB of their attributes and buckets at most; further ones become a series with
  `otel.metric.overflow`. Resources without `service.name` are not counted, as in the Collector.
- `exceptions` counts the events of spans that are called `exception`, or makes log records of them: use it in pipelines of metrics, of
  logs or of both. Its counts are handed on within a second of spans, and have the bounds of those of `span_metrics`. Log records of one
  request have 128 MiB at most: a request of more is refused. An attribute of a log record keeps its type (in the Collector, all
  dimensions become texts).
- `servicegraph` pairs the span of a client with that of the server whose parent it is, when their batches are taken; links of spans are not
  followed. Requests that wait for a span have 64 MiB of names and attributes at most. Series have the bounds of those of `span_metrics`, and are
  forgotten after 15 minutes without a request. Spans of one trace must come to one collector. Requests that wait when the collector ends are not
  counted.
- `round_robin` gives a batch to the next pipeline, whether it has room or not: a sender that is refused tries the one after it.
";

const COLUMNS: &str = "| option | takes | default | state | |\n|---|---|---|---|---|";

/// One row a kind.
fn summary(out: &mut String) {
    let _ = writeln!(out, "\n| kind | component | signals | |\n|---|---|---|---|");
    for role in Role::ALL {
        for entry in role.entries() {
            let signals = signals(entry);
            let state = match entry.parse {
                Parse::LeftOut(reason) => format!("left out with a warning: {reason}"),
                Parse::Refused(reason) => format!("refused: {reason}"),
                _ => entry.doc.to_owned(),
            };
            let _ = writeln!(
                out,
                "| {role} | {} | {} | {} |",
                names(entry),
                signals.join(", "),
                cell(&state)
            );
        }
    }
}

/// The signals of a kind; of a connector also what it makes of each.
pub(super) fn signals(entry: &Entry) -> Vec<String> {
    match entry.parse {
        Parse::Connector { pairs, .. } => {
            let words = pairs.iter().map(|(takes, gives)| {
                if takes == gives {
                    takes.to_string()
                } else {
                    format!("{takes} to {gives}")
                }
            });
            words.collect()
        }
        _ => entry.carries.iter().map(Signal::to_string).collect(),
    }
}

fn names(entry: &Entry) -> String {
    let names = entry.names.iter().map(|name| match name.old {
        None => format!("`{}`", name.text),
        Some(_) => format!("`{}` (old)", name.text),
    });
    names.collect::<Vec<_>>().join(", ")
}

fn component(out: &mut String, role: Role, entry: &Entry) {
    // Options of what is left out do nothing.
    if entry.options.is_empty() || matches!(entry.parse, Parse::LeftOut(_)) {
        return;
    }
    let title = format!("{role} {}", names(entry));
    let _ = writeln!(out, "\n## {title}\n\n{COLUMNS}");
    options(out, (&title, entry.options), "");
}

/// Tables that many options have, told once.
const SHARED: &[(&str, Table)] = &[
    ("TLS of a server", tls::SERVER),
    ("TLS of a client", tls::CLIENT),
    ("A sending queue", queue::TABLE),
    ("Retries", retry::TABLE),
    ("A change of attributes", action::TABLE),
    ("A match of spans", matching::TABLE),
    ("A match of metrics", records::METRICS),
    ("A match of log records", records::LOGS),
    ("A policy", tail_sampling::POLICY),
    ("A metric that counts", count::METRIC),
    ("A dimension", dimension::DIMENSION),
];

/// The title of a table that is told once.
fn shared(table: Table) -> Option<&'static str> {
    let same = |other: Table| {
        all(table)
            .map(|opt| opt.name)
            .eq(all(other).map(|opt| opt.name))
    };
    let found = SHARED.iter().find(|(_, other)| same(other));
    found.map(|(title, _)| *title)
}

/// Whether an option holds policies within a policy: their options are those of `policies`.
fn is_sub_policy(opt: &Opt) -> bool {
    opt.name.ends_with("_sub_policy")
}

/// The test that fails when an option is not read: see its head.
const PROOFS: &str = include_str!("proofs.tsv");

/// The tests of options: the title of the table, the option, and the test, where there is one.
pub fn proofs() -> impl Iterator<Item = (&'static str, &'static str, Option<&'static str>)> {
    let lines = PROOFS.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| {
        let mut parts = line.split('\t');
        let (title, option, test) = (parts.next()?, parts.next()?, parts.next()?);
        Some((title, option, Some(test).filter(|test| *test != "-")))
    })
}

/// Rows of a table and of those below it.
fn options(out: &mut String, (title, table): (&str, Table), prefix: &str) {
    for opt in all(table) {
        let path = format!("{prefix}{}", opt.name);
        row(out, opt, (title, &path));
        // Options within one that is refused or has no effect do what it does.
        let is_told = is_sub_policy(opt) || below(opt).is_some_and(|table| shared(table).is_some());
        if is_told || matches!(opt.state, State::Refused(_) | State::NoEffect(_)) {
            continue;
        }
        match opt.kind {
            Kind::Section(table) | Kind::Maybe(table) => {
                options(out, (title, table), &format!("{path}."));
            }
            Kind::Sections(table) | Kind::TextsOrSections(table) | Kind::Named(table) => {
                options(out, (title, table), &format!("{path}[]."));
            }
            _ => {}
        }
    }
}

/// The options within an option.
fn below(opt: &Opt) -> Option<Table> {
    match opt.kind {
        Kind::Section(table)
        | Kind::Maybe(table)
        | Kind::Sections(table)
        | Kind::Named(table)
        | Kind::TextsOrSections(table) => Some(table),
        _ => None,
    }
}

fn row(out: &mut String, opt: &Opt, (title, path): (&str, &str)) {
    let is_untested = proofs().any(|proof| proof == (title, path, None));
    let (state, more) = match opt.state {
        State::Works if is_untested => ("untested", None),
        State::Works => ("works", None),
        State::Deprecated(instead) if is_untested => ("untested, old", Some(instead)),
        State::Deprecated(instead) => ("works, old", Some(instead)),
        State::NoEffect(reason) => ("no effect", Some(reason)),
        State::Refused(reason) => ("refused", Some(reason)),
    };
    let default = match (opt.rank, opt.default) {
        (Rank::Required, _) => "required".to_owned(),
        (_, "") => String::new(),
        (_, default) => format!("`{default}`"),
    };
    let doc = match more {
        None => opt.doc.to_owned(),
        Some(more) => format!("{}: {more}", opt.doc),
    };
    let doc = match below(opt).and_then(shared) {
        Some(title) => {
            let anchor = title.to_lowercase().replace(' ', "-");
            format!("{doc}; see [{title}](#{anchor})")
        }
        None if is_sub_policy(opt) => format!("{doc}; options as those of `policies`"),
        None => doc,
    };
    let _ = writeln!(
        out,
        "| `{path}` | {} | {default} | {state} | {} |",
        cell(&takes(opt.kind)),
        cell(&doc)
    );
}

/// What an option takes, in words.
fn takes(kind: Kind) -> String {
    let words = |words: &[&str]| {
        let words = words.iter().filter(|word| !word.is_empty());
        let words: Vec<String> = words.map(|word| format!("`{word}`")).collect();
        words.join(", ")
    };
    match kind {
        Kind::Flag => "true or false".to_owned(),
        Kind::Int(low, high) => match (low, high) {
            (i64::MIN, i64::MAX) => "a whole number".to_owned(),
            (low, i64::MAX) => format!("a whole number from {low}"),
            (low, high) => format!("{low} to {high}"),
        },
        Kind::Ints(low, high) => format!("a list of numbers, {low} to {high}"),
        Kind::Number(low, high) if high == f64::MAX => format!("a number from {low}"),
        Kind::Number(low, high) => format!("a number from {low} to {high}"),
        Kind::Duration => "a duration".to_owned(),
        Kind::Durations => "a list of durations".to_owned(),
        Kind::Text => "text".to_owned(),
        Kind::Word(list) => words(list),
        Kind::WordAnyCase(list) => format!("{}, in any case", words(list)),
        Kind::Texts => "a list of texts".to_owned(),
        Kind::Words(list) => format!("a list of {}", words(list)),
        Kind::Pairs => "a map of texts".to_owned(),
        Kind::Section(_) => "options".to_owned(),
        Kind::Maybe(_) => "options, on once written".to_owned(),
        Kind::Sections(_) => "a list of options".to_owned(),
        Kind::Named(_) => "options, by names".to_owned(),
        Kind::TextsOrSections(_) => "a list of texts, or of options".to_owned(),
        Kind::Any => String::new(),
    }
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

const OTTL: &str = "
## OTTL

The language of conditions (`tail_sampling`, `filter`, `transform`) and statements (`transform`): `==`, `!=`, `<`, `<=`, `>`, `>=`,
`and`, `or`, `not`, `+ - * /`, texts, numbers, bytes (`0x0a`), booleans, `nil`, enums (`SPAN_KIND_SERVER`, `STATUS_CODE_ERROR`,
`METRIC_DATA_TYPE_SUM`, `AGGREGATION_TEMPORALITY_DELTA`, `SEVERITY_NUMBER_WARN`, `FLAG_NO_RECORDED_VALUE`), lists, maps, keys that are paths or calls (`attributes[attributes[\"k\"]]`), arguments by name. A regular expression must be written out.

`transform` and `filter` can read client metadata. `otelcol.client.metadata[\"x\"]` is the list of values of a header field (`[0]` is the first) if the receiver has
`include_metadata: true`. `otelcol.client.addr` is the client's address without the port. `otelcol.client.auth.attributes[\"x\"]` is an attribute that the authenticator set.
Processors that merge requests, such as `batch` and `tail_sampling`, drop client metadata.

Paths say what they are of (`resource.`, `scope.` or `instrumentation_scope.`, `span.`, `spanevent.`, `metric.`, `datapoint.`, `exemplar.`, `log.`), or
are of the context. A context reads and writes what stands around it. `status`, `positive` and `negative` as a whole are no values; `events`, `links`, `data_points`,
`exemplars` and `quantile_values` as a whole can be counted (`Len`) and be compared with `nil`, but not be written. `metric.data_points` is of the context
`metric` only, and `datapoint.exemplars` of the context `datapoint`. `schema_url` of a resource or scope can be read and written, but not in `tail_sampling`. What fails under `propagate` has its batch refused for good.
A path to a field that a kind of metric or data point does not have is `nil`; writing it does nothing. `set(metric.type, ...)` does nothing, as in the
Collector.

Editors of metrics that make another metric append it to its scope, and later statements see it too: a `where` keeps `copy_metric` from copying its copies.
No more than 65536 metrics and 64 MiB a request are made this way. In the context `datapoint`, `convert_summary_count_val_to_sum` and
`convert_summary_sum_val_to_sum` make one metric of all data points; the Collector makes such a metric for each of them. `aggregate_on_attributes` refuses
summaries; `count` is the number of data points, of a single one too; zero counts of exponential histograms are added. The bounds of
`convert_exponential_histogram_to_histogram` must be in ascending order.
There is no operator `in`, as in the Collector: `ContainsValue` asks the same. A format of `Time` and `FormatTime` means what it means there; `%o` and
formats that Go would misread are refused. `Time` reads names in English. Time zones come from the system. `ExtractGrokPatterns` knows the default
patterns of go-grok; those for single products must be given in `pattern_definitions`. `ParseXML` and `ParseSimplifiedXML` take up to 24 elements inside each other, and
65536 elements, attributes and texts.
Of a resource or scope that is larger than 16 KiB, no more than 512 MiB a request are read with its records: more is refused.
";

/// What OTTL has, and what it lacks.
fn ottl(out: &mut String) {
    let list = |names: Vec<&'static str>| {
        let mut names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        names.sort_unstable();
        names.join(", ")
    };
    let editors = ottl::editors().map(|editor| editor.name);
    let _ = write!(
        out,
        "{OTTL}\n- editors: {}\n- functions: {}\n- refused by name: {}\n",
        list(editors.collect()),
        list(ottl::function_names().collect()),
        list(ottl::MISSING.iter().map(|(name, _)| *name).collect()),
    );
}

/// Bounds of one configuration; what is beyond one is an error.
fn limits(out: &mut String) {
    let rows = [
        ("files, included ones too", source::FILES_MAX),
        ("bytes of a file", source::FILE_BYTES_MAX),
        ("levels of maps and lists", source::DEPTH_MAX),
        ("values, aliases written out", source::NODES_MAX),
        ("expansions", source::EXPANSIONS_MAX),
        (
            "expansions of one text, one after the other",
            source::EXPANSION_ROUNDS_MAX,
        ),
        ("bytes of expansions", source::EXPANDED_BYTES_MAX),
        (
            "bytes of a compiled regular expression",
            pattern::PATTERN_BYTES_MAX,
        ),
        ("messages", diagnostic::DIAGNOSTICS_MAX),
    ];
    let _ = writeln!(
        out,
        "\n## Limits\n\n| of one configuration | at most |\n|---|---|"
    );
    for (what, limit) in rows {
        let _ = writeln!(out, "| {what} | {limit} |");
    }
}

/// Kinds that others have.
fn lacking(out: &mut String) {
    let _ = writeln!(
        out,
        "\n## Not built in\n\nKnown by name: told as missing where a pipeline has one, and not mistaken for a slip.\n"
    );
    for role in Role::ALL {
        let mut names: Vec<&str> = known::names(role).to_vec();
        names.sort_unstable();
        names.dedup();
        let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        let _ = writeln!(out, "- {}: {}", role.key(), names.join(", "));
    }
}
