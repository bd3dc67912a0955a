//! Frames (RFC 9113 §4, §6): headers, types, flags and the writing of small frames.

use super::{Code, StreamId};

/// What a client sends first (RFC 9113 §3.4).
pub const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// The bytes of a frame header.
pub const FRAME_HEAD_BYTES: usize = 9;

/// The largest frame that every peer accepts (RFC 9113 §4.2).
pub(super) const FRAME_BYTES_DEFAULT: u32 = 1 << 14;
/// The largest frame that the protocol permits.
pub(super) const FRAME_BYTES_MAX: u32 = (1 << 24) - 1;
/// The windows before any setting (RFC 9113 §6.9.2).
pub(super) const WINDOW_DEFAULT: u32 = 65535;

/// Frame types.
pub(super) mod kind {
    pub const DATA: u8 = 0;
    pub const HEADERS: u8 = 1;
    pub const PRIORITY: u8 = 2;
    pub const RST_STREAM: u8 = 3;
    pub const SETTINGS: u8 = 4;
    pub const PUSH_PROMISE: u8 = 5;
    pub const PING: u8 = 6;
    pub const GOAWAY: u8 = 7;
    pub const WINDOW_UPDATE: u8 = 8;
    pub const CONTINUATION: u8 = 9;
}

/// Flags; each has its meaning for some types only.
pub(super) mod flag {
    pub const END_STREAM: u8 = 0x1;
    pub const ACK: u8 = 0x1;
    pub const END_HEADERS: u8 = 0x4;
    pub const PADDED: u8 = 0x8;
    pub const PRIORITY: u8 = 0x20;
}

/// Settings (RFC 9113 §6.5.2, RFC 8441 §3).
pub(super) mod setting {
    pub const HEADER_TABLE_SIZE: u16 = 1;
    pub const ENABLE_PUSH: u16 = 2;
    pub const MAX_CONCURRENT_STREAMS: u16 = 3;
    pub const INITIAL_WINDOW_SIZE: u16 = 4;
    pub const MAX_FRAME_SIZE: u16 = 5;
    pub const MAX_HEADER_LIST_SIZE: u16 = 6;
    pub const ENABLE_CONNECT_PROTOCOL: u16 = 8;
}

/// A frame header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FrameHead {
    pub len: u32,
    pub kind: u8,
    pub flags: u8,
    pub stream: StreamId,
}

impl FrameHead {
    #[inline]
    pub fn read(bytes: [u8; FRAME_HEAD_BYTES]) -> FrameHead {
        let [a, b, c, kind, flags, s, t, u, v] = bytes;
        FrameHead {
            len: u32::from_be_bytes([0, a, b, c]),
            kind,
            flags,
            // The reserved bit is ignored (RFC 9113 §4.1).
            stream: StreamId(u32::from_be_bytes([s & 0x7f, t, u, v])),
        }
    }

    #[inline]
    pub fn bytes(self) -> [u8; FRAME_HEAD_BYTES] {
        let [_, a, b, c] = self.len.to_be_bytes();
        let [s, t, u, v] = self.stream.0.to_be_bytes();
        [a, b, c, self.kind, self.flags, s, t, u, v]
    }

    pub fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// Appends a frame header.
#[inline]
pub(super) fn head(kind: u8, flags: u8, stream: StreamId, len: usize, out: &mut Vec<u8>) {
    let head = FrameHead {
        len: len as u32,
        kind,
        flags,
        stream,
    };
    out.extend_from_slice(&head.bytes());
}

/// Changes the length in the frame header at `at`.
pub(super) fn set_len(out: &mut [u8], at: usize, len: usize) {
    out[at..at + 3].copy_from_slice(&(len as u32).to_be_bytes()[1..]);
}

pub(super) fn reset(stream: StreamId, code: Code, out: &mut Vec<u8>) {
    head(kind::RST_STREAM, 0, stream, 4, out);
    out.extend_from_slice(&code.0.to_be_bytes());
}

pub(super) fn window_update(stream: StreamId, credit: u32, out: &mut Vec<u8>) {
    head(kind::WINDOW_UPDATE, 0, stream, 4, out);
    out.extend_from_slice(&credit.to_be_bytes());
}

pub(super) fn ping(flags: u8, payload: &[u8], out: &mut Vec<u8>) {
    head(kind::PING, flags, StreamId::CONNECTION, payload.len(), out);
    out.extend_from_slice(payload);
}

pub(super) fn goaway(last: StreamId, code: Code, out: &mut Vec<u8>) {
    head(kind::GOAWAY, 0, StreamId::CONNECTION, 8, out);
    out.extend_from_slice(&last.0.to_be_bytes());
    out.extend_from_slice(&code.0.to_be_bytes());
}

pub(super) fn settings(settings: &[(u16, u32)], out: &mut Vec<u8>) {
    head(
        kind::SETTINGS,
        0,
        StreamId::CONNECTION,
        6 * settings.len(),
        out,
    );
    for (id, value) in settings {
        out.extend_from_slice(&id.to_be_bytes());
        out.extend_from_slice(&value.to_be_bytes());
    }
}

/// The big-endian number at the front of a payload whose length was checked; 0 for a shorter one.
#[inline]
pub(super) fn number(payload: &[u8]) -> u32 {
    payload
        .first_chunk()
        .map_or(0, |bytes| u32::from_be_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frame_heads() {
        let head = FrameHead {
            len: 0x01_0203,
            kind: kind::HEADERS,
            flags: flag::END_HEADERS,
            stream: StreamId(0x7fff_fffe),
        };
        assert_eq!(FrameHead::read(head.bytes()), head);
        assert_eq!(head.bytes(), [1, 2, 3, 1, 4, 0x7f, 0xff, 0xff, 0xfe]);
        let mut reserved = head.bytes();
        reserved[5] |= 0x80;
        assert_eq!(FrameHead::read(reserved), head);
    }
}
