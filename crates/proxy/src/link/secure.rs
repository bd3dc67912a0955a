//! TLS of connections. What comes is opened in [`crate::engine`]; what leaves is gathered for a round and sealed here, so that a head
//! and its body are one record.

use config::model::TlsGlobal;
use net::{Driver, Message, Sent, SockId};
use tls::{Buffer, Session};

use super::{Link, Links};
use crate::ids::LinkId;
use crate::shared::TlsPlace;

/// What a connection gathers before it is sealed.
const STAGE_BYTES_MAX: usize = 4 << 10;
/// The payload of a full record (RFC 8446 §5.1).
const RECORD_BYTES: usize = 16 << 10;
/// Payload that is sealed before the driver is asked whether it takes more.
const SEAL_BYTES_MAX: usize = 64 << 10;
/// A transfer has begun as long as it has not sent more than this.
const TRANSFER_BEGINNING_BYTES: usize = 32 << 10;
/// Connections that gather at a time: the first of a long round does not wait for the last.
const GATHERING_MAX: usize = 32;

/// A connection's TLS.
#[derive(Debug)]
pub(crate) struct Secure {
    pub session: Session,
    /// It counts as a TLS connection.
    _place: TlsPlace,
    /// What is to be sealed at the end of the round.
    staged: Vec<u8>,
    is_gathering: bool,
    transfer: Transfer,
}

/// What was sent without a pause.
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

    /// Whether nothing waits to be sealed.
    pub fn is_quiet(&self) -> bool {
        self.staged.is_empty() && !self.is_gathering
    }
}

/// Where a message goes.
pub(super) struct Wire<'a> {
    pub id: LinkId,
    pub sock: SockId,
    pub blocked: bool,
    pub secure: Option<&'a mut Secure>,
}

impl Wire<'_> {
    /// The same for one more message.
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

/// Records are shorter at the beginning of a transfer, so that its first bytes can be read before many have come (`tune.ssl.maxrecord`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShortRecords {
    /// Payload of a record.
    bytes: usize,
    /// A transfer begins anew after such a pause (`tune.idletimer`).
    idle_ms: u64,
}

impl ShortRecords {
    /// As configured; none where records are as long as they can be.
    pub fn new(global: &TlsGlobal) -> Option<ShortRecords> {
        Some(ShortRecords {
            bytes: global.maxrecord_bytes? as usize,
            idle_ms: global.idletimer.as_millis() as u64,
        })
    }
}

impl Transfer {
    /// So many bytes are to be sent; how many of them belong to the beginning.
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

/// What a worker's connections share for sealing.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    short: Option<ShortRecords>,
    sealed: Buffer,
    gathering: Vec<LinkId>,
    /// Memory for what is gathered.
    spare: Vec<Vec<u8>>,
}

impl Outgoing {
    /// Seals bytes behind what is sealed. A session whose keys may serve no more says nothing any more.
    fn seal<D: Driver>(
        &mut self,
        io: &D,
        session: &mut Session,
        transfer: &mut Transfer,
        bytes: &[u8],
    ) {
        let mut rest = bytes;
        if let Some(short) = &self.short {
            let beginning = transfer.note(bytes.len(), io.now().ms(), short);
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

    /// Sends what is sealed.
    fn send<D: Driver>(&mut self, io: &mut D, sock: SockId) -> bool {
        if self.sealed.is_empty() {
            return false;
        }
        // Whatever happens, no other connection gets these.
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
        (id, sock, was_blocked): (LinkId, SockId, bool),
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
            // It is sealed once its socket takes more; as much waits here as else would with the driver.
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
            // The first record is filled up, the others are sealed from where the payload is.
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

    /// Seals and sends what a connection has gathered.
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
    /// None yet. `short`: see [`ShortRecords`].
    pub fn new(short: Option<ShortRecords>) -> Links {
        let mut links = Links::default();
        links.outgoing.short = short;
        links
    }

    /// A connection that has gathered something, at the end of a round.
    #[inline]
    pub fn next_gathering(&mut self) -> Option<LinkId> {
        self.outgoing.gathering.pop()
    }

    /// Seals and sends what a connection has gathered.
    pub fn flush<D: Driver>(&mut self, io: &mut D, id: LinkId) {
        if let Some(link) = self.links.get_mut(id)
            && !link.blocked
        {
            self.outgoing.flush(io, link);
        }
    }

    /// A connection's socket takes bytes again: what it has gathered leaves.
    pub fn unblocked(&mut self, id: LinkId) {
        let secure = self.links.get(id).and_then(|link| link.secure.as_ref());
        if secure.is_some_and(|secure| secure.is_gathering) {
            self.outgoing.gathering.push(id);
        }
    }

    /// So many gather that they do not wait for the end of the round.
    #[inline]
    pub fn gather_enough(&self) -> bool {
        self.outgoing.gathering.len() >= GATHERING_MAX
    }

    /// What is gathered leaves, and behind it that no more follows, if the connection speaks TLS.
    pub(super) fn say_end<D: Driver>(&mut self, io: &mut D, id: LinkId) {
        let Some(link) = self.links.get_mut(id) else {
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
