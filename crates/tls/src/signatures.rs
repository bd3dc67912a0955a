//! Which signature algorithms are used and accepted (`sigalgs`, `client-sigalgs`).

use std::sync::Arc;

use rustls::sign::{CertifiedKey, Signer, SigningKey};
use rustls::{SignatureAlgorithm, SignatureScheme};

/// Algorithms in order of preference; none keeps the library's choice.
#[derive(Clone, Debug, Default)]
pub(crate) struct Signatures(Option<Arc<[SignatureScheme]>>);

impl Signatures {
    /// From IANA numbers.
    pub fn new(numbers: Option<&[u16]>) -> Signatures {
        Signatures(numbers.map(|all| all.iter().copied().map(SignatureScheme::from).collect()))
    }

    /// The allowed algorithms among `known`, the preferred ones first.
    pub fn of(&self, known: Vec<SignatureScheme>) -> Vec<SignatureScheme> {
        match &self.0 {
            None => known,
            Some(allowed) => {
                let allowed = allowed.iter().copied();
                allowed.filter(|scheme| known.contains(scheme)).collect()
            }
        }
    }

    /// Whether a key can sign for a peer that accepts these algorithms.
    pub fn can_sign(&self, key: &dyn SigningKey, offered: &[SignatureScheme]) -> bool {
        match &self.0 {
            None => key.choose_scheme(offered).is_some(),
            Some(_) => key.choose_scheme(&self.of(offered.to_vec())).is_some(),
        }
    }

    /// The same certificate with a key restricted to these algorithms.
    pub fn narrow(&self, key: &Arc<CertifiedKey>) -> Arc<CertifiedKey> {
        if self.0.is_none() {
            return key.clone();
        }
        let narrowed = Narrowed {
            key: key.key.clone(),
            signatures: self.clone(),
        };
        Arc::new(CertifiedKey {
            key: Arc::new(narrowed),
            ..(**key).clone()
        })
    }
}

/// A key restricted to certain algorithms.
#[derive(Debug)]
struct Narrowed {
    key: Arc<dyn SigningKey>,
    signatures: Signatures,
}

impl SigningKey for Narrowed {
    fn choose_scheme(&self, offered: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        self.key
            .choose_scheme(&self.signatures.of(offered.to_vec()))
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        self.key.algorithm()
    }
}
