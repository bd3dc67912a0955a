//! Accepted keywords without an effect: diagnostic mode (`-dD`) reports each use, and a summary
//! reports all of them once, by the missing feature.

use super::Shared;
use crate::diagnostic::Severity;
use crate::keywords::Why;
use crate::keywords::features::Feature;
use crate::tree::Span;
use std::collections::BTreeMap;

/// Most keywords that a notice names; it counts the others.
const NAMES_MAX: usize = 8;

/// The uses of keywords without an effect.
#[derive(Debug, Default)]
pub struct NoEffect {
    /// Uses by the feature that they configure; None for features that only HAProxy has.
    by_feature: BTreeMap<Option<Feature>, Uses>,
}

#[derive(Debug, Default)]
struct Uses {
    /// The keywords in the order of their first uses.
    names: Vec<String>,
    count: usize,
    /// The place of the first use.
    first: String,
}

impl Shared<'_> {
    /// Records a use of a keyword without an effect. No use is silently ignored.
    pub fn has_no_effect(&mut self, name: &str, span: &Span, why: Why) {
        let (feature, reason) = match why {
            Why::Absent(feature) => (Some(feature), feature.is_absent()),
            Why::Foreign(reason) => (None, reason),
        };
        let message = format!("keyword '{name}' has no effect: {reason}.");
        self.diagnostics.diag(span, message);
        let uses = self.no_effect.by_feature.entry(feature).or_default();
        if uses.count == 0 {
            uses.first = span.place();
        }
        uses.count += 1;
        if !uses.names.iter().any(|known| known == name) {
            uses.names.push(name.to_owned());
        }
    }

    /// Reports the recorded uses, one line per feature. After errors they are not reported, because
    /// they would hide the errors.
    pub fn tell_no_effect(&mut self) {
        let noted = std::mem::take(&mut self.no_effect.by_feature);
        if self.diagnostics.alerts() > 0 {
            return;
        }
        for (feature, uses) in noted {
            let reason = feature.map_or("they have no meaning here", Feature::is_absent);
            let message = format!("{} : {reason}.", uses.title());
            self.diagnostics.add(Severity::Notice, None, message);
        }
    }
}

impl Uses {
    fn title(&self) -> String {
        let named = self.names.len().min(NAMES_MAX);
        let mut title = format!("no effect of {}", self.names[..named].join(", "));
        if self.names.len() > named {
            title += &format!(" and {} more keywords", self.names.len() - named);
        }
        match self.count {
            1 => title += &format!(" at {}", self.first),
            count => title += &format!(" at {} and {} more places", self.first, count - 1),
        }
        title
    }
}
