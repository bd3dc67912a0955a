//! `http-request`, `http-response`, `http-after-response` and `redirect` rules (manual §4.2, §4.4).

use super::line::{Cursor, Line, Parse};
use super::order::{Stage, ends};
use super::proxy::ProxyBuild;
use super::{did_you_mean, log_profile, reply, values};
use crate::keywords::{self, Keyword, actions};
use crate::model::{Capture, HttpAction, HttpRule, Redirect, RedirectKind, RedirectOptions};
use sample::Place;

/// Parses an action; its name was just taken.
pub type HttpParser = fn(&mut ProxyBuild<'_, '_>, &mut Cursor<'_>, Place) -> Parse<HttpAction>;

/// `http-request`
pub fn request(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let place = build.place(Place::FE_HTTP_REQUEST, Place::BE_HTTP_REQUEST);
    let rule = rule(build, line, actions::HTTP_REQUEST, place)?;
    build.placed(line, Stage::HttpRequest, 1);
    build.unreachable(
        line,
        ends(&build.proxy.http_request, build.inherited_rules[0]),
    );
    build.proxy.http_request.extend(rule);
    Ok(())
}

/// `http-response`
pub fn response(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let place = response_place(build);
    let rule = rule(build, line, actions::HTTP_RESPONSE, place)?;
    build.unreachable(
        line,
        ends(&build.proxy.http_response, build.inherited_rules[1]),
    );
    build.proxy.http_response.extend(rule);
    Ok(())
}

/// `http-after-response`
pub fn after_response(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let place = response_place(build);
    let rule = rule(build, line, actions::HTTP_AFTER_RESPONSE, place)?;
    build.unreachable(
        line,
        ends(&build.proxy.http_after_response, build.inherited_rules[2]),
    );
    build.proxy.http_after_response.extend(rule);
    Ok(())
}

/// `redirect`
pub fn redirect_rule(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let place = build.place(Place::FE_HTTP_REQUEST, Place::BE_HTTP_REQUEST);
    let mut cursor = Cursor { line: *line, at: 1 };
    let action = redirect(build, &mut cursor, place)?;
    let condition = build.condition(line, cursor.at, place)?;
    build.placed(line, Stage::Redirect, 1);
    build.proxy.redirects.push(HttpRule { action, condition });
    Ok(())
}

fn response_place(build: &ProxyBuild<'_, '_>) -> Place {
    build.place(Place::FE_HTTP_RESPONSE, Place::BE_HTTP_RESPONSE)
}

fn rule(
    build: &mut ProxyBuild<'_, '_>,
    line: &Line<'_>,
    table: &[Keyword<HttpParser>],
    place: Place,
) -> Parse<Option<HttpRule>> {
    let mut cursor = Cursor { line: *line, at: 1 };
    let name = cursor.take();
    let Some(keyword) = keywords::find(table, name) else {
        let hint = did_you_mean(name, table.iter().map(|k| k.name));
        let all: Vec<String> = table
            .iter()
            .map(|k| format!("'{}'", k.name.replace('*', "(*)")))
            .collect();
        let message = match hint.as_str() {
            "" => format!(
                "'{}' expects {}, but got '{name}'.",
                line.keyword(),
                all.join(", ")
            ),
            _ => format!("'{}' : unknown action '{name}'{hint}", line.keyword()),
        };
        return Err(line.fault(1, message));
    };
    let Some(parser) = super::parser_of(keyword, line, 1, build.shared)? else {
        return Ok(None);
    };
    let action = parser(build, &mut cursor, place)?;
    let condition = build.condition(line, cursor.at, place)?;
    Ok(Some(HttpRule { action, condition }))
}

/// Actions that are a word alone.
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

/// `silent-drop`
pub fn silent_drop(
    _build: &mut ProxyBuild<'_, '_>,
    cursor: &mut Cursor<'_>,
    _place: Place,
) -> Parse<HttpAction> {
    match cursor.peek() {
        "rst-ttl" => Err(cursor
            .line
            .fault(cursor.at, super::not_yet("silent-drop rst-ttl"))),
        _ => Ok(HttpAction::SilentDrop),
    }
}

/// Actions with one format.
macro_rules! formats {
    ($($name:ident $action:ident;)*) => {$(
        #[doc = concat!("`", stringify!($name), "`, with `-` for `_`.")]
        pub fn $name(build: &mut ProxyBuild<'_, '_>, cursor: &mut Cursor<'_>, place: Place) -> Parse<HttpAction> {
            cursor.value("exactly 1 argument <format>")?;
            Ok(HttpAction::$action(build.shared.log_format(&cursor.line, cursor.at - 1, place)?))
        }
    )*};
}
formats! {
    set_method SetMethod;
    set_path SetPath;
    set_pathq SetPathq;
    set_query SetQuery;
    set_uri SetUri;
}

/// Actions with an expression.
macro_rules! expressions {
    ($($name:ident $action:ident;)*) => {$(
        #[doc = concat!("`", stringify!($name), "`, with `-` for `_`.")]
        pub fn $name(build: &mut ProxyBuild<'_, '_>, cursor: &mut Cursor<'_>, place: Place) -> Parse<HttpAction> {
            let (expr, next) = build.shared.expr(&cursor.line, cursor.at, place)?;
            cursor.at = next;
            Ok(HttpAction::$action(expr))
        }
    )*};
}
expressions! {
    set_src SetSrc;
    set_src_port SetSrcPort;
    set_dst SetDst;
    set_dst_port SetDstPort;
}

/// `capture <sample> len <length>|id <slot>` of requests
pub fn capture(
    build: &mut ProxyBuild<'_, '_>,
    cursor: &mut Cursor<'_>,
    place: Place,
) -> Parse<HttpAction> {
    let (expr, next) = build.shared.expr(&cursor.line, cursor.at, place)?;
    cursor.at = next;
    let word = cursor.take();
    let slot = match word {
        "len" if build.proxy.is_frontend => {
            let len = cursor.number(1..=65535)?;
            build.proxy.capture_request.push(Capture {
                header: String::new(),
                len,
            });
            build.proxy.capture_request.len() - 1
        }
        "len" => return Err(cursor.fault(format!("{} has no frontend capability.", build.title()))),
        "id" => cursor.number(0..=i32::MAX as usize)?,
        _ => return Err(cursor.fault("expects 'len' or 'id'.")),
    };
    known_slot(build, cursor, word, slot, build.proxy.capture_request.len())?;
    Ok(HttpAction::Capture { expr, slot })
}

/// `do-log [profile <name>]`
pub fn do_log(
    build: &mut ProxyBuild<'_, '_>,
    cursor: &mut Cursor<'_>,
    _place: Place,
) -> Parse<HttpAction> {
    let profile = log_profile::option(cursor, build.shared)?;
    Ok(HttpAction::DoLog { profile })
}

/// `capture <sample> id <slot>` of responses
pub fn capture_response(
    build: &mut ProxyBuild<'_, '_>,
    cursor: &mut Cursor<'_>,
    place: Place,
) -> Parse<HttpAction> {
    let (expr, next) = build.shared.expr(&cursor.line, cursor.at, place)?;
    cursor.at = next;
    let word = cursor.take();
    if word != "id" {
        return Err(cursor.fault("expects 'id'."));
    }
    let slot = cursor.number(0..=i32::MAX as usize)?;
    known_slot(
        build,
        cursor,
        word,
        slot,
        build.proxy.capture_response.len(),
    )?;
    Ok(HttpAction::Capture { expr, slot })
}

/// Refuses a slot that the frontend does not have; a backend's is that of whatever frontend the request came from.
fn known_slot(
    build: &ProxyBuild<'_, '_>,
    cursor: &Cursor<'_>,
    word: &str,
    slot: usize,
    slots: usize,
) -> Parse {
    match build.proxy.is_frontend && word == "id" && slot >= slots {
        true => Err(cursor.fault(format!(
            "unable to find capture id '{slot}' referenced by this rule."
        ))),
        false => Ok(()),
    }
}

/// `wait-for-body time <time> [at-least <bytes>]`
pub fn wait_for_body(
    _build: &mut ProxyBuild<'_, '_>,
    cursor: &mut Cursor<'_>,
    _place: Place,
) -> Parse<HttpAction> {
    let (mut time, mut at_least) = (None, None);
    loop {
        match cursor.peek() {
            "time" => {
                cursor.take();
                let text = cursor.value("a time value")?;
                let parsed = values::time(text)
                    .map_err(|bad| cursor.fault(values::time_message(bad, text, "time")))?;
                time = Some(parsed);
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

/// `set-header <name> <format>`
pub fn set_header(
    build: &mut ProxyBuild<'_, '_>,
    cursor: &mut Cursor<'_>,
    place: Place,
) -> Parse<HttpAction> {
    let (name, value) = header(build, cursor, place)?;
    Ok(HttpAction::SetHeader { name, value })
}

/// `add-header <name> <format>`
pub fn add_header(
    build: &mut ProxyBuild<'_, '_>,
    cursor: &mut Cursor<'_>,
    place: Place,
) -> Parse<HttpAction> {
    let (name, value) = header(build, cursor, place)?;
    Ok(HttpAction::AddHeader { name, value })
}

fn header(
    build: &mut ProxyBuild<'_, '_>,
    cursor: &mut Cursor<'_>,
    place: Place,
) -> Parse<(sample::LogFormat, sample::LogFormat)> {
    let action = cursor.last();
    for at in [cursor.at, cursor.at + 1] {
        cursor
            .line
            .need(at, || format!("'{action}' expects exactly 2 arguments."))?;
    }
    let name = build.shared.log_format(&cursor.line, cursor.at, place)?;
    let value = build
        .shared
        .log_format(&cursor.line, cursor.at + 1, place)?;
    cursor.at += 2;
    Ok((name, value))
}

/// `del-header <name> [-m <match>]`
pub fn del_header(
    _build: &mut ProxyBuild<'_, '_>,
    cursor: &mut Cursor<'_>,
    _place: Place,
) -> Parse<HttpAction> {
    let name = cursor.value("at least 1 argument")?.to_owned();
    if cursor.peek() == "-m" {
        match cursor.line.arg(cursor.at + 1) {
            "str" => cursor.at += 2,
            method => {
                return Err(cursor.line.fault(
                    cursor.at,
                    super::not_yet(&format!("del-header … -m {method}")),
                ));
            }
        }
    }
    Ok(HttpAction::DelHeader { name })
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
        reason = Some(cursor.value("a reason")?.to_owned());
    }
    Ok(HttpAction::SetStatus { status, reason })
}

/// `set-var(<name>) <expr>`
pub fn set_var(
    build: &mut ProxyBuild<'_, '_>,
    cursor: &mut Cursor<'_>,
    place: Place,
) -> Parse<HttpAction> {
    let (var, expr) = build.shared.assignment(cursor, place)?;
    Ok(HttpAction::SetVar { var, expr })
}

/// `set-var-fmt(<name>) <format>`
pub fn set_var_fmt(
    build: &mut ProxyBuild<'_, '_>,
    cursor: &mut Cursor<'_>,
    place: Place,
) -> Parse<HttpAction> {
    let (var, format) = build.shared.formatted_assignment(cursor, place)?;
    Ok(HttpAction::SetVarFmt { var, format })
}

/// `unset-var(<name>)`
pub fn unset_var(
    build: &mut ProxyBuild<'_, '_>,
    cursor: &mut Cursor<'_>,
    _place: Place,
) -> Parse<HttpAction> {
    Ok(HttpAction::UnsetVar(
        build.shared.variable(&cursor.line, cursor.at - 1)?,
    ))
}

/// Actions that answer: what they do, and the status where the rule gives none.
macro_rules! replies {
    ($($doc:literal $name:ident $action:ident $status:literal;)*) => {$(
        #[doc = $doc]
        pub fn $name(build: &mut ProxyBuild<'_, '_>, cursor: &mut Cursor<'_>, place: Place) -> Parse<HttpAction> {
            Ok(HttpAction::$action(reply::reply(build.shared, cursor, place, $status)?))
        }
    )*};
}
replies! {
    "`return …`" return_ Return 200;
    "`deny …` of a request" deny Deny 403;
    "`deny …` of a response" deny_response Deny 502;
    "`tarpit …`" tarpit Tarpit 500;
}

/// `redirect location|prefix|scheme <to> [<options>]`
pub fn redirect(
    build: &mut ProxyBuild<'_, '_>,
    cursor: &mut Cursor<'_>,
    place: Place,
) -> Parse<HttpAction> {
    let mut kind = None;
    let mut code = 302;
    let mut options = RedirectOptions::default();
    loop {
        match cursor.peek() {
            "" | "if" | "unless" => break,
            _ => {}
        }
        match cursor.take() {
            word @ ("location" | "prefix" | "scheme") => {
                cursor.value("a destination")?;
                let to = build
                    .shared
                    .log_format(&cursor.line, cursor.at - 1, place)?;
                kind = Some(match word {
                    "location" => RedirectKind::Location(to),
                    "prefix" => RedirectKind::Prefix(to),
                    _ => RedirectKind::Scheme(to),
                });
            }
            "code" => {
                let text = cursor.value("a status code")?;
                code = match text.parse() {
                    Ok(code @ (301 | 302 | 303 | 307 | 308)) => code,
                    _ => return Err(cursor.fault(format!("'code': unsupported HTTP code '{text}' (must be one of 301, 302, 303, 307 or 308)."))),
                };
            }
            "drop-query" => options.drop_query = true,
            "keep-query" => options.keep_query = true,
            "append-slash" => options.append_slash = true,
            "ignore-empty" => options.ignore_empty = true,
            "set-cookie" => options.set_cookie = Some(cursor.value("a cookie")?.to_owned()),
            "clear-cookie" => options.clear_cookie = Some(cursor.value("a cookie")?.to_owned()),
            "set-cookie-fmt" => {
                return Err(cursor.fault(super::not_yet("redirect … set-cookie-fmt")));
            }
            word => {
                return Err(cursor.fault(format!(
                    "redirect expects 'code', 'prefix', 'location', 'scheme', 'set-cookie', 'clear-cookie', 'drop-query', 'keep-query', \
                     'ignore-empty' or 'append-slash' (was '{word}')."
                )));
            }
        }
    }
    let kind = kind.ok_or_else(|| {
        cursor.line.fault(
            cursor.at,
            "redirect expects 'location', 'prefix' or 'scheme' with a destination.",
        )
    })?;
    Ok(HttpAction::Redirect(Redirect {
        kind,
        code,
        options,
    }))
}
