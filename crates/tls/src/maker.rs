//! Certificates generated for names that no certificate has (`generate-certificates`).
//!
//! A generated certificate has the public key of the listener's default certificate, the requested
//! name, and the signature of our authority. The most recent ones are kept.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use aws_lc_rs::rand;
use rustls::SignatureScheme;
use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use rustls::pki_types::CertificateDer;
use rustls::sign::{CertifiedKey, SigningKey};
use rustls::time_provider::{DefaultTimeProvider, TimeProvider as _};

use crate::IdentityError;
use crate::der::{
    BIT_STRING, BOOLEAN, EXTENSIONS, INTEGER, NULL, OBJECT_ID, OCTET_STRING, SEQUENCE, SET,
    UTF8_STRING, VERSION, expect, push, push_time,
};
use crate::encrypted::Passphrases;
use crate::identity::Material;
use crate::old::{Parts, SERVER_AUTH, parts};

/// How long a certificate is valid, seconds; it begins a day ago.
const VALID_S: u64 = 366 * DAY_S;
const DAY_S: u64 = 24 * 60 * 60;
/// Bytes of a serial number (RFC 5280 §4.1.2.2).
const SERIAL_BYTES: usize = 16;
/// The longest common name (RFC 5280 appendix A.1).
const COMMON_NAME_BYTES_MAX: usize = 64;

const COMMON_NAME: &[u8] = &[0x55, 4, 3];
const SUBJECT_KEY: &[u8] = &[0x55, 0x1d, 0x0e];
const KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x0f];
const ALTERNATIVE_NAME: &[u8] = &[0x55, 0x1d, 0x11];
const BASIC_CONSTRAINTS: &[u8] = &[0x55, 0x1d, 0x13];
const AUTHORITY_KEY: &[u8] = &[0x55, 0x1d, 0x23];
const PURPOSES: &[u8] = &[0x55, 0x1d, 0x25];
/// The tags of a host name in an alternative name, and of the identifier of an authority's key.
const DNS_NAME: u8 = 0x82;
const KEY_IDENTIFIER: u8 = 0x80;
/// `digitalSignature` and `keyEncipherment`: bits 0 and 2; 5 bits are unused.
const USAGE: &[u8] = &[BIT_STRING, 2, 5, 0b1010_0000];

/// The signature algorithms: the scheme in handshakes and the identifier in certificates (RFC 5758,
/// RFC 8017, RFC 8410).
const ALGORITHMS: [(SignatureScheme, &[u8], bool); 5] = {
    const ECDSA: [&[u8]; 3] = [
        &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2],
        &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 3],
        &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 4],
    ];
    const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 11];
    [
        (SignatureScheme::ECDSA_NISTP256_SHA256, ECDSA[0], false),
        (SignatureScheme::ECDSA_NISTP384_SHA384, ECDSA[1], false),
        (SignatureScheme::ECDSA_NISTP521_SHA512, ECDSA[2], false),
        (SignatureScheme::RSA_PKCS1_SHA256, RSA, true),
        (SignatureScheme::ED25519, &[0x2b, 0x65, 0x70], false),
    ]
};

/// An authority that signs certificates: its own certificate, with its key and chain.
#[derive(Clone)]
pub struct CaSigner {
    /// Its certificate and the certificates above it.
    chain: Vec<CertificateDer<'static>>,
    key: Arc<dyn SigningKey>,
}

impl fmt::Debug for CaSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CaSigner").finish_non_exhaustive()
    }
}

