//! The client side of TLS: what is offered to a server and demanded of it.

use std::sync::Arc;

use rustls::client::{ResolvesClientCert, Resumption, Tls12Resumption, UnbufferedClientConnection};
use rustls::pki_types::ServerName;
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, SignatureScheme};

use crate::secrets::SecretsKept;
use crate::signatures::Signatures;
use crate::verify::ServerVerifier;
use crate::{Failure, FailureKind, Identity, Offer, OfferError, Session, Trusted};

/// The requirements for a server's certificate.
#[derive(Clone, Debug, Default)]
pub enum Verification {
    /// Nothing (`verify none`).
    #[default]
    None,
    /// Its chain leads to a trusted authority, and it is valid for the requested name or, without
    /// one, for the name of `verifyhost`.
    Required {
        /// The authorities that may have issued it, and the revoked certificates.
        trusted: Trusted,
        /// The name or address it must be valid for if none is requested (`verifyhost`).
        name: Option<String>,
    },
}

/// The TLS options of a server.
#[derive(Clone, Debug, Default)]
pub struct ConnectorOptions {
    /// What may be negotiated.
    pub offer: Offer,
    /// The requirements for its certificate.
    pub verification: Verification,
    /// The certificate that we present on request (`crt`).
    pub identity: Option<Identity>,
    /// For how many names sessions are remembered for resumption; 0: for none (`no-ssl-reuse`).
    pub sessions_max: usize,
    /// Sessions of TLS 1.2 are resumed by identifier, without tickets (`no-tls-tickets`).
    pub no_tickets: bool,
    /// The secrets that its sessions keep.
    pub secrets: SecretsKept,
    /// Connections over QUIC may send early data (`allow-0rtt`).
    pub early_data: bool,
}

/// Makes the sessions with a server.
#[derive(Clone, Debug)]
pub struct Connector {
    config: Arc<ClientConfig>,
    /// The same with early data, and with the same remembered sessions.
    #[cfg_attr(
        not(feature = "quic"),
        expect(dead_code, reason = "early data is QUIC's alone")
    )]
    early: Option<Arc<ClientConfig>>,
    /// See [`Connector::over_tcp`].
    over_tcp: Option<Box<Connector>>,
    secrets: SecretsKept,
}

/// The certificate presented to every server that asks for one.
#[derive(Debug)]
struct Own(Arc<CertifiedKey>);

impl ResolvesClientCert for Own {
    fn resolve(&self, _: &[&[u8]], schemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        let scheme = self.0.key.choose_scheme(schemes);
        scheme.map(|_| self.0.clone())
    }

    fn has_certs(&self) -> bool {
        true
    }
}

