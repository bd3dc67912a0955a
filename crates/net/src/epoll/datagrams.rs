//! Datagram sockets: receiving in batches, and the queues of what is sent.
//!
//! A socket with unread datagrams is in a list. A round reads a bounded number of batches, one
//! socket after the other, so that datagrams and connections wait for each other no longer than
//! that; what is left is read in the next round. What the engine sends waits in the socket's queue
//! and leaves at the end of the round.
//!
//! A socket waits for `EPOLLOUT` only while the kernel cannot take its queue: the kernel reports
//! this event for each packet that leaves.

use std::collections::VecDeque;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;

use super::datagram_queue::Queue;
use super::{EpollDriver, Listener, TOKEN_DATAGRAMS};
use crate::activity::Activity;
use crate::boundary::{DatagramSock, Engine, ListenerId, SockId};
use crate::datagrams::{Datagrams, Outgoing};
use crate::sys::{self, Epoll, Io, RECEIVES_A_CALL, ReceiveBatch, SendBatch, Unusable};

/// Batches of [`RECEIVES_A_CALL`] messages that a round reads; at least one of each socket.
const BATCHES_A_ROUND: usize = 4;
/// A round in which more bytes of datagrams were received reads no further batch.
const RECEIVE_BYTES_A_ROUND: usize = 512 << 10;
/// Errors of receiving that a turn takes from one socket: each is one of an earlier send. A socket
/// with more is read again at its next event, so that an error that lasts does not keep the worker
/// busy.
const ERRORS_A_TURN_MAX: u32 = 16;
/// How long the queue of a closing socket may wait for the kernel.
const CLOSE_MS_MAX: u64 = 1_000;

const NO_BITS: u32 = libc::EPOLLET as u32;
const READ_BITS: u32 = (libc::EPOLLIN | libc::EPOLLET) as u32;

/// The datagram sockets of a worker.
#[derive(Debug, Default)]
pub(super) struct DatagramSockets {
    sockets: Vec<Socket>,
    /// The places of sockets that may have unread datagrams.
    ready: VecDeque<usize>,
    /// The places of sockets that were given something to send in this round.
    filled: Vec<usize>,
    /// Sockets whose servers refuse what is sent to them, which the engine is to be told.
    refused: Vec<SockId>,
    /// Allocated when the first socket is read; taken out while the engine is called.
    received: Option<Box<ReceiveBatch>>,
    sent: SendBatch,
    /// The place that was looked up last.
    last: usize,
    /// How many sockets close once their queue is empty.
    closing: usize,
    /// A socket has room again that the engine waits for.
    has_room: bool,
}

#[derive(Debug)]
struct Socket {
    /// None after the socket was closed.
    fd: Option<Arc<OwnedFd>>,
    id: DatagramSock,
    queue: Queue,
    /// The socket is in the list of those to read.
    queued: bool,
    /// It is in the list of those that were given something to send.
    is_filled: bool,
    /// The kernel could not take the queue.
    blocked: bool,
    /// The engine waits for room.
    wants_room: bool,
    /// Another process reads it.
    is_mute: bool,
    /// Grows each time the place is reused.
    generation: u32,
    /// When a closing socket is closed even if its queue is not empty.
    close_ms: Option<u64>,
}

impl Socket {
    fn has_room(&self) -> bool {
        !self.blocked && self.queue.has_room()
    }

    /// Waits for the events that the socket needs now.
    fn wait(&self, epoll: &Epoll, place: usize) {
        let Some(fd) = &self.fd else {
            return;
        };
        let mut bits = if self.is_mute { NO_BITS } else { READ_BITS };
        if self.blocked {
            bits |= libc::EPOLLOUT as u32;
        }
        // This fails only for a descriptor that is not registered.
        let _ = epoll.modify(fd.as_raw_fd(), bits, TOKEN_DATAGRAMS | place as u64);
    }

    /// Gives the queue to the kernel. Whether the kernel reports that a server refuses it.
    fn flush(
        &mut self,
        epoll: &Epoll,
        place: usize,
        batch: &mut SendBatch,
        activity: &Activity,
    ) -> bool {
        let Some(fd) = self.fd.as_ref().map(AsRawFd::as_raw_fd) else {
            return false;
        };
        let mut is_refused = false;
        let flushed = self.queue.flush(|messages| {
            let sent = batch.send(fd, messages);
            is_refused |= tells_refusal(&sent);
            sent
        });
        if flushed.refused > 0 {
            activity.datagrams().add_send_errors(flushed.refused);
        }
        if flushed.blocked != self.blocked {
            self.blocked = flushed.blocked;
            self.wait(epoll, place);
        }
        is_refused
    }
}

