//! `http-request`, `http-response` and `http-after-response` rules (manual §4.3): runs them and
//! handles their outcomes.

use std::sync::Arc;

use config::model::{HttpAction, HttpRule, Pause};
use sample::Waits;
use telemetry::program::Direction;

use super::{Cx, End, RuleSet, Waiting};
use crate::ids::{ProxyId, RuleId};
use crate::runtime_config::{RuntimeConfig, deadline};
use crate::stream::{RuleWait, Stream};

/// The longest pause that an expression may ask for, milliseconds: HAProxy's longest time.
const PAUSE_MS_MAX: i64 = i32::MAX as i64;

/// The status of a message for which a condition could not be decided.
const STATUS_UNDECIDED: u16 = 500;

/// The outcome of a rule set.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Outcome {
    Continue,
    /// A rule ends the stream.
    End(End),
    /// A rule waits; the set continues with it.
    Wait(Waiting),
}

/// The outcome of an action.
pub(super) enum Flow {
    Next,
    /// `allow`: the rest of the set is skipped.
    Stop,
    End(End),
    /// The same rule runs again during and after its wait.
    Wait(RuleWait),
    /// It failed, and the message fails with this status.
    Failed(u16),
}

impl<'a> Cx<'a> {
    /// Runs a rule set of a proxy. `resumed`: the rule that has waited, if any.
    pub fn http_rules(
        &mut self,
        stream: &mut Stream,
        proxy: ProxyId,
        set: RuleSet,
        resumed: Option<(RuleId, RuleWait)>,
    ) -> Outcome {
        let runtime_config: &'a RuntimeConfig = self.scene.eval.runtime_config;
        let rules = set.rules(runtime_config.proxy(proxy));
        let resumed = resumed.filter(|(rule, _)| rule.proxy == proxy);
        let from = resumed.map_or(0, |(rule, _)| rule.place);
        match resumed {
            // If the client left during the wait, the waiting rule is kept for `waiting_entity`.
            Some(_) if !stream.up.cut => stream.txn.waits = None,
            Some(_) => {}
            None => stream.soft_rewrites = false,
        }
        sample::regex::forget_undecided();
        let mut next = from;
        while next < rules.len() {
            let waited = resumed.filter(|(rule, _)| rule.place == next);
            // The condition of a rule that has waited held before.
            let place = match waited {
                Some(_) => next,
                None => match self.first_that_holds(stream, rules, next) {
                    Some(place) => place,
                    None => break,
                },
            };
            if sample::regex::take_undecided() {
                return self.undecided(stream, set);
            }
            let rule = &rules[place];
            next = place + 1;
            // A log line that the action writes already includes this rule.
            let decided = stream.txn.last_rule;
            if rule.action.is_final() && set != RuleSet::Redirect {
                stream.txn.last_rule = Some(rule.place);
            }
            let id = RuleId { proxy, place };
            let wait = waited.map(|(_, wait)| wait);
            match self.http_action(stream, &rules[place..], set, (id, wait)) {
                Flow::Next => stream.txn.last_rule = decided,
                Flow::Stop => return Outcome::Continue,
                Flow::End(end) => {
                    // `last_rule_line` does not report this set (as in HAProxy); traces do.
                    if set == RuleSet::Redirect {
                        stream.route.answered_by = Some(rule.place);
                    }
                    return Outcome::End(end);
                }
                Flow::Failed(status) => {
                    stream.txn.last_rule = Some(rule.place);
                    stream.ended_by(b'P', set.letter());
                    // The response to this failure is sent without running these rules again.
                    stream.rules_failed |= set == RuleSet::AfterResponse;
                    return Outcome::End(End::Fail(status));
                }
                Flow::Wait(wait) => {
                    stream.txn.waits = Some(Waits::Rule(rule.place));
                    return Outcome::Wait(Waiting { rule: id, wait });
                }
            }
        }
        if sample::regex::take_undecided() {
            self.undecided(stream, set)
        } else {
            Outcome::Continue
        }
    }

    /// A regular expression exceeded its limit, so nobody knows which rules apply. The message
    /// fails: a `deny` whose condition could not be decided lets nothing through.
    #[cold]
    fn undecided(&mut self, stream: &mut Stream, set: RuleSet) -> Outcome {
        stream.ended_by(b'P', set.letter());
        stream.rules_failed |= set == RuleSet::AfterResponse;
        Outcome::End(End::Fail(STATUS_UNDECIDED))
    }

