//! Whom to trust: authorities and revoked certificates, from PEM.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer};
use rustls::{CertificateError, Error, RootCertStore};

use crate::identity::{IdentityError, certificates, read};
use crate::old::{Lists, serves};

/// Authorities.
#[derive(Clone, Debug)]
pub struct Authorities {
    roots: Arc<RootCertStore>,
    certificates: Arc<Vec<CertificateDer<'static>>>,
}

/// Lists of revoked certificates.
#[derive(Clone, Debug, Default)]
pub struct Revocations {
    all: Vec<CertificateRevocationListDer<'static>>,
    /// Those that the library reads.
    readable: Vec<CertificateRevocationListDer<'static>>,
    lists: Lists,
}

/// Authorities, and the certificates that they have revoked.
#[derive(Clone, Debug)]
pub struct Trusted {
    pub(crate) roots: Arc<RootCertStore>,
    /// The certificates themselves: one of them that a peer presents needs no issuer.
    pub(crate) certificates: Arc<Vec<CertificateDer<'static>>>,
    /// Lists that the library reads.
    pub(crate) revoked: Vec<CertificateRevocationListDer<'static>>,
    /// All lists, for certificates that the library does not read, or trusts because we say so.
    pub(crate) lists: Lists,
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
    /// There are none.
    pub fn system() -> Result<Authorities, TrustError> {
        let found = rustls_native_certs::load_native_certs();
        Authorities::of(found.certs, Path::new("@system-ca"))
    }

    /// Those of a PEM text behind these; `path` is what errors name.
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

    /// These and others.
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
    /// Reads a file of lists, in PEM.
    ///
    /// # Errors
    /// The file cannot be read, or has no such list.
    pub fn load(path: &Path) -> Result<Revocations, TrustError> {
        Revocations::parse(&read(path)?, path)
    }

    /// The same of a text; `path` is what errors name.
    ///
    /// # Errors
    /// The text has no list, or is malformed.
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
    /// Authorities, and what they have revoked.
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
        }
    }

    /// Whether a peer's certificate is trusted because it stands in the file of authorities itself, as OpenSSL does for a
    /// self-signed one. The library looks for an issuer, and takes no authority for a peer; what else is wrong with a
    /// certificate (dates, `purpose`, revocation) counts all the same.
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

/// The file, or the files of the directory in the order of their names.
fn files(path: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(path) else {
        return vec![path.to_owned()];
    };
    let mut files: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|file| file.is_file());
    files.sort();
    files
}
