//! `redirect`: the keyword, and the actions for requests and responses (manual §4.2, §4.4).

use super::super::line::{Cursor, Line, Parse};
use super::super::order::Stage;
use super::super::proxy::ProxyBuild;
use crate::model::{HttpAction, HttpRule, Redirect, RedirectKind, RedirectOptions};
use sample::{LogFormat, Place, Style};
use std::sync::Arc;

/// The keyword `redirect`
pub fn rule(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let place = build.place(Place::FE_HTTP_REQUEST, Place::BE_HTTP_REQUEST);
    let mut cursor = Cursor { line: *line, at: 1 };
    let action = HttpAction::Redirect(parse(build, &mut cursor, place, Texts::Literal)?);
    let condition = build.condition(line, cursor.at, place)?;
    build.placed(line, Stage::Redirect, 1);
    let place = build.shared.rule_place(line);
    build.proxy.redirects.push(Arc::new(HttpRule {
        action,
        condition,
        place,
    }));
    Ok(())
}

/// `http-request redirect location|prefix|scheme <to> [<options>]`, `http-response redirect
/// location <to> [<options>]`
pub fn action(
    build: &mut ProxyBuild<'_, '_>,
    cursor: &mut Cursor<'_>,
    place: Place,
) -> Parse<HttpAction> {
    let at = cursor.at;
    let redirect = parse(build, cursor, place, Texts::Formats)?;
    match redirect.kind {
        RedirectKind::Prefix(_) | RedirectKind::Scheme(_) if !super::is_request(place) => {
            let message = "response only supports redirect type 'location'.";
            Err(cursor.line.fault(at, message))
        }
        _ => Ok(HttpAction::Redirect(redirect)),
    }
}

/// Whether texts are log formats. Those of the `redirect` keyword are not.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Texts {
    Formats,
    Literal,
}

fn parse(
    build: &mut ProxyBuild<'_, '_>,
    cursor: &mut Cursor<'_>,
    place: Place,
    texts: Texts,
) -> Parse<Redirect> {
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
                let to = cursor.octets("a destination")?;
                // manual §4.2: the prefix `/` adds nothing, which allows a redirect to the same
                // path.
                let to = match (word, &*to) {
                    ("prefix", b"/") => b"",
                    (_, to) => to,
                };
                let to = text(build, cursor, place, texts, to)?;
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
            word @ ("set-cookie" | "clear-cookie" | "set-cookie-fmt") => {
                let cookie = cursor.octets("a cookie")?;
                let (texts, end) = match word {
                    "set-cookie-fmt" => (Texts::Formats, "; path=/;"),
                    "set-cookie" => (Texts::Literal, "; path=/;"),
                    _ => (Texts::Literal, "; path=/; Max-Age=0;"),
                };
                let cookie = [&cookie, end.as_bytes()].concat();
                options.set_cookie = Some(text(build, cursor, place, texts, &cookie)?);
            }
            word => {
                return Err(cursor.fault(format!(
                    "redirect expects 'code', 'prefix', 'location', 'scheme', 'set-cookie', 'set-cookie-fmt', 'clear-cookie', 'drop-query', \
                     'keep-query', 'ignore-empty' or 'append-slash' (was '{word}')."
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
    Ok(Redirect {
        kind,
        code,
        options,
    })
}

/// The text in the word taken last, as a format.
fn text(
    build: &mut ProxyBuild<'_, '_>,
    cursor: &Cursor<'_>,
    place: Place,
    texts: Texts,
    text: &[u8],
) -> Parse<LogFormat> {
    let parts: Vec<&[u8]> = text.split(|byte| *byte == b'%').collect();
    let escaped = match texts {
        Texts::Formats => text,
        Texts::Literal => &parts.join(&b"%%"[..]),
    };
    let (line, at) = (cursor.line, cursor.at - 1);
    build.shared.styled(&line, at, escaped, place, Style::Http)
}
