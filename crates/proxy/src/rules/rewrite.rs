//! The regular expressions of rewrites, one worker's own: all that use one share its memory.

use config::model::Rewrite;
use sample::regex::Regex;

use crate::engine::Core;

impl Core {
    /// The expression of a rewrite, cloned when it is first used; [`Core::put_matcher`] takes it back.
    pub(super) fn take_matcher(&mut self, rewrite: &Rewrite) -> Regex {
        let matchers = &mut self.rules.matchers;
        if matchers.len() <= rewrite.id {
            matchers.resize_with(rewrite.id + 1, || None);
        }
        matchers[rewrite.id]
            .take()
            .unwrap_or_else(|| rewrite.regex.clone())
    }

    pub(super) fn put_matcher(&mut self, rewrite: &Rewrite, matcher: Regex) {
        self.rules.matchers[rewrite.id] = Some(matcher);
    }
}
