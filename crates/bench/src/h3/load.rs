//! A load of HTTP/3: connections with a number of requests at a time on each, from one thread.
//!
//! The client is made of the same parts as the proxy's connections to servers: `quic`, and the codec
//! of `http`. Each connection has a UDP socket of its own.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use ::http::h2::{Event, Limits as CodecLimits, Scheme};
use ::http::{Codec, Head, h3};
use ::net::sys::{self as net_sys, Epoll, Events, Io, ReceiveBatch, SendBatch, Sending};
use ::tls::{Connector, ConnectorOptions, Offer};
use quic::{Arrival, Client, Connection, Endpoint, Keys, Limits, Owner, Records, Run, Setup};

use crate::Failure;
use crate::clock;
use crate::https::latency::Latencies;
use crate::https::schedule::Schedule;
use crate::https::tally::Tally;
use crate::https::{PATIENCE, open_loop};
use crate::sys::{self, TimerFd};
use crate::wrk::Outcome;

/// `TLS_AES_128_GCM_SHA256` and X25519, which all clients of comparisons offer alone.
const SUITE: u16 = 0x1301;
const GROUP: u16 = 0x001d;
/// What a connection may get ahead: not what limits a proxy.
const STREAM_BYTES: u32 = 4 << 20;
const CONNECTION_BYTES: u32 = 32 << 20;
/// The kernel's buffer for received datagrams, bytes.
const SOCKET_BYTES: i32 = 4 << 20;
/// Records that are read of a connection at once, bytes.
const RECORDS_BYTES_MAX: usize = 256 << 10;
/// The longest wait for datagrams, milliseconds: deadlines are looked at then.
const WAIT_MS: i32 = 5;
/// Most sockets that are served after one wait.
const EVENTS_MAX: usize = 256;
/// The timer's token in the epoll set.
const TIMER: u64 = u64::MAX;
/// HTTP/3's code for the end of a connection that is not needed any more (RFC 9114 §8.1).
const NO_ERROR: u64 = 0x100;

/// The parameters of a load.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The address of the proxy.
    pub address: SocketAddr,
    /// The requested path.
    pub path: &'static str,
    /// Connections.
    pub connections: u32,
    /// Requests at a time on each.
    pub streams: u32,
    /// Each request has a new connection with a full handshake.
    pub fresh: bool,
    /// The duration.
    pub seconds: u32,
    /// Requests are sent at a constant rate, one at a time on each connection.
    pub pace: Option<Pace>,
}

/// A constant rate.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Requests per second.
    pub per_second: u32,
    /// Most requests that wait for a connection.
    pub waiting_max: u32,
}

/// What is due of a load at a constant rate.
struct Due {
    schedule: Schedule,
    /// None before all connections have had an answer.
    start: Option<Instant>,
    waiting: VecDeque<Instant>,
    waiting_max: usize,
    dropped: u64,
    lateness: Latencies,
    timer: TimerFd,
}

impl Due {
    fn new(pace: Pace, seconds: u32) -> io::Result<Due> {
        Ok(Due {
            schedule: Schedule::new(pace.per_second, seconds, 0, 1),
            start: None,
            waiting: VecDeque::new(),
            waiting_max: pace.waiting_max as usize,
            dropped: 0,
            lateness: Latencies::default(),
            timer: TimerFd::new()?,
        })
    }

    /// Adds what is due now, and arms the timer for the next. `free`: connections without a request.
    fn take(&mut self, free: usize) -> io::Result<()> {
        let Some(start) = self.start else {
            return Ok(());
        };
        let passed = clock::now() - start;
        while let Some(due) = self.schedule.take(passed) {
            self.lateness.record(passed - due);
            if self.waiting.len() < self.waiting_max + free {
                self.waiting.push_back(start + due);
            } else {
                self.dropped += 1;
            }
        }
        match self.schedule.due() {
            Some(next) => self.timer.arm(next.saturating_sub(passed)),
            None => Ok(()),
        }
    }

    fn is_over(&self) -> bool {
        self.start.is_some() && self.schedule.due().is_none() && self.waiting.is_empty()
    }
}

/// A connection, or the place of one that is to begin.
struct Place {
    socket: UdpSocket,
    handle: usize,
    connection: Box<Connection>,
    records: Records,
    codec: Codec,
    /// Records that the codec has not used.
    input: Vec<u8>,
    /// When each request was sent; in a load of new connections, when the connection began.
    asked: HashMap<u32, Instant>,
    begun: Instant,
    /// The first records of the codec, which leave when streams can be opened.
    first: Vec<u8>,
    is_established: bool,
    /// It has had an answer.
    is_warm: bool,
    is_over: bool,
}

