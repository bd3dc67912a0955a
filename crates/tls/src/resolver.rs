//! Chooses the certificate for a client: by the requested name, and by the signature algorithms
//! that the client supports.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use rustls::pki_types::UnixTime;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{CipherSuite, SignatureAlgorithm};

use crate::identity::Stapled;
use crate::maker::Maker;
use crate::signatures::Signatures;
use crate::{CaSigner, Identity};

/// A certificate of a listener and the names it is used for.
#[derive(Clone, Debug)]
pub struct Certificate {
    /// The certificate with its key.
    pub identity: Identity,
    /// Names that replace the certificate's own (`crt-list` filters), in lower case. A name may
    /// begin with `*.`, and with `!` for an exception.
    pub filters: Vec<String>,
    /// It is used if no name matches (`default-crt`).
    pub is_default: bool,
}

/// The certificates of a listener.
#[derive(Debug, Default)]
pub struct Certificates {
    keys: Vec<Arc<CertifiedKey>>,
    /// The same with a status, where there is one.
    stapled: Vec<Option<Stapled>>,
    /// The certificates in DER.
    ders: Vec<Arc<[u8]>>,
    /// By full name.
    exact: HashMap<String, Vec<usize>>,
    /// By the part after the `*` of a name.
    wildcard: HashMap<String, Vec<usize>>,
    /// Names for which a certificate is not used.
    excepted: HashMap<String, Vec<usize>>,
    /// For clients that request no name, or one that no certificate has.
    default: Vec<usize>,
    /// Clients that request a name without a certificate are refused.
    strict: bool,
    /// Generates certificates for names that none has.
    maker: Option<Maker>,
}

impl Certificates {
    /// All certificates of a listener. The first one is the default if none is marked so; `strict`:
    /// names that no certificate has are refused (`strict-sni`).
    #[must_use]
    pub fn new(certificates: &[Certificate], strict: bool) -> Certificates {
        let mut all = Certificates {
            strict,
            ..Certificates::default()
        };
        let has_default = certificates.iter().any(|each| each.is_default);
        for (place, certificate) in certificates.iter().enumerate() {
            let identity = &certificate.identity;
            all.keys.push(identity.key.clone());
            all.stapled.push(identity.stapled.clone());
            all.ders.push(identity.certificate().into());
            let own = certificate.filters.is_empty();
            let names = if own {
                identity.names()
            } else {
                &certificate.filters
            };
            for name in names {
                let (map, name) = match name.as_bytes() {
                    [b'!', ..] => (&mut all.excepted, &name[1..]),
                    [b'*', b'.', ..] => (&mut all.wildcard, &name[1..]),
                    _ => (&mut all.exact, &name[..]),
                };
                map.entry(name.to_ascii_lowercase())
                    .or_default()
                    .push(place);
            }
            // Certificates of different kinds for the same name are the default together.
            let is_first = place == 0;
            let is_sibling = !is_first && names == certificates[0].identity.names();
            if certificate.is_default || (!has_default && (is_first || is_sibling)) {
                all.default.push(place);
            }
        }
        all
    }

    /// Generates certificates for names that none has, with the key of the default one. The last
    /// `kept_max` are kept.
    #[must_use]
    pub fn generating(self, signer: CaSigner, kept_max: usize) -> Certificates {
        Certificates {
            maker: Some(Maker::new(signer, kept_max)),
            ..self
        }
    }

    /// The positions of the certificates for a name, exact matches first; none if there is no
    /// match. A client that supports none of the exact matches gets a wildcard certificate.
    fn for_name(&self, name: &str) -> Option<Vec<usize>> {
        let name = &name.to_ascii_lowercase();
        let exact = self.exact.get(name);
        let wildcard = name
            .find('.')
            .and_then(|dot| self.wildcard.get(&name[dot..]));
        let excepted = self.excepted.get(name);
        let is_for = |place: &usize| excepted.is_none_or(|places| !places.contains(place));
        let all = exact.into_iter().chain(wildcard).flatten().copied();
        let found: Vec<_> = all.filter(|place| is_for(place)).collect();
        (!found.is_empty()).then_some(found)
    }

    /// The position, in the list given to [`Certificates::new`], of the first certificate for a
    /// client that requests this name, or no name. None if the client is refused.
    #[must_use]
    pub fn choose(&self, name: Option<&str>) -> Option<usize> {
        match name.and_then(|name| self.for_name(name)) {
            Some(places) => places.first().copied(),
            None if self.strict => None,
            None => self.default.first().copied(),
        }
    }

    /// The key at one of these positions that the client supports: ECDSA before RSA, which costs us
    /// more.
    fn usable(
        &self,
        places: &[usize],
        hello: &ClientHello<'_>,
        signatures: &Signatures,
    ) -> Option<usize> {
        let mut rsa = None;
        for place in places {
            let key = &self.keys[*place].key;
            let algorithm = key.algorithm();
            let can_sign = signatures.can_sign(&**key, hello.signature_schemes());
            if !is_spoken(hello, algorithm) || !can_sign {
                continue;
            }
            match algorithm {
                SignatureAlgorithm::RSA => rsa = rsa.or(Some(*place)),
                _ => return Some(*place),
            }
        }
        rsa
    }
}

/// Whether a suite of the client fits a kind of key. Suites of TLS 1.3 fit all kinds.
fn is_spoken(hello: &ClientHello<'_>, algorithm: SignatureAlgorithm) -> bool {
    let is_rsa = algorithm == SignatureAlgorithm::RSA;
    hello.cipher_suites().iter().any(|suite| match suite {
        CipherSuite::TLS13_AES_128_GCM_SHA256
        | CipherSuite::TLS13_AES_256_GCM_SHA384
        | CipherSuite::TLS13_CHACHA20_POLY1305_SHA256 => true,
        CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256
        | CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384
        | CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256 => is_rsa,
        CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256
        | CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384
        | CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256 => !is_rsa,
        _ => false,
    })
}

