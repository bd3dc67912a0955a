//! QUIC below its streams: datagrams in both directions, forged Initial packets, and transport
//! parameters.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use quic::{
    Accepted, Arrival, Client, Connection, Endpoint, Handle, Keys, Limits, Owner, Parameters, Run,
    Server, Setup,
};
use rustls::quic::{DirectionalKeys, Version};
use tls::quic::{Chooser, QuicAcceptor};
use tls::{
    Acceptor, AcceptorOptions, Certificate, Certificates, Connector, ConnectorOptions, Identity,
    Offer, SessionCache, Verification,
};

/// Steps of an input that are taken.
const STEPS_MAX: usize = 40;
/// RFC 9000 section 14.1.
const INITIAL_BYTES: usize = 1200;
/// RFC 9000 section 8.1.
const AMPLIFICATION: usize = 3;
const SERVER: &str = "192.0.2.1:443";
const CLIENT: &str = "198.51.100.1:5000";
const NAME: &str = "one.test";
/// The connection ids of forged packets.
const FORGED_ID: &[u8; 8] = b"whatever";

/// Transport parameters (RFC 9000 section 18).
pub fn quic_parameters(data: &[u8]) {
    let read = Parameters::read(data);
    let ids = [&read.original_id, &read.initial_id, &read.retry_id];
    let ids = ids.map(|id| id.as_ref().map_or(0, Vec::len));
    assert!(ids.iter().sum::<usize>() <= data.len());
}

/// A client and a server. The input is a list of steps: a byte that says what happens, a byte with the
/// length of the argument, and the argument.
pub fn quic_packets(data: &[u8]) {
    let mut net = Net::new();
    let mut rest = data;
    for _ in 0..STEPS_MAX {
        let Some((&[what, len], after)) = rest.split_first_chunk() else {
            break;
        };
        let (argument, after) = after.split_at(after.len().min(len.into()));
        rest = after;
        net.step(what, argument);
        net.check();
    }
}

struct One(Acceptor);

impl Chooser for One {
    fn choose(&self, hello: &[u8]) -> (Acceptor, Option<String>) {
        let mut parts = hello.windows(NAME.len());
        let asks = parts.any(|part| part == NAME.as_bytes());
        (self.0.clone(), asks.then(|| NAME.to_owned()))
    }
}

/// What is made once for all inputs: certificates are dear.
struct Made {
    server: Server,
    connector: Connector,
    keys: Keys,
}

impl Made {
    fn new() -> Made {
        let certificate = rcgen::generate_simple_self_signed(vec![NAME.to_owned()]);
        let certificate = certificate.expect("a certificate");
        let pem = certificate.cert.pem() + &certificate.signing_key.serialize_pem();
        let identity = Identity::parse(pem.as_bytes(), None, None, Path::new("pem"));
        let certificates = Certificates::new(
            &[Certificate {
                identity: identity.expect("a certificate"),
                filters: Vec::new(),
                is_default: true,
            }],
            false,
        );
        let offer = Offer {
            protocols: vec![b"h3".to_vec()],
            ..Offer::default()
        };
        let options = AcceptorOptions {
            offer: offer.clone(),
            sessions: SessionCache::new(10),
            ..AcceptorOptions::default()
        };
        let acceptor = Acceptor::new(&options, Arc::new(certificates)).expect("an acceptor");
        let keys = Keys::new(b"secret");
        let acceptor = QuicAcceptor::new(Arc::new(One(acceptor))).expect("AES-128-GCM");
        let connector = Connector::new(&ConnectorOptions {
            offer,
            verification: Verification::None,
            ..ConnectorOptions::default()
        });
        Made {
            server: Server::new(acceptor, &Limits::default(), &keys),
            connector: connector.expect("a connector"),
            keys,
        }
    }
}

thread_local! {
    static MADE: OnceCell<Made> = const { OnceCell::new() };
}

struct Side {
    endpoint: Endpoint,
    connections: HashMap<Handle, Box<Connection>>,
    /// Datagrams for the other side.
    sent: Vec<Vec<u8>>,
    sent_bytes: usize,
    received_bytes: usize,
}

