//! Histograms of the times of streams: their buckets, their parts, and their values at a time.

/// The upper bounds of buckets in milliseconds; longer times belong to the last bucket.
pub const BOUNDS_MS: [u64; 15] = [
    1, 2, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000,
];

/// The number of buckets, including the last one.
pub const BUCKETS: usize = BOUNDS_MS.len() + 1;

/// The bucket of a time.
#[must_use]
#[inline]
pub fn bucket(ms: u64) -> usize {
    BOUNDS_MS.partition_point(|bound| *bound < ms)
}

/// A part of a stream's time.
#[derive(Clone, Copy, Debug)]
pub struct PartField {
    /// Its name in Prometheus after the kind.
    pub metric: &'static str,
    /// One line of description.
    pub about: &'static str,
}

const fn part(metric: &'static str, about: &'static str) -> PartField {
    PartField { metric, about }
}

/// The number of parts.
pub const PARTS: usize = 4;

/// The parts, in the order of [`Latency::parts`].
pub const PART_FIELDS: [PartField; PARTS] = [
    part("queue_time_seconds", "Time in queues"),
    part(
        "connect_time_seconds",
        "Time until the connection to the server stood",
    ),
    part(
        "response_time_seconds",
        "Time from there until the response began",
    ),
    part(
        "total_time_seconds",
        "Time from the request's beginning to the end of the response",
    ),
];

/// A stream that represents its bucket; its trace is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exemplar {
    /// The identifier of its trace.
    pub trace_id: [u8; 16],
    /// The duration of the stream.
    pub ms: u64,
    /// The end of the stream, in nanoseconds since the UNIX epoch.
    pub unix_ns: u64,
}

/// One histogram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    /// The number of streams per bucket.
    pub counts: [u64; BUCKETS],
    /// The sum of their milliseconds.
    pub sum_ms: u64,
    /// For each bucket, the newest stream whose trace is kept.
    pub exemplars: [Option<Exemplar>; BUCKETS],
}

impl Histogram {
    /// The number of all streams.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Sets an exemplar, unless there is a newer one.
    pub fn offer(&mut self, exemplar: Exemplar) {
        let place = &mut self.exemplars[bucket(exemplar.ms)];
        if place.is_none_or(|known| known.unix_ns <= exemplar.unix_ns) {
            *place = Some(exemplar);
        }
    }
}

/// The histograms of a frontend, backend or server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Latency {
    /// In the order of [`PART_FIELDS`].
    pub parts: [Histogram; PARTS],
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_belongs_to_its_bucket() {
        let places = [(0, 0), (1, 0), (2, 1), (3, 2), (60_000, 14), (60_001, 15)];
        for (ms, place) in places {
            assert_eq!(bucket(ms), place, "{ms}");
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn the_newest_exemplar_stays() {
        let mut histogram = Histogram::default();
        let exemplar = |ms, unix_ns| Exemplar {
            trace_id: [1; 16],
            ms,
            unix_ns,
        };
        histogram.offer(exemplar(4, 20));
        histogram.offer(exemplar(3, 10));
        histogram.offer(exemplar(70_000, 5));
        let kept = histogram.exemplars.iter().flatten().map(|one| one.ms);
        assert_eq!(kept.collect::<Vec<_>>(), [4, 70_000]);
    }
}
