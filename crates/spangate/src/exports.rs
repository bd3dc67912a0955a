//! The filters' exporters: built from `otel.yml`, and started before privileges are dropped.

use std::fmt::{self, Write as _};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use config::model::{Config, OtelFilter};
use export::{Exporters, Log, MetricSource, Pipeline, Plan};
use proxy::statistics::{View, otlp};
use proxy::{Current, FilterExport, RuntimeConfig};
use telemetry::account::Loss;
use telemetry::metrics::{Aggregation, Instrument, Instruments, Kind, Shared};
use telemetry::queue::Batch;
use telemetry::sampler::Sampler;
use telemetry::settings;

use crate::pace::pace;
use crate::{sys, warning};

/// Time budget of a flush that the runtime interface asks for, all filters together. The workers
/// have the same time to hand over their records.
pub(crate) const FLUSH_NOW_BUDGET: Duration = Duration::from_secs(5);
/// Time budget of the last exports when the process ends, all together, as in HAProxy's filter.
const FLUSH_BUDGET: Duration = Duration::from_secs(1);
/// Buckets and scale of exponential histograms, as in the SDKs.
const EXPONENTIAL: Aggregation = Aggregation::ExponentialHistogram {
    max_size: 160,
    max_scale: 20,
};

/// The exporters of all filters, and their input from each filter.
pub(crate) struct Exports {
    exporters: Exporters,
    /// The filters that wait for [`Exports::connect`].
    filters: Vec<FilterExport>,
    /// The indexes of each filter's pipelines.
    places: Vec<Vec<usize>>,
    statistics: Arc<Statistics>,
}

impl Exports {
    /// Starts the exporters; none if no filter is configured. Some may send to `collectors` of this
    /// process.
    ///
    /// # Errors
    /// Which pipeline cannot work, and why.
    pub fn start(
        config: &Config,
        collectors: export::Collectors,
        now_unix_ns: u64,
    ) -> Result<Option<Exports>, String> {
        if config.otel.is_empty() && config.global.stats_otlp.is_none() {
            return Ok(None);
        }
        let log: Log = Arc::new(warning);
        let mut plan = Plan::new(log);
        plan.collectors = collectors;
        let mut parts: Vec<Part> = Vec::new();
        for (number, filter) in config.otel.iter().enumerate() {
            // Proxies whose `option tracing` has equal settings share one exporter.
            let alike = |other: &OtelFilter| {
                filter.program.follows_requests
                    && other.program.follows_requests
                    && other.settings == filter.settings
            };
            if let Some(twin) = config.otel[..number].iter().position(alike) {
                parts.push(parts[twin].clone());
                continue;
            }
            let settings = filter.settings.clone();
            let meters = Meters::new(filter, &settings, now_unix_ns);
            let source: Arc<dyn MetricSource> = Arc::new(meters.clone());
            let places = plan.add(&settings, Some(source));
            parts.push(Part {
                settings,
                meters,
                places,
            });
        }
        let statistics = Arc::new(Statistics::default());
        if let Some(settings) = &config.global.stats_otlp {
            plan.add(settings, Some(statistics.clone()));
        }
        let exporters = Exporters::start(plan)?;
        let queue = |place: &usize| Arc::clone(&exporters.pipelines()[*place].queue);
        let all = |part: &Part| {
            let export::Places {
                traces,
                metrics,
                logs,
            } = &part.places;
            [&traces[..], metrics, logs].concat()
        };
        let places = parts.iter().map(all).collect();
        let filters = parts.into_iter().map(|part| {
            let Part {
                settings,
                meters,
                places,
            } = part;
            let (batch_records, delay_ms) = pace(&settings);
            let traces = settings.traces.as_ref();
            FilterExport {
                sampler: traces.map_or(Sampler::AlwaysOff, |traces| (&traces.sampler).into()),
                spans: places.traces.iter().map(queue).collect(),
                logs: places.logs.iter().map(queue).collect(),
                severity_min: settings
                    .logs
                    .as_ref()
                    .map_or(u8::MAX, |logs| logs.min_severity),
                batch_records,
                delay_ms,
                instruments: meters.instruments,
                metrics: meters.shared,
            }
        });
        let filters = filters.collect();
        let exports = Exports {
            exporters,
            filters,
            places,
            statistics,
        };
        for (number, filter) in config.otel.iter().enumerate() {
            exports.drop_at_end(number, filter.noflush);
        }
        Ok(Some(exports))
    }

