//! `log-record`

use super::super::line::{Line, Parse};
use super::filter::FilterBuild;
use super::span::attributes;
use telemetry::program::LogLine;

/// `log-record <severity> [id <int>] [event <name>] [span <name>] [time [<unit>] <sample>] [attr
/// <key> <sample>] … <body> …`
pub fn log_record(build: &mut FilterBuild<'_, '_, '_>, line: &Line<'_>) -> Parse {
    const USAGE: &str = "'log-record <severity> [id <number>] [event <name>] [span <name>] [time [s|ms|us|ns] <sample>] [attr <key> <sample>] … <body> … [{if|unless} <condition>]'";
    line.need(2, || {
        format!("'log-record' : wrong number of arguments. Usage: {USAGE}")
    })?;
    let severity = severity(line)?;
    let end = FilterBuild::end(line, 2);
    let (mut id, mut event, mut span, mut time) = (None, None, None, None);
    let mut list = Vec::new();
    let mut at = 2;
    while at + 1 < end {
        let twice = match line.arg(at) {
            "id" => {
                let text = line.arg(at + 1);
                let number: i64 = text.parse().map_err(|_| {
                    line.fault(at + 1, format!("'id' expects an integer, got '{text}'."))
                })?;
                at += 2;
                id.replace(number).is_some()
            }
            "event" => {
                let name = line.arg(at + 1);
                at += 2;
                event.replace(name).is_some()
            }
            "span" => {
                let slot = build.names.reference(line, at + 1)?;
                let slot = slot.span.ok_or_else(|| {
                    line.fault(at + 1, format!("'{}' is no span.", line.arg(at + 1)))
                })?;
                at += 2;
                span.replace(slot).is_some()
            }
            "time" => {
                let (moment, next) = build.time(line, at + 1)?;
                at = next;
                time.replace(moment).is_some()
            }
            "attr" => {
                let more = attributes(build, line, at, (at + 3).min(end))?;
                list.extend(more);
                at += 3;
                false
            }
            _ => break,
        };
        if twice {
            return Err(line.fault(at, "an option of 'log-record' is already defined."));
        }
    }
    if at >= end {
        return Err(line.fault(end, format!("'log-record' has no body. Usage: {USAGE}")));
    }
    let body = build.value(line, at, end)?;
    let condition = build.condition(line, end)?;
    if id.is_some_and(|id| id < 1) && event.is_some() {
        return Err(line.fault(2, "'id' expects a number from 1 on."));
    }
    build.scope.logs.push(LogLine {
        severity,
        event: event.map(Into::into),
        span,
        time,
        attributes: list,
        body,
        condition,
    });
    Ok(())
}

/// `trace`, `trace2` … `fatal4`: 1 to 24.
fn severity(line: &Line<'_>) -> Parse<u8> {
    const NAMES: [&str; 6] = ["trace", "debug", "info", "warn", "error", "fatal"];
    let word = line.arg(1).to_ascii_lowercase();
    let found = NAMES.iter().zip(0_u8..).find_map(|(name, number)| {
        let step = match word.strip_prefix(name)? {
            "" => 0,
            "2" => 1,
            "3" => 2,
            "4" => 3,
            _ => return None,
        };
        Some(number * 4 + step + 1)
    });
    found.ok_or_else(|| {
        line.fault(
            1,
            format!("unknown severity '{}': expected 'trace', 'debug', 'info', 'warn', 'error' or 'fatal', which 2 to 4 may follow.", line.arg(1)),
        )
    })
}
