//! The limits of HTTP/2 and HTTP/3 connections: converts `tune.h2.*` and `tune.quic.*` for the codecs
//! (manual §3.2).

use config::model::{Global, H2Side};
use http::h2::Limits;

/// The smallest window of a connection, bytes (RFC 9113 §6.9.2).
const WINDOW_BYTES_MIN: u32 = 65_535;
/// One stream's body may fill a sixth of a connection's `rxbuf`, so that other streams continue
/// while it is not read.
const STREAM_PART_OF_RXBUF: u32 = 6;
/// A stream whose body is read as fast as it comes may have this many of six parts, so that a
/// distant client is not limited by its window.
const GROWN_PARTS_OF_RXBUF: u32 = 5;

/// The limits of HTTP/2 connections.
#[derive(Clone, Copy, Debug)]
pub(crate) struct H2Limits {
    /// The limits for clients.
    pub clients: Limits,
    /// The same over QUIC.
    pub quic_clients: Limits,
    /// The limits for servers.
    pub servers: Limits,
    /// The same over QUIC.
    pub quic_servers: Limits,
    /// The number of streams after which a client's connection accepts no further ones.
    pub total_streams_max: Option<u32>,
    /// The same over QUIC.
    pub quic_total_streams_max: Option<u32>,
    /// The CPU usage of the thread, in percent, from which too many glitches end a connection; 0:
    /// always.
    pub glitches_kill_percent: u32,
}

impl H2Limits {
    /// The limits of the configuration; those of heads are common to all HTTP versions.
    pub fn new(global: &Global, heads: http::h1::Limits) -> H2Limits {
        let h2 = &global.h2;
        let buffer_bytes = u32::try_from(global.tune.bufsize_bytes).unwrap_or(u32::MAX);
        let common = Limits {
            head_bytes_max: heads.head_bytes_max as u32,
            fields_max: heads.fields_max as u32,
            // At most one buffer; the codec enforces the bounds of the protocol.
            frame_bytes_max: h2.frame_bytes_max.unwrap_or(u32::MAX).min(buffer_bytes),
            table_bytes: h2.table_bytes,
            extended_connect: h2.announces_websocket,
            ..Limits::default()
        };
        let clients = of_side(common, h2.clients.or(h2.both));
        let servers = of_side(common, h2.servers.or(h2.both));
        let tune = &global.quic;
        H2Limits {
            clients,
            quic_clients: Limits {
                streams_max: tune
                    .streams_max
                    .unwrap_or(quic::Limits::default().streams_max),
                glitches_max: tune.clients.glitches_max.unwrap_or(0),
                ..clients
            },
            quic_total_streams_max: tune.total_streams_max,
            servers,
            quic_servers: Limits {
                streams_max: quic::Limits::default().streams_max,
                glitches_max: tune.servers.glitches_max.unwrap_or(0),
                ..servers
            },
            total_streams_max: h2.total_streams_max,
            glitches_kill_percent: h2.glitches_kill_percent,
        }
    }
}

fn of_side(common: Limits, side: H2Side) -> Limits {
    let rxbuf_bytes = side.rxbuf_bytes.map(|bytes| bytes.max(WINDOW_BYTES_MIN));
    let connection_window_bytes = rxbuf_bytes.unwrap_or(common.connection_window_bytes);
    Limits {
        streams_max: side.streams_max.unwrap_or(common.streams_max),
        stream_window_bytes: side.window_bytes.unwrap_or(common.stream_window_bytes),
        body_window_bytes: connection_window_bytes / STREAM_PART_OF_RXBUF,
        grown_window_bytes: connection_window_bytes / STREAM_PART_OF_RXBUF * GROWN_PARTS_OF_RXBUF,
        connection_window_bytes,
        glitches_max: side.glitches_max.unwrap_or(0),
        ..common
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use config::model::H2Tune;

    fn limits(h2: H2Tune) -> H2Limits {
        let global = Global {
            h2,
            ..Global::default()
        };
        let heads = http::h1::Limits {
            head_bytes_max: 15_360,
            fields_max: 100,
        };
        H2Limits::new(&global, heads)
    }

    fn side(streams: u32, window: u32, rxbuf: u32, glitches: u32) -> H2Side {
        let some = |number| Some(number).filter(|number| *number > 0);
        H2Side {
            streams_max: some(streams),
            window_bytes: some(window),
            rxbuf_bytes: some(rxbuf),
            glitches_max: some(glitches),
        }
    }

    fn numbers(limits: Limits) -> [u32; 5] {
        [
            limits.streams_max,
            limits.stream_window_bytes,
            limits.body_window_bytes,
            limits.connection_window_bytes,
            limits.glitches_max,
        ]
    }

    #[test]
    fn without_words_the_defaults_hold() {
        let limits = limits(H2Tune::default());
        let default = Limits::default();
        assert_eq!(numbers(limits.clients), numbers(default));
        assert_eq!(numbers(limits.servers), numbers(default));
        assert_eq!(
            limits.clients.grown_window_bytes,
            default.grown_window_bytes
        );
        assert_eq!(limits.clients.frame_bytes_max, 16384);
        assert!(limits.clients.extended_connect && limits.total_streams_max.is_none());
    }

    #[test]
    fn a_side_goes_before_both() {
        let limits = limits(H2Tune {
            both: side(50, 20_000, 0, 0),
            clients: side(10, 0, 4 << 20, 0),
            servers: side(0, 30_000, 1000, 7),
            frame_bytes_max: Some(1 << 20),
            announces_websocket: false,
            ..H2Tune::default()
        });
        assert_eq!(
            numbers(limits.clients),
            [10, 20_000, (4 << 20) / 6, 4 << 20, 0]
        );
        assert_eq!(numbers(limits.servers), [50, 30_000, 65_535 / 6, 65_535, 7]);
        // No larger than a buffer.
        assert_eq!(limits.clients.frame_bytes_max, 16384);
        assert!(!limits.clients.extended_connect);
    }

    #[test]
    fn a_larger_buffer_opens_the_windows_of_streams() {
        let limits = limits(H2Tune {
            clients: side(0, 0, 4 << 20, 0),
            ..H2Tune::default()
        });
        assert_eq!(
            numbers(limits.clients),
            [100, 65_536, (4 << 20) / 6, 4 << 20, 0]
        );
    }
}
