//! The trace store, and the policies that are tried on it.

use ::traces::{BYTES_MIN, Decision, HeatMapQuery, Limits, Stage, Store, TraceQuery};
use collector::config::components::processors::tail_sampling::yaml;
use collector::config::policies::{POLICIES_BYTES_MAX, PoliciesFault, policies};
use collector::dashboard::dry_run;

const BEGIN_MS: u64 = 1_700_000_000_000;

/// A store that is sent requests, decisions and queries while time passes: a byte says what comes
/// next, two more how long it is. What it holds is what it counts after every step, within its
/// bounds, and in the end nothing is left.
pub fn traces_store(data: &[u8]) {
    let store = Store::new(Limits {
        bytes_max: BYTES_MIN,
        age_max_ms: 1000,
    });
    let (mut rest, mut now_ms) = (data, BEGIN_MS);
    while let Some(([step, len @ ..], after)) = rest.split_first_chunk::<3>() {
        let len = usize::from(u16::from_le_bytes(*len)).min(after.len());
        let (bytes, after) = after.split_at(len);
        rest = after;
        match step % 8 {
            0 | 1 => store.add(bytes, Stage::Seen, now_ms),
            2 => store.add(bytes, Stage::Kept, now_ms),
            3 => now_ms += u64::from(*step),
            4 => decide(&store, bytes, now_ms),
            5 => ask(&store, bytes, now_ms),
            6 => {
                let tried = "- { name: a, type: latency, latency: { threshold_ms: 5 } }\n\
                    - { name: b, type: ottl_condition, ottl_condition: { span: ['attributes[\"k\"] == \"v\"'] } }";
                let answer = dry_run(&store, tried, now_ms).expect("good policies");
                assert!(answer.run.kept <= answer.run.traces);
            }
            _ => store.limit(
                Limits {
                    bytes_max: BYTES_MIN + u64::from(*step) * 1000,
                    age_max_ms: u64::from(*step) * 10,
                },
                now_ms,
            ),
        }
        store.check();
        let held = store.held_now(now_ms);
        assert!(held.bytes <= held.bytes_max, "{held:?}");
    }
    let end = store.held_now(now_ms + 1_000_000);
    assert_eq!((end.traces, end.spans, end.bytes), (0, 0, 0));
    store.check();
}

fn decide(store: &Store, bytes: &[u8], now_ms: u64) {
    let (ids, _) = bytes.as_chunks::<16>();
    let decisions = ids.iter().map(|id| Decision {
        id: *id,
        kept: id[0] % 2 == 0,
        policy: [None, Some("p"), Some("q")][usize::from(id[1] % 3)],
    });
    store.decided(decisions, now_ms);
}

/// A query as it stands in a URL, decoded; every trace of its answer is told whole.
fn ask(store: &Store, bytes: &[u8], now_ms: u64) {
    let text = String::from_utf8_lossy(bytes);
    let pairs = || text.split('&').filter_map(|pair| pair.split_once('='));
    if let Ok(query) = HeatMapQuery::from_pairs(pairs()) {
        let map = store.heat_map(&query, now_ms);
        let counts = map.columns.iter().flatten().map(|count| u64::from(*count));
        assert_eq!(counts.sum::<u64>(), map.matched);
        assert!(map.bounds_ms.windows(2).all(|bounds| bounds[0] < bounds[1]));
    }
    let Ok(query) = TraceQuery::from_pairs(pairs()) else {
        return;
    };
    let list = store.list(&query, now_ms);
    assert!(list.traces.len() <= query.limit && list.traces.len() as u64 <= list.matched);
    for row in &list.traces {
        let id = ::traces::trace_id(&row.id).expect("an identifier");
        let trace = store.trace(&id).expect("a trace that is listed");
        assert_eq!(trace.spans.len() as u64, row.spans);
        serde_json::to_vec(&trace).expect("JSON");
    }
    serde_json::to_vec(&store.services(now_ms)).expect("JSON");
}

/// The policies of a dry run: they are read, and written they are read as the same; or the place of
/// a fault is told.
pub fn policies_yaml(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match policies(&text) {
        Ok((settings, _)) => {
            let written = yaml(&settings.policies);
            if written.len() > POLICIES_BYTES_MAX {
                return;
            }
            let again = policies(&written);
            let again = again.unwrap_or_else(|fault| panic!("{fault:?}\n{written}"));
            assert_eq!(again.0.policies, settings.policies, "{written}");
        }
        Err(PoliciesFault {
            error,
            line,
            column,
        }) => assert!(!error.is_empty() && line > 0 && column > 0),
    }
}
