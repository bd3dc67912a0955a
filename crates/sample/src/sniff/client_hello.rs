//! The first handshake message of TLS (RFC 8446 §4.1.2), which is not encrypted, at the start of a
//! connection.
//!
//! Fetches read only the first record: as in HAProxy, they do not support a hello that spans
//! several records. TLS on `bind` lines joins the records and uses the functions that take the
//! message (`*_of`).

use super::{Sniffed, u16_at, u24_at};

const HANDSHAKE: u8 = 0x16;
const CLIENT_HELLO: u8 = 1;
/// Record type, version, length.
const RECORD_HEAD_BYTES: usize = 5;
/// Handshake type, length.
const HANDSHAKE_HEAD_BYTES: usize = 4;
/// Version, random, and the length of the session id; they follow the handshake head.
const FIXED_BYTES: usize = 2 + 32 + 1;
/// The shortest hello with an extension: one cipher suite, one compression method, one empty
/// extension.
const HELLO_BYTES_MIN: usize = FIXED_BYTES + 2 + 2 + 1 + 1 + 2 + 2;
const SESSION_ID_BYTES_MAX: usize = 32;
/// The longest record, including the expansion of TLS compression.
const RECORD_BYTES_MAX: usize = (1 << 14) + 2048;

/// Extension types (RFC 8446 §4.2).
pub mod kind {
    /// server_name
    pub const SERVER_NAME: u16 = 0;
    /// supported_groups, formerly elliptic_curves
    pub const GROUPS: u16 = 10;
    /// ec_point_formats
    pub const POINT_FORMATS: u16 = 11;
    /// signature_algorithms
    pub const SIGNATURES: u16 = 13;
    /// application_layer_protocol_negotiation
    pub const ALPN: u16 = 16;
    /// session_ticket
    pub const SESSION_TICKET: u16 = 35;
    /// supported_versions
    pub const VERSIONS: u16 = 43;
    /// key_share
    pub const KEY_SHARE: u16 = 51;
}

/// The type of the handshake message in the first record: 1 for a ClientHello, 2 for a ServerHello.
/// The message must be complete.
#[must_use]
pub fn message_type(bytes: &[u8]) -> Sniffed<u8> {
    match bytes {
        [] => return Sniffed::More,
        [0x14..=0x17 | 0xff, ..] => {}
        _ => return Sniffed::No,
    }
    let (Some(&[_, major, _, high, low, kind]), Some(length)) = (
        bytes.first_chunk::<6>(),
        u24_at(bytes, RECORD_HEAD_BYTES + 1),
    ) else {
        return Sniffed::More;
    };
    let record = u16::from_be_bytes([high, low]);
    if major < 3 || usize::from(record) < HANDSHAKE_HEAD_BYTES {
        Sniffed::No
    } else if bytes.len() < RECORD_HEAD_BYTES + HANDSHAKE_HEAD_BYTES + length {
        Sniffed::More
    } else {
        Sniffed::Found(kind)
    }
}

/// The version in a client's hello of SSLv2 or later, major and minor. `room` is the size of the
/// buffer: bytes that do not fit are not waited for.
#[must_use]
pub fn version(bytes: &[u8], room: usize) -> Sniffed<(u8, u8)> {
    let (version, end) = match bytes {
        [] => return Sniffed::More,
        [0x14..=0x17 | 0xff, ..] => {
            let Some(&[_, major, _, high, low, ..]) = bytes.first_chunk::<11>() else {
                return Sniffed::More;
            };
            let record = usize::from(u16::from_be_bytes([high, low]));
            if major < 3 || !(6..=RECORD_BYTES_MAX).contains(&record) {
                return Sniffed::No;
            }
            ((bytes[9], bytes[10]), RECORD_HEAD_BYTES + record)
        }
        _ => match version_2(bytes) {
            Sniffed::Found(found) => found,
            Sniffed::More => return Sniffed::More,
            Sniffed::No => return Sniffed::No,
        },
    };
    if bytes.len() < end.min(room) {
        return Sniffed::More;
    }
    Sniffed::Found(version)
}

/// The version in a hello of SSLv2 format (RFC 5246 appendix E.2), and the position after it.
fn version_2(bytes: &[u8]) -> Sniffed<((u8, u8), usize)> {
    // The head has two bytes, or three bytes with padding.
    let (head, padding) = match bytes {
        [first, _, _, ..] if first & 0x80 != 0 => (2, 0),
        [first, _, padding, _, ..] if first & 0x80 == 0 => (3, usize::from(*padding)),
        _ => return Sniffed::More,
    };
    if bytes[head] != CLIENT_HELLO {
        return Sniffed::No;
    }
    let body = &bytes[head + 1..];
    let (Some(ciphers), Some(session), Some(challenge)) =
        (u16_at(body, 2), u16_at(body, 4), u16_at(body, 6))
    else {
        return Sniffed::More;
    };
    let mask = if head == 2 { 0x7f } else { 0x3f };
    let length = usize::from(u16::from_be_bytes([bytes[0] & mask, bytes[1]]));
    let adds_up = length == 9 + ciphers + session + challenge;
    if ciphers % 3 != 0 || !matches!(session, 0 | 16) || !(16..=32).contains(&challenge) || !adds_up
    {
        return Sniffed::No;
    }
    let end = head + 9 + ciphers + session + challenge + padding;
    Sniffed::Found(((body[0], body[1]), end))
}

