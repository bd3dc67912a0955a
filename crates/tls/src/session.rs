//! One connection's TLS, of either side.

use std::fmt;
use std::sync::Arc;

use rustls::client::UnbufferedClientConnection;
use rustls::server::UnbufferedServerConnection;
use rustls::unbuffered::{
    ConnectionState, EncodeError, EncryptError, UnbufferedStatus, WriteTraffic,
};
use rustls::{CertificateError, CommonState, Error, HandshakeKind, ProtocolVersion};

use crate::verify::ClientVerifier;
use crate::{Buffer, Version, resolver};

/// The header of a record (RFC 8446 §5.1).
const RECORD_HEADER_BYTES: usize = 5;
/// What waits of a peer's handshake at most: messages may go over several records, and the library bounds each to 64 KiB.
const PENDING_BYTES_MAX: usize = 128 << 10;

/// A connection's TLS: bytes of the wire in, plain bytes out, and back.
pub struct Session {
    side: Side,
    /// Bytes that came and are no whole record or message yet.
    pending: Vec<u8>,
    is_established: bool,
    has_ended: bool,
    /// A failure was told: the library is not asked any more.
    has_failed: bool,
    has_early_data: bool,
    /// Early data is delivered before the handshake is over, and may be answered then.
    serves_early: bool,
    server_name: Option<Box<str>>,
    /// The certificate that the client gets.
    own: Option<Arc<[u8]>>,
    /// Who looks at the client's certificate again.
    verifier: Option<Arc<ClientVerifier>>,
}

enum Side {
    Server(Box<UnbufferedServerConnection>),
    Client(Box<UnbufferedClientConnection>),
}

/// What became of bytes of the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of the input that were used or copied; fewer than were given only where the room for plain bytes was used up.
    pub used: usize,
    /// The handshake ended with these bytes.
    pub is_established: bool,
    /// The peer has said that it will send no more (`close_notify`, RFC 8446 §6.1).
    pub has_ended: bool,
}

/// Why a connection cannot go on. An alert for the peer was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What kind of failure it is.
    pub kind: FailureKind,
    /// In words.
    pub text: String,
}

/// See [`Failure`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// What the peer sends breaks the protocol, or nothing can be agreed on.
    Protocol,
    /// The peer's certificate is not trusted.
    Certificate,
    /// No authority that is trusted has issued the peer's certificate.
    Authority,
    /// The certificate is not for the name that was asked for.
    Name,
    /// The peer sent an alert with this code (RFC 8446 §6).
    Alert(u8),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Failure {}

impl Failure {
    fn after_another() -> Failure {
        Failure {
            kind: FailureKind::Protocol,
            text: "the session has failed".to_owned(),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let kind = match &error {
            Error::AlertReceived(alert) => FailureKind::Alert(u8::from(*alert)),
            Error::InvalidCertificate(why) => match why {
                CertificateError::UnknownIssuer => FailureKind::Authority,
                CertificateError::NotValidForName
                | CertificateError::NotValidForNameContext { .. } => FailureKind::Name,
                _ => FailureKind::Certificate,
            },
            Error::NoCertificatesPresented => FailureKind::Certificate,
            _ => FailureKind::Protocol,
        };
        Failure {
            kind,
            text: error.to_string(),
        }
    }
}

/// What was agreed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The version.
    pub version: Version,
    /// The cipher suite, by its IANA number.
    pub suite: u16,
    /// The group of the key exchange, by its IANA number.
    pub group: Option<u16>,
    /// The application's protocol (ALPN).
    pub protocol: Option<Box<[u8]>>,
    /// The name that the client asked for (SNI); of sessions with clients only.
    pub server_name: Option<Box<str>>,
    /// It goes on with the keys of an earlier session.
    pub is_resumed: bool,
    /// The client sent data along with its first message.
    pub has_early_data: bool,
    /// The certificate that a client got, DER.
    pub own: Option<Arc<[u8]>>,
    /// What is wrong with the peer's certificate, by OpenSSL's numbers (`X509_V_ERR_*`); 0 is nothing. Else than 0 only where that did
    /// not end the handshake.
    pub verify: u8,
    /// The authority that a client's certificate was traced to, DER.
    pub root: Option<Arc<[u8]>>,
    /// The peer's certificate and what it sent of its chain, DER.
    pub peer: Vec<Box<[u8]>>,
}

