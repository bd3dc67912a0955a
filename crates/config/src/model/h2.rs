//! `tune.h2.*`: limits of HTTP/2 connections (manual §3.2).

/// HTTP/2 in `global`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct H2Tune {
    /// Connections of clients (`tune.h2.fe.*`).
    pub clients: H2Side,
    /// Connections to servers (`tune.h2.be.*`).
    pub servers: H2Side,
    /// Values for a side without its own (`tune.h2.initial-window-size`,
    /// `tune.h2.max-concurrent-streams`).
    pub both: H2Side,
    /// `tune.h2.fe.max-total-streams`: a client's connection accepts no more streams after this
    /// many.
    pub total_streams_max: Option<u32>,
    /// `tune.h2.header-table-size`: the size of the HPACK table that peers may use.
    pub table_bytes: u32,
    /// `tune.h2.max-frame-size`; None: `tune.bufsize`.
    pub frame_bytes_max: Option<u32>,
    /// `tune.glitches.kill.cpu-usage`: the CPU usage of the thread, in percent, from which a
    /// connection ends when it reaches its threshold of glitches; 0: always.
    pub glitches_kill_percent: u32,
    /// Whether WebSocket (RFC 8441) is announced to clients;
    /// `h2-workaround-bogus-websocket-clients` disables it.
    pub announces_websocket: bool,
}

/// The limits of one side. None is the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct H2Side {
    /// `max-concurrent-streams`: most open streams at a time.
    pub streams_max: Option<u32>,
    /// `initial-window-size`: most bytes received on a stream before they are credited.
    pub window_bytes: Option<u32>,
    /// `rxbuf`: the same for all streams of a connection together.
    pub rxbuf_bytes: Option<u32>,
    /// `glitches-threshold`: a connection ends after this many glitches.
    pub glitches_max: Option<u32>,
}

impl H2Side {
    /// These values; those of `both` where this side has none.
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
            glitches_kill_percent: 0,
            announces_websocket: true,
        }
    }
}
