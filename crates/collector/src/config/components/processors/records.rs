//! `include` and `exclude` of metrics and log records, as `filter` has them.

use super::matching::{Attributes, attributes};
use crate::config::options::{Kind, Opt, Section, Table, opt};
use crate::config::pattern;

/// A match of metrics.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricMatching {
    /// Whether texts are regular expressions.
    pub regex: bool,
    /// Its name is one of these; none: any.
    pub names: Vec<String>,
    /// Attributes of its resource.
    pub resources: Attributes,
}

/// A match of log records: one of each list that is not empty, and all of the attributes.
#[derive(Clone, Debug, PartialEq)]
pub struct LogMatching {
    /// Whether texts are regular expressions.
    pub regex: bool,
    /// Attributes of its resource.
    pub resources: Attributes,
    /// Its attributes.
    pub attributes: Attributes,
    /// Its `severity_text`.
    pub severity_texts: Vec<String>,
    /// Its body as a text.
    pub bodies: Vec<String>,
    /// Its `severity_number`.
    pub severity: Option<Severity>,
}

/// The least severity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Severity {
    /// `SeverityNumber`
    pub min: i32,
    /// Whether records without a severity match.
    pub match_undefined: bool,
}

#[rustfmt::skip]
const ATTRIBUTE: &[Opt] = &[
    opt("key", Kind::Text, "", "the attribute"),
    opt("value", Kind::Any, "", "its value; any where it is not written"),
];
#[rustfmt::skip]
pub(crate) const CACHE: &[Opt] = &[
    opt("cacheenabled", Kind::Flag, "false", "results are remembered"),
    opt("cachemaxnumentries", Kind::Int(0, i64::MAX), "0", "how many"),
];
const NO_EXPR: &str =
    "the language expr is not supported: write conditions in OTTL ('metric_conditions')";
pub(crate) const NO_CACHE: &str = "results are not remembered: matches are fast without";

/// Options of a match of metrics.
#[rustfmt::skip]
pub(crate) const METRICS: Table = &[&[
    opt("match_type", Kind::Word(&["strict", "regexp", "expr"]), "strict", "strict or regexp"),
    opt("regexp", Kind::Section(&[CACHE]), "", "how regular expressions are kept").no_effect(NO_CACHE),
    opt("metric_names", Kind::Texts, "", "names of metrics"),
    opt("resource_attributes", Kind::Sections(&[ATTRIBUTE]), "", "attributes of the resource; all of them"),
    opt("expressions", Kind::Texts, "", "in the language expr").refused(NO_EXPR),
]];
#[rustfmt::skip]
const SEVERITY: &[Opt] = &[
    opt("min", Kind::Text, "", "the least severity: a number from 1 to 24, or a name such as WARN"),
    opt("match_undefined", Kind::Flag, "false", "records without a severity match"),
];
/// Options of a match of log records.
#[rustfmt::skip]
pub(crate) const LOGS: Table = &[&[
    opt("match_type", Kind::Word(&["strict", "regexp"]), "strict", "strict or regexp"),
    opt("resource_attributes", Kind::Sections(&[ATTRIBUTE]), "", "attributes of the resource; all of them"),
    opt("record_attributes", Kind::Sections(&[ATTRIBUTE]), "", "attributes of the record; all of them"),
    opt("severity_texts", Kind::Texts, "", "`severity_text`"),
    opt("severity_number", Kind::Maybe(&[SEVERITY]), "", "`severity_number`"),
    opt("bodies", Kind::Texts, "", "the body as a text"),
]];

/// A match of metrics, from its section.
pub(crate) fn metrics(section: &Section<'_>) -> MetricMatching {
    if section.text("match_type") == "expr" {
        section.error("match_type", NO_EXPR);
    }
    let regex = section.text("match_type") == "regexp";
    if regex {
        patterns(section, "metric_names");
    }
    MetricMatching {
        regex,
        names: section.texts("metric_names"),
        resources: attributes(section, "resource_attributes", regex),
    }
}

/// A match of log records, from its section.
pub(crate) fn logs(section: &Section<'_>) -> LogMatching {
    let regex = section.text("match_type") == "regexp";
    if regex {
        patterns(section, "severity_texts");
        patterns(section, "bodies");
    }
    let severity = section.maybe_filled("severity_number");
    LogMatching {
        regex,
        resources: attributes(section, "resource_attributes", regex),
        attributes: attributes(section, "record_attributes", regex),
        severity_texts: section.texts("severity_texts"),
        bodies: section.texts("bodies"),
        severity: severity.and_then(|section| self::severity(&section)),
    }
}

fn patterns(section: &Section<'_>, name: &str) {
    for (text, at) in section.texts_at(name) {
        if let Err(reason) = pattern::check(&text) {
            let message = format!("{}::{name}: {reason}", section.path);
            section.notes.error(at, message);
        }
    }
}

fn severity(section: &Section<'_>) -> Option<Severity> {
    let text = section.text("min");
    let Some(min) = severity_number(&text) else {
        section.error(
            "min",
            "must be a severity: 1 to 24, or a name such as WARN or ERROR2",
        );
        return None;
    };
    Some(Severity {
        min,
        match_undefined: section.flag("match_undefined"),
    })
}

/// The number of a severity: a number, or a name with a number from 2 to 4 behind it (logs data
/// model, "Displaying Severity"). An empty text is 0, below all of them.
fn severity_number(text: &str) -> Option<i32> {
    const NAMES: [&str; 6] = ["TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"];
    if text.is_empty() {
        return Some(0);
    }
    if let Ok(number) = text.parse() {
        return (1..=24).contains(&number).then_some(number);
    }
    let upper = text.to_ascii_uppercase();
    let (place, name) = NAMES
        .iter()
        .enumerate()
        .find(|(_, name)| upper.starts_with(**name))?;
    let step = match &upper[name.len()..] {
        "" => 0,
        "2" => 1,
        "3" => 2,
        "4" => 3,
        _ => return None,
    };
    Some(4 * place as i32 + 1 + step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn severities_have_numbers_and_names() {
        for (text, number) in [
            ("", Some(0)),
            ("1", Some(1)),
            ("24", Some(24)),
            ("25", None),
            ("0", None),
            ("trace", Some(1)),
            ("INFO", Some(9)),
            ("Warn2", Some(14)),
            ("FATAL4", Some(24)),
            ("FATAL5", None),
            ("WARNING", None),
            ("none", None),
        ] {
            assert_eq!(severity_number(text), number, "{text}");
        }
    }
}
