//! The memory of decisions, for spans that come late.
//!
//! Four generations of buckets of 64 bytes; a decision is a word of 64 bits: 47 bits of the trace's
//! hash, its policy, and whether it was kept. Before the newest generation is full, the oldest is
//! forgotten, some of it with every decision, so that this is no stall however many decisions there
//! are. A trace is taken for another with a probability of about 2^-42 a look-up.

/// Words of a bucket, which is a cache line.
const WAYS: usize = 8;

const GENERATIONS: usize = 4;

/// Buckets that a decision may be in; one that is not full ends the search.
const PROBES: usize = 4;

/// The last part of a generation in which the oldest is forgotten.
const FORGET_PART: u64 = 8;

/// Decisions that are put in their places together.
const QUEUE: usize = 32;

/// Lowest bit of the hash that a word has.
const FINGERPRINT_SHIFT: u32 = 17;

/// Set in every word that is used.
const USED: u64 = 1;
const KEPT: u64 = 2;

/// No policy: nothing is recorded with late spans.
const NO_POLICY: u64 = (1 << 15) - 1;

/// Zero is empty: a generation begins with pages that the system gives out as they are first used.
type Bucket = [u64; WAYS];

#[derive(Debug, Default)]
struct Generation {
    buckets: Vec<Bucket>,
    used: u64,
    began_ns: u64,
    /// Buckets that were emptied for the next time.
    empty: usize,
}

/// A decision that was remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Past {
    /// The trace was kept.
    pub kept: bool,
    /// The policy that was recorded for it.
    pub policy: Option<u16>,
    /// When it was decided, or a little before.
    pub about_ns: u64,
}

/// Decisions.
#[derive(Debug)]
pub struct Memory {
    generations: [Generation; GENERATIONS],
    newest: usize,
    /// Decisions of a generation.
    each: u64,
    buckets: usize,
    forgotten: u64,
    /// Decisions that were not put in their places yet, and when the last of them was made.
    queue: Vec<(u64, u64)>,
    queued_ns: u64,
}

/// Of all generations but the newest, what is not being forgotten: these have the last decisions.
const PARTS: u64 = (GENERATIONS as u64 - 1) * FORGET_PART - 1;

/// Bytes of a decision in a generation, which is half full at most, so that there is nearly always
/// a place.
const DECISION_BYTES: u64 = 2 * size_of::<u64>() as u64;

impl Memory {
    /// One that remembers at least the last `decisions`, or as many as are sure to have room in
    /// `bytes_max`.
    #[must_use]
    pub fn within(decisions: u64, bytes_max: u64) -> Memory {
        let each = bytes_max / (DECISION_BYTES * GENERATIONS as u64);
        Memory::new(decisions.min(each * PARTS / FORGET_PART))
    }

    /// One that remembers at least the last `decisions`; 0 is none at all.
    #[must_use]
    pub fn new(decisions: u64) -> Memory {
        let each = (decisions.min(1 << 32) * FORGET_PART).div_ceil(PARTS);
        let bytes = each * DECISION_BYTES;
        let buckets = bytes
            .div_ceil(size_of::<Bucket>() as u64)
            .max(PROBES as u64);
        Memory {
            generations: Default::default(),
            newest: 0,
            each,
            buckets: if decisions == 0 { 0 } else { buckets as usize },
            forgotten: 0,
            queue: Vec::with_capacity(QUEUE),
            queued_ns: 0,
        }
    }

    /// Bytes of all generations that were needed so far.
    #[must_use]
    pub fn held_bytes(&self) -> u64 {
        let buckets: usize = self.generations.iter().map(|each| each.buckets.len()).sum();
        (buckets * size_of::<Bucket>()) as u64
    }

    /// So many are remembered at least.
    #[must_use]
    pub fn decisions(&self) -> u64 {
        self.each * (GENERATIONS as u64 - 1)
    }

