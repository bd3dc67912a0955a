//! The settings of a `resolvers` section (manual §5.3.2).

use std::net::{IpAddr, SocketAddr};

/// A `resolvers` section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// Its name.
    pub name: String,
    /// Its nameservers, in order. Each query goes to all of them.
    pub nameservers: Vec<Nameserver>,
    /// `hold`.
    pub hold: Hold,
    /// `resolve_retries`: how many times a query is sent before its resolution fails; 0 is as 1.
    pub resolve_retries: u32,
    /// `timeout resolve`: the time between two resolutions of a name.
    pub timeout_resolve_ms: u64,
    /// `timeout retry`: how long answers to a query are awaited.
    pub timeout_retry_ms: u64,
    /// `accepted_payload_size`: the largest message accepted, which is announced (RFC 6891 §6.2.3).
    pub accepted_payload_bytes: u16,
    /// The address families that are asked for.
    pub families: Families,
}

impl Section {
    /// A section with the defaults of the manual.
    #[must_use]
    pub fn new(name: &str) -> Section {
        Section {
            name: name.to_owned(),
            nameservers: Vec::new(),
            hold: Hold::default(),
            resolve_retries: 3,
            timeout_resolve_ms: 1000,
            timeout_retry_ms: 1000,
            accepted_payload_bytes: 512,
            families: Families::Both,
        }
    }
}

/// A nameserver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nameserver {
    /// Its name.
    pub name: String,
    /// Its address.
    pub address: SocketAddr,
    /// How it is asked.
    pub transport: Transport,
}

/// What carries a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transport {
    /// Datagrams.
    Udp,
    /// A connection, with lengths before messages (RFC 1035 §4.2.2).
    Tcp,
}

/// The `hold` periods. All but `valid` and `obsolete`: for how long after the last valid answer
/// an error of that kind is ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hold {
    /// For how long an answer is used for `do-resolve` without another query.
    pub valid_ms: u64,
    /// The name does not exist.
    pub nx_ms: u64,
    /// The nameservers refused to answer.
    pub refused_ms: u64,
    /// No nameserver answered.
    pub timeout_ms: u64,
    /// Other errors.
    pub other_ms: u64,
    /// For how long a record stays that valid answers no longer have.
    pub obsolete_ms: u64,
}

impl Default for Hold {
    fn default() -> Hold {
        Hold {
            valid_ms: 10_000,
            nx_ms: 30_000,
            refused_ms: 30_000,
            timeout_ms: 30_000,
            other_ms: 30_000,
            obsolete_ms: 0,
        }
    }
}

/// An address family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// The family of an address.
    #[must_use]
    pub fn of(address: IpAddr) -> Family {
        match address {
            IpAddr::V4(_) => Family::V4,
            IpAddr::V6(_) => Family::V6,
        }
    }
}

/// The address families that are asked for and accepted (`dns-accept-family`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Families {
    /// IPv4 alone.
    V4,
    /// IPv6 alone.
    V6,
    /// Both.
    Both,
}

impl Families {
    /// Whether a family is accepted.
    #[must_use]
    pub fn accept(self, family: Family) -> bool {
        match self {
            Families::V4 => family == Family::V4,
            Families::V6 => family == Family::V6,
            Families::Both => true,
        }
    }
}
