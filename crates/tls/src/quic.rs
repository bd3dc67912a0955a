//! TLS of QUIC connections (RFC 9001): the handshake travels in CRYPTO frames, and the result is
//! keys for packets instead of records.
//!
//! quinn-proto asks for a session before it has read the client's hello. A session here keeps the
//! hello until it is complete; then a [`Chooser`] decides which acceptor continues, as for TLS over
//! TCP. So each certificate of a line has its own options over both.

use std::any::Any;
use std::sync::Arc;

use quinn_proto::crypto::{
    self, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, UnsupportedVersion,
};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectionId, Side, TransportError, TransportErrorCode};
use rustls::quic::{
    DirectionalKeys, KeyChange, Secrets as NextSecrets, ServerConnection, Suite, Version,
};

use crate::resolver::{self, Chosen};
use crate::secrets::{self, Secrets};
use crate::session::facts_of;
use crate::verify::{self, ClientVerifier, RefusedClient};
use crate::{Acceptor, Failure};

mod client;

pub use client::QuicConnector;

/// The longest hello that is kept, bytes. quinn-proto keeps no more of a CRYPTO stream.
const HELLO_BYTES_MAX: usize = 16 << 10;
/// The header of a handshake message: its type and its length (RFC 8446 §4).
const MESSAGE_HEADER_BYTES: usize = 4;
/// The type of a ClientHello.
const CLIENT_HELLO: u8 = 1;
/// Alerts (RFC 8446 §6).
const UNEXPECTED_MESSAGE: u8 = 10;
const DECODE_ERROR: u8 = 50;
const INTERNAL_ERROR: u8 = 80;

/// Chooses how a handshake continues.
pub trait Chooser: Send + Sync {
    /// The acceptor for a client's hello (a handshake message with its header), and the name that
    /// it was chosen by ([`crate::requested_name`]).
    fn choose(&self, hello: &[u8]) -> (Acceptor, Option<String>);
}

/// What the layers above learn of a handshake.
#[derive(Clone, Debug, Default)]
pub struct Agreed {
    /// See [`crate::Facts`]; none before both sides have chosen.
    pub facts: Option<crate::Facts>,
    /// Early data was accepted (RFC 9001 §4.6.2), and may be answered before the handshake is over.
    pub serves_early: bool,
    /// Why the handshake failed.
    pub failure: Option<Failure>,
    /// Our transport parameters, encoded (RFC 9000 §18).
    pub local_parameters: Vec<u8>,
    /// Those of the client; empty before its hello.
    pub peer_parameters: Vec<u8>,
}

/// The TLS of the QUIC connections of a listener, for quinn-proto.
pub struct QuicAcceptor {
    chooser: Arc<dyn Chooser>,
    /// The suite of Initial packets (RFC 9001 §5.2).
    initial: Suite,
}

impl QuicAcceptor {
    /// A listener whose chooser decides by the hello. None if AES-128-GCM is not available.
    #[must_use]
    pub fn new(chooser: Arc<dyn Chooser>) -> Option<QuicAcceptor> {
        let initial = initial_suite()?;
        Some(QuicAcceptor { chooser, initial })
    }
}

impl crypto::ServerConfig for QuicAcceptor {
    fn initial_keys(&self, version: u32, id: &ConnectionId) -> Result<Keys, UnsupportedVersion> {
        Ok(initial_keys(
            &self.initial,
            version_of(version).ok_or(UnsupportedVersion)?,
            id,
            Side::Server,
        ))
    }

    fn retry_tag(&self, _version: u32, id: &ConnectionId, packet: &[u8]) -> [u8; 16] {
        retry::tag(id, packet)
    }

    fn start_session(
        self: Arc<Self>,
        version: u32,
        params: &TransportParameters,
    ) -> Box<dyn crypto::Session> {
        let mut encoded = Vec::new();
        params.write(&mut encoded);
        Box::new(QuicSession {
            acceptor: self,
            // `initial_keys` has accepted the version.
            version: version_of(version).unwrap_or(Version::V1),
            side: State::Hello(Vec::new()),
            params: encoded,
            verifier: None,
            serves_early: false,
            secrets: None,
            chosen: None,
            refused: None,
            failure: None,
            next: None,
            is_told: false,
        })
    }
}

