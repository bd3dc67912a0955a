//! The status of a span, by the tags that tell it.

use std::borrow::Cow;

use crate::run::translate::span::{Any, Attributes, Code, Kind};

/// The status and its message. Tags that say nothing else are attributes no more.
pub fn take<'a>(attributes: &mut Attributes<'a>, kind: Kind) -> (Code, Cow<'a, str>) {
    let http_message = |attributes: &Attributes<'a>| {
        let message = attributes.get("http.status_message").cloned();
        message.map(Any::into_text)
    };
    let is_error = attributes.get("error") == Some(&Any::Bool(true));
    let own = attributes.take("otel.status_code");
    if is_error {
        attributes.take("error");
        let message = take_description(attributes).or_else(|| http_message(attributes));
        return (Code::Error, message.unwrap_or_default());
    }
    if let Some(own) = own {
        let text = own.as_text();
        let code = match text {
            _ if text.eq_ignore_ascii_case("ok") => Code::Ok,
            _ if text.eq_ignore_ascii_case("error") => Code::Error,
            _ => Code::Unset,
        };
        return (code, take_description(attributes).unwrap_or_default());
    }
    match attributes
        .get("http.status_code")
        .and_then(|code| of_http(code, kind))
    {
        Some(Code::Error) => (Code::Error, http_message(attributes).unwrap_or_default()),
        _ => (Code::Unset, "".into()),
    }
}

fn take_description<'a>(attributes: &mut Attributes<'a>) -> Option<Cow<'a, str>> {
    let message = attributes.take("otel.status_description");
    message.map(Any::into_text)
}

/// A status of the 4xx is a client's error, not a server's.
fn of_http(code: &Any<'_>, kind: Kind) -> Option<Code> {
    let code = match code {
        Any::Int(code) => *code,
        Any::Text(text) => text.parse().ok()?,
        _ => return None,
    };
    Some(match code {
        100..400 => Code::Unset,
        400..500 if kind == Kind::Server => Code::Unset,
        _ => Code::Error,
    })
}
