//! Revocation lists of both versions (RFC 5280 §5.1).

use std::sync::Arc;

use aws_lc_rs::signature::{RSA_PKCS1_2048_8192_SHA1_FOR_LEGACY_USE_ONLY, UnparsedPublicKey};
use rustls::pki_types::{
    AlgorithmIdentifier, InvalidSignature, SignatureVerificationAlgorithm, alg_id,
};

use crate::chain::SignedParts;
use crate::der::{BIT_STRING, FIELD_0, INTEGER, SEQUENCE, expect, time, whole};
use crate::old::{AUTHORITY_KEY_ID, KEY_ID, Parts, extensions};

/// RSA with SHA-1, with which some authorities still sign their lists. Certificates must not be
/// signed with it.
pub(crate) static RSA_SHA1: &dyn SignatureVerificationAlgorithm = &RsaSha1;

#[derive(Debug)]
struct RsaSha1;

impl SignatureVerificationAlgorithm for RsaSha1 {
    fn verify_signature(
        &self,
        key: &[u8],
        message: &[u8],
        signature: &[u8],
    ) -> Result<(), InvalidSignature> {
        let key = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA1_FOR_LEGACY_USE_ONLY, key);
        key.verify(message, signature).map_err(|_| InvalidSignature)
    }

    fn public_key_alg_id(&self) -> AlgorithmIdentifier {
        alg_id::RSA_ENCRYPTION
    }

    /// `sha1WithRSAEncryption` (RFC 3279 §2.2.1).
    fn signature_alg_id(&self) -> AlgorithmIdentifier {
        AlgorithmIdentifier::from_slice(&[
            0x06, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 5, 5, 0,
        ])
    }
}

/// Revocation lists from files of the configuration.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lists(Vec<Arc<List>>);

/// A revocation list.
#[derive(Debug)]
pub(crate) struct List {
    pub der: Vec<u8>,
    /// The list is of version 1, which the library does not read.
    pub is_old: bool,
    this_update_s: u64,
    next_update_s: Option<u64>,
    issuer: Vec<u8>,
    /// The identifier of its issuer's key, if it names one.
    key_id: Option<Vec<u8>>,
    /// The revoked serial numbers, sorted.
    serials: Vec<Vec<u8>>,
}

/// Whether a list is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Validity {
    Early,
    Current,
    Expired,
}

impl Lists {
    /// Adds a list in DER. Returns none if it is not a list.
    pub fn add(&mut self, der: &[u8]) -> Option<()> {
        self.0.push(Arc::new(List::read(der)?));
        Some(())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<List>> {
        self.0.iter()
    }
}

impl List {
    fn read(der: &[u8]) -> Option<List> {
        let (list, _) = expect(der, SEQUENCE)?;
        let (rest, _) = expect(list, SEQUENCE)?;
        let (is_old, rest) = match expect(rest, INTEGER) {
            Some((_, rest)) => (false, rest),
            None => (true, rest),
        };
        let (_, rest) = expect(rest, SEQUENCE)?;
        let (issuer, rest) = expect(rest, SEQUENCE)?;
        let (this_update_s, rest) = time(rest)?;
        let (next_update_s, rest) = match time(rest) {
            Some((next, rest)) => (Some(next), rest),
            None => (None, rest),
        };
        let (mut entries, rest) = expect(rest, SEQUENCE).unwrap_or((&[], rest));
        let key_id = expect(rest, FIELD_0).and_then(|(content, _)| {
            let (list, _) = expect(content, SEQUENCE)?;
            let extension = extensions(list).find(|each| each.id == AUTHORITY_KEY_ID)?;
            let (content, _) = expect(extension.value, SEQUENCE)?;
            Some(expect(content, KEY_ID)?.0.to_vec())
        });
        let mut serials = Vec::new();
        while !entries.is_empty() {
            let (entry, rest) = expect(entries, SEQUENCE)?;
            serials.push(expect(entry, INTEGER)?.0.to_vec());
            entries = rest;
        }
        serials.sort();
        Some(List {
            der: der.to_vec(),
            is_old,
            this_update_s,
            next_update_s,
            issuer: issuer.to_vec(),
            key_id,
            serials,
        })
    }

    /// Whether it may be a list of this issuer, by its name and, if both name one, its key.
    pub fn is_of(&self, issuer: &Parts<'_>) -> bool {
        let has_other_key = |id: &Vec<u8>| issuer.key_id().is_some_and(|own| own != id);
        self.issuer == issuer.subject && !self.key_id.as_ref().is_some_and(has_other_key)
    }

    /// Whether it is valid at a time, seconds after the UNIX epoch (RFC 5280 §5.1.2.4, §5.1.2.5).
    /// One without an end is.
    pub fn validity(&self, now_s: u64) -> Validity {
        if now_s < self.this_update_s {
            Validity::Early
        } else if self.next_update_s.is_some_and(|next| now_s >= next) {
            Validity::Expired
        } else {
            Validity::Current
        }
    }

    /// Whether a certificate with this serial number is revoked.
    pub fn revokes(&self, serial: &[u8]) -> bool {
        let order = |known: &Vec<u8>| known.as_slice().cmp(serial);
        self.serials.binary_search_by(order).is_ok()
    }

    /// The signature and the bytes that it covers.
    pub fn signed_parts(&self) -> Option<SignedParts<'_>> {
        let (list, _) = expect(&self.der, SEQUENCE)?;
        let (signed, rest) = whole(list, SEQUENCE)?;
        let (algorithm, rest) = expect(rest, SEQUENCE)?;
        let (signature, _) = expect(rest, BIT_STRING)?;
        let (0, signature) = signature.split_first().map(|(bits, rest)| (*bits, rest))? else {
            return None;
        };
        Some(SignedParts {
            signed,
            algorithm,
            signature,
        })
    }
}
