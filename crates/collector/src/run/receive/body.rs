//! Bodies: read within their bounds, and decompressed within the same.

use std::io::{self, Read};
use std::sync::Arc;
use std::time::Duration;

use bytes::buf::Reader;
use bytes::{Buf, Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use lz4_flex::frame::FrameDecoder;
use telemetry::settings::Compression;
use tokio::time::Instant;

use super::status::Fault;
use super::{Intake, no_room};
use crate::run::charge::{Body as Room, Charge};

/// A body that was read, and the room that it takes.
pub(super) struct Whole {
    pub bytes: Bytes,
    pub room: Room,
}

impl Whole {
    /// Its bytes, charged as what waits.
    pub(super) fn charged(self) -> (Bytes, Charge) {
        let charge = self.room.into_charge(self.bytes.len() as u64);
        (self.bytes, charge)
    }

    /// What it was made into, by `translate`, charged the same way.
    pub(super) fn translated(
        mut self,
        translate: impl FnOnce(&[u8]) -> Result<Bytes, Fault>,
    ) -> Result<(Bytes, Charge), Fault> {
        // While it is made, both are there. What is made is about as large.
        if !self.room.grow(self.bytes.len() as u64) {
            return Err(no_room().into());
        }
        self.bytes = translate(&self.bytes)?;
        Ok(self.charged())
    }
}

/// What a body may be.
#[derive(Clone, Copy)]
pub(super) struct Bounds {
    /// Of what is read, and of what it decompresses to.
    pub bytes_max: u64,
    /// Its length, where the sender tells it.
    pub told: Option<u64>,
    /// What its first bytes say of its length.
    pub begins: fn(&[u8]) -> Option<u64>,
    /// When it must be whole; none: [`BODY_READ_MAX`] from now on.
    pub until: Option<Instant>,
}

/// When a body must be whole: it goes along with the request.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadUntil(pub Instant);

impl Bounds {
    pub(super) fn of(body: &Incoming, bytes_max: u64) -> Bounds {
        Bounds {
            bytes_max,
            told: body.size_hint().exact(),
            begins: |_| None,
            until: None,
        }
    }

    fn too_large(&self) -> Fault {
        Fault::TooLarge(format!("more than {} bytes are not taken", self.bytes_max))
    }
}

/// Reads a body whole, in its time.
pub(super) async fn read(
    intake: &Arc<Intake>,
    body: Incoming,
    bounds: Bounds,
) -> Result<Whole, Fault> {
    let until = bounds
        .until
        .unwrap_or_else(|| Instant::now() + BODY_READ_MAX);
    let read = tokio::time::timeout_at(until, read_all(intake, body, bounds)).await;
    read.unwrap_or(Err(Fault::Slow))
}

/// The memory of a body is this many times what came of it, at most.
const AHEAD: u64 = 4;

/// A body that takes longer holds room that others need.
const BODY_READ_MAX: Duration = Duration::from_secs(60);

/// Its room is taken as its bytes come: a length that is only told takes none, so that senders that
/// tell one and send nothing keep nobody out.
async fn read_all(
    intake: &Arc<Intake>,
    mut body: Incoming,
    bounds: Bounds,
) -> Result<Whole, Fault> {
    let mut told = bounds.told.unwrap_or(0);
    if told > bounds.bytes_max {
        return Err(bounds.too_large());
    }
    let busy = || Fault::from(no_room());
    let mut room = intake.reserve(0).ok_or_else(busy)?;
    let mut first: Option<Bytes> = None;
    let mut whole = BytesMut::new();
    let mut len = 0;
    while let Some(frame) = body.frame().await {
        let frame =
            frame.map_err(|error| Fault::Invalid(format!("the body broke off: {error}")))?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        len += data.len() as u64;
        if len > bounds.bytes_max {
            return Err(bounds.too_large());
        }
        if !room.grow(data.len() as u64) {
            return Err(busy());
        }
        // A body of one frame is not copied.
        match first.take() {
            None if whole.is_empty() => first = Some(data),
            before => {
                if let Some(before) = &before {
                    told = (bounds.begins)(before)
                        .unwrap_or(told)
                        .min(bounds.bytes_max);
                }
                let before = before.unwrap_or_default();
                if (whole.capacity() as u64) < len {
                    // A body that grows in small steps is copied again and again.
                    let ahead = told.clamp(len, len.saturating_mul(AHEAD));
                    whole.reserve(ahead as usize - whole.len());
                }
                whole.extend_from_slice(&before);
                whole.extend_from_slice(&data);
            }
        }
    }
    let bytes = first.unwrap_or_else(|| whole.freeze());
    Ok(Whole { bytes, room })
}

/// What a coding gives, within the bound.
pub(super) fn decode(whole: Whole, coding: Compression, bytes_max: u64) -> Result<Whole, Fault> {
    let input = whole.bytes.clone().reader();
    match coding {
        Compression::None => Ok(whole),
        Compression::Gzip => inflate(whole, flate2::read::MultiGzDecoder::new(input), bytes_max),
        Compression::Deflate | Compression::Zlib => {
            inflate(whole, flate2::read::ZlibDecoder::new(input), bytes_max)
        }
        Compression::Zstd => match zstd::Decoder::new(input) {
            Ok(mut decoder) => {
                // A window that a sender chose is memory that we would have to have.
                let _ = decoder.window_log_max(ZSTD_WINDOW_LOG_MAX);
                inflate(whole, decoder, bytes_max)
            }
            Err(error) => Err(Fault::Invalid(format!("zstd: {error}"))),
        },
        Compression::Snappy => unsnap(whole, bytes_max),
        Compression::SnappyFramed => {
            inflate(whole, snap::read::FrameDecoder::new(input), bytes_max)
        }
        Compression::Lz4 => inflate(whole, Lz4(FrameDecoder::new(input)), bytes_max),
    }
}

/// All frames of lz4, of which some may be empty: the decoder says of such a one that all ends
/// there.
struct Lz4(FrameDecoder<Reader<Bytes>>);

impl Read for Lz4 {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            let left = self.0.get_ref().get_ref().len();
            let read = self.0.read(out)?;
            let now_left = self.0.get_ref().get_ref().len();
            if read > 0 || out.is_empty() || now_left == 0 || now_left == left {
                return Ok(read);
            }
        }
    }
}

