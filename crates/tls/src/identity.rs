//! Certificates with their keys, read from PEM.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::sign::CertifiedKey;

use crate::OcspResponse;
use crate::der::{OBJECT_ID, SEQUENCE, VERSION, element};
use crate::encrypted::{Passphrases, private_key};

/// The largest file that is read as PEM, bytes.
pub const PEM_BYTES_MAX: u64 = 8 << 20;

/// A certificate with its chain, its key, and its stapled status.
#[derive(Clone, Debug)]
pub struct Identity {
    /// Without a status.
    pub(crate) key: Arc<CertifiedKey>,
    pub(crate) stapled: Option<Stapled>,
    names: Vec<String>,
}

/// A certificate with a status that is stapled for some time.
#[derive(Clone, Debug)]
pub(crate) struct Stapled {
    pub key: Arc<CertifiedKey>,
    /// The end of that time, seconds since the UNIX epoch.
    pub until_s: u64,
}

/// The files of a certificate.
#[derive(Clone, Copy, Debug)]
pub struct Files<'a> {
    /// The certificate, its chain and usually its key, in PEM.
    pub certificate: &'a Path,
    /// The key; takes precedence over a key in that file.
    pub key: Option<&'a Path>,
    /// The key, if that file has none.
    pub key_beside: Option<&'a Path>,
    /// The issuer's certificate, if the chain does not contain it. It is used for the status and
    /// not sent.
    pub issuer: Option<&'a Path>,
    /// The status to staple, in DER; an empty file means none.
    pub ocsp: Option<&'a Path>,
}

/// Why a certificate cannot be used.
#[derive(Debug)]
pub enum IdentityError {
    /// A file cannot be read.
    Unreadable(PathBuf, std::io::Error),
    /// A file is larger than [`PEM_BYTES_MAX`].
    TooLarge(PathBuf),
    /// A file has no certificate.
    NoCertificate(PathBuf),
    /// Neither the file nor the one beside it has a key.
    NoKey(PathBuf),
    /// A section of a file is not PEM, or its content does not match its label.
    Malformed(PathBuf, String),
    /// The key is encrypted and cannot be decrypted; why.
    Encrypted(PathBuf, String),
    /// The kind of the key is not supported.
    KeyKind(PathBuf),
    /// The key does not belong to the certificate.
    Mismatch(PathBuf),
}

impl fmt::Display for IdentityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IdentityError::Unreadable(path, error) => {
                write!(
                    f,
                    "unable to load certificate from file '{}' : {error}",
                    path.display()
                )
            }
            IdentityError::TooLarge(path) => {
                write!(f, "file '{}' is too large for certificates", path.display())
            }
            IdentityError::NoCertificate(path) => {
                write!(f, "no certificate found in file '{}'", path.display())
            }
            IdentityError::NoKey(path) => {
                write!(
                    f,
                    "no private key found for certificate '{}'",
                    path.display()
                )
            }
            IdentityError::Malformed(path, why) => {
                write!(f, "file '{}' is malformed: {why}", path.display())
            }
            IdentityError::Encrypted(path, why) => {
                write!(
                    f,
                    "the private key in '{}' is encrypted: {why}",
                    path.display()
                )
            }
            IdentityError::KeyKind(path) => {
                write!(
                    f,
                    "the private key of '{}' is of a kind that cannot be used",
                    path.display()
                )
            }
            IdentityError::Mismatch(path) => write!(
                f,
                "inconsistencies between private key and certificate loaded '{}'",
                path.display()
            ),
        }
    }
}

impl std::error::Error for IdentityError {}

/// Reads a file of certificates or keys.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, IdentityError> {
    let unreadable = |error| IdentityError::Unreadable(path.to_owned(), error);
    let text = files::read(path, PEM_BYTES_MAX + 1).map_err(unreadable)?;
    if text.len() as u64 > PEM_BYTES_MAX {
        return Err(IdentityError::TooLarge(path.to_owned()));
    }
    Ok(text)
}

/// The certificates of a PEM text.
pub(crate) fn certificates(
    pem: &[u8],
    path: &Path,
) -> Result<Vec<CertificateDer<'static>>, IdentityError> {
    let sections = CertificateDer::pem_slice_iter(pem);
    let found: Result<Vec<_>, _> = sections.collect();
    found.map_err(|error| malformed(path, &error))
}

