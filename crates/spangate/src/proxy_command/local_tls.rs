//! `--tls internal`: a certificate from an authority that this machine keeps for the user.

use std::path::PathBuf;
use std::time::Duration;

use authority::{Authority, Error};

/// The authority's name in lists of trusted certificates.
const NAME: &str = "Spangate local authority";
/// The names of every machine.
const NAMES: &[&str] = &["localhost", "127.0.0.1", "::1"];

/// The written files.
pub(super) struct Files {
    /// The authority's certificate, for clients.
    pub authority: String,
    /// The server's certificate and its key.
    pub server: String,
}

/// Makes a certificate for the names of this machine and for the listening address.
///
/// # Errors
/// There is no folder for the files, or they cannot be read or written.
pub(super) fn certificate(from: &str) -> Result<Files, Error> {
    let folder = folder().ok_or("neither XDG_DATA_HOME nor HOME is set")?;
    let authority = Authority::kept_in(&folder, NAME)?;
    let hostname = crate::sys::hostname();
    let own = from.rsplit_once(':').map_or("", |(address, _)| address);
    let mut names = NAMES.to_vec();
    for name in [own.trim_matches(['[', ']']), &hostname] {
        let is_name = name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b".-:".contains(&byte));
        if is_name && !name.is_empty() && name != "0.0.0.0" && !names.contains(&name) {
            names.push(name);
        }
    }
    let now = Duration::from_nanos(net::sys::now().wall_ns);
    let server = folder.join("server.pem");
    authority::write_private(&server, &authority.issue(&names, now)?.pem)?;
    let text = |path: PathBuf| path.to_string_lossy().into_owned();
    Ok(Files {
        authority: text(Authority::certificate_file(&folder)),
        server: text(server),
    })
}

/// The folder for the user's data of programs (XDG Base Directory Specification).
fn folder() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let data = variable("XDG_DATA_HOME").map(PathBuf::from);
    // The specification says that relative paths are invalid and ignored.
    let data = data.filter(|path| path.is_absolute());
    let home = || Some(PathBuf::from(variable("HOME")?).join(".local/share"));
    Some(data.or_else(home)?.join("spangate"))
}
