//! A connection and its streams.

use std::collections::VecDeque;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use quinn_proto::{
    ConnectionError, Dir, Event, ReadError, Side, StreamEvent, StreamId as Number, VarInt,
    WriteError,
};
use tls::quic::Agreed;

use crate::paths::Paths;
use crate::report::HandshakeIds;
use crate::streams::{AHEAD_BYTES_MAX, Streams, parts};
use crate::{Clock, Datagram, Handle, Packet, Received, StreamId};

/// Most bytes of a stream that are handed out at once.
const DATA_BYTES_MAX: usize = 16 << 10;
/// Most datagrams that are made for one send: what 64 KiB hold of the largest.
const SEGMENTS_MAX: usize = 44;

/// How many datagrams a closed connection reads, each of which it answers. Of those that follow, it
/// reads the second, the fourth, the eighth and so on (RFC 9000 §10.2.1).
const READ_WHEN_CLOSED: u64 = 8;
/// What may be sent to an address that is not validated, by what came from it (RFC 9000 §8.1).
const AMPLIFICATION_MAX: u64 = 3;

/// Streams for requests that a client opens before they are needed, as far as the server permits: the
/// library does not tell how many it permits.
const REQUESTS_AHEAD_MAX: u64 = 128;

/// What has happened to a connection since it was last asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct News {
    /// Both sides have chosen the parameters of the handshake.
    pub is_agreed: bool,
    /// Early data came that may be answered before the handshake is complete: the acceptor serves
    /// early data ([`Agreed::serves_early`]), and the client has shown that it has its address. Until
    /// the handshake is complete, the data may be a replay.
    pub is_early: bool,
    /// The handshake is complete.
    pub is_established: bool,
    /// The server has not read the early data of this client: all that was sent is void, and all
    /// streams are forgotten.
    pub is_early_refused: bool,
    /// It is lost: see [`Connection::lost`].
    pub is_lost: bool,
}

/// Why a connection was lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lost {
    /// The peer has closed it, with this code of the application (RFC 9114 §8.1).
    Closed(u64),
    /// The peer has ended it, with this code of the transport (RFC 9000 §20.1).
    Ended(u64),
    /// This side has closed it.
    ClosedHere,
    /// The peer was silent for too long.
    TimedOut,
    /// The peer has lost the connection's state (stateless reset, RFC 9000 §10.3).
    Reset,
    /// A side has broken the protocol or the handshake has failed; the text says how.
    Failed(String),
}

/// A QUIC connection.
pub struct Connection {
    pub(crate) handle: Handle,
    pub(crate) inner: quinn_proto::Connection,
    pub(crate) is_drained: bool,
    /// The peer has closed the connection or has lost its state.
    pub(crate) is_draining: bool,
    /// See [`HandshakeIds`]; none before the first packet of this side.
    pub(crate) ids: Option<HandshakeIds>,
    clock: Clock,
    pub(crate) streams: Streams,
    /// Streams that may have something to read, in the order of their turns.
    readable: VecDeque<StreamId>,
    /// What is to be told besides.
    told: VecDeque<Received>,
    news: News,
    lost: Option<Lost>,
    paths: Paths,
    /// Datagrams that came after the connection was closed.
    after_close: u64,
    /// The client has shown by a token that it has its address (RFC 9000 §8.1).
    is_validated: bool,
    /// Bytes that the library has sent to an address that is not validated, and those of the first
    /// datagram.
    sent_before: u64,
    first_bytes: u64,
    is_established: bool,
    /// Something came on a stream before the handshake was complete: as early data (RFC 9001 §5.7).
    has_early_data: bool,
    /// How often the peer's address has changed.
    pub(crate) migrations: u64,
    /// How many streams this side has opened at the library, by direction.
    opened: [u64; 2],
    /// How many of them are used.
    used: [u64; 2],
}

