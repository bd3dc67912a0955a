//! The faults, one entry each: the misbehaving side, its behaviour, and the results that a client
//! may see.

use super::servers::Server;

/// The result of a request for a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Seen {
    /// A complete response with this status.
    Status(u16),
    /// A truncated response.
    Cut,
    /// The connection ended without a response.
    Nothing,
}

/// How clients send and read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clients {
    /// One request at a time, each on a separate connection.
    Usual,
    /// A byte of the request's head every 100 ms.
    SlowSenders,
    /// A little of the response every 100 ms.
    SlowReaders,
}

/// One fault.
pub struct Case {
    /// The name in the table.
    pub name: &'static str,
    pub server: Server,
    /// Words of the server line.
    pub options: &'static str,
    pub clients: Clients,
    /// The results that manual §4 and §8.5 promise.
    pub permitted: &'static [Seen],
}

/// All faults. The first has no fault and is the baseline.
pub const ALL: &[Case] = &[
    Case {
        name: "none",
        server: Server::Good,
        options: "",
        clients: Clients::Usual,
        permitted: &[Seen::Status(200)],
    },
    Case {
        name: "dead server",
        server: Server::Dead,
        options: "",
        clients: Clients::Usual,
        permitted: &[Seen::Status(503)],
    },
    Case {
        name: "silent server",
        server: Server::Silent,
        options: "",
        clients: Clients::Usual,
        permitted: &[Seen::Status(504)],
    },
    Case {
        name: "server hangs up",
        server: Server::HangsUp,
        options: "",
        clients: Clients::Usual,
        permitted: &[Seen::Status(502)],
    },
    Case {
        name: "reset in body",
        server: Server::ResetsInBody,
        options: "",
        clients: Clients::Usual,
        permitted: &[Seen::Cut],
    },
    Case {
        name: "stalled body",
        server: Server::StallsInBody,
        options: "",
        clients: Clients::Usual,
        permitted: &[Seen::Cut],
    },
    Case {
        name: "full queue",
        server: Server::Slow,
        options: "maxconn 4",
        clients: Clients::Usual,
        permitted: &[Seen::Status(200), Seen::Status(503)],
    },
    Case {
        name: "slow senders",
        server: Server::Good,
        options: "",
        clients: Clients::SlowSenders,
        permitted: &[Seen::Status(408)],
    },
    Case {
        name: "slow readers",
        server: Server::Large,
        options: "",
        clients: Clients::SlowReaders,
        // The client's own pace ends the request, not the proxy.
        permitted: &[Seen::Cut],
    },
];
