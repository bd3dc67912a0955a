//! Our client and our server over pipes that cut anywhere, with random messages, stalls, resets and
//! delays of single streams: every byte arrives, and no rule is broken.

use std::collections::VecDeque;

use testing::Random;

use super::*;
use crate::Name;
use crate::h1::Framing;

/// A message on its way: its payload is a run of numbers.
#[derive(Debug, Default)]
struct Message {
    /// Its fields as they must arrive.
    fields: Vec<(String, String)>,
    total: usize,
    sent: usize,
    came: usize,
    has_trailers: bool,
    is_sent: bool,
    is_over: bool,
}

/// A way from one end to the other: bytes of the streams in QUIC, and records for the receiver.
#[derive(Default)]
struct Way {
    /// Bytes of each stream that are on their way, and whether the stream ends after them.
    streams: BTreeMap<u64, (VecDeque<u8>, bool)>,
    /// Streams that were reset.
    over: Vec<u64>,
    /// Streams whose bytes do not arrive for now.
    stalled: Vec<u64>,
    /// Records for the receiver.
    records: Vec<u8>,
}

/// One end with the bytes that it has not read, and what was delivered and not credited.
struct End {
    connection: Connection,
    out: Vec<u8>,
    input: Vec<u8>,
    uncredited: Vec<(StreamId, usize)>,
}

#[derive(Default)]
struct Exchange {
    request: Message,
    response: Message,
    is_asked: bool,
    is_reset: bool,
}

struct Life {
    random: Random,
    client: End,
    server: End,
    to_server: Way,
    to_client: Way,
    streams: BTreeMap<StreamId, Exchange>,
    /// The number of the next request.
    next: u64,
    finished: usize,
    /// How many records had to go back.
    echoes: usize,
}

fn payload(from: usize, len: usize) -> impl Iterator<Item = u8> {
    (from..from + len).map(|at| (at % 251) as u8)
}

fn head_of(random: &mut Random, is_request: bool) -> Head {
    let mut head = Head::default();
    if is_request {
        assert!(head.set_method(if random.one_in(2) { b"POST" } else { b"PUT" }));
        head.set_target(format!("/{}", random.below(5)).as_bytes());
        head.append(b"host", b"h");
    } else {
        head.set_status(200 + random.below(3) as u16, b"");
    }
    for _ in 0..random.below(6) {
        let name = format!("x-{}", random.below(8));
        let value = "v".repeat(random.below(50) + 1);
        head.append(name.as_bytes(), value.as_bytes());
    }
    if random.one_in(20) {
        head.append(b"x-large", &[b'l'; 20000]);
    }
    head
}

/// The fields, but for those that the codec adds.
fn fields_of(head: &Head) -> Vec<(String, String)> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    head.fields()
        .filter(|(_, id, ..)| !id.is_framing() && *id != Name::Host)
        .map(|(_, _, name, value)| (text(name), text(value)))
        .collect()
}

impl Message {
    fn random(random: &mut Random) -> Message {
        Message {
            total: match random.below(3) {
                0 => 0,
                1 => random.below(100),
                _ => random.below(200_000),
            },
            has_trailers: random.one_in(3),
            ..Message::default()
        }
    }

    /// Sends what there is room for, and the end.
    fn send(&mut self, end: &mut End, stream: StreamId, random: &mut Random) {
        while !self.is_sent {
            let left = self.total - self.sent;
            let room = end.connection.data_room(stream);
            let len = left.min(room).min(random.below(30000) + 1);
            if len == 0 && left > 0 {
                return;
            }
            let is_last = len == left && !self.has_trailers;
            if len > 0 || is_last {
                assert!(
                    end.connection
                        .send_data_head(stream, len, is_last, &mut end.out)
                );
                end.out.extend(payload(self.sent, len));
                self.sent += len;
                self.is_sent = is_last;
            }
            if self.sent == self.total && self.has_trailers {
                let mut trailers = Head::default();
                if !random.one_in(3) {
                    trailers.append(b"x-end", b"1");
                }
                assert!(
                    end.connection
                        .send_trailers(stream, &trailers, &mut end.out)
                );
                self.is_sent = true;
            }
        }
    }

