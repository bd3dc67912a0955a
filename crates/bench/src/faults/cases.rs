//! The faults, one entry each: who misbehaves, how, and what a client may be told of it.

use super::servers::Server;

/// What a client saw of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Seen {
    /// A whole response with this status.
    Status(u16),
    /// A response that ended before its length.
    Cut,
    /// The connection ended without a response.
    Nothing,
}

/// How clients send and read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clients {
    /// A request at a time, each on a connection of its own.
    Usual,
    /// A byte of the request's head every 100 ms.
    SlowSenders,
    /// A little of the response every 100 ms.
    SlowReaders,
}

/// One fault.
pub struct Case {
    /// In the table.
    pub name: &'static str,
    pub server: Server,
    /// Words of the server line.
    pub options: &'static str,
    pub clients: Clients,
    /// What manual §4 and §8.5 promise for it.
    pub permitted: &'static [Seen],
}

/// All of them. The first is none, to compare with.
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
        // The client's own pace ends it, not the proxy.
        permitted: &[Seen::Cut],
    },
];
