//! Section `otel-scope`: the keywords that do not belong to a span.

use super::super::line::{Line, Parse};
use super::super::proxy;
use super::filter::{FilterBuild, FilterParser};
use super::instrumentation::time_ms;
use super::{instrument, log_record, names, span, usage};
use crate::keywords::{Keyword, Places};
use sample::vars::{SetConditions, Source};
use sample::{Assignment, VarRef};
use telemetry::program::{ContextField, ContextName, Event, Extract, Field, FirstMatch, Value};

type K = Keyword<FilterParser>;
const S: Places = Places::NONE;

#[rustfmt::skip]
const KEYWORDS: &[K] = &[
    K::yes("acl", S, acl, "Declares a condition for this scope."),
    K::yes("attribute", S, span::attribute, "Sets an attribute of the span."),
    K::yes("baggage", S, span::baggage, "Adds to what the span's context carries along."),
    K::yes("event", S, span::event, "Adds an event to the span."),
    K::yes("exception", S, span::exception, "Adds an exception to the span."),
    K::yes("extract", S, extract, "Reads a context from headers or variables."),
    K::yes("finish", S, finish, "Ends spans and contexts: by name, `*`, `*req*` or `*res*`."),
    K::yes("idle-timeout", S, idle_timeout, "The period of `on-idle-timeout`."),
    K::yes("inject", S, span::inject, "Writes the span's context to headers or variables."),
    K::yes("instrument", S, instrument::instrument, "Defines an instrument, or records with it."),
    K::yes("link", S, span::link, "Links the span to others."),
    K::yes("log-record", S, log_record::log_record, "Emits a log record."),
    K::yes("otel-event", S, otel_event, "When the scope runs."),
    K::yes("otel-stop", S, otel_stop, "Ends all of the stream's spans and the filter's work for it."),
    K::yes("set-var", S, set_var, "Sets a variable."),
    K::yes("set-var-ctx", S, set_var_ctx, "Sets a variable to a field of a span or a context."),
    K::yes("span", S, span::span, "Begins a span, or names one that is open."),
    K::yes("status", S, span::status, "Sets the span's status."),
    K::yes("unset-var", S, unset_var, "Removes variables."),
];

/// The keywords of the section.
pub fn keywords() -> &'static [K] {
    KEYWORDS
}

fn acl(build: &mut FilterBuild<'_, '_, '_>, line: &Line<'_>) -> Parse {
    let mut acls = std::mem::take(&mut build.scope_acls);
    let result = proxy::named_acl(build.proxy.shared, &mut acls, line);
    build.scope_acls = acls;
    result
}

/// `otel-event <name> [{if|unless} <condition>]`
fn otel_event(build: &mut FilterBuild<'_, '_, '_>, line: &Line<'_>) -> Parse {
    let name = line.need(1, || "'otel-event' expects the name of an event.".into())?;
    if build.scope.event.is_some() {
        return Err(line.fault(0, "'otel-event' already defined in this scope."));
    }
    let Some(event) = Event::named(name) else {
        let known = Event::ALL.iter().map(|event| event.name());
        let hint = super::super::did_you_mean(name, known);
        return Err(line.fault(1, format!("unknown event '{name}'{hint}.")));
    };
    build.scope.event = Some(event);
    build.scope.condition = build.condition(line, 2)?;
    Ok(())
}

fn idle_timeout(build: &mut FilterBuild<'_, '_, '_>, line: &Line<'_>) -> Parse {
    line.at_most(1)?;
    build.scope.idle_ms = Some(time_ms(line, 1)?);
    Ok(())
}

/// `extract <name> [use-vars | use-headers] [<format> …]`
fn extract(build: &mut FilterBuild<'_, '_, '_>, line: &Line<'_>) -> Parse {
    const USAGE: &str = "'extract <name> [use-vars | use-headers] [w3c] [b3] [b3multi] [jaeger]'";
    let Some(name) = line.words().get(1).map(|word| word.text.as_str()) else {
        return Err(usage(line, 1, USAGE));
    };
    let context = build.names.context(line, 1)?;
    if build.names.spans.find(name).is_some() {
        return Err(line.fault(1, format!("'{name}' is the name of a span.")));
    }
    if build
        .scope
        .extracts
        .iter()
        .any(|known| known.context == context)
    {
        return Err(line.fault(1, format!("'{name}' already defined in this scope.")));
    }
    let from = build.carrier(line, name, 2)?;
    if from.vars.is_some() && (from.headers.is_some() || !from.formats.is_empty()) {
        return Err(line.fault(2, "'use-vars' and headers exclude each other."));
    }
    build.scope.extracts.push(Extract { context, from });
    Ok(())
}

