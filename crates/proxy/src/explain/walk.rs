//! Runs the rule sets in the order of `phases`.

mod choose;
mod read;
mod response;
mod rules;

use std::sync::Arc;

use config::model::Proxy;
use http::Head;
use net::{Now, WorkerId};
use sample::{Condition, RulePlace, Session};
use telemetry::program::Direction;

use self::rules::Told;
use super::nobody::Nobody;
use super::{Explanation, Question, Step, addresses, named};
use crate::evaluation::{Ambient, Eval};
use crate::ids::ProxyId;
use crate::logging::{Logging, Scene};
use crate::phases::is_monitored;
use crate::rules::{Cx, Memory};
use crate::runtime_config::RuntimeConfig;
use crate::shared::{ServerTables, Shared};
use crate::stream::Stream;
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
    runtime_config: &'a RuntimeConfig,
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
    /// The head of the assumed response.
    response: Option<&'a [u8]>,
    /// Response rules run now.
    is_response: bool,
    /// A response of the proxy itself is in the stream.
    is_answered: bool,
    told: Explanation,
}

/// The request has ended; its outcome is already reported.
struct Ended;

impl<'a> Walk<'a> {
    /// Parses the request.
    pub fn begin(
        runtime_config: &'a Arc<RuntimeConfig>,
        shared: &Arc<Shared>,
        question: &'a Question,
        (frontend, bind): (ProxyId, usize),
        now: Now,
    ) -> Result<Walk<'a>, String> {
        let ambient = Ambient::new(Arc::clone(shared), WorkerId(0), now.wall_ns);
        let (src, dst) = addresses(question);
        let mut stream = Stream::lone();
        read::request(runtime_config, frontend, &question.head, &mut stream)?;
        stream.txn.timing.start = now;
        Ok(Walk {
            runtime_config,
            servers: shared.server_tables(),
            logging: Logging::new(runtime_config, &ambient),
            tracing: tracing::Worker::new(runtime_config, 0, now.wall_ns),
            ambient,
            io: Nobody {
                now,
                read_bytes: runtime_config.bufsize(),
            },
            session: Session::new(now, src, dst, frontend.number(), bind as u32),
            stream,
            memory: Memory::default(),
            text: Vec::new(),
            knows_source: question.source.is_some(),
            response: question.response.as_deref(),
            is_response: false,
            is_answered: false,
            told: Explanation::default(),
        })
    }

    /// Runs all rule sets.
    pub fn run(mut self, why: String) -> Result<Explanation, String> {
        let frontend = self.stream.frontend;
        self.told.frontend = self.proxy(frontend).name.to_string();
        self.told.frontend_why = why;
        let is_sent = self.follow(frontend).is_ok() && self.choose_server();
        if self.stream.txn.is_http {
            let head = &self.stream.request;
            let line = [head.method_bytes(), head.target(), head.version_bytes()];
            self.told.request = lines(&line.join(&b' '), head);
        }
        if let Some(response) = self.response {
            self.follow_response(response, is_sent)?;
        }
        Ok(self.told)
    }

    fn follow(&mut self, frontend: ProxyId) -> Result<(), Ended> {
        let proxy = self.proxy(frontend);
        let monitored = proxy.monitor_uri.as_deref();
        if self.stream.txn.is_http
            && monitored.is_some_and(|uri| is_monitored(uri, &self.stream.request))
        {
            self.monitor(frontend, proxy);
            return Err(Ended);
        }
        for (keyword, rules) in [
            ("tcp-request connection", &proxy.tcp_request_connection),
            ("tcp-request session", &proxy.tcp_request_session),
        ] {
            self.bare_rules(frontend, keyword, rules)?;
        }
        self.content_rules(frontend, Direction::Request)?;
        if self.stream.txn.is_http {
            self.request_rules(frontend)?;
        }
        let backend = self.choose_backend(frontend)?;
        self.told.backend = Some(self.proxy(backend).name.to_string());
        self.stream.backend = backend;
        self.stream.txn.backend = Some(backend.number());
        self.persist_rules(backend);
        if backend != frontend {
            self.content_rules(backend, Direction::Request)?;
            if self.stream.txn.is_http {
                self.request_rules(backend)?;
            }
        }
        Ok(())
    }

    /// `monitor-uri` answers before any rule.
    fn monitor(&mut self, frontend: ProxyId, proxy: &Proxy) {
        let fails = self.with_rules(|cx, stream| {
            let mut conditions = proxy.monitor_fail.iter();
            conditions.any(|condition| cx.scene.eval.holds(stream, condition))
        });
        let (status, result) = if fails {
            (503, "answers with 503: a 'monitor fail' condition holds")
        } else {
            (200, "answers with 200")
        };
        let place = proxy.monitor_uri_place;
        self.tell(frontend, "monitor-uri", place, Told::always(result));
        self.told.outcome = "The proxy answers by itself: monitor-uri.".to_owned();
        self.answer_with(status);
    }

    fn proxy(&self, id: ProxyId) -> &'a Proxy {
        self.runtime_config.proxy(id)
    }

    /// Runs work with rules in the same way as a worker.
    fn with_rules<R>(&mut self, work: impl FnOnce(&mut Cx<'_>, &mut Stream) -> R) -> R {
        let mut cx = Cx {
            scene: Scene {
                eval: Eval {
                    runtime_config: self.runtime_config,
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
            is_response: self.is_response,
            keyword,
            place: place.and_then(|place| named(self.runtime_config, place)),
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
}

/// The lines of a head.
fn lines(first: &[u8], head: &Head) -> Vec<String> {
    let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let fields = head.fields();
    let fields = fields.map(|(_, _, name, value)| format!("{}: {}", shown(name), shown(value)));
    std::iter::once(shown(first)).chain(fields).collect()
}
