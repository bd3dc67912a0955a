//! Encrypted JSON Web Tokens in their compact form (RFC 7516 §3.1, RFC 7518 §4 and §5).
//!
//! Each token has a content key of its own, which [`keys`] decrypts with a secret or a private key.
//! The content is returned only after its tag was verified. On any fault in a token, the converters
//! have no value.

mod keys;
mod lists;

use super::coding::decode_url64;
use super::digest::{base64_at, decode_base64_at};
use super::json_path::{Found, find};
use super::token_key;
use super::{Convert, bytes_of, convert, written};
use crate::args::ArgKind::StrOrVar;
use crate::args::{Arg, spec};
use crate::cast::cast;
use crate::{Bytes, Kind, Scope, Value};
use aws_lc_rs::aead::{self, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::cipher::{self, DecryptionContext, PaddedBlockDecryptingKey, UnboundCipherKey};
use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::hmac;
use aws_lc_rs::iv::FixedLength;

pub(super) use keys::PrivateKey;
pub use lists::TokenAlgorithms;

pub(crate) const CONVERTERS: &[Convert] = &[
    convert(
        "jwt_decrypt_secret",
        spec(1, &[StrOrVar]),
        Kind::Bin,
        Kind::Bin,
        "the content of an encrypted JSON Web Token: a secret in base64",
        decrypt_with_secret,
    )
    .checked(|args| decode_base64_at(args, 0))
    .secret(0),
    convert(
        "jwt_decrypt_cert",
        spec(1, &[StrOrVar]),
        Kind::Bin,
        Kind::Bin,
        "the content of an encrypted JSON Web Token: a certificate's name",
        decrypt_with_certificate,
    )
    .checked(|args| {
        if let Some(Arg::Str(name)) = args.first() {
            token_key::want_certificate(name);
        }
        Ok(())
    }),
    convert(
        "jwt_decrypt_jwk",
        spec(1, &[StrOrVar]),
        Kind::Bin,
        Kind::Bin,
        "the content of an encrypted JSON Web Token: a JSON Web Key",
        decrypt_with_jwk,
    )
    .checked(|args| match args.first() {
        Some(Arg::Str(text)) => Key::read(text).map(drop).map_err(str::to_owned),
        _ => Ok(()),
    })
    .secret(0),
];

/// The key that decrypts a token.
enum Key<'a> {
    Secret(Bytes<'a>),
    Private(&'a PrivateKey),
    Own(Box<PrivateKey>),
}

impl Key<'_> {
    /// Reads a JSON Web Key (RFC 7517).
    ///
    /// # Errors
    /// The key cannot decrypt tokens: the reason.
    fn read<'k>(jwk: &[u8]) -> Result<Key<'k>, &'static str> {
        let boxed = |key: PrivateKey| Key::Own(Box::new(key));
        match text(jwk, b"$.kty") {
            Some(b"oct") => {
                let secret = decoded(jwk, b"$.k").ok_or("Missing 'k' field in JWK")?;
                Ok(Key::Secret(written_bytes(secret)))
            }
            Some(b"RSA") => keys::rsa(jwk).map(boxed).ok_or("Failed to parse RSA JWK"),
            Some(b"EC") => keys::ec(jwk).map(boxed).ok_or("Failed to parse EC JWK"),
            Some(_) => Err("Unmanaged key type (expected 'oct', 'RSA' or 'EC')"),
            None => Err("Missing key type (expected 'oct', 'RSA' or 'EC')"),
        }
    }
}

fn written_bytes<'a>(bytes: Vec<u8>) -> Bytes<'a> {
    let mut out = Bytes::buffer();
    out.as_vec().extend_from_slice(&bytes);
    out.into()
}

/// The text at a JSON path; None if it has escapes, which are not valid in these values.
fn text<'j>(json: &'j [u8], path: &[u8]) -> Option<&'j [u8]> {
    match find(json, path)? {
        Found::Text(start, end) if !json[start..end].contains(&b'\\') => Some(&json[start..end]),
        _ => None,
    }
}

