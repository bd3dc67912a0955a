//! What outlives a process: decisions go out as they are made, and come back when what was left is
//! taken again.

use super::Shard;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// A trace was decided, or a late span followed its decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decided {
    /// The trace.
    pub id: [u8; 16],
    /// It is kept.
    pub kept: bool,
    /// The policy that decided, by its number.
    pub policy: Option<u16>,
}

/// The shard that a trace goes to, of so many; hashes have this secret.
#[must_use]
pub fn shard_of(id: &[u8; 16], seed: u64, shards: u32) -> u32 {
    part(xxh3_64_with_seed(id, seed), shards as usize) as u32
}

/// The part that a hash belongs to. Bits of it that the index of a shard does not use, so that each
/// fills all of its tables.
pub(super) fn part(hash: u64, parts: usize) -> usize {
    (((hash >> 32 & 0xffff) * parts as u64) >> 16) as usize
}

impl Shard {
    /// From now on decisions that are remembered are also noted for [`Shard::take_decided`].
    pub fn note_decisions(&mut self) {
        self.decided = Some(Vec::new());
    }

    /// Decisions that were made since the last time. What must outlive the process is to be written
    /// before anything is forgotten that they are about.
    pub fn take_decided(&mut self) -> Vec<Decided> {
        self.decided
            .as_mut()
            .map(std::mem::take)
            .unwrap_or_default()
    }

    #[inline]
    pub(super) fn note_decided(&mut self, id: [u8; 16], kept: bool, policy: Option<u16>) {
        if let Some(decided) = &mut self.decided {
            decided.push(Decided { id, kept, policy });
        }
    }

    /// Remembers decisions of an earlier process, in the order in which they were made, and as many
    /// as before beside them. Spans of these traces count as late. To be called before anything is
    /// accepted.
    pub fn recall_decided(&mut self, decided: &[Decided], now_ns: u64) {
        self.clock(now_ns);
        self.decisions.grow(decided.len() as u64);
        for one in decided {
            let hash = xxh3_64_with_seed(&one.id, self.options.seed);
            let known = |policy: &u16| {
                let program = self.program();
                program.is_some_and(|program| program.name(*policy).is_some())
            };
            let policy = one.policy.filter(known);
            self.decisions.remember(hash, one.kept, policy, now_ns);
        }
        self.decisions.flush();
        self.charge();
    }

    /// Traces that came below the first number are decided and written; the second is the number of
    /// the next trace. What was accepted by now is done with once the first has reached what the
    /// second is now.
    #[must_use]
    pub fn window(&self) -> (u64, u64) {
        (self.table.head(), self.table.tail())
    }
}