impl CaSigner {
    /// Reads both from the text of a PEM file. Errors name `path`.
    ///
    /// # Errors
    /// A part is missing or malformed, or the kind of the key is not supported for signing.
    pub fn parse(
        pem: &[u8],
        path: &Path,
        passphrases: &mut Passphrases<'_>,
    ) -> Result<CaSigner, IdentityError> {
        let mut material = Material::default();
        material.set_pem_with(pem, path, passphrases)?;
        // Checks that there is a key and that it belongs to the certificate.
        material.identity(path)?;
        let (chain, key) = material.into_parts();
        let key = key.ok_or_else(|| IdentityError::NoKey(path.to_owned()))?;
        let key = any_supported_type(&key).map_err(|_| IdentityError::KeyKind(path.to_owned()))?;
        let signer = CaSigner { chain, key };
        match signer.algorithm() {
            Some(_) => Ok(signer),
            None => Err(IdentityError::KeyKind(path.to_owned())),
        }
    }

    fn algorithm(&self) -> Option<(SignatureScheme, Vec<u8>)> {
        let mut known = ALGORITHMS.into_iter();
        let (scheme, id, is_rsa) =
            known.find(|(scheme, _, _)| self.key.choose_scheme(&[*scheme]).is_some())?;
        let mut content = element(OBJECT_ID, id);
        if is_rsa {
            push(&mut content, NULL, b"");
        }
        Some((scheme, element(SEQUENCE, &content)))
    }

    /// A certificate for a name with the public key of `like`, valid around `now_s`, and the end of
    /// its validity.
    fn make(&self, name: &str, like: &CertificateDer<'_>, now_s: u64) -> Option<(Vec<u8>, u64)> {
        let like = parts(like)?;
        let own = self.chain.first()?;
        let own = parts(own)?;
        let mut serial = [0; SERIAL_BYTES];
        rand::fill(&mut serial).ok()?;
        // Positive and of full length.
        serial[0] = serial[0] & 0x7f | 0x40;
        let from_s = now_s.saturating_sub(DAY_S);
        let until_s = (from_s + VALID_S).min(own.ends_s());
        let (scheme, algorithm) = self.algorithm()?;
        let mut subject = own.subject.to_vec();
        if name.len() <= COMMON_NAME_BYTES_MAX {
            let mut pair = element(OBJECT_ID, COMMON_NAME);
            push(&mut pair, UTF8_STRING, name.as_bytes());
            push(&mut subject, SET, &element(SEQUENCE, &pair));
        }
        let mut validity = Vec::new();
        push_time(&mut validity, from_s);
        push_time(&mut validity, until_s);
        let mut content = element(VERSION, &element(INTEGER, &[2]));
        push(&mut content, INTEGER, &serial);
        content.extend_from_slice(&algorithm);
        push(&mut content, SEQUENCE, own.subject);
        push(&mut content, SEQUENCE, &validity);
        push(&mut content, SEQUENCE, &subject);
        content.extend_from_slice(like.key.as_ref());
        let extensions = extensions(name, &like, &own)?;
        push(&mut content, EXTENSIONS, &element(SEQUENCE, &extensions));
        let signed = element(SEQUENCE, &content);
        let signature = self.key.choose_scheme(&[scheme])?.sign(&signed).ok()?;
        let mut bits = vec![0];
        bits.extend(signature);
        let mut content = signed;
        content.extend(algorithm);
        push(&mut content, BIT_STRING, &bits);
        Some((element(SEQUENCE, &content), until_s))
    }
}

fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(content.len() + 4);
    push(&mut out, tag, content);
    out
}

fn extensions(name: &str, like: &Parts<'_>, own: &Parts<'_>) -> Option<Vec<u8>> {
    let mut all = Vec::new();
    let mut add = |id: &[u8], is_critical: bool, value: &[u8]| {
        let mut content = element(OBJECT_ID, id);
        if is_critical {
            push(&mut content, BOOLEAN, &[0xff]);
        }
        push(&mut content, OCTET_STRING, value);
        push(&mut all, SEQUENCE, &content);
    };
    add(BASIC_CONSTRAINTS, true, &element(SEQUENCE, b""));
    add(KEY_USAGE, true, USAGE);
    let purposes = element(OBJECT_ID, SERVER_AUTH);
    add(PURPOSES, false, &element(SEQUENCE, &purposes));
    add(SUBJECT_KEY, false, &element(OCTET_STRING, &key_id(like)?));
    // The authority's own key identifier takes precedence (RFC 5280 §4.2.1.1).
    let authority = own.extension(SUBJECT_KEY);
    let authority = authority.and_then(|value| Some(expect(value, OCTET_STRING)?.0.to_vec()));
    let authority = authority.or_else(|| key_id(own))?;
    let authority = element(KEY_IDENTIFIER, &authority);
    add(AUTHORITY_KEY, false, &element(SEQUENCE, &authority));
    let names = element(DNS_NAME, name.as_bytes());
    add(ALTERNATIVE_NAME, false, &element(SEQUENCE, &names));
    Some(all)
}