/// The decoded bytes at a JSON path, written in base64 for URLs.
fn decoded(json: &[u8], path: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    decode_url64(text(json, path)?, &mut out)?;
    Some(out)
}

/// The value of an argument that may be a variable.
fn argument<'a>(args: &'a [Arg], scope: &Scope<'a>) -> Option<Bytes<'a>> {
    match args.first()? {
        Arg::Str(text) => Some(Bytes::Borrowed(text)),
        Arg::Var(var) => bytes_of(cast(scope.var(*var)?, Kind::Str)?),
        _ => None,
    }
}

fn decrypt_with_secret<'a>(
    args: &'a [Arg],
    value: Value<'a>,
    scope: &Scope<'a>,
) -> Option<Value<'a>> {
    let secret = base64_at(args, 0, scope)?;
    decrypt(value, &Key::Secret(secret), scope)
}

fn decrypt_with_certificate<'a>(
    args: &'a [Arg],
    value: Value<'a>,
    scope: &Scope<'a>,
) -> Option<Value<'a>> {
    let key = token_key::private(&argument(args, scope)?)?;
    decrypt(value, &Key::Private(&key), scope)
}

fn decrypt_with_jwk<'a>(args: &'a [Arg], value: Value<'a>, scope: &Scope<'a>) -> Option<Value<'a>> {
    let key = Key::read(&argument(args, scope)?).ok()?;
    decrypt(value, &key, scope)
}

/// A token, split into its parts.
struct Token<'t> {
    /// The authenticated form of the header: base64.
    written_header: &'t [u8],
    /// The header as JSON.
    header: Vec<u8>,
    encrypted_key: Vec<u8>,
    vector: Vec<u8>,
    content: Vec<u8>,
    tag: Vec<u8>,
}

impl<'t> Token<'t> {
    fn parse(token: &'t [u8]) -> Option<Token<'t>> {
        let mut parts = token.split(|byte| *byte == b'.');
        let written_header = parts.next()?;
        let decoded = |part: Option<&[u8]>| {
            let mut out = Vec::new();
            decode_url64(part?, &mut out)?;
            Some(out)
        };
        let token = Token {
            written_header,
            header: decoded(Some(written_header))?,
            encrypted_key: decoded(parts.next())?,
            vector: decoded(parts.next())?,
            content: decoded(parts.next())?,
            tag: decoded(parts.next())?,
        };
        let is_whole = parts.next().is_none();
        // A header that this code must understand but does not (RFC 7516 §4.1.13), and compression,
        // are refused.
        let is_plain =
            find(&token.header, b"$.crit").is_none() && find(&token.header, b"$.zip").is_none();
        (is_whole && is_plain).then_some(token)
    }
}

fn decrypt<'a>(value: Value<'a>, key: &Key<'_>, scope: &Scope<'a>) -> Option<Value<'a>> {
    let allowed = scope.world.token_algorithms();
    let token = bytes_of(value)?;
    let token = Token::parse(&token)?;
    let encryption = Encryption::named(text(&token.header, b"$.enc")?, allowed)?;
    let content_key = keys::content_key(&token, key, &encryption, allowed)?;
    let plain = encryption.open(token, &content_key)?;
    written(|out| {
        out.extend_from_slice(&plain);
        Some(())
    })
    .map(Value::Bin)
}

/// A content encryption method (RFC 7518 §5).
struct Encryption {
    name: &'static str,
    /// The length of the content key.
    key_bytes: usize,
    mode: Mode,
}

