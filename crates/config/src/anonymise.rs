//! Replaces names and addresses by hashes, so that a dump can be shown to third parties: `-dC`,
//! `set anon` (management guide §3, §9.3).
//!
//! The hashes are HAProxy's (24 bits of XXH32, seeded with the key), so that its dumps and ours
//! with the same key can be compared.

use crate::build::address::{self, Ports};
use std::borrow::Cow;
use std::net::IpAddr;
use xxhash_rust::xxh32::xxh32;

/// The bits of a hash that are shown: too few to reveal what was hashed.
const SHOWN_BITS: u32 = 0x00ff_ffff;

/// How names are shown. Without a key, they are not changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Anonymiser {
    /// 0 means that nothing is hidden.
    key: u32,
}

impl Anonymiser {
    /// An anonymiser with this key; 0 hides nothing.
    #[must_use]
    pub fn new(key: u32) -> Self {
        Anonymiser { key }
    }

    /// The key; 0 if nothing is hidden.
    #[must_use]
    pub fn key(self) -> u32 {
        self.key
    }

    /// Whether names are hidden.
    #[must_use]
    pub fn hides(self) -> bool {
        self.key != 0
    }

    /// A text, hashed if there is a key.
    #[must_use]
    pub fn text(self, text: &str) -> Cow<'_, str> {
        match self.hash(text) {
            Some(hash) => hash.into(),
            None => text.into(),
        }
    }

    /// A name, as `ID(…)`.
    #[must_use]
    pub fn name(self, name: &str) -> Cow<'_, str> {
        match self.hash(name) {
            Some(hash) => format!("ID({hash})").into(),
            None => name.into(),
        }
    }

    /// The path of a file, as `PATH(…)`.
    #[must_use]
    pub fn path(self, path: &str) -> Cow<'_, str> {
        match self.hash(path) {
            Some(hash) => format!("PATH({hash})").into(),
            None => path.into(),
        }
    }

    /// An address as lines write it, with its port. Addresses that reveal no network are shown:
    /// loopback, any address, descriptors.
    #[must_use]
    pub fn address(self, written: &str) -> Cow<'_, str> {
        let is_plain = matches!(written, "localhost" | "stdout" | "stderr")
            || written.starts_with("fd@")
            || written.starts_with("sockpair@");
        if is_plain {
            return written.into();
        }
        match address::parse(written.as_bytes(), address::Names::Refuse) {
            Ok(address::Parsed::Inet(ip, ports)) => self.inet(written, ip, ports),
            _ => self.text(written),
        }
    }

    /// An address without a port.
    #[must_use]
    pub fn ip<'a>(self, written: &'a str) -> Cow<'a, str> {
        match written.parse() {
            Ok(ip) => self.inet(written, ip, Ports::None),
            Err(_) => self.text(written),
        }
    }

    fn inet<'a>(self, written: &'a str, ip: IpAddr, ports: Ports) -> Cow<'a, str> {
        let (family, says_nothing) = match ip {
            IpAddr::V4(ip) => ("IPV4", matches!(ip.octets()[0], 0 | 127 | 255)),
            IpAddr::V6(ip) => ("IPV6", ip.is_loopback()),
        };
        if says_nothing {
            return written.into();
        }
        match (self.hash(&ip.to_string()), ports) {
            (None, _) => written.into(),
            (Some(hash), Ports::Range(port, _)) if port != 0 => {
                format!("{family}({hash}):{port}").into()
            }
            (Some(hash), _) => format!("{family}({hash})").into(),
        }
    }

    /// The digits for a hidden text.
    fn hash(self, text: &str) -> Option<String> {
        let is_hidden = self.hides() && !matches!(text, "" | " ");
        is_hidden.then(|| format!("{:06x}", xxh32(text.as_bytes(), self.key) & SHOWN_BITS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_haproxy_s() {
        let with = Anonymiser::new(77);
        assert_eq!(with.name("foo"), "ID(4963d9)");
        assert_eq!(with.path("/etc/x.http"), "PATH(f2bbde)");
        assert_eq!(with.text("/tmp/hap/s.sock"), "36e2ef");
        assert_eq!(with.address("192.168.0.1:514"), "IPV4(fb75c6):514");
        assert_eq!(with.address("10.1.1.1:80"), "IPV4(1f1460):80");
        assert_eq!(with.address("ipv4@10.1.2.1:80"), "IPV4(7f9885):80");
        assert_eq!(with.address("example.com:80"), "059ba9");
        assert_eq!(with.ip("10.1.1.1"), "IPV4(1f1460)");
    }

    #[test]
    fn what_says_nothing_is_shown() {
        let with = Anonymiser::new(1);
        for plain in [
            "127.0.0.1:80",
            ":80",
            "0.0.0.0",
            "::1:81",
            "fd@3",
            "stdout",
            "localhost",
        ] {
            assert_eq!(with.address(plain), plain);
        }
        assert_eq!((with.name(""), with.text(" ")), ("".into(), " ".into()));
        let without = Anonymiser::default();
        assert_eq!(without.name("foo"), "foo");
        assert_eq!(without.address("10.1.1.1:80"), "10.1.1.1:80");
        assert_eq!(without.ip("10.1.1.1"), "10.1.1.1");
    }
}
