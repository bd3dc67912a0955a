//! Compresses the payload of a message (RFC 9110 §8.4, RFC 1950 to 1952).

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use config::model::Coding;
use flate2::{Compress, Compression as Level, Crc, FlushCompress, Status};

/// Memory of one compressor, bytes: what zlib uses with its largest window.
pub(crate) const COMPRESSOR_BYTES: u64 = 268 << 10;
/// Memory of all compressors without `maxzlibmem`, bytes.
const ALL_BYTES_DEFAULT: u64 = 256 << 20;
/// Spare compressors that a worker keeps for later messages.
const SPARE_MAX: usize = 8;
/// The growth step of a compressor's buffer, bytes.
const PIECE_BYTES: usize = 8 << 10;
/// The largest buffer that a spare compressor keeps, bytes.
const KEPT_BYTES_MAX: usize = 64 << 10;

/// The gzip header: deflate, no name, no time, fastest compression, Unix.
const GZIP_HEAD: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 3];

/// The compressors of a worker.
#[derive(Debug)]
pub(crate) struct Compressors {
    spare: Vec<Compressor>,
    in_use: Arc<AtomicU32>,
    max: u32,
    level: u32,
}

/// Compresses one message.
#[derive(Debug)]
pub(crate) struct Compressor {
    deflate: Compress,
    coding: Coding,
    crc: Crc,
    /// Compressed bytes; those from `sent` on have not been sent.
    out: Vec<u8>,
    sent: usize,
    is_finished: bool,
    _place: Place,
}

