//! Policies as they would be written: what the dashboard shows, and dry runs begin with.

use std::fmt::Write as _;

use tail::settings::{ErrorMode, Policy, PolicyKind, StatusCodes};

/// The list `policies` as YAML, which [`crate::config::policies::policies`] reads as the same policies. Options that have
/// their defaults are left out.
#[must_use]
pub fn yaml(policies: &[Policy]) -> String {
    let mut out = String::new();
    list(policies, 0, &mut out);
    out
}

/// Writes policies, each with its options below it; `indent` is the column of their dashes.
fn list(policies: &[Policy], indent: usize, out: &mut String) {
    for policy in policies {
        let _ = write!(out, "{:indent$}- ", "");
        body(policy, indent + 2, out);
    }
}

/// Writes a policy whose first key stands where the text ends, and the others in this column.
fn body(policy: &Policy, indent: usize, out: &mut String) {
    let kind = kind(&policy.kind);
    let _ = writeln!(out, "name: {}", text(&policy.name));
    let _ = writeln!(out, "{:indent$}type: {kind}", "");
    let mut options = Options {
        kind,
        indent,
        is_begun: false,
        out,
    };
    options.all(&policy.kind);
}

fn kind(kind: &PolicyKind) -> &'static str {
    match kind {
        PolicyKind::AlwaysSample => "always_sample",
        PolicyKind::Latency { .. } => "latency",
        PolicyKind::NumericAttribute { .. } => "numeric_attribute",
        PolicyKind::Probabilistic { .. } => "probabilistic",
        PolicyKind::StatusCode(_) => "status_code",
        PolicyKind::StringAttribute { .. } => "string_attribute",
        PolicyKind::BooleanAttribute { .. } => "boolean_attribute",
        PolicyKind::TraceState { .. } => "trace_state",
        PolicyKind::TraceFlags => "trace_flags",
        PolicyKind::RateLimiting { .. } => "rate_limiting",
        PolicyKind::BytesLimiting { .. } => "bytes_limiting",
        PolicyKind::SpanCount { .. } => "span_count",
        PolicyKind::OttlCondition { .. } => "ottl_condition",
        PolicyKind::And(_) => "and",
        PolicyKind::Not(_) => "not",
        PolicyKind::Drop(_) => "drop",
        PolicyKind::Composite { .. } => "composite",
    }
}

/// The block of options of one policy.
struct Options<'o> {
    kind: &'static str,
    indent: usize,
    is_begun: bool,
    out: &'o mut String,
}

