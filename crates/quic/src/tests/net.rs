//! A client of quinn-proto's and an endpoint of ours with a network between them, in virtual time.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use quinn_proto::{
    ClientConfig, Connection as Client, ConnectionHandle, DatagramEvent, Dir, EndpointConfig,
    Event, NoneTokenStore, ReadError, StreamEvent, StreamId as Number, TransportConfig, VarInt,
    WriteError,
};
use testing::Random;
use tls::quic::{Chooser, QuicAcceptor};
use tls::{Acceptor, AcceptorOptions, Certificate, Certificates, Identity, Offer, SessionCache};

use crate::{
    Accepted, Arrival, Connection, Endpoint, Keys, Limits, Packet, Run, Server, Setup, StreamId,
};

pub const SERVER_ADDRESS: &str = "192.0.2.1:443";
pub const FIRST_ADDRESS: &str = "198.51.100.1:5000";
pub const SECOND_ADDRESS: &str = "198.51.100.2:6000";
/// The client's window for each stream, bytes.
pub const CLIENT_STREAM_BYTES: u32 = 1 << 20;

/// What the network does to datagrams.
#[derive(Clone, Copy, Debug)]
pub struct Weather {
    pub lost_percent: usize,
    pub repeated_percent: usize,
    pub delay_ns: u64,
    pub jitter_ns: u64,
}

/// What differs between tests.
#[derive(Clone, Copy, Debug)]
pub struct Sides {
    /// The protocol that the client offers.
    pub protocol: &'static [u8],
    /// The server takes early data; the client sends it if it can.
    pub takes_early_data: bool,
    /// The client keeps tokens that show its address.
    pub keeps_tokens: bool,
}

impl Default for Sides {
    fn default() -> Sides {
        Sides {
            protocol: b"h3",
            takes_early_data: false,
            keeps_tokens: true,
        }
    }
}

#[derive(Debug, Default)]
pub struct Got {
    pub bytes: Vec<u8>,
    pub ended: bool,
}

struct Sending {
    id: Option<Number>,
    rest: Vec<u8>,
    ends: bool,
}

pub struct Net {
    pub now_ns: u64,
    pub endpoint: Endpoint,
    pub server: Option<Box<Connection>>,
    pub client_received: Vec<Got>,
    pub client_events: Vec<(&'static str, StreamId, u64)>,
    pub client_established: bool,
    pub client_lost: Option<String>,
    pub client_reads: bool,
    pub retries: bool,
    pub retried: u32,
    pub garbage: bool,
    pub garbage_sent: usize,
    pub garbage_answered: usize,
    pub moves_at_ns: Option<u64>,
    /// The datagrams that the client has sent.
    pub client_sent: Vec<Vec<u8>>,
    /// How many bytes the server has sent to the client.
    pub server_sent: usize,
    weather: Weather,
    random: Random,
    listener: Server,
    zero: Instant,
    client_endpoint: quinn_proto::Endpoint,
    client_config: ClientConfig,
    client: Option<(ConnectionHandle, Client)>,
    client_address: SocketAddr,
    sending: Vec<Sending>,
    waiting: VecDeque<usize>,
    /// Datagrams under way, by the time of their arrival.
    to_server: BTreeMap<(u64, u64), Vec<u8>>,
    to_client: BTreeMap<(u64, u64), Vec<u8>>,
    count: u64,
}

struct ByName {
    one: Acceptor,
    other: Acceptor,
}

impl Chooser for ByName {
    fn choose(&self, hello: &[u8]) -> (Acceptor, Option<String>) {
        let is_one = hello.windows(8).any(|part| part == b"one.test");
        if is_one {
            (self.one.clone(), Some("one.test".to_owned()))
        } else {
            (self.other.clone(), None)
        }
    }
}

pub fn acceptor(
    certificate: &rcgen::CertifiedKey<rcgen::KeyPair>,
    takes_early_data: bool,
) -> Acceptor {
    let pem = certificate.cert.pem() + &certificate.signing_key.serialize_pem();
    let identity = Identity::parse(pem.as_bytes(), None, None, Path::new("pem"));
    let certificates = Certificates::new(
        &[Certificate {
            identity: identity.expect("a certificate"),
            filters: Vec::new(),
            is_default: false,
        }],
        false,
    );
    let options = AcceptorOptions {
        offer: Offer {
            protocols: vec![b"h3".to_vec()],
            ..Offer::default()
        },
        sessions: SessionCache::new(1_000),
        early_data_bytes_max: if takes_early_data { u32::MAX } else { 0 },
        ..AcceptorOptions::default()
    };
    Acceptor::new(&options, Arc::new(certificates)).expect("an acceptor")
}

#[expect(
    clippy::disallowed_methods,
    reason = "the library's type of time cannot be made otherwise; only differences matter"
)]
fn zero() -> Instant {
    Instant::now()
}

