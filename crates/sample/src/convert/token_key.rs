//! Public keys that verify JSON Web Tokens (RFC 7518 §3.1), by the names of their files.
//!
//! As in HAProxy, a key file is known in the whole process: a variable may name a file that an
//! expression names.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ECDSA_P521_SHA512_FIXED, ParsedPublicKey,
    RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512,
    RSA_PSS_2048_8192_SHA256, RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512,
    VerificationAlgorithm,
};

use super::coding::decode64;
use super::jwe::PrivateKey;

/// The largest file of a public key, bytes.
const FILE_BYTES_MAX: u64 = 64 << 10;
/// The required curve of a kind of keys, as the bytes of its identifier in the key (RFC 5480
/// §2.1.1.1).
const P256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
const P384: &[u8] = &[0x2b, 0x81, 0x04, 0x00, 0x22];
const P521: &[u8] = &[0x2b, 0x81, 0x04, 0x00, 0x23];
/// 1.2.840.113549.1.1.1, rsaEncryption.
const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];

/// An algorithm with a public key: its name in tokens, the bytes that identify its keys, and its
/// verification function.
struct Algorithm {
    name: &'static [u8],
    key: &'static [u8],
    verification: &'static dyn VerificationAlgorithm,
}

macro_rules! algorithms {
    ($($name:literal $key:ident $verification:ident;)*) => {
        const ALGORITHMS: &[Algorithm] = &[$(Algorithm {
            name: $name,
            key: $key,
            verification: &$verification,
        },)*];
    };
}
algorithms! {
    b"RS256" RSA RSA_PKCS1_2048_8192_SHA256;
    b"RS384" RSA RSA_PKCS1_2048_8192_SHA384;
    b"RS512" RSA RSA_PKCS1_2048_8192_SHA512;
    b"PS256" RSA RSA_PSS_2048_8192_SHA256;
    b"PS384" RSA RSA_PSS_2048_8192_SHA384;
    b"PS512" RSA RSA_PSS_2048_8192_SHA512;
    b"ES256" P256 ECDSA_P256_SHA256_FIXED;
    b"ES384" P384 ECDSA_P384_SHA384_FIXED;
    b"ES512" P521 ECDSA_P521_SHA512_FIXED;
}

/// Whether a token algorithm needs a public key.
pub(super) fn is_public(name: &[u8]) -> bool {
    ALGORITHMS.iter().any(|each| each.name == name)
}

/// A public key for each algorithm that accepts it.
#[derive(Debug)]
pub(super) struct PublicKey(Vec<(&'static [u8], ParsedPublicKey)>);

impl PublicKey {
    /// Parses a `SubjectPublicKeyInfo` (RFC 5280 §4.1.2.7). None if no algorithm accepts the key.
    pub fn parse(der: &[u8]) -> Option<PublicKey> {
        let head = &der[..der.len().min(64)];
        let fits = |algorithm: &&Algorithm| {
            let mut windows = head.windows(algorithm.key.len());
            windows.any(|window| window == algorithm.key)
        };
        let keys = ALGORITHMS.iter().filter(fits).filter_map(|algorithm| {
            let key = ParsedPublicKey::new(algorithm.verification, der).ok()?;
            Some((algorithm.name, key))
        });
        let keys: Vec<_> = keys.collect();
        (!keys.is_empty()).then_some(PublicKey(keys))
    }

    /// Whether a signature by this algorithm is valid.
    pub fn verifies(&self, algorithm: &[u8], signed: &[u8], signature: &[u8]) -> bool {
        let key = self.0.iter().find(|(name, _)| *name == algorithm);
        key.is_some_and(|(_, key)| key.verify_sig(signed, signature).is_ok())
    }
}

type ByName<T> = RwLock<BTreeMap<Box<[u8]>, T>>;

static KEYS: ByName<Arc<PublicKey>> = RwLock::new(BTreeMap::new());

/// The key in a file that an expression names.
pub(super) fn known(path: &[u8]) -> Option<Arc<PublicKey>> {
    let keys = KEYS.read().unwrap_or_else(PoisonError::into_inner);
    keys.get(path).cloned()
}

/// The keys of certificates by name; None for a certificate that must not be used.
static CERTIFICATES: ByName<Option<Arc<PublicKey>>> = RwLock::new(BTreeMap::new());

/// Registers that an expression verifies with a certificate of this name.
pub(super) fn want_certificate(name: &[u8]) {
    let mut all = CERTIFICATES.write().unwrap_or_else(PoisonError::into_inner);
    all.entry(name.into()).or_default();
}

/// The names of the certificates that expressions use to verify tokens.
#[must_use]
pub fn wanted_token_certificates() -> Vec<String> {
    let all = CERTIFICATES.read().unwrap_or_else(PoisonError::into_inner);
    all.keys()
        .map(|name| String::from_utf8_lossy(name).into_owned())
        .collect()
}

/// The private keys of certificates by name, which decrypt tokens.
static PRIVATE: ByName<Arc<PrivateKey>> = RwLock::new(BTreeMap::new());

/// The private key of a certificate, if it may decrypt tokens.
pub(super) fn private(name: &[u8]) -> Option<Arc<PrivateKey>> {
    let all = PRIVATE.read().unwrap_or_else(PoisonError::into_inner);
    all.get(name).cloned()
}

/// Sets the certificate that verifies tokens under this name from now on, and the private key that
/// decrypts them (both DER). None forbids its use.
pub fn set_token_certificate(name: &str, certificate: Option<&[u8]>, private: Option<&[u8]>) {
    let private = private.and_then(PrivateKey::parse).map(Arc::new);
    let mut all = PRIVATE.write().unwrap_or_else(PoisonError::into_inner);
    match private {
        Some(private) => drop(all.insert(name.as_bytes().into(), private)),
        None => drop(all.remove(name.as_bytes())),
    }
    drop(all);
    let key = certificate.and_then(crate::x509::public_key);
    let key = key.and_then(|key| PublicKey::parse(&key)).map(Arc::new);
    let mut all = CERTIFICATES.write().unwrap_or_else(PoisonError::into_inner);
    all.insert(name.as_bytes().into(), key);
}

/// The key of a certificate: None if the name is unknown, `Some(None)` if it must not be used.
pub(super) fn certificate(name: &[u8]) -> Option<Option<Arc<PublicKey>>> {
    let all = CERTIFICATES.read().unwrap_or_else(PoisonError::into_inner);
    all.get(name).cloned()
}

/// Reads the key of a PEM file (RFC 7468 §13).
///
/// # Errors
/// The file cannot be read, or is not a public key: the reason.
pub(super) fn load(path: &[u8]) -> Result<(), String> {
    let name = String::from_utf8_lossy(path);
    let unreadable = || format!("{name} : unable to load public key");
    let text = files::read(&*name, FILE_BYTES_MAX).map_err(|_| unreadable())?;
    let der = pem(&text).ok_or_else(unreadable)?;
    let key = PublicKey::parse(&der).ok_or_else(unreadable)?;
    let mut keys = KEYS.write().unwrap_or_else(PoisonError::into_inner);
    keys.insert(path.into(), Arc::new(key));
    Ok(())
}

/// The bytes between the lines of a public key in a PEM text.
fn pem(text: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(text).ok()?;
    let (_, text) = text.split_once("-----BEGIN PUBLIC KEY-----")?;
    let (text, _) = text.split_once("-----END PUBLIC KEY-----")?;
    let text: Vec<u8> = text
        .bytes()
        .filter(|byte| !byte.is_ascii_whitespace())
        .collect();
    let mut der = Vec::new();
    decode64(&text, &mut der)?;
    Some(der)
}
