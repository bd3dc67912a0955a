//! Runs the rule sets in the order of `phases`.

mod choose;

use std::cell::Cell;
use std::sync::Arc;

use config::model::{HttpAction, Mode, Proxy, TcpRule};
use http::h1::{self, Strictness};
use net::{Now, WorkerId};
use sample::{BodyFacts, Condition, RulePlace, Session};

use super::nobody::Nobody;
use super::{Explanation, Question, Step, addresses, named};
use crate::facts::{Ambient, Eval};
use crate::ids::{ProxyId, RuleId};
use crate::logging::{Logging, Scene};
use crate::phases::{is_for_page, is_monitored};
use crate::rules::{Cx, End, Fate, Memory, RuleSet, reply_of};
use crate::running::Running;
use crate::shared::{ServerTables, Shared};
use crate::stream::{Phase, Rules, Stream};
use crate::tracing;

/// The largest number of reported rules; further ones are omitted.
const STEPS_MAX: usize = 5_000;

/// Inputs of fetches that a request alone does not have, in the words of their table.
const UNKNOWN_WITHOUT_CONNECTION: &[&str] = &[
    "client-side connection",
    "server-side connection",
    "server address",
];
const CLIENT_ADDRESS: &str = "client address";

/// The state of one explained request.
pub(super) struct Walk<'a> {
    running: &'a Running,
    servers: Arc<ServerTables>,
    ambient: Ambient,
    io: Nobody,
    session: Session,
    stream: Stream,
    logging: Logging,
    tracing: tracing::Worker,
    memory: Memory,
    text: Vec<u8>,
    knows_source: bool,
    told: Explanation,
}

/// The request has ended; its outcome is already reported.
struct Ended;

