//! QUIC (RFC 9000, 9001, 9002) without I/O: datagrams go in and come out, and connections have
//! streams that are read and written in turns. The protocol is quinn-proto's; only this crate and
//! `tls` know that.
//!
//! An [`Endpoint`] finds the connection of a datagram, accepts new ones of clients, and begins those
//! to servers. A [`Connection`] tells
//! what came on its streams ([`Connection::receive`]) and takes what is to be sent
//! ([`Connection::write`]); [`Connection::transmit`] makes the datagrams. There is no clock: every
//! call has the time, in monotonic nanoseconds.
//!
//! Memory is bounded on both sides. A peer may send [`Limits`] ahead of what
//! [`Connection::consumed`] was told. What is written and the peer does not take waits here; the
//! writer learns by [`Received::Written`] how much has gone and bounds the rest.
#![forbid(unsafe_code)]

mod connection;
mod endpoint;
mod ids;
mod limits;
mod parameters;
mod paths;
mod records;
mod report;
mod streams;
#[cfg(test)]
mod tests;
mod tokens;

pub use connection::{Connection, Lost, News};
pub use endpoint::{
    Accepted, Arrival, Datagram, Endpoint, Handle, Incoming, NotBegun, Packet, Reply, Run, Setup,
};
pub use ids::{ID_BYTES, Keys, Owner, owner_of};
pub use limits::{Client, Congestion, Limits, Server, Tokens};
pub use parameters::Parameters;
pub use records::Records;
pub use report::{Blocked, Report, Stage, StreamReport};
pub use streams::{Received, StreamId};

use std::time::{Duration, Instant};

/// Turns the caller's time into the library's.
#[derive(Clone, Copy, Debug)]
struct Clock {
    /// The moment that is 0 of the caller's.
    zero: Instant,
}

impl Clock {
    #[expect(
        clippy::disallowed_methods,
        reason = "the library's type of time cannot be made otherwise; only differences matter"
    )]
    fn new() -> Clock {
        Clock {
            zero: Instant::now(),
        }
    }

    fn instant(self, now_ns: u64) -> Instant {
        self.zero + Duration::from_nanos(now_ns)
    }

    fn ns(self, instant: Instant) -> u64 {
        let since = instant.saturating_duration_since(self.zero);
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    }
}