/// The parts of a certificate, from files or the runtime interface. Each part can be replaced on
/// its own; [`Material::identity`] makes the served certificate from them.
#[derive(Clone, Debug, Default)]
pub struct Material {
    chain: Vec<CertificateDer<'static>>,
    key: Option<Arc<PrivateKeyDer<'static>>>,
    /// The certificate of the status' signer, if the chain does not contain it. It is not sent.
    issuer: Option<CertificateDer<'static>>,
    ocsp: Option<Arc<[u8]>>,
}

impl Material {
    /// Reads the files of a certificate.
    ///
    /// # Errors
    /// See [`IdentityError`].
    pub fn load(
        files: &Files<'_>,
        passphrases: &mut Passphrases<'_>,
    ) -> Result<Material, IdentityError> {
        let mut material = Material::default();
        let pem = read(files.certificate)?;
        match files.key {
            None => material.set_pem_with(&pem, files.certificate, passphrases)?,
            Some(key) => {
                material.set_chain(&pem, files.certificate)?;
                material.set_key_with(&read(key)?, key, files.certificate, passphrases)?;
            }
        }
        if let (None, Some(beside)) = (&material.key, files.key_beside) {
            material.set_key_with(&read(beside)?, beside, files.certificate, passphrases)?;
        }
        if let Some(issuer) = files.issuer {
            material.set_issuer(&read(issuer)?, issuer)?;
        }
        if let Some(ocsp) = files.ocsp {
            material.set_ocsp(read(ocsp)?);
        }
        Ok(material)
    }

    /// Replaces the certificate, its chain and its key by those of a PEM text. The other parts
    /// belong to the previous certificate and are removed. Errors name `path`.
    ///
    /// # Errors
    /// The text has no certificate, or is malformed.
    pub fn set_pem(&mut self, pem: &[u8], path: &Path) -> Result<(), IdentityError> {
        self.set_pem_with(pem, path, &mut Passphrases::new(&mut no_passphrase))
    }

    /// The same with passphrases for an encrypted key.
    pub(crate) fn set_pem_with(
        &mut self,
        pem: &[u8],
        path: &Path,
        passphrases: &mut Passphrases<'_>,
    ) -> Result<(), IdentityError> {
        let mut new = Material::default();
        new.set_chain(pem, path)?;
        let key = private_key(pem, path, passphrases)?;
        new.key = key.map(Arc::new);
        *self = new;
        Ok(())
    }

    /// Replaces everything by the certificate and the chain of a PEM text.
    fn set_chain(&mut self, pem: &[u8], path: &Path) -> Result<(), IdentityError> {
        let chain = certificates(pem, path)?;
        if chain.is_empty() {
            return Err(IdentityError::NoCertificate(path.to_owned()));
        }
        *self = Material {
            chain,
            ..Material::default()
        };
        Ok(())
    }

    /// Replaces the key by the key of a PEM text.
    ///
    /// # Errors
    /// The text has no key, or is malformed.
    pub fn set_key(&mut self, pem: &[u8], path: &Path) -> Result<(), IdentityError> {
        self.set_key_with(pem, path, path, &mut Passphrases::new(&mut no_passphrase))
    }

    /// The same with passphrases for an encrypted key, which is from the file `from`.
    fn set_key_with(
        &mut self,
        pem: &[u8],
        from: &Path,
        path: &Path,
        passphrases: &mut Passphrases<'_>,
    ) -> Result<(), IdentityError> {
        let key = private_key(pem, from, passphrases)?;
        let key = key.ok_or_else(|| IdentityError::NoKey(path.to_owned()))?;
        self.key = Some(Arc::new(key));
        Ok(())
    }

    /// Replaces the issuer's certificate by the certificate of a PEM text.
    ///
    /// # Errors
    /// The text has no certificate, or is malformed.
    pub fn set_issuer(&mut self, pem: &[u8], path: &Path) -> Result<(), IdentityError> {
        let found = certificates(pem, path)?.into_iter().next();
        let issuer = found.ok_or_else(|| IdentityError::NoCertificate(path.to_owned()))?;
        self.issuer = Some(issuer);
        Ok(())
    }

