//! Histograms of the times of streams (`option latency-histograms`): each worker adds to its own, a
//! reader sums. An unused histogram takes only the memory of a pointer.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use config::model::Config;
use net::WorkerId;
use stats::latency::{BUCKETS, Exemplar, Histogram, Latency, PARTS, bucket};

use super::grow::Grow;
use super::succession::Succession;
use crate::ids::{ProxyId, ServerId};

/// One worker's histogram of one part of the time.
#[derive(Debug)]
struct Cells {
    counts: [AtomicU64; BUCKETS],
    sum_ms: AtomicU64,
}

/// By part and bucket: the newest stream whose trace is kept.
type Kept = [[Option<Exemplar>; BUCKETS]; PARTS];

/// One worker's histograms of a frontend, backend or server.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct LatencyRow {
    parts: [Cells; PARTS],
    /// Locked for streams whose trace is kept, and by readers. None before the first such stream.
    exemplars: Mutex<Option<Box<Kept>>>,
}

impl Default for LatencyRow {
    fn default() -> Self {
        let cells = |_| Cells {
            counts: std::array::from_fn(|_| AtomicU64::new(0)),
            sum_ms: AtomicU64::new(0),
        };
        LatencyRow {
            parts: std::array::from_fn(cells),
            exemplars: Mutex::new(None),
        }
    }
}

/// The times of a stream that has ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured {
    /// Durations in milliseconds, in the order of [`stats::latency::PART_FIELDS`]. `None`: the
    /// stream ended before that part.
    pub parts: [Option<u64>; PARTS],
    /// The identifier of its trace, if the trace is kept.
    pub trace_id: Option<[u8; 16]>,
    /// When it ended, nanoseconds since the UNIX epoch.
    pub unix_ns: u64,
}

impl LatencyRow {
    /// Adds a stream that has ended. Only the worker that owns the row may call this.
    pub fn add(&self, measured: &Measured) {
        let bump = |cell: &AtomicU64, by: u64| {
            cell.store(cell.load(Relaxed).wrapping_add(by), Relaxed);
        };
        for (cells, ms) in self.parts.iter().zip(measured.parts) {
            if let Some(ms) = ms {
                bump(&cells.counts[bucket(ms)], 1);
                bump(&cells.sum_ms, ms);
            }
        }
        if let Some(trace_id) = measured.trace_id {
            self.keep(trace_id, measured);
        }
    }

    #[cold]
    fn keep(&self, trace_id: [u8; 16], measured: &Measured) {
        let mut exemplars = self
            .exemplars
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let exemplars = exemplars.get_or_insert_with(|| Box::new([[None; BUCKETS]; PARTS]));
        for (buckets, ms) in exemplars.iter_mut().zip(measured.parts) {
            if let Some(ms) = ms {
                buckets[bucket(ms)] = Some(Exemplar {
                    trace_id,
                    ms,
                    unix_ns: measured.unix_ns,
                });
            }
        }
    }

    fn read(&self, sums: &mut Latency) {
        for (cells, sums) in self.parts.iter().zip(&mut sums.parts) {
            for (cell, sum) in cells.counts.iter().zip(&mut sums.counts) {
                *sum += cell.load(Relaxed);
            }
            sums.sum_ms = sums.sum_ms.wrapping_add(cells.sum_ms.load(Relaxed));
        }
        let exemplars = self.exemplars.lock();
        let exemplars = exemplars.unwrap_or_else(PoisonError::into_inner);
        let Some(exemplars) = exemplars.as_ref() else {
            return;
        };
        let offer = |(from, to): (&[Option<Exemplar>; BUCKETS], &mut Histogram)| {
            from.iter().flatten().for_each(|one| to.offer(*one));
        };
        exemplars.iter().zip(&mut sums.parts).for_each(offer);
    }

    /// Resets the histograms. No thread may add at the same time.
    fn clear(&self) {
        for cells in &self.parts {
            let cells = cells.counts.iter().chain([&cells.sum_ms]);
            cells.for_each(|cell| cell.store(0, Relaxed));
        }
        *self
            .exemplars
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = None;
    }
}

type Lazy = OnceLock<Arc<LatencyRow>>;

/// One worker's histograms.
#[derive(Debug)]
struct Own {
    fronts: Box<[Lazy]>,
    backs: Box<[Lazy]>,
    servers: Grow<Lazy>,
}

