//! The hash of pattern texts: of a whole text, and of all its prefixes or suffixes of given lengths
//! in one pass.
//!
//! It processes eight bytes per step, so that the hash of a prefix shares all its complete steps
//! with that of the text. The key is random for each process: keys that clients send (`set-map`)
//! cannot be chosen to collide.

use std::hash::BuildHasher;
use std::hash::RandomState;
use std::sync::LazyLock;

/// Bytes per step.
const STEP: usize = 8;

struct Seeds {
    start: u64,
    step: u64,
    end: u64,
}

static SEEDS: LazyLock<Seeds> = LazyLock::new(|| {
    let random = RandomState::new();
    Seeds {
        start: random.hash_one(0),
        step: random.hash_one(1) | 1,
        end: random.hash_one(2) | 1,
    }
});

/// The end of a text at which hashing begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Forward,
    /// From the last byte: for suffixes.
    Backward,
}

/// The hash of a text.
pub(super) fn hash(text: &[u8], direction: Direction) -> u64 {
    let mut parts = Parts::new(text, direction);
    parts.of_length(text.len())
}

/// The hash of a text in lower case.
pub(super) fn hash_folded(text: &[u8], direction: Direction) -> u64 {
    if text.iter().any(u8::is_ascii_uppercase) {
        hash(&text.to_ascii_lowercase(), direction)
    } else {
        hash(text, direction)
    }
}

/// The hash of a number, including the kind of the number.
pub(super) fn hash_number(number: u128, kind: u32) -> u64 {
    let low = mix(SEEDS.start ^ number as u64, SEEDS.step);
    mix(
        low ^ (number >> 64) as u64,
        SEEDS.end.wrapping_add(u64::from(kind) << 1),
    )
}

/// Hashes of the prefixes (or suffixes) of a text, computed in order of growing length.
pub(super) struct Parts<'t> {
    text: &'t [u8],
    direction: Direction,
    /// The hash state of the complete steps up to `stepped`.
    state: u64,
    stepped: usize,
}

impl<'t> Parts<'t> {
    pub(super) fn new(text: &'t [u8], direction: Direction) -> Parts<'t> {
        Parts {
            text,
            direction,
            state: SEEDS.start,
            stepped: 0,
        }
    }

    /// The hash of the part with this length, which is at most the text's length and at least the
    /// previous one.
    pub(super) fn of_length(&mut self, length: usize) -> u64 {
        while self.stepped + STEP <= length {
            let word = self.word(self.stepped, STEP);
            self.state = mix(self.state ^ word, SEEDS.step);
            self.stepped += STEP;
        }
        let rest = self.word(self.stepped, length - self.stepped);
        let end = SEEDS.end.wrapping_add((length as u64) << 1);
        mix(self.state ^ rest, end)
    }

    /// Up to eight bytes at a distance from the text's beginning (or end).
    fn word(&self, from: usize, count: usize) -> u64 {
        let at = match self.direction {
            Direction::Forward => from,
            Direction::Backward => self.text.len() - from - count,
        };
        let bytes = &self.text[at..at + count];
        match bytes.first_chunk::<STEP>() {
            Some(chunk) => u64::from_le_bytes(*chunk),
            None => bytes
                .iter()
                .rev()
                .fold(0, |word, byte| word << 8 | u64::from(*byte)),
        }
    }
}

/// The two halves of a product, combined with XOR.
fn mix(left: u64, right: u64) -> u64 {
    let product = u128::from(left) * u128::from(right);
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_has_the_hash_of_its_text() {
        let text: Vec<u8> = (0..40).collect();
        let mut beginnings = Parts::new(&text, Direction::Forward);
        let mut ends = Parts::new(&text, Direction::Backward);
        for length in 0..=text.len() {
            let beginning = hash(&text[..length], Direction::Forward);
            assert_eq!(beginnings.of_length(length), beginning, "{length}");
            let end = hash(&text[text.len() - length..], Direction::Backward);
            assert_eq!(ends.of_length(length), end, "{length}");
        }
    }

    #[test]
    fn lengths_and_kinds_count() {
        let zeros = [0; 24];
        let texts = (0..=24).map(|length| hash(&zeros[..length], Direction::Forward));
        let numbers = (0..129).map(|kind| hash_number(0, kind));
        for mut hashes in [texts.collect::<Vec<u64>>(), numbers.collect()] {
            let count = hashes.len();
            hashes.sort_unstable();
            hashes.dedup();
            assert_eq!(hashes.len(), count);
        }
    }
}