/// The handshake of one connection.
struct QuicSession {
    acceptor: Arc<QuicAcceptor>,
    version: Version,
    side: State,
    /// Our transport parameters, encoded.
    params: Vec<u8>,
    verifier: Option<Arc<ClientVerifier>>,
    /// See [`Agreed::serves_early`]; of the acceptor.
    serves_early: bool,
    /// The secrets so far; none if they are not kept.
    secrets: Option<Box<Secrets>>,
    chosen: Option<Chosen>,
    refused: Option<Box<RefusedClient>>,
    failure: Option<Failure>,
    /// The secrets of the next key update.
    next: Option<NextSecrets>,
    /// quinn-proto knows that the parameters of the handshake can be asked for.
    is_told: bool,
}

enum State {
    /// The hello as far as it has come.
    Hello(Vec<u8>),
    Running(Box<ServerConnection>),
    /// The handshake is complete and all is written. The library's connection, several kilobytes, is
    /// not kept: nothing follows but key updates, which [`QuicSession::next`] makes.
    Complete(Box<Agreed>),
    Failed,
}

impl QuicSession {
    fn connection(&self) -> Option<&ServerConnection> {
        match &self.side {
            State::Running(connection) => Some(connection),
            State::Hello(_) | State::Complete(_) | State::Failed => None,
        }
    }

    /// Reads a part of the hello. When it is complete, the chosen acceptor's connection begins.
    /// Returns all of the hello then.
    fn read_hello(&mut self, bytes: &[u8]) -> Result<Option<Vec<u8>>, TransportError> {
        let State::Hello(hello) = &mut self.side else {
            return Ok(Some(bytes.to_vec()));
        };
        if hello.len() + bytes.len() > HELLO_BYTES_MAX {
            return Err(alert(INTERNAL_ERROR, "a hello is too long"));
        }
        hello.extend_from_slice(bytes);
        let [kind, rest @ ..] = &hello[..] else {
            return Ok(None);
        };
        if *kind != CLIENT_HELLO {
            return Err(alert(UNEXPECTED_MESSAGE, "the first message is no hello"));
        }
        let Some([a, b, c]) = rest.first_chunk() else {
            return Ok(None);
        };
        let len = u32::from_be_bytes([0, *a, *b, *c]) as usize;
        if hello.len() < MESSAGE_HEADER_BYTES + len {
            return Ok(None);
        }
        let hello = std::mem::take(hello);
        let (acceptor, name) = self.acceptor.chooser.choose(&hello);
        let params = self.params.clone();
        let connection = ServerConnection::new(acceptor.config(), self.version, params)
            .map_err(|error| alert(INTERNAL_ERROR, &error.to_string()))?;
        self.verifier = acceptor.verifier();
        self.serves_early = acceptor.serves_early();
        self.secrets = acceptor.secrets();
        self.side = State::Running(Box::new(connection));
        self.feed(&hello)?;
        // The library has chosen a certificate if it has read a hello. The acceptor of one name may
        // demand what that of another does not.
        let asked = self.chosen.as_ref().map(|chosen| chosen.asked.as_deref());
        if asked != Some(name.as_deref()) {
            return Err(alert(DECODE_ERROR, "the hello cannot be read"));
        }
        Ok(Some(Vec::new()))
    }

    /// Gives bytes to the library.
    fn feed(&mut self, bytes: &[u8]) -> Result<(), TransportError> {
        // What a failed session on this thread may have left.
        resolver::take_chosen();
        verify::take_refused();
        if self.secrets.is_some() {
            secrets::take_logged();
        }
        let State::Running(connection) = &mut self.side else {
            return Err(alert(INTERNAL_ERROR, "the session has failed"));
        };
        let read = connection.read_hs(bytes);
        if let Some(secrets) = &mut self.secrets {
            secrets.take_logged();
        }
        if let Some(chosen) = resolver::take_chosen() {
            self.chosen = Some(chosen);
        }
        read.map_err(|error| {
            let failed = failed(connection.alert(), &error);
            self.refused = verify::take_refused();
            let mut failure = Failure::from(error);
            if let Some(refused) = &self.refused {
                failure.set_refused(refused);
            }
            self.failure = Some(failure);
            failed
        })
    }

    /// The keys of early data; none unless it was accepted.
    fn early_keys(&self) -> Option<DirectionalKeys> {
        self.connection()?.zero_rtt_keys()
    }

