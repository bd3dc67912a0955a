//! QUIC of the process: the secrets of its connections, and their limits.

use config::model::{Config, QuicBind, QuicCongestion};
use quic::{Congestion, Limits};

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
    /// Of lines without options of their own.
    limits: Limits,
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
        let keys = match previous {
            Some(previous) => keys.after(&previous.keys),
            None => keys,
        };
        let default = Limits::default();
        let mut limits = Limits {
            streams_max: tune.streams_max.unwrap_or(default.streams_max),
            idle: tune.idle.unwrap_or(default.idle),
            send_bytes: tune.window_bytes.map_or(default.send_bytes, u64::from),
            joins_datagrams: tune.joins_datagrams,
            ..default
        };
        if let Some(bytes) = tune.rxbuf_bytes {
            limits.connection_bytes = bytes;
            limits.stream_bytes = bytes;
        }
        if tune.rxbuf_bytes.is_some() || tune.data_percent.is_some() {
            let percent = tune.data_percent.unwrap_or(DATA_PERCENT);
            let bytes = u64::from(limits.connection_bytes) * u64::from(percent) / 100;
            // As in HAProxy, a whole number of buffers.
            let bufsize = config.global.tune.bufsize_bytes.max(1) as u64;
            let bytes = bytes.div_ceil(bufsize) * bufsize;
            limits.stream_bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        }
        QuicConfig {
            keys,
            limits,
            retry_threshold: tune
                .retry_threshold
                .map_or(RETRY_THRESHOLD, |number| number as usize),
            rejects_privileged: tune.rejects_privileged,
        }
    }

    /// The limits of a line.
    pub fn limits(&self, bind: &QuicBind) -> Limits {
        Limits {
            congestion: match bind.congestion {
                QuicCongestion::Cubic => Congestion::Cubic,
                QuicCongestion::NewReno => Congestion::NewReno,
                QuicCongestion::Bbr => Congestion::Bbr,
                QuicCongestion::None => Congestion::Fixed,
            },
            send_bytes: bind.window_bytes.map_or(self.limits.send_bytes, u64::from),
            ..self.limits
        }
    }
}
