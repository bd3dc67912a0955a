//! Our client with our server, without loss, in virtual time.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use tls::quic::{Chooser, QuicAcceptor};
use tls::{Acceptor, Authorities, Connector, ConnectorOptions, Offer, Trusted, Verification};

use super::net::{FIRST_ADDRESS, SERVER_ADDRESS, acceptor};
use crate::{
    Accepted, Arrival, Client, Connection, Endpoint, Keys, Limits, Lost, Owner, Received, Run,
    Server, Setup,
};

const STEP_NS: u64 = 1_000_000;
const STEPS_MAX: usize = 100_000;

struct One(Acceptor);

impl Chooser for One {
    fn choose(&self, hello: &[u8]) -> (Acceptor, Option<String>) {
        let asks = |name: &&str| {
            let mut parts = hello.windows(name.len());
            parts.any(|part| part == name.as_bytes())
        };
        let name = ["one.test", "other.test"].into_iter().find(asks);
        (self.0.clone(), name.map(str::to_owned))
    }
}

/// One side: its endpoint and its connection.
struct Side {
    endpoint: Endpoint,
    connection: Option<Box<Connection>>,
    /// Datagrams that come with the next step.
    coming: VecDeque<Vec<u8>>,
    received: Vec<Received>,
}

struct Pair {
    now_ns: u64,
    client: Side,
    server: Side,
    listener: Server,
    asks_again: bool,
}

fn side(worker: u8) -> Side {
    let keys = Keys::new(b"secret");
    let setup = Setup {
        keys: &keys,
        owner: Owner { worker, process: 0 },
        seed: [worker; 32],
    };
    Side {
        endpoint: Endpoint::new(&setup),
        connection: None,
        coming: VecDeque::new(),
        received: Vec::new(),
    }
}

impl Pair {
    /// A client that begins a connection to this name, for which it has the certificate's authority.
    fn new(limits: &Limits, name: &str) -> Pair {
        Pair::with(limits, name, vec!["one.test".to_owned()])
    }

    /// The same with the names of the certificate.
    fn with(limits: &Limits, name: &str, names: Vec<String>) -> Pair {
        let certificate = rcgen::generate_simple_self_signed(names);
        let certificate = certificate.expect("a certificate");
        let chooser = Arc::new(One(acceptor(&certificate, false)));
        let tls = QuicAcceptor::new(chooser).expect("AES-128-GCM");
        let listener = Server::new(tls, limits, &Keys::new(b"secret"));
        let (mut client, mut server) = (side(1), side(2));
        server.endpoint.set_server(listener.clone());

        let pem = certificate.cert.pem();
        let authorities = Authorities::parse(None, pem.as_bytes(), Path::new("pem"));
        let trusted = Trusted::new(&authorities.expect("an authority"), None);
        let connector = Connector::new(&ConnectorOptions {
            offer: Offer {
                protocols: vec![b"h3".to_vec()],
                ..Offer::default()
            },
            verification: Verification::Required {
                trusted,
                name: None,
            },
            ..ConnectorOptions::default()
        });
        let tls = connector.expect("a connector").quic(Some(name));
        let to = SERVER_ADDRESS.parse().expect("an address");
        let begun = client.endpoint.connect(
            0,
            &Client::new(&Limits::default()),
            tls.expect("a name"),
            to,
        );
        client.connection = Some(begun.expect("a connection"));
        Pair {
            now_ns: 0,
            client,
            server,
            listener,
            asks_again: false,
        }
    }

    fn client(&mut self) -> &mut Connection {
        self.client.connection.as_mut().expect("a connection")
    }

    fn server(&mut self) -> &mut Connection {
        self.server.connection.as_mut().expect("a connection")
    }

    /// Runs until `done`.
    fn run(&mut self, mut done: impl FnMut(&mut Pair) -> bool) {
        for _ in 0..STEPS_MAX {
            self.now_ns += STEP_NS;
            self.step(true);
            self.step(false);
            if done(self) {
                return;
            }
        }
        panic!("it never ends");
    }

