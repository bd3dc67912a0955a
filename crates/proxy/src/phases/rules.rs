//! Runs the rule sets of a request and response, and handles streams that a rule ends or holds.

use net::Driver;
use telemetry::Event;

use super::{Cause, Cx};
use crate::ids::ProxyId;
use crate::link::Hold;
use crate::rules::{End, Outcome, RuleSet, Waiting};
use crate::runtime_config::{Skips, deadline};
use crate::stream::{Phase, RuleWait, Rules, ServerEnd, Step, Stream, Tarpit, Until};

impl<D: Driver> Cx<'_, D> {
    /// Runs the `http-request` rules of a proxy, its header name restriction, then its `redirect`
    /// rules.
    #[inline(always)]
    pub(super) fn request_rules(
        &mut self,
        stream: &mut Stream,
        proxy: ProxyId,
        rules: Rules,
        next: Phase,
    ) -> Step {
        match self.http_rules(stream, proxy, RuleSet::Request, rules) {
            Outcome::Continue => {}
            Outcome::End(end) => return self.end_by_rule(stream, end),
            Outcome::Wait(waiting) => return self.wait_for(stream, waiting),
        }
        if !self.restrict_names(stream, proxy) {
            return Step::Wait;
        }
        if self.runtime_config.takes_early_data {
            self.mark_early_data(stream);
        }
        if self.asks_statistics(stream, proxy) {
            return self.serve_statistics(stream, proxy, rules.waits);
        }
        match self.http_rules(stream, proxy, RuleSet::Redirect, Rules::default()) {
            Outcome::End(end) => self.end_by_rule(stream, end),
            // No rule of this set waits.
            Outcome::Continue | Outcome::Wait(_) => stream.go(next),
        }
    }

    /// Adds `Early-Data` to a request that came before its client's handshake was complete (RFC
    /// 8470 §5.1).
    #[cold]
    pub(super) fn mark_early_data(&mut self, stream: &mut Stream) {
        let is_early = self.is_early(stream);
        let head = &mut stream.request;
        if is_early && head.get(http::Name::EarlyData).is_none() {
            head.append(b"early-data", b"1");
            stream.route.is_marked_early = true;
        } else if !is_early && std::mem::take(&mut stream.route.is_marked_early) {
            head.remove_all(b"early-data");
        }
    }

    /// Whether the handshake of a stream's client is not complete.
    fn is_early(&self, stream: &Stream) -> bool {
        let session = stream.client.and_then(|link| self.core.links.session(link));
        let tls = session.and_then(|session| session.tls.as_ref());
        tls.is_some_and(|tls| tls.has_early)
    }

    /// Runs a rule set of a proxy. Most sets are empty and cost one branch.
    #[inline(always)]
    pub(super) fn http_rules(
        &mut self,
        stream: &mut Stream,
        proxy: ProxyId,
        set: RuleSet,
        rules: Rules,
    ) -> Outcome {
        if set.rules(self.runtime_config.proxy(proxy)).is_empty() {
            Outcome::Continue
        } else {
            self.run_rules(stream, proxy, set, rules)
        }
    }

    #[inline(never)]
    fn run_rules(
        &mut self,
        stream: &mut Stream,
        proxy: ProxyId,
        set: RuleSet,
        rules: Rules,
    ) -> Outcome {
        let outcome = self.with_rules(stream, |cx, stream| {
            cx.http_rules(stream, proxy, set, rules.waits)
        });
        self.send_hints(stream);
        outcome.unwrap_or(Outcome::End(End::Vanished))
    }

    /// `early-hint` (RFC 8297): sends the hints that rules added.
    fn send_hints(&mut self, stream: &mut Stream) {
        if !self.core.rules.has_interim() {
            return;
        }
        let frontend = self.runtime_config.proxy(stream.frontend);
        let spelling = self
            .runtime_config
            .spelling(frontend.options.h1_case_adjust_bogus_client);
        let core = &mut *self.core;
        core.rules.take_interim(|hints| {
            if let Some(client) = stream.client {
                let wire = core.links.send_interim(self.io, client, hints, spelling);
                stream.txn.bytes_out += wire as u64;
            }
        });
    }

    /// Runs `http-after-response` of the backend, then of the frontend, for every response
    /// including our own. False: a rule failed, and this response must not be sent.
    #[inline(always)]
    pub(super) fn after_response_rules(&mut self, stream: &mut Stream) -> bool {
        stream.skips.has(Skips::RESPONSE) || self.run_after_response_rules(stream)
    }

    #[inline(never)]
    fn run_after_response_rules(&mut self, stream: &mut Stream) -> bool {
        for proxy in [stream.backend, stream.frontend] {
            let set = RuleSet::AfterResponse;
            match self.http_rules(stream, proxy, set, Rules::default()) {
                Outcome::Continue => {}
                // No action of this set waits.
                Outcome::End(_) | Outcome::Wait(_) => return false,
            }
            if stream.backend == stream.frontend {
                break;
            }
        }
        true
    }

    /// A rule ends a stream.
    #[inline(never)]
    pub(super) fn end_by_rule(&mut self, stream: &mut Stream, end: End) -> Step {
        self.accounts().tell_end(stream, end);
        match end {
            End::Answer(set, rule) => {
                let reply = crate::rules::reply_of(self.runtime_config, set, rule);
                if let Some(reply) = reply {
                    self.reply(stream, reply);
                }
            }
            End::Redirect => self.answer(stream, super::reply::Body::Nothing),
            End::Challenge(set, rule) => self.ask_credentials(stream, set, rule),
            End::Service(service) => self.use_service(stream, service),
            End::Tarpit(rule) => {
                self.trace(stream, Event::HttpTarpitRequest);
                let wait_ms = stream.tarpit_ms(self.runtime_config);
                let until = Until(deadline(self.now(), wait_ms));
                return stream.go(Phase::Tarpit(Tarpit { rule, until }));
            }
            End::Close => self.reject(stream),
            End::Vanished => self.vanish(stream),
            End::Fail(status) => {
                stream.request_processed(self.now());
                if stream.txn.is_http && !stream.answered {
                    self.error_page(stream, status)
                } else {
                    self.cut(stream)
                }
            }
        }
        Step::Wait
    }

    /// A rule waits; the phase continues with this rule.
    #[inline(never)]
    pub(super) fn wait_for(&mut self, stream: &mut Stream, waiting: Waiting) -> Step {
        let rules = Rules {
            waits: Some((waiting.rule, waiting.wait)),
        };
        let is_response = matches!(stream.phase, Phase::BackendResponse(_));
        stream.phase = match stream.phase {
            Phase::BackendRequest(_) => Phase::BackendRequest(rules),
            Phase::BackendResponse(_) => Phase::BackendResponse(rules),
            _ => Phase::FrontendRequest(rules),
        };
        match (waiting.wait, is_response) {
            (RuleWait::Body { .. }, false) => self.await_upload(stream),
            (RuleWait::Body { .. }, true) => {
                if let ServerEnd::Link(server) = stream.server {
                    self.core.work.links.push_back(server.into());
                }
            }
            // The server is not read during the pause.
            (RuleWait::Pause { .. }, true) => {
                if let ServerEnd::Link(server) = stream.server {
                    self.core.links.hold(self.io, server, Hold::Rule);
                }
            }
            (RuleWait::Pause { .. }, false) | (RuleWait::Handshake { .. } | RuleWait::Name, _) => {}
        }
        Step::Wait
    }

    /// Runs `http-response` of the backend, then of the frontend.
    pub(super) fn response_rules(&mut self, stream: &mut Stream, rules: Rules) -> Step {
        let events = [
            Event::HttpWaitResponse,
            Event::ProcessStoreRulesResponse,
            Event::HttpResponse,
        ];
        self.trace_all(stream, events);
        let resumed = rules.waits.map(|(rule, _)| rule.proxy);
        if self.runtime_config.has_tables && resumed.is_none() {
            self.stick_response(stream);
        }
        let content = &self
            .runtime_config
            .proxy(stream.backend)
            .tcp_response_content;
        if !content.is_empty()
            && resumed.is_none()
            && let Err(step) = self.response_content(stream)
        {
            return step;
        }
        for proxy in [stream.backend, stream.frontend] {
            if resumed.is_some_and(|resumed| resumed != proxy && proxy == stream.backend) {
                continue; // done before the wait
            }
            match self.http_rules(stream, proxy, RuleSet::Response, rules) {
                Outcome::Continue => {}
                Outcome::End(end) => return self.end_by_rule(stream, end),
                Outcome::Wait(waiting) => return self.wait_for(stream, waiting),
            }
            if stream.backend == stream.frontend {
                break;
            }
        }
        if let (true, ServerEnd::Link(server)) = (rules.is_paused(), &stream.server) {
            self.core.links.release(self.io, *server, Hold::Rule);
        }
        if crate::persistence::watches_responses(self.runtime_config, stream)
            && self.with_eval(stream, crate::persistence::response_cookies) == Some(false)
        {
            self.end_server_after(stream);
            self.fail(stream, Cause::CacheableCookies);
            return Step::Wait;
        }
        stream.go(Phase::SendResponse)
    }
}
