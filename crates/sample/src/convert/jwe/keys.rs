//! Content keys (RFC 7518 §4): used directly, unwrapped, decrypted or agreed on.

use aws_lc_rs::aead;
use aws_lc_rs::agreement::{self, ECDH_P256, ECDH_P384, ECDH_P521, UnparsedPublicKey};
use aws_lc_rs::digest::{Context, SHA256};
use aws_lc_rs::rand;
use aws_lc_rs::rsa::{
    OAEP_SHA1_MGF1SHA1, OAEP_SHA256_MGF1SHA256, OaepAlgorithm, OaepPrivateDecryptingKey,
    Pkcs1PrivateDecryptingKey, PrivateDecryptingKey,
};
use x509_cert::der::asn1::{AnyRef, ObjectIdentifier, UintRef};
use x509_cert::der::{Encode as _, Tag};

use super::{Encryption, Key, Sealed, Token, TokenAlgorithms, decoded, gcm_open, text};
use crate::convert::aes;

/// The longest agreed or decrypted key, in bytes: that of A256CBC-HS512.
const KEY_BYTES_MAX: usize = 64;
/// The longest header parameter that is hashed into a key, in bytes.
const PARTY_BYTES_MAX: usize = 1024;

/// How a token carries its content key.
#[derive(Clone, Copy)]
enum Management {
    /// The shared secret is the content key.
    Direct,
    /// Wrapped with a secret of this many bytes (RFC 3394).
    Wrapped(usize),
    /// Encrypted with AES-GCM and a secret.
    Gcm(&'static aead::Algorithm),
    /// Encrypted with RSA and PKCS #1 padding.
    Pkcs1,
    /// Encrypted with RSA and OAEP padding.
    Oaep(&'static OaepAlgorithm),
    /// Agreed on with a key of the sender. With a number, the agreed key has this many bytes and
    /// unwraps the content key.
    Agreed(Option<usize>),
}

const MANAGEMENTS: [(&str, Management); 14] = [
    ("dir", Management::Direct),
    ("A128KW", Management::Wrapped(16)),
    ("A192KW", Management::Wrapped(24)),
    ("A256KW", Management::Wrapped(32)),
    ("A128GCMKW", Management::Gcm(&aead::AES_128_GCM)),
    ("A192GCMKW", Management::Gcm(&aead::AES_192_GCM)),
    ("A256GCMKW", Management::Gcm(&aead::AES_256_GCM)),
    ("RSA1_5", Management::Pkcs1),
    ("RSA-OAEP", Management::Oaep(&OAEP_SHA1_MGF1SHA1)),
    ("RSA-OAEP-256", Management::Oaep(&OAEP_SHA256_MGF1SHA256)),
    ("ECDH-ES", Management::Agreed(None)),
    ("ECDH-ES+A128KW", Management::Agreed(Some(16))),
    ("ECDH-ES+A192KW", Management::Agreed(Some(24))),
    ("ECDH-ES+A256KW", Management::Agreed(Some(32))),
];

/// A private key.
#[derive(Debug)]
pub(in super::super) enum PrivateKey {
    Rsa(PrivateDecryptingKey),
    Ec(agreement::PrivateKey),
}

/// A NIST curve: its name, its algorithm, and the bytes of a coordinate.
const CURVES: [(&[u8], &agreement::Algorithm, usize); 3] = [
    (b"P-256", &ECDH_P256, 32),
    (b"P-384", &ECDH_P384, 48),
    (b"P-521", &ECDH_P521, 66),
];

impl PrivateKey {
    /// Parses a key in DER: PKCS #8 (RFC 5208), PKCS #1 (RFC 8017) or SEC 1 (RFC 5915).
    pub fn parse(der: &[u8]) -> Option<PrivateKey> {
        let wrapped = || PrivateDecryptingKey::from_pkcs8(&pkcs8(der)?).ok();
        let rsa = PrivateDecryptingKey::from_pkcs8(der).ok().or_else(wrapped);
        let ec = || {
            let mut curves = CURVES.iter();
            curves.find_map(|(_, curve, _)| {
                agreement::PrivateKey::from_private_key_der(curve, der).ok()
            })
        };
        rsa.map(PrivateKey::Rsa)
            .or_else(|| ec().map(PrivateKey::Ec))
    }
}

/// The RSA private key in a JSON Web Key (RFC 7518 §6.3).
pub(super) fn rsa(jwk: &[u8]) -> Option<PrivateKey> {
    // The version, then the numbers in the order of RFC 8017 appendix A.1.2.
    let mut numbers = UintRef::new(&[0]).ok()?.to_der().ok()?;
    for path in [
        b"$.n".as_slice(),
        b"$.e",
        b"$.d",
        b"$.p",
        b"$.q",
        b"$.dp",
        b"$.dq",
        b"$.qi",
    ] {
        let number = decoded(jwk, path)?;
        numbers.extend(UintRef::new(&number).ok()?.to_der().ok()?);
    }
    let key = AnyRef::new(Tag::Sequence, &numbers).ok()?.to_der().ok()?;
    let key = PrivateDecryptingKey::from_pkcs8(&pkcs8(&key)?).ok()?;
    Some(PrivateKey::Rsa(key))
}

/// The PKCS #8 form of an RSA key in PKCS #1.
fn pkcs8(key: &[u8]) -> Option<Vec<u8>> {
    const RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");
    let mut algorithm = RSA.to_der().ok()?;
    algorithm.extend(AnyRef::NULL.to_der().ok()?);
    let mut content = UintRef::new(&[0]).ok()?.to_der().ok()?;
    content.extend(AnyRef::new(Tag::Sequence, &algorithm).ok()?.to_der().ok()?);
    content.extend(AnyRef::new(Tag::OctetString, key).ok()?.to_der().ok()?);
    AnyRef::new(Tag::Sequence, &content).ok()?.to_der().ok()
}

/// The private key on a curve in a JSON Web Key (RFC 7518 §6.2).
pub(super) fn ec(jwk: &[u8]) -> Option<PrivateKey> {
    let (_, curve, bytes) = curve(text(jwk, b"$.crv")?)?;
    let number = padded(decoded(jwk, b"$.d")?, bytes)?;
    let key = agreement::PrivateKey::from_private_key(curve, &number).ok()?;
    Some(PrivateKey::Ec(key))
}

fn curve(name: &[u8]) -> Option<(&'static [u8], &'static agreement::Algorithm, usize)> {
    CURVES.into_iter().find(|(known, _, _)| *known == name)
}

/// A number padded with leading zeros.
fn padded(number: Vec<u8>, bytes: usize) -> Option<Vec<u8>> {
    let mut all = vec![0; bytes.checked_sub(number.len())?];
    all.extend(number);
    Some(all)
}

/// The content key of a token.
pub(super) fn content_key(
    token: &Token<'_>,
    key: &Key<'_>,
    encryption: &Encryption,
    allowed: TokenAlgorithms,
) -> Option<Vec<u8>> {
    let name = text(&token.header, b"$.alg")?;
    let mut known = MANAGEMENTS.into_iter();
    let (name, management) = known.find(|(known, _)| known.as_bytes() == name)?;
    if !allowed.has_algorithm(name) {
        return None;
    }
    let encrypted = &token.encrypted_key[..];
    let private = match key {
        Key::Secret(secret) => return with_secret(token, secret, management),
        Key::Private(key) => key,
        Key::Own(key) => &**key,
    };
    match (management, private) {
        (Management::Pkcs1, PrivateKey::Rsa(key)) => {
            let key = Pkcs1PrivateDecryptingKey::new(key.clone()).ok()?;
            let mut out = vec![0; key.min_output_size()];
            let length = key.decrypt(encrypted, &mut out).map(|plain| plain.len());
            // The sender must not learn whether the padding was valid (RFC 7516 §11.5): a wrong key
            // is replaced by a random one.
            let bytes = encryption.key_bytes;
            let mut random = vec![0; bytes];
            rand::fill(&mut random).ok()?;
            if length == Ok(bytes) {
                Some(out[..bytes].to_vec())
            } else {
                Some(random)
            }
        }
        (Management::Oaep(algorithm), PrivateKey::Rsa(key)) => {
            let key = OaepPrivateDecryptingKey::new(key.clone()).ok()?;
            let mut out = vec![0; key.min_output_size()];
            let plain = key.decrypt(algorithm, encrypted, &mut out, None).ok()?;
            (plain.len() <= KEY_BYTES_MAX).then(|| plain.to_vec())
        }
        (Management::Agreed(None), PrivateKey::Ec(key)) if encrypted.is_empty() => {
            agreed(token, key, encryption.name, encryption.key_bytes)
        }
        (Management::Agreed(Some(bytes)), PrivateKey::Ec(key)) => {
            let wrapping = agreed(token, key, name, bytes)?;
            aes::unwrap_key(&wrapping, encrypted)
        }
        _ => None,
    }
}

fn with_secret(token: &Token<'_>, secret: &[u8], management: Management) -> Option<Vec<u8>> {
    let encrypted = &token.encrypted_key;
    match management {
        Management::Direct => encrypted.is_empty().then(|| secret.to_vec()),
        Management::Wrapped(bytes) if secret.len() == bytes => aes::unwrap_key(secret, encrypted),
        Management::Gcm(algorithm) => {
            let nonce = decoded(&token.header, b"$.iv")?;
            let tag = decoded(&token.header, b"$.tag")?;
            let sealed = Sealed {
                nonce: &nonce,
                tag: &tag,
                additional: b"",
                content: encrypted.clone(),
            };
            gcm_open(algorithm, secret, sealed)
        }
        Management::Wrapped(_)
        | Management::Pkcs1
        | Management::Oaep(_)
        | Management::Agreed(_) => None,
    }
}

/// The key agreed on from the sender's ephemeral key and our private key (RFC 7518 §4.6), for an
/// algorithm, with this many bytes.
fn agreed(
    token: &Token<'_>,
    key: &agreement::PrivateKey,
    algorithm: &str,
    bytes: usize,
) -> Option<Vec<u8>> {
    let header = &token.header;
    if text(header, b"$.epk.kty")? != b"EC" {
        return None;
    }
    let (_, curve, coordinate) = curve(text(header, b"$.epk.crv")?)?;
    // The uncompressed form of a point (SEC 1 §2.3.3).
    let mut point = vec![4];
    for path in [b"$.epk.x".as_slice(), b"$.epk.y"] {
        point.extend(padded(decoded(header, path)?, coordinate)?);
    }
    let party = |path: &[u8]| match text(header, path) {
        None => Some(Vec::new()),
        Some(_) => decoded(header, path).filter(|party| party.len() <= PARTY_BYTES_MAX),
    };
    let (sender, recipient) = (party(b"$.apu")?, party(b"$.apv")?);
    let mut info = Vec::new();
    for part in [algorithm.as_bytes(), &sender, &recipient] {
        info.extend_from_slice(&(part.len() as u32).to_be_bytes());
        info.extend_from_slice(part);
    }
    info.extend_from_slice(&(bytes as u32 * 8).to_be_bytes());
    let peer = UnparsedPublicKey::new(curve, point);
    agreement::agree(key, peer, (), |secret| Ok(derived(secret, &info, bytes))).ok()
}

/// The first bytes of the output of the Concat KDF (NIST SP 800-56A §5.8.1) with SHA-256.
fn derived(secret: &[u8], info: &[u8], bytes: usize) -> Vec<u8> {
    let mut key = Vec::new();
    for round in 1_u32.. {
        let mut hash = Context::new(&SHA256);
        hash.update(&round.to_be_bytes());
        hash.update(secret);
        hash.update(info);
        key.extend_from_slice(hash.finish().as_ref());
        if key.len() >= bytes {
            break;
        }
    }
    key.truncate(bytes);
    key
}
