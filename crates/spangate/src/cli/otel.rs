//! `flt-otel …`: changes the filters `opentelemetry` at run time. `@<id>` after the subcommand
//! selects one of them; without it, the command applies to all.
//!
//! A change applies to streams that begin after it.

use std::fmt::Write as _;
use std::sync::atomic::Ordering::Relaxed;

use config::model::OtelFilter;
use proxy::{Filter, Logging, Switches};

use super::{Asked, Command, Level, Reply, command, denied, status};
use crate::exports::FLUSH_NOW_BUDGET;

#[rustfmt::skip]
pub(super) const COMMANDS: &[Command] = &[
    command("flt-otel disable", "[@<id>]", Level::Admin, "make filters ignore new streams", |asked| disable(asked, true)),
    command("flt-otel enable", "[@<id>]", Level::Admin, "make filters follow streams again", |asked| disable(asked, false)),
    command("flt-otel flush", "[@<id>]", Level::Admin, "export recorded data now", flush),
    command("flt-otel hard-errors", "[@<id>]", Level::Admin, "after an error, stop following the stream", |asked| hard(asked, true)),
    command("flt-otel instruments", "[@<id>]", Level::User, "show the instruments of filters", status::instruments),
    command("flt-otel logging", "[@<id>] [off|on|dontlog-normal]", Level::User, "show or choose which messages are logged", logging),
    command("flt-otel noflush", "[@<id>] [on|off]", Level::User, "show or choose whether waiting records are dropped at the end", noflush),
    command("flt-otel rate", "[@<id>] [<percent>]", Level::User, "show or set the share of streams that filters follow", rate),
    command("flt-otel reset-errors", "[@<id>]", Level::Admin, "reset the error counters", reset_errors),
    command("flt-otel scopes", "[@<id>]", Level::User, "show scopes and groups", status::scopes),
    command("flt-otel soft-errors", "[@<id>]", Level::Admin, "after an error, only its output is missing", |asked| hard(asked, false)),
    command("flt-otel status", "[@<id>]", Level::User, "show the state of filters and of their exports", status::status),
];

/// A selected filter: its index, its configuration, its running state.
pub(super) type Meant<'a> = (usize, &'a OtelFilter, &'a Filter);

/// The filters that a command selects, and its words after them: at most `values_max`.
pub(super) fn meant<'a>(
    asked: &Asked<'a>,
    values_max: usize,
) -> Result<(Vec<Meant<'a>>, &'a [&'a str]), Reply> {
    let refused = |message: String| Err(Reply::Refused(message));
    let (id, rest) = match asked.rest {
        [first, rest @ ..] if first.starts_with('@') => (Some(&first[1..]), rest),
        rest => (None, rest),
    };
    if id == Some("") {
        return refused("'@' expects the id of a filter.\n".to_owned());
    }
    let all = asked
        .subjects
        .runtime_config
        .config
        .otel
        .iter()
        .zip(asked.subjects.runtime_config.filters());
    let filters: Vec<Meant<'_>> = all
        .enumerate()
        .filter(|(_, (config, _))| id.is_none_or(|id| config.id == id))
        .map(|(number, (config, filter))| (number, config, filter))
        .collect();
    if let Some(word) = rest.get(values_max) {
        return refused(format!("unexpected argument '{word}'.\n"));
    }
    match (filters.is_empty(), id) {
        (true, Some(id)) => refused(format!("no filter 'opentelemetry' has the id '{id}'.\n")),
        (true, None) => refused("there is no filter 'opentelemetry'.\n".to_owned()),
        _ => Ok((filters, rest)),
    }
}

/// Applies a change to each selected filter. `change` returns the name of the new state.
fn each(asked: &Asked<'_>, change: impl Fn(Meant<'_>) -> String) -> Reply {
    match meant(asked, 0) {
        Ok((filters, _)) => Reply::Said(lines(&filters, change)),
        Err(refused) => refused,
    }
}

fn lines(filters: &[Meant<'_>], say: impl Fn(Meant<'_>) -> String) -> String {
    let mut text = String::new();
    for filter in filters {
        // Writing to memory does not fail.
        let _ = writeln!(text, "filter '{}' : {}", filter.1.id, say(*filter));
    }
    text
}

