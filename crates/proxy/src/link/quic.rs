//! QUIC below a connection of HTTP/3. Records ([`quic::Records`]) carry what comes on its streams and
//! what is sent on them, in place of a connection's bytes. The driver does not know the connection.
//! Its datagrams belong to the socket of a listener, or to a socket that is connected to a server.

use std::net::SocketAddr;

use net::timers::TimerId;
use net::{DatagramSock, Message, Sent, SockId};
use quic::{Client, Connection, Records};
use tls::quic::QuicConnector;

use super::Links;
use crate::ids::{ConnId, ExchangeId, ProxyId, QuicUser};
use crate::shared::TlsPlace;

/// The name of a socket that no driver has: of connections without one.
pub(crate) const NO_SOCKET: SockId = SockId {
    slot: u32::MAX,
    generation: u32::MAX,
};

/// HTTP/3's code for the end of a connection that is not needed any more (RFC 9114 §8.1).
const NO_ERROR: u64 = 0x100;

/// The QUIC connection of a link.
#[derive(Debug)]
pub(crate) struct Quic {
    pub connection: Box<Connection>,
    /// The socket that has its datagrams.
    pub sock: DatagramSock,
    /// Who has it.
    pub user: QuicUser,
    /// The client has not yet shown that it has its address (RFC 9000 §8.1). A gauge counts these.
    pub is_half_open: bool,
    /// How often the socket had no room for its datagrams.
    pub without_room: u64,
    /// Reports of the network that the server receives nothing, in a row.
    refusals: u32,
    /// How many datagrams had come at the last of them.
    received_then: u64,
    /// The timer of the connection's next deadline.
    pub timer: TimerId,
    /// Its handshake is complete.
    pub is_established: bool,
    /// When the handshake of a client whose early data is served has to be complete, monotonic
    /// milliseconds.
    pub early_ends_ms: Option<u64>,
    /// It is in the list of connections that may have datagrams to send.
    is_touched: bool,
    records: Records,
    /// Its place in the count of TLS connections.
    place: Option<TlsPlace>,
}

impl Quic {
    pub fn new(
        connection: Box<Connection>,
        sock: DatagramSock,
        user: QuicUser,
        timer: TimerId,
        place: TlsPlace,
    ) -> Box<Quic> {
        Box::new(Quic {
            connection,
            sock,
            user,
            is_half_open: false,
            without_room: 0,
            refusals: 0,
            received_then: 0,
            timer,
            is_established: false,
            early_ends_ms: None,
            is_touched: false,
            records: Records::default(),
            place: Some(place),
        })
    }

    /// The network reports that the server receives nothing. Returns how many such reports there were
    /// since its last datagram.
    pub fn refused(&mut self) -> u32 {
        let received = self.connection.received_datagrams();
        if std::mem::replace(&mut self.received_then, received) != received {
            self.refusals = 0;
        }
        self.refusals += 1;
        self.refusals
    }

    /// Nothing has been sent or received on streams.
    pub fn begin_again(&mut self) {
        self.records = Records::default();
    }

    /// Writes the records of the codec to the streams.
    pub fn send(&mut self, records: &[u8]) {
        self.records.send(&mut self.connection, records);
    }

    /// Appends the records of what came, until there are `most` bytes of them.
    pub fn receive(&mut self, most: usize, records: &mut Vec<u8>) {
        self.records.receive(&mut self.connection, most, records);
    }

    /// Closes the connection if that was asked for.
    pub fn close_if_asked(&mut self, now_ns: u64) {
        self.records.close_if_asked(&mut self.connection, now_ns);
    }

    /// The link has ended. With `abort`, what was sent and not acknowledged may be lost.
    pub fn leave(&mut self, abort: bool) {
        if abort {
            self.end();
        }
    }

    /// The connection is closed: it no longer counts as one with TLS, although it may still answer its
    /// peer for a while.
    pub fn free_place(&mut self) {
        self.place = None;
    }

    /// Closes the connection with the next datagrams. If its end was asked for before, that code is
    /// used.
    pub fn end(&mut self) {
        self.records.ask_to_close(NO_ERROR);
    }
}