impl Net {
    pub fn new(seed: u64, weather: Weather, limits: Limits) -> Net {
        Net::of(seed, weather, limits, Sides::default())
    }

    pub fn of(seed: u64, weather: Weather, limits: Limits, sides: Sides) -> Net {
        let make = |name: &str| rcgen::generate_simple_self_signed(vec![name.to_owned()]);
        let one = make("one.test").expect("a certificate");
        let other = make("other.test").expect("a certificate");
        let chooser = ByName {
            one: acceptor(&one, sides.takes_early_data),
            other: acceptor(&other, sides.takes_early_data),
        };
        let keys = Keys::new(b"secret");
        let tls = QuicAcceptor::new(Arc::new(chooser)).expect("AES-128-GCM");
        let listener = Server::new(tls, &limits, &keys);
        let setup = Setup {
            keys: &keys,
            owner: crate::Owner {
                worker: 3,
                process: 0,
            },
            seed: [seed as u8; 32],
        };
        let mut endpoint = Endpoint::new(&setup);
        endpoint.set_server(listener.clone());

        let mut roots = rustls::RootCertStore::empty();
        roots.add(one.cert.der().clone()).expect("a root");
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut config = rustls::ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .expect("a version")
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![sides.protocol.to_vec()];
        config.enable_early_data = true;
        let config = quinn_proto::crypto::rustls::QuicClientConfig::try_from(config);
        let mut config = ClientConfig::new(Arc::new(config.expect("a suite")));
        let mut transport = TransportConfig::default();
        transport.stream_receive_window(VarInt::from_u32(CLIENT_STREAM_BYTES));
        transport.max_idle_timeout(None);
        config.transport_config(Arc::new(transport));
        if !sides.keeps_tokens {
            config.token_store(Arc::new(NoneTokenStore));
        }
        let zero = zero();
        let mut client_endpoint = quinn_proto::Endpoint::new(
            Arc::new(EndpointConfig::default()),
            None,
            true,
            Some([seed as u8 ^ 0x55; 32]),
        );
        let to = SERVER_ADDRESS.parse().expect("an address");
        let client = client_endpoint.connect(zero, config.clone(), to, "one.test");
        Net {
            now_ns: 0,
            endpoint,
            server: None,
            client_received: Vec::new(),
            client_events: Vec::new(),
            client_established: false,
            client_lost: None,
            client_reads: true,
            retries: false,
            retried: 0,
            garbage: false,
            garbage_sent: 0,
            garbage_answered: 0,
            moves_at_ns: None,
            client_sent: Vec::new(),
            server_sent: 0,
            weather,
            random: Random::new(seed),
            listener,
            zero,
            client_endpoint,
            client_config: config,
            client: Some(client.expect("a connection")),
            client_address: FIRST_ADDRESS.parse().expect("an address"),
            sending: Vec::new(),
            waiting: VecDeque::new(),
            to_server: BTreeMap::new(),
            to_client: BTreeMap::new(),
            count: 0,
        }
    }