impl Connection {
    /// See [`crate::Incoming::is_validated`]; and the length of the first datagram.
    pub(crate) fn new(
        handle: Handle,
        inner: quinn_proto::Connection,
        clock: Clock,
        (is_validated, first_bytes): (bool, u64),
    ) -> Connection {
        let mut connection = Connection {
            handle,
            paths: Paths::new(inner.remote_address()),
            inner,
            is_drained: false,
            is_draining: false,
            ids: None,
            clock,
            streams: Streams::default(),
            readable: VecDeque::new(),
            told: VecDeque::new(),
            news: News::default(),
            lost: None,
            after_close: 0,
            is_validated,
            sent_before: 0,
            first_bytes,
            is_established: false,
            has_early_data: false,
            migrations: 0,
            opened: [0; 2],
            used: [0; 2],
        };
        connection.look();
        if connection.sends_early() {
            connection.open_ahead();
        }
        connection
    }

    /// Its name at its endpoint.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.handle
    }

    /// The endpoint has forgotten it: nothing comes or goes any more.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.is_drained
    }

    /// It is closed or lost; nothing can be sent on its streams.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.inner.is_closed()
    }

    /// Whether this client may send early data now (RFC 9001 §4.6): it knows the server's parameters
    /// from an earlier connection. Anybody may repeat such data to the server.
    #[must_use]
    pub fn sends_early(&self) -> bool {
        let is_client = self.inner.side().is_client();
        is_client && !self.is_established && self.inner.has_0rtt()
    }

    /// Why it was lost.
    #[must_use]
    pub fn lost(&self) -> Option<&Lost> {
        self.lost.as_ref()
    }

    /// What has happened since the last call.
    pub fn news(&mut self) -> News {
        std::mem::take(&mut self.news)
    }

    /// What the handshake has agreed on, or why it failed.
    #[must_use]
    pub fn agreed(&self) -> Agreed {
        let data = self.inner.crypto_session().handshake_data();
        let agreed = data.and_then(|data| data.downcast::<Agreed>().ok());
        let mut agreed = agreed.map(|agreed| *agreed).unwrap_or_default();
        if let Some(facts) = &mut agreed.facts {
            facts.has_early_data = self.has_early_data;
        }
        agreed
    }

    /// The peer's address, which may change (RFC 9000 §9).
    #[must_use]
    pub fn peer(&self) -> SocketAddr {
        self.inner.remote_address()
    }

    /// Our address, where it is known.
    #[must_use]
    pub fn local(&self) -> Option<IpAddr> {
        self.inner.local_ip()
    }

    /// The round-trip time, as estimated.
    #[must_use]
    pub fn rtt(&self) -> Duration {
        self.inner.rtt()
    }

    // ---- time and datagrams

    /// How many datagrams of the peer it was fed with.
    #[must_use]
    pub fn received_datagrams(&self) -> u64 {
        self.inner.stats().udp_rx.datagrams
    }

    /// Reads a datagram. Ignores it if the peer's address has changed too often, or if many datagrams
    /// have come since the connection was closed.
    pub fn feed(&mut self, now_ns: u64, datagram: Datagram) {
        if self.inner.is_closed() && !self.reads_when_closed() {
            return;
        }
        let current = self.inner.remote_address();
        if self.paths.admits(datagram.peer, current, now_ns) {
            self.inner.handle_event(datagram.event);
            self.migrations += u64::from(self.inner.remote_address() != current);
            self.look();
        }
    }

    /// Counts a datagram that comes after the connection was closed. Returns whether it is read.
    fn reads_when_closed(&mut self) -> bool {
        self.after_close += 1;
        let beyond = self.after_close.saturating_sub(READ_WHEN_CLOSED);
        beyond == 0 || beyond.is_power_of_two() && beyond > 1
    }

    /// When [`Connection::expire`] is due, monotonic nanoseconds.
    pub fn deadline_ns(&mut self) -> Option<u64> {
        let instant = self.inner.poll_timeout()?;
        Some(self.clock.ns(instant))
    }

    /// Does what is due.
    pub fn expire(&mut self, now_ns: u64) {
        self.inner.handle_timeout(self.clock.instant(now_ns));
        self.look();
    }

    /// The next datagrams to send, in `bytes`, which is cleared first. To be called until there are
    /// none.
    pub fn transmit<'a>(&mut self, now_ns: u64, bytes: &'a mut Vec<u8>) -> Option<Packet<'a>> {
        bytes.clear();
        let now = self.clock.instant(now_ns);
        let transmit = self.inner.poll_transmit(now, SEGMENTS_MAX, bytes)?;
        if !self.is_validated && !self.is_established && self.inner.side().is_server() {
            self.cut_to_limit(transmit.segment_size, bytes);
            if bytes.is_empty() {
                return None;
            }
        }
        if self.ids.is_none() {
            self.ids = HandshakeIds::of(bytes);
        }
        Some(Packet::new(&transmit, bytes))
    }

    /// Leaves out datagrams beyond three times what has come (RFC 9000 §8.1): the library looks before
    /// each datagram whether one byte is permitted. What is left out is lost, and sent again once the
    /// client has shown that it has its address.
    fn cut_to_limit(&mut self, segment: Option<usize>, bytes: &mut Vec<u8>) {
        let received = self.inner.stats().udp_rx.bytes + self.first_bytes;
        let room = (AMPLIFICATION_MAX * received).saturating_sub(self.sent_before);
        if room == 0 {
            // The library sends nothing here unless the client has answered in the handshake.
            self.is_validated = true;
            return;
        }
        self.sent_before += bytes.len() as u64;
        if bytes.len() as u64 > room {
            let segment = segment.unwrap_or(bytes.len()).max(1);
            bytes.truncate(room as usize / segment * segment);
        }
    }

    /// Whether the peer has acknowledged all of the streams that have ended, and no others of
    /// requests are open.
    pub fn is_quiet(&mut self) -> bool {
        // Our streams of one direction never end, and those that are not used have not begun.
        let bi = Dir::Bi as usize;
        let others = self.opened[Dir::Uni as usize] + self.opened[bi] - self.used[bi];
        self.streams.queued() == 0 && self.inner.streams().send_streams() as u64 <= others
    }

    /// Closes the connection with a code of the application.
    pub fn close(&mut self, now_ns: u64, code: u64, reason: &[u8]) {
        let now = self.clock.instant(now_ns);
        let reason = Bytes::copy_from_slice(reason);
        self.inner.close(now, varint(code), reason);
        self.look();
    }

    /// Ends the time in which a closed connection still answers its peer (RFC 9000 §10.2). The peer
    /// decides how long that is: its `max_ack_delay` counts three times. Packets that come later are
    /// those of an unknown connection. Does nothing before it is closed.
    pub fn forget(&mut self) {
        if self.inner.is_closed()
            && let Some(end) = self.inner.poll_timeout()
        {
            self.inner.handle_timeout(end);
            self.look();
        }
    }

    // ---- streams

    /// The next thing that came; none if nothing more is here.
    pub fn receive(&mut self) -> Option<Received> {
        if let Some(told) = self.told.pop_front() {
            return Some(told);
        }
        // What is read is told, one after the other.
        while let Some(id) = self.readable.pop_front() {
            if let Some(received) = self.read(id) {
                return Some(received);
            }
        }
        None
    }

    /// Reads a stream.
    fn read(&mut self, id: StreamId) -> Option<Received> {
        let stream = self.streams.get_mut(id)?;
        stream.is_listed = false;
        let room = AHEAD_BYTES_MAX.saturating_sub(stream.ahead);
        if room == 0 || !stream.receives {
            return None;
        }
        let is_counted = parts(id).1 == Dir::Bi;
        let mut reader = self.inner.recv_stream(number(id));
        let Ok(mut chunks) = reader.read(true) else {
            // It was stopped.
            stream.receives = false;
            self.streams.forget(id);
            return None;
        };
        // The end of the stream is to be known with its last bytes: a request has no body then.
        let mut left = DATA_BYTES_MAX.min(usize::try_from(room).unwrap_or(usize::MAX));
        let mut last: Option<Bytes> = None;
        let data = |bytes, ends| Received::Data {
            stream: id,
            bytes,
            ends,
        };
        while left > 0 {
            match chunks.next(left) {
                Ok(Some(chunk)) => {
                    left -= chunk.bytes.len().min(left);
                    // Nobody consumes what comes on streams of one direction: it is not passed on.
                    if is_counted {
                        stream.ahead += chunk.bytes.len() as u64;
                    }
                    if let Some(before) = last.replace(chunk.bytes) {
                        self.told.push_back(data(before, false));
                    }
                }
                Ok(None) => {
                    stream.receives = false;
                    self.told.push_back(match last.take() {
                        Some(bytes) => data(bytes, true),
                        None => Received::Fin(id),
                    });
                    break;
                }
                Err(ReadError::Blocked) => break,
                Err(ReadError::Reset(code)) => {
                    stream.receives = false;
                    self.told
                        .extend(last.take().map(|bytes| data(bytes, false)));
                    self.told.push_back(Received::Reset {
                        stream: id,
                        code: code.into_inner(),
                    });
                    break;
                }
            }
        }
        drop(chunks);
        self.told.extend(last.map(|bytes| data(bytes, false)));
        if left == 0 {
            self.list(id);
        }
        self.streams.forget(id);
        self.told.pop_front()
    }

    /// Notes that a stream may have something to read.
    fn list(&mut self, id: StreamId) {
        if let Some(stream) = self.streams.get_mut(id)
            && stream.receives
            && !std::mem::replace(&mut stream.is_listed, true)
        {
            self.readable.push_back(id);
        }
    }

    /// Bytes of a stream that were handed out are used: the peer may send as many more.
    pub fn consumed(&mut self, id: StreamId, bytes: u64) {
        if let Some(stream) = self.streams.get_mut(id) {
            stream.ahead = stream.ahead.saturating_sub(bytes);
            self.list(id);
        }
    }

    /// Sends bytes on a stream; with `ends`, the stream ends after them. A stream of this side is
    /// opened by its first bytes. What the peer does not take waits; see [`Received::Written`].
    pub fn write(&mut self, id: StreamId, bytes: &[u8], ends: bool) {
        self.open(id);
        let Some(stream) = self.streams.get_mut(id).filter(|stream| stream.sends) else {
            return self.gone(id, bytes.len());
        };
        stream.ends |= ends;
        let mut taken = 0;
        if stream.queue.is_empty() {
            match write_all(&mut self.inner, id, bytes) {
                Some(count) => taken = count,
                None => {
                    self.streams.stop_sending(id);
                    self.streams.forget(id);
                    return self.gone(id, bytes.len());
                }
            }
        }
        self.streams.queue(id, &bytes[taken..]);
        self.gone(id, taken);
        self.finish(id);
    }

    /// Bytes have gone.
    fn gone(&mut self, id: StreamId, bytes: usize) {
        let told = self.streams.wrote(id, bytes as u64);
        self.told.extend(told.into_iter().flatten());
    }

    /// Ends a stream whose last bytes have gone.
    fn finish(&mut self, id: StreamId) {
        if let Some(stream) = self.streams.get_mut(id)
            && stream.ends
            && stream.sends
            && stream.queue.is_empty()
        {
            stream.sends = false;
            // A stream that the peer has stopped cannot end.
            let _ = self.inner.send_stream(number(id)).finish();
            self.streams.forget(id);
        }
    }

    /// The peer takes more of a stream.
    fn flush(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get_mut(id) else {
            return;
        };
        if stream.queue.is_empty() {
            return;
        }
        match write_all(&mut self.inner, id, &stream.queue) {
            Some(count) => {
                self.streams.dequeue(id, count);
                self.gone(id, count);
                // The writer may have stopped because of the queue.
                if let Some(stream) = self.streams.get_mut(id)
                    && stream.queue.is_empty()
                    && stream.written > 0
                {
                    let bytes = std::mem::take(&mut stream.written);
                    self.told.push_back(Received::Written {
                        stream: Some(id),
                        bytes,
                    });
                }
                self.finish(id);
            }
            None => {
                let discarded = self.streams.stop_sending(id);
                self.gone(id, discarded);
                self.streams.forget(id);
            }
        }
    }

    /// Opens a stream of this side. Streams with smaller numbers of its kind are opened too
    /// (RFC 9000 §2.1).
    fn open(&mut self, id: StreamId) {
        let (side, dir, place) = parts(id);
        if side != self.inner.side() {
            return;
        }
        let at = dir as usize;
        while self.used[at] <= place {
            if self.used[at] == self.opened[at] && !self.open_one(dir) {
                return;
            }
            let next = number_of(Number::new(side, dir, self.used[at]));
            self.used[at] += 1;
            self.streams.add(next, dir == Dir::Bi, true);
        }
        self.open_ahead();
    }

    /// Opens a stream at the library. Whether the peer permits it.
    fn open_one(&mut self, dir: Dir) -> bool {
        let opened = self.inner.streams().open(dir).is_some();
        self.opened[dir as usize] += u64::from(opened);
        opened
    }

    /// A client opens streams for its next requests.
    fn open_ahead(&mut self) {
        let bi = Dir::Bi as usize;
        let has_enough =
            |connection: &Connection, enough| connection.opened[bi] - connection.used[bi] >= enough;
        // Many at once: each change is told.
        if self.inner.side() != Side::Client || has_enough(self, REQUESTS_AHEAD_MAX / 2) {
            return;
        }
        let before = self.opened[bi];
        while !has_enough(self, REQUESTS_AHEAD_MAX) && self.open_one(Dir::Bi) {}
        if self.opened[bi] > before {
            self.told.push_back(Received::Streams(self.opened[bi]));
        }
    }

    /// Gives up sending on a stream.
    pub fn reset(&mut self, id: StreamId, code: u64) {
        self.open(id);
        if self.streams.get_mut(id).is_some_and(|stream| stream.sends) {
            let discarded = self.streams.stop_sending(id);
            self.gone(id, discarded);
            // The library forgets streams of closed connections.
            let _ = self.inner.send_stream(number(id)).reset(varint(code));
            self.streams.forget(id);
        }
    }

    /// Nobody writes any more: streams of requests whose end was not written are reset.
    pub fn abandon(&mut self, code: u64) {
        for id in self.streams.unfinished() {
            self.reset(id, code);
        }
    }

    /// Tells the peer that no more of a stream is wanted. What it sent is discarded.
    pub fn stop(&mut self, id: StreamId, code: u64) {
        if let Some(stream) = self.streams.get_mut(id)
            && stream.receives
        {
            stream.receives = false;
            // All may have come already.
            let _ = self.inner.recv_stream(number(id)).stop(varint(code));
            self.streams.forget(id);
        }
    }

    /// Which streams are sent first: those with higher numbers.
    pub fn prioritize(&mut self, id: StreamId, priority: i32) {
        if self.streams.contains(id) {
            // The stream may have been sent completely.
            let _ = self.inner.send_stream(number(id)).set_priority(priority);
        }
    }

    /// The bytes that were written and that the library does not take yet.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.streams.queued()
    }

    /// How many streams something is kept of.
    #[must_use]
    pub fn streams_kept(&self) -> usize {
        self.streams.len()
    }

    // ---- events of the library

    fn look(&mut self) {
        while let Some(event) = self.inner.poll() {
            match event {
                Event::HandshakeDataReady => self.news.is_agreed = true,
                Event::Connected => {
                    if self.sends_early() && !self.inner.accepted_0rtt() {
                        self.forget_early_data();
                    }
                    self.is_established = true;
                    self.news.is_established = true;
                    self.open_ahead();
                }
                Event::ConnectionLost { reason } => {
                    self.news.is_lost = true;
                    self.is_draining = matches!(
                        reason,
                        ConnectionError::ApplicationClosed(_)
                            | ConnectionError::ConnectionClosed(_)
                            | ConnectionError::Reset
                    );
                    self.lost = Some(lost(reason));
                }
                Event::Stream(event) => self.stream_event(event),
                Event::DatagramReceived | Event::DatagramsUnblocked => {}
            }
        }
    }

    /// The server has not read the early data. The library has forgotten the streams (RFC 9001 §4.6.2).
    fn forget_early_data(&mut self) {
        self.news.is_early_refused = true;
        self.streams = Streams::default();
        self.readable.clear();
        self.told.clear();
        (self.opened, self.used) = ([0; 2], [0; 2]);
    }

    /// The peer has opened a stream. Before the end of the handshake that is early data: the library
    /// reads no other packets of streams then.
    fn opened_early(&mut self) {
        if !self.is_established && !std::mem::replace(&mut self.has_early_data, true) {
            self.news.is_early = self.is_validated && self.agreed().serves_early;
        }
    }

    fn stream_event(&mut self, event: StreamEvent) {
        match event {
            StreamEvent::Opened { dir } => {
                self.opened_early();
                while let Some(new) = self.inner.streams().accept(dir) {
                    let id = number_of(new);
                    self.streams.add(id, true, dir == Dir::Bi);
                    self.list(id);
                }
            }
            StreamEvent::Readable { id } => self.list(number_of(id)),
            StreamEvent::Writable { id } => self.flush(number_of(id)),
            StreamEvent::Stopped { id, error_code } => {
                let stream = number_of(id);
                // Answered as RFC 9000 §3.5 says. All may have been acknowledged meanwhile.
                let _ = self.inner.send_stream(id).reset(error_code);
                let discarded = self.streams.stop_sending(stream);
                self.gone(stream, discarded);
                self.streams.forget(stream);
                self.told.push_back(Received::Stopped {
                    stream,
                    code: error_code.into_inner(),
                });
            }
            StreamEvent::Available { dir: Dir::Bi } => self.open_ahead(),
            StreamEvent::Finished { .. } | StreamEvent::Available { dir: Dir::Uni } => {}
        }
    }
}