    /// The handshake is complete, and nothing of it is left to be written.
    fn complete(&mut self) {
        self.side = State::Complete(Box::new(self.agreed()));
        // The result has all of these.
        self.params = Vec::new();
        self.verifier = None;
        self.secrets = None;
        self.chosen = None;
        self.refused = None;
    }

    fn agreed(&self) -> Agreed {
        if let State::Complete(agreed) = &self.side {
            return (**agreed).clone();
        }
        let facts = self.connection().and_then(|connection| {
            facts_of(
                connection,
                self.refused.as_deref(),
                self.verifier.as_deref(),
            )
        });
        let facts = facts.map(|mut facts| {
            if let Some(chosen) = &self.chosen {
                facts.server_name.clone_from(&chosen.asked);
                facts.own.clone_from(&chosen.own);
            }
            facts.secrets.clone_from(&self.secrets);
            facts
        });
        let peer = self
            .connection()
            .and_then(|connection| connection.quic_transport_parameters());
        Agreed {
            facts,
            serves_early: self.serves_early && self.early_keys().is_some(),
            failure: self.failure.clone(),
            local_parameters: self.params.clone(),
            peer_parameters: peer.unwrap_or_default().to_vec(),
        }
    }
}

impl crypto::Session for QuicSession {
    fn initial_keys(&self, id: &ConnectionId, side: Side) -> Keys {
        initial_keys(&self.acceptor.initial, self.version, id, side)
    }

    /// An [`Agreed`].
    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        Some(Box::new(self.agreed()))
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        let keys = self.early_keys()?;
        Some((Box::new(keys.header), Box::new(keys.packet)))
    }

    fn early_data_accepted(&self) -> Option<bool> {
        // Only clients are asked.
        None
    }

    fn is_handshaking(&self) -> bool {
        match &self.side {
            State::Running(connection) => connection.is_handshaking(),
            State::Hello(_) | State::Failed => true,
            State::Complete(_) => false,
        }
    }

    fn read_handshake(&mut self, bytes: &[u8]) -> Result<bool, TransportError> {
        let read = match &self.side {
            State::Hello(_) => self.read_hello(bytes).map(|_| ()),
            State::Running(_) | State::Failed => self.feed(bytes),
            State::Complete(_) => {
                let reason = "a handshake message after the handshake";
                return Err(alert(UNEXPECTED_MESSAGE, reason));
            }
        };
        if let Err(error) = read {
            if self.failure.is_none() {
                self.failure = Some(Failure::protocol(&error.reason, None));
                self.side = State::Failed;
            }
            return Err(error);
        }
        let is_known = self
            .connection()
            .is_some_and(|connection| connection.protocol_version().is_some());
        Ok(is_known && !std::mem::replace(&mut self.is_told, true))
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        let encoded = match &self.side {
            State::Running(connection) => connection.quic_transport_parameters(),
            State::Complete(agreed) => Some(&agreed.peer_parameters[..]),
            State::Hello(_) | State::Failed => None,
        };
        parameters_of(encoded, Side::Server)
    }

    fn write_handshake(&mut self, out: &mut Vec<u8>) -> Option<Keys> {
        let State::Running(connection) = &mut self.side else {
            return None;
        };
        let said_before = out.len();
        let change = connection.write_hs(out);
        if let Some(secrets) = &mut self.secrets {
            secrets.look_in_messages(&out[said_before..]);
        }
        let is_over = change.is_none() && out.len() == said_before && !connection.is_handshaking();
        if is_over {
            self.complete();
        }
        let keys = match change? {
            KeyChange::Handshake { keys } => keys,
            KeyChange::OneRtt { keys, next } => {
                self.next = Some(next);
                keys
            }
        };
        Some(keys_of(keys))
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        let keys = self.next.as_mut()?.next_packet_keys();
        Some(KeyPair {
            local: Box::new(keys.local),
            remote: Box::new(keys.remote),
        })
    }

    fn is_valid_retry(&self, _id: &ConnectionId, _header: &[u8], _payload: &[u8]) -> bool {
        // Only clients get such packets.
        false
    }

    fn export_keying_material(
        &self,
        _output: &mut [u8],
        _label: &[u8],
        _context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        // Nothing above asks for it.
        Err(ExportKeyingMaterialError)
    }
}

/// The version of QUIC by its number: version 1 (RFC 9000).
fn version_of(number: u32) -> Option<Version> {
    (number == 1).then_some(Version::V1)
}

