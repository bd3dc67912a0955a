//! Log targets: they take finished messages and never block the data path.
//!
//! Datagrams are batched and sent at the end of a round, many in one system call. Messages for a
//! file descriptor or a TCP server are handed to a writer thread, since a pipe, a terminal or a
//! server may block. Both are bounded; messages that do not fit are dropped and counted.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use crate::log_stream::LogStream;
pub use crate::reach::{Dropped, News, Reach};
use crate::ring::{Framing, Ring};
use crate::{Addr, sys};

/// A UDP server counts as reached after this time without an error: routers and systems limit how
/// often they report errors.
pub const DATAGRAM_QUIET: Duration = Duration::from_secs(10);

/// How long a writer waits before it tries a server again.
const RETRY_TIME: Duration = Duration::from_secs(1);
/// Bytes that may wait for one descriptor or, by default, for one server.
pub const WRITER_PENDING_BYTES_MAX: usize = 1 << 20;
/// Bytes of gathered datagrams that cause a send within a round.
const BATCH_BYTES_MAX: usize = 64 << 10;

/// One worker's end of a log target.
#[derive(Debug)]
pub enum LogSink {
    /// A UDP or UNIX datagram socket.
    Datagram(DatagramSink),
    /// A writer thread and the messages of this round; see [`WriteTo`].
    Written(Arc<Writer>, Vec<u8>),
    /// A ring.
    Ring(RingSink),
}

impl LogSink {
    /// Takes one message.
    pub fn push(&mut self, message: &[u8], dropped: &Dropped) {
        match self {
            LogSink::Datagram(sink) => sink.push(message, dropped),
            LogSink::Written(writer, batch) => writer.to.framing().append(unended(message), batch),
            LogSink::Ring(sink) => sink.push(message),
        }
    }

    /// Passes on the messages of the round.
    pub fn flush(&mut self, dropped: &Dropped) {
        match self {
            LogSink::Datagram(sink) => sink.flush(dropped),
            LogSink::Written(writer, batch) => {
                if !batch.is_empty() {
                    writer.push(batch);
                    batch.clear();
                }
            }
            LogSink::Ring(sink) => sink.flush(),
        }
    }
}

/// A message without the line feed at its end.
fn unended(message: &[u8]) -> &[u8] {
    message.strip_suffix(b"\n").unwrap_or(message)
}

