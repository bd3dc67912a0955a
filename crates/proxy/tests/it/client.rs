//! A scripted HTTP client: sends its planned requests and checks every byte that comes back.

use super::driver::Pipe;
use super::http1::{Body, Head, Item, Reader, framing, write_chunked};
use super::plan::{Exchange, Fault, Framed, Way, mismatch, pattern};
use super::stage::Stage;

/// See the module.
#[derive(Debug)]
pub struct Client {
    pub index: usize,
    /// Requests leave without waiting for the answers before.
    pipelines: bool,
    reader: Reader,
    /// The next request to send, and the one whose answer is awaited.
    next: usize,
    current: usize,
    /// Body bytes of the answer so far.
    got: usize,
    /// The answer at hand is a page of the proxy, or an interim one.
    page: bool,
    interim: bool,
    /// The answer at hand, or the last one, said that the connection ends.
    closing: bool,
    /// A body that waits for a 100.
    waiting: Option<Vec<u8>>,
    tunnel: bool,
    /// It will send no more.
    sent_all: bool,
    /// When the last answer was complete.
    idle_since_ms: u64,
    /// It has seen the end of its connection.
    pub done: bool,
}

impl Client {
    pub fn new(index: usize, pipelines: bool) -> Self {
        Client {
            index,
            pipelines,
            reader: Reader::default(),
            next: 0,
            current: 0,
            got: 0,
            page: false,
            interim: false,
            closing: false,
            waiting: None,
            tunnel: false,
            sent_all: false,
            idle_since_ms: 0,
            done: false,
        }
    }

    /// The connection stands.
    pub fn start(&mut self, stage: &mut Stage<'_>, pipe: &mut Pipe) {
        if stage.setup.accepts_proxy {
            let line = format!(
                "PROXY TCP4 10.0.0.{} 10.1.0.1 {} 80\r\n",
                self.index + 1,
                5000 + self.index
            );
            pipe.write(line.as_bytes());
        }
        self.go_on(stage, pipe);
    }

    /// Sends what may be sent now.
    fn go_on(&mut self, stage: &mut Stage<'_>, pipe: &mut Pipe) {
        while !self.sent_all
            && self.waiting.is_none()
            && (self.pipelines || self.next == self.current)
        {
            let plan = &stage.plans[self.index];
            let Some(exchange) = plan.get(self.next).copied() else {
                self.sent_all = true;
                // Its own end, or it waits for the proxy's.
                let tunnels = plan
                    .last()
                    .is_some_and(|exchange| exchange.tunnel.is_some());
                let aborts = stage.setup.aborts;
                pipe.peer_ended |= !tunnels && !aborts && stage.random.chance(70);
                return;
            };
            self.next += 1;
            self.request(exchange, stage, pipe);
        }
    }

    fn request(&mut self, exchange: Exchange, stage: &mut Stage<'_>, pipe: &mut Pipe) {
        let head = request_head(&exchange);
        let mut body = Vec::new();
        let content = pattern(
            self.index,
            exchange.number,
            Way::Request,
            exchange.body.size(),
        );
        match exchange.body {
            Framed::Chunked { piece, .. } => write_chunked(&content, piece, &mut body),
            _ => body = content,
        }
        if exchange.fault != Fault::None {
            return self.spoiled(exchange.fault, head, &body, stage, pipe);
        }
        pipe.write(&head);
        if exchange.expect && !self.pipelines && stage.random.chance(80) {
            self.waiting = Some(body);
        } else {
            pipe.write(&body);
        }
    }

    fn spoiled(
        &mut self,
        fault: Fault,
        mut wire: Vec<u8>,
        body: &[u8],
        stage: &mut Stage<'_>,
        pipe: &mut Pipe,
    ) {
        wire.extend_from_slice(body);
        let keep = stage.random.below(wire.len());
        wire.truncate(keep);
        pipe.write(&wire);
        self.sent_all = true;
        match fault {
            Fault::Cut => pipe.peer_ended = true,
            Fault::Reset => pipe.peer_reset = true,
            Fault::Garbage => pipe.write(&[
                b'\n', 0, b'\r', b':', 255, b'\n', b'\n', b'z', b'\r', b'\n', b'\r', b'\n',
            ]),
            Fault::Stall | Fault::None => {}
        }
    }

