//! The same decisions and the same bytes as the plain program, over random traces.

use super::oracle::Oracle;
use super::*;
use crate::settings::ErrorMode;
use crate::tests::{Model, request};
use prost::Message;

fn text(key: &str, values: &[&str], regex: bool, invert: bool) -> PolicyKind {
    PolicyKind::StringAttribute {
        key: key.to_owned(),
        values: values.iter().map(|value| (*value).to_owned()).collect(),
        regex,
        invert,
    }
}

fn latency(threshold_ms: u64, upper_threshold_ms: u64) -> PolicyKind {
    PolicyKind::Latency {
        threshold_ms,
        upper_threshold_ms,
    }
}

fn number(min: Option<i64>, max: Option<i64>, invert: bool) -> PolicyKind {
    PolicyKind::NumericAttribute {
        key: "http.status".to_owned(),
        min,
        max,
        invert,
    }
}

fn all_kinds() -> Vec<PolicyKind> {
    let ottl = PolicyKind::OttlCondition {
        span: vec!["attributes[\"tier\"] == \"gold\"".to_owned()],
        span_event: vec!["name == \"exception\" and attributes[\"k\"] == \"a\"".to_owned()],
        error_mode: ErrorMode::Propagate,
    };
    let boolean = |value, invert| PolicyKind::BooleanAttribute {
        key: "cache".to_owned(),
        value,
        invert,
    };
    vec![
        errors().kind,
        latency(300, 0),
        latency(100, 300),
        number(Some(500), Some(599), false),
        number(None, Some(-1), false),
        number(Some(1), None, true),
        text("tier", &["gold", "silver"], false, false),
        text("tier", &["silver"], false, true),
        text("url.path", &["/heal", "b"], true, false),
        text("url.path", &["/"], true, true),
        boolean(true, false),
        boolean(false, false),
        boolean(true, true),
        PolicyKind::TraceState {
            key: "k".to_owned(),
            values: vec!["gold".to_owned(), "w".to_owned()],
        },
        PolicyKind::TraceFlags,
        PolicyKind::SpanCount { min: 3, max: 0 },
        PolicyKind::SpanCount { min: 2, max: 5 },
        PolicyKind::Probabilistic {
            percentage: 30.0,
            hash_salt: String::new(),
        },
        ottl,
    ]
}

struct Case {
    policies: Vec<Policy>,
    wait_ms: u64,
    wait_after_root_ms: u64,
    traces_max: u64,
    /// Decisions that are remembered of each kind, beside `traces_max`.
    cache: u64,
    seed: u64,
}

impl Default for Case {
    fn default() -> Case {
        Case {
            policies: vec![errors()],
            wait_ms: 500,
            wait_after_root_ms: 0,
            traces_max: 100_000,
            cache: 0,
            seed: 1,
        }
    }
}

/// Runs engine and plain program side by side, with templates and without; gives the one with them.
fn run(case: Case) -> (Shard, usize) {
    run_with(&case, false);
    run_with(&case, true)
}

fn run_with(case: &Case, templates: bool) -> (Shard, usize) {
    let mut oracle = Oracle::new(case.policies.clone(), case.wait_ms);
    oracle.wait_after_root_ms = case.wait_after_root_ms;
    oracle.traces_max = case.traces_max as usize;
    let settings = TailSampling {
        policies: case.policies.clone(),
        decision_wait_ns: case.wait_ms * MS,
        wait_after_root_ns: case.wait_after_root_ms * MS,
        traces_max: case.traces_max,
        sampled_cache_size: case.cache,
        non_sampled_cache_size: case.cache,
        ..TailSampling::default()
    };
    let with = Options {
        templates,
        ..options()
    };
    let mut shard = Shard::tail_sampling(&settings, with, Arc::new(Budget::new(1 << 30))).unwrap();
    let mut model = Model::new(case.seed);
    let (mut now_ms, mut out, mut accepted) = (1000, Vec::new(), 0);
    for _ in 0..150 {
        now_ms += model.random.below(60);
        let request = request(&mut model);
        let taken = shard.accept(&request.encode_to_vec(), now_ms * MS).unwrap();
        accepted += taken.spans;
        assert_eq!(shard.account.accepted, accepted);
        check(&shard);
        oracle.accept(&request, now_ms);
        now_ms += model.random.below(60);
        out.extend(tick(&mut shard, now_ms * MS));
        oracle.tick(now_ms);
    }
    now_ms += 10_000;
    out.extend(tick(&mut shard, now_ms * MS));
    oracle.tick(now_ms);
    out.sort();
    oracle.out.sort();
    assert_eq!(out.len(), oracle.out.len());
    assert!(
        out == oracle.out,
        "the same spans with the same things around them"
    );
    let counters = &shard.counters;
    assert_eq!(
        (counters.traces_early, counters.traces_dropped_early),
        (oracle.early, oracle.dropped_early)
    );
    assert_eq!((shard.account.pending, shard.pending_traces()), (0, 0));
    assert_eq!(shard.headers.count(), 0, "headers go with their segments");
    assert_eq!(shard.headers.held_bytes(), 0);
    (shard, out.len())
}

#[test]
fn every_policy_alone() {
    let mut late = [0; 2];
    for (seed, kind) in (0..).zip(all_kinds()) {
        let text = format!("{kind:?}");
        let (shard, kept) = run(Case {
            policies: vec![named("p", kind)],
            seed,
            ..Case::default()
        });
        let accepted = shard.account.accepted as usize;
        assert!(
            kept > 0 && kept < accepted,
            "{text} keeps {kept} of {accepted}"
        );
        late[0] += shard.counters.late_sampled;
        late[1] += shard.counters.late_not_sampled;
    }
    assert!(late[0] > 0 && late[1] > 0);
}

#[test]
fn many_policies_together() {
    let kinds = all_kinds();
    for seed in 0..30 {
        let mut random = crate::tests::Random::new(seed);
        let mut pick = || named(&random.next().to_string(), random.pick(&kinds).clone());
        let and = PolicyKind::And(vec![pick(), named("n", PolicyKind::Not(Box::new(pick())))]);
        let drop = PolicyKind::Drop(vec![pick(), pick()]);
        let policies = vec![pick(), named("and", and), named("drop", drop), pick()];
        run(Case {
            policies,
            seed,
            wait_after_root_ms: if seed % 3 == 0 { 100 } else { 0 },
            ..Case::default()
        });
    }
}

#[test]
fn traces_that_make_room_for_others() {
    for kind in all_kinds() {
        let (shard, _) = run(Case {
            policies: vec![named("p", kind)],
            traces_max: 7,
            cache: 100_000,
            wait_ms: 2000,
            ..Case::default()
        });
        let counters = &shard.counters;
        assert!(counters.traces_early > counters.traces_dropped_early);
        assert!(counters.traces_dropped_early > 0);
    }
}

#[test]
fn roots_shorten_the_wait() {
    let (shard, _) = run(Case {
        wait_after_root_ms: 20,
        wait_ms: 5000,
        ..Case::default()
    });
    assert!(shard.counters.late_sampled > 0);
}