struct Load<'a> {
    plan: &'a Plan,
    endpoint: Endpoint,
    client: Client,
    connector: Connector,
    epoll: Epoll,
    places: Vec<Place>,
    ends: Instant,
    tally: Tally,
    due: Option<Due>,
    received: ReceiveBatch,
    sent: SendBatch,
    packets: Vec<u8>,
}

/// Runs it. A latency is that of a request; with new connections, it includes the handshake.
///
/// # Errors
/// The client cannot be set up, or no connection is made.
pub fn load(plan: &Plan) -> Result<Outcome, Failure> {
    let mut load = begin(plan)?;
    load.run()?;
    let outcome = load.tally.outcome();
    if outcome.requests == 0 {
        return Err("no request was answered over HTTP/3".into());
    }
    Ok(outcome)
}

/// Makes all connections, calls `begin`, and runs a load at a constant rate, whose latencies count
/// from when each request was due. Returns its result and that of `begin`.
///
/// # Errors
/// The client cannot be set up, or not all connections are made.
pub fn paced<T>(plan: &Plan, begun: impl FnOnce() -> T) -> Result<(open_loop::Tally, T), Failure> {
    let mut load = begin(plan)?;
    load.ends = clock::now() + PATIENCE;
    load.run()?;
    if !load.places.iter().all(|place| place.is_warm) {
        return Err("not all connections were made over HTTP/3".into());
    }
    load.tally = Tally::start();
    let started = begun();
    load.ends = clock::now() + Duration::from_secs(u64::from(plan.seconds)) + PATIENCE;
    if let Some(due) = &mut load.due {
        due.start = Some(clock::now());
    }
    load.run()?;
    let left = load.places.iter().map(|place| place.asked.len() as u64);
    let left = left.sum::<u64>();
    load.close();
    let (latencies, errors) = load.tally.into_times();
    let (dropped, lateness) = load.due.map_or_else(Default::default, |due| {
        (due.dropped + due.waiting.len() as u64, due.lateness)
    });
    let tally = open_loop::Tally {
        latencies,
        lateness,
        errors: errors + left,
        dropped,
    };
    Ok((tally, started))
}

/// The connections of a load begin.
fn begin(plan: &Plan) -> Result<Load<'_>, Failure> {
    let keys = Keys::new(&random()?);
    let endpoint = Endpoint::new(&Setup {
        keys: &keys,
        owner: Owner {
            worker: 0,
            process: 0,
        },
        seed: keys.seed(0, 0),
    });
    let connector = Connector::new(&ConnectorOptions {
        offer: Offer {
            suites13: Some(vec![SUITE]),
            groups: vec![GROUP],
            protocols: vec![b"h3".to_vec()],
            ..Offer::default()
        },
        ..ConnectorOptions::default()
    });
    let tally = Tally::start();
    let mut load = Load {
        plan,
        endpoint,
        client: Client::new(&Limits {
            stream_bytes: STREAM_BYTES,
            connection_bytes: CONNECTION_BYTES,
            ..Limits::default()
        }),
        connector: connector.map_err(|error| format!("{error:?}"))?,
        epoll: Epoll::new()?,
        places: Vec::new(),
        ends: tally.started() + Duration::from_secs(u64::from(plan.seconds)),
        tally,
        due: { plan.pace }
            .map(|pace| Due::new(pace, plan.seconds))
            .transpose()?,
        received: ReceiveBatch::new(),
        sent: SendBatch::default(),
        packets: Vec::new(),
    };
    for number in 0..plan.connections as usize {
        let place = load.begin()?;
        load.watch(&place, number)?;
        load.places.push(place);
        load.serve(number)?;
    }
    if let Some(due) = &load.due {
        let bits = libc::EPOLLIN as u32;
        load.epoll.add(due.timer.as_raw_fd(), bits, TIMER)?;
    }
    Ok(load)
}

/// Bytes that differ from run to run: ids of connections must.
fn random() -> io::Result<[u8; 32]> {
    let mut bytes = [0; 32];
    io::Read::read_exact(&mut std::fs::File::open("/dev/urandom")?, &mut bytes)?;
    Ok(bytes)
}

