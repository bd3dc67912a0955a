//! Many shards do what one does.

use super::*;
use crate::tests::{Model, request};
use prost::Message;

#[test]
fn many_shards_keep_what_one_keeps() {
    let settings = |shards| TailSampling {
        policies: vec![
            errors(),
            named("long", PolicyKind::SpanCount { min: 6, max: 0 }),
        ],
        decision_wait_ns: SECOND_NS,
        shards,
        ..TailSampling::default()
    };
    let budget = Arc::new(Budget::new(1 << 30));
    let new = |shards| Shard::tail_sampling(&settings(shards), options(), budget.clone()).unwrap();
    let (mut one, mut many) = (new(1), (0..4).map(|_| new(4)).collect::<Vec<_>>());
    let mut splitter = Splitter::tail_sampling(&settings(4), &options()).unwrap();
    let (mut chunks, mut model) = (Vec::new(), Model::new(9));
    let (mut alone, mut together) = (Vec::new(), Vec::new());
    for step in 0..200 {
        let now_ns = step * 100 * MS;
        let bytes = request(&mut model).encode_to_vec();
        one.accept(&bytes, now_ns).unwrap();
        splitter.split(&bytes, &mut chunks).unwrap();
        for (shard, chunk) in many.iter_mut().zip(&mut chunks) {
            shard.reserve_chunk(chunk, now_ns).unwrap();
        }
        let spans: u64 = many
            .iter_mut()
            .zip(&mut chunks)
            .map(|(shard, chunk)| shard.accept_chunk(chunk, now_ns).spans)
            .sum();
        assert_eq!(spans, chunks.iter().map(Chunk::spans).sum::<u64>());
        let held = one.held_bytes() + many.iter().map(Shard::held_bytes).sum::<u64>();
        assert_eq!(budget.used_bytes(), held);
        for (shards, out) in [
            (std::slice::from_mut(&mut one), &mut alone),
            (&mut many, &mut together),
        ] {
            for shard in shards {
                shard.tick(now_ns, u64::MAX);
                assert_eq!(shard.account.difference(), 0);
                while let Some(batch) = shard.pop() {
                    oracle::pieces(&batch.bytes, out);
                    shard.acked(batch.spans, batch.bytes.len() as u64);
                }
            }
        }
    }
    alone.sort();
    together.sort();
    assert!(!alone.is_empty() && alone == together);
    assert!(
        many.iter().all(|shard| shard.account.accepted > 100),
        "each has its part"
    );
    let accepted: u64 = many.iter().map(|shard| shard.account.accepted).sum();
    assert_eq!(accepted, one.account.accepted);
}

#[test]
fn a_chunk_that_is_not_taken_leaves_nothing() {
    let settings = TailSampling {
        policies: vec![errors()],
        shards: 2,
        ..TailSampling::default()
    };
    let budget = Arc::new(Budget::new(1 << 30));
    let mut shards =
        [(); 2].map(|()| Shard::tail_sampling(&settings, options(), budget.clone()).unwrap());
    let mut splitter = Splitter::tail_sampling(&settings, &options()).unwrap();
    let mut chunks = Vec::new();
    let mut model = Model::new(4);
    let bytes: Vec<u8> = (0..9)
        .flat_map(|_| request(&mut model).encode_to_vec())
        .collect();
    splitter.split(&bytes, &mut chunks).unwrap();
    for (shard, chunk) in shards.iter_mut().zip(&mut chunks) {
        shard.reserve_chunk(chunk, 0).unwrap();
    }
    assert!(budget.used_bytes() > 0);
    for (shard, chunk) in shards.iter_mut().zip(&mut chunks) {
        shard.cancel_chunk(chunk);
        assert_eq!(shard.account.accepted, 0);
    }
    assert_eq!(budget.used_bytes(), 0);
    assert!(
        splitter
            .split(&bytes[..bytes.len() - 1], &mut chunks)
            .is_err()
    );
}
