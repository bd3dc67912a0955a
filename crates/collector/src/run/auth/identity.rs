//! What an authenticator found out about who sends.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// A user of `basicauth`.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Identity {
    username: String,
    /// User and password as they were sent.
    raw: String,
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The password is in it.
        write!(out, "Identity({:?})", self.username)
    }
}

impl Identity {
    /// The user of credentials in base64 (RFC 7617 §2); none where they are no such.
    #[must_use]
    pub fn of_basic(raw: &str) -> Option<Identity> {
        let pair = STANDARD.decode(raw).ok()?;
        let colon = pair.iter().position(|byte| *byte == b':')?;
        Some(Identity {
            username: String::from_utf8_lossy(&pair[..colon]).into_owned(),
            raw: raw.to_owned(),
        })
    }

    /// By the names that the Collector's extension has: `username` and `raw`.
    #[must_use]
    pub fn attribute(&self, name: &str) -> Option<&str> {
        match name {
            "username" => Some(&self.username),
            "raw" => Some(&self.raw),
            _ => None,
        }
    }
}
