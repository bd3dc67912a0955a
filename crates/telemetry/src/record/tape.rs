//! Short notes of the runs of a stream's scopes, for streams whose end decides whether they are
//! kept.
//!
//! Most of those streams are dropped. Until the decision, a run of a scope is stored as its number,
//! its time and the values of its samples; the open spans are bits of a word. If the stream is
//! kept, the tape is played into a [`Trace`]. If it is dropped, no spans, identifiers or lists were
//! made. When something cannot be taped (a fault, too many runs), the tape is played at once, and
//! the rest of the stream is recorded directly.
//!
//! [`Trace`]: super::Trace

use net::Now;

use super::SETTLE_SPANS;
use crate::TraceId;
use crate::program::{Direction, Evaluated, Finish, Ref, Scope, SpanLine, SpanSlot};

/// The most span names of a taped program: as many as a word has bits.
pub const TAPE_NAMES_MAX: usize = 64;
/// The most runs on a tape.
const RUNS_MAX: usize = 512;
/// The most values on a tape.
const VALUES_MAX: usize = 2048;

/// The tape of a stream.
#[derive(Debug, Default)]
pub struct Tape {
    is_on: bool,
    runs: Vec<Run>,
    values: Vec<Option<Evaluated>>,
    state: State,
    first_trace: Option<TraceId>,
}

/// The open spans, and counts so far.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    /// One bit per name.
    open: u64,
    /// The open spans of the request direction, and those of the response direction.
    requests: u64,
    responses: u64,
    spans: u32,
    logs: u32,
}

/// One run of a scope.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// The time of the run.
    pub at: Now,
    /// The index of its first value.
    pub values: u32,
    /// The index of the scope in the program.
    pub scope: u32,
    /// The direction of its event.
    pub direction: Direction,
    /// The values of log records follow those of spans.
    pub logs: bool,
    /// `otel-stop` ended everything in this run.
    pub stops: bool,
}

/// A position on a tape, to return to.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    runs: usize,
    values: usize,
    state: State,
}

fn bit(name: SpanSlot) -> u64 {
    1 << (name as usize % TAPE_NAMES_MAX)
}

impl Tape {
    /// Clears the tape and keeps the memory. `is_on`: the stream is taped.
    pub fn begin(&mut self, is_on: bool) {
        self.is_on = is_on;
        self.runs.clear();
        self.values.clear();
        self.state = State::default();
        self.first_trace = None;
    }

    /// Whether the stream is being taped.
    #[must_use]
    #[inline]
    pub fn is_on(&self) -> bool {
        self.is_on
    }

    /// The number of spans that have begun.
    #[must_use]
    pub fn spans(&self) -> u32 {
        self.state.spans
    }

    /// The number of log records made.
    #[must_use]
    pub fn logs(&self) -> u32 {
        self.state.logs
    }

    /// The identifier of the stream's first trace; `draw` generates it.
    pub fn first_trace(&mut self, draw: impl FnOnce() -> TraceId) -> TraceId {
        *self.first_trace.get_or_insert_with(draw)
    }

    /// The current position.
    #[must_use]
    pub fn mark(&self) -> Mark {
        Mark {
            runs: self.runs.len(),
            values: self.values.len(),
            state: self.state,
        }
    }

    /// Removes everything after a mark.
    pub fn rewind(&mut self, mark: Mark) {
        self.runs.truncate(mark.runs);
        self.values.truncate(mark.values);
        self.state = mark.state;
    }

    /// Adds a run of a scope; its values are those since `before`. False if there is no room.
    #[inline]
    pub fn run(&mut self, scope: u32, direction: Direction, at: Now, before: Mark) -> bool {
        self.push(scope, direction, at, before.values)
    }

    #[inline]
    fn push(&mut self, scope: u32, direction: Direction, at: Now, values: usize) -> bool {
        let room = self.runs.len() < RUNS_MAX
            && self.values.len() < VALUES_MAX
            && (self.state.spans as usize) < SETTLE_SPANS;
        if room {
            self.runs.push(Run {
                at,
                values: values as u32,
                scope,
                direction,
                logs: false,
                stops: false,
            });
        }
        room
    }

    /// Handles a span line of the run: the span is open, or begins now. False if its parent does
    /// not exist.
    #[inline]
    pub fn span(&mut self, line: &SpanLine, direction: Direction) -> bool {
        let State { open, .. } = self.state;
        let own = bit(line.name);
        if open & own != 0 {
            return true;
        }
        if let Some(Ref { span, .. }) = line.parent
            && span.is_none_or(|span| open & bit(span) == 0)
        {
            return false;
        }
        let state = &mut self.state;
        state.open |= own;
        let on = |side: Direction| if side == direction { own } else { 0 };
        state.requests = state.requests & !own | on(Direction::Request);
        state.responses = state.responses & !own | on(Direction::Response);
        state.spans += 1;
        true
    }

    /// Adds the value of a sample.
    #[inline]
    pub fn value(&mut self, value: Option<Evaluated>) {
        self.values.push(value);
    }

    /// Counts log records made by the run.
    pub fn logged(&mut self, records: u32) {
        self.state.logs += records;
        if let Some(run) = self.runs.last_mut() {
            run.logs = true;
        }
    }

    /// Ends spans with the run.
    #[inline]
    pub fn finish(&mut self, finish: &Finish) {
        let state = &mut self.state;
        state.open &= !finish.mask;
        if finish.is_wide() {
            let all = if finish.all { state.open } else { 0 };
            let of = |wanted: bool, side: u64| if wanted { side } else { 0 };
            let sides = of(finish.requests, state.requests) | of(finish.responses, state.responses);
            state.open &= !(all | sides);
        }
    }

    /// Ends everything with the run (`otel-stop`).
    pub fn stop(&mut self) {
        self.state.open = 0;
        if let Some(run) = self.runs.last_mut() {
            run.stops = true;
        }
    }

    /// Adds a run of a plain scope ([`Scope::is_plain`]). If it cannot be taped, does nothing and
    /// returns false.
    #[inline]
    pub fn run_plain(&mut self, number: u32, scope: &Scope, direction: Direction, at: Now) -> bool {
        if let Some(line) = scope.spans.first()
            && !self.span(line, direction)
        {
            return false;
        }
        // If there is no room, the tape is played as it was before this run, without the span that
        // began above.
        self.state.open &= !scope.finish.mask;
        self.push(number, direction, at, self.values.len())
    }

    /// Ends the taping; returns what is to be played.
    #[must_use]
    pub fn take(&mut self) -> (Vec<Run>, Vec<Option<Evaluated>>, Option<TraceId>) {
        self.is_on = false;
        let (runs, values) = (
            std::mem::take(&mut self.runs),
            std::mem::take(&mut self.values),
        );
        (runs, values, self.first_trace.take())
    }

    /// Takes back the memory of what was played.
    pub fn give_back(&mut self, runs: Vec<Run>, values: Vec<Option<Evaluated>>) {
        (self.runs, self.values) = (runs, values);
        self.runs.clear();
        self.values.clear();
    }
}
