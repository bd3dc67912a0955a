//! Offsets behind a sampler.

use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, Status};
use prost::Message as _;
use tail::settings::TailSampling;
use tail::shard::Options;
use tail::store::Budget;

use tokio::time::Instant;

use super::offsets::{Offsets, Partition};
use crate::config::components::receivers::kafka::Marking;
use crate::config::source::Outside;
use crate::config::{self, Config};
use crate::run::account::{Account, Loss};
use crate::run::consume::{Consumer, Does, Permit, Refused};
use crate::run::data::Batch;
use crate::run::process::tail::{Rules, Tail, start};
use crate::run::storage::Hold;
use crate::run::{Intake, Log, Memory};

/// Keeps what comes.
#[derive(Default)]
struct Exporter(Arc<Mutex<Vec<Batch>>>);

impl Consumer for Exporter {
    fn reserve(&self, batch: Batch) -> Result<Box<dyn Permit>, Box<Refused>> {
        let kept = Arc::clone(&self.0);
        Ok(Does::new(move || kept.lock().unwrap().push(batch)))
    }
}

/// A sampler of failed traces, what is before it and what is behind.
struct Pipeline {
    intake: Intake,
    tail: Arc<Tail>,
    exporter: Arc<Exporter>,
    accounts: [Arc<Account>; 3],
    offsets: Arc<Offsets>,
}

fn config() -> Config {
    let yaml = "yaml:{ receivers: { kafka: }, exporters: { nop: }, processors: { tail_sampling: { decision_wait: 5s, policies: \
                [ { name: a, type: status_code, status_code: { status_codes: [ERROR] } } ] } }, \
                service: { pipelines: { traces: { receivers: [kafka], processors: [tail_sampling], exporters: [nop] } } } }";
    let outside = Outside {
        variable: &|_| None,
        read_file: &|_| Err("there are none".to_owned()),
    };
    config::load(&[yaml], &config::Options::default(), outside).expect("a configuration")
}

impl Pipeline {
    fn start(marking: Marking) -> Pipeline {
        let config = config();
        assert!(config.is_read_again(&config.pipelines[0]));
        let settings: &TailSampling = config.processors[0].settings.get().expect("a sampler");
        let accounts: [Arc<Account>; 3] = Default::default();
        let exporter = Arc::<Exporter>::default();
        let budget = Arc::new(Budget::new(1 << 30));
        let next = Arc::clone(&exporter) as Arc<dyn Consumer>;
        let tail = start(
            &Rules::Sample(settings),
            &Options::default(),
            &budget,
            (&accounts[0], next),
            (None, None),
            ("tail_sampling", &Log::new(|_, _| {})),
        );
        let tail = tail.expect("it starts");
        let outlet = Arc::clone(&tail) as Arc<dyn Consumer>;
        let outlets = [Some(outlet), None, None];
        Pipeline {
            intake: Intake::new(outlets, accounts.clone(), &Memory::new(&budget)),
            tail,
            exporter,
            accounts,
            offsets: Offsets::new(marking),
        }
    }

    /// A message with a span of a trace.
    fn take(&self, offset: i64, trace: u32, has_failed: bool) {
        self.take_all(offset, trace..trace + 1, has_failed);
    }

    /// A message with a span of each of these traces.
    fn take_all(&self, offset: i64, traces: Range<u32>, has_failed: bool) {
        let span = |trace: u32| Span {
            trace_id: [&[9; 12][..], &trace.to_be_bytes()].concat(),
            span_id: vec![1; 8],
            status: has_failed.then(|| Status {
                code: 2,
                message: String::new(),
            }),
            ..Span::default()
        };
        let request = ExportTraceServiceRequest {
            resource_spans: vec![ResourceSpans {
                scope_spans: vec![ScopeSpans {
                    spans: traces.map(span).collect(),
                    ..ScopeSpans::default()
                }],
                ..ResourceSpans::default()
            }],
        };
        let token = self
            .offsets
            .take(&partition(), (offset, 100), Instant::now());
        let bytes = Bytes::from(request.encode_to_vec());
        let taken = self.intake.take_held(bytes, Hold::Messages(token), None);
        taken.expect("there is room");
    }

