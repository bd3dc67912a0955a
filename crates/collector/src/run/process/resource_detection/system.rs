//! `system`: what Linux tells of itself in files.

use std::fs;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;

use super::Found;
use crate::config::components::processors::action::AttributeValue;
use crate::config::components::processors::resource_detection::System;

/// Bytes of a file that are looked at.
const FILE_BYTES_MAX: usize = 1 << 20;

/// Where the files are.
#[derive(Debug)]
pub struct Host {
    root: PathBuf,
}

impl Default for Host {
    fn default() -> Host {
        Host { root: "/".into() }
    }
}

type Tell = fn(&Host) -> Result<AttributeValue, String>;

/// The attributes that there are, and how each is found out.
const ATTRIBUTES: &[(&str, Tell)] = &[
    ("os.type", |_| Ok(text(std::env::consts::OS))),
    ("host.arch", |_| Ok(text(arch()))),
    ("host.id", host_id),
    ("host.ip", host_ip),
    ("host.mac", host_mac),
    ("host.interface", |host| Ok(list(host.interfaces()?))),
    ("os.name", |host| host.release("NAME").map(text)),
    ("os.version", |host| host.release("VERSION_ID").map(text)),
    ("os.build.id", |host| host.kernel("version").map(text)),
    ("os.description", description),
    ("host.cpu.vendor.id", |host| host.cpu("vendor_id").map(text)),
    ("host.cpu.family", |host| host.cpu("cpu family").map(text)),
    ("host.cpu.model.id", |host| host.cpu("model").map(text)),
    ("host.cpu.model.name", |host| {
        host.cpu("model name").map(text)
    }),
    ("host.cpu.stepping", |host| host.cpu("stepping").map(text)),
    ("host.cpu.cache.l2.size", cache_size),
];

/// What the host tells of the attributes that are wanted, and what it does not.
///
/// # Errors
/// There is no name of the host: then nothing is told, as the Collector does.
pub fn detect(settings: &System, host: &Host) -> Result<(Found, Vec<String>), String> {
    let name = host_name(&settings.name_sources, host)?;
    let (mut found, mut missing) = (Found::new(), Vec::new());
    if settings
        .attributes
        .iter()
        .any(|wanted| wanted == "host.name")
    {
        found.push(("host.name".to_owned(), text(name)));
    }
    for (name, tell) in ATTRIBUTES {
        if !settings.attributes.iter().any(|wanted| wanted == name) {
            continue;
        }
        match tell(host) {
            Ok(value) => found.push(((*name).to_owned(), value)),
            Err(why) => missing.push(format!("detector 'system': {name}: {why}")),
        }
    }
    Ok((found, missing))
}

fn text(text: impl Into<String>) -> AttributeValue {
    AttributeValue::Text(text.into())
}

fn list(texts: Vec<String>) -> AttributeValue {
    AttributeValue::List(texts.into_iter().map(AttributeValue::Text).collect())
}

/// Names of processors as Go has them, which the Collector tells.
fn arch() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "arm" => "arm32",
        "powerpc64" => "ppc64",
        "powerpc" => "ppc32",
        other => other,
    }
}

/// The host's name: of the first source that has one.
fn host_name(sources: &[String], host: &Host) -> Result<String, String> {
    let own = host.kernel("hostname")?;
    for source in sources {
        match source.as_str() {
            "dns" => {
                if let Some(name) = host.full_name(&own) {
                    return Ok(name);
                }
            }
            _ => return Ok(own),
        }
    }
    Err("no source of 'hostname_sources' has a name".to_owned())
}

fn host_id(host: &Host) -> Result<AttributeValue, String> {
    let id = host.read("etc/machine-id");
    let id = id.or_else(|_| host.read("var/lib/dbus/machine-id"))?;
    match id.trim() {
        "" => Err("the file is empty".to_owned()),
        id => Ok(text(id)),
    }
}

/// `NAME VERSION (HOST) (KERNEL …)`: as short as the files allow.
fn description(host: &Host) -> Result<AttributeValue, String> {
    let pretty = host.release("PRETTY_NAME")?;
    let kernel = [
        host.kernel("ostype")?,
        host.kernel("hostname")?,
        host.kernel("osrelease")?,
    ];
    let (version, arch) = (host.kernel("version")?, std::env::consts::ARCH);
    Ok(text(format!(
        "{pretty} ({} {version} {arch})",
        kernel.join(" ")
    )))
}