impl Side {
    fn new(keys: &Keys, worker: u8) -> Side {
        let endpoint = Endpoint::new(&Setup {
            keys,
            owner: Owner { worker, process: 0 },
            seed: [worker; 32],
        });
        Side {
            endpoint,
            connections: HashMap::new(),
            sent: Vec::new(),
            sent_bytes: 0,
            received_bytes: 0,
        }
    }

    fn send(&mut self, bytes: &[u8]) {
        self.sent_bytes += bytes.len();
        self.sent.push(bytes.to_vec());
    }

    fn receive(&mut self, now_ns: u64, from: &str, bytes: &[u8], server: &Server) {
        self.received_bytes += bytes.len();
        let mut arrivals = Vec::new();
        let run = Run {
            peer: address(from),
            local: None,
            ecn: 0,
            segment: bytes.len(),
            bytes,
        };
        self.endpoint.receive(now_ns, &run, &mut arrivals);
        for arrival in arrivals {
            match arrival {
                Arrival::Connection(handle, datagram) => {
                    if let Some(connection) = self.connections.get_mut(&handle) {
                        connection.feed(now_ns, datagram);
                    }
                }
                Arrival::Incoming(incoming) => {
                    match self.endpoint.accept(now_ns, incoming, server) {
                        Accepted::Connection(connection) => {
                            self.connections.insert(connection.handle(), connection);
                        }
                        Accepted::Refused(Some(reply)) => self.send(reply.packet().bytes),
                        Accepted::Refused(None) => {}
                    }
                }
                Arrival::Reply(reply) => self.send(reply.packet().bytes),
            }
        }
    }

    /// What happens after each change.
    fn work(&mut self, now_ns: u64) {
        let mut sent = Vec::new();
        for connection in self.connections.values_mut() {
            if connection.deadline_ns().is_some_and(|due| due <= now_ns) {
                connection.expire(now_ns);
            }
            while connection.receive().is_some() {}
            let mut bytes = Vec::new();
            while let Some(packet) = connection.transmit(now_ns, &mut bytes) {
                let segment = packet.segment.unwrap_or(packet.bytes.len());
                sent.extend(packet.bytes.chunks(segment).map(<[u8]>::to_vec));
            }
            self.endpoint.settle(connection);
        }
        self.connections
            .retain(|_, connection| !connection.is_drained());
        sent.iter().for_each(|bytes| self.send(bytes));
    }
}

struct Net {
    now_ns: u64,
    listener: Server,
    client: Side,
    server: Side,
}

impl Net {
    fn new() -> Net {
        MADE.with(|made| {
            let made = made.get_or_init(Made::new);
            let mut client = Side::new(&made.keys, 1);
            let mut server = Side::new(&made.keys, 2);
            server.endpoint.set_server(made.server.clone());
            let tls = made.connector.quic(Some(NAME)).expect("a name");
            let limits = Client::new(&Limits::default());
            let begun = client.endpoint.connect(0, &limits, tls, address(SERVER));
            let begun = begun.expect("a connection");
            client.connections.insert(begun.handle(), begun);
            client.work(0);
            Net {
                now_ns: 0,
                listener: made.server.clone(),
                client,
                server,
            }
        })
    }

    fn step(&mut self, what: u8, argument: &[u8]) {
        match what % 8 {
            0 => self.server_gets(argument),
            1 => self.pass(true, |_| {}),
            2 => self.pass(true, |bytes| damage(bytes, argument)),
            3 => self.pass(true, |bytes| {
                let kept = argument.first().copied().map_or(0, usize::from) * 5;
                bytes.truncate(kept);
            }),
            4 => self.pass(false, |_| {}),
            5 => self.pass(false, |bytes| damage(bytes, argument)),
            6 => self.server_gets(&forged(argument)),
            _ => {
                let tenths = argument.first().copied().map_or(0, u64::from);
                self.now_ns += tenths * 100_000_000;
            }
        }
        self.client.work(self.now_ns);
        self.server.work(self.now_ns);
    }

    fn server_gets(&mut self, bytes: &[u8]) {
        self.server
            .receive(self.now_ns, CLIENT, bytes, &self.listener);
    }

