//! Compression of messages (manual §4.2 compression).

use syntax::octets::Octets;

/// The coding of a payload (RFC 9110 §8.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    /// Not compressed.
    Identity,
    /// `gzip` (RFC 1952).
    Gzip,
    /// `deflate` as specified: in a zlib container (RFC 1950).
    Deflate,
    /// `deflate` without a container (RFC 1951), which some clients expect.
    RawDeflate,
}

impl Coding {
    /// All codings.
    pub const ALL: [Coding; 4] = [
        Coding::Identity,
        Coding::Gzip,
        Coding::Deflate,
        Coding::RawDeflate,
    ];

    /// Its keyword in the configuration.
    #[must_use]
    pub fn keyword(self) -> &'static str {
        match self {
            Coding::Identity => "identity",
            Coding::Gzip => "gzip",
            Coding::Deflate => "deflate",
            Coding::RawDeflate => "raw-deflate",
        }
    }

    /// Its name in messages (RFC 9110 §8.4.1).
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Coding::RawDeflate => "deflate",
            other => other.keyword(),
        }
    }
}

/// `compression`: the messages that are compressed, and the codings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compression {
    /// The codings of responses.
    pub codings: Vec<Coding>,
    /// The coding of requests; without it they are not compressed.
    pub request_coding: Option<Coding>,
    /// Which requests are compressed.
    pub requests: Compressed,
    /// Which responses are.
    pub responses: Compressed,
    /// Servers do not learn which codings the client accepts.
    pub offload: bool,
}

/// Which messages of a direction are compressed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compressed {
    /// Any of them are.
    pub is_on: bool,
    /// `filter-sequence` leaves the filter of these messages out.
    pub is_left_out: bool,
    /// Prefixes of `Content-Type`; empty for any.
    pub types: Vec<Octets>,
    /// Messages with a shorter body, in bytes, are not compressed.
    pub min_bytes: u64,
}

impl Default for Compression {
    /// Responses are compressed, requests are not.
    fn default() -> Self {
        Compression {
            codings: Vec::new(),
            request_coding: None,
            requests: Compressed::default(),
            responses: Compressed {
                is_on: true,
                ..Compressed::default()
            },
            offload: false,
        }
    }
}
