//! Relabeling: rules that change, keep or drop labels (Prometheus' documentation,
//! `relabel_config`).

use md5::{Digest, Md5};
use regex_automata::meta::Regex;
use regex_automata::util::interpolate;

use super::text::Labels;
use crate::config::components::receivers::prometheus::relabel::{Action, RelabelConfig};
use crate::config::pattern;

/// A rule whose expression is compiled.
#[derive(Debug)]
pub(super) struct Rule {
    settings: RelabelConfig,
    regex: Regex,
}

/// Compiles rules.
///
/// # Errors
/// Why an expression cannot be compiled.
pub(super) fn rules(settings: &[RelabelConfig]) -> Result<Vec<Rule>, String> {
    let rules = settings.iter().map(|settings| {
        Ok(Rule {
            regex: pattern::compile(&settings.anchored())?,
            settings: settings.clone(),
        })
    });
    rules.collect()
}

/// Applies rules in their order. Returns whether the labels are kept.
pub(super) fn apply(rules: &[Rule], labels: &mut Labels) -> bool {
    rules.iter().all(|rule| rule.apply(labels))
}

impl Rule {
    fn apply(&self, labels: &mut Labels) -> bool {
        let own = &self.settings;
        let values = own.source_labels.iter();
        let values = values.map(|name| labels.get(name).map_or("", String::as_str));
        let value = values.collect::<Vec<_>>().join(&own.separator);
        let target = || labels.get(&own.target_label).map_or("", String::as_str);
        match own.action {
            Action::Keep => return self.regex.is_match(&value),
            Action::Drop => return !self.regex.is_match(&value),
            Action::KeepEqual => return target() == value,
            Action::DropEqual => return target() != value,
            Action::Replace => self.replace(&value, labels),
            Action::Lowercase => set(labels, &own.target_label, value.to_lowercase()),
            Action::Uppercase => set(labels, &own.target_label, value.to_uppercase()),
            Action::HashMod => {
                let hash = Md5::digest(value.as_bytes());
                let last = hash[8..].iter();
                let number = last.fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
                let rest = number % own.modulus.max(1);
                set(labels, &own.target_label, rest.to_string());
            }
            Action::LabelMap => {
                let matching = labels.iter().filter_map(|(name, value)| {
                    let name = self.expanded(&own.replacement, name)?;
                    Some((name, value.clone()))
                });
                let mapped: Vec<_> = matching.collect();
                for (name, value) in mapped {
                    set(labels, &name, value);
                }
            }
            Action::LabelDrop => labels.retain(|name, _| !self.regex.is_match(name)),
            Action::LabelKeep => labels.retain(|name, _| self.regex.is_match(name)),
        }
        true
    }

    fn replace(&self, value: &str, labels: &mut Labels) {
        let own = &self.settings;
        let Some(target) = self.expanded(&own.target_label, value) else {
            return;
        };
        if !target.is_empty() {
            let made = self.expanded(&own.replacement, value);
            set(labels, &target, made.unwrap_or_default());
        }
    }

    /// A template with what its groups match in a text; none where the text does not match.
    fn expanded(&self, template: &str, text: &str) -> Option<String> {
        let mut captures = self.regex.create_captures();
        self.regex.captures(text, &mut captures);
        if !captures.is_match() {
            return None;
        }
        let mut out = String::new();
        interpolate::string(
            template,
            |group, out| {
                let span = captures.get_group(group);
                out.push_str(span.and_then(|span| text.get(span.range())).unwrap_or(""));
            },
            |name| captures.group_info().to_index(captures.pattern()?, name),
            &mut out,
        );
        Some(out)
    }
}

/// Sets a label; an empty value takes it away.
fn set(labels: &mut Labels, name: &str, value: String) {
    if value.is_empty() {
        labels.remove(name);
    } else {
        labels.insert(name.to_owned(), value);
    }
}