/// Addresses that are no loopback's: those of IPv4 from the routing table of local addresses.
fn host_ip(host: &Host) -> Result<AttributeValue, String> {
    let mut all: Vec<String> = Vec::new();
    let trie = host.read("proc/net/fib_trie")?;
    let mut last = None;
    for line in trie.lines().map(str::trim) {
        if let Some(address) = line.strip_prefix("|-- ") {
            last = address.parse::<Ipv4Addr>().ok();
        } else if line.starts_with("/32 host LOCAL")
            && let Some(address) = last.filter(|address| !address.is_loopback())
        {
            all.push(address.to_string());
        }
    }
    // A host without IPv6 has no such file.
    for line in host.read("proc/net/if_inet6").unwrap_or_default().lines() {
        let digits = line.split_whitespace().next().unwrap_or_default();
        if let Ok(bits) = u128::from_str_radix(digits, 16) {
            let address = Ipv6Addr::from_bits(bits);
            if !address.is_loopback() {
                all.push(address.to_string());
            }
        }
    }
    all.sort();
    all.dedup();
    Ok(list(all))
}

fn host_mac(host: &Host) -> Result<AttributeValue, String> {
    let mut all = Vec::new();
    for interface in host.interfaces()? {
        let address = host.read(&format!("sys/class/net/{interface}/address"))?;
        let address = address.trim();
        if !address.is_empty() {
            all.push(address.replace(':', "-").to_ascii_uppercase());
        }
    }
    Ok(list(all))
}

fn cache_size(host: &Host) -> Result<AttributeValue, String> {
    let size = host.cpu("cache size")?;
    let digits = size.split_whitespace().next().unwrap_or_default();
    let size = digits.parse().map_err(|_| format!("'{size}' is no size"))?;
    Ok(AttributeValue::Int(size))
}

impl Host {
    fn read(&self, path: &str) -> Result<String, String> {
        let bytes = fs::read(self.root.join(path)).map_err(|error| format!("/{path}: {error}"))?;
        let bytes = &bytes[..bytes.len().min(FILE_BYTES_MAX)];
        Ok(String::from_utf8_lossy(bytes).into_owned())
    }

    fn kernel(&self, name: &str) -> Result<String, String> {
        let text = self.read(&format!("proc/sys/kernel/{name}"))?;
        match text.trim() {
            "" => Err(format!("/proc/sys/kernel/{name} is empty")),
            text => Ok(text.to_owned()),
        }
    }

    /// The name with dots that `/etc/hosts` has first for a host.
    fn full_name(&self, host: &str) -> Option<String> {
        let text = self.read("etc/hosts").ok()?;
        let mut names = text.lines().filter_map(|line| {
            let line = line.split('#').next().unwrap_or_default();
            let names: Vec<&str> = line.split_whitespace().skip(1).collect();
            let first = names.first().filter(|_| names.contains(&host))?;
            first.contains('.').then(|| (*first).to_owned())
        });
        names.next()
    }

    /// A variable of `/etc/os-release`.
    fn release(&self, name: &str) -> Result<String, String> {
        let text = self.read("etc/os-release");
        let text = text.or_else(|_| self.read("usr/lib/os-release"))?;
        let mut values = text
            .lines()
            .filter_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        let value = values
            .next()
            .map(|value| value.trim_matches(['"', '\'']).to_owned());
        value.ok_or_else(|| format!("/etc/os-release has no {name}"))
    }

    /// What is told of the first processor.
    fn cpu(&self, name: &str) -> Result<String, String> {
        let text = self.read("proc/cpuinfo")?;
        let mut values = text.lines().filter_map(|line| {
            let (key, value) = line.split_once(':')?;
            (key.trim() == name).then(|| value.trim().to_owned())
        });
        values
            .next()
            .ok_or_else(|| format!("/proc/cpuinfo has no '{name}'"))
    }

