//! The side of servers: what is offered to a server and demanded of it.

use std::sync::Arc;

use rustls::client::{ResolvesClientCert, Resumption, Tls12Resumption, UnbufferedClientConnection};
use rustls::pki_types::ServerName;
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, SignatureScheme};

use crate::signatures::Signatures;
use crate::verify::ServerVerifier;
use crate::{Failure, FailureKind, Identity, Offer, OfferError, Session, Trusted};

/// What is demanded of a server's certificate.
#[derive(Clone, Debug, Default)]
pub enum Verification {
    /// Nothing (`verify none`).
    #[default]
    None,
    /// Its chain leads to an authority, and it is for the name that is asked for, if any, or for this one (`verifyhost`).
    Required {
        /// Who may have issued it, and which are revoked.
        trusted: Trusted,
        /// The name it must be for where none is asked for (`verifyhost`).
        name: Option<String>,
    },
}

/// How a server is spoken to.
#[derive(Clone, Debug, Default)]
pub struct ConnectorOptions {
    /// What may be agreed on.
    pub offer: Offer,
    /// What its certificate must be.
    pub verification: Verification,
    /// The certificate that we present when we are asked for one (`crt`).
    pub identity: Option<Identity>,
    /// Names whose sessions are remembered to be resumed; 0: none is (`no-ssl-reuse`).
    pub sessions_max: usize,
    /// Sessions of TLS 1.2 are resumed without tickets (`no-tls-tickets`).
    pub no_tickets: bool,
}

/// Makes the sessions with a server.
#[derive(Clone, Debug)]
pub struct Connector {
    config: Arc<ClientConfig>,
}

/// The certificate that is presented to every server that asks.
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
    /// A server that is spoken to so.
    ///
    /// # Errors
    /// The options leave nothing that could be agreed on, or a name is none.
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
        // A server that answers with a protocol that was not asked for breaks the rules, and is told so.
        config.resumption = match options.sessions_max {
            0 => Resumption::disabled(),
            max => Resumption::in_memory_sessions(max),
        };
        if options.no_tickets {
            let by_id = Tls12Resumption::SessionIdOnly;
            config.resumption = config.resumption.tls12_resumption(by_id);
        }
        Ok(Connector {
            config: Arc::new(config),
        })
    }

    /// The same with these protocols of the application; none offers none.
    #[must_use]
    pub fn with_protocols(&self, protocols: &[&[u8]]) -> Connector {
        let mut config = (*self.config).clone();
        config.alpn_protocols = protocols.iter().map(|each| each.to_vec()).collect();
        Connector {
            config: Arc::new(config),
        }
    }

    /// The protocols of the application that it offers.
    #[must_use]
    pub fn protocols(&self) -> &[Vec<u8>] {
        &self.config.alpn_protocols
    }

    /// A session with a server, asking for a name (SNI) or for none; [`Session::start`] writes its first message.
    ///
    /// # Errors
    /// The name is none.
    pub fn connect(&self, name: Option<&str>) -> Result<Session, Failure> {
        let name = match name {
            Some(name) => server_name(name)?,
            // Addresses are never sent, and nothing is checked against this one.
            None => ServerName::IpAddress(std::net::Ipv4Addr::UNSPECIFIED.into()),
        };
        let connection = UnbufferedClientConnection::new(self.config.clone(), name)?;
        Ok(Session::of_client(connection))
    }
}

fn server_name(name: &str) -> Result<ServerName<'static>, Failure> {
    ServerName::try_from(name.to_owned()).map_err(|_| Failure {
        kind: FailureKind::Name,
        text: format!("'{name}' is no name of a server"),
    })
}
