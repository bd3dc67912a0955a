//! QUIC below a connection of HTTP/3. What comes on its streams is handed up as records
//! ([`http::h3::record`]), as if they were the bytes of a connection, and what is sent is records
//! too. The driver knows nothing of such a connection: its datagrams are those of the listener's
//! socket.

use http::h3::record::{self, Kind, Record};
use net::timers::TimerId;
use net::{ListenerId, Message, Sent, SockId};
use quic::{Connection, Received};

use super::Links;
use crate::ids::{ConnId, ProxyId};
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
    /// The listener whose socket has its datagrams.
    pub listener: ListenerId,
    /// Who counts it.
    pub frontend: ProxyId,
    /// The client has not shown yet that it has its address, which a gauge counts.
    pub is_half_open: bool,
    /// How often the socket had no room for its datagrams.
    pub without_room: u64,
    /// When it has to be looked at although nothing comes.
    pub timer: TimerId,
    /// Its handshake is complete.
    pub is_established: bool,
    /// It is among the connections that have datagrams to send.
    is_touched: bool,
    /// Records that the codec has given back, to be read again.
    echoes: Vec<u8>,
    /// What closes it: a code and a reason.
    close: Option<(u64, Vec<u8>)>,
    /// Its place in the count of TLS connections.
    _place: TlsPlace,
}

impl Quic {
    pub fn new(
        connection: Box<Connection>,
        listener: ListenerId,
        frontend: ProxyId,
        timer: TimerId,
        place: TlsPlace,
    ) -> Box<Quic> {
        Box::new(Quic {
            connection,
            listener,
            frontend,
            is_half_open: false,
            without_room: 0,
            timer,
            is_established: false,
            is_touched: false,
            echoes: Vec::new(),
            close: None,
            _place: place,
        })
    }

    /// Writes the records of the codec to the streams.
    pub fn send(&mut self, mut records: &[u8]) {
        let connection = &mut self.connection;
        while let Ok(Some((record, bytes))) = Record::read(records) {
            let stream = record.head.stream;
            match record.head.kind {
                Kind::Data => connection.write(stream, record.payload, record.head.end),
                Kind::Fin => connection.write(stream, b"", true),
                Kind::Reset => connection.reset(stream, record.number()),
                Kind::Stop => connection.stop(stream, record.number()),
                Kind::Consumed => connection.consumed(stream, record.number()),
                Kind::Priority => connection.prioritize(stream, record.priority()),
                Kind::Echo => self.echoes.extend_from_slice(&records[..bytes]),
                Kind::Close => {
                    self.close
                        .get_or_insert_with(|| (record.number(), record.reason().to_vec()));
                }
                // These go the other way.
                Kind::Stopped | Kind::Written | Kind::Streams => {}
            }
            records = &records[bytes..];
        }
    }

    /// Appends the records of what came, until there are `most` bytes of them. What was given back
    /// comes behind all that has come meanwhile.
    pub fn receive(&mut self, most: usize, records: &mut Vec<u8>) {
        while records.len() < most {
            let Some(received) = self.connection.receive() else {
                records.append(&mut self.echoes);
                return;
            };
            match received {
                Received::Data {
                    stream,
                    bytes,
                    ends,
                } => record::data(stream, &bytes, ends, records),
                Received::Fin(stream) => record::fin(stream, records),
                Received::Reset { stream, code } => record::reset(stream, code, records),
                Received::Stopped { stream, code } => record::stopped(stream, code, records),
                Received::Written { stream, bytes } => {
                    record::written(stream.unwrap_or(record::CONNECTION), bytes, records);
                }
            }
        }
    }

    /// Closes the connection if that was asked for.
    pub fn close_if_asked(&mut self, now_ns: u64) {
        if let Some((code, reason)) = self.close.take() {
            self.connection.close(now_ns, code, &reason);
        }
    }

    /// The link has ended. With `abort`, what was sent and not acknowledged may be lost.
    pub fn leave(&mut self, abort: bool) {
        if abort {
            self.end();
        }
    }

    /// The connection is closed with the next datagrams, unless that was asked for already: the
    /// first reason counts.
    pub fn end(&mut self) {
        self.close.get_or_insert((NO_ERROR, Vec::new()));
    }
}

impl Links {
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

    /// Notes that a QUIC connection may have datagrams to send.
    pub fn touch(&mut self, conn: ConnId) {
        if let Some(quic) = self.get_mut(conn).and_then(|link| link.quic.as_mut())
            && !std::mem::replace(&mut quic.is_touched, true)
        {
            self.touched.push(conn);
        }
    }

    /// The next connection that may have datagrams to send.
    pub fn next_touched(&mut self) -> Option<ConnId> {
        let conn = self.touched.pop()?;
        if let Some(quic) = self.get_mut(conn).and_then(|link| link.quic.as_mut()) {
            quic.is_touched = false;
        }
        Some(conn)
    }

    /// The QUIC connection of a link.
    pub fn quic_mut(&mut self, conn: ConnId) -> Option<&mut Quic> {
        self.get_mut(conn)?.quic.as_deref_mut()
    }
}
