//! Two sessions and the wires between them.

use std::path::Path;
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, CertifiedIssuer,
    DistinguishedName, DnType, IsCa, KeyIdMethod, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ED25519,
    PKCS_RSA_SHA256, RevokedCertParams, SerialNumber, SignatureAlgorithm, date_time_ymd,
};
use spangate_tls::{
    Acceptor, AcceptorOptions, Authorities, Buffer, Certificate, Certificates, Connector,
    ConnectorOptions, Failure, Identity, Revocations, Session, Trusted,
};

/// An authority that issues certificates.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub fn new(name: &str) -> Authority {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name = named(name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Authority::of(params)
    }

    /// One whose certificate and key are those of a peer, too.
    pub fn of(params: CertificateParams) -> Authority {
        let key = KeyPair::generate().unwrap();
        Authority(CertifiedIssuer::self_signed(params, key).unwrap())
    }

    /// Its own certificate and key as a peer has them.
    pub fn own_identity(&self) -> Identity {
        let pem = self.pem() + &self.key().serialize_pem();
        Identity::parse(pem.as_bytes(), None, None, Path::new("own.pem")).unwrap()
    }

    /// A list on which it has revoked its own certificate, PEM.
    pub fn revokes_itself(&self, serial: SerialNumber) -> String {
        let params = CertificateRevocationListParams {
            this_update: date_time_ymd(2020, 1, 1),
            next_update: date_time_ymd(4096, 1, 1),
            crl_number: 1.into(),
            issuing_distribution_point: None,
            revoked_certs: vec![RevokedCertParams {
                serial_number: serial,
                revocation_time: date_time_ymd(2020, 1, 1),
                reason_code: None,
                invalidity_date: None,
            }],
            key_identifier_method: KeyIdMethod::Sha256,
        };
        params.signed_by(&self.0).unwrap().pem().unwrap()
    }

    pub fn pem(&self) -> String {
        self.0.pem()
    }

    pub fn der(&self) -> &[u8] {
        self.0.der()
    }

    pub fn key(&self) -> &KeyPair {
        self.0.key()
    }

    /// The PEM of a certificate for these names, with its key.
    pub fn issue(&self, names: &[&str], common: &str, kind: Kind) -> (String, String) {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.distinguished_name = named(common);
        let key = KeyPair::generate_for(kind.algorithm()).unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        (certificate.pem(), key.serialize_pem())
    }

    pub fn identity(&self, names: &[&str], kind: Kind) -> Identity {
        let (certificate, key) = self.issue(names, "", kind);
        let pem = certificate + &key;
        Identity::parse(pem.as_bytes(), None, None, Path::new("test.pem")).unwrap()
    }

    /// Trust in it.
    pub fn trusted(&self) -> Trusted {
        Trusted::new(&self.authorities(), None)
    }

    /// The same but for what a list revokes, PEM.
    pub fn trusted_except(&self, list: &[u8]) -> Trusted {
        let list = Revocations::parse(list, Path::new("list")).unwrap();
        Trusted::new(&self.authorities(), Some(&list))
    }

    fn authorities(&self) -> Authorities {
        Authorities::parse(None, self.pem().as_bytes(), Path::new("root")).unwrap()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Ecdsa,
    Rsa,
    Ed25519,
}

impl Kind {
    fn algorithm(self) -> &'static SignatureAlgorithm {
        match self {
            Kind::Ecdsa => &PKCS_ECDSA_P256_SHA256,
            Kind::Rsa => &PKCS_RSA_SHA256,
            Kind::Ed25519 => &PKCS_ED25519,
        }
    }
}

fn named(name: &str) -> DistinguishedName {
    let mut full = DistinguishedName::new();
    if !name.is_empty() {
        full.push(DnType::CommonName, name);
    }
    full
}

pub fn plain(identity: Identity) -> Certificate {
    Certificate {
        identity,
        filters: Vec::new(),
        is_default: false,
    }
}

pub fn acceptor(options: &AcceptorOptions, certificates: &[Certificate]) -> Acceptor {
    let certificates = Certificates::new(certificates, false);
    Acceptor::new(options, Arc::new(certificates)).unwrap()
}

/// One end: its session, what it got, and what it has to say.
pub struct End {
    pub session: Session,
    pub got: Vec<u8>,
    pub says: Vec<u8>,
    pub has_ended: bool,
    pub failure: Option<Failure>,
}

impl End {
    fn new(session: Session) -> End {
        End {
            session,
            got: Vec::new(),
            says: Vec::new(),
            has_ended: false,
            failure: None,
        }
    }

    /// Gives it bytes; at most `room` plain ones are taken at a time.
    pub fn read(&mut self, bytes: &[u8], room: usize) {
        let mut bytes = bytes.to_vec();
        let mut used = 0;
        loop {
            let (mut plain, mut out) = (Buffer::default(), Buffer::default());
            let progress = self
                .session
                .read(&mut bytes[used..], room, &mut plain, &mut out);
            self.got.extend_from_slice(&plain);
            self.says.extend_from_slice(&out);
            match progress {
                Ok(progress) => {
                    used += progress.used;
                    self.has_ended |= progress.has_ended;
                }
                Err(failure) => {
                    self.failure = Some(failure);
                    return;
                }
            }
            if used == bytes.len() {
                return;
            }
        }
    }

    pub fn write(&mut self, bytes: &[u8]) {
        let mut out = Buffer::default();
        assert!(self.session.write(bytes, &mut out).unwrap());
        self.says.extend_from_slice(&out);
    }

    pub fn end(&mut self) {
        let mut out = Buffer::default();
        assert!(self.session.end(&mut out).unwrap());
        self.says.extend_from_slice(&out);
    }
}

/// A client and a server, connected.
pub struct Pair {
    pub client: End,
    pub server: End,
}

impl Pair {
    pub fn new(acceptor: &Acceptor, connector: &Connector, name: Option<&str>) -> Pair {
        let mut client = End::new(connector.connect(name).unwrap());
        let mut out = Buffer::default();
        client.session.start(&mut out).unwrap();
        client.says.extend_from_slice(&out);
        Pair {
            client,
            server: End::new(acceptor.accept().unwrap()),
        }
    }

    /// Both speak until nobody has anything to say, `piece` bytes at a time.
    pub fn talk(&mut self, piece: usize) {
        loop {
            let (up, down) = (
                std::mem::take(&mut self.client.says),
                std::mem::take(&mut self.server.says),
            );
            if up.is_empty() && down.is_empty() {
                return;
            }
            for (to, bytes) in [(&mut self.server, up), (&mut self.client, down)] {
                for piece in bytes.chunks(piece) {
                    if to.failure.is_none() {
                        to.read(piece, usize::MAX);
                    }
                }
            }
        }
    }

    /// With default options: an ECDSA certificate for `one.test` that the client does not check.
    pub fn usual() -> Pair {
        let authority = Authority::new("root");
        let identity = authority.identity(&["one.test"], Kind::Ecdsa);
        let acceptor = acceptor(&AcceptorOptions::default(), &[plain(identity)]);
        let connector = Connector::new(&ConnectorOptions::default()).unwrap();
        Pair::new(&acceptor, &connector, Some("one.test"))
    }
}
