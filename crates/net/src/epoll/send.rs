//! Sending.
//!
//! Small messages are put off to the end of the round: the messages of one socket then leave
//! together, and the sends of all sockets follow each other while the kernel's send path stays in
//! the cache. Large messages leave at once, after what their socket has put off. What the kernel
//! does not take waits in the socket's queue, which is bounded.

use std::os::fd::AsRawFd;

use super::{DISCARD_BYTES_MAX, EpollDriver};
use crate::boundary::{Engine, Message, Sent, SockId};
use crate::sys::{self, Io, Pieces};

/// Messages up to this size are put off.
const DEFER_BYTES_MAX: usize = 4 << 10;
/// When a socket has put off more than this, the messages leave at once.
const DEFER_SOCK_BYTES_MAX: usize = 16 << 10;
/// When a socket's messages lie in this many places of the outbox, they leave at once.
const DEFER_PIECES_MAX: u16 = (sys::PIECES_MAX - 3) as u16;
/// When this many sockets have put off messages, these leave within the round, so that the first
/// socket of a large round does not wait for the last.
const DEFER_SOCKS_MAX: u32 = 32;
/// How long the last bytes of a closed socket may wait for a peer that accepts none.
const ORPHAN_MS: u64 = 10_000;

/// Messages for the end of the round.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    bytes: Vec<u8>,
    messages: Vec<Deferred>,
    socks: u32,
}

/// A put-off message in [`Outbox::bytes`].
#[derive(Debug)]
struct Deferred {
    sock: SockId,
    from: u32,
    to: u32,
    /// The next message of the same socket: its place from 1; 0 for none.
    next: u32,
}

/// The messages of a socket in the outbox: places from 1, 0 for none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PutOff {
    first: u32,
    last: u32,
    bytes: u16,
    pieces: u16,
}

impl PutOff {
    pub const NOTHING: PutOff = PutOff {
        first: 0,
        last: 0,
        bytes: 0,
        pieces: 0,
    };

    fn takes(self, bytes: usize) -> bool {
        bytes <= DEFER_BYTES_MAX
            && usize::from(self.bytes) + bytes <= DEFER_SOCK_BYTES_MAX
            && self.pieces < DEFER_PIECES_MAX
    }
}

/// A closed socket whose last bytes the kernel has not taken yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Orphan {
    sock: SockId,
    /// When it is given up, unless its peer has accepted bytes until then.
    pub until_ms: u64,
    /// How many bytes had been sent when that time was set.
    sent: usize,
}

/// What the kernel did not take of a socket's messages.
#[derive(Debug)]
pub(super) struct Queue {
    bytes: Vec<u8>,
    sent: usize,
}

impl Queue {
    fn of(bytes: Vec<u8>) -> Box<Queue> {
        Box::new(Queue { bytes, sent: 0 })
    }

    fn waiting(&self) -> usize {
        self.bytes.len() - self.sent
    }
}

impl Outbox {
    /// Puts a message off, behind the others of its socket.
    fn put_off(&mut self, sock: SockId, put_off: &mut PutOff, parts: [&[u8]; 3]) {
        let from = self.bytes.len() as u32;
        for part in parts {
            // Most messages have one part.
            if !part.is_empty() {
                self.bytes.extend_from_slice(part);
            }
        }
        let to = self.bytes.len() as u32;
        put_off.bytes += (to - from) as u16;
        // A message directly behind the socket's last message is merged with it.
        let next = self.messages.len() as u32 + 1;
        if let Some(last) = self
            .messages
            .get_mut((put_off.last as usize).wrapping_sub(1))
        {
            if last.to == from {
                last.to = to;
                return;
            }
            last.next = next;
        }
        self.messages.push(Deferred {
            sock,
            from,
            to,
            next: 0,
        });
        put_off.last = next;
        put_off.pieces += 1;
        if put_off.first == 0 {
            put_off.first = put_off.last;
            self.socks += 1;
        }
    }

    /// Adds a socket's put-off messages to `pieces`.
    fn gather<'a>(&'a self, put_off: PutOff, pieces: &mut Pieces<'a>) {
        let mut place = put_off.first;
        while let Some(message) = self.messages.get((place as usize).wrapping_sub(1)) {
            pieces.push(&self.bytes[message.from as usize..message.to as usize]);
            place = message.next;
        }
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.messages.clear();
        self.socks = 0;
    }
}

