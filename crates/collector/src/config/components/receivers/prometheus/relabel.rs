//! `relabel_configs` and `metric_relabel_configs`.

use crate::config::options::{Kind, Opt, Section, opt};
use crate::config::pattern;

/// A rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelabelConfig {
    /// Labels whose values are put together.
    pub source_labels: Vec<String>,
    /// Text between them.
    pub separator: String,
    /// An expression that must match the whole.
    pub regex: String,
    /// Of `hashmod`; not zero there.
    pub modulus: u64,
    /// The label that is set.
    pub target_label: String,
    /// Its value, with groups of the expression.
    pub replacement: String,
    /// Effect of the rule.
    pub action: Action,
}

/// Effect of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Action {
    Replace,
    Lowercase,
    Uppercase,
    Keep,
    Drop,
    KeepEqual,
    DropEqual,
    HashMod,
    LabelMap,
    LabelDrop,
    LabelKeep,
}

const ACTIONS: [(&str, Action); 11] = [
    ("replace", Action::Replace),
    ("lowercase", Action::Lowercase),
    ("uppercase", Action::Uppercase),
    ("keep", Action::Keep),
    ("drop", Action::Drop),
    ("keepequal", Action::KeepEqual),
    ("dropequal", Action::DropEqual),
    ("hashmod", Action::HashMod),
    ("labelmap", Action::LabelMap),
    ("labeldrop", Action::LabelDrop),
    ("labelkeep", Action::LabelKeep),
];
#[rustfmt::skip]
const WORDS: &[&str] = &[
    "replace", "lowercase", "uppercase", "keep", "drop", "keepequal", "dropequal", "hashmod", "labelmap", "labeldrop", "labelkeep",
];

#[rustfmt::skip]
pub(super) const OPTIONS: &[Opt] = &[
    opt("source_labels", Kind::Texts, "", "labels whose values are put together"),
    opt("separator", Kind::Text, ";", "what stands between them"),
    opt("regex", Kind::Text, "(.*)", "an expression that must match the whole"),
    opt("modulus", Kind::Int(0, i64::MAX), "0", "of `hashmod`"),
    opt("target_label", Kind::Text, "", "the label that is set"),
    opt("replacement", Kind::Text, "$1", "its value, with groups of the expression; `$$1` in a configuration of the Collector"),
    opt("action", Kind::WordAnyCase(WORDS), "replace", "what the rule does"),
];

impl RelabelConfig {
    /// The expression as it is matched: against the whole text.
    #[must_use]
    pub fn anchored(&self) -> String {
        format!("^(?s:{})$", self.regex)
    }
}

/// The rules of an option.
pub(super) fn rules(section: &Section<'_>, name: &str) -> Vec<RelabelConfig> {
    let rules = section.sections(name);
    rules.iter().map(rule).collect()
}

fn rule(section: &Section<'_>) -> RelabelConfig {
    let rule = RelabelConfig {
        source_labels: section.texts("source_labels"),
        separator: section.text("separator"),
        regex: section.text("regex"),
        modulus: section.int("modulus"),
        target_label: section.text("target_label"),
        replacement: section.text("replacement"),
        action: section.choice("action", &ACTIONS),
    };
    if let Err(why) = pattern::compile(&rule.anchored()) {
        section.error("regex", &why);
    }
    let needs_target = matches!(
        rule.action,
        Action::Replace
            | Action::Lowercase
            | Action::Uppercase
            | Action::KeepEqual
            | Action::DropEqual
            | Action::HashMod
    );
    if needs_target && rule.target_label.is_empty() {
        let action = section.text("action");
        let message =
            format!("relabel configuration for {action} action requires 'target_label' value");
        section.fault(&message);
    }
    if rule.action == Action::HashMod && rule.modulus == 0 {
        section.fault("relabel configuration for hashmod requires non-zero modulus");
    }
    rule
}
