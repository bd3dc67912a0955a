//! How much the proxy may hold for one peer, at any moment, whatever the peer does: computed from
//! the configuration.

use http::h3;
use spangate_proxy::{Engine, HeldBytes};

use super::driver::Pipe;

/// What is sent whole to a peer that does not read, beyond the message that filled its socket:
/// heads, interim responses and automatic frames.
pub const OWED_BYTES_MAX: usize = 16 << 10;
/// The payload of the largest record of TLS (RFC 8446 §5.1), and what surrounds it.
const RECORD_BYTES_MAX: usize = (16 << 10) + 256;
/// Records that are sealed at a time.
const SEALED_RECORDS_MAX: usize = 4;
/// The smallest limit of frames (RFC 9113 §6.5.2), and a frame's header.
pub const FRAME_BYTES_MAX: usize = (16 << 10) + 9;
/// The window of a connection before any credit (RFC 9113 §6.9.2).
const WINDOW_BYTES_MIN: usize = 65_535;

/// The numbers of the configuration that bound what is held for a peer.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// `tune.bufsize`.
    pub bufsize: usize,
    /// `tune.h2.fe.rxbuf` and `tune.h2.be.rxbuf`: payload that a peer may send before it is used.
    pub client_window: usize,
    pub server_window: usize,
    /// Connections are encrypted.
    pub tls: bool,
}

impl Bounds {
    /// What came from a peer and is not used: two looks of a driver at its connection, or two
    /// frames; over HTTP/2 the window of the connection; for each stream a buffer that rules see,
    /// one of what is kept to be sent again, and two heads, which may grow by rules to a buffer
    /// each.
    fn check_received(&self, held: &HeldBytes) -> Result<(), String> {
        let record = if self.tls { RECORD_BYTES_MAX } else { 0 };
        let look = self.bufsize + self.bufsize / 4;
        let frame = if held.is_h2 { FRAME_BYTES_MAX } else { 0 };
        let window = match (held.is_h2, held.is_client) {
            (false, _) => 0,
            (true, true) => self.client_window.max(WINDOW_BYTES_MIN),
            (true, false) => self.server_window.max(WINDOW_BYTES_MIN),
        };
        let buffers = held.streams.max(1) * self.bufsize;
        for (what, bytes, most) in [
            ("input", held.input, 2 * look.max(frame) + record),
            ("payload of HTTP/2", held.stream_input, window),
            ("payload for rules", held.payload, buffers),
            ("payload to be sent again", held.replay, buffers),
            ("heads", held.heads, 2 * buffers),
            ("output of QUIC", held.queued, self.queued(held.streams)),
        ] {
            if bytes > most {
                return Err(format!("{what}: more than {most} bytes are held: {held:?}"));
            }
        }
        Ok(())
    }

    /// What is owed to a peer: a buffer of each direction and of payload, what is sent whole, and
    /// the frame or the records that are made at a time.
    fn owed(&self) -> usize {
        let whole = if self.tls {
            SEALED_RECORDS_MAX * RECORD_BYTES_MAX
        } else {
            FRAME_BYTES_MAX
        };
        4 * self.bufsize + OWED_BYTES_MAX + whole
    }

    /// What streams of QUIC may have to send that the peer does not take: what the codec permits for
    /// payload ([`h3::CONNECTION_ROOM_BYTES`]), and what is sent whole.
    fn queued(&self, streams: usize) -> usize {
        h3::CONNECTION_ROOM_BYTES as usize + OWED_BYTES_MAX + streams * 2 * self.bufsize
    }

    /// Checks all peers of a worker. `held` is a scratch buffer.
    ///
    /// # Errors
    /// A peer for which more is held than may be.
    pub fn check(
        &self,
        engine: &Engine,
        pipes: &[Pipe],
        held: &mut Vec<HeldBytes>,
    ) -> Result<(), String> {
        let owed_max = self.owed();
        for (place, pipe) in pipes.iter().enumerate() {
            let owed = pipe.backlog.len();
            if owed > owed_max {
                return Err(format!("#{place} is owed {owed} bytes of {owed_max}"));
            }
        }
        engine.held_bytes(held);
        held.iter()
            .filter(|peer| peer.sock.is_some() || peer.is_quic)
            .try_for_each(|peer| self.check_received(peer))
    }
}
