//! What an earlier process left goes through the pipelines again, before anything else.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use journal::{Entry, Left, Segment};
use tokio::task::JoinHandle;

use super::{Outset, entry};
use crate::run::Log;
use crate::run::consume::Refusal;
use crate::run::part::Part;
use crate::run::receive::Intake;

/// Between two attempts to hand on what the pipelines have no room for.
const AGAIN: Duration = Duration::from_millis(20);

/// What is taken again.
pub struct Recovery {
    task: JoinHandle<()>,
    closing: Arc<AtomicBool>,
}

impl Recovery {
    /// What was not taken yet stays where it is.
    pub async fn end(self) {
        self.closing.store(true, Relaxed);
        // A task that fails has nothing more to say.
        let _ = self.task.await;
    }
}

/// Takes what was left in each journal; `done` is called when all of it is there. Until then traces
/// wait for their other spans, unless there is no room for more.
pub fn start(
    outsets: &[Arc<Outset>],
    intakes: &[Arc<Intake>],
    parts: &[Arc<dyn Part>],
    log: &Log,
    done: impl FnOnce() + Send + 'static,
) -> Recovery {
    let closing = Arc::new(AtomicBool::new(false));
    let mut tasks = Vec::new();
    for outset in outsets {
        if let Some(left) = outset.take_left() {
            let again = Again {
                outset: Arc::clone(outset),
                intakes: of(outset, intakes),
                parts: parts.to_vec(),
                log: log.clone(),
                closing: Arc::clone(&closing),
                spans: 0,
            };
            parts.iter().for_each(|part| part.pause(true));
            tasks.push(tokio::spawn(again.all(left)));
        }
    }
    if tasks.is_empty() {
        done();
        return Recovery {
            task: tokio::spawn(async {}),
            closing,
        };
    }
    let parts = parts.to_vec();
    let task = tokio::spawn(async move {
        for task in tasks {
            let _ = task.await;
        }
        parts.iter().for_each(|part| part.pause(false));
        done();
    });
    Recovery { task, closing }
}

fn of(outset: &Arc<Outset>, intakes: &[Arc<Intake>]) -> Vec<Arc<Intake>> {
    let own = intakes.iter().filter(|intake| {
        let kept = intake.kept.as_ref();
        kept.is_some_and(|kept| kept.is_of(outset))
    });
    own.map(Arc::clone).collect()
}

struct Again {
    outset: Arc<Outset>,
    intakes: Vec<Arc<Intake>>,
    parts: Vec<Arc<dyn Part>>,
    log: Log,
    closing: Arc<AtomicBool>,
    spans: u64,
}

impl Again {
    async fn all(mut self, mut left: Left) {
        loop {
            // Files are read beside what serves.
            let read = tokio::task::spawn_blocking(move || (left.next_segment(), left)).await;
            let Ok((segment, rest)) = read else { return };
            left = rest;
            match segment {
                None => break,
                Some(Err(why)) => self.log.error(&format!("not recovered: {why}")),
                Some(Ok(segment)) => {
                    if !self.segment(&segment).await {
                        segment.stay();
                        return;
                    }
                }
            }
        }
        self.outset.recovered();
        self.log.info(&format!("{} spans recovered", self.spans));
    }

    /// Takes a segment; false if the collector ends meanwhile.
    async fn segment(&mut self, segment: &Segment) -> bool {
        for next in segment.entries() {
            if !self.entry(next).await {
                return false;
            }
        }
        true
    }

    async fn entry(&mut self, entry: Entry) -> bool {
        let Some(taken) = entry::request(&entry.payload) else {
            self.log.error("an entry was not understood: it is lost");
            return true;
        };
        let receiver = taken.receiver;
        let Some(intake) = self.intake(receiver) else {
            let why = "has no pipeline any more: what it took stays where it is";
            self.log.error(&format!("receiver '{receiver}' {why}"));
            entry.place.hold.stay();
            return true;
        };
        while !self.closing.load(Relaxed) {
            match intake.take_again(&taken, &entry.place) {
                Ok(spans) => {
                    self.spans += spans;
                    return true;
                }
                Err(Refusal::Busy(_)) => {
                    // There is no room for all: what is there must be decided before more can come.
                    self.parts.iter().for_each(|part| part.pause(false));
                    tokio::time::sleep(AGAIN).await;
                }
                Err(Refusal::Closing) => return false,
                Err(Refusal::Malformed(why)) => {
                    let line = format!("an entry was not taken again: {why}");
                    self.log.error(&line);
                    return true;
                }
            }
        }
        false
    }

    /// The receiver, or another one if it is gone: its pipelines may have another now.
    fn intake(&self, receiver: &str) -> Option<Arc<Intake>> {
        let named = self.intakes.iter().find(|intake| {
            let kept = intake.kept.as_ref();
            kept.is_some_and(|kept| kept.receiver() == receiver)
        });
        named.or(self.intakes.first()).map(Arc::clone)
    }
}
