//! Processors.

pub mod action;
pub mod attributes;
pub mod batch;
pub mod filter;
mod gone;
pub mod group_by_trace;
pub mod matching;
pub mod memory_limiter;
pub mod probabilistic_sampler;
pub mod resource;
pub mod resource_detection;
pub mod statements;
pub mod tail_sampling;
pub mod transform;

use tail::settings::{GroupByTrace, TailSampling};

use super::Entry;

/// A processor's settings.
#[derive(Clone, Debug, PartialEq)]
pub enum Processor {
    /// `batch`
    Batch(batch::Batch),
    /// `memory_limiter`
    MemoryLimiter(memory_limiter::MemoryLimiter),
    /// `tail_sampling`
    TailSampling(Box<TailSampling>),
    /// `policysampling`: nothing waits.
    PolicySampling(Box<TailSampling>),
    /// `groupbytrace`
    GroupByTrace(GroupByTrace),
    /// `probabilistic_sampler`
    ProbabilisticSampler(probabilistic_sampler::ProbabilisticSampler),
    /// `resource`
    Resource(resource::Resource),
    /// `attributes`
    Attributes(Box<attributes::Attributes>),
    /// `filter`
    Filter(Box<filter::Filter>),
    /// `transform`
    Transform(transform::Transform),
    /// `resourcedetection`
    ResourceDetection(resource_detection::ResourceDetection),
}

pub(crate) const ENTRIES: &[Entry] = &[
    batch::ENTRY,
    memory_limiter::ENTRY,
    tail_sampling::ENTRY,
    tail_sampling::AT_ONCE,
    group_by_trace::ENTRY,
    probabilistic_sampler::ENTRY,
    resource::ENTRY,
    attributes::ENTRY,
    filter::ENTRY,
    transform::ENTRY,
    resource_detection::ENTRY,
    gone::QUEUED_RETRY,
];
