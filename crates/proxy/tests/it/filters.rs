//! Lives whose streams are traced: the files of their filters, and what must hold of everything
//! that comes out.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex};

use opentelemetry_proto::tonic::logs::v1::ScopeLogs;
use opentelemetry_proto::tonic::trace::v1::ScopeSpans;
use prost::Message as _;
use spangate_proxy::{FilterExport, RuntimeConfig};
use telemetry::account::{Account, Loss, Signal};
use telemetry::metrics::{Instruments, Shared, Temporality};
use telemetry::program::Event;
use telemetry::queue::{Queue, QueueLimits};

/// An `otel.yml`; its exporters are never started.
const SETTINGS: &str = "
exporters: { e: { type: memory }, o: { type: ostream } }
processors: { p: { type: single } }
samplers: { half: { type: trace_id_ratio_based, ratio: 0.5 } }
signals:
  traces:
    default: { scope_name: s, exporters: e, processors: p }
    half: { scope_name: s, exporters: e, processors: p, samplers: half }
  logs:
    default: { scope_name: s, exporters: o, processors: p }
    half: { scope_name: s, exporters: o, processors: p }
  metrics:
    default: { scope_name: s, exporters: e }
    half: { scope_name: s, exporters: e }
";

/// What files of filters hold; every other file is there as little as in any life.
pub fn file(name: &str) -> Result<Vec<u8>, String> {
    match name {
        "otel.cfg" => Ok(text().into_bytes()),
        "otel.yml" => Ok(SETTINGS.into()),
        _ => Err("it is not there".into()),
    }
}

/// Filters for every event: `all` decides at the end of a stream, `front` hands its context on by
/// fields, `back` takes it and follows no stream without, `inner` begins with its backend, `raw`
/// counts and measures.
fn text() -> String {
    let policies = " sampling failed status 400-599\n sampling torn abort\n sampling late timeout\n \
        sampling again retry\n sampling slow duration 50ms\n sampling new first-seen src max 3\n \
        sampling few rate 1 key status\n sampling share probability 30%\n";
    let all = filter(
        "all",
        "",
        policies,
        "span root root\n baggage who src\n",
        "",
    );
    let front = filter(
        "front",
        " half",
        "",
        "span root root\n baggage b path\n",
        "",
    );
    let back = filter(
        "back",
        "",
        " option require-context\n option hard-errors\n",
        "span root parent ctx link ctx\n",
        " extract ctx use-headers\n set-var-ctx txn.id ctx trace-id\n",
    );
    let inner = filter("inner", "", policies, "span root root\n", "");
    let raw = filter("raw", "", "", "span root root kind internal\n", "");
    [all, front, back, inner, raw].concat()
}

/// A filter whose scopes do a little of everything at every event.
fn filter(id: &str, context: &str, lines: &str, root: &str, extract: &str) -> String {
    let first = match id {
        "back" => Event::BackendHttpRequest,
        "inner" => Event::BackendSet,
        _ => Event::StreamStart,
    };
    let names: Vec<String> = (0..Event::ALL.len()).map(|at| format!("s{at}")).collect();
    let mut text = format!(
        "[{id}]\notel-instrumentation i\n config otel.yml{context}\n scopes {}\n groups asked answered\n{lines}",
        match id {
            // What a filter with require-context may not have.
            "back" => of(&names, |event| !event.is_frontends()
                && !matches!(event, Event::ClientSessionStart | Event::IdleTimeout)),
            _ => of(&names, |_| true),
        }
    );
    text.push_str("otel-group asked\n scopes g1\notel-group answered\n scopes g2 g1\n");
    text.push_str("otel-scope g1\n span group parent root\n attribute n rand(9)\n log-record warn span group str(group)\n finish group\n");
    text.push_str("otel-scope g2\n span answer parent root kind client\n status ok str(fine)\n");
    for (at, event) in Event::ALL.iter().enumerate() {
        text.push_str(&format!("otel-scope s{at}\n"));
        if *event == first {
            text.push_str(&format!("{extract} {root}"));
        }
        text.push_str(&lines_of(id, at, *event));
    }
    text
}

