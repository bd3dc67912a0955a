//! What the scopes of a stream did, written down in short: for streams that are decided about at their end.
//!
//! Most of those are dropped. Until then a run of a scope is its number, its moment and what its samples came to; which
//! spans are open stands in the bits of a word. Whoever keeps the stream plays the tape into a [`Trace`]; whoever drops it
//! has spared the spans, their identifiers and their lists. What a tape cannot say (a fault, too many runs) makes it be
//! played at once, and the rest of the stream is recorded as any other.
//!
//! [`Trace`]: super::Trace

use net::Now;

use super::SETTLE_SPANS;
use crate::TraceId;
use crate::program::{Direction, Evaluated, Finish, Ref, Scope, SpanLine, SpanSlot};

/// Names of spans that a program may have to be taped: as many as a word has bits.
pub const TAPE_NAMES_MAX: usize = 64;
/// Runs of scopes that a tape holds.
const RUNS_MAX: usize = 512;
/// Values that a tape holds.
const VALUES_MAX: usize = 2048;

/// See the module.
#[derive(Debug, Default)]
pub struct Tape {
    is_on: bool,
    runs: Vec<Run>,
    values: Vec<Option<Evaluated>>,
    state: State,
    first_trace: Option<TraceId>,
}

/// What is open, and what there is so far.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    /// By name, a bit each.
    open: u64,
    /// Of those: begun on the side of requests, and of responses.
    requests: u64,
    responses: u64,
    spans: u32,
    logs: u32,
}

/// One run of a scope.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// When it was.
    pub at: Now,
    /// The place of its first value.
    pub values: u32,
    /// The scope, by its place in the program.
    pub scope: u32,
    /// Its side.
    pub direction: Direction,
    /// The values of its log records follow those of its spans.
    pub logs: bool,
    /// `otel-stop` ended everything behind it.
    pub stops: bool,
}

/// A place on a tape to go back to.
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
    /// Forgets everything and keeps the memory. `is_on`: what follows is taped.
    pub fn begin(&mut self, is_on: bool) {
        self.is_on = is_on;
        self.runs.clear();
        self.values.clear();
        self.state = State::default();
        self.first_trace = None;
    }

    /// What happens now is taped.
    #[must_use]
    #[inline]
    pub fn is_on(&self) -> bool {
        self.is_on
    }

    /// Spans that have begun.
    #[must_use]
    pub fn spans(&self) -> u32 {
        self.state.spans
    }

    /// Log records that were made.
    #[must_use]
    pub fn logs(&self) -> u32 {
        self.state.logs
    }

    /// The identifier of the first trace of the stream; `draw` makes it.
    pub fn first_trace(&mut self, draw: impl FnOnce() -> TraceId) -> TraceId {
        *self.first_trace.get_or_insert_with(draw)
    }

    /// Here.
    #[must_use]
    pub fn mark(&self) -> Mark {
        Mark {
            runs: self.runs.len(),
            values: self.values.len(),
            state: self.state,
        }
    }

    /// Forgets what came after a mark.
    pub fn rewind(&mut self, mark: Mark) {
        self.runs.truncate(mark.runs);
        self.values.truncate(mark.values);
        self.state = mark.state;
    }

    /// A scope has run; its values are those since `before`. False where there is no room for it.
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

    /// A span line of the run: its span is open, or begins now. False where its parent is not there.
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

    /// What a sample came to.
    #[inline]
    pub fn value(&mut self, value: Option<Evaluated>) {
        self.values.push(value);
    }

    /// The run has made this many log records.
    pub fn logged(&mut self, records: u32) {
        self.state.logs += records;
        if let Some(run) = self.runs.last_mut() {
            run.logs = true;
        }
    }

    /// Spans end with the run.
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

    /// Everything ends with the run (`otel-stop`).
    pub fn stop(&mut self) {
        self.state.open = 0;
        if let Some(run) = self.runs.last_mut() {
            run.stops = true;
        }
    }

    /// A run of a scope that is plain ([`Scope::is_plain`]). False where that cannot be taped: nothing was done.
    #[inline]
    pub fn run_plain(&mut self, number: u32, scope: &Scope, direction: Direction, at: Now) -> bool {
        if let Some(line) = scope.spans.first()
            && !self.span(line, direction)
        {
            return false;
        }
        // A span that began is forgotten with the tape, which is played as it was before.
        self.state.open &= !scope.finish.mask;
        self.push(number, direction, at, self.values.len())
    }

    /// Ends the taping; what is to be played.
    #[must_use]
    pub fn take(&mut self) -> (Vec<Run>, Vec<Option<Evaluated>>, Option<TraceId>) {
        self.is_on = false;
        let (runs, values) = (
            std::mem::take(&mut self.runs),
            std::mem::take(&mut self.values),
        );
        (runs, values, self.first_trace.take())
    }

    /// Takes the memory of what was played.
    pub fn give_back(&mut self, runs: Vec<Run>, values: Vec<Option<Evaluated>>) {
        (self.runs, self.values) = (runs, values);
        self.runs.clear();
        self.values.clear();
    }
}
