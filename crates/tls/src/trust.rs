//! Trusted authorities and revoked certificates, read from PEM.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer};
use rustls::{CertificateError, Error, RootCertStore};

use crate::binding::Binding;
use crate::identity::{IdentityError, certificates, read};
use crate::old::{Lists, serves};

/// Trusted authorities.
#[derive(Clone, Debug)]
pub struct Authorities {
    roots: Arc<RootCertStore>,
    certificates: Arc<Vec<CertificateDer<'static>>>,
}

/// Revocation lists.
#[derive(Clone, Debug, Default)]
pub struct Revocations {
    all: Vec<CertificateRevocationListDer<'static>>,
    /// The lists that the library can read.
    readable: Vec<CertificateRevocationListDer<'static>>,
    lists: Lists,
}

/// Authorities and their revoked certificates.
#[derive(Clone, Debug)]
pub struct Trusted {
    pub(crate) roots: Arc<RootCertStore>,
    /// The certificates themselves: if a peer presents one of these, it needs no issuer.
    pub(crate) certificates: Arc<Vec<CertificateDer<'static>>>,
    /// The lists that the library can read.
    pub(crate) revoked: Vec<CertificateRevocationListDer<'static>>,
    /// All lists, for certificates that the library cannot read, or that are trusted only by [`Trusted::excuses`].
    pub(crate) lists: Lists,
    /// The digest of all of them, for sessions that may be resumed.
    pub(crate) digest: Binding,
}

/// Why authorities cannot be used.
#[derive(Debug)]
pub enum TrustError {
    /// A file cannot be read as PEM.
    File(IdentityError),
    /// A file has no certificate that can be an authority.
    Empty(PathBuf),
}

impl fmt::Display for TrustError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TrustError::File(error) => error.fmt(f),
            TrustError::Empty(path) => {
                write!(f, "no authority found in '{}'", path.display())
            }
        }
    }
}

impl std::error::Error for TrustError {}

impl From<IdentityError> for TrustError {
    fn from(error: IdentityError) -> Self {
        TrustError::File(error)
    }
}

impl Authorities {
    /// Reads a file of authorities, or all files of a directory.
    ///
    /// # Errors
    /// See [`TrustError`].
    pub fn load(path: &Path) -> Result<Authorities, TrustError> {
        let mut all = Vec::new();
        for file in files(path) {
            all.extend(certificates(&read(&file)?, &file)?);
        }
        Authorities::of(all, path)
    }

    /// The authorities that the system trusts (`@system-ca`).
    ///
    /// # Errors
    /// The system trusts none.
    pub fn system() -> Result<Authorities, TrustError> {
        let found = rustls_native_certs::load_native_certs();
        Authorities::of(found.certs, Path::new("@system-ca"))
    }

    /// Adds the authorities of a PEM text; errors name `path`.
    ///
    /// # Errors
    /// The text has no certificate that can be an authority, or is malformed.
    pub fn parse(
        before: Option<&Authorities>,
        pem: &[u8],
        path: &Path,
    ) -> Result<Authorities, TrustError> {
        let mut all = before.map_or_else(Vec::new, |before| (*before.certificates).clone());
        for new in certificates(pem, path)? {
            if !all.contains(&new) {
                all.push(new);
            }
        }
        Authorities::of(all, path)
    }

    /// The union of these and other authorities.
    #[must_use]
    pub fn with(&self, others: &Authorities) -> Authorities {
        let mut all = self.clone();
        let new = others.certificates.iter();
        let new: Vec<_> = new
            .filter(|each| !self.certificates.contains(each))
            .cloned()
            .collect();
        Arc::make_mut(&mut all.roots).add_parsable_certificates(new.iter().cloned());
        Arc::make_mut(&mut all.certificates).extend(new);
        all
    }

    /// Every certificate, DER.
    pub fn certificates(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.certificates.iter().map(AsRef::as_ref)
    }

    fn of(all: Vec<CertificateDer<'static>>, path: &Path) -> Result<Authorities, TrustError> {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(all.iter().cloned());
        if roots.is_empty() {
            return Err(TrustError::Empty(path.to_owned()));
        }
        Ok(Authorities {
            roots: Arc::new(roots),
            certificates: Arc::new(all),
        })
    }
}

impl Revocations {
    /// Reads a PEM file of revocation lists.
    ///
    /// # Errors
    /// The file cannot be read, or contains no list.
    pub fn load(path: &Path) -> Result<Revocations, TrustError> {
        Revocations::parse(&read(path)?, path)
    }

    /// Parses a text; errors name `path`.
    ///
    /// # Errors
    /// The text contains no list, or is malformed.
    pub fn parse(pem: &[u8], path: &Path) -> Result<Revocations, TrustError> {
        let lists: Result<Vec<_>, _> = CertificateRevocationListDer::pem_slice_iter(pem).collect();
        let lists =
            lists.map_err(|error| IdentityError::Malformed(path.to_owned(), format!("{error}")))?;
        if lists.is_empty() {
            return Err(TrustError::Empty(path.to_owned()));
        }
        let mut revocations = Revocations::default();
        for list in lists {
            match revocations.lists.add(&list) {
                Some(true) => {}
                Some(false) => revocations.readable.push(list.clone()),
                None => {
                    let why = "a list of revoked certificates is none".to_owned();
                    return Err(IdentityError::Malformed(path.to_owned(), why).into());
                }
            }
            revocations.all.push(list);
        }
        Ok(revocations)
    }

    /// Every list, DER.
    pub fn lists(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.all.iter().map(AsRef::as_ref)
    }
}

impl Trusted {
    /// Combines authorities with revocation lists.
    #[must_use]
    pub fn new(authorities: &Authorities, revocations: Option<&Revocations>) -> Trusted {
        let (revoked, lists) = revocations.map_or_else(Default::default, |revocations| {
            (revocations.readable.clone(), revocations.lists.clone())
        });
        Trusted {
            roots: authorities.roots.clone(),
            certificates: authorities.certificates.clone(),
            revoked,
            lists,
            digest: Binding::of_trust(authorities, revocations),
        }
    }

    /// Whether a peer's certificate is trusted because it is in the file of authorities itself, as OpenSSL does for a self-signed
    /// one. The library searches for an issuer, and accepts no authority as a peer. All other errors of the certificate (dates,
    /// `purpose`, revocation) still count.
    pub(crate) fn excuses(&self, leaf: &CertificateDer<'_>, error: &Error, purpose: &[u8]) -> bool {
        let is_about_issuers = match error {
            Error::InvalidCertificate(CertificateError::UnknownIssuer) => true,
            Error::InvalidCertificate(CertificateError::Other(other)) => matches!(
                other.0.downcast_ref::<webpki::Error>(),
                Some(webpki::Error::CaUsedAsEndEntity)
            ),
            _ => false,
        };
        is_about_issuers && self.certificates.iter().any(|own| own == leaf) && serves(leaf, purpose)
    }
}

/// The file, or the files of the directory in order of their names.
fn files(path: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(path) else {
        return vec![path.to_owned()];
    };
    let mut files: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|file| file.is_file());
    files.sort();
    files
}