/// Whether a call reports that datagrams which were sent before have not arrived (RFC 1122 §4.1.3.3).
/// Only sockets with one peer get such reports.
fn tells_refusal(io: &Io) -> bool {
    matches!(
        io,
        Io::Failed(libc::ECONNREFUSED | libc::EHOSTUNREACH | libc::ENETUNREACH)
    )
}

impl DatagramSockets {
    /// Takes the datagram sockets out of `listeners` and registers them.
    pub fn add(&mut self, epoll: &Epoll, listeners: &mut Vec<Listener>) {
        let is_datagram = |listener: &mut Listener| {
            let kind = sys::socket_type(listener.fd.as_raw_fd());
            kind.is_ok_and(|kind| kind == libc::SOCK_DGRAM)
        };
        for listener in listeners.extract_if(.., is_datagram) {
            self.register(epoll, listener.fd, |_| listener.id.into());
        }
    }

    /// Adds a socket to a server.
    pub fn add_server(&mut self, epoll: &Epoll, fd: OwnedFd) -> SockId {
        let place = self.register(epoll, Arc::new(fd), |sock| sock.into());
        self.name(place)
    }

    /// The descriptor of a socket to a server.
    pub fn server_fd(&self, sock: SockId) -> Option<RawFd> {
        let socket = self.sockets.get(sock.slot as usize)?;
        let fd = socket.fd.as_ref().filter(|_| socket.id == sock.into())?;
        Some(fd.as_raw_fd())
    }

    /// The name of the socket in a place, as one to a server.
    fn name(&self, place: usize) -> SockId {
        SockId {
            slot: place as u32,
            generation: self.sockets[place].generation,
        }
    }

    /// Registers a socket. `name`: its name, from the one that it has as a socket to a server.
    fn register(
        &mut self,
        epoll: &Epoll,
        fd: Arc<OwnedFd>,
        name: impl FnOnce(SockId) -> DatagramSock,
    ) -> usize {
        // A place that is still in `ready` or `filled` is not reused: it would be listed twice.
        let is_free = |socket: &Socket| {
            let is_listed = socket.queued || socket.is_filled;
            socket.fd.is_none() && !is_listed
        };
        let free = self.sockets.iter().position(is_free);
        let place = free.unwrap_or(self.sockets.len());
        let before = self.sockets.get(place);
        let generation = before.map_or(0, |before| before.generation.wrapping_add(1));
        let raw = fd.as_raw_fd();
        let socket = Socket {
            queue: Queue::new(sys::cuts_datagrams(raw)),
            id: name(SockId {
                slot: place as u32,
                generation,
            }),
            generation,
            queued: true,
            is_filled: false,
            blocked: false,
            wants_room: false,
            is_mute: false,
            close_ms: None,
            fd: Some(fd),
        };
        // A socket that the kernel does not register stays silent, as a listener does.
        let _ = epoll.add(raw, READ_BITS, TOKEN_DATAGRAMS | place as u64);
        match self.sockets.get_mut(place) {
            Some(free) => *free = socket,
            None => self.sockets.push(socket),
        }
        // Datagrams may have come before.
        self.ready.push_back(place);
        place
    }

    /// Whether a round has work without an event.
    #[inline]
    pub fn has_work(&self) -> bool {
        self.has_room || !self.ready.is_empty() || !self.refused.is_empty()
    }

    /// Whether sockets close once their queue is empty.
    pub fn are_closing(&self) -> bool {
        self.closing > 0
    }

    /// When the first of them is closed even so.
    pub fn close_ms(&self) -> Option<u64> {
        if self.closing == 0 {
            return None;
        }
        self.sockets
            .iter()
            .filter_map(|socket| socket.close_ms)
            .min()
    }

    /// The place of a socket. Of a listener's, one that closes is the last choice.
    fn find(&mut self, sock: DatagramSock) -> Option<usize> {
        let is_open = |socket: &Socket| socket.id == sock && socket.fd.is_some();
        if let DatagramSock::Server(name) = sock {
            let place = name.slot as usize;
            return self
                .sockets
                .get(place)
                .is_some_and(is_open)
                .then_some(place);
        }
        let is_serving = |socket: &Socket| is_open(socket) && socket.close_ms.is_none();
        if !self.sockets.get(self.last).is_some_and(is_serving) {
            let serving = self.sockets.iter().position(is_serving);
            self.last = serving.or_else(|| self.sockets.iter().position(is_open))?;
        }
        Some(self.last)
    }

