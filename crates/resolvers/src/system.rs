//! The names that the process itself needs: of exporters' endpoints, of responders, of servers'
//! agents. They are looked up as the C library does with `hosts: files dns` in nsswitch.conf(5),
//! but without files: `/etc/hosts` and `/etc/resolv.conf` are read once, before a `chroot` puts
//! them, and the libraries of getaddrinfo(3), out of reach.
//!
//! A lookup takes what answers first: the host is an address; it is `localhost`; `/etc/hosts` has
//! it; nameservers know it, with the domains of the search list ([`search`]). Nameservers are asked
//! for both address families at once, on one [`Runner`]'s thread, which starts with the first
//! question. It keeps answers for [`HOLD`], at most [`crate::ASKED_NAMES_MAX`].

mod question;
mod search;

use std::error::Error;
use std::fmt;
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use crate::files::{Hosts, ResolvConf, parse_resolv_conf};
use crate::name::{Name, NameError};
use crate::resolver::Status;
use crate::run::{Handle, Runner, Setup};
use crate::section::{Hold, Nameserver, Section, Transport};
use question::both_families;
use search::Search;

/// The most bytes of a file that are read; the rest is ignored.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The most nameservers that are asked, as in the C library.
const NAMESERVERS_MAX: usize = 3;

/// For how long an answer serves further lookups, a negative one too.
const HOLD: Duration = Duration::from_secs(5);

/// The time limit of a lookup, with all domains of the search list.
const LOOKUP_MAX: Duration = Duration::from_secs(20);

/// The largest datagram that nameservers may send, in bytes; it fits into a packet of any path.
const PAYLOAD_BYTES: u16 = 1232;

/// Any port: a route is looked for, and nothing is sent.
const ROUTE_PORT: u16 = 9;

/// The files of the system's names.
#[derive(Clone, Debug)]
pub struct Files {
    /// hosts(5).
    pub hosts: PathBuf,
    /// resolv.conf(5).
    pub resolv_conf: PathBuf,
    /// The host's own name, whose domain is the search list of a `resolv.conf` without one.
    pub hostname: PathBuf,
}

impl Default for Files {
    fn default() -> Files {
        Files {
            hosts: "/etc/hosts".into(),
            resolv_conf: "/etc/resolv.conf".into(),
            hostname: "/proc/sys/kernel/hostname".into(),
        }
    }
}

/// Why a lookup has no address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LookupError {
    /// The host is no name.
    NotAName(NameError),
    /// The name does not exist.
    NotFound,
    /// The name exists and has no addresses.
    NoAddress,
    /// No nameserver answered, or not within 20 seconds.
    Timeout,
    /// The nameservers refused to answer.
    Refused,
    /// The nameservers failed, or too many names are being looked up.
    Failed,
    /// The thread that asks nameservers cannot be started.
    NoThread,
}

impl fmt::Display for LookupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LookupError::NotAName(error) => return write!(f, "no name: {error}"),
            LookupError::NotFound => "the name does not exist",
            LookupError::NoAddress => "the name has no addresses",
            LookupError::Timeout => "no nameserver answered in time",
            LookupError::Refused => "the nameservers refused to answer",
            LookupError::Failed => "the nameservers failed",
            LookupError::NoThread => "the thread of the resolver cannot be started",
        })
    }
}

impl Error for LookupError {}

impl From<Status> for LookupError {
    fn from(status: Status) -> LookupError {
        match status {
            Status::Nx => LookupError::NotFound,
            Status::NoData => LookupError::NoAddress,
            Status::Timeout => LookupError::Timeout,
            Status::Refused => LookupError::Refused,
            Status::Invalid | Status::Other => LookupError::Failed,
        }
    }
}

/// Looks up names of the process.
pub struct System {
    hosts: Hosts,
    search: Search,
    section: Section,
    runner: Mutex<Option<Runner>>,
}

impl fmt::Debug for System {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("System")
            .field("search", &self.search)
            .field("section", &self.section)
            .finish_non_exhaustive()
    }
}