    /// Bytes from the proxy.
    pub fn read(&mut self, bytes: &[u8], stage: &mut Stage<'_>, pipe: &mut Pipe, now_ms: u64) {
        self.reader.buffer.extend_from_slice(bytes);
        stage.bytes[self.index] += bytes.len();
        while !self.done {
            let plan = stage.plans[self.index].get(self.current).copied();
            if self.reader.is_between() {
                return;
            }
            if self.closing && self.reader.in_head() && !self.interim {
                if self.page {
                    return; // the page's body: the proxy never saw that the method was HEAD
                }
                return self.fault(stage, "bytes after the last answer");
            }
            let Some(exchange) = plan else {
                if stage.plans[self.index]
                    .last()
                    .is_some_and(|last| last.fault == Fault::Garbage)
                {
                    return;
                }
                return self.fault(stage, "an answer without a request");
            };
            if self.current >= self.next {
                return self.fault(stage, "an answer before its request");
            }
            match self.reader.next(|head| body_of(head, &exchange)) {
                Err(error) => return self.fault(stage, &error),
                Ok(Item::More) => return,
                Ok(Item::Head(head, body)) => self.head(&head, body, &exchange, stage, pipe),
                Ok(Item::Data(data)) => self.data(&data, &exchange, stage),
                Ok(Item::End) => self.end_of_answer(&exchange, stage, pipe, now_ms),
            }
        }
    }

    fn head(
        &mut self,
        head: &Head,
        body: Body,
        exchange: &Exchange,
        stage: &mut Stage<'_>,
        pipe: &mut Pipe,
    ) {
        let status = head.status();
        self.interim = (100..200).contains(&status) && status != 101;
        if self.interim {
            if exchange.old {
                self.fault(stage, "an interim answer to HTTP/1.0");
            }
            if status == 100
                && let Some(body) = self.waiting.take()
            {
                pipe.write(&body);
                self.go_on(stage, pipe);
            }
            return;
        }
        self.got = 0;
        stage.got[self.index][self.current] = status;
        self.closing = head.has_token("connection", "close")
            || ((exchange.old || head.start.starts_with("HTTP/1.0"))
                && !head.has_token("connection", "keep-alive"))
            || matches!(body, Body::UntilClose);
        let id = format!("{}/{}", self.index, exchange.number);
        self.page = head.get("x-id").is_none();
        match head.get("x-id") {
            Some(found) if found != id => {
                self.fault(stage, &format!("the answer to {found}, not to {id}"))
            }
            Some(_) if status != exchange.answer.status => {
                self.fault(stage, &format!("status {status}"))
            }
            None if !Self::page_is_right(status, exchange, stage) => {
                self.fault(stage, &format!("an error page {status} to {exchange:?}"))
            }
            _ => {}
        }
        if self.page && self.waiting.take().is_some() {
            // A refused body never leaves; the request is over.
            self.sent_all = true;
        }
        if body == Body::Tunnel && !self.page {
            self.tunnel = true;
            let (up, _) = exchange.tunnel.unwrap_or_default();
            pipe.write(&pattern(self.index, exchange.number, Way::TunnelUp, up));
            pipe.peer_ended = true;
            self.sent_all = true;
        }
    }

    fn page_is_right(status: u16, exchange: &Exchange, stage: &Stage<'_>) -> bool {
        match status {
            403 => stage.setup.denies && exchange.number == 1,
            400 | 408 | 413 | 414 | 431 | 500 | 501 | 502 | 503 | 504 => !stage.mood.calm,
            _ => false,
        }
    }

    /// A stale server connection took the request with it, and it must not go out again by itself.
    fn must_retry(exchange: &Exchange, stage: &Stage<'_>) -> bool {
        let safe = exchange.is_idempotent() && exchange.body == Framed::None;
        stage.mood.stale && !safe
    }

    fn data(&mut self, data: &[u8], exchange: &Exchange, stage: &mut Stage<'_>) {
        if self.page || exchange.answer.fault == Fault::Garbage {
            self.got += data.len();
            return;
        }
        let way = if self.tunnel {
            Way::TunnelDown
        } else {
            Way::Response
        };
        if let Some(place) = mismatch(self.index, exchange.number, way, self.got, data) {
            self.fault(stage, &format!("a wrong byte at {place}"));
        }
        self.got += data.len();
        if self.got > self.wanted(exchange) {
            self.fault(
                stage,
                &format!("{} bytes, planned were {}", self.got, self.wanted(exchange)),
            );
        }
    }

    fn wanted(&self, exchange: &Exchange) -> usize {
        match exchange.tunnel {
            Some((_, down)) if self.tunnel => down,
            _ => exchange.expected().size(),
        }
    }