/// The result of a client's hello.
#[derive(Debug)]
pub(crate) struct Chosen {
    /// The name that the client requests.
    pub asked: Option<Box<str>>,
    /// The certificate that the client gets, DER.
    pub own: Option<Arc<[u8]>>,
}

thread_local! {
    /// The result of the hello being processed: the library passes its content only to the
    /// resolver.
    static CHOSEN: RefCell<Option<Chosen>> = const { RefCell::new(None) };
}

/// The result of the hello that was just processed on this thread.
pub(crate) fn take_chosen() -> Option<Chosen> {
    CHOSEN.take()
}

/// The certificates of a listener, with keys restricted to certain signature algorithms.
#[derive(Debug)]
pub(crate) struct Resolver {
    pub certificates: Arc<Certificates>,
    pub signatures: Signatures,
}

impl ResolvesServerCert for Resolver {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let all = &*self.certificates;
        let chosen = all.find(&hello, &self.signatures);
        let (key, own) = chosen.map_or((None, None), |(key, der)| (Some(key), Some(der)));
        CHOSEN.set(Some(Chosen {
            asked: hello.server_name().map(Into::into),
            own,
        }));
        key.map(|key| self.signatures.narrow(&key))
    }
}

impl Certificates {
    /// The certificate at a position, with its status unless that has expired.
    fn served(&self, place: usize) -> Arc<CertifiedKey> {
        let is_current = |stapled: &&Stapled| UnixTime::now().as_secs() <= stapled.until_s;
        match self.stapled[place].as_ref().filter(is_current) {
            Some(stapled) => stapled.key.clone(),
            None => self.keys[place].clone(),
        }
    }

    /// Chooses the certificate for a client: returns the chain with its key, and the first
    /// certificate in DER.
    fn find(
        &self,
        hello: &ClientHello<'_>,
        signatures: &Signatures,
    ) -> Option<(Arc<CertifiedKey>, Arc<[u8]>)> {
        let name = hello.server_name();
        let known = |place: usize| (self.served(place), self.ders[place].clone());
        if let Some(places) = name.and_then(|name| self.for_name(name)) {
            return self.usable(&places, hello, signatures).map(known);
        }
        let default = || self.usable(&self.default, hello, signatures);
        if let (Some(maker), Some(name)) = (&self.maker, name)
            && let Some(place) = default()
            && let Some(made) = maker.get(name, &self.keys[place])
        {
            return Some((made.key, made.der));
        }
        if self.strict {
            None
        } else {
            default().map(known)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::CertId;
    use crate::der::{
        BIT_STRING, ENUMERATED, FIELD_0, OBJECT_ID, OCTET_STRING, SEQUENCE, push, push_time,
    };

    /// A response that is valid between two times, seconds since the UNIX epoch; the second may be
    /// missing.
    fn response(this_update_s: u64, next_update_s: Option<u64>) -> Vec<u8> {
        let element = |tag: u8, parts: &[&[u8]]| {
            let mut out = Vec::new();
            push(&mut out, tag, &parts.concat());
            out
        };
        let time = |seconds: u64| {
            let mut out = Vec::new();
            push_time(&mut out, seconds);
            out
        };
        let id = CertId::by_sha1([&[1; 20], &[2; 20], &[3]]);
        let next = next_update_s.map(|next| element(FIELD_0, &[&time(next)]));
        let (this, next) = (time(this_update_s), next.unwrap_or_default());
        let single = element(SEQUENCE, &[id.der(), &[0x80, 0], &this, &next]);
        let responder = element(0xa1, &[&element(SEQUENCE, &[])]);
        let singles = element(SEQUENCE, &[&single]);
        let signed = element(SEQUENCE, &[&responder, &this, &singles]);
        let algorithm = element(SEQUENCE, &[&element(OBJECT_ID, &[&[0x2a, 3]])]);
        let signature = element(BIT_STRING, &[&[0]]);
        let basic = element(SEQUENCE, &[&signed, &algorithm, &signature]);
        let kind = element(OBJECT_ID, &[&[0x2b, 6, 1, 5, 5, 7, 0x30, 1, 1]]);
        let bytes = element(SEQUENCE, &[&kind, &element(OCTET_STRING, &[&basic])]);
        let status = element(ENUMERATED, &[&[0]]);
        element(SEQUENCE, &[&status, &element(FIELD_0, &[&bytes])])
    }

    #[test]
    fn a_status_is_stapled_until_five_minutes_before_its_end() {
        let key = rcgen::KeyPair::generate().unwrap();
        let params = rcgen::CertificateParams::new(["one.test".to_owned()]).unwrap();
        let pem = params.self_signed(&key).unwrap().pem() + &key.serialize_pem();
        let now_s = UnixTime::now().as_secs();
        for (next_update_s, is_stapled) in [
            (Some(now_s + 3600), true),
            (Some(now_s + 200), false),
            (Some(now_s - 86_400), false),
            (None, false),
        ] {
            let status = response(now_s - 2 * 86_400, next_update_s);
            assert!(crate::OcspResponse::parse(&status).is_ok());
            let path = Path::new("one.pem");
            let identity = Identity::parse(pem.as_bytes(), None, Some(status.clone()), path);
            let certificate = Certificate {
                identity: identity.unwrap(),
                filters: Vec::new(),
                is_default: false,
            };
            let served = Certificates::new(&[certificate], false).served(0);
            assert_eq!(served.ocsp, is_stapled.then_some(status));
        }
    }
}
