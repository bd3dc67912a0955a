//! The way of a request, top to bottom.
//!
//! A stream is a state machine over [`Phase`]s. A phase does its work and either names the next one or waits; what wakes it is
//! written beside it. Bodies move beside the phases once their head has left (see [`super::transfer`]).

use net::Driver;

use super::{Phase, Stream};
use crate::engine::{Core, Cx};

/// What a phase came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The next phase.
    Go(Phase),
    /// Something must happen first; the event comes back to this phase.
    Wait,
}

impl Core {
    /// Runs a stream as far as it goes.
    pub fn run<D: Driver>(&mut self, cx: &mut Cx<'_, D>, stream: &mut Stream) {
        stream.txn.turns = stream.txn.turns.wrapping_add(1);
        loop {
            let step = match stream.phase {
                // The head of the request: waits for the client's bytes, at most `timeout http-request`.
                Phase::RequestHead => Step::Wait,
                // `tcp-request content` of the frontend: may wait `inspect-delay` for bytes.
                Phase::FrontendContent => self.frontend_content(cx, stream),
                // `option http-buffer-request` of the frontend: waits for the body or a full buffer.
                Phase::FrontendBody => self.frontend_body(cx, stream),
                // `http-request` of the frontend.
                Phase::FrontendRequest => self.frontend_request(cx, stream),
                // `use_backend`, `default_backend`.
                Phase::SwitchBackend => self.switch_backend(cx, stream),
                // `tcp-request content` of the backend.
                Phase::BackendContent => self.backend_content(cx, stream),
                // `option http-buffer-request` of the backend.
                Phase::BackendBody => self.backend_body(cx, stream),
                // `http-request` of the backend.
                Phase::BackendRequest => self.backend_request(cx, stream),
                // `use-server`, persistence cookies.
                Phase::AssignServer => self.assign_server(cx, stream),
                // Forwarding headers, connection handling.
                Phase::PrepareRequest => self.prepare_request(cx, stream),
                // Balancing; a slot of the server.
                Phase::SelectServer => self.select_server(cx, stream),
                // A full backend: waits for a slot, at most `timeout queue`.
                Phase::Queue => Step::Wait,
                // The pause before the same server is tried again.
                Phase::TurnAround => Step::Wait,
                // A connection to the server, idle or fresh: waits for it, at most `timeout connect`.
                Phase::Connect => self.connect_server(cx, stream),
                // The head of the request leaves; its body follows as it comes.
                Phase::SendRequest => self.send_request(cx, stream),
                // The head of the response: waits for the server's bytes, at most `timeout server`.
                Phase::ResponseHead => Step::Wait,
                // `tcp-response content`, `http-response` of backend and frontend.
                Phase::BackendResponse => self.response_rules(cx, stream),
                // `http-after-response`; the head of the response leaves.
                Phase::SendResponse => self.send_response(cx, stream),
                // Both bodies to their ends.
                Phase::Transfer => self.transfer(cx, stream),
                // A refused client is kept waiting.
                Phase::Tarpit => Step::Wait,
                // TCP, CONNECT, upgrades: bytes both ways until both sides are done.
                Phase::OpenTunnel => self.open_tunnel(cx, stream),
                Phase::Tunnel => Step::Wait,
                Phase::Done => Step::Wait,
            };
            match step {
                Step::Go(phase) => stream.phase = phase,
                Step::Wait => return,
            }
        }
    }
}