impl EpollDriver {
    pub(super) fn send_message(&mut self, sock: SockId, message: Message<'_>) -> Sent {
        let Message { head, body, tail } = message;
        let gone = Sent {
            taken: body.len(),
            blocked: false,
        };
        let Some(entry) = self.socks.get_mut(sock) else {
            return gone;
        };
        if entry.broken {
            return gone;
        }
        if let Some(queue) = &mut entry.queue {
            entry.blocked = true;
            queue.bytes.extend_from_slice(head);
            let room = self.read_bytes.saturating_sub(queue.waiting());
            let taken = room.min(body.len());
            queue.bytes.extend_from_slice(&body[..taken]);
            if taken == body.len() {
                queue.bytes.extend_from_slice(tail);
            }
            return Sent {
                taken,
                blocked: true,
            };
        }
        if entry.put_off.takes(head.len() + body.len() + tail.len()) {
            self.outbox
                .put_off(sock, &mut entry.put_off, [head, body, tail]);
            if self.outbox.socks >= DEFER_SOCKS_MAX {
                self.flush();
            }
            return gone;
        }
        self.send_now(sock, message)
    }

    /// Sends a socket's put-off messages, then this message.
    fn send_now(&mut self, sock: SockId, message: Message<'_>) -> Sent {
        let Message { head, body, tail } = message;
        let mut sent = Sent {
            taken: body.len(),
            blocked: false,
        };
        let Some(entry) = self.socks.get_mut(sock) else {
            return sent;
        };
        let put_off = std::mem::replace(&mut entry.put_off, PutOff::NOTHING);
        let mut pieces = Pieces::default();
        self.outbox.gather(put_off, &mut pieces);
        for part in [head, body, tail] {
            pieces.push(part);
        }
        let done = match pieces.send(entry.fd.as_raw_fd()) {
            Io::Done(bytes) if bytes == pieces.bytes() => return sent,
            Io::Done(bytes) => bytes,
            Io::WouldBlock => 0,
            Io::Failed(_) => {
                self.fail(sock);
                return sent;
            }
        };
        // The parts that must be taken whole are queued; the sender keeps the rest of a large body.
        let before = usize::from(put_off.bytes) + head.len();
        let body_done = done.saturating_sub(before).min(body.len());
        if body.len() - body_done > self.read_bytes {
            sent.taken = body_done;
        }
        sent.blocked = true;
        let mut kept = Vec::new();
        let whole = before + sent.taken;
        let tail = (sent.taken == body.len()).then_some(tail);
        pieces.copy(done, whole, &mut kept);
        kept.extend_from_slice(tail.map_or(&[][..], |tail| {
            &tail[done.saturating_sub(whole).min(tail.len())..]
        }));
        if let Some(entry) = self.socks.get_mut(sock) {
            entry.blocked = true;
            if !kept.is_empty() {
                entry.queue = Some(Queue::of(kept));
            }
        }
        sent
    }

    /// Marks a failed send: nothing more leaves. The loop reports it to the engine after delivering
    /// what the peer sent before.
    #[cold]
    fn fail(&mut self, sock: SockId) {
        if let Some(entry) = self.socks.get_mut(sock) {
            entry.broken = true;
            entry.queue = None;
            entry.put_off = PutOff::NOTHING;
            self.make_ready(sock);
        }
    }

    /// Sends the messages put off to the end of the round.
    pub(super) fn flush(&mut self) {
        for place in 0..self.outbox.messages.len() {
            let sock = self.outbox.messages[place].sock;
            let Some(entry) = self.socks.get_mut(sock) else {
                continue;
            };
            // Only a socket's first message is handled here: its others leave with it.
            if entry.put_off.first as usize != place + 1 {
                continue;
            }
            let message = &self.outbox.messages[place];
            if message.next != 0 {
                self.send_now(sock, Message::default());
                continue;
            }
            entry.put_off = PutOff::NOTHING;
            let bytes = &self.outbox.bytes[message.from as usize..message.to as usize];
            match sys::send(entry.fd.as_raw_fd(), bytes) {
                Io::Done(sent) if sent == bytes.len() => {}
                Io::Failed(_) => self.fail(sock),
                sent => {
                    let done = match sent {
                        Io::Done(done) => done,
                        Io::WouldBlock | Io::Failed(_) => 0,
                    };
                    entry.blocked = true;
                    entry.queue = Some(Queue::of(bytes[done..].to_vec()));
                }
            }
        }
        self.outbox.clear();
    }

    /// Sends a socket's put-off messages.
    pub(super) fn flush_sock(&mut self, sock: SockId) {
        let has_put_off = |entry: &super::Sock| entry.put_off != PutOff::NOTHING;
        if self.socks.get(sock).is_some_and(has_put_off) {
            self.send_now(sock, Message::default());
        }
    }

