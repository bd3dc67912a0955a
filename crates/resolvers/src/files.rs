//! The two files of names: `/etc/resolv.conf` and `/etc/hosts`.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr, SocketAddrV6};

use crate::SEARCH_DOMAINS_MAX;
use crate::name::Name;
use crate::section::{Family, Nameserver, Transport};

/// The port of nameservers.
const DNS_PORT: u16 = 53;

/// The most nameservers that are read.
const NAMESERVERS_MAX: usize = 64;

/// The defaults and limits of `options`, as in resolv.conf(5).
const NDOTS_DEFAULT: u32 = 1;
const NDOTS_MAX: u32 = 15;
const TIMEOUT_SECONDS_DEFAULT: u32 = 5;
const TIMEOUT_SECONDS_MAX: u32 = 30;
const ATTEMPTS_DEFAULT: u32 = 2;
const ATTEMPTS_MAX: u32 = 5;

/// What `/etc/resolv.conf` has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvConf {
    /// The nameservers, named after their addresses.
    pub nameservers: Vec<Nameserver>,
    /// The search list: the last line `search` or `domain`; none without such a line.
    pub search: Option<Vec<Name>>,
    /// `options ndots`: a name with fewer dots is first looked up in the domains of the search list.
    pub ndots: u32,
    /// `options timeout`: how long a nameserver's answer is awaited, in seconds.
    pub timeout_seconds: u32,
    /// `options attempts`: how often each nameserver is asked.
    pub attempts: u32,
    /// Lines `nameserver` that are left out.
    pub warnings: Vec<LineWarning>,
}

/// A line that is left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineWarning {
    /// The line's number; the first one is 1.
    pub line: usize,
    /// Why.
    pub fault: LineFault,
}

/// Why a line `nameserver` is left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LineFault {
    /// It has no address.
    NoAddress,
    /// Its word is no address.
    NotAnAddress(String),
    /// An earlier line has the same address.
    Duplicate(String),
    /// There are 64 nameservers.
    TooMany,
}

/// Reads `/etc/resolv.conf` (resolv.conf(5)): nameservers (`parse-resolv-conf`), the search list
/// and options. Other lines are ignored, and so are words of the search list that are no names.
#[must_use]
pub fn parse_resolv_conf(text: &str) -> ResolvConf {
    let mut found = ResolvConf {
        nameservers: Vec::new(),
        search: None,
        ndots: NDOTS_DEFAULT,
        timeout_seconds: TIMEOUT_SECONDS_DEFAULT,
        attempts: ATTEMPTS_DEFAULT,
        warnings: Vec::new(),
    };
    let mut is_full = false;
    for (index, line) in text.lines().enumerate() {
        // A keyword stands at the beginning of its line.
        let keyword = line.split([' ', '\t', '\r']).next().unwrap_or_default();
        let mut words = line[keyword.len()..].split_ascii_whitespace();
        match keyword {
            // The first line too many has a warning for all.
            "nameserver" if is_full => {}
            "nameserver" => {
                if let Err(fault) = found.add_nameserver(words.next()) {
                    is_full = fault == LineFault::TooMany;
                    let line = index + 1;
                    found.warnings.push(LineWarning { line, fault });
                }
            }
            "domain" => found.search = Some(domains(words.take(1))),
            "search" => found.search = Some(domains(words)),
            "options" => words.for_each(|word| found.set_option(word)),
            _ => {}
        }
    }
    found
}

impl ResolvConf {
    fn add_nameserver(&mut self, word: Option<&str>) -> Result<(), LineFault> {
        let address = word.ok_or(LineFault::NoAddress)?;
        if self.nameservers.iter().any(|known| known.name == address) {
            return Err(LineFault::Duplicate(address.to_owned()));
        }
        if self.nameservers.len() == NAMESERVERS_MAX {
            return Err(LineFault::TooMany);
        }
        let parsed = parse_address(address);
        self.nameservers.push(Nameserver {
            name: address.to_owned(),
            address: parsed.ok_or_else(|| LineFault::NotAnAddress(address.to_owned()))?,
            transport: Transport::Udp,
        });
        Ok(())
    }

    /// Sets `<name>:<number>`; other options and numbers that are none are ignored.
    fn set_option(&mut self, word: &str) {
        let Some((name, number)) = word.split_once(':') else {
            return;
        };
        let Ok(number) = number.parse::<u32>() else {
            return;
        };
        match name {
            "ndots" => self.ndots = number.min(NDOTS_MAX),
            "timeout" => self.timeout_seconds = number.clamp(1, TIMEOUT_SECONDS_MAX),
            "attempts" => self.attempts = number.clamp(1, ATTEMPTS_MAX),
            _ => {}
        }
    }
}

/// The domains of a search list. The root (`.`) is none: names are looked up as they are anyway.
fn domains<'a>(words: impl Iterator<Item = &'a str>) -> Vec<Name> {
    let names = words.filter_map(|word| Name::parse(word).ok());
    names.take(SEARCH_DOMAINS_MAX).collect()
}

/// An address, with a numeric scope after `%` for link-local ones.
fn parse_address(text: &str) -> Option<SocketAddr> {
    if let Some((address, scope)) = text.split_once('%') {
        let scope_id = scope.parse().ok()?;
        let address = SocketAddrV6::new(address.parse().ok()?, DNS_PORT, 0, scope_id);
        return Some(address.into());
    }
    let address: IpAddr = text.parse().ok()?;
    Some(SocketAddr::new(address, DNS_PORT))
}

