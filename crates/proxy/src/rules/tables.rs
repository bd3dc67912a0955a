//! `track-sc*` and the actions on tracked entries (manual §4.4, §11).

use std::sync::Arc;

use config::model::{TableAction, TableNumber};
use net::Now;
use sample::{Scope, Value, table_key};
use tables::{Data, Entry, EntryRef, Event, General, Table};

use super::Cx;
use crate::stream::Stream;

/// A rule's key may change with more data.
pub(super) struct Awaited;

impl Cx<'_> {
    /// Executes the action of a stream's rule. In `tcp-request content` it waits for a key that is
    /// not complete until `last_chance`.
    pub(super) fn table_action(
        &mut self,
        stream: &mut Stream,
        action: &TableAction,
        last_chance: bool,
    ) -> Result<(), Awaited> {
        let now = self.eval().now;
        match action {
            TableAction::Track {
                counter,
                key,
                table,
            } => {
                let is_free = |scope: &Scope<'_>| scope.tracked(*counter).is_none();
                let held = self.eval().with_scope(stream, last_chance, |scope| {
                    if !is_free(scope) {
                        return Ok(None);
                    }
                    let key = key.settled(scope).map_err(|_| Awaited)?;
                    Ok(key.and_then(|key| hold(key, table, now)))
                })?;
                let Some(held) = held else { return Ok(()) };
                let late = self.late(stream);
                let is_backends = stream.backend != stream.frontend;
                let tracked = &mut stream.txn.tracked;
                tracked.track(*counter, held, is_backends, now.ms(), late);
            }
            TableAction::Add {
                counter,
                general,
                amount,
            } => {
                let Some(amount) = self.table_number(stream, amount) else {
                    return Ok(());
                };
                self.with_tracked(stream, *counter, |entry| add(entry, *general, amount));
            }
            TableAction::SetTag {
                counter,
                index,
                value,
            } => {
                let Some(value) = self.table_number(stream, value) else {
                    return Ok(());
                };
                self.with_tracked(stream, *counter, |entry| set_tag(entry, *index, value));
            }
        }
        Ok(())
    }

    /// Executes the action for a connection that has no stream yet.
    pub(super) fn connection_table_action(&mut self, action: &TableAction) {
        let now = self.eval().now;
        let number = |cx: &Self, number: &TableNumber| match number {
            TableNumber::Fixed(number) => Some(*number),
            TableNumber::Computed(expr) => {
                cx.eval().with_session(|scope| expr.eval(scope)?.into_int())
            }
        };
        match action {
            TableAction::Track {
                counter,
                key,
                table,
            } => {
                let held = self.eval().with_session(|scope| {
                    let is_free = scope.tracked(*counter).is_none();
                    is_free.then(|| hold(key.eval(scope)?, table, now))?
                });
                if let Some(held) = held {
                    let tracked = &mut self.scene.eval.session.tracked;
                    tracked.track(*counter, held, false, now.ms(), []);
                }
            }
            TableAction::Add {
                counter,
                general,
                amount,
            } => {
                let amount = number(self, amount);
                if let (Some(amount), Some(held)) = (amount, self.session_tracks(*counter)) {
                    held.with(now.ms(), |entry| add(entry, *general, amount));
                }
            }
            TableAction::SetTag {
                counter,
                index,
                value,
            } => {
                let value = number(self, value);
                if let (Some(value), Some(held)) = (value, self.session_tracks(*counter)) {
                    held.with(now.ms(), |entry| set_tag(entry, *index, value));
                }
            }
        }
    }

    fn session_tracks(&self, counter: usize) -> Option<&EntryRef> {
        self.eval().session.tracked.get(counter)
    }

    fn table_number(&self, stream: &Stream, number: &TableNumber) -> Option<i64> {
        match number {
            TableNumber::Fixed(number) => Some(*number),
            TableNumber::Computed(expr) => self.eval().int(stream, expr),
        }
    }

    fn with_tracked(&self, stream: &Stream, counter: usize, work: impl FnOnce(&mut Entry<'_>)) {
        let eval = self.eval();
        let own = stream.txn.tracked.get(counter);
        if let Some(held) = own.or_else(|| self.session_tracks(counter)) {
            held.with(eval.now.ms(), work);
        }
    }

    /// The events to count when an HTTP rule begins to track: the request, and the response's
    /// status if it is known.
    fn late(&self, stream: &Stream) -> impl Iterator<Item = Event> + use<> {
        let is_http = stream.txn.is_http && !stream.phase.inspects_request();
        let is_answered = is_http && stream.phase.is_answered();
        let counted = &self.eval().runtime_config.config.global.counted_statuses;
        let status = stream.txn.status;
        let events = [
            (is_http, Event::Request),
            (
                is_answered && counted.errors.has(status),
                Event::ClientError,
            ),
            (
                is_answered && counted.failures.has(status),
                Event::ServerFailure,
            ),
        ];
        let due = |(is_due, event): (bool, Event)| is_due.then_some(event);
        events.into_iter().filter_map(due)
    }
}

/// A reference to the entry of a key.
pub(super) fn hold(key: Value<'_>, table: &Arc<Table>, now: Now) -> Option<EntryRef> {
    table_key::with_key(key, table.definition(), |key| table.hold(key, now.ms()))?
}

/// Adds an amount of 32 bits, as in HAProxy.
fn add(entry: &mut Entry<'_>, general: General, amount: i64) {
    entry.add_general(general, u64::from(amount as u32));
}

fn set_tag(entry: &mut Entry<'_>, index: Option<u32>, value: i64) {
    let (data, index) = match index {
        Some(index) => (Data::Gpt, index),
        None => (Data::Gpt0, 0),
    };
    if entry.set(data, index, i64::from(value as u32)) {
        entry.touch();
    }
}
