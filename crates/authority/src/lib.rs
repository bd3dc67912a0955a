//! A certificate authority for this machine (ECDSA P-256), and its server certificates: for the
//! demo, the bench, and `spangate proxy --tls internal`.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, PublicKeyData as _,
};

/// The mode of a file with a private key.
const PRIVATE: u32 = 0o600;
/// A certificate is valid from this long before its creation, because clocks differ.
const BEFORE: Duration = Duration::from_secs(24 * 60 * 60);
/// The validity of a server's certificate from its creation. Apple's systems refuse more than 825
/// days.
const HOLDS: Duration = Duration::from_secs(800 * 24 * 60 * 60);
/// The file of the authority's certificate in its folder.
const CERTIFICATE_FILE: &str = "ca.pem";
/// The file of the authority's private key in its folder.
const KEY_FILE: &str = "ca.key";

/// Why there is no certificate.
pub type Error = Box<dyn std::error::Error>;

/// An authority with its private key.
#[derive(Debug)]
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

/// A server's certificate.
#[derive(Clone, Debug)]
pub struct Issued {
    /// The certificate, followed by its private key, in the format of HAProxy's `crt`.
    pub pem: String,
    /// The SHA-256 of the public key in base64, by which a client can accept it (RFC 7469 §2.4).
    pub key_pin: String,
}

impl Authority {
    /// Creates an authority with this name. Its key is not stored.
    ///
    /// # Errors
    /// The key or the certificate cannot be made.
    pub fn make(name: &str) -> Result<Authority, Error> {
        Authority::of(name, KeyPair::generate()?)
    }

    fn of(name: &str, key: KeyPair) -> Result<Authority, Error> {
        // The key pair cannot be cloned, so its text is parsed again.
        let again = KeyPair::from_pem(&key.serialize_pem())?;
        let pem = CertifiedIssuer::self_signed(params(name), key)?.pem();
        let issuer = Issuer::new(params(name), again);
        Ok(Authority { issuer, pem })
    }

    /// The authority in a folder. If there is none, creates one with this name and stores it there.
    /// Creates the folder if it is missing. Only the owner of the files can read the key.
    ///
    /// # Errors
    /// The files cannot be read or written, or this function did not write them.
    pub fn kept_in(folder: &Path, name: &str) -> Result<Authority, Error> {
        let (certificate, key) = (folder.join(CERTIFICATE_FILE), folder.join(KEY_FILE));
        match fs::read_to_string(&key) {
            Ok(text) => Ok(Authority {
                issuer: Issuer::new(params(name), KeyPair::from_pem(&text)?),
                pem: fs::read_to_string(&certificate)
                    .map_err(|error| format!("{}: {error}", certificate.display()))?,
            }),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                fs::create_dir_all(folder)
                    .map_err(|error| format!("{}: {error}", folder.display()))?;
                let pair = KeyPair::generate()?;
                let text = pair.serialize_pem();
                let authority = Authority::of(name, pair)?;
                fs::write(&certificate, &authority.pem)?;
                write_private(&key, &text)?;
                Ok(authority)
            }
            Err(error) => Err(format!("{}: {error}", key.display()).into()),
        }
    }

    /// The file of the authority's certificate in its folder.
    #[must_use]
    pub fn certificate_file(folder: &Path) -> PathBuf {
        folder.join(CERTIFICATE_FILE)
    }

    /// The certificate, for clients.
    #[must_use]
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// A server's certificate for these names and addresses. `since_epoch`: the current time.
    ///
    /// # Errors
    /// A name is invalid, or the certificate cannot be created.
    pub fn issue(&self, names: &[&str], since_epoch: Duration) -> Result<Issued, Error> {
        let names: Vec<String> = names.iter().copied().map(String::from).collect();
        let subject = names.first().cloned().unwrap_or_default();
        let mut params = CertificateParams::new(names)?;
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, subject);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        let epoch = rcgen::date_time_ymd(1970, 1, 1);
        params.not_before = epoch + since_epoch.saturating_sub(BEFORE);
        params.not_after = epoch + since_epoch.saturating_add(HOLDS);
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        let pin = digest(&SHA256, &key.subject_public_key_info());
        Ok(Issued {
            pem: certificate.pem() + &key.serialize_pem(),
            key_pin: BASE64_STANDARD.encode(pin),
        })
    }
}

fn params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

/// Writes a file that only its owner can read, and replaces an existing one. A reader sees the old
/// file or the new one.
///
/// # Errors
/// The file cannot be written.
pub fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let new = path.with_file_name(name);
    // The file may remain from an earlier process with this id.
    let _ = fs::remove_file(&new);
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(PRIVATE)
        .open(&new)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&new, path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let name = format!("spangate-authority-{name}-{}", std::process::id());
            let path = std::env::temp_dir().join(name);
            let _ = fs::remove_dir_all(&path);
            Folder(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn an_authority_is_made_once_and_kept() {
        let folder = Folder::new("kept");
        let made = Authority::kept_in(&folder.0, "ours").unwrap();
        let kept = Authority::kept_in(&folder.0, "ours").unwrap();
        assert_eq!(made.pem(), kept.pem());
        assert!(made.pem().contains("BEGIN CERTIFICATE") && !made.pem().contains("PRIVATE"));
        assert_eq!(
            made.issuer.key().serialize_pem(),
            kept.issuer.key().serialize_pem()
        );
        let key = folder.0.join(KEY_FILE);
        let mode = fs::metadata(&key).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, PRIVATE);
        fs::write(&key, "nonsense").unwrap();
        assert!(Authority::kept_in(&folder.0, "ours").is_err());
    }

    #[test]
    fn a_server_has_a_certificate_and_its_key() {
        let authority = Authority::make("ours").unwrap();
        let now = Duration::from_secs(1_800_000_000);
        let Issued { pem, key_pin } = authority.issue(&["localhost", "127.0.0.1"], now).unwrap();
        assert_eq!(BASE64_STANDARD.decode(key_pin).unwrap().len(), 32);
        assert!(pem.contains("BEGIN CERTIFICATE") && pem.contains("BEGIN PRIVATE KEY"));
        assert!(authority.issue(&["löcal"], now).is_err());
    }

    #[test]
    fn a_private_file_takes_the_place_of_another() {
        let folder = Folder::new("private");
        fs::create_dir_all(&folder.0).unwrap();
        let path = folder.0.join("file");
        fs::write(&path, "old").unwrap();
        write_private(&path, "new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            PRIVATE
        );
        assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 1);
    }
}
