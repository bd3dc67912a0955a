//! Rule sets: which rules of a proxy run when, and what they decide. What an action does is written in the file of its family.
//!
//! Rules change their stream, its messages and its session. What they cannot do by themselves (answer, wait, close) they give
//! back to the phase that ran them.

mod address;
mod answers;
mod bandwidth;
mod captures;
mod explain;
mod headers;
mod http;
mod limits;
mod patterns;
mod rewrite;
pub(crate) mod status;
mod tables;
mod target;
mod tcp;
mod traffic;

use std::sync::Arc;

use config::model::{HttpAction, HttpRule, Reply, Service};
use sample::LogOrigin;

use crate::facts::Eval;
use crate::ids::RuleId;
use crate::logging::Scene;
use crate::running::Running;
use crate::stream::RuleWait;
use crate::tracing;
pub(crate) use explain::Fate;
pub(crate) use http::Outcome;
pub(crate) use tcp::{ContentOutcome, Verdict};

/// What rules work with.
pub(crate) struct Cx<'a> {
    pub scene: Scene<'a>,
    pub tracing: &'a mut tracing::Worker,
    pub memory: &'a mut Memory,
}

impl<'a> Cx<'a> {
    fn eval(&self) -> &Eval<'a> {
        &self.scene.eval
    }
}

/// The HTTP rule sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RuleSet {
    Request,
    /// The `redirect` keywords: after all of the others.
    Redirect,
    Response,
    AfterResponse,
    /// Those of the statistics page.
    Statistics,
}

impl RuleSet {
    /// The rules of this set.
    pub fn rules(self, proxy: &config::model::Proxy) -> &[Arc<HttpRule>] {
        match self {
            RuleSet::Request => &proxy.http_request,
            RuleSet::Redirect => &proxy.redirects,
            RuleSet::Response => &proxy.http_response,
            RuleSet::AfterResponse => &proxy.http_after_response,
            RuleSet::Statistics => proxy
                .stats
                .as_deref()
                .map_or(&[], |page| &page.http_request),
        }
    }

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
            RuleSet::Request | RuleSet::Redirect | RuleSet::Statistics => LogOrigin::HttpRequest,
            RuleSet::Response => LogOrigin::HttpResponse,
            RuleSet::AfterResponse => LogOrigin::HttpAfterResponse,
        }
    }

    pub fn is_response(self) -> bool {
        matches!(self, RuleSet::Response | RuleSet::AfterResponse)
    }
}

/// How a rule ends a stream.
#[derive(Clone, Copy, Debug)]
pub(crate) enum End {
    /// With the answer of this rule: `return`, `deny`.
    Answer(RuleSet, RuleId),
    /// With the response that is in the stream, without a body: a redirect.
    Redirect,
    /// Asks for user and password, with the challenge of this rule.
    Challenge(RuleSet, RuleId),
    /// With the answer of a service.
    Service(Service),
    /// With the answer of this rule, later.
    Tarpit(RuleId),
    /// Without an answer.
    Close,
    /// The same, and nobody is told: the client is gone already.
    Vanished,
    /// It could not do what it had to, and the message fails with it: the status that says so.
    Fail(u16),
}

/// The answer that a rule gives; none for one that gives none.
pub(crate) fn reply_of(running: &Running, set: RuleSet, rule: RuleId) -> Option<&Reply> {
    let rule = set.rules(running.proxy(rule.proxy)).get(rule.place)?;
    match &rule.action {
        HttpAction::Return(reply) | HttpAction::Deny(reply) | HttpAction::Tarpit(reply) => {
            Some(reply)
        }
        _ => None,
    }
}

/// What a rule waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub rule: RuleId,
    pub wait: RuleWait,
    /// How long at most, counted from the first time; none: it has waited before.
    pub time_ms: Option<u64>,
}

/// Memory of the rules of one worker, kept from one to the next.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// Texts of the moment: what a rewrite made, a whole target.
    rewritten: Vec<u8>,
    target: Vec<u8>,
    /// A 103 response that further rules go on with; empty between sets.
    hints: Vec<u8>,
    /// Interim responses that are to be sent.
    pub interim: Vec<u8>,
    /// By rewrite ([`config::model::Rewrite::id`]): what it matches with.
    matchers: Vec<Option<sample::regex::Regex>>,
    normalized: ::http::normalize::Normalized,
}