/// Shows a setting, or sets it to the meaning of the one value.
fn setting<T: Copy>(
    asked: &Asked<'_>,
    expected: &str,
    read: impl Fn(&str) -> Option<T>,
    set: impl Fn(Meant<'_>, T),
    show: impl Fn(&Filter) -> String,
) -> Reply {
    let (filters, values) = match meant(asked, 1) {
        Ok(meant) => meant,
        Err(refused) => return refused,
    };
    if let Some(word) = values.first() {
        if asked.level < Level::Admin {
            return denied();
        }
        let Some(value) = read(word) else {
            return Reply::Refused(format!("expected {expected}, got '{word}'.\n"));
        };
        for filter in &filters {
            set(*filter, value);
        }
    }
    Reply::Said(lines(&filters, |(_, _, filter)| show(filter)))
}

fn disable(asked: &Asked<'_>, disabled: bool) -> Reply {
    each(asked, |(_, _, filter)| {
        filter.switches.disabled.store(disabled, Relaxed);
        state(filter).to_owned()
    })
}

/// Whether a filter follows streams.
pub(super) fn state(filter: &Filter) -> &'static str {
    if filter.switches.disabled.load(Relaxed) {
        "disabled"
    } else {
        "enabled"
    }
}

fn hard(asked: &Asked<'_>, hard: bool) -> Reply {
    each(asked, |(_, _, filter)| {
        filter.switches.hard_errors.store(hard, Relaxed);
        errors(filter).to_owned()
    })
}

/// What a filter does after an error.
pub(super) fn errors(filter: &Filter) -> &'static str {
    if filter.switches.hard_errors.load(Relaxed) {
        "hard errors"
    } else {
        "soft errors"
    }
}

fn reset_errors(asked: &Asked<'_>) -> Reply {
    each(asked, |(_, _, filter)| {
        filter.reset_errors();
        "errors count from 0".to_owned()
    })
}

fn rate(asked: &Asked<'_>) -> Reply {
    let read = |word: &str| {
        let percent = word.parse::<f64>().ok();
        percent.filter(|percent| (0.0..=100.0).contains(percent))
    };
    let set = |(_, _, filter): Meant<'_>, percent| {
        filter
            .switches
            .rate
            .store(Switches::share(percent), Relaxed);
    };
    setting(asked, "a number from 0.0 to 100.0", read, set, share)
}

/// The rate of a filter.
pub(super) fn share(filter: &Filter) -> String {
    format!("rate {:.2} %", filter.switches.rate_percent())
}

fn logging(asked: &Asked<'_>) -> Reply {
    let expected = "'off', 'on' or 'dontlog-normal'";
    let set = |(_, _, filter): Meant<'_>, logging| filter.switches.set_logging(logging);
    setting(asked, expected, Logging::named, set, |filter| {
        format!("logging {}", filter.switches.logging().name())
    })
}

fn noflush(asked: &Asked<'_>) -> Reply {
    let read = |word: &str| match word {
        "on" => Some(true),
        "off" => Some(false),
        _ => None,
    };
    let set = |(number, _, filter): Meant<'_>, drops| {
        filter.switches.noflush.store(drops, Relaxed);
        if let Some(exports) = &asked.subjects.exports {
            exports.drop_at_end(number, drops);
        }
    };
    setting(asked, "'on' or 'off'", read, set, |filter| {
        format!("noflush {}", on(filter.switches.noflush.load(Relaxed)))
    })
}

/// `on` or `off`.
pub(super) fn on(is_on: bool) -> &'static str {
    if is_on { "on" } else { "off" }
}

fn flush(asked: &Asked<'_>) -> Reply {
    let (filters, _) = match meant(asked, 0) {
        Ok(meant) => meant,
        Err(refused) => return refused,
    };
    let numbers: Vec<usize> = filters.iter().map(|(number, ..)| *number).collect();
    let done = asked.subjects.workers.hand_over(FLUSH_NOW_BUDGET)
        && asked
            .subjects
            .exports
            .as_ref()
            .is_none_or(|exports| exports.flush(&numbers));
    if done {
        Reply::Said(lines(&filters, |_| "flushed".to_owned()))
    } else {
        Reply::Refused(lines(&filters, |_| "not flushed in time".to_owned()))
    }
}

#[cfg(test)]
mod tests;
