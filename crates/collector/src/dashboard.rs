//! What the dashboard asks of collectors: their sampling, and dry runs of other policies.

use std::sync::Arc;

use export::clock::now_unix_ms;
use serde::Serialize;
use tail::policy::{Tally, Votes};
use traces::Limits;
pub use traces::Store;
use traces::answer::DryRun;

use crate::config::policies::{PoliciesFault, policies};
use crate::config::{Config, Signal};
use crate::run::View;
use crate::run::account::Balance;
use crate::run::part::{self, PartName};
use crate::run::process::outside::OUTSIDE;

/// The store that the exporters `dashboard` of a process's configurations share; none where there
/// are none. Where one was there before, it goes on, with the limits of now.
#[must_use]
pub fn store_for<'c>(
    configs: impl IntoIterator<Item = &'c Config>,
    before: Option<Arc<Store>>,
) -> Option<Arc<Store>> {
    let limits = configs.into_iter().filter_map(Config::trace_store);
    let limits = limits.reduce(Limits::largest)?;
    let store = before.unwrap_or_else(|| Arc::new(Store::new(limits)));
    store.limit(limits, now_unix_ms());
    Some(store)
}

/// The store that collectors of a process put traces into.
#[must_use]
pub fn store(collectors: &[(String, Arc<View>)]) -> Option<Arc<Store>> {
    let mut stores = collectors.iter().map(|(_, view)| view.traces.clone());
    stores.find_map(|store| store)
}

/// The sampling of all collectors of a process.
#[derive(Clone, Debug, Serialize)]
pub struct Sampling {
    /// Each collector.
    pub collectors: Vec<CollectorSampling>,
}

/// What became of the records of one collector.
#[derive(Clone, Debug, Serialize)]
pub struct CollectorSampling {
    /// Its name.
    pub name: String,
    /// Its spans.
    pub spans: Counts,
    /// Its data points.
    pub data_points: Counts,
    /// Its log records.
    pub log_records: Counts,
    /// Bytes that waiting traces and decisions take.
    pub pending_bytes: u64,
    /// The most that they may take.
    pub pending_bytes_max: u64,
    /// Each `tail_sampling` of each pipeline.
    pub samplers: Vec<Sampler>,
}

/// An account: accepted = exported + dropped + failed + rejected + shutdown + held.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Counts {
    /// Taken by receivers.
    pub accepted: u64,
    /// Taken by all exporters.
    pub exported: u64,
    /// Dropped by processors, as they were told.
    pub dropped: u64,
    /// Not taken by a back end.
    pub failed: u64,
    /// Refused by a back end in a request that it took.
    pub rejected: u64,
    /// Lost at the end.
    pub shutdown: u64,
    /// Waiting, or on their way out.
    pub held: u64,
    /// Not taken by receivers, for lack of room.
    pub refused: u64,
}

/// A `tail_sampling` of a pipeline.
#[derive(Clone, Debug, Serialize)]
pub struct Sampler {
    /// The pipeline.
    pub pipeline: String,
    /// Its id.
    pub id: String,
    /// Traces that wait.
    pub pending_traces: u64,
    /// Their spans.
    pub pending_spans: u64,
    /// Traces that were kept.
    pub sampled: u64,
    /// Traces that no policy kept.
    pub not_sampled: u64,
    /// Traces that a policy dropped.
    pub dropped: u64,
    /// Traces that were decided before their time, because `num_traces` was reached.
    pub early: u64,
    /// Spans that came after the decision on a trace that was not kept.
    pub late_dropped: u64,
    /// Each policy, those that drop first.
    pub policies: Vec<PolicyCounts>,
    /// The policies as YAML.
    pub yaml: String,
}

