//! Names of proxies.

use std::fmt;
use std::ops::Deref;
use std::sync::OnceLock;

/// The name of a proxy: from the configuration, or set once at run time (`add backend`).
#[derive(Clone, Default)]
pub struct ProxyName(OnceLock<Box<str>>);

impl ProxyName {
    /// Sets the name of a proxy without one. Returns whether it had none.
    pub fn give(&self, name: &str) -> bool {
        self.0.set(name.into()).is_ok()
    }

    /// The name; empty if it is not set yet.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.get().map_or("", |name| name)
    }
}

impl From<&str> for ProxyName {
    fn from(name: &str) -> ProxyName {
        ProxyName(OnceLock::from(Box::from(name)))
    }
}

impl From<String> for ProxyName {
    fn from(name: String) -> ProxyName {
        ProxyName(OnceLock::from(name.into_boxed_str()))
    }
}

impl Deref for ProxyName {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl PartialEq<str> for ProxyName {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<ProxyName> for str {
    fn eq(&self, other: &ProxyName) -> bool {
        self == other.as_str()
    }
}

impl PartialEq<ProxyName> for String {
    fn eq(&self, other: &ProxyName) -> bool {
        self == other.as_str()
    }
}

impl PartialEq<&str> for ProxyName {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl PartialEq<String> for ProxyName {
    fn eq(&self, other: &String) -> bool {
        self.as_str() == other
    }
}

impl fmt::Display for ProxyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self)
    }
}

impl fmt::Debug for ProxyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}
