//! A collector that is killed repeatedly under load loses no acknowledged data.

use crate::common;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::net::TcpStream;
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value::Value};
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use prost::Message as _;
use testing::Random;

use common::collector::Running;
use common::http::Client;
use common::origin::{Origin, ok};
use common::{DEADLINE, Folder, join, spawn};

/// Kills per test; there are two tests.
const KILLS: u64 = 25;
/// Number of concurrent senders.
const SENDERS: u64 = 3;
/// Traces of a request: the number of new ones, and the most continued ones.
const TRACES: u64 = 8;
/// A process is killed after fewer requests than this.
const REQUESTS_MAX: u64 = 400;
/// Or it is killed at most this many milliseconds after its start.
const BEGIN_MS_MAX: u64 = 60;
/// Pause before refused data is sent again.
const AGAIN: Duration = Duration::from_millis(5);

/// A trace has two spans, which are sent with two requests: (sender, trace), and the number of the
/// span.
type SpanKey = ((u64, u64), u8);

/// The received spans, with the number of times each arrived.
type Came = Arc<Mutex<BTreeMap<SpanKey, u64>>>;

/// Receives the data that the collector sends.
fn sink(came: &Came, told: Sender<()>) -> Origin {
    let (came, told) = (Arc::clone(came), Mutex::new(told));
    Origin::start(move |message| {
        let request = ExportTraceServiceRequest::decode(&message.body[..]).expect("a request");
        let scopes = request.resource_spans.into_iter();
        let spans = scopes.flat_map(|resource| resource.scope_spans);
        let mut came = came.lock().unwrap();
        for span in spans.flat_map(|scope| scope.spans) {
            let number =
                |at: usize| u64::from_be_bytes(span.trace_id[at..at + 8].try_into().unwrap());
            let key = ((number(0), number(8)), span.span_id[0]);
            *came.entry(key).or_default() += 1;
        }
        drop(came);
        // At the end, no receiver exists.
        let _ = told.lock().unwrap().send(());
        ok("")
    })
}

fn is_wanted(trace: u64) -> bool {
    trace.is_multiple_of(3)
}

/// A sender. Its acknowledged data outlives the collector, as it would in an application.
struct Load {
    sender: u64,
    random: Random,
    next: u64,
    /// Traces whose second span has not been sent yet.
    open: Vec<u64>,
    acknowledged: BTreeSet<SpanKey>,
}

impl Load {
    fn new(sender: u64, seed: u64) -> Load {
        Load {
            sender,
            random: Random::new(seed * 1000 + sender + 1),
            next: 0,
            open: Vec::new(),
            acknowledged: BTreeSet::new(),
        }
    }

    fn span(&self, trace: u64, which: u8) -> Span {
        let text = |key: &str, value: String| KeyValue {
            key: key.to_owned(),
            value: Some(AnyValue {
                value: Some(Value::StringValue(value)),
            }),
            ..KeyValue::default()
        };
        let wanted = if is_wanted(trace) { "yes" } else { "no" };
        Span {
            trace_id: [self.sender.to_be_bytes(), trace.to_be_bytes()].concat(),
            span_id: [&[which][..], &trace.to_be_bytes()[1..]].concat(),
            name: "work".to_owned(),
            start_time_unix_nano: 1,
            end_time_unix_nano: 2,
            attributes: vec![
                text("wanted", wanted.to_owned()),
                text("filling", "x".repeat(self.next as usize % 500)),
            ],
            ..Span::default()
        }
    }

    /// The spans of the next request.
    fn spans(&mut self) -> Vec<(u64, u8)> {
        let mut spans: Vec<(u64, u8)> = (0..TRACES).map(|more| (self.next + more, 1)).collect();
        self.next += TRACES;
        for _ in 0..TRACES.min(self.open.len() as u64) {
            let at = self.random.below(self.open.len());
            spans.push((self.open.swap_remove(at), 2));
        }
        spans
    }

