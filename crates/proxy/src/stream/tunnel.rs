//! Bytes both ways, unread: TCP, CONNECT and upgraded connections.

use net::timers::NEVER_MS;
use net::{ConnId, Driver};

use super::phases::Step;
use super::{Phase, Stream};
use crate::engine::{Core, Cx};
use crate::rules::tcp::Answer;
use crate::running::deadline;

impl Core {
    /// Both sides stand: what waits moves on.
    pub fn open_tunnel<D: Driver>(&mut self, cx: &mut Cx<'_, D>, stream: &mut Stream) -> Step {
        let Some(client) = stream.client else {
            return Step::Wait;
        };
        self.trace_server(cx, stream);
        stream.phase = Phase::Tunnel;
        stream.upload.done = true;
        self.tunnel_deadlines(cx, stream);
        self.unpause(cx, client);
        self.poked.push(client);
        Step::Go(Phase::Tunnel)
    }

    pub fn tunnel_from_client<D: Driver>(
        &mut self,
        cx: &mut Cx<'_, D>,
        stream: &mut Stream,
        bytes: &[u8],
    ) -> usize {
        let (Some(client), Some(server)) = (stream.client, stream.server) else {
            return bytes.len();
        };
        stream.txn.bytes_in += bytes.len() as u64;
        stream.txn.bytes_to_server += bytes.len() as u64;
        self.tunnel_bytes(cx, stream, client, server, bytes);
        bytes.len()
    }

    pub fn tunnel_from_server<D: Driver>(
        &mut self,
        cx: &mut Cx<'_, D>,
        stream: &mut Stream,
        bytes: &[u8],
    ) -> usize {
        let (Some(client), Some(server)) = (stream.client, stream.server) else {
            return bytes.len();
        };
        let mut closes = false;
        if !stream.response_passed {
            match self.inspect_response(cx, stream, server, bytes) {
                Answer::Pass => {}
                Answer::Close => closes = true,
                Answer::Wait => return 0,
                Answer::Refuse => {
                    self.cut(cx, stream);
                    return bytes.len();
                }
            }
        }
        stream.txn.bytes_out += bytes.len() as u64;
        stream.txn.bytes_from_server += bytes.len() as u64;
        self.tunnel_bytes(cx, stream, server, client, bytes);
        if closes {
            (stream.client_ended, stream.server_ended) = (true, true);
            self.tunnel_maybe_over(cx, stream);
        }
        bytes.len()
    }

    /// `tcp-response content` about a TCP server's first bytes: waits for more at most `inspect-delay`.
    fn inspect_response<D: Driver>(
        &mut self,
        cx: &mut Cx<'_, D>,
        stream: &mut Stream,
        server: ConnId,
        bytes: &[u8],
    ) -> Answer {
        let backend = cx.running.proxy(stream.backend);
        if backend.tcp_response_content.is_empty() || stream.txn.is_http {
            stream.response_passed = true;
            return Answer::Pass;
        }
        let now = cx.now();
        let over = stream.inspecting && now.ms() >= stream.wait_until_ms;
        let ended = self.conns.get(server).is_some_and(|entry| entry.eof);
        let full = bytes.len() >= cx.running.config.global.tune.bufsize_bytes;
        let delay = backend.tcp_response_inspect_delay;
        let answer = self.response_content_rules(
            cx,
            stream,
            bytes,
            over || ended || full || delay.is_none(),
        );
        if answer == Answer::Wait {
            if !std::mem::replace(&mut stream.inspecting, true) {
                let delay_ms = delay.map_or(0, |delay| delay.as_millis() as u64);
                stream.wait_until_ms = deadline(now, delay_ms);
            }
            self.set_deadline(server, stream.wait_until_ms);
        } else {
            stream.inspecting = false;
            stream.response_passed = true;
        }
        answer
    }

