//! What clients and servers of a life are going to do: drawn from the seed before it starts, known
//! to both ends.

use super::setups::Setup;
use testing::Random;

/// A body and how it is framed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framed {
    None,
    Length(usize),
    Chunked {
        size: usize,
        piece: usize,
    },
    /// Responses only.
    UntilClose(usize),
}

impl Framed {
    pub fn size(self) -> usize {
        match self {
            Framed::None => 0,
            Framed::Length(size) | Framed::Chunked { size, .. } | Framed::UntilClose(size) => size,
        }
    }
}

/// Where a message goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    None,
    /// It ends in the middle, then the sender's end.
    Cut,
    /// It ends in the middle, and nothing follows.
    Stall,
    /// What comes is not HTTP.
    Garbage,
    /// It ends in the middle, then a reset.
    Reset,
}

/// The answer of the server.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    pub status: u16,
    pub body: Framed,
    /// Interim responses before it.
    pub interim: usize,
    /// It comes once the request's head is there.
    pub early: bool,
    /// `Connection: close`, and the end after it.
    pub close: bool,
    /// HTTP/1.0.
    pub old: bool,
    pub think_ms: u64,
    pub fault: Fault,
}

/// One request and its answer.
#[derive(Clone, Copy, Debug)]
pub struct Exchange {
    pub client: usize,
    pub number: usize,
    pub method: &'static str,
    /// HTTP/1.0.
    pub old: bool,
    /// The client wants its connection to go on.
    pub keep_alive: bool,
    pub body: Framed,
    /// `Expect: 100-continue`; the body waits for it.
    pub expect: bool,
    /// CONNECT or an upgrade: bytes that each side sends through, then its end.
    pub tunnel: Option<(usize, usize)>,
    pub fault: Fault,
    pub answer: Answer,
}

impl Exchange {
    pub fn is_idempotent(&self) -> bool {
        !matches!(self.method, "POST" | "CONNECT")
    }

    /// It asks only to read.
    pub fn is_safe(&self) -> bool {
        self.is_idempotent() && !matches!(self.method, "PUT" | "DELETE")
    }

    /// Leaves out what HTTP/2 and HTTP/3 do not have, where one side speaks it.
    pub fn fit(&mut self, setup: &Setup) {
        if !setup.has_muxes() {
            return;
        }
        self.old = false;
        if self.tunnel.take().is_some() {
            self.method = "GET";
            self.answer.status = 200;
            self.answer.body = Framed::Length(16);
        }
        // A cut could not be told from its end.
        if let Framed::UntilClose(size) = self.answer.body
            && self.answer.fault != Fault::None
        {
            self.answer.body = Framed::Length(size);
        }
        if setup.h2_servers || setup.h3_servers {
            // What is no answer does not come so far.
            if self.answer.fault == Fault::Garbage {
                self.answer.fault = Fault::Cut;
            }
            // Its connection is that of other requests, too.
            (self.answer.close, self.answer.old, self.answer.early) = (false, false, false);
            if let Framed::UntilClose(size) = self.answer.body {
                self.answer.body = Framed::Length(size);
            }
        }
    }

    /// What the client is going to get.
    pub fn expected(&self) -> Framed {
        let answer = &self.answer;
        match answer.body {
            _ if self.method == "HEAD" || matches!(answer.status, 204 | 304) => Framed::None,
            Framed::Chunked { size, .. } if self.old => Framed::UntilClose(size),
            body => body,
        }
    }
}

/// Which bytes: each body of a life has its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Request,
    Response,
    TunnelUp,
    TunnelDown,
}

/// The byte at a place of a body.
fn byte(key: usize, place: usize) -> u8 {
    (key.wrapping_mul(73) ^ place.wrapping_mul(7) ^ (place >> 8).wrapping_mul(31)) as u8
}

fn key(client: usize, number: usize, way: Way) -> usize {
    client * 64 + number * 4 + way as usize
}

/// The first `size` bytes of a body.
pub fn pattern(client: usize, number: usize, way: Way, size: usize) -> Vec<u8> {
    let key = key(client, number, way);
    (0..size).map(|place| byte(key, place)).collect()
}

