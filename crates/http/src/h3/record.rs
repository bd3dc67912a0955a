//! The records in which the streams of a QUIC connection travel between the QUIC layer and the codec
//! as one run of bytes, in each direction.
//!
//! A record is a header of [`HEAD_BYTES`] and a payload:
//!
//! | bytes | content |
//! |---|---|
//! | 1 | the [`Kind`]; bit [`END`] says that the stream ends after this record (Data and Echo only) |
//! | 8 | QUIC's number of the stream, little-endian; [`CONNECTION`] for the whole connection |
//! | 4 | the length of the payload, little-endian |
//!
//! Payloads are bytes of a stream, or numbers in little-endian.
//!
//! A stream that we open is opened by the first record that names it. Streams of one kind are opened
//! in the order of their numbers.

/// The stream number that stands for the whole connection.
pub const CONNECTION: u64 = u64::MAX;
/// The bytes of a record's header.
pub const HEAD_BYTES: usize = 13;
/// The most bytes of a stream that one record from QUIC should carry, and the most payload of an
/// HTTP message in one record to QUIC.
pub const DATA_BYTES_MAX: usize = 16 << 10;
/// The longest payload of a record: a record to QUIC may contain the header of a frame beside
/// [`DATA_BYTES_MAX`].
pub const PAYLOAD_BYTES_MAX: usize = DATA_BYTES_MAX + 16;
/// The longest reason of [`Kind::Close`], bytes.
pub const REASON_BYTES_MAX: usize = 256;
/// The bit of the first byte that says that the stream ends after this record.
pub const END: u8 = 0x80;

/// The kind of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Both ways: bytes of a stream.
    Data = 0,
    /// Both ways: the stream has ended; no payload.
    Fin = 1,
    /// Both ways: the sender has reset its side of the stream; the error code, u64.
    Reset = 2,
    /// From QUIC: the peer wants no more of what we send (STOP_SENDING); the error code, u64.
    Stopped = 3,
    /// From QUIC: so many more bytes that we sent on the stream, or on the whole connection, were
    /// accepted by the transport, u64.
    Written = 4,
    /// From QUIC: how many request streams a client may have opened in total so far, u64.
    Streams = 5,
    /// To QUIC: bytes of a stream that cannot be used yet. The QUIC layer appends the record
    /// unchanged to what it sends to the codec, and keeps the order of these records.
    Echo = 6,
    /// To QUIC: nothing more of the stream is wanted (STOP_SENDING); the error code, u64.
    Stop = 7,
    /// To QUIC: so many received bytes of the stream are used, u64; the transport lets the peer send
    /// as much again on the stream, if it is still open, and on the connection.
    Consumed = 8,
    /// To QUIC: closes the connection; the application's error code, u64, then the reason in UTF-8.
    Close = 9,
    /// To QUIC: how important the stream is, i32. Higher is more important, 0 is usual.
    Priority = 10,
}

impl Kind {
    fn of(number: u8) -> Option<Kind> {
        Some(match number {
            0 => Kind::Data,
            1 => Kind::Fin,
            2 => Kind::Reset,
            3 => Kind::Stopped,
            4 => Kind::Written,
            5 => Kind::Streams,
            6 => Kind::Echo,
            7 => Kind::Stop,
            8 => Kind::Consumed,
            9 => Kind::Close,
            10 => Kind::Priority,
            _ => return None,
        })
    }

    /// Whether a payload may have this length.
    fn takes(self, len: usize) -> bool {
        match self {
            Kind::Data | Kind::Echo => len <= PAYLOAD_BYTES_MAX,
            Kind::Fin => len == 0,
            Kind::Reset
            | Kind::Stopped
            | Kind::Written
            | Kind::Streams
            | Kind::Stop
            | Kind::Consumed => len == 8,
            Kind::Close => (8..=8 + REASON_BYTES_MAX).contains(&len),
            Kind::Priority => len == 4,
        }
    }
}

/// The bytes are no record. The writer of the records is wrong: no peer can cause it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

impl std::fmt::Display for Malformed {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("a malformed record")
    }
}

impl std::error::Error for Malformed {}

/// The header of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordHead {
    /// What the record says.
    pub kind: Kind,
    /// The stream ends after this record. Always true for [`Kind::Fin`].
    pub end: bool,
    /// QUIC's number of the stream, or [`CONNECTION`].
    pub stream: u64,
    /// The length of the payload, at most [`PAYLOAD_BYTES_MAX`].
    pub len: usize,
}