    /// Tells the filters of a configuration where to send their records.
    pub fn connect(&mut self, runtime_config: &mut RuntimeConfig) {
        for (filter, export) in self.filters.drain(..).enumerate() {
            runtime_config.export_filter(filter, export);
        }
    }

    /// Sets the process whose statistics are exported (`stats otlp`).
    pub fn watch(&self, current: &Arc<Current>) {
        // It is set once: there is one process.
        let _ = self.statistics.0.set(Arc::clone(current));
    }

    /// Writes the account of a filter's records in the format of `flt-otel status`.
    pub fn describe(&self, filter: usize, out: &mut String) -> fmt::Result {
        self.pipelines(filter)
            .try_for_each(|one| describe(one, out))
    }

    /// The pipelines of a filter.
    fn pipelines(&self, filter: usize) -> impl Iterator<Item = &Pipeline> {
        let places = self.places.get(filter).into_iter().flatten();
        places.filter_map(|place| self.exporters.pipelines().get(*place))
    }

    /// `option noflush` of a filter.
    pub fn drop_at_end(&self, filter: usize, drops: bool) {
        for pipeline in self.pipelines(filter) {
            pipeline.drop_at_end(drops);
        }
    }

    /// Exports the queued records of filters now. Returns whether all were finished in time.
    pub fn flush(&self, filters: &[usize]) -> bool {
        let places = filters.iter().filter_map(|filter| self.places.get(*filter));
        let mut places: Vec<usize> = places.flatten().copied().collect();
        places.sort_unstable();
        places.dedup();
        self.exporters.flush_some(&places, FLUSH_NOW_BUDGET)
    }

    /// Exports the queued records within a time limit, and reports what was lost.
    pub fn finish(&self) {
        let accounts: Vec<_> = self.exporters.pipelines().iter().map(account).collect();
        self.exporters.shutdown(FLUSH_BUDGET);
        for (name, account) in accounts {
            let lost: Vec<String> = Loss::ALL[1..]
                .iter()
                .filter(|why| account.lost(**why) > 0)
                .map(|why| format!("{} {}", account.lost(*why), why.name()))
                .collect();
            if !lost.is_empty() {
                let (started, exported) = (account.started(), account.exported());
                warning(&format!(
                    "otel : {name} : of {started} records {exported} were exported; lost : {}.",
                    lost.join(", ")
                ));
            }
        }
    }
}

fn account(pipeline: &Pipeline) -> (String, Arc<telemetry::account::Account>) {
    let name = pipeline.health.name().to_owned();
    (name, Arc::clone(&pipeline.queue.account))
}

