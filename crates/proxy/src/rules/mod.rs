//! Rule sets: which rules of a proxy run at which time, and their outcome. The actions of a family
//! are in its own file.
//!
//! Rules change their stream, its messages and its session. Responding, waiting and closing are
//! returned as outcomes to the phase that ran the rules.

mod address;
pub(crate) mod answers;
mod bandwidth;
mod captures;
mod explain;
mod headers;
mod http;
mod limits;
mod names;
mod patterns;
mod quic;
mod rewrite;
pub(crate) mod status;
mod tables;
mod target;
mod tcp;
mod traffic;

use std::sync::Arc;

use config::model::{HttpAction, HttpRule, Reply, Service};
use sample::LogOrigin;

use crate::evaluation::Eval;
use crate::ids::RuleId;
use crate::logging::Scene;
use crate::runtime_config::RuntimeConfig;
use crate::stream::RuleWait;
use crate::tracing;
pub(crate) use explain::Fate;
pub(crate) use http::Outcome;
pub(crate) use quic::Initial;
pub(crate) use tcp::{ContentOutcome, Verdict};

/// The context of rules.
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
    /// The `redirect` keywords, which run after all others.
    Redirect,
    Response,
    AfterResponse,
    /// The rules of the statistics page.
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

    /// The termination flag for a stream that a rule of this set ends (manual §8.5).
    fn letter(self) -> u8 {
        if self.is_response() { b'H' } else { b'R' }
    }

    /// The origin of a log line that a rule of this set requests.
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
    /// With the response of this rule: `return`, `deny`.
    Answer(RuleSet, RuleId),
    /// With the response that is in the stream, without a body: a redirect.
    Redirect,
    /// With a request for user and password, which has the challenge of this rule.
    Challenge(RuleSet, RuleId),
    /// With the response of a service.
    Service(Service),
    /// With the response of this rule after a delay.
    Tarpit(RuleId),
    /// Without a response.
    Close,
    /// Without a response, because the client's connection is already gone.
    Vanished,
    /// The rule failed, and the message fails with this status.
    Fail(u16),
}

/// The response that a rule defines; none if it defines none.
pub(crate) fn reply_of(
    runtime_config: &RuntimeConfig,
    set: RuleSet,
    rule: RuleId,
) -> Option<&Reply> {
    let rule = set
        .rules(runtime_config.proxy(rule.proxy))
        .get(rule.place)?;
    match &rule.action {
        HttpAction::Return(reply) | HttpAction::Deny(reply) | HttpAction::Tarpit(reply) => {
            Some(reply)
        }
        _ => None,
    }
}

/// A rule that waits, and its reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub rule: RuleId,
    pub wait: RuleWait,
}

/// Buffers of one worker's rules, kept between rules.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// Scratch buffers: the result of a rewrite, and a complete target.
    rewritten: Vec<u8>,
    target: Vec<u8>,
    /// An unfinished 103 response that the next rules extend; empty between sets.
    hints: ::http::Head,
    /// Interim responses to be sent, and heads that keep their memory for the next ones.
    interim: Vec<::http::Head>,
    spare: Vec<::http::Head>,
    /// By rewrite ([`config::model::Rewrite::id`]): its regular expression.
    matchers: Vec<Option<sample::regex::Regex>>,
    normalized: ::http::normalize::Normalized,
}

impl Memory {
    /// Takes the interim responses that rules made, and gives them to `send` in their order.
    pub fn take_interim(&mut self, mut send: impl FnMut(&::http::Head)) {
        for mut head in self.interim.drain(..) {
            send(&head);
            head.clear();
            self.spare.push(head);
        }
    }

    /// Whether rules made interim responses.
    #[inline]
    pub fn has_interim(&self) -> bool {
        !self.interim.is_empty()
    }

    /// The unfinished interim response is complete.
    fn finish_hints(&mut self) {
        let next = self.spare.pop().unwrap_or_default();
        self.interim.push(std::mem::replace(&mut self.hints, next));
    }
}
