//! Processors whose order defeats them.

use crate::config::components::Role;
use crate::config::components::id::ComponentId;
use crate::config::components::processors::Processor;
use crate::config::definitions::{Definitions, Settings};
use crate::config::diagnostic::{At, Notes};

/// Warns of an order that works, but not as one would think.
pub(super) fn check(
    parts: &[(ComponentId, At)],
    definitions: &Definitions,
    path: &str,
    notes: &Notes,
) {
    let settings = |id: &ComponentId| definitions.find(Role::Processor, id)?.settings.as_ref();
    let processors: Vec<(&ComponentId, At, &Processor)> = parts
        .iter()
        .filter_map(|(id, at)| match settings(id) {
            Some(Settings::Processor(processor)) => Some((id, *at, processor)),
            _ => None,
        })
        .collect();
    let is_sampler = |processor: &Processor| matches!(processor, Processor::TailSampling(_));
    let is_group = |processor: &Processor| matches!(processor, Processor::GroupByTrace(_));
    for (index, (id, at, processor)) in processors.iter().enumerate() {
        let (before, after) = (&processors[..index], &processors[index + 1..]);
        let later = after
            .iter()
            .find(|(.., other)| is_sampler(other) || is_group(other));
        let message = match processor {
            Processor::PolicySampling(_) => {
                let is_whole = before.iter().any(|(.., other)| is_group(other));
                (!is_whole).then(|| {
                    format!("'{id}' without a 'groupbytrace' before it decides on parts of traces")
                })
            }
            Processor::Batch(_) => later.map(|(later, ..)| {
                format!("'{id}' before '{later}' only delays spans, which are put together anew there: put it after")
            }),
            Processor::GroupByTrace(_) => {
                let sampler = before.iter().find(|(.., other)| is_sampler(other));
                sampler.map(|(sampler, ..)| {
                    format!("'{id}' after '{sampler}' waits once more for traces that are whole already")
                })
            }
            Processor::MemoryLimiter(_) => (index > 0).then(|| {
                let (first, ..) = processors[0];
                format!("'{id}' after '{first}' refuses data too late: put it first")
            }),
            Processor::ProbabilisticSampler(_) => later.filter(|(.., other)| is_sampler(other)).map(|(later, ..)| {
                format!("'{id}' before '{later}': traces that it drops can be kept by no policy")
            }),
            _ => None,
        };
        if let Some(message) = message {
            notes.warn(*at, format!("{path}: {message}"));
        }
    }
}
