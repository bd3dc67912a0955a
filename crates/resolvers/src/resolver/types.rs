//! What goes into a [`super::Resolver`] and comes out of it.

use std::error::Error;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use crate::records::Records;
use crate::section::{Family, Transport};

/// What a subscription asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// Addresses; those of the preferred family are asked for first.
    Address {
        /// `resolve-prefer`.
        prefer: Family,
    },
    /// Services: SRV records.
    Service,
}

/// A subscription or a question of a [`super::Resolver`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId(pub(super) u64);

/// There are too many names: [`crate::SUBSCRIBED_NAMES_MAX`] or [`crate::ASKED_NAMES_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooMany;

impl fmt::Display for TooMany {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("too many names are being resolved")
    }
}

impl Error for TooMany {}

/// The reply to [`super::Resolver::ask`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// A cached address.
    Now(IpAddr),
    /// An event will give the outcome, once.
    Later(RequestId),
}

/// The reply to [`super::Resolver::look_up`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LookedUp {
    /// The cached outcome.
    Now(Result<Arc<Records>, Status>),
    /// An event will give the outcome, once.
    Later(RequestId),
}

/// The kind of the last error of a resolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The name does not exist.
    Nx,
    /// The name exists, without records of the type asked for.
    NoData,
    /// A nameserver refused to answer.
    Refused,
    /// No nameserver answered.
    Timeout,
    /// A nameserver answered with a malformed message.
    Invalid,
    /// Any other error.
    Other,
}

impl Status {
    /// Whether a nameserver has answered that there are no such records (RFC 2308 §2).
    #[must_use]
    pub fn is_negative(self) -> bool {
        match self {
            Status::Nx | Status::NoData => true,
            Status::Refused | Status::Timeout | Status::Invalid | Status::Other => false,
        }
    }
}

/// A resolution has completed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Whose.
    pub request: RequestId,
    /// How.
    pub outcome: Outcome,
}

/// How a resolution ended for one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// There was a valid answer.
    Found {
        /// All records now.
        records: Arc<Records>,
        /// The index of the nameserver whose answer it is; none if it comes from the cache.
        nameserver: Option<usize>,
        /// Whether the records differ from those of the last such event.
        changed: bool,
    },
    /// There was an error, and the hold period of its kind is not over: the last valid answer
    /// stays in use.
    Held(Status),
    /// There was an error, and the last valid answer is older than the hold period: nothing may
    /// be used any longer. It is reported after each further failure too.
    Lost(Status),
    /// The address for [`super::Resolver::ask`]. The request has ended.
    Address(IpAddr),
    /// There is no address for [`super::Resolver::ask`]. The request has ended.
    NoAddress,
    /// The records for [`super::Resolver::look_up`], or why there are none. The request has ended.
    LookedUp(Result<Arc<Records>, Status>),
    /// There are too many names ([`TooMany`]), so that the name is not resolved. Only
    /// [`crate::run`] reports it, which cannot answer a subscription at once.
    Rejected,
}

impl Outcome {
    /// The address of a question; none if there is none, or it was no question.
    #[must_use]
    pub fn into_address(self) -> Option<IpAddr> {
        match self {
            Outcome::Address(address) => Some(address),
            Outcome::NoAddress
            | Outcome::LookedUp(_)
            | Outcome::Found { .. }
            | Outcome::Held(_)
            | Outcome::Lost(_)
            | Outcome::Rejected => None,
        }
    }

    /// The records of a lookup, or why there are none.
    ///
    /// # Errors
    /// The kind of the last error; [`Status::Other`] if it was no lookup.
    pub fn into_lookup(self) -> Result<Arc<Records>, Status> {
        match self {
            Outcome::LookedUp(found) => found,
            Outcome::Address(_)
            | Outcome::NoAddress
            | Outcome::Found { .. }
            | Outcome::Held(_)
            | Outcome::Lost(_)
            | Outcome::Rejected => Err(Status::Other),
        }
    }
}

/// A message to send.
#[derive(Clone, PartialEq, Eq)]
pub struct Transmit {
    /// The index of the nameserver.
    pub nameserver: usize,
    /// How to send it: not always the nameserver's own transport.
    pub transport: Transport,
    /// The id of the query.
    pub id: u16,
    /// The message, without a length before it.
    pub bytes: Vec<u8>,
}

impl fmt::Debug for Transmit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transmit")
            .field("nameserver", &self.nameserver)
            .field("transport", &self.transport)
            .field("id", &self.id)
            .field("bytes", &self.bytes.len())
            .finish()
    }
}

/// A message that could not be sent, or whose connection was lost before its answer came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendFailure {
    /// The index of the nameserver.
    pub nameserver: usize,
    /// How it was to be sent.
    pub transport: Transport,
    /// The id of the query.
    pub id: u16,
}
