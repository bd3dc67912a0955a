//! `span` and the keywords that belong to it.

use super::super::line::{Line, Parse};
use super::filter::FilterBuild;
use super::scope::first_match;
use super::usage;
use telemetry::program::{
    EventLines, Exception, FirstMatch, Link, SpanKind, SpanLine, Status, StatusCode, Value,
};

/// `span <name> [parent <ref>] [link <ref>] [root] [kind <kind>]`
pub fn span(build: &mut FilterBuild<'_, '_, '_>, line: &Line<'_>) -> Parse {
    const USAGE: &str = "'span <name> [parent <ref>] [link <ref>] … [root] [kind internal|server|client|producer|consumer]'";
    let name = line.need(1, || format!("'span' expects a name. Usage: {USAGE}"))?;
    if matches!(name, "*" | "*req*" | "*res*") {
        return Err(line.fault(1, format!("'{name}' is no name of a span.")));
    }
    let mut span = SpanLine {
        name: build.names.span(line, 1)?,
        defines: line.count() > 2,
        ..SpanLine::default()
    };
    let mut kind = None;
    let mut at = 2;
    while at < line.count() {
        let word = line.arg(at);
        let twice = match word {
            "parent" => {
                reference_follows(line, at, USAGE)?;
                if line.arg(at + 1) == name {
                    return Err(line.fault(at + 1, "a span cannot be its own parent."));
                }
                at += 1;
                span.parent
                    .replace(build.names.reference(line, at)?)
                    .is_some()
            }
            "link" => {
                reference_follows(line, at, USAGE)?;
                at += 1;
                span.links.push(Link {
                    to: vec![build.names.reference(line, at)?],
                    attributes: Vec::new(),
                    condition: None,
                });
                false
            }
            "root" => std::mem::replace(&mut span.is_root, true),
            "kind" => {
                reference_follows(line, at, USAGE)?;
                at += 1;
                kind.replace(kind_named(line, at)?).is_some()
            }
            _ => return Err(line.fault(at, format!("'{word}' : unexpected. Usage: {USAGE}"))),
        };
        if twice {
            return Err(line.fault(at, format!("'{word}' already defined.")));
        }
        at += 1;
    }
    span.kind = kind.unwrap_or_default();
    if span.defines {
        let defined = |known: &SpanLine| known.name == span.name && known.defines;
        if build.scope.spans.iter().any(defined) {
            return Err(line.fault(
                1,
                format!("span '{name}' is already defined in this scope."),
            ));
        }
    }
    build.scope.spans.push(span);
    Ok(())
}

fn reference_follows(line: &Line<'_>, at: usize, usage: &str) -> Parse {
    let name = line.arg(at);
    line.need(at + 1, || {
        format!("'{name}' expects an argument. Usage: {usage}")
    })?;
    Ok(())
}

fn kind_named(line: &Line<'_>, at: usize) -> Parse<SpanKind> {
    Ok(match line.arg(at) {
        "internal" => SpanKind::Internal,
        "server" => SpanKind::Server,
        "client" => SpanKind::Client,
        "producer" => SpanKind::Producer,
        "consumer" => SpanKind::Consumer,
        word => {
            return Err(line.fault(
                at,
                format!("unknown kind '{word}': expected 'internal', 'server', 'client', 'producer' or 'consumer'."),
            ));
        }
    })
}

/// Calls a function with the span to which a line belongs: the last one of the scope.
fn of_span<R>(
    build: &mut FilterBuild<'_, '_, '_>,
    line: &Line<'_>,
    work: impl FnOnce(&mut SpanLine) -> Parse<R>,
) -> Parse<R> {
    match build.scope.spans.last_mut() {
        Some(span) => work(span),
        None => Err(line.fault(0, format!("'{}' needs a 'span' before it.", line.keyword()))),
    }
}

/// `attribute <key> <sample> … [{if|unless} <condition>]`
pub fn attribute(build: &mut FilterBuild<'_, '_, '_>, line: &Line<'_>) -> Parse {
    const USAGE: &str = "'attribute <key> <sample> … [{if|unless} <condition>]'";
    of_span(build, line, |_| Ok(()))?;
    let end = FilterBuild::end(line, 2);
    if end < 3 {
        return Err(usage(line, end, USAGE));
    }
    let key = build.names.text(line, 1)?;
    let value = build.value(line, 2, end)?;
    let condition = build.condition(line, end)?;
    of_span(build, line, |span| {
        first_match(line, &mut span.attributes, key, (condition, value))
    })
}

