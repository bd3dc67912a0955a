//! Random requests, decisions, queries and limits: the accounts are correct after every step.

use opentelemetry_proto::tonic::trace::v1::Span;

use super::model::{NOW_MS, failed, http, id, request, span, string};
use crate::{Decision, HeatMapQuery, Limits, Stage, Store, TraceQuery};

/// xorshift64*
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 20) % bound
    }
}

fn any_span(random: &mut Random) -> Span {
    let (trace, number) = (random.below(60), random.below(40));
    let parent = random.below(4);
    let mut span = span(
        trace,
        number,
        parent,
        random.below(10_000),
        random.below(500),
    );
    if random.below(5) == 0 {
        span = failed(span);
    }
    if random.below(3) == 0 {
        span = http(span, ["/a", "/b"][random.below(2) as usize], 500);
    }
    if random.below(8) == 0 {
        let policy = ["p", "q"][random.below(2) as usize];
        span.attributes.push(string("tailsampling.policy", policy));
    }
    let pad = "x".repeat(random.below(3000) as usize);
    span.attributes.push(string("pad", &pad));
    span
}

fn step(store: &Store, random: &mut Random, now_ms: u64) {
    match random.below(10) {
        0..6 => {
            let count = random.below(30);
            let spans = (0..count).map(|_| any_span(random)).collect();
            let service = ["a", "b", "c"][random.below(3) as usize];
            let mut bytes = request(service, spans);
            if random.below(10) == 0 && !bytes.is_empty() {
                let at = random.below(bytes.len() as u64) as usize;
                bytes[at] ^= 1 << random.below(8);
            }
            let stage = [Stage::Seen, Stage::Kept][random.below(2) as usize];
            store.add(&bytes, stage, now_ms);
        }
        6 => {
            let decisions: Vec<_> = (0..20)
                .map(|_| Decision {
                    id: id(random.below(80)),
                    kept: random.below(2) == 0,
                    policy: [None, Some("p"), Some("r")][random.below(3) as usize],
                })
                .collect();
            store.decided(decisions, now_ms);
        }
        7 => {
            let limits = Limits {
                bytes_max: (1 << 20) + random.below(1 << 20),
                age_max_ms: 500 + random.below(5000),
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
            if let Some(trace) = store.trace(&id(random.below(60))) {
                assert!(!trace.spans.is_empty());
            }
        }
    }
}

#[test]
fn what_is_counted_is_what_is_held() {
    for seed in 1..=20 {
        let mut random = Random(u64::wrapping_mul(seed, 0x9e37_79b9_7f4a_7c15) | 1);
        let store = Store::new(Limits {
            bytes_max: 1 << 20,
            age_max_ms: 2000,
        });
        let mut now_ms = NOW_MS;
        for _ in 0..150 {
            now_ms += random.below(50);
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
