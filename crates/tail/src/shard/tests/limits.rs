//! Bounds, refusals, shutdown, and what is recorded.

use super::*;
use crate::account::Cause;
use crate::settings::{Emit, GroupByTrace};
use crate::tests::{Model, request, trace_id};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use otlp::write;
use prost::Message;

/// Spans of these traces, `spans` of each, in one scope.
pub(super) fn spans(traces: std::ops::Range<u64>, spans: u64) -> Vec<u8> {
    let mut out = Vec::new();
    write::message(&mut out, 1, |out| {
        write::message(out, 2, |out| {
            for trace in traces {
                for _ in 0..spans {
                    write::message(out, 2, |out| {
                        write::bytes(out, 1, &trace_id(trace));
                        write::bytes(out, 5, b"a name that has some bytes");
                    });
                }
            }
        });
    });
    out
}

pub(super) fn settings(policies: Vec<Policy>) -> TailSampling {
    TailSampling {
        policies,
        decision_wait_ns: SECOND_NS,
        ..TailSampling::default()
    }
}

#[test]
fn a_full_budget_refuses_whole_requests_and_says_when_to_come_again() {
    let budget = Arc::new(Budget::new(800 << 10));
    let settings = TailSampling {
        traces_max: 2000,
        ..settings(vec![errors()])
    };
    let mut shard = Shard::tail_sampling(&settings, options(), budget.clone()).unwrap();
    let (mut now_ns, mut refused, mut next, mut tries) = (SECOND_NS, 0, 0, 0);
    for round in 0..2000 {
        match shard.accept(&spans(next..next + 20, 5), now_ns) {
            Ok(accepted) => {
                assert_eq!(accepted.spans, 100);
                next += 20;
                tries = 0;
            }
            Err(Rejected::Refused(Refused { retry_after_ns, .. })) => {
                refused += 1;
                let before = shard.account.clone();
                assert_eq!(before, shard.account);
                // Time after time there is more room.
                now_ns += retry_after_ns;
                tick(&mut shard, now_ns);
                tries += 1;
                assert!(tries < 20, "{round}");
                continue;
            }
            Err(other) => panic!("{other:?}"),
        }
        check(&shard);
        assert!(budget.used_bytes() <= budget.bytes_max());
        now_ns += MS;
    }
    assert!(refused > 3, "{refused}");
    assert_eq!(shard.counters.refused_requests, refused);
    drop(shard);
    assert_eq!(budget.used_bytes(), 0);
}

#[test]
fn malformed_requests_change_nothing() {
    let mut shard = shard(&settings(vec![errors()]));
    let good = spans(0..5, 5);
    let error = shard.accept(&good[..good.len() - 3], 0);
    assert_eq!(error, Err(Rejected::Malformed(Malformed::Truncated)));
    assert_eq!((shard.account.accepted, shard.headers.count()), (0, 0));
    assert_eq!(shard.counters.malformed_requests, 1);
    check(&shard);
}

#[test]
fn a_large_request_is_taken_in_parts() {
    let mut shard = shard(&settings(vec![named(
        "p",
        PolicyKind::SpanCount { min: 10, max: 0 },
    )]));
    let bytes = spans(0..6000, 10);
    assert_eq!(shard.accept(&bytes, 0).unwrap().spans, 60_000);
    check(&shard);
    assert_eq!(shard.pending_traces(), 6000);
    let mut expected = Vec::new();
    oracle::pieces(&bytes, &mut expected);
    let mut out = tick(&mut shard, 2 * SECOND_NS);
    out.sort();
    expected.sort();
    assert!(out == expected);
}

#[test]
fn a_trace_that_grows_too_large_goes_at_once() {
    let mut shard = shard(&TailSampling {
        trace_bytes_max: 500,
        ..settings(vec![always()])
    });
    shard.accept(&spans(0..2, 5), 0).unwrap();
    assert_eq!(shard.pending_traces(), 2);
    shard.accept(&spans(0..1, 20), 0).unwrap();
    check(&shard);
    assert_eq!(
        (shard.pending_traces(), shard.counters.traces_too_large),
        (1, 1)
    );
    assert!(shard.account.lost_to(Cause::TooLarge) >= 10);
    assert!(
        shard.account.late_dropped > 0,
        "the rest of it is not taken up again"
    );
    assert_eq!(tick(&mut shard, SECOND_NS).len(), 5);
}

