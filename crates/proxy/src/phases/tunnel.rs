//! Forwards bytes both ways without parsing them: TCP, CONNECT and upgraded connections.

use config::model::Direction;
use net::Driver;

use super::{Cause, Cx};
use crate::link::Hold;
use crate::stream::{Inspection, Phase, Step, Stream, Tunnel};

impl<D: Driver> Cx<'_, D> {
    /// Both sides are connected: forwards the bytes that wait.
    #[inline(never)]
    pub(super) fn open_tunnel(&mut self, stream: &mut Stream) -> Step {
        let (Some(client), Some(server)) = (stream.client, stream.server.link()) else {
            return Step::Wait;
        };
        self.trace_server(stream);
        if self.runtime_config.has_tables && !stream.txn.is_http {
            self.stick_response(stream);
        }
        self.core.links.open_tunnel(server);
        let inspects = !self
            .runtime_config
            .proxy(stream.backend)
            .tcp_response_content
            .is_empty();
        let tunnel = Tunnel {
            inspection: (inspects && !stream.txn.is_http).then(Inspection::default),
            ..Tunnel::default()
        };
        stream.phase = Phase::Tunnel(tunnel);
        stream.up.done = false;
        (stream.down.came, stream.down.done) = (false, false);
        stream.down.is_open = tunnel.inspection.is_none();
        stream.activity.restart();
        let came = std::mem::take(&mut stream.up.came);
        stream.up.is_open = true;
        if !stream.up.waiting.is_empty() {
            let waiting = std::mem::take(&mut stream.up.waiting);
            let taken = self.upload(stream, &waiting);
            stream.up.waiting.extend_from_slice(&waiting[taken..]);
        }
        if came && !stream.txn.is_http {
            self.tunnel_client_ended(stream);
        }
        if matches!(stream.phase, Phase::Done) {
            return Step::Wait;
        }
        self.core.links.release(self.io, client, Hold::Full);
        self.core.work.links.push_back(client.into());
        self.core.work.links.push_back(server.into());
        Step::Wait
    }

    /// Inspects waiting bytes of a server that rules have not allowed to pass yet.
    pub fn inspect_waiting_response(&mut self, stream: &mut Stream) {
        if !self.inspect_response(stream) {
            return;
        }
        stream.down.is_open = true;
        self.send_waiting_down(stream);
        if let Phase::Tunnel(tunnel) = stream.phase {
            if tunnel.client_ended && tunnel.server_ended {
                return self.tunnel_maybe_over(stream);
            }
            if let Some(server) = stream.server.link() {
                self.core.work.links.push_back(server.into());
            }
        }
    }

    /// The client of a tunnel has been silent for too long: it counts as ended, so that the server
    /// may still answer.
    pub(super) fn tunnel_client_silent(&mut self, stream: &mut Stream) {
        self.note_silence(stream, Cause::ClientTimeout);
        stream.up.done = true;
        self.tunnel_client_ended(stream);
    }

    /// The same for the server.
    pub(super) fn tunnel_server_silent(&mut self, stream: &mut Stream) {
        self.note_silence(stream, Cause::ServerTimeout);
        stream.down.done = true;
        self.tunnel_server_ended(stream);
    }

    pub(super) fn tunnel_client_ended(&mut self, stream: &mut Stream) {
        stream.up.came = true;
        if !stream.up.waiting.is_empty() {
            // The end is forwarded after the waiting bytes.
            return;
        }
        self.tunnel_half_over(stream, Direction::Up);
    }

    pub fn tunnel_server_ended(&mut self, stream: &mut Stream) {
        stream.down.came = true;
        if let Phase::Tunnel(Tunnel {
            inspection: Some(_),
            ..
        }) = stream.phase
        {
            // Rules see the waiting bytes for the last time.
            self.inspect_waiting_response(stream);
        }
        if stream.down.is_open && !stream.down.waiting.is_empty() {
            // The end is forwarded after the waiting bytes.
            return;
        }
        self.tunnel_half_over(stream, Direction::Down);
    }

    /// The sender of a direction has ended: ends the receiver after all earlier bytes.
    fn tunnel_half_over(&mut self, stream: &mut Stream, direction: Direction) {
        let Phase::Tunnel(tunnel) = &mut stream.phase else {
            return;
        };
        let has_ended = match direction {
            Direction::Up => &mut tunnel.client_ended,
            Direction::Down => &mut tunnel.server_ended,
        };
        if std::mem::replace(has_ended, true) {
            return;
        }
        if let Some(receiver) = stream.receiver(direction) {
            let links = &mut self.core.links;
            links.send_fin(self.io, receiver);
            if links.is_blocked(receiver) {
                // Bytes that were sent before may turn out only now not to be accepted.
                stream.receiver_took(direction, true, self.now_ms());
            }
        }
        self.tunnel_maybe_over(stream);
    }

    /// The waiting bytes were sent: forwards the ends that came meanwhile.
    pub(super) fn tunnel_ends_follow(&mut self, stream: &mut Stream) {
        if let Phase::Tunnel(tunnel) = stream.phase
            && stream.up.came
            && stream.up.waiting.is_empty()
            && !tunnel.client_ended
        {
            self.tunnel_client_ended(stream);
        }
        if let Phase::Tunnel(tunnel) = stream.phase
            && stream.down.came
            && stream.down.waiting.is_empty()
            && !tunnel.server_ended
        {
            self.tunnel_server_ended(stream);
        }
    }

    /// Both sides have ended: ends the stream once both have taken all bytes.
    pub(super) fn tunnel_maybe_over(&mut self, stream: &mut Stream) {
        let Phase::Tunnel(tunnel) = stream.phase else {
            return;
        };
        if !(tunnel.client_ended && tunnel.server_ended) {
            return;
        }
        let ends = [stream.client, stream.server.link()];
        let mut ends = ends.into_iter().flatten();
        if ends.any(|link| self.core.links.is_blocked(link)) {
            return;
        }
        if stream.has_ending() {
            // A side that was silent for too long need not end either.
            self.cut(stream);
        } else {
            stream.txn.timing.data_end_ms = Some(self.now_ms());
            self.finish(stream);
        }
    }
}
