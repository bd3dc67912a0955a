//! Handshakes with a client of the library.

use std::path::Path;

use rustls::RootCertStore;
use rustls::quic::ClientConnection;

use super::*;
use crate::{
    AcceptorOptions, Authorities, Certificate, Certificates, ClientCertificates, Identity,
    IgnoredErrors, Offer, SessionCache, Trusted,
};

struct One(Acceptor);

impl Chooser for One {
    fn choose(&self, _hello: &[u8]) -> (Acceptor, Option<String>) {
        (self.0.clone(), Some("one.test".to_owned()))
    }
}

struct Sides {
    acceptor: Arc<QuicAcceptor>,
    client: Arc<rustls::ClientConfig>,
}

impl Sides {
    fn new(early_data_bytes_max: u32, asks_for_certificates: bool) -> Sides {
        let key = rcgen::generate_simple_self_signed(vec!["one.test".to_owned()]).unwrap();
        let (certificate, secret) = (key.cert.pem(), key.signing_key.serialize_pem());
        let pem = certificate.clone() + &secret;
        let certificates = Certificates::new(
            &[Certificate {
                identity: Identity::parse(pem.as_bytes(), None, None, Path::new("pem")).unwrap(),
                filters: Vec::new(),
                is_default: true,
            }],
            false,
        );
        let authorities = Authorities::parse(None, certificate.as_bytes(), Path::new("ca"));
        let clients = ClientCertificates {
            trusted: Trusted::new(&authorities.unwrap(), None),
            hints: None,
            tells_no_names: false,
            is_optional: true,
            ignored: IgnoredErrors::default(),
            ignored_of_issuers: IgnoredErrors::default(),
        };
        let options = AcceptorOptions {
            offer: Offer {
                protocols: vec![b"h3".to_vec()],
                ..Offer::default()
            },
            clients: asks_for_certificates.then_some(clients),
            sessions: SessionCache::new(100),
            early_data_bytes_max,
            ..AcceptorOptions::default()
        };
        let acceptor = Acceptor::new(&options, Arc::new(certificates)).unwrap();
        let acceptor = QuicAcceptor::new(Arc::new(One(acceptor))).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(key.cert.der().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut client = rustls::ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        client.alpn_protocols = vec![b"h3".to_vec()];
        client.enable_early_data = true;
        Sides {
            acceptor: Arc::new(acceptor),
            client: Arc::new(client),
        }
    }

    /// A handshake. Returns whether the client could send early data, whether the server has its
    /// keys, and whether it serves the data before the end of the handshake.
    fn handshake(&self) -> [bool; 3] {
        self.shake().1
    }

    /// The same, with the server's session.
    fn shake(&self) -> (Box<dyn crypto::Session>, [bool; 3]) {
        let name = "one.test".try_into().unwrap();
        let client = ClientConnection::new(self.client.clone(), Version::V1, name, Vec::new());
        let mut client = client.unwrap();
        // The defaults.
        let params = TransportParameters::read(Side::Client, &mut &b""[..]).unwrap();
        let acceptor: Arc<dyn crypto::ServerConfig> = self.acceptor.clone();
        let mut server = acceptor.start_session(1, &params);
        let sends = client.zero_rtt_keys().is_some();
        let mut early = None;
        // Messages of different levels are read by calls of their own.
        while client.is_handshaking() || server.is_handshaking() {
            let mut bytes = Vec::new();
            while client.write_hs(&mut bytes).is_some() {}
            if !bytes.is_empty() {
                server.read_handshake(&bytes).unwrap();
            }
            early.get_or_insert_with(|| (server.early_crypto().is_some(), agreed(&*server)));
            exchange(&mut *server, &mut client);
        }
        exchange(&mut *server, &mut client);
        let (has_keys, agreed) = early.unwrap();
        (server, [sends, has_keys, agreed.serves_early])
    }
}

fn exchange(server: &mut dyn crypto::Session, client: &mut ClientConnection) {
    loop {
        let mut bytes = Vec::new();
        let keys = server.write_handshake(&mut bytes);
        if !bytes.is_empty() {
            client.read_hs(&bytes).unwrap();
        }
        if keys.is_none() {
            return;
        }
    }
}

fn agreed(session: &dyn crypto::Session) -> Agreed {
    *session.handshake_data().unwrap().downcast().unwrap()
}

#[test]
fn early_data_is_accepted_where_it_is_allowed_and_served_where_nobody_has_to_authenticate() {
    for (bytes_max, asks, wanted) in [
        (0, false, [false, false, false]),
        (u32::MAX, false, [true, true, true]),
        (u32::MAX, true, [true, true, false]),
    ] {
        let sides = Sides::new(bytes_max, asks);
        assert_eq!(sides.handshake(), [false; 3]);
        assert_eq!(sides.handshake(), wanted, "{bytes_max} {asks}");
    }
}

#[test]
fn a_complete_session_knows_what_was_agreed_and_reads_nothing_more() {
    let (mut server, _) = Sides::new(0, false).shake();
    assert!(!server.is_handshaking());
    let result = agreed(&*server);
    let facts = result.facts.unwrap();
    assert_eq!(facts.protocol.as_deref(), Some(&b"h3"[..]));
    assert_eq!(facts.server_name.as_deref(), Some("one.test"));
    assert!(facts.own.is_some() && result.failure.is_none());
    assert!(server.transport_parameters().unwrap().is_some());
    // Keys for two updates.
    assert!(server.next_1rtt_keys().is_some() && server.next_1rtt_keys().is_some());
    // A key update of TLS, which QUIC forbids (RFC 9001 §6).
    let refused = server.read_handshake(&[24, 0, 0, 1, 0]).unwrap_err();
    assert_eq!(refused.code, TransportErrorCode::crypto(UNEXPECTED_MESSAGE));
}
