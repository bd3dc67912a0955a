//! What passes a processor, for its metrics: records that go in, and records that come out.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::config::Signal;
use crate::run::consume::{Consumer, Pass, Refused, Through};
use crate::run::data::Batch;
use crate::run::metrics::Sheet;

/// The counts of one processor for one signal, of all pipelines that have it.
#[derive(Debug)]
pub struct Passage {
    /// The processor's id.
    pub processor: String,
    /// The signal of its pipelines.
    pub signal: Signal,
    incoming: AtomicU64,
    outgoing: AtomicU64,
    refused: AtomicU64,
    /// Writes the metrics that only its kind has.
    pub(in crate::run) describe: fn(&Passage, &mut Sheet),
}

/// An end of a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Where records go in.
    In,
    /// Where they come out.
    Out,
}

impl Passage {
    /// Of a processor by its id. `describe` writes the metrics that only its kind has.
    #[must_use]
    pub fn new(
        processor: &str,
        signal: Signal,
        describe: fn(&Passage, &mut Sheet),
    ) -> Arc<Passage> {
        Arc::new(Passage {
            processor: processor.to_owned(),
            signal,
            incoming: AtomicU64::new(0),
            outgoing: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            describe,
        })
    }

    /// Records that the processor took.
    #[must_use]
    pub fn incoming(&self) -> u64 {
        self.incoming.load(Relaxed)
    }

    /// Records that the next component took.
    #[must_use]
    pub fn outgoing(&self) -> u64 {
        self.outgoing.load(Relaxed)
    }

    /// Records that the processor, or what it hands on to at once, did not take.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused.load(Relaxed)
    }

    /// The component behind one end of the processor, counted.
    #[must_use]
    pub fn counted(self: &Arc<Passage>, end: End, next: Arc<dyn Consumer>) -> Arc<dyn Consumer> {
        Arc::new(Counted {
            passage: Arc::clone(self),
            end,
            next,
        })
    }
}

/// Counts what the next component takes. Everything else is that component's.
struct Counted {
    passage: Arc<Passage>,
    end: End,
    next: Arc<dyn Consumer>,
}

impl Through for Counted {
    fn next(&self) -> &dyn Consumer {
        &*self.next
    }

    fn pass<P: Pass>(&self, batch: Batch) -> Result<P::Taken, Box<Refused>> {
        let records = batch.records;
        let (passage, end) = (Arc::clone(&self.passage), self.end);
        match P::on(&*self.next, batch) {
            Ok(taken) => Ok(P::then(taken, move || {
                let count = match end {
                    End::In => &passage.incoming,
                    End::Out => &passage.outgoing,
                };
                count.fetch_add(records, Relaxed);
            })),
            Err(given_back) => {
                if end == End::In {
                    passage.refused.fetch_add(records, Relaxed);
                }
                Err(given_back)
            }
        }
    }
}