#[test]
fn shutdown_decides_or_drops() {
    for drop_pending in [false, true] {
        let mut shard = shard(&TailSampling {
            drop_pending_on_shutdown: drop_pending,
            ..settings(vec![always()])
        });
        shard.accept(&spans(0..100, 3), 0).unwrap();
        let mut out = 0;
        while shard.shutdown(MS, 7).more {
            check(&shard);
            out += drain(&mut shard).len();
        }
        out += drain(&mut shard).len();
        assert_eq!(out, if drop_pending { 0 } else { 300 });
        assert_eq!(
            shard.account.lost_to(Cause::Shutdown),
            if drop_pending { 300 } else { 0 }
        );
        assert_eq!(shard.account.pending, 0);
        check(&shard);
    }
}

#[test]
fn work_is_bounded_and_an_exporter_that_is_stuck_holds_decisions() {
    let mut stuck = options();
    stuck.export_bytes_max = 4000;
    let budget = Arc::new(Budget::new(1 << 30));
    let mut shard = Shard::tail_sampling(&settings(vec![always()]), stuck, budget).unwrap();
    shard.accept(&spans(0..100, 3), 0).unwrap();
    assert_eq!(
        shard.tick(SECOND_NS, 3),
        Progress {
            traces: 3,
            more: true
        }
    );
    let progress = shard.tick(SECOND_NS, 1000);
    assert!(progress.more && progress.traces < 50, "{progress:?}");
    assert_eq!(
        shard.tick(SECOND_NS, 1000),
        Progress {
            traces: 0,
            more: true
        }
    );
    check(&shard);
    let mut kept = 0;
    loop {
        kept += drain(&mut shard).len();
        if !shard.tick(SECOND_NS, 1000).more {
            break;
        }
    }
    kept += drain(&mut shard).len();
    assert_eq!(kept, 300);
}

#[test]
fn lost_in_export_is_in_the_account() {
    let mut shard = shard(&settings(vec![always()]));
    shard.accept(&spans(0..10, 3), 0).unwrap();
    shard.tick(SECOND_NS, 100);
    let batch = shard.pop().unwrap();
    assert_eq!(shard.account.in_export, 30);
    shard.acked(10, 0);
    shard.lost(20, batch.bytes.len() as u64, Cause::ExportFailed);
    check(&shard);
    assert_eq!(
        (
            shard.account.exported,
            shard.account.lost_to(Cause::ExportFailed)
        ),
        (10, 20)
    );
}

#[test]
fn the_policy_is_recorded_in_the_scope() {
    let mut with = options();
    with.record_policy = true;
    let budget = Arc::new(Budget::new(1 << 30));
    let mut shard =
        Shard::tail_sampling(&settings(vec![errors(), always()]), with, budget).unwrap();
    let recorded = |shard: &mut Shard| {
        let batch = shard.pop().unwrap();
        shard.acked(batch.spans, batch.bytes.len() as u64);
        let decoded = ExportTraceServiceRequest::decode(&batch.bytes[..]).unwrap();
        let scope = decoded.resource_spans[0].scope_spans[0]
            .scope
            .clone()
            .unwrap();
        let pairs = scope.attributes.into_iter();
        pairs
            .map(|pair| (pair.key, pair.value.unwrap().value.unwrap()))
            .collect::<Vec<_>>()
    };
    shard.accept(&spans(0..1, 1), 0).unwrap();
    shard.tick(SECOND_NS, 100);
    let policy = (
        "tailsampling.policy".to_owned(),
        Value::StringValue("always".to_owned()),
    );
    assert_eq!(recorded(&mut shard), std::slice::from_ref(&policy));
    shard.accept(&spans(0..1, 1), SECOND_NS).unwrap();
    shard.tick(SECOND_NS, 100);
    let late = (
        "tailsampling.cached_decision".to_owned(),
        Value::BoolValue(true),
    );
    assert_eq!(recorded(&mut shard), [policy, late]);
    check(&shard);
}

#[test]
fn the_sub_policy_of_a_composite_is_recorded_too() {
    let mut with = options();
    with.record_policy = true;
    let composite = PolicyKind::Composite {
        spans_per_second_max: 1000,
        policies: vec![errors(), always()],
        rates: Vec::new(),
    };
    let settings = settings(vec![named("both", composite)]);
    let mut shard = Shard::tail_sampling(&settings, with, Arc::new(Budget::new(1 << 30))).unwrap();
    shard.accept(&spans(0..1, 1), 0).unwrap();
    shard.tick(SECOND_NS, 100);
    let batch = shard.pop().unwrap();
    let decoded = ExportTraceServiceRequest::decode(&batch.bytes[..]).unwrap();
    let scope = decoded.resource_spans[0].scope_spans[0].scope.clone();
    let pairs = scope.unwrap().attributes.into_iter();
    let pairs: Vec<_> = pairs
        .map(|pair| (pair.key, pair.value.unwrap().value.unwrap()))
        .collect();
    let text = |key: &str, value: &str| (key.to_owned(), Value::StringValue(value.to_owned()));
    assert_eq!(
        pairs,
        [
            text("tailsampling.policy", "both"),
            text("tailsampling.composite_policy", "always"),
        ]
    );
}

