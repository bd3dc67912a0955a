//! A scripted HTTP server's side of one connection: checks every byte that comes and answers as
//! planned.

use super::driver::Pipe;
use super::http1::{Body, Head, Item, Reader, framing, write_chunked};
use super::plan::{Answer, Exchange, Fault, Framed, Way, mismatch, pattern};
use super::stage::Stage;

/// See the module.
#[derive(Debug)]
pub struct Server {
    /// Which server of the configuration.
    pub index: usize,
    reader: Reader,
    /// The request at hand, and how much of its body came.
    current: Option<Exchange>,
    got: usize,
    answered: bool,
    served: bool,
    tunnel: bool,
    /// The client whose requests it has had.
    client: Option<usize>,
    /// It answers nothing any more.
    finished: bool,
    needs_proxy_line: bool,
}

impl Server {
    pub fn new(index: usize, stage: &Stage<'_>) -> Self {
        Server {
            index,
            reader: Reader::default(),
            current: None,
            got: 0,
            answered: false,
            served: false,
            tunnel: false,
            client: None,
            finished: false,
            needs_proxy_line: stage.setup.sends_proxy,
        }
    }

    /// A request is at hand that is not yet answered.
    pub fn is_busy(&self) -> bool {
        self.current.is_some() && (!self.answered || self.tunnel)
    }

    /// It waits for a next request.
    pub fn is_idle(&self) -> bool {
        self.current.is_none() && self.served && self.reader.is_between()
    }

    /// Bytes from the proxy.
    pub fn read(&mut self, bytes: &[u8], stage: &mut Stage<'_>, pipe: &mut Pipe, now_ms: u64) {
        if pipe.peer_ended && !self.tunnel {
            // A closed socket answers with a reset, but not one that lingers after its last answer.
            pipe.peer_reset |= !self.finished;
            return;
        }
        self.reader.buffer.extend_from_slice(bytes);
        if self.needs_proxy_line && !self.proxy_line(stage) {
            return;
        }
        while !self.finished {
            if self.current.is_some() && self.reader.in_head() && !self.tunnel {
                return; // bytes after an answered request: the next one waits for the answer's end
            }
            match self.reader.next(body_of) {
                Err(error) => return self.fault(stage, &error),
                Ok(Item::More) => return,
                Ok(Item::Head(head, _)) => self.head(&head, stage, pipe, now_ms),
                Ok(Item::Data(data)) => self.data(&data, stage),
                Ok(Item::End) => self.end_of_request(stage, pipe, now_ms),
            }
        }
    }

    fn proxy_line(&mut self, stage: &mut Stage<'_>) -> bool {
        let Some(end) = self.reader.buffer.iter().position(|byte| *byte == b'\n') else {
            return false;
        };
        let line = String::from_utf8_lossy(&self.reader.buffer[..=end]).into_owned();
        self.reader.buffer.drain(..=end);
        self.needs_proxy_line = false;
        let client = line
            .split(' ')
            .nth(4)
            .and_then(|port| port.parse::<usize>().ok());
        self.client = client.and_then(|port| port.checked_sub(5000));
        if !line.starts_with("PROXY TCP4 10.0.0.") || self.client.is_none() {
            self.fault(stage, &format!("PROXY line {line:?}"));
        }
        true
    }

    fn head(&mut self, head: &Head, stage: &mut Stage<'_>, pipe: &mut Pipe, now_ms: u64) {
        let Some(exchange) = planned(head, stage) else {
            return self.fault(stage, &format!("an unknown request {head:?}"));
        };
        stage.saw(exchange);
        if let Some(last) = self.client.replace(exchange.client) {
            stage.check_reuse(exchange, last);
        }
        self.current = Some(exchange);
        self.got = 0;
        self.answered = false;
        let method = head.start.split(' ').next();
        let version = if exchange.old {
            " HTTP/1.0"
        } else {
            " HTTP/1.1"
        };
        if method != Some(exchange.method) || !head.start.ends_with(version) {
            self.fault(stage, &format!("request line {:?}", head.start));
        }
        if head.get("expect").is_some()
            && !exchange.answer.early
            && (stage.mood.calm || stage.random.chance(80))
        {
            pipe.write(b"HTTP/1.1 100 Continue\r\n\r\n");
        }
        if exchange.answer.early || exchange.tunnel.is_some() {
            self.answer(&exchange, stage, pipe, now_ms);
        }
    }

    fn data(&mut self, data: &[u8], stage: &mut Stage<'_>) {
        let Some(exchange) = self.current else {
            return self.fault(stage, "bytes of no request");
        };
        if exchange.fault == Fault::Garbage {
            self.got += data.len();
            return;
        }
        let way = if self.tunnel {
            Way::TunnelUp
        } else {
            Way::Request
        };
        if let Some(place) = mismatch(exchange.client, exchange.number, way, self.got, data) {
            self.fault(stage, &format!("a wrong byte at {place}"));
        }
        self.got += data.len();
    }

