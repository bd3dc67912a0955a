//! Our client and our server over pipes that cut anywhere, with random messages, stalls and resets:
//! every byte arrives, and no rule is broken.

use std::collections::BTreeMap;

use testing::Random;

use super::*;
use crate::Name;
use crate::h1::Framing;

/// A message on its way: its payload is a run of numbers.
#[derive(Debug, Default)]
struct Message {
    total: usize,
    sent: usize,
    came: usize,
    has_trailers: bool,
    is_sent: bool,
    is_over: bool,
}

/// One end with what it has sent and not delivered, and what was delivered and not credited.
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
    streams: BTreeMap<StreamId, Exchange>,
    finished: usize,
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

impl Life {
    fn new(seed: u64) -> Life {
        let mut random = Random::new(seed);
        let mut limits = || Limits {
            head_bytes_max: 64 << 10,
            block_bytes_max: 64 << 10,
            streams_max: 1 + random.below(8) as u32,
            stream_window_bytes: 1 + random.below(70000) as u32,
            connection_window_bytes: 65535 + random.below(70000) as u32,
            frame_bytes_max: 16384 + random.below(10000) as u32,
            table_bytes: random.below(5000) as u32,
            encoder_table_bytes_max: random.below(5000) as u32,
            idle_frames_max: u32::MAX,
            resets_max: u32::MAX,
            ..Limits::default()
        };
        let (mut to_server, mut to_client) = (Vec::new(), Vec::new());
        let client = Connection::client(limits(), &mut to_server);
        let server = Connection::server(limits(), &mut to_client);
        let end = |connection, out| End {
            connection,
            out,
            input: Vec::new(),
            uncredited: Vec::new(),
        };
        Life {
            client: end(client, to_server),
            server: end(server, to_client),
            random,
            streams: BTreeMap::new(),
            finished: 0,
        }
    }

    fn step(&mut self, may_open: bool) {
        match self.random.below(8) {
            0 if may_open && self.client.connection.can_open() => self.open(),
            1 | 2 => self.deliver(true),
            3 | 4 => self.deliver(false),
            5 => self.credit(),
            6 if self.random.one_in(30) => self.reset(),
            7 if self.random.one_in(20) => {
                self.client.connection.release_spare();
                self.server.connection.release_spare();
                self.client.connection.ping(1, &mut self.client.out);
            }
            _ => self.pump(),
        }
    }

    fn open(&mut self) {
        let mut head = head_of(&mut self.random, true);
        let request = Message::random(&mut self.random);
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
        self.streams
            .insert(id.expect("room for a stream"), exchange);
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

    /// Gives some of what one end sent to the other, which reads it.
    fn deliver(&mut self, to_server: bool) {
        let (from, to) = if to_server {
            (&mut self.client, &mut self.server)
        } else {
            (&mut self.server, &mut self.client)
        };
        let len = match self.random.below(3) {
            0 => from.out.len(),
            1 => from.out.len().min(self.random.below(40)),
            _ => from.out.len().min(self.random.below(30000)),
        };
        to.input.extend(from.out.drain(..len));
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

    fn heed(&mut self, is_server: bool, event: Event, from: usize, head: &Head) {
        match event {
            Event::Head { stream, end, .. } => {
                let exchange = self.streams.get_mut(&stream).expect("a stream");
                if is_server {
                    exchange.request.is_over = end;
                    exchange.is_asked = true;
                    assert_eq!(head.get(Name::Host), Some(&b"h"[..]));
                    let mut head = head_of(&mut self.random, false);
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
                self.streams.get_mut(&stream).expect("a stream").is_reset = true;
            }
            Event::Refused { stream, error } => {
                // Before the server's settings come, the client may open more than they allow.
                assert_eq!(error.code, Code::REFUSED_STREAM);
                self.streams.get_mut(&stream).expect("a stream").is_reset = true;
            }
            Event::More
            | Event::WindowOpen { .. }
            | Event::WindowsOpen
            | Event::Settings
            | Event::Pong(_) => {}
            Event::Goaway { code, .. } => panic!("{code:?}"),
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
            self.step(false);
            self.credit();
        }
        let open = self
            .streams
            .values()
            .filter(|exchange| !exchange.is_reset)
            .count();
        assert_eq!(open, 0, "streams that do not end");
        assert_eq!(self.client.connection.stream_count(), 0);
        assert_eq!(self.server.connection.stream_count(), 0);
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
    for seed in seeds {
        let mut life = Life::new(seed);
        for _ in 0..3000 {
            life.step(true);
        }
        life.settle();
        assert!(
            life.finished > 10,
            "seed {seed}: {} exchanges",
            life.finished
        );
    }
}
