//! The end of a sampler.

use std::sync::Arc;

use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use tail::settings::{Policy, PolicyKind, TailSampling};
use tail::shard::Options;
use tail::store::Budget;
use tokio::time::Instant;

use super::{log_of, traces};
use crate::config::Signal;
use crate::run::account::Account;
use crate::run::consume::{Consumer, Does, Permit, Refused};
use crate::run::data::Batch;
use crate::run::process::tail::{Rules, start};

/// Takes everything.
struct Taker;

impl Consumer for Taker {
    fn reserve(&self, batch: Batch) -> Result<Box<dyn Permit>, Box<Refused>> {
        Ok(Does::new(|| drop(batch)))
    }
}

#[tokio::test]
async fn what_was_decided_when_the_time_is_over_is_handed_on_and_the_rest_is_counted() {
    const TRACES: u16 = 3000;
    let settings = TailSampling {
        policies: vec![Policy {
            name: "all".to_owned(),
            kind: PolicyKind::AlwaysSample,
        }],
        ..TailSampling::default()
    };
    let account = Arc::<Account>::default();
    let (log, lines) = log_of();
    let tail = start(
        &Rules::Sample(&settings),
        &Options::default(),
        &Arc::new(Budget::new(1 << 30)),
        (&account, Arc::new(Taker)),
        (None, None),
        ("tail_sampling", &log),
    );
    let tail = tail.expect("it starts");
    let span = |number: u16| Span {
        trace_id: [&[1; 14][..], &number.to_be_bytes()].concat(),
        span_id: vec![1; 8],
        ..Span::default()
    };
    let request = traces(vec![], (0..TRACES).map(span).collect());
    let taken = tail.consume(Batch {
        signal: Signal::Traces,
        bytes: request.encode_to_vec().into(),
        records: TRACES.into(),
        receipt: account.accept(TRACES.into()),
        origin: None,
    });
    taken.expect("there is room");
    tail.end(Instant::now(), &log).await;
    let balance = account.balance();
    assert_eq!(balance.held(), 0, "{balance:?}");
    assert_eq!(balance.exported + balance.shutdown, u64::from(TRACES));
    assert!(balance.exported > 0 && balance.shutdown > 0, "{balance:?}");
    let told = format!("{} spans were not decided in time", balance.shutdown);
    assert_eq!(*lines.lock().unwrap(), [told]);
}
