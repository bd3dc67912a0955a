//! The TLS session of one connection, on either side.

use std::fmt;
use std::sync::Arc;

use rustls::client::UnbufferedClientConnection;
use rustls::server::UnbufferedServerConnection;
use rustls::unbuffered::{
    ConnectionState, EncodeError, EncryptError, UnbufferedStatus, WriteTraffic,
};
use rustls::{CommonState, Error, HandshakeKind, ProtocolVersion};

use crate::failure::{Failure, HTTP_METHOD_BYTES, Reason, is_http};
use crate::hello::{HelloReader, Reading, fatal_alert};
use crate::secrets::{self, Secrets};
use crate::verify::{ClientVerifier, RefusedClient};
use crate::{Acceptor, Buffer, Version, resolver, verify};

/// The header of a record (RFC 8446 §5.1).
const RECORD_HEADER_BYTES: usize = 5;
/// The most pending bytes of a peer's handshake: messages may span several records, and the library
/// limits each to 64 KiB.
const PENDING_BYTES_MAX: usize = 128 << 10;
/// Alerts (RFC 8446 §6.2).
const DECODE_ERROR: u8 = 50;
const INTERNAL_ERROR: u8 = 80;

/// A TLS session: turns bytes from the wire into plain bytes, and plain bytes into bytes for the
/// wire.
pub struct Session {
    side: Side,
    /// Received bytes that are not a whole record or message yet.
    pending: Vec<u8>,
    is_established: bool,
    has_ended: bool,
    /// A failure was returned: the library is not called any more.
    has_failed: bool,
    has_early_data: bool,
    /// Early data is delivered, and may be answered, before the handshake is over.
    serves_early: bool,
    server_name: Option<Box<str>>,
    /// The certificate that the client gets.
    own: Option<Arc<[u8]>>,
    /// Checks the client's certificate again.
    verifier: Option<Arc<ClientVerifier>>,
    /// The verifier refused the client.
    refused: Option<Box<RefusedClient>>,
    /// The secrets so far; none if they are not kept.
    secrets: Option<Box<Secrets>>,
}

enum Side {
    /// A server whose acceptor is chosen when the client's hello is complete.
    Undecided(HelloReader),
    Server(Box<UnbufferedServerConnection>),
    Client(Box<UnbufferedClientConnection>),
}

/// What a server's session begins with.
pub(crate) struct Server {
    pub connection: Box<UnbufferedServerConnection>,
    pub verifier: Option<Arc<ClientVerifier>>,
    pub serves_early: bool,
    pub secrets: Option<Box<Secrets>>,
}

/// The result of reading bytes from the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of the input that were used or copied; fewer than given only if the room for plain
    /// bytes was used up.
    pub used: usize,
    /// These bytes completed the handshake.
    pub is_established: bool,
    /// The peer has announced that it sends no more (`close_notify`, RFC 8446 §6.1).
    pub has_ended: bool,
    /// The client's hello is complete, or cannot be read: [`Session::accept`] is due.
    pub awaits_acceptor: bool,
}

/// The negotiated parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The version.
    pub version: Version,
    /// The cipher suite, by its IANA number.
    pub suite: u16,
    /// The group of the key exchange, by its IANA number.
    pub group: Option<u16>,
    /// The application protocol (ALPN).
    pub protocol: Option<Box<[u8]>>,
    /// The name that the client requested (SNI); only for sessions with clients.
    pub server_name: Option<Box<str>>,
    /// The session resumes an earlier one.
    pub is_resumed: bool,
    /// The client sent early data.
    pub has_early_data: bool,
    /// The certificate that a client got, DER.
    pub own: Option<Arc<[u8]>>,
    /// The errors in a client's certificates.
    pub verdict: Verdict,
    /// The authority at the end of a client's certificate chain, DER.
    pub root: Option<Arc<[u8]>>,
    /// The peer's certificate and the chain it sent, DER.
    pub peer: Vec<Box<[u8]>>,
    /// Its secrets, if they are kept.
    pub secrets: Option<Box<Secrets>>,
}

/// The errors in a client's certificates, by OpenSSL's numbers (`X509_V_ERR_*`); 0 for none. All
/// were ignored, except for the last one of a client that was refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// The last error.
    pub last: u8,
    /// The first error of the client's own certificate. 0 if the session is a resumed one: no
    /// certificate was checked.
    pub own: u8,
    /// The first error of an issuer's certificate. 0 as before.
    pub issuer: u8,
    /// The position of that certificate in the chain, 1 for the issuer of the client's own.
    pub issuer_depth: u8,
}

