//! Compression of HTTP request bodies.

use std::io::{self, Write};

use bytes::Bytes;
use flate2::write::{GzEncoder, ZlibEncoder};
use lz4_flex::frame::FrameEncoder;
use telemetry::settings::Compression;

/// Level 1 achieves most of gzip's gain for a third of its time.
const GZIP_LEVEL: u32 = 1;
/// The gzip level used for levels below 0.
const GZIP_LEVEL_MIDDLE: u32 = 6;
/// The zstd level, chosen for the same reason.
const ZSTD_LEVEL: i32 = 1;

/// The value of `Content-Encoding`; none without compression.
pub(crate) fn name(compression: Compression) -> Option<&'static str> {
    match compression {
        Compression::None => None,
        Compression::Gzip => Some("gzip"),
        Compression::Zstd => Some("zstd"),
        Compression::Deflate => Some("deflate"),
        Compression::Zlib => Some("zlib"),
        Compression::Snappy => Some("snappy"),
        Compression::SnappyFramed => Some("x-snappy-framed"),
        Compression::Lz4 => Some("lz4"),
    }
}

/// Compresses the pieces of a body, at the given level or a cheap default.
pub(crate) fn compress(
    compression: Compression,
    level: Option<i32>,
    frames: Vec<Bytes>,
) -> Result<Vec<Bytes>, String> {
    let flate = match level {
        None => flate2::Compression::new(GZIP_LEVEL),
        Some(level) => flate2::Compression::new(u32::try_from(level).unwrap_or(GZIP_LEVEL_MIDDLE)),
    };
    let bytes = match compression {
        Compression::None => return Ok(frames),
        Compression::Gzip => {
            let encoder = write(GzEncoder::new(Vec::new(), flate), &frames);
            encoder.and_then(GzEncoder::finish)
        }
        Compression::Deflate | Compression::Zlib => {
            let encoder = write(ZlibEncoder::new(Vec::new(), flate), &frames);
            encoder.and_then(ZlibEncoder::finish)
        }
        Compression::Zstd => zstd::Encoder::new(Vec::new(), level.unwrap_or(ZSTD_LEVEL))
            .and_then(|encoder| write(encoder, &frames))
            .and_then(zstd::Encoder::finish),
        // The block format begins with the length of all data.
        Compression::Snappy => snap::raw::Encoder::new()
            .compress_vec(&frames.concat())
            .map_err(io::Error::other),
        Compression::SnappyFramed => {
            let encoder = write(snap::write::FrameEncoder::new(Vec::new()), &frames);
            encoder.and_then(|encoder| {
                let finished = encoder.into_inner();
                finished.map_err(|error| io::Error::other(error.to_string()))
            })
        }
        Compression::Lz4 => {
            let encoder = write(FrameEncoder::new(Vec::new()), &frames);
            encoder.and_then(|encoder| encoder.finish().map_err(io::Error::other))
        }
    };
    let bytes = bytes.map_err(|error| error.to_string())?;
    Ok(vec![bytes.into()])
}

fn write<W: Write>(mut encoder: W, frames: &[Bytes]) -> io::Result<W> {
    for frame in frames {
        encoder.write_all(frame)?;
    }
    Ok(encoder)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    fn decompress(compression: Compression, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        let read = match compression {
            Compression::None => return bytes.to_vec(),
            Compression::Gzip => flate2::read::GzDecoder::new(bytes).read_to_end(&mut out),
            Compression::Deflate | Compression::Zlib => {
                flate2::read::ZlibDecoder::new(bytes).read_to_end(&mut out)
            }
            Compression::Zstd => zstd::Decoder::new(bytes).unwrap().read_to_end(&mut out),
            Compression::Snappy => return snap::raw::Decoder::new().decompress_vec(bytes).unwrap(),
            Compression::SnappyFramed => snap::read::FrameDecoder::new(bytes).read_to_end(&mut out),
            Compression::Lz4 => lz4_flex::frame::FrameDecoder::new(bytes).read_to_end(&mut out),
        };
        read.unwrap();
        out
    }

    #[test]
    fn what_is_compressed_is_the_body() {
        let frames = || vec![Bytes::from_static(b"one "), vec![b'x'; 5000].into()];
        for compression in [
            Compression::None,
            Compression::Gzip,
            Compression::Deflate,
            Compression::Zlib,
            Compression::Zstd,
            Compression::Snappy,
            Compression::SnappyFramed,
            Compression::Lz4,
        ] {
            for level in [None, Some(-1), Some(9)] {
                let sent = compress(compression, level, frames()).unwrap().concat();
                assert_eq!(decompress(compression, &sent), frames().concat());
                let is_smaller = sent.len() < 1000;
                assert_eq!(is_smaller, compression != Compression::None);
            }
        }
    }
}
