//! Policies from their sections.

use tail::settings::{ErrorMode, Policy, PolicyKind, StatusCodes};

use super::condition::{self, Context};
use crate::config::options::Section;
use crate::config::pattern;
use crate::config::source::shortened;

/// Blocks of options: the types that have some.
const BLOCKS: [&str; 15] = [
    "latency",
    "numeric_attribute",
    "probabilistic",
    "status_code",
    "string_attribute",
    "boolean_attribute",
    "trace_state",
    "rate_limiting",
    "bytes_limiting",
    "span_count",
    "ottl_condition",
    "and",
    "not",
    "drop",
    "composite",
];
/// Bytes of a key and a value of a tracestate together.
const TRACE_STATE_BYTES_MAX: usize = 255;

/// A policy; nothing where its type is none.
pub(super) fn policy(section: &Section<'_>) -> Option<Policy> {
    let kind = section.text("type");
    for block in BLOCKS {
        if block != kind && section.has(block) && !kind.is_empty() {
            let message = format!("means nothing to a policy of type '{kind}'");
            section.warn(block, &message);
        }
    }
    let options = match BLOCKS.iter().find(|block| **block == kind) {
        Some(block) if section.knows(block) => section.section(block),
        _ => section.clone(),
    };
    Some(Policy {
        name: section.text("name"),
        kind: policy_kind(&kind, section, &options)?,
    })
}

fn policy_kind(kind: &str, section: &Section<'_>, options: &Section<'_>) -> Option<PolicyKind> {
    Some(match kind {
        "always_sample" => PolicyKind::AlwaysSample,
        "trace_flags" => PolicyKind::TraceFlags,
        "latency" => latency(options),
        "numeric_attribute" => numeric_attribute(options),
        "probabilistic" => probabilistic(options),
        "status_code" => PolicyKind::StatusCode(status_codes(options)),
        "string_attribute" => string_attribute(options),
        "boolean_attribute" => PolicyKind::BooleanAttribute {
            key: key(options),
            value: options.flag("value"),
            invert: options.flag("invert_match"),
        },
        "trace_state" => trace_state(options),
        "rate_limiting" => PolicyKind::RateLimiting {
            spans_per_second: rate(options, "spans_per_second"),
            burst_capacity: options.int("burst_capacity"),
        },
        "bytes_limiting" => PolicyKind::BytesLimiting {
            bytes_per_second: rate(options, "bytes_per_second"),
            burst_capacity: options.int("burst_capacity"),
        },
        "span_count" => span_count(options),
        "ottl_condition" => ottl_condition(options),
        "and" if section.knows("and") => {
            PolicyKind::And(policies(options, "and_sub_policy", "it keeps every trace"))
        }
        "drop" if section.knows("drop") => {
            PolicyKind::Drop(policies(options, "drop_sub_policy", "it drops every trace"))
        }
        "not" if section.knows("not") => {
            if options.written("not_sub_policy").is_none() {
                options.error("not_sub_policy", "must be a policy");
            }
            PolicyKind::Not(Box::new(policy(&options.section("not_sub_policy"))?))
        }
        "composite" if section.knows("composite") => composite(options),
        // The table has told it.
        _ => return None,
    })
}

fn policies(options: &Section<'_>, name: &str, without: &str) -> Vec<Policy> {
    let sections = options.sections(name);
    if sections.is_empty() {
        options.warn(name, &format!("there are no policies: {without}"));
    }
    sections.iter().filter_map(policy).collect()
}

fn key(options: &Section<'_>) -> String {
    let key = options.text("key");
    if key.is_empty() {
        options.warn("key", "names no attribute: nothing matches");
    }
    key
}

fn rate(options: &Section<'_>, name: &str) -> u64 {
    let rate = options.int(name);
    if rate == 0 {
        options.warn(name, "is 0: no trace is kept");
    }
    rate
}

fn latency(options: &Section<'_>) -> PolicyKind {
    let threshold_ms: u64 = options.int("threshold_ms");
    let upper_threshold_ms: u64 = options.int("upper_threshold_ms");
    if options.written("threshold_ms").is_none() {
        options.warn(
            "threshold_ms",
            "is not written: every trace that takes a millisecond is kept",
        );
    }
    if upper_threshold_ms > 0 && upper_threshold_ms <= threshold_ms {
        options.warn(
            "upper_threshold_ms",
            "is not above 'threshold_ms': nothing matches",
        );
    }
    PolicyKind::Latency {
        threshold_ms,
        upper_threshold_ms,
    }
}

fn numeric_attribute(options: &Section<'_>) -> PolicyKind {
    let (min, max) = (
        options.int_unless_zero("min_value"),
        options.int_unless_zero("max_value"),
    );
    if min.is_none() && max.is_none() {
        options.error("min_value", "or 'max_value' must be there, and not 0");
    }
    if let (Some(min), Some(max)) = (min, max)
        && min > max
    {
        options.warn("min_value", "is above 'max_value': nothing matches");
    }
    PolicyKind::NumericAttribute {
        key: key(options),
        min,
        max,
        invert: options.flag("invert_match"),
    }
}

fn probabilistic(options: &Section<'_>) -> PolicyKind {
    let percentage = options.number("sampling_percentage");
    if percentage == 0.0 {
        options.warn("sampling_percentage", "is 0: no trace is kept");
    }
    PolicyKind::Probabilistic {
        percentage: percentage.min(100.0),
        hash_salt: options.text("hash_salt"),
    }
}

