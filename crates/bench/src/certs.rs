//! A certificate authority made at each start, and a server's certificate by it (ECDSA P-256) for names of this machine.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose,
};

use crate::Failure;

/// What the server's certificate is for.
const NAMES: &[&str] = &["localhost", "127.0.0.1", "::1"];
/// The mode of a file with a private key.
const PRIVATE: u32 = 0o600;

/// The files that were written.
pub struct Certificates {
    /// The authority's certificate, for clients.
    pub authority: PathBuf,
    /// The server's certificate and its private key, as HAProxy's `crt` takes them.
    pub server: PathBuf,
}

impl Certificates {
    /// Makes an authority and a certificate and writes them into `dir`. The authority's key is kept nowhere.
    ///
    /// # Errors
    /// When there is no randomness, or a file cannot be written.
    pub fn write(dir: &Path) -> Result<Self, Failure> {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let name = "Spangate bench, made at start";
        params.distinguished_name.push(DnType::CommonName, name);
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
        let names: Vec<String> = NAMES.iter().copied().map(String::from).collect();
        let mut params = CertificateParams::new(names)?;
        let name = "localhost";
        params.distinguished_name.push(DnType::CommonName, name);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &authority)?;
        let files = Self {
            authority: dir.join("ca.pem"),
            server: dir.join("server.pem"),
        };
        fs::write(&files.authority, authority.pem())?;
        let mut server = private(&files.server)?;
        server.write_all(certificate.pem().as_bytes())?;
        server.write_all(key.serialize_pem().as_bytes())?;
        Ok(files)
    }
}

/// A new file that only its owner reads.
fn private(path: &Path) -> std::io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(PRIVATE)
        .open(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_key_is_in_one_file_that_only_we_read() {
        let dir = crate::workdir::Workdir::new("certs-test").unwrap();
        let files = Certificates::write(dir.path()).unwrap();
        let authority = fs::read_to_string(&files.authority).unwrap();
        let server = fs::read_to_string(&files.server).unwrap();
        assert!(authority.contains("BEGIN CERTIFICATE") && !authority.contains("PRIVATE KEY"));
        assert!(server.contains("BEGIN CERTIFICATE") && server.contains("BEGIN PRIVATE KEY"));
        let mode = fs::metadata(&files.server).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, PRIVATE);
    }
}