    /// Hands all datagrams of a side to the other one, after a change.
    fn pass(&mut self, from_client: bool, change: impl Fn(&mut Vec<u8>)) {
        let (from, to, address) = if from_client {
            (&mut self.client, &mut self.server, CLIENT)
        } else {
            (&mut self.server, &mut self.client, SERVER)
        };
        for mut bytes in from.sent.drain(..) {
            change(&mut bytes);
            to.receive(self.now_ns, address, &bytes, &self.listener);
        }
    }

    fn check(&self) {
        let server = &self.server;
        let is_known = self.client.connections.values().any(|client| {
            // The server has heard of the client's address after its handshake.
            client.received_datagrams() > 0
        });
        if !is_known {
            assert!(
                server.sent_bytes <= AMPLIFICATION * server.received_bytes,
                "{} bytes for {}",
                server.sent_bytes,
                server.received_bytes
            );
        }
        assert!(server.endpoint.connections() <= STEPS_MAX * 4);
    }
}

fn address(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

/// Changes the bytes from a place on, which the argument begins with.
fn damage(bytes: &mut [u8], argument: &[u8]) {
    let Some((place, change)) = argument.split_first_chunk::<2>() else {
        return;
    };
    let place = usize::from(u16::from_be_bytes(*place));
    for (byte, change) in bytes.iter_mut().skip(place).zip(change) {
        *byte ^= change;
    }
}

/// An Initial packet with these frames (RFC 9000 section 17.2.2), protected as RFC 9001 section 5 says.
fn forged(frames: &[u8]) -> Vec<u8> {
    let keys = initial_keys();
    let tag_bytes = keys.packet.tag_len();
    let number = 0_u32.to_be_bytes();
    let mut header = vec![0xc3, 0, 0, 0, 1];
    for _ in ["destination", "source"] {
        header.push(FORGED_ID.len() as u8);
        header.extend(FORGED_ID);
    }
    header.push(0);
    let payload_bytes = INITIAL_BYTES - header.len() - 2 - number.len() - tag_bytes;
    let length = (payload_bytes + number.len() + tag_bytes) as u16;
    header.extend((0x4000 | length).to_be_bytes());
    let number_at = header.len();
    header.extend(number);
    let mut payload = frames.to_vec();
    payload.resize(payload_bytes, 0);
    let tag = keys.packet.encrypt_in_place(0, &header, &mut payload);
    payload.extend(tag.expect("a tag").as_ref());
    let sample = payload[..keys.header.sample_len()].to_vec();
    let (first, others) = header.split_at_mut(1);
    let number = &mut others[number_at - 1..];
    keys.header
        .encrypt_in_place(&sample, &mut first[0], number)
        .expect("protection");
    [header, payload].concat()
}

/// The client's keys for [`FORGED_ID`].
fn initial_keys() -> DirectionalKeys {
    let suites = rustls::crypto::aws_lc_rs::ALL_CIPHER_SUITES;
    let name = rustls::CipherSuite::TLS13_AES_128_GCM_SHA256;
    let suite = suites.iter().find(|suite| suite.suite() == name);
    let suite = suite.and_then(|suite| suite.tls13()?.quic_suite());
    suite
        .expect("AES-128-GCM")
        .keys(FORGED_ID, rustls::Side::Client, Version::V1)
        .local
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forged_packets_are_read() {
        let mut net = Net::new();
        // PING.
        net.step(6, b"\x01");
        assert_eq!(net.server.endpoint.connections(), 1);
        // CRYPTO with the beginning of a ServerHello, which no client sends.
        let mut net = Net::new();
        net.step(6, b"\x06\x00\x04\x02\x00\x00\x00");
        assert_eq!(net.server.endpoint.connections(), 0);
        assert!(!net.server.sent.is_empty());
        net.check();
    }

    #[test]
    fn a_handshake_is_complete() {
        let mut net = Net::new();
        for what in [1, 4, 1, 4] {
            net.step(what, b"");
        }
        let mut clients = net.client.connections.values();
        assert!(clients.any(|client| client.agreed().facts.is_some()));
    }
}
