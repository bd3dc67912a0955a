//! Rule sets: which rules of a proxy run when, and what they decide.

mod http;
mod limits;
pub(crate) mod tcp;

use config::model::HttpRule;
use net::timers::NEVER_MS;
use net::{ConnId, Driver};
use sample::facts::Session;
use sample::{Condition, LogFormat, Scope, Value, VarRef, VarScope};

use crate::conn::Conns;
use crate::engine::{Core, Cx};
use crate::stream::{Phase, Stream};

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
    fn rules(self, proxy: &config::model::Proxy) -> &[HttpRule] {
        match self {
            RuleSet::Request => &proxy.http_request,
            RuleSet::Redirect => &proxy.redirects,
            RuleSet::Response => &proxy.http_response,
            RuleSet::AfterResponse => &proxy.http_after_response,
        }
    }
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
    pub fn with_scope<D: Driver, R>(
        &self,
        cx: &Cx<'_, D>,
        stream: &Stream,
        last_chance: bool,
        work: impl FnOnce(&Scope<'_>) -> R,
    ) -> Option<R> {
        // What a rule waited for of the response's body.
        let server = stream.server.filter(|_| stream.has_response());
        let body = server.map_or(&[][..], |server| self.conns.input(server));
        self.with_response_scope(cx, stream, last_chance, body, work)
    }

    /// As [`Core::with_scope`], with bytes of a server that are no HTTP.
    pub fn with_response_scope<D: Driver, R>(
        &self,
        cx: &Cx<'_, D>,
        stream: &Stream,
        last_chance: bool,
        response_data: &[u8],
        work: impl FnOnce(&Scope<'_>) -> R,
    ) -> Option<R> {
        let view = self.view(cx);
        let client = stream.client?;
        let scope = Scope {
            now: cx.now(),
            world: &view,
            session: self.conns.session(client)?,
            txn: Some(&stream.txn),
            request: stream.has_request().then_some(&stream.request),
            response: stream.has_response().then_some(&stream.response),
            request_data: self.conns.input(client),
            response_data,
            last_chance,
        };
        Some(work(&scope))
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

    /// Sets a variable of any scope; none unsets it.
    pub fn set_var(&mut self, stream: &mut Stream, var: VarRef, value: Option<Value<'static>>) {
        let vars = match var.scope {
            VarScope::Sess => match stream.client.and_then(|client| self.conns.client(client)) {
                Some(client) => &mut client.session.vars,
                None => return,
            },
            VarScope::Txn => &mut stream.txn.txn_vars,
            VarScope::Req => &mut stream.txn.req_vars,
            VarScope::Res => &mut stream.txn.res_vars,
            // Nothing writes them from traffic yet: the configuration refuses such a rule.
            VarScope::Proc | VarScope::Check => return,
        };
        match value {
            Some(value) => vars.set(var.slot, value),
            None => vars.unset(var.slot),
        }
    }

    /// Sets a variable to a format's text.
    pub fn set_var_fmt<D: Driver>(
        &mut self,
        cx: &Cx<'_, D>,
        stream: &mut Stream,
        var: VarRef,
        format: &LogFormat,
    ) {
        let mut text = std::mem::take(&mut self.text);
        self.render(cx, stream, format, &mut text);
        self.set_var(stream, var, Some(Value::text(&text[..]).detach()));
        text.clear();
        self.text = text;
    }

    /// A tarpitted client has waited long enough.
    pub fn end_tarpit<D: Driver>(&mut self, cx: &mut Cx<'_, D>, stream: &mut Stream) {
        if let Some(client) = stream.client {
            self.set_deadline(client, NEVER_MS);
        }
        stream.phase = Phase::Transfer;
        self.answer_tarpit(cx, stream);
    }
}

impl Conns {
    pub fn session(&self, client: ConnId) -> Option<&Session> {
        self.client_ref(client).map(|client| &client.session)
    }
}