    fn end_of_answer(
        &mut self,
        exchange: &Exchange,
        stage: &mut Stage<'_>,
        pipe: &mut Pipe,
        now_ms: u64,
    ) {
        if std::mem::take(&mut self.interim) {
            return;
        }
        if !self.page
            && exchange.answer.fault != Fault::Garbage
            && self.got != self.wanted(exchange)
        {
            self.fault(
                stage,
                &format!("ends at {} of {}", self.got, self.wanted(exchange)),
            );
        }
        self.current += 1;
        self.idle_since_ms = now_ms;
        if let Some(body) = self.waiting.take() {
            // The server answered without asking for the body: it is sent all the same, framing
            // demands it.
            pipe.write(&body);
        }
        if self.closing {
            self.sent_all = true;
            pipe.peer_ended |= stage.random.chance(50);
        } else {
            self.go_on(stage, pipe);
        }
    }

    /// The proxy's end.
    pub fn ended(&mut self, stage: &mut Stage<'_>, pipe: &mut Pipe, now_ms: u64) {
        self.done = true;
        pipe.peer_ended = true;
        let Some(exchange) = stage.plans[self.index].get(self.current).copied() else {
            return;
        };
        if !stage.mood.calm || self.current >= self.next {
            return;
        }
        if self.tunnel || self.reader.is_until_close() {
            if self.got != self.wanted(&exchange) {
                self.fault(
                    stage,
                    &format!(
                        "the connection ends at {} of {}",
                        self.got,
                        self.wanted(&exchange)
                    ),
                );
            }
            return;
        }
        let idle_over = now_ms - self.idle_since_ms >= stage.setup.keep_alive_ms;
        // A request over QUIC may be on its way when the proxy says that it takes no more.
        let crossed = stage.draining && stage.setup.is_quic();
        let between = self.reader.is_between() && (self.current > 0 || crossed);
        let ended = self.closing || stage.draining || idle_over;
        let stale = Self::must_retry(&exchange, stage) && self.reader.is_between();
        if !(between && ended || stale) {
            self.fault(
                stage,
                &format!("the connection ends without the answer to {exchange:?}"),
            );
        }
    }

    /// The proxy's reset.
    pub fn was_reset(&mut self, stage: &mut Stage<'_>) {
        self.done = true;
        if stage.mood.calm {
            self.fault(stage, "reset");
        }
    }

    fn fault(&mut self, stage: &mut Stage<'_>, text: &str) {
        self.done = true;
        stage.fault(format!(
            "client {} at request {}: {text}",
            self.index, self.current
        ));
    }
}

fn request_head(exchange: &Exchange) -> Vec<u8> {
    let Exchange {
        client,
        number,
        method,
        ..
    } = exchange;
    let version = if exchange.old { "1.0" } else { "1.1" };
    let mut head = if *method == "CONNECT" {
        format!("CONNECT c{client}.n{number}:80 HTTP/{version}\r\nHost: c{client}.n{number}:80\r\n")
    } else {
        format!("{method} /{client}/{number} HTTP/{version}\r\nHost: sim\r\n")
    };
    head.push_str(&format!("X-Id: {client}/{number}\r\n"));
    match exchange.body {
        Framed::Length(size) => head.push_str(&format!("Content-Length: {size}\r\n")),
        Framed::Chunked { .. } => head.push_str("Transfer-Encoding: chunked\r\n"),
        Framed::None | Framed::UntilClose(_) => {}
    }
    if exchange.expect {
        head.push_str("Expect: 100-continue\r\n");
    }
    match (
        exchange.old,
        exchange.keep_alive,
        exchange.tunnel.is_some() && *method != "CONNECT",
    ) {
        (_, _, true) => head.push_str("Connection: upgrade\r\nUpgrade: echo\r\n"),
        (true, true, _) => head.push_str("Connection: keep-alive\r\n"),
        (false, false, _) => head.push_str("Connection: close\r\n"),
        _ => {}
    }
    head.push_str("\r\n");
    head.into_bytes()
}

fn body_of(head: &Head, exchange: &Exchange) -> Result<Body, String> {
    let status = head.status();
    match status {
        0 => Err(format!("no status: {:?}", head.start)),
        101 => Ok(Body::Tunnel),
        200..300 if exchange.method == "CONNECT" => Ok(Body::Tunnel),
        _ if status < 200 || status == 204 || status == 304 || exchange.method == "HEAD" => {
            Ok(Body::Length(0))
        }
        _ => framing(head, Body::UntilClose),
    }
}