    pub fn send(&mut self, sock: DatagramSock, datagrams: &Outgoing<'_>, activity: &Activity) {
        let lost = match self.find(sock) {
            Some(place) => {
                let socket = &mut self.sockets[place];
                if !std::mem::replace(&mut socket.is_filled, true) {
                    self.filled.push(place);
                }
                socket.queue.push(datagrams).err()
            }
            None => Some(datagrams.count()),
        };
        if let Some(lost) = lost {
            activity.datagrams().add_no_room(lost);
        }
    }

    /// Whether a socket takes a run of any size. A socket that does not exist takes all, and loses it.
    pub fn room(&mut self, sock: DatagramSock) -> bool {
        let Some(place) = self.find(sock) else {
            return true;
        };
        let socket = &mut self.sockets[place];
        let has_room = socket.has_room();
        socket.wants_room |= !has_room;
        has_room
    }

    /// Sends what waits and what the kernel takes, and closes the sockets that are to be closed.
    #[inline]
    pub fn flush(&mut self, epoll: &Epoll, now_ms: u64, activity: &Activity) {
        if !self.filled.is_empty() || self.closing > 0 {
            self.flush_filled(epoll, now_ms, activity);
        }
    }

    #[inline(never)]
    fn flush_filled(&mut self, epoll: &Epoll, now_ms: u64, activity: &Activity) {
        let mut filled = std::mem::take(&mut self.filled);
        for place in filled.drain(..) {
            self.sockets[place].is_filled = false;
            if !self.sockets[place].blocked {
                self.flush_one(epoll, place, activity);
            }
        }
        self.filled = filled;
        if self.closing == 0 {
            return;
        }
        for place in 0..self.sockets.len() {
            let socket = &self.sockets[place];
            let is_over = |at_ms| socket.queue.is_empty() || now_ms >= at_ms;
            if socket.close_ms.is_some_and(is_over) {
                self.shut(epoll, place, activity);
            }
        }
    }

    /// Gives a socket's queue to the kernel.
    fn flush_one(&mut self, epoll: &Epoll, place: usize, activity: &Activity) {
        if self.sockets[place].flush(epoll, place, &mut self.sent, activity) {
            self.note_refusal(place);
        }
        let socket = &self.sockets[place];
        self.has_room |= socket.wants_room && socket.has_room();
    }

    /// A socket's server refuses what is sent to it.
    fn note_refusal(&mut self, place: usize) {
        if let DatagramSock::Server(sock) = self.sockets[place].id
            && !self.refused.contains(&sock)
        {
            self.refused.push(sock);
        }
    }

    /// Stops reading a listener's sockets, and closes them when their queue is empty.
    pub fn close(&mut self, listener: ListenerId, now_ms: u64) {
        let id = DatagramSock::Listener(listener);
        let open = self.sockets.iter_mut().filter(|socket| socket.fd.is_some());
        for socket in open.filter(|socket| socket.id == id) {
            if socket.close_ms.is_none() {
                socket.close_ms = Some(now_ms + CLOSE_MS_MAX);
                self.closing += 1;
            }
        }
    }

    /// Closes a socket to a server when its queue is empty.
    pub fn close_server(&mut self, epoll: &Epoll, sock: SockId, now_ms: u64, activity: &Activity) {
        let Some(place) = self.find(sock.into()) else {
            return;
        };
        let socket = &mut self.sockets[place];
        if socket.queue.is_empty() {
            self.shut(epoll, place, activity);
        } else if socket.close_ms.is_none() {
            socket.close_ms = Some(now_ms + CLOSE_MS_MAX);
            self.closing += 1;
        }
    }

    /// Reads a listener's sockets no more.
    pub fn stop_receiving(&mut self, epoll: &Epoll, listener: ListenerId) {
        let id = DatagramSock::Listener(listener);
        let sockets = self.sockets.iter_mut().enumerate();
        for (place, socket) in sockets.filter(|(_, socket)| socket.id == id) {
            socket.is_mute = true;
            socket.wait(epoll, place);
        }
    }

    /// Closes a listener's sockets at once, behind what the kernel takes of their queues.
    pub fn abandon(&mut self, epoll: &Epoll, listener: ListenerId, activity: &Activity) {
        for place in 0..self.sockets.len() {
            let socket = &mut self.sockets[place];
            if socket.id == DatagramSock::Listener(listener) && socket.fd.is_some() {
                if !socket.blocked {
                    socket.flush(epoll, place, &mut self.sent, activity);
                }
                self.shut(epoll, place, activity);
            }
        }
    }

