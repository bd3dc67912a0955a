//! Mutations of inputs, decided by a seed alone.

/// Inputs do not grow beyond this.
const INPUT_BYTES_MAX: usize = 8192;

/// A small generator (xorshift64*).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A generator for a seed; 0 is as good as any other.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below `bound`, which is not 0.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % bound
    }
}

/// Changes an input in one to four places: a bit, a byte, a word, something less, something twice,
/// another's end.
pub fn mutate(input: &mut Vec<u8>, other: &[u8], words: &[&[u8]], random: &mut Random) {
    for _ in 0..=random.below(4) {
        let at = random.below(input.len() + 1);
        let to = at + random.below(input.len() - at + 1).min(1 + random.below(32));
        match random.below(8) {
            0 if at < input.len() => input[at] ^= 1 << random.below(8),
            1 if at < input.len() => input[at] = random.below(256) as u8,
            2 => drop(input.splice(at..at, [random.below(256) as u8])),
            3 | 4 if !words.is_empty() => {
                let word = words[random.below(words.len())];
                let keep = if random.below(2) == 0 { at } else { to };
                input.splice(at..keep, word.iter().copied());
            }
            5 => drop(input.drain(at..to)),
            6 => {
                let twice = input[at..to].to_vec();
                let count = if random.below(16) == 0 { 64 } else { 1 };
                input.splice(at..at, twice.repeat(count));
            }
            7 if !other.is_empty() => {
                input.truncate(at);
                input.extend_from_slice(&other[random.below(other.len())..]);
            }
            _ => input.truncate(at.max(1)),
        }
        input.truncate(INPUT_BYTES_MAX);
    }
}