    /// The kernel has room again for a socket whose queue is not empty.
    pub(super) fn writable<E: Engine<Self>>(&mut self, engine: &mut E, sock: SockId) {
        let Some(entry) = self.socks.get_mut(sock) else {
            return;
        };
        let Some(queue) = &mut entry.queue else {
            entry.blocked = false;
            return engine.on_writable(self, sock, false);
        };
        match sys::send(entry.fd.as_raw_fd(), &queue.bytes[queue.sent..]) {
            Io::Done(0) | Io::WouldBlock => {}
            Io::Done(bytes) => {
                queue.sent += bytes;
                let blocked = queue.waiting() > 0;
                if !blocked {
                    entry.queue = None;
                    entry.blocked = false;
                    if entry.shutdown {
                        sys::shutdown_write(entry.fd.as_raw_fd());
                    }
                }
                engine.on_writable(self, sock, blocked);
            }
            Io::Failed(_) => self.fail(sock),
        }
    }

    /// Keeps a closed socket until the kernel has taken its last bytes.
    pub(super) fn orphan(&mut self, sock: SockId) {
        if let Some(entry) = self.socks.get_mut(sock) {
            entry.orphan = true;
            self.orphans.push_back(Orphan {
                sock,
                until_ms: self.now_ms + ORPHAN_MS,
                sent: 0,
            });
        }
    }

    pub(super) fn orphan_event(&mut self, sock: SockId, bits: u32) {
        let Some(entry) = self.socks.get_mut(sock) else {
            return;
        };
        let Some(queue) = &mut entry.queue else {
            return;
        };
        let over = bits & (libc::EPOLLERR | libc::EPOLLHUP) as u32 != 0
            || match sys::send(entry.fd.as_raw_fd(), &queue.bytes[queue.sent..]) {
                Io::Done(bytes) => {
                    queue.sent += bytes;
                    queue.waiting() == 0
                }
                Io::WouldBlock => false,
                Io::Failed(_) => true,
            };
        if over && let Some(entry) = self.socks.remove(sock) {
            sys::discard_input(entry.fd.as_raw_fd(), DISCARD_BYTES_MAX);
        }
    }

    pub(super) fn bury_orphans(&mut self) {
        let now_ms = self.now_ms;
        while let Some(orphan) = self.orphans.front_mut() {
            let sock = orphan.sock;
            let Some(entry) = self.socks.get_mut(sock) else {
                self.orphans.pop_front();
                continue;
            };
            if orphan.until_ms > now_ms {
                return;
            }
            let sent = entry.queue.as_ref().map_or(0, |queue| queue.sent);
            let Some(mut orphan) = self.orphans.pop_front() else {
                return;
            };
            if sent > orphan.sent {
                // The peer reads: it gets as long again for the next bytes.
                (orphan.sent, orphan.until_ms) = (sent, now_ms + ORPHAN_MS);
                self.orphans.push_back(orphan);
            } else {
                self.socks.remove(sock);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;
    use std::sync::Arc;

    use super::super::{EpollDriver, Setup, SocketBuffers};
    use super::*;
    use crate::boundary::{Driver, WorkerId};

    fn driver() -> EpollDriver {
        let setup = Setup {
            listeners: Vec::new(),
            logs: Vec::new(),
            dropped: Arc::default(),
            activity: Arc::default(),
            wakes: vec![Arc::new(sys::eventfd().expect("an eventfd"))],
            worker: WorkerId(0),
            accepts_a_turn_max: 1,
            buffer_bytes: 64 << 10,
            buffers: SocketBuffers::default(),
            measures: false,
            local_addrs: false,
            more: std::sync::mpsc::channel().1,
        };
        EpollDriver::new(setup).expect("a driver")
    }

    /// A closed socket whose peer reads slowly, but does read, loses nothing; one whose peer reads
    /// nothing is given up.
    #[test]
    fn a_closed_socket_stays_while_its_peer_reads() {
        let mut driver = driver();
        let (own, mut peer) = UnixStream::pair().expect("a pair");
        own.set_nonblocking(true).expect("a flag");
        peer.set_nonblocking(true).expect("a flag");
        let sock = driver
            .adopt(OwnedFd::from(own), false, false)
            .expect("a socket");
        let message = vec![0; 64 << 10];
        let whole = |head| Message {
            head,
            ..Message::default()
        };
        while !driver.send_message(sock, whole(&message)).blocked {}
        for _ in 0..3 {
            driver.send_message(sock, whole(&message));
        }
        driver.close(sock);
        let pass = |driver: &mut EpollDriver| {
            driver.set_now(driver.now.after_ms(ORPHAN_MS));
            driver.bury_orphans();
            driver.socks.get_mut(sock).is_some()
        };
        let mut chunk = vec![0; 40 << 10];
        for _ in 0..2 {
            peer.read_exact(&mut chunk).expect("bytes");
            driver.orphan_event(sock, libc::EPOLLOUT as u32);
            assert!(pass(&mut driver), "it has progressed");
        }
        assert!(!pass(&mut driver), "it has not");
    }
}
