//! TLS clients: their offers, one request over a connection, and two kinds of load. A closed loop
//! sends the next request after an answer. An open loop sends each request at its scheduled time.

pub mod closed_loop;
mod connect;
mod exchange;
pub mod latency;
mod line;
pub mod open_loop;
pub mod probe;
pub mod schedule;
pub mod tally;

pub use connect::{Offer, config, connect};
pub use exchange::request;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The only cipher suite that the clients of a comparison offer, so that all proxies do the same
/// work.
pub const CIPHER: &str = "TLS_AES_128_GCM_SHA256";
/// The only key exchange group that they offer.
pub const GROUP: &str = "X25519";

/// Most time for a connection with its handshake, or for a request.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// Writes an OpenSSL configuration for other programs, which then offer only [`CIPHER`] and
/// [`GROUP`]. Its path is for the variable `OPENSSL_CONF`.
///
/// # Errors
/// The file cannot be written.
pub fn openssl_conf(dir: &Path) -> io::Result<PathBuf> {
    let file = dir.join("openssl.cnf");
    let text = format!(
        "openssl_conf = all\n[all]\nssl_conf = ssl\n[ssl]\nsystem_default = client\n[client]\nCiphersuites = {CIPHER}\nGroups = {GROUP}\n"
    );
    fs::write(&file, text)?;
    Ok(file)
}
