//! The state of a connection, and its life cycle: start, shutdown, failure.

mod control;
mod facts;
mod lifetimes;
mod messages;
mod read;
mod requests;
mod send;
mod unidirectional;
mod waiting;

use std::collections::VecDeque;

use super::code::Failure;
use super::frame::{self, setting, stream_type};
use super::load::Load;
use super::qpack::{BLOCKED_STREAMS_MAX, Decoder, Encoder};
use super::streams::{Opened, Streams};
use super::{Code, Counts, Error, Event, Limits, StreamId, record, varint};
use read::Reading;
pub use send::DATA_HEAD_BYTES_MAX;
use unidirectional::Unidirectional;

/// How many bytes that we send on a stream QUIC takes before it has passed some on.
pub const STREAM_ROOM_BYTES: u64 = 64 << 10;
/// The same for all streams together.
pub const CONNECTION_ROOM_BYTES: u64 = 512 << 10;
/// The most bytes that a connection keeps of field sections that are not complete, and behind
/// sections that wait. A stream that needs more is refused.
pub const BUFFERED_BYTES_MAX: usize = 1 << 20;

/// An HTTP/3 connection; see [`crate::h3`].
#[derive(Debug)]
pub struct Connection {
    role: Role,
    limits: Limits,
    reading: Reading,
    /// Bytes of the current record that are used and not for the caller: QUIC is told at its end.
    used: u64,
    streams: Streams,
    /// Streams of requests whose head has not arrived.
    headless: usize,
    opened: Opened,
    /// The peer's unidirectional streams.
    unidirectional: Unidirectional,
    decoder: Decoder,
    encoder: Encoder,
    /// A field section that is being written, and what comes before it; kept for its memory.
    section: Vec<u8>,
    lead: Vec<u8>,
    /// The streams whose sections wait for instructions, with how many insertions they need, in the
    /// order in which they came.
    waiting: Vec<(u64, StreamId)>,
    /// Bytes that count for [`BUFFERED_BYTES_MAX`].
    buffered: usize,
    /// Events that follow others.
    later: VecDeque<Event>,
    /// The connection fails once all that came before is told.
    failure: Option<Failure>,
    peer: Peer,
    /// How many bytes may be sent on all streams together; negative if something had to be sent
    /// anyway.
    room: i64,
    /// The caller was told that `room` permits no sending.
    is_blocked: bool,
    /// How many requests a client may send in total.
    requests_max: u64,
    goaway: Goaway,
    load: Load,
    counts: Counts,
}

/// Which end of the connection we are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Server,
    Client,
}

impl Role {
    /// The number of the first unidirectional stream that this end opens.
    fn first_stream(self) -> u64 {
        match self {
            Role::Client => 2,
            Role::Server => 3,
        }
    }
}

/// What we know of the peer.
#[derive(Clone, Copy, Debug, Default)]
struct Peer {
    /// The settings have arrived.
    are_known: bool,
    extended_connect: bool,
    /// The highest push that a client permits.
    push_max: Option<u64>,
}

/// The GOAWAY frames sent and received.
#[derive(Clone, Copy, Debug, Default)]
struct Goaway {
    /// The first step of a shutdown was sent.
    announced: bool,
    /// Requests from this number on are rejected.
    sent: Option<u64>,
    /// The identifier that the peer sent: requests from this stream on are not processed, or pushes
    /// from this number on are not accepted.
    got: Option<u64>,
}

/// QUIC's number of the stream of a request.
fn quic(stream: StreamId) -> u64 {
    u64::from(stream.0) * 4
}

impl Connection {
    /// A server's connection; appends records that open our streams and carry our settings to `out`.
    #[must_use]
    pub fn server(limits: Limits, out: &mut Vec<u8>) -> Connection {
        Connection::new(Role::Server, limits, out)
    }

    /// A client's connection; appends records that open our streams and carry our settings to `out`.
    #[must_use]
    pub fn client(limits: Limits, out: &mut Vec<u8>) -> Connection {
        Connection::new(Role::Client, limits, out)
    }

    fn new(role: Role, limits: Limits, out: &mut Vec<u8>) -> Connection {
        let limits = limits.legal();
        let mut connection = Connection {
            role,
            reading: Reading::Record,
            used: 0,
            streams: Streams::default(),
            headless: 0,
            opened: Opened::default(),
            unidirectional: Unidirectional::default(),
            decoder: Decoder::new(limits.table_bytes as usize),
            encoder: Encoder::new(),
            section: Vec::new(),
            lead: Vec::new(),
            waiting: Vec::new(),
            buffered: 0,
            later: VecDeque::new(),
            failure: None,
            peer: Peer::default(),
            room: CONNECTION_ROOM_BYTES as i64,
            is_blocked: false,
            requests_max: 0,
            goaway: Goaway::default(),
            load: Load::default(),
            counts: Counts::default(),
            limits,
        };
        connection.start(out);
        connection
    }

