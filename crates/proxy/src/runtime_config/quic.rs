//! QUIC of the process: the secrets of its connections, and their limits.

use config::model::{Config, QuicBind, QuicCongestion, QuicServer, QuicSide};
use quic::{Client, Congestion, Limits, Tokens};

use super::Process;

/// How many handshakes may be under way in a worker before clients must first show that they have
/// their address, by default (`tune.quic.fe.sec.retry-threshold`).
const RETRY_THRESHOLD: usize = 100;
/// Per cent of a connection's bytes that one stream may have, if `tune.quic.fe.stream.rxbuf` is set.
const DATA_PERCENT: u32 = 90;

/// See the module.
#[derive(Debug)]
pub(crate) struct QuicConfig {
    pub keys: quic::Keys,
    /// Of `bind` lines without options of their own.
    limits: Limits,
    /// Of `server` lines without options of their own.
    server_limits: Limits,
    /// What shows our address to servers that take early data.
    tokens: Tokens,
    /// See [`RETRY_THRESHOLD`].
    pub retry_threshold: usize,
    /// Clients with ports below 1024 get no answer.
    pub rejects_privileged: bool,
}

impl QuicConfig {
    /// `previous`: of the configuration before in this process.
    pub fn after(previous: Option<&QuicConfig>, config: &Config, process: &Process) -> QuicConfig {
        let tune = &config.global.quic;
        let keys = match &tune.secret {
            Some(secret) => quic::Keys::new(secret),
            None => quic::Keys::new(&process.secret),
        };
        let bufsize = config.global.tune.bufsize_bytes;
        let keys = match previous {
            Some(previous) => keys.after(&previous.keys),
            None => keys,
        };
        let default = Limits::default();
        QuicConfig {
            keys,
            limits: Limits {
                streams_max: tune.streams_max.unwrap_or(default.streams_max),
                ..limits_of(&tune.clients, bufsize)
            },
            server_limits: limits_of(&tune.servers, bufsize),
            tokens: previous.map_or_else(Tokens::default, |previous| previous.tokens.clone()),
            retry_threshold: tune
                .retry_threshold
                .map_or(RETRY_THRESHOLD, |number| number as usize),
            rejects_privileged: tune.rejects_privileged,
        }
    }

    /// The limits of a `bind` line.
    pub fn limits(&self, bind: &QuicBind) -> Limits {
        with_control(self.limits, bind.congestion, bind.window_bytes)
    }

    /// How connections to a server are made. `early`: the server takes early data.
    pub fn client(&self, server: &QuicServer, early: bool) -> Client {
        let (control, window_bytes) = (server.congestion, server.window_bytes);
        let client = Client::new(&with_control(self.server_limits, control, window_bytes));
        if early {
            client.with_tokens(&self.tokens)
        } else {
            client
        }
    }
}

/// The limits of one side. `bufsize`: the bytes of a buffer.
fn limits_of(side: &QuicSide, bufsize: usize) -> Limits {
    let default = Limits::default();
    let mut limits = Limits {
        idle: side.idle.unwrap_or(default.idle),
        send_bytes: side.window_bytes.map_or(default.send_bytes, u64::from),
        joins_datagrams: side.joins_datagrams,
        ..default
    };
    if let Some(bytes) = side.rxbuf_bytes {
        limits.connection_bytes = bytes;
        limits.stream_bytes = bytes;
    }
    if side.rxbuf_bytes.is_some() || side.data_percent.is_some() {
        let percent = side.data_percent.unwrap_or(DATA_PERCENT);
        let bytes = u64::from(limits.connection_bytes) * u64::from(percent) / 100;
        // As in HAProxy, a whole number of buffers.
        let bufsize = bufsize.max(1) as u64;
        let bytes = bytes.div_ceil(bufsize) * bufsize;
        limits.stream_bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
    }
    limits
}

/// The limits of a line with its congestion control.
fn with_control(limits: Limits, congestion: QuicCongestion, window_bytes: Option<u32>) -> Limits {
    Limits {
        congestion: match congestion {
            QuicCongestion::Cubic => Congestion::Cubic,
            QuicCongestion::NewReno => Congestion::NewReno,
            QuicCongestion::Bbr => Congestion::Bbr,
            QuicCongestion::None => Congestion::Fixed,
        },
        send_bytes: window_bytes.map_or(limits.send_bytes, u64::from),
        ..limits
    }
}
