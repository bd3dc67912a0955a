//! How batches are handed on, and given back.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use opentelemetry_proto::tonic::trace::v1::Span;
use ottl::Context;
use prost::Message;

use super::{kv, text, traces};
use crate::config::Signal;
use crate::config::components::processors::action::{Action, Source, When};
use crate::config::components::processors::attributes::Attributes;
use crate::config::components::processors::probabilistic_sampler::{
    Mode, ProbabilisticSampler, Source as HashSource,
};
use crate::config::components::processors::transform::Transform;
use crate::run::account::Account;
use crate::run::consume::{Consumer, Does, Permit, Refusal, Refused, refused};
use crate::run::data::Batch;
use crate::run::process::failures::Failures;
use crate::run::process::{attributes, probabilistic_sampler, transform};

/// Takes batches, or none; holds their records as a tail sampler does.
#[derive(Default)]
struct Next {
    full: AtomicBool,
    holds: bool,
    held: Arc<AtomicU64>,
    taken: Arc<Mutex<Vec<Bytes>>>,
}

impl Consumer for Next {
    fn reserve(&self, batch: Batch) -> Result<Box<dyn Permit>, Box<Refused>> {
        if let Err(refusal) = self.room() {
            return refused(batch, refusal);
        }
        let held = self.holds.then(|| Arc::clone(&self.held));
        let taken = Arc::clone(&self.taken);
        Ok(Does::new(move || {
            taken.lock().unwrap().push(batch.bytes.clone());
            if let Some(held) = held {
                held.fetch_add(batch.records, Relaxed);
                let _ = batch.receipt.hold(batch.records);
            }
        }))
    }

    fn room(&self) -> Result<(), Refusal> {
        if self.full.load(Relaxed) {
            Err(Refusal::busy(Duration::from_millis(7), &"full".into()))
        } else {
            Ok(())
        }
    }
}

fn batch(account: &Arc<Account>, bytes: &[u8], records: u64) -> Batch {
    Batch {
        signal: Signal::Traces,
        bytes: Bytes::copy_from_slice(bytes),
        records,
        receipt: account.accept(records),
        origin: None,
    }
}

/// Spans that are kept by half: 0x03 and 0x04 are, 0x01 and 0x02 are not.
fn request(ids: &[u8]) -> Vec<u8> {
    let span = |id: &u8| Span {
        trace_id: [&[0; 15][..], &[*id]].concat(),
        attributes: vec![kv("a", text("x"))],
        ..Span::default()
    };
    traces(vec![], ids.iter().map(span).collect()).encode_to_vec()
}

fn half() -> ProbabilisticSampler {
    ProbabilisticSampler {
        percentage: 50.0,
        hash_seed: 0,
        mode: Mode::HashSeed,
        fail_closed: true,
        precision: 4,
        source: HashSource::TraceId,
        from_attribute: String::new(),
        sampling_priority: String::new(),
    }
}

#[test]
fn what_is_dropped_is_settled_once_the_rest_is_taken() {
    for holds in [false, true] {
        let next = Arc::new(Next {
            holds,
            ..Next::default()
        });
        let sampler = probabilistic_sampler::start(&half(), Arc::clone(&next) as _);
        let account = Arc::new(Account::default());
        let bytes = request(&[1, 2, 3, 4, 3]);

        next.full.store(true, Relaxed);
        assert!(sampler.room().is_err());
        let given_back = sampler.consume(batch(&account, &bytes, 5)).unwrap_err();
        let busy = Refusal::busy(Duration::from_millis(7), &"full".into());
        assert_eq!(given_back.refusal, busy);
        assert_eq!(given_back.batch.bytes, bytes);
        assert_eq!(given_back.batch.records, 5);
        assert_eq!(
            (account.balance().held(), account.balance().dropped),
            (5, 0)
        );

        next.full.store(false, Relaxed);
        sampler.consume(given_back.batch).unwrap();
        let balance = account.balance();
        let held = if holds { 3 } else { 0 };
        assert_eq!(balance.dropped, 2);
        assert_eq!((balance.exported, balance.held()), (3 - held, held));
        assert_eq!(next.held.load(Relaxed), held);

        // With nothing left nobody is asked.
        next.full.store(true, Relaxed);
        let none = request(&[1, 2]);
        sampler.consume(batch(&account, &none, 2)).unwrap();
        assert_eq!(account.balance().dropped, 4);
        assert_eq!(next.taken.lock().unwrap().len(), 1);
    }
}

