//! One request for many shards: it is scanned once, where it was read, and each shard gets what is
//! its own.

use super::intake::{How, Intake, Note, Run};
use super::recover::part;
use super::{Accepted, Options, Rejected, Shard};
use crate::policy::{Matcher, Program, Refusal};
use crate::settings::{Emit, GroupByTrace, TailSampling};
use crate::store::Refused;
use otlp::scan::{Around, Slots};
use otlp::scan::{Malformed, Scanner, Visitor};

/// Spans of a request for many shards.
pub const SPLIT_SPANS_MAX: u64 = 1 << 18;

/// What one shard gets of a request.
#[derive(Debug, Default)]
pub struct Chunk {
    intake: Intake,
    bytes: Vec<u8>,
    /// The run that is noted last, by its number in the request.
    run: Option<u32>,
    reserved_bytes: u64,
}

impl Chunk {
    /// There is nothing for the shard.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.intake.notes.is_empty()
    }

    /// Spans for the shard.
    #[must_use]
    pub fn spans(&self) -> u64 {
        self.intake.spans
    }

    fn clear(&mut self) {
        debug_assert_eq!(
            self.reserved_bytes, 0,
            "what was reserved was taken or cancelled"
        );
        self.intake.clear();
        self.bytes.clear();
        self.run = None;
    }
}

/// Divides requests among shards.
#[derive(Debug)]
pub struct Splitter {
    matcher: Matcher,
    seed: u64,
    by_service: bool,
    shards: u32,
    scanner: Scanner,
    intake: Intake,
}

impl Splitter {
    /// For `settings.shards` shards of `tail_sampling`; settings and options are those of the
    /// shards.
    ///
    /// # Errors
    /// As [`Shard::tail_sampling`].
    pub fn tail_sampling(settings: &TailSampling, options: &Options) -> Result<Splitter, Refusal> {
        let matcher = Program::new(settings)?.into_matcher();
        Ok(Splitter::new(matcher, false, settings.shards, options))
    }

    /// For `settings.workers` shards of `groupbytrace`.
    #[must_use]
    pub fn group_by_trace(settings: &GroupByTrace, options: &Options) -> Splitter {
        let by_service = settings.emit == Emit::Service;
        Splitter::new(Matcher::default(), by_service, settings.workers, options)
    }

    fn new(matcher: Matcher, by_service: bool, shards: u32, options: &Options) -> Splitter {
        Splitter {
            matcher,
            seed: options.seed,
            by_service,
            shards: shards.max(1),
            scanner: Scanner::default(),
            intake: Intake::default(),
        }
    }

    /// Divides a request: one chunk for each shard is in `chunks` afterwards, some of them empty.
    ///
    /// # Errors
    /// What is wrong with the request; `chunks` are not to be used then.
    pub fn split(&mut self, request: &[u8], chunks: &mut Vec<Chunk>) -> Result<(), Malformed> {
        chunks.resize_with(self.shards as usize, Chunk::default);
        chunks.iter_mut().for_each(Chunk::clear);
        self.intake.clear();
        let mut divide = Divide {
            how: How {
                matcher: &self.matcher,
                seed: self.seed,
                by_service: self.by_service,
            },
            slots: Slots::new(self.matcher.keys()),
            intake: &mut self.intake,
            resource: None,
            around: Around::default(),
            chunks,
            runs: 0,
            spans: 0,
        };
        self.scanner.walk(request, &mut divide)
    }
}

struct Divide<'a, 'm, 'i> {
    how: How<'m>,
    slots: Slots<'a, 'm>,
    /// Has one run and one span at a time.
    intake: &'i mut Intake,
    resource: Option<Run>,
    around: Around<'a>,
    chunks: &'i mut [Chunk],
    runs: u32,
    spans: u64,
}

impl<'a> Visitor<'a> for Divide<'a, '_, '_> {
    fn resource(&mut self, fields: &[u8], resource: &'a [u8]) {
        self.around.resource = resource;
        self.intake.clear();
        self.resource = Some(self.intake.resource(self.how, fields, resource));
    }

    fn scope(&mut self, fields: &[u8], scope: &'a [u8]) {
        self.around.scope = scope;
        self.runs += 1;
        if let Some(resource) = &mut self.resource {
            self.intake.runs.clear();
            self.intake.fields.truncate(resource.resource.1 as usize);
            self.intake.scope(None, resource, fields);
        }
    }

    fn span(&mut self, message: &'a [u8]) -> Result<(), Malformed> {
        self.spans += 1;
        if self.spans > SPLIT_SPANS_MAX {
            return Err(Malformed::TooLarge);
        }
        self.intake.notes.clear();
        self.intake
            .span(self.how, None, (message, 0), &mut self.slots, self.around)?;
        if let Some(note) = self.intake.notes.pop() {
            self.give(note, message);
        }
        Ok(())
    }
}

impl Divide<'_, '_, '_> {
    fn give(&mut self, mut note: Note, message: &[u8]) {
        let part = part(note.hash, self.chunks.len());
        let Some(chunk) = self.chunks.get_mut(part) else {
            return;
        };
        if chunk.run != Some(self.runs)
            && let Some(run) = self.intake.runs.last()
        {
            chunk.run = Some(self.runs);
            chunk.intake.copy_run(self.intake, run);
        }
        note.run = chunk.intake.runs.len() as u32 - 1;
        note.at = chunk.bytes.len() as u32;
        chunk.bytes.extend_from_slice(message);
        chunk.intake.add(note);
    }
}

impl Shard {
    /// Reserves room for a chunk: when all shards have done so for theirs, the request is accepted,
    /// and each takes its chunk with [`Shard::accept_chunk`]; if one refuses, the others are told
    /// with [`Shard::cancel_chunk`].
    ///
    /// # Errors
    /// There is no room.
    pub fn reserve_chunk(&mut self, chunk: &mut Chunk, now_ns: u64) -> Result<(), Refused> {
        self.clock(now_ns);
        let (new, late_bytes) = self.find(&chunk.intake);
        let new = self.new_traces(&chunk.intake, new);
        match self.admit(&chunk.intake, new, late_bytes) {
            Ok(bytes) => {
                chunk.reserved_bytes += bytes;
                Ok(())
            }
            Err(Rejected::Refused(refused)) => {
                self.counters.refused_requests += 1;
                self.counters.refused_bytes += chunk.bytes.len() as u64;
                Err(refused)
            }
            Err(Rejected::Malformed(_)) => Ok(()),
        }
    }

    /// Takes a chunk for which room was reserved.
    pub fn accept_chunk(&mut self, chunk: &mut Chunk, now_ns: u64) -> Accepted {
        self.clock(now_ns);
        self.find(&chunk.intake);
        let learning = self.reserve_learning();
        self.commit(&chunk.intake, &chunk.bytes);
        self.counters.requests += 1;
        self.charge();
        self.budget.release(learning);
        self.cancel_chunk(chunk);
        Accepted {
            spans: chunk.intake.spans,
        }
    }

    /// Gives back what was reserved for a chunk that is not taken.
    pub fn cancel_chunk(&mut self, chunk: &mut Chunk) {
        self.budget
            .release(std::mem::take(&mut chunk.reserved_bytes));
    }
}
