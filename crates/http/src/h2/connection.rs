//! The state of a connection, and its life cycle: start, shutdown, failure.

mod control;
mod data;
mod messages;
mod read;
mod send;

use super::frame::{self, FRAME_BYTES_DEFAULT, PREFACE, WINDOW_DEFAULT, setting};
use super::hpack::{Decoder, Encoder};
use super::streams::{ResetStreams, Streams};
use super::{Code, Counts, Error, Limits, StreamId};
use read::Reading;

/// An HTTP/2 connection; see [`crate::h2`].
#[derive(Debug)]
pub struct Connection {
    role: Role,
    limits: Limits,
    reading: Reading,
    streams: Streams,
    /// The highest stream that was opened.
    last_stream: StreamId,
    reset_streams: ResetStreams,
    decoder: Decoder,
    encoder: Encoder,
    /// The fragments of a header block received so far.
    block: Vec<u8>,
    peer: Peer,
    /// How many bytes we may send on all streams together.
    send_window: i32,
    /// How many bytes the peer may send on all streams together.
    recv_window: i32,
    /// Bytes consumed and not credited yet.
    pub(super) due: u32,
    /// The caller was told that `send_window` permits no sending.
    is_blocked: bool,
    /// The peer has acknowledged our settings.
    has_ack: bool,
    goaway: Goaway,
    load: Load,
    pub(super) counts: Counts,
}

/// Which end of the connection we are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Server,
    Client,
}

/// The peer's settings (RFC 9113 §6.5.2).
#[derive(Clone, Copy, Debug)]
struct Peer {
    streams_max: u32,
    stream_window: u32,
    frame_bytes_max: u32,
    extended_connect: bool,
    /// The settings have arrived.
    are_known: bool,
}

/// The GOAWAY frames sent and received.
#[derive(Clone, Copy, Debug, Default)]
struct Goaway {
    /// The first step of a shutdown was sent.
    announced: bool,
    /// Streams above this are ignored.
    sent: Option<StreamId>,
    /// Streams above this are not processed by the peer.
    got: Option<StreamId>,
}

/// Activity of a peer that costs more than it is worth.
#[derive(Clone, Copy, Debug, Default)]
struct Load {
    /// See [`Limits::resets_max`].
    resets: u32,
    /// See [`Limits::idle_frames_max`].
    idle_frames: u32,
    glitches: u32,
    /// Small credits that answer payload which we sent: many peers credit each frame, on its stream
    /// and on the connection.
    credits_due: u32,
    /// See [`Connection::set_glitch_kill`].
    spares_glitches: bool,
    /// Our unanswered pings.
    pings: u32,
    /// When `resets` and `idle_frames` were last halved, monotonic milliseconds.
    halved_ms: u64,
}

/// The time in which the counts of resets and of idle frames halve, milliseconds.
const HALF_LIFE_MS: u64 = 1000;

impl Load {
    /// Halves the counts of resets and of idle frames for each [`HALF_LIFE_MS`] that has passed.
    #[inline]
    fn decay(&mut self, now_ms: u64) {
        let periods = now_ms.saturating_sub(self.halved_ms) / HALF_LIFE_MS;
        if periods > 0 {
            self.halved_ms += periods * HALF_LIFE_MS;
            let shift = u32::try_from(periods).unwrap_or(u32::MAX);
            self.resets = self.resets.checked_shr(shift).unwrap_or(0);
            self.idle_frames = self.idle_frames.checked_shr(shift).unwrap_or(0);
        }
    }
}

impl Connection {
    /// A server's connection; appends its settings to `out`.
    #[must_use]
    pub fn server(limits: Limits, out: &mut Vec<u8>) -> Connection {
        let connection = Connection::new(Role::Server, limits);
        let limits = &connection.limits;
        let mut settings = vec![(setting::MAX_CONCURRENT_STREAMS, limits.streams_max)];
        if limits.extended_connect {
            settings.push((setting::ENABLE_CONNECT_PROTOCOL, 1));
        }
        connection.start(settings, out);
        connection
    }

    /// A client's connection; appends the preface and its settings to `out`.
    #[must_use]
    pub fn client(limits: Limits, out: &mut Vec<u8>) -> Connection {
        let connection = Connection::new(Role::Client, limits);
        out.extend_from_slice(PREFACE);
        connection.start(vec![(setting::ENABLE_PUSH, 0)], out);
        connection
    }

