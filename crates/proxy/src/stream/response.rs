//! The head of the request leaves, that of the response comes back: read, its rules run, sent on.

use config::model::ConnectionMode;
use http::h1::{self, Framing, Strictness};
use http::{Method, Version};
use net::timers::NEVER_MS;
use net::{Driver, Sent};
use sample::LogOrigin;
use telemetry::Event;

use super::buffering::framed;
use super::phases::Step;
use super::retry::Failure;
use super::transfer::{Coding, Transfer};
use super::{Phase, Stream};
use crate::engine::{Core, Cx, Life};
use crate::names::{adjust_case, tell_server_name};
use crate::reply::{is_bodiless, put_length};
use crate::rules::tcp::Answer;
use crate::rules::{Outcome, RuleSet};
use crate::running::deadline;

impl Core {
    /// The request's head leaves for the server.
    pub fn send_request<D: Driver>(&mut self, cx: &mut Cx<'_, D>, stream: &mut Stream) -> Step {
        let (Some(server), Some(client)) = (stream.server, stream.client) else {
            return Step::Wait;
        };
        self.trace_server(cx, stream);
        let chunked = stream.parsed.framing == Framing::Chunked;
        stream.upload.coding = if chunked {
            Coding::Chunked
        } else {
            Coding::Plain
        };
        stream.sent.clear();
        let backend = cx.running.proxy(stream.backend);
        tell_server_name(backend, stream);
        h1::write_request(&stream.request, &mut stream.sent);
        let bogus = backend.options.h1_case_adjust_bogus_server;
        adjust_case(cx.running, bogus, &mut stream.sent);
        stream.resendable = stream.upload.done && stream.kept.is_empty();
        let now = cx.now();
        self.set_deadline(server, deadline(now, stream.server_ms(cx.running)));
        if stream.upload.done {
            stream.txn.bytes_to_server += (stream.sent.len() + stream.kept.len()) as u64;
            self.send(cx, server, &stream.sent, &stream.kept);
            self.trace(cx, stream, Event::HttpEndRequest);
        } else {
            // The body that is here already leaves with the head: the client's input has its turn before this entry
            // point is over, and sends the head in any case.
            stream.upload.open = true;
            stream.head_waits = true;
            self.poked.push(client);
            self.set_deadline(client, deadline(now, stream.client_ms(cx.running)));
        }
        Step::Go(Phase::ResponseHead)
    }

    /// Sends a request's head that no body came for.
    pub fn flush_request_head<D: Driver>(&mut self, cx: &mut Cx<'_, D>, stream: &mut Stream) {
        if std::mem::take(&mut stream.head_waits)
            && let Some(server) = stream.server
        {
            let head = std::mem::take(&mut stream.sent);
            stream.txn.bytes_to_server += head.len() as u64;
            self.send(cx, server, &head, &[]);
            stream.sent = head;
        }
    }

    /// Reads a response's head; 0 while it is not whole.
    pub fn read_response_head<D: Driver>(
        &mut self,
        cx: &mut Cx<'_, D>,
        stream: &mut Stream,
        bytes: &[u8],
    ) -> usize {
        let limits = cx.running.limits();
        if stream.head_in_parts && !stream.resume.is_worth_it(bytes, limits) {
            return 0;
        }
        let to = stream.sent_method();
        match h1::parse_response(
            bytes,
            to,
            limits,
            strictness(cx, stream),
            &mut stream.response,
        ) {
            Ok(None) => {
                if !std::mem::replace(&mut stream.head_in_parts, true) {
                    stream.resume = h1::Resume::default();
                    stream.resume.is_worth_it(bytes, limits);
                }
                0
            }
            Ok(Some(parsed)) => {
                stream.head_read = parsed.consumed;
                stream.body_read = framed(parsed.framing, bytes.len() - parsed.consumed);
                stream.txn.bytes_from_server += parsed.consumed as u64;
                self.response_read(cx, stream, parsed);
                parsed.consumed
            }
            Err(_) => {
                stream.keep_server = false;
                if !self.retry(cx, stream, Failure::Junk) {
                    stream.ended_by(b'P', b'H');
                    self.fail(cx, stream, 502);
                }
                bytes.len()
            }
        }
    }

