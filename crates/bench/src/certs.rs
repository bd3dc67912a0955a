//! A certificate authority made at each start, and a server's certificate by it for names of this machine.

use std::fs;
use std::path::{Path, PathBuf};

use authority::Authority;

use crate::Failure;

/// What the server's certificate is for.
const NAMES: &[&str] = &["localhost", "127.0.0.1", "::1"];

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
        let authority = Authority::make("Spangate bench, made at start")?;
        let files = Self {
            authority: dir.join("ca.pem"),
            server: dir.join("server.pem"),
        };
        fs::write(&files.authority, authority.pem())?;
        let server = authority.issue(NAMES, crate::clock::since_epoch())?;
        authority::write_private(&files.server, &server)?;
        Ok(files)
    }
}