impl RecordHead {
    /// The header at the front of `bytes`; none if it is not complete.
    ///
    /// # Errors
    /// The kind is unknown, or the length is not one of the kind.
    #[inline]
    pub fn read(bytes: &[u8]) -> Result<Option<RecordHead>, Malformed> {
        let Some([first, rest @ ..]) = bytes.first_chunk::<HEAD_BYTES>() else {
            return Ok(None);
        };
        let [a, b, c, d, e, f, g, h, len @ ..] = *rest;
        let len = u32::from_le_bytes(len) as usize;
        let kind = Kind::of(first & !END).filter(|kind| kind.takes(len));
        let kind = kind.ok_or(Malformed)?;
        let is_flagged = first & END != 0;
        if is_flagged && !matches!(kind, Kind::Data | Kind::Echo) {
            return Err(Malformed);
        }
        Ok(Some(RecordHead {
            kind,
            end: is_flagged || kind == Kind::Fin,
            stream: u64::from_le_bytes([a, b, c, d, e, f, g, h]),
            len,
        }))
    }
}

/// A whole record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Its header.
    pub head: RecordHead,
    /// Its payload.
    pub payload: &'a [u8],
}

impl<'a> Record<'a> {
    /// The record at the front of `bytes` and its size; none if it is not complete.
    ///
    /// # Errors
    /// As [`RecordHead::read`].
    pub fn read(bytes: &'a [u8]) -> Result<Option<(Record<'a>, usize)>, Malformed> {
        let Some(head) = RecordHead::read(bytes)? else {
            return Ok(None);
        };
        let end = HEAD_BYTES + head.len;
        let payload = bytes.get(HEAD_BYTES..end);
        Ok(payload.map(|payload| (Record { head, payload }, end)))
    }

    /// The number of a record that has one: a code or a count.
    #[must_use]
    pub fn number(&self) -> u64 {
        let bytes = self.payload.first_chunk();
        bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }

    /// The number of [`Kind::Priority`].
    #[must_use]
    pub fn priority(&self) -> i32 {
        let bytes = self.payload.first_chunk();
        bytes.map_or(0, |bytes| i32::from_le_bytes(*bytes))
    }

    /// The reason of [`Kind::Close`].
    #[must_use]
    pub fn reason(&self) -> &'a [u8] {
        self.payload.get(8..).unwrap_or_default()
    }
}

fn head(kind: u8, stream: u64, len: usize, out: &mut Vec<u8>) {
    debug_assert!(Kind::of(kind & !END).is_some_and(|kind| kind.takes(len)));
    out.push(kind);
    out.extend_from_slice(&stream.to_le_bytes());
    out.extend_from_slice(&(len as u32).to_le_bytes());
}

fn with_number(kind: Kind, stream: u64, number: u64, out: &mut Vec<u8>) {
    head(kind as u8, stream, 8, out);
    out.extend_from_slice(&number.to_le_bytes());
}

/// Appends the header of a Data record; `len` bytes, at most [`PAYLOAD_BYTES_MAX`], follow. `end`:
/// the stream ends after them.
pub fn data_head(stream: u64, len: usize, end: bool, out: &mut Vec<u8>) {
    let flag = if end { END } else { 0 };
    head(Kind::Data as u8 | flag, stream, len, out);
}

/// Appends bytes of a stream in as many Data records as needed: [`DATA_BYTES_MAX`] each. `end`: the
/// stream ends after them.
pub fn data(stream: u64, bytes: &[u8], end: bool, out: &mut Vec<u8>) {
    bytes_of(Kind::Data, stream, bytes, end, out);
}

/// Appends bytes of a stream in as many Echo records as needed; see [`Kind::Echo`].
pub fn echo(stream: u64, bytes: &[u8], end: bool, out: &mut Vec<u8>) {
    bytes_of(Kind::Echo, stream, bytes, end, out);
}

fn bytes_of(kind: Kind, stream: u64, bytes: &[u8], end: bool, out: &mut Vec<u8>) {
    let mut rest = bytes;
    loop {
        let (part, more) = rest.split_at(rest.len().min(DATA_BYTES_MAX));
        let flag = if end && more.is_empty() { END } else { 0 };
        head(kind as u8 | flag, stream, part.len(), out);
        out.extend_from_slice(part);
        if more.is_empty() {
            return;
        }
        rest = more;
    }
}

/// Appends a Fin record.
pub fn fin(stream: u64, out: &mut Vec<u8>) {
    head(Kind::Fin as u8, stream, 0, out);
}

