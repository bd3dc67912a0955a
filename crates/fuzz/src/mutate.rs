//! Mutations of inputs, decided by a seed alone.

use testing::Random;

/// Inputs do not grow beyond this.
const INPUT_BYTES_MAX: usize = 8192;

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
