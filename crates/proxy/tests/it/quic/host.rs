//! A machine with an endpoint of QUIC: a client with its connection, or a server.

use std::net::SocketAddr;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use quic::{Accepted, Arrival, Endpoint, Keys, Limits, Owner, Run, Setup};
use testing::Random;
use tls::quic::{Chooser, QuicAcceptor};
use tls::{Acceptor, AcceptorOptions, Connector, ConnectorOptions, Offer, SessionCache};

use super::peer::{QuicPeer, Script};
use crate::client::Client;
use crate::server::Server;
use crate::stage::Stage;
use crate::wire;

/// The host of all requests.
const HOST: &str = "sim";

/// A datagram that a host sends.
#[derive(Clone, Debug)]
pub struct Sent {
    pub to: SocketAddr,
    pub ecn: u8,
    pub bytes: Vec<u8>,
}

/// See the module.
#[derive(Debug)]
pub struct Host {
    pub address: SocketAddr,
    /// Addresses that it had before and that still reach it.
    former: Vec<SocketAddr>,
    pub endpoint: Endpoint,
    pub peers: Vec<QuicPeer>,
    /// A server's number, and how it serves its clients.
    serves: Option<(usize, quic::Server)>,
    pub sent: Vec<Sent>,
}

/// Every client gets the same certificate.
struct One(Acceptor);

impl Chooser for One {
    fn choose(&self, hello: &[u8]) -> (Acceptor, Option<String>) {
        // The proxy asks for the host of the request.
        let asks = |name: &&str| {
            hello
                .windows(name.len())
                .any(|part| part == name.as_bytes())
        };
        (self.0.clone(), Some(HOST).filter(asks).map(str::to_owned))
    }
}

/// Takes early data, and forgets all sessions before every fourth client.
struct Forgetful {
    /// With different sessions.
    acceptors: [One; 2],
    clients: AtomicUsize,
}

impl Forgetful {
    fn new() -> Forgetful {
        let one = || {
            One(acceptor(&AcceptorOptions {
                sessions: SessionCache::new(1_000),
                early_data_bytes_max: u32::MAX,
                ..AcceptorOptions::default()
            }))
        };
        Forgetful {
            acceptors: [one(), one()],
            clients: AtomicUsize::new(0),
        }
    }
}

impl Chooser for Forgetful {
    fn choose(&self, hello: &[u8]) -> (Acceptor, Option<String>) {
        let number = self.clients.fetch_add(1, Relaxed);
        self.acceptors[number / 4 % 2].choose(hello)
    }
}

fn acceptor(options: &AcceptorOptions) -> Acceptor {
    let options = AcceptorOptions {
        offer: offer(),
        ..options.clone()
    };
    Acceptor::new(&options, wire::certificates()).expect("an acceptor")
}

fn offer() -> Offer {
    Offer {
        protocols: vec![b"h3".to_vec()],
        ..Offer::default()
    }
}

fn limits(random: &mut Random) -> Limits {
    Limits {
        streams_max: random.pick(&[1, 2, 100, 100]),
        stream_bytes: random.pick(&[3_000, 20_000, 256 << 10]),
        connection_bytes: random.pick(&[20_000, 1 << 20]),
        idle: Duration::from_secs(random.pick(&[20, 30, 60])),
        ..Limits::default()
    }
}

fn endpoint(random: &mut Random) -> Endpoint {
    let mut seed = [0; 32];
    for part in seed.chunks_mut(8) {
        part.copy_from_slice(&random.next().to_le_bytes());
    }
    Endpoint::new(&Setup {
        keys: &Keys::new(&seed),
        owner: Owner {
            worker: 0,
            process: 0,
        },
        seed,
    })
}

impl Host {
    /// A client that begins its connection now.
    pub fn client(
        random: &mut Random,
        address: SocketAddr,
        proxy: SocketAddr,
        now_ns: u64,
        script: Client,
    ) -> Host {
        static CONNECTOR: OnceLock<Connector> = OnceLock::new();
        let connector = CONNECTOR.get_or_init(|| {
            let options = ConnectorOptions {
                offer: offer(),
                ..ConnectorOptions::default()
            };
            Connector::new(&options).expect("a connector")
        });
        let tls = connector.quic(Some("sim.test")).expect("a name");
        let mut endpoint = endpoint(random);
        let client = quic::Client::new(&limits(random));
        let connection = endpoint.connect(now_ns, &client, tls, proxy);
        let connection = connection.expect("a connection");
        Host {
            address,
            former: Vec::new(),
            endpoint,
            peers: vec![QuicPeer::new(connection, Script::Client(script))],
            serves: None,
            sent: Vec::new(),
        }
    }

