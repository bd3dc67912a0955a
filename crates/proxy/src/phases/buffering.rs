//! Bodies that rules wait for. They are collected in their channel, up to one buffer.

use net::Driver;
use telemetry::Event;

use super::Cx;
use crate::runtime_config::deadline;
use crate::stream::{Phase, Rules, Step, Stream, Tunnel, Until};

impl<D: Driver> Cx<'_, D> {
    /// `option http-buffer-request` of the frontend.
    pub(super) fn frontend_body(&mut self, stream: &mut Stream) -> Step {
        let events = [Event::HttpWaitRequest, Event::HttpBodyRequest];
        self.trace_all(stream, events);
        let options = &self.runtime_config.proxy(stream.frontend).options;
        let next = Phase::FrontendRequest(Rules::default());
        self.buffer_body(stream, options.http_buffer_request, next)
    }

    /// `option http-buffer-request` of the backend.
    pub(super) fn backend_body(&mut self, stream: &mut Stream) -> Step {
        let options = &self.runtime_config.proxy(stream.backend).options;
        let wanted = options.http_buffer_request && stream.backend != stream.frontend;
        self.buffer_body(stream, wanted, Phase::BackendRequest(Rules::default()))
    }

    /// Waits until the request's body is complete or fills the buffer.
    #[inline(always)]
    fn buffer_body(&mut self, stream: &mut Stream, wanted: bool, next: Phase) -> Step {
        if !wanted {
            return stream.go(next);
        }
        self.await_body(stream, next)
    }

    #[inline(never)]
    fn await_body(&mut self, stream: &mut Stream, next: Phase) -> Step {
        if stream
            .up
            .is_here(&stream.request, self.runtime_config.bufsize(), None)
        {
            if !stream.up.cut {
                stream.txn.waits = None;
            }
            return stream.go(next);
        }
        if let Phase::FrontendBody(until) | Phase::BackendBody(until) = &mut stream.phase
            && *until == Until::default()
        {
            let timeouts = self.runtime_config.timeouts(stream.frontend);
            *until = Until(deadline(self.now(), timeouts.http_request));
        }
        stream.txn.waits = Some(sample::Waits::Body);
        self.await_upload(stream);
        Step::Wait
    }

    /// Starts to receive the body before a server is chosen: asks a client that sent `Expect:
    /// 100-continue` for it, and takes the bytes at hand.
    pub(super) fn await_upload(&mut self, stream: &mut Stream) {
        let Some(client) = stream.client else { return };
        if let Some(wire) = self.core.links.ask_for_body(self.io, client) {
            stream.request.remove_all(b"expect");
            stream.txn.bytes_out += wire as u64;
        }
        self.core.work.links.push_back(client.into());
    }

    /// Keeps payload of a request that cannot leave yet, as far as rules inspect it. Returns how
    /// many bytes were kept.
    pub(super) fn keep_upload(&self, stream: &mut Stream, bytes: &[u8]) -> usize {
        if let Phase::Tunnel(Tunnel {
            client_ended: true, ..
        }) = stream.phase
        {
            // It was silent for too long: the server was told that nothing follows.
            return bytes.len();
        }
        let is_wanted = !stream.txn.is_http
            || stream.phase.awaits_upload()
            || self.runtime_config.config.needs.request_body;
        if !is_wanted {
            return 0;
        }
        let room = if stream.txn.is_http {
            stream
                .up
                .room(&stream.request, self.runtime_config.bufsize())
        } else {
            self.runtime_config.bufsize()
        };
        let count = room
            .saturating_sub(stream.up.waiting.len())
            .min(bytes.len());
        stream.up.waiting.extend_from_slice(&bytes[..count]);
        count
    }

    /// Keeps payload of a response in the same way.
    pub(super) fn keep_download(&self, stream: &mut Stream, bytes: &[u8]) -> usize {
        let room = match stream.phase {
            Phase::BackendResponse(rules) if rules.awaits_body() => stream
                .down
                .room(&stream.response, self.runtime_config.bufsize()),
            Phase::Tunnel(Tunnel {
                server_ended: true, ..
            }) => return bytes.len(),
            Phase::Tunnel(_) => self.runtime_config.bufsize(),
            _ => return 0,
        };
        let count = room
            .saturating_sub(stream.down.waiting.len())
            .min(bytes.len());
        stream.down.waiting.extend_from_slice(&bytes[..count]);
        count
    }
}
