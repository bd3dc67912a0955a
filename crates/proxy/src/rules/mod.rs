//! Rule sets: which rules of a proxy run when, and what they decide.

mod address;
mod answers;
mod captures;
mod headers;
mod http;
mod limits;
mod patterns;
mod rewrite;
mod target;
pub(crate) mod tcp;
mod traffic;
mod variables;
mod waits;

use std::sync::Arc;

use config::model::HttpRule;
use net::{ConnId, Driver};
use sample::facts::Session;
use sample::{Condition, Expr, LogFormat, LogOrigin, Scope};

use crate::conn::Conns;
use crate::engine::{Core, Cx};
use crate::stream::Stream;
use crate::world::View;

/// The HTTP rule sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RuleSet {
    Request,
    /// The `redirect` keywords: after all of the others.
    Redirect,
    Response,
    AfterResponse,
}

impl RuleSet {
    fn rules(self, proxy: &config::model::Proxy) -> &[Arc<HttpRule>] {
        match self {
            RuleSet::Request => &proxy.http_request,
            RuleSet::Redirect => &proxy.redirects,
            RuleSet::Response => &proxy.http_response,
            RuleSet::AfterResponse => &proxy.http_after_response,
        }
    }
}

impl RuleSet {
    /// When a rule of this set ends a stream (manual §8.5).
    fn letter(self) -> u8 {
        match self.is_response() {
            false => b'R',
            true => b'H',
        }
    }

    /// What the log says of a line that a rule of this set asked for.
    fn origin(self) -> LogOrigin {
        match self {
            RuleSet::Request | RuleSet::Redirect => LogOrigin::HttpRequest,
            RuleSet::Response => LogOrigin::HttpResponse,
            RuleSet::AfterResponse => LogOrigin::HttpAfterResponse,
        }
    }

    fn is_response(self) -> bool {
        matches!(self, RuleSet::Response | RuleSet::AfterResponse)
    }
}

/// Memory of the rules of one worker, kept from one to the next.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// Texts of the moment: what a rewrite made, a whole target.
    rewritten: Vec<u8>,
    target: Vec<u8>,
    /// A 103 response that further rules go on with; empty between sets.
    hints: Vec<u8>,
    /// By rewrite ([`config::model::Rewrite::id`]): what it matches with.
    matchers: Vec<Option<sample::regex::Regex>>,
    normalized: ::http::normalize::Normalized,
}

/// What a rule set of a stream came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Continue,
    /// A rule answered, refused or closed.
    Ended,
    /// A rule waits for a body; the set goes on from there.
    Wait,
}

/// What the rules of a connection without a stream came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Continue,
    Close,
}

impl Core {
    /// The session of a stream's client.
    pub fn session(&self, stream: &Stream) -> Option<&Session> {
        self.conns.session(stream.client?)
    }

    /// Evaluates with a scope of a stream. `last_chance`: what is missing now stays missing.
    #[inline]
    pub fn with_scope<D: Driver, R>(
        &self,
        cx: &Cx<'_, D>,
        stream: &Stream,
        last_chance: bool,
        work: impl FnOnce(&Scope<'_>) -> R,
    ) -> Option<R> {
        self.with_answer_scope(cx, stream, last_chance, None, work)
    }

    /// As [`Core::with_scope`]. `answer`: bytes of a server that are no HTTP, where rules about those run.
    #[inline]
    pub fn with_answer_scope<D: Driver, R>(
        &self,
        cx: &Cx<'_, D>,
        stream: &Stream,
        last_chance: bool,
        answer: Option<&[u8]>,
        work: impl FnOnce(&Scope<'_>) -> R,
    ) -> Option<R> {
        let client = stream.client?;
        let view = View {
            client: Some(client),
            server: stream.server,
            ..self.view(cx)
        };
        let (session, request_data) = self.conns.session_and_input(client)?;
        let scope = Scope {
            now: cx.now(),
            world: &view,
            session,
            txn: Some(&stream.txn),
            request: (stream.has_request() || stream.http_in_tcp).then_some(&stream.request),
            response: stream.has_response().then_some(&stream.response),
            request_data,
            response_data: answer.unwrap_or_else(|| {
                // What a rule waited for of the response's body.
                let server = stream.server.filter(|_| stream.has_response());
                server.map_or(&[][..], |server| self.conns.input(server))
            }),
            from_server: stream.is_answered(),
            last_chance,
        };
        Some(work(&scope))
    }

    /// An expression of a rule as a number, with what is known now.
    fn int<D: Driver>(&self, cx: &Cx<'_, D>, stream: &Stream, expr: &Expr) -> Option<i64> {
        self.with_scope(cx, stream, true, |scope| expr.eval(scope)?.into_int())
            .flatten()
    }

    /// Whether a condition holds, with what is known now.
    pub fn holds<D: Driver>(&self, cx: &Cx<'_, D>, stream: &Stream, condition: &Condition) -> bool {
        self.with_scope(cx, stream, true, |scope| condition.matches(scope))
            .unwrap_or(false)
    }

    /// Appends a format's text.
    pub fn render<D: Driver>(
        &self,
        cx: &Cx<'_, D>,
        stream: &Stream,
        format: &LogFormat,
        out: &mut Vec<u8>,
    ) {
        self.with_scope(cx, stream, true, |scope| format.render(scope, out));
    }

    /// The stream's unique id; none without a format for it.
    pub fn unique_id<'s, D: Driver>(&self, cx: &Cx<'_, D>, stream: &'s Stream) -> Option<&'s [u8]> {
        let format = cx
            .running
            .proxy(stream.frontend)
            .unique_id_format
            .as_ref()?;
        let id = &stream.txn.unique_id;
        id.get_or_make(|out| self.render(cx, stream, format, out))
    }
}

impl Conns {
    pub fn session(&self, client: ConnId) -> Option<&Session> {
        self.client_ref(client).map(|client| &client.session)
    }
}