fn status_codes(options: &Section<'_>) -> StatusCodes {
    let mut codes = StatusCodes::default();
    let texts = options.texts_at("status_codes");
    if texts.is_empty() {
        options.error("status_codes", "must name OK, ERROR or UNSET");
    }
    for (text, at) in texts {
        match text.as_str() {
            "OK" => codes.ok = true,
            "ERROR" => codes.error = true,
            "UNSET" => codes.unset = true,
            _ => {
                let upper = text.to_ascii_uppercase();
                let known = ["OK", "ERROR", "UNSET"].contains(&upper.as_str());
                let message = match known {
                    true => format!("'{text}' is written {upper}"),
                    false => format!(
                        "'{}' is no status: OK, ERROR and UNSET are",
                        shortened(&text)
                    ),
                };
                let path = &options.path;
                options
                    .notes
                    .error(at, format!("{path}::status_codes: {message}"));
            }
        }
    }
    codes
}

fn string_attribute(options: &Section<'_>) -> PolicyKind {
    let regex = options.flag("enabled_regex_matching");
    let values = options.texts_at("values");
    if values.is_empty() {
        options.warn("values", "there are none: nothing matches");
    }
    for (text, at) in &values {
        let path = format!("{}::values", options.path);
        if regex {
            if let Err(reason) = pattern::check(text) {
                options.notes.error(*at, format!("{path}: {reason}"));
            }
        } else if pattern::looks_like_pattern(text) {
            let shown = shortened(text);
            let message = format!(
                "{path}: '{shown}' looks like a pattern, but is compared as a whole: set 'enabled_regex_matching: true'"
            );
            options.notes.warn(*at, message);
        }
    }
    PolicyKind::StringAttribute {
        key: key(options),
        values: values.into_iter().map(|(text, _)| text).collect(),
        regex,
        invert: options.flag("invert_match"),
    }
}

fn trace_state(options: &Section<'_>) -> PolicyKind {
    let key = key(options);
    let values = options.texts("values");
    for value in &values {
        if key.len() + value.len() > TRACE_STATE_BYTES_MAX {
            let message = format!(
                "a key and a value are longer than {TRACE_STATE_BYTES_MAX} bytes: no tracestate has them"
            );
            options.warn("values", &message);
        }
    }
    if values.is_empty() {
        options.warn("values", "there are none: nothing matches");
    }
    PolicyKind::TraceState { key, values }
}

fn span_count(options: &Section<'_>) -> PolicyKind {
    let (min, max): (u64, u64) = (options.int("min_spans"), options.int("max_spans"));
    if max > 0 && max < min {
        options.warn("max_spans", "is below 'min_spans': nothing matches");
    }
    PolicyKind::SpanCount { min, max }
}

fn ottl_condition(options: &Section<'_>) -> PolicyKind {
    let conditions = |name: &str, context: Context| {
        let texts = options.whole_texts_at(name);
        for (text, at) in &texts {
            if let Err(reason) = condition::check(text, context) {
                let path = &options.path;
                options
                    .notes
                    .error(*at, format!("{path}::{name}: {reason}"));
            }
        }
        texts.into_iter().map(|(text, _)| text).collect::<Vec<_>>()
    };
    let span = conditions("span", Context::Span);
    let span_event = conditions("spanevent", Context::SpanEvent);
    if span.is_empty() && span_event.is_empty() {
        options.fault("needs a condition in 'span' or 'spanevent'");
    }
    PolicyKind::OttlCondition {
        span,
        span_event,
        error_mode: options.choice(
            "error_mode",
            &[
                ("propagate", ErrorMode::Propagate),
                ("ignore", ErrorMode::Ignore),
                ("silent", ErrorMode::Silent),
            ],
        ),
    }
}

fn composite(options: &Section<'_>) -> PolicyKind {
    let policies = policies(options, "composite_sub_policy", "it keeps no trace");
    let names: Vec<&str> = policies.iter().map(|policy| policy.name.as_str()).collect();
    let order = options.texts("policy_order");
    for name in order.iter().filter(|name| !names.contains(&name.as_str())) {
        let message = format!("'{name}' is none of its policies");
        options.warn("policy_order", &message);
    }
    // Names that are there in another order than the policies are.
    let known: Vec<&str> = order
        .iter()
        .map(String::as_str)
        .filter(|name| names.contains(name))
        .collect();
    let mut sorted = known.clone();
    sorted.sort_by_key(|name| names.iter().position(|other| other == name));
    if known != sorted {
        let message =
            "has no effect: the order of 'composite_sub_policy' counts, and it is another one";
        options.warn("policy_order", message);
    }
    let rates = options.sections("rate_allocation");
    let rates = rates.iter().map(|rate| {
        let (name, percent): (String, u64) = (rate.text("policy"), rate.int("percent"));
        if !names.contains(&name.as_str()) {
            rate.warn("policy", &format!("'{name}' is none of its policies"));
        }
        (name, percent)
    });
    let rates: Vec<(String, u64)> = rates.collect();
    if rates.iter().map(|(_, percent)| percent).sum::<u64>() > 100 {
        options.warn("rate_allocation", "shares more than 100 per cent");
    }
    let spans_per_second_max: u64 = options.int("max_total_spans_per_second");
    if spans_per_second_max == 0 {
        options.warn("max_total_spans_per_second", "is 0: no trace is kept");
    }
    PolicyKind::Composite {
        spans_per_second_max,
        policies,
        rates,
    }
}
