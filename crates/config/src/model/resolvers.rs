//! Sections `resolvers` (manual §5.3.2) and the options of servers whose names are resolved while
//! the process runs (manual §5.2).

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// A section `resolvers`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolvers {
    /// Its name.
    pub name: String,
    /// The name servers, in the order in which they were given.
    pub nameservers: Vec<Nameserver>,
    /// How long an earlier answer is kept, by the kind of the last one.
    pub hold: Hold,
    /// `resolve_retries`: the most queries for one resolution.
    pub retries: u32,
    /// `timeout resolve`: the interval of resolutions.
    pub timeout_resolve: Duration,
    /// `timeout retry`: the time between two queries of a resolution without an answer.
    pub timeout_retry: Duration,
    /// `accepted_payload_size`: the largest answer over UDP, bytes.
    pub payload_bytes_max: u16,
    /// `file:line`; none where the section was made from the system's configuration.
    pub origin: Option<String>,
}

/// A name server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nameserver {
    /// Its name.
    pub name: String,
    /// Its address.
    pub address: SocketAddr,
    /// It is asked over TCP.
    pub is_stream: bool,
}

/// `hold`: for how long an earlier valid answer counts after a bad one; `valid` and `obsolete` have
/// meanings of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hold {
    /// After the answer that the name does not exist.
    pub nx: Duration,
    /// After a refusal.
    pub refused: Duration,
    /// Without an answer.
    pub timeout: Duration,
    /// After any other bad answer.
    pub other: Duration,
    /// For how long `do-resolve` uses an answer again.
    pub valid: Duration,
    /// For how long a record is kept that later answers lack.
    pub obsolete: Duration,
}

/// An address family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// The address families that are asked for and accepted (`dns-accept-family`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Families {
    /// IPv4.
    pub v4: bool,
    /// IPv6.
    pub v6: bool,
}

impl Families {
    /// None yet.
    pub(crate) const NONE: Families = Families {
        v4: false,
        v6: false,
    };
}

impl Default for Families {
    fn default() -> Self {
        Families { v4: true, v6: true }
    }
}

/// `do-resolve`: sets a variable to the address of a name (manual §4.4).
#[derive(Debug)]
pub struct Resolve {
    /// The variable.
    pub var: sample::VarRef,
    /// The index in [`super::Config::resolvers`].
    pub section: usize,
    /// The preferred family; none: IPv6.
    pub prefer: Option<Family>,
    /// The name.
    pub expr: sample::Expr,
}

/// How a server takes its address from the answers for its name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResolveOptions {
    /// `resolvers`: the name of the section; none: names are resolved once, at the start.
    pub section: Option<String>,
    /// `resolve-prefer`; none: IPv6.
    pub prefer: Option<Family>,
    /// `resolve-net`: preferred networks, each with the length of its prefix.
    pub networks: Vec<(IpAddr, u8)>,
    /// `resolve-opts allow-dup-ip`: several servers may have one address.
    pub allows_duplicates: bool,
    /// `resolve-opts ignore-weight`: weights of SRV records have no effect.
    pub ignores_weight: bool,
}

impl Default for Hold {
    fn default() -> Self {
        Hold {
            nx: Duration::from_secs(30),
            refused: Duration::from_secs(30),
            timeout: Duration::from_secs(30),
            other: Duration::from_secs(30),
            valid: Duration::from_secs(10),
            obsolete: Duration::ZERO,
        }
    }
}

impl Resolvers {
    /// A section without name servers, with HAProxy's defaults.
    #[must_use]
    pub fn new(name: &str, origin: Option<String>) -> Resolvers {
        Resolvers {
            name: name.to_owned(),
            nameservers: Vec::new(),
            hold: Hold::default(),
            retries: 3,
            timeout_resolve: Duration::from_secs(1),
            timeout_retry: Duration::from_secs(1),
            payload_bytes_max: 512,
            origin,
        }
    }
}
