//! HTTP: one version-agnostic message head, and the sans-IO codecs that turn wire bytes into it and
//! back.
#![forbid(unsafe_code)]

mod bytes;
mod codec;
mod field_name;
pub mod h1;
pub mod h2;
pub mod h3;
pub mod head;
pub mod method;
pub mod name;
pub mod normalize;
mod reason;
mod target;
mod upgrade;

pub use bytes::{hex_byte, hex_digit, is_token, plain_text};
pub use codec::Codec;
pub use field_name::FieldName;
pub use head::{FieldId, Head};
pub use method::Method;
pub use name::Name;
pub use reason::reason;

/// The protocol version written in a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// HTTP/1.0, or an older form that was accepted as it.
    Http10,
    /// HTTP/1.1.
    #[default]
    Http11,
    /// HTTP/2. A head of this version is written to an HTTP/1 connection as HTTP/1.1.
    Http2,
    /// HTTP/3. A head of this version is written to an HTTP/1 connection as HTTP/1.1.
    Http3,
}

impl Version {
    /// Its text, as written in HTTP/1 and in logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Version::Http10 => "HTTP/1.0",
            Version::Http11 => "HTTP/1.1",
            Version::Http2 => "HTTP/2.0",
            Version::Http3 => "HTTP/3.0",
        }
    }
}
