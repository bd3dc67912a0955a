//! References to entries, held by the connections and streams that track them.

use std::sync::Arc;

use crate::data::Data;
use crate::entry::Entry;
use crate::table::{Place, Table};

/// A reference that keeps an entry from being removed.
#[derive(Debug)]
pub struct EntryRef {
    table: Arc<Table>,
    place: Place,
    /// A rule of a backend other than the stream's frontend tracks the entry.
    is_backends: bool,
    /// When the reference ends, if known: an expired entry is then removed at once.
    ends_ms: Option<u64>,
}

/// Events that tracked entries count (manual §11.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A connection or a stream starts tracking.
    Connection,
    /// A connection's session starts.
    Session,
    /// An HTTP request.
    Request,
    /// A request with an error of its client (`http-err-codes`).
    ClientError,
    /// A response with a failure of its server (`http-fail-codes`).
    ServerFailure,
    /// Bytes from the client.
    BytesIn(u64),
    /// Bytes from the server.
    BytesOut(u64),
    /// Glitches of a connection.
    Glitches(u32),
}

impl Event {
    /// The total and the rate that the event adds to, and the amount.
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

impl EntryRef {
    pub(crate) fn new(table: Arc<Table>, place: Place) -> EntryRef {
        EntryRef {
            table,
            place,
            is_backends: false,
            ends_ms: None,
        }
    }

    /// The table of the entry.
    #[must_use]
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// Calls `work` with the entry.
    pub fn with<R>(&self, now_ms: u64, work: impl FnOnce(&mut Entry<'_>) -> R) -> R {
        self.table.work_at(self.place, now_ms, work)
    }

    /// Calls `work` with the entry that has the same key in another table; none if there is none,
    /// or if the type or length of the keys differs.
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

    /// Counts an event. If the entry stores it, the entry's expiry restarts.
    pub fn count(&self, event: Event, now_ms: u64) {
        self.with(now_ms, |entry| count(entry, event));
    }
}

fn count(entry: &mut Entry<'_>, event: Event) {
    let (total, rate, amount) = event.data();
    let counted = entry.add(total, 0, amount).is_some();
    // HAProxy does not touch the entry for a session's event.
    if (entry.add(rate, 0, amount).is_some() || counted) && event != Event::Session {
        entry.touch();
    }
}

impl Clone for EntryRef {
    fn clone(&self) -> EntryRef {
        self.table.hold_again(self.place);
        EntryRef {
            table: Arc::clone(&self.table),
            ..*self
        }
    }
}

impl Drop for EntryRef {
    fn drop(&mut self) {
        self.table.let_go(self.place, self.ends_ms);
    }
}

/// The counters that a connection or a stream tracks (`track-sc0` and the like), by number. Uses no
/// memory until it tracks something.
#[derive(Clone, Debug, Default)]
pub struct Tracked {
    held: Vec<Option<EntryRef>>,
    any: bool,
}

impl Tracked {
    /// The entry that a counter tracks.
    #[must_use]
    #[inline]
    pub fn get(&self, counter: usize) -> Option<&EntryRef> {
        self.held.get(counter)?.as_ref()
    }

    /// Whether anything is tracked.
    #[must_use]
    #[inline]
    pub fn any(&self) -> bool {
        self.any
    }

    /// All tracked entries with the numbers of their counters.
    pub fn all(&self) -> impl Iterator<Item = (usize, &EntryRef)> {
        let all = self.held.iter().enumerate();
        all.filter_map(|(counter, held)| Some((counter, held.as_ref()?)))
    }

    /// Starts tracking the entry: counts a connection, and the events that happened before.
    /// `is_backends`: the rule belongs to a backend other than the stream's frontend.
    pub fn track(
        &mut self,
        counter: usize,
        mut held: EntryRef,
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

    /// Counts an event in all tracked entries.
    pub fn count(&self, event: Event, now_ms: u64) {
        for (_, held) in self.all() {
            held.count(event, now_ms);
        }
    }

    /// Counts an event in the entries that rules of a backend track.
    pub fn count_backends(&self, event: Event, now_ms: u64) {
        for (_, held) in self.all().filter(|(_, held)| held.is_backends) {
            held.count(event, now_ms);
        }
    }

    /// Stops tracking at the end of the connection or stream. Keeps the memory.
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
