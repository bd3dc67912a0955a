//! The exporter `debug`: what passes, in the own log or in files, as the Collector writes it.

mod detailed;
mod normal;
mod output;
mod points;
mod text;

use std::sync::{Mutex, PoisonError};

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest as Logs;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest as Metrics;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest as Traces;
use prost::Message;
use serde::de::DeserializeOwned;
use tokio::time::{Duration, Instant};

use crate::config::Signal;
use crate::config::components::exporters::debug::{DebugExporter, Verbosity};
use crate::run::Log;
use crate::run::data::Batch;
use output::Output;

/// `sampling_initial` and `sampling_thereafter` count within this time.
const SAMPLING_TICK: Duration = Duration::from_secs(1);

pub(super) struct Debug {
    name: String,
    verbosity: Verbosity,
    output: Output,
    sampling: Mutex<Sampling>,
}

impl Debug {
    /// # Errors
    /// Which file cannot be opened, and why.
    pub(super) fn new(name: &str, settings: &DebugExporter, log: &Log) -> Result<Debug, String> {
        Ok(Debug {
            name: name.to_owned(),
            verbosity: settings.verbosity,
            output: Output::open(&settings.output_paths, log)?,
            sampling: Mutex::new(Sampling::new(settings)),
        })
    }

    pub(super) fn tell(&self, batch: &Batch) {
        let sampling = self.sampling.lock();
        let mut sampling = sampling.unwrap_or_else(PoisonError::into_inner);
        if !sampling.is_told(batch.signal, Instant::now()) {
            return;
        }
        drop(sampling);
        let told = match batch.signal {
            Signal::Traces => decode(batch).map(|request| self.traces(&request)),
            Signal::Metrics => decode(batch).map(|request| self.metrics(&request)),
            Signal::Logs => decode(batch).map(|request| self.logs(&request)),
        };
        let told = told.unwrap_or_else(|why| Told {
            head: format!("not to be read: {why}"),
            ..Told::default()
        });
        self.output.write(&self.name, batch.signal, &told);
    }

    fn traces(&self, request: &Traces) -> Told {
        let resources = request.resource_spans.len();
        let scopes = request.resource_spans.iter();
        let scopes = scopes.flat_map(|resource| &resource.scope_spans);
        let spans: usize = scopes.map(|scope| scope.spans.len()).sum();
        Told {
            head: "Traces".to_owned(),
            counts: vec![("resource spans", resources), ("spans", spans)],
            text: match self.verbosity {
                Verbosity::Basic => None,
                Verbosity::Normal => Some(normal::traces(request)),
                Verbosity::Detailed => Some(detailed::traces(request)),
            },
        }
    }

    fn metrics(&self, request: &Metrics) -> Told {
        let resources = request.resource_metrics.len();
        let scopes = request.resource_metrics.iter();
        let scopes = scopes.flat_map(|resource| &resource.scope_metrics);
        let metrics: Vec<_> = scopes.flat_map(|scope| &scope.metrics).collect();
        let points: usize = metrics.iter().map(|metric| points::count(metric)).sum();
        Told {
            head: "Metrics".to_owned(),
            counts: vec![
                ("resource metrics", resources),
                ("metrics", metrics.len()),
                ("data points", points),
            ],
            text: match self.verbosity {
                Verbosity::Basic => None,
                Verbosity::Normal => Some(normal::metrics(request)),
                Verbosity::Detailed => Some(detailed::metrics(request)),
            },
        }
    }

    fn logs(&self, request: &Logs) -> Told {
        let resources = request.resource_logs.len();
        let scopes = request.resource_logs.iter();
        let scopes = scopes.flat_map(|resource| &resource.scope_logs);
        let records: usize = scopes.map(|scope| scope.log_records.len()).sum();
        Told {
            head: "Logs".to_owned(),
            counts: vec![("resource logs", resources), ("log records", records)],
            text: match self.verbosity {
                Verbosity::Basic => None,
                Verbosity::Normal => Some(normal::logs(request)),
                Verbosity::Detailed => Some(detailed::logs(request)),
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

/// Text that is not UTF-8 is replaced.
fn decode<M: Message + Default + DeserializeOwned>(batch: &Batch) -> Result<M, String> {
    M::decode(&*batch.bytes).or_else(|_| {
        let json = otlp::json::encode(batch.signal, &batch.bytes);
        serde_json::from_slice(&json).map_err(|error| error.to_string())
    })
}

/// Which batches are told: the first ones of a second, and then one of so many. Each signal is counted alone.
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