impl<'a> Walk<'a> {
    /// Parses the request.
    pub fn begin(
        running: &'a Arc<Running>,
        shared: &Arc<Shared>,
        question: &Question,
        (frontend, bind): (ProxyId, usize),
        now: Now,
    ) -> Result<Walk<'a>, String> {
        let ambient = Ambient {
            shared: Arc::clone(shared),
            worker: WorkerId(0),
            stopping: false,
            random: Cell::new(now.wall_ns),
        };
        let (src, dst) = addresses(question);
        let mut stream = Stream::lone();
        read(running, frontend, &question.head, &mut stream)?;
        stream.txn.timing.start = now;
        Ok(Walk {
            running,
            servers: shared.server_tables(),
            logging: Logging::new(running, &ambient),
            tracing: tracing::Worker::new(running, 0, now.wall_ns),
            ambient,
            io: Nobody {
                now,
                read_bytes: running.bufsize(),
            },
            session: Session::new(now, src, dst, frontend.number(), bind as u32),
            stream,
            memory: Memory::default(),
            text: Vec::new(),
            knows_source: question.source.is_some(),
            told: Explanation::default(),
        })
    }

    /// Runs all rule sets.
    pub fn run(mut self, why: String) -> Result<Explanation, String> {
        let frontend = self.stream.frontend;
        self.told.frontend = self.proxy(frontend).name.to_string();
        self.told.frontend_why = why;
        if self.follow(frontend).is_ok() {
            self.choose_server();
        }
        if self.stream.txn.is_http {
            self.tell_request();
        }
        Ok(self.told)
    }

    /// Reports the current request.
    fn tell_request(&mut self) {
        let head = &self.stream.request;
        let line = [head.method_bytes(), head.target(), head.version_bytes()];
        let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        self.told.request.push(shown(&line.join(&b' ')));
        for (_, _, name, value) in head.fields() {
            self.told
                .request
                .push(format!("{}: {}", shown(name), shown(value)));
        }
    }

    fn follow(&mut self, frontend: ProxyId) -> Result<(), Ended> {
        let proxy = self.proxy(frontend);
        let monitored = proxy.monitor_uri.as_deref();
        if self.stream.txn.is_http
            && monitored.is_some_and(|uri| is_monitored(uri, &self.stream.request))
        {
            self.told.outcome = "The proxy answers by itself: monitor-uri.".to_owned();
            return Err(Ended);
        }
        for (keyword, rules) in [
            ("tcp-request connection", &proxy.tcp_request_connection),
            ("tcp-request session", &proxy.tcp_request_session),
        ] {
            self.bare_rules(frontend, keyword, rules)?;
        }
        self.content_rules(frontend)?;
        if self.stream.txn.is_http {
            self.http_rules(frontend)?;
        }
        let backend = self.choose_backend(frontend)?;
        self.told.backend = Some(self.proxy(backend).name.to_string());
        self.stream.backend = backend;
        self.stream.txn.backend = Some(backend.number());
        if backend != frontend {
            self.content_rules(backend)?;
            if self.stream.txn.is_http {
                self.http_rules(backend)?;
            }
        }
        Ok(())
    }

    fn proxy(&self, id: ProxyId) -> &'a Proxy {
        self.running.proxy(id)
    }

    /// Runs work with rules in the same way as a worker.
    fn with_rules<R>(&mut self, work: impl FnOnce(&mut Cx<'_>, &mut Stream) -> R) -> R {
        let mut cx = Cx {
            scene: Scene {
                eval: Eval {
                    running: self.running,
                    servers: &self.servers,
                    ambient: &self.ambient,
                    now: self.io.now,
                    io: &mut self.io,
                    session: &mut self.session,
                    client: None,
                    server: None,
                    input: &[],
                    text: &mut self.text,
                },
                logging: &mut self.logging,
            },
            tracing: &mut self.tracing,
            memory: &mut self.memory,
        };
        work(&mut cx, &mut self.stream)
    }

    fn tell(
        &mut self,
        proxy: ProxyId,
        keyword: &'static str,
        place: Option<RulePlace>,
        step: Told<'_>,
    ) {
        if self.told.steps.len() >= STEPS_MAX {
            return;
        }
        let unknown = step
            .condition
            .map_or_else(Vec::new, |condition| self.unknown(condition));
        self.told.steps.push(Step {
            proxy: self.proxy(proxy).name.to_string(),
            keyword,
            place: place.and_then(|place| named(self.running, place)),
            matches: step.matches,
            result: step.result,
            unknown,
        });
    }

    /// Inputs of a condition that are not known here.
    fn unknown(&self, condition: &Condition) -> Vec<&'static str> {
        let mut all = Vec::new();
        for (name, needs) in condition.reads() {
            let is_unknown = UNKNOWN_WITHOUT_CONNECTION.contains(&needs)
                || (needs == CLIENT_ADDRESS && !self.knows_source);
            if is_unknown && !all.contains(&name) {
                all.push(name);
            }
        }
        all
    }

    fn bare_rules(
        &mut self,
        frontend: ProxyId,
        keyword: &'static str,
        rules: &[Arc<TcpRule>],
    ) -> Result<(), Ended> {
        let connection = keyword == "tcp-request connection";
        for rule in rules {
            let fate = self.with_rules(|cx, _| cx.bare_rule_alone(frontend, rule, connection));
            let told = Told::of(fate, rule.condition.as_ref(), None);
            self.tell(frontend, keyword, Some(rule.place), told);
            match self.after(fate, None)? {
                Go::On => {}
                Go::NextSet => break,
            }
        }
        Ok(())
    }

    fn content_rules(&mut self, proxy: ProxyId) -> Result<(), Ended> {
        for rule in &self.proxy(proxy).tcp_request_content {
            let fate = self.with_rules(|cx, stream| cx.content_rule_alone(stream, proxy, rule));
            let told = Told::of(fate, rule.condition.as_ref(), None);
            self.tell(proxy, "tcp-request content", Some(rule.place), told);
            match self.after(fate, None)? {
                Go::On => {}
                Go::NextSet => break,
            }
        }
        Ok(())
    }

    /// Runs `http-request`, then `redirect`.
    fn http_rules(&mut self, proxy: ProxyId) -> Result<(), Ended> {
        for (keyword, set) in [
            ("http-request", RuleSet::Request),
            ("redirect", RuleSet::Redirect),
        ] {
            let page = self.proxy(proxy).stats.as_deref();
            if set == RuleSet::Redirect && page.is_some_and(|page| is_for_page(page, &self.stream))
            {
                self.told.outcome = "The proxy answers by itself: the statistics page.".to_owned();
                return Err(Ended);
            }
            self.stream.soft_rewrites = false;
            for (place, rule) in set.rules(self.proxy(proxy)).iter().enumerate() {
                let id = RuleId { proxy, place };
                let fate = self.with_rules(|cx, stream| cx.http_rule_alone(stream, (set, id)));
                let told = Told::of(fate, rule.condition.as_ref(), Some(&rule.action));
                self.tell(proxy, keyword, Some(rule.place), told);
                match self.after(fate, Some((set, id)))? {
                    Go::On => {}
                    Go::NextSet => break,
                }
            }
        }
        Ok(())
    }

    /// Continues after a rule.
    fn after(&mut self, fate: Fate, rule: Option<(RuleSet, RuleId)>) -> Result<Go, Ended> {
        let outcome = match fate {
            Fate::Skipped | Fate::Next | Fate::Waits => return Ok(Go::On),
            Fate::Stop => return Ok(Go::NextSet),
            Fate::Closes => "The connection is closed.".to_owned(),
            Fate::Failed(status) => format!("The rule fails: the client gets {status}."),
            Fate::Ends(end) => self.end(end, rule),
        };
        self.told.outcome = outcome;
        Err(Ended)
    }

    fn end(&self, end: End, rule: Option<(RuleSet, RuleId)>) -> String {
        let status = rule
            .and_then(|(set, id)| reply_of(self.running, set, id))
            .map(|reply| reply.status);
        match end {
            End::Answer(..) => format!("The proxy answers with {}.", status.unwrap_or_default()),
            End::Tarpit(_) => format!(
                "The proxy answers with {} after the tarpit's time.",
                status.unwrap_or_default()
            ),
            End::Redirect => {
                let response = &self.stream.response;
                let location = response.find(b"location").next().map(|(_, value)| value);
                let location = String::from_utf8_lossy(location.unwrap_or_default());
                format!(
                    "The proxy redirects with {} to {location}",
                    response.status()
                )
            }
            End::Challenge(..) => "The proxy asks for user and password (401 or 407).".to_owned(),
            End::Service(_) => "A service of the proxy answers.".to_owned(),
            End::Close | End::Vanished => "The connection is closed without an answer.".to_owned(),
            End::Fail(status) => format!("The client gets {status}."),
        }
    }
}