/// `finish <name> …`
fn finish(build: &mut FilterBuild<'_, '_, '_>, line: &Line<'_>) -> Parse {
    line.need(1, || "'finish' expects at least one name.".into())?;
    for at in 1..line.count() {
        let finish = &mut build.scope.finish;
        match line.arg(at) {
            "*" => finish.all = true,
            "*req*" => finish.requests = true,
            "*res*" => finish.responses = true,
            name => {
                let of = build.names.reference(line, at)?;
                let known = of.span.is_some_and(|span| finish.spans.contains(&span))
                    || of
                        .context
                        .is_some_and(|context| finish.contexts.contains(&context));
                if known {
                    return Err(line.fault(at, format!("'{name}' already defined.")));
                }
                finish.spans.extend(of.span);
                finish.contexts.extend(of.context);
            }
        }
    }
    Ok(())
}

/// `otel-stop [{if|unless} <condition>]`
fn otel_stop(build: &mut FilterBuild<'_, '_, '_>, line: &Line<'_>) -> Parse {
    let condition = build.condition(line, 1)?;
    build.scope.stop.push(condition);
    Ok(())
}

/// `set-var <scope.name> <sample> … [{if|unless} <condition>]`
fn set_var(build: &mut FilterBuild<'_, '_, '_>, line: &Line<'_>) -> Parse {
    let var = variable(build, line, 1)?;
    let end = FilterBuild::end(line, 2);
    let source = match build.value(line, 2, end)? {
        Value::One(expr) => Source::Expr(expr),
        Value::Format(format) => Source::Format(format),
        Value::Text(_) | Value::Several(_) => {
            // The texts of the samples, one after the other, as a log format of expressions.
            let text: Vec<u8> = (2..end).flat_map(|at| as_format(line.bytes(at))).collect();
            let shared = &mut build.proxy.shared;
            let place = sample::Place::ALL;
            Source::Format(shared.styled(line, 2, &text, place, sample::Style::Plain)?)
        }
    };
    let condition = build.condition(line, end)?;
    let assignment = Assignment {
        var,
        when: SetConditions::default(),
        source,
    };
    first_match(
        line,
        &mut build.scope.set_vars,
        var,
        (condition, assignment),
    )
}

/// A sample in the syntax of a log format.
fn as_format(word: &[u8]) -> Vec<u8> {
    if memchr::memmem::find(word, b"%[").is_some() {
        word.to_owned()
    } else {
        [b"%[", word, b"]"].concat()
    }
}

/// `unset-var <scope.name> … [{if|unless} <condition>]`
fn unset_var(build: &mut FilterBuild<'_, '_, '_>, line: &Line<'_>) -> Parse {
    line.need(1, || "'unset-var' expects at least one variable.".into())?;
    let end = FilterBuild::end(line, 1);
    let condition = build.condition(line, end)?;
    for at in 1..end {
        let var = variable(build, line, at)?;
        let condition = condition.clone();
        first_match(line, &mut build.scope.unset_vars, var, (condition, ()))?;
    }
    Ok(())
}

/// `set-var-ctx <scope.name> <span or context> <field> [{if|unless} <condition>]`
fn set_var_ctx(build: &mut FilterBuild<'_, '_, '_>, line: &Line<'_>) -> Parse {
    const USAGE: &str =
        "'set-var-ctx <scope.name> <span or context> <field> [{if|unless} <condition>]'";
    let end = FilterBuild::end(line, 1);
    if end != 4 {
        return Err(usage(line, end.min(4), USAGE));
    }
    let var = variable(build, line, 1)?;
    let of = build.names.reference(line, 2)?;
    let field = field(line)?;
    let condition = build.condition(line, end)?;
    let value = ContextField { of, field };
    first_match(line, &mut build.scope.set_var_ctx, var, (condition, value))
}