    /// Sends until the collector has ended; reports each acknowledgement.
    fn run(&mut self, address: &str, said: &Sender<()>) {
        let Ok(stream) = TcpStream::connect(address) else {
            return;
        };
        let mut client = Client::on(stream);
        loop {
            let spans = self.spans();
            match self.send(&mut client, &spans) {
                Some(()) => {
                    let _ = said.send(());
                }
                None => {
                    // It is unknown whether the data arrived. Traces that were begun continue with
                    // the next process.
                    let open = spans.iter().filter(|(_, which)| *which == 2);
                    self.open.extend(open.map(|(trace, _)| *trace));
                    return;
                }
            }
            for (trace, which) in spans {
                self.acknowledged.insert(((self.sender, trace), which));
                if which == 1 {
                    self.open.push(trace);
                }
            }
        }
    }

    /// None if the collector has ended.
    fn send(&self, client: &mut Client, spans: &[(u64, u8)]) -> Option<()> {
        let spans = spans.iter().map(|(trace, which)| self.span(*trace, *which));
        let request = ExportTraceServiceRequest {
            resource_spans: vec![ResourceSpans {
                scope_spans: vec![ScopeSpans {
                    spans: spans.collect(),
                    ..ScopeSpans::default()
                }],
                ..ResourceSpans::default()
            }],
        };
        let body = request.encode_to_vec();
        let head = format!(
            "POST /v1/traces HTTP/1.1\r\nhost: x\r\ncontent-type: application/x-protobuf\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        let request = [head.into_bytes(), body].concat();
        loop {
            client.reader.wire.write_all(&request).ok()?;
            match client.response()?.status {
                200 => return Some(()),
                // The data of the last process has priority.
                429 | 503 => std::thread::park_timeout(AGAIN),
                other => panic!("status {other}"),
            }
        }
    }
}

/// The collector's settings; in one of the two tests, the process waits for its disk.
struct Setting<'a> {
    policies: &'a str,
    queue: &'a str,
    seed: u64,
}

impl Setting<'_> {
    fn yaml(&self, folder: &Folder, sink: &Origin, life: u64) -> String {
        let Setting {
            policies, queue, ..
        } = self;
        let storage = folder.path("storage");
        format!(
            "receivers: {{ otlp: {{ protocols: {{ http: {{ endpoint: '127.0.0.1:0' }} }} }} }}
processors:
  batch: {{ timeout: 10ms }}
  tail_sampling: {{ storage: file_storage, decision_wait: 50ms, num_shards: 2, policies: [ {policies} ] }}
exporters:
  otlphttp:
    endpoint: 'http://{}'
    compression: none
    sending_queue: {{ {queue} }}
    retry_on_failure: {{ initial_interval: 10ms, max_interval: 50ms, max_elapsed_time: 0s }}
extensions: {{ file_storage: {{ directory: '{}', fsync: {} }} }}
service:
  extensions: [file_storage]
  telemetry: {{ metrics: {{ level: none }} }}
  pipelines: {{ traces: {{ receivers: [otlp], processors: [batch, tail_sampling], exporters: [otlphttp] }} }}
",
            sink.at,
            storage.display(),
            life % 2 == 1,
        )
    }

    /// Runs collectors that are killed, and a last one that ends after all expected spans have
    /// arrived. Returns the acknowledged and the received spans.
    fn run(&self) -> (BTreeSet<SpanKey>, BTreeMap<SpanKey, u64>) {
        let (came, (told, hears)) = (Came::default(), mpsc::channel());
        let (folder, sink) = (Folder::new(), sink(&came, told));
        let mut random = Random::new(self.seed);
        let mut loads: Vec<Load> = (0..SENDERS)
            .map(|sender| Load::new(sender, self.seed))
            .collect();
        for life in 0..KILLS {
            let collector = Running::start(&self.yaml(&folder, &sink, life));
            if random.below(4) == 0 {
                // Killed during its start.
                let some = Duration::from_millis(random.number_below(BEGIN_MS_MAX));
                let _ = collector.lines.recv_timeout(some);
                kill(collector);
            } else {
                loads = live(collector, loads, random.number_below(REQUESTS_MAX));
            }
        }
        let acknowledged = loads.into_iter().flat_map(|load| load.acknowledged);
        let acknowledged: BTreeSet<SpanKey> = acknowledged.collect();
        let mut last = Running::start(&self.yaml(&folder, &sink, KILLS));
        loop {
            let missing = missing(&acknowledged, &came.lock().unwrap());
            if missing.is_empty() {
                break;
            }
            let more = hears.recv_timeout(DEADLINE);
            more.unwrap_or_else(|_| panic!("{} are lost: {missing:?}", missing.len()));
        }
        assert!(common::sys::signal(last.child.id(), libc::SIGTERM));
        let account = last.line(" accepted = ");
        assert!(
            account.contains(" 0 failed + 0 rejected + 0 lost at the end"),
            "{account}"
        );
        assert!(last.child.wait().expect("its end").success());
        let came = std::mem::take(&mut *came.lock().unwrap());
        assert!(acknowledged.len() > 2000, "{}", acknowledged.len());
        (acknowledged, came)
    }
}

