//! Compression of responses (manual §4.2 compression).

use syntax::octets::Octets;

/// How a payload is coded (RFC 9110 §8.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    /// As it is.
    Identity,
    /// `gzip` (RFC 1952).
    Gzip,
    /// `deflate` as it is specified: in a zlib container (RFC 1950).
    Deflate,
    /// `deflate` without a container (RFC 1951), as some clients want it.
    RawDeflate,
}

impl Coding {
    /// All of them.
    pub const ALL: [Coding; 4] = [
        Coding::Identity,
        Coding::Gzip,
        Coding::Deflate,
        Coding::RawDeflate,
    ];

    /// What the configuration calls it.
    #[must_use]
    pub fn keyword(self) -> &'static str {
        match self {
            Coding::Identity => "identity",
            Coding::Gzip => "gzip",
            Coding::Deflate => "deflate",
            Coding::RawDeflate => "raw-deflate",
        }
    }

    /// What messages call it (RFC 9110 §8.4.1).
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Coding::RawDeflate => "deflate",
            other => other.keyword(),
        }
    }
}

/// `compression`: which responses are compressed, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compression {
    /// Those that may be used; among several that a client likes equally, the first one.
    pub codings: Vec<Coding>,
    /// What `Content-Type` begins with; empty for any.
    pub types: Vec<Octets>,
    /// Responses with a shorter body, in bytes, are left as they are.
    pub min_bytes: u64,
    /// Servers are not told what the client accepts.
    pub offload: bool,
}