    fn interfaces(&self) -> Result<Vec<String>, String> {
        let text = self.read("proc/net/dev")?;
        let names = text
            .lines()
            .skip(2)
            .filter_map(|line| Some(line.split_once(':')?.0.trim().to_owned()));
        let mut names: Vec<String> = names.filter(|name| name != "lo").collect();
        names.sort();
        Ok(names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with files, removed at the end.
    struct Folder(PathBuf);

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn folder(name: &str, files: &[(&str, &str)]) -> (Folder, Host) {
        let root = std::env::temp_dir().join(format!("spangate-{name}-{}", std::process::id()));
        for (path, text) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        (Folder(root.clone()), Host { root })
    }

    fn wanted(names: &[&str]) -> System {
        System {
            attributes: names.iter().map(|name| (*name).to_owned()).collect(),
            name_sources: vec!["dns".to_owned(), "os".to_owned()],
        }
    }

    #[test]
    fn what_files_tell() {
        let (_folder, host) = folder(
            "system",
            &[
                ("proc/sys/kernel/hostname", "cart-7\n"),
                ("etc/machine-id", "0123abcd\n"),
                ("etc/os-release", "NAME=\"Debian\"\nVERSION_ID=12\n"),
                (
                    "proc/cpuinfo",
                    "processor\t: 0\nvendor_id\t: Acme\nmodel\t\t: 5\nmodel name\t: A 5\ncache size\t: 512 KB\n\nprocessor\t: 1\n",
                ),
                ("proc/net/dev", "h\nh\n    lo: 0\n  eth0: 1\n"),
                ("sys/class/net/eth0/address", "0a:00:00:00:00:0b\n"),
                (
                    "proc/net/fib_trie",
                    "Main:\n  +-- 10.0.0.0/24\n     |-- 10.0.0.2\n        /32 host LOCAL\n     |-- 127.0.0.1\n        /32 host LOCAL\n     |-- 10.0.0.0\n        /24 link UNICAST\n",
                ),
            ],
        );
        let others = ATTRIBUTES.iter().map(|(name, _)| *name);
        let all: Vec<&str> = others.chain(["host.name"]).collect();
        let (found, missing) = detect(&wanted(&all), &host).unwrap();
        let get = |name: &str| {
            found
                .iter()
                .find(|(known, _)| known == name)
                .map(|(_, value)| value.clone())
        };
        assert_eq!(get("host.name"), Some(text("cart-7")));
        assert_eq!(get("host.id"), Some(text("0123abcd")));
        assert_eq!(get("os.name"), Some(text("Debian")));
        assert_eq!(get("os.version"), Some(text("12")));
        assert_eq!(get("host.cpu.vendor.id"), Some(text("Acme")));
        assert_eq!(get("host.cpu.model.id"), Some(text("5")));
        assert_eq!(
            get("host.cpu.cache.l2.size"),
            Some(AttributeValue::Int(512))
        );
        assert_eq!(get("host.interface"), Some(list(vec!["eth0".to_owned()])));
        assert_eq!(
            get("host.mac"),
            Some(list(vec!["0A-00-00-00-00-0B".to_owned()]))
        );
        assert_eq!(get("host.ip"), Some(list(vec!["10.0.0.2".to_owned()])));
        assert_eq!(get("os.type"), Some(text(std::env::consts::OS)));
        let missing = missing.join("; ");
        for name in [
            "os.build.id",
            "os.description",
            "host.cpu.family",
            "host.cpu.stepping",
        ] {
            assert!(missing.contains(name), "{missing}");
        }
    }

    #[test]
    fn a_name_is_the_full_one_where_there_is_one() {
        let hosts = "127.0.0.1 localhost\n# 10.0.0.2 a.b cart\n10.0.0.2 cart.example.com cart\n";
        let (_folder, host) = folder(
            "hosts",
            &[("proc/sys/kernel/hostname", "cart"), ("etc/hosts", hosts)],
        );
        let name = |sources: &[&str]| {
            let sources: Vec<String> = sources.iter().map(|one| (*one).to_owned()).collect();
            host_name(&sources, &host)
        };
        assert_eq!(name(&["dns", "os"]).as_deref(), Ok("cart.example.com"));
        assert_eq!(name(&["os", "dns"]).as_deref(), Ok("cart"));
        assert!(name(&[]).is_err());
        assert_eq!(host.full_name("auth"), None);
    }

    #[test]
    fn only_what_is_wanted_and_nothing_without_a_name() {
        let (_folder, host) = folder("named", &[("proc/sys/kernel/hostname", "a")]);
        let (found, missing) = detect(&wanted(&["host.name"]), &host).unwrap();
        assert_eq!(found, [("host.name".to_owned(), text("a"))]);
        assert!(missing.is_empty());
        let (_folder, host) = folder("unnamed", &[("etc/machine-id", "a")]);
        assert!(
            detect(&wanted(&["host.id"]), &host)
                .unwrap_err()
                .contains("hostname")
        );
    }
}