    /// The client sends all of this on its next stream.
    pub fn client_sends(&mut self, bytes: Vec<u8>) {
        self.client_adds(bytes, true);
    }

    /// The same, and the stream does not end.
    pub fn client_opens(&mut self, bytes: Vec<u8>) {
        self.client_adds(bytes, false);
    }

    fn client_adds(&mut self, rest: Vec<u8>, ends: bool) {
        self.waiting.push_back(self.sending.len());
        self.sending.push(Sending {
            id: None,
            rest,
            ends,
        });
        self.client_received.push(Got::default());
    }

    pub fn client_resets(&mut self, stream: StreamId, code: u32) {
        let (_, client) = self.client.as_mut().expect("a client");
        let id = Number::new(quinn_proto::Side::Client, Dir::Bi, stream >> 2);
        let reset = client.send_stream(id).reset(VarInt::from_u32(code));
        reset.expect("an open stream");
    }

    pub fn client_stops(&mut self, stream: StreamId, code: u32) {
        let (_, client) = self.client.as_mut().expect("a client");
        let id = Number::new(quinn_proto::Side::Client, Dir::Bi, stream >> 2);
        let stopped = client.recv_stream(id).stop(VarInt::from_u32(code));
        stopped.expect("an open stream");
    }

    pub fn client_vanishes(&mut self) {
        self.client = None;
    }

    /// The client begins another connection; nothing of the one before is under way any more.
    pub fn client_returns(&mut self) {
        self.client_vanishes();
        self.server = None;
        self.to_server.clear();
        self.to_client.clear();
        self.client_sent.clear();
        self.server_sent = 0;
        self.client_established = false;
        self.client_received.clear();
        self.sending.clear();
        self.waiting.clear();
        let to = SERVER_ADDRESS.parse().expect("an address");
        let (now, config) = (self.instant(), self.client_config.clone());
        let client = self.client_endpoint.connect(now, config, to, "one.test");
        self.client = Some(client.expect("a connection"));
    }

    pub fn set_weather(&mut self, weather: Weather) {
        self.weather = weather;
    }

    /// Someone else sends datagrams to the server, as if they came from the client.
    pub fn replay(&mut self, datagrams: &[Vec<u8>]) {
        for datagram in datagrams {
            self.server_gets(datagram);
        }
    }

    /// Whether the client may send early data.
    pub fn client_has_early_keys(&self) -> bool {
        let client = self.client.as_ref();
        client.is_some_and(|(_, client)| client.has_0rtt())
    }

    /// Runs until `done`, which acts for the server each time something happens; at most so many
    /// seconds of virtual time.
    pub fn run(&mut self, seconds: u64, mut done: impl FnMut(&mut Net) -> bool) {
        let end_ns = self.now_ns + seconds * 1_000_000_000;
        while self.now_ns < end_ns {
            self.client_acts();
            if let Some(server) = &mut self.server {
                let now_ns = self.now_ns;
                while server.deadline_ns().is_some_and(|due| due <= now_ns) {
                    server.expire(now_ns);
                }
                self.endpoint.settle(server);
            }
            if self.server.is_some() && done(self) {
                return;
            }
            self.server_transmits();
            self.client_transmits();
            // A tick is long enough for a deadline that never comes to end the test.
            let arrivals = [&self.to_server, &self.to_client];
            let arrivals = arrivals.map(|all| all.keys().next().map(|(at, _)| *at));
            let due = self.server.as_mut().and_then(|server| server.deadline_ns());
            let next = arrivals.into_iter().flatten().chain(due).min();
            let tick_ns = self.now_ns + 10_000_000;
            self.now_ns = next.unwrap_or(tick_ns).clamp(self.now_ns + 1_000, tick_ns);
            self.deliver();
        }
        panic!("nothing ends within {seconds} s");
    }

    fn instant(&self) -> Instant {
        self.zero + Duration::from_nanos(self.now_ns)
    }