    /// Replaces the stapled status, in DER; empty for none.
    pub fn set_ocsp(&mut self, ocsp: Vec<u8>) {
        self.ocsp = (!ocsp.is_empty()).then(|| ocsp.into());
    }

    /// The certificate itself, DER.
    #[must_use]
    pub fn certificate(&self) -> Option<&[u8]> {
        self.chain.first().map(AsRef::as_ref)
    }

    /// The chain after it, in the order in which it is sent, DER.
    pub fn chain(&self) -> impl Iterator<Item = &[u8]> {
        self.chain.iter().skip(1).map(AsRef::as_ref)
    }

    /// The key, DER.
    #[must_use]
    pub fn key(&self) -> Option<(KeyForm, &[u8])> {
        let key = self.key.as_deref()?;
        let form = match key {
            PrivateKeyDer::Pkcs1(_) => KeyForm::Pkcs1,
            PrivateKeyDer::Sec1(_) => KeyForm::Sec1,
            _ => KeyForm::Pkcs8,
        };
        Some((form, key.secret_der()))
    }

    /// The issuer's certificate, DER: the given one, or the one in the chain.
    #[must_use]
    pub fn issuer(&self) -> Option<&[u8]> {
        let leaf = self.chain.first()?;
        let (wanted, _) = names_in(leaf)?;
        let is_issuer = |each: &&CertificateDer<'_>| {
            names_in(each).is_some_and(|(_, subject)| subject == wanted)
        };
        let given = self.issuer.as_ref().filter(is_issuer);
        let found = given.or_else(|| self.chain.iter().skip(1).find(is_issuer));
        found.map(AsRef::as_ref)
    }

    /// The stapled status, DER.
    #[must_use]
    pub fn ocsp(&self) -> Option<&[u8]> {
        self.ocsp.as_deref()
    }

    /// Completes a missing chain (`issuers-chain-path`). Returns the file that the chain came from.
    pub fn complete<'a>(&mut self, chains: &'a Chains) -> Option<&'a Path> {
        let [leaf] = &self.chain[..] else {
            return None;
        };
        let (file, rest) = chains.of(leaf)?;
        self.chain.extend_from_slice(rest);
        Some(file)
    }

    /// Removes self-signed authorities from the chain (`ssl-skip-self-issued-ca`).
    pub fn drop_roots(&mut self) {
        let is_root = |each: &CertificateDer<'_>| names_in(each).is_some_and(|(a, b)| a == b);
        let mut nth = 0;
        self.chain.retain(|each| {
            nth += 1;
            nth == 1 || !is_root(each)
        });
    }

    /// The certificate with its chain, and the key.
    pub(crate) fn into_parts(
        self,
    ) -> (
        Vec<CertificateDer<'static>>,
        Option<Arc<PrivateKeyDer<'static>>>,
    ) {
        (self.chain, self.key)
    }

    /// The certificate with its status; none without one, or if it cannot be read or does not say
    /// until when it is valid.
    fn stapled(&self, certified: &CertifiedKey) -> Option<Stapled> {
        let status = self.ocsp.as_deref()?;
        let until_s = OcspResponse::parse(status).ok()?.expires_s()?;
        let mut key = certified.clone();
        key.ocsp = Some(status.to_vec());
        Some(Stapled {
            key: Arc::new(key),
            until_s,
        })
    }

    /// The served certificate. A status that has expired is not stapled. Errors name `path`.
    ///
    /// # Errors
    /// A part is missing, or the key does not belong to the certificate.
    pub fn identity(&self, path: &Path) -> Result<Identity, IdentityError> {
        let Some(leaf) = self.chain.first() else {
            return Err(IdentityError::NoCertificate(path.to_owned()));
        };
        let names = names_of(leaf);
        let Some(key) = &self.key else {
            return Err(IdentityError::NoKey(path.to_owned()));
        };
        let key = any_supported_type(key).map_err(|_| IdentityError::KeyKind(path.to_owned()))?;
        let certified = CertifiedKey::new(self.chain.clone(), key);
        match certified.keys_match() {
            // A certificate that the verifier cannot read (an old version) may still be used.
            Ok(()) | Err(rustls::Error::InvalidCertificate(_)) => {}
            Err(_) => return Err(IdentityError::Mismatch(path.to_owned())),
        }
        Ok(Identity {
            stapled: self.stapled(&certified),
            key: Arc::new(certified),
            names,
        })
    }
}

