//! The server side of TLS: what a listener offers to clients and demands of them.

use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs::Ticketer;
use rustls::server::{
    NoServerSessionStorage, ProducesTickets, StoresServerSessions, UnbufferedServerConnection,
};

use crate::binding::Binding;
use crate::cache::{Counted, SessionCache};
use crate::lifetime::Limited;
use crate::resolver::Resolver;
use crate::secrets::SecretsKept;
use crate::session::Server;
use crate::signatures::Signatures;
use crate::verify::ClientVerifier;
use crate::{Certificates, Failure, Offer, OfferError, Session, TicketKeys, Trusted};

/// The client certificates that a listener asks for.
#[derive(Clone, Debug)]
pub struct ClientCertificates {
    /// The authorities that may have issued them, and the revoked certificates.
    pub trusted: Trusted,
    /// Authorities whose names are sent to clients instead (`ca-file` together with a
    /// `ca-verify-file`).
    pub hints: Option<Trusted>,
    /// No names are sent to clients (`no-ca-names`).
    pub tells_no_names: bool,
    /// A client need not send a certificate.
    pub is_optional: bool,
    /// Errors in the client's own certificate that are ignored (`crt-ignore-err`).
    pub ignored: IgnoredErrors,
    /// Errors in the certificates of its issuers that are ignored (`ca-ignore-err`).
    pub ignored_of_issuers: IgnoredErrors,
}

/// Errors of verification that do not end a handshake, by OpenSSL's numbers (`X509_V_ERR_*`).
#[derive(Clone, Debug, Default)]
pub struct IgnoredErrors {
    /// Every error.
    pub all: bool,
    /// The numbers of the errors.
    pub numbers: Vec<u8>,
}

impl IgnoredErrors {
    pub(crate) fn contains(&self, number: u8) -> bool {
        self.all || self.numbers.contains(&number)
    }

    fn is_empty(&self) -> bool {
        !self.all && self.numbers.is_empty()
    }
}

impl ClientCertificates {
    /// Whether any error is ignored.
    pub(crate) fn ignores_errors(&self) -> bool {
        !self.ignored.is_empty() || !self.ignored_of_issuers.is_empty()
    }
}

/// The TLS options of a listener.
#[derive(Clone, Debug, Default)]
pub struct AcceptorOptions {
    /// What may be negotiated.
    pub offer: Offer,
    /// The client's order of suites takes precedence (`prefer-client-ciphers`).
    pub prefers_client_order: bool,
    /// Client certificates; none: clients are not asked for one.
    pub clients: Option<ClientCertificates>,
    /// Clients get no tickets (`no-tls-tickets`).
    pub no_tickets: bool,
    /// The keys of tickets; none: keys of this process, rotated automatically.
    pub ticket_keys: Option<TicketKeys>,
    /// The name of the line. Sessions are resumed only by acceptors with the same name that demand
    /// the same of clients.
    pub resumption_scope: String,
    /// The sessions remembered for clients without tickets.
    pub sessions: SessionCache,
    /// Seconds for which a session may be resumed (`tune.ssl.lifetime`); none: as long as its keys
    /// are kept.
    pub lifetime_s: Option<u64>,
    /// Bytes of early data that clients may send (`allow-0rtt`); 0 for none. Over QUIC, whose flow
    /// control limits them, either 0 or [`u32::MAX`] (RFC 9001 §4.6.1).
    pub early_data_bytes_max: u32,
    /// The most bytes of a record (`tune.ssl.maxrecord`), header included; 0 for the protocol's
    /// limit.
    pub record_bytes_max: usize,
    /// The secrets that its sessions keep.
    pub secrets: SecretsKept,
}

/// Makes the sessions of a listener.
#[derive(Clone, Debug)]
pub struct Acceptor {
    config: Arc<ServerConfig>,
    /// Checks client certificates.
    verifier: Option<Arc<ClientVerifier>>,
    /// The algorithms that it signs with.
    signatures: Signatures,
    /// Early data is delivered, and may be answered, before the handshake is over.
    serves_early: bool,
    secrets: SecretsKept,
}

