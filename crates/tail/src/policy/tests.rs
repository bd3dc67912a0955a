//! Programs of several policies.

use super::*;
use crate::settings::{Policy as Setting, PolicyKind, StatusCodes};

fn named(name: &str, kind: PolicyKind) -> Setting {
    Setting {
        name: name.to_owned(),
        kind,
    }
}

fn error_status() -> PolicyKind {
    PolicyKind::StatusCode(StatusCodes {
        error: true,
        ..StatusCodes::default()
    })
}

fn all_of(percentage: f64) -> PolicyKind {
    PolicyKind::Probabilistic {
        percentage,
        hash_salt: String::new(),
    }
}

fn program(policies: Vec<Setting>) -> Program {
    Program::new(&TailSampling {
        policies,
        ..TailSampling::default()
    })
    .unwrap()
}

fn trace(bits: u64, spans: u64) -> Trace<'static> {
    Trace {
        id: &[1; 16],
        bits,
        more: &[],
        spans,
        bytes: 100,
    }
}

#[test]
fn drop_comes_first_and_ends_it() {
    let drop = PolicyKind::Drop(vec![named("error", error_status())]);
    let mut program = program(vec![
        named("always", PolicyKind::AlwaysSample),
        named("drop", drop),
    ]);
    assert_eq!(program.name(0), Some("drop"));
    let decide = |program: &mut Program, bits| program.decide(&trace(bits, 1), 0);
    assert_eq!(decide(&mut program, 1).fate, Fate::Dropped);
    assert_eq!(
        decide(&mut program, 0),
        Decision {
            sub: None,
            fate: Fate::Sampled,
            policy: Some(1)
        }
    );
    let votes: Vec<_> = program.votes().map(|(_, votes)| *votes).collect();
    assert_eq!(
        (votes[0].dropped.traces, votes[0].not_sampled.traces),
        (1, 1)
    );
    assert_eq!(votes[1].evaluations, 1);
}

#[test]
fn the_least_strict_threshold_is_recorded() {
    let policies = vec![
        named("some", all_of(100.0)),
        named("error", error_status()),
        named("always", PolicyKind::AlwaysSample),
    ];
    // All of 100 % has the threshold 0, as all others have: the first stays.
    assert_eq!(program(policies).decide(&trace(1, 1), 0).policy, Some(0));
    let policies = vec![
        named("some", all_of(99.999)),
        named("error", error_status()),
    ];
    let mut program = program(policies);
    assert_eq!(program.decide(&trace(1, 1), 0).policy, Some(1));
    assert_eq!(program.decide(&trace(0, 1), 0).policy, Some(0));
}

#[test]
fn and_and_not() {
    let not = PolicyKind::Not(Box::new(named("error", error_status())));
    let and = PolicyKind::And(vec![
        named("not", not),
        named("count", PolicyKind::SpanCount { min: 2, max: 0 }),
    ]);
    let mut program = program(vec![named("and", and)]);
    let fates =
        [(0, 1), (0, 2), (1, 2)].map(|(bits, spans)| program.decide(&trace(bits, spans), 0).fate);
    assert_eq!(fates, [Fate::NotSampled, Fate::Sampled, Fate::NotSampled]);
}

#[test]
fn errors_are_no_vote() {
    let condition = PolicyKind::OttlCondition {
        span: vec!["Len(attributes[\"x\"]) > 1".to_owned()],
        span_event: Vec::new(),
        error_mode: crate::settings::ErrorMode::Propagate,
    };
    let mut program = program(vec![
        named("ottl", condition),
        named("count", PolicyKind::SpanCount { min: 2, max: 0 }),
    ]);
    // The second bit is the error.
    assert_eq!(program.decide(&trace(2, 1), 0).fate, Fate::NotSampled);
    assert_eq!(program.decide(&trace(2, 2), 0).policy, Some(1));
    assert_eq!(program.decide(&trace(1, 1), 0).policy, Some(0));
    assert_eq!(program.votes().next().unwrap().1.errors, 2);
}

#[test]
fn first_match_asks_no_further() {
    let mut program = Program::new(&TailSampling {
        policies: vec![
            named("a", PolicyKind::AlwaysSample),
            named("b", PolicyKind::AlwaysSample),
        ],
        sample_on_first_match: true,
        ..TailSampling::default()
    })
    .unwrap();
    assert_eq!(program.decide(&trace(0, 1), 0).policy, Some(0));
    assert_eq!(program.votes().nth(1).unwrap().1.evaluations, 0);
}

#[test]
fn span_ingest_refuses_what_depends_on_more() {
    let refused = |kind| {
        let settings = TailSampling {
            policies: vec![named("p", kind)],
            strategy: Strategy::SpanIngest,
            ..TailSampling::default()
        };
        Program::new(&settings).is_err()
    };
    assert!(refused(PolicyKind::SpanCount { min: 1, max: 5 }));
    assert!(!refused(PolicyKind::SpanCount { min: 1, max: 0 }));
    let limit = PolicyKind::RateLimiting {
        spans_per_second: 1,
        burst_capacity: 0,
    };
    assert!(refused(limit.clone()));
    assert!(refused(PolicyKind::And(vec![named("limit", limit)])));
    let latency = |upper_threshold_ms| PolicyKind::Latency {
        threshold_ms: 1,
        upper_threshold_ms,
    };
    assert!(refused(latency(5)) && !refused(latency(0)));
}

#[test]
fn a_batch_is_pending_while_a_drop_may_come() {
    let drop = PolicyKind::Drop(vec![named("error", error_status())]);
    let mut program = program(vec![
        named("always", PolicyKind::AlwaysSample),
        named("drop", drop),
    ]);
    assert_eq!(program.decide_batch(&trace(0, 1), 0).fate, Fate::Pending);
    assert_eq!(program.decide_batch(&trace(1, 1), 0).fate, Fate::Dropped);
}

#[test]
fn refusals_name_the_policy() {
    let refusal = |kind| {
        let settings = TailSampling {
            policies: vec![named("mine", kind)],
            ..TailSampling::default()
        };
        Program::new(&settings).unwrap_err().to_string()
    };
    let regex = PolicyKind::StringAttribute {
        key: "k".to_owned(),
        values: vec!["(".to_owned()],
        regex: true,
        invert: false,
    };
    let text = refusal(PolicyKind::And(vec![named("sub", regex)]));
    assert!(
        text.starts_with("policy \"mine\": sub-policy \"sub\": the regular expression"),
        "{text}"
    );
    let none = PolicyKind::NumericAttribute {
        key: "k".to_owned(),
        min: None,
        max: None,
        invert: false,
    };
    assert!(refusal(none).contains("min_value"));
}
