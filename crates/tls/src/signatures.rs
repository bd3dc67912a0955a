//! Which algorithms sign and are taken (`sigalgs`, `client-sigalgs`).

use std::sync::Arc;

use rustls::sign::{CertifiedKey, Signer, SigningKey};
use rustls::{SignatureAlgorithm, SignatureScheme};

/// Algorithms in the order of preference; none is what the library does by itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct Signatures(Option<Arc<[SignatureScheme]>>);

impl Signatures {
    /// By their IANA numbers.
    pub fn new(numbers: Option<&[u16]>) -> Signatures {
        Signatures(numbers.map(|all| all.iter().copied().map(SignatureScheme::from).collect()))
    }

    /// Those of `known` that are allowed, the preferred ones first.
    pub fn of(&self, known: Vec<SignatureScheme>) -> Vec<SignatureScheme> {
        match &self.0 {
            None => known,
            Some(allowed) => {
                let allowed = allowed.iter().copied();
                allowed.filter(|scheme| known.contains(scheme)).collect()
            }
        }
    }

    /// Whether a key can sign for a peer that takes these.
    pub fn can_sign(&self, key: &dyn SigningKey, offered: &[SignatureScheme]) -> bool {
        match &self.0 {
            None => key.choose_scheme(offered).is_some(),
            Some(_) => key.choose_scheme(&self.of(offered.to_vec())).is_some(),
        }
    }

    /// The same certificate with a key that signs by these only.
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

/// A key that signs by some algorithms only.
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
