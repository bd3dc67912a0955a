//! `tcp-request content` and `tcp-response content`: rules about bytes, which may wait for more
//! bytes.

use std::time::Duration;

use net::Driver;
use telemetry::Event;

use super::Cx;
use crate::ids::ProxyId;
use crate::rules::ContentOutcome;
use crate::runtime_config::deadline;
use crate::stream::{Inspection, Phase, Step, Stream};

impl<D: Driver> Cx<'_, D> {
    /// Runs `tcp-request content` of a proxy. The rules may wait for bytes, at most its
    /// `inspect-delay`.
    #[inline(always)]
    pub(super) fn content_rules(
        &mut self,
        stream: &mut Stream,
        proxy: ProxyId,
        inspection: Inspection,
        next: Phase,
    ) -> Step {
        if self.runtime_config.sniffs_http(proxy) {
            self.sniff_http(stream);
        }
        if self
            .runtime_config
            .proxy(proxy)
            .tcp_request_content
            .is_empty()
        {
            stream.go(next)
        } else {
            self.run_content_rules(stream, proxy, inspection, next)
        }
    }

    #[inline(never)]
    fn run_content_rules(
        &mut self,
        stream: &mut Stream,
        proxy: ProxyId,
        inspection: Inspection,
        next: Phase,
    ) -> Step {
        let config = self.runtime_config.proxy(proxy);
        let delay = config.tcp_request_inspect_delay;
        let over = inspection.until_ms.is_some_and(|at| self.now_ms() >= at);
        let is_full = stream.up.waiting.len() >= self.runtime_config.bufsize();
        let last_chance = over || delay.is_none() || is_full || stream.up.came || stream.up.cut;
        let outcome = self.with_rules(stream, |cx, stream| {
            cx.content_rules(stream, proxy, last_chance)
        });
        match outcome {
            None => Step::Wait,
            Some(ContentOutcome::Pass | ContentOutcome::CloseServer) => stream.go(next),
            Some(ContentOutcome::Upgrade(proto)) => self.upgrade(stream, proto),
            Some(ContentOutcome::End(end)) => self.end_by_rule(stream, end),
            Some(ContentOutcome::Wait) => {
                let inspection = self.inspect_more(inspection, delay);
                inspect_again(stream, inspection)
            }
            // The delay begins anew after the answer: its end must not run the rules before.
            Some(ContentOutcome::WaitName) => inspect_again(stream, Inspection::default()),
        }
    }

    fn inspect_more(&self, inspection: Inspection, delay: Option<Duration>) -> Inspection {
        let delay_ms = delay.map_or(0, |delay| delay.as_millis() as u64);
        let until_ms = inspection
            .until_ms
            .unwrap_or_else(|| deadline(self.now(), delay_ms));
        Inspection {
            until_ms: Some(until_ms),
        }
    }

    /// Runs `tcp-response content` for an HTTP response, without waiting. An error stops the
    /// processing of the response.
    pub(super) fn response_content(&mut self, stream: &mut Stream) -> Result<(), Step> {
        let outcome = self.with_rules(stream, |cx, stream| cx.response_content_rules(stream, true));
        match outcome {
            Some(
                ContentOutcome::Pass
                | ContentOutcome::Wait
                | ContentOutcome::WaitName
                | ContentOutcome::Upgrade(_),
            ) => Ok(()),
            Some(ContentOutcome::End(end)) => Err(self.end_by_rule(stream, end)),
            Some(ContentOutcome::CloseServer) | None => {
                self.cut(stream);
                Err(Step::Wait)
            }
        }
    }

    /// Runs `tcp-response content` for the first bytes of a TCP server, which are in the channel.
    /// Whether they may pass now.
    pub(super) fn inspect_response(&mut self, stream: &mut Stream) -> bool {
        let Phase::Tunnel(mut tunnel) = stream.phase else {
            return false;
        };
        let Some(inspection) = tunnel.inspection else {
            return true;
        };
        let backend = self.runtime_config.proxy(stream.backend);
        let delay = backend.tcp_response_inspect_delay;
        let over = inspection.until_ms.is_some_and(|at| self.now_ms() >= at);
        let is_full = stream.down.waiting.len() >= self.runtime_config.bufsize();
        let last_chance = over || is_full || stream.down.came || delay.is_none();
        if stream.down.waiting.is_empty() && !last_chance {
            return false;
        }
        let outcome = self.with_rules(stream, |cx, stream| {
            cx.response_content_rules(stream, last_chance)
        });
        match outcome {
            Some(ContentOutcome::Wait) => {
                let inspection = self.inspect_more(inspection, delay);
                tunnel.inspection = Some(inspection);
                stream.phase = Phase::Tunnel(tunnel);
                return false;
            }
            Some(ContentOutcome::End(end)) => {
                self.end_by_rule(stream, end);
                return false;
            }
            // Forwards the bytes at hand, then ends both sides.
            Some(ContentOutcome::CloseServer) => {
                (tunnel.client_ended, tunnel.server_ended) = (true, true);
            }
            // No rule about responses waits for a name.
            Some(ContentOutcome::Pass | ContentOutcome::WaitName | ContentOutcome::Upgrade(_))
            | None => {}
        }
        tunnel.inspection = None;
        stream.phase = Phase::Tunnel(tunnel);
        true
    }

    /// Runs `use-server`, then reads persistence cookies.
    pub(super) fn assign_server(&mut self, stream: &mut Stream) -> Step {
        self.trace(stream, Event::ProcessServerRulesRequest);
        if self.runtime_config.binds(stream.backend) {
            self.with_eval(stream, crate::persistence::bind);
        }
        if crate::persistence::watches_requests(self.runtime_config, stream) {
            self.with_eval(stream, crate::persistence::request_cookies);
        }
        if !self
            .runtime_config
            .proxy(stream.backend)
            .stick_request
            .is_empty()
        {
            self.stick_request(stream);
        }
        if stream.txn.is_http {
            return stream.go(Phase::PrepareRequest);
        }
        let events = [
            Event::TcpRdpCookieRequest,
            Event::ProcessStickingRulesRequest,
        ];
        self.trace_all(stream, events);
        stream.go(Phase::SelectServer)
    }
}

/// The rules of the phase run again.
fn inspect_again(stream: &mut Stream, inspection: Inspection) -> Step {
    stream.phase = match stream.phase {
        Phase::BackendContent(_) => Phase::BackendContent(inspection),
        _ => Phase::FrontendContent(inspection),
    };
    Step::Wait
}
