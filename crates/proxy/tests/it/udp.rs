//! Datagram sockets of the simulated driver. They keep what the engine sends. The network of the life
//! (`quic/mod.rs`) takes it, and decides what arrives.

use std::net::SocketAddr;

use net::slots::Slots;
use net::{DatagramSock, ListenerId, Outgoing, SockId};

/// Where the local ports of sockets to servers begin; each worker has so many numbers.
const PORTS_BEGIN: u16 = 20_000;
const PORTS_PER_WORKER: u16 = 10_000;

/// A datagram that the engine has sent.
#[derive(Clone, Debug)]
pub struct SentDatagram {
    pub sock: DatagramSock,
    pub to: SocketAddr,
    pub ecn: u8,
    pub bytes: Vec<u8>,
}

/// A socket that is connected to a server.
#[derive(Clone, Copy, Debug)]
pub struct ServerSock {
    pub server: SocketAddr,
    pub local: SocketAddr,
}

/// See the module.
#[derive(Debug)]
pub struct Udp {
    pub socks: Slots<ServerSock>,
    pub sent: Vec<SentDatagram>,
    /// Until this time no socket has room for datagrams, monotonic milliseconds.
    pub full_until_ms: u64,
    /// Sockets that the engine was told have no room.
    pub waiting: Vec<DatagramSock>,
    /// Listeners whose sockets another process reads.
    pub deaf: Vec<ListenerId>,
    next_port: u16,
}

impl Udp {
    /// The sockets of a worker.
    pub fn new(worker: usize) -> Udp {
        Udp {
            socks: Slots::default(),
            sent: Vec::new(),
            full_until_ms: 0,
            waiting: Vec::new(),
            deaf: Vec::new(),
            next_port: PORTS_BEGIN + PORTS_PER_WORKER * worker as u16,
        }
    }

    /// Opens a socket to a server.
    pub fn open(&mut self, server: SocketAddr) -> SockId {
        let local = SocketAddr::from(([127, 0, 0, 1], self.next_port));
        self.next_port += 1;
        self.socks.insert(ServerSock { server, local })
    }

    /// The socket with a local address.
    pub fn at(&self, local: SocketAddr) -> Option<SockId> {
        let mut socks = self.socks.iter();
        socks.find_map(|(sock, of)| (of.local == local).then_some(sock))
    }

    /// Whether there is room. If not, the engine is told later.
    pub fn has_room(&mut self, sock: DatagramSock, now_ms: u64) -> bool {
        let is_full = now_ms < self.full_until_ms;
        if is_full && !self.waiting.contains(&sock) {
            self.waiting.push(sock);
        }
        !is_full
    }

    /// Takes datagrams. Returns the rule that they break.
    pub fn send(
        &mut self,
        sock: DatagramSock,
        datagrams: Outgoing<'_>,
        now_ms: u64,
    ) -> Option<&'static str> {
        if let DatagramSock::Server(id) = sock {
            match self.socks.get(id) {
                None => return Some("datagrams for a socket that is gone"),
                Some(of) if of.server != datagrams.peer => {
                    return Some("datagrams for another than the server");
                }
                Some(_) => {}
            }
        }
        let bytes = datagrams.bytes;
        if bytes.is_empty() || bytes.len() > net::datagrams::RUN_BYTES_MAX {
            return Some("no datagrams, or too many");
        }
        // The kernel drops what the engine sends without asking for room.
        if now_ms >= self.full_until_ms {
            let segment = datagrams.segment.unwrap_or(bytes.len());
            let sent = bytes.chunks(segment).map(|one| SentDatagram {
                sock,
                to: datagrams.peer,
                ecn: datagrams.ecn,
                bytes: one.to_vec(),
            });
            self.sent.extend(sent);
        }
        None
    }
}