    fn new(role: Role, limits: Limits) -> Connection {
        let limits = limits.legal();
        Connection {
            role,
            reading: match role {
                Role::Server => Reading::Preface(0),
                Role::Client => Reading::Frame,
            },
            streams: Streams::default(),
            last_stream: StreamId::CONNECTION,
            reset_streams: ResetStreams::default(),
            decoder: Decoder::new(),
            encoder: Encoder::new(limits.encoder_table_bytes_max.min(4096) as usize),
            block: Vec::new(),
            peer: Peer {
                streams_max: limits.streams_max,
                stream_window: WINDOW_DEFAULT,
                frame_bytes_max: FRAME_BYTES_DEFAULT,
                extended_connect: false,
                are_known: false,
            },
            send_window: WINDOW_DEFAULT as i32,
            recv_window: limits.connection_window_bytes as i32,
            due: 0,
            is_blocked: false,
            has_ack: false,
            goaway: Goaway::default(),
            load: Load::default(),
            counts: Counts::default(),
            limits,
        }
    }

    fn start(&self, mut settings: Vec<(u16, u32)>, out: &mut Vec<u8>) {
        let limits = &self.limits;
        for (id, value, default) in [
            (setting::HEADER_TABLE_SIZE, limits.table_bytes, 4096),
            (
                setting::INITIAL_WINDOW_SIZE,
                limits.stream_window_bytes,
                WINDOW_DEFAULT,
            ),
            (
                setting::MAX_FRAME_SIZE,
                limits.frame_bytes_max,
                FRAME_BYTES_DEFAULT,
            ),
            (
                setting::MAX_HEADER_LIST_SIZE,
                limits.head_bytes_max,
                u32::MAX,
            ),
        ] {
            if value != default {
                settings.push((id, value));
            }
        }
        frame::settings(&settings, out);
    }

    /// Opens the window of the whole connection. This waits for the peer's settings: some peers
    /// accept nothing between our settings and our acknowledgement of theirs.
    fn open_window(&self, out: &mut Vec<u8>) {
        let credit = self.limits.connection_window_bytes - WINDOW_DEFAULT;
        if credit > 0 {
            frame::window_update(StreamId::CONNECTION, credit, out);
        }
    }

    // ---- facts

    /// The limits that we set for the peer.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// How many streams are open.
    #[must_use]
    pub fn stream_count(&self) -> usize {
        self.streams.len()
    }

