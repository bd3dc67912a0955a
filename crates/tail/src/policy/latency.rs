//! `latency`: the time from the earliest start to the latest end, in whole milliseconds, after any
//! of the spans in the order of arrival: the Collector walks over them and stops at the first that
//! fulfils it, so that a trace may match an upper bound that it passes later.

use super::BITS_MAX;
use crate::store::Entry;

/// All policies `latency` of a program.
///
/// A threshold without an upper bound stays passed once it is, so that a trace needs no bit for
/// each of them: how many of them, in ascending order, it has passed is one number, in its highest
/// bits.
#[derive(Debug, Default)]
pub struct Latencies {
    /// In ms, ascending, each once.
    thresholds_ms: Vec<i64>,
    passed: Passed,
    windows: Vec<Window>,
}

/// A policy with an upper bound, and the bit that says that it matched.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// More than so many ms.
    pub threshold_ms: i64,
    /// At most so many.
    pub upper_ms: i64,
    pub bit: u64,
}

/// A number in the highest bits of a trace.
#[derive(Clone, Copy, Debug, Default)]
pub struct Passed {
    /// How many bits it has.
    width: u32,
}

impl Passed {
    /// For numbers up to this one.
    fn up_to(most: usize) -> Passed {
        Passed {
            width: usize::BITS - most.leading_zeros(),
        }
    }

    /// The number in these bits.
    pub fn of(self, bits: u64) -> u64 {
        bits.checked_shr(BITS_MAX - self.width).unwrap_or(0)
    }

    /// The bits with this number, if that is larger.
    fn raised(self, bits: u64, number: u64) -> u64 {
        if number > self.of(bits) {
            bits << self.width >> self.width | number << (BITS_MAX - self.width)
        } else {
            bits
        }
    }
}

impl Latencies {
    /// For these thresholds without an upper bound, in ms.
    pub fn new(mut thresholds_ms: Vec<i64>) -> Latencies {
        thresholds_ms.sort_unstable();
        thresholds_ms.dedup();
        Latencies {
            passed: Passed::up_to(thresholds_ms.len()),
            thresholds_ms,
            windows: Vec::new(),
        }
    }

    /// The bits of a trace that they take.
    pub fn width(&self) -> u32 {
        self.passed.width
    }

    /// How many thresholds a trace has passed that has passed this one, and where that number is.
    pub fn place(&self, threshold_ms: i64) -> (Passed, u64) {
        let below = self
            .thresholds_ms
            .partition_point(|own| *own <= threshold_ms);
        (self.passed, below as u64)
    }

    /// One with an upper bound.
    pub fn push(&mut self, window: Window) {
        self.windows.push(window);
    }

    /// Takes a span into the times of its trace.
    #[inline]
    pub fn update(&self, entry: &mut Entry, start_ns: u64, end_ns: u64) {
        if entry.start_ns == 0 || start_ns < entry.start_ns {
            entry.start_ns = start_ns;
        }
        if entry.end_ns == 0 || end_ns > entry.end_ns {
            entry.end_ns = end_ns;
        }
        if self.thresholds_ms.is_empty() && self.windows.is_empty() {
            return;
        }
        // Signed, as there: times that are set wrong may be before the start.
        let ms = entry.end_ns.wrapping_sub(entry.start_ns) as i64 / 1_000_000;
        let passed = self
            .thresholds_ms
            .partition_point(|threshold| ms > *threshold);
        entry.bits = self.passed.raised(entry.bits, passed as u64);
        entry.bits |= self.within(ms);
    }

    /// The bits of windows that hold the time of a trace now.
    pub fn windows(&self, entry: &Entry) -> u64 {
        self.within(entry.end_ns.wrapping_sub(entry.start_ns) as i64 / 1_000_000)
    }

    #[inline]
    fn within(&self, ms: i64) -> u64 {
        let mut bits = 0;
        for window in &self.windows {
            if ms > window.threshold_ms && ms <= window.upper_ms {
                bits |= window.bit;
            }
        }
        bits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn walk(threshold_ms: i64, upper_ms: i64, spans: &[(u64, u64)]) -> bool {
        let mut latencies = match upper_ms {
            0 => Latencies::new(vec![threshold_ms]),
            _ => Latencies::default(),
        };
        if upper_ms > 0 {
            latencies.push(Window {
                threshold_ms,
                upper_ms,
                bit: 1,
            });
        }
        let mut entry = Entry::new([0; 16], 0);
        for (start, end) in spans {
            latencies.update(&mut entry, start * MS, end * MS);
        }
        let (passed, rank) = latencies.place(threshold_ms);
        match upper_ms {
            0 => passed.of(entry.bits) >= rank,
            _ => entry.bits == 1,
        }
    }

    #[test]
    fn many_thresholds_are_one_number_that_other_bits_stand_beside() {
        let latencies = Latencies::new((0..100).rev().chain(50..150).collect());
        assert_eq!(latencies.width(), 8, "for 0 to 150");
        let mut entry = Entry::new([0; 16], 0);
        entry.bits = (1 << 56) - 1;
        let ms = |entry: &Entry| {
            let holds = |threshold: &i64| {
                let (passed, rank) = latencies.place(*threshold);
                passed.of(entry.bits) >= rank
            };
            (0..150).filter(holds).count()
        };
        for (end, expected) in [(0, 0), (1, 1), (70, 70), (3, 70), (149, 149), (400, 150)] {
            latencies.update(&mut entry, 5 * MS, (5 + end) * MS);
            assert_eq!(ms(&entry), expected, "{end} ms");
            assert_eq!(entry.bits << 8, u64::MAX << 8, "{end} ms");
        }
    }

    #[test]
    fn more_than_the_threshold() {
        assert!(!walk(100, 0, &[(1000, 1100)]));
        assert!(walk(100, 0, &[(1000, 1101)]));
        assert!(
            walk(100, 0, &[(1000, 1050), (1060, 1101)]),
            "the trace is what counts"
        );
        assert!(!walk(100, 0, &[(1000, 1050), (1010, 1100)]));
    }

    #[test]
    fn an_upper_bound_holds_for_some_prefix() {
        assert!(walk(100, 200, &[(1000, 1200)]));
        assert!(!walk(100, 200, &[(1000, 1201)]));
        assert!(
            walk(100, 200, &[(1000, 1150), (1000, 5000)]),
            "after the first span it matched"
        );
        assert!(!walk(100, 200, &[(1000, 5000), (1000, 1150)]));
    }

    #[test]
    fn times_that_are_not_set_give_way() {
        assert!(!walk(100, 0, &[(0, 0), (1000, 1050)]));
        assert!(
            walk(100, 0, &[(1000, 1050), (0, 1050)]),
            "an unset start is the earliest of all"
        );
        assert!(!walk(100, 0, &[(5000, 1000)]), "an end before the start");
    }
}
