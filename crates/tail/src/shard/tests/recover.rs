//! Decisions that outlive a shard.

use super::limits::spans;
use super::*;
use crate::tests::trace_id;

fn settings(policy: Policy, traces_max: u64) -> TailSampling {
    TailSampling {
        policies: vec![policy],
        decision_wait_ns: SECOND_NS,
        traces_max,
        ..TailSampling::default()
    }
}

fn half() -> Policy {
    named(
        "half",
        PolicyKind::Probabilistic {
            percentage: 50.0,
            hash_salt: String::new(),
        },
    )
}

#[test]
fn the_next_shard_goes_on_as_this_one_decided() {
    let mut shard = shard(&settings(half(), 1000));
    shard.note_decisions();
    shard.accept(&spans(0..600, 2), 0).unwrap();
    assert_eq!((shard.take_decided(), shard.window()), (vec![], (0, 600)));
    let kept = tick(&mut shard, SECOND_NS).len() / 2;
    assert_eq!(shard.window(), (600, 600));
    let mut decided = shard.take_decided();
    assert_eq!(decided.len(), 600);
    assert_eq!(decided.iter().filter(|one| one.kept).count(), kept);
    // Late spans say once more what they followed.
    shard.accept(&spans(0..3, 1), SECOND_NS).unwrap();
    let again = shard.take_decided();
    assert_eq!(again.len(), 3);
    assert!(again.iter().all(|one| decided.contains(one)));
    decided.extend(again);

    // The next one remembers them beside its own, few as those are, and would keep everything.
    let options = Options {
        seed: 99,
        ..options()
    };
    let budget = Arc::new(Budget::new(1 << 30));
    let mut next = Shard::tail_sampling(&settings(always(), 10), options, budget).unwrap();
    next.recall_decided(&decided, 0);
    check(&next);
    next.accept(&spans(0..605, 2), 0).unwrap();
    check(&next);
    assert_eq!(next.account.pending, 10, "five traces are new");
    assert_eq!(next.account.late_dropped, (600 - kept as u64) * 2);
    assert_eq!(tick(&mut next, SECOND_NS).len(), kept * 2 + 10);
}

#[test]
fn a_trace_has_one_shard_whoever_asks() {
    let settings = TailSampling {
        shards: 3,
        ..settings(always(), 1000)
    };
    let mut splitter = Splitter::tail_sampling(&settings, &options()).unwrap();
    let mut chunks = Vec::new();
    for trace in 0..100 {
        splitter
            .split(&spans(trace..trace + 1, 1), &mut chunks)
            .unwrap();
        let place = chunks.iter().position(|chunk| !chunk.is_empty());
        let expected = shard_of(&trace_id(trace), options().seed, 3);
        assert_eq!(place, Some(expected as usize));
    }
}
