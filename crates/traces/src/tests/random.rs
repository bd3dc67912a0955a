//! Random requests, decisions, queries and limits: the accounts are correct after every step.

use opentelemetry_proto::tonic::trace::v1::Span;
use testing::Random;

use super::model::{NOW_MS, failed, http, id, request, span, string};
use crate::{Decision, HeatMapQuery, Limits, Stage, Store, TraceQuery};

fn any_span(random: &mut Random) -> Span {
    let (trace, number) = (random.number_below(60), random.number_below(40));
    let parent = random.number_below(4);
    let mut span = span(
        trace,
        number,
        parent,
        random.number_below(10_000),
        random.number_below(500),
    );
    if random.number_below(5) == 0 {
        span = failed(span);
    }
    if random.number_below(3) == 0 {
        span = http(span, ["/a", "/b"][random.number_below(2) as usize], 500);
    }
    if random.number_below(8) == 0 {
        let policy = ["p", "q"][random.number_below(2) as usize];
        span.attributes.push(string("tailsampling.policy", policy));
    }
    let pad = "x".repeat(random.number_below(3000) as usize);
    span.attributes.push(string("pad", &pad));
    span
}

fn step(store: &Store, random: &mut Random, now_ms: u64) {
    match random.number_below(10) {
        0..6 => {
            let count = random.number_below(30);
            let spans = (0..count).map(|_| any_span(random)).collect();
            let service = ["a", "b", "c"][random.number_below(3) as usize];
            let mut bytes = request(service, spans);
            if random.number_below(10) == 0 && !bytes.is_empty() {
                let at = random.number_below(bytes.len() as u64) as usize;
                bytes[at] ^= 1 << random.number_below(8);
            }
            let stage = [Stage::Seen, Stage::Kept][random.number_below(2) as usize];
            store.add(&bytes, stage, now_ms);
        }
        6 => {
            let decisions: Vec<_> = (0..20)
                .map(|_| Decision {
                    id: id(random.number_below(80)),
                    kept: random.number_below(2) == 0,
                    policy: [None, Some("p"), Some("r")][random.number_below(3) as usize],
                })
                .collect();
            store.decided(decisions, now_ms);
        }
        7 => {
            let limits = Limits {
                bytes_max: (1 << 20) + random.number_below(1 << 20),
                age_max_ms: 500 + random.number_below(5000),
            };
            store.limit(limits, now_ms);
        }
        8 => {
            let query = TraceQuery {
                service: Some("a".to_owned()),
                ..TraceQuery::default()
            };
            let list = store.list(&query, now_ms);
            assert!(list.matched <= list.held.traces);
        }
        _ => {
            let map = store.heat_map(&HeatMapQuery::default(), now_ms);
            let all: u64 = map
                .columns
                .iter()
                .flatten()
                .map(|count| u64::from(*count))
                .sum();
            assert_eq!(all, map.matched);
            if let Some(trace) = store.trace(&id(random.number_below(60))) {
                assert!(!trace.spans.is_empty());
            }
        }
    }
}

#[test]
fn what_is_counted_is_what_is_held() {
    for seed in 1..=20 {
        let mut random = Random::new(seed);
        let store = Store::new(Limits {
            bytes_max: 1 << 20,
            age_max_ms: 2000,
        });
        let mut now_ms = NOW_MS;
        for _ in 0..150 {
            now_ms += random.number_below(50);
            step(&store, &mut random, now_ms);
            let held = store.held_now(now_ms);
            assert!(held.bytes <= held.bytes_max, "seed {seed}: {held:?}");
            store.check();
        }
        let end = store.held_now(now_ms + 10_000);
        assert_eq!((end.traces, end.spans, end.bytes), (0, 0, 0), "seed {seed}");
        store.check();
    }
}