    fn moved(&self) -> Vec<i64> {
        self.offsets
            .moved()
            .into_iter()
            .map(|(_, end)| end)
            .collect()
    }

    fn batches(&self) -> usize {
        self.exporter.0.lock().unwrap().len()
    }
}

fn partition() -> Partition {
    Partition {
        topic: "spans".into(),
        number: 0,
    }
}

const AFTER: Marking = Marking {
    failed: false,
    refused: false,
};

async fn pass(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

#[tokio::test(start_paused = true)]
async fn messages_are_settled_when_their_traces_are_decided_and_delivered() {
    let pipeline = Pipeline::start(AFTER);
    pipeline.take(7, 1, false);
    pipeline.take(8, 2, true);
    pipeline.offsets.close();
    pass(3).await;
    assert_eq!(
        (pipeline.batches(), pipeline.moved()),
        (0, vec![]),
        "undecided"
    );
    pass(3).await;
    assert_eq!(
        (pipeline.batches(), pipeline.moved()),
        (1, vec![]),
        "not delivered"
    );
    pipeline.exporter.0.lock().unwrap().clear();
    assert_eq!(pipeline.moved(), [9]);
    // What policies drop is settled by that.
    pipeline.take(9, 3, false);
    pipeline.offsets.close();
    pass(3).await;
    assert!(pipeline.moved().is_empty());
    pass(3).await;
    assert_eq!(pipeline.moved(), [10]);
    // And so is what comes late.
    pipeline.take(10, 2, true);
    pipeline.offsets.close();
    pass(1).await;
    assert_eq!((pipeline.batches(), pipeline.moved()), (1, vec![]));
    pipeline.exporter.0.lock().unwrap().clear();
    assert_eq!(pipeline.moved(), [11]);
    assert_eq!(pipeline.accounts[0].balance().held(), 0);
}

#[tokio::test(start_paused = true)]
async fn what_an_exporter_gives_up_is_not_settled_with_after() {
    let pipeline = Pipeline::start(AFTER);
    pipeline.take(7, 1, true);
    pipeline.offsets.close();
    pass(6).await;
    let batch = pipeline.exporter.0.lock().unwrap().remove(0);
    batch.receipt.lose(1, Loss::ExportFailed);
    drop(batch);
    assert!(pipeline.moved().is_empty());
    assert_eq!(pipeline.offsets.stuck()[0].offset, 7);
}

#[tokio::test(start_paused = true)]
async fn what_is_not_decided_at_the_end_is_left_to_others() {
    let pipeline = Pipeline::start(AFTER);
    pipeline.tail.leave_waiting();
    pipeline.take(7, 1, true);
    pipeline.take(8, 2, false);
    pipeline.offsets.close();
    let until = tokio::time::Instant::now() + Duration::from_secs(1);
    pipeline
        .tail
        .end(until, &Log::new(|_, line| panic!("{line}")))
        .await;
    assert_eq!((pipeline.batches(), pipeline.moved()), (0, vec![]));
    assert!(pipeline.offsets.stuck().is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_was_decided_waits_for_its_batch() {
    let pipeline = Pipeline::start(AFTER);
    // More than one tick decides, so that the first leaves what it kept for a batch of the second.
    pipeline.take_all(0, 0..4096, true);
    pipeline.offsets.close();
    pipeline.take_all(1, 5000..5100, true);
    pipeline.offsets.close();
    pass(6).await;
    let spans: u64 = pipeline
        .exporter
        .0
        .lock()
        .unwrap()
        .iter()
        .map(|one| one.records)
        .sum();
    assert_eq!((spans, pipeline.moved()), (4196, vec![]));
    pipeline.exporter.0.lock().unwrap().clear();
    assert_eq!(pipeline.moved(), [2]);
}