/// How a policy voted, as the Collector counts it.
#[derive(Clone, Debug, Serialize)]
pub struct PolicyCounts {
    /// Its name.
    pub name: String,
    /// Traces that it voted to keep.
    pub sampled: u64,
    /// Traces that it did not.
    pub not_sampled: u64,
    /// Traces that it dropped.
    pub dropped: u64,
    /// Spans of those that it voted to keep.
    pub sampled_spans: u64,
    /// Spans of those that it did not.
    pub not_sampled_spans: u64,
    /// Evaluations that failed.
    pub errors: u64,
}

/// The sampling of collectors, each with its name.
#[must_use]
pub fn sampling(collectors: &[(String, Arc<View>)]) -> Sampling {
    let one = |(name, view): &(String, Arc<View>)| of_collector(name, view);
    Sampling {
        collectors: collectors.iter().map(one).collect(),
    }
}

fn of_collector(name: &str, view: &View) -> CollectorSampling {
    let counts = |signal: Signal| Counts::from(view.accounts[signal as usize].balance());
    let samplers = view.parts.iter().filter_map(|one| {
        let sampling = one.part.sampling()?;
        Some(sampler(&one.name, sampling))
    });
    CollectorSampling {
        name: name.to_owned(),
        spans: counts(Signal::Traces),
        data_points: counts(Signal::Metrics),
        log_records: counts(Signal::Logs),
        pending_bytes: view.budget.used_bytes(),
        pending_bytes_max: view.budget.bytes_max(),
        samplers: samplers.collect(),
    }
}

fn sampler(name: &PartName, sampling: part::Sampling) -> Sampler {
    let part::Sampling { sum, yaml } = sampling;
    let policies = sum.policies.into_iter().map(|(name, votes)| {
        let Votes {
            sampled,
            not_sampled,
            dropped,
            errors,
            ..
        } = votes;
        let traces = |tally: Tally| tally.traces;
        PolicyCounts {
            name,
            sampled: traces(sampled),
            not_sampled: traces(not_sampled),
            dropped: traces(dropped),
            sampled_spans: sampled.spans,
            not_sampled_spans: not_sampled.spans,
            errors,
        }
    });
    Sampler {
        pipeline: name.pipeline.clone(),
        id: name.id.clone(),
        pending_traces: sum.pending_traces,
        pending_spans: sum.pending_spans,
        sampled: sum.counters.traces_sampled,
        not_sampled: sum.counters.traces_not_sampled,
        dropped: sum.counters.traces_dropped,
        early: sum.counters.traces_early,
        late_dropped: sum.late_dropped,
        policies: policies.collect(),
        yaml,
    }
}

impl From<Balance> for Counts {
    fn from(balance: Balance) -> Counts {
        Counts {
            accepted: balance.accepted,
            exported: balance.exported,
            dropped: balance.dropped,
            failed: balance.failed,
            rejected: balance.rejected,
            shutdown: balance.shutdown,
            held: balance.held(),
            refused: balance.refused,
        }
    }
}

/// What policies would have kept, and what is strange about them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DryRunAnswer {
    /// What they would have kept.
    #[serde(flatten)]
    pub run: DryRun,
    /// Warnings about the text.
    pub warnings: Vec<Warning>,
}

/// Something strange, and where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Warning {
    /// What it is.
    pub message: String,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

/// Evaluates the policies of a text over the traces of a store; see [`policies`] and
/// [`Store::dry_run`].
///
/// # Errors
/// The first thing that is wrong with the text.
pub fn dry_run(store: &Store, text: &str, now_ms: u64) -> Result<DryRunAnswer, PoliciesFault> {
    let (mut settings, told) = policies(text)?;
    settings.outside = OUTSIDE;
    // What does not compile is a fault of the text, so that this one is not seen.
    let run = store.dry_run(&settings, now_ms);
    let run = run.map_err(|refusal| PoliciesFault {
        error: refusal.to_string(),
        line: 1,
        column: 1,
    })?;
    let warnings = told.into_iter().map(|one| Warning {
        message: one.message,
        line: one.line.max(1),
        column: one.column.max(1),
    });
    Ok(DryRunAnswer {
        run,
        warnings: warnings.collect(),
    })
}
