//! The limits of a peer.

/// Limits of a connection, and its settings. Fixed for the life of the connection.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of the fields of a head or a trailer section, each as `name: value CRLF`. A larger
    /// request is refused (`tune.bufsize
    /// - tune.maxrewrite`). Announced as `SETTINGS_MAX_HEADER_LIST_SIZE`.
    pub head_bytes_max: u32,
    /// Fields of a head or a trailer section, without pseudo-header fields (`tune.http.maxhdr`).
    pub fields_max: u32,
    /// Compressed bytes of a header block in HEADERS and CONTINUATION frames together. A larger
    /// block ends the connection.
    pub block_bytes_max: u32,
    /// CONTINUATION frames of a header block. More of them end the connection.
    pub continuations_max: u32,
    /// Streams that a client may have open at a time (`tune.h2.fe.max-concurrent-streams`), and
    /// that we open to a server that announces no limit (`tune.h2.be.max-concurrent-streams`). A
    /// lower limit of the server takes precedence.
    pub streams_max: u32,
    /// Bytes that a peer may send on a stream before it is credited
    /// (`tune.h2.fe.initial-window-size`). At most 2^31 - 1.
    pub stream_window_bytes: u32,
    /// The stream's window once a body begins that may be larger than `stream_window_bytes`; no
    /// effect if it is not above that.
    pub body_window_bytes: u32,
    /// How far the window of a stream grows while its payload is consumed as fast as the window
    /// permits.
    pub grown_window_bytes: u32,
    /// The window of the whole connection; at least 65535, at most 2^31 - 1.
    pub connection_window_bytes: u32,
    /// The largest frame that we accept (`tune.h2.max-frame-size`), 16384 to 16777215.
    pub frame_bytes_max: u32,
    /// The dynamic table of the peer's encoder (`tune.h2.header-table-size`), up to 65536.
    pub table_bytes: u32,
    /// The largest dynamic table of our encoder; a lower setting of the peer takes precedence.
    pub encoder_table_bytes_max: u32,
    /// Streams that the peer reset, minus those that ended well. More of them end the connection
    /// (CVE-2023-44487).
    pub resets_max: u32,
    /// Frames that do no work (PING, SETTINGS, PRIORITY, empty DATA, small WINDOW_UPDATE), minus
    /// those that do. More of them end the connection.
    pub idle_frames_max: u32,
    /// Glitches (legal or at least harmless oddities) over the life of a connection
    /// (`tune.h2.fe.glitches-threshold`). Reaching this number ends the connection, unless
    /// [`Connection::set_glitch_kill`](super::Connection::set_glitch_kill) forbids it; 0 for no
    /// limit.
    pub glitches_max: u32,
    /// A server supports the extended CONNECT of RFC 8441 (WebSocket).
    pub extended_connect: bool,
    /// A server answers a malformed request with 400 in addition to resetting it. A request with
    /// too large a head is always answered, with 431.
    pub answers_malformed: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            head_bytes_max: 16384 - 1024,
            fields_max: 100,
            block_bytes_max: 32 << 10,
            continuations_max: 32,
            streams_max: 100,
            stream_window_bytes: 65536,
            body_window_bytes: 256 << 10,
            grown_window_bytes: 1280 << 10,
            connection_window_bytes: 1536 << 10,
            frame_bytes_max: 16384,
            table_bytes: 4096,
            encoder_table_bytes_max: 4096,
            resets_max: 500,
            idle_frames_max: 1000,
            glitches_max: 0,
            extended_connect: true,
            answers_malformed: false,
        }
    }
}

impl Limits {
    /// A copy with values that RFC 9113 does not allow corrected.
    pub(crate) fn legal(self) -> Limits {
        Limits {
            stream_window_bytes: self.stream_window_bytes.min(WINDOW_MAX),
            body_window_bytes: self.body_window_bytes.min(WINDOW_MAX),
            grown_window_bytes: self.grown_window_bytes.min(WINDOW_MAX),
            connection_window_bytes: self
                .connection_window_bytes
                .clamp(super::frame::WINDOW_DEFAULT, WINDOW_MAX),
            frame_bytes_max: self.frame_bytes_max.clamp(
                super::frame::FRAME_BYTES_DEFAULT,
                super::frame::FRAME_BYTES_MAX,
            ),
            table_bytes: self.table_bytes.min(1 << 16),
            encoder_table_bytes_max: self.encoder_table_bytes_max.min(1 << 16),
            ..self
        }
    }
}

/// The largest window (RFC 9113 §6.9.1).
pub(super) const WINDOW_MAX: u32 = (1 << 31) - 1;
