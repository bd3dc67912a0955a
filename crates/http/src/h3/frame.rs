//! Frames (RFC 9114 §7), settings and the types of unidirectional streams.

use super::varint;

/// Frame types.
pub(super) mod kind {
    pub const DATA: u64 = 0;
    pub const HEADERS: u64 = 1;
    pub const CANCEL_PUSH: u64 = 3;
    pub const SETTINGS: u64 = 4;
    pub const PUSH_PROMISE: u64 = 5;
    pub const GOAWAY: u64 = 7;
    pub const MAX_PUSH_ID: u64 = 0xd;
    /// RFC 9218 §7.2, of a request and of a push.
    pub const PRIORITY_UPDATE: u64 = 0xf_0700;
    pub const PRIORITY_UPDATE_PUSH: u64 = 0xf_0701;

    /// Types of HTTP/2 that HTTP/3 must not use (RFC 9114 §7.2.8).
    pub const fn is_reserved(kind: u64) -> bool {
        matches!(kind, 2 | 6 | 8 | 9)
    }
}

/// Settings (RFC 9114 §7.2.4.1, RFC 9204 §5, RFC 9220 §3, RFC 9297 §2.1.1).
pub(super) mod setting {
    pub const QPACK_MAX_TABLE_CAPACITY: u64 = 1;
    pub const MAX_FIELD_SECTION_SIZE: u64 = 6;
    pub const QPACK_BLOCKED_STREAMS: u64 = 7;
    pub const ENABLE_CONNECT_PROTOCOL: u64 = 8;
    pub const H3_DATAGRAM: u64 = 0x33;
    /// One that every peer ignores (RFC 9114 §7.2.4.1), so that peers stay able to.
    pub const GREASE: u64 = 0x1f * 0x2a + 0x21;

    /// Settings of HTTP/2 that HTTP/3 must not use.
    pub const fn is_reserved(setting: u64) -> bool {
        matches!(setting, 0 | 2..=5)
    }
}

/// Types of unidirectional streams (RFC 9114 §6.2, RFC 9204 §4.2).
pub(super) mod stream_type {
    pub const CONTROL: u64 = 0;
    pub const PUSH: u64 = 1;
    pub const ENCODER: u64 = 2;
    pub const DECODER: u64 = 3;
}

/// The longest header of a frame.
pub(super) const HEAD_BYTES_MAX: usize = 2 * varint::BYTES_MAX;

/// The type and the payload's length at the front of `bytes`, and their size; none if they are not
/// complete.
#[inline]
pub(super) fn read_head(bytes: &[u8]) -> Option<(u64, u64, usize)> {
    let (kind, at) = varint::read(bytes)?;
    let (len, more) = varint::read(&bytes[at..])?;
    Some((kind, len, at + more))
}

/// Appends the header of a frame.
#[inline]
pub(super) fn head(kind: u64, len: usize, out: &mut Vec<u8>) {
    varint::write(kind, out);
    varint::write(len as u64, out);
}

/// Appends a frame whose payload is one number.
pub(super) fn with_number(kind: u64, number: u64, out: &mut Vec<u8>) {
    head(kind, varint::len(number), out);
    varint::write(number, out);
}

/// Appends a SETTINGS frame.
pub(super) fn settings(settings: &[(u64, u64)], out: &mut Vec<u8>) {
    let size = |(id, value): &(u64, u64)| varint::len(*id) + varint::len(*value);
    head(kind::SETTINGS, settings.iter().map(size).sum(), out);
    for (id, value) in settings {
        varint::write(*id, out);
        varint::write(*value, out);
    }
}