#[test]
fn span_ingest_decides_batch_by_batch() {
    let mut shard = shard(&TailSampling {
        strategy: Strategy::SpanIngest,
        ..settings(vec![named("p", PolicyKind::SpanCount { min: 3, max: 0 })])
    });
    shard.accept(&spans(0..2, 2), 0).unwrap();
    assert_eq!(tick(&mut shard, 0).len(), 0);
    shard.accept(&spans(0..1, 1), 0).unwrap();
    check(&shard);
    assert_eq!(
        tick(&mut shard, 0).len(),
        3,
        "decided as the third span came"
    );
    shard.accept(&spans(0..1, 1), 0).unwrap();
    assert_eq!(tick(&mut shard, 0).len(), 1, "later ones follow");
    assert_eq!(tick(&mut shard, SECOND_NS).len(), 0);
    assert_eq!((shard.account.not_sampled, shard.account.pending), (2, 0));
}

#[test]
fn rates_bound_what_is_kept() {
    let limit = PolicyKind::RateLimiting {
        spans_per_second: 10,
        burst_capacity: 12,
    };
    let mut shard = shard(&settings(vec![named("limit", limit)]));
    shard.accept(&spans(0..10, 5), 0).unwrap();
    assert_eq!(tick(&mut shard, SECOND_NS).len(), 10);
    shard.accept(&spans(10..20, 5), SECOND_NS).unwrap();
    assert_eq!(
        tick(&mut shard, 2 * SECOND_NS).len(),
        10,
        "2 left and 10 more: two traces"
    );
    let size = spans(0..1, 5).len() as u64;
    let limit = PolicyKind::BytesLimiting {
        bytes_per_second: 1,
        burst_capacity: size * 3 + 20,
    };
    let mut shard = super::shard(&settings(vec![named("limit", limit)]));
    shard.accept(&spans(0..10, 5), 0).unwrap();
    assert_eq!(tick(&mut shard, SECOND_NS).len(), 15);
}

#[test]
fn group_by_trace_keeps_all_and_starts_again_for_late_spans() {
    for emit in [Emit::Trace, Emit::Service] {
        let settings = GroupByTrace {
            emit,
            ..GroupByTrace::default()
        };
        let mut shard = Shard::group_by_trace(&settings, options(), Arc::new(Budget::new(1 << 30)));
        let mut model = Model::new(3);
        let (mut expected, mut out) = (Vec::new(), Vec::new());
        for step in 0..100 {
            let bytes = request(&mut model).encode_to_vec();
            oracle::pieces(&bytes, &mut expected);
            shard.accept(&bytes, step * 50 * MS).unwrap();
            check(&shard);
            out.extend(tick(&mut shard, step * 50 * MS));
        }
        out.extend(tick(&mut shard, 100 * SECOND_NS));
        out.sort();
        expected.sort();
        assert!(out == expected, "{emit:?}");
        assert_eq!(shard.account.exported, shard.account.accepted);
    }
}

#[test]
fn waiting_traces_say_when_they_are_due() {
    let mut shard = shard(&TailSampling {
        wait_after_root_ns: SECOND_NS / 4,
        ..settings(vec![always()])
    });
    assert_eq!(shard.next_due_ns(), None);
    let mut child = Vec::new();
    write::message(&mut child, 1, |out| {
        write::message(out, 2, |out| {
            write::message(out, 2, |out| {
                write::bytes(out, 1, &trace_id(1));
                write::bytes(out, 4, &[1; 8]);
            });
        });
    });
    shard.accept(&child, SECOND_NS).unwrap();
    assert_eq!(shard.next_due_ns(), Some(2 * SECOND_NS));
    shard.accept(&spans(1..2, 1), SECOND_NS + 5 * MS).unwrap();
    assert_eq!(shard.next_due_ns(), Some(SECOND_NS + 255 * MS));
    assert_eq!(tick(&mut shard, SECOND_NS + 254 * MS).len(), 0);
    assert_eq!(tick(&mut shard, SECOND_NS + 255 * MS).len(), 2);
}

/// Spans of one trace each, with these numbers in their names.
fn named_spans(traces: std::ops::Range<u64>, name: impl Fn(u64) -> u64) -> Vec<u8> {
    let mut out = Vec::new();
    write::message(&mut out, 1, |out| {
        write::message(out, 2, |out| {
            for trace in traces {
                write::message(out, 2, |out| {
                    write::bytes(out, 1, &trace_id(trace));
                    write::bytes(out, 2, &trace.to_be_bytes());
                    write::bytes(out, 5, format!("a name with {}", name(trace)).as_bytes());
                });
            }
        });
    });
    out
}

