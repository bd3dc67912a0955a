//! Receiving.
//!
//! A read takes as many bytes as the engine promises to take whole. If a read fills that size, more data is likely to follow:
//! from then on the socket is read in bulk. Bulk data is peeked at first (`MSG_PEEK`), and only as much is taken out of the
//! kernel as the engine has forwarded. So a large transfer is copied in few large pieces, and the rest of a stalled one waits in
//! the kernel.

use std::os::fd::AsRawFd;

use super::{EpollDriver, Sock};
use crate::boundary::{Close, Engine, SockId};
use crate::sys::{self, Io};

/// The size of a thread's receive buffer. A larger buffer needs fewer system calls for large bodies, up to the size of the second
/// level cache; untouched pages cost nothing.
pub const RECEIVE_BUFFER_BYTES: usize = 256 << 10;
/// The size of the first peek at bulk data; it doubles as long as all data is taken.
const WINDOW_BYTES_MIN: usize = 64 << 10;
/// Full reads of one socket before others get their turn.
const READS_A_TURN_MAX: u32 = 4;

impl EpollDriver {
    /// Reads the bytes that have arrived. With `to_end`, a short read does not mean drained: the peer's end follows.
    pub(super) fn read<E: Engine<Self>>(
        &mut self,
        engine: &mut E,
        sock: SockId,
        buffer: &mut [u8],
        to_end: bool,
    ) {
        for _ in 0..READS_A_TURN_MAX {
            let read_bytes = self.read_bytes;
            let Some(entry) = self.socks.get_mut(sock) else {
                return;
            };
            if entry.paused || entry.ended {
                return;
            }
            let (limit, peeks) = entry.next_read(read_bytes);
            let read = match peeks {
                false => sys::recv(entry.fd.as_raw_fd(), &mut buffer[..limit]),
                true => sys::peek(entry.fd.as_raw_fd(), &mut buffer[..limit]),
            };
            match read {
                Io::Done(0) if entry.broken => return self.die(engine, sock, Close::Reset),
                Io::Done(0) => {
                    entry.unread = false;
                    entry.ended = true;
                    engine.on_eof(self, sock);
                    return;
                }
                Io::Done(bytes) => {
                    let drained = bytes < limit && !to_end;
                    if drained {
                        entry.unread = false;
                    }
                    let took = engine.on_data(self, sock, &mut buffer[..bytes]);
                    let Some(entry) = self.socks.get_mut(sock) else {
                        return;
                    };
                    entry.held = took.held as u32;
                    if peeks {
                        entry.look(bytes, took.bytes, read_bytes);
                        sys::discard_input(entry.fd.as_raw_fd(), took.bytes);
                    } else {
                        debug_assert_eq!(took.bytes, bytes, "a plain read is taken whole");
                        if bytes == read_bytes && entry.peeks {
                            entry.window = WINDOW_BYTES_MIN as u32;
                        }
                    }
                    if took.bytes < bytes {
                        entry.unread = true;
                        // The engine may have resumed the socket within this call.
                        if !entry.paused {
                            self.make_ready(sock);
                        }
                        return;
                    }
                    if drained {
                        return;
                    }
                }
                // A broken connection without unread data is dead.
                Io::WouldBlock if entry.broken => return self.die(engine, sock, Close::Reset),
                Io::WouldBlock => {
                    entry.unread = false;
                    return;
                }
                Io::Failed(_) => return self.die(engine, sock, Close::Reset),
            }
        }
        self.make_ready(sock);
    }
}

impl Sock {
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
