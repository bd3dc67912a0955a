//! Section `otel-instrumentation`.

use super::super::line::{Fault, Line, Parse};
use super::super::{log_line, proxy, values};
use super::files::Read;
use super::filter::{FilterBuild, FilterParser};
use super::sampling::sampling;
use super::{names, usage};
use crate::keywords::arguments::Args;
use crate::keywords::{Keyword, Places};
use crate::tree::{Prefix, Span};
use std::sync::Arc;

type K = Keyword<FilterParser>;
const S: Places = Places::NONE;

#[rustfmt::skip]
const KEYWORDS: &[K] = &[
    K::yes("acl", S, acl, "Declares a condition for all scopes of the filter."),
    K::yes("config", S, config, "The file of exporters, samplers and processors, and the name of the context to take of it."),
    K::moot("debug-level", S, "this program has no debug build of the filter", Args::Any, "Sets what a debug build writes."),
    K::yes("groups", S, groups, "The groups that rules may run."),
    K::yes("log", S, log, "Where messages of the filter go."),
    K::yes("option", S, option, "`disabled`, `dontlog-normal`, `hard-errors`, `noflush`, `require-context`."),
    K::yes("rate-limit", S, rate_limit, "The share of streams that are traced, in per cent."),
    K::yes("sampling", S, sampling, "A policy that decides at the end of a stream whether its spans are kept."),
    K::yes("scopes", S, scopes, "The scopes that run at their events."),
];

/// The keywords of the section.
pub fn keywords() -> &'static [K] {
    KEYWORDS
}

/// Refuses a second use of a keyword.
fn once(build: &mut FilterBuild<'_, '_, '_>, line: &Line<'_>, name: &str) -> Parse {
    if build.seen.iter().any(|seen| seen == name) {
        return Err(line.fault(0, format!("'{name}' already defined.")));
    }
    build.seen.push(name.to_owned());
    Ok(())
}

fn config(build: &mut FilterBuild<'_, '_, '_>, line: &Line<'_>) -> Parse {
    const USAGE: &str = "'config <file> [<context>]'";
    once(build, line, "config")?;
    if line.count() < 2 || line.count() > 3 {
        return Err(usage(line, line.count().min(3), USAGE));
    }
    build.filter.settings_file = line.arg(1).to_owned();
    let context = (line.count() > 2).then(|| line.arg(2));
    match build
        .proxy
        .shared
        .filter_files
        .settings(line.arg(1), context)
        .cloned()
    {
        Some(Read::Good(settings, warnings)) => {
            for warning in warnings {
                build.settle(Err(line.fault(1, warning).as_warning()));
            }
            build.filter.settings = *settings;
            Ok(())
        }
        Some(Read::Wrong(source, errors)) => {
            for error in errors {
                let (line, column) = (error.line as u32, error.column as u32);
                let span = Span::of_character(Arc::clone(&source), line, column);
                build.settle(Err(Fault::new(span, error.message)));
            }
            Ok(())
        }
        Some(Read::Unread(error)) => {
            Err(line.fault(1, format!("Cannot read '{}' : {error}.", line.arg(1))))
        }
        None => Ok(()),
    }
}

fn acl(build: &mut FilterBuild<'_, '_, '_>, line: &Line<'_>) -> Parse {
    let mut acls = std::mem::take(&mut build.acls);
    let result = proxy::named_acl(build.proxy.shared, &mut acls, line);
    build.acls = acls;
    result
}

fn scopes(build: &mut FilterBuild<'_, '_, '_>, line: &Line<'_>) -> Parse {
    let names = list(line)?;
    build.used_scopes.extend(names);
    Ok(())
}

fn groups(build: &mut FilterBuild<'_, '_, '_>, line: &Line<'_>) -> Parse {
    let names = list(line)?;
    build.used_groups.extend(names);
    Ok(())
}

/// The names in a line, with their places.
pub fn list(line: &Line<'_>) -> Parse<Vec<(String, crate::tree::Span)>> {
    line.need(1, || {
        format!("'{}' expects at least one name.", line.keyword())
    })?;
    let mut list: Vec<(String, _)> = Vec::new();
    for at in 1..line.count() {
        names::named(line, at)?;
        let name = line.arg(at);
        if list.iter().any(|(known, _)| known == name) {
            return Err(line.fault(at, format!("'{name}' already defined.")));
        }
        list.push((name.to_owned(), line.span(at)));
    }
    Ok(list)
}

fn log(build: &mut FilterBuild<'_, '_, '_>, line: &Line<'_>) -> Parse {
    if line.prefix() != Prefix::None {
        build.filter.log.clear();
        return Ok(());
    }
    if line.arg(1) == "global" && line.count() == 2 {
        let global = build.proxy.global.log.iter().cloned();
        build.filter.log.extend(global);
        return Ok(());
    }
    let target = log_line::target(line, build.proxy.shared)?;
    build.filter.log.push(target);
    Ok(())
}

fn option(build: &mut FilterBuild<'_, '_, '_>, line: &Line<'_>) -> Parse {
    const OPTIONS: [&str; 5] = [
        "disabled",
        "dontlog-normal",
        "hard-errors",
        "noflush",
        "require-context",
    ];
    let name = line.need(1, || {
        format!("'option' expects one of: {}.", OPTIONS.join(", "))
    })?;
    line.at_most(1)?;
    let on = line.prefix() == Prefix::None;
    let filter = &mut build.filter;
    match name {
        "disabled" => filter.disabled = on,
        "dontlog-normal" => filter.dontlog_normal = on,
        "hard-errors" => filter.hard_errors = on,
        "noflush" => filter.noflush = on,
        "require-context" => build.program.require_context = on,
        _ => {
            let hint = super::super::did_you_mean(name, OPTIONS.into_iter());
            return Err(line.fault(1, format!("unknown option '{name}'{hint}.")));
        }
    }
    Ok(())
}

fn rate_limit(build: &mut FilterBuild<'_, '_, '_>, line: &Line<'_>) -> Parse {
    once(build, line, "rate-limit")?;
    line.at_most(1)?;
    let text = line.need(1, || {
        "'rate-limit' expects a number from 0.0 to 100.0.".into()
    })?;
    match text.parse::<f64>() {
        Ok(rate) if (0.0..=100.0).contains(&rate) => {
            build.filter.rate_percent = rate;
            if rate < 100.0 {
                let message = "'rate-limit' below 100.0 draws streams whatever trace they belong to, and passes no context on for the others: a sampler in the exporters' file does better.";
                return Err(line.fault(1, message).as_warning());
            }
        }
        _ => {
            return Err(line.fault(
                1,
                format!("'rate-limit' expects a number from 0.0 to 100.0, got '{text}'."),
            ));
        }
    }
    Ok(())
}

/// The time of a keyword in milliseconds, above 0.
pub fn time_ms(line: &Line<'_>, at: usize) -> Parse<u64> {
    time_ms_at(line, at, line.keyword())
}

/// A time in milliseconds, above 0; `name` is the setting that it belongs to.
pub fn time_ms_at(line: &Line<'_>, at: usize, name: &str) -> Parse<u64> {
    let text = line.need(at, || format!("'{name}' expects a time."))?;
    let time = values::whole_time(text)
        .map_err(|bad| line.fault(at, values::time_message(bad, text, name)))?;
    match u64::try_from(time.as_millis()) {
        Ok(ms @ 1..) => Ok(ms),
        _ => Err(line.fault(
            at,
            format!("'{name}' expects a time of at least a millisecond."),
        )),
    }
}
