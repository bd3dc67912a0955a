//! Where a processor stands in its pipeline, for warnings about an order that defeats it.

use super::Processor;
use crate::config::components::id::ComponentId;

/// A processor of a pipeline.
pub type Placed<'a> = (&'a ComponentId, &'a Processor);

/// A processor's place among those of its pipeline.
#[derive(Clone, Copy, Debug)]
pub struct Order<'a> {
    /// Its id.
    pub id: &'a ComponentId,
    /// The processors before it, in their order.
    pub before: &'a [Placed<'a>],
    /// Those after it.
    pub after: &'a [Placed<'a>],
}

/// Effect of a processor on whole traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Traces {
    /// Nothing: spans pass as they come.
    Passes,
    /// It keeps spans until their trace is whole.
    Groups,
    /// The same, and it decides on the trace.
    Samples,
}

impl<'a> Order<'a> {
    /// The id of the first processor before it that does this with traces.
    #[must_use]
    pub fn earlier(&self, what: Traces) -> Option<&'a ComponentId> {
        find(self.before, |traces| traces == what)
    }

    /// The id of the first processor after it that waits for whole traces.
    #[must_use]
    pub fn later_wait(&self) -> Option<&'a ComponentId> {
        find(self.after, |traces| traces != Traces::Passes)
    }

    /// The same if that one samples.
    #[must_use]
    pub fn later_sampler(&self) -> Option<&'a ComponentId> {
        let mut waits = self.after.iter();
        let (id, first) = waits.find(|(_, other)| other.traces() != Traces::Passes)?;
        (first.traces() == Traces::Samples).then_some(*id)
    }
}

fn find<'a>(placed: &'a [Placed<'a>], is_it: impl Fn(Traces) -> bool) -> Option<&'a ComponentId> {
    let found = placed.iter().find(|(_, other)| is_it(other.traces()));
    found.map(|(id, _)| *id)
}
