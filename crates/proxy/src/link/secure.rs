//! TLS of connections. The engine decrypts received bytes. Bytes to send are collected for a
//! round and encrypted here, so that a head and its body are one record.

use config::model::TlsGlobal;
use net::{Driver, Message, Sent, SockId};
use tls::{Buffer, Session};

use super::{Link, Links};
use crate::ids::ConnId;
use crate::shared::TlsPlace;

/// How much a connection collects before it is encrypted, bytes.
const STAGE_BYTES_MAX: usize = 4 << 10;
/// The payload of a full record (RFC 8446 §5.1).
const RECORD_BYTES: usize = 16 << 10;
/// How much payload is encrypted before asking the driver whether it takes more, bytes.
const SEAL_BYTES_MAX: usize = 64 << 10;
/// The first part of a transfer, in which records are short, bytes.
const TRANSFER_BEGINNING_BYTES: usize = 32 << 10;
/// How many connections may collect at a time, so that the first of a long round does not wait for
/// the last.
const GATHERING_MAX: usize = 32;

/// A connection's TLS.
#[derive(Debug)]
pub(crate) struct Secure {
    pub session: Session,
    /// Its place in the count of TLS connections.
    _place: TlsPlace,
    /// Bytes to encrypt at the end of the round.
    staged: Vec<u8>,
    is_gathering: bool,
    transfer: Transfer,
}

/// The bytes that were sent without a pause.
#[derive(Debug, Default)]
struct Transfer {
    bytes: usize,
    last_ms: u64,
}

impl Secure {
    pub fn new(session: Session, place: TlsPlace) -> Box<Secure> {
        Box::new(Secure {
            session,
            _place: place,
            staged: Vec::new(),
            is_gathering: false,
            transfer: Transfer::default(),
        })
    }

    /// Whether no bytes wait to be encrypted.
    pub fn is_quiet(&self) -> bool {
        self.staged.is_empty() && !self.is_gathering
    }
}

/// A worker's buffers for decrypted bytes and for handshake messages.
#[derive(Debug, Default)]
pub(crate) struct Opened {
    pub plain: Buffer,
    pub out: Buffer,
}

/// The destination of a message.
pub(super) struct Wire<'a> {
    pub id: ConnId,
    pub sock: SockId,
    pub blocked: bool,
    pub secure: Option<&'a mut Secure>,
}

impl Wire<'_> {
    /// The same destination for one more message.
    #[inline]
    pub fn again(&mut self) -> Wire<'_> {
        Wire {
            id: self.id,
            sock: self.sock,
            blocked: self.blocked,
            secure: self.secure.as_deref_mut(),
        }
    }
}

/// Records are shorter at the beginning of a transfer, so that the client can decrypt its first
/// bytes early (`tune.ssl.maxrecord`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShortRecords {
    /// The payload of a record, bytes.
    bytes: usize,
    /// The pause after which a transfer begins anew, milliseconds (`tune.idletimer`).
    idle_ms: u64,
}

impl ShortRecords {
    /// From the configuration; none where records have full length.
    pub fn new(global: &TlsGlobal) -> Option<ShortRecords> {
        Some(ShortRecords {
            bytes: global.maxrecord_bytes? as usize,
            idle_ms: global.idletimer.as_millis() as u64,
        })
    }
}

impl Transfer {
    /// Notes that `bytes` are to be sent. Returns how many of them belong to the beginning of the
    /// transfer.
    fn note(&mut self, bytes: usize, now_ms: u64, short: &ShortRecords) -> usize {
        if now_ms.saturating_sub(self.last_ms) >= short.idle_ms {
            self.bytes = 0;
        }
        self.last_ms = now_ms;
        let beginning = TRANSFER_BEGINNING_BYTES.saturating_sub(self.bytes);
        self.bytes = self.bytes.saturating_add(bytes);
        bytes.min(beginning)
    }
}

/// Encryption state that the connections of a worker share.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    short: Option<ShortRecords>,
    sealed: Buffer,
    gathering: Vec<ConnId>,
    /// Spare buffers for collecting.
    spare: Vec<Vec<u8>>,
}

impl Outgoing {
    /// Nothing yet. `short`: see [`ShortRecords`].
    pub fn new(short: Option<ShortRecords>) -> Outgoing {
        Outgoing {
            short,
            ..Outgoing::default()
        }
    }

    /// Encrypts bytes and appends the records. A session whose keys may no longer be used writes
    /// nothing.
    fn seal<D: Driver>(
        &mut self,
        io: &D,
        session: &mut Session,
        transfer: &mut Transfer,
        bytes: &[u8],
    ) {
        let mut rest = bytes;
        if let Some(short) = &self.short {
            let beginning = transfer.note(bytes.len(), io.now_ms(), short);
            let (first, behind) = bytes.split_at(beginning);
            for record in first.chunks(short.bytes) {
                let _ = session.write(record, &mut self.sealed);
            }
            rest = behind;
        }
        if !rest.is_empty() {
            let _ = session.write(rest, &mut self.sealed);
        }
    }