/// The content of the first record.
fn first_record(bytes: &[u8]) -> Sniffed<&[u8]> {
    match bytes {
        [] | [HANDSHAKE] | [HANDSHAKE, _] => return Sniffed::More,
        [HANDSHAKE, major, ..] if *major >= 3 => {}
        _ => return Sniffed::No,
    }
    let Some(record) = u16_at(bytes, 3) else {
        return Sniffed::More;
    };
    if record < HELLO_BYTES_MIN + HANDSHAKE_HEAD_BYTES {
        return Sniffed::No;
    }
    let message = &bytes[RECORD_HEAD_BYTES..];
    if message.len() < record {
        return Sniffed::More;
    }
    Sniffed::Found(message)
}

/// The bytes of a hello from its cipher suites on. `message` begins with the head of the handshake
/// message.
fn after_session_id(message: &[u8]) -> Sniffed<&[u8]> {
    let Some(length) = u24_at(message, 1).filter(|length| *length >= HELLO_BYTES_MIN) else {
        return Sniffed::No;
    };
    if message[0] != CLIENT_HELLO {
        return Sniffed::No;
    }
    let Some(hello) = message[HANDSHAKE_HEAD_BYTES..].get(..length) else {
        return Sniffed::More;
    };
    let session_id = usize::from(hello[FIXED_BYTES - 1]);
    if hello[0] < 3 || hello[1] < 1 || session_id > SESSION_ID_BYTES_MAX {
        return Sniffed::No;
    }
    hello.get(FIXED_BYTES + session_id..).into()
}

/// The version in a hello, major and minor. `message` is the handshake message, without the headers
/// of its records.
#[must_use]
pub fn version_of(message: &[u8]) -> Option<(u8, u8)> {
    match message {
        [CLIENT_HELLO, _, _, _, major, minor, ..] => Some((*major, *minor)),
        _ => None,
    }
}

/// The list of cipher suites, two bytes each.
#[must_use]
pub fn cipher_suites(bytes: &[u8]) -> Sniffed<&[u8]> {
    first_record(bytes).then(cipher_suites_of)
}

/// The same of a handshake message, without the headers of its records.
#[must_use]
pub fn cipher_suites_of(message: &[u8]) -> Sniffed<&[u8]> {
    after_session_id(message).then(|rest| {
        let length = u16_at(rest, 0).filter(|length| *length >= 2);
        length.and_then(|length| rest.get(2..2 + length)).into()
    })
}

/// All extensions, one after the other.
#[must_use]
pub fn extensions(bytes: &[u8]) -> Sniffed<&[u8]> {
    first_record(bytes).then(extensions_of)
}

/// The same of a handshake message, without the headers of its records.
#[must_use]
pub fn extensions_of(message: &[u8]) -> Sniffed<&[u8]> {
    after_session_id(message).then(|rest| {
        let all = || {
            let ciphers = u16_at(rest, 0).filter(|length| *length >= 2)?;
            let rest = rest.get(2 + ciphers..)?;
            let methods = usize::from(*rest.first()?);
            let rest = rest.get(1 + methods..).filter(|_| methods >= 1)?;
            rest.get(2..2 + u16_at(rest, 0)?)
        };
        all().into()
    })
}

/// The content of the first extension of this type.
#[must_use]
pub fn extension(extensions: &[u8], wanted: u16) -> Option<&[u8]> {
    let mut rest = extensions;
    while let (Some(kind), Some(length)) = (u16_at(rest, 0), u16_at(rest, 2)) {
        let content = rest.get(4..4 + length)?;
        if kind == usize::from(wanted) {
            return Some(content);
        }
        rest = &rest[4 + length..];
    }
    None
}

/// The requested server name (RFC 6066 §3).
#[must_use]
pub fn server_name(bytes: &[u8]) -> Sniffed<&[u8]> {
    extensions(bytes).then(|all| extension(all, kind::SERVER_NAME).and_then(host_name).into())
}

/// The types of all extensions, in order.
pub fn types(extensions: &[u8]) -> impl Iterator<Item = [u8; 2]> {
    let mut rest = extensions;
    std::iter::from_fn(move || {
        let kind = *rest.first_chunk::<2>()?;
        rest = rest.get(4 + u16_at(rest, 2)?..)?;
        Some(kind)
    })
}

/// The first name of a server_name extension, if it is a host name (RFC 6066 §3).
#[must_use]
pub fn host_name(content: &[u8]) -> Option<&[u8]> {
    let list = list(content, 4)?;
    let (0, length) = (*list.first()?, u16_at(list, 1)?) else {
        return None;
    };
    list.get(3..3 + length)
}

/// The list in an extension that contains only this list, with at least `bytes_min` bytes.
#[must_use]
pub fn list(content: &[u8], bytes_min: usize) -> Option<&[u8]> {
    let length = u16_at(content, 0).filter(|length| *length >= bytes_min)?;
    content.get(2..2 + length)
}

/// A name of an ALPN extension (RFC 7301 §3.1) at a position, and the position after it.
#[must_use]
pub fn protocol_at(content: &[u8], at: usize) -> Option<(&[u8], usize)> {
    let start = at + 1;
    let end = start + usize::from(*content.get(at)?);
    content.get(start..end).map(|name| (name, end))
}

/// The position of the first name of an ALPN extension.
pub const FIRST_PROTOCOL: usize = 2;

/// The groups of a key_share extension (RFC 8446 §4.2.8), two bytes each.
pub fn key_share_groups(content: &[u8]) -> Option<impl Iterator<Item = [u8; 2]>> {
    let mut rest = list(content, 4)?;
    Some(std::iter::from_fn(move || {
        let &[high, low, _, _] = rest.first_chunk::<4>()?;
        let length = u16_at(rest, 2)?;
        rest = rest.get(4 + length..).unwrap_or_default();
        Some([high, low])
    }))
}

#[cfg(test)]
pub(crate) mod tests;
