//! Seeds that found something, each in its configuration, with what it was; they run first.
//!
//! A seed means what the generator makes of it: when that changes, a bug that matters stays found
//! by a script in [`super::rules`].

/// A configuration's name, a seed, and what it found.
pub const KEPT: &[(&str, u64, &str)] = &[
    (
        "deny",
        47,
        "an idle client that sent its end was closed over its backlog",
    ),
    (
        "two servers",
        90,
        "an upload that its server did not take grew the backlog with the body",
    ),
    (
        "deny",
        74,
        "a half-closed client lost the pipelined requests behind one that was answered at once",
    ),
    (
        "frontend maxconn",
        1520,
        "the full listener of one worker stayed closed when another one's client left",
    ),
    (
        "always",
        5,
        "draining hurried clients that had not asked yet",
    ),
    (
        "pauses and rewrites",
        173175,
        "a response that a rule holds was read on when its client had taken an interim one",
    ),
    (
        "pauses and rewrites",
        1_418_375,
        "a server that fell silent while a rule held its response had no deadline any more",
    ),
    (
        "frontend maxconn",
        509_465,
        "of two places that became free in one round, one worker heard, and the other's listener stayed closed",
    ),
    (
        "logasap",
        401_135,
        "a pipelined request timed out by the deadline of the response before it, which the client took slowly",
    ),
    (
        "aggressive",
        207_523,
        "an idle connection whose close panicked stayed in the pool without a deadline",
    ),
    (
        "h2 servers, safe",
        8951,
        "a connection of HTTP/2 without streams whose close panicked stayed open, and nobody knew of it",
    ),
    (
        "tls, buffer",
        23_260,
        "of bytes behind a handshake that came in two parts, whole records waited where a write took them for read, and an answer was lost",
    ),
    (
        "tls",
        963_968,
        "both sides of a tunnel had ended, and the client did not take the last bytes: no deadline ran",
    ),
    (
        "h3 clients",
        405,
        "a panic lost the endpoint of QUIC, and its listener that was closing stayed open",
    ),
    (
        "h3 servers",
        101,
        "a panic lost the endpoint of QUIC, and the socket of a connection that was ending stayed open",
    ),
    (
        "h3 servers, h2 clients",
        147,
        "a connection that waited for its client kept the name of a lost endpoint's connection",
    ),
    (
        "reloaded h3 clients",
        1,
        "a reload of a worker that drains had its listener of QUIC stay open",
    ),
    (
        "h3 servers, h2 clients",
        5_563,
        "a connection of QUIC that a panic was at work on never sent again",
    ),
];