    fn response_read<D: Driver>(
        &mut self,
        cx: &mut Cx<'_, D>,
        stream: &mut Stream,
        parsed: h1::Parsed,
    ) {
        let status = stream.response.status();
        stream.head_in_parts = false;
        // From here on the server has seen the request.
        stream.resendable = false;
        if (100..200).contains(&status) && status != 101 {
            // Its client knows now that a server has the request.
            stream.retriable = false;
            return self.forward_interim(cx, stream);
        }
        if stream.retriable && self.retry(cx, stream, Failure::Status(status)) {
            return;
        }
        stream.txn.timing.response_start_ms = Some(cx.now().ms());
        stream.txn.status = status;
        stream.txn.server_status = status;
        let tunnel =
            status == 101 || (stream.txn.method == Method::Connect && (200..300).contains(&status));
        if !tunnel {
            stream.wants_tunnel = false;
        } else if !stream.wants_tunnel {
            stream.ended_by(b'P', b'H');
            stream.keep_server = false;
            return self.fail(cx, stream, 502);
        }
        stream.keep_server &= parsed.keep_alive && parsed.framing != Framing::UntilClose && !tunnel;
        let chunked = parsed.framing == Framing::Chunked;
        let coding = if chunked && stream.request_version() == Version::Http11 {
            Coding::Chunked
        } else {
            Coding::Plain
        };
        if chunked && coding == Coding::Plain {
            // HTTP/1.0 knows no chunks: the end of the connection ends the body.
            stream.response.remove_all(b"transfer-encoding");
            stream.keep_client = false;
        }
        // A chunked answer that calls itself HTTP/1.0 may be read to the end of the connection, so there must be one.
        let ambiguous = chunked && stream.response.version() == Version::Http10;
        if ambiguous || parsed.framing == Framing::UntilClose {
            stream.keep_client = false;
        }
        stream.answer_framing = parsed.framing;
        stream.txn.response_framing = parsed.framing;
        let framing = if tunnel {
            Framing::None
        } else {
            parsed.framing
        };
        stream.download =
            Transfer::new(framing, coding, cx.running.limits(), strictness(cx, stream));
        if stream.sent_method() != stream.txn.method {
            stream.answer_as_asked();
        }
        for capture in &cx.running.proxy(stream.frontend).capture_response {
            let value = stream.response.find(capture.header.as_bytes()).last();
            let value = value.map(|(_, value)| &value[..value.len().min(capture.len)]);
            stream.txn.captured_response.push(value);
        }
        stream.phase = Phase::BackendResponse;
        self.run(cx, stream);
    }

    /// 100, 102, 103: passed on to clients that know them; the final response is still to come.
    fn forward_interim<D: Driver>(&mut self, cx: &mut Cx<'_, D>, stream: &mut Stream) {
        if let Some(client) = stream.client
            && stream.request_version() == Version::Http11
        {
            let mut out = std::mem::take(&mut self.scratch);
            h1::write_response(&stream.response, &mut out);
            let options = &cx.running.proxy(stream.frontend).options;
            adjust_case(cx.running, options.h1_case_adjust_bogus_client, &mut out);
            stream.txn.bytes_out += out.len() as u64;
            let sent = self.send(cx, client, &out, &[]);
            out.clear();
            self.scratch = out;
            if sent == Sent::Backlog
                && let Some(server) = stream.server
            {
                // However many there are, they wait until the client takes them.
                self.pause(cx, server);
                self.set_deadline(server, NEVER_MS);
                let timeout_ms = stream.client_ms(cx.running);
                self.set_deadline(client, deadline(cx.now(), timeout_ms));
            }
        }
        stream.response.clear();
    }

    /// `http-response` of the backend, then of the frontend.
    pub fn response_rules<D: Driver>(&mut self, cx: &mut Cx<'_, D>, stream: &mut Stream) -> Step {
        let events = [
            Event::HttpWaitResponse,
            Event::ProcessStoreRulesResponse,
            Event::HttpResponse,
        ];
        self.trace_all(cx, stream, events);
        let resumed = stream.waiting_rule.map(|(proxy, _)| proxy);
        let content = &cx.running.proxy(stream.backend).tcp_response_content;
        if !content.is_empty() && resumed.is_none() {
            match self.response_content_rules(cx, stream, &[], true) {
                Answer::Pass => {}
                _ => {
                    self.cut(cx, stream);
                    return Step::Wait;
                }
            }
        }
        for proxy in [stream.backend, stream.frontend] {
            if resumed.is_some_and(|resumed| resumed != proxy && proxy == stream.backend) {
                continue; // done before the wait
            }
            match self.http_rules(cx, stream, proxy, RuleSet::Response) {
                Outcome::Continue => {}
                Outcome::Ended | Outcome::Wait => return Step::Wait,
            }
            if stream.backend == stream.frontend {
                break;
            }
        }
        if !self.response_cookies(cx, stream) {
            stream.ended_by(b'P', b'H');
            stream.keep_server = false;
            self.fail(cx, stream, 502);
            return Step::Wait;
        }
        Step::Go(Phase::SendResponse)
    }