enum Mode {
    Cbc(&'static cipher::Algorithm, hmac::Algorithm),
    Gcm(&'static aead::Algorithm),
}

/// In the order of `lists::ENCRYPTIONS`.
#[rustfmt::skip]
const ENCRYPTIONS: [Encryption; 6] = [
    Encryption { name: "A128CBC-HS256", key_bytes: 32, mode: Mode::Cbc(&cipher::AES_128, hmac::HMAC_SHA256) },
    Encryption { name: "A192CBC-HS384", key_bytes: 48, mode: Mode::Cbc(&cipher::AES_192, hmac::HMAC_SHA384) },
    Encryption { name: "A256CBC-HS512", key_bytes: 64, mode: Mode::Cbc(&cipher::AES_256, hmac::HMAC_SHA512) },
    Encryption { name: "A128GCM", key_bytes: 16, mode: Mode::Gcm(&aead::AES_128_GCM) },
    Encryption { name: "A192GCM", key_bytes: 24, mode: Mode::Gcm(&aead::AES_192_GCM) },
    Encryption { name: "A256GCM", key_bytes: 32, mode: Mode::Gcm(&aead::AES_256_GCM) },
];

impl Encryption {
    fn named(name: &[u8], allowed: TokenAlgorithms) -> Option<Encryption> {
        let mut known = ENCRYPTIONS.into_iter();
        let found = known.find(|known| known.name.as_bytes() == name)?;
        allowed.has_encryption(found.name).then_some(found)
    }

    /// The decrypted content of a token. None if the authentication tag does not match.
    fn open(&self, token: Token<'_>, key: &[u8]) -> Option<Vec<u8>> {
        if key.len() != self.key_bytes {
            return None;
        }
        match &self.mode {
            Mode::Gcm(algorithm) => {
                let sealed = Sealed {
                    nonce: &token.vector,
                    tag: &token.tag,
                    additional: token.written_header,
                    content: token.content,
                };
                gcm_open(algorithm, key, sealed)
            }
            Mode::Cbc(algorithm, hash) => {
                let (for_tag, for_content) = key.split_at(key.len() / 2);
                if !is_tagged(&token, *hash, for_tag) {
                    return None;
                }
                let cipher_key = UnboundCipherKey::new(algorithm, for_content).ok()?;
                let vector = FixedLength::try_from(&token.vector[..]).ok()?;
                let mut content = token.content;
                let plain = PaddedBlockDecryptingKey::cbc_pkcs7(cipher_key)
                    .ok()?
                    .decrypt(&mut content, DecryptionContext::Iv128(vector));
                let length = plain.ok()?.len();
                content.truncate(length);
                Some(content)
            }
        }
    }
}

/// Whether the tag equals the first half of the code (RFC 7518 §5.2.2.1).
fn is_tagged(token: &Token<'_>, hash: hmac::Algorithm, key: &[u8]) -> bool {
    let mut code = hmac::Context::with_key(&hmac::Key::new(hash, key));
    code.update(token.written_header);
    code.update(&token.vector);
    code.update(&token.content);
    code.update(&(token.written_header.len() as u64 * 8).to_be_bytes());
    let code = code.sign();
    let half = &code.as_ref()[..code.as_ref().len() / 2];
    verify_slices_are_equal(half, &token.tag).is_ok()
}

/// What AES-GCM made of a text (RFC 5116 §5.1).
struct Sealed<'a> {
    nonce: &'a [u8],
    tag: &'a [u8],
    /// The additional authenticated data.
    additional: &'a [u8],
    content: Vec<u8>,
}

/// Decrypts with AES-GCM. None if the authentication tag does not match.
fn gcm_open(
    algorithm: &'static aead::Algorithm,
    key: &[u8],
    sealed: Sealed<'_>,
) -> Option<Vec<u8>> {
    if sealed.tag.len() != algorithm.tag_len() {
        return None;
    }
    let key = LessSafeKey::new(UnboundKey::new(algorithm, key).ok()?);
    let nonce = Nonce::try_assume_unique_for_key(sealed.nonce).ok()?;
    let mut bytes = sealed.content;
    bytes.extend_from_slice(sealed.tag);
    let plain = key.open_in_place(nonce, Aad::from(sealed.additional), &mut bytes);
    let length = plain.ok()?.len();
    bytes.truncate(length);
    Some(bytes)
}

#[cfg(test)]
mod tests;
