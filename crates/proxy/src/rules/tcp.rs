//! `tcp-request` and `tcp-response` rules (manual §4.3): of a connection, a session, a stream's content.

use std::sync::Arc;

use config::model::{TcpAction, TcpRule};
use net::{ConnId, Driver};
use sample::{LogOrigin, Scope};
use telemetry::program::Direction;

use super::Verdict;
use crate::conn::Stage;
use crate::engine::{Core, Cx};
use crate::running::deadline;
use crate::stream::phases::Step;
use crate::stream::{Phase, Stream};
use crate::world::View;

impl Core {
    /// `tcp-request connection`: right after the accept.
    pub fn connection_rules<D: Driver>(&mut self, cx: &mut Cx<'_, D>, conn: ConnId) -> Verdict {
        let frontend = self.frontend_of(conn);
        self.bare_rules(
            cx,
            conn,
            &cx.running.proxy(frontend).tcp_request_connection,
            true,
        )
    }

    /// `tcp-request session`: the PROXY header was read.
    pub fn session_rules<D: Driver>(&mut self, cx: &mut Cx<'_, D>, conn: ConnId) -> Verdict {
        let frontend = self.frontend_of(conn);
        self.bare_rules(
            cx,
            conn,
            &cx.running.proxy(frontend).tcp_request_session,
            false,
        )
    }

    fn frontend_of(&mut self, conn: ConnId) -> usize {
        self.conns.client(conn).map_or(0, |client| client.frontend)
    }

    fn bare_rules<D: Driver>(
        &mut self,
        cx: &mut Cx<'_, D>,
        conn: ConnId,
        rules: &[Arc<TcpRule>],
        connection: bool,
    ) -> Verdict {
        for rule in rules {
            let holds = match &rule.condition {
                Some(condition) => self
                    .with_session(cx, conn, |scope| condition.matches(scope))
                    .unwrap_or(false),
                None => true,
            };
            if !holds {
                continue;
            }
            match &rule.action {
                TcpAction::Accept => return Verdict::Continue,
                TcpAction::Reject | TcpAction::Close => return Verdict::Close,
                TcpAction::SilentDrop { rst_ttl } => {
                    cx.driver.vanish(conn, *rst_ttl);
                    return Verdict::Close;
                }
                TcpAction::ExpectProxy => {
                    if let Some(client) = self.conns.client(conn) {
                        client.stage = Stage::ProxyHeader;
                    }
                }
                TcpAction::Var(assignment) => self.assign_in_session(cx, conn, assignment),
                TcpAction::DoLog { profile } => {
                    let origin = match connection {
                        true => LogOrigin::TcpConnection,
                        false => LogOrigin::TcpSession,
                    };
                    self.do_log_session(cx, conn, origin, *profile);
                }
                TcpAction::Stream(action) => {
                    self.connection_action(cx, conn, action, connection);
                }
                _ => debug_assert!(false, "an action without an implementation was accepted"),
            }
        }
        Verdict::Continue
    }

    /// `tcp-request content` of a proxy: may wait for bytes, at most its `inspect-delay`.
    pub fn content_rules<D: Driver>(
        &mut self,
        cx: &mut Cx<'_, D>,
        stream: &mut Stream,
        proxy: usize,
        next: Phase,
    ) -> Step {
        if cx.running.sniffs_http[proxy] {
            self.sniff_http(cx, stream);
        }
        let rules = &cx.running.proxy(proxy).tcp_request_content;
        if rules.is_empty() {
            return Step::Go(next);
        }
        let Some(client) = stream.client else {
            return Step::Wait;
        };
        let now_ms = cx.now().ms();
        let over = stream.inspecting && now_ms >= stream.wait_until_ms;
        let ended = self.conns.get(client).is_some_and(|entry| entry.eof);
        let delay = cx.running.proxy(proxy).tcp_request_inspect_delay;
        let last_chance = over || ended || delay.is_none();
        for rule in rules {
            let verdict = match &rule.condition {
                Some(condition) => {
                    self.with_scope(cx, stream, last_chance, |scope| condition.test(scope))
                }
                None => Some(sample::Verdict::True),
            };
            match verdict {
                Some(sample::Verdict::True) => {}
                Some(sample::Verdict::Wait) if !last_chance => {
                    return self.inspect_more(cx, stream, client, delay);
                }
                _ => continue,
            }
            if rule.action.is_final() {
                stream.txn.last_rule = Some(rule.place);
            }
            match &rule.action {
                TcpAction::Accept => break,
                TcpAction::SwitchMode => {
                    if stream.txn.is_http {
                        break;
                    }
                    return self.upgrade(cx, stream);
                }
                TcpAction::Reject | TcpAction::Close => {
                    stream.ended_by(b'P', b'R');
                    self.cut(cx, stream);
                    return Step::Wait;
                }
                TcpAction::SilentDrop { rst_ttl } => {
                    self.vanish(cx, stream, *rst_ttl, [b'P', b'R']);
                    return Step::Wait;
                }
                TcpAction::Var(assignment) => self.assign(cx, stream, assignment, None),
                TcpAction::Capture { expr, slot } => self.capture(cx, stream, false, expr, *slot),
                TcpAction::Stream(action) => self.stream_action(cx, stream, action, None),
                TcpAction::DoLog { profile } => {
                    self.do_log(cx, stream, LogOrigin::TcpRequest, *profile);
                }
                TcpAction::OtelGroup(group) => {
                    self.trace_group(cx, stream, (proxy, *group), Direction::Request);
                }
                TcpAction::SetRetries(amount) => self.set_retries(cx, stream, amount),
                _ => debug_assert!(false, "an action without an implementation was accepted"),
            }
        }
        stream.inspecting = false;
        self.set_deadline(client, net::timers::NEVER_MS);
        Step::Go(next)
    }