/// `event <name> [time [<unit>] <sample>] <key> <sample> … [{if|unless} <condition>]`
pub fn event(build: &mut FilterBuild<'_, '_, '_>, line: &Line<'_>) -> Parse {
    const USAGE: &str =
        "'event <name> [time [s|ms|us|ns] <sample>] <key> <sample> … [{if|unless} <condition>]'";
    of_span(build, line, |_| Ok(()))?;
    let end = FilterBuild::end(line, 2);
    let name = build.names.text(line, 1)?;
    let (time, at) = match line.arg(2) {
        "time" if end > 4 => {
            let (time, at) = build.time(line, 3)?;
            (Some(time), at)
        }
        _ => (None, 2),
    };
    if end < at + 2 {
        return Err(usage(line, end, USAGE));
    }
    let key = build.names.text(line, at)?;
    let value = build.value(line, at + 1, end)?;
    let condition = build.condition(line, end)?;
    of_span(build, line, |span| {
        let known = span.events.iter().position(|event| event.name == name);
        let place = known.unwrap_or_else(|| {
            span.events.push(EventLines {
                name,
                time: None,
                attributes: Vec::new(),
            });
            span.events.len() - 1
        });
        let event = &mut span.events[place];
        if event.time.is_none() {
            event.time = time;
        }
        first_match(line, &mut event.attributes, key, (condition, value))
    })
}

/// `baggage <key> <sample> … [{if|unless} <condition>]`
pub fn baggage(build: &mut FilterBuild<'_, '_, '_>, line: &Line<'_>) -> Parse {
    const USAGE: &str = "'baggage <key> <sample> … [{if|unless} <condition>]'";
    of_span(build, line, |_| Ok(()))?;
    let end = FilterBuild::end(line, 2);
    if end < 3 {
        return Err(usage(line, end, USAGE));
    }
    let key = line.arg(1);
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    if let Some(bad) = key.chars().find(|c| !c.is_ascii() || !allowed(*c as u8)) {
        let message = format!("character '{bad}' is not permitted in the key '{key}' of baggage.");
        return Err(line.fault(1, message));
    }
    let key: Box<[u8]> = key.as_bytes().into();
    let value = build.value(line, 2, end)?;
    let condition = build.condition(line, end)?;
    of_span(build, line, |span| {
        first_match(line, &mut span.baggage, key, (condition, value))
    })
}

/// `status <code> [<sample> …] [{if|unless} <condition>]`
pub fn status(build: &mut FilterBuild<'_, '_, '_>, line: &Line<'_>) -> Parse {
    of_span(build, line, |_| Ok(()))?;
    let code = match line.arg(1) {
        "ignore" => None,
        "unset" => Some(StatusCode::Unset),
        "ok" => Some(StatusCode::Ok),
        "error" => Some(StatusCode::Error),
        word => {
            return Err(line.fault(
                1,
                format!("unknown status '{word}': expected 'ignore', 'unset', 'ok' or 'error'."),
            ));
        }
    };
    let end = FilterBuild::end(line, 2);
    let description = if end > 2 {
        Some(build.value(line, 2, end)?)
    } else {
        None
    };
    let condition = build.condition(line, end)?;
    let status = Status { code, description };
    of_span(build, line, |span| {
        let list = span.status.get_or_insert(FirstMatch {
            key: (),
            lines: Vec::new(),
        });
        if list.lines.iter().any(|(condition, _)| condition.is_none()) {
            return Err(line.fault(0, "'status' already unconditionally set."));
        }
        list.lines.push((condition, status));
        Ok(())
    })
}

