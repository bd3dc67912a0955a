//! ACLs, and conditions that combine them (manual §7.1, §7.2).
//!
//! `compile` parses them, `keywords` lists the names that combine a fetch with a matching method,
//! and `predefined` those that need no declaration. The patterns are in [`crate::pattern`].

pub(crate) mod compile;
pub(crate) mod keywords;
mod predefined;
mod routes;

use std::collections::HashMap;
use std::sync::Arc;

use crate::cast::cast;
use crate::fetch::{Cursor, Source};
use crate::pattern::Lookup;
use crate::pattern::inline::Matcher;
use crate::{Expr, Kind, Scope, Value};

/// The named ACLs of one section. Compile every `acl` line of a section before the conditions that
/// use them. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Acls {
    by_name: Arc<HashMap<Box<str>, Acl>>,
}

impl Acls {
    /// Whether an ACL of this name was declared.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// These ACLs and those of `over`. Where names are equal, those of `over` win.
    #[must_use]
    pub fn overlaid(&self, over: &Acls) -> Acls {
        if over.by_name.is_empty() {
            return self.clone();
        }
        let mut all = HashMap::clone(&self.by_name);
        let over = over.by_name.iter();
        all.extend(over.map(|(name, acl)| (name.clone(), acl.clone())));
        Acls {
            by_name: Arc::new(all),
        }
    }

    /// Adds a line to the ACL of this name.
    fn add(&mut self, name: &str, line: Line) {
        let acl = Arc::make_mut(&mut self.by_name)
            .entry(name.into())
            .or_default();
        *acl = acl.iter().cloned().chain([Arc::new(line)]).collect();
    }

    fn find(&self, name: &str) -> Option<&Acl> {
        self.by_name.get(name)
    }
}

/// An ACL: it matches when one of its lines does.
type Acl = Arc<[Arc<Line>]>;

/// An `acl` line: a sample and the patterns it is compared with.
#[derive(Debug)]
struct Line {
    expr: Expr,
    /// The fetch's name, for messages.
    keyword: &'static str,
    source: &'static Source,
    /// The pattern sets that it shares with other uses.
    files: Box<[Lookup]>,
    /// The patterns written in the configuration.
    matcher: Matcher,
    /// The same patterns, if they are patterns of paths.
    routes: Box<[routes::Route]>,
}

/// `if` or `unless` with its terms. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Condition {
    /// One of these must hold.
    suites: Arc<[Suite]>,
    unless: bool,
}

/// Terms that must all hold.
type Suite = Box<[Term]>;

/// An ACL or its negation.
#[derive(Debug)]
struct Term {
    acl: Acl,
    negated: bool,
}

/// The result of a condition that may have to wait for data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The rule applies.
    True,
    /// The rule does not apply.
    False,
    /// Data that could decide the condition is missing. Ask again with more data, or with
    /// `last_chance`.
    Wait,
}

impl Verdict {
    fn of(is: bool) -> Verdict {
        if is { Verdict::True } else { Verdict::False }
    }

    fn negated_if(self, negated: bool) -> Verdict {
        match self {
            Verdict::True => Verdict::of(!negated),
            Verdict::False => Verdict::of(negated),
            Verdict::Wait => Verdict::Wait,
        }
    }
}

impl Condition {
    /// Appends the route of the path for which the condition holds: its path pattern as a template,
    /// in which `*` stands for anything. Returns false if no route is certain enough.
    pub fn append_route(&self, path: &[u8], out: &mut Vec<u8>) -> bool {
        if self.unless {
            return false;
        }
        let terms = self.suites.iter().flat_map(|suite| suite.iter());
        let terms = terms.filter(|term| !term.negated);
        let lines = terms.flat_map(|term| term.acl.iter());
        routes::write(lines.flat_map(|line| line.routes.iter()), path, out)
    }

    /// Whether the rule applies; missing data counts as no match.
    #[must_use]
    #[inline]
    pub fn matches(&self, scope: &Scope<'_>) -> bool {
        let holds = if scope.last_chance {
            self.holds(scope)
        } else {
            self.evaluate(scope) == Verdict::True
        };
        holds != self.unless
    }

    /// The fetches at the start of its terms, each with a text of the data that it needs.
    pub fn reads(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let terms = self.suites.iter().flatten();
        let lines = terms.flat_map(|term| term.acl.iter());
        lines.map(|line| (line.keyword, line.source.needs))
    }

    /// Evaluates the terms alone, where none can be left undecided.
    #[inline]
    fn holds(&self, scope: &Scope<'_>) -> bool {
        let term_holds =
            |term: &Term| term.acl.iter().any(|line| line.holds(scope)) != term.negated;
        let suite_holds = |suite: &Suite| suite.iter().all(term_holds);
        self.suites.iter().any(suite_holds)
    }

    /// Whether the rule applies, or must wait.
    #[must_use]
    pub fn test(&self, scope: &Scope<'_>) -> Verdict {
        self.evaluate(scope).negated_if(self.unless)
    }

    /// Evaluates the terms alone. An undecided suite does not prevent a later one from holding.
    fn evaluate(&self, scope: &Scope<'_>) -> Verdict {
        let mut verdict = Verdict::False;
        for suite in &*self.suites {
            match evaluate_suite(suite, scope) {
                Verdict::True => return Verdict::True,
                Verdict::Wait => verdict = Verdict::Wait,
                Verdict::False => {}
            }
        }
        verdict
    }
}

/// Evaluates all terms. A term that fails decides, even after one that must wait.
fn evaluate_suite(suite: &[Term], scope: &Scope<'_>) -> Verdict {
    let mut verdict = Verdict::True;
    for term in suite {
        match evaluate_acl(&term.acl, scope).negated_if(term.negated) {
            Verdict::False => return Verdict::False,
            Verdict::Wait => verdict = Verdict::Wait,
            Verdict::True => {}
        }
    }
    verdict
}

fn evaluate_acl(acl: &[Arc<Line>], scope: &Scope<'_>) -> Verdict {
    let mut verdict = Verdict::False;
    for line in acl {
        match line.evaluate(scope) {
            Verdict::True => return Verdict::True,
            Verdict::Wait => verdict = Verdict::Wait,
            Verdict::False => {}
        }
    }
    verdict
}

impl Line {
    fn evaluate(&self, scope: &Scope<'_>) -> Verdict {
        let mut cursor = Cursor::every();
        if self.any_matches(scope, &mut cursor) {
            Verdict::True
        } else if cursor.may_change && !scope.last_chance {
            Verdict::Wait
        } else {
            Verdict::False
        }
    }

    /// Whether the ACL matches with the data known now.
    #[inline]
    fn holds(&self, scope: &Scope<'_>) -> bool {
        self.any_matches(scope, &mut Cursor::every())
    }

    /// Compares every value that the fetch has.
    #[inline]
    fn any_matches(&self, scope: &Scope<'_>, cursor: &mut Cursor) -> bool {
        loop {
            let value = self.expr.next(scope, cursor);
            if value.is_some_and(|value| self.matches(value)) {
                return true;
            }
            if !std::mem::take(&mut cursor.more) {
                return false;
            }
        }
    }

    #[inline]
    fn matches(&self, value: Value<'_>) -> bool {
        let kind = self.matcher.kind();
        if self.files.is_empty() && (kind == Kind::Any || value.kind() == kind) {
            return self.matcher.matches(&value);
        }
        cast(value, kind).is_some_and(|value| {
            self.matcher.matches(&value) || self.files.iter().any(|file| file.matches(&value))
        })
    }
}

#[cfg(test)]
mod tests;
