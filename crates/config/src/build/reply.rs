//! Responses made here: what follows `return`, `deny` and `tarpit` (manual §4.4 `return`).

use super::line::{Cursor, Parse};
use super::{Shared, pages};
use crate::model::{Reply, ReplyBody};
use sample::{Place, Style};

/// What was given as the body.
enum Given {
    Nothing,
    Default,
    /// The name of an `http-errors` section.
    Section(String, usize),
    Body(ReplyBody),
}

/// Parses a reply up to `if`, `unless` or the end.
pub fn reply(
    shared: &mut Shared<'_>,
    cursor: &mut Cursor<'_>,
    place: Place,
    default_status: u16,
) -> Parse<Reply> {
    let action = cursor.last();
    let mut reply = Reply {
        status: default_status,
        content_type: None,
        body: ReplyBody::Empty,
        headers: Vec::new(),
    };
    let mut given = Given::Nothing;
    // Without arguments, or with only `deny_status`, `deny` answers with the error page; `return` never does by itself.
    let mut implied_page = action != "return";
    let mut body_word = "";
    loop {
        if matches!(cursor.peek(), "" | "if" | "unless") {
            break;
        }
        let word = cursor.take();
        implied_page &= word == "deny_status";
        if matches!(
            word,
            "default-errorfiles"
                | "errorfile"
                | "errorfiles"
                | "file"
                | "lf-file"
                | "string"
                | "lf-string"
        ) {
            if !body_word.is_empty() {
                return Err(cursor.fault(format!(
                    "unexpected '{word}' argument, '{body_word}' already defined."
                )));
            }
            body_word = word;
            given = body(shared, cursor, place, word)?;
            continue;
        }
        match word {
            "status" => reply.status = status(cursor)?,
            "deny_status" if action != "return" => reply.status = status(cursor)?,
            "content-type" => reply.content_type = Some(cursor.octets("<ctype>")?),
            "hdr" => {
                let name = cursor.octets("<name> and <value>")?;
                cursor.line.need(cursor.at, || {
                    "'hdr' expects <name> and <value> as arguments.".into()
                })?;
                let value = shared.log_format(&cursor.line, cursor.at, place)?;
                cursor.at += 1;
                reply.headers.push((name, value));
            }
            word => {
                let known = "'status', 'content-type', 'default-errorfiles', 'errorfile', 'errorfiles', 'file', 'lf-file', 'string', \
                             'lf-string' or 'hdr'";
                return Err(cursor.fault(format!("'{action}' expects {known} (got '{word}').")));
            }
        }
    }
    finish(shared, cursor, reply, given, body_word, implied_page)
}

fn status(cursor: &mut Cursor<'_>) -> Parse<u16> {
    let text = cursor.value("<status_code>")?;
    match text.parse() {
        Ok(status @ 200..=599) => Ok(status),
        _ => Err(cursor.fault(format!("Unexpected status code '{text}'."))),
    }
}

fn body(
    shared: &mut Shared<'_>,
    cursor: &mut Cursor<'_>,
    place: Place,
    word: &str,
) -> Parse<Given> {
    if word == "default-errorfiles" {
        return Ok(Given::Default);
    }
    let value = cursor.value(match word {
        "errorfiles" => "<name>",
        "string" => "<str>",
        "lf-string" => "<fmt>",
        _ => "<file>",
    })?;
    let (line, at) = (cursor.line, cursor.at - 1);
    Ok(match word {
        "errorfiles" => Given::Section(value.to_owned(), at),
        "errorfile" => Given::Body(ReplyBody::Raw(pages::response(shared, &line, at)?.into())),
        "file" => Given::Body(ReplyBody::Fixed(pages::file(shared, &line, at)?.into())),
        "string" => Given::Body(ReplyBody::Fixed(line.bytes(at).into())),
        "lf-file" => {
            let text = pages::file(shared, &line, at)?;
            Given::Body(ReplyBody::Format(shared.styled(
                &line,
                at,
                &text,
                place,
                Style::Plain,
            )?))
        }
        _ => Given::Body(ReplyBody::Format(shared.plain_format(&line, at, place)?)),
    })
}

fn finish(
    shared: &mut Shared<'_>,
    cursor: &Cursor<'_>,
    mut reply: Reply,
    given: Given,
    body_word: &str,
    implied_page: bool,
) -> Parse<Reply> {
    let has_page = pages::STATUSES.contains(&reply.status);
    let not_handled = || {
        let argument = if body_word.is_empty() {
            "default-errorfiles"
        } else {
            body_word
        };
        cursor.fault(format!(
            "status code '{}' not handled by default with '{argument}' argument.",
            reply.status
        ))
    };
    reply.body = match given {
        Given::Nothing if implied_page => {
            if has_page {
                ReplyBody::Default
            } else {
                return Err(not_handled());
            }
        }
        Given::Nothing => ReplyBody::Empty,
        Given::Default if has_page => ReplyBody::Default,
        Given::Default => return Err(not_handled()),
        Given::Section(name, at) => {
            let pages = pages::section_pages(shared, &cursor.line, at, &name)?;
            match pages.iter().find(|(status, _)| *status == reply.status) {
                Some((_, page)) => ReplyBody::Raw(pages::raw(page)),
                None if has_page => ReplyBody::Default,
                None => return Err(not_handled()),
            }
        }
        Given::Body(body) => body,
    };
    unused(shared, cursor, &mut reply);
    let payload = match &reply.body {
        ReplyBody::Fixed(bytes) => !bytes.is_empty(),
        ReplyBody::Format(_) => true,
        _ => false,
    };
    if payload && matches!(reply.status, 204 | 304) {
        return Err(cursor.fault(format!("No body expected for {} responses.", reply.status)));
    }
    if payload && reply.content_type.is_none() {
        return Err(
            cursor.fault("a content type must be defined when non-empty payload is configured.")
        );
    }
    Ok(reply)
}

/// Warns of what says nothing about such a body, and forgets it.
fn unused(shared: &mut Shared<'_>, cursor: &Cursor<'_>, reply: &mut Reply) {
    let why = match &reply.body {
        ReplyBody::Empty => "because neither errorfile nor payload defined",
        ReplyBody::Default | ReplyBody::Raw(_) => "when used with an errorfile",
        ReplyBody::Fixed(bytes) if bytes.is_empty() => "when used with an empty payload",
        ReplyBody::Fixed(_) | ReplyBody::Format(_) => return,
    };
    if let Some(kind) = reply.content_type.take() {
        let message = format!("content-type '{kind}' ignored by the http reply {why}.");
        shared.settle(Err(cursor.fault(message).as_warning()));
    }
    let is_page = matches!(reply.body, ReplyBody::Default | ReplyBody::Raw(_));
    if is_page && !reply.headers.is_empty() {
        reply.headers.clear();
        let message = format!("hdr parameters ignored by the http reply {why}.");
        shared.settle(Err(cursor.fault(message).as_warning()));
    }
}
