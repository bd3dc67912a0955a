//! The state of a filter that all workers share: its switches, its counters, and the destinations
//! of its records.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::Relaxed};

use config::model::Config;
use sample::{VarRef, VarScope};
use telemetry::metrics::Instruments;
use telemetry::program::ContextSlot;
use telemetry::queue::Queue;
use telemetry::record::Head;
use telemetry::sampler::Sampler;

use crate::ids::ProxyId;

/// Settings that can be changed at run time. They apply to new streams.
#[derive(Debug)]
pub struct Switches {
    /// `option disabled`
    pub disabled: AtomicBool,
    /// The share of streams that are traced, in units of 1/[`Switches::ALL`].
    pub rate: AtomicU64,
    /// `option hard-errors`
    pub hard_errors: AtomicBool,
    /// `option noflush`
    pub noflush: AtomicBool,
    logging: AtomicU8,
}

/// Which messages of a filter are logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Logging {
    /// None.
    Off,
    /// All.
    On,
    /// Errors (`option dontlog-normal`).
    DontlogNormal,
}

impl Logging {
    const ALL: [Logging; 3] = [Logging::Off, Logging::On, Logging::DontlogNormal];

    /// The word of the runtime interface.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Logging::Off => "off",
            Logging::On => "on",
            Logging::DontlogNormal => "dontlog-normal",
        }
    }

    /// The setting with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Logging> {
        Logging::ALL.into_iter().find(|one| one.name() == name)
    }

    fn configured(filter: &config::model::OtelFilter) -> Logging {
        match (filter.log.is_empty(), filter.dontlog_normal) {
            (true, _) => Logging::Off,
            (_, true) => Logging::DontlogNormal,
            (_, false) => Logging::On,
        }
    }
}

impl Switches {
    fn new(filter: &config::model::OtelFilter) -> Switches {
        Switches {
            disabled: AtomicBool::new(filter.disabled),
            rate: AtomicU64::new(Switches::share(filter.rate_percent)),
            hard_errors: AtomicBool::new(filter.hard_errors),
            noflush: AtomicBool::new(filter.noflush),
            logging: AtomicU8::new(Logging::configured(filter) as u8),
        }
    }

    /// Every stream is traced.
    pub const ALL: u64 = 1 << 32;

    /// Converts a percentage, as in `rate-limit`, to a share.
    #[must_use]
    pub fn share(percent: f64) -> u64 {
        (percent / 100.0 * Self::ALL as f64) as u64
    }

    /// The share of streams that are traced, in per cent.
    #[must_use]
    pub fn rate_percent(&self) -> f64 {
        self.rate.load(Relaxed) as f64 / Self::ALL as f64 * 100.0
    }

    /// Which messages are logged.
    #[must_use]
    pub fn logging(&self) -> Logging {
        let number = usize::from(self.logging.load(Relaxed));
        Logging::ALL.get(number).copied().unwrap_or(Logging::Off)
    }

    /// Changes [`Switches::logging`].
    pub fn set_logging(&self, logging: Logging) {
        self.logging.store(logging as u8, Relaxed);
    }
}

/// Counters of events in a filter, of all workers.
#[derive(Debug, Default)]
pub struct Counters {
    /// Streams that were followed.
    pub attached: AtomicU64,
    /// Streams that were not followed because of `rate-limit`.
    pub passed_by_rate: AtomicU64,
    /// Streams that were not followed because the filter is disabled.
    pub passed_while_disabled: AtomicU64,
    /// Streams for which `otel-stop`, or a missing required context, ended the filter's work.
    pub stopped: AtomicU64,
    /// Faults that ended the filter's work for a stream.
    pub hard_errors: AtomicU64,
    /// Faults that lost one output only.
    pub soft_errors: AtomicU64,
    /// Faults that were not logged, because there were too many recently.
    pub lines_suppressed: AtomicU64,
    /// The number of calls of [`Filter::reset_errors`], which workers compare.
    pub(crate) resets: AtomicU64,
}

/// The destinations of a filter's records.
#[derive(Debug)]
pub struct FilterExport {
    /// Decides at a span's start whether it is recorded.
    pub sampler: Sampler,
    /// The queue of each pipeline; without any, spans are dropped.
    pub spans: Vec<Arc<Queue>>,
    /// The queue of each pipeline; without any, log records are dropped.
    pub logs: Vec<Arc<Queue>>,
    /// Log records with a lower severity are not created.
    pub severity_min: u8,
    /// The smallest number of records that are handed over at once.
    pub batch_records: u32,
    /// How long a record may wait in a worker, milliseconds.
    pub delay_ms: u64,
    /// The metric instruments of the filter.
    pub instruments: Arc<Instruments>,
    /// The receivers of the workers' measurements; without any, measurements are dropped.
    pub metrics: Vec<Arc<telemetry::metrics::Shared>>,
}

impl Default for FilterExport {
    fn default() -> Self {
        FilterExport {
            sampler: Sampler::AlwaysOn,
            spans: Vec::new(),
            logs: Vec::new(),
            severity_min: 1,
            batch_records: 512,
            delay_ms: 1000,
            instruments: Arc::new(Instruments::new(Vec::new(), 0)),
            metrics: Vec::new(),
        }
    }
}

