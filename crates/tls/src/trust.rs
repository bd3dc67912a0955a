//! Trusted authorities and revoked certificates, read from PEM.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer};

use crate::binding::Binding;
use crate::crl::Lists;
use crate::identity::{IdentityError, certificates, read};

/// Trusted authorities.
#[derive(Clone, Debug)]
pub struct Authorities {
    roots: Arc<RootCertStore>,
    certificates: Arc<Vec<CertificateDer<'static>>>,
}

/// Revocation lists.
#[derive(Clone, Debug, Default)]
pub struct Revocations {
    lists: Lists,
}

/// Authorities and their revoked certificates.
#[derive(Clone, Debug)]
pub struct Trusted {
    pub(crate) roots: Arc<RootCertStore>,
    /// The certificates themselves.
    pub(crate) certificates: Arc<Vec<CertificateDer<'static>>>,
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
        for file in files_at(path) {
            all.extend(certificates(&read(&file)?, &file)?);
        }
        Authorities::of(all, path)
    }

    /// The authorities that the system trusts (`@system-ca`).
    ///
    /// # Errors
    /// The system trusts none.
    pub fn system() -> Result<Authorities, TrustError> {
        const NAME: &str = "@system-ca";
        let path = Path::new(NAME);
        let joined = files::other(NAME, || {
            Ok(join(&rustls_native_certs::load_native_certs().certs))
        });
        let joined = joined.map_err(|error| IdentityError::Unreadable(path.to_owned(), error))?;
        Authorities::of(split(&joined), path)
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
            if revocations.lists.add(&list).is_none() {
                let why = "a list of revoked certificates is none".to_owned();
                return Err(IdentityError::Malformed(path.to_owned(), why).into());
            }
        }
        Ok(revocations)
    }

    /// Every list, DER.
    pub fn lists(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.lists.iter().map(|list| list.der.as_slice())
    }
}

impl Trusted {
    /// Combines authorities with revocation lists.
    #[must_use]
    pub fn new(authorities: &Authorities, revocations: Option<&Revocations>) -> Trusted {
        Trusted {
            roots: authorities.roots.clone(),
            certificates: authorities.certificates.clone(),
            lists: revocations.map_or_else(Lists::default, |revocations| revocations.lists.clone()),
            digest: Binding::of_trust(authorities, revocations),
        }
    }
}

/// Certificates as one piece of bytes: each after its length.
fn join(certificates: &[CertificateDer<'_>]) -> Vec<u8> {
    let mut joined = Vec::new();
    for der in certificates {
        joined.extend_from_slice(&(der.len() as u64).to_ne_bytes());
        joined.extend_from_slice(der);
    }
    joined
}

/// The certificates of [`join`].
fn split(mut joined: &[u8]) -> Vec<CertificateDer<'static>> {
    let mut certificates = Vec::new();
    while let Some((len, rest)) = joined.split_first_chunk() {
        let len = usize::try_from(u64::from_ne_bytes(*len)).unwrap_or(usize::MAX);
        let Some((der, rest)) = rest.split_at_checked(len) else {
            break;
        };
        certificates.push(der.to_vec().into());
        joined = rest;
    }
    certificates
}

/// The file, or the files of the directory in order of their names.
fn files_at(path: &Path) -> Vec<PathBuf> {
    let Ok(names) = files::names(path) else {
        return vec![path.to_owned()];
    };
    let paths = names.iter().map(|name| path.join(name));
    paths.filter(|file| files::is_file(file)).collect()
}
