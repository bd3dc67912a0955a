//! Log targets: where finished messages go without ever blocking the data path.
//!
//! Datagrams are batched and sent at the end of a round, in one system call for many. What goes to a file
//! descriptor or over TCP is handed to a writer thread, since a pipe, a terminal or a server may block. Both are bounded; what does
//! not fit is dropped and counted.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use crate::log_stream::LogStream;
use crate::{Addr, sys};

/// How long a writer waits before it tries a server again.
const RETRY_TIME: Duration = Duration::from_secs(1);
/// Bytes that may wait for one descriptor or server.
pub const WRITER_PENDING_BYTES_MAX: usize = 1 << 20;
/// Bytes of datagrams gathered before they are sent within a round.
const BATCH_BYTES_MAX: usize = 64 << 10;

/// One worker's end of a log target.
#[derive(Debug)]
pub enum LogSink {
    /// A UDP or UNIX datagram socket.
    Datagram(DatagramSink),
    /// See [`WriteTo`].
    Written(Arc<Writer>, Vec<u8>),
}

/// Messages dropped since the start of the process, all targets together.
#[derive(Debug, Default)]
pub struct Dropped(AtomicU64);

impl Dropped {
    /// How many so far.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn add(&self, messages: u64) {
        self.0.fetch_add(messages, Ordering::Relaxed);
    }
}

impl LogSink {
    /// Takes one message.
    pub fn push(&mut self, message: &[u8], dropped: &Dropped) {
        match self {
            LogSink::Datagram(sink) => sink.push(message, dropped),
            LogSink::Written(_, batch) => batch.extend_from_slice(message),
        }
    }

    /// Passes on what the round gathered.
    pub fn flush(&mut self, dropped: &Dropped) {
        match self {
            LogSink::Datagram(sink) => sink.flush(dropped),
            LogSink::Written(writer, batch) => {
                if !batch.is_empty() {
                    writer.push(batch, dropped);
                    batch.clear();
                }
            }
        }
    }
}

/// Datagrams gathered for one address.
#[derive(Debug)]
pub struct DatagramSink {
    fd: OwnedFd,
    to: Addr,
    bytes: Vec<u8>,
    ends: Vec<u32>,
    batch: sys::DatagramBatch,
}

impl DatagramSink {
    /// Opens an unconnected socket, so that a target which is down now may come later.
    ///
    /// # Errors
    /// `errno` of `socket`.
    pub fn open(to: &Addr) -> io::Result<Self> {
        Ok(DatagramSink {
            fd: sys::datagram_socket(to)?,
            to: to.clone(),
            bytes: Vec::new(),
            ends: Vec::new(),
            batch: sys::DatagramBatch::default(),
        })
    }

    fn push(&mut self, message: &[u8], dropped: &Dropped) {
        self.bytes.extend_from_slice(message);
        self.ends.push(self.bytes.len() as u32);
        if self.bytes.len() >= BATCH_BYTES_MAX {
            self.flush(dropped);
        }
    }

    fn flush(&mut self, dropped: &Dropped) {
        if self.ends.is_empty() {
            return;
        }
        let (bytes, ends) = (&self.bytes, &self.ends);
        let start = |index: usize| {
            if index == 0 {
                0
            } else {
                ends[index - 1] as usize
            }
        };
        let datagrams = (0..ends.len()).map(|index| &bytes[start(index)..ends[index] as usize]);
        let sent = sys::send_datagrams(self.fd.as_raw_fd(), &self.to, datagrams, &mut self.batch);
        dropped.add((self.ends.len() - sent) as u64);
        self.bytes.clear();
        self.ends.clear();
    }
}

/// What a writer thread writes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WriteTo {
    /// A descriptor of this process; each message ends in a newline.
    Fd(RawFd),
    /// A server over TCP, likewise.
    Tcp(SocketAddr),
}

/// A writer thread and what waits for it; shared by the workers.
#[derive(Debug)]
pub struct Writer {
    to: WriteTo,
    pending: Mutex<Pending>,
    wake: Condvar,
}

#[derive(Debug, Default)]
struct Pending {
    bytes: Vec<u8>,
    writing: bool,
    closed: bool,
}

impl Writer {
    /// Starts the thread; it ends at [`Writer::close`].
    ///
    /// # Errors
    /// No thread could be made.
    pub fn start(to: WriteTo) -> io::Result<Arc<Self>> {
        let writer = Arc::new(Writer {
            to,
            pending: Mutex::default(),
            wake: Condvar::new(),
        });
        let own = Arc::clone(&writer);
        std::thread::Builder::new()
            .name(match to {
                WriteTo::Fd(fd) => format!("log-fd{fd}"),
                WriteTo::Tcp(_) => "log-tcp".to_owned(),
            })
            .spawn(move || own.run())?;
        Ok(writer)
    }

    /// Takes whole messages, each ending in a newline, or drops and counts them.
    pub fn push(&self, messages: &[u8], dropped: &Dropped) {
        let Ok(mut pending) = self.pending.lock() else {
            return;
        };
        if pending.bytes.len() + messages.len() > WRITER_PENDING_BYTES_MAX {
            dropped.add(messages.iter().filter(|byte| **byte == b'\n').count() as u64);
            return;
        }
        let idle = pending.bytes.is_empty() && !pending.writing;
        pending.bytes.extend_from_slice(messages);
        drop(pending);
        if idle {
            self.wake.notify_all();
        }
    }

    /// Waits for what is pending to be written, at most a second, and ends the thread.
    pub fn close(&self) {
        let Ok(mut pending) = self.pending.lock() else {
            return;
        };
        pending.closed = true;
        self.wake.notify_all();
        let limit = Duration::from_secs(1);
        let waited = self
            .wake
            .wait_timeout_while(pending, limit, |now| now.writing || !now.bytes.is_empty());
        drop(waited);
    }

    fn run(&self) {
        let mut batch = Vec::new();
        let mut server = match self.to {
            WriteTo::Fd(fd) => Err(fd),
            WriteTo::Tcp(to) => Ok(LogStream::new(to)),
        };
        loop {
            {
                let Ok(mut pending) = self.pending.lock() else {
                    return;
                };
                pending.writing = false;
                self.wake.notify_all();
                while pending.bytes.is_empty() {
                    if pending.closed {
                        return;
                    }
                    pending = match self.wake.wait(pending) {
                        Ok(pending) => pending,
                        Err(_) => return,
                    };
                }
                std::mem::swap(&mut pending.bytes, &mut batch);
                pending.writing = true;
            }
            match &mut server {
                Ok(server) => server.send(&batch, || self.goes_on()),
                Err(fd) => write_all(*fd, &batch),
            }
            batch.clear();
        }
    }

    /// Waits before a server is tried again; false once the process ends.
    fn goes_on(&self) -> bool {
        let Ok(pending) = self.pending.lock() else {
            return false;
        };
        let waited = self
            .wake
            .wait_timeout_while(pending, RETRY_TIME, |now| !now.closed);
        waited.is_ok_and(|(pending, _)| !pending.closed)
    }
}

fn write_all(fd: RawFd, mut bytes: &[u8]) {
    /// How long a descriptor that someone made non-blocking is waited for at a time.
    const POLL_MS: i32 = 1000;
    while !bytes.is_empty() {
        match sys::write(fd, bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                sys::wait_writable(fd, POLL_MS)
            }
            Err(_) => return, // nobody reads it any more
        }
    }
}
