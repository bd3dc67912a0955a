//! `http-request`, `http-response` and `http-after-response` rules (manual §4.3).

use config::model::{HttpAction, HttpRule, Reply};
use http::Head;
use net::Driver;
use sample::{Condition, LogFormat};

use super::tcp::Part;
use super::{Outcome, RuleSet};
use crate::engine::{Core, Cx};
use crate::running::deadline;
use crate::stream::{Phase, Stream};

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
        (proxy, rules): (usize, &[HttpRule]),
        set: RuleSet,
    ) -> Outcome {
        // A rule that waited is next again; its condition has held.
        let resumed = stream.waiting_rule.take_if(|(of, _)| *of == proxy);
        let from = resumed.map_or(0, |(_, place)| place);
        for (place, rule) in rules.iter().enumerate().skip(from) {
            let holds = |condition: &Condition| self.holds(cx, stream, condition);
            if resumed != Some((proxy, place)) && !rule.condition.as_ref().is_none_or(holds) {
                continue;
            }
            match self.http_action(cx, stream, rule, set, (proxy, place)) {
                Flow::Next => {}
                Flow::Stop => return Outcome::Continue,
                Flow::Ended => return Outcome::Ended,
                Flow::Wait => {
                    stream.waiting_rule = Some((proxy, place));
                    return Outcome::Wait;
                }
            }
        }
        Outcome::Continue
    }

    /// `http-after-response` of the backend, then of the frontend; it sees every response, our own too.
    pub fn after_response_rules<D: Driver>(&mut self, cx: &mut Cx<'_, D>, stream: &mut Stream) {
        for proxy in [stream.backend, stream.frontend] {
            self.http_rules(cx, stream, proxy, RuleSet::AfterResponse);
            if stream.backend == stream.frontend {
                return;
            }
        }
    }

    fn http_action<D: Driver>(
        &mut self,
        cx: &mut Cx<'_, D>,
        stream: &mut Stream,
        rule: &HttpRule,
        set: RuleSet,
        place: (usize, usize),
    ) -> Flow {
        match &rule.action {
            HttpAction::Allow => return Flow::Stop,
            HttpAction::SetHeader { name, value } => {
                self.edit_header(cx, stream, set, name, value, true)
            }
            HttpAction::AddHeader { name, value } => {
                self.edit_header(cx, stream, set, name, value, false)
            }
            HttpAction::DelHeader { name } => {
                head(stream, set).remove_all(name.as_bytes());
            }
            HttpAction::SetMethod(format) => {
                self.edit(cx, stream, format, |head, method| head.set_method(method))
            }
            HttpAction::SetUri(format) => {
                self.edit(cx, stream, format, |head, uri| head.set_target(uri))
            }
            HttpAction::SetPath(format) => self.edit(cx, stream, format, set_path),
            HttpAction::SetPathq(format) => self.edit(cx, stream, format, set_path_and_query),
            HttpAction::SetQuery(format) => self.edit(cx, stream, format, set_query),
            HttpAction::SetStatus { status, reason } => {
                let reason = reason
                    .as_deref()
                    .unwrap_or_else(|| crate::error_pages::reason(*status));
                stream.response.set_status(*status, reason.as_bytes());
                stream.txn.status = *status;
            }
            HttpAction::SetVar { var, expr } => {
                let value = self.with_scope(cx, stream, true, |scope| {
                    expr.eval(scope).map(sample::Value::detach)
                });
                // An expression without a value leaves the variable as it was (manual §4.4 set-var).
                if let Some(Some(value)) = value {
                    self.set_var(stream, *var, Some(value));
                }
            }
            HttpAction::SetVarFmt { var, format } => self.set_var_fmt(cx, stream, *var, format),
            HttpAction::SetSrc(expr) => self.set_stream_address(cx, stream, expr, Part::SourceIp),
            HttpAction::SetSrcPort(expr) => {
                self.set_stream_address(cx, stream, expr, Part::SourcePort)
            }
            HttpAction::SetDst(expr) => {
                self.set_stream_address(cx, stream, expr, Part::DestinationIp)
            }
            HttpAction::SetDstPort(expr) => {
                self.set_stream_address(cx, stream, expr, Part::DestinationPort)
            }
            HttpAction::Capture { expr, slot } => self.capture(cx, stream, set, expr, *slot),
            HttpAction::WaitForBody { time, at_least } => {
                let waits = match set {
                    RuleSet::Request => self.waits_for_request_body(cx, stream, *time, *at_least),
                    _ => self.waits_for_response_body(cx, stream, *time, *at_least),
                };
                if waits {
                    return Flow::Wait;
                }
            }
            HttpAction::UnsetVar(var) => self.set_var(stream, *var, None),
            HttpAction::SetTimeout { kind, amount } => {
                self.set_timeout(cx, stream, set, (*kind, amount));
            }
            HttpAction::SetRetries(amount) => self.set_retries(cx, stream, amount),
            HttpAction::DisableL7Retry => stream.retried_never = true,
            HttpAction::Auth { .. } => {
                stream.ended_by(b'L', set.letter());
                stream.request_processed(cx.now());
                self.ask_credentials(cx, stream, place);
                return Flow::Ended;
            }
            HttpAction::Return(reply) => {
                stream.ended_by(b'L', set.letter());
                stream.request_processed(cx.now());
                self.reply(cx, stream, reply);
                return Flow::Ended;
            }
            HttpAction::Deny(reply) => {
                if set == RuleSet::Request {
                    // Cookies of a refused request are logged all the same.
                    self.request_cookies(cx, stream);
                }
                stream.ended_by(b'P', set.letter());
                stream.request_processed(cx.now());
                self.reply(cx, stream, reply);
                return Flow::Ended;
            }
            HttpAction::Tarpit(_) => {
                self.request_cookies(cx, stream);
                stream.tarpit = Some(place);
                stream.phase = Phase::Tarpit;
                if let Some(client) = stream.client {
                    let wait_ms = stream.tarpit_ms(cx.running);
                    self.set_deadline(client, deadline(cx.now(), wait_ms));
                }
                return Flow::Ended;
            }
            HttpAction::Reject => {
                stream.ended_by(b'P', set.letter());
                self.cut(cx, stream);
                return Flow::Ended;
            }
            HttpAction::SilentDrop => {
                stream.ended_by(b'P', b'R');
                if let Some(client) = stream.client {
                    cx.driver.vanish(client);
                }
                self.cut(cx, stream);
                return Flow::Ended;
            }
            HttpAction::Redirect(redirect) => {
                if self.redirect(cx, stream, redirect) {
                    return Flow::Ended;
                }
            }
            // Every action that the configuration accepts is above; the enum may grow beside it.
            _ => debug_assert!(false, "an action without an implementation was accepted"),
        }
        Flow::Next
    }

    /// Keeps a sample for the logs, as far as its slot has room.
    fn capture<D: Driver>(
        &mut self,
        cx: &Cx<'_, D>,
        stream: &mut Stream,
        set: RuleSet,
        expr: &sample::Expr,
        slot: usize,
    ) {
        let frontend = cx.running.proxy(stream.frontend);
        let (lines, of_response) = match set {
            RuleSet::Request | RuleSet::Redirect => (&frontend.capture_request, false),
            RuleSet::Response | RuleSet::AfterResponse => (&frontend.capture_response, true),
        };
        // A rule of a backend may name a slot that this frontend does not have (manual §4.4 capture).
        let Some(line) = lines.get(slot) else { return };
        let mut text = std::mem::take(&mut self.text);
        let found = self.with_scope(cx, stream, true, |scope| {
            let value = expr.eval(scope).is_some();
            expr.append_text(scope, &mut text);
            value
        });
        if found == Some(true) {
            let kept = text[..text.len().min(line.len)].into();
            let slots = match of_response {
                true => &mut stream.txn.captured_response,
                false => &mut stream.txn.captured_request,
            };
            if slots.len() <= slot {
                slots.resize(slot + 1, None);
            }
            slots[slot] = Some(kept);
        }
        text.clear();
        self.text = text;
    }

    /// Answers a tarpitted request with what its rule says.
    pub fn answer_tarpit<D: Driver>(&mut self, cx: &mut Cx<'_, D>, stream: &mut Stream) {
        let Some((proxy, place)) = stream.tarpit else {
            return;
        };
        stream.ended_by(b'P', b'T');
        stream.txn.timing.queued_ms = Some(cx.now().ms());
        if let HttpAction::Tarpit(reply) = &cx.running.proxy(proxy).http_request[place].action {
            let reply: &Reply = reply;
            self.reply(cx, stream, reply);
        }
    }

    fn edit_header<D: Driver>(
        &mut self,
        cx: &Cx<'_, D>,
        stream: &mut Stream,
        set: RuleSet,
        name: &LogFormat,
        value: &LogFormat,
        replace: bool,
    ) {
        let mut text = std::mem::take(&mut self.text);
        let mut name_text = Vec::new();
        // A name is nearly always written out.
        let name = match name.constant() {
            Some(name) => name,
            None => {
                self.render(cx, stream, name, &mut name_text);
                &name_text
            }
        };
        self.render(cx, stream, value, &mut text);
        let head = head(stream, set);
        if replace {
            head.remove_all(name);
        }
        head.append(name, &text);
        text.clear();
        self.text = text;
    }

    fn edit<D: Driver>(
        &mut self,
        cx: &Cx<'_, D>,
        stream: &mut Stream,
        format: &LogFormat,
        set: impl Fn(&mut Head, &[u8]),
    ) {
        let mut text = std::mem::take(&mut self.text);
        self.render(cx, stream, format, &mut text);
        set(&mut stream.request, &text);
        text.clear();
        self.text = text;
    }
}