fn describe(pipeline: &Pipeline, out: &mut String) -> fmt::Result {
    let (queue, health) = (&pipeline.queue, &pipeline.health);
    let account = &queue.account;
    let sampled = account.lost(Loss::SampledOut);
    // A span that sampling drops is not counted as lost.
    let causes = Loss::ALL.iter().filter(|why| **why != Loss::SampledOut);
    let lost: u64 = causes.clone().map(|why| account.lost(*why)).sum();
    let (started, exported, flying) = (account.started(), account.exported(), account.in_flight());
    // The counters are read one after the other while other threads change them.
    let waiting = started.saturating_sub(exported + sampled + lost + flying);
    writeln!(out, "  pipeline     : {}", health.name())?;
    writeln!(
        out,
        "    records    : {started} started, {exported} exported, {sampled} sampled out, {lost} lost, {waiting} waiting, {flying} in flight"
    )?;
    let causes = causes.map(|why| format!("{} {}", account.lost(*why), why.name()));
    let causes: Vec<String> = causes.collect();
    writeln!(out, "    lost       : {}", causes.join(", "))?;
    let ((records, bytes), limits) = (queue.depth(), queue.limits());
    let of = |max: usize| match max {
        usize::MAX => String::new(),
        max => format!(" of {max}"),
    };
    writeln!(
        out,
        "    queue      : {records}{} records, {bytes}{} bytes",
        of(limits.records_max),
        of(limits.bytes_max),
    )?;
    writeln!(
        out,
        "    requests   : {} accepted, {} abandoned, {} retries",
        health.requests_taken(),
        health.requests_failed(),
        health.attempts_again(),
    )?;
    match health.since_taken() {
        Some(since) => writeln!(out, "    last sent  : {} s ago", since.as_secs())?,
        None => writeln!(out, "    last sent  : never")?,
    }
    match health.last_error().as_str() {
        "" => writeln!(out, "    last error : none"),
        error => writeln!(out, "    last error : {error}"),
    }
}

/// The statistics of the process, once it runs.
#[derive(Default)]
struct Statistics(OnceLock<Arc<Current>>);

impl MetricSource for Statistics {
    fn collect(&self, _: usize, now_unix_ns: u64) -> Batch {
        let mut batch = Batch::default();
        if let Some(current) = self.0.get() {
            let current = current.get();
            let view = View {
                runtime_config: &current.runtime_config,
                shared: &current.shared,
                servers: &current.shared.server_tables(),
                now: net::sys::now(),
                legends: false,
            };
            let points = otlp::write(&view, now_unix_ns, &mut batch.bytes);
            batch.records = u32::try_from(points).unwrap_or(u32::MAX);
        }
        batch
    }
}

/// What a filter's exporters are built from.
#[derive(Clone)]
struct Part {
    settings: settings::Settings,
    meters: Meters,
    places: export::Places,
}

/// The measurements of a filter, for its metrics pipelines.
#[derive(Clone)]
struct Meters {
    instruments: Arc<Instruments>,
    /// With delta temporality one per pipeline, because each has its own last export time;
    /// otherwise one for all.
    shared: Vec<Arc<Shared>>,
}

impl Meters {
    fn new(filter: &OtelFilter, settings: &settings::Settings, now_unix_ns: u64) -> Meters {
        let Some(metrics) = &settings.metrics else {
            return Meters {
                instruments: Arc::new(Instruments::new(Vec::new(), 0)),
                shared: Vec::new(),
            };
        };
        let exponential = metrics.histogram == settings::Histogram::Exponential;
        let instruments = filter.program.instruments.iter().cloned();
        let instruments = instruments.map(|mut instrument: Instrument| {
            let unsaid = instrument.aggregation == Aggregation::Default;
            if exponential && unsaid && instrument.kind == Kind::Histogram {
                instrument.aggregation = EXPONENTIAL;
            }
            instrument
        });
        let instruments = Instruments::new(instruments.collect(), sys::random_seed());
        let instruments = Arc::new(instruments);
        let (temporality, count) = match metrics.temporality {
            settings::Temporality::Cumulative => (telemetry::metrics::Temporality::Cumulative, 1),
            settings::Temporality::Delta => (
                telemetry::metrics::Temporality::Delta,
                metrics.pipelines.len(),
            ),
        };
        let shared = || Shared::new(Arc::clone(&instruments), temporality, now_unix_ns);
        Meters {
            shared: (0..count).map(|_| Arc::new(shared())).collect(),
            instruments,
        }
    }
}

impl MetricSource for Meters {
    fn collect(&self, pipeline: usize, now_unix_ns: u64) -> Batch {
        let mut batch = Batch::default();
        let shared = self.shared.get(pipeline).or(self.shared.first());
        if let Some(shared) = shared {
            let points = shared.collect(now_unix_ns, &mut batch.bytes);
            batch.records = u32::try_from(points).unwrap_or(u32::MAX);
        }
        batch
    }
}