/// Where `bytes`, which stand at `place`, are not those of the body.
pub fn mismatch(
    client: usize,
    number: usize,
    way: Way,
    place: usize,
    bytes: &[u8],
) -> Option<usize> {
    let key = key(client, number, way);
    bytes
        .iter()
        .enumerate()
        .find(|(index, found)| **found != byte(key, place + index))
        .map(|(index, _)| place + index)
}

/// How rough a life is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mood {
    /// Nobody misbehaves: every request must get its planned answer.
    pub calm: bool,
    /// Servers close idle connections.
    pub stale: bool,
    /// The process is told to drain at some moment.
    pub drain: bool,
}

const SIZES: &[usize] = &[
    0, 1, 2, 15, 16, 17, 100, 255, 256, 700, 1500, 2100, 4000, 9000,
];
const PIECES: &[usize] = &[1, 7, 16, 100, 1000, 5000];

fn size(random: &mut Random) -> usize {
    match random.below(30) {
        0 => 20_000 + random.below(30_000),
        1 => random.below(5000),
        2..20 => random.pick(&SIZES[..9]),
        _ => random.pick(SIZES),
    }
}

fn framed(random: &mut Random) -> Framed {
    let size = size(random);
    match random.below(2) {
        0 => Framed::Length(size),
        _ => Framed::Chunked {
            size,
            piece: random.pick(PIECES).max(size / 50),
        },
    }
}

/// The requests of a client's connection.
pub fn exchanges(random: &mut Random, client: usize, mood: Mood) -> Vec<Exchange> {
    let count = 1 + random.below(4);
    let mut all = Vec::new();
    for number in 0..count {
        let exchange = exchange(random, client, number, mood);
        all.push(exchange);
        if !exchange.keep_alive || exchange.tunnel.is_some() || exchange.fault != Fault::None {
            break;
        }
    }
    all
}

fn exchange(random: &mut Random, client: usize, number: usize, mood: Mood) -> Exchange {
    let mut method = random.pick(&["GET", "GET", "GET", "HEAD", "POST", "PUT", "DELETE"]);
    let tunnel = random.chance(5).then(|| (size(random), size(random)));
    let mut body = Framed::None;
    if tunnel.is_some() {
        method = random.pick(&["GET", "CONNECT"]);
    } else if matches!(method, "POST" | "PUT") {
        body = framed(random);
    }
    let old = tunnel.is_none() && random.chance(10) && !matches!(body, Framed::Chunked { .. });
    let mut answer = answer(random, mood);
    if tunnel.is_some() {
        answer.status = if method == "CONNECT" { 200 } else { 101 };
        answer.body = Framed::None;
        answer.early = false;
        answer.close = false;
        answer.old = false;
    }
    if old {
        answer.interim = 0;
    }
    if answer.early {
        // The client still owes its body meanwhile.
        answer.think_ms = 0;
    }
    Exchange {
        client,
        number,
        method,
        old,
        keep_alive: random.chance(80),
        body,
        expect: !old && body.size() > 0 && random.chance(20),
        tunnel,
        fault: if !mood.calm && random.chance(8) {
            fault(random)
        } else {
            Fault::None
        },
        answer,
    }
}

fn answer(random: &mut Random, mood: Mood) -> Answer {
    let status = random.pick(&[200, 200, 200, 200, 404, 500, 204, 304]);
    let body = match random.below(8) {
        _ if matches!(status, 204 | 304) => Framed::None,
        0 => Framed::UntilClose(size(random)),
        1 => Framed::Length(0),
        _ => framed(random),
    };
    let until_close = matches!(body, Framed::UntilClose(_));
    let old = random.chance(5) && !matches!(body, Framed::Chunked { .. });
    Answer {
        status,
        old,
        body,
        interim: if random.chance(10) {
            1 + random.below(2)
        } else {
            0
        },
        early: random.chance(10),
        close: until_close || old || random.chance(15),
        think_ms: match random.below(100) {
            // Nearly the server's timeout.
            0 => 9_000,
            1..15 => random.next() % 900,
            _ => 0,
        },
        fault: if !mood.calm && random.chance(8) {
            fault(random)
        } else {
            Fault::None
        },
    }
}

fn fault(random: &mut Random) -> Fault {
    random.pick(&[Fault::Cut, Fault::Stall, Fault::Garbage, Fault::Reset])
}