impl Connector {
    /// A connector with these options.
    ///
    /// # Errors
    /// The options leave nothing to negotiate, or a name is invalid.
    pub fn new(options: &ConnectorOptions) -> Result<Connector, OfferError> {
        let provider = options.offer.provider()?;
        let versions = options.offer.versions(&provider)?;
        let verifier = match &options.verification {
            Verification::None => ServerVerifier::nothing(&options.offer, provider.clone()),
            Verification::Required { trusted, name } => {
                let name = name.as_deref().map(server_name).transpose();
                let name = name.map_err(|failure| OfferError::Refused(failure.text))?;
                ServerVerifier::new(trusted, name, &options.offer, provider.clone())?
            }
        };
        let builder = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&versions)
            .map_err(|error| OfferError::Refused(error.to_string()))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier));
        let mut config = match &options.identity {
            None => builder.with_no_client_auth(),
            Some(identity) => {
                let own = Signatures::new(options.offer.client_signatures.as_deref());
                builder.with_client_cert_resolver(Arc::new(Own(own.narrow(&identity.key))))
            }
        };
        config.alpn_protocols.clone_from(&options.offer.protocols);
        // A server that selects a protocol that was not offered violates the protocol and gets an
        // alert.
        config.resumption = match options.sessions_max {
            0 => Resumption::disabled(),
            max => Resumption::in_memory_sessions(max),
        };
        if options.no_tickets {
            let by_id = Tls12Resumption::SessionIdOnly;
            config.resumption = config.resumption.tls12_resumption(by_id);
        }
        config.key_log = options.secrets.key_log();
        let early = options.early_data.then(|| {
            let mut early = config.clone();
            early.enable_early_data = true;
            Arc::new(early)
        });
        Ok(Connector {
            config: Arc::new(config),
            early,
            over_tcp: None,
            secrets: options.secrets,
        })
    }

    /// A copy with these application protocols (ALPN); an empty list offers none.
    #[must_use]
    pub fn with_protocols(&self, protocols: &[&[u8]]) -> Connector {
        let mut config = (*self.config).clone();
        config.alpn_protocols = protocols.iter().map(|each| each.to_vec()).collect();
        Connector {
            config: Arc::new(config),
            early: None,
            over_tcp: None,
            secrets: self.secrets,
        }
    }

    /// It is one for QUIC, with another one for the same server over TCP.
    #[must_use]
    pub fn with_tcp(self, over_tcp: Connector) -> Connector {
        Connector {
            over_tcp: Some(Box::new(over_tcp)),
            ..self
        }
    }

    /// The connector for the same server over TCP, where this one is for QUIC.
    #[must_use]
    pub fn over_tcp(&self) -> Option<&Connector> {
        self.over_tcp.as_deref()
    }

    /// The application protocols (ALPN) that it offers.
    #[must_use]
    pub fn protocols(&self) -> &[Vec<u8>] {
        &self.config.alpn_protocols
    }

    /// A session with a server, with or without a server name (SNI); [`Session::start`] writes its
    /// first message. A name that is an address is not sent (RFC 6066 §3), but the certificate must
    /// be valid for it.
    ///
    /// # Errors
    /// The name is invalid.
    pub fn connect(&self, name: Option<&str>) -> Result<Session, Failure> {
        let connection = UnbufferedClientConnection::new(self.config.clone(), asked_name(name)?)?;
        Ok(Session::of_client(connection, self.secrets.begin()))
    }

    /// The same for a connection over QUIC, which needs TLS 1.3 and an application protocol.
    ///
    /// # Errors
    /// The name is invalid.
    #[cfg(feature = "quic")]
    pub fn quic(&self, name: Option<&str>) -> Result<crate::quic::QuicConnector, Failure> {
        self.quic_with(&self.config, name)
    }

    /// The same for a connection that sends early data if [`ConnectorOptions::early_data`] is set
    /// and an earlier session allows it (RFC 9001 §4.6).
    ///
    /// # Errors
    /// The name is invalid.
    #[cfg(feature = "quic")]
    pub fn quic_early(&self, name: Option<&str>) -> Result<crate::quic::QuicConnector, Failure> {
        self.quic_with(self.early.as_ref().unwrap_or(&self.config), name)
    }

    #[cfg(feature = "quic")]
    fn quic_with(
        &self,
        config: &Arc<ClientConfig>,
        name: Option<&str>,
    ) -> Result<crate::quic::QuicConnector, Failure> {
        crate::quic::QuicConnector::new(Arc::clone(config), asked_name(name)?, self.secrets)
    }
}

/// The name that a session requests.
fn asked_name(name: Option<&str>) -> Result<ServerName<'static>, Failure> {
    match name {
        Some(name) => server_name(name),
        None => Ok(no_name()),
    }
}

/// What the library gets for a connection that requests no name: an address that is never sent. It
/// is in the block of addresses that lead nowhere (RFC 6666), so no request can be about it.
pub(crate) fn no_name() -> ServerName<'static> {
    ServerName::IpAddress(std::net::Ipv6Addr::new(0x100, 0, 0, 0, 0, 0, 0, 1).into())
}

/// A name or an address, which may have brackets.
fn server_name(name: &str) -> Result<ServerName<'static>, Failure> {
    let inner = name.strip_prefix('[');
    let inner = inner.and_then(|inner| inner.strip_suffix(']'));
    let found = ServerName::try_from(inner.unwrap_or(name).to_owned());
    // What stands for no name must not be requested: it would switch the check off.
    let found = found.ok().filter(|found| *found != no_name());
    found.ok_or_else(|| Failure {
        kind: FailureKind::Name,
        reason: None,
        text: format!("'{name}' is no name of a server"),
    })
}
