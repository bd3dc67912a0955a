//! `tail_sampling`, `policysampling` and `groupbytrace` from their settings.

use std::sync::Arc;

use tail::settings::{GroupByTrace, TailSampling};
use tail::shard::Options;
use tokio::time::Instant;

use super::{Rules, Sum, Tail, metrics, start};
use crate::config::components::processors::Storage;
use crate::config::components::processors::tail_sampling::{PolicySampling, yaml};
use crate::config::{ComponentId, Signal};
use crate::run::Log;
use crate::run::consume::Consumer;
use crate::run::metrics::Sheet;
use crate::run::part::{Ended, Part, PartName, Pending, Sampling};
use crate::run::process::dashboard::{Tap, Verdicts};
use crate::run::process::outside::OUTSIDE;
use crate::run::process::{ProcessorDeps, StartProcessor};

/// Kept spans that are on their way out have this part of the budget.
const EXPORT_PART: u64 = 2;

impl StartProcessor for TailSampling {
    fn start(
        &self,
        deps: ProcessorDeps<'_, '_>,
        next: Arc<dyn Consumer>,
    ) -> Result<Arc<dyn Consumer>, String> {
        sampler(self, deps, next)
    }
}

impl StartProcessor for PolicySampling {
    fn start(
        &self,
        deps: ProcessorDeps<'_, '_>,
        next: Arc<dyn Consumer>,
    ) -> Result<Arc<dyn Consumer>, String> {
        sampler(&self.0, deps, next)
    }
}

impl StartProcessor for GroupByTrace {
    fn start(
        &self,
        deps: ProcessorDeps<'_, '_>,
        next: Arc<dyn Consumer>,
    ) -> Result<Arc<dyn Consumer>, String> {
        started(&Rules::Group(self), deps, next)
    }
}

fn sampler(
    settings: &TailSampling,
    deps: ProcessorDeps<'_, '_>,
    next: Arc<dyn Consumer>,
) -> Result<Arc<dyn Consumer>, String> {
    let settings = TailSampling {
        outside: OUTSIDE,
        ..settings.clone()
    };
    started(&Rules::Sample(&settings), deps, next)
}

fn started(
    rules: &Rules<'_>,
    mut deps: ProcessorDeps<'_, '_>,
    next: Arc<dyn Consumer>,
) -> Result<Arc<dyn Consumer>, String> {
    let setup = deps.setup;
    let options = Options {
        seed: setup.seed,
        record_policy: setup.record_policy,
        export_bytes_max: deps.budget.bytes_max() / EXPORT_PART,
        end_wait_ns: u64::try_from(deps.host.root_wait.as_nanos()).unwrap_or(u64::MAX),
        ..Options::default()
    };
    let storage = rules.storage();
    let outset = storage.map(|storage| deps.storages.kept(&storage));
    let outset = outset.transpose()?;
    let component = format!("{} {}", deps.pipeline.id, deps.id);
    let keeping = outset.as_ref().map(|outset| {
        let keeping = outset.keeping(&component);
        (keeping, outset.take_decided(&component))
    });
    let is_shown = deps.config.shows_unsampled(deps.pipeline);
    let shown = deps.traces.cloned().filter(|_| is_shown);
    let verdicts = match (&shown, rules) {
        (Some(store), Rules::Sample(settings)) => Some(Verdicts::of(store, settings)?),
        _ => None,
    };
    // `groupbytrace` decides nothing.
    let tapped = shown.filter(|_| verdicts.is_some());
    let account = &deps.accounts[Signal::Traces as usize];
    let tail = start(
        rules,
        &options,
        deps.budget,
        (account, next),
        (keeping, verdicts),
        (&deps.id.to_string(), &setup.log),
    )?;
    if deps.config.is_read_again(deps.pipeline) {
        tail.leave_waiting();
    }
    deps.register(Arc::new(TailPart {
        tail: Arc::clone(&tail),
        policies: rules.yaml(),
    }));
    Ok(match tapped {
        Some(store) => Tap::new(&store, tail),
        None => tail,
    })
}

impl Rules<'_> {
    fn storage(&self) -> Option<ComponentId> {
        let storage = match self {
            Rules::Sample(settings) => settings.storage.as_ref(),
            Rules::Group(settings) => settings.storage.as_ref(),
        };
        match Storage::of_option(storage) {
            Storage::Id(id) => Some(id),
            Storage::None | Storage::Only => None,
        }
    }

    /// The policies as YAML; none of `groupbytrace`.
    fn yaml(&self) -> Option<String> {
        match self {
            Rules::Sample(settings) => Some(yaml(&settings.policies)),
            Rules::Group(_) => None,
        }
    }
}

/// The engine as the collector sees it.
struct TailPart {
    tail: Arc<Tail>,
    /// The policies as YAML; none of `groupbytrace`.
    policies: Option<String>,
}

impl Part for TailPart {
    fn describe(&self, name: &PartName, sheet: &mut Sheet) {
        metrics::write(&self.tail, self.policies.is_some(), name, sheet);
    }

    fn pending(&self) -> Option<Pending> {
        let mut pending = Pending::default();
        self.tail.each_shard(|shard| {
            pending.traces += shard.pending_traces();
            pending.spans += shard.account().pending;
        });
        Some(pending)
    }

    fn sampling(&self) -> Option<Sampling> {
        let yaml = self.policies.clone()?;
        let sum = Sum::of(&self.tail);
        Some(Sampling { sum, yaml })
    }

    fn pause(&self, is_paused: bool) {
        self.tail.pause(is_paused);
    }

    fn end<'a>(&'a self, until: Instant, log: &'a Log) -> Ended<'a> {
        Box::pin(self.tail.end(until, log))
    }
}