/// `link <ref> …`, or `link <ref> attr <key> <sample> [[attr] <key> <sample>] …`; then
/// `[{if|unless} <condition>]`
pub fn link(build: &mut FilterBuild<'_, '_, '_>, line: &Line<'_>) -> Parse {
    of_span(build, line, |_| Ok(()))?;
    line.need(1, || "'link' expects at least one span or context.".into())?;
    let end = FilterBuild::end(line, 1);
    let attr = (2..end).find(|at| line.arg(*at) == "attr").unwrap_or(end);
    if attr < end && attr != 2 {
        return Err(line.fault(attr, "'attr' needs a single span or context before it."));
    }
    let to = (1..attr)
        .map(|at| build.names.reference(line, at))
        .collect::<Parse<Vec<_>>>()?;
    let attributes = attributes(build, line, attr, end)?;
    let condition = build.condition(line, end)?;
    of_span(build, line, |span| {
        span.links.push(Link {
            to,
            attributes,
            condition,
        });
        Ok(())
    })
}

/// `[attr] <key> <sample> …` from word `at` to `end`.
pub fn attributes(
    build: &mut FilterBuild<'_, '_, '_>,
    line: &Line<'_>,
    at: usize,
    end: usize,
) -> Parse<Vec<(telemetry::program::TextId, Value)>> {
    let mut list = Vec::new();
    let mut at = at;
    while at < end {
        at += usize::from(line.arg(at) == "attr");
        if at + 2 > end {
            return Err(line.fault(at, "'attr' expects a key and a sample."));
        }
        let key = build.names.text(line, at)?;
        if list.iter().any(|(known, _)| *known == key) {
            return Err(line.fault(at, format!("'{}' already defined.", line.arg(at))));
        }
        list.push((key, build.value(line, at + 1, at + 2)?));
        at += 2;
    }
    Ok(list)
}

/// `exception <type> [message <sample> …] [attr <key> <sample>] … [{if|unless} <condition>]`
pub fn exception(build: &mut FilterBuild<'_, '_, '_>, line: &Line<'_>) -> Parse {
    of_span(build, line, |_| Ok(()))?;
    line.need(1, || "'exception' expects a type.".into())?;
    let end = FilterBuild::end(line, 2);
    let attr = (2..end).find(|at| line.arg(*at) == "attr").unwrap_or(end);
    let message = match (line.arg(2), attr) {
        ("message", 4..) => Some(build.value(line, 3, attr)?),
        _ if attr == 2 => None,
        (word, _) => {
            return Err(line.fault(
                2,
                format!("'{word}' : expected 'message <sample> …' or 'attr <key> <sample>'."),
            ));
        }
    };
    let names = ["exception", "exception.type", "exception.message"];
    let too_many = || line.fault(0, "too many names in this file.");
    for (place, name) in names.into_iter().enumerate() {
        let text = build.names.text_of(name).ok_or_else(too_many)?;
        build.program.exception_texts[place] = text;
    }
    let attributes = attributes(build, line, attr, end)?;
    let condition = build.condition(line, end)?;
    let kind = Value::Text(line.bytes(1).into());
    of_span(build, line, |span| {
        span.exceptions.push(Exception {
            kind,
            message,
            attributes,
            condition,
        });
        Ok(())
    })
}

/// `inject <name> [use-vars] [use-headers] [<format> …]`
pub fn inject(build: &mut FilterBuild<'_, '_, '_>, line: &Line<'_>) -> Parse {
    of_span(build, line, |_| Ok(()))?;
    let written = line.need(1, || "'inject' expects a name.".into())?;
    let name = match written {
        // The name is that of the event, with the standard header names.
        "-" => match build.scope.event {
            Some(event) => format!("-{}", event.name()),
            None => {
                let span = build.scope.spans.last().map_or(0, |span| span.name);
                format!("-{}", build.names.spans.names[usize::from(span)])
            }
        },
        name => name.to_owned(),
    };
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    if let Some(bad) = name.chars().find(|c| !c.is_ascii() || !allowed(*c as u8)) {
        let message = format!("character '{bad}' is not permitted in the name '{name}'.");
        return Err(line.fault(1, message));
    }
    super::names::named(line, 1)?;
    let carrier = build.carrier(line, &name, 2)?;
    of_span(build, line, |span| {
        if span.inject.is_some() {
            return Err(line.fault(0, "'inject' already defined for this span."));
        }
        span.inject = Some(carrier);
        Ok(())
    })
}