/// The histograms of all workers.
#[derive(Debug)]
pub(crate) struct Latencies(Vec<Own>);

/// The object of a histogram.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Whose {
    Frontend(ProxyId),
    Backend(ProxyId),
    /// A server, by its number among all servers.
    Server(usize),
}

impl Own {
    fn of(&self, whose: Whose) -> &Lazy {
        match whose {
            Whose::Frontend(proxy) => &self.fronts[proxy.place()],
            Whose::Backend(proxy) => &self.backs[proxy.place()],
            Whose::Server(number) => self.servers.at(number),
        }
    }
}

impl Latencies {
    pub fn new(config: &Config, workers: usize) -> Latencies {
        let servers = config.proxies.iter().map(|proxy| proxy.servers.len());
        let servers: usize = servers.sum();
        let lazy = |count: usize| (0..count).map(|_| Lazy::new()).collect::<Box<[Lazy]>>();
        let own = || Own {
            fronts: lazy(config.proxies.len()),
            backs: lazy(config.proxies.len()),
            servers: Grow::new(lazy(servers)),
        };
        Latencies((0..workers).map(|_| own()).collect())
    }

    /// Takes the histograms of the objects of both configurations over. `numbers`: of a server, now
    /// and before.
    pub fn succeed(
        &self,
        before: &Latencies,
        both: &Succession<'_>,
        numbers: impl Fn(ServerId) -> [usize; 2],
    ) {
        let share = |to: &Lazy, from: &Lazy| {
            if let Some(row) = from.get() {
                // The cell is empty, because nothing has used it yet.
                let _ = to.set(Arc::clone(row));
            }
        };
        for (own, before) in self.0.iter().zip(&before.0) {
            for proxy in &both.proxies {
                for whose in [Whose::Frontend(*proxy), Whose::Backend(*proxy)] {
                    share(own.of(whose), before.of(whose));
                }
            }
            for server in &both.servers {
                let [to, from] = numbers(*server).map(Whose::Server);
                share(own.of(to), before.of(from));
            }
        }
    }

    /// Makes room for a server with this number and resets its histograms; false if there is no
    /// room. No thread may add for it at the same time.
    pub fn reach_server(&self, number: usize) -> bool {
        let reached = self
            .0
            .iter()
            .all(|own| own.servers.reach(number, Lazy::new));
        if reached {
            let rows = self.0.iter().filter_map(|own| own.servers.at(number).get());
            rows.for_each(|row| row.clear());
        }
        reached
    }

    /// The histograms of `worker`.
    pub fn row(&self, worker: WorkerId, whose: Whose) -> &LatencyRow {
        let lazy = self.0[worker.0 as usize].of(whose);
        lazy.get_or_init(Arc::default)
    }

    /// The sums over all workers.
    pub fn sums(&self, whose: Whose) -> Latency {
        let mut sums = Latency::default();
        for row in self.0.iter().filter_map(|own| own.of(whose).get()) {
            row.read(&mut sums);
        }
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_are_summed_and_a_new_server_begins_with_nothing() {
        let mut config = Config::default();
        config.proxies.push(config::model::Proxy::default());
        let all = Latencies::new(&config, 2);
        let whose = Whose::Server(3);
        assert!(all.reach_server(3));
        for (worker, ms, trace_id) in [(0, 3, None), (1, 4, Some([7; 16])), (1, 70_000, None)] {
            let measured = Measured {
                parts: [Some(0), None, Some(ms), Some(ms)],
                trace_id,
                unix_ns: 5,
            };
            all.row(WorkerId(worker), whose).add(&measured);
        }
        let sums = all.sums(whose);
        assert_eq!(sums.parts[0].count(), 3);
        assert_eq!(sums.parts[1], Histogram::default());
        assert_eq!(sums.parts[2].sum_ms, 70_007);
        assert_eq!(sums.parts[2].counts[2], 2);
        assert_eq!(sums.parts[2].counts[BUCKETS - 1], 1);
        let kept: Vec<_> = sums.parts[2].exemplars.iter().flatten().collect();
        assert_eq!((kept.len(), kept[0].trace_id, kept[0].ms), (1, [7; 16], 4));
        assert!(all.reach_server(3));
        assert_eq!(all.sums(whose), Latency::default());
        assert_eq!(all.sums(Whose::Backend(ProxyId::at(0))), Latency::default());
    }
}