    fn shut(&mut self, epoll: &Epoll, place: usize, activity: &Activity) {
        let socket = &mut self.sockets[place];
        if let Some(fd) = socket.fd.take() {
            // Another descriptor of the socket may stay open, and would stay registered.
            epoll.remove(fd.as_raw_fd());
        }
        self.closing -= usize::from(socket.close_ms.take().is_some());
        let lost = socket.queue.clear();
        if lost > 0 {
            activity.datagrams().add_no_room(lost);
        }
        socket.blocked = false;
        // Nobody has to wait: what is sent from now on is lost.
        self.has_room |= socket.wants_room;
    }
}

impl EpollDriver {
    /// The kernel reports a datagram socket.
    pub(super) fn datagram_event(&mut self, place: usize, bits: u32) {
        let sockets = &mut self.datagrams;
        let Some(socket) = sockets.sockets.get_mut(place) else {
            return;
        };
        if bits & libc::EPOLLOUT as u32 != 0 && socket.blocked {
            sockets.flush_one(&self.epoll, place, &self.activity);
        }
        let socket = &mut sockets.sockets[place];
        let may_read = bits & (libc::EPOLLIN | libc::EPOLLERR | libc::EPOLLHUP) as u32 != 0;
        if may_read && !socket.queued {
            socket.queued = true;
            sockets.ready.push_back(place);
        }
    }

    /// Delivers received datagrams, as many as a round has, and reports room.
    pub(super) fn serve_datagrams<E: Engine<Self>>(&mut self, engine: &mut E) {
        if !self.datagrams.has_work() {
            return;
        }
        if std::mem::take(&mut self.datagrams.has_room) {
            self.tell_room(engine);
        }
        while let Some(sock) = self.datagrams.refused.pop() {
            engine.on_datagrams_refused(self, sock);
        }
        if self.datagrams.ready.is_empty() {
            return;
        }
        let mut batch = self.datagrams.received.take().unwrap_or_default();
        let mut bytes = 0;
        for _ in 0..self.datagrams.ready.len().max(BATCHES_A_ROUND) {
            let Some(place) = self.datagrams.ready.pop_front() else {
                break;
            };
            match self.receive(engine, place, &mut batch) {
                Some(received) => {
                    bytes += received;
                    self.datagrams.ready.push_back(place);
                }
                None => self.datagrams.sockets[place].queued = false,
            }
            if bytes > RECEIVE_BYTES_A_ROUND {
                break;
            }
        }
        self.datagrams.received = Some(batch);
    }

    /// Delivers one batch of a socket. Returns the number of its bytes if there may be more.
    fn receive<E: Engine<Self>>(
        &mut self,
        engine: &mut E,
        place: usize,
        batch: &mut ReceiveBatch,
    ) -> Option<usize> {
        let socket = &self.datagrams.sockets[place];
        let sock = socket.id;
        let fd = socket.fd.as_ref().map(AsRawFd::as_raw_fd);
        let fd = fd.filter(|_| socket.close_ms.is_none() && !socket.is_mute)?;
        let mut errors = 0;
        let count = loop {
            match batch.receive(fd) {
                Io::Done(count) => break count,
                Io::WouldBlock => return None,
                failed @ Io::Failed(_) => {
                    self.activity.datagrams().add_receive_error();
                    if tells_refusal(&failed) {
                        self.datagrams.note_refusal(place);
                    }
                    errors += 1;
                    if errors == ERRORS_A_TURN_MAX {
                        return None;
                    }
                }
            }
        };
        let mut bytes = 0;
        for index in 0..count {
            match batch.message(index) {
                Ok(received) => {
                    bytes += received.bytes.len();
                    self.activity.datagrams().received(received.bytes.len());
                    let datagrams = Datagrams {
                        sock,
                        peer: received.peer,
                        local: received.local,
                        ecn: received.ecn,
                        segment: received.segment,
                        bytes: received.bytes,
                    };
                    engine.on_datagrams(self, datagrams);
                }
                Err(Unusable::Truncated) => self.activity.datagrams().add_truncated(),
                Err(Unusable::Ignored) => self.activity.datagrams().add_ignored(),
            }
            // The engine may have closed the socket, which then delivers nothing more.
            let socket = &self.datagrams.sockets[place];
            if socket.fd.is_none() || socket.close_ms.is_some() || socket.is_mute {
                return None;
            }
        }
        (count == RECEIVES_A_CALL).then_some(bytes)
    }

    fn tell_room<E: Engine<Self>>(&mut self, engine: &mut E) {
        for place in 0..self.datagrams.sockets.len() {
            let socket = &mut self.datagrams.sockets[place];
            if socket.wants_room && socket.has_room() {
                socket.wants_room = false;
                let sock = socket.id;
                engine.on_datagram_room(self, sock);
            }
        }
    }
}
