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
use tokio::sync::Semaphore;
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

    /// Translates the body with `translate` and charges the result the same way. A large body is
    /// translated on a blocking thread.
    pub(super) async fn translated(
        mut self,
        translate: impl FnOnce(&[u8]) -> Result<Bytes, Fault> + Send + 'static,
    ) -> Result<(Bytes, Charge), Fault> {
        // While it is made, both are there. What is made is about as large.
        if !self.room.grow(self.bytes.len() as u64) {
            return Err(no_room().into());
        }
        let decoders = (self.bytes.len() as u64 > INLINE_BYTES_MAX).then(|| self.room.decoders());
        let make = move || {
            self.bytes = translate(&self.bytes)?;
            Ok(self.charged())
        };
        match decoders {
            Some(decoders) => on_blocking_thread(decoders, make).await?,
            None => make(),
        }
    }
}

/// Largest body, in bytes, that is decoded on the asynchronous thread. A larger one would delay
/// other requests on that thread, such as health checks.
const INLINE_BYTES_MAX: u64 = 256 << 10;

/// Decodes a large body on a blocking thread, after it gets a permit. The task holds the permit
/// until it ends, even if the request is cancelled.
async fn on_blocking_thread<T: Send + 'static>(
    decoders: Arc<Semaphore>,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Fault> {
    let permit = decoders.acquire_owned().await;
    let permit = permit.map_err(|_| Fault::Closing)?;
    let done = tokio::task::spawn_blocking(move || {
        let _permit = permit;
        work()
    });
    done.await.map_err(|error| match error.try_into_panic() {
        Ok(panic) => std::panic::resume_unwind(panic),
        Err(_) => Fault::Closing,
    })
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

/// Limit of the memory of a body, as a multiple of the bytes received so far.
const AHEAD: u64 = 4;

/// A body that takes longer holds room that others need.
const BODY_READ_MAX: Duration = Duration::from_secs(60);

/// Memory is charged as bytes arrive. A declared length reserves nothing, so idle connections that
/// declare a large length do not block other senders.
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
                    // Growing in small steps would copy the body many times.
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
pub(super) async fn decode(
    whole: Whole,
    coding: Compression,
    bytes_max: u64,
) -> Result<Whole, Fault> {
    let input = whole.bytes.clone().reader();
    match coding {
        Compression::None => Ok(whole),
        Compression::Gzip => {
            inflate(whole, flate2::read::MultiGzDecoder::new(input), bytes_max).await
        }
        Compression::Deflate | Compression::Zlib => {
            inflate(whole, flate2::read::ZlibDecoder::new(input), bytes_max).await
        }
        Compression::Zstd => match zstd::Decoder::new(input) {
            Ok(mut decoder) => {
                // A window that a sender chose is memory that we would have to have.
                let _ = decoder.window_log_max(ZSTD_WINDOW_LOG_MAX);
                inflate(whole, decoder, bytes_max).await
            }
            Err(error) => Err(Fault::Invalid(format!("zstd: {error}"))),
        },
        Compression::Snappy => unsnap(whole, bytes_max).await,
        Compression::SnappyFramed => {
            inflate(whole, snap::read::FrameDecoder::new(input), bytes_max).await
        }
        Compression::Lz4 => inflate(whole, Lz4(FrameDecoder::new(input)), bytes_max).await,
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
async fn unsnap(mut whole: Whole, bytes_max: u64) -> Result<Whole, Fault> {
    let failed = |error: snap::Error| does_not(&error);
    let len = snap::raw::decompress_len(&whole.bytes).map_err(failed)? as u64;
    if len > bytes_max {
        return Err(too_large(bytes_max));
    }
    // Reject a declared length that the format cannot reach from this many bytes.
    if len > whole.bytes.len() as u64 * SNAPPY_GROWTH_MAX {
        return Err(failed(snap::Error::HeaderMismatch {
            expected_len: len,
            got_len: 0,
        }));
    }
    if !whole.room.grow(len) {
        return Err(no_room().into());
    }
    let decoders = (len > INLINE_BYTES_MAX).then(|| whole.room.decoders());
    let work = move || {
        let out = snap::raw::Decoder::new().decompress_vec(&whole.bytes);
        whole.bytes = out.map_err(failed)?.into();
        Ok(whole)
    };
    match decoders {
        Some(decoders) => on_blocking_thread(decoders, work).await?,
        None => work(),
    }
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

/// Decompresses a body. Beyond [`INLINE_BYTES_MAX`] of output it continues on a blocking thread.
async fn inflate(
    whole: Whole,
    from: impl Read + Send + 'static,
    bytes_max: u64,
) -> Result<Whole, Fault> {
    let mut inflating = Inflating {
        whole,
        from,
        out: Vec::new(),
        bytes_max,
    };
    if inflating.run(INLINE_BYTES_MAX)? {
        return Ok(inflating.end());
    }
    let decoders = inflating.whole.room.decoders();
    let rest = move || {
        inflating.run(u64::MAX)?;
        Ok(inflating.end())
    };
    on_blocking_thread(decoders, rest).await?
}

/// A body that is being decompressed.
struct Inflating<R> {
    whole: Whole,
    from: R,
    out: Vec<u8>,
    bytes_max: u64,
}

impl<R: Read> Inflating<R> {
    /// Decompresses until the output has `limit` bytes. Returns true at the end of the body.
    fn run(&mut self, until: u64) -> Result<bool, Fault> {
        while (self.out.len() as u64) < until {
            if !self.whole.room.grow(STEP_BYTES) {
                return Err(no_room().into());
            }
            let mut step = self.from.by_ref().take(STEP_BYTES);
            let read = step.read_to_end(&mut self.out);
            let read = read.map_err(|error| does_not(&error))?;
            if self.out.len() as u64 > self.bytes_max {
                return Err(too_large(self.bytes_max));
            }
            if read == 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn end(mut self) -> Whole {
        self.whole.bytes = self.out.into();
        self.whole
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::mpsc;

    use super::*;
    use crate::run::charge::Memory;

    /// How long anything may take.
    const PATIENCE: Duration = Duration::from_secs(20);

    fn whole(bytes: usize) -> Whole {
        let budget = Arc::new(tail::store::Budget::new(1 << 30));
        let room = Memory::new(&budget).body(bytes as u64).expect("room");
        let bytes = vec![0; bytes].into();
        Whole { bytes, room }
    }

    /// Succeeds when another task of a runtime with one thread runs meanwhile.
    fn waiting_for_others() -> impl FnOnce() -> bool {
        let (tell, told) = mpsc::channel();
        tokio::spawn(async move { tell.send(()) });
        move || told.recv_timeout(PATIENCE).is_ok()
    }

    #[tokio::test]
    async fn large_bodies_are_translated_beside_other_tasks() {
        let others_run = waiting_for_others();
        let made = whole(INLINE_BYTES_MAX as usize + 1).translated(move |bytes| {
            assert!(others_run(), "the thread is blocked");
            Ok(Bytes::copy_from_slice(bytes))
        });
        assert!(made.await.is_ok());
        let here = std::thread::current().id();
        let made = whole(INLINE_BYTES_MAX as usize).translated(move |_| {
            assert_eq!(std::thread::current().id(), here);
            Ok(Bytes::new())
        });
        assert!(made.await.is_ok());
    }

    /// Zeros. After the first bytes it waits for other tasks.
    struct Slow<F>(u64, Option<F>);

    impl<F: FnOnce() -> bool> Read for Slow<F> {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            if self.0 > INLINE_BYTES_MAX
                && let Some(others_run) = self.1.take()
            {
                assert!(others_run(), "the thread is blocked");
            }
            let read = out
                .len()
                .min(4096)
                .min((2 * INLINE_BYTES_MAX - self.0) as usize);
            out[..read].fill(0);
            self.0 += read as u64;
            Ok(read)
        }
    }

    #[tokio::test]
    async fn large_bodies_are_decompressed_beside_other_tasks() {
        let slow = Slow(0, Some(waiting_for_others()));
        let whole = inflate(whole(10), slow, u64::MAX).await;
        let whole = whole.expect("it decompresses");
        assert_eq!(whole.bytes.len() as u64, 2 * INLINE_BYTES_MAX);
    }

    #[tokio::test]
    async fn few_large_bodies_are_decoded_at_a_time() {
        let decoders = Arc::new(Semaphore::new(1));
        let (tell, told) = mpsc::channel();
        let first = tokio::spawn(on_blocking_thread(Arc::clone(&decoders), move || {
            told.recv_timeout(PATIENCE)
        }));
        tokio::task::yield_now().await;
        let second = tokio::spawn(on_blocking_thread(Arc::clone(&decoders), || ()));
        tokio::task::yield_now().await;
        assert!(!second.is_finished());
        // Cancelling the waiting request does not release the permit.
        first.abort();
        assert_eq!(decoders.available_permits(), 0);
        tell.send(()).expect("it waits");
        assert_eq!(second.await.expect("no panic"), Ok(()));
    }

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