#[test]
fn templates_that_do_not_help_give_way_to_others() {
    let mut shard = shard(&TailSampling {
        traces_max: 1 << 20,
        ..settings(vec![always()])
    });
    let (mut next, mut now_ns, mut headers) = (0, 0, 0);
    // Names that never come again, and then few.
    for (spans, names) in [(66_000, u64::MAX), (15_000, 3)] {
        let end = next + spans;
        while next < end {
            let bytes = named_spans(next..next + 1000, |trace| trace % names);
            shard.accept(&bytes, now_ns).unwrap();
            next += 1000;
            now_ns += 100 * MS;
            headers = headers.max(shard.headers.count());
            let mut expected = Vec::new();
            if next >= 11_000 {
                let due = next - 11_000..next - 10_000;
                let names = if due.start < 66_000 { u64::MAX } else { 3 };
                let bytes = named_spans(due, |trace| trace % names);
                oracle::pieces(&bytes, &mut expected);
            }
            assert!(tick(&mut shard, now_ns - 1) == expected);
        }
    }
    assert_eq!(headers, 2, "the old one stays as long as its spans");
    // Ten thousand spans wait, written with templates: less than their names alone would take.
    assert_eq!(shard.account.pending, 10_000);
    let records = shard.log.held_bytes();
    assert!(records < 10_000 * 32, "{records}");
    tick(&mut shard, now_ns + 2 * SECOND_NS);
    assert_eq!((shard.headers.count(), shard.headers.held_bytes()), (0, 0));
}

#[test]
fn roots_that_end_their_traces_shorten_the_wait() {
    let with = Options {
        end_wait_ns: SECOND_NS / 10,
        ..options()
    };
    let shard = |wait_after_root_ns| {
        let settings = TailSampling {
            wait_after_root_ns,
            ..settings(vec![always()])
        };
        let budget = Arc::new(Budget::new(1 << 30));
        Shard::tail_sampling(&settings, with.clone(), budget).unwrap()
    };
    let mut one = shard(0);
    one.accept(&spans(0..1, 1), 0).unwrap();
    one.heed_roots(true);
    one.accept(&spans(1..2, 1), 0).unwrap();
    one.heed_roots(false);
    one.accept(&spans(2..3, 1), 0).unwrap();
    // The root comes after others of its trace.
    one.heed_roots(true);
    one.accept(&spans(2..3, 1), SECOND_NS / 2).unwrap();
    assert_eq!(tick(&mut one, SECOND_NS / 10).len(), 1);
    assert_eq!(tick(&mut one, SECOND_NS / 2 + SECOND_NS / 10).len(), 2);
    assert_eq!(tick(&mut one, SECOND_NS - MS).len(), 0);
    assert_eq!(tick(&mut one, SECOND_NS).len(), 1);
    // What the settings say counts for every root.
    let mut told = shard(SECOND_NS / 4);
    for heeds in [false, true] {
        told.heed_roots(heeds);
        told.accept(&spans(u64::from(heeds)..u64::from(heeds) + 1, 1), 0)
            .unwrap();
    }
    assert_eq!(tick(&mut told, SECOND_NS / 5).len(), 0);
    assert_eq!(tick(&mut told, SECOND_NS / 4).len(), 2);
}

#[test]
fn groups_without_a_root_are_dropped_where_that_is_asked_for() {
    for discard_orphans in [false, true] {
        let settings = GroupByTrace {
            wait_ns: SECOND_NS,
            discard_orphans,
            ..GroupByTrace::default()
        };
        let mut shard = Shard::group_by_trace(&settings, options(), Arc::new(Budget::new(1 << 30)));
        // Of three traces the second has no root, and the third one that comes last.
        let mut request = Vec::new();
        write::message(&mut request, 1, |out| {
            write::message(out, 2, |out| {
                for (trace, has_parent) in [(1, false), (1, true), (2, true), (3, true), (3, false)]
                {
                    write::message(out, 2, |out| {
                        write::bytes(out, 1, &trace_id(trace));
                        if has_parent {
                            write::bytes(out, 4, b"12345678");
                        }
                    });
                }
            });
        });
        shard.accept(&request, 0).unwrap();
        check(&shard);
        let kept = tick(&mut shard, SECOND_NS).len();
        check(&shard);
        assert_eq!(kept, if discard_orphans { 4 } else { 5 });
        assert_eq!(shard.account.difference(), 0);
    }
}
