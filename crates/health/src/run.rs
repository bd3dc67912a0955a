//! Runs the script of a check.

use std::io;

use config::model::{
    CheckAction, CheckConnect, CheckExpect, CheckKind, CheckPort, CheckRequest, CheckRule,
    CheckScript, CheckSend, CheckStatus, CheckText,
};
use net::{Addr, Now};
use proxy::CheckOutcome;
use sample::{Assignment, ConnError, Expr, LogFormat, Scope, Session, Txn, VarScope, Vars};
use syntax::hex;
use tokio::time::{Instant, timeout_at};

use crate::conn::{Conn, Layer, Lost};
use crate::expect::{self, Judged};
use crate::http::{self, Exchange};
use crate::outcome::Verdict;
use crate::target::Target;
use crate::{Control, state_header, text};

/// The end of a check.
pub(crate) struct Ended {
    pub outcome: CheckOutcome,
    /// The line that an agent sent.
    pub agent: Option<Vec<u8>>,
}

/// Why a script stops early.
pub(crate) enum Stop {
    Verdict(Verdict),
    Lost(Lost),
    Expired,
    /// An agent's line arrived.
    Said(Vec<u8>),
}

impl From<Lost> for Stop {
    fn from(lost: Lost) -> Self {
        Stop::Lost(lost)
    }
}

impl From<Verdict> for Stop {
    fn from(verdict: Verdict) -> Self {
        Stop::Verdict(verdict)
    }
}

/// A running check.
pub(crate) struct Run<'a> {
    pub control: &'a Control,
    pub target: &'a Target,
    pub script: &'a CheckScript,
    pub session: Session,
    pub txn: Txn,
    conn: Option<Conn>,
    layer: Layer,
    /// The deadline of the current step.
    deadline: Instant,
    /// Input received since the last rule that sends.
    pub input: Vec<u8>,
    /// The input has ended.
    pub at_end: bool,
    /// The exchange of an HTTP check on this connection.
    pub exchange: Option<Exchange>,
    /// The code of the reply.
    pub code: i64,
}

/// Runs a script to its end.
pub(crate) async fn script(control: &Control, target: &Target, script: &CheckScript) -> Ended {
    let started = Instant::now();
    let nobody = Addr::Unix(Vec::new().into());
    let now = net::sys::now();
    let backend = target.backend as u32;
    let mut run = Run {
        control,
        target,
        script,
        // Expressions that name a frontend refer to the backend here, because it has the format of
        // unique ids.
        session: Session::new(now, nobody.clone(), nobody, backend, 0),
        txn: Txn {
            backend: Some(backend),
            server: Some(target.place as u32),
            is_http: script.kind == CheckKind::Http,
            check_vars: Some(Box::<Vars>::default()),
            responding: true,
            ..Txn::default()
        },
        conn: None,
        layer: Layer::Four,
        deadline: started + target.timeouts.inter,
        input: Vec::new(),
        at_end: false,
        exchange: None,
        code: 0,
    };
    let mut current = 0;
    let stop = run.rules(&mut current).await;
    let verdict = match stop {
        Ok(verdict) | Err(Stop::Verdict(verdict)) => verdict,
        Err(Stop::Said(line)) => {
            return Ended {
                outcome: Verdict::new(CheckStatus::NoChange, "").outcome(0, started.elapsed()),
                agent: Some(line),
            };
        }
        Err(Stop::Lost(lost)) => run.lost(lost, &script.rules[current]),
        Err(Stop::Expired) => run.expired(&script.rules[current]),
    };
    Ended {
        outcome: verdict.outcome(run.code, started.elapsed()),
        agent: None,
    }
}