    /// Decisions that were forgotten early.
    #[must_use]
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }

    fn fingerprint(hash: u64) -> u64 {
        hash & !((1 << FINGERPRINT_SHIFT) - 1)
    }

    fn bucket(&self, hash: u64) -> usize {
        // The bits that the fingerprint does not have weigh most.
        let spread = u128::from(hash.rotate_right(FINGERPRINT_SHIFT));
        ((spread * self.buckets as u128) >> 64) as usize
    }

    /// The buckets that a decision may be in.
    fn probes(&self, hash: u64) -> impl Iterator<Item = usize> + use<> {
        let (home, buckets) = (self.bucket(hash), self.buckets);
        (home..home + PROBES).map(move |at| if at < buckets { at } else { at - buckets })
    }

    /// Remembers a decision. It is known from [`Memory::flush`] on.
    pub fn remember(&mut self, hash: u64, kept: bool, policy: Option<u16>, now_ns: u64) {
        if self.buckets == 0 {
            return;
        }
        let policy = policy.map_or(NO_POLICY, u64::from) & NO_POLICY;
        let word = Memory::fingerprint(hash) | policy << 2 | if kept { KEPT } else { 0 } | USED;
        self.push(hash, word, now_ns);
    }

    fn push(&mut self, hash: u64, word: u64, now_ns: u64) {
        self.queue.push((hash, word));
        self.queued_ns = now_ns;
        if self.queue.len() == QUEUE {
            self.flush();
        }
    }

    /// Puts what waits in its places: many together, so that their cache misses overlap.
    pub fn flush(&mut self) {
        if self.queue.is_empty() {
            return;
        }
        let queue = std::mem::take(&mut self.queue);
        let buckets = &self.generations[self.newest].buckets;
        let touch = |hash: u64| buckets.get(self.bucket(hash)).map_or(0, both_ends);
        let touched = queue.iter().fold(0, |all, (hash, _)| all ^ touch(*hash));
        std::hint::black_box(touched);
        for (hash, word) in &queue {
            self.put(*hash, *word);
        }
        self.queue = queue;
        self.queue.clear();
    }

    fn put(&mut self, hash: u64, word: u64) {
        let next = (self.newest + 1) % GENERATIONS;
        if self.generations[self.newest].used >= self.each {
            self.newest = next;
        } else {
            self.forget(next);
        }
        let home = self.bucket(hash);
        let (buckets, probes) = (self.buckets, self.probes(hash));
        let generation = &mut self.generations[self.newest];
        if generation.used == 0 {
            generation.began_ns = self.queued_ns;
            generation.empty = 0;
            if generation.buckets.is_empty() {
                generation.buckets = vec![[0; WAYS]; buckets];
            }
        }
        generation.used += 1;
        for at in probes {
            let words = &mut generation.buckets[at];
            // They are filled from the first on; counting has no branch that cannot be foreseen.
            let used: usize = words.iter().map(|word| usize::from(*word != 0)).sum();
            if let Some(place) = words.get_mut(used) {
                *place = word;
                return;
            }
        }
        self.forgotten += 1;
        generation.buckets[home][hash as usize % WAYS] = word;
    }

    /// Empties some of the oldest generation, so that all of it is empty when the newest is full.
    fn forget(&mut self, oldest: usize) {
        let left = self.each - self.generations[self.newest].used;
        let oldest = &mut self.generations[oldest];
        if oldest.used == 0 || left > (self.each / FORGET_PART).max(1) {
            return;
        }
        let buckets = oldest.buckets.len();
        let some = (buckets - oldest.empty).div_ceil(left.max(1) as usize);
        let end = (oldest.empty + some).min(buckets);
        if let Some(some) = oldest.buckets.get_mut(oldest.empty..end) {
            some.fill([0; WAYS]);
        }
        oldest.empty = end;
        if end == buckets {
            oldest.used = 0;
        }
    }

    /// Reads what [`Memory::recall`] will, so that the cache misses of many traces overlap.
    #[inline]
    #[must_use]
    pub fn touch(&self, hash: u64) -> u64 {
        let home = self.bucket(hash);
        let word = |generation: &Generation| generation.buckets.get(home).map_or(0, both_ends);
        self.generations
            .iter()
            .fold(0, |all, generation| all ^ word(generation))
    }

    /// What was decided on a trace, if it is still known.
    #[must_use]
    pub fn recall(&self, hash: u64) -> Option<Past> {
        let (_, about_ns, word) = self.find(hash)?;
        let policy = word >> 2 & NO_POLICY;
        Some(Past {
            kept: word & KEPT != 0,
            policy: (policy != NO_POLICY).then_some(policy as u16),
            about_ns,
        })
    }

    /// Remembers a decision that is known as if it were made now.
    pub fn refresh(&mut self, hash: u64, now_ns: u64) {
        if let Some((age, _, word)) = self.find(hash)
            && age > 0
        {
            self.push(hash, word, now_ns);
        }
    }

    /// The word of a decision, with the age of its generation, of which the newest has 0, and when
    /// that began.
    fn find(&self, hash: u64) -> Option<(usize, u64, u64)> {
        if self.buckets == 0 {
            return None;
        }
        let is_it = |word: &&u64| {
            **word & USED != 0 && Memory::fingerprint(**word) == Memory::fingerprint(hash)
        };
        for age in 0..GENERATIONS {
            let generation = &self.generations[(self.newest + GENERATIONS - age) % GENERATIONS];
            for at in self.probes(hash) {
                let Some(words) = generation.buckets.get(at) else {
                    break;
                };
                // Both without a branch for each word.
                let (mut found, mut full) = (false, true);
                for word in words {
                    found |= is_it(&word);
                    full &= *word != 0;
                }
                if found && let Some(word) = words.iter().find(is_it) {
                    return Some((age, generation.began_ns, *word));
                }
                if !full {
                    break;
                }
            }
        }
        None
    }
}

/// Words of a bucket, which may be in two cache lines.
#[inline]
fn both_ends(words: &Bucket) -> u64 {
    words[0] ^ words[WAYS - 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(n: u64) -> u64 {
        xxhash_rust::xxh3::xxh3_64(&n.to_le_bytes())
    }

    #[test]
    fn the_last_decisions_are_known() {
        let mut memory = Memory::new(1000);
        for n in 0..10_000 {
            memory.remember(hash(n), n % 3 == 0, (n % 2 == 0).then_some(n as u16), n);
            memory.flush();
            for known in n.saturating_sub(999)..=n {
                if known % 97 == 0 {
                    let past = memory.recall(hash(known)).unwrap();
                    assert_eq!(past.kept, known % 3 == 0);
                    assert_eq!(past.policy, (known % 2 == 0).then_some(known as u16));
                    assert!(past.about_ns <= known && known - past.about_ns <= 348);
                }
            }
            assert_eq!(memory.recall(hash(n + 1)), None);
        }
        let old = (0..8000)
            .filter(|n| memory.recall(hash(*n)).is_some())
            .count();
        assert_eq!(old, 0);
        assert_eq!(memory.forgotten(), 0);
        assert_eq!(memory.held_bytes(), 4 * 87 * 64);
    }

    #[test]
    fn one_without_room_knows_nothing() {
        let bounded = Memory::within(1 << 40, 64 << 20);
        assert_eq!(bounded.decisions(), 3 << 20);
        assert_eq!(
            bounded.buckets * size_of::<Bucket>() * GENERATIONS,
            64 << 20
        );
        let mut memory = Memory::new(0);
        memory.remember(1, true, None, 0);
        assert_eq!((memory.recall(1), memory.held_bytes()), (None, 0));
    }
}
