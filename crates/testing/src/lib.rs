//! Support of tests, as a dependency of tests only.

#![forbid(unsafe_code)]

/// Random numbers from a seed, the same in every run: SplitMix64 (Steele, Lea and Flood, "Fast
/// splittable pseudorandom number generators", 2014).
///
/// The seeds that tests keep depend on its numbers: they must not change.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A generator. Seeds that differ by little give numbers that have nothing in common.
    #[must_use]
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x2545_f491_4f6c_dd1d))
    }

    /// The next number, of all 64 bits.
    #[expect(clippy::should_implement_trait, reason = "it has no end")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`, which is not 0.
    pub fn below(&mut self, end: usize) -> usize {
        self.number_below(end as u64) as usize
    }

    /// The same of 64 bits.
    pub fn number_below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// True in one of so many cases.
    pub fn one_in(&mut self, cases: u64) -> bool {
        self.number_below(cases) == 0
    }

    /// True in so many of a hundred cases.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.number_below(100) < percent
    }

    /// One of `from`, which is not empty.
    pub fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())].clone()
    }

    /// How many of `all` bytes (at least 1): often all, often one, else anything.
    pub fn part(&mut self, all: usize) -> usize {
        match self.below(4) {
            0 => 1,
            1 => 1 + self.below(all),
            _ => all,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Random;

    /// The first numbers of a seed, which kept seeds depend on.
    #[test]
    fn numbers_stay_the_same() {
        let mut random = Random::new(0);
        let numbers = [random.next(), random.next(), random.next()];
        // Those of the reference implementation from 0.
        let expected = [
            0xe220_a839_7b1d_cdaf,
            0x6e78_9e6a_a1b9_65f4,
            0x06c4_5d18_8009_454f,
        ];
        assert_eq!(numbers, expected);
    }

    #[test]
    fn numbers_are_within_their_bounds() {
        let mut random = Random::new(7);
        for _ in 0..1000 {
            assert!(random.below(3) < 3);
            assert!((1..=9).contains(&random.part(9)));
            assert!([1, 2].contains(&random.pick(&[1, 2])));
            assert!(!random.chance(0) && random.chance(100));
            assert!(random.one_in(1));
        }
    }
}