/// Counts one compressor as in use until it is dropped.
#[derive(Debug)]
struct Place(Arc<AtomicU32>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Compressors {
    /// Starts without compressors. `max_mib`: `maxzlibmem`, for all `workers` together; `level`:
    /// `tune.comp.maxlevel`.
    pub fn new(max_mib: Option<u32>, level: u32, workers: usize) -> Compressors {
        let bytes = max_mib.map_or(ALL_BYTES_DEFAULT, |mib| u64::from(mib) << 20);
        let max = bytes / COMPRESSOR_BYTES / workers.max(1) as u64;
        Compressors {
            spare: Vec::new(),
            in_use: Arc::default(),
            max: u32::try_from(max).unwrap_or(u32::MAX).max(1),
            level,
        }
    }

    /// A compressor for a message. None when the memory limit is reached.
    pub fn take(&mut self, coding: Coding) -> Option<Compressor> {
        let has_container = coding == Coding::Deflate;
        let same = |spare: &Compressor| (spare.coding == Coding::Deflate) == has_container;
        let mut compressor = match self.spare.iter().position(same) {
            Some(place) => self.spare.swap_remove(place),
            None => {
                if self.in_use.load(Ordering::Relaxed) >= self.max {
                    return None;
                }
                self.in_use.fetch_add(1, Ordering::Relaxed);
                Compressor {
                    deflate: Compress::new(Level::new(self.level), has_container),
                    coding,
                    crc: Crc::new(),
                    out: Vec::new(),
                    sent: 0,
                    is_finished: false,
                    _place: Place(Arc::clone(&self.in_use)),
                }
            }
        };
        compressor.coding = coding;
        compressor.begin();
        Some(compressor)
    }

    /// Takes back the compressor of a message that has ended.
    pub fn put(&mut self, mut compressor: Compressor) {
        if self.spare.len() >= SPARE_MAX {
            return;
        }
        compressor.reset();
        compressor.out.shrink_to(KEPT_BYTES_MAX);
        self.spare.push(compressor);
    }
}

impl Compressor {
    /// Begins with the first byte of the message again.
    pub fn restart(&mut self) {
        self.reset();
        self.begin();
    }

    fn begin(&mut self) {
        if self.coding == Coding::Gzip {
            self.out.extend_from_slice(&GZIP_HEAD);
        }
    }

    fn reset(&mut self) {
        self.deflate.reset();
        self.crc.reset();
        self.out.clear();
        self.sent = 0;
        self.is_finished = false;
    }

    /// Compressed bytes that have not been sent.
    pub fn waiting(&self) -> &[u8] {
        &self.out[self.sent..]
    }

    /// Notes that `bytes` of them have been sent.
    pub fn has_left(&mut self, bytes: usize) {
        self.sent += bytes;
        if self.sent == self.out.len() {
            self.out.clear();
            self.sent = 0;
        }
    }

    /// Bytes of input and of compressed output, without the container.
    pub fn totals(&self) -> (u64, u64) {
        (self.deflate.total_in(), self.deflate.total_out())
    }

    /// Compresses payload and flushes, so that the receiver can decode all of it.
    pub fn write(&mut self, bytes: &[u8]) {
        if self.coding == Coding::Gzip {
            self.crc.update(bytes);
        }
        self.run(bytes, FlushCompress::Sync);
    }

    /// Ends the payload. False if it was ended before.
    pub fn finish(&mut self) -> bool {
        if std::mem::replace(&mut self.is_finished, true) {
            return false;
        }
        self.run(&[], FlushCompress::Finish);
        if self.coding == Coding::Gzip {
            // RFC 1952 §2.3.1: the checksum, then the length modulo 2^32.
            self.out.extend_from_slice(&self.crc.sum().to_le_bytes());
            self.out.extend_from_slice(&self.crc.amount().to_le_bytes());
        }
        true
    }

    fn run(&mut self, bytes: &[u8], flush: FlushCompress) {
        let mut rest = bytes;
        loop {
            if self.out.capacity() - self.out.len() < PIECE_BYTES / 2 {
                self.out.reserve(PIECE_BYTES);
            }
            let before = self.deflate.total_in();
            // An error needs a broken state of the library; no payload causes one.
            let status = self.deflate.compress_vec(rest, &mut self.out, flush);
            let used = (self.deflate.total_in() - before) as usize;
            rest = &rest[used.min(rest.len())..];
            let is_full = self.out.len() == self.out.capacity();
            let is_over = match status {
                Ok(Status::StreamEnd) | Err(_) => true,
                Ok(Status::Ok | Status::BufError) => rest.is_empty() && !is_full,
            };
            if is_over {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    fn text(len: usize) -> Vec<u8> {
        let words = b"a proxy compresses what its servers say, and what it says is shorter then; ";
        words.iter().copied().cycle().take(len).collect()
    }

    /// The compressed form of the pieces.
    fn compressed(compressors: &mut Compressors, coding: Coding, pieces: &[&[u8]]) -> Vec<u8> {
        let mut compressor = compressors.take(coding).expect("room");
        let mut out = Vec::new();
        for piece in pieces {
            compressor.write(piece);
            let half = compressor.waiting().len() / 2;
            out.extend_from_slice(&compressor.waiting()[..half]);
            compressor.has_left(half);
            out.extend_from_slice(compressor.waiting());
            compressor.has_left(compressor.waiting().len());
        }
        assert!(compressor.finish() && !compressor.finish());
        out.extend_from_slice(compressor.waiting());
        compressors.put(compressor);
        out
    }

    fn inflated(coding: Coding, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        let read = match coding {
            Coding::Gzip => flate2::read::GzDecoder::new(bytes).read_to_end(&mut out),
            Coding::Deflate => flate2::read::ZlibDecoder::new(bytes).read_to_end(&mut out),
            _ => flate2::read::DeflateDecoder::new(bytes).read_to_end(&mut out),
        };
        read.expect("it is whole");
        out
    }

    #[test]
    fn what_is_compressed_can_be_read() {
        let mut compressors = Compressors::new(None, 1, 1);
        let long = text(300_000);
        let noise: Vec<u8> = (0..70_000_u32)
            .map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8)
            .collect();
        for coding in [Coding::Gzip, Coding::Deflate, Coding::RawDeflate] {
            // Spare compressors are used again.
            for pieces in [
                vec![&long[..]],
                vec![&long[..1], &long[1..5000], &long[5000..]],
                vec![&noise[..], &long[..]],
                vec![],
            ] {
                let bytes = compressed(&mut compressors, coding, &pieces);
                let whole = pieces.concat();
                assert!(inflated(coding, &bytes) == whole, "{coding:?}");
                if whole == long {
                    assert!(bytes.len() < whole.len() / 20, "{}", bytes.len());
                }
            }
        }
    }

    #[test]
    fn each_piece_can_be_read_at_once() {
        let mut compressors = Compressors::new(None, 1, 1);
        let mut compressor = compressors.take(Coding::Gzip).expect("room");
        compressor.write(b"data: 1\n\n");
        let mut reader = flate2::bufread::GzDecoder::new(compressor.waiting());
        let mut first = [0; 9];
        reader.read_exact(&mut first).expect("an event");
        assert_eq!(&first, b"data: 1\n\n");
    }

    #[test]
    fn memory_is_bounded() {
        let mut compressors = Compressors::new(Some(2), 1, 2);
        let mut held = Vec::new();
        while let Some(compressor) = compressors.take(Coding::Gzip) {
            held.push(compressor);
            assert!(held.len() < 100);
        }
        assert_eq!(held.len(), 3);
        held.pop();
        assert!(compressors.take(Coding::Deflate).is_some());
    }
}
