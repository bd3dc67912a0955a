//! Replacement of masked text.

use std::cell::Cell;

use hmac::{Hmac, KeyInit, Mac};
use otlp::scan::Malformed;
use regex_automata::meta::Regex;
use sha2::Digest;
use syntax::hex;

use crate::config::components::processors::redaction::Mask as Settings;

/// Bytes of masked values that one request may make: a hash is longer than what it stands for, and
/// an expression may match everywhere. More is refused.
const MASKED_BYTES_MAX: usize = 128 << 20;

/// Bytes of values that were made for one request.
#[derive(Debug, Default)]
pub struct MaskedBytes(Cell<usize>);

impl MaskedBytes {
    /// Counts bytes of a value that was made.
    ///
    /// # Errors
    /// The request makes more than a request may.
    pub fn add(&self, bytes: usize) -> Result<(), Malformed> {
        self.0.set(self.0.get().saturating_add(bytes));
        if self.0.get() > MASKED_BYTES_MAX {
            Err(Malformed::TooLarge)
        } else {
            Ok(())
        }
    }
}

/// Makes what stands for masked text.
#[derive(Debug)]
pub enum Mask {
    Asterisks,
    Md5,
    Sha1,
    Sha3,
    /// With its key.
    HmacSha256(Box<Hmac<sha2::Sha256>>),
    HmacSha512(Box<Hmac<sha2::Sha512>>),
}

impl Mask {
    /// Of settings.
    ///
    /// # Errors
    /// The key is none.
    pub fn new(settings: &Settings) -> Result<Mask, String> {
        let bad = |_| "no key for an HMAC".to_owned();
        Ok(match settings {
            Settings::Asterisks => Mask::Asterisks,
            Settings::Md5 => Mask::Md5,
            Settings::Sha1 => Mask::Sha1,
            Settings::Sha3 => Mask::Sha3,
            Settings::HmacSha256(key) => {
                Mask::HmacSha256(Box::new(Hmac::new_from_slice(key.as_bytes()).map_err(bad)?))
            }
            Settings::HmacSha512(key) => {
                Mask::HmacSha512(Box::new(Hmac::new_from_slice(key.as_bytes()).map_err(bad)?))
            }
        })
    }

    fn append(&self, text: &[u8], out: &mut Vec<u8>) {
        let hash = match self {
            Mask::Asterisks => return out.extend_from_slice(b"****"),
            Mask::Md5 => hex::text(&md5::Md5::digest(text)),
            Mask::Sha1 => hex::text(&sha1::Sha1::digest(text)),
            Mask::Sha3 => hex::text(&sha3::Sha3_256::digest(text)),
            Mask::HmacSha256(keyed) => hex::text(&keyed_hash(&**keyed, text)),
            Mask::HmacSha512(keyed) => hex::text(&keyed_hash(&**keyed, text)),
        };
        out.extend_from_slice(hash.as_bytes());
    }

    /// A value with each of its lines masked whole: what `.*` matches in Go.
    ///
    /// # Errors
    /// The request makes too much.
    pub fn whole(&self, text: &[u8], masked: &MaskedBytes) -> Result<Vec<u8>, Malformed> {
        let mut out = Vec::new();
        for (at, line) in text.split(|byte| *byte == b'\n').enumerate() {
            let before = out.len();
            if at > 0 {
                out.push(b'\n');
            }
            self.append(line, &mut out);
            masked.add(out.len() - before)?;
        }
        Ok(out)
    }

    /// A value with what an expression matches masked; none where nothing matches.
    ///
    /// # Errors
    /// The request makes too much.
    pub fn matches(
        &self,
        regex: &Regex,
        text: &[u8],
        masked: &MaskedBytes,
    ) -> Result<Option<Vec<u8>>, Malformed> {
        let (mut out, mut from) = (None::<Vec<u8>>, 0);
        for found in regex.find_iter(text) {
            let span = found.span();
            // An empty match within a character is none.
            if span.is_empty() && text.get(span.start).is_some_and(|byte| byte & 0xc0 == 0x80) {
                continue;
            }
            let out = out.get_or_insert_default();
            let before = out.len();
            out.extend_from_slice(&text[from..span.start]);
            self.append(&text[span.range()], out);
            masked.add(out.len() - before)?;
            from = span.end;
        }
        if let Some(out) = &mut out {
            out.extend_from_slice(&text[from..]);
            masked.add(text.len() - from)?;
        }
        Ok(out)
    }
}

fn keyed_hash<M: Mac + Clone>(keyed: &M, text: &[u8]) -> hmac::digest::Output<M> {
    let mut keyed = keyed.clone();
    keyed.update(text);
    keyed.finalize().into_bytes()
}