    /// `tcp-response content` of the backend, about the server's first bytes. Set `last_chance` where no more will come.
    pub fn response_content_rules<D: Driver>(
        &mut self,
        cx: &mut Cx<'_, D>,
        stream: &mut Stream,
        bytes: &[u8],
        last_chance: bool,
    ) -> Answer {
        for rule in &cx.running.proxy(stream.backend).tcp_response_content {
            let verdict = match &rule.condition {
                Some(condition) => {
                    self.with_answer_scope(cx, stream, last_chance, Some(bytes), |scope| {
                        condition.test(scope)
                    })
                }
                None => Some(sample::Verdict::True),
            };
            match verdict {
                Some(sample::Verdict::True) => {}
                Some(sample::Verdict::Wait) if !last_chance => return Answer::Wait,
                _ => continue,
            }
            if rule.action.is_final() {
                stream.txn.last_rule = Some(rule.place);
            }
            match &rule.action {
                TcpAction::Accept => break,
                TcpAction::Close => return Answer::Close,
                TcpAction::Reject => {
                    stream.ended_by(b'P', b'D');
                    return Answer::Refuse;
                }
                TcpAction::SilentDrop { rst_ttl } => {
                    stream.ended_by(b'P', b'D');
                    if let Some(client) = stream.client {
                        cx.driver.vanish(client, *rst_ttl);
                    }
                    return Answer::Refuse;
                }
                TcpAction::Stream(action) => self.stream_action(cx, stream, action, Some(bytes)),
                TcpAction::Var(assignment) => self.assign(cx, stream, assignment, Some(bytes)),
                TcpAction::DoLog { profile } => {
                    self.do_log(cx, stream, LogOrigin::TcpResponse, *profile);
                }
                TcpAction::OtelGroup(group) => {
                    let of = (stream.backend, *group);
                    self.trace_group(cx, stream, of, Direction::Response);
                }
                _ => debug_assert!(false, "an action without an implementation was accepted"),
            }
        }
        Answer::Pass
    }

    fn inspect_more<D: Driver>(
        &mut self,
        cx: &Cx<'_, D>,
        stream: &mut Stream,
        client: ConnId,
        delay: Option<std::time::Duration>,
    ) -> Step {
        if !std::mem::replace(&mut stream.inspecting, true) {
            let delay_ms = delay.map_or(0, |delay| delay.as_millis() as u64);
            stream.wait_until_ms = deadline(cx.now(), delay_ms);
            self.set_deadline(client, stream.wait_until_ms);
        }
        Step::Wait
    }

    /// Evaluates with the scope of a connection without a stream.
    pub fn with_session<D: Driver, R>(
        &self,
        cx: &Cx<'_, D>,
        conn: ConnId,
        work: impl FnOnce(&Scope<'_>) -> R,
    ) -> Option<R> {
        let view = View {
            client: Some(conn),
            ..self.view(cx)
        };
        let scope = Scope {
            now: cx.now(),
            world: &view,
            session: self.conns.session(conn)?,
            txn: None,
            request: None,
            response: None,
            request_data: self.conns.input(conn),
            response_data: &[],
            from_server: false,
            last_chance: true,
        };
        Some(work(&scope))
    }
}

/// What `tcp-response content` rules came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Pass,
    /// More bytes may decide.
    Wait,
    /// The bytes that are here pass, then the connection to the server closes.
    Close,
    Refuse,
}
