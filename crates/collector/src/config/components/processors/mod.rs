//! Processors.
//!
//! A kind is a file of settings here, which implements [`ProcessorSettings`], a file in
//! `run/process`, which implements [`StartProcessor`], and an entry of [`ENTRIES`].

pub mod action;
pub mod attributes;
pub mod batch;
pub mod cumulative_to_delta;
pub mod delta_to_cumulative;
pub mod filter;
mod gone;
pub mod group_by_trace;
pub mod k8s_attributes;
pub mod matching;
pub mod memory_limiter;
pub mod order;
pub mod probabilistic_sampler;
pub mod records;
pub mod redaction;
pub mod resource;
pub mod resource_detection;
pub mod statements;
pub mod tail_sampling;
pub mod transform;

use std::sync::Arc;

use super::Entry;
use super::id::ComponentId;
use super::settings::{Erased, Value};
use crate::config::service::context::Asked;
use crate::run::process::StartProcessor;
use order::{Order, Traces};

/// A processor's settings: what the configuration asks of a kind. [`StartProcessor`] is what the run asks.
pub trait ProcessorSettings: Value + StartProcessor {
    /// Where it keeps what must outlive the process.
    fn storage(&self) -> Storage {
        Storage::None
    }

    /// The same settings with a named storage, for a kind that has [`Storage::Only`].
    fn with_storage(&self, _storage: &ComponentId) -> Option<Processor> {
        None
    }

    /// Adds what it reads of the requests that data came with.
    fn ask(&self, _asked: &mut Asked) {}

    /// Its effect on whole traces.
    fn traces(&self) -> Traces {
        Traces::Passes
    }

    /// A warning about its place among the processors of a pipeline.
    fn misplaced(&self, _order: &Order<'_>) -> Option<String> {
        None
    }
}

/// A processor's settings, of any kind.
pub type Processor = Erased<dyn ProcessorSettings>;

impl Processor {
    /// Of settings of a kind.
    pub fn new(settings: impl ProcessorSettings) -> Processor {
        Erased::share(Arc::new(settings))
    }
}

/// How a processor names its storage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Storage {
    /// It keeps nothing.
    None,
    /// The only storage of the configuration.
    Only,
    /// By its id.
    Id(ComponentId),
}

impl Storage {
    /// That of an option `storage`. A text that is no id was refused where it was read.
    pub(crate) fn of_option(storage: Option<&String>) -> Storage {
        let id = storage.and_then(|id| ComponentId::parse(id).ok());
        id.map_or(Storage::None, Storage::Id)
    }
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
    redaction::ENTRY,
    cumulative_to_delta::ENTRY,
    delta_to_cumulative::ENTRY,
    resource_detection::ENTRY,
    k8s_attributes::ENTRY,
    gone::QUEUED_RETRY,
];
