//! `tune.h2.*`: what connections of HTTP/2 may use (manual §3.2).

/// HTTP/2 in `global`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct H2Tune {
    /// Connections of clients (`tune.h2.fe.*`).
    pub clients: H2Side,
    /// Connections to servers (`tune.h2.be.*`).
    pub servers: H2Side,
    /// What holds where a side has no number of its own (`tune.h2.initial-window-size`, `tune.h2.max-concurrent-streams`).
    pub both: H2Side,
    /// `tune.h2.fe.max-total-streams`: streams after which a client's connection takes no more.
    pub total_streams_max: Option<u32>,
    /// `tune.h2.header-table-size`: the table of HPACK that peers may use.
    pub table_bytes: u32,
    /// `tune.h2.max-frame-size`; none is `tune.bufsize`.
    pub frame_bytes_max: Option<u32>,
    /// WebSocket (RFC 8441) is announced to clients, unless `h2-workaround-bogus-websocket-clients`.
    pub announces_websocket: bool,
}

/// One side of it. None is the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct H2Side {
    /// `max-concurrent-streams`: streams that are open at a time.
    pub streams_max: Option<u32>,
    /// `initial-window-size`: bytes that come on a stream before they are credited.
    pub window_bytes: Option<u32>,
    /// `rxbuf`: the same for all streams of a connection together.
    pub rxbuf_bytes: Option<u32>,
    /// `glitches-threshold`: glitches after which a connection ends.
    pub glitches_max: Option<u32>,
}

impl H2Side {
    /// The same, with the numbers of `both` where this has none.
    #[must_use]
    pub fn or(self, both: H2Side) -> H2Side {
        H2Side {
            streams_max: self.streams_max.or(both.streams_max),
            window_bytes: self.window_bytes.or(both.window_bytes),
            ..self
        }
    }
}

impl Default for H2Tune {
    fn default() -> Self {
        H2Tune {
            clients: H2Side::default(),
            servers: H2Side::default(),
            both: H2Side::default(),
            total_streams_max: None,
            table_bytes: 4096,
            frame_bytes_max: None,
            announces_websocket: true,
        }
    }
}
