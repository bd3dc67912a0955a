//! What peers speak below HTTP: TLS, between the bytes that a peer means and those that its pipe
//! carries.

use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use tls::{
    Acceptor, AcceptorOptions, Buffer, Certificate, Certificates, Connector, ConnectorOptions,
    Files, Identity, Session,
};

/// What a peer may do below its own bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whim {
    /// It gives up a stream.
    Reset,
    /// It does not process a request.
    Refuse,
    /// It takes no more requests.
    GoAway,
}

/// A peer's end of what stands between its bytes and its pipe's.
pub trait Wire: Debug {
    /// Bytes that the peer means to send; those for the pipe are appended to `out`.
    fn write(&mut self, bytes: &[u8], out: &mut Vec<u8>);
    /// Bytes of the pipe. Those that the proxy meant are appended to `got`, what is answered to
    /// `out`.
    fn read(&mut self, bytes: &[u8], got: &mut Vec<u8>, out: &mut Vec<u8>);
    /// All that the peer has said is on its way.
    fn is_quiet(&self) -> bool;
    /// The peer will send no more.
    fn end(&mut self, out: &mut Vec<u8>);
    /// Bytes that the proxy meant and that had to wait for what the peer said.
    fn more(&mut self, _got: &mut Vec<u8>) {}
    /// Nothing that the peer could understand will come any more.
    fn is_over(&self) -> bool {
        false
    }
    /// Makes the peer do this, if its protocol has such a thing.
    fn whim(&mut self, _whim: Whim, _out: &mut Vec<u8>) {}
}

/// One above the other.
#[derive(Debug)]
pub struct Above<U, L> {
    upper: U,
    lower: L,
}

impl<U: Wire, L: Wire> Above<U, L> {
    /// `first`: what the upper one has said already.
    pub fn new(upper: U, mut lower: L, first: &[u8], out: &mut Vec<u8>) -> Above<U, L> {
        lower.write(first, out);
        Above { upper, lower }
    }
}

impl<U: Wire, L: Wire> Wire for Above<U, L> {
    fn write(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let mut between = Vec::new();
        self.upper.write(bytes, &mut between);
        self.lower.write(&between, out);
    }

    fn read(&mut self, bytes: &[u8], got: &mut Vec<u8>, out: &mut Vec<u8>) {
        let (mut between, mut answer) = (Vec::new(), Vec::new());
        self.lower.read(bytes, &mut between, out);
        self.upper.read(&between, got, &mut answer);
        self.lower.write(&answer, out);
    }

    fn is_quiet(&self) -> bool {
        self.upper.is_quiet() && self.lower.is_quiet()
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        self.lower.end(out);
    }

    fn more(&mut self, got: &mut Vec<u8>) {
        self.upper.more(got);
    }

    fn is_over(&self) -> bool {
        self.upper.is_over()
    }
}

/// TLS of a peer.
#[derive(Debug)]
pub struct TlsWire {
    session: Session,
    /// What the peer has said before its handshake was over.
    waiting: Vec<u8>,
    ends: bool,
    failed: bool,
}

impl TlsWire {
    /// A client's; its first message is appended to `out`.
    pub fn client(out: &mut Vec<u8>) -> TlsWire {
        static CONNECTOR: OnceLock<Connector> = OnceLock::new();
        let connector = CONNECTOR.get_or_init(|| {
            let options = ConnectorOptions::default();
            Connector::new(&options).expect("a connector")
        });
        let mut wire = TlsWire::new(connector.connect(Some("sim.test")).expect("a session"));
        let mut hello = Buffer::default();
        wire.session.start(&mut hello).expect("a hello");
        out.extend_from_slice(&hello);
        wire
    }

    /// A server's.
    pub fn server() -> TlsWire {
        static ACCEPTOR: OnceLock<Acceptor> = OnceLock::new();
        let acceptor = ACCEPTOR.get_or_init(|| {
            Acceptor::new(&AcceptorOptions::default(), certificates()).expect("an acceptor")
        });
        TlsWire::new(acceptor.accept().expect("a session"))
    }

    fn new(session: Session) -> TlsWire {
        TlsWire {
            session,
            waiting: Vec::new(),
            ends: false,
            failed: false,
        }
    }

    fn go_on(&mut self, out: &mut Vec<u8>) {
        if !self.session.is_established() || self.failed {
            return;
        }
        let mut sealed = Buffer::default();
        let waiting = std::mem::take(&mut self.waiting);
        if !waiting.is_empty() {
            let written = self.session.write(&waiting, &mut sealed);
            self.failed |= written != Ok(true);
        }
        if std::mem::take(&mut self.ends) {
            let _ = self.session.end(&mut sealed);
        }
        out.extend_from_slice(&sealed);
    }
}

impl Wire for TlsWire {
    fn write(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        self.waiting.extend_from_slice(bytes);
        self.go_on(out);
    }

    fn read(&mut self, bytes: &[u8], got: &mut Vec<u8>, out: &mut Vec<u8>) {
        if self.failed {
            return;
        }
        let (mut plain, mut answer) = (Buffer::default(), Buffer::default());
        let mut bytes = bytes.to_vec();
        let read = self
            .session
            .read(&mut bytes, usize::MAX, &mut plain, &mut answer);
        self.failed |= read.is_err();
        got.extend_from_slice(&plain);
        out.extend_from_slice(&answer);
        self.go_on(out);
    }

    fn is_quiet(&self) -> bool {
        self.waiting.is_empty() || self.failed
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        self.ends = true;
        self.go_on(out);
    }
}

/// The file of the certificate of all, with its key: of a kind whose signatures are of one length,
/// so that a seed's life is the same each time.
pub fn certificate() -> &'static PathBuf {
    static FILE: OnceLock<PathBuf> = OnceLock::new();
    FILE.get_or_init(|| {
        let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).expect("a key");
        let params = rcgen::CertificateParams::new(vec!["sim.test".to_owned()]).expect("a name");
        let certificate = params.self_signed(&key).expect("a certificate");
        let file = std::env::temp_dir().join(format!("spangate-sim-{}.pem", std::process::id()));
        std::fs::write(&file, certificate.pem() + &key.serialize_pem()).expect("a file");
        file
    })
}

/// The certificate of all servers.
pub fn certificates() -> Arc<Certificates> {
    let identity = Identity::load(&Files {
        certificate: certificate(),
        key: None,
        key_beside: None,
        issuer: None,
        ocsp: None,
    });
    let certificate = Certificate {
        identity: identity.expect("a certificate"),
        filters: Vec::new(),
        is_default: true,
    };
    Arc::new(Certificates::new(&[certificate], false))
}