    fn under_way(&mut self, is_to_server: bool, bytes: &[u8]) {
        let weather = self.weather;
        let mut copies = 1;
        if self.random.below(100) < weather.lost_percent {
            copies = 0;
        } else if self.random.below(100) < weather.repeated_percent {
            copies = 2;
        }
        for _ in 0..copies {
            let jitter_ns = match weather.jitter_ns {
                0 => 0,
                most => self.random.number_below(most),
            };
            self.count += 1;
            let at = (self.now_ns + weather.delay_ns + jitter_ns, self.count);
            let way = if is_to_server {
                &mut self.to_server
            } else {
                &mut self.to_client
            };
            way.insert(at, bytes.to_vec());
        }
    }

    fn packet_leaves(&mut self, packet: Packet<'_>) {
        let segment = packet.segment.unwrap_or(packet.bytes.len()).max(1);
        for part in packet.bytes.chunks(segment) {
            self.server_sent += part.len();
            if packet.peer == self.client_address {
                self.under_way(false, part);
            }
        }
    }

    fn server_transmits(&mut self) {
        let now_ns = self.now_ns;
        let Some(mut server) = self.server.take() else {
            return;
        };
        let mut bytes = Vec::new();
        while let Some(packet) = server.transmit(now_ns, &mut bytes) {
            self.packet_leaves(packet);
        }
        self.server = Some(server);
    }

    fn client_transmits(&mut self) {
        let now = self.instant();
        let mut buffer = Vec::new();
        while let Some((_, client)) = &mut self.client {
            buffer.clear();
            let Some(transmit) = client.poll_transmit(now, 1, &mut buffer) else {
                break;
            };
            let bytes = buffer[..transmit.size].to_vec();
            self.under_way(true, &bytes);
            self.client_sent.push(bytes.clone());
            if self.garbage {
                self.throw_garbage(&bytes);
            }
        }
    }

    /// A packet that was cut or changed, or is none at all, from another address.
    fn throw_garbage(&mut self, bytes: &[u8]) {
        let mut bytes = bytes.to_vec();
        match self.random.below(3) {
            0 => bytes.truncate(self.random.below(bytes.len())),
            1 => {
                for _ in 0..3 {
                    let at = self.random.below(bytes.len());
                    bytes[at] = self.random.next() as u8;
                }
            }
            _ => bytes
                .iter_mut()
                .for_each(|byte| *byte = self.random.next() as u8),
        }
        let mut arrivals = Vec::new();
        let run = Run {
            peer: "203.0.113.9:9".parse().expect("an address"),
            local: None,
            ecn: 0,
            segment: bytes.len(),
            bytes: &bytes,
        };
        self.garbage_sent += bytes.len();
        self.endpoint.receive(self.now_ns, &run, &mut arrivals);
        for arrival in arrivals {
            match arrival {
                Arrival::Connection(_, datagram) => {
                    if let Some(server) = &mut self.server {
                        server.feed(self.now_ns, datagram);
                    }
                }
                Arrival::Incoming(incoming) => self.endpoint.ignore(incoming),
                Arrival::Reply(reply) => self.garbage_answered += reply.packet().bytes.len(),
            }
        }
    }

    fn deliver(&mut self) {
        if self.moves_at_ns.is_some_and(|at| at <= self.now_ns) {
            self.moves_at_ns = None;
            self.client_address = SECOND_ADDRESS.parse().expect("an address");
        }
        while let Some(entry) = self.to_server.first_entry()
            && entry.key().0 <= self.now_ns
        {
            let bytes = entry.remove();
            self.server_gets(&bytes);
        }
        while let Some(entry) = self.to_client.first_entry()
            && entry.key().0 <= self.now_ns
        {
            let bytes = entry.remove();
            self.client_gets(&bytes);
        }
    }