/// The hash of a key (RFC 5280 §4.2.1.2).
fn key_id(parts: &Parts<'_>) -> Option<Vec<u8>> {
    let (key, _) = expect(parts.key.as_ref(), SEQUENCE)?;
    let (_, key) = expect(key, SEQUENCE)?;
    let (key, _) = expect(key, BIT_STRING)?;
    let hash = digest(&SHA1_FOR_LEGACY_USE_ONLY, key.get(1..)?);
    Some(hash.as_ref().to_vec())
}

/// A generated certificate.
#[derive(Clone, Debug)]
pub(crate) struct Made {
    pub key: Arc<CertifiedKey>,
    pub der: Arc<[u8]>,
    until_s: u64,
}

/// Generates the certificates of a listener, and keeps the most recent ones.
#[derive(Debug)]
pub(crate) struct Maker {
    signer: CaSigner,
    kept_max: usize,
    kept: Mutex<Kept>,
}

/// The recent names, and those before them: when the newer half is full, the older half is dropped.
#[derive(Debug, Default)]
struct Kept {
    newer: HashMap<Box<str>, Made>,
    older: HashMap<Box<str>, Made>,
}

impl Maker {
    /// `kept_max`: how many are kept (`tune.ssl.ssl-ctx-cache-size`); 0 for none.
    pub fn new(signer: CaSigner, kept_max: usize) -> Maker {
        Maker {
            signer,
            kept_max,
            kept: Mutex::default(),
        }
    }

    /// A certificate for a name, with the key of the listener's default certificate.
    pub fn get(&self, name: &str, default: &CertifiedKey) -> Option<Made> {
        let name = name.to_ascii_lowercase();
        let now_s = DefaultTimeProvider.current_time()?.as_secs();
        if let Some(made) = self.kept(&name).filter(|made| now_s + DAY_S < made.until_s) {
            return Some(made);
        }
        let (der, until_s) = self.signer.make(&name, default.cert.first()?, now_s)?;
        let mut chain = vec![CertificateDer::from(der.clone())];
        // Clients already have the roots.
        let above = self.signer.chain.iter();
        chain.extend(above.filter(|each| !is_root(each)).cloned());
        let made = Made {
            key: Arc::new(CertifiedKey::new(chain, default.key.clone())),
            der: der.into(),
            until_s,
        };
        self.keep(name.into(), made.clone());
        Some(made)
    }

    fn kept(&self, name: &str) -> Option<Made> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(made) = kept.newer.get(name) {
            return Some(made.clone());
        }
        let (name, made) = kept.older.remove_entry(name)?;
        let found = made.clone();
        self.put(&mut kept, name, made);
        Some(found)
    }

    fn keep(&self, name: Box<str>, made: Made) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        self.put(&mut kept, name, made);
    }

    fn put(&self, kept: &mut Kept, name: Box<str>, made: Made) {
        let half = self.kept_max.div_ceil(2);
        if half == 0 {
            return;
        }
        if kept.newer.len() >= half {
            kept.older = std::mem::take(&mut kept.newer);
        }
        kept.newer.insert(name, made);
    }
}

fn is_root(certificate: &CertificateDer<'_>) -> bool {
    parts(certificate).is_some_and(|parts| parts.issuer == parts.subject)
}
