//! `tail_sampling`: traces are kept or dropped once they are whole.

mod options;
mod policies;
mod yaml;

pub use yaml::yaml;

pub(crate) use policies::POLICY;

use tail::policy::Program;
use tail::settings::{Strategy, TailSampling};

use super::order::{Order, Traces};
use super::{Processor, ProcessorSettings, Storage};
use crate::config::components::shared::storage;
use crate::config::components::{Entry, Parse, TRACES, name};
use crate::config::options::Section;

impl ProcessorSettings for TailSampling {
    fn storage(&self) -> Storage {
        Storage::of_option(self.storage.as_ref())
    }

    fn traces(&self) -> Traces {
        Traces::Samples
    }
}

/// Settings of `policysampling`, which decides at once: nothing waits.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicySampling(pub TailSampling);

impl ProcessorSettings for PolicySampling {
    fn misplaced(&self, order: &Order<'_>) -> Option<String> {
        let is_whole = order.earlier(Traces::Groups).is_some();
        (!is_whole).then(|| {
            let id = order.id;
            format!("'{id}' without a 'groupbytrace' before it decides on parts of traces")
        })
    }
}

/// Of a published comparison of grouping with tail sampling: behind `groupbytrace`, whose traces
/// are whole.
pub(crate) const AT_ONCE: Entry = Entry {
    names: &[name("policysampling")],
    doc: "keeps or drops what `groupbytrace` handed over, by policies, at once (not in the Collector)",
    takes: TRACES,
    carries: TRACES,
    options: options::AT_ONCE,
    parse: Parse::Processor(parse_at_once),
};

pub(crate) const ENTRY: Entry = Entry {
    names: &[name("tail_sampling")],
    doc: "keeps or drops whole traces by policies",
    takes: TRACES,
    carries: TRACES,
    options: TABLE,
    parse: Parse::Processor(parse),
};

pub(crate) use options::TABLE;

fn parse(section: &Section<'_>) -> Processor {
    Processor::new(settings(section))
}

/// The settings of options that were checked by [`TABLE`].
pub(crate) fn settings(section: &Section<'_>) -> TailSampling {
    let policies = section.sections("policies");
    let cache = section.section("decision_cache");
    let settings = TailSampling {
        policies: policies.iter().filter_map(policies::policy).collect(),
        decision_wait_ns: section.duration_ns("decision_wait"),
        wait_after_root_ns: section.duration_ns("decision_wait_after_root_received"),
        traces_max: section.int("num_traces"),
        block_on_overflow: section.flag("block_on_overflow"),
        expected_new_traces_per_s: section.int("expected_new_traces_per_sec"),
        sampled_cache_size: cache.int("sampled_cache_size"),
        non_sampled_cache_size: cache.int("non_sampled_cache_size"),
        sample_on_first_match: section.flag("sample_on_first_match"),
        strategy: section.choice(
            "sampling_strategy",
            &[
                ("trace-complete", Strategy::TraceComplete),
                ("span-ingest", Strategy::SpanIngest),
            ],
        ),
        drop_pending_on_shutdown: section.flag("drop_pending_traces_on_shutdown"),
        trace_bytes_max: section.int("maximum_trace_size_bytes"),
        shards: section.int("num_shards"),
        storage: storage::storage(section).map(|id| id.to_string()),
        ..TailSampling::default()
    };
    names_are_unique(&policies);
    whole(section, &settings);
    if settings.strategy == Strategy::SpanIngest {
        for (policy, section) in settings.policies.iter().zip(&policies) {
            if let Some(name) = policy.stateful() {
                let message = format!(
                    "'{name}' keeps count over spans, which 'sampling_strategy: span-ingest' has no place for"
                );
                section.fault(&message);
            }
        }
    }
    compiles(section, &settings);
    settings
}

fn parse_at_once(section: &Section<'_>) -> Processor {
    let policies = section.sections("policies");
    let settings = TailSampling {
        policies: policies.iter().filter_map(policies::policy).collect(),
        decision_wait_ns: 0,
        sample_on_first_match: section.flag("sample_on_first_match"),
        ..TailSampling::default()
    };
    names_are_unique(&policies);
    if policies.is_empty() {
        section.warn("policies", "there are none: no trace is kept");
    }
    compiles(section, &settings);
    Processor::new(PolicySampling(settings))
}

fn names_are_unique(policies: &[Section<'_>]) {
    for (index, policy) in policies.iter().enumerate() {
        let name = policy.text("name");
        if name.is_empty() {
            let kind = policy.text_unless_empty("type");
            let kind = kind.as_deref().unwrap_or("policy");
            let message = format!(
                "is missing: metrics and attributes tell policies by it, and the Collector does not start without it; write a \
                 name that no other policy has, such as 'name: {kind}-{}'",
                index + 1
            );
            policy.error("name", &message);
        } else if policies[..index]
            .iter()
            .any(|other| other.text("name") == name)
        {
            policy.error("name", &format!("'{name}' is the name of two policies"));
        }
    }
}

/// What several options tell together.
fn whole(section: &Section<'_>, settings: &TailSampling) {
    if section.sections("policies").is_empty() {
        section.warn("policies", "there are none: no trace is kept");
    }
    if settings.decision_wait_ns < 1_000_000 {
        section.warn(
            "decision_wait",
            "is less than a millisecond: is the unit missing?",
        );
    }
    let expected = settings.expected_new_traces_per_s;
    let waiting = u128::from(expected) * u128::from(settings.decision_wait_ns) / 1_000_000_000;
    if waiting > u128::from(settings.traces_max) {
        let message = format!(
            "is {}, but {expected} new traces a second wait for 'decision_wait': {waiting} are there at a time, and the oldest are decided early",
            settings.traces_max
        );
        section.warn("num_traces", &message);
    }
}

/// What is taken here is what starts. Policies that were told to be wrong are left out, so that
/// nothing is told twice.
fn compiles(section: &Section<'_>, settings: &TailSampling) {
    if !section.notes.has_errors()
        && let Err(refusal) = Program::new(settings)
    {
        section.error("policies", &refusal.to_string());
    }
}
