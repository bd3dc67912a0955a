//! Binds tickets and remembered sessions to what is demanded of clients. A session that is resumed
//! is not verified again, so it may be resumed only where the same verification would take place:
//! nginx and HAProxy bind sessions for the same reason (CVE-2025-23419).
//!
//! A binding is a digest of settings and of the contents of files. It is the same in all workers,
//! processes and machines that have the same settings.

use aws_lc_rs::digest::{Context, SHA256, SHA256_OUTPUT_LEN, digest};

use crate::{Authorities, ClientCertificates, IgnoredErrors, Offer, Revocations};

/// Distinguishes these digests from others, and from those of a later format.
const LABEL: &[u8] = b"spangate session binding 1";

/// The size of a binding.
pub(crate) const BINDING_BYTES: usize = SHA256_OUTPUT_LEN;

/// A digest of what is demanded of clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Binding([u8; BINDING_BYTES]);

impl AsRef<[u8]> for Binding {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Binding {
    /// The binding of an acceptor: of its scope ([`crate::AcceptorOptions::resumption_scope`]), and
    /// of all that decides about a client's certificate. The announced authorities decide nothing.
    pub fn new(scope: &str, offer: &Offer, clients: Option<&ClientCertificates>) -> Binding {
        let mut parts = Parts::new(LABEL);
        parts.add(scope.as_bytes());
        let Some(clients) = clients else {
            return parts.end();
        };
        parts.add(&[1, u8::from(clients.is_optional)]);
        parts.add(clients.trusted.digest.as_ref());
        parts.add_errors(&clients.ignored);
        parts.add_errors(&clients.ignored_of_issuers);
        match &offer.client_signatures {
            None => parts.add(b"any"),
            Some(numbers) => {
                for number in numbers {
                    parts.add(&number.to_be_bytes());
                }
            }
        }
        parts.end()
    }

    /// The digest of authorities and revocation lists, in any order.
    pub fn of_trust(authorities: &Authorities, revocations: Option<&Revocations>) -> Binding {
        let mut parts = Parts::new(b"trust");
        parts.add_set(authorities.certificates());
        if let Some(revocations) = revocations {
            parts.add_set(revocations.lists());
        }
        parts.end()
    }
}

/// A digest of a sequence of parts: the length of each part is included.
struct Parts(Context);

impl Parts {
    fn new(label: &[u8]) -> Parts {
        let mut parts = Parts(Context::new(&SHA256));
        parts.add(label);
        parts
    }

    fn add(&mut self, part: &[u8]) {
        self.0.update(&(part.len() as u64).to_be_bytes());
        self.0.update(part);
    }

    fn add_set<'a>(&mut self, all: impl Iterator<Item = &'a [u8]>) {
        let mut digests: Vec<_> = all.map(|each| digest(&SHA256, each)).collect();
        digests.sort_unstable_by(|a, b| a.as_ref().cmp(b.as_ref()));
        digests.dedup_by(|a, b| a.as_ref() == b.as_ref());
        self.add(&(digests.len() as u64).to_be_bytes());
        for digest in digests {
            self.add(digest.as_ref());
        }
    }

    fn add_errors(&mut self, errors: &IgnoredErrors) {
        let mut numbers = errors.numbers.clone();
        numbers.sort_unstable();
        numbers.dedup();
        self.add(&[u8::from(errors.all)]);
        self.add(&numbers);
    }

    fn end(self) -> Binding {
        let mut bytes = [0; BINDING_BYTES];
        bytes.copy_from_slice(self.0.finish().as_ref());
        Binding(bytes)
    }
}
