//! Datagrams on their way from a process to an earlier one, which has their connections: after a
//! reload both have the same sockets, and only the newest process reads them.
//!
//! A [`Receiver`] belongs to a process from its start. The next process gets the [`Sender`] together
//! with the sockets, and those of earlier processes.

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixDatagram;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::datagrams::RUN_BYTES_MAX;
use crate::sys::{self, Io};

/// How long a message that must arrive waits for room.
const TELL_TIME: Duration = Duration::from_secs(1);

/// The kinds of messages.
const NOTHING: u8 = 0;
const DATAGRAMS: u8 = 1;
const READS: u8 = 2;

/// The length of an address in a message: one byte for its family, 16 for the address, two for the
/// port.
const ADDRESS_BYTES: usize = 1 + 16 + 2;
/// What is before the datagrams: kind, listener, peer, local address, ECN, length of a datagram.
const HEAD_BYTES: usize = 1 + 3 * ADDRESS_BYTES + 1 + 2;
/// The families: no address, IPv4, IPv6.
const NONE: u8 = 0;
const V4: u8 = 4;
const V6: u8 = 6;

/// A message of a later process.
#[derive(Debug, PartialEq, Eq)]
pub enum Relayed<'a> {
    /// Datagrams that it has received.
    Datagrams(RelayedDatagrams<'a>),
    /// It reads the sockets of this address from now on.
    Reads(SocketAddr),
}

/// A run of datagrams of one peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RelayedDatagrams<'a> {
    /// The address that their socket is bound to.
    pub listener: SocketAddr,
    /// The sender.
    pub peer: SocketAddr,
    /// The address that it has sent to, where it is known.
    pub local: Option<IpAddr>,
    /// The ECN field (RFC 3168 §5), 2 bits.
    pub ecn: u8,
    /// The length of each datagram except the last, bytes; not 0.
    pub segment: usize,
    /// The datagrams, one behind the other; never empty.
    pub bytes: &'a [u8],
}

/// Where messages for an earlier process go.
#[derive(Debug)]
pub struct Sender {
    socket: UnixDatagram,
    number: u8,
    /// That process has ended.
    is_over: AtomicBool,
}

/// Where messages of later processes come from.
#[derive(Debug)]
pub struct Receiver {
    socket: UnixDatagram,
    bytes: Vec<u8>,
}

/// Both ends.
///
/// # Errors
/// `errno` of `socketpair`.
pub fn pair() -> io::Result<(OwnedFd, Receiver)> {
    let (sender, receiver) = UnixDatagram::pair()?;
    let receiver = Receiver {
        socket: receiver,
        bytes: vec![0; HEAD_BYTES + RUN_BYTES_MAX],
    };
    Ok((sender.into(), receiver))
}

impl Sender {
    /// Takes over the sending end of a pair. `number`: that of the process with the other end.
    ///
    /// # Errors
    /// The descriptor is no socket.
    pub fn new(fd: OwnedFd, number: u8) -> io::Result<Sender> {
        let socket = UnixDatagram::from(fd);
        socket.set_write_timeout(Some(TELL_TIME))?;
        Ok(Sender {
            socket,
            number,
            is_over: AtomicBool::new(false),
        })
    }

    /// The number of the other process.
    pub fn number(&self) -> u8 {
        self.number
    }

    /// Another descriptor of the socket.
    ///
    /// # Errors
    /// There are no descriptors left.
    pub fn descriptor(&self) -> io::Result<OwnedFd> {
        self.socket.try_clone().map(OwnedFd::from)
    }

    /// Whether a message to the other process has failed because that process has ended.
    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Whether the other process still receives.
    pub fn is_heard(&self) -> bool {
        self.post(&[NOTHING]);
        !self.is_over()
    }

    /// Sends a run of datagrams. It is lost if the other process does not take it.
    pub fn send(&self, run: &RelayedDatagrams<'_>) {
        let Ok(segment) = u16::try_from(run.segment) else {
            return;
        };
        let mut message = Vec::with_capacity(HEAD_BYTES + run.bytes.len());
        message.push(DATAGRAMS);
        put_address(&mut message, Some(run.listener));
        put_address(&mut message, Some(run.peer));
        put_address(&mut message, run.local.map(|ip| SocketAddr::new(ip, 0)));
        message.push(run.ecn);
        message.extend_from_slice(&segment.to_be_bytes());
        message.extend_from_slice(run.bytes);
        self.post(&message);
    }

    /// Tells that this process reads the sockets of an address from now on. Waits for
    /// [`TELL_TIME`] at most until the other process takes it.
    pub fn tell_reads(&self, listener: SocketAddr) {
        let mut message = vec![READS];
        put_address(&mut message, Some(listener));
        // It fails if the other process has ended or does not run.
        let _ = self.socket.send(&message);
    }

    /// Sends a message, which is lost if the other process does not take it at once, as in any
    /// network.
    fn post(&self, message: &[u8]) {
        if let Io::Failed(_) = sys::send(self.socket.as_raw_fd(), message) {
            self.is_over.store(true, Ordering::Relaxed);
        }
    }
}

impl Receiver {
    /// Waits for a message. None if the bytes are not a message.
    ///
    /// # Errors
    /// `errno` of `recv`.
    pub fn receive(&mut self) -> io::Result<Option<Relayed<'_>>> {
        let count = self.socket.recv(&mut self.bytes)?;
        Ok(read(&self.bytes[..count]))
    }
}