/// What to do after a state.
enum Step {
    Again,
    Enough,
    Ended,
}

impl Session {
    pub(crate) fn of_server(
        connection: UnbufferedServerConnection,
        verifier: Option<Arc<ClientVerifier>>,
        serves_early: bool,
    ) -> Session {
        Session {
            verifier,
            serves_early,
            ..Session::new(Side::Server(Box::new(connection)))
        }
    }

    pub(crate) fn of_client(connection: UnbufferedClientConnection) -> Session {
        Session::new(Side::Client(Box::new(connection)))
    }

    fn new(side: Side) -> Session {
        Session {
            side,
            pending: Vec::new(),
            is_established: false,
            has_ended: false,
            has_failed: false,
            has_early_data: false,
            serves_early: false,
            server_name: None,
            own: None,
            verifier: None,
        }
    }

    /// Whether the handshake is over.
    #[must_use]
    pub fn is_established(&self) -> bool {
        self.is_established
    }

    /// Whether early data came (RFC 8446 §4.2.10) that may be answered before the handshake is over. It may be a copy of what the
    /// client sent to someone else until then.
    #[must_use]
    pub fn is_early(&self) -> bool {
        self.has_early_data && self.serves_early && !self.is_established && !self.has_failed
    }

    /// Writes what is to be said first: a client's hello.
    ///
    /// # Errors
    /// See [`Failure`].
    pub fn start(&mut self, out: &mut Buffer) -> Result<(), Failure> {
        let mut plain = Buffer::default();
        self.read(&mut [], usize::MAX, &mut plain, out).map(|_| ())
    }

    /// Reads bytes of the wire, which are overwritten. Plain bytes go to `plain` until it has `room` of them or more, what is to be
    /// sent to `out`, also in case of a failure. What is no whole record yet is kept; no whole record is.
    ///
    /// # Errors
    /// See [`Failure`]. Nothing is read or written after it.
    pub fn read(
        &mut self,
        input: &mut [u8],
        room: usize,
        plain: &mut Buffer,
        out: &mut Buffer,
    ) -> Result<Progress, Failure> {
        if self.has_failed {
            return Err(Failure::after_another());
        }
        let was_established = self.is_established;
        let mut used = 0;
        while !self.pending.is_empty() && used < input.len() && plain.len() < room {
            let missing = match self.is_established {
                true => missing_bytes(&self.pending).max(1),
                false => input.len(),
            };
            let count = missing.min(input.len() - used);
            if self.pending.len() + count > PENDING_BYTES_MAX {
                self.has_failed = true;
                return Err(Failure {
                    kind: FailureKind::Protocol,
                    text: "a message is too long".to_owned(),
                });
            }
            self.pending.extend_from_slice(&input[used..used + count]);
            used += count;
            let mut pending = std::mem::take(&mut self.pending);
            let taken = self.process(&mut pending, room, plain, out)?;
            pending.drain(..taken);
            if plain.len() >= room {
                // Whole records may be left, which nobody would look at before more bytes come: they stay with the input.
                let back = pending.len().min(count);
                pending.truncate(pending.len() - back);
                used -= back;
            }
            self.pending = pending;
        }
        if self.pending.is_empty() && plain.len() < room {
            let rest = &mut input[used..];
            let taken = self.process(rest, room, plain, out)?;
            used += taken;
            let rest = &input[used..];
            if !rest.is_empty() && plain.len() < room && !self.has_ended {
                self.pending.extend_from_slice(rest);
                used = input.len();
            }
        }
        if self.has_ended {
            // Nothing that comes now has a meaning.
            used = input.len();
            self.pending = Vec::new();
        }
        if self.pending.is_empty() && self.pending.capacity() > 0 {
            self.pending = Vec::new();
        }
        Ok(Progress {
            used,
            is_established: self.is_established && !was_established,
            has_ended: self.has_ended,
        })
    }

