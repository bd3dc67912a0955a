//! Parses patterns: numbers, versions, networks.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::compile::mask4_of;
use crate::text::parse_int;

/// An inclusive range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub min: i64,
    pub max: i64,
}

impl Range {
    pub(super) fn contains(self, value: i64) -> bool {
        self.min <= value && value <= self.max
    }

    /// `n`, `n:m`, `n:`, `:m`; `-` is a separator too.
    pub(crate) fn parse(text: &str) -> Result<Range, String> {
        let invalid = || format!("'{text}' is not a valid number range");
        let number = |text: &str| parse_int(text).ok_or_else(invalid);
        if text.is_empty() {
            return Err(invalid());
        }
        let Some((min, max)) = text.split_once([':', '-']) else {
            let value = parse_int(text).ok_or_else(|| format!("'{text}' is not a number"))?;
            return Ok(Range {
                min: value,
                max: value,
            });
        };
        Range::between(min, max, number).and_then(|range| range.ok_or_else(invalid))
    }

    /// Like [`Range::parse`], with versions `major.minor`, each as `major << 16 | minor`.
    pub(crate) fn parse_version(text: &str) -> Result<Range, String> {
        let invalid = || format!("'{text}' is not a valid dotted number range");
        let number = |text: &str| {
            let (major, minor) = text.split_once('.').unwrap_or((text, "0"));
            let part = |text: &str| text.parse::<u16>().map_err(|_| invalid());
            Ok::<i64, String>(i64::from(part(major)?) << 16 | i64::from(part(minor)?))
        };
        match text.split_once([':', '-']) {
            None => {
                let value = number(text).map_err(|_| format!("'{text}' is not a dotted number"))?;
                Ok(Range {
                    min: value,
                    max: value,
                })
            }
            Some((min, max)) => {
                Range::between(min, max, number).and_then(|range| range.ok_or_else(invalid))
            }
        }
    }

    /// A missing bound is the extreme value. None if both are missing or in the wrong order.
    fn between(
        min: &str,
        max: &str,
        number: impl Fn(&str) -> Result<i64, String>,
    ) -> Result<Option<Range>, String> {
        let end = |text: &str, default| match text {
            "" => Ok(default),
            text => number(text),
        };
        let range = Range {
            min: end(min, i64::MIN)?,
            max: end(max, i64::MAX)?,
        };
        let empty = min.is_empty() && max.is_empty();
        Ok((!empty && range.min <= range.max).then_some(range))
    }
}

/// A network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Network {
    V4 { address: u32, mask: u32 },
    V6 { address: u128, bits: u32 },
}

impl Network {
    /// `address[/mask]`. If `lenient`, an IPv4 address may have fewer parts; the last one fills the
    /// rest (`10.1` is 10.0.0.1). The system's resolver, which HAProxy uses, does this.
    pub(crate) fn parse(text: &str, lenient: bool) -> Result<Network, String> {
        Network::read(text, lenient)
            .ok_or_else(|| format!("'{text}' is not a valid IPv4 or IPv6 address"))
    }

    /// Like [`Network::parse`], and a host's name stands for its first IPv4 address. This blocks on
    /// the system's resolver, so it is only for loading the configuration.
    pub(super) fn resolve(text: &str, lenient: bool) -> Result<Network, String> {
        let unknown = match Network::parse(text, lenient) {
            Err(message) if lenient => message,
            parsed => return parsed,
        };
        let (host, mask) = text.split_once('/').unwrap_or((text, "32"));
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        if host.is_empty() || !host.bytes().all(is_name) {
            return Err(unknown);
        }
        let mut addresses = files::addresses(host).into_iter().flatten();
        let ip = addresses.find(IpAddr::is_ipv4);
        let ip = ip.ok_or_else(|| unknown.clone())?;
        Network::parse(&format!("{ip}/{mask}"), false).map_err(|_| unknown)
    }

    /// Like [`Network::parse`], for a text that was parsed successfully before.
    pub(super) fn read(text: &str, lenient: bool) -> Option<Network> {
        let (address, mask) = match text.rsplit_once('/') {
            Some((address, mask)) => (address, Some(mask)),
            None => (text, None),
        };
        let ipv4 = match address.parse::<Ipv4Addr>() {
            Ok(ip) => Some(u32::from(ip)),
            Err(_) if lenient => short_ipv4(address),
            Err(_) => None,
        };
        if let Some(address) = ipv4 {
            let mask = match mask {
                None => u32::MAX,
                Some(mask) => u32::from(mask4_of(mask)?),
            };
            return Some(Network::V4 {
                address: address & mask,
                mask,
            });
        }
        let address: Ipv6Addr = address.parse().ok()?;
        let bits = match mask {
            None => 128,
            Some(mask) => mask.parse().ok().filter(|bits| *bits <= 128)?,
        };
        Some(Network::V6 {
            address: u128::from(address) & prefix6(bits),
            bits,
        })
    }
}

