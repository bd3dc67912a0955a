//! `sampling`: policies that are evaluated at the end of a stream.

use super::super::line::{Line, Parse};
use super::filter::FilterBuild;
use super::instrumentation::time_ms_at;
use otlp::write;
use telemetry::program::Value;
use telemetry::sampling::{Policy, Rates, Rule, Seen};

/// The attribute with the name of the policy that kept a span; the name is that of the Collector's
/// tail sampling.
const MARK: &str = "tailsampling.policy";
/// The number of keys that `first-seen` remembers: default and maximum.
const KEYS_DEFAULT: usize = 10_000;
const KEYS_MAX: usize = 10_000_000;
/// Thresholds have 56 bits.
const RANDOMNESS: f64 = (1_u64 << 56) as f64;

const RULES: [&str; 11] = [
    "abort",
    "always",
    "duration",
    "first-seen",
    "probability",
    "rate",
    "redispatch",
    "retry",
    "status",
    "termination-state",
    "timeout",
];

/// `sampling <name> <rule> [<argument> …] [{if|unless} <condition>]`, or `sampling ignore-parent`
pub fn sampling(build: &mut FilterBuild<'_, '_, '_>, line: &Line<'_>) -> Parse {
    let name = line.need(1, || {
        format!(
            "'sampling' expects a name and one of: {}.",
            RULES.join(", ")
        )
    })?;
    if name == "ignore-parent" && line.count() == 2 {
        build.program.honours_parent = false;
        return Ok(());
    }
    super::names::named(line, 1)?;
    if build
        .program
        .policies
        .iter()
        .any(|policy| *policy.name == *name)
    {
        return Err(line.fault(1, format!("policy '{name}' already defined.")));
    }
    let end = FilterBuild::end(line, 2);
    let rule = rule(build, line, end)?;
    let condition = build.condition(line, end)?;
    build.program.policies.push(Policy {
        name: name.into(),
        mark: mark(name),
        rule,
        condition,
    });
    Ok(())
}

/// A `KeyValue` with the name of the policy that kept a span.
pub fn mark(name: &str) -> Box<[u8]> {
    let mut mark = Vec::new();
    write::bytes(&mut mark, 1, MARK.as_bytes());
    write::message(&mut mark, 2, |out| write::bytes(out, 1, name.as_bytes()));
    mark.into()
}

/// The threshold that keeps this percentage of all traces.
pub fn threshold(percent: f64) -> u64 {
    ((1.0 - percent / 100.0) * RANDOMNESS) as u64
}

fn rule(build: &mut FilterBuild<'_, '_, '_>, line: &Line<'_>, end: usize) -> Parse<Rule> {
    let word = line.arg(2);
    let plain = |rule: Rule| match end {
        3 => Ok(rule),
        _ => Err(line.fault(3, format!("'{word}' takes no argument."))),
    };
    match word {
        "always" => plain(Rule::Always),
        "retry" => plain(Rule::Retry),
        "redispatch" => plain(Rule::Redispatch),
        "abort" => plain(Rule::Abort),
        "timeout" => plain(Rule::Timeout),
        "status" => statuses(line, end),
        "duration" => match end {
            4 => Ok(Rule::DurationMs(time_ms_at(line, 3, "duration")?)),
            _ => Err(line.fault(3, "'duration' expects a time.")),
        },
        "termination-state" => terminations(line, end),
        "first-seen" => first_seen(build, line, end),
        "rate" => rate(build, line, end),
        "probability" => match line.arg(3).trim_end_matches('%').parse::<f64>() {
            Ok(percent) if end == 4 && (0.0..=100.0).contains(&percent) => {
                Ok(Rule::Probability(threshold(percent)))
            }
            _ => Err(line.fault(3, "'probability' expects a number from 0 to 100.")),
        },
        _ => {
            let hint = super::super::did_you_mean(word, RULES.into_iter());
            Err(line.fault(
                2,
                format!(
                    "unknown policy '{word}'{hint}: expected one of: {}.",
                    RULES.join(", ")
                ),
            ))
        }
    }
}

/// `status <code>|<first>-<last> …`
fn statuses(line: &Line<'_>, end: usize) -> Parse<Rule> {
    let code = |text: &str| {
        text.parse::<u16>()
            .ok()
            .filter(|code| (100..=999).contains(code))
    };
    let mut ranges = Vec::new();
    for at in 3..end {
        let text = line.arg(at);
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        match (code(first), code(last)) {
            (Some(first), Some(last)) if first <= last => ranges.push((first, last)),
            _ => {
                return Err(line.fault(
                    at,
                    format!("'{text}' is neither a status nor a range of them."),
                ));
            }
        }
    }
    if ranges.is_empty() {
        Err(line.fault(end, "'status' expects at least one status."))
    } else {
        Ok(Rule::Status(ranges))
    }
}

/// `termination-state <two characters> …`, `*` for any.
fn terminations(line: &Line<'_>, end: usize) -> Parse<Rule> {
    let mut patterns = Vec::new();
    for at in 3..end {
        match *line.arg(at).as_bytes() {
            [who, when] => patterns.push([who, when]),
            _ => {
                return Err(line.fault(
                    at,
                    "'termination-state' expects two characters each, as 'sH' or 'C*'.",
                ));
            }
        }
    }
    if patterns.is_empty() {
        Err(line.fault(end, "'termination-state' expects at least one state."))
    } else {
        Ok(Rule::Termination(patterns))
    }
}

/// `first-seen <sample> … [max <keys>]`
fn first_seen(build: &mut FilterBuild<'_, '_, '_>, line: &Line<'_>, end: usize) -> Parse<Rule> {
    let (end, keys) = if end > 5 && line.arg(end - 2) == "max" {
        match line.arg(end - 1).parse::<usize>() {
            Ok(keys) if (1..=KEYS_MAX).contains(&keys) => (end - 2, keys),
            _ => {
                return Err(line.fault(
                    end - 1,
                    format!("'max' expects a number from 1 to {KEYS_MAX}."),
                ));
            }
        }
    } else {
        (end, KEYS_DEFAULT)
    };
    let value: Value = build.value(line, 3, end)?;
    Ok(Rule::FirstSeen(value, Seen::new(keys)))
}

/// `rate <number a second> [key <sample> …]`
fn rate(build: &mut FilterBuild<'_, '_, '_>, line: &Line<'_>, end: usize) -> Parse<Rule> {
    let per_second = match line.arg(3).parse::<u32>() {
        Ok(rate @ 1..) => rate,
        _ => return Err(line.fault(3, "'rate' expects a number of streams a second, from 1 on.")),
    };
    let key = match line.arg(4) {
        "key" if end > 5 => Some(build.value(line, 5, end)?),
        _ if end == 4 => None,
        word => return Err(line.fault(4, format!("'{word}' : expected 'key <sample> …'."))),
    };
    let rates = Rates::new(per_second, key.is_some());
    Ok(Rule::Rate(key, rates))
}