impl Options<'_> {
    fn all(&mut self, kind: &PolicyKind) {
        match kind {
            PolicyKind::AlwaysSample | PolicyKind::TraceFlags => {}
            PolicyKind::Latency {
                threshold_ms,
                upper_threshold_ms,
            } => {
                self.put("threshold_ms", threshold_ms);
                self.put_unless_zero("upper_threshold_ms", *upper_threshold_ms);
            }
            PolicyKind::NumericAttribute {
                key,
                min,
                max,
                invert,
            } => {
                self.put("key", text(key));
                for (name, value) in [("min_value", min), ("max_value", max)] {
                    if let Some(value) = value {
                        self.put(name, value);
                    }
                }
                self.put_if("invert_match", *invert);
            }
            PolicyKind::Probabilistic {
                percentage,
                hash_salt,
            } => {
                self.put("sampling_percentage", percentage);
                if !hash_salt.is_empty() {
                    self.put("hash_salt", text(hash_salt));
                }
            }
            PolicyKind::StatusCode(codes) => self.put("status_codes", statuses(*codes)),
            PolicyKind::StringAttribute {
                key,
                values,
                regex,
                invert,
            } => {
                self.put("key", text(key));
                self.put("values", texts(values));
                self.put_if("enabled_regex_matching", *regex);
                self.put_if("invert_match", *invert);
            }
            PolicyKind::BooleanAttribute { key, value, invert } => {
                self.put("key", text(key));
                self.put("value", value);
                self.put_if("invert_match", *invert);
            }
            PolicyKind::TraceState { key, values } => {
                self.put("key", text(key));
                self.put("values", texts(values));
            }
            PolicyKind::RateLimiting {
                spans_per_second,
                burst_capacity,
            } => {
                self.put("spans_per_second", spans_per_second);
                self.put_unless_zero("burst_capacity", *burst_capacity);
            }
            PolicyKind::BytesLimiting {
                bytes_per_second,
                burst_capacity,
            } => {
                self.put("bytes_per_second", bytes_per_second);
                self.put_unless_zero("burst_capacity", *burst_capacity);
            }
            PolicyKind::SpanCount { min, max } => {
                self.put("min_spans", min);
                self.put_unless_zero("max_spans", *max);
            }
            PolicyKind::OttlCondition {
                span,
                span_event,
                error_mode,
            } => self.conditions(span, span_event, *error_mode),
            PolicyKind::And(subs) => self.subs("and_sub_policy", subs),
            PolicyKind::Drop(subs) => self.subs("drop_sub_policy", subs),
            PolicyKind::Not(sub) => {
                self.begin();
                let (at, inner) = (self.indent + 2, self.indent + 4);
                let _ = write!(self.out, "{:at$}not_sub_policy:\n{:inner$}", "", "");
                body(sub, inner, self.out);
            }
            PolicyKind::Composite {
                spans_per_second_max,
                policies,
                rates,
            } => {
                self.put("max_total_spans_per_second", spans_per_second_max);
                self.subs("composite_sub_policy", policies);
                self.rates(rates);
            }
        }
    }

    /// Writes the key of the block before its first option.
    fn begin(&mut self) {
        if !self.is_begun {
            self.is_begun = true;
            let (indent, kind) = (self.indent, self.kind);
            let _ = writeln!(self.out, "{:indent$}{kind}:", "");
        }
    }

    fn put(&mut self, name: &str, value: impl std::fmt::Display) {
        self.begin();
        let at = self.indent + 2;
        let _ = writeln!(self.out, "{:at$}{name}: {value}", "");
    }

    fn put_unless_zero(&mut self, name: &str, value: u64) {
        if value != 0 {
            self.put(name, value);
        }
    }

    fn put_if(&mut self, name: &str, value: bool) {
        if value {
            self.put(name, "true");
        }
    }

    fn conditions(&mut self, span: &[String], span_event: &[String], error_mode: ErrorMode) {
        match error_mode {
            ErrorMode::Propagate => {}
            ErrorMode::Ignore => self.put("error_mode", "ignore"),
            ErrorMode::Silent => self.put("error_mode", "silent"),
        }
        for (name, conditions) in [("span", span), ("spanevent", span_event)] {
            if !conditions.is_empty() {
                self.put(name, texts(conditions));
            }
        }
    }

    fn subs(&mut self, name: &str, subs: &[Policy]) {
        if subs.is_empty() {
            return;
        }
        self.begin();
        let at = self.indent + 2;
        let _ = writeln!(self.out, "{:at$}{name}:", "");
        list(subs, at + 2, self.out);
    }

    fn rates(&mut self, rates: &[(String, u64)]) {
        if rates.is_empty() {
            return;
        }
        self.begin();
        let (at, inner) = (self.indent + 2, self.indent + 4);
        let _ = writeln!(self.out, "{:at$}rate_allocation:", "");
        for (policy, percent) in rates {
            let policy = text(policy);
            let _ = writeln!(
                self.out,
                "{:inner$}- {{ policy: {policy}, percent: {percent} }}",
                ""
            );
        }
    }
}

fn statuses(codes: StatusCodes) -> String {
    let names = [
        (codes.error, "ERROR"),
        (codes.ok, "OK"),
        (codes.unset, "UNSET"),
    ];
    let names = names.iter().filter(|(is_in, _)| *is_in);
    let names: Vec<&str> = names.map(|(_, name)| *name).collect();
    format!("[{}]", names.join(", "))
}

fn texts(texts: &[String]) -> String {
    let texts: Vec<String> = texts.iter().map(|one| text(one)).collect();
    format!("[{}]", texts.join(", "))
}

/// A text as a scalar of YAML: plain where it is a word, else in double quotes. A dollar is two, so that nothing in it is a
/// reference.
fn text(text: &str) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
    let begins = text.starts_with(|c: char| c.is_ascii_alphabetic());
    const OTHER: [&str; 8] = ["true", "false", "null", "yes", "no", "on", "off", "nan"];
    let is_other = OTHER.iter().any(|other| text.eq_ignore_ascii_case(other));
    if begins && !is_other && text.chars().all(is_word) {
        return text.to_owned();
    }
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '$' => out.push_str("$$"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}') => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