    /// The first rule from place `from` on whose condition holds. Rules that do not apply change
    /// nothing, so their conditions share one view of the facts.
    #[inline]
    fn first_that_holds(
        &self,
        stream: &Stream,
        rules: &[Arc<HttpRule>],
        from: usize,
    ) -> Option<usize> {
        if rules[from].condition.is_none() {
            return Some(from);
        }
        self.eval()
            .with_scope(stream, true, |scope| {
                let holds = |rule: &Arc<HttpRule>| {
                    rule.condition
                        .as_ref()
                        .is_none_or(|condition| condition.matches(scope))
                };
                rules[from..].iter().position(holds)
            })
            .map(|place| from + place)
    }

    /// Executes the first of `rules`.
    pub(super) fn http_action(
        &mut self,
        stream: &mut Stream,
        rules: &[Arc<HttpRule>],
        set: RuleSet,
        (rule, waited): (RuleId, Option<RuleWait>),
    ) -> Flow {
        let rewritten = match &rules[0].action {
            HttpAction::Allow => return Flow::Stop,
            HttpAction::StrictMode(on) => {
                stream.soft_rewrites = !on;
                true
            }
            // Header fields.
            HttpAction::SetHeader { name, value } => {
                self.put_header(stream, set, (name, value), true)
            }
            HttpAction::AddHeader { name, value } => {
                self.put_header(stream, set, (name, value), false)
            }
            HttpAction::DelHeader(names) => {
                super::headers::remove(stream.head_of(set), names);
                true
            }
            HttpAction::ReplaceHeader(rewrite) => self.replace_header(stream, set, rewrite),
            HttpAction::HeadersBin {
                set: sets,
                expr,
                prefix,
            } => return self.put_binary_headers(stream, set, (*sets, expr, prefix)),
            HttpAction::DelHeadersBin { expr, method } => {
                return self.remove_binary_headers(stream, set, expr, *method);
            }
            HttpAction::EarlyHint { name, value } => {
                self.early_hint(stream, name, value, rules.get(1).map(Arc::as_ref));
                true
            }
            // The start line.
            HttpAction::SetMethod(format) => self.set_method(stream, format),
            HttpAction::SetTarget { part, format } => self.set_target(stream, *part, format),
            HttpAction::SetQuery(format) => self.set_query(stream, format),
            HttpAction::ReplaceTarget { part, with } => self.replace_target(stream, *part, with),
            HttpAction::NormalizeUri(step) => return self.normalize(stream, *step),
            HttpAction::SetStatus { status, reason } => {
                let reason = reason
                    .as_deref()
                    .unwrap_or_else(|| http::reason(*status).as_bytes());
                stream.response.set_status(*status, reason);
                stream.txn.status = *status;
                true
            }
            // The stream.
            HttpAction::Var(assignment) => {
                self.scene.eval.assign(stream, assignment);
                true
            }
            HttpAction::EditPatterns(edit) => {
                self.edit_patterns(stream, edit);
                true
            }
            HttpAction::Capture { expr, slot } => {
                self.capture(stream, set.is_response(), expr, *slot);
                true
            }
            HttpAction::SetTimeout { kind, amount } => {
                self.set_timeout(stream, *kind, amount);
                true
            }
            HttpAction::SetRetries(amount) => {
                self.set_retries(stream, amount);
                true
            }
            HttpAction::DisableL7Retry => {
                stream.replay.never = true;
                true
            }
            HttpAction::Stream(action) => {
                self.stream_action(stream, rule.proxy, action);
                true
            }
            HttpAction::OtelGroup(group) => {
                let direction = if set.is_response() {
                    Direction::Response
                } else {
                    Direction::Request
                };
                let group = (rule.proxy, *group);
                self.tracing
                    .trace_group(&mut self.scene, stream, group, direction);
                true
            }
            HttpAction::DoLog { profile } => {
                let logging = &mut self.scene.logging;
                logging.do_log(&mut self.scene.eval, stream, set.origin(), *profile);
                true
            }
            // Waits.
            HttpAction::WaitForBody { time, at_least } => {
                return if self.body_is_here(stream, set, *at_least) {
                    Flow::Next
                } else {
                    let begin = || RuleWait::Body {
                        until_ms: deadline(self.eval().now, time.as_millis() as u64),
                    };
                    Flow::Wait(waited.unwrap_or_else(begin))
                };
            }
            HttpAction::Pause(pause) => return self.pause(stream, set, pause, waited),
            HttpAction::WaitForHandshake => return self.wait_for_handshake(stream, waited),
            HttpAction::Resolve(resolve) => {
                return if self.resolve(stream, rules[0].place, resolve) {
                    Flow::Next
                } else {
                    Flow::Wait(RuleWait::Name)
                };
            }
            // Responses.
            HttpAction::Auth { .. } => {
                self.decided(stream, b'L', set);
                return Flow::End(End::Challenge(set, rule));
            }
            HttpAction::UseService(service) => return Flow::End(End::Service(*service)),
            HttpAction::Return(_) => {
                self.decided(stream, b'L', set);
                return Flow::End(End::Answer(set, rule));
            }
            HttpAction::Deny(_) => {
                if set == RuleSet::Request {
                    // Cookies of a denied request are logged too.
                    crate::persistence::request_cookies(&mut self.scene.eval, stream);
                }
                self.decided(stream, b'P', set);
                return Flow::End(End::Answer(set, rule));
            }
            HttpAction::Tarpit(_) => {
                crate::persistence::request_cookies(&mut self.scene.eval, stream);
                return Flow::End(End::Tarpit(rule));
            }
            HttpAction::Reject => {
                stream.ended_by(b'P', set.letter());
                return Flow::End(End::Close);
            }
            HttpAction::SilentDrop { rst_ttl } => {
                stream.ended_by(b'P', b'R');
                self.vanish(*rst_ttl);
                return Flow::End(End::Vanished);
            }
            HttpAction::Redirect(redirect) => {
                return if self.redirect(stream, redirect) {
                    self.decided(stream, b'L', set);
                    Flow::End(End::Redirect)
                } else {
                    Flow::Next
                };
            }
        };
        if rewritten || stream.soft_rewrites {
            Flow::Next
        } else {
            Flow::Failed(500)
        }
    }