/// The algorithm that a key signs with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyKind {
    /// RSA.
    Rsa,
    /// ECDSA on a NIST curve.
    Ecdsa,
    /// Another algorithm, such as Ed25519.
    Other,
}

/// The encoding of a key, by its PEM label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyForm {
    /// `RSA PRIVATE KEY`
    Pkcs1,
    /// `EC PRIVATE KEY`
    Sec1,
    /// `PRIVATE KEY`
    Pkcs8,
}

/// Where no passphrase can be had.
fn no_passphrase(_: &Path) -> Result<Vec<u8>, String> {
    Err("there is no passphrase".to_owned())
}

pub(crate) fn malformed(path: &Path, error: &dyn fmt::Display) -> IdentityError {
    IdentityError::Malformed(path.to_owned(), error.to_string())
}

impl Identity {
    /// Reads a certificate with its chain and its key.
    ///
    /// # Errors
    /// See [`IdentityError`].
    pub fn load(files: &Files<'_>) -> Result<Identity, IdentityError> {
        let passphrases = &mut no_passphrase;
        Material::load(files, &mut Passphrases::new(passphrases))?.identity(files.certificate)
    }

    /// Parses texts instead of files; errors name `path`.
    ///
    /// # Errors
    /// See [`IdentityError`].
    pub fn parse(
        pem: &[u8],
        key: Option<&[u8]>,
        ocsp: Option<Vec<u8>>,
        path: &Path,
    ) -> Result<Identity, IdentityError> {
        let mut material = Material::default();
        material.set_pem(pem, path)?;
        if let Some(key) = key {
            material.set_key(key, path)?;
        }
        material.set_ocsp(ocsp.unwrap_or_default());
        material.identity(path)
    }

    /// The names it is valid for: alternative names of hosts, and the common name; in lower case,
    /// wildcards unchanged.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The kind of its key.
    #[must_use]
    pub fn key_kind(&self) -> KeyKind {
        match self.key.key.algorithm() {
            rustls::SignatureAlgorithm::RSA => KeyKind::Rsa,
            rustls::SignatureAlgorithm::ECDSA => KeyKind::Ecdsa,
            _ => KeyKind::Other,
        }
    }

    /// Warnings about a certificate that can be served all the same, as text, at this time after
    /// the UNIX epoch.
    #[must_use]
    pub fn remarks(&self, since_epoch: Duration) -> Vec<String> {
        let mut remarks = Vec::new();
        let now = UnixTime::since_unix_epoch(since_epoch);
        let chain = &self.key.cert;
        match chain.first().and_then(|leaf| dates_error(leaf, now)) {
            Some(webpki::Error::CertExpired { .. }) => {
                remarks.push("the certificate has expired".to_owned());
            }
            Some(webpki::Error::CertNotValidYet { .. }) => {
                remarks.push("the certificate is not valid yet".to_owned());
            }
            _ => {}
        }
        let links: Vec<_> = chain.iter().filter_map(|each| names_in(each)).collect();
        let is_broken = links.windows(2).any(|pair| pair[0].0 != pair[1].1);
        if is_broken {
            remarks.push("the certificates of its chain do not follow each other".to_owned());
        }
        remarks
    }

    /// The certificate itself, DER.
    #[must_use]
    pub fn certificate(&self) -> &[u8] {
        self.key.cert.first().map_or(&[], |leaf| leaf)
    }
}

/// The error that verification without any authority finds: one in the certificate's dates, which
/// are checked before an authority is searched for.
pub(crate) fn dates_error(leaf: &CertificateDer<'_>, now: UnixTime) -> Option<webpki::Error> {
    let leaf = webpki::EndEntityCert::try_from(leaf).ok()?;
    let usage = webpki::KeyUsage::server_auth();
    let algorithms = webpki::ALL_VERIFICATION_ALGS;
    leaf.verify_for_usage(algorithms, &[], &[], now, usage, None, None)
        .err()
}

