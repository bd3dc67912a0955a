//! Receiving.
//!
//! A read takes as many bytes as the engine promises to take whole. If a read fills that size, more
//! data is likely to follow: from then on the socket is read in bulk. Bulk data is peeked at first
//! (`MSG_PEEK`), and only as much is taken out of the kernel as the engine has forwarded. So a
//! large transfer is copied in few large pieces, and the rest of a stalled one waits in the kernel.

use std::os::fd::AsRawFd;

use super::{EpollDriver, Sock};
use crate::boundary::{Close, Engine, SockId};
use crate::sys::{self, Io};

/// The size of a thread's receive buffer. A larger buffer needs fewer system calls for large
/// bodies, up to the size of the second level cache; untouched pages cost nothing.
pub const RECEIVE_BUFFER_BYTES: usize = 256 << 10;
/// The size of the first peek at bulk data; it doubles as long as all data is taken.
const WINDOW_BYTES_MIN: usize = 64 << 10;
/// Bulk data that is read from one socket before others get their turn.
const BULK_BYTES_A_TURN: usize = 256 << 10;

impl EpollDriver {
    /// Reads the bytes that have arrived; of bulk data, those of one turn. Returns the number of
    /// bytes that were read.
    pub(super) fn read<E: Engine<Self>>(
        &mut self,
        engine: &mut E,
        sock: SockId,
        buffer: &mut [u8],
    ) -> usize {
        let mut all = 0;
        while all < BULK_BYTES_A_TURN {
            let read_bytes = self.read_bytes;
            let Some(entry) = self.socks.get_mut(sock) else {
                return all;
            };
            if entry.paused || entry.ended {
                return all;
            }
            let was_bulk = entry.is_bulk();
            // With an end or an error behind it, a short read does not mean drained.
            let to_end = entry.hung_up || entry.broken;
            let (limit, peeks) = entry.next_read(read_bytes);
            let read = if peeks {
                sys::peek(entry.fd.as_raw_fd(), &mut buffer[..limit])
            } else {
                sys::recv(entry.fd.as_raw_fd(), &mut buffer[..limit])
            };
            match read {
                Io::Done(0) if entry.broken => {
                    self.die(engine, sock, Close::Reset);
                    return all;
                }
                Io::Done(0) => {
                    entry.unread = false;
                    entry.ended = true;
                    engine.on_eof(self, sock);
                    return all;
                }
                Io::Done(bytes) => {
                    all += bytes;
                    let drained = bytes < limit && !to_end;
                    // Peeked bytes are still in the kernel: a close discards them.
                    entry.unread = peeks || !drained;
                    entry.was_full = bytes == limit && (peeks || bytes == read_bytes);
                    let took = engine.on_data(self, sock, &mut buffer[..bytes]);
                    let Some(entry) = self.socks.get_mut(sock) else {
                        return all;
                    };
                    entry.held = took.held as u32;
                    if peeks {
                        entry.look(bytes, took.bytes, read_bytes);
                        sys::discard_input(entry.fd.as_raw_fd(), took.bytes);
                        entry.unread = !drained;
                    } else {
                        debug_assert_eq!(took.bytes, bytes, "a plain read is taken whole");
                        if bytes == read_bytes && entry.peeks {
                            entry.window = WINDOW_BYTES_MIN as u32;
                        }
                    }
                    if took.bytes < bytes {
                        entry.unread = true;
                        entry.was_full = true;
                        // The engine may have resumed the socket within this call.
                        if !entry.paused {
                            self.make_ready(sock);
                        }
                        return all;
                    }
                    if drained {
                        return all;
                    }
                    // Bulk data begins: it waits until the small messages of this round are served.
                    if entry.is_bulk() && !was_bulk {
                        break;
                    }
                }
                // A broken connection without unread data is dead.
                Io::WouldBlock if entry.broken => {
                    self.die(engine, sock, Close::Reset);
                    return all;
                }
                Io::WouldBlock => {
                    entry.unread = false;
                    return all;
                }
                Io::Failed(_) => {
                    self.die(engine, sock, Close::Reset);
                    return all;
                }
            }
        }
        self.make_ready(sock);
        all
    }
}

impl Sock {
    /// Whether its data is bulk: a transfer is under way.
    #[inline]
    pub(super) fn is_bulk(&self) -> bool {
        self.was_full || self.window > 0
    }

    /// The most bytes of the next read, and whether it only peeks.
    fn next_read(&self, read_bytes: usize) -> (usize, bool) {
        match self.window {
            0 => (read_bytes.saturating_sub(self.held as usize).max(1), false),
            window => (window as usize, true),
        }
    }

    /// Sets the size of the next peek from how much bulk data the engine took.
    fn look(&mut self, bytes: usize, taken: usize, read_bytes: usize) {
        let window = self.window as usize;
        self.window = if bytes < read_bytes {
            0
        } else if taken < bytes {
            taken
                .next_power_of_two()
                .clamp(WINDOW_BYTES_MIN, RECEIVE_BUFFER_BYTES) as u32
        } else if bytes == window {
            (2 * window).min(RECEIVE_BUFFER_BYTES) as u32
        } else {
            window as u32
        };
    }
}