    /// Sends the encrypted records.
    fn send<D: Driver>(&mut self, io: &mut D, sock: SockId) -> bool {
        if self.sealed.is_empty() {
            return false;
        }
        // Taking the buffer ensures that no other connection sends these bytes.
        let mut sealed = std::mem::take(&mut self.sealed);
        let sent = io.send(
            sock,
            Message {
                head: &sealed,
                ..Message::default()
            },
        );
        sealed.clear();
        self.sealed = sealed;
        sent.blocked
    }

    /// Sends a message.
    #[inline]
    pub fn message<D: Driver>(&mut self, io: &mut D, wire: Wire<'_>, message: Message<'_>) -> Sent {
        match wire.secure {
            None => io.send(wire.sock, message),
            Some(secure) => self.gather(io, (wire.id, wire.sock, wire.blocked), secure, message),
        }
    }

    fn gather<D: Driver>(
        &mut self,
        io: &mut D,
        (id, sock, was_blocked): (ConnId, SockId, bool),
        secure: &mut Secure,
        message: Message<'_>,
    ) -> Sent {
        if !std::mem::replace(&mut secure.is_gathering, true) {
            secure.staged = self.spare.pop().unwrap_or_default();
            self.gathering.push(id);
        }
        let staged = &mut secure.staged;
        staged.extend_from_slice(message.head);
        let Message { body, tail, .. } = message;
        if was_blocked {
            // Encrypted later, when the socket takes bytes again. Until then as many bytes wait
            // here as would otherwise wait in the driver.
            let room = io.read_bytes().saturating_sub(staged.len());
            let taken = room.min(body.len());
            staged.extend_from_slice(&body[..taken]);
            if taken == body.len() {
                staged.extend_from_slice(tail);
            }
            return Sent {
                taken,
                blocked: true,
            };
        }
        if staged.len() + body.len() + tail.len() <= STAGE_BYTES_MAX {
            staged.extend_from_slice(body);
            staged.extend_from_slice(tail);
            return Sent {
                taken: body.len(),
                blocked: false,
            };
        }
        let (mut taken, mut blocked) = (0, false);
        loop {
            // The first record is filled from the payload; the others are encrypted directly from
            // the payload's memory.
            if !staged.is_empty() {
                let room = RECORD_BYTES.saturating_sub(staged.len());
                let count = room.min(body.len() - taken);
                staged.extend_from_slice(&body[taken..taken + count]);
                taken += count;
                self.seal(io, &mut secure.session, &mut secure.transfer, staged);
                staged.clear();
            }
            let count = SEAL_BYTES_MAX.min(body.len() - taken);
            if count > 0 {
                let part = &body[taken..taken + count];
                self.seal(io, &mut secure.session, &mut secure.transfer, part);
                taken += count;
            }
            blocked |= self.send(io, sock);
            if blocked || taken == body.len() {
                break;
            }
        }
        if taken == body.len() {
            staged.extend_from_slice(tail);
        }
        Sent { taken, blocked }
    }

    /// Encrypts and sends the collected bytes of a connection.
    fn flush<D: Driver>(&mut self, io: &mut D, link: &mut Link) {
        let Some(secure) = &mut link.secure else {
            return;
        };
        if !std::mem::take(&mut secure.is_gathering) {
            return;
        }
        let mut staged = std::mem::take(&mut secure.staged);
        if !staged.is_empty() {
            self.seal(io, &mut secure.session, &mut secure.transfer, &staged);
            link.blocked |= self.send(io, link.sock);
        }
        staged.clear();
        if staged.capacity() <= RECORD_BYTES {
            self.spare.push(staged);
        }
    }
}

impl Links {
    /// The next connection that has collected bytes; called at the end of a round.
    #[inline]
    pub fn next_gathering(&mut self) -> Option<ConnId> {
        self.outgoing.gathering.pop()
    }

    /// Encrypts and sends the collected bytes of a connection.
    pub fn flush<D: Driver>(&mut self, io: &mut D, id: ConnId) {
        if let Some(link) = self.links.get_mut(id.into())
            && !link.blocked
        {
            self.outgoing.flush(io, link);
        }
    }

    /// A connection's socket takes bytes again: schedules its collected bytes.
    pub fn unblocked(&mut self, id: ConnId) {
        let secure = self
            .links
            .get(id.into())
            .and_then(|link| link.secure.as_ref());
        if secure.is_some_and(|secure| secure.is_gathering) {
            self.outgoing.gathering.push(id);
        }
    }

    /// Whether the number of collecting connections requires sending before the end of the round.
    #[inline]
    pub fn gather_enough(&self) -> bool {
        self.outgoing.gathering.len() >= GATHERING_MAX
    }

    /// Sends the collected bytes and then the TLS close message, if the connection uses TLS.
    pub(super) fn say_end<D: Driver>(&mut self, io: &mut D, id: ConnId) {
        let Some(link) = self.links.get_mut(id.into()) else {
            return;
        };
        self.outgoing.flush(io, link);
        if let Some(secure) = &mut link.secure
            && secure.session.end(&mut self.outgoing.sealed).is_ok()
        {
            self.outgoing.send(io, link.sock);
        }
    }
}