static PROCESS: OnceLock<System> = OnceLock::new();

/// The resolver of this process. The first call reads the system's files: a process calls it before
/// it gives up access to them.
pub fn of_process() -> &'static System {
    PROCESS.get_or_init(|| System::open(&Files::default()))
}

impl System {
    /// Reads the files. One that cannot be read is as an empty one; without nameservers, the one of
    /// this host is asked (resolv.conf(5)).
    #[must_use]
    pub fn open(files: &Files) -> System {
        let hosts = Hosts::parse(&read(&files.hosts));
        let conf = parse_resolv_conf(&read(&files.resolv_conf));
        let hostname = read(&files.hostname);
        System::new(hosts, conf, hostname.trim())
    }

    fn new(hosts: Hosts, conf: ResolvConf, hostname: &str) -> System {
        let section = section(&conf);
        System {
            hosts,
            search: Search::new(conf, hostname),
            section,
            runner: Mutex::new(None),
        }
    }

    /// The addresses of a host, each with the port: first those of the family that this host
    /// prefers, which is IPv6 if it has a route to one of them (RFC 6724 §6, rule 1). Callers try
    /// one after the other. The runtime of the caller needs time.
    ///
    /// # Errors
    /// There are no addresses.
    pub async fn lookup(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, LookupError> {
        if let Some(address) = literal(host, port) {
            return Ok(vec![address]);
        }
        let addresses = self.addresses(host).await?;
        let with_port = |address| SocketAddr::new(address, port);
        Ok(addresses.into_iter().map(with_port).collect())
    }

    /// The same for a thread that may wait. It panics within an asynchronous task.
    ///
    /// # Errors
    /// There are no addresses.
    pub fn lookup_blocking(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, LookupError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .map_err(|_| LookupError::NoThread)?;
        runtime.block_on(self.lookup(host, port))
    }

    async fn addresses(&self, host: &str) -> Result<Vec<IpAddr>, LookupError> {
        let name = Name::parse(host).map_err(LookupError::NotAName)?;
        let in_hosts = self.hosts.addresses(&name);
        if is_localhost(&name) {
            let known = in_hosts.iter().copied();
            let mut known: Vec<IpAddr> = known.filter(IpAddr::is_loopback).collect();
            if known.is_empty() {
                known = vec![Ipv6Addr::LOCALHOST.into(), Ipv4Addr::LOCALHOST.into()];
            }
            return Ok(in_order(known));
        }
        if !in_hosts.is_empty() {
            return Ok(in_order(in_hosts.to_vec()));
        }
        if is_numeric(&name) {
            return Err(LookupError::NotFound);
        }
        let candidates = self.search.candidates(&name, host.ends_with('.'));
        let asked = tokio::time::timeout(LOOKUP_MAX, self.ask(candidates)).await;
        let mut addresses = asked.unwrap_or(Err(LookupError::Timeout))?;
        // The resolver has sorted them. In another order each time, all of them are used.
        let order = RandomState::new();
        addresses.sort_by_cached_key(|address| order.hash_one(address));
        Ok(in_order(addresses))
    }

    /// The addresses of the first name that has some. A nameserver that does not answer, or
    /// refuses, does so for the other names too.
    async fn ask(&self, candidates: Vec<Name>) -> Result<Vec<IpAddr>, LookupError> {
        let handle = self.handle().map_err(|_| LookupError::NoThread)?;
        let mut worst = None;
        for name in candidates {
            let status = match both_families(&handle, &name).await {
                Ok(addresses) => return Ok(addresses),
                Err(status) => status,
            };
            match status {
                Status::Nx | Status::NoData | Status::Other => {
                    let severity = worst.map_or(0, question::severity);
                    if question::severity(status) > severity {
                        worst = Some(status);
                    }
                }
                Status::Timeout | Status::Refused | Status::Invalid => return Err(status.into()),
            }
        }
        Err(worst.unwrap_or(Status::Nx).into())
    }

    /// A handle of the thread, which starts if there is none.
    fn handle(&self) -> io::Result<Handle> {
        let mut runner = self.runner.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(runner) = runner.as_ref() {
            return Ok(runner.handle());
        }
        let random = RandomState::new();
        let mut count = 0_u64;
        let started = Runner::start(Setup {
            sections: vec![self.section.clone()],
            // A keyed hash of a counter cannot be predicted without the key.
            random: Box::new(move || {
                count += 1;
                random.hash_one(count)
            }),
            on_event: Box::new(|_| {}),
        })?;
        Ok(runner.insert(started).handle())
    }
}

/// Reads a file, or nothing.
fn read(path: &Path) -> String {
    let mut bytes = Vec::new();
    let file = File::open(path);
    let read = file.and_then(|file| file.take(FILE_BYTES_MAX).read_to_end(&mut bytes));
    // What was read before an error still counts.
    drop(read);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The section for the nameservers of a `resolv.conf`.
fn section(conf: &ResolvConf) -> Section {
    let mut nameservers = conf.nameservers.clone();
    nameservers.truncate(NAMESERVERS_MAX);
    if nameservers.is_empty() {
        nameservers.push(Nameserver {
            name: "127.0.0.1".to_owned(),
            address: (Ipv4Addr::LOCALHOST, 53).into(),
            transport: Transport::Udp,
        });
    }
    let hold = Hold {
        valid_ms: HOLD.as_millis() as u64,
        nx_ms: 0,
        refused_ms: 0,
        timeout_ms: 0,
        other_ms: 0,
        obsolete_ms: 0,
    };
    Section {
        nameservers,
        hold,
        resolve_retries: conf.attempts,
        timeout_retry_ms: u64::from(conf.timeout_seconds) * 1000,
        accepted_payload_bytes: PAYLOAD_BYTES,
        ..Section::new("system")
    }
}

/// The address that a host already is, without or with brackets; a link-local one may have a
/// numeric scope.
fn literal(host: &str, port: u16) -> Option<SocketAddr> {
    let inside = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    let host = inside.unwrap_or(host);
    if let Some((address, scope)) = host.split_once('%') {
        let address = address.parse().ok()?;
        return Some(SocketAddrV6::new(address, port, 0, scope.parse().ok()?).into());
    }
    Some(SocketAddr::new(host.parse().ok()?, port))
}

/// `localhost` and the names below it (RFC 6761 §6.3).
fn is_localhost(name: &Name) -> bool {
    let last = name.as_str().rsplit('.').next();
    last == Some("localhost")
}

/// Whether the last label is a number: the top-level domains of DNS have letters (RFC 3696 §2), so
/// this is a mistyped address.
fn is_numeric(name: &Name) -> bool {
    let last = name.as_str().rsplit('.').next().unwrap_or_default();
    last.bytes().all(|byte| byte.is_ascii_digit())
}

/// IPv6 before IPv4, unless there is a route to IPv4 alone.
fn in_order(addresses: Vec<IpAddr>) -> Vec<IpAddr> {
    let (mut first, mut second): (Vec<_>, Vec<_>) =
        addresses.into_iter().partition(IpAddr::is_ipv6);
    if let (Some(v6), Some(v4)) = (first.first(), second.first())
        && !has_route(*v6)
        && has_route(*v4)
    {
        std::mem::swap(&mut first, &mut second);
    }
    first.append(&mut second);
    first
}

/// Whether this host can send to an address: it has a route to it, and an own address of the same
/// family.
fn has_route(to: IpAddr) -> bool {
    let any = match to {
        IpAddr::V4(_) => IpAddr::from(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(_) => IpAddr::from(Ipv6Addr::UNSPECIFIED),
    };
    let socket = UdpSocket::bind((any, 0));
    socket.is_ok_and(|socket| socket.connect((to, ROUTE_PORT)).is_ok())
}

#[cfg(test)]
mod tests;