/// The suite of Initial packets (RFC 9001 §5.2); none if AES-128-GCM is not available.
fn initial_suite() -> Option<Suite> {
    let suites = rustls::crypto::aws_lc_rs::ALL_CIPHER_SUITES;
    suites.iter().find_map(|suite| {
        let is_initial = suite.suite() == rustls::CipherSuite::TLS13_AES_128_GCM_SHA256;
        suite.tls13().filter(|_| is_initial)?.quic_suite()
    })
}

/// The peer's transport parameters, as this side reads them; none before they have come.
fn parameters_of(
    encoded: Option<&[u8]>,
    side: Side,
) -> Result<Option<TransportParameters>, TransportError> {
    let Some(mut encoded) = encoded else {
        return Ok(None);
    };
    let read = TransportParameters::read(side, &mut encoded);
    read.map(Some).map_err(TransportError::from)
}

fn initial_keys(suite: &Suite, version: Version, id: &ConnectionId, side: Side) -> Keys {
    let side = match side {
        Side::Client => rustls::Side::Client,
        Side::Server => rustls::Side::Server,
    };
    keys_of(suite.keys(id, side, version))
}

fn keys_of(keys: rustls::quic::Keys) -> Keys {
    Keys {
        header: KeyPair {
            local: Box::new(keys.local.header),
            remote: Box::new(keys.remote.header),
        },
        packet: KeyPair {
            local: Box::new(keys.local.packet),
            remote: Box::new(keys.remote.packet),
        },
    }
}

/// The connection error for a failure of the library, which sends an alert for most of them.
fn failed(alert: Option<rustls::AlertDescription>, error: &rustls::Error) -> TransportError {
    let code = match alert {
        Some(number) => TransportErrorCode::crypto(number.into()),
        None => TransportErrorCode::PROTOCOL_VIOLATION,
    };
    transport_error(code, error.to_string())
}

/// The connection error for an alert (RFC 9001 §4.8).
fn alert(number: u8, reason: &str) -> TransportError {
    transport_error(TransportErrorCode::crypto(number), reason.to_owned())
}

fn transport_error(code: TransportErrorCode, reason: String) -> TransportError {
    TransportError {
        code,
        frame: None,
        reason,
    }
}

mod retry {
    //! The integrity tag of Retry packets (RFC 9001 §5.8).

    use aws_lc_rs::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
    use quinn_proto::ConnectionId;

    const KEY: [u8; 16] = [
        0xbe, 0x0c, 0x69, 0x0b, 0x9f, 0x66, 0x57, 0x5a, 0x1d, 0x76, 0x6b, 0x54, 0xe3, 0x68, 0xc8,
        0x4e,
    ];
    const NONCE: [u8; 12] = [
        0x46, 0x15, 0x99, 0xd3, 0x5d, 0x63, 0x2b, 0xf2, 0x23, 0x98, 0x25, 0xbb,
    ];

    /// The tag of a packet for a client that had chosen this connection id.
    pub fn tag(id: &ConnectionId, packet: &[u8]) -> [u8; 16] {
        let mut signed = Vec::with_capacity(packet.len() + id.len() + 1);
        signed.push(id.len() as u8);
        signed.extend_from_slice(id);
        signed.extend_from_slice(packet);
        let mut bytes = [0; 16];
        let Ok(key) = UnboundKey::new(&AES_128_GCM, &KEY) else {
            return bytes;
        };
        let nonce = Nonce::assume_unique_for_key(NONCE);
        let key = LessSafeKey::new(key);
        if let Ok(tag) = key.seal_in_place_separate_tag(nonce, Aad::from(signed), &mut []) {
            bytes.copy_from_slice(tag.as_ref());
        }
        bytes
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        /// RFC 9001 §A.4.
        #[test]
        fn the_tag_of_the_example() {
            let packet = b"\xff\x00\x00\x00\x01\x00\x08\xf0\x67\xa5\x50\x2a\x42\x62\xb5token";
            let id = ConnectionId::new(b"\x83\x94\xc8\xf0\x3e\x51\x57\x08");
            let wanted = b"\x04\xa2\x65\xba\x2e\xff\x4d\x82\x90\x58\xfb\x3f\x0f\x24\x96\xba";
            assert_eq!(tag(&id, packet), *wanted);
        }
    }
}

#[cfg(test)]
mod tests;
