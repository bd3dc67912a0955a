//! A certificate authority that is created at each start, and a server certificate from it for
//! names of this machine.

use std::fs;
use std::path::{Path, PathBuf};

use authority::Authority;

use crate::Failure;

/// The names in the server's certificate.
const NAMES: &[&str] = &["localhost", "127.0.0.1", "::1"];

/// The written files.
pub struct Certificates {
    /// The authority's certificate, for clients.
    pub authority: PathBuf,
    /// The server's certificate and its private key, in the format of HAProxy's `crt`.
    pub server: PathBuf,
    /// See [`authority::Issued::key_pin`].
    pub key_pin: String,
}

impl Certificates {
    /// Creates an authority and a certificate, and writes them into `dir`. The authority's key is
    /// not stored.
    ///
    /// # Errors
    /// Random numbers are not available, or a file cannot be written.
    pub fn write(dir: &Path) -> Result<Self, Failure> {
        let authority = Authority::make("Spangate bench, made at start")?;
        let server = authority.issue(NAMES, crate::clock::since_epoch())?;
        let files = Self {
            authority: dir.join("ca.pem"),
            server: dir.join("server.pem"),
            key_pin: server.key_pin,
        };
        fs::write(&files.authority, authority.pem())?;
        authority::write_private(&files.server, &server.pem)?;
        Ok(files)
    }
}