/// Runs until the collector has ended: it is killed after `requests` acknowledgements.
fn live(collector: Running, loads: Vec<Load>, requests: u64) -> Vec<Load> {
    let address = collector.address("http");
    let (said, hears) = mpsc::channel();
    let sending: Vec<_> = loads
        .into_iter()
        .map(|mut load| {
            let (address, said) = (address.clone(), said.clone());
            spawn(move || {
                load.run(&address, &said);
                load
            })
        })
        .collect();
    for _ in 0..requests {
        hears.recv_timeout(DEADLINE).expect("an acknowledgement");
    }
    kill(collector);
    let loads = sending.iter().map(|load| join(load, "its end is seen"));
    loads.collect()
}

fn kill(mut collector: Running) {
    collector.child.kill().expect("it is killed");
    collector.child.wait().expect("it ends");
}

/// Expected spans that did not arrive.
fn missing(acknowledged: &BTreeSet<SpanKey>, came: &BTreeMap<SpanKey, u64>) -> Vec<SpanKey> {
    let wanted = acknowledged.iter().filter(|(trace, _)| is_wanted(trace.1));
    let missing = wanted.filter(|span| !came.contains_key(span));
    missing.copied().collect()
}

/// `SPANGATE_SEED` replays another run.
fn seed(own: u64) -> u64 {
    let given = std::env::var("SPANGATE_SEED").ok();
    given.map_or(own, |given| given.parse().expect("a number"))
}

const WANTED: &str =
    "{ name: w, type: string_attribute, string_attribute: { key: wanted, values: ['yes'] } }";

#[test]
fn what_was_acknowledged_comes_out_and_what_is_dropped_never_does() {
    let setting = Setting {
        policies: WANTED,
        queue: "queue_size: 1000",
        seed: seed(1),
    };
    let (_, came) = setting.run();
    let unwanted = came.keys().find(|(trace, _)| !is_wanted(trace.1));
    assert_eq!(unwanted, None);
}

#[test]
fn a_trace_comes_out_whole_or_not_at_all() {
    let both = format!(
        "{WANTED}, {{ name: p, type: probabilistic, probabilistic: {{ sampling_percentage: 40 }} }}"
    );
    let setting = Setting {
        policies: &both,
        // Stored data outlives the process too.
        queue: "storage: file_storage",
        seed: seed(2),
    };
    let (acknowledged, came) = setting.run();
    let kept: BTreeSet<(u64, u64)> = came.keys().map(|(trace, _)| *trace).collect();
    let halves = acknowledged
        .iter()
        .filter(|span| kept.contains(&span.0) && !came.contains_key(span));
    assert_eq!(halves.collect::<Vec<_>>(), [] as [&SpanKey; 0]);
    let traces: BTreeSet<(u64, u64)> = acknowledged.iter().map(|(trace, _)| *trace).collect();
    let drawn = traces.iter().filter(|trace| !is_wanted(trace.1));
    let (drawn, all) = (
        drawn.clone().filter(|trace| kept.contains(trace)).count(),
        drawn.count(),
    );
    assert!((all / 4..all * 6 / 10).contains(&drawn), "{drawn} of {all}");
}
