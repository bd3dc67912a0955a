//! The TLS acceptors of a bind line.

use std::sync::Arc;

use config::model::TlsOptions;
use sample::sniff::client_hello::kind;
use sample::sniff::{Sniffed, client_hello};
use tls::quic::Chooser;
use tls::{Acceptor, Buffer, Certificates, Failure, Progress, Session};

/// The acceptors of a bind line. Replacing a certificate creates a new value.
#[derive(Debug)]
pub(crate) struct BindAcceptors {
    pub(super) certificates: Arc<Certificates>,
    /// The acceptor of the line, then those of certificates with their own options.
    pub(super) acceptors: Vec<Variant>,
    /// By certificate: the index of its acceptor.
    pub(super) of_certificate: Vec<u32>,
}

/// The acceptor for a set of options.
#[derive(Debug)]
pub(super) struct Variant {
    pub options: TlsOptions,
    pub usual: Acceptor,
    /// For clients that offer none of its ALPN protocols; none where it has none.
    without_protocols: Option<Acceptor>,
}

impl Variant {
    pub fn new(options: &TlsOptions, usual: Acceptor) -> Variant {
        let without_protocols = (!usual.protocols().is_empty()).then(|| usual.without_protocols());
        Variant {
            options: options.clone(),
            usual,
            without_protocols,
        }
    }

    /// The acceptor for a client that sends this ALPN extension, or none.
    fn for_protocols(&self, offered: Option<&[u8]>) -> &Acceptor {
        match (&self.without_protocols, offered) {
            (Some(without), Some(offered)) if !has_protocol(offered, self.usual.protocols()) => {
                without
            }
            _ => &self.usual,
        }
    }
}

/// Whether an ALPN extension has one of these protocols.
fn has_protocol(offered: &[u8], ours: &[Vec<u8>]) -> bool {
    let list = client_hello::list(offered, 2).unwrap_or_default();
    let mut at = 0;
    while let Some((protocol, next)) = client_hello::protocol_at(list, at) {
        if ours.iter().any(|our| our == protocol) {
            return true;
        }
        at = next;
    }
    false
}

/// The extensions of a client's hello; none of one that cannot be read.
fn extensions_of(hello: &[u8]) -> &[u8] {
    match client_hello::extensions_of(hello) {
        Sniffed::Found(all) => all,
        Sniffed::More | Sniffed::No => &[],
    }
}

/// The name that a client requests.
fn name_in(extensions: &[u8]) -> Option<String> {
    let name = client_hello::extension(extensions, kind::SERVER_NAME);
    let name = name.and_then(client_hello::host_name)?;
    tls::requested_name(name)
}

impl Chooser for BindAcceptors {
    fn choose(&self, hello: &[u8]) -> (Acceptor, Option<String>) {
        let name = name_in(extensions_of(hello));
        // A client of QUIC must offer one of our protocols (RFC 9001 §8.1).
        let acceptor = self.for_name(name.as_deref()).usual.clone();
        (acceptor, name)
    }
}

impl BindAcceptors {
    /// Whether the client's hello (its SNI name or its protocols) chooses the acceptor, and not
    /// only the certificate.
    pub fn depends_on_hello(&self) -> bool {
        self.acceptors.len() > 1 || self.acceptors[0].without_protocols.is_some()
    }

    /// Continues a session that has its client's hello, with the acceptor for the hello's SNI name
    /// and protocols ([`Session::accept`]). For a hello that cannot be read, that is the acceptor of
    /// the line, which refuses it.
    ///
    /// # Errors
    /// See [`Failure`].
    pub fn accept(
        &self,
        session: &mut Session,
        plain: &mut Buffer,
        out: &mut Buffer,
    ) -> Result<Progress, Failure> {
        let hello = session.hello().unwrap_or_default();
        let all = extensions_of(hello);
        let name = name_in(all);
        let protocols = client_hello::extension(all, kind::ALPN);
        let variant = self.for_name(name.as_deref());
        let acceptor = variant.for_protocols(protocols);
        session.accept(acceptor, name.as_deref(), plain, out)
    }

    /// The acceptors for clients that send this SNI name.
    fn for_name(&self, name: Option<&str>) -> &Variant {
        let place = self.certificates.choose(name);
        let acceptor = place.and_then(|place| self.of_certificate.get(place));
        &self.acceptors[acceptor.copied().unwrap_or(0) as usize]
    }

    /// The acceptor of the line.
    pub fn usual(&self) -> &Acceptor {
        &self.acceptors[0].usual
    }
}
