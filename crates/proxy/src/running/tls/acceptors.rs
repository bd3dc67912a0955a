//! Who speaks TLS with the clients of a bind line.

use std::sync::Arc;

use config::model::TlsOptions;
use sample::sniff::client_hello;
use tls::{Acceptor, Certificates};

/// See the module. A replaced certificate makes a new one.
#[derive(Debug)]
pub(crate) struct BindAcceptors {
    pub(super) certificates: Arc<Certificates>,
    /// The line's own, then those of certificates with options of their own.
    pub(super) acceptors: Vec<Variant>,
    /// By certificate: its acceptor.
    pub(super) of_certificate: Vec<u32>,
}

/// Who speaks TLS by some options.
#[derive(Debug)]
pub(super) struct Variant {
    pub options: TlsOptions,
    pub usual: Acceptor,
    /// For clients that offer none of its protocols; none where it has none.
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

    /// For a client that sends this extension of ALPN, or none.
    fn for_protocols(&self, offered: Option<&[u8]>) -> &Acceptor {
        match (&self.without_protocols, offered) {
            (Some(without), Some(offered)) if !has_protocol(offered, self.usual.protocols()) => {
                without
            }
            _ => &self.usual,
        }
    }
}

/// Whether an extension of ALPN has one of these protocols.
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

impl BindAcceptors {
    /// Whether what a client says first decides on more than its certificate: the name that it asks for, or its protocols.
    pub fn depends_on_hello(&self) -> bool {
        self.acceptors.len() > 1 || self.acceptors[0].without_protocols.is_some()
    }

    /// The acceptor for clients that ask for this name and send this extension of ALPN.
    pub fn for_hello(&self, name: Option<&str>, protocols: Option<&[u8]>) -> &Acceptor {
        let place = self.certificates.choose(name);
        let acceptor = place.and_then(|place| self.of_certificate.get(place));
        self.acceptors[acceptor.copied().unwrap_or(0) as usize].for_protocols(protocols)
    }

    /// The line's own.
    pub fn usual(&self) -> &Acceptor {
        &self.acceptors[0].usual
    }
}
