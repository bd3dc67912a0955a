//! `http-request`, `http-response`, `http-after-response` and `redirect` rules (manual §4.2, §4.4).

pub mod headers;
pub mod redirect;
pub mod target;

use super::line::{Cursor, Fault, Line, Parse};
use super::order::{Stage, ends};
use super::proxy::ProxyBuild;
use super::{did_you_mean, reply, values};
use crate::keywords::actions::{self, ActionParser};
use crate::keywords::{self, Places};
use crate::model::{Capture, HttpAction, HttpRule, Pause, Proxy, Service, TargetPart};
use sample::{ExprError, Place};
use std::sync::Arc;
use syntax::octets::Octets;

/// Parses an action, after its name was taken.
pub type HttpParser = fn(&mut ProxyBuild<'_, '_>, &mut Cursor<'_>, Place) -> Parse<HttpAction>;

/// `http-request`
pub fn request(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let place = build.place(Place::FE_HTTP_REQUEST, Place::BE_HTTP_REQUEST);
    let rule = rule(build, line, Places::HTTP_REQUEST, place)?;
    build.placed(line, Stage::HttpRequest, 1);
    add(build, line, rule, 0, |proxy| &mut proxy.http_request);
    Ok(())
}

/// `http-response`
pub fn response(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let place = response_place(build);
    let rule = rule(build, line, Places::HTTP_RESPONSE, place)?;
    add(build, line, rule, 1, |proxy| &mut proxy.http_response);
    Ok(())
}

/// `http-after-response`
pub fn after_response(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let place = response_place(build);
    let rule = rule(build, line, Places::HTTP_AFTER_RESPONSE, place)?;
    add(build, line, rule, 2, |proxy| &mut proxy.http_after_response);
    Ok(())
}

/// Adds a rule to a set. `set` is the set's index in the numbers of inherited rules. Warns if the
/// rule is never reached.
fn add(
    build: &mut ProxyBuild<'_, '_>,
    line: &Line<'_>,
    rule: Option<HttpRule>,
    set: usize,
    rules: impl Fn(&mut Proxy) -> &mut Vec<Arc<HttpRule>>,
) {
    let inherited = build.inherited_rules[set];
    let ends = ends(rules(&mut build.proxy), inherited);
    build.unreachable(line, ends);
    push(rule, inherited, rules(&mut build.proxy));
}

/// Adds a rule. `strict-mode` in `defaults` applies to the rules there; a section's own rules begin
/// in strict mode.
fn push(rule: Option<HttpRule>, inherited: usize, rules: &mut Vec<Arc<HttpRule>>) {
    let Some(rule) = rule else { return };
    let is_mode = |rule: &Arc<HttpRule>| matches!(rule.action, HttpAction::StrictMode(_));
    if inherited > 0 && rules.len() == inherited && rules.iter().any(is_mode) {
        rules.push(Arc::new(HttpRule {
            action: HttpAction::StrictMode(true),
            condition: None,
            place: rule.place,
        }));
    }
    rules.push(Arc::new(rule));
}

fn response_place(build: &ProxyBuild<'_, '_>) -> Place {
    build.place(Place::FE_HTTP_RESPONSE, Place::BE_HTTP_RESPONSE)
}

fn rule(
    build: &mut ProxyBuild<'_, '_>,
    line: &Line<'_>,
    set: Places,
    place: Place,
) -> Parse<Option<HttpRule>> {
    rule_at(build, line, 1, set, place)
}

/// A rule whose action is word `at`.
pub fn rule_at(
    build: &mut ProxyBuild<'_, '_>,
    line: &Line<'_>,
    at: usize,
    set: Places,
    place: Place,
) -> Parse<Option<HttpRule>> {
    let mut cursor = Cursor { line: *line, at };
    let name = cursor.take();
    let Some(keyword) = keywords::find_in(actions::KEYWORDS, name, set) else {
        let hint = did_you_mean(name, actions::of(set).map(|k| k.name));
        let all: Vec<String> = actions::of(set)
            .map(|k| format!("'{}'", k.name.replace('*', "(*)")))
            .collect();
        let message = match hint.as_str() {
            "" => format!(
                "'{}' expects {}, but got '{name}'.",
                line.arg(at - 1),
                all.join(", ")
            ),
            _ => format!("'{}' : unknown action '{name}'{hint}", line.arg(at - 1)),
        };
        return Err(line.fault(at, message));
    };
    let action = match keyword.state.parser().and_then(ActionParser::http) {
        Some(parser) => Some(parser(build, &mut cursor, place)?),
        None => {
            super::without_parser(keyword, &mut cursor, build.shared)?;
            None
        }
    };
    let condition = build.condition(line, cursor.at, place)?;
    Ok(action.map(|action| HttpRule {
        action,
        condition,
        place: build.shared.rule_place(line),
    }))
}

/// Actions without arguments.
macro_rules! plain {
    ($($name:ident $action:ident;)*) => {$(
        #[doc = concat!("`", stringify!($name), "`, with `-` for `_`.")]
        pub fn $name(_build: &mut ProxyBuild<'_, '_>, _cursor: &mut Cursor<'_>, _place: Place) -> Parse<HttpAction> {
            Ok(HttpAction::$action)
        }
    )*};
}
plain! {
    allow Allow;
    reject Reject;
}

/// Actions with one format.
macro_rules! formats {
    ($($name:ident $action:expr;)*) => {$(
        #[doc = concat!("`", stringify!($name), "`, with `-` for `_`.")]
        pub fn $name(build: &mut ProxyBuild<'_, '_>, cursor: &mut Cursor<'_>, place: Place) -> Parse<HttpAction> {
            cursor.value("exactly 1 argument <format>")?;
            build.shared.log_format(&cursor.line, cursor.at - 1, place).map($action)
        }
    )*};
}
formats! {
    set_method HttpAction::SetMethod;
    set_path |format| HttpAction::SetTarget { part: TargetPart::Path, format };
    set_pathq |format| HttpAction::SetTarget { part: TargetPart::PathAndQuery, format };
    set_query HttpAction::SetQuery;
    set_uri |format| HttpAction::SetTarget { part: TargetPart::Whole, format };
}

/// Whether a rule at this place reads a request.
fn is_request(place: Place) -> bool {
    place.meets(Place::FE_HTTP_REQUEST | Place::BE_HTTP_REQUEST)
}

/// `capture <sample> len <length>|id <slot>` of requests, `capture <sample> id <slot>` of responses
pub fn capture(
    build: &mut ProxyBuild<'_, '_>,
    cursor: &mut Cursor<'_>,
    place: Place,
) -> Parse<HttpAction> {
    if !is_request(place) {
        return capture_response(build, cursor, place);
    }
    let expr = build.shared.next_expr(cursor, place)?;
    let word = cursor.take();
    let slot = match word {
        "len" if build.proxy.is_frontend => {
            let len = cursor.number(1..=65535)?;
            build.proxy.capture_request.push(Capture {
                header: Octets::default(),
                len,
            });
            build.proxy.capture_request.len() - 1
        }
        "len" => return Err(cursor.fault(format!("{} has no frontend capability.", build.title()))),
        "id" => cursor.number(0..=i32::MAX as usize)?,
        _ => return Err(cursor.fault("expects 'len' or 'id'.")),
    };
    note_slot(build, cursor, word, slot, false);
    Ok(HttpAction::Capture { expr, slot })
}

fn capture_response(
    build: &mut ProxyBuild<'_, '_>,
    cursor: &mut Cursor<'_>,
    place: Place,
) -> Parse<HttpAction> {
    let expr = build.shared.next_expr(cursor, place)?;
    let word = cursor.take();
    if word != "id" {
        return Err(cursor.fault("expects 'id'."));
    }
    let slot = cursor.number(0..=i32::MAX as usize)?;
    note_slot(build, cursor, word, slot, true);
    Ok(HttpAction::Capture { expr, slot })
}

/// Notes a slot that the frontend does not have yet: a line below the rule may declare it. A
/// backend uses the slots of the frontend from which the request came.
fn note_slot(
    build: &mut ProxyBuild<'_, '_>,
    cursor: &Cursor<'_>,
    word: &str,
    slot: usize,
    of_response: bool,
) {
    if build.proxy.is_frontend && word == "id" && slot >= slots(&build.proxy, of_response) {
        let fault = cursor.fault(format!(
            "unable to find capture id '{slot}' referenced by this rule."
        ));
        build.missing_captures.push(MissingCapture {
            slot,
            of_response,
            fault: *fault,
        });
    }
}

fn slots(proxy: &Proxy, of_response: bool) -> usize {
    if of_response {
        proxy.capture_response.len()
    } else {
        proxy.capture_request.len()
    }
}

/// A rule uses a capture slot that no earlier line declares. A later line may still declare it.
#[derive(Debug)]
pub struct MissingCapture {
    slot: usize,
    of_response: bool,
    fault: Fault,
}

impl MissingCapture {
    /// The fault, unless the frontend declares the slot.
    pub fn fault(self, proxy: &Proxy) -> Option<Fault> {
        (self.slot >= slots(proxy, self.of_response)).then_some(self.fault)
    }
}

/// `wait-for-body time <time> [at-least <bytes>]`
pub fn wait_for_body(
    build: &mut ProxyBuild<'_, '_>,
    cursor: &mut Cursor<'_>,
    _place: Place,
) -> Parse<HttpAction> {
    let (mut time, mut at_least) = (None, None);
    loop {
        match cursor.peek() {
            "time" => {
                cursor.take();
                cursor.value("a time value")?;
                let shared = &mut build.shared;
                time = Some(shared.time(&cursor.line, cursor.at - 1, "time")?);
            }
            "at-least" => {
                cursor.take();
                let text = cursor.value("a size")?;
                let parsed = values::size(text)
                    .map_err(|bad| cursor.fault(values::size_message(bad, text, "at-least")))?;
                at_least = Some(parsed).filter(|bytes| *bytes > 0);
            }
            word @ "use-large-buffer" => {
                let message = super::not_yet(&format!("wait-for-body {word}"));
                return Err(cursor.line.fault(cursor.at, message));
            }
            _ => break,
        }
    }
    let time = time.ok_or_else(|| cursor.fault("expects 'time <time>'."))?;
    Ok(HttpAction::WaitForBody { time, at_least })
}

/// `wait-for-handshake`
pub fn wait_for_handshake(
    _build: &mut ProxyBuild<'_, '_>,
    _cursor: &mut Cursor<'_>,
    _place: Place,
) -> Parse<HttpAction> {
    Ok(HttpAction::WaitForHandshake)
}

/// `set-status <status> [reason <text>]`
pub fn set_status(
    _build: &mut ProxyBuild<'_, '_>,
    cursor: &mut Cursor<'_>,
    _place: Place,
) -> Parse<HttpAction> {
    let status = cursor.number(100..=999)?;
    let mut reason = None;
    if cursor.peek() == "reason" {
        cursor.take();
        reason = Some(cursor.octets("a reason")?);
    }
    Ok(HttpAction::SetStatus { status, reason })
}

/// Actions that answer: their effect, and their default status.
macro_rules! replies {
    ($($doc:literal $name:ident $action:ident $status:expr;)*) => {$(
        #[doc = $doc]
        pub fn $name(build: &mut ProxyBuild<'_, '_>, cursor: &mut Cursor<'_>, place: Place) -> Parse<HttpAction> {
            let status: fn(Place) -> u16 = $status;
            Ok(HttpAction::$action(reply::reply(build.shared, cursor, place, status(place))?))
        }
    )*};
}
replies! {
    "`return …`" return_ Return |_| 200;
    "`deny …`" deny Deny |place| if is_request(place) { 403 } else { 502 };
    "`tarpit …`" tarpit Tarpit |_| 500;
}

/// `auth [realm <realm>]`
pub fn auth(
    _build: &mut ProxyBuild<'_, '_>,
    cursor: &mut Cursor<'_>,
    _place: Place,
) -> Parse<HttpAction> {
    let realm = match cursor.peek() {
        "realm" => {
            cursor.take();
            cursor
                .line
                .need(cursor.at, || "missing realm value.".into())?;
            cursor.take();
            Some(cursor.line.octets(cursor.at - 1))
        }
        _ => None,
    };
    Ok(HttpAction::Auth { realm })
}

/// `use-service <service>`
pub fn use_service(
    _build: &mut ProxyBuild<'_, '_>,
    cursor: &mut Cursor<'_>,
    _place: Place,
) -> Parse<HttpAction> {
    match cursor.value("a service name")? {
        "prometheus-exporter" => Ok(HttpAction::UseService(Service::PrometheusExporter)),
        name if name.starts_with("lua.") => {
            Err(cursor.fault(super::not_yet(&format!("use-service {name}"))))
        }
        name => Err(cursor.fault(format!("unknown service name '{name}'."))),
    }
}

/// `strict-mode on|off`
pub fn strict_mode(
    _build: &mut ProxyBuild<'_, '_>,
    cursor: &mut Cursor<'_>,
    _place: Place,
) -> Parse<HttpAction> {
    let word = cursor.value("exactly 1 argument")?;
    match word.to_ascii_lowercase().as_str() {
        "on" => Ok(HttpAction::StrictMode(true)),
        "off" => Ok(HttpAction::StrictMode(false)),
        _ => Err(cursor.fault(format!(
            "Unexpected value '{word}'. Only 'on' and 'off' are supported."
        ))),
    }
}

/// `pause <timeout>|<expr>`
pub fn pause(
    build: &mut ProxyBuild<'_, '_>,
    cursor: &mut Cursor<'_>,
    place: Place,
) -> Parse<HttpAction> {
    let text = cursor.value("a time or an expression")?;
    let pause = match values::time(text) {
        Ok(time) if time.is_zero() => {
            return Err(cursor.fault("null value is not valid for a 'pause' rule."));
        }
        Ok(time) => {
            build.shared.note_time(&cursor.line, cursor.at - 1);
            Pause::Time(time)
        }
        Err(values::Bad::Character(_)) => {
            cursor.at -= 1;
            Pause::Computed(build.shared.next_expr(cursor, place)?)
        }
        Err(bad) => return Err(cursor.fault(values::time_message(bad, text, "pause"))),
    };
    Ok(HttpAction::Pause(pause))
}

/// Compiles the regular expression at word `index`.
fn regex(line: &Line<'_>, index: usize) -> Parse<sample::regex::Regex> {
    sample::regex::compile(line.bytes(index), false).map_err(|message| {
        let error = ExprError {
            word: 0,
            start: 0,
            end: 0,
            message: format!("failed to parse the regex : {message}"),
        };
        line.expr_fault(index, &error, &super::expressions::in_words(line))
    })
}