/// Snappy's block format, which tells its length before all else.
fn unsnap(mut whole: Whole, bytes_max: u64) -> Result<Whole, Fault> {
    let failed = |error: snap::Error| does_not(&error);
    let len = snap::raw::decompress_len(&whole.bytes).map_err(failed)? as u64;
    if len > bytes_max {
        return Err(too_large(bytes_max));
    }
    // What is told is not believed: no body of the format becomes so much larger.
    if len > whole.bytes.len() as u64 * SNAPPY_GROWTH_MAX {
        return Err(failed(snap::Error::HeaderMismatch {
            expected_len: len,
            got_len: 0,
        }));
    }
    if !whole.room.grow(len) {
        return Err(no_room().into());
    }
    let out = snap::raw::Decoder::new().decompress_vec(&whole.bytes);
    whole.bytes = out.map_err(failed)?.into();
    Ok(whole)
}

fn does_not(error: &dyn std::error::Error) -> Fault {
    Fault::Invalid(format!("the body does not decompress: {error}"))
}

fn too_large(bytes_max: u64) -> Fault {
    Fault::TooLarge(format!(
        "more than {bytes_max} decompressed bytes are not taken"
    ))
}

/// The largest growth of Snappy's block format: a copy of 64 bytes takes three (format description,
/// section 2.2).
const SNAPPY_GROWTH_MAX: u64 = 22;
/// The largest window of zstd: 8 MiB, what RFC 8878 §3.1.1.1.2 recommends to support.
const ZSTD_WINDOW_LOG_MAX: u32 = 23;
/// Room for what comes out is taken in such steps.
const STEP_BYTES: u64 = 256 << 10;

fn inflate(mut whole: Whole, mut from: impl Read, bytes_max: u64) -> Result<Whole, Fault> {
    let mut out = Vec::new();
    loop {
        if !whole.room.grow(STEP_BYTES) {
            return Err(no_room().into());
        }
        let step = from
            .by_ref()
            .take(STEP_BYTES)
            .read_to_end(&mut out)
            .map_err(|error| does_not(&error))?;
        if out.len() as u64 > bytes_max {
            return Err(too_large(bytes_max));
        }
        if step == 0 {
            whole.bytes = out.into();
            return Ok(whole);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn read(mut from: impl Read) -> Vec<u8> {
        let mut out = Vec::new();
        from.read_to_end(&mut out).expect("frames");
        out
    }

    #[test]
    fn frames_that_are_empty_end_nothing() {
        let lz4 = |part: &[u8]| {
            let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
            encoder.write_all(part).expect("memory");
            encoder.finish().expect("a frame")
        };
        let gzip = |part: &[u8]| {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), Default::default());
            encoder.write_all(part).expect("memory");
            encoder.finish().expect("a member")
        };
        let zstd = |part: &[u8]| zstd::encode_all(part, 1).expect("a frame");
        let parts: [&[u8]; 6] = [b"", b"", b"first ", b"", b"second", b""];
        let frames = Bytes::from(parts.map(lz4).concat());
        assert_eq!(
            read(Lz4(FrameDecoder::new(frames.reader()))),
            b"first second"
        );
        let frames = parts.map(gzip).concat();
        assert_eq!(
            read(flate2::read::MultiGzDecoder::new(&frames[..])),
            b"first second"
        );
        let frames = parts.map(zstd).concat();
        assert_eq!(
            read(zstd::Decoder::new(&frames[..]).unwrap()),
            b"first second"
        );
    }
}