/// Reads a message.
#[must_use]
pub fn read(message: &[u8]) -> Option<Relayed<'_>> {
    let (kind, mut rest) = message.split_first()?;
    let listener = take_address(&mut rest)??;
    if *kind == READS {
        return rest.is_empty().then_some(Relayed::Reads(listener));
    }
    let peer = take_address(&mut rest)??;
    let local = take_address(&mut rest)?.map(|addr| addr.ip());
    let ([ecn, high, low], bytes) = rest.split_first_chunk()?;
    let segment = usize::from(u16::from_be_bytes([*high, *low]));
    let is_run = *kind == DATAGRAMS && segment > 0 && !bytes.is_empty() && *ecn < 4;
    is_run.then_some(Relayed::Datagrams(RelayedDatagrams {
        listener,
        peer,
        local,
        ecn: *ecn,
        segment,
        bytes,
    }))
}

fn put_address(to: &mut Vec<u8>, addr: Option<SocketAddr>) {
    let (family, bytes, port) = match addr {
        Some(SocketAddr::V4(v4)) => (V4, v4.ip().to_ipv6_mapped().octets(), v4.port()),
        Some(SocketAddr::V6(v6)) => (V6, v6.ip().octets(), v6.port()),
        None => (NONE, [0; 16], 0),
    };
    to.push(family);
    to.extend_from_slice(&bytes);
    to.extend_from_slice(&port.to_be_bytes());
}

/// Takes an address off the front, or the sign that there is none. None if there is neither.
#[expect(clippy::option_option, reason = "a missing address is not a fault")]
fn take_address(from: &mut &[u8]) -> Option<Option<SocketAddr>> {
    let (part, rest) = from.split_first_chunk::<ADDRESS_BYTES>()?;
    *from = rest;
    let ip = Ipv6Addr::from(*part[1..].first_chunk::<16>()?);
    let port = u16::from_be_bytes([part[ADDRESS_BYTES - 2], part[ADDRESS_BYTES - 1]]);
    match part[0] {
        NONE => Some(None),
        V4 => Some(Some(SocketAddr::new(ip.to_ipv4_mapped()?.into(), port))),
        V6 => Some(Some(SocketAddr::new(ip.into(), port))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addr(text: &str) -> SocketAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn messages_arrive_as_they_were_sent() {
        let (fd, mut receiver) = pair().expect("sockets");
        let sender = Sender::new(fd, 7).expect("a socket");
        let v4 = RelayedDatagrams {
            listener: addr("0.0.0.0:443"),
            peer: addr("192.0.2.1:1234"),
            local: Some([198, 51, 100, 1].into()),
            ecn: 2,
            segment: 1200,
            bytes: &[7; 3000],
        };
        let v6 = RelayedDatagrams {
            listener: addr("[::]:443"),
            peer: addr("[2001:db8::1]:9"),
            local: None,
            ..v4
        };
        sender.send(&v4);
        sender.send(&v6);
        sender.tell_reads(addr("[::1]:8443"));
        for wanted in [
            Relayed::Datagrams(v4),
            Relayed::Datagrams(v6),
            Relayed::Reads(addr("[::1]:8443")),
        ] {
            let received = receiver.receive().expect("a message");
            assert_eq!(received, Some(wanted));
        }
        assert!(sender.is_heard());
        assert_eq!(receiver.receive().expect("a message"), None);
        drop(receiver);
        sender.send(&v4);
        assert!(sender.is_over() && !sender.is_heard());
    }

    #[test]
    fn a_process_that_reads_nothing_stops_nobody() {
        let (fd, _receiver) = pair().expect("sockets");
        let sender = Sender::new(fd, 7).expect("a socket");
        let run = RelayedDatagrams {
            listener: addr("0.0.0.0:443"),
            peer: addr("192.0.2.1:1234"),
            local: None,
            ecn: 0,
            segment: RUN_BYTES_MAX - 1,
            bytes: &[7; RUN_BYTES_MAX],
        };
        for _ in 0..1000 {
            sender.send(&run);
        }
        assert!(!sender.is_over());
    }

    #[test]
    fn other_bytes_are_no_message() {
        let mut whole = vec![DATAGRAMS];
        put_address(&mut whole, Some(addr("127.0.0.1:443")));
        put_address(&mut whole, Some(addr("127.0.0.1:1")));
        put_address(&mut whole, None);
        whole.extend([3, 4, 0, 9]);
        assert!(read(&whole).is_some());
        for len in 0..whole.len() {
            assert_eq!(read(&whole[..len]), None, "{len}");
        }
        // The kind, a family, a part that is not IPv4, ECN and the length.
        for (at, byte) in [(0, 3), (1, 5), (4, 1), (HEAD_BYTES - 3, 4)] {
            let mut other = whole.clone();
            other[at] = byte;
            assert_eq!(read(&other), None, "{at}");
        }
        let mut none = whole.clone();
        none[HEAD_BYTES - 2] = 0;
        assert_eq!(read(&none), None);
        let mut reads = vec![READS];
        put_address(&mut reads, Some(addr("127.0.0.1:443")));
        reads.push(0);
        assert_eq!(read(&reads), None);
    }
}
