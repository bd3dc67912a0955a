//! Clients of TLS: what they offer, one request over a connection, and two kinds of load. A closed loop sends the next request
//! when an answer has come; an open loop sends each request when its time has come.

pub mod closed_loop;
mod connect;
mod exchange;
pub mod latency;
mod line;
pub mod open_loop;
pub mod probe;
mod schedule;

pub use connect::{Offer, config, connect};
pub use exchange::request;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The only cipher suite that the clients of a comparison offer, so that all proxies do the same work.
pub const CIPHER: &str = "TLS_AES_128_GCM_SHA256";
/// The only group for the key exchange that they offer.
pub const GROUP: &str = "X25519";

/// How long a connection with its handshake, or a request, may take.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// Writes a configuration for the OpenSSL of other programs, which then offer [`CIPHER`] and [`GROUP`] alone; it goes into the
/// variable `OPENSSL_CONF`.
///
/// # Errors
/// When the file cannot be written.
pub fn openssl_conf(dir: &Path) -> io::Result<PathBuf> {
    let file = dir.join("openssl.cnf");
    let text = format!(
        "openssl_conf = all\n[all]\nssl_conf = ssl\n[ssl]\nsystem_default = client\n[client]\nCiphersuites = {CIPHER}\nGroups = {GROUP}\n"
    );
    fs::write(&file, text)?;
    Ok(file)
}