    /// A side reads what has come, and sends.
    fn step(&mut self, is_client: bool) {
        let (own, other) = if is_client {
            (&mut self.client, &mut self.server)
        } else {
            (&mut self.server, &mut self.client)
        };
        let peer = if is_client {
            SERVER_ADDRESS
        } else {
            FIRST_ADDRESS
        };
        let mut arrivals = Vec::new();
        for bytes in own.coming.drain(..) {
            let run = Run {
                peer: peer.parse().expect("an address"),
                local: None,
                ecn: 0,
                segment: bytes.len(),
                bytes: &bytes,
            };
            own.endpoint.receive(self.now_ns, &run, &mut arrivals);
        }
        for arrival in arrivals {
            match arrival {
                Arrival::Connection(_, datagram) => {
                    if let Some(connection) = &mut own.connection {
                        connection.feed(self.now_ns, datagram);
                    }
                }
                Arrival::Incoming(incoming) if self.asks_again && !incoming.is_validated() => {
                    let reply = own.endpoint.retry(incoming).expect("a reply");
                    other.coming.push_back(reply.packet().bytes.to_vec());
                }
                Arrival::Incoming(incoming) => {
                    let accepted = own.endpoint.accept(self.now_ns, incoming, &self.listener);
                    let Accepted::Connection(connection) = accepted else {
                        panic!("{accepted:?}");
                    };
                    own.connection = Some(connection);
                }
                Arrival::Reply(reply) => other.coming.push_back(reply.packet().bytes.to_vec()),
            }
        }
        let Some(connection) = &mut own.connection else {
            return;
        };
        let now_ns = self.now_ns;
        while connection.deadline_ns().is_some_and(|due| due <= now_ns) {
            connection.expire(now_ns);
        }
        while let Some(received) = connection.receive() {
            own.received.push(received);
        }
        let mut bytes = Vec::new();
        while let Some(packet) = connection.transmit(now_ns, &mut bytes) {
            let segment = packet.segment.unwrap_or(packet.bytes.len());
            let datagrams = packet.bytes.chunks(segment).map(<[u8]>::to_vec);
            other.coming.extend(datagrams);
        }
        own.endpoint.settle(connection);
    }

    /// The most streams that the client may open, as it was told.
    fn streams(&self) -> u64 {
        let told = self.client.received.iter().rev();
        let mut counts = told.filter_map(|received| match received {
            Received::Streams(count) => Some(*count),
            _ => None,
        });
        counts.next().unwrap_or_default()
    }
}

#[test]
fn a_client_has_its_answer() {
    let mut pair = Pair::new(&Limits::default(), "one.test");
    pair.run(|pair| pair.client().news().is_established);
    let facts = pair.client().agreed().facts.expect("a handshake");
    assert_eq!(facts.protocol.as_deref(), Some(&b"h3"[..]));
    assert_eq!(pair.streams(), Limits::default().streams_max.into());
    pair.client().write(0, b"question", true);
    pair.run(|pair| !pair.server.received.is_empty());
    let asked = Received::Data {
        stream: 0,
        bytes: b"question".as_slice().into(),
        ends: true,
    };
    assert!(pair.server.received.contains(&asked));
    assert!(!pair.client().is_quiet());
    pair.server().write(0, b"answer", true);
    let answer = Received::Data {
        stream: 0,
        bytes: b"answer".as_slice().into(),
        ends: true,
    };
    pair.run(|pair| pair.client.received.contains(&answer));
    // Streams that were opened ahead do not count.
    pair.run(|pair| pair.client().is_quiet() && pair.server().is_quiet());
}

#[test]
fn a_client_is_asked_for_its_address() {
    let mut pair = Pair::new(&Limits::default(), "one.test");
    pair.asks_again = true;
    pair.run(|pair| pair.client().news().is_established);
}

#[test]
fn a_certificate_of_another_name_is_refused() {
    let mut pair = Pair::new(&Limits::default(), "other.test");
    pair.run(|pair| pair.client().news().is_lost);
    assert!(matches!(pair.client().lost(), Some(Lost::Failed(_))));
    let failure = pair.client().agreed().failure.expect("a failure");
    assert_eq!(failure.kind, tls::FailureKind::Name);
}

/// A server that permits three requests at a time: the client learns of each place that becomes free.
#[test]
fn a_server_permits_few_streams() {
    let limits = Limits {
        streams_max: 3,
        ..Limits::default()
    };
    let mut pair = Pair::new(&limits, "one.test");
    pair.run(|pair| pair.client().news().is_established);
    assert_eq!(pair.streams(), 3);
    let mut sent = 0;
    pair.run(|pair| {
        while sent < pair.streams() {
            pair.client().write(sent * 4, b"question", true);
            sent += 1;
        }
        for received in std::mem::take(&mut pair.server.received) {
            if let Received::Data { stream, .. } = received {
                pair.server().write(stream, b"answer", true);
            }
        }
        pair.client
            .received
            .retain(|received| matches!(received, Received::Streams(_) | Received::Data { .. }));
        let answers = pair.client.received.iter();
        answers
            .filter(|each| matches!(each, Received::Data { .. }))
            .count()
            >= 40
    });
}

