//! The client's side of the handshake of a QUIC connection.

use std::any::Any;
use std::sync::Arc;

use quinn_proto::crypto::{self, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectError, ConnectionId, Side, TransportError};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use rustls::quic::{ClientConnection, KeyChange, Secrets as NextSecrets, Suite, Version};

use super::{
    Agreed, failed, initial_keys, initial_suite, keys_of, parameters_of, retry, version_of,
};
use crate::Failure;
use crate::secrets::{self, Secrets, SecretsKept};
use crate::session::facts_of;

/// The length of a Retry packet's integrity tag, bytes (RFC 9001 §5.8).
const RETRY_TAG_BYTES: usize = 16;

/// The TLS of one connection to a server, for quinn-proto: see [`crate::Connector::quic`].
pub struct QuicConnector {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
    secrets: SecretsKept,
    /// The suite of Initial packets (RFC 9001 §5.2).
    initial: Suite,
}

impl QuicConnector {
    pub(crate) fn new(
        config: Arc<ClientConfig>,
        name: ServerName<'static>,
        secrets: SecretsKept,
    ) -> Result<QuicConnector, Failure> {
        let initial = initial_suite()
            .ok_or_else(|| Failure::protocol("no suite for Initial packets", None))?;
        Ok(QuicConnector {
            config,
            name,
            secrets,
            initial,
        })
    }
}

impl crypto::ClientConfig for QuicConnector {
    /// A session for the name that the connector has; quinn-proto's name is not used.
    fn start_session(
        self: Arc<Self>,
        version: u32,
        _name: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn crypto::Session>, ConnectError> {
        let version = version_of(version).ok_or(ConnectError::UnsupportedVersion)?;
        let mut encoded = Vec::new();
        params.write(&mut encoded);
        let config = Arc::clone(&self.config);
        let mut secrets = self.secrets.begin();
        secrets::take_logged();
        // The library refuses options without TLS 1.3 or a suite for it.
        let connection = ClientConnection::new(config, version, self.name.clone(), encoded.clone())
            .map_err(|_| ConnectError::EndpointStopping)?;
        if let Some(secrets) = &mut secrets {
            secrets.take_logged();
        }
        let name = match &self.name {
            ServerName::DnsName(name) => Some(name.as_ref().into()),
            _ => None,
        };
        Ok(Box::new(ClientSession {
            connection,
            name,
            version,
            initial: self.initial,
            params: encoded,
            secrets,
            failure: None,
            next: None,
            is_told: false,
        }))
    }
}

/// The handshake of one connection.
struct ClientSession {
    connection: ClientConnection,
    /// The name that the server is asked for (SNI).
    name: Option<Box<str>>,
    version: Version,
    initial: Suite,
    /// Our transport parameters, encoded.
    params: Vec<u8>,
    /// The secrets so far; none if they are not kept.
    secrets: Option<Box<Secrets>>,
    failure: Option<Failure>,
    /// The secrets of the next key update.
    next: Option<NextSecrets>,
    /// quinn-proto knows that the parameters of the handshake can be asked for.
    is_told: bool,
}

impl crypto::Session for ClientSession {
    fn initial_keys(&self, id: &ConnectionId, side: Side) -> Keys {
        initial_keys(&self.initial, self.version, id, side)
    }

    /// An [`Agreed`].
    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        let facts = facts_of(&self.connection, None, None).map(|mut facts| {
            facts.secrets.clone_from(&self.secrets);
            facts.server_name.clone_from(&self.name);
            facts
        });
        let peer = self.connection.quic_transport_parameters();
        Some(Box::new(Agreed {
            facts,
            failure: self.failure.clone(),
            serves_early: false,
            local_parameters: self.params.clone(),
            peer_parameters: peer.unwrap_or_default().to_vec(),
        }))
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        let keys = self.connection.zero_rtt_keys()?;
        Some((Box::new(keys.header), Box::new(keys.packet)))
    }

    fn early_data_accepted(&self) -> Option<bool> {
        Some(self.connection.is_early_data_accepted())
    }

    fn is_handshaking(&self) -> bool {
        self.connection.is_handshaking()
    }

    fn read_handshake(&mut self, bytes: &[u8]) -> Result<bool, TransportError> {
        if let Some(secrets) = &mut self.secrets {
            secrets::take_logged();
            secrets.look_in_messages(bytes);
        }
        let read = self.connection.read_hs(bytes);
        if let Some(secrets) = &mut self.secrets {
            secrets.take_logged();
        }
        if let Err(error) = read {
            let failed = failed(self.connection.alert(), &error);
            self.failure = Some(Failure::from(error));
            return Err(failed);
        }
        let is_known = self.connection.protocol_version().is_some();
        Ok(is_known && !std::mem::replace(&mut self.is_told, true))
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        parameters_of(self.connection.quic_transport_parameters(), Side::Client)
    }

    fn write_handshake(&mut self, out: &mut Vec<u8>) -> Option<Keys> {
        let keys = match self.connection.write_hs(out)? {
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

    fn is_valid_retry(&self, id: &ConnectionId, header: &[u8], payload: &[u8]) -> bool {
        let Some(token_bytes) = payload.len().checked_sub(RETRY_TAG_BYTES) else {
            return false;
        };
        let (token, tag) = payload.split_at(token_bytes);
        let packet = [header, token].concat();
        retry::tag(id, &packet) == *tag
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