/// Chains of issuers, one from each file of a directory.
#[derive(Clone, Debug, Default)]
pub struct Chains(Vec<(PathBuf, Vec<CertificateDer<'static>>)>);

impl Chains {
    /// Reads the files of a directory.
    ///
    /// # Errors
    /// The directory or one of its files cannot be read.
    pub fn load(directory: &Path) -> Result<Chains, IdentityError> {
        let unreadable = |error| IdentityError::Unreadable(directory.to_owned(), error);
        let mut chains = Vec::new();
        for name in files::names(directory).map_err(unreadable)? {
            let file = directory.join(name);
            if files::is_file(&file) {
                let chain = certificates(&read(&file)?, &file)?;
                chains.push((file, chain));
            }
        }
        Ok(Chains(chains))
    }

    /// The chain whose first certificate issued this one, and its file.
    fn of(&self, leaf: &CertificateDer<'_>) -> Option<(&Path, &[CertificateDer<'static>])> {
        let (issuer, _) = names_in(leaf)?;
        let is_issuer = |first: &CertificateDer<'_>| {
            names_in(first).is_some_and(|(_, subject)| subject == issuer)
        };
        let mut chains = self.0.iter();
        let found = chains.find(|(_, chain)| chain.first().is_some_and(is_issuer));
        found.map(|(file, chain)| (&**file, &chain[..]))
    }
}

fn names_of(leaf: &CertificateDer<'_>) -> Vec<String> {
    let mut names: Vec<String> = match webpki::EndEntityCert::try_from(leaf) {
        Ok(leaf) => leaf
            .valid_dns_names()
            .map(str::to_ascii_lowercase)
            .collect(),
        Err(_) => Vec::new(),
    };
    let common = common_names(leaf).unwrap_or_default();
    for name in common {
        let name = String::from_utf8_lossy(name).to_ascii_lowercase();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// Whether a certificate without alternative names is valid for a host by its common name, as
/// before RFC 6125.
pub(crate) fn has_common_name(leaf: &CertificateDer<'_>, host: &str) -> bool {
    let has_alternatives = match webpki::EndEntityCert::try_from(leaf) {
        Ok(leaf) => leaf.valid_dns_names().next().is_some(),
        Err(_) => false,
    };
    let names = common_names(leaf).unwrap_or_default();
    !has_alternatives && names.iter().any(|name| is_for_host(name, host.as_bytes()))
}

/// Whether a name, which may begin with `*.`, matches a host (RFC 6125 §6.4.3).
fn is_for_host(name: &[u8], host: &[u8]) -> bool {
    match name {
        [b'*', rest @ ..] => {
            let dot = host.iter().position(|byte| *byte == b'.');
            rest.first() == Some(&b'.')
                && dot.is_some_and(|dot| host[dot..].eq_ignore_ascii_case(rest))
        }
        name => name.eq_ignore_ascii_case(host),
    }
}

/// 2.5.4.3, id-at-commonName.
const COMMON_NAME: [u8; 3] = [0x55, 0x04, 0x03];

/// A certificate's issuer and subject, in DER (RFC 5280 §4.1.2.4, §4.1.2.6).
fn names_in(certificate: &[u8]) -> Option<(&[u8], &[u8])> {
    let (SEQUENCE, certificate, _) = element(certificate)? else {
        return None;
    };
    let (SEQUENCE, mut rest, _) = element(certificate)? else {
        return None;
    };
    if let (VERSION, _, behind) = element(rest)? {
        rest = behind;
    }
    // Skips the serial number and the signature's algorithm.
    for _ in 0..2 {
        rest = element(rest)?.2;
    }
    let (_, issuer, rest) = element(rest)?;
    let (_, _validity, rest) = element(rest)?;
    let (_, subject, _) = element(rest)?;
    Some((issuer, subject))
}

/// The common names of a certificate's subject (RFC 5280 §4.1.2.6).
fn common_names(certificate: &[u8]) -> Option<Vec<&[u8]>> {
    let (_, mut subject) = names_in(certificate)?;
    let mut names = Vec::new();
    while !subject.is_empty() {
        let (_, mut set, behind) = element(subject)?;
        subject = behind;
        while !set.is_empty() {
            let (_, pair, behind) = element(set)?;
            set = behind;
            let (OBJECT_ID, kind, value) = element(pair)? else {
                return None;
            };
            if kind == COMMON_NAME {
                names.push(element(value)?.1);
            }
        }
    }
    Some(names)
}