/// A client that uses more streams than it was told of has what it wrote discarded.
#[test]
fn streams_beyond_the_limit_are_not_opened() {
    let limits = Limits {
        streams_max: 1,
        ..Limits::default()
    };
    let mut pair = Pair::new(&limits, "one.test");
    pair.run(|pair| pair.client().news().is_established);
    pair.client().write(4, b"second", true);
    pair.client().write(0, b"first", true);
    pair.run(|pair| !pair.server.received.is_empty());
    let asked = Received::Data {
        stream: 0,
        bytes: b"first".as_slice().into(),
        ends: true,
    };
    assert_eq!(pair.server.received, [asked]);
    assert_eq!(pair.client().queued(), 0);
}

#[test]
fn an_address_without_a_port_is_refused() {
    let connector = Connector::new(&ConnectorOptions::default()).expect("a connector");
    let tls = connector.quic(None).expect("no name");
    let to = "192.0.2.1:0".parse().expect("an address");
    let begun = side(1)
        .endpoint
        .connect(0, &Client::new(&Limits::default()), tls, to);
    assert!(begun.is_err());
}

/// A peer says how long its acknowledgements may take, which draws out the end of a connection.
#[test]
fn a_closed_connection_can_be_forgotten() {
    let mut pair = Pair::new(&Limits::default(), "one.test");
    pair.run(|pair| pair.client().news().is_established);
    let client = pair.client.connection.as_mut().expect("a connection");
    client.forget();
    pair.client.endpoint.settle(client);
    assert!(!client.is_closed() && !client.is_drained());
    let now_ns = pair.now_ns;
    pair.client().close(now_ns, 0, b"");
    pair.run(|pair| pair.server().news().is_lost);
    for side in [&mut pair.client, &mut pair.server] {
        let connection = side.connection.as_mut().expect("a connection");
        assert!(connection.is_closed() && !connection.is_drained());
        connection.forget();
        side.endpoint.settle(connection);
        assert!(connection.is_drained());
        assert_eq!(side.endpoint.connections(), 0);
    }
}

/// A peer that goes on sending to a closed connection gets fewer and fewer answers.
#[test]
fn a_closed_connection_answers_rarely() {
    // Few enough to be sent at once.
    const DATAGRAMS: usize = 200;
    let mut pair = Pair::new(&Limits::default(), "one.test");
    pair.run(|pair| pair.client().news().is_established);
    let now_ns = pair.now_ns;
    pair.server().close(now_ns, 0x107, b"");
    let mut bytes = Vec::new();
    assert!(pair.server().transmit(now_ns, &mut bytes).is_some());
    let mut answers = 0;
    for _ in 0..DATAGRAMS {
        pair.client().write(0, b"x", false);
        while let Some(packet) = pair.client().transmit(now_ns, &mut bytes) {
            pair.server.coming.push_back(packet.bytes.to_vec());
        }
        pair.step(false);
        answers += pair.client.coming.drain(..).count();
    }
    assert!((10..=20).contains(&answers), "{answers}");
    pair.run(|pair| pair.server().is_drained());
}

/// A client that completes its handshake and does nothing more costs one datagram of the largest size.
#[test]
fn larger_datagrams_are_tried_once() {
    const SMALLEST: usize = 1200;
    const LARGEST: usize = 1452;
    let mut pair = Pair::new(&Limits::default(), "one.test");
    let (mut large, mut steps) = (Vec::new(), 0);
    pair.run(|pair| {
        let sizes = pair.client.coming.iter().map(Vec::len);
        large.extend(sizes.filter(|size| *size > SMALLEST));
        steps += 1;
        steps > 500
    });
    assert!(pair.client().news().is_established);
    assert_eq!(large, [LARGEST]);
}

/// A client whose first datagrams are longer than the server's gets no more than three times as much.
#[test]
fn a_client_that_is_not_validated_gets_three_times_what_it_sends() {
    const ZEROS: usize = 50;
    let names = (0..300).map(|number| format!("{number}.{}.test", "a".repeat(40)));
    let names = names.chain(["one.test".to_owned()]).collect::<Vec<_>>();
    let mut pair = Pair::with(&Limits::default(), "one.test", names);
    pair.step(true);
    let (mut received, mut sent) = (0, 0);
    for datagram in &mut pair.server.coming {
        // They fill the datagram behind its packets.
        datagram.extend([0; ZEROS]);
        received += datagram.len();
    }
    for _ in 0..5_000 {
        pair.now_ns += STEP_NS;
        pair.step(false);
        sent += pair
            .client
            .coming
            .drain(..)
            .map(|one| one.len())
            .sum::<usize>();
    }
    assert!(
        sent > 2 * received && sent <= 3 * received,
        "{sent} for {received}"
    );
    // It gets the rest once it answers.
    pair.run(|pair| pair.client().news().is_established);
}