impl Run<'_> {
    /// Runs the rules; `current` is the rule being run. Returns the verdict.
    async fn rules(&mut self, current: &mut usize) -> Result<Verdict, Stop> {
        let rules = &self.script.rules;
        let mut at = 0;
        while at < rules.len() {
            let rule = &rules[at];
            self.code = 0;
            match &rule.action {
                CheckAction::Connect(connect) => {
                    *current = at;
                    self.connect(connect).await?;
                }
                CheckAction::Send(send) => {
                    *current = at;
                    self.send(send, rule).await?;
                }
                CheckAction::Expect(_) => {
                    // Consecutive rules evaluate the same reply.
                    let end = end_of_expects(rules, at);
                    self.expect(at, end, current).await?;
                    at = end;
                    continue;
                }
                CheckAction::Assign(assignment) => self.assign(assignment),
            }
            at += 1;
        }
        Ok(self.passed(&rules[*current]))
    }

    // ---- steps

    async fn connect(&mut self, connect: &CheckConnect) -> Result<(), Stop> {
        self.conn = None;
        self.exchange = None;
        self.input.clear();
        self.at_end = false;
        self.layer = Layer::Four;
        let now = Instant::now();
        let timeouts = self.target.timeouts;
        let limit = timeouts
            .connect
            .map_or(timeouts.inter, |time| time.min(timeouts.inter));
        self.deadline = now + limit;
        let port = match &connect.port {
            Some(CheckPort::Expr(expr)) => self.int(expr).and_then(|port| u16::try_from(port).ok()),
            _ => None,
        };
        let host = connect
            .host
            .as_ref()
            .map(|host| host_name(&self.render(host)));
        let way = self
            .target
            .way(connect, port.filter(|port| *port > 0), host);
        if let Addr::Inet(to) = &way.to
            && to.port() == 0
        {
            return Err(Verdict::new(CheckStatus::SocketError, "").into());
        }
        let connector = if way.tls {
            let of_server = self.connector();
            let missing = || Verdict::new(CheckStatus::SocketError, "no TLS for this server");
            let mut connector = of_server.ok_or_else(missing)?;
            if !way.is_quic
                && let Some(over_tcp) = connector.over_tcp()
            {
                connector = over_tcp.clone();
            }
            let too_many = || Verdict::new(CheckStatus::SocketError, ConnError::TlsTooMany.text());
            let place = self.control.shared.enter_tls().ok_or_else(too_many)?;
            Some((connector, place))
        } else {
            None
        };
        let opening = Conn::open(&way, connector, connect.linger, &mut self.layer);
        let opened = timeout_at(self.deadline, opening).await;
        let mut conn = opened.map_err(|_| Stop::Expired)??;
        let mut greeting = Vec::new();
        if self.script.kind == CheckKind::Http {
            let agreed = conn.protocol();
            let mut exchange = Exchange::new(way.proto, agreed.as_deref(), conn.is_quic(), &way.to);
            conn.greeting(&mut self.input);
            let max = self.control.runtime_config.config.global.tune.bufsize_bytes;
            let reply = exchange.take(&mut self.input, false, max);
            self.exchange = Some(exchange);
            greeting = reply;
        }
        self.conn = Some(conn);
        if !greeting.is_empty() {
            self.write(&greeting).await?;
        }
        if let Some(time) = timeouts.check {
            self.deadline = Instant::now() + time;
        }
        Ok(())
    }

    fn connector(&self) -> Option<tls::Connector> {
        let (backend, place) = (self.target.backend, self.target.place);
        let tls = &self.control.runtime_config.tls;
        match tls.of_traffic(backend, place) {
            Some(connector) => Some((*connector).clone()),
            None => self.target.connector(self.control),
        }
    }

    async fn send(&mut self, send: &CheckSend, rule: &CheckRule) -> Result<(), Stop> {
        // Earlier input belongs to an earlier step.
        self.input.clear();
        let failed = |what: &str| {
            let step = text::step(rule);
            Verdict::new(
                CheckStatus::Layer7Invalid,
                format!("tcp-check send : {what} at step {step}"),
            )
        };
        let bytes = match send {
            CheckSend::Bytes(bytes) => bytes.to_vec(),
            CheckSend::Format(format) => self.render(format),
            CheckSend::HexFormat(format) => {
                let text = self.render(format);
                let failed = || failed("failed to build log-format string");
                hex::decode(&text).ok_or_else(failed)?
            }
            CheckSend::Http(request) => {
                let request = self.request(request);
                let is_secure = self.conn.as_ref().is_some_and(Conn::is_secure);
                let Some(exchange) = &mut self.exchange else {
                    return Err(Stop::Expired);
                };
                let built = exchange.send(&request, is_secure);
                built.ok_or_else(|| failed("failed to build HTTP request"))?
            }
        };
        let max = self.control.runtime_config.config.global.tune.bufsize_bytes;
        if bytes.len() >= max && !matches!(send, CheckSend::Http(_)) {
            let length = bytes.len();
            return Err(failed(&format!(
                "string too large ({length}) for buffer size ({max})"
            ))
            .into());
        }
        self.write(&bytes).await
    }

    async fn write(&mut self, bytes: &[u8]) -> Result<(), Stop> {
        let Some(conn) = &mut self.conn else {
            return Err(Stop::Expired);
        };
        let sent = timeout_at(self.deadline, conn.send(bytes)).await;
        Ok(sent.map_err(|_| Stop::Expired)??)
    }

    /// The request that a rule describes.
    fn request(&mut self, rule: &CheckRequest) -> http::Request {
        let made = |run: &Self, text: &CheckText| match text {
            CheckText::Fixed(text) => text.to_vec(),
            CheckText::Format(format) => run.render(format),
        };
        let uri = rule.uri.as_ref().map(|uri| made(self, uri));
        let uri = uri.filter(|uri| !uri.is_empty());
        let mut headers = Vec::new();
        for (name, format) in &rule.headers {
            let value = self.render(format);
            if !value.is_empty() {
                headers.push((name.to_vec(), value));
            }
        }
        if self.script.send_state {
            let value = state_header::value(self.control, self.target);
            headers.push((b"X-Haproxy-Server-State".to_vec(), value.into_bytes()));
        }
        http::Request {
            method: rule.method.as_deref().unwrap_or(b"OPTIONS").to_vec(),
            uri: uri.unwrap_or_else(|| b"/".to_vec()),
            version: rule.version.as_deref().unwrap_or(b"HTTP/1.0").to_vec(),
            headers,
            body: rule.body.as_ref().map(|body| made(self, body)),
        }
    }

    /// Waits for a reply that all rules from `first` to `end` match.
    async fn expect(&mut self, first: usize, end: usize, current: &mut usize) -> Result<(), Stop> {
        let rules = &self.script.rules;
        let mut must_read = match &self.exchange {
            Some(exchange) => exchange.head().is_none(),
            None => self.input.is_empty(),
        };
        'again: loop {
            *current = first;
            if must_read && !self.at_end {
                self.read().await?;
            }
            for (at, rule) in rules.iter().enumerate().take(end).skip(first) {
                match &rule.action {
                    CheckAction::Assign(assignment) => self.assign(assignment),
                    CheckAction::Expect(expect) => {
                        *current = at;
                        self.code = 0;
                        match expect::judge(self, rule, expect)? {
                            Judged::Good => {}
                            Judged::Wait => {
                                must_read = true;
                                continue 'again;
                            }
                        }
                    }
                    CheckAction::Connect(_) | CheckAction::Send(_) => {}
                }
            }
            return Ok(());
        }
    }

    /// Reads more input.
    async fn read(&mut self) -> Result<(), Stop> {
        let Some(conn) = &mut self.conn else {
            return Err(Stop::Expired);
        };
        let read = timeout_at(self.deadline, conn.read(&mut self.input)).await;
        let goes_on = read.map_err(|_| Stop::Expired)??;
        self.at_end = !goes_on;
        let limits = &self.control.runtime_config.config.global.tune;
        if self.input.len() >= limits.bufsize_bytes {
            self.input.truncate(limits.bufsize_bytes);
            self.at_end = true;
        }
        if let Some(exchange) = &mut self.exchange {
            let answer = exchange.take(&mut self.input, self.at_end, limits.bufsize_bytes);
            self.txn.status = exchange.status();
            self.txn.server_status = exchange.status();
            if !answer.is_empty() {
                self.write(&answer).await?;
            }
        }
        Ok(())
    }

    // ---- expressions

    /// Calls `work` with the scope for expressions.
    pub fn with_scope<R>(&self, work: impl FnOnce(&Scope<'_>) -> R) -> R {
        let now: Now = net::sys::now();
        let response = self.exchange.as_ref().and_then(Exchange::head);
        let body = self.exchange.as_ref().map(Exchange::body);
        self.control.onlooker.look(now, |world| {
            work(&Scope {
                now,
                world,
                session: &self.session,
                txn: Some(&self.txn),
                request: None,
                response,
                request_data: &[],
                response_data: body.unwrap_or(&self.input),
                from_server: true,
                last_chance: true,
            })
        })
    }

    /// Renders a format.
    pub fn render(&self, format: &LogFormat) -> Vec<u8> {
        let mut out = Vec::new();
        self.with_scope(|scope| format.render(scope, &mut out));
        out
    }

    /// Evaluates an expression as a number.
    pub fn int(&self, expr: &Expr) -> Option<i64> {
        self.with_scope(|scope| expr.eval(scope)?.into_int())
    }

    /// The code that an expression finds in a reply; bytes are parsed as digits.
    pub fn code_of(&self, expr: &Expr) -> Option<i64> {
        let mut text = Vec::new();
        let found = self.with_scope(|scope| expr.append_binary(scope, &mut text));
        let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let digits = std::str::from_utf8(&text[..digits]).ok();
        match digits.filter(|digits| found && !digits.is_empty()) {
            Some(digits) => digits.parse().ok(),
            None => self.int(expr),
        }
    }

    fn assign(&mut self, assignment: &Assignment) {
        let mut room = Vec::new();
        let change = self.with_scope(|scope| assignment.eval(scope, &mut room));
        self.txn.settle();
        self.session.settle();
        let var = assignment.var;
        match var.scope {
            VarScope::Check => {
                if let Some(vars) = &mut self.txn.check_vars {
                    vars.change(var.slot, change);
                }
            }
            VarScope::Sess => self.session.vars.change(var.slot, change),
            VarScope::Proc => self.control.onlooker.look(net::sys::now(), |world| {
                world.change_proc_var(var.slot, change);
            }),
            VarScope::Txn | VarScope::Req | VarScope::Res | VarScope::Parent => {}
        }
    }

    // ---- ends

    /// Whether status 404 means that the server accepts no new sessions.
    pub fn is_retired(&self) -> bool {
        let is_up = || {
            let view = self
                .control
                .shared
                .server_view(self.target.backend, self.target.place);
            view.state != proxy::OpState::Stopped
        };
        self.script.disable_on_404 && self.code == 404 && is_up()
    }

    /// The verdict when all rules have passed; `last` decides it.
    fn passed(&mut self, last: &CheckRule) -> Verdict {
        let said = || Verdict::new(CheckStatus::Layer7Ok, "(tcp-check)");
        match &last.action {
            CheckAction::Expect(_) if self.is_retired() => {
                Verdict::new(CheckStatus::Layer7OkConditionally, "")
            }
            CheckAction::Expect(expect) => {
                let status = expect.ok_status.unwrap_or(CheckStatus::Layer7Ok);
                let text = self.success(expect);
                Verdict::new(status, text)
            }
            CheckAction::Connect(connect) => {
                let is_secure = self.conn.as_ref().is_some_and(Conn::is_secure);
                let status = if is_secure {
                    CheckStatus::Layer6Ok
                } else {
                    CheckStatus::Layer4Ok
                };
                if connect.is_implicit {
                    Verdict::new(status, "")
                } else {
                    Verdict::new(status, "(tcp-check)")
                }
            }
            CheckAction::Send(_) | CheckAction::Assign(_) => said(),
        }
    }

    fn success(&mut self, expect: &CheckExpect) -> String {
        let text = match &expect.on_success {
            Some(format) => String::from_utf8_lossy(&self.render(format)).into_owned(),
            None if self.script.kind == CheckKind::Tcp => "(tcp-check)".to_owned(),
            None => expect::own_success(self, expect),
        };
        if let Some(expr) = &expect.status_code
            && let Some(code) = self.code_of(expr)
        {
            self.code = code;
        }
        text
    }

    /// The verdict for a failed connection.
    fn lost(&self, lost: Lost, rule: &CheckRule) -> Verdict {
        let place = text::place(self.script, rule);
        let reason = match &lost {
            Lost::Io(error) => text::lost(error),
            Lost::Handshake(reason) => {
                if reason.starts_with("Connection closed") {
                    reason.clone()
                } else {
                    format!("SSL handshake failure ({reason})")
                }
            }
            Lost::Socks4(reason) => (*reason).to_owned(),
        };
        let status = match (self.layer, lost) {
            (Layer::Four, Lost::Io(error)) if is_local(&error) => CheckStatus::SocketError,
            (Layer::Four, _) => CheckStatus::Layer4Error,
            (Layer::Six, Lost::Socks4(_)) => CheckStatus::Layer4Error,
            (Layer::Six, _) => CheckStatus::Layer6Invalid,
            (Layer::Seven, _) => CheckStatus::SocketError,
        };
        Verdict::new(status, format!("{reason}{place}"))
    }

    /// The verdict when the deadline of a step has passed.
    fn expired(&self, rule: &CheckRule) -> Verdict {
        let status = match (self.layer, &rule.action) {
            (Layer::Four, _) => CheckStatus::Layer4Timeout,
            (Layer::Six, _) => CheckStatus::Layer6Timeout,
            (Layer::Seven, CheckAction::Expect(expect)) => {
                expect.timeout_status.unwrap_or(CheckStatus::Layer7Timeout)
            }
            (Layer::Seven, _) => CheckStatus::Layer7Timeout,
        };
        Verdict::new(status, text::place(self.script, rule))
    }
}

/// Whether an error is one of this machine rather than of the path to the server.
fn is_local(error: &io::Error) -> bool {
    use io::ErrorKind as Kind;
    matches!(
        error.kind(),
        Kind::PermissionDenied | Kind::AddrInUse | Kind::AddrNotAvailable | Kind::InvalidInput
    )
}

/// The end of the rules that evaluate one reply: the next rule that connects or sends.
fn end_of_expects(rules: &[CheckRule], first: usize) -> usize {
    let is_other =
        |rule: &CheckRule| matches!(rule.action, CheckAction::Connect(_) | CheckAction::Send(_));
    let next = rules[first..].iter().position(is_other);
    next.map_or(rules.len(), |offset| first + offset)
}

/// A host without its port.
fn host_name(host: &[u8]) -> String {
    let host = String::from_utf8_lossy(host);
    match host.rfind([':', ']']) {
        Some(at) if host.as_bytes()[at] == b':' => host[..at].to_owned(),
        _ => host.into_owned(),
    }
}