    /// Processes records that lie in a buffer. How many bytes are done with.
    fn process(
        &mut self,
        bytes: &mut [u8],
        room: usize,
        plain: &mut Buffer,
        out: &mut Buffer,
    ) -> Result<usize, Failure> {
        let mut done = 0;
        loop {
            let rest = &mut bytes[done..];
            let (discard, step) = match &mut self.side {
                Side::Server(connection) => {
                    let UnbufferedStatus { discard, state, .. } =
                        connection.process_tls_records(rest);
                    let step = match state {
                        Ok(ConnectionState::ReadEarlyData(mut early)) => {
                            self.has_early_data = true;
                            while let Some(record) = early.next_record() {
                                plain.extend_from_slice(record?.payload);
                            }
                            Ok(Step::Again)
                        }
                        Ok(state) => step(state, plain, out),
                        Err(error) => Err(error),
                    };
                    (discard, step)
                }
                Side::Client(connection) => {
                    let UnbufferedStatus { discard, state, .. } =
                        connection.process_tls_records(rest);
                    (discard, state.and_then(|state| step(state, plain, out)))
                }
            };
            done += discard;
            match step {
                Ok(Step::Again) if plain.len() < room => {}
                Ok(Step::Again) => break,
                Ok(Step::Enough) => break,
                Ok(Step::Ended) => {
                    self.has_ended = true;
                    break;
                }
                Err(error) => {
                    self.last_words(&mut bytes[done..], out);
                    self.has_failed = true;
                    return Err(error.into());
                }
            }
        }
        if !self.is_established {
            if let Some(chosen) = resolver::take_chosen() {
                (self.server_name, self.own) = (chosen.asked, chosen.own);
            }
            self.is_established = !self.common().is_handshaking();
        }
        Ok(done)
    }

    /// What the library has to say after a failure. It must see the bytes that are left, whose places it remembers, but not read
    /// them again: it is asked as long as it has something to say.
    fn last_words(&mut self, rest: &mut [u8], out: &mut Buffer) {
        let mut plain = Buffer::default();
        while self.common().wants_write() {
            let said = match &mut self.side {
                Side::Server(connection) => {
                    let state = connection.process_tls_records(rest).state;
                    state.and_then(|state| step(state, &mut plain, out))
                }
                Side::Client(connection) => {
                    let state = connection.process_tls_records(rest).state;
                    state.and_then(|state| step(state, &mut plain, out))
                }
            };
            if said.is_err() {
                break;
            }
        }
    }

    /// Writes plain bytes for the wire. All of them, or none where the handshake does not allow it yet: then false.
    ///
    /// # Errors
    /// The keys have served as long as they may.
    pub fn write(&mut self, bytes: &[u8], out: &mut Buffer) -> Result<bool, Failure> {
        self.with_writer(out, |writer, out| {
            let records = bytes.len() / RECORD_BYTES + 1;
            let room = bytes.len() + records * RECORD_OVERHEAD_BYTES_MAX;
            out.write_with(room, |room| writer.encrypt(bytes, room))
        })
    }

    /// Writes that no more bytes follow.
    ///
    /// # Errors
    /// As [`Session::write`].
    pub fn end(&mut self, out: &mut Buffer) -> Result<bool, Failure> {
        self.with_writer(out, |mut writer, out| {
            out.write_with(RECORD_OVERHEAD_BYTES_MAX, |room| {
                writer.queue_close_notify(room)
            })
        })
    }

