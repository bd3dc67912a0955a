//! What all workers share of a filter: its switches, its counters, and where its records go.

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

/// What can be changed while the process runs. New streams see a change.
#[derive(Debug)]
pub struct Switches {
    /// `option disabled`
    pub disabled: AtomicBool,
    /// The share of streams that are traced, of [`Switches::ALL`].
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

    /// The one of that name.
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
    /// Every stream is traced.
    pub const ALL: u64 = 1 << 32;

    /// A share in per cent, as `rate-limit` has it.
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

/// What happened in a filter, by all workers.
#[derive(Debug, Default)]
pub struct Counters {
    /// Streams that were followed.
    pub attached: AtomicU64,
    /// Streams that were not followed because of `rate-limit`.
    pub passed_by_rate: AtomicU64,
    /// Streams that were not followed because the filter is disabled.
    pub passed_while_disabled: AtomicU64,
    /// Streams whose work `otel-stop`, or a context that is required and was not there, ended.
    pub stopped: AtomicU64,
    /// Faults that ended the filter's work for a stream.
    pub hard_errors: AtomicU64,
    /// Faults that cost an output.
    pub soft_errors: AtomicU64,
    /// Faults that were not logged, for there were too many lately.
    pub lines_suppressed: AtomicU64,
    /// Times of [`Filter::reset_errors`]: workers compare.
    pub(crate) resets: AtomicU64,
}

/// Where the records of a filter go.
#[derive(Debug)]
pub struct FilterExport {
    /// Decides at a span's start whether it is recorded.
    pub sampler: Sampler,
    /// One a pipeline; none drops everything.
    pub spans: Vec<Arc<Queue>>,
    /// Likewise.
    pub logs: Vec<Arc<Queue>>,
    /// Log records of a lower severity are not made.
    pub severity_min: u8,
    /// Records that are handed over at once, at least.
    pub batch_records: u32,
    /// Milliseconds that a record may wait in a worker.
    pub delay_ms: u64,
    /// What the filter measures with.
    pub instruments: Arc<Instruments>,
    /// Who takes what the workers measured; none drops it.
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

/// A filter as the workers share it.
#[derive(Debug)]
pub struct Filter {
    /// See there.
    pub switches: Switches,
    /// See there.
    pub counters: Counters,
    /// See there.
    pub export: FilterExport,
    /// [`telemetry::Program::outcome`]
    pub(crate) outcome: Option<u64>,
    /// [`telemetry::Program::honours_parent`]
    pub(crate) honours_parent: bool,
    /// By context: its slot among those that expressions ask for ([`Config::contexts`]). Empty where none is asked for.
    pub(crate) asked_contexts: Vec<Option<u8>>,
    /// `sess.otel.uuid`, where something reads it.
    pub(crate) uuid: Option<VarRef>,
}

/// The filters of a configuration.
#[derive(Debug, Default)]
pub(crate) struct Filters {
    /// There is one.
    pub any: bool,
    /// By the index in [`Config::otel`].
    pub filters: Vec<Filter>,
    /// By proxy: the filters of the streams that begin there.
    of_frontend: Vec<Vec<u32>>,
    /// By proxy: the filters of the streams that come there from another one.
    of_backend: Vec<Vec<u32>>,
}

impl Filters {
    /// The filters of the streams that begin at a proxy.
    pub fn of_frontend(&self, proxy: ProxyId) -> &[u32] {
        &self.of_frontend[proxy.place()]
    }

    /// The filters of the streams that come to a proxy from another one.
    pub fn of_backend(&self, proxy: ProxyId) -> &[u32] {
        &self.of_backend[proxy.place()]
    }

    pub fn new(config: &Config) -> Filters {
        let uuid = config.var_names.of(VarScope::Sess);
        let mut uuid = uuid.filter(|(_, name)| *name == "otel.uuid");
        let uuid = uuid.next().map(|(slot, _)| VarRef {
            scope: VarScope::Sess,
            slot,
        });
        let filters = config.otel.iter().map(|filter| Filter {
            switches: Switches {
                disabled: AtomicBool::new(filter.disabled),
                rate: AtomicU64::new(Switches::share(filter.rate_percent)),
                hard_errors: AtomicBool::new(filter.hard_errors),
                noflush: AtomicBool::new(filter.noflush),
                logging: AtomicU8::new(Logging::configured(filter) as u8),
            },
            counters: Counters::default(),
            export: FilterExport::default(),
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
    /// How spans' flags are found.
    #[inline]
    pub(crate) fn head(&self) -> Head<'_> {
        Head {
            sampler: &self.export.sampler,
            outcome: self.outcome,
            honours_parent: self.honours_parent,
        }
    }

    /// The slot of a context that expressions ask for.
    #[inline]
    pub(crate) fn asked_context(&self, context: ContextSlot) -> Option<u8> {
        let slot = self.asked_contexts.get(usize::from(context));
        slot.copied().flatten()
    }
}

/// What became of streams at a filter, in one worker.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StreamCounts {
    pub attached: u64,
    pub passed_by_rate: u64,
    pub passed_while_disabled: u64,
    /// `otel-stop`, or no context where one is required.
    pub stopped: u64,
}

impl Counters {
    /// Adds what a worker counted.
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
    /// Counts a fault; whether it ends the filter's work for the stream.
    pub(crate) fn fault(&self) -> bool {
        let hard = self.switches.hard_errors.load(Relaxed);
        let counter = match hard {
            true => &self.counters.hard_errors,
            false => &self.counters.soft_errors,
        };
        counter.fetch_add(1, Relaxed);
        hard
    }

    /// Counts errors from 0 again, and lets them be logged again.
    pub fn reset_errors(&self) {
        self.counters.hard_errors.store(0, Relaxed);
        self.counters.soft_errors.store(0, Relaxed);
        self.counters.resets.fetch_add(1, Relaxed);
    }
}