fn of(names: &[String], holds: impl Fn(Event) -> bool) -> String {
    let chosen = Event::ALL
        .iter()
        .zip(names)
        .filter(|(event, _)| holds(**event));
    let chosen: Vec<&str> = chosen.map(|(_, name)| name.as_str()).collect();
    chosen.join(" ")
}

fn lines_of(id: &str, at: usize, event: Event) -> String {
    // A span that is still open is used again: idle streams have it often.
    let mut text = format!(
        " span e{at} parent root\n attribute at int({at})\n attribute path path if {{ rand(2) eq 0 }}\n \
         attribute path str(none)\n event turn k rand(5)\n event turn src src\n baggage b{at} rand(100)\n"
    );
    let carried = match (id, event) {
        ("front", Event::FrontendHttpRequest) => " inject ctx use-headers\n",
        ("all", Event::HttpProcessRequest | Event::HttpResponse) => {
            " inject - use-headers use-vars\n"
        }
        ("all", Event::BackendSet) => " inject v use-vars\n extract v use-vars\n",
        _ => "",
    };
    text.push_str(carried);
    match at % 5 {
        0 => text.push_str(" link root e1\n exception Oops message path attr k int(1)\n"),
        1 => text.push_str(&format!(
            " log-record info id 7 event seen span e{at} attr n int({at}) path\n"
        )),
        2 => text.push_str(
            " status error str(why) if { rand(2) eq 0 }\n set-var txn.seen str(x) int(5)\n",
        ),
        3 => text.push_str(
            " instrument cnt_int calls value int(1)\n instrument update calls attr k rand(3)\n",
        ),
        _ => text.push_str(" set-var-ctx txn.parent root traceparent\n unset-var txn.parent\n"),
    }
    match event {
        Event::HttpWaitResponse => text.push_str(" finish *req*\n"),
        Event::IdleTimeout => text.push_str(" idle-timeout 300ms\n"),
        Event::ServerSessionStart => text.push_str(" otel-stop if { rand(20) eq 0 }\n"),
        _ => text.push_str(&format!(" finish e{}\n", at.saturating_sub(2))),
    }
    let condition = match at % 7 {
        3 => " if { rand(9) gt 0 }",
        5 => " unless { rand(9) eq 0 }",
        _ => "",
    };
    text + &format!(" otel-event {}{condition}\n", event.name())
}

/// By configuration and filter: spans that were encoded in all lives.
static ENCODED: Mutex<BTreeMap<(&str, usize), u64>> = Mutex::new(BTreeMap::new());

/// Filters that recorded nothing in any life, though they were there.
pub fn idle() -> Vec<(&'static str, usize)> {
    let encoded = ENCODED.lock().expect("no panic holds it");
    let idle = encoded.iter().filter(|(_, spans)| **spans == 0);
    idle.map(|(filter, _)| *filter).collect()
}

/// Where the filters of a life export to.
#[derive(Debug, Default)]
pub struct Exports {
    setup: &'static str,
    /// By filter: a queue for spans, one for log records.
    queues: Vec<[Arc<Queue>; 2]>,
    metrics: Vec<Arc<Shared>>,
}

