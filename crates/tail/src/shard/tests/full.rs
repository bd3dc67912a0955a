//! What happens where `num_traces` is reached.

use super::limits::{settings, spans};
use super::*;
use crate::settings::{Emit, GroupByTrace};

#[test]
fn blocking_refuses_what_has_no_place() {
    let mut shard = shard(&TailSampling {
        traces_max: 10,
        block_on_overflow: true,
        ..settings(vec![always()])
    });
    assert!(
        shard.accept(&spans(0..20, 2), 0).is_ok(),
        "more than there can be, but nothing waits"
    );
    assert!(shard.accept(&spans(0..5, 2), 0).is_ok(), "no new traces");
    assert!(matches!(
        shard.accept(&spans(30..31, 1), 0),
        Err(Rejected::Refused(_))
    ));
    assert_eq!(tick(&mut shard, SECOND_NS).len(), 50);
    assert!(shard.accept(&spans(40..50, 9), SECOND_NS).is_ok());
    assert!(shard.accept(&spans(50..51, 9), SECOND_NS).is_err());
    check(&shard);
}

#[test]
fn where_num_traces_is_reached_the_oldest_are_decided_early_and_late_spans_follow() {
    let small = PolicyKind::Not(Box::new(named(
        "large",
        PolicyKind::SpanCount { min: 3, max: 0 },
    )));
    let mut shard = shard(&TailSampling {
        traces_max: 10,
        ..settings(vec![named("small", small)])
    });
    shard.accept(&spans(0..5, 4), 0).unwrap();
    shard.accept(&spans(5..10, 2), 0).unwrap();
    assert_eq!(shard.counters.traces_early, 0);
    // Eight of the ten make room; one that has made it goes on as it was decided, in the same
    // request too.
    shard
        .accept(
            &[spans(10..18, 1), spans(0..1, 9), spans(5..6, 9)].concat(),
            0,
        )
        .unwrap();
    check(&shard);
    assert_eq!(shard.pending_traces(), 10);
    assert_eq!(
        (
            shard.counters.traces_early,
            shard.counters.traces_dropped_early
        ),
        (8, 5)
    );
    assert_eq!(
        (shard.account.not_sampled, shard.account.late_dropped),
        (20, 9)
    );
    assert_eq!(tick(&mut shard, 0).len(), 3 * 2 + 9);
    shard.accept(&spans(0..6, 1), MS).unwrap();
    assert_eq!(
        (shard.counters.late_sampled, shard.counters.late_not_sampled),
        (9 + 1, 9 + 5)
    );
    assert_eq!(tick(&mut shard, 2 * SECOND_NS).len(), 1 + 2 * 2 + 8);
    assert_eq!(
        shard.account.exported + shard.account.not_sampled + shard.account.late_dropped,
        shard.account.accepted
    );
}

#[test]
fn traces_are_not_decided_early_while_nothing_leaves() {
    let mut stuck = options();
    stuck.export_bytes_max = 1000;
    let budget = Arc::new(Budget::new(1 << 30));
    let settings = TailSampling {
        traces_max: 10,
        ..settings(vec![always()])
    };
    let mut shard = Shard::tail_sampling(&settings, stuck, budget).unwrap();
    let mut taken = 0;
    while shard.accept(&spans(taken..taken + 1, 3), 0).is_ok() {
        taken += 1;
        check(&shard);
        assert!(taken < 100, "kept spans wait without a bound");
    }
    assert_eq!(shard.pending_traces(), 10);
    shard.tick(0, 0);
    let batch = shard.pop().unwrap();
    shard.acked(batch.spans, batch.bytes.len() as u64);
    assert!(shard.accept(&spans(taken..taken + 1, 3), 0).is_ok());
}

