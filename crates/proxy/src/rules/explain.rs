//! Runs rules one by one and reports the outcome of each.

use std::sync::Arc;

use config::model::{HttpAction, TcpAction, TcpRule};
use telemetry::program::Direction;

use super::http::Flow;
use super::tcp::{ContentOutcome, Verdict};
use super::{Cx, End, RuleSet};
use crate::ids::{ProxyId, RuleId};
use crate::stream::Stream;

/// The outcome of a rule.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fate {
    /// Its condition does not hold.
    Skipped,
    /// It was executed, and the next rule follows.
    Next,
    /// It was executed, and the rest of its set is skipped.
    Stop,
    /// It waits for a time, a body, a handshake or an address. The next rule follows then.
    Waits,
    /// It ends the stream.
    Ends(End),
    /// It closes the connection.
    Closes,
    /// It failed, and the message fails with this status.
    Failed(u16),
}

impl Cx<'_> {
    /// Executes one HTTP rule if its condition holds.
    pub fn http_rule_alone(&mut self, stream: &mut Stream, (set, rule): (RuleSet, RuleId)) -> Fate {
        let runtime_config = self.scene.eval.runtime_config;
        let rules = &set.rules(runtime_config.proxy(rule.proxy))[rule.place..];
        let condition = rules[0].condition.as_ref();
        if condition.is_some_and(|condition| !self.eval().holds(stream, condition)) {
            return Fate::Skipped;
        }
        // Nothing is asked for an explanation: its stream is in no table, so no answer would find it.
        if matches!(rules[0].action, HttpAction::Resolve(_)) {
            return Fate::Waits;
        }
        match self.http_action(stream, rules, set, (rule, None)) {
            Flow::Next => Fate::Next,
            Flow::Stop => Fate::Stop,
            Flow::End(end) => Fate::Ends(end),
            Flow::Wait(_) => Fate::Waits,
            Flow::Failed(status) => Fate::Failed(status),
        }
    }

    /// Executes one rule of a connection (`connection`) or of a session.
    pub fn bare_rule_alone(
        &mut self,
        frontend: ProxyId,
        rule: &Arc<TcpRule>,
        connection: bool,
    ) -> Fate {
        let condition = rule.condition.as_ref();
        let holds = condition
            .is_none_or(|condition| self.eval().with_session(|scope| condition.matches(scope)));
        if !holds {
            return Fate::Skipped;
        }
        match self.bare_rules(frontend, std::slice::from_ref(rule), connection) {
            Verdict::Close => Fate::Closes,
            Verdict::Continue | Verdict::ExpectProxy => match rule.action {
                TcpAction::Accept => Fate::Stop,
                _ => Fate::Next,
            },
        }
    }

    /// Executes one rule of `tcp-request content` or `tcp-response content`, on the assumption that
    /// no more bytes come.
    pub fn content_rule_alone(
        &mut self,
        stream: &mut Stream,
        (proxy, direction): (ProxyId, Direction),
        rule: &Arc<TcpRule>,
    ) -> Fate {
        let condition = rule.condition.as_ref();
        if condition.is_some_and(|condition| !self.eval().holds(stream, condition)) {
            return Fate::Skipped;
        }
        if matches!(rule.action, TcpAction::Resolve(_)) {
            return Fate::Waits;
        }
        let alone = std::slice::from_ref(rule);
        match self.stream_rules(stream, proxy, alone, direction, true) {
            ContentOutcome::End(end) => Fate::Ends(end),
            ContentOutcome::CloseServer => Fate::Closes,
            ContentOutcome::Wait | ContentOutcome::WaitName => Fate::Waits,
            ContentOutcome::Upgrade(_) => Fate::Stop,
            ContentOutcome::Pass => match rule.action {
                TcpAction::Accept => Fate::Stop,
                _ => Fate::Next,
            },
        }
    }
}
