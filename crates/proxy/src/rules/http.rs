//! `http-request`, `http-response` and `http-after-response` rules (manual §4.3): which run, and what each came to. What an
//! action does is written in the file of its family.

use std::sync::Arc;

use config::model::{HttpAction, HttpRule};
use net::Driver;
use sample::Waits;
use telemetry::program::Direction;

use super::{Outcome, RuleSet};
use crate::engine::{Core, Cx};
use crate::stream::Stream;

/// What an action came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    Next,
    /// `allow`: the rest of the set is passed over.
    Stop,
    /// It answered, refused or closed.
    Ended,
    /// The same rule is next, once what it waits for has come.
    Wait,
    /// It could not be done, and the message with it: the status that says so.
    Failed(u16),
}

impl Core {
    /// Runs a rule set of a proxy. Most are empty, and cost a look.
    #[inline]
    pub fn http_rules<D: Driver>(
        &mut self,
        cx: &mut Cx<'_, D>,
        stream: &mut Stream,
        proxy: usize,
        set: RuleSet,
    ) -> Outcome {
        let rules = set.rules(cx.running.proxy(proxy));
        if rules.is_empty() {
            return Outcome::Continue;
        }
        self.run_http_rules(cx, stream, (proxy, rules), set)
    }

    fn run_http_rules<D: Driver>(
        &mut self,
        cx: &mut Cx<'_, D>,
        stream: &mut Stream,
        (proxy, rules): (usize, &[Arc<HttpRule>]),
        set: RuleSet,
    ) -> Outcome {
        // A rule that waited is next again; its condition has held.
        let resumed = stream.waiting_rule.take_if(|(of, _)| *of == proxy);
        let from = resumed.map_or(0, |(_, place)| place);
        match resumed {
            // What a client that has left was waited for with stays known (`waiting_entity`).
            Some(_) if !stream.body_cut => stream.txn.waits = None,
            Some(_) => {}
            None => stream.soft_rewrites = false,
        }
        let mut next = from;
        while next < rules.len() {
            // The condition of a rule that waited has held before.
            let place = match resumed == Some((proxy, next)) {
                true => next,
                false => match self.first_that_holds(cx, stream, rules, next) {
                    Some(place) => place,
                    None => break,
                },
            };
            let rule = &rules[place];
            next = place + 1;
            // A log line that the action writes names it already.
            let decided = stream.txn.last_rule;
            if rule.action.is_final() && rule.place.is_some() {
                stream.txn.last_rule = rule.place;
            }
            match self.http_action(cx, stream, &rules[place..], set, (proxy, place)) {
                Flow::Next => stream.txn.last_rule = decided,
                Flow::Stop => return Outcome::Continue,
                Flow::Ended => return Outcome::Ended,
                Flow::Failed(status) => {
                    stream.txn.last_rule = rule.place;
                    self.rule_failed(cx, stream, set, status);
                    return Outcome::Ended;
                }
                Flow::Wait => {
                    stream.waiting_rule = Some((proxy, place));
                    stream.txn.waits = rule.place.map(Waits::Rule);
                    return Outcome::Wait;
                }
            }
        }
        Outcome::Continue
    }

    /// The first rule from place `from` on whose condition holds. Nothing changes between the conditions of rules that
    /// do not apply, so that they share one view of the facts.
    #[inline]
    fn first_that_holds<D: Driver>(
        &self,
        cx: &Cx<'_, D>,
        stream: &Stream,
        rules: &[Arc<HttpRule>],
        from: usize,
    ) -> Option<usize> {
        if rules[from].condition.is_none() {
            return Some(from);
        }
        self.with_scope(cx, stream, true, |scope| {
            let holds = |rule: &Arc<HttpRule>| {
                rule.condition
                    .as_ref()
                    .is_none_or(|condition| condition.matches(scope))
            };
            rules[from..].iter().position(holds)
        })?
        .map(|place| from + place)
    }

    /// `http-after-response` of the backend, then of the frontend; it sees every response, our own too. False: one of them
    /// failed, and this response must not leave.
    pub fn after_response_rules<D: Driver>(
        &mut self,
        cx: &mut Cx<'_, D>,
        stream: &mut Stream,
    ) -> bool {
        for proxy in [stream.backend, stream.frontend] {
            if self.http_rules(cx, stream, proxy, RuleSet::AfterResponse) == Outcome::Ended {
                return false;
            }
            if stream.backend == stream.frontend {
                break;
            }
        }
        true
    }