/// The prefix length of a mask; None for one with holes.
pub(crate) fn length_of(mask: u32) -> Option<u32> {
    (mask.leading_ones() + mask.trailing_zeros() >= 32).then_some(mask.leading_ones())
}

/// The mask for a prefix length of at most 32.
pub(super) fn prefix4(bits: u32) -> u32 {
    u32::MAX.checked_shl(32 - bits).unwrap_or(0)
}

/// The mask for a prefix length of at most 128.
pub(crate) fn prefix6(bits: u32) -> u128 {
    u128::MAX.checked_shl(128 - bits).unwrap_or(0)
}

/// One to three numbers; the last one fills the remaining bytes.
fn short_ipv4(text: &str) -> Option<u32> {
    let parts: Vec<u32> = text
        .split('.')
        .map(|part| {
            let digits = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
            part.parse().ok().filter(|_| digits)
        })
        .collect::<Option<_>>()?;
    let (last, first) = parts.split_last()?;
    let room = 32_u32
        .checked_sub(8 * first.len() as u32)
        .filter(|bits| *bits > 8)?;
    if room < 32 && *last >= 1 << room {
        return None;
    }
    first
        .iter()
        .enumerate()
        .try_fold(*last, |address, (at, part)| {
            (*part < 256).then_some(address | part << (24 - 8 * at))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges() {
        let range = |min, max| Ok(Range { min, max });
        assert_eq!(Range::parse("5"), range(5, 5));
        assert_eq!(Range::parse("5:9"), range(5, 9));
        assert_eq!(Range::parse("5-"), range(5, i64::MAX));
        assert_eq!(Range::parse(":9"), range(i64::MIN, 9));
        assert_eq!(Range::parse_version("1.2-3"), range(0x10002, 0x30000));
        for (text, message) in [
            ("x", "'x' is not a number"),
            ("9:5", "'9:5' is not a valid number range"),
            (":", "':' is not a valid number range"),
            ("", "'' is not a valid number range"),
            ("1:x", "'1:x' is not a valid number range"),
        ] {
            assert_eq!(Range::parse(text), Err(message.to_owned()));
        }
        assert_eq!(
            Range::parse_version("1.x"),
            Err("'1.x' is not a dotted number".to_owned())
        );
    }

    #[test]
    fn networks() {
        let v4 = |address: [u8; 4], mask| {
            Some(Network::V4 {
                address: u32::from_be_bytes(address),
                mask,
            })
        };
        for (text, wanted) in [
            ("10.1.2.3", v4([10, 1, 2, 3], u32::MAX)),
            ("10.1.2.3/8", v4([10, 0, 0, 0], 0xff00_0000)),
            ("10.1.2.3/255.0.255.0", v4([10, 0, 2, 0], 0xff00_ff00)),
            ("10.1.2.3/0", v4([0, 0, 0, 0], 0)),
            ("10.1", None),
            ("10.1.2.3/", None),
            ("10.1.2.3/33", None),
            ("::1/129", None),
            ("host", None),
        ] {
            assert_eq!(Network::read(text, false), wanted, "{text}");
        }
        let v6 = Network::V6 {
            address: 0x2001_0db8 << 96,
            bits: 32,
        };
        let loopback = Network::V4 {
            address: 127 << 24,
            mask: 255 << 24,
        };
        // Some systems have no names at all; then there is nothing to resolve.
        if files::addresses("localhost").is_ok_and(|all| all.iter().any(IpAddr::is_ipv4)) {
            assert_eq!(Network::resolve("localhost/8", true), Ok(loopback));
        }
        for (text, lenient) in [
            ("localhost", false),
            ("a b", true),
            ("", true),
            ("localhost/x", true),
        ] {
            assert!(Network::resolve(text, lenient).is_err(), "{text}");
        }
        assert_eq!(Network::read("2001:db8::1/32", false), Some(v6));
        for (text, wanted) in [
            ("10", Some([0, 0, 0, 10])),
            ("10.1", Some([10, 0, 0, 1])),
            ("192.168.257", Some([192, 168, 1, 1])),
            ("256.1", None),
            ("10.16777216", None),
            ("", None),
            ("+1", None),
        ] {
            let wanted = wanted.and_then(|address| v4(address, u32::MAX));
            assert_eq!(Network::read(text, true), wanted, "{text}");
        }
        assert_eq!(
            (length_of(0xff00_0000), length_of(0xff00_ff00)),
            (Some(8), None)
        );
        assert_eq!((length_of(0), length_of(u32::MAX)), (Some(0), Some(32)));
    }
}
