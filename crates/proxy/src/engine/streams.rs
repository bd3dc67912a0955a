//! Runs streams. A stream runs until another one runs or the entry's work is done; then its timer is
//! set.

use net::Driver;

use super::{Engine, NUMBER_BLOCK, Turn};
use crate::ids::{ExchangeId, StreamId};
use crate::phases::Cx;
use crate::stream::{Phase, Stream};

/// How many deadlines of a stream that have passed are handled at once: each of its four.
const DEADLINES_AT_ONCE_MAX: u32 = 4;

impl Engine {
    /// A stream's timer has expired: handles the deadlines that have passed. A further one is put
    /// off to the next millisecond, so that no stream can keep the worker busy.
    pub(super) fn stream_timeouts<D: Driver>(&mut self, driver: &mut D, id: StreamId, now_ms: u64) {
        for _ in 0..DEADLINES_AT_ONCE_MAX {
            self.enter(driver, None, |turn| {
                turn.with_stream(id, |cx, stream| cx.stream_timeout(stream));
            });
            let is_due = |timer| self.core.timers.deadline_ms(timer) <= now_ms;
            if !self
                .streams
                .get(id)
                .is_some_and(|stream| is_due(stream.timer))
            {
                return;
            }
        }
        if let Some(stream) = self.streams.get(id) {
            self.core.timers.set(stream.timer, now_ms + 1);
        }
    }
}

impl<D: Driver> Turn<'_, D> {
    /// Runs work on a stream, if it exists.
    #[inline]
    pub(super) fn with_stream(
        &mut self,
        id: StreamId,
        work: impl FnOnce(&mut Cx<'_, D>, &mut Stream),
    ) {
        if self.state.at_work.stream != Some(id) {
            self.stream_stops();
        }
        let Some(stream) = self.streams.get_mut(id) else {
            return;
        };
        let at_work = &mut self.state.at_work;
        (at_work.stream, at_work.client) = (Some(id), stream.client);
        if self.state.has_older {
            self.cx.runtime_config = self.older.config_of(stream, self.current);
        }
        work(&mut self.cx, stream);
        if self.state.has_older {
            self.cx.runtime_config = self.current;
        }
        if matches!(stream.phase, Phase::Done) {
            self.streams.end(id, &mut self.cx.core.timers);
            self.state.at_work.stream = None;
        }
    }

    /// The stream at work, if there is one, stops running: another one runs, or the work is done.
    /// Sets its timer.
    #[inline(always)]
    pub(super) fn stream_stops(&mut self) {
        if let Some(id) = self.state.at_work.stream.take() {
            self.set_timer_of(id);
        }
    }

    #[inline(never)]
    fn set_timer_of(&mut self, id: StreamId) {
        if let Some(stream) = self.streams.get_mut(id) {
            let config = if self.state.has_older {
                self.older.config_of(stream, self.current)
            } else {
                self.current
            };
            self.cx.set_timer(config, stream);
        }
    }

    /// Begins a stream on a client's connection, without running it.
    pub(super) fn begin_stream(&mut self, exchange: ExchangeId) -> StreamId {
        self.stream_stops();
        let number = self.next_number();
        let stream = self.streams.begin(&mut self.cx.core.timers);
        let at_work = &mut self.state.at_work;
        (at_work.stream, at_work.client) = (Some(stream.id), Some(exchange));
        self.cx.begin_stream(stream, exchange, number);
        if self.state.has_older {
            let client = self.cx.core.links.client(exchange);
            let follows = client.and_then(|client| client.follows);
            self.older.begin_left(stream, follows);
        }
        stream.id
    }

    fn next_number(&mut self) -> u64 {
        let numbers = &mut self.state.numbers;
        if numbers.is_empty() {
            let shared = &self.cx.core.ambient.shared;
            let first = shared.stream_ids(NUMBER_BLOCK);
            *numbers = first..first + NUMBER_BLOCK;
        }
        let number = numbers.start;
        numbers.start += 1;
        number
    }
}