    fn came(&mut self, bytes: &[u8]) {
        assert!(bytes.iter().copied().eq(payload(self.came, bytes.len())));
        self.came += bytes.len();
    }
}

impl Way {
    /// Takes the records that the sender wrote. Returns those that go back to the sender.
    fn take(&mut self, mut out: &[u8], back: &mut Way) -> usize {
        let mut echoes = 0;
        while !out.is_empty() {
            let (record, used) = Record::read(out).expect("legal").expect("whole");
            let (bytes, rest) = out.split_at(used);
            out = rest;
            let stream = record.head.stream;
            match record.head.kind {
                Kind::Data | Kind::Fin => {
                    assert!(!self.over.contains(&stream), "data behind a reset");
                    let (queue, end) = self.streams.entry(stream).or_default();
                    assert!(!*end, "data behind the end");
                    queue.extend(record.payload);
                    *end |= record.head.end;
                }
                Kind::Reset => {
                    self.streams.remove(&stream);
                    self.over.push(stream);
                    record::reset(stream, record.number(), &mut self.records);
                }
                Kind::Stop => record::stopped(stream, record.number(), &mut self.records),
                Kind::Echo => {
                    back.records.extend_from_slice(bytes);
                    echoes += 1;
                }
                Kind::Consumed | Kind::Priority => {}
                kind => panic!("{kind:?} {}", record.number()),
            }
        }
        echoes
    }

    /// Lets some bytes of a stream arrive. The sender is told.
    fn carry(&mut self, random: &mut Random, back: &mut Way) {
        let ready: Vec<u64> = self
            .streams
            .iter()
            .filter(|(id, (queue, end))| !self.stalled.contains(id) && (!queue.is_empty() || *end))
            .map(|(id, _)| *id)
            .collect();
        if ready.is_empty() {
            return;
        }
        let id = random.pick(&ready);
        let Some((queue, end)) = self.streams.get_mut(&id) else {
            return;
        };
        let len = if queue.is_empty() {
            0
        } else {
            random.part(queue.len())
        };
        let bytes: Vec<u8> = queue.drain(..len).collect();
        let ends = *end && queue.is_empty() && (len == 0 || random.one_in(2));
        if len > 0 {
            record::data(id, &bytes, ends, &mut self.records);
            record::written(id, len as u64, &mut back.records);
            record::written(record::CONNECTION, len as u64, &mut back.records);
        } else {
            record::fin(id, &mut self.records);
        }
        if ends || len == 0 {
            self.streams.remove(&id);
            self.over.push(id);
        }
    }
}

impl Life {
    fn new(seed: u64) -> Life {
        let mut random = Random::new(seed);
        let mut limits = || Limits {
            head_bytes_max: 64 << 10,
            block_bytes_max: 64 << 10,
            streams_max: 1 + random.below(8) as u32,
            table_bytes: random.below(5000) as u32,
            encoder_table_bytes_max: random.below(5000) as u32,
            idle_frames_max: u32::MAX,
            resets_max: u32::MAX,
            ..Limits::default()
        };
        let (mut to_server, mut to_client) = (Vec::new(), Vec::new());
        let mut client = Connection::client(limits(), &mut to_server);
        let mut server = Connection::server(limits(), &mut to_client);
        if random.one_in(2) {
            client.be_bold();
            server.be_bold();
        }
        let end = |connection, out| End {
            connection,
            out,
            input: Vec::new(),
            uncredited: Vec::new(),
        };
        Life {
            client: end(client, to_server),
            server: end(server, to_client),
            to_server: Way::default(),
            to_client: Way::default(),
            random,
            streams: BTreeMap::new(),
            next: 0,
            finished: 0,
            echoes: 0,
        }
    }

    fn step(&mut self, may_open: bool) {
        match self.random.below(10) {
            0 if may_open && self.client.connection.can_open() => self.open(),
            1..=3 => self.deliver(true),
            4..=6 => self.deliver(false),
            7 => self.credit(),
            8 if self.random.one_in(30) => self.reset(),
            8 => self.stall(),
            9 if self.random.one_in(20) => {
                self.client.connection.release_spare();
                self.server.connection.release_spare();
                self.client.connection.ping(1, &mut self.client.out);
            }
            _ => self.pump(),
        }
    }