    /// The response's head leaves for the client.
    pub fn send_response<D: Driver>(&mut self, cx: &mut Cx<'_, D>, stream: &mut Stream) -> Step {
        let Some(client) = stream.client else {
            return Step::Wait;
        };
        if !self.after_response_rules(cx, stream) {
            self.fail(cx, stream, 500);
            return Step::Wait;
        }
        self.trace(cx, stream, Event::HttpHeadersResponse);
        if stream.response.status() != stream.txn.server_status {
            stream.reframe();
        }
        self.finish_response_head(cx, stream);
        let options = &cx.running.proxy(stream.frontend).options;
        let bogus = options.h1_case_adjust_bogus_client;
        stream.download.drops_trailers = options.http_drop_response_trailers;
        h1::write_response(&stream.response, &mut self.scratch);
        adjust_case(cx.running, bogus, &mut self.scratch);
        stream.answered = true;
        stream.download.open = true;
        // Bytes that came while a rule waited have their turn, and so does the end behind them.
        if let Some(server) = stream.server
            && let Some(entry) = self.conns.get(server)
            && (entry.eof || !entry.input.is_empty())
        {
            self.poked.push(server);
        }
        if stream.wants_tunnel {
            let head = std::mem::take(&mut self.scratch);
            stream.txn.bytes_out += head.len() as u64;
            self.send(cx, client, &head, &[]);
            self.scratch = head;
            self.scratch.clear();
            self.log_at(cx, stream, LogOrigin::Response);
            return Step::Go(Phase::OpenTunnel);
        }
        if stream.download.done {
            self.flush_head(cx, stream);
        } else {
            // The head leaves with the first bytes of the body; `server_data` sees to it that it does not wait for them.
            stream.phase = Phase::Transfer;
        }
        self.log_at(cx, stream, LogOrigin::Response);
        Step::Go(Phase::Transfer)
    }

    /// Sends a head that waits in the scratch buffer.
    pub fn flush_head<D: Driver>(&mut self, cx: &mut Cx<'_, D>, stream: &mut Stream) {
        let Some(client) = stream.client else {
            return self.scratch.clear();
        };
        if !self.scratch.is_empty() {
            let head = std::mem::take(&mut self.scratch);
            stream.txn.bytes_out += head.len() as u64;
            self.send(cx, client, &head, &[]);
            self.scratch = head;
            self.scratch.clear();
        }
    }

    /// The connection the client is told about, and the version.
    pub fn finish_response_head<D: Driver>(&mut self, cx: &mut Cx<'_, D>, stream: &mut Stream) {
        let draining = matches!(self.life, Life::Draining { .. });
        if draining && !stream.wants_tunnel {
            stream.keep_client = false;
        }
        stream.keep_client &=
            cx.running.proxy(stream.frontend).connection_mode != ConnectionMode::Close;
        let version = match stream.response.version() {
            Version::Http10 => Version::Http10,
            _ => Version::Http11,
        };
        stream.response.set_version(version);
        if stream.wants_tunnel {
            return;
        }
        let old = version == Version::Http10;
        let old_client = stream.request_version() == Version::Http10;
        // A client that asked for the end sends nothing more; one whose request was not understood may.
        let asked = stream.parsed.consumed > 0 && !stream.parsed.keep_alive;
        stream.lingers = !stream.keep_client && !asked;
        match stream.keep_client {
            false if !old => stream.response.append(b"connection", b"close"),
            true if old || old_client => stream.response.append(b"connection", b"keep-alive"),
            _ => {}
        }
    }

    /// The server failed before its first byte: whether the request may go out again on another connection.
    pub fn may_resend(&self, stream: &Stream) -> bool {
        stream.on_reused
            && stream.resendable
            && !stream.answered
            && stream.txn.method.is_idempotent()
    }
}

/// How strict this stream's server is read.
fn strictness<D>(cx: &Cx<'_, D>, stream: &Stream) -> Strictness {
    match cx
        .running
        .proxy(stream.backend)
        .options
        .accept_unsafe_violations_in_http_response
    {
        true => Strictness::Relaxed,
        false => Strictness::Strict,
    }
}

impl Stream {
    /// A rule gave the response a status which may say that it has no body, or that it has one (RFC 9112 §6.3): nobody may
    /// take what follows for something else.
    fn reframe(&mut self) {
        if self.wants_tunnel || self.txn.method == Method::Head {
            return;
        }
        let status = self.response.status();
        // To the client a response below 200 is not the last one.
        self.keep_client &= status >= 200;
        match (is_bodiless(self.txn.server_status), is_bodiless(status)) {
            (false, true) => {
                self.response.remove_all(b"transfer-encoding");
                if status == 204 {
                    self.response.remove_all(b"content-length");
                }
                self.download.coding = Coding::Discard;
            }
            (true, false) => {
                self.response.remove_all(b"content-length");
                put_length(&mut self.response, 0);
            }
            _ => {}
        }
    }

    /// The method that the server got, which a rule may have set. It does not change what becomes a tunnel.
    fn sent_method(&self) -> Method {
        match (self.txn.method, self.request.method()) {
            (Method::Connect, _) | (_, Method::Connect) => self.txn.method,
            (_, sent) => sent,
        }
    }

    /// An answer to another method than the client's: to HEAD it has no body, to others it has one (RFC 9110 §9.3.2).
    fn answer_as_asked(&mut self) {
        match (self.txn.method, self.sent_method()) {
            (Method::Head, _) => self.download.coding = Coding::Discard,
            (_, Method::Head) if !is_bodiless(self.response.status()) => {
                self.response.remove_all(b"transfer-encoding");
                self.response.remove_all(b"content-length");
                put_length(&mut self.response, 0);
            }
            _ => {}
        }
    }

    /// The version of the client's request.
    pub fn request_version(&self) -> Version {
        if self.old_client {
            Version::Http10
        } else {
            Version::Http11
        }
    }
}
