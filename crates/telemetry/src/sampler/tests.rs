use super::*;
use crate::context::SAMPLED;
use crate::{Ids, SpanId};
use otlp::tracestate::threshold_of;

fn parent(remote: bool, sampled: bool) -> SpanContext {
    SpanContext {
        trace_id: trace(1),
        span_id: SpanId([1; 8]),
        flags: if sampled { SAMPLED } else { 0 },
        remote,
    }
}

fn trace(low: u64) -> TraceId {
    let mut id = [0xff; 16];
    id[8..].copy_from_slice(&low.to_be_bytes());
    TraceId(id)
}

fn root(sampler: Sampler, trace: TraceId) -> Decision {
    sampler.decide(None, b"", trace)
}

/// How many of 100,000 traces are kept.
fn kept(sampler: Sampler) -> u32 {
    let mut ids = Ids::new([1, 2, 3, 4]);
    (0..100_000)
        .map(|_| u32::from(root(sampler, ids.trace_id()).sampled))
        .sum()
}

#[test]
fn a_ratio_compares_63_bits() {
    let with = |share, low| root(Sampler::TraceIdRatio(Ratio::new(share)), trace(low)).sampled;
    assert!(with(1.0, u64::MAX) && !with(0.0, 0));
    assert!(with(0.5, 0x7fff_ffff_ffff_ffff) && !with(0.5, 0x8000_0000_0000_0000));
    assert!(with(0.25, 0x3fff_ffff_ffff_ffff) && !with(0.25, 0x4000_0000_0000_0000));
    assert!(with(f64::NAN, u64::MAX) && with(7.0, u64::MAX) && !with(-1.0, 0));
    // 2^-63 keeps just those whose 63 bits are 0.
    assert!(with(2f64.powi(-63), 1) && !with(2f64.powi(-63), 2));
}

#[test]
fn shares_are_kept() {
    for (share, margin) in [(0.5, 600), (0.1, 400), (0.01, 120), (1.0, 0), (0.0, 0)] {
        let wanted = (share * 100_000.0) as u32;
        for sampler in [
            Sampler::TraceIdRatio(Ratio::new(share)),
            Sampler::Composite(Composite::Probability(threshold_of(share))),
            Sampler::Composite(Composite::ParentThreshold(threshold_of(share))),
        ] {
            assert!(
                kept(sampler).abs_diff(wanted) <= margin,
                "{sampler:?}: {}",
                kept(sampler)
            );
        }
    }
}

#[test]
fn what_a_smaller_share_keeps_a_larger_one_keeps_too() {
    let mut ids = Ids::new([4, 3, 2, 1]);
    for _ in 0..10_000 {
        let trace = ids.trace_id();
        let ratio = |share| root(Sampler::TraceIdRatio(Ratio::new(share)), trace).sampled;
        let composite = |share| {
            root(
                Sampler::Composite(Composite::Probability(threshold_of(share))),
                trace,
            )
            .sampled
        };
        assert!(!ratio(0.1) || ratio(0.3));
        assert!(!composite(0.1) || composite(0.3));
    }
}

#[test]
fn a_parent_decides_by_its_kind() {
    let samplers = ParentBased {
        root: Simple::TraceIdRatio(Ratio::new(0.0)),
        ..ParentBased::default()
    };
    let decide = |samplers, parent: Option<SpanContext>| {
        Sampler::ParentBased(samplers)
            .decide(parent.as_ref(), b"ot=th:8", trace(1))
            .sampled
    };
    assert!(!decide(samplers, None) && decide(ParentBased::default(), None));
    assert!(!decide(
        samplers,
        Some(SpanContext {
            flags: SAMPLED,
            ..SpanContext::default()
        })
    ));
    for remote in [true, false] {
        assert!(decide(samplers, Some(parent(remote, true))));
        assert!(!decide(samplers, Some(parent(remote, false))));
    }
    let other = ParentBased {
        remote_sampled: Simple::AlwaysOff,
        local_not_sampled: Simple::AlwaysOn,
        ..samplers
    };
    assert!(!decide(other, Some(parent(true, true))) && decide(other, Some(parent(false, true))));
    assert!(!decide(other, Some(parent(true, false))) && decide(other, Some(parent(false, false))));
}

#[test]
fn a_probability_ignores_the_parents_decision_but_not_its_randomness() {
    let half = Sampler::Composite(Composite::Probability(threshold_of(0.5)));
    let low = trace(1);
    assert_eq!(
        half.decide(Some(&parent(true, true)), b"ot=th:0", low),
        Decision::of(false)
    );
    let state = b"a=b,ot=rv:80000000000000";
    let drawn = half.decide(Some(&parent(true, false)), state, low);
    assert_eq!(
        drawn,
        Decision {
            sampled: true,
            threshold: threshold_of(0.5)
        }
    );
    assert!(!half.decide(None, state, low).sampled);
}

#[test]
fn a_parents_threshold_is_passed_on_if_it_agrees() {
    let sampler = Sampler::Composite(Composite::ParentThreshold(threshold_of(0.0)));
    let (low, high) = (trace(1), trace(u64::MAX));
    let on = parent(true, true);
    let eight = Some(8 << 52);
    assert_eq!(
        sampler.decide(Some(&on), b"ot=th:8", high),
        Decision {
            sampled: true,
            threshold: eight
        }
    );
    assert_eq!(
        sampler.decide(Some(&on), b"ot=th:8", low),
        Decision::of(true)
    );
    assert_eq!(sampler.decide(Some(&on), b"", low), Decision::of(true));
    let off = parent(true, false);
    for state in ["", "ot=th:8", "ot=th:0"] {
        assert_eq!(
            sampler.decide(Some(&off), state.as_bytes(), high),
            Decision::of(false)
        );
    }
    assert_eq!(sampler.decide(None, b"ot=th:0", high), Decision::of(false));
}
