//! References to entries: what connections and streams track.

use std::sync::Arc;

use crate::data::Data;
use crate::entry::Entry;
use crate::table::{Place, Table};

/// A reference that keeps an entry from being removed.
#[derive(Debug)]
pub struct Held {
    table: Arc<Table>,
    place: Place,
    /// Its backend is not the frontend of the stream that tracks it.
    is_backends: bool,
    /// When it ends, where that is known: an entry whose time is over is removed at once then.
    ends_ms: Option<u64>,
}

/// What tracked entries count (manual §11.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A connection or a stream begins to track.
    Connection,
    /// A connection's session begins.
    Session,
    /// An HTTP request.
    Request,
    /// A request that is its client's fault (`http-err-codes`).
    ClientError,
    /// A response that is its server's fault (`http-fail-codes`).
    ServerFailure,
    /// Bytes from the client.
    BytesIn(u64),
    /// Bytes from the server.
    BytesOut(u64),
    /// Oddities of a connection's protocol.
    Glitches(u32),
}

impl Event {
    /// The count and the rate that it adds to, and how much.
    fn data(self) -> (Data, Data, u64) {
        match self {
            Event::Connection => (Data::ConnCnt, Data::ConnRate, 1),
            Event::Session => (Data::SessCnt, Data::SessRate, 1),
            Event::Request => (Data::HttpReqCnt, Data::HttpReqRate, 1),
            Event::ClientError => (Data::HttpErrCnt, Data::HttpErrRate, 1),
            Event::ServerFailure => (Data::HttpFailCnt, Data::HttpFailRate, 1),
            Event::BytesIn(bytes) => (Data::BytesInCnt, Data::BytesInRate, bytes),
            Event::BytesOut(bytes) => (Data::BytesOutCnt, Data::BytesOutRate, bytes),
            Event::Glitches(count) => (Data::GlitchCnt, Data::GlitchRate, count.into()),
        }
    }
}

impl Held {
    pub(crate) fn new(table: Arc<Table>, place: Place) -> Held {
        Held {
            table,
            place,
            is_backends: false,
            ends_ms: None,
        }
    }

    /// The table that it is of.
    #[must_use]
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// Works with the entry.
    pub fn with<R>(&self, now_ms: u64, work: impl FnOnce(&mut Entry<'_>) -> R) -> R {
        self.table.work_at(self.place, now_ms, work)
    }

    /// Works with the entry that has the same key in another table; none where there is none, or where keys differ in type or
    /// length.
    pub fn with_in<R>(
        &self,
        other: &Table,
        now_ms: u64,
        work: impl FnOnce(&mut Entry<'_>) -> R,
    ) -> Option<R> {
        let (mine, its) = (self.table.definition(), other.definition());
        if mine.key != its.key || mine.key_bytes != its.key_bytes {
            return None;
        }
        if std::ptr::eq(&raw const *self.table, other) {
            return Some(self.with(now_ms, work));
        }
        let key = self.with(now_ms, |entry| entry.key().to_vec());
        other.with(&key, now_ms, work)
    }

    /// Counts an event. If the entry stores it, the entry's `expire` starts again.
    pub fn count(&self, event: Event, now_ms: u64) {
        self.with(now_ms, |entry| count(entry, event));
    }
}

fn count(entry: &mut Entry<'_>, event: Event) {
    let (total, rate, amount) = event.data();
    let counted = entry.add(total, 0, amount).is_some();
    // HAProxy does not touch what a session counts.
    if (entry.add(rate, 0, amount).is_some() || counted) && event != Event::Session {
        entry.touch();
    }
}

impl Clone for Held {
    fn clone(&self) -> Held {
        self.table.hold_again(self.place);
        Held {
            table: Arc::clone(&self.table),
            ..*self
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.table.let_go(self.place, self.ends_ms);
    }
}

/// The counters that a connection or a stream tracks (`track-sc0` and its kin), by their numbers. Takes no memory before it tracks
/// something.
#[derive(Clone, Debug, Default)]
pub struct Tracked {
    held: Vec<Option<Held>>,
    any: bool,
}

impl Tracked {
    /// What a counter tracks.
    #[must_use]
    #[inline]
    pub fn get(&self, counter: usize) -> Option<&Held> {
        self.held.get(counter)?.as_ref()
    }

    /// Whether anything is tracked.
    #[must_use]
    #[inline]
    pub fn any(&self) -> bool {
        self.any
    }

    /// All, each with its counter.
    pub fn all(&self) -> impl Iterator<Item = (usize, &Held)> {
        let all = self.held.iter().enumerate();
        all.filter_map(|(counter, held)| Some((counter, held.as_ref()?)))
    }

    /// A counter tracks the entry from now on: a connection is counted, and those events that it comes too late for.
    /// `is_backends`: a backend's rule tracks it, of another proxy than the frontend.
    pub fn track(
        &mut self,
        counter: usize,
        mut held: Held,
        is_backends: bool,
        now_ms: u64,
        late: impl IntoIterator<Item = Event>,
    ) {
        held.is_backends = is_backends;
        held.with(now_ms, |entry| {
            entry.add(Data::ConnCur, 0, 1);
            count(entry, Event::Connection);
            for event in late {
                count(entry, event);
            }
            entry.touch();
        });
        if self.held.len() <= counter {
            self.held.resize_with(counter + 1, || None);
        }
        self.held[counter] = Some(held);
        self.any = true;
    }

    /// Counts an event in all.
    pub fn count(&self, event: Event, now_ms: u64) {
        for (_, held) in self.all() {
            held.count(event, now_ms);
        }
    }

    /// Counts an event in those that rules of a backend track.
    pub fn count_backends(&self, event: Event, now_ms: u64) {
        for (_, held) in self.all().filter(|(_, held)| held.is_backends) {
            held.count(event, now_ms);
        }
    }

    /// The connection or the stream ends: nothing is tracked any more. The memory is kept.
    pub fn end(&mut self, now_ms: u64) {
        if !std::mem::take(&mut self.any) {
            return;
        }
        for mut held in self.held.drain(..).flatten() {
            let stores_current = held.table.definition().column(Data::ConnCur).is_some();
            if stores_current {
                held.with(now_ms, |entry| {
                    entry.take_one(Data::ConnCur);
                    entry.touch();
                });
            }
            held.ends_ms = Some(now_ms);
        }
    }
}