#[test]
fn what_leaves_early_has_room_in_the_budget() {
    let budget = Arc::new(Budget::new(600 << 10));
    let settings = TailSampling {
        traces_max: 1000,
        ..settings(vec![always()])
    };
    let with = Options {
        templates: false,
        ..options()
    };
    let mut shard = Shard::tail_sampling(&settings, with, budget.clone()).unwrap();
    let (mut next, mut refused) = (0, 0);
    while refused < 3 {
        match shard.accept(&spans(next..next + 100, 4), 0) {
            Ok(_) => next += 100,
            Err(Rejected::Refused(_)) => {
                refused += 1;
                shard.tick(0, 0);
                drain(&mut shard);
            }
            Err(other) => panic!("{other:?}"),
        }
        check(&shard);
        assert!(budget.used_bytes() <= budget.bytes_max());
    }
    assert!(shard.counters.traces_early > 0);
}

#[test]
fn blocking_counts_the_traces_of_a_large_request_too() {
    let mut shard = shard(&TailSampling {
        traces_max: 100,
        block_on_overflow: true,
        ..settings(vec![always()])
    });
    shard.accept(&spans(0..1, 1), 0).unwrap();
    assert!(matches!(
        shard.accept(&spans(10..20_010, 1), 0),
        Err(Rejected::Refused(_))
    ));
    assert_eq!(shard.pending_traces(), 1);
    // Many spans, few traces.
    let request = spans(0..100, 200);
    assert_eq!(shard.accept(&request, 0).unwrap().spans, 20_000);
    assert_eq!(
        (shard.pending_traces(), shard.counters.traces_early),
        (100, 0)
    );
    assert_eq!(tick(&mut shard, SECOND_NS).len(), 20_001);
    // One that has more traces than there can be is taken alone, and passes no bound.
    assert_eq!(
        shard
            .accept(&spans(20_000..40_000, 1), SECOND_NS)
            .unwrap()
            .spans,
        20_000
    );
    check(&shard);
    assert_eq!(
        (shard.pending_traces(), shard.counters.traces_early),
        (100, 19_900)
    );
    assert_eq!(tick(&mut shard, 2 * SECOND_NS).len(), 20_000);
}

#[test]
fn group_by_trace_makes_room() {
    for emit in [Emit::Trace, Emit::Service] {
        let settings = GroupByTrace {
            emit,
            traces_max: 5,
            ..GroupByTrace::default()
        };
        let mut shard = Shard::group_by_trace(&settings, options(), Arc::new(Budget::new(1 << 30)));
        shard.accept(&spans(0..20, 1), 0).unwrap();
        check(&shard);
        assert_eq!(shard.pending_traces(), 5);
        assert_eq!(tick(&mut shard, 0).len(), 15, "the oldest go on early");
        assert_eq!(tick(&mut shard, SECOND_NS).len(), 5);
        assert_eq!(shard.counters.traces_early, 15);
    }
}

#[test]
fn a_kept_trace_is_remembered_whatever_is_dropped_where_a_cache_is_set() {
    let large = named("large", PolicyKind::SpanCount { min: 2, max: 0 });
    for (sampled_cache_size, kept) in [(0, false), (20, true)] {
        let mut shard = shard(&TailSampling {
            traces_max: 10,
            sampled_cache_size,
            ..settings(vec![large.clone()])
        });
        shard.accept(&spans(0..1, 2), 0).unwrap();
        for second in 1..100 {
            assert_eq!(
                tick(&mut shard, second * SECOND_NS).len(),
                if second == 1 { 2 } else { 0 }
            );
            shard
                .accept(&spans(second * 10..second * 10 + 10, 1), second * SECOND_NS)
                .unwrap();
        }
        tick(&mut shard, 100 * SECOND_NS);
        shard.accept(&spans(0..1, 1), 100 * SECOND_NS).unwrap();
        assert_eq!(shard.counters.late_sampled > 0, kept);
        assert_eq!(tick(&mut shard, 101 * SECOND_NS).len(), usize::from(kept));
    }
}