/// A filter's state that the workers share.
#[derive(Debug)]
pub struct Filter {
    /// Settings that can be changed at run time. A configuration shares the switches, counters and
    /// destinations of its filters with the one before it in the process.
    pub switches: Arc<Switches>,
    /// Counters of all workers.
    pub counters: Arc<Counters>,
    /// The destinations of its records.
    pub export: Arc<FilterExport>,
    /// [`telemetry::Program::outcome`]
    pub(crate) outcome: Option<u64>,
    /// [`telemetry::Program::honours_parent`]
    pub(crate) honours_parent: bool,
    /// By context: its slot among those that expressions read ([`Config::contexts`]). Empty where
    /// none is read.
    pub(crate) asked_contexts: Vec<Option<u8>>,
    /// `sess.otel.uuid`, if it is read anywhere.
    pub(crate) uuid: Option<VarRef>,
}

/// The filters of a configuration.
#[derive(Debug, Default)]
pub(crate) struct Filters {
    /// There is at least one filter.
    pub any: bool,
    /// By the index in [`Config::otel`].
    pub filters: Vec<Filter>,
    /// By proxy: the filters of streams that begin there.
    of_frontend: Vec<Vec<u32>>,
    /// By proxy: the filters of streams that arrive there from another proxy.
    of_backend: Vec<Vec<u32>>,
}

impl Filters {
    /// The filters of streams that begin at a proxy.
    pub fn of_frontend(&self, proxy: ProxyId) -> &[u32] {
        &self.of_frontend[proxy.place()]
    }

    /// The filters of streams that arrive at a proxy from another one.
    pub fn of_backend(&self, proxy: ProxyId) -> &[u32] {
        &self.of_backend[proxy.place()]
    }

    /// The filters of a configuration, and of the one before it in the process.
    pub fn new(config: &Config, before: Option<&Filters>) -> Filters {
        let uuid = config.var_names.of(VarScope::Sess);
        let mut uuid = uuid.filter(|(_, name)| *name == "otel.uuid");
        let uuid = uuid.next().map(|(slot, _)| VarRef {
            scope: VarScope::Sess,
            slot,
        });
        let before = |place: usize| before.and_then(|before| before.filters.get(place));
        let filters = config.otel.iter().enumerate();
        let filters = filters.map(|(place, filter)| Filter {
            switches: before(place).map_or_else(
                || Arc::new(Switches::new(filter)),
                |before| Arc::clone(&before.switches),
            ),
            counters: before(place)
                .map_or_else(Arc::default, |before| Arc::clone(&before.counters)),
            export: before(place).map_or_else(Arc::default, |before| Arc::clone(&before.export)),
            outcome: filter.program.outcome(),
            honours_parent: filter.program.honours_parent,
            asked_contexts: asked_contexts(config, filter),
            uuid,
        });
        let own = |proxy: &config::model::Proxy| -> Vec<u32> {
            proxy.otel.iter().map(|index| *index as u32).collect()
        };
        let none = |_: &config::model::Proxy| Vec::new();
        let proxies = config.proxies.iter();
        Filters {
            any: !config.otel.is_empty(),
            filters: filters.collect(),
            of_frontend: proxies
                .clone()
                .map(|proxy| {
                    if proxy.is_frontend {
                        own(proxy)
                    } else {
                        none(proxy)
                    }
                })
                .collect(),
            of_backend: proxies
                .map(|proxy| {
                    if proxy.is_backend {
                        own(proxy)
                    } else {
                        none(proxy)
                    }
                })
                .collect(),
        }
    }
}

fn asked_contexts(config: &Config, filter: &config::model::OtelFilter) -> Vec<Option<u8>> {
    if config.contexts.is_empty() {
        return Vec::new();
    }
    let slot = |name: &str| {
        let place = config.contexts.iter().position(|asked| asked == name)?;
        u8::try_from(place).ok()
    };
    let contexts = filter.program.contexts.iter();
    contexts.map(|context| slot(&context.name)).collect()
}

impl Filter {
    /// The rules that determine the flags of spans.
    #[inline]
    pub(crate) fn head(&self) -> Head<'_> {
        Head {
            sampler: &self.export.sampler,
            outcome: self.outcome,
            honours_parent: self.honours_parent,
        }
    }

    /// The slot of a context that expressions read.
    #[inline]
    pub(crate) fn asked_context(&self, context: ContextSlot) -> Option<u8> {
        let slot = self.asked_contexts.get(usize::from(context));
        slot.copied().flatten()
    }
}

/// Counts of streams at a filter, in one worker.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StreamCounts {
    pub attached: u64,
    pub passed_by_rate: u64,
    pub passed_while_disabled: u64,
    /// Ended by `otel-stop` or a missing required context.
    pub stopped: u64,
}

impl Counters {
    /// Adds the counts of a worker.
    pub(crate) fn add(&self, streams: StreamCounts) {
        let pairs = [
            (&self.attached, streams.attached),
            (&self.passed_by_rate, streams.passed_by_rate),
            (&self.passed_while_disabled, streams.passed_while_disabled),
            (&self.stopped, streams.stopped),
        ];
        for (counter, count) in pairs.into_iter().filter(|(_, count)| *count > 0) {
            counter.fetch_add(count, Relaxed);
        }
    }
}

impl Filter {
    /// Counts a fault. Whether it ends the filter's work for the stream.
    pub(crate) fn fault(&self) -> bool {
        let hard = self.switches.hard_errors.load(Relaxed);
        let counter = if hard {
            &self.counters.hard_errors
        } else {
            &self.counters.soft_errors
        };
        counter.fetch_add(1, Relaxed);
        hard
    }

    /// Resets the counts of errors, and allows them to be logged again.
    pub fn reset_errors(&self) {
        self.counters.hard_errors.store(0, Relaxed);
        self.counters.soft_errors.store(0, Relaxed);
        self.counters.resets.fetch_add(1, Relaxed);
    }
}
