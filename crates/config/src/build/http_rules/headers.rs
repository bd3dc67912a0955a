//! Actions that add, remove and rewrite header fields (manual §4.4).

use super::super::line::{Cursor, Parse};
use super::super::proxy::ProxyBuild;
use crate::model::{HeaderRewrite, HttpAction, NameMatch, NameMethod};
use http::FieldName;
use sample::{LogFormat, Place};
use syntax::octets::{Octets, first_character};

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
) -> Parse<(FieldName, LogFormat)> {
    let action = cursor.last();
    for at in [cursor.at, cursor.at + 1] {
        cursor
            .line
            .need(at, || format!("'{action}' expects exactly 2 arguments."))?;
    }
    let shown = cursor.take();
    let name = cursor.line.bytes(cursor.at - 1);
    // It is sent nevertheless, as in HAProxy. A colon before a name is that of HTTP/2.
    let rest = name.strip_prefix(b":").unwrap_or(name);
    if let Some(at) = rest.iter().position(|byte| !http::is_token(&[*byte])) {
        let bad = first_character(&rest[at..]);
        let message = format!("header name '{shown}' contains forbidden character '{bad}'.");
        let warning = cursor.fault(message).as_warning();
        build.shared.settle(Err(warning));
    }
    let value = build.shared.log_format(&cursor.line, cursor.at, place)?;
    cursor.at += 1;
    Ok((FieldName::new(name), value))
}

/// `del-header <name> [-m <method>]`
pub fn del_header(
    _build: &mut ProxyBuild<'_, '_>,
    cursor: &mut Cursor<'_>,
    _place: Place,
) -> Parse<HttpAction> {
    let name = cursor.octets("at least 1 argument")?;
    let at = cursor.at - 1;
    let names = match method(cursor)? {
        "reg" => NameMatch::Regex(super::regex(&cursor.line, at)?),
        word => match text_method(cursor, word)? {
            NameMethod::Is => NameMatch::Name(FieldName::new(&name)),
            method => NameMatch::Text(method, name.to_ascii_lowercase().into()),
        },
    };
    Ok(HttpAction::DelHeader(names))
}

/// `del-headers-bin <expr> [-m <method>]`
pub fn del_headers_bin(
    build: &mut ProxyBuild<'_, '_>,
    cursor: &mut Cursor<'_>,
    place: Place,
) -> Parse<HttpAction> {
    let expr = build.shared.next_expr(cursor, place)?;
    let method = match method(cursor)? {
        "reg" => {
            return Err(cursor
                .fault("-m reg is unsupported with del-headers-bin due to performance reasons."));
        }
        word => text_method(cursor, word)?,
    };
    Ok(HttpAction::DelHeadersBin { expr, method })
}

/// The word after `-m`; `str` without one.
fn method<'a>(cursor: &mut Cursor<'a>) -> Parse<&'a str> {
    if cursor.peek() != "-m" {
        return Ok("str");
    }
    cursor.take();
    cursor
        .line
        .need(cursor.at, || "-m flag expects exactly 1 argument.".into())?;
    Ok(cursor.take())
}

fn text_method(cursor: &Cursor<'_>, word: &str) -> Parse<NameMethod> {
    match word {
        "str" => Ok(NameMethod::Is),
        "beg" => Ok(NameMethod::Begins),
        "end" => Ok(NameMethod::Ends),
        "sub" => Ok(NameMethod::Contains),
        _ => Err(cursor.fault(format!("-m with unsupported matching method '{word}'."))),
    }
}

/// Actions that add the fields of a binary list to a message: their effect, and whether they
/// replace existing fields.
macro_rules! binary {
    ($($doc:literal $name:ident $set:literal;)*) => {$(
        #[doc = $doc]
        pub fn $name(build: &mut ProxyBuild<'_, '_>, cursor: &mut Cursor<'_>, place: Place) -> Parse<HttpAction> {
            headers_bin(build, cursor, place, $set)
        }
    )*};
}
binary! {
    "`add-headers-bin <expr> [prefix <text>]`" add_headers_bin false;
    "`set-headers-bin <expr> [prefix <text>]`" set_headers_bin true;
}

fn headers_bin(
    build: &mut ProxyBuild<'_, '_>,
    cursor: &mut Cursor<'_>,
    place: Place,
    set: bool,
) -> Parse<HttpAction> {
    let expr = build.shared.next_expr(cursor, place)?;
    let mut prefix = Octets::default();
    if cursor.peek() == "prefix" {
        cursor.take();
        prefix = cursor.octets("a prefix")?;
    }
    Ok(HttpAction::HeadersBin { set, expr, prefix })
}

/// Actions that rewrite a header: their effect, and whether they work on single values.
macro_rules! rewrites {
    ($($doc:literal $name:ident $by_value:literal;)*) => {$(
        #[doc = $doc]
        pub fn $name(build: &mut ProxyBuild<'_, '_>, cursor: &mut Cursor<'_>, place: Place) -> Parse<HttpAction> {
            replace(build, cursor, place, $by_value)
        }
    )*};
}
rewrites! {
    "`replace-header <name> <regex> <format>`" replace_header false;
    "`replace-value <name> <regex> <format>`" replace_value true;
}

fn replace(
    build: &mut ProxyBuild<'_, '_>,
    cursor: &mut Cursor<'_>,
    place: Place,
    by_value: bool,
) -> Parse<HttpAction> {
    let action = cursor.last();
    cursor.line.need(cursor.at, || {
        format!("'{action}' expects exactly 3 arguments.")
    })?;
    cursor.take();
    let name = cursor.line.octets(cursor.at - 1);
    let with = super::target::rewrite(build, cursor, place)?;
    Ok(HttpAction::ReplaceHeader(HeaderRewrite {
        name,
        by_value,
        with,
    }))
}

/// `early-hint <name> <format>`
pub fn early_hint(
    build: &mut ProxyBuild<'_, '_>,
    cursor: &mut Cursor<'_>,
    place: Place,
) -> Parse<HttpAction> {
    let (name, value) = header(build, cursor, place)?;
    Ok(HttpAction::EarlyHint { name, value })
}