impl Load<'_> {
    fn now_ns(&self) -> u64 {
        u64::try_from((clock::now() - self.tally.started()).as_nanos()).unwrap_or(u64::MAX)
    }

    fn watch(&self, place: &Place, number: usize) -> io::Result<()> {
        let bits = libc::EPOLLIN as u32;
        self.epoll
            .add(place.socket.as_raw_fd(), bits, number as u64)
    }

    /// A new connection.
    fn begin(&mut self) -> Result<Place, Failure> {
        let any: SocketAddr = ([127, 0, 0, 1], 0).into();
        let socket = UdpSocket::bind(any)?;
        socket.connect(self.plan.address)?;
        socket.set_nonblocking(true)?;
        let fd = socket.as_raw_fd();
        // The kernel may refuse a size, and an older one the joining.
        let _ = net_sys::set_buffer(fd, libc::SO_RCVBUF, SOCKET_BYTES);
        net_sys::join_datagrams(fd);
        let tls = self.connector.quic(Some("localhost"));
        let tls = tls.map_err(|failure| failure.text)?;
        let now_ns = self.now_ns();
        let begun = self
            .endpoint
            .connect(now_ns, &self.client, tls, self.plan.address);
        let connection = begun.map_err(|error| error.to_string())?;
        let mut first = Vec::new();
        let codec = h3::Connection::client(CodecLimits::default(), &mut first);
        Ok(Place {
            socket,
            handle: connection.handle().0,
            connection,
            records: Records::default(),
            codec: Codec::H3(Box::new(codec)),
            input: Vec::new(),
            asked: HashMap::new(),
            begun: clock::now(),
            first,
            is_established: false,
            is_warm: false,
            is_over: false,
        })
    }

    /// Serves the connections until the time is over.
    fn run(&mut self) -> Result<(), Failure> {
        let mut events = Events::with_capacity(EVENTS_MAX);
        while clock::now() < self.ends && !self.is_done() && !sys::interrupted() {
            let ready = self.epoll.wait(&mut events, WAIT_MS)?;
            for event in 0..ready {
                let token = events.get(event).token;
                if token == TIMER {
                    continue;
                }
                let number = token as usize;
                self.receive(number);
                self.serve(number)?;
            }
            self.ask_what_is_due()?;
            let now_ns = self.now_ns();
            for number in 0..self.places.len() {
                let connection = &mut self.places[number].connection;
                if connection.deadline_ns().is_some_and(|due| due <= now_ns) {
                    connection.expire(now_ns);
                    self.serve(number)?;
                }
            }
        }
        if self.due.is_none() {
            self.close();
        }
        Ok(())
    }

    fn close(&mut self) {
        for number in 0..self.places.len() {
            let now_ns = self.now_ns();
            self.places[number].connection.close(now_ns, NO_ERROR, b"");
            self.transmit(number);
        }
    }

    /// Whether a load at a constant rate has all answers: those that make the connections warm, or
    /// all.
    fn is_done(&self) -> bool {
        match &self.due {
            None => false,
            Some(due) if due.start.is_none() => self.places.iter().all(|place| place.is_warm),
            Some(due) => due.is_over() && self.places.iter().all(|place| place.asked.is_empty()),
        }
    }

    /// Gives what is due to connections that are free.
    fn ask_what_is_due(&mut self) -> Result<(), Failure> {
        let is_free = |place: &Place| place.is_established && place.asked.is_empty();
        let free = self.places.iter().filter(|place| is_free(place)).count();
        let Some(due) = &mut self.due else {
            return Ok(());
        };
        due.take(free)?;
        for number in 0..self.places.len() {
            if self.due.as_ref().is_none_or(|due| due.waiting.is_empty()) {
                break;
            }
            if is_free(&self.places[number]) {
                self.serve(number)?;
            }
        }
        Ok(())
    }

    /// Reads the datagrams of a connection.
    fn receive(&mut self, number: usize) {
        let now_ns = self.now_ns();
        let mut arrivals = Vec::new();
        let fd = self.places[number].socket.as_raw_fd();
        while let Io::Done(count) = self.received.receive(fd) {
            for index in 0..count {
                let Ok(message) = self.received.message(index) else {
                    continue;
                };
                let run = Run {
                    peer: self.plan.address,
                    local: None,
                    ecn: message.ecn,
                    segment: message.segment,
                    bytes: message.bytes,
                };
                self.endpoint.receive(now_ns, &run, &mut arrivals);
            }
            let place = &mut self.places[number];
            for arrival in arrivals.drain(..) {
                match arrival {
                    Arrival::Connection(handle, datagram) if handle.0 == place.handle => {
                        place.connection.feed(now_ns, datagram);
                    }
                    Arrival::Incoming(incoming) => self.endpoint.ignore(incoming),
                    // Of a connection that this place had before.
                    Arrival::Connection(..) | Arrival::Reply(_) => {}
                }
            }
            if count < net_sys::RECEIVES_A_CALL {
                break;
            }
        }
    }

    /// Reads what has come on a connection, sends the next requests, and begins the next connection
    /// where one is over.
    fn serve(&mut self, number: usize) -> Result<(), Failure> {
        let news = self.places[number].connection.news();
        let place = &mut self.places[number];
        if news.is_established {
            place.is_established = true;
            place.records.send(&mut place.connection, &place.first);
        }
        if self.places[number].is_established {
            self.read(number);
            self.ask(number);
        }
        if news.is_lost {
            let lost = self.places[number].connection.lost();
            let why = lost.map_or_else(|| "lost".to_owned(), |lost| format!("{lost:?}"));
            self.tally.failed(why);
            self.places[number].is_over = true;
        }
        if clock::now() - self.places[number].begun > PATIENCE
            && !self.places[number].is_established
        {
            self.tally.failed("no handshake in time".to_owned());
            self.places[number].is_over = true;
        }
        if self.places[number].is_over {
            let now_ns = self.now_ns();
            self.places[number].connection.close(now_ns, NO_ERROR, b"");
            self.transmit(number);
            let next = self.begin()?;
            self.watch(&next, number)?;
            // Its socket leaves the set when it is closed.
            self.places[number] = next;
        }
        self.transmit(number);
        Ok(())
    }

    /// Reads the responses.
    fn read(&mut self, number: usize) {
        let now = clock::now();
        let mut failure = None;
        let place = &mut self.places[number];
        let mut head = Head::default();
        let mut out = Vec::new();
        loop {
            place
                .records
                .receive(&mut place.connection, RECORDS_BYTES_MAX, &mut place.input);
            let mut used = 0;
            while used < place.input.len() {
                let step = place
                    .codec
                    .read(&place.input[used..], 0, &mut head, &mut out);
                let (count, event) = match step {
                    Ok(step) => step,
                    Err(error) => {
                        failure = Some(error.message.to_owned());
                        place.is_over = true;
                        break;
                    }
                };
                used += count;
                let (stream, ends) = match event {
                    Event::More => break,
                    Event::Head { stream, end, .. } => {
                        if head.status() != 200 {
                            failure = Some(format!("status {}", head.status()));
                        }
                        (stream, end)
                    }
                    Event::Data {
                        stream, range, end, ..
                    } => {
                        place.codec.consumed(stream, range.len(), &mut out);
                        (stream, end)
                    }
                    Event::Trailers { stream, .. } => (stream, true),
                    Event::Reset { stream, .. } => {
                        failure = Some("a request was reset".to_owned());
                        place.asked.remove(&stream.0);
                        continue;
                    }
                    _ => continue,
                };
                if ends && let Some(asked) = place.asked.remove(&stream.0) {
                    place.is_warm = true;
                    self.tally.answered(now - asked);
                    place.is_over |= self.plan.fresh;
                }
            }
            let has_more = used > 0 && used == place.input.len();
            place.input.drain(..used);
            if !out.is_empty() {
                place.records.send(&mut place.connection, &out);
                out.clear();
            }
            if !has_more {
                break;
            }
        }
        if let Some(why) = failure {
            self.tally.failed(why);
        }
    }

    /// Sends requests as far as the plan and the proxy permit.
    fn ask(&mut self, number: usize) {
        let now = clock::now();
        let plan = self.plan;
        let place = &mut self.places[number];
        let most = match &self.due {
            // One that makes the connection warm, then one at a time.
            Some(due) if due.start.is_none() => usize::from(!place.is_warm),
            Some(due) => usize::from(!due.waiting.is_empty()),
            None if plan.fresh => 1,
            None => plan.streams as usize,
        };
        if place.is_over || plan.fresh && !place.asked.is_empty() {
            return;
        }
        let mut head = Head::default();
        head.set_target(plan.path.as_bytes());
        head.append(b"host", b"localhost");
        let mut out = Vec::new();
        while place.asked.len() < most {
            let sent = place
                .codec
                .send_request(&head, Scheme::Https, 0, true, &mut out);
            let Some(stream) = sent else {
                // No more are permitted: the next connection goes on.
                place.is_over |= place.codec.got_goaway() && place.asked.is_empty();
                break;
            };
            let due = self.due.as_mut().and_then(|due| due.waiting.pop_front());
            let begun = if plan.fresh { place.begun } else { now };
            place.asked.insert(stream.0, due.unwrap_or(begun));
        }
        place.records.send(&mut place.connection, &out);
    }

    /// Sends the datagrams of a connection.
    fn transmit(&mut self, number: usize) {
        let now_ns = self.now_ns();
        let place = &mut self.places[number];
        let fd = place.socket.as_raw_fd();
        place.records.close_if_asked(&mut place.connection, now_ns);
        while let Some(packet) = place.connection.transmit(now_ns, &mut self.packets) {
            let sending = Sending {
                peer: packet.peer,
                source: None,
                ecn: packet.ecn,
                segment: packet
                    .segment
                    .filter(|segment| *segment < packet.bytes.len())
                    .map(|segment| segment as u16),
                bytes: packet.bytes,
            };
            // What the kernel does not take is lost, and sent again.
            let _ = self.sent.send(fd, std::iter::once(sending));
        }
        self.endpoint.settle(&mut place.connection);
    }
}