    fn end_of_request(&mut self, stage: &mut Stage<'_>, pipe: &mut Pipe, now_ms: u64) {
        let Some(exchange) = self.current else { return };
        if self.got != exchange.body.size() && exchange.fault != Fault::Garbage {
            return self.fault(
                stage,
                &format!(
                    "a request of {} bytes, not {}",
                    self.got,
                    exchange.body.size()
                ),
            );
        }
        if !self.answered {
            self.answer(&exchange, stage, pipe, now_ms);
        }
        if !self.tunnel {
            self.current = None;
        }
    }

    fn answer(&mut self, exchange: &Exchange, stage: &mut Stage<'_>, pipe: &mut Pipe, now_ms: u64) {
        self.answered = true;
        self.served = true;
        let Exchange {
            client,
            number,
            answer,
            ..
        } = *exchange;
        let mut wire = Vec::new();
        for _ in 0..answer.interim {
            wire.extend_from_slice(b"HTTP/1.1 103 Early Hints\r\nLink: </style>\r\n\r\n");
        }
        wire.extend_from_slice(&response_head(exchange));
        let content = pattern(client, number, Way::Response, exchange.answer.body.size());
        if exchange.expected() != Framed::None {
            match answer.body {
                Framed::Chunked { piece, .. } => write_chunked(&content, piece, &mut wire),
                _ => wire.extend_from_slice(&content),
            }
        }
        if let Some((up, down)) = exchange.tunnel {
            self.tunnel = true;
            self.got = 0;
            wire.extend_from_slice(&pattern(client, number, Way::TunnelDown, down));
            let _ = up;
        }
        // Another answer on the same connection does not wait for this one: both times together may
        // be too long for its client.
        if pipe.inbox.is_empty() {
            pipe.held_until_ms = pipe.held_until_ms.max(now_ms + answer.think_ms);
        }
        self.write(answer, &wire, stage, pipe);
    }

    fn write(&mut self, answer: Answer, wire: &[u8], stage: &mut Stage<'_>, pipe: &mut Pipe) {
        if answer.fault == Fault::None {
            pipe.write(wire);
            if answer.close || self.tunnel {
                pipe.peer_ended = true;
                self.finished = !self.tunnel;
            }
            return;
        }
        self.finished = true;
        let keep = stage.random.below(wire.len());
        pipe.write(&wire[..keep]);
        match answer.fault {
            Fault::Cut => pipe.peer_ended = true,
            Fault::Reset => pipe.peer_reset = true,
            Fault::Garbage => pipe.write(b"\n\0\r:\xff\n\nz\r\n\r\n"),
            Fault::Stall | Fault::None => {}
        }
    }

    /// The proxy's end.
    pub fn ended(&mut self, stage: &mut Stage<'_>, pipe: &mut Pipe) {
        pipe.peer_ended = true;
        self.finished = true;
        let Some(exchange) = self.current.filter(|_| self.tunnel && stage.mood.calm) else {
            return;
        };
        let (up, _) = exchange.tunnel.unwrap_or_default();
        if self.got != up {
            self.fault(stage, &format!("the tunnel ends at {} of {up}", self.got));
        }
    }

    fn fault(&mut self, stage: &mut Stage<'_>, text: &str) {
        self.finished = true;
        let current = self
            .current
            .map(|exchange| (exchange.client, exchange.number));
        stage.fault(format!(
            "server {} at request {current:?}: {text}",
            self.index
        ));
    }
}

fn planned(head: &Head, stage: &Stage<'_>) -> Option<Exchange> {
    let (client, number) = head.get("x-id")?.split_once('/')?;
    let (client, number) = (client.parse::<usize>().ok()?, number.parse::<usize>().ok()?);
    let exchange = *stage.plans.get(client)?.get(number)?;
    let target = match exchange.method {
        "CONNECT" => format!(" c{client}.n{number}:80 "),
        _ => format!(" /{client}/{number} "),
    };
    head.start.contains(&target).then_some(exchange)
}

fn body_of(head: &Head) -> Result<Body, String> {
    if head.start.starts_with("CONNECT ") || head.has_token("connection", "upgrade") {
        return Ok(Body::Tunnel);
    }
    framing(head, Body::Length(0))
}

fn response_head(exchange: &Exchange) -> Vec<u8> {
    let Exchange {
        client,
        number,
        answer,
        ..
    } = exchange;
    let mut head = format!(
        "HTTP/1.{} {} Planned\r\nX-Id: {client}/{number}\r\n",
        if answer.old { 0 } else { 1 },
        answer.status
    );
    match answer.body {
        Framed::Length(size) => head.push_str(&format!("Content-Length: {size}\r\n")),
        Framed::Chunked { .. } => head.push_str("Transfer-Encoding: chunked\r\n"),
        Framed::None | Framed::UntilClose(_) => {}
    }
    if answer.status == 101 {
        head.push_str("Connection: upgrade\r\nUpgrade: echo\r\n");
    } else if answer.close && !answer.old {
        head.push_str("Connection: close\r\n");
    }
    head.push_str("\r\n");
    head.into_bytes()
}