fn field(line: &Line<'_>) -> Parse<Field> {
    let word = line.arg(3);
    let (name, key) = match word.split_once('(') {
        Some((name, key)) => match key.strip_suffix(')') {
            Some(key) => (name, Some(key.as_bytes().into())),
            None => return Err(line.fault(3, format!("'{word}' has no closing parenthesis."))),
        },
        None => (word, None),
    };
    Ok(match (name, key) {
        ("trace-id", None) => Field::TraceId,
        ("span-id", None) => Field::SpanId,
        ("trace-flags", None) => Field::TraceFlags,
        ("traceparent", None) => Field::Traceparent,
        ("sampled", None) => Field::Sampled,
        ("valid", None) => Field::Valid,
        ("remote", None) => Field::Remote,
        ("baggage", key) => Field::Baggage(key),
        ("tracestate", key) => Field::Tracestate(key),
        _ => {
            return Err(line.fault(
                3,
                format!("unknown field '{word}': expected 'trace-id', 'span-id', 'trace-flags', 'traceparent', 'sampled', 'valid', 'remote', 'baggage[(<key>)]' or 'tracestate[(<key>)]'."),
            ));
        }
    })
}

fn variable(build: &mut FilterBuild<'_, '_, '_>, line: &Line<'_>, at: usize) -> Parse<VarRef> {
    let name = line.need(at, || format!("'{}' expects a variable.", line.keyword()))?;
    let compiler = &mut build.proxy.shared.compiler;
    compiler
        .var(name)
        .map_err(|error| line.fault(at, format!("{}.", error.message)))
}

/// Adds a line for `key`. The first line whose condition holds applies, so a line without a
/// condition must be the last.
pub fn first_match<K: PartialEq, V>(
    line: &Line<'_>,
    lists: &mut Vec<FirstMatch<K, V>>,
    key: K,
    entry: (Option<sample::Condition>, V),
) -> Parse {
    let known = lists.iter_mut().find(|list| list.key == key);
    let Some(list) = known else {
        lists.push(FirstMatch {
            key,
            lines: vec![entry],
        });
        return Ok(());
    };
    if list.lines.iter().any(|(condition, _)| condition.is_none()) {
        return Err(line.fault(1, format!("'{}' already unconditionally set.", line.arg(1))));
    }
    list.lines.push(entry);
    Ok(())
}

/// Checks that need a complete scope.
pub fn check(build: &mut FilterBuild<'_, '_, '_>, header: &Line<'_>) -> Parse {
    names::named(header, 1)?;
    let scope = &build.scope;
    match (scope.event, scope.idle_ms) {
        (Some(Event::IdleTimeout), None) => {
            Err(header.fault(1, "a scope of 'on-idle-timeout' needs an 'idle-timeout'."))
        }
        (Some(Event::IdleTimeout), Some(_)) | (_, None) => writes(build, header),
        _ => Err(header.fault(1, "'idle-timeout' needs the event 'on-idle-timeout'.")),
    }
}

/// Checks that headers are injected only at events where that is possible.
fn writes(build: &FilterBuild<'_, '_, '_>, header: &Line<'_>) -> Parse {
    let scope = &build.scope;
    let in_headers = scope.spans.iter().any(|span| {
        let inject = span.inject.as_ref();
        inject.is_some_and(|to| to.headers.is_some() || !to.formats.is_empty())
    });
    match scope.event {
        Some(event) if in_headers && !event.writes_headers() => Err(header.fault(
            1,
            format!("'inject' cannot write headers at '{}'.", event.name()),
        )),
        _ => Ok(()),
    }
}

/// Collects the contexts of the program: the headers and variables that the end of each context
/// removes, whichever scope injected or extracted it.
pub fn finish_contexts(build: &mut FilterBuild<'_, '_, '_>) {
    let names = std::mem::take(&mut build.names.contexts.names);
    for name in names {
        let scopes = build.program.scopes.iter();
        let carriers = scopes.flat_map(|scope| {
            let injects = scope.spans.iter().filter_map(|span| span.inject.as_ref());
            let extracts = scope.extracts.iter().map(|extract| &extract.from);
            injects.chain(extracts)
        });
        let own = carriers.filter(|carrier| carrier.name.eq_ignore_ascii_case(&name));
        let context = ContextName {
            headers: own.clone().find_map(|carrier| carrier.headers.clone()),
            vars: own.clone().find_map(|carrier| carrier.vars),
            name,
        };
        build.program.contexts.push(context);
    }
}