    fn with_writer(
        &mut self,
        out: &mut Buffer,
        write: impl FnOnce(Writer<'_>, &mut Buffer) -> Result<(), EncryptError>,
    ) -> Result<bool, Failure> {
        if self.has_failed || !(self.is_established || self.is_early()) {
            // The library remembers places of bytes that are no more.
            return Ok(false);
        }
        let mut plain = Buffer::default();
        let written = loop {
            // What the library has to say itself goes first.
            let step = match &mut self.side {
                Side::Server(connection) => {
                    match connection.process_tls_records(&mut self.pending).state? {
                        ConnectionState::WriteTraffic(traffic) => {
                            break write(Writer::Server(traffic), out);
                        }
                        state => step(state, &mut plain, out)?,
                    }
                }
                Side::Client(connection) => {
                    match connection.process_tls_records(&mut self.pending).state? {
                        ConnectionState::WriteTraffic(traffic) => {
                            break write(Writer::Client(traffic), out);
                        }
                        state => step(state, &mut plain, out)?,
                    }
                }
            };
            if !matches!(step, Step::Again) {
                return Ok(false);
            }
        };
        debug_assert!(plain.is_empty(), "plain bytes are read first");
        match written {
            Ok(()) => Ok(true),
            Err(error) => Err(Failure {
                kind: FailureKind::Protocol,
                text: error.to_string(),
            }),
        }
    }

    fn common(&self) -> &CommonState {
        match &self.side {
            Side::Server(connection) => connection,
            Side::Client(connection) => connection,
        }
    }

    /// The application's protocol that was agreed on (ALPN).
    #[must_use]
    pub fn protocol(&self) -> Option<&[u8]> {
        self.common().alpn_protocol()
    }

    /// What was agreed on; none before both sides have chosen.
    #[must_use]
    pub fn facts(&self) -> Option<Facts> {
        let common = self.common();
        let version = match common.protocol_version()? {
            ProtocolVersion::TLSv1_2 => Version::Tls12,
            ProtocolVersion::TLSv1_3 => Version::Tls13,
            _ => return None,
        };
        let group = common.negotiated_key_exchange_group();
        let peer = common.peer_certificates().unwrap_or_default();
        Some(Facts {
            version,
            suite: u16::from(common.negotiated_cipher_suite()?.suite()),
            group: group.map(|group| u16::from(group.name())),
            protocol: common.alpn_protocol().map(Into::into),
            server_name: self.server_name.clone(),
            is_resumed: common.handshake_kind() == Some(HandshakeKind::Resumed),
            has_early_data: self.has_early_data,
            own: self.own.clone(),
            verify: match &self.verifier {
                Some(verifier) => verifier.verdict(peer),
                None => 0,
            },
            root: self
                .verifier
                .as_ref()
                .and_then(|verifier| verifier.root_of(peer)),
            peer: peer.iter().map(|each| each.as_ref().into()).collect(),
        })
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("is_established", &self.is_established)
            .field("has_ended", &self.has_ended)
            .field("pending", &self.pending.len())
            .finish_non_exhaustive()
    }
}

/// The payload of a full record (RFC 8446 §5.1).
const RECORD_BYTES: usize = 1 << 14;
/// What a record has beside its payload at most: header, explicit nonce, kind, tag.
const RECORD_OVERHEAD_BYTES_MAX: usize = 64;

enum Writer<'a> {
    Server(WriteTraffic<'a, rustls::server::ServerConnectionData>),
    Client(WriteTraffic<'a, rustls::client::ClientConnectionData>),
}

impl Writer<'_> {
    fn encrypt(self, bytes: &[u8], room: &mut [u8]) -> Result<usize, EncryptError> {
        match self {
            Writer::Server(mut traffic) => traffic.encrypt(bytes, room),
            Writer::Client(mut traffic) => traffic.encrypt(bytes, room),
        }
    }

    fn queue_close_notify(&mut self, room: &mut [u8]) -> Result<usize, EncryptError> {
        match self {
            Writer::Server(traffic) => traffic.queue_close_notify(room),
            Writer::Client(traffic) => traffic.queue_close_notify(room),
        }
    }
}

/// How many bytes of the first record are missing, or of its header.
fn missing_bytes(bytes: &[u8]) -> usize {
    match bytes {
        [_, _, _, high, low, rest @ ..] => {
            usize::from(u16::from_be_bytes([*high, *low])).saturating_sub(rest.len())
        }
        _ => RECORD_HEADER_BYTES - bytes.len(),
    }
}

/// Does what a state asks for.
fn step<Data>(
    state: ConnectionState<'_, '_, Data>,
    plain: &mut Buffer,
    out: &mut Buffer,
) -> Result<Step, Error> {
    match state {
        ConnectionState::ReadTraffic(mut traffic) => {
            while let Some(record) = traffic.next_record() {
                plain.extend_from_slice(record?.payload);
            }
            Ok(Step::Again)
        }
        ConnectionState::EncodeTlsData(mut message) => {
            let needed = match message.encode(&mut []) {
                Err(EncodeError::InsufficientSize(size)) => size.required_size,
                Ok(_) | Err(EncodeError::AlreadyEncoded) => return Ok(Step::Again),
            };
            let encoded = out.write_with(needed, |room| message.encode(room));
            encoded.map_err(|error| Error::General(error.to_string()))?;
            Ok(Step::Again)
        }
        ConnectionState::TransmitTlsData(transmit) => {
            transmit.done();
            Ok(Step::Again)
        }
        ConnectionState::PeerClosed | ConnectionState::Closed => Ok(Step::Ended),
        // Without any more bytes, nothing goes on.
        _ => Ok(Step::Enough),
    }
}