impl Acceptor {
    /// A listener with these certificates.
    ///
    /// # Errors
    /// The options leave nothing to negotiate.
    pub fn new(
        options: &AcceptorOptions,
        certificates: Arc<Certificates>,
    ) -> Result<Acceptor, OfferError> {
        let provider = options.offer.provider()?;
        let versions = options.offer.versions(&provider)?;
        let refused = |error: rustls::Error| OfferError::Refused(error.to_string());
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&versions)
            .map_err(refused)?;
        let mut verifier = None;
        let builder = match &options.clients {
            None => builder.with_no_client_auth(),
            Some(clients) => {
                let new = Arc::new(ClientVerifier::new(clients, &options.offer, &provider)?);
                verifier = Some(new.clone());
                builder.with_client_cert_verifier(new)
            }
        };
        let signatures = Signatures::new(options.offer.signatures.as_deref());
        let mut config = builder.with_cert_resolver(Arc::new(Resolver {
            certificates,
            signatures: signatures.clone(),
        }));
        config.alpn_protocols.clone_from(&options.offer.protocols);
        config.ignore_client_order = !options.prefers_client_order;
        let scope = &options.resumption_scope;
        let binding = Binding::new(scope, &options.offer, options.clients.as_ref());
        config.session_storage = if options.sessions.is_on() {
            let sessions: Arc<dyn StoresServerSessions> =
                Arc::new(options.sessions.bound_to(binding));
            Arc::new(Counted {
                inner: match options.lifetime_s {
                    None => sessions,
                    Some(lifetime_s) => Arc::new(Limited {
                        inner: sessions,
                        lifetime_s,
                    }),
                },
                cache: options.sessions.clone(),
            })
        } else {
            Arc::new(NoServerSessionStorage {})
        };
        config.key_log = options.secrets.key_log();
        config.max_early_data_size = options.early_data_bytes_max;
        // A client that must authenticate gets no answer before it has.
        let serves_early = options.early_data_bytes_max > 0 && options.clients.is_none();
        config.send_half_rtt_data = serves_early;
        if options.record_bytes_max > 0 {
            config.max_fragment_size = Some(options.record_bytes_max);
        }
        // Anyone who recorded early data can send it again, so each session may be used only once.
        // A ticket cannot guarantee that.
        let takes_early_data = options.early_data_bytes_max > 0;
        if !options.no_tickets && !takes_early_data {
            let tickets: Arc<dyn ProducesTickets> = match &options.ticket_keys {
                Some(keys) => Arc::new(keys.bound_to(binding)),
                None => own_ticketer().map_err(refused)?,
            };
            config.ticketer = match options.lifetime_s {
                None => tickets,
                Some(lifetime_s) => Arc::new(Limited {
                    inner: tickets,
                    lifetime_s,
                }),
            };
        }
        if options.no_tickets && !options.sessions.is_on() {
            config.send_tls13_tickets = 0;
        }
        Ok(Acceptor {
            config: Arc::new(config),
            verifier,
            signatures,
            serves_early,
            secrets: options.secrets,
        })
    }

    /// The application protocols (ALPN) that it offers.
    #[must_use]
    pub fn protocols(&self) -> &[Vec<u8>] {
        &self.config.alpn_protocols
    }

    /// A copy with other certificates. Sessions of the original can be resumed.
    #[must_use]
    pub fn with_certificates(&self, certificates: Arc<Certificates>) -> Acceptor {
        let mut config = (*self.config).clone();
        config.cert_resolver = Arc::new(Resolver {
            certificates,
            signatures: self.signatures.clone(),
        });
        Acceptor {
            config: Arc::new(config),
            ..self.clone()
        }
    }

    /// A copy for clients that offer none of its application protocols: the connection continues as
    /// if they had offered none. HAProxy does so; RFC 7301 §3.2 does not require it.
    #[must_use]
    pub fn without_protocols(&self) -> Acceptor {
        let mut config = (*self.config).clone();
        config.alpn_protocols.clear();
        Acceptor {
            config: Arc::new(config),
            ..self.clone()
        }
    }

    /// A session with a client that has connected.
    ///
    /// # Errors
    /// See [`Failure`].
    pub fn accept(&self) -> Result<Session, Failure> {
        let mut session = Session::awaiting_hello();
        session.begin(self.server()?);
        Ok(session)
    }

    /// The library's configuration for the connection of a QUIC client.
    #[cfg(feature = "quic")]
    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.config)
    }

    /// What checks client certificates.
    #[cfg(feature = "quic")]
    pub(crate) fn verifier(&self) -> Option<Arc<ClientVerifier>> {
        self.verifier.clone()
    }

    /// Whether early data may be answered before the handshake is over.
    #[cfg(feature = "quic")]
    pub(crate) fn serves_early(&self) -> bool {
        self.serves_early
    }

    /// A new session's secrets; none if they are not kept.
    #[cfg(feature = "quic")]
    pub(crate) fn secrets(&self) -> Option<Box<crate::Secrets>> {
        self.secrets.begin()
    }

    /// What its sessions begin with.
    pub(crate) fn server(&self) -> Result<Server, Failure> {
        let connection = UnbufferedServerConnection::new(self.config.clone())?;
        Ok(Server {
            connection: Box::new(connection),
            verifier: self.verifier.clone(),
            serves_early: self.serves_early,
            secrets: self.secrets.begin(),
        })
    }
}

fn own_ticketer() -> Result<Arc<dyn ProducesTickets>, rustls::Error> {
    Ticketer::new()
}
