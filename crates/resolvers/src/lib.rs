//! The DNS side of `resolvers` sections (manual §5.3): names of servers and of `do-resolve` are
//! resolved again and again while the process runs.
//!
//! [`Resolver`] is the state of one section, without I/O, clock and random source: messages and
//! the time go in, messages to send and events come out. [`run`] owns all sections' resolvers on
//! one thread, with their sockets. [`assign`] decides which server takes which address or service.
//! [`system`] looks up the process's own names (exporters, responders) as the C library does, with
//! a section made of `/etc/resolv.conf`.
//!
//! What DNS servers send is bounded by the limits below. An answer counts only if its id, its
//! question and its source match a query that is under way; records of other names are ignored.
//!
//! ```text
//!            subscribe                       due
//!  (none) ──────────────► waiting ─────────────────────► running ──┐ all nameservers failed:
//!                            ▲  ▲                           │  ▲   │ the other address family
//!                            │  └── valid answer ───────────┤  └───┘ no answer: again, up to
//!                            └───── no tries left ──────────┘         `resolve_retries`
//! ```
#![forbid(unsafe_code)]

pub mod assign;
mod counters;
mod files;
mod message;
mod name;
mod records;
mod resolver;
#[cfg(feature = "run")]
pub mod run;

#[cfg(test)]
mod scripted;
mod section;
#[cfg(feature = "run")]
pub mod system;

pub use counters::Counters;
pub use files::{Hosts, LineFault, LineWarning, ResolvConf, parse_resolv_conf};
pub use name::{Name, NameError};
pub use records::{Records, Service};
pub use resolver::{
    Asked, Event, LookedUp, Outcome, Question, RequestId, Resolver, SendFailure, Status, TooMany,
    Transmit,
};
pub use section::{Families, Family, Hold, Nameserver, Section, Transport};

/// A source of random numbers that others cannot predict: ids of queries come from it.
pub type Random = Box<dyn FnMut() -> u64 + Send>;

/// The largest message (RFC 1035 §4.2.2: a length of 16 bits), in bytes.
pub const MESSAGE_BYTES_MAX: usize = 65_535;

/// The most records that the answer section of a message may have: more than 64 KiB hold of A
/// records with compressed names.
pub const ANSWER_RECORDS_MAX: usize = 4096;

/// The most records of the authority and the additional section together.
pub const OTHER_RECORDS_MAX: usize = 8192;

/// The longest chain of CNAME records that is followed, all in one message.
pub const CNAMES_MAX: usize = 16;

/// The most records that are kept of one name, with those that wait for `hold obsolete`.
pub const KEPT_RECORDS_MAX: usize = 2 * ANSWER_RECORDS_MAX;

/// How often a query whose UDP answer was truncated is sent over TCP, per attempt and nameserver.
pub const TRUNCATED_RETRIES_MAX: u32 = 1;

/// The most domains of a search list that are read; the C library had 6 before it had no limit.
pub const SEARCH_DOMAINS_MAX: usize = 32;

/// The most names that subscriptions of one section have.
pub const SUBSCRIBED_NAMES_MAX: usize = 16_384;

/// The most names of one section that `do-resolve` and lookups asked for, with those whose answers
/// are cached.
pub const ASKED_NAMES_MAX: usize = 16_384;