impl Exports {
    /// Connects all filters. `batch_records`: how many records a worker hands over at once.
    pub fn connect(
        setup: &'static str,
        runtime_config: &mut RuntimeConfig,
        batch_records: u32,
    ) -> Exports {
        let mut exports = Exports {
            setup,
            ..Exports::default()
        };
        for number in 0..runtime_config.config.otel.len() {
            let limits = QueueLimits {
                records_max: 1 << 20,
                bytes_max: 1 << 30,
            };
            let queue = |signal| {
                Arc::new(Queue::new(
                    signal,
                    limits,
                    Arc::new(Account::default()),
                    || {},
                ))
            };
            let queues = [queue(Signal::Traces), queue(Signal::Logs)];
            let filter = &runtime_config.config.otel[number];
            let instruments = filter.program.instruments.clone();
            let instruments = Arc::new(Instruments::new(instruments, 7));
            let shared = Arc::new(Shared::new(
                Arc::clone(&instruments),
                Temporality::Cumulative,
                1,
            ));
            let traces = filter.settings.traces.as_ref();
            let export = FilterExport {
                spans: vec![Arc::clone(&queues[0])],
                logs: vec![Arc::clone(&queues[1])],
                sampler: traces.map(|one| (&one.sampler).into()).expect("traces"),
                batch_records,
                instruments,
                metrics: vec![Arc::clone(&shared)],
                ..FilterExport::default()
            };
            runtime_config.export_filter(number, export);
            exports.queues.push(queues);
            exports.metrics.push(shared);
        }
        exports
    }

    /// After the last worker has finished.
    pub fn check(&self) -> Result<(), String> {
        for (filter, [spans, logs]) in self.queues.iter().enumerate() {
            let spans = (spans.as_ref(), spans_hold(spans)?);
            let mut all = ENCODED.lock().expect("no panic holds it");
            *all.entry((self.setup, filter)).or_default() += spans.1;
            drop(all);
            let logs = (logs.as_ref(), logs_hold(logs)?);
            for (queue, encoded) in [spans, logs] {
                let account = &queue.account;
                let lost: u64 = Loss::ALL.iter().map(|why| account.lost(*why)).sum();
                let (started, signal) = (account.started(), queue.signal.name());
                let quiet = account.lost(Loss::QueueFull) + account.lost(Loss::Shutdown);
                if started != encoded + lost || quiet > 0 {
                    return Err(format!(
                        "filter {filter}: {started} {signal} began, {encoded} are encoded, {lost} lost"
                    ));
                }
            }
        }
        let mut bytes = Vec::new();
        for shared in &self.metrics {
            shared.collect(2, &mut bytes);
        }
        Ok(())
    }
}

/// All spans are whole: of one time, in their trace; how many they are.
fn spans_hold(queue: &Queue) -> Result<u64, String> {
    let mut spans = Vec::new();
    while let Some(batch) = queue.take() {
        let scope = ScopeSpans::decode(&batch.bytes[..]).map_err(|error| error.to_string())?;
        if scope.spans.len() != batch.records as usize {
            return Err(format!("a batch of {} spans: {scope:?}", batch.records));
        }
        spans.extend(scope.spans);
    }
    let ids: HashSet<(&[u8], &[u8])> = spans
        .iter()
        .map(|span| (&span.trace_id[..], &span.span_id[..]))
        .collect();
    if ids.len() != spans.len() {
        return Err("two spans have one identity".into());
    }
    for span in &spans {
        let local = span.flags & 0x200 == 0 && !span.parent_span_id.is_empty();
        let has_parent = ids.contains(&(&span.trace_id[..], &span.parent_span_id[..]));
        let fault = if span.end_time_unix_nano < span.start_time_unix_nano {
            "it ends before it begins"
        } else if local && !has_parent {
            "its parent is not there"
        } else if span.name.is_empty() || span.kind == 0 {
            "it is not whole"
        } else {
            continue;
        };
        return Err(format!("{fault}: {span:?}"));
    }
    Ok(spans.len() as u64)
}

fn logs_hold(queue: &Queue) -> Result<u64, String> {
    let mut count = 0;
    while let Some(batch) = queue.take() {
        let scope = ScopeLogs::decode(&batch.bytes[..]).map_err(|error| error.to_string())?;
        if scope.log_records.len() != batch.records as usize {
            return Err(format!("a batch of {} records: {scope:?}", batch.records));
        }
        count += u64::from(batch.records);
    }
    Ok(count)
}
