//! `tcp-request` and `tcp-response` rules (manual §4.3) for a connection, a session, and a stream's
//! content.

use std::sync::Arc;

use config::model::{Proto, StreamAction, TcpAction, TcpRule};
use sample::LogOrigin;
use telemetry::program::Direction;

use super::{Cx, End};
use crate::ids::ProxyId;
use crate::runtime_config::RuntimeConfig;
use crate::stream::Stream;

/// The outcome of the rules of a connection without a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Continue,
    /// The PROXY protocol header is expected first.
    ExpectProxy,
    Close,
}

/// The outcome of rules about a stream's bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ContentOutcome {
    /// All rules have run.
    Pass,
    /// More bytes are needed for a decision.
    Wait,
    /// A rule waits for the address of a name.
    WaitName,
    /// The stream switches to HTTP.
    Upgrade(Option<Proto>),
    /// The received bytes pass, then the connection to the server closes.
    CloseServer,
    End(End),
}

impl<'a> Cx<'a> {
    /// Runs `tcp-request connection`, right after the accept.
    pub fn connection_rules(&mut self, frontend: ProxyId) -> Verdict {
        let runtime_config: &'a RuntimeConfig = self.scene.eval.runtime_config;
        let rules = &runtime_config.proxy(frontend).tcp_request_connection;
        self.bare_rules(frontend, rules, true)
    }

    /// Runs `tcp-request session`, after the PROXY header.
    pub fn session_rules(&mut self, frontend: ProxyId) -> Verdict {
        let runtime_config: &'a RuntimeConfig = self.scene.eval.runtime_config;
        let rules = &runtime_config.proxy(frontend).tcp_request_session;
        self.bare_rules(frontend, rules, false)
    }

    pub(super) fn bare_rules(
        &mut self,
        frontend: ProxyId,
        rules: &[Arc<TcpRule>],
        connection: bool,
    ) -> Verdict {
        let mut expects_proxy = false;
        let done = |expects_proxy: bool| {
            if expects_proxy {
                Verdict::ExpectProxy
            } else {
                Verdict::Continue
            }
        };
        sample::regex::forget_undecided();
        for rule in rules {
            let holds = rule
                .condition
                .as_ref()
                .is_none_or(|condition| self.eval().with_session(|scope| condition.matches(scope)));
            if sample::regex::take_undecided() {
                return Verdict::Close;
            }
            if !holds {
                continue;
            }
            match &rule.action {
                TcpAction::Accept => return done(expects_proxy),
                TcpAction::Reject | TcpAction::Close => return Verdict::Close,
                TcpAction::SilentDrop { rst_ttl } => {
                    self.vanish(*rst_ttl);
                    return Verdict::Close;
                }
                TcpAction::ExpectProxy => expects_proxy = true,
                TcpAction::Var(assignment) => self.scene.eval.assign_in_session(assignment),
                TcpAction::DoLog { profile } => {
                    let origin = if connection {
                        LogOrigin::TcpConnection
                    } else {
                        LogOrigin::TcpSession
                    };
                    let logging = &mut self.scene.logging;
                    logging.do_log_session(&mut self.scene.eval, frontend, origin, *profile);
                }
                TcpAction::Stream(action) => self.connection_action(action, connection),
                // The configuration allows them only in rules of streams.
                TcpAction::Capture { .. }
                | TcpAction::SwitchMode(_)
                | TcpAction::OtelGroup(_)
                | TcpAction::Resolve(_)
                | TcpAction::SetRetries(_) => {}
            }
        }
        done(expects_proxy)
    }

    /// Runs `tcp-request content` of a proxy. `last_chance`: no more bytes will come.
    pub fn content_rules(
        &mut self,
        stream: &mut Stream,
        proxy: ProxyId,
        last_chance: bool,
    ) -> ContentOutcome {
        let runtime_config: &'a RuntimeConfig = self.scene.eval.runtime_config;
        let rules = &runtime_config.proxy(proxy).tcp_request_content;
        self.stream_rules(stream, proxy, rules, Direction::Request, last_chance)
    }

    /// Runs `tcp-response content` of the backend for the server's bytes.
    pub fn response_content_rules(
        &mut self,
        stream: &mut Stream,
        last_chance: bool,
    ) -> ContentOutcome {
        let runtime_config: &'a RuntimeConfig = self.scene.eval.runtime_config;
        let proxy = stream.backend;
        let rules = &runtime_config.proxy(proxy).tcp_response_content;
        self.stream_rules(stream, proxy, rules, Direction::Response, last_chance)
    }

    pub(super) fn stream_rules(
        &mut self,
        stream: &mut Stream,
        proxy: ProxyId,
        rules: &[Arc<TcpRule>],
        direction: Direction,
        last_chance: bool,
    ) -> ContentOutcome {
        let is_response = matches!(direction, Direction::Response);
        let letter = if is_response { b'D' } else { b'R' };
        sample::regex::forget_undecided();
        for rule in rules {
            let verdict = match &rule.condition {
                Some(condition) => self
                    .eval()
                    .with_scope(stream, last_chance, |scope| condition.test(scope)),
                None => sample::Verdict::True,
            };
            if sample::regex::take_undecided() {
                stream.ended_by(b'P', letter);
                return ContentOutcome::End(End::Close);
            }
            match verdict {
                sample::Verdict::True => {}
                sample::Verdict::Wait if !last_chance => return ContentOutcome::Wait,
                sample::Verdict::Wait | sample::Verdict::False => continue,
            }
            if rule.action.is_final() {
                stream.txn.last_rule = Some(rule.place);
            }
            match &rule.action {
                TcpAction::Accept => break,
                TcpAction::SwitchMode(proto) => {
                    if stream.txn.is_http {
                        break;
                    }
                    return ContentOutcome::Upgrade(*proto);
                }
                TcpAction::Close if is_response => return ContentOutcome::CloseServer,
                TcpAction::Reject | TcpAction::Close => {
                    stream.ended_by(b'P', letter);
                    return ContentOutcome::End(End::Close);
                }
                TcpAction::SilentDrop { rst_ttl } => {
                    stream.ended_by(b'P', letter);
                    self.vanish(*rst_ttl);
                    return ContentOutcome::End(End::Vanished);
                }
                TcpAction::Var(assignment) => self.scene.eval.assign(stream, assignment),
                TcpAction::Capture { expr, slot } => {
                    self.capture(stream, is_response, expr, *slot);
                }
                TcpAction::Stream(StreamAction::Table(action)) => {
                    if self.table_action(stream, action, last_chance).is_err() {
                        return ContentOutcome::Wait;
                    }
                }
                TcpAction::Stream(action) => self.stream_action(stream, proxy, action),
                TcpAction::DoLog { profile } => {
                    let origin = if is_response {
                        LogOrigin::TcpResponse
                    } else {
                        LogOrigin::TcpRequest
                    };
                    let logging = &mut self.scene.logging;
                    logging.do_log(&mut self.scene.eval, stream, origin, *profile);
                }
                TcpAction::OtelGroup(group) => {
                    let group = (proxy, *group);
                    self.tracing
                        .trace_group(&mut self.scene, stream, group, direction);
                }
                TcpAction::SetRetries(amount) => self.set_retries(stream, amount),
                TcpAction::Resolve(resolve) => {
                    if !self.resolve(stream, rule.place, resolve) {
                        return ContentOutcome::WaitName;
                    }
                }
                // The configuration allows it only in `tcp-request connection`.
                TcpAction::ExpectProxy => {}
            }
        }
        ContentOutcome::Pass
    }
}
