//! The two files of names: `/etc/resolv.conf` and `/etc/hosts`.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr, SocketAddrV6};

use crate::name::Name;
use crate::section::{Family, Nameserver, Transport};

/// The port of nameservers.
const DNS_PORT: u16 = 53;

/// The most nameservers that are read.
const NAMESERVERS_MAX: usize = 64;

/// What `parse-resolv-conf` found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResolvConf {
    /// The nameservers, named after their addresses.
    pub nameservers: Vec<Nameserver>,
    /// Lines that are left out, each with its reason.
    pub warnings: Vec<String>,
}

/// Reads the nameservers of `/etc/resolv.conf` (`parse-resolv-conf`). An address that occurs again
/// is left out, and so is what is no address; other lines are ignored.
#[must_use]
pub fn parse_resolv_conf(text: &str) -> ResolvConf {
    let mut found = ResolvConf::default();
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        let Some(rest) = line.strip_prefix("nameserver") else {
            continue;
        };
        // Another keyword that begins like this one.
        if !rest.is_empty() && !rest.starts_with([' ', '\t', '\r']) {
            continue;
        }
        let Some(address) = rest.split_ascii_whitespace().next() else {
            let warning = format!("line {number}: nameserver without an address");
            found.warnings.push(warning);
            continue;
        };
        if found.nameservers.iter().any(|known| known.name == address) {
            let warning = format!("line {number}: nameserver '{address}' is there already");
            found.warnings.push(warning);
        } else if found.nameservers.len() == NAMESERVERS_MAX {
            let warning = format!("line {number}: more than {NAMESERVERS_MAX} nameservers");
            found.warnings.push(warning);
            break;
        } else if let Some(parsed) = parse_address(address) {
            found.nameservers.push(Nameserver {
                name: address.to_owned(),
                address: parsed,
                transport: Transport::Udp,
            });
        } else {
            let warning = format!("line {number}: '{address}' is no address");
            found.warnings.push(warning);
        }
    }
    found
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
        assert_eq!(found.warnings.len(), 3, "{:?}", found.warnings);
        assert!(found.warnings[0].starts_with("line 6:"));
    }

    #[test]
    fn nameservers_are_bounded() {
        let line = |number: u32| format!("nameserver 10.0.{}.{}\n", number / 256, number % 256);
        let text: String = (0..1000).map(line).collect();
        let found = parse_resolv_conf(&text);
        assert_eq!(found.nameservers.len(), NAMESERVERS_MAX);
        assert_eq!(found.warnings.len(), 1);
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