enum Go {
    On,
    NextSet,
}

/// The data for reporting a rule.
struct Told<'c> {
    matches: bool,
    result: String,
    condition: Option<&'c Condition>,
}

impl<'c> Told<'c> {
    fn of(fate: Fate, condition: Option<&'c Condition>, action: Option<&HttpAction>) -> Told<'c> {
        let result = match fate {
            Fate::Skipped => "does not match",
            Fate::Next => match action {
                Some(HttpAction::Redirect(_)) => "matches, and gives no redirect",
                _ => "is carried out",
            },
            Fate::Stop => "is carried out; the rest of the set is passed over",
            Fate::Waits => "waits here; explained as if the wait were over",
            Fate::Ends(_) | Fate::Closes => "ends the request",
            Fate::Failed(_) => "cannot be carried out",
        };
        Told {
            matches: !matches!(fate, Fate::Skipped),
            result: result.to_owned(),
            condition,
        }
    }
}

/// Parses a head into a stream, as if it came from a client.
fn read(
    running: &Running,
    frontend: ProxyId,
    head: &[u8],
    stream: &mut Stream,
) -> Result<(), String> {
    let proxy = running.proxy(frontend);
    stream.frontend = frontend;
    stream.backend = frontend;
    stream.txn.first_request = true;
    if proxy.mode != Mode::Http {
        stream.up.waiting.extend_from_slice(head);
        stream.phase = Phase::SwitchBackend;
        return Ok(());
    }
    let request = &mut stream.request;
    let parsed = h1::parse_request(head, running.limits(), Strictness::Strict, request)
        .map_err(|error| format!("this is no request: {error:?}"))?
        .ok_or("this is no whole request")?;
    stream.phase = Phase::FrontendRequest(Rules::default());
    let txn = &mut stream.txn;
    txn.is_http = true;
    txn.method = request.method();
    txn.request_body = BodyFacts {
        framing: parsed.framing,
        is_whole: true,
        ..BodyFacts::default()
    };
    let line = [
        request.method_bytes(),
        request.target(),
        request.version_bytes(),
    ];
    txn.request_line = line.join(&b' ');
    for capture in &proxy.capture_request {
        let value = request.find(capture.header.as_bytes()).last();
        let value = value.map(|(_, value)| &value[..value.len().min(capture.len)]);
        txn.captured_request.push(value);
    }
    for _ in &proxy.capture_response {
        txn.captured_response.push(None);
    }
    Ok(())
}