    fn server_gets(&mut self, bytes: &[u8]) {
        let mut arrivals = Vec::new();
        let run = Run {
            peer: self.client_address,
            local: None,
            ecn: 0,
            segment: bytes.len(),
            bytes,
        };
        self.endpoint.receive(self.now_ns, &run, &mut arrivals);
        for arrival in arrivals {
            match arrival {
                Arrival::Connection(handle, datagram) => {
                    if let Some(server) = &mut self.server
                        && server.handle() == handle
                    {
                        server.feed(self.now_ns, datagram);
                        self.endpoint.settle(server);
                    }
                }
                Arrival::Incoming(incoming) => {
                    if self.retries && !incoming.is_validated() {
                        self.retried += 1;
                        if let Some(reply) = self.endpoint.retry(incoming) {
                            self.packet_leaves(reply.packet());
                        }
                        continue;
                    }
                    match self.endpoint.accept(self.now_ns, incoming, &self.listener) {
                        Accepted::Connection(connection) => self.server = Some(connection),
                        Accepted::Refused(reply) => {
                            let reply = reply.iter();
                            reply.for_each(|one| self.packet_leaves(one.packet()));
                        }
                    }
                }
                Arrival::Reply(reply) => self.packet_leaves(reply.packet()),
            }
        }
    }

    fn client_gets(&mut self, bytes: &[u8]) {
        let now = self.instant();
        let from = SERVER_ADDRESS.parse().expect("an address");
        let mut reply = Vec::new();
        let bytes = BytesMut::from(bytes);
        let event = self
            .client_endpoint
            .handle(now, from, None, None, bytes, &mut reply);
        if let (Some(DatagramEvent::ConnectionEvent(_, event)), Some((_, client))) =
            (event, &mut self.client)
        {
            client.handle_event(event);
        }
    }

    fn client_acts(&mut self) {
        let now = self.instant();
        let Some((handle, client)) = &mut self.client else {
            return;
        };
        while client.poll_timeout().is_some_and(|due| due <= now) {
            client.handle_timeout(now);
        }
        while let Some(event) = client.poll_endpoint_events() {
            if let Some(event) = self.client_endpoint.handle_event(*handle, event) {
                client.handle_event(event);
            }
        }
        while let Some(event) = client.poll() {
            match event {
                Event::Connected => self.client_established = true,
                Event::ConnectionLost { reason } => self.client_lost = Some(reason.to_string()),
                Event::Stream(StreamEvent::Stopped { id, error_code }) => {
                    let stream = VarInt::from(id).into_inner();
                    self.client_events
                        .push(("stopped", stream, error_code.into_inner()));
                }
                _ => {}
            }
        }
        while let Some(place) = self.waiting.front().copied() {
            let Some(id) = client.streams().open(Dir::Bi) else {
                break;
            };
            self.waiting.pop_front();
            self.sending[place].id = Some(id);
        }
        for sending in &mut self.sending {
            let Some(id) = sending.id else { continue };
            while !sending.rest.is_empty() {
                match client.send_stream(id).write(&sending.rest) {
                    Ok(count) => drop(sending.rest.drain(..count)),
                    Err(WriteError::Blocked) => break,
                    Err(_) => sending.rest.clear(),
                }
            }
            if sending.rest.is_empty() && std::mem::take(&mut sending.ends) {
                let _ = client.send_stream(id).finish();
            }
        }
        if !self.client_reads {
            return;
        }
        for (place, got) in self.client_received.iter_mut().enumerate() {
            let Some(id) = self.sending[place].id.filter(|_| !got.ended) else {
                continue;
            };
            let mut reader = client.recv_stream(id);
            let Ok(mut chunks) = reader.read(true) else {
                continue;
            };
            loop {
                match chunks.next(usize::MAX) {
                    Ok(Some(chunk)) => got.bytes.extend_from_slice(&chunk.bytes),
                    Ok(None) => {
                        got.ended = true;
                        break;
                    }
                    Err(ReadError::Blocked) => break,
                    Err(ReadError::Reset(code)) => {
                        got.ended = true;
                        let stream = VarInt::from(id).into_inner();
                        self.client_events
                            .push(("reset", stream, code.into_inner()));
                        break;
                    }
                }
            }
        }
    }
}