fn hash() -> Attributes {
    Attributes {
        include: None,
        exclude: None,
        actions: vec![
            Action::Hash {
                key: "a".into(),
                pattern: None,
            },
            Action::Set {
                key: "b".into(),
                source: Source::Attribute("a".into()),
                when: When::Always,
            },
        ],
    }
}

/// A transform before `next`, with one statement on metrics.
fn on_metrics(statement: &str, next: &Arc<Next>) -> Arc<transform::Transform> {
    let settings = Transform {
        metrics: vec![super::transform::group(Context::Metric, &[], &[statement])],
        ..Transform::default()
    };
    let next = Arc::clone(next);
    let failures = Failures::new("transform", &super::log_of().0);
    transform::Transform::new(&settings, failures, next as _).unwrap()
}

#[test]
fn points_that_statements_add_or_merge_are_settled_once() {
    use super::metrics::{int, metric, request, sum};
    let points = vec![int("x", 1), int("x", 2), int("y", 3)];
    let bytes = request(vec![metric("m", sum(points))]).encode_to_vec();
    // The account has no more records than were accepted; merged ones count as dropped.
    for (statement, left, dropped) in [
        (r#"copy_metric(name="n") where name == "m""#, 6, 0),
        (r#"aggregate_on_attributes("sum")"#, 2, 1),
    ] {
        let next = Arc::new(Next {
            holds: true,
            ..Next::default()
        });
        let transform = on_metrics(statement, &next);
        let account = Arc::new(Account::default());
        let batch = Batch {
            signal: Signal::Metrics,
            ..batch(&account, &bytes, 3)
        };
        next.full.store(true, Relaxed);
        let given_back = transform.consume(batch).unwrap_err();
        assert_eq!(given_back.batch.bytes, bytes);
        assert_eq!(given_back.batch.records, 3);
        assert_eq!(account.balance().held(), 3);
        next.full.store(false, Relaxed);
        transform.consume(given_back.batch).unwrap();
        assert_eq!(next.held.load(Relaxed), left, "{statement}");
        let balance = account.balance();
        assert_eq!(
            (balance.dropped, balance.exported),
            (dropped, 0),
            "{statement}"
        );
        assert_eq!(balance.held(), 3 - dropped);
    }
}

#[test]
fn a_refused_batch_is_given_back_as_it_came() {
    let next = Arc::new(Next::default());
    let attributes = attributes::start(&hash(), Arc::clone(&next) as _).unwrap();
    let account = Arc::new(Account::default());
    let bytes = request(&[1]);
    next.full.store(true, Relaxed);
    let given_back = attributes.consume(batch(&account, &bytes, 1)).unwrap_err();
    assert_eq!(given_back.batch.bytes, bytes);
    next.full.store(false, Relaxed);
    attributes.consume(given_back.batch).unwrap();
    let taken = next.taken.lock().unwrap();
    assert_ne!(taken[0], bytes);
    assert_eq!(account.balance().exported, 1);
}

#[test]
fn what_is_malformed_is_given_back_and_nothing_is_lost() {
    let whole = request(&[1, 2, 3]);
    let account = Arc::new(Account::default());
    let next = Arc::new(Next::default());
    let attributes = attributes::start(&hash(), Arc::clone(&next) as _).unwrap();
    let sampler = probabilistic_sampler::start(&half(), Arc::clone(&next) as _);
    for len in 1..whole.len() {
        for consumer in [&*attributes as &dyn Consumer, &*sampler] {
            let given_back = consumer.consume(batch(&account, &whole[..len], 3));
            let given_back = given_back.unwrap_err();
            assert!(matches!(given_back.refusal, Refusal::Malformed(_)), "{len}");
            assert_eq!(given_back.batch.bytes, whole[..len]);
            assert_eq!(given_back.batch.records, 3);
            given_back.batch.receipt.refuse();
        }
    }
    let balance = account.balance();
    assert_eq!(
        (balance.accepted, balance.held(), balance.dropped),
        (0, 0, 0)
    );
    assert!(next.taken.lock().unwrap().is_empty());
}
