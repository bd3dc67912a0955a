//! A shard beside a plain program that does the same with decoded messages.

mod exact;
mod full;
mod limits;
mod oracle;
mod recover;
mod split;
mod words;

use super::*;
use crate::settings::{Policy, PolicyKind, SECOND_NS, StatusCodes};
use oracle::Piece;

const MS: u64 = 1_000_000;

fn options() -> Options {
    Options {
        segment_bytes: 16 << 10,
        batch_spans_max: 50,
        ..Options::default()
    }
}

fn named(name: &str, kind: PolicyKind) -> Policy {
    Policy {
        name: name.to_owned(),
        kind,
    }
}

fn errors() -> Policy {
    let codes = StatusCodes {
        error: true,
        ..StatusCodes::default()
    };
    named("errors", PolicyKind::StatusCode(codes))
}

fn always() -> Policy {
    named("always", PolicyKind::AlwaysSample)
}

fn shard(settings: &TailSampling) -> Shard {
    Shard::tail_sampling(settings, options(), Arc::new(Budget::new(1 << 30))).unwrap()
}

/// What must hold at every moment.
fn check(shard: &Shard) {
    assert_eq!(shard.account.difference(), 0, "{:?}", shard.account);
    let entries = shard
        .table
        .numbers()
        .filter_map(|number| shard.table.get(number));
    let pending: u64 = entries.map(|entry| u64::from(entry.spans)).sum();
    assert_eq!(shard.account.pending, pending);
    assert_eq!(shard.budget.used_bytes(), shard.held_bytes());
}

/// Takes all batches, settles them, and gives their spans with what stands around them.
fn drain(shard: &mut Shard) -> Vec<Piece> {
    let mut pieces = Vec::new();
    while let Some(batch) = shard.pop() {
        let from = pieces.len();
        oracle::pieces(&batch.bytes, &mut pieces);
        assert_eq!((pieces.len() - from) as u64, batch.spans);
        shard.acked(batch.spans, batch.bytes.len() as u64);
        check(shard);
    }
    pieces
}

fn tick(shard: &mut Shard, now_ns: u64) -> Vec<Piece> {
    let mut pieces = Vec::new();
    loop {
        let more = shard.tick(now_ns, u64::MAX).more;
        check(shard);
        pieces.extend(drain(shard));
        if !more {
            return pieces;
        }
    }
}