    /// The server of this number. `early`: it takes early data, of most of its clients.
    pub fn server(random: &mut Random, address: SocketAddr, index: usize, early: bool) -> Host {
        static ACCEPTOR: OnceLock<Acceptor> = OnceLock::new();
        let acceptor = ACCEPTOR.get_or_init(|| acceptor(&AcceptorOptions::default()));
        let chooser: Arc<dyn Chooser> = if early {
            Arc::new(Forgetful::new())
        } else {
            Arc::new(One(acceptor.clone()))
        };
        let tls = QuicAcceptor::new(chooser).expect("AES-128-GCM");
        let mut endpoint = endpoint(random);
        let server = quic::Server::new(tls, &limits(random), &Keys::new(b"server"));
        endpoint.set_server(server.clone());
        Host {
            address,
            former: Vec::new(),
            endpoint,
            peers: Vec::new(),
            serves: Some((index, server)),
            sent: Vec::new(),
        }
    }

    /// Gives the host another port. With `keeps`, datagrams to the port before still reach it: without
    /// them, a client whose handshake is not confirmed is lost (RFC 9000 §9).
    pub fn rebind(&mut self, port: u16, keeps: bool) {
        if keeps {
            self.former.push(self.address);
        }
        self.address.set_port(port);
    }

    /// Whether this address reaches it.
    pub fn has(&self, address: SocketAddr) -> bool {
        self.address == address || self.former.contains(&address)
    }

    pub fn is_client(&self) -> bool {
        self.serves.is_none()
    }

    /// Datagrams have come, each `segment` bytes long.
    pub fn receive(
        &mut self,
        now_ns: u64,
        run: &Run<'_>,
        stage: &mut Stage<'_>,
        random: &mut Random,
    ) {
        let mut arrivals = Vec::new();
        self.endpoint.receive(now_ns, run, &mut arrivals);
        for arrival in arrivals {
            match arrival {
                Arrival::Connection(handle, datagram) => {
                    let of_it = |peer: &&mut QuicPeer| peer.connection.handle() == handle;
                    if let Some(peer) = self.peers.iter_mut().find(of_it) {
                        peer.connection.feed(now_ns, datagram);
                    }
                }
                Arrival::Incoming(incoming) => self.accept(now_ns, incoming, stage, random),
                Arrival::Reply(reply) => self.reply(&reply),
            }
        }
        self.step(now_ns, stage, random);
    }

    fn accept(
        &mut self,
        now_ns: u64,
        incoming: quic::Incoming,
        stage: &Stage<'_>,
        random: &mut Random,
    ) {
        let Some((index, server)) = &self.serves else {
            return self.endpoint.ignore(incoming);
        };
        if !incoming.is_validated() && random.chance(10) {
            if let Some(reply) = self.endpoint.retry(incoming) {
                self.reply(&reply);
            }
            return;
        }
        if !stage.mood.calm && random.chance(5) {
            let reply = self.endpoint.refuse(incoming);
            return self.reply(&reply);
        }
        match self.endpoint.accept(now_ns, incoming, server) {
            Accepted::Connection(connection) => {
                let script = Script::Server(Server::new(*index, stage));
                self.peers.push(QuicPeer::new(connection, script));
            }
            Accepted::Refused(reply) => reply.iter().for_each(|reply| self.reply(reply)),
        }
    }

    fn reply(&mut self, reply: &quic::Reply) {
        let packet = reply.packet();
        self.sent.push(Sent {
            to: packet.peer,
            ecn: packet.ecn,
            bytes: packet.bytes.to_vec(),
        });
    }

    /// All connections go on, and send what they have.
    pub fn step(&mut self, now_ns: u64, stage: &mut Stage<'_>, random: &mut Random) {
        let mut bytes = Vec::new();
        for peer in &mut self.peers {
            peer.step(&mut self.endpoint, now_ns, stage, random);
            while !peer.has_vanished
                && let Some(packet) = peer.connection.transmit(now_ns, &mut bytes)
            {
                let segment = packet.segment.unwrap_or(packet.bytes.len());
                self.sent
                    .extend(packet.bytes.chunks(segment).map(|one| Sent {
                        to: packet.peer,
                        ecn: packet.ecn,
                        bytes: one.to_vec(),
                    }));
            }
            self.endpoint.settle(&mut peer.connection);
        }
        let is_over = |peer: &QuicPeer| peer.has_vanished || peer.connection.is_drained();
        self.peers.retain(|peer| !is_over(peer));
    }

    /// When one of its connections goes on by itself, monotonic milliseconds.
    pub fn wakes_ms(&mut self) -> Option<u64> {
        let peers = self.peers.iter_mut();
        peers.filter_map(QuicPeer::wakes_ms).min()
    }
}
