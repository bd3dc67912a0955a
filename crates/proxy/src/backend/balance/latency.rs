//! `balance least-latency`: the server with the lowest expected latency for its weight.
//!
//! The latency of a server is an average that rises to each peak at once and decays from there
//! (peak EWMA, as in Finagle and Linkerd). So a server that becomes slow gets no requests at once,
//! and is tried again as its peak decays. The expected latency is that average times the number of
//! requests in progress at the server, of all workers. Each worker measures latencies separately.

use super::{Balance, Candidates};

/// The time in which the weight of a latency falls to a third (1/e), nanoseconds.
const DECAY_NS: f64 = 10e9;
/// The expected latency per request in progress at a server without any measurement, nanoseconds:
/// other servers are preferred meanwhile.
const UNKNOWN_NS: f64 = 1e9;

/// A measurement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Observed {
    /// From sending the request to the head of the response, nanoseconds.
    pub latency_ns: u64,
    /// The time of the measurement, monotonic nanoseconds.
    pub at_ns: u64,
}

/// By server.
pub(crate) type Latencies = Vec<Latency>;

/// The average latency of a server.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Latency {
    /// Zero before the first measurement.
    average_ns: f64,
    at_ns: u64,
}

impl Latency {
    /// The remaining weight of a value at this time.
    fn weight(self, now_ns: u64) -> f64 {
        (-(now_ns.saturating_sub(self.at_ns) as f64) / DECAY_NS).exp()
    }

    fn observe(&mut self, observed: Observed) {
        let latency_ns = observed.latency_ns as f64;
        let left = self.weight(observed.at_ns);
        self.average_ns = if latency_ns > self.average_ns {
            latency_ns
        } else {
            self.average_ns * left + latency_ns * (1.0 - left)
        };
        self.at_ns = observed.at_ns;
    }

    /// The expected latency of one more request beside `load` others.
    fn expected_ns(self, load: u32, now_ns: u64) -> f64 {
        let average_ns = self.average_ns * self.weight(now_ns);
        match (self.average_ns == 0.0, load) {
            (true, 0) => 0.0,
            (true, load) => UNKNOWN_NS * f64::from(load),
            (false, load) => average_ns * f64::from(load.saturating_add(1)),
        }
    }
}

/// Equal servers are used in turn.
#[derive(Debug)]
pub(crate) struct LeastLatency {
    servers: Latencies,
    next: usize,
}

impl LeastLatency {
    pub fn new(servers: usize, worker: usize) -> Self {
        LeastLatency {
            servers: vec![Latency::default(); servers],
            next: worker,
        }
    }
}

impl Balance for LeastLatency {
    fn pick(
        &mut self,
        candidates: &Candidates<'_>,
        _: Option<u32>,
        _: &mut dyn FnMut() -> u64,
    ) -> Option<usize> {
        let count = self.servers.len();
        let from = self.next % count.max(1);
        let mut best: Option<(usize, f64)> = None;
        let servers = (from..from + count).map(|index| index % count);
        for server in servers.filter(|server| (candidates.may)(*server)) {
            let load = (candidates.load)(server);
            let expected = self.servers[server].expected_ns(load, candidates.now_ns);
            let share = expected / f64::from(candidates.weights[server].max(1));
            if best.is_none_or(|(_, least)| share < least) {
                best = Some((server, share));
            }
        }
        let (server, _) = best?;
        self.next = server + 1;
        Some(server)
    }

    fn observe(&mut self, server: usize, observed: Observed) {
        if let Some(latency) = self.servers.get_mut(server) {
            latency.observe(observed);
        }
    }

    fn inherit(&mut self, latencies: Latencies) {
        for (own, inherited) in self.servers.iter_mut().zip(latencies) {
            *own = inherited;
        }
    }

    fn learnt(&mut self) -> Latencies {
        std::mem::take(&mut self.servers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn observed(latency_ms: u64, at_s: u64) -> Observed {
        Observed {
            latency_ns: latency_ms * 1_000_000,
            at_ns: at_s * SECOND,
        }
    }

    #[test]
    fn an_average_jumps_to_a_peak_and_decays() {
        let mut latency = Latency::default();
        assert!(
            latency.expected_ns(0, 0) == 0.0,
            "an unknown server is tried"
        );
        assert!(latency.expected_ns(1, 0) >= 1e9, "once at a time");
        latency.observe(observed(10, 1));
        assert!((latency.expected_ns(0, SECOND) - 10e6).abs() < 1.0);
        latency.observe(observed(500, 2));
        assert!((latency.expected_ns(0, 2 * SECOND) - 500e6).abs() < 1.0);
        assert!((latency.expected_ns(3, 2 * SECOND) - 2000e6).abs() < 4.0);
        // Ten seconds later a third is left; a quick answer then counts for two thirds.
        let later = latency.expected_ns(0, 12 * SECOND);
        assert!((180e6..190e6).contains(&later), "{later}");
        latency.observe(observed(10, 12));
        let after = latency.expected_ns(0, 12 * SECOND);
        assert!((185e6..195e6).contains(&after), "{after}");
    }
}