/// The messages of a round for a ring.
#[derive(Debug)]
pub struct RingSink {
    ring: Arc<Ring>,
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl RingSink {
    /// A sink without messages.
    #[must_use]
    pub fn new(ring: Arc<Ring>) -> RingSink {
        RingSink {
            ring,
            bytes: Vec::new(),
            ends: Vec::new(),
        }
    }

    /// A ring separates messages itself, so the line feed at the end goes.
    fn push(&mut self, message: &[u8]) {
        self.bytes.extend_from_slice(unended(message));
        self.ends.push(self.bytes.len());
        if self.bytes.len() >= BATCH_BYTES_MAX {
            self.flush();
        }
    }

    fn flush(&mut self) {
        if self.ends.is_empty() {
            return;
        }
        let mut start = 0;
        let messages = self.ends.iter().map(|end| {
            let message = &self.bytes[start..*end];
            start = *end;
            message
        });
        self.ring.push(messages);
        self.bytes.clear();
        self.ends.clear();
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
    reach: Arc<Reach>,
}

impl DatagramSink {
    /// Opens an unconnected socket, so that a target that is down now may come up later.
    ///
    /// # Errors
    /// `errno` of `socket`.
    pub fn open(to: &Addr, reach: Arc<Reach>) -> io::Result<Self> {
        let fd = sys::datagram_socket(to)?;
        sys::tell_datagram_errors(fd.as_raw_fd(), to);
        Ok(DatagramSink {
            fd,
            reach,
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
        let get = |index| &bytes[start(index)..ends[index] as usize];
        let fd = self.fd.as_raw_fd();
        let delivery = sys::send_datagrams(fd, &self.to, ends.len(), get, &mut self.batch);
        if delivery.lost > 0 {
            dropped.add(delivery.lost);
        }
        match delivery.error {
            Some(error) => self.reach.failed(&error, delivery.lost),
            None if delivery.lost > 0 => self.reach.lost(delivery.lost),
            None => self.reach.worked(),
        }
        self.bytes.clear();
        self.ends.clear();
    }
}

/// The output of a writer thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WriteTo {
    /// A descriptor of this process; each message ends in a line feed.
    Fd(RawFd),
    /// A server over TCP.
    Tcp(TcpServer),
}

/// A log server over TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TcpServer {
    /// Its address.
    pub address: SocketAddr,
    /// How messages are separated.
    pub framing: Framing,
    /// Bytes that may wait for it.
    pub pending_bytes_max: usize,
}

impl WriteTo {
    fn framing(self) -> Framing {
        match self {
            WriteTo::Fd(_) => Framing::LineFeed,
            WriteTo::Tcp(server) => server.framing,
        }
    }

    fn pending_bytes_max(self) -> usize {
        match self {
            WriteTo::Fd(_) => WRITER_PENDING_BYTES_MAX,
            WriteTo::Tcp(server) => server.pending_bytes_max,
        }
    }
}

/// A writer thread and its pending messages, shared by the workers.
#[derive(Debug)]
pub struct Writer {
    to: WriteTo,
    pending: Mutex<Pending>,
    wake: Condvar,
    reach: Arc<Reach>,
    dropped: Arc<Dropped>,
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
    /// The thread cannot be started.
    pub fn start(to: WriteTo, reach: Arc<Reach>, dropped: Arc<Dropped>) -> io::Result<Arc<Self>> {
        let writer = Arc::new(Writer {
            to,
            reach,
            dropped,
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

    /// Queues whole messages in the framing of the output, or drops and counts them.
    pub fn push(&self, messages: &[u8]) {
        let Ok(mut pending) = self.pending.lock() else {
            return;
        };
        if pending.bytes.len() + messages.len() > self.to.pending_bytes_max() {
            let lost = self.to.framing().count(messages);
            self.dropped.add(lost);
            self.reach.lost(lost);
            return;
        }
        let idle = pending.bytes.is_empty() && !pending.writing;
        pending.bytes.extend_from_slice(messages);
        drop(pending);
        if idle {
            self.wake.notify_all();
        }
    }

    /// Waits at most a second until pending messages are written, and ends the thread.
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
            WriteTo::Tcp(server) => Ok(LogStream::new(server)),
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
            let rest = match &mut server {
                Ok(server) => server.send(&batch, &self.reach, || self.goes_on()),
                Err(fd) => write_all(*fd, &batch, &self.reach),
            };
            let lost = self.to.framing().count(rest);
            if lost > 0 {
                self.dropped.add(lost);
                self.reach.lost(lost);
            }
            batch.clear();
        }
    }

    /// Waits before the next attempt to reach a server; false once the process ends.
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

/// Writes whole lines. Returns what is left when the reader is gone.
fn write_all<'a>(fd: RawFd, mut bytes: &'a [u8], reach: &Reach) -> &'a [u8] {
    /// How long one wait for a descriptor that someone made non-blocking lasts.
    const POLL_MS: i32 = 1000;
    while !bytes.is_empty() {
        match sys::write(fd, bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                sys::wait_writable(fd, POLL_MS)
            }
            Err(error) => {
                reach.failed(&error, 0);
                return bytes;
            }
        }
    }
    reach.worked();
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;
    use std::os::unix::net::UnixDatagram;

    fn reach() -> Arc<Reach> {
        Arc::new(Reach::new("t".to_owned(), Duration::ZERO, || {}))
    }

    fn fails(text: &str) -> Option<News> {
        Some(News::Fails(text.to_owned()))
    }

    #[test]
    fn datagrams_that_nobody_takes_are_counted_once_that_is_known() {
        let closed = UdpSocket::bind("127.0.0.1:0").and_then(|gone| gone.local_addr());
        let (dropped, reach) = (Dropped::default(), reach());
        let to = Addr::Inet(closed.expect("an address"));
        let mut sink = DatagramSink::open(&to, Arc::clone(&reach)).expect("a socket");
        for _ in 0..5 {
            sink.push(b"one\n", &dropped);
            sink.push(b"two\n", &dropped);
            sink.flush(&dropped);
        }
        // The error of one comes with a later one, if it has come by then.
        assert!((1..10).contains(&dropped.count()), "{dropped:?}");
        assert_eq!(reach.news(), fails("Connection refused"));
    }

    #[test]
    fn a_unix_socket_that_is_not_there_yet() {
        let path = std::env::temp_dir().join(format!("spangate-logs-{}", std::process::id()));
        let to = Addr::Unix(path.as_os_str().as_encoded_bytes().into());
        let (dropped, reach) = (Dropped::default(), reach());
        let mut sink = DatagramSink::open(&to, Arc::clone(&reach)).expect("a socket");
        for _ in 0..100 {
            sink.push(b"lost\n", &dropped);
        }
        sink.flush(&dropped);
        assert_eq!(dropped.count(), 100);
        assert_eq!(reach.news(), fails("No such file or directory"));
        let receiver = UnixDatagram::bind(&path).expect("a path");
        sink.push(b"here\n", &dropped);
        sink.flush(&dropped);
        let mut message = [0; 16];
        let count = receiver.recv(&mut message).expect("a message");
        drop(std::fs::remove_file(&path));
        assert_eq!(&message[..count], b"here\n");
        assert_eq!(reach.news(), Some(News::Works { lost: 100 }));
        let to = Addr::Unix(vec![b'x'; 108].into());
        let mut sink = DatagramSink::open(&to, Arc::clone(&reach)).expect("a socket");
        sink.push(b"lost\n", &dropped);
        sink.flush(&dropped);
        let text = format!(
            "socket path '{}' is too long (108 bytes, at most 107)",
            "x".repeat(108)
        );
        assert_eq!(reach.news(), fails(&text));
    }

    #[test]
    fn lines_that_nobody_reads_are_counted() {
        let (reader, writer) = io::pipe().expect("a pipe");
        let (dropped, reach) = (Arc::new(Dropped::default()), reach());
        let to = WriteTo::Fd(writer.as_raw_fd());
        let own = Writer::start(to, Arc::clone(&reach), Arc::clone(&dropped)).expect("a thread");
        drop(reader);
        own.push(b"one\ntwo\n");
        own.close();
        assert_eq!(dropped.count(), 2);
        assert_eq!(reach.news(), fails("Broken pipe"));
        assert_eq!(reach.lost_in_the_end(), 2);
    }
}
