//! Other policies over the traces that are held.

use tail::settings::{Policy, PolicyKind, StatusCodes, TailSampling};

use super::model::{NOW_MS, failed, http, id, request, span};
use crate::{Decision, Limits, Stage, Store};

fn settings(policies: &[(&str, PolicyKind)]) -> TailSampling {
    let policy = |(name, kind): &(&str, PolicyKind)| Policy {
        name: (*name).to_owned(),
        kind: kind.clone(),
    };
    TailSampling {
        policies: policies.iter().map(policy).collect(),
        ..TailSampling::default()
    }
}

fn errors() -> PolicyKind {
    PolicyKind::StatusCode(StatusCodes {
        error: true,
        ..StatusCodes::default()
    })
}

/// A hundred traces of three spans each: every tenth failed, every fourth is slow.
fn traffic() -> Store {
    let store = Store::new(Limits::default());
    for trace in 0..100 {
        let duration_ms = if trace % 4 == 0 { 400 } else { 20 };
        let root = http(span(trace, 1, 0, trace * 10, duration_ms), "/a", 200);
        let child = match trace % 10 {
            0 => failed(span(trace, 3, 1, trace * 10, 5)),
            _ => span(trace, 3, 1, trace * 10, 5),
        };
        let spans = vec![child, span(trace, 2, 1, trace * 10, 5), root];
        store.add(&request("s", spans), Stage::Seen, NOW_MS + trace * 10);
    }
    store
}

#[test]
fn policies_are_the_samplers_own() {
    let store = traffic();
    let kept = (0..100).map(|trace| Decision {
        id: id(trace),
        kept: trace < 30,
        policy: None,
    });
    store.decided(kept.take(90), NOW_MS);
    let slow = PolicyKind::Latency {
        threshold_ms: 300,
        upper_threshold_ms: 0,
    };
    let settings = settings(&[("errors", errors()), ("slow", slow)]);
    let run = store.dry_run(&settings, NOW_MS + 2000).unwrap();
    assert_eq!((run.traces, run.spans), (100, 300));
    // Ten failed, 25 are slow, five of them both.
    assert_eq!((run.kept, run.kept_spans), (30, 90));
    assert_eq!((run.running_kept, run.undecided), (30, 10));
    assert_eq!((run.since_ms, run.is_cut), (NOW_MS, false));
    let by_policy: Vec<_> = run
        .policies
        .iter()
        .map(|one| (&*one.name, one.kept, one.sampled))
        .collect();
    assert_eq!(by_policy, [("errors", 10, 10), ("slow", 20, 25)]);
    assert_eq!(run.sample.len(), 20);
    let last = run.sample.first().unwrap();
    assert_eq!(last.duration_ms, 400.0, "the one that ended last is first");
    assert!(run.bytes > run.kept_bytes && run.kept_bytes > 0);
}

#[test]
fn rates_are_those_of_the_traces_own_time() {
    // 300 spans in 1.4 s: twelve traces of three spans in each 0.12 s.
    let rate = PolicyKind::RateLimiting {
        spans_per_second: 30,
        burst_capacity: 30,
    };
    let store = traffic();
    let run = store
        .dry_run(&settings(&[("rate", rate)]), NOW_MS + 2000)
        .unwrap();
    // The bucket of 30 at first, and what comes in until the last end.
    assert!((20..=26).contains(&run.kept), "{}", run.kept);
    assert!(run.kept_spans <= 30 + 30 * 14 / 10);
}

#[test]
fn a_draw_is_the_same_every_time() {
    let store = traffic();
    let half = PolicyKind::Probabilistic {
        percentage: 50.0,
        hash_salt: String::new(),
    };
    let settings = settings(&[("half", half)]);
    let first = store.dry_run(&settings, NOW_MS + 2000).unwrap();
    assert!((30..70).contains(&first.kept), "{}", first.kept);
    assert_eq!(first, store.dry_run(&settings, NOW_MS + 2000).unwrap());
}

#[test]
fn drops_win_and_faults_are_told() {
    let store = traffic();
    let drop = PolicyKind::Drop(vec![Policy {
        name: "inner".to_owned(),
        kind: errors(),
    }]);
    let all = settings(&[("all", PolicyKind::AlwaysSample), ("no errors", drop)]);
    let run = store.dry_run(&all, NOW_MS + 2000).unwrap();
    assert_eq!(run.kept, 90);
    let dropped = &run.policies[0];
    assert_eq!((&*dropped.name, dropped.dropped), ("no errors", 10));
    let wrong = PolicyKind::StringAttribute {
        key: "k".to_owned(),
        values: vec!["(".to_owned()],
        regex: true,
        invert: false,
    };
    let refusal = store.dry_run(&settings(&[("wrong", wrong)]), NOW_MS);
    assert_eq!(refusal.unwrap_err().policy, "wrong");
}

#[test]
fn old_traces_are_passed_over() {
    let store = traffic();
    let all = settings(&[("all", PolicyKind::AlwaysSample)]);
    let window_ms = crate::dry_run::WINDOW_MS;
    let run = store.dry_run(&all, NOW_MS + window_ms + 500).unwrap();
    assert_eq!((run.traces, run.since_ms), (50, NOW_MS + 500));
    let none = store.dry_run(&all, NOW_MS + window_ms + 5000).unwrap();
    assert_eq!((none.traces, none.kept), (0, 0));
}

#[test]
fn senders_get_the_lock_between_slices() {
    let store = Store::new(Limits::default());
    for trace in 0..4000 {
        let spans = (1..6).map(|number| span(trace, number, 0, trace, 20));
        store.add(&request("s", spans.collect()), Stage::Seen, NOW_MS + trace);
    }
    let all = settings(&[("all", PolicyKind::AlwaysSample)]);
    std::thread::scope(|scope| {
        let sender = scope.spawn(|| {
            for trace in 4000..5000 {
                let spans = vec![span(trace, 1, 0, trace, 20)];
                store.add(&request("s", spans), Stage::Seen, NOW_MS + trace);
            }
        });
        while !sender.is_finished() {
            let run = store.dry_run(&all, NOW_MS + 5000).unwrap();
            assert_eq!(run.kept, run.traces);
            assert!((4000..=5000).contains(&run.traces), "{}", run.traces);
        }
    });
    assert_eq!(store.dry_run(&all, NOW_MS + 5000).unwrap().traces, 5000);
    store.check();
}
