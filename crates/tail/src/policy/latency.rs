//! `latency`: the time from the earliest start to the latest end, in whole milliseconds, after any of the spans in the
//! order of arrival: the Collector walks over them and stops at the first that fulfils it, so that a trace may match an
//! upper bound that it passes later.

use crate::store::Entry;

/// The policy, and the bit that says that it matched.
#[derive(Clone, Copy, Debug)]
pub struct Latency {
    /// More than so many ms.
    pub threshold_ms: u64,
    /// At most so many; 0 is no bound.
    pub upper_ms: u64,
    pub bit: u64,
}

/// Takes a span into the times of its trace; gives the bits that it sets.
#[inline]
pub fn update(latencies: &[Latency], entry: &mut Entry, start_ns: u64, end_ns: u64) -> u64 {
    if entry.start_ns == 0 || start_ns < entry.start_ns {
        entry.start_ns = start_ns;
    }
    if entry.end_ns == 0 || end_ns > entry.end_ns {
        entry.end_ns = end_ns;
    }
    if latencies.is_empty() {
        return 0;
    }
    // Signed, as there: times that are set wrong may be before the start.
    let ms = entry.end_ns.wrapping_sub(entry.start_ns) as i64 / 1_000_000;
    let matches = |latency: &&Latency| {
        let (low, high) = (latency.threshold_ms as i64, latency.upper_ms as i64);
        ms > low && (high == 0 || ms <= high)
    };
    latencies
        .iter()
        .filter(matches)
        .fold(0, |bits, latency| bits | latency.bit)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn walk(threshold_ms: u64, upper_ms: u64, spans: &[(u64, u64)]) -> bool {
        let latency = [Latency {
            threshold_ms,
            upper_ms,
            bit: 1,
        }];
        let mut entry = Entry::new([0; 16], 0);
        let update = |(start, end): &(u64, u64)| update(&latency, &mut entry, start * MS, end * MS);
        spans.iter().map(update).fold(0, |all, bit| all | bit) == 1
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