/// What to do after a state of the library.
enum Step {
    Again,
    Enough,
    Ended,
}

impl Session {
    /// A session with a client whose hello chooses the acceptor. It reads until
    /// [`Progress::awaits_acceptor`].
    #[must_use]
    pub fn awaiting_hello() -> Session {
        Session::new(Side::Undecided(HelloReader::default()))
    }

    pub(crate) fn begin(&mut self, server: Server) {
        self.side = Side::Server(server.connection);
        self.verifier = server.verifier;
        self.serves_early = server.serves_early;
        self.secrets = server.secrets;
    }

    pub(crate) fn of_client(
        connection: UnbufferedClientConnection,
        secrets: Option<Box<Secrets>>,
    ) -> Session {
        Session {
            secrets,
            ..Session::new(Side::Client(Box::new(connection)))
        }
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
            refused: None,
            secrets: None,
        }
    }

    /// Whether the handshake is over.
    #[must_use]
    pub fn is_established(&self) -> bool {
        self.is_established
    }

    /// Whether early data arrived (RFC 8446 §4.2.10) that may be answered before the handshake is
    /// over. Until then it may be a replay of data that the client sent to another server.
    #[must_use]
    pub fn is_early(&self) -> bool {
        self.has_early_data && self.serves_early && !self.is_established && !self.has_failed
    }

    /// Writes a client's first message, its hello.
    ///
    /// # Errors
    /// See [`Failure`].
    pub fn start(&mut self, out: &mut Buffer) -> Result<(), Failure> {
        let mut plain = Buffer::default();
        self.read(&mut [], usize::MAX, &mut plain, out).map(|_| ())
    }

    /// Reads bytes from the wire, which are overwritten. Plain bytes go to `plain` until it has
    /// `room` of them or more; bytes for the peer go to `out`, also after a failure. Incomplete
    /// records are kept, whole records are not.
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
        if matches!(self.side, Side::Undecided(_)) {
            return self.read_hello(input, out);
        }
        let was_established = self.is_established;
        let mut used = 0;
        while !self.pending.is_empty() && used < input.len() && plain.len() < room {
            let missing = if self.is_established {
                missing_bytes(&self.pending).max(1)
            } else {
                input.len()
            };
            let count = missing.min(input.len() - used);
            if self.pending.len() + count > PENDING_BYTES_MAX {
                self.has_failed = true;
                return Err(Failure::protocol(
                    "a message is too long",
                    Some(Reason::ExcessiveMessageSize),
                ));
            }
            self.pending.extend_from_slice(&input[used..used + count]);
            used += count;
            let mut pending = std::mem::take(&mut self.pending);
            let taken = self.process(&mut pending, room, plain, out)?;
            pending.drain(..taken);
            if plain.len() >= room {
                // Whole records may be left, which would not be processed before more bytes arrive:
                // leave them in the input.
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
            // Later bytes have no meaning.
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
            awaits_acceptor: false,
        })
    }

    /// Collects the records of the client's hello.
    fn read_hello(&mut self, input: &[u8], out: &mut Buffer) -> Result<Progress, Failure> {
        if self.pending.len() + input.len() > PENDING_BYTES_MAX {
            let why = Failure::protocol("a hello is too long", Some(Reason::ExcessiveMessageSize));
            return Err(self.refuse(INTERNAL_ERROR, why, out));
        }
        self.pending.extend_from_slice(input);
        let reading = match &mut self.side {
            Side::Undecided(reader) => reader.read(&self.pending),
            Side::Server(_) | Side::Client(_) => Reading::Unreadable,
        };
        Ok(Progress {
            used: input.len(),
            awaits_acceptor: reading != Reading::Unfinished,
            ..Progress::default()
        })
    }

    /// The client's hello: the handshake message without the headers of its records. None if it is
    /// not complete, cannot be read, or the acceptor was chosen already.
    #[must_use]
    pub fn hello(&self) -> Option<&[u8]> {
        match &self.side {
            Side::Undecided(reader) => reader.hello(&self.pending),
            Side::Server(_) | Side::Client(_) => None,
        }
    }

    /// Continues with the acceptor that was chosen by the name that the client requests
    /// ([`crate::requested_name`]), or because it requests none. If the library reads another name
    /// from the hello, or cannot read it, the client is refused: the acceptor of one name may
    /// demand what that of another does not. `plain` and `out` are as for [`Session::read`].
    ///
    /// # Errors
    /// See [`Failure`].
    pub fn accept(
        &mut self,
        acceptor: &Acceptor,
        name: Option<&str>,
        plain: &mut Buffer,
        out: &mut Buffer,
    ) -> Result<Progress, Failure> {
        if self.has_failed || !matches!(self.side, Side::Undecided(_)) {
            return Err(Failure::after_another());
        }
        self.begin(acceptor.server()?);
        let (plain_before, out_before) = (plain.len(), out.len());
        let mut pending = std::mem::take(&mut self.pending);
        let taken = match self.process(&mut pending, usize::MAX, plain, out) {
            Ok(taken) => taken,
            Err(failure) => {
                // The library has no alert for some errors.
                if out.len() == out_before {
                    out.extend_from_slice(&fatal_alert(DECODE_ERROR));
                }
                return Err(failure);
            }
        };
        // The library has chosen a certificate if it has read a hello.
        if self.own.is_none() || self.server_name.as_deref() != name {
            plain.truncate(plain_before);
            out.truncate(out_before);
            let why = Failure::protocol("the hello cannot be read", Some(Reason::DecodeError));
            return Err(self.refuse(DECODE_ERROR, why, out));
        }
        pending.drain(..taken);
        self.pending = pending;
        Ok(Progress {
            used: 0,
            is_established: self.is_established,
            has_ended: self.has_ended,
            awaits_acceptor: false,
        })
    }

    /// Refuses a client that has got nothing.
    fn refuse(&mut self, alert: u8, why: Failure, out: &mut Buffer) -> Failure {
        self.has_failed = true;
        out.extend_from_slice(&fatal_alert(alert));
        why
    }

    /// Processes the records in a buffer. Returns how many bytes are finished.
    fn process(
        &mut self,
        bytes: &mut [u8],
        room: usize,
        plain: &mut Buffer,
        out: &mut Buffer,
    ) -> Result<usize, Failure> {
        if !self.is_established {
            // What a failed session on this thread may have left.
            resolver::take_chosen();
            verify::take_refused();
            if let Some(secrets) = &mut self.secrets {
                secrets::take_logged();
                if matches!(self.side, Side::Client(_)) {
                    secrets.look_for_server_random(bytes);
                }
            }
        }
        let first = bytes.first_chunk().copied();
        let said_before = out.len();
        let mut done = 0;
        loop {
            let rest = &mut bytes[done..];
            let (discard, step) = match &mut self.side {
                Side::Undecided(_) => return Ok(0),
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
                    self.keep_secrets(&out[said_before..]);
                    self.last_words(&mut bytes[done..], out);
                    self.has_failed = true;
                    return Err(self.failure(error, first));
                }
            }
        }
        if !self.is_established {
            self.keep_secrets(&out[said_before..]);
            self.take_chosen();
            let common = self.common();
            self.is_established = common.is_some_and(|common| !common.is_handshaking());
        }
        Ok(done)
    }

    /// Keeps the secrets that the library has shown during a handshake, in which this side has
    /// said these bytes.
    fn keep_secrets(&mut self, said: &[u8]) {
        let Some(secrets) = &mut self.secrets else {
            return;
        };
        secrets.take_logged();
        if matches!(self.side, Side::Server(_)) {
            secrets.look_for_server_random(said);
        }
    }

    fn take_chosen(&mut self) {
        if let Some(chosen) = resolver::take_chosen() {
            (self.server_name, self.own) = (chosen.asked, chosen.own);
        }
    }

    /// The failure that the library's error means, with what the parts of this crate saw of it.
    /// `first`: the first of the bytes that it processed.
    fn failure(&mut self, error: Error, first: Option<[u8; HTTP_METHOD_BYTES]>) -> Failure {
        let mut failure = Failure::from(error);
        if self.is_established {
            return failure;
        }
        self.take_chosen();
        self.refused = verify::take_refused();
        let common = self.common();
        if common.is_some_and(|common| common.protocol_version().is_none())
            && first.is_some_and(|first| is_http(&first))
        {
            failure.reason = Some(Reason::HttpRequest);
        }
        if let Some(refused) = &self.refused {
            failure.set_refused(refused);
        }
        failure
    }

    /// Writes the library's messages after a failure. The library needs the remaining bytes,
    /// because it remembers their positions, but must not read them again: it is called as long as
    /// it has something to write.
    fn last_words(&mut self, rest: &mut [u8], out: &mut Buffer) {
        let mut plain = Buffer::default();
        while self.common().is_some_and(|common| common.wants_write()) {
            let said = match &mut self.side {
                Side::Undecided(_) => return,
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

    /// Encrypts plain bytes for the wire: all of them, or none if the handshake does not permit it
    /// yet; then returns false.
    ///
    /// # Errors
    /// The keys have reached their limit of use.
    pub fn write(&mut self, bytes: &[u8], out: &mut Buffer) -> Result<bool, Failure> {
        self.with_writer(out, |writer, out| {
            let records = bytes.len() / RECORD_BYTES + 1;
            let room = bytes.len() + records * RECORD_OVERHEAD_BYTES_MAX;
            out.write_with(room, |room| writer.encrypt(bytes, room))
        })
    }

    /// Writes the end of the data (`close_notify`).
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
            // The library remembers positions of bytes that no longer exist.
            return Ok(false);
        }
        let mut plain = Buffer::default();
        let written = loop {
            // Messages of the library itself go first.
            let step = match &mut self.side {
                Side::Undecided(_) => return Ok(false),
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
            Err(error) => Err(Failure::protocol(&error.to_string(), None)),
        }
    }

    /// The library's state; none before an acceptor is chosen.
    fn common(&self) -> Option<&CommonState> {
        match &self.side {
            Side::Undecided(_) => None,
            Side::Server(connection) => Some(connection),
            Side::Client(connection) => Some(connection),
        }
    }

    /// The negotiated application protocol (ALPN).
    #[must_use]
    pub fn protocol(&self) -> Option<&[u8]> {
        self.common()?.alpn_protocol()
    }

    /// The name that a client requested (SNI), as far as the library has read it.
    #[must_use]
    pub fn server_name(&self) -> Option<&str> {
        self.server_name.as_deref()
    }

    /// The negotiated parameters; none before both sides have chosen. After a failure, what was
    /// agreed before it, and the certificates that were refused.
    #[must_use]
    pub fn facts(&self) -> Option<Facts> {
        let facts = facts_of(
            self.common()?,
            self.refused.as_deref(),
            self.verifier.as_deref(),
        )?;
        Some(Facts {
            server_name: self.server_name.clone(),
            has_early_data: self.has_early_data,
            own: self.own.clone(),
            secrets: self.secrets.clone(),
            ..facts
        })
    }
}

/// What the library's state tells of a handshake, with the parts of this crate that saw the peer's
/// certificates.
pub(crate) fn facts_of(
    common: &CommonState,
    refused: Option<&RefusedClient>,
    verifier: Option<&ClientVerifier>,
) -> Option<Facts> {
    let version = match common.protocol_version()? {
        ProtocolVersion::TLSv1_2 => Version::Tls12,
        ProtocolVersion::TLSv1_3 => Version::Tls13,
        _ => return None,
    };
    let group = common.negotiated_key_exchange_group();
    let peer = common.peer_certificates().unwrap_or_default();
    let is_resumed = common.handshake_kind() == Some(HandshakeKind::Resumed);
    Some(Facts {
        version,
        suite: u16::from(common.negotiated_cipher_suite()?.suite()),
        group: group.map(|group| u16::from(group.name())),
        protocol: common.alpn_protocol().map(Into::into),
        server_name: None,
        is_resumed,
        has_early_data: false,
        own: None,
        verdict: match (refused, verifier) {
            (Some(refused), _) => refused.verdict,
            (None, Some(verifier)) => verifier.verdict(peer, is_resumed),
            (None, None) => Verdict::default(),
        },
        root: verifier.and_then(|verifier| verifier.root_of(peer)),
        peer: match refused {
            Some(refused) => refused.peer.clone(),
            None => peer.iter().map(|each| each.as_ref().into()).collect(),
        },
        secrets: None,
    })
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
/// The most bytes of a record besides its payload: header, explicit nonce, kind, tag.
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

/// How many bytes of the first record, or of its header, are missing.
fn missing_bytes(bytes: &[u8]) -> usize {
    match bytes {
        [_, _, _, high, low, rest @ ..] => {
            usize::from(u16::from_be_bytes([*high, *low])).saturating_sub(rest.len())
        }
        _ => RECORD_HEADER_BYTES - bytes.len(),
    }
}

/// Handles a state of the library.
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
        // Nothing more can be done without more bytes.
        _ => Ok(Step::Enough),
    }
}