/// Appends a Reset record.
pub fn reset(stream: u64, code: u64, out: &mut Vec<u8>) {
    with_number(Kind::Reset, stream, code, out);
}

/// Appends a Stopped record.
pub fn stopped(stream: u64, code: u64, out: &mut Vec<u8>) {
    with_number(Kind::Stopped, stream, code, out);
}

/// Appends a Written record; `stream` may be [`CONNECTION`].
pub fn written(stream: u64, count: u64, out: &mut Vec<u8>) {
    with_number(Kind::Written, stream, count, out);
}

/// Appends a Streams record.
pub fn streams(count: u64, out: &mut Vec<u8>) {
    with_number(Kind::Streams, CONNECTION, count, out);
}

/// Appends a Stop record.
pub fn stop(stream: u64, code: u64, out: &mut Vec<u8>) {
    with_number(Kind::Stop, stream, code, out);
}

/// Appends a Consumed record.
pub fn consumed(stream: u64, count: u64, out: &mut Vec<u8>) {
    with_number(Kind::Consumed, stream, count, out);
}

/// Appends a Close record. A reason longer than [`REASON_BYTES_MAX`] is cut.
pub fn close(code: u64, reason: &str, out: &mut Vec<u8>) {
    let reason = &reason[..reason.floor_char_boundary(REASON_BYTES_MAX)];
    head(Kind::Close as u8, CONNECTION, 8 + reason.len(), out);
    out.extend_from_slice(&code.to_le_bytes());
    out.extend_from_slice(reason.as_bytes());
}

/// Appends a Priority record.
pub fn priority(stream: u64, priority: i32, out: &mut Vec<u8>) {
    head(Kind::Priority as u8, stream, 4, out);
    out.extend_from_slice(&priority.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(bytes: &[u8]) -> Record<'_> {
        for cut in 0..bytes.len() {
            assert_eq!(Record::read(&bytes[..cut]), Ok(None));
        }
        let (record, used) = Record::read(bytes).expect("legal").expect("whole");
        assert_eq!(used, bytes.len());
        record
    }

    #[test]
    fn records_come_back() {
        let mut out = Vec::new();
        data(4, b"abc", true, &mut out);
        assert_eq!(
            out[..HEAD_BYTES],
            [0x80, 4, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0]
        );
        let record = only(&out);
        assert_eq!((record.head.kind, record.head.end), (Kind::Data, true));
        assert_eq!((record.head.stream, record.payload), (4, &b"abc"[..]));
        out.clear();
        fin(8, &mut out);
        assert!(only(&out).head.end);
        for (write, kind) in [
            (reset as fn(u64, u64, &mut Vec<u8>), Kind::Reset),
            (stopped, Kind::Stopped),
            (written, Kind::Written),
            (stop, Kind::Stop),
            (consumed, Kind::Consumed),
        ] {
            out.clear();
            write(CONNECTION, 1 << 40, &mut out);
            let record = only(&out);
            assert_eq!((record.head.kind, record.number()), (kind, 1 << 40));
        }
        out.clear();
        close(0x100, &"\u{e9}".repeat(300), &mut out);
        let record = only(&out);
        assert_eq!((record.number(), record.reason().len()), (0x100, 256));
        out.clear();
        priority(0, -4, &mut out);
        assert_eq!(only(&out).priority(), -4);
        out.clear();
        streams(100, &mut out);
        assert_eq!(only(&out).number(), 100);
    }

    #[test]
    fn long_payloads_are_cut() {
        let mut out = Vec::new();
        echo(4, &[7; DATA_BYTES_MAX + 1], true, &mut out);
        let (first, used) = Record::read(&out).expect("legal").expect("whole");
        assert_eq!(
            (first.payload.len(), first.head.end),
            (DATA_BYTES_MAX, false)
        );
        let second = only(&out[used..]);
        assert_eq!((second.payload.len(), second.head.end), (1, true));
    }

    #[test]
    fn malformed_records() {
        for (kind, len) in [
            (11, 0),
            (1, 1),
            (2, 7),
            (0, 0x8000),
            (9, 7),
            (10, 8),
            (0x81, 0),
        ] {
            let mut bytes = vec![kind, 0, 0, 0, 0, 0, 0, 0, 0];
            bytes.extend(u32::to_le_bytes(len));
            assert_eq!(RecordHead::read(&bytes), Err(Malformed), "{kind} {len}");
        }
    }
}