/// The names of `/etc/hosts`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hosts {
    addresses: HashMap<Name, Vec<IpAddr>>,
}

impl Hosts {
    /// Reads lines of an address and its names (hosts(5)). Lines without an address and names that
    /// are none are ignored.
    #[must_use]
    pub fn parse(text: &str) -> Hosts {
        let mut addresses: HashMap<Name, Vec<IpAddr>> = HashMap::new();
        for line in text.lines() {
            let line = line.split('#').next().unwrap_or_default();
            let mut words = line.split_ascii_whitespace();
            let Some(address) = words.next().and_then(|word| word.parse().ok()) else {
                continue;
            };
            for name in words.filter_map(|word| Name::parse(word).ok()) {
                addresses.entry(name).or_default().push(address);
            }
        }
        for found in addresses.values_mut() {
            let mut seen = std::collections::HashSet::new();
            found.retain(|address| seen.insert(*address));
        }
        Hosts { addresses }
    }

    /// The addresses of a name, in the order of the file.
    #[must_use]
    pub fn addresses(&self, name: &Name) -> &[IpAddr] {
        self.addresses.get(name).map_or(&[], Vec::as_slice)
    }

    /// The first address of a name of the preferred family, else its first address.
    #[must_use]
    pub fn address(&self, name: &Name, prefer: Family) -> Option<IpAddr> {
        let all = self.addresses(name);
        let preferred = all.iter().find(|&&address| Family::of(address) == prefer);
        preferred.or(all.first()).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nameservers_of_resolv_conf() {
        let text = "# nameserver 1.2.3.4\nsearch example.com\nnameserver 10.0.0.1\n\
                    nameserver\t2001:db8::1 trailing\r\nnameserver fe80::1%2\nnameserver 10.0.0.1\n\
                    nameserver\nnameserver host\nnameservers 10.0.0.9\n nameserver 10.0.0.8\n";
        let found = parse_resolv_conf(text);
        let addresses: Vec<String> = found
            .nameservers
            .iter()
            .map(|nameserver| nameserver.address.to_string())
            .collect();
        assert_eq!(
            addresses,
            ["10.0.0.1:53", "[2001:db8::1]:53", "[fe80::1%2]:53"]
        );
        assert_eq!(found.nameservers[1].name, "2001:db8::1");
        let warning = |line, fault| LineWarning { line, fault };
        assert_eq!(
            found.warnings,
            [
                warning(6, LineFault::Duplicate("10.0.0.1".to_owned())),
                warning(7, LineFault::NoAddress),
                warning(8, LineFault::NotAnAddress("host".to_owned())),
            ]
        );
    }

    #[test]
    fn search_list_and_options() {
        let read = |text: &str| {
            let found = parse_resolv_conf(text);
            let search = found.search.map(|search| {
                let names = search.iter().map(Name::as_str);
                names.collect::<Vec<_>>().join(" ")
            });
            (search, found.ndots, found.timeout_seconds, found.attempts)
        };
        let some = |text: &str| Some(text.to_owned());
        for (text, expected) in [
            ("", (None, 1, 5, 2)),
            ("search", (some(""), 1, 5, 2)),
            (
                "search A.test b.test. bad..name .\noptions ndots:5 timeout:2 attempts:3",
                (some("a.test b.test"), 5, 2, 3),
            ),
            (
                "search a.test\ndomain\tb.test c.test\r\noptions ndots:99",
                (some("b.test"), 15, 5, 2),
            ),
            (
                "options timeout:0 attempts:0\noptions timeout:99 attempts:x ndots rotate",
                (None, 1, 30, 1),
            ),
            (" search a.test\nsearching b.test", (None, 1, 5, 2)),
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
        let many: String = (0..100).map(|number| format!(" d{number}.test")).collect();
        let found = parse_resolv_conf(&format!("search{many}"));
        assert_eq!(found.search.unwrap().len(), SEARCH_DOMAINS_MAX);
    }

    #[test]
    fn nameservers_are_bounded() {
        let line = |number: u32| format!("nameserver 10.0.{}.{}\n", number / 256, number % 256);
        let text: String = (0..1000).map(line).collect();
        let found = parse_resolv_conf(&text);
        assert_eq!(found.nameservers.len(), NAMESERVERS_MAX);
        assert_eq!(found.warnings.len(), 1);
        assert_eq!(found.warnings[0].fault, LineFault::TooMany);
    }

    #[test]
    fn hosts_by_name() {
        let hosts = Hosts::parse(
            "127.0.0.1 localhost Local.Example # and more\n::1\tlocalhost\n#10.0.0.1 a\n\
             10.0.0.2\nnot-an-address a\n127.0.0.1 localhost\n10.0.0.3 bad..name good\n",
        );
        let name = |text| Name::parse(text).unwrap();
        let v4: IpAddr = "127.0.0.1".parse().unwrap();
        let v6: IpAddr = "::1".parse().unwrap();
        assert_eq!(hosts.addresses(&name("localhost")), [v4, v6]);
        assert_eq!(hosts.addresses(&name("local.example")), [v4]);
        assert_eq!(hosts.address(&name("LOCALHOST"), Family::V6), Some(v6));
        assert_eq!(hosts.address(&name("local.example"), Family::V6), Some(v4));
        assert!(hosts.address(&name("good"), Family::V4).is_some());
        assert_eq!(hosts.address(&name("a"), Family::V4), None);
    }
}
