//! `tcp-request` and `tcp-response` rules (manual §4.3): of a connection, a session, a stream's content.

use std::net::SocketAddr;

use config::model::{TcpAction, TcpRule};
use net::{Addr, ConnId, Driver};
use sample::{Expr, Scope, Value};

use super::Verdict;
use crate::conn::Stage;
use crate::engine::{Core, Cx};
use crate::running::deadline;
use crate::stream::phases::Step;
use crate::stream::{Phase, Stream};

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
        rules: &[TcpRule],
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
                TcpAction::SilentDrop => {
                    cx.driver.vanish(conn);
                    return Verdict::Close;
                }
                TcpAction::ExpectProxy => {
                    if let Some(client) = self.conns.client(conn) {
                        client.stage = Stage::ProxyHeader;
                    }
                }
                TcpAction::SetVar { var, expr } => {
                    let value = self
                        .with_session(cx, conn, |scope| expr.eval(scope).map(Value::detach))
                        .flatten();
                    if let (Some(value), Some(client)) = (value, self.conns.client(conn)) {
                        client.session.vars.set(var.slot, value);
                    }
                }
                TcpAction::SetVarFmt { var, format } => {
                    let mut text = Vec::new();
                    self.with_session(cx, conn, |scope| format.render(scope, &mut text));
                    if let Some(client) = self.conns.client(conn) {
                        client.session.vars.set(var.slot, Value::text(&text[..]));
                    }
                }
                TcpAction::UnsetVar(var) => {
                    if let Some(client) = self.conns.client(conn) {
                        client.session.vars.unset(var.slot);
                    }
                }
                TcpAction::SetSrc(expr) => {
                    self.set_address(cx, conn, expr, Part::SourceIp, connection)
                }
                TcpAction::SetSrcPort(expr) => {
                    self.set_address(cx, conn, expr, Part::SourcePort, connection)
                }
                TcpAction::SetDst(expr) => {
                    self.set_address(cx, conn, expr, Part::DestinationIp, connection)
                }
                TcpAction::SetDstPort(expr) => {
                    self.set_address(cx, conn, expr, Part::DestinationPort, connection)
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
            match &rule.action {
                TcpAction::Accept => break,
                TcpAction::Reject | TcpAction::Close => {
                    stream.ended_by(b'P', b'R');
                    self.cut(cx, stream);
                    return Step::Wait;
                }
                TcpAction::SilentDrop => {
                    stream.ended_by(b'P', b'R');
                    cx.driver.vanish(client);
                    self.cut(cx, stream);
                    return Step::Wait;
                }
                TcpAction::SetVar { var, expr } => {
                    let value = self.with_scope(cx, stream, true, |scope| {
                        expr.eval(scope).map(Value::detach)
                    });
                    if let Some(Some(value)) = value {
                        self.set_var(stream, *var, Some(value));
                    }
                }
                TcpAction::SetVarFmt { var, format } => self.set_var_fmt(cx, stream, *var, format),
                TcpAction::UnsetVar(var) => self.set_var(stream, *var, None),
                TcpAction::SetRetries(amount) => self.set_retries(cx, stream, amount),
                TcpAction::SetSrc(expr) => {
                    self.set_stream_address(cx, stream, expr, Part::SourceIp)
                }
                TcpAction::SetSrcPort(expr) => {
                    self.set_stream_address(cx, stream, expr, Part::SourcePort)
                }
                TcpAction::SetDst(expr) => {
                    self.set_stream_address(cx, stream, expr, Part::DestinationIp)
                }
                TcpAction::SetDstPort(expr) => {
                    self.set_stream_address(cx, stream, expr, Part::DestinationPort)
                }
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
                    self.with_response_scope(cx, stream, last_chance, bytes, |scope| {
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
            match &rule.action {
                TcpAction::Accept => break,
                TcpAction::Close => return Answer::Close,
                TcpAction::Reject => {
                    stream.ended_by(b'P', b'D');
                    return Answer::Refuse;
                }
                TcpAction::SilentDrop => {
                    stream.ended_by(b'P', b'D');
                    if let Some(client) = stream.client {
                        cx.driver.vanish(client);
                    }
                    return Answer::Refuse;
                }
                TcpAction::SetVar { var, expr } => {
                    let value = self.with_response_scope(cx, stream, true, bytes, |scope| {
                        expr.eval(scope).map(Value::detach)
                    });
                    if let Some(Some(value)) = value {
                        self.set_var(stream, *var, Some(value));
                    }
                }
                TcpAction::SetVarFmt { var, format } => {
                    let mut text = Vec::new();
                    self.with_response_scope(cx, stream, true, bytes, |scope| {
                        format.render(scope, &mut text);
                    });
                    self.set_var(stream, *var, Some(Value::text(&text[..]).detach()));
                }
                TcpAction::UnsetVar(var) => self.set_var(stream, *var, None),
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
        let view = self.view(cx);
        let scope = Scope {
            now: cx.now(),
            world: &view,
            session: self.conns.session(conn)?,
            txn: None,
            request: None,
            response: None,
            request_data: self.conns.input(conn),
            response_data: &[],
            last_chance: true,
        };
        Some(work(&scope))
    }

    /// `set-src` and its kin before any stream. `connection`: it is the connection's own address from here on; else the
    /// connection keeps it, and the session has another.
    fn set_address<D: Driver>(
        &mut self,
        cx: &Cx<'_, D>,
        conn: ConnId,
        expr: &Expr,
        part: Part,
        connection: bool,
    ) {
        let value = self.with_session(cx, conn, |scope| {
            let value = expr.eval(scope)?;
            part.change(value, &scope.session.src, &scope.session.dst)
        });
        let (Some(Some(addr)), Some(client)) = (value, self.conns.client(conn)) else {
            return;
        };
        let session = &mut client.session;
        let (place, original) = if part.is_source() {
            (&mut session.src, &mut session.connection_src)
        } else {
            (&mut session.dst, &mut session.connection_dst)
        };
        let old = std::mem::replace(place, addr);
        if !connection {
            original.get_or_insert(old);
        }
    }

    /// `set-src` and its kin of a stream's rules: for that stream alone.
    pub fn set_stream_address<D: Driver>(
        &mut self,
        cx: &Cx<'_, D>,
        stream: &mut Stream,
        expr: &Expr,
        part: Part,
    ) {
        let value = self.with_scope(cx, stream, true, |scope| {
            let value = expr.eval(scope)?;
            part.change(value, scope.src(), scope.dst())
        });
        match (value.flatten(), part.is_source()) {
            (Some(addr), true) => stream.txn.src = Some(addr),
            (Some(addr), false) => stream.txn.dst = Some(addr),
            (None, _) => {}
        }
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

/// The part of a session's addresses that a rule sets.
#[derive(Clone, Copy)]
pub(crate) enum Part {
    SourceIp,
    SourcePort,
    DestinationIp,
    DestinationPort,
}

impl Part {
    fn is_source(self) -> bool {
        matches!(self, Part::SourceIp | Part::SourcePort)
    }

    /// The address with this part replaced by a rule's value; none for a value that is no such part.
    fn change(self, value: Value<'_>, src: &Addr, dst: &Addr) -> Option<Addr> {
        let addr = if self.is_source() { src } else { dst };
        let (ip, port) = match self {
            Part::SourceIp | Part::DestinationIp => (value.into_ip()?, addr.port()),
            Part::SourcePort | Part::DestinationPort => {
                (addr.ip()?, u16::try_from(value.into_int()?).ok()?)
            }
        };
        Some(Addr::Inet(SocketAddr::new(ip, port)))
    }
}