/// Writes to a stream until the library takes no more. Only then does it tell when it does again.
/// Returns how much it took; none if nothing of the stream is wanted any more.
fn write_all(inner: &mut quinn_proto::Connection, id: StreamId, bytes: &[u8]) -> Option<usize> {
    let mut taken = 0;
    while taken < bytes.len() {
        match inner.send_stream(number(id)).write(&bytes[taken..]) {
            Ok(count) => taken += count,
            Err(WriteError::Blocked) => break,
            Err(WriteError::Stopped(_) | WriteError::ClosedStream) => return None,
        }
    }
    Some(taken)
}

fn number(id: StreamId) -> Number {
    Number::from(varint(id))
}

fn number_of(id: Number) -> StreamId {
    VarInt::from(id).into_inner()
}

/// A number that fits (RFC 9000 §16); the highest one otherwise.
fn varint(number: u64) -> VarInt {
    VarInt::from_u64(number).unwrap_or(VarInt::MAX)
}

fn lost(reason: ConnectionError) -> Lost {
    match reason {
        ConnectionError::ApplicationClosed(close) => Lost::Closed(close.error_code.into_inner()),
        ConnectionError::ConnectionClosed(close) => Lost::Ended(close.error_code.into()),
        ConnectionError::LocallyClosed => Lost::ClosedHere,
        ConnectionError::TimedOut => Lost::TimedOut,
        ConnectionError::Reset => Lost::Reset,
        ConnectionError::VersionMismatch
        | ConnectionError::TransportError(_)
        | ConnectionError::CidsExhausted => Lost::Failed(reason.to_string()),
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("handle", &self.handle)
            .field("is_drained", &self.is_drained)
            .field("lost", &self.lost)
            .field("queued", &self.streams.queued())
            .finish_non_exhaustive()
    }
}