    fn tunnel_bytes<D: Driver>(
        &mut self,
        cx: &mut Cx<'_, D>,
        stream: &Stream,
        from: ConnId,
        to: ConnId,
        bytes: &[u8],
    ) {
        if self.send(cx, to, bytes, &[]) == net::Sent::Backlog {
            self.pause(cx, from);
        }
        let options = |proxy: usize| &cx.running.proxy(proxy).options;
        if stream.client == Some(from) {
            let independent = options(stream.backend).independent_streams;
            self.tunnel_deadlines_of(cx, stream, (true, !independent));
        } else {
            let independent = options(stream.frontend).independent_streams;
            self.tunnel_deadlines_of(cx, stream, (!independent, true));
        }
    }

    /// Each side's time begins anew. HAProxy's rules: `timeout tunnel` once both sides talk, `*-fin` for half-closed ones.
    pub fn tunnel_deadlines<D: Driver>(&mut self, cx: &mut Cx<'_, D>, stream: &Stream) {
        self.tunnel_deadlines_of(cx, stream, (true, true));
    }

    /// As [`Core::tunnel_deadlines`] for the client's side, the server's side, or both: under `option independent-streams`
    /// what is sent to a side does not count for it.
    fn tunnel_deadlines_of<D: Driver>(
        &mut self,
        cx: &mut Cx<'_, D>,
        stream: &Stream,
        (of_client, of_server): (bool, bool),
    ) {
        let now = cx.now();
        let front = &cx.running.timeouts[stream.frontend];
        let back = &cx.running.timeouts[stream.backend];
        let both = stream.txn.is_http || (stream.txn.bytes_in > 0 && stream.txn.bytes_out > 0);
        let tunnel_ms = stream.tunnel_ms(cx.running);
        let tunnel = (both && tunnel_ms != NEVER_MS).then_some(tunnel_ms);
        let half = stream.client_ended || stream.server_ended;
        let pick = |plain: u64, fin: u64| {
            if half && fin != NEVER_MS {
                fin
            } else {
                tunnel.unwrap_or(plain)
            }
        };
        if let Some(client) = stream.client.filter(|_| of_client) {
            self.set_deadline(
                client,
                deadline(now, pick(stream.client_ms(cx.running), front.client_fin)),
            );
        }
        if let Some(server) = stream.server.filter(|_| of_server) {
            self.set_deadline(
                server,
                deadline(now, pick(stream.server_ms(cx.running), back.server_fin)),
            );
        }
    }

    pub fn tunnel_client_ended<D: Driver>(&mut self, cx: &mut Cx<'_, D>, stream: &mut Stream) {
        stream.client_ended = true;
        if let Some(server) = stream.server {
            self.half_close(cx, server);
        }
        self.tunnel_maybe_over(cx, stream);
    }

    pub fn tunnel_server_ended<D: Driver>(&mut self, cx: &mut Cx<'_, D>, stream: &mut Stream) {
        stream.server_ended = true;
        if let Some(client) = stream.client {
            self.half_close(cx, client);
        }
        self.tunnel_maybe_over(cx, stream);
    }

    fn half_close<D: Driver>(&mut self, cx: &mut Cx<'_, D>, conn: ConnId) {
        if let Some(entry) = self.conns.get(conn)
            && !std::mem::replace(&mut entry.shut, true)
        {
            cx.driver.shutdown(conn);
        }
    }

    /// Both ends came: over once both backlogs are gone.
    pub fn tunnel_maybe_over<D: Driver>(&mut self, cx: &mut Cx<'_, D>, stream: &mut Stream) {
        if !(stream.client_ended && stream.server_ended) {
            return self.tunnel_deadlines(cx, stream);
        }
        let has_backlog = |conn: Option<ConnId>, core: &mut Core| {
            conn.and_then(|conn| core.conns.get(conn))
                .is_some_and(|entry| entry.backlog)
        };
        if !has_backlog(stream.client, self) && !has_backlog(stream.server, self) {
            stream.txn.timing.data_end_ms = Some(cx.now().ms());
            stream.keep_client = false;
            stream.keep_server = false;
            self.finish(cx, stream);
        }
    }
}
