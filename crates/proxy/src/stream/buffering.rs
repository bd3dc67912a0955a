//! Bodies that rules wait for: whether what came of one is enough. It stays in the input of its connection.

use std::time::Duration;

use http::h1::{self, Framing};
use net::Driver;
use telemetry::Event;

use super::phases::Step;
use super::{Phase, Stream};
use crate::engine::{Core, Cx};
use crate::running::deadline;

impl Core {
    /// `option http-buffer-request` of the frontend.
    pub fn frontend_body<D: Driver>(&mut self, cx: &mut Cx<'_, D>, stream: &mut Stream) -> Step {
        let events = [Event::HttpWaitRequest, Event::HttpBodyRequest];
        self.trace_all(cx, stream, events);
        let wanted = cx
            .running
            .proxy(stream.frontend)
            .options
            .http_buffer_request;
        self.buffer_body(cx, stream, wanted, Phase::FrontendRequest)
    }

    /// The same of the backend.
    pub fn backend_body<D: Driver>(&mut self, cx: &mut Cx<'_, D>, stream: &mut Stream) -> Step {
        let options = &cx.running.proxy(stream.backend).options;
        let wanted = options.http_buffer_request && stream.backend != stream.frontend;
        self.buffer_body(cx, stream, wanted, Phase::BackendRequest)
    }

    /// Waits for a request's body, as far as a buffer takes it.
    #[inline]
    fn buffer_body<D: Driver>(
        &mut self,
        cx: &mut Cx<'_, D>,
        stream: &mut Stream,
        wanted: bool,
        next: Phase,
    ) -> Step {
        if wanted && self.waits_in_buffer(cx, stream) {
            return Step::Wait;
        }
        Step::Go(next)
    }

    fn waits_in_buffer<D: Driver>(&mut self, cx: &mut Cx<'_, D>, stream: &mut Stream) -> bool {
        let time_ms = cx.running.timeouts[stream.frontend].http_request;
        let waits = self.awaits_body(cx, stream, time_ms, None);
        if waits {
            stream.txn.waits = Some(sample::Waits::Body);
        } else if !stream.body_cut {
            stream.txn.waits = None;
        }
        waits
    }

    /// `http-request wait-for-body` (manual §4.4): whether it still waits.
    pub fn waits_for_request_body<D: Driver>(
        &mut self,
        cx: &mut Cx<'_, D>,
        stream: &mut Stream,
        time: Duration,
        enough: Option<usize>,
    ) -> bool {
        self.awaits_body(cx, stream, time.as_millis() as u64, enough)
    }

    /// Whether a body, or `enough` of it, is still to come; its client has `time_ms` from the first time that this is asked.
    fn awaits_body<D: Driver>(
        &mut self,
        cx: &mut Cx<'_, D>,
        stream: &mut Stream,
        time_ms: u64,
        enough: Option<usize>,
    ) -> bool {
        let Some(client) = stream.client else {
            return false;
        };
        if stream.upload.done || self.body_is_here(cx, stream, enough) {
            if std::mem::take(&mut stream.inspecting) {
                self.set_deadline(client, net::timers::NEVER_MS);
            }
            return false;
        }
        if !std::mem::replace(&mut stream.inspecting, true) {
            self.set_deadline(client, deadline(cx.now(), time_ms));
        }
        true
    }

    /// Whether as much of a request's body waits in the client's input as can be waited for: all of it, `enough` bytes, a full
    /// buffer, or what came before the client's end. Asks a client that expects it to send.
    pub fn body_is_here<D: Driver>(
        &mut self,
        cx: &mut Cx<'_, D>,
        stream: &mut Stream,
        enough: Option<usize>,
    ) -> bool {
        self.expect_continue(cx, stream);
        let bufsize = cx.running.config.global.tune.bufsize_bytes;
        let Some(entry) = stream.client.and_then(|client| self.conns.get(client)) else {
            return true;
        };
        let room = bufsize.saturating_sub(stream.request.wire_bytes());
        let here = entry.input.len();
        stream.body_cut || here >= room || has_body(stream.parsed.framing, &entry.input, enough)
    }

    /// Answers `Expect: 100-continue` where the body is wanted here, before a server is asked.
    fn expect_continue<D: Driver>(&mut self, cx: &mut Cx<'_, D>, stream: &mut Stream) {
        if let Some(client) = stream.client
            && std::mem::take(&mut stream.parsed.expect_continue)
        {
            stream.request.remove_all(b"expect");
            let interim = b"HTTP/1.1 100 Continue\r\n\r\n";
            stream.txn.bytes_out += interim.len() as u64;
            self.send(cx, client, interim, &[]);
        }
    }

    /// `http-response wait-for-body` (manual §4.4): whether it still waits. What comes meanwhile stays with the connection.
    pub fn waits_for_response_body<D: Driver>(
        &mut self,
        cx: &mut Cx<'_, D>,
        stream: &mut Stream,
        time: Duration,
        enough: Option<usize>,
    ) -> bool {
        let bufsize = cx.running.config.global.tune.bufsize_bytes;
        let room = bufsize.saturating_sub(stream.response.wire_bytes());
        let Some(server) = stream.server else {
            return false;
        };
        let Some(entry) = self.conns.get(server) else {
            return false;
        };
        let is_here = stream.download.done
            || entry.eof
            || entry.input.len() >= room
            || has_body(stream.answer_framing, &entry.input, enough);
        if is_here {
            if std::mem::take(&mut stream.inspecting) {
                let timeout_ms = stream.server_ms(cx.running);
                self.set_deadline(server, deadline(cx.now(), timeout_ms));
            }
            return false;
        }
        if !std::mem::replace(&mut stream.inspecting, true) {
            self.set_deadline(server, deadline(cx.now(), time.as_millis() as u64));
        }
        true
    }
}

/// How much of `bytes` behind a head can be its body.
pub(super) fn framed(framing: Framing, bytes: usize) -> usize {
    match framing {
        Framing::None => 0,
        Framing::Length(length) => bytes.min(usize::try_from(length).unwrap_or(usize::MAX)),
        Framing::Chunked | Framing::UntilClose => bytes,
    }
}

/// Whether all of a body, or `enough` bytes of it, lie in `input`.
pub(super) fn has_body(framing: Framing, input: &[u8], enough: Option<usize>) -> bool {
    let is_enough = |bytes: usize| enough.is_some_and(|enough| bytes >= enough);
    if let Framing::Length(length) = framing {
        return input.len() as u64 >= length || is_enough(input.len());
    }
    let mut decoder = h1::body::BodyDecoder::new(framing);
    let mut trailers = http::Head::default();
    let (mut rest, mut bytes) = (input, 0);
    while !decoder.is_done() {
        match decoder.next(rest, &mut trailers) {
            Ok((_, h1::body::Piece::More)) => return false,
            Ok((used, piece)) => {
                if let h1::body::Piece::Data(data) = piece {
                    bytes += data.len();
                }
                if is_enough(bytes) {
                    return true;
                }
                rest = &rest[used..];
            }
            // A broken body is whole enough: forwarding it finds the fault.
            Err(_) => return true,
        }
    }
    true
}
