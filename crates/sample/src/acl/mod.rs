//! ACLs and the conditions made of them (manual §7.1, §7.2).

use crate::Scope;

/// The named ACLs of one section. Compile every `acl` line of a section before the conditions that use them.
#[derive(Clone, Debug, Default)]
pub struct Acls {}

/// `if` or `unless` with its terms. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Condition {}

/// The answer of a condition that may have to wait for data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The rule applies.
    True,
    /// It does not.
    False,
    /// Data that could decide it is not there yet; ask again with more, or with `last_chance`.
    Wait,
}

impl Condition {
    /// Whether the rule applies; data that is missing counts as no match.
    #[must_use]
    pub fn matches(&self, _scope: &Scope<'_>) -> bool {
        unimplemented!()
    }

    /// Whether the rule applies, or must wait.
    #[must_use]
    pub fn test(&self, _scope: &Scope<'_>) -> Verdict {
        unimplemented!()
    }
}