    /// Does what the first of `rules` says.
    fn http_action<D: Driver>(
        &mut self,
        cx: &mut Cx<'_, D>,
        stream: &mut Stream,
        rules: &[Arc<HttpRule>],
        set: RuleSet,
        place: (usize, usize),
    ) -> Flow {
        let rewritten = match &rules[0].action {
            HttpAction::Allow => return Flow::Stop,
            HttpAction::StrictMode(on) => {
                stream.soft_rewrites = !on;
                true
            }
            // Header fields.
            HttpAction::SetHeader { name, value } => {
                self.put_header(cx, stream, set, (name, value), true)
            }
            HttpAction::AddHeader { name, value } => {
                self.put_header(cx, stream, set, (name, value), false)
            }
            HttpAction::DelHeader(names) => {
                super::headers::remove(stream.head_of(set), names);
                true
            }
            HttpAction::ReplaceHeader(rewrite) => self.replace_header(cx, stream, set, rewrite),
            HttpAction::HeadersBin {
                set: sets,
                expr,
                prefix,
            } => {
                return self.put_binary_headers(cx, stream, set, (*sets, expr, prefix));
            }
            HttpAction::DelHeadersBin { expr, method } => {
                return self.remove_binary_headers(cx, stream, set, expr, *method);
            }
            HttpAction::EarlyHint { name, value } => {
                self.early_hint(cx, stream, name, value, rules.get(1).map(Arc::as_ref));
                true
            }
            // The start line.
            HttpAction::SetMethod(format) => self.set_method(cx, stream, format),
            HttpAction::SetTarget { part, format } => self.set_target(cx, stream, *part, format),
            HttpAction::SetQuery(format) => self.set_query(cx, stream, format),
            HttpAction::ReplaceTarget { part, with } => {
                self.replace_target(cx, stream, *part, with)
            }
            HttpAction::NormalizeUri(step) => return self.normalize(cx, stream, *step),
            HttpAction::SetStatus { status, reason } => {
                let reason = reason
                    .as_deref()
                    .unwrap_or_else(|| crate::error_pages::reason(*status).as_bytes());
                stream.response.set_status(*status, reason);
                stream.txn.status = *status;
                true
            }
            // The stream.
            HttpAction::Var(assignment) => {
                self.assign(cx, stream, assignment, None);
                true
            }
            HttpAction::EditPatterns(edit) => {
                self.edit_patterns(cx, stream, edit);
                true
            }
            HttpAction::Capture { expr, slot } => {
                self.capture(cx, stream, set.is_response(), expr, *slot);
                true
            }
            HttpAction::SetTimeout { kind, amount } => {
                self.set_timeout(cx, stream, set, (*kind, amount));
                true
            }
            HttpAction::SetRetries(amount) => {
                self.set_retries(cx, stream, amount);
                true
            }
            HttpAction::DisableL7Retry => {
                stream.retried_never = true;
                true
            }
            HttpAction::Stream(action) => {
                self.stream_action(cx, stream, action, None);
                true
            }
            HttpAction::OtelGroup(group) => {
                let direction = match set.is_response() {
                    false => Direction::Request,
                    true => Direction::Response,
                };
                self.trace_group(cx, stream, (place.0, *group), direction);
                true
            }
            HttpAction::DoLog { profile } => {
                self.do_log(cx, stream, set.origin(), *profile);
                true
            }
            // Waiting.
            HttpAction::WaitForBody { time, at_least } => {
                let waits = match set.is_response() {
                    false => self.waits_for_request_body(cx, stream, *time, *at_least),
                    true => self.waits_for_response_body(cx, stream, *time, *at_least),
                };
                return if waits { Flow::Wait } else { Flow::Next };
            }
            HttpAction::Pause(pause) => return self.pause_rules(cx, stream, set, pause),
            // Answers.
            HttpAction::Auth { .. } => {
                stream.ended_by(b'L', set.letter());
                stream.request_processed(cx.now());
                self.ask_credentials(cx, stream, place);
                return Flow::Ended;
            }
            HttpAction::Return(reply) => {
                self.answer_rule(cx, stream, reply, [b'L', set.letter()]);
                return Flow::Ended;
            }
            HttpAction::Deny(reply) => {
                if set == RuleSet::Request {
                    // Cookies of a refused request are logged all the same.
                    self.request_cookies(cx, stream);
                }
                self.answer_rule(cx, stream, reply, [b'P', set.letter()]);
                return Flow::Ended;
            }
            HttpAction::Tarpit(_) => {
                self.request_cookies(cx, stream);
                self.tarpit(cx, stream, place);
                return Flow::Ended;
            }
            HttpAction::Reject => {
                stream.ended_by(b'P', set.letter());
                self.cut(cx, stream);
                return Flow::Ended;
            }
            HttpAction::SilentDrop { rst_ttl } => {
                self.vanish(cx, stream, *rst_ttl, [b'P', b'R']);
                return Flow::Ended;
            }
            HttpAction::Redirect(redirect) => {
                return match self.redirect(cx, stream, redirect, set.letter()) {
                    true => Flow::Ended,
                    false => Flow::Next,
                };
            }
            // Every action that the configuration accepts is above; the enum may grow beside it.
            _ => {
                debug_assert!(false, "an action without an implementation was accepted");
                true
            }
        };
        match rewritten || stream.soft_rewrites {
            true => Flow::Next,
            false => Flow::Failed(500),
        }
    }

    /// A rule could not do what it had to: the message fails with it.
    fn rule_failed<D: Driver>(
        &mut self,
        cx: &mut Cx<'_, D>,
        stream: &mut Stream,
        set: RuleSet,
        status: u16,
    ) {
        stream.ended_by(b'P', set.letter());
        if set == RuleSet::AfterResponse {
            // Whoever sends the response sends another one.
            stream.rules_failed = true;
            return;
        }
        stream.request_processed(cx.now());
        self.fail(cx, stream, status);
    }
}
