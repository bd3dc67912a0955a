//! The regular expressions of rewrites, cloned for each worker so that threads do not share their
//! memory.

use config::model::Rewrite;
use sample::regex::Regex;

use super::Memory;

impl Memory {
    /// The expression of a rewrite, cloned on first use; [`Memory::put_matcher`] puts it back.
    pub(super) fn take_matcher(&mut self, rewrite: &Rewrite) -> Regex {
        if self.matchers.len() <= rewrite.id {
            self.matchers.resize_with(rewrite.id + 1, || None);
        }
        self.matchers[rewrite.id]
            .take()
            .unwrap_or_else(|| rewrite.regex.clone())
    }

    pub(super) fn put_matcher(&mut self, rewrite: &Rewrite, matcher: Regex) {
        self.matchers[rewrite.id] = Some(matcher);
    }
}
