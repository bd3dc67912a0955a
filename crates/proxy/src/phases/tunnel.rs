//! Forwards bytes both ways without parsing them: TCP, CONNECT and upgraded connections.

use net::Driver;
use net::timers::NEVER_MS;

use super::Cx;
use crate::ids::ExchangeId;
use crate::link::Hold;
use crate::runtime_config::deadline;
use crate::stream::{Inspection, Phase, Step, Stream, Tunnel};

impl<D: Driver> Cx<'_, D> {
    /// Both sides are connected: forwards the bytes that wait.
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
        self.tunnel_deadlines(stream, (true, true));
        let came = std::mem::take(&mut stream.up.came);
        stream.up.is_open = true;
        if !stream.up.waiting.is_empty() {
            let waiting = std::mem::take(&mut stream.up.waiting);
            if !stream.txn.is_http {
                stream.txn.bytes_in += waiting.len() as u64;
            }
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

    /// Bytes were forwarded to the server (`up`) or to the client.
    pub(super) fn tunnel_moved(&mut self, stream: &mut Stream, up: bool) {
        let options = |proxy| &self.runtime_config.proxy(proxy).options;
        if up {
            let independent = options(stream.backend).independent_streams;
            self.tunnel_deadlines(stream, (true, !independent));
        } else {
            let independent = options(stream.frontend).independent_streams;
            self.tunnel_deadlines(stream, (!independent, true));
        }
    }

    /// Restarts the timeouts of the client's side, the server's side, or both. With `option
    /// independent-streams`, bytes sent to a side do not restart its timeout. As in HAProxy,
    /// `timeout tunnel` applies once both sides have sent, and `*-fin` to half-closed tunnels.
    fn tunnel_deadlines(&mut self, stream: &mut Stream, (of_client, of_server): (bool, bool)) {
        let Phase::Tunnel(tunnel) = stream.phase else {
            return;
        };
        let now = self.now();
        let runtime_config = self.runtime_config;
        let front = runtime_config.timeouts(stream.frontend);
        let back = runtime_config.timeouts(stream.backend);
        let both = stream.txn.is_http || (stream.txn.bytes_in > 0 && stream.txn.bytes_out > 0);
        let tunnel_ms = stream.tunnel_ms(runtime_config);
        let whole = (both && tunnel_ms != NEVER_MS).then_some(tunnel_ms);
        let half = tunnel.client_ended || tunnel.server_ended;
        let pick = |plain: u64, fin: u64| {
            if half && fin != NEVER_MS {
                fin
            } else {
                whole.unwrap_or(plain)
            }
        };
        if of_client {
            let timeout_ms = pick(stream.client_ms(runtime_config), front.client_fin);
            stream.deadlines.client_ms = deadline(now, timeout_ms);
        }
        if of_server {
            let timeout_ms = pick(stream.server_ms(runtime_config), back.server_fin);
            stream.deadlines.server_ms = deadline(now, timeout_ms);
        }
        self.set_timer(stream);
    }

    pub(super) fn tunnel_client_ended(&mut self, stream: &mut Stream) {
        stream.up.came = true;
        if !stream.up.waiting.is_empty() {
            // The end is forwarded after the waiting bytes.
            return;
        }
        self.tunnel_half_over(stream, stream.server.link(), |tunnel| {
            tunnel.client_ended = true;
        });
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
        self.tunnel_half_over(stream, stream.client, |tunnel| tunnel.server_ended = true);
    }

    /// One side has ended: ends the other side after all earlier bytes.
    fn tunnel_half_over(
        &mut self,
        stream: &mut Stream,
        other: Option<ExchangeId>,
        mark: impl FnOnce(&mut Tunnel),
    ) {
        let Phase::Tunnel(mut tunnel) = stream.phase else {
            return;
        };
        mark(&mut tunnel);
        stream.phase = Phase::Tunnel(tunnel);
        if let Some(other) = other {
            self.core.links.send_fin(self.io, other);
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
            return self.tunnel_deadlines(stream, (true, true));
        }
        let ends = [stream.client, stream.server.link()];
        let mut ends = ends.into_iter().flatten();
        if !ends.any(|link| self.core.links.is_blocked(link)) {
            stream.txn.timing.data_end_ms = Some(self.now().ms());
            self.finish(stream);
        }
    }
}
