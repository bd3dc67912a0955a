//! Warnings about rules whose order in the file differs from the order of evaluation.

use super::line::Line;
use super::proxy::ProxyBuild;
use crate::model::{HttpAction, HttpRule};
use std::sync::Arc;

/// The rule sets in the order of their evaluation, as messages name them.
const STAGES: [&str; 6] = [
    "a 'tcp-request connection' rule",
    "a 'tcp-request session' rule",
    "a 'tcp-request content' rule",
    "an 'http-request' rule",
    "a 'redirect' rule",
    "a 'use_backend' rule",
];

/// The set of a rule; the number is the index in `STAGES` plus one. Nothing precedes the first set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// `quic-initial`
    QuicInitial = 0,
    /// `tcp-request connection`
    Connection = 1,
    /// `tcp-request session`
    Session = 2,
    /// `tcp-request content`
    Content = 3,
    /// `http-request`
    HttpRequest = 4,
    /// `redirect`
    Redirect = 5,
    /// `use_backend`
    UseBackend = 6,
}

/// The sets with own rules of the section so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen([bool; STAGES.len() + 1]);

impl ProxyBuild<'_, '_> {
    /// Records an own rule. Warns if a rule of a later set precedes it. The first `words` words of
    /// the line name its set.
    pub fn placed(&mut self, line: &Line<'_>, stage: Stage, words: usize) {
        let stage = stage as usize;
        self.seen.0[stage] = true;
        if let Some(later) = (stage + 1..=STAGES.len()).find(|&later| self.seen.0[later]) {
            let set = line.texts(0)[..words].join(" ");
            let message = format!(
                "a '{set}' rule placed after {} will still be processed before.",
                STAGES[later - 1]
            );
            self.shared.diagnostics.warning(&line.span(0), message);
        }
    }

    /// Warns if the previous own rule, which is the last of `rules`, always ends the evaluation.
    pub fn unreachable(&mut self, line: &Line<'_>, ends: bool) {
        if ends {
            let name = line.keyword();
            let message = format!(
                "previous '{name}' action is final and has no condition attached, further entries are NOOP."
            );
            self.shared.diagnostics.warning(&line.span(0), message);
        }
    }
}

/// Whether no rule after the last of `rules` is evaluated. The first `inherited` of them come from
/// `defaults` and are ignored.
pub fn ends(rules: &[Arc<HttpRule>], inherited: usize) -> bool {
    let own = rules.get(inherited..).unwrap_or_default();
    own.last().is_some_and(|rule| {
        let last = match &rule.action {
            // HAProxy gives no warning after these.
            HttpAction::Reject | HttpAction::SilentDrop { .. } => false,
            HttpAction::Redirect(redirect) => !redirect.options.ignore_empty,
            action => action.is_final(),
        };
        last && rule.condition.is_none()
    })
}