    /// Opens our unidirectional streams (RFC 9114 §6.2, RFC 9204 §4.2).
    fn start(&mut self, out: &mut Vec<u8>) {
        let limits = &self.limits;
        let mut settings = vec![
            (
                setting::MAX_FIELD_SECTION_SIZE,
                u64::from(limits.head_bytes_max),
            ),
            (setting::GREASE, 0),
        ];
        if limits.table_bytes > 0 {
            settings.push((
                setting::QPACK_MAX_TABLE_CAPACITY,
                u64::from(limits.table_bytes),
            ));
            settings.push((setting::QPACK_BLOCKED_STREAMS, BLOCKED_STREAMS_MAX as u64));
        }
        if self.role == Role::Server && limits.extended_connect {
            settings.push((setting::ENABLE_CONNECT_PROTOCOL, 1));
        }
        let mut control = Vec::new();
        varint::write(stream_type::CONTROL, &mut control);
        frame::settings(&settings, &mut control);
        self.send_control(&control, out);
        self.send_bytes(self.encoder_stream(), &[stream_type::ENCODER as u8], out);
        self.send_bytes(self.decoder_stream(), &[stream_type::DECODER as u8], out);
    }

    fn control_stream(&self) -> u64 {
        self.role.first_stream()
    }

    fn encoder_stream(&self) -> u64 {
        self.role.first_stream() + 4
    }

    fn decoder_stream(&self) -> u64 {
        self.role.first_stream() + 8
    }

    // ---- the end

    /// The first step of a graceful shutdown (RFC 9114 §5.2): tells the peer to open no more
    /// streams. Streams already in flight are still accepted. After a round trip, or once the
    /// connection is idle, [`Connection::goaway`] is the second step.
    pub fn shutdown(&mut self, out: &mut Vec<u8>) {
        if !std::mem::replace(&mut self.goaway.announced, true) && !self.has_failed() {
            // The highest number of a client's request; a client's GOAWAY is about pushes, of which
            // there are none.
            let most = match self.role {
                Role::Server => varint::MAX - 3,
                Role::Client => 0,
            };
            self.send_goaway(most, out);
        }
    }

    /// Tells the peer that requests behind those opened so far are ignored. Open streams continue.
    /// HTTP/3 has no code in GOAWAY: `_code` is not sent.
    pub fn goaway(&mut self, _code: Code, out: &mut Vec<u8>) {
        self.goaway.announced = true;
        if self.goaway.sent.is_none() && !self.has_failed() {
            let next = match self.role {
                Role::Server => self.opened.next,
                Role::Client => 0,
            };
            self.goaway.sent = Some(next);
            self.send_goaway(next * 4, out);
        }
    }

    fn send_goaway(&mut self, identifier: u64, out: &mut Vec<u8>) {
        self.counts.sent_goaways += 1;
        let mut frame = Vec::new();
        frame::with_number(frame::kind::GOAWAY, identifier, &mut frame);
        self.send_control(&frame, out);
    }

    /// Frees memory that an idle connection does not need; does nothing while streams are open.
    pub fn release_spare(&mut self) {
        if !self.is_idle() {
            return;
        }
        self.streams.release_spare();
        self.decoder.release_spare();
        self.encoder.release_spare();
        self.unidirectional.release_spare();
        self.section = Vec::new();
        self.lead = Vec::new();
        self.later = VecDeque::new();
    }

    /// Ends the connection because of an error of the peer.
    fn fail(&mut self, failure: Failure, out: &mut Vec<u8>) -> Error {
        let error = failure.error();
        if !self.has_failed() {
            self.counts.connection_errors += 1;
            record::close(failure.code, failure.message, out);
            self.reading = Reading::Failed(error);
        }
        error
    }

    fn has_failed(&self) -> bool {
        matches!(self.reading, Reading::Failed(_))
    }

    /// Counts a glitch.
    fn glitch(&mut self) -> Result<(), Failure> {
        self.load.glitch(&self.limits)
    }

    /// Counts a frame that does no work.
    fn idle_frame(&mut self) -> Result<(), Failure> {
        self.load.idle_frame(&self.limits)
    }

    /// Counts a stream that the peer reset.
    fn peer_reset(&mut self) -> Result<(), Failure> {
        self.load.peer_reset(&self.limits)
    }
}
