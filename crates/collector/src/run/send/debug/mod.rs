//! The exporter `debug`: what passes, in the own log or in files, as the Collector writes it.

mod detailed;
mod normal;
mod output;
mod points;
mod text;

use std::sync::{Mutex, PoisonError};

use export::client::Outcome;
use otlp::view::View;
use tokio::time::{Duration, Instant};

use super::target::TAKEN;
use super::{ExporterDeps, QueueSettings, StartExporter, Started, Target};
use crate::config::Signal;
use crate::config::components::exporters::debug::{DebugExporter, Verbosity};
use crate::run::Log;
use crate::run::data::Batch;
use output::Output;

/// `sampling_initial` and `sampling_thereafter` count within this time.
const SAMPLING_TICK: Duration = Duration::from_secs(1);

impl StartExporter for DebugExporter {
    fn start(&self, deps: ExporterDeps<'_, '_>) -> Result<Started, String> {
        let name = deps.name;
        let settings = || QueueSettings::of(self);
        deps.queues(settings, |deps, _| Debug::new(name, self, &deps.log))
    }
}

impl Target for Debug {
    type Prepared = ();

    async fn send(&self, batch: &Batch, (): &mut ()) -> Outcome {
        self.tell(batch);
        TAKEN
    }
}

struct Debug {
    name: String,
    verbosity: Verbosity,
    output: Output,
    sampling: Mutex<Sampling>,
}

impl Debug {
    /// # Errors
    /// Which file cannot be opened, and why.
    fn new(name: &str, settings: &DebugExporter, log: &Log) -> Result<Debug, String> {
        Ok(Debug {
            name: name.to_owned(),
            verbosity: settings.verbosity,
            output: Output::open(&settings.output_paths, log)?,
            sampling: Mutex::new(Sampling::new(settings)),
        })
    }

    fn tell(&self, batch: &Batch) {
        let sampling = self.sampling.lock();
        let mut sampling = sampling.unwrap_or_else(PoisonError::into_inner);
        if !sampling.is_told(batch.signal, Instant::now()) {
            return;
        }
        drop(sampling);
        let request = View::request(batch.signal, &batch.bytes);
        let told = match request {
            Ok(request) => self.told(&Names::of(batch.signal), &request),
            Err(fault) => Told {
                head: format!("not to be read: {fault}"),
                ..Told::default()
            },
        };
        self.output.write(&self.name, batch.signal, &told);
    }

    fn told(&self, names: &Names, request: &View<'_>) -> Told {
        let resources: Vec<_> = request.all(names.resources).collect();
        let scopes = resources.iter().flat_map(|one| one.all(names.scopes));
        let records: Vec<_> = scopes.flat_map(|one| one.all(names.records)).collect();
        let mut counts = vec![
            (names.counted[0], resources.len()),
            (names.counted[1], records.len()),
        ];
        if names.signal == Signal::Metrics {
            counts.push(("data points", records.iter().map(points::count).sum()));
        }
        Told {
            head: names.head.to_owned(),
            counts,
            text: match self.verbosity {
                Verbosity::Basic => None,
                Verbosity::Normal => Some(normal::text(names, &resources)),
                Verbosity::Detailed => Some(detailed::text(names, &resources)),
            },
        }
    }
}

/// What a signal's requests have, and what the Collector calls it.
struct Names {
    signal: Signal,
    head: &'static str,
    /// Fields of a request, of a resource and of a scope.
    resources: &'static str,
    scopes: &'static str,
    records: &'static str,
    counted: [&'static str; 2],
    /// Resources and scopes by verbosity.
    normal: [&'static str; 2],
    detailed: [&'static str; 2],
}

impl Names {
    fn of(signal: Signal) -> Names {
        match signal {
            Signal::Traces => Names {
                signal,
                head: "Traces",
                resources: "resourceSpans",
                scopes: "scopeSpans",
                records: "spans",
                counted: ["resource spans", "spans"],
                normal: ["ResourceTraces", "ScopeTraces"],
                detailed: ["ResourceSpans", "ScopeSpans"],
            },
            Signal::Metrics => Names {
                signal,
                head: "Metrics",
                resources: "resourceMetrics",
                scopes: "scopeMetrics",
                records: "metrics",
                counted: ["resource metrics", "metrics"],
                normal: ["ResourceMetrics", "ScopeMetrics"],
                detailed: ["ResourceMetrics", "ScopeMetrics"],
            },
            Signal::Logs => Names {
                signal,
                head: "Logs",
                resources: "resourceLogs",
                scopes: "scopeLogs",
                records: "logRecords",
                counted: ["resource logs", "log records"],
                normal: ["ResourceLog", "ScopeLog"],
                detailed: ["ResourceLog", "ScopeLogs"],
            },
        }
    }
}

/// What is told of a batch.
#[derive(Debug, Default, PartialEq, Eq)]
struct Told {
    head: String,
    /// How much of what there is.
    counts: Vec<(&'static str, usize)>,
    /// The data, in lines.
    text: Option<String>,
}

/// Which batches are told: the first ones of a second, and then one of so many. Each signal is
/// counted alone.
struct Sampling {
    initial: u64,
    thereafter: u64,
    since: Instant,
    counts: [u64; 3],
}

impl Sampling {
    fn new(settings: &DebugExporter) -> Sampling {
        Sampling {
            initial: settings.sampling_initial,
            thereafter: settings.sampling_thereafter,
            since: Instant::now(),
            counts: [0; 3],
        }
    }

    fn is_told(&mut self, signal: Signal, now: Instant) -> bool {
        if now - self.since >= SAMPLING_TICK {
            (self.since, self.counts) = (now, [0; 3]);
        }
        let count = &mut self.counts[signal as usize];
        *count += 1;
        match count.checked_sub(self.initial) {
            None | Some(0) => true,
            Some(more) => more.checked_rem(self.thereafter) == Some(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_first_of_a_second_are_told_and_then_one_of_so_many() {
        let mut sampling = Sampling {
            initial: 2,
            thereafter: 3,
            since: Instant::now(),
            counts: [0; 3],
        };
        let mut told = || -> Vec<bool> {
            let now = Instant::now();
            (0..8)
                .map(|_| sampling.is_told(Signal::Traces, now))
                .collect()
        };
        let wanted = [true, true, false, false, true, false, false, true];
        assert_eq!(told(), wanted);
        tokio::time::advance(SAMPLING_TICK).await;
        assert_eq!(told(), wanted);
        sampling.thereafter = 0;
        sampling.counts = [2; 3];
        assert!(!sampling.is_told(Signal::Logs, Instant::now()));
    }
}