    /// No stream is open and no frame is partially read: the connection can be closed without loss.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.streams.is_empty() && matches!(self.reading, Reading::Frame)
    }

    /// Whether we, as a client, can send another request on this connection now.
    #[must_use]
    pub fn can_open(&self) -> bool {
        self.room_for_streams() > 0
    }

    /// How many more requests a client can send now.
    #[must_use]
    pub fn room_for_streams(&self) -> usize {
        let ends = self.goaway.got.is_some() || self.goaway.announced || self.has_failed();
        if self.role == Role::Server || ends || self.last_stream.0 >= StreamId::MAX.0 - 2 {
            return 0;
        }
        let most = self.peer.streams_max.min(self.limits.streams_max) as usize;
        most.saturating_sub(self.streams.len())
    }

    /// The peer supports the extended CONNECT (RFC 8441 §3). A client knows this after
    /// [`super::Event::Settings`].
    #[must_use]
    pub fn takes_extended_connect(&self) -> bool {
        self.peer.extended_connect
    }

    /// The peer's settings have arrived.
    #[must_use]
    pub fn has_settings(&self) -> bool {
        self.peer.are_known
    }

    /// The peer announced the end of the connection.
    #[must_use]
    pub fn got_goaway(&self) -> bool {
        self.goaway.got.is_some()
    }

    /// The number of the peer's glitches so far (`fc_glitches`, `bc_glitches`).
    #[must_use]
    pub fn glitches(&self) -> u32 {
        self.load.glitches
    }

    /// Sets whether the connection ends when it has reached [`Limits::glitches_max`]. If this is
    /// never called, it ends (`tune.glitches.kill.cpu-usage`).
    pub fn set_glitch_kill(&mut self, kills: bool) {
        self.load.spares_glitches = !kills;
    }

    /// The caller's name for a stream, if the stream is open.
    #[must_use]
    pub fn token(&self, stream: StreamId) -> Option<u32> {
        self.streams.get(stream).map(|stream| stream.token)
    }

    /// Names a stream.
    pub fn set_token(&mut self, stream: StreamId, token: u32) {
        if let Some(stream) = self.streams.get_mut(stream) {
            stream.token = token;
        }
    }

    // ---- the end

    /// The first step of a graceful shutdown (RFC 9113 §6.8): tells the peer to open no more
    /// streams. Streams already in flight are still accepted. After a round trip, or once the
    /// connection is idle, [`Connection::goaway`] is the second step.
    pub fn shutdown(&mut self, out: &mut Vec<u8>) {
        if !std::mem::replace(&mut self.goaway.announced, true) {
            self.counts.sent_goaways += 1;
            frame::goaway(StreamId::MAX, Code::NO_ERROR, out);
        }
    }

    /// Tells the peer that streams above those opened so far are ignored. Open streams continue.
    pub fn goaway(&mut self, code: Code, out: &mut Vec<u8>) {
        let last = self.last_of_peer();
        self.goaway.announced = true;
        if self.goaway.sent.is_none() && !self.has_failed() {
            self.goaway.sent = Some(last);
            self.counts.sent_goaways += 1;
            frame::goaway(last, code, out);
        }
    }

    /// Frees memory that an idle connection does not need; does nothing while streams are open.
    pub fn release_spare(&mut self) {
        if !self.is_idle() {
            return;
        }
        self.streams.release_spare();
        self.decoder.release_spare();
        self.encoder.release_spare();
        self.block = Vec::new();
    }

    /// Ends the connection because of an error of the peer.
    fn fail(&mut self, error: Error, out: &mut Vec<u8>) -> Error {
        if !self.has_failed() {
            self.counts.connection_errors += 1;
            self.counts.sent_goaways += 1;
            frame::goaway(self.last_of_peer(), error.code, out);
            self.reading = Reading::Failed(error);
        }
        error
    }

    fn has_failed(&self) -> bool {
        matches!(self.reading, Reading::Failed(_))
    }

    /// The highest stream that the peer opened; for a client 0, because servers open none.
    fn last_of_peer(&self) -> StreamId {
        match self.role {
            Role::Server => self.last_stream,
            Role::Client => StreamId::CONNECTION,
        }
    }

    /// Counts a glitch.
    fn glitch(&mut self) -> Result<(), Error> {
        self.load.glitches = self.load.glitches.saturating_add(1);
        let is_limited = self.limits.glitches_max > 0 && !self.load.spares_glitches;
        if is_limited && self.load.glitches >= self.limits.glitches_max {
            return Err(Error::new(Code::ENHANCE_YOUR_CALM, "too many glitches"));
        }
        Ok(())
    }

    /// Counts a frame that does no work.
    fn idle_frame(&mut self) -> Result<(), Error> {
        self.load.idle_frames += 1;
        if self.load.idle_frames > self.limits.idle_frames_max {
            return Err(Error::new(
                Code::ENHANCE_YOUR_CALM,
                "too many frames that do no work",
            ));
        }
        Ok(())
    }

    /// Counts a stream that the peer reset.
    fn peer_reset(&mut self) -> Result<(), Error> {
        self.load.resets += 1;
        if self.load.resets > self.limits.resets_max {
            return Err(Error::new(
                Code::ENHANCE_YOUR_CALM,
                "too many streams reset",
            ));
        }
        Ok(())
    }

    /// Counts a frame that did work.
    #[inline]
    fn worked(&mut self) {
        self.load.idle_frames = self.load.idle_frames.saturating_sub(1);
    }

    /// Forgets a stream if both sides have ended.
    fn close_if_over(&mut self, id: StreamId) {
        let is_over = |flags: &super::streams::StreamFlags| flags.recv_end && flags.send_end;
        if self
            .streams
            .get(id)
            .is_some_and(|stream| is_over(&stream.flags))
        {
            self.streams.remove(id);
            self.load.resets = self.load.resets.saturating_sub(1);
        }
    }
}