/// A connection to a server that is to begin: what the engine needs for it.
pub(crate) struct Dial {
    pub conn: ConnId,
    pub backend: ProxyId,
    pub sock: SockId,
    pub to: SocketAddr,
    pub client: Client,
    pub tls: QuicConnector,
    pub place: TlsPlace,
}

impl std::fmt::Debug for Dial {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dial")
            .field("conn", &self.conn)
            .field("sock", &self.sock)
            .field("to", &self.to)
            .finish_non_exhaustive()
    }
}

impl Links {
    /// A connection to a server is to begin over QUIC.
    pub fn dial(&mut self, dial: Dial) {
        self.dials.push(dial);
    }

    /// The next connection that is to begin.
    pub fn next_dial(&mut self) -> Option<Dial> {
        self.dials.pop()
    }

    /// Whether connections are to begin.
    pub fn has_dials(&self) -> bool {
        !self.dials.is_empty()
    }

    /// Sends a message whose parts are records.
    #[cold]
    pub(super) fn send_records(&mut self, conn: ConnId, message: Message<'_>) -> Sent {
        if let Some(quic) = self.quic_mut(conn) {
            for part in [message.head, message.body, message.tail] {
                quic.send(part);
            }
            self.touch(conn);
        }
        Sent {
            taken: message.body.len(),
            blocked: false,
        }
    }

    /// The QUIC connections whose links have ended since the last call.
    #[expect(clippy::vec_box, reason = "links and the engine keep them on the heap")]
    pub fn take_leaving(&mut self) -> Vec<Box<Quic>> {
        std::mem::take(&mut self.leaving)
    }

    /// Takes the QUIC connections off all links, as if these had ended.
    pub fn take_quics_off(&mut self) {
        for slot in 0..self.slots() {
            let link = self.at(slot);
            let quic = link.and_then(|id| self.get_mut(id)?.quic.take());
            self.leaving.extend(quic);
        }
    }

    /// The QUIC connections that [`Links::take_leaving`] takes.
    pub fn leaving(&self) -> &[Box<Quic>] {
        &self.leaving
    }

    /// Checks that every connection that counts as listed is. Visits every connection, so it is for
    /// tests only.
    ///
    /// # Errors
    /// Datagrams of this connection would not be sent.
    pub fn audit_touched(&self) -> Result<(), String> {
        for (id, link) in self.iter() {
            let conn = ConnId::of(id);
            let is_touched = link.quic.as_ref().is_some_and(|quic| quic.is_touched);
            if is_touched && !self.touched.contains(&conn) {
                return Err(format!("{conn:?} is not among the touched: {link:?}"));
            }
        }
        Ok(())
    }

    /// Notes that a QUIC connection may have datagrams to send.
    pub fn touch(&mut self, conn: ConnId) {
        if let Some(quic) = self.get_mut(conn).and_then(|link| link.quic.as_mut())
            && !std::mem::replace(&mut quic.is_touched, true)
        {
            self.touched.push(conn);
        }
    }

    /// The next connection that may have datagrams to send. It counts as listed until
    /// [`Links::untouch`].
    pub fn next_touched(&mut self) -> Option<ConnId> {
        self.touched.pop()
    }

    /// Lists the connections again that count as listed: a panic may have been at work on one.
    pub fn list_touched(&mut self) {
        self.touched.clear();
        for slot in 0..self.slots() {
            let link = self.at(slot).and_then(|id| Some((id, self.get(id)?)));
            if let Some((id, link)) = link
                && link.quic.as_ref().is_some_and(|quic| quic.is_touched)
            {
                self.touched.push(ConnId::of(id));
            }
        }
    }

    /// Everything that a connection has to send is about to be sent.
    pub fn untouch(&mut self, conn: ConnId) {
        if let Some(quic) = self.quic_mut(conn) {
            quic.is_touched = false;
        }
    }

    /// The QUIC connection of a link.
    pub fn quic(&self, conn: ConnId) -> Option<&Quic> {
        self.get(conn)?.quic.as_deref()
    }

    /// The QUIC connection that an exchange is on.
    pub fn quic_of(&self, exchange: ExchangeId) -> Option<&Quic> {
        self.quic(self.connection_of(exchange)?)
    }

    /// The same of a link, to be changed.
    pub fn quic_mut(&mut self, conn: ConnId) -> Option<&mut Quic> {
        self.get_mut(conn)?.quic.as_deref_mut()
    }
}