    /// A rule ends the processing of a stream.
    fn decided(&self, stream: &mut Stream, who: u8, set: RuleSet) {
        stream.ended_by(who, set.letter());
        stream.request_processed(self.eval().now);
    }

    /// Whether enough of a body has been received (manual §4.4 wait-for-body).
    fn body_is_here(&self, stream: &Stream, set: RuleSet, enough: Option<usize>) -> bool {
        let bufsize = self.eval().runtime_config.bufsize();
        if set.is_response() {
            stream.down.is_here(&stream.response, bufsize, enough)
        } else {
            stream.up.is_here(&stream.request, bufsize, enough)
        }
    }

    /// `wait-for-handshake`: the request may be a replay until its client completes the handshake
    /// (RFC 8470 §3). A client that does not complete it within `timeout client-hs` is closed.
    fn wait_for_handshake(&self, stream: &mut Stream, waited: Option<RuleWait>) -> Flow {
        let eval = self.eval();
        let tls = eval.session.tls.as_ref();
        if tls.is_none_or(|tls| !tls.has_early) {
            return Flow::Next;
        }
        match waited {
            Some(RuleWait::Handshake { until_ms }) if eval.now.ms() >= until_ms => {
                stream.ended_by(b'c', b'R');
                Flow::End(End::Close)
            }
            Some(wait) => Flow::Wait(wait),
            None => {
                let time_ms = eval.runtime_config.timeouts(stream.frontend).client_hs;
                let until_ms = deadline(eval.now, time_ms);
                Flow::Wait(RuleWait::Handshake { until_ms })
            }
        }
    }

    /// `pause`: the rules of a stream continue later (manual §4.4).
    fn pause(
        &self,
        stream: &Stream,
        set: RuleSet,
        pause: &Pause,
        waited: Option<RuleWait>,
    ) -> Flow {
        let now = self.eval().now;
        if let Some(RuleWait::Pause { until_ms }) = waited {
            return if now.ms() < until_ms {
                Flow::Wait(RuleWait::Pause { until_ms })
            } else {
                Flow::Next
            };
        }
        if set.is_response() && stream.server.link().is_none() {
            return Flow::Next;
        }
        let time_ms = match pause {
            Pause::Time(time) => Some(time.as_millis() as u64),
            Pause::Computed(expr) => {
                let ms = self.eval().int(stream, expr).filter(|ms| *ms > 0);
                ms.map(|ms| ms.min(PAUSE_MS_MAX) as u64)
            }
        };
        match time_ms {
            None => Flow::Next,
            Some(time_ms) => {
                let until_ms = deadline(now, time_ms);
                Flow::Wait(RuleWait::Pause { until_ms })
            }
        }
    }
}
