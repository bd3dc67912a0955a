//! `retry-budget` and `outlier-ejection`, which HAProxy does not have (docs/resilience.md).

use std::time::Duration;

use super::Shared;
use super::line::{Cursor, Line, Parse};
use super::proxy::ProxyBuild;
use crate::model::{OutlierEjection, RetryBudget, ServerOptions};

/// Default number of retries per second in addition to the ratio.
const MIN_RETRIES_PER_S: u32 = 10;
/// The largest value of `min`, `errors` and `requests`.
const COUNT_MAX: u32 = 1_000_000;
/// Default number of consecutive errors for an ejection, if no other reason is configured.
const ERRORS: u32 = 5;
/// The range of the factor `latency` in percent, exclusive and inclusive.
const LATENCY_PERCENT: (u32, u32) = (100, 100_000);
/// The range of the times `interval` and `ejection`.
const TIMES: std::ops::RangeInclusive<Duration> =
    Duration::from_millis(10)..=Duration::from_secs(24 * 60 * 60);

/// `retry-budget <ratio>% [min <number>]` or `retry-budget none`
pub fn retry_budget(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    if line.arg(1) == "none" {
        build.proxy.retry_budget = None;
        return line.at_most(1);
    }
    let mut cursor = Cursor { line: *line, at: 1 };
    let mut budget = RetryBudget {
        percent: percent(&mut cursor, 0)?,
        min_per_s: MIN_RETRIES_PER_S,
    };
    match cursor.take() {
        "" => {}
        "min" => {
            budget.min_per_s = count(&mut cursor, 0)?;
            line.at_most(3)?;
        }
        word => {
            return Err(cursor.fault(format!(
                "'retry-budget' expects 'min' after its ratio, got '{word}'."
            )));
        }
    }
    build.proxy.retry_budget = Some(budget);
    Ok(())
}

/// `outlier-ejection [errors <n>] [success-rate <p>%] [latency <x>] [requests <n>] [interval <t>]
/// [ejection <t>] [max-ejected <p>%]`
pub fn outlier_ejection(
    options: &mut ServerOptions,
    cursor: &mut Cursor<'_>,
    shared: &mut Shared<'_>,
) -> Parse {
    let mut rules = OutlierEjection::default();
    loop {
        let word = cursor.peek();
        // An unknown word is the next option of the server.
        let is_known = matches!(
            word,
            "errors"
                | "success-rate"
                | "latency"
                | "requests"
                | "interval"
                | "ejection"
                | "max-ejected"
        );
        if !is_known {
            break;
        }
        cursor.take();
        match word {
            "errors" => rules.errors = count(cursor, 1)?,
            "success-rate" => rules.success_percent = percent(cursor, 1)?,
            "latency" => rules.latency_percent = factor(cursor)?,
            "requests" => rules.requests = count(cursor, 1)?,
            "interval" => rules.interval = time(cursor, shared)?,
            "ejection" => rules.ejection = time(cursor, shared)?,
            _ => rules.max_percent = percent(cursor, 1)?,
        }
    }
    if (rules.errors, rules.success_percent, rules.latency_percent) == (0, 0, 0) {
        rules.errors = ERRORS;
    }
    options.checks.ejection = Some(rules);
    Ok(())
}

/// `no-outlier-ejection`
pub fn no_outlier_ejection(
    options: &mut ServerOptions,
    _: &mut Cursor<'_>,
    _: &mut Shared<'_>,
) -> Parse {
    options.checks.ejection = None;
    Ok(())
}

/// A whole percentage up to 100, with the sign `%`.
fn percent(cursor: &mut Cursor<'_>, least: u32) -> Parse<u32> {
    let name = cursor.last();
    let text = cursor.value("a percentage")?;
    let number = text.strip_suffix('%').and_then(digits);
    number
        .filter(|number| (least..=100).contains(number))
        .ok_or_else(|| {
            cursor.fault(format!(
                "'{name}' expects a percentage from {least}% to 100%, got '{text}'."
            ))
        })
}

fn count(cursor: &mut Cursor<'_>, least: u32) -> Parse<u32> {
    let name = cursor.last();
    let text = cursor.value("a number")?;
    digits(text)
        .filter(|number| (least..=COUNT_MAX).contains(number))
        .ok_or_else(|| {
            cursor.fault(format!(
                "'{name}' expects a number from {least} to {COUNT_MAX}, got '{text}'."
            ))
        })
}

/// A factor with up to two decimals, in percent.
fn factor(cursor: &mut Cursor<'_>) -> Parse<u32> {
    let name = cursor.last();
    let text = cursor.value("a factor")?;
    let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
    let hundredths = match decimals.len() {
        1 => digits(decimals).map(|tenths| tenths * 10),
        2 => digits(decimals),
        _ => None,
    };
    let percent = digits(whole)
        .zip(hundredths)
        .and_then(|(whole, hundredths)| whole.checked_mul(100)?.checked_add(hundredths));
    let (above, most) = LATENCY_PERCENT;
    percent
        .filter(|percent| *percent > above && *percent <= most)
        .ok_or_else(|| {
            cursor.fault(format!(
                "'{name}' expects a factor above 1 and up to {}, got '{text}'.",
                most / 100
            ))
        })
}

fn time(cursor: &mut Cursor<'_>, shared: &mut Shared<'_>) -> Parse<Duration> {
    let name = cursor.last();
    let text = cursor.value("a time")?;
    let time = shared.time(&cursor.line, cursor.at - 1, name)?;
    if TIMES.contains(&time) {
        Ok(time)
    } else {
        Err(cursor.fault(format!(
            "'{name}' expects a time from 10ms to 24h, got '{text}'."
        )))
    }
}

/// A number that consists only of digits.
fn digits(text: &str) -> Option<u32> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}