    /// Streams of the encoders and decoders stand still, or go on.
    fn stall(&mut self) {
        for way in [&mut self.to_server, &mut self.to_client] {
            way.stalled = (2..12).filter(|_| self.random.one_in(4)).collect();
        }
    }

    fn open(&mut self) {
        let mut head = head_of(&mut self.random, true);
        let mut request = Message::random(&mut self.random);
        request.fields = fields_of(&head);
        if self.random.one_in(2) {
            head.set_framing(Framing::Length(request.total as u64));
        }
        let end = request.total == 0 && !request.has_trailers && self.random.one_in(2);
        let out = &mut self.client.out;
        let id = self
            .client
            .connection
            .send_request(&head, Scheme::Https, 7, end, out);
        let exchange = Exchange {
            request: Message {
                is_sent: end,
                ..request
            },
            response: Message::random(&mut self.random),
            ..Exchange::default()
        };
        let id = id.expect("room for a stream");
        self.next = u64::from(id.0) + 1;
        self.streams.insert(id, exchange);
    }

    /// Sends on all streams.
    fn pump(&mut self) {
        for (id, exchange) in &mut self.streams {
            if exchange.is_reset {
                continue;
            }
            exchange
                .request
                .send(&mut self.client, *id, &mut self.random);
            if exchange.is_asked {
                exchange
                    .response
                    .send(&mut self.server, *id, &mut self.random);
            }
        }
    }

    /// Credits some of what came, in any order.
    fn credit(&mut self) {
        for end in [&mut self.client, &mut self.server] {
            while !end.uncredited.is_empty() && !self.random.one_in(10) {
                let nth = self.random.below(end.uncredited.len());
                let (stream, len) = end.uncredited.swap_remove(nth);
                end.connection.consumed(stream, len, &mut end.out);
            }
        }
    }

    fn reset(&mut self) {
        let of_client = self.random.one_in(2);
        let ids: Vec<StreamId> = self.streams.keys().copied().collect();
        let Some(&id) = ids.get(self.random.below(ids.len().max(1))) else {
            return;
        };
        let end = if of_client {
            &mut self.client
        } else {
            &mut self.server
        };
        if end.connection.send_reset(id, Code::CANCEL, &mut end.out) {
            self.streams.get_mut(&id).expect("a stream").is_reset = true;
        }
    }

    /// Moves what was sent, and gives one end some of what has arrived, which it reads.
    fn deliver(&mut self, to_server: bool) {
        let sent = std::mem::take(&mut self.client.out);
        self.echoes += self.to_server.take(&sent, &mut self.to_client);
        let sent = std::mem::take(&mut self.server.out);
        self.echoes += self.to_client.take(&sent, &mut self.to_server);
        if self.random.one_in(5) {
            record::streams(self.streams_permitted(), &mut self.to_client.records);
        }
        let (way, back, to) = if to_server {
            (&mut self.to_server, &mut self.to_client, &mut self.server)
        } else {
            (&mut self.to_client, &mut self.to_server, &mut self.client)
        };
        for _ in 0..self.random.below(12) {
            way.carry(&mut self.random, back);
        }
        let len = way.records.len();
        let len = if len == 0 { 0 } else { self.random.part(len) };
        to.input.extend(way.records.drain(..len));
        let (mut at, mut head) = (0, Head::default());
        loop {
            let end = if to_server {
                &mut self.server
            } else {
                &mut self.client
            };
            let (used, event) = end
                .connection
                .read(&end.input[at..], 0, &mut head, &mut end.out)
                .unwrap_or_else(|error| panic!("server {to_server}: {error}"));
            let from = at;
            at += used;
            if event == Event::More {
                end.input.drain(..at);
                return;
            }
            self.heed(to_server, event, from, &head);
        }
    }

    /// How many requests the client may send in total: as many at a time as the server takes.
    fn streams_permitted(&self) -> u64 {
        let server = &self.server.connection;
        let open = self.streams.values().filter(|exchange| !exchange.is_reset);
        let open = open.count().max(server.stream_count()) as u64;
        let most = u64::from(server.limits().streams_max);
        self.next + most.saturating_sub(open)
    }