impl RuleSet {
    /// When a rule of this set ends a stream (manual §8.5).
    fn letter(self) -> u8 {
        match self {
            RuleSet::Request | RuleSet::Redirect => b'R',
            RuleSet::Response | RuleSet::AfterResponse => b'H',
        }
    }
}

enum Flow {
    Next,
    /// `allow`: the rest of the set is passed over.
    Stop,
    Ended,
    /// The same rule is next, once there are more bytes.
    Wait,
}

fn head(stream: &mut Stream, set: RuleSet) -> &mut Head {
    match set {
        RuleSet::Request | RuleSet::Redirect => &mut stream.request,
        RuleSet::Response | RuleSet::AfterResponse => &mut stream.response,
    }
}

/// Puts a new path and query after the scheme and authority of the target, if it has them.
fn set_path_and_query(head: &mut Head, path: &[u8]) {
    let kept = head.target().len() - head.path_and_query().len();
    let mut target = head.target()[..kept].to_vec();
    target.extend_from_slice(path);
    head.set_target(&target);
}

fn set_path(head: &mut Head, path: &[u8]) {
    let mut whole = path.to_vec();
    if let Some(query) = head.query() {
        whole.push(b'?');
        whole.extend_from_slice(query);
    }
    set_path_and_query(head, &whole);
}

fn set_query(head: &mut Head, query: &[u8]) {
    let mut whole = head.path().to_vec();
    let query = query.strip_prefix(b"?").unwrap_or(query);
    if !query.is_empty() {
        whole.push(b'?');
        whole.extend_from_slice(query);
    }
    set_path_and_query(head, &whole);
}