    fn heed(&mut self, is_server: bool, event: Event, from: usize, head: &Head) {
        match event {
            Event::Head { stream, end, .. } => {
                let exchange = self.streams.get_mut(&stream).expect("a stream");
                if is_server {
                    exchange.request.is_over = end;
                    exchange.is_asked = true;
                    assert_eq!(fields_of(head), exchange.request.fields);
                    assert_eq!(head.get(Name::Host), Some(&b"h"[..]));
                    let mut head = head_of(&mut self.random, false);
                    exchange.response.fields = fields_of(&head);
                    if self.random.one_in(2) {
                        head.set_framing(Framing::Length(exchange.response.total as u64));
                    }
                    let server = &mut self.server;
                    let sent =
                        server
                            .connection
                            .send_response(stream, &head, false, &mut server.out);
                    assert!(sent);
                } else {
                    assert_eq!(fields_of(head), exchange.response.fields);
                    exchange.response.is_over = end;
                }
            }
            Event::Data {
                stream, range, end, ..
            } => {
                let of = if is_server {
                    &mut self.server
                } else {
                    &mut self.client
                };
                of.uncredited.push((stream, range.len()));
                let exchange = self.streams.get_mut(&stream).expect("a stream");
                let message = if is_server {
                    &mut exchange.request
                } else {
                    &mut exchange.response
                };
                message.came(&of.input[from..][range]);
                message.is_over = end;
            }
            Event::Trailers { stream, .. } => {
                let exchange = self.streams.get_mut(&stream).expect("a stream");
                let message = if is_server {
                    &mut exchange.request
                } else {
                    &mut exchange.response
                };
                message.is_over = true;
            }
            Event::Reset { stream, error, .. } => {
                assert_eq!(error, None);
                if let Some(exchange) = self.streams.get_mut(&stream) {
                    exchange.is_reset = true;
                }
            }
            Event::Refused { stream, error } => {
                // The client may open as many as the server has not forgotten yet.
                assert_eq!(error.code, Code::REFUSED_STREAM);
                self.streams.get_mut(&stream).expect("a stream").is_reset = true;
            }
            Event::More | Event::WindowOpen { .. } | Event::WindowsOpen | Event::Settings => {}
            event @ (Event::Goaway { .. } | Event::Pong(_)) => panic!("{event:?}"),
        }
        self.streams.retain(|_, exchange| {
            let is_over = exchange.request.is_over && exchange.response.is_over;
            if is_over {
                for message in [&exchange.request, &exchange.response] {
                    assert!(exchange.is_reset || message.came == message.total);
                }
                self.finished += usize::from(!exchange.is_reset);
            }
            !is_over
        });
    }

    /// Nothing more is opened, and everything ends.
    fn settle(&mut self) {
        for _ in 0..20_000 {
            self.to_server.stalled.clear();
            self.to_client.stalled.clear();
            self.step(false);
            self.credit();
        }
        let open = self
            .streams
            .values()
            .filter(|exchange| !exchange.is_reset)
            .count();
        assert_eq!(open, 0, "streams that do not end");
        for end in [&self.client, &self.server] {
            assert!(end.connection.is_idle());
            assert_eq!(end.connection.buffered(), 0);
        }
    }
}

#[test]
fn random_lives() {
    let seeds = match std::env::var("SPANGATE_SEED") {
        Ok(seed) => {
            let seed = seed.parse().expect("a number");
            seed..seed + 1
        }
        Err(_) => 0..30,
    };
    let (mut echoes, mut references) = (0, 0);
    let are_all = seeds.end - seeds.start > 1;
    for seed in seeds {
        let mut life = Life::new(seed);
        for _ in 0..4000 {
            life.step(true);
        }
        life.settle();
        assert!(
            life.finished > 10,
            "seed {seed}: {} exchanges",
            life.finished
        );
        echoes += life.echoes;
        for end in [&life.client, &life.server] {
            references += end.connection.acknowledged();
        }
    }
    // Sections waited, and referred to fields of the tables.
    if are_all {
        assert!(echoes > 10 && references > 100, "{echoes} {references}");
    }
}
