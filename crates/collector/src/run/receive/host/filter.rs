//! Filters of names.

use regex_automata::meta::Regex;

use crate::config::components::receivers::host_metrics::{Filter, Names};
use crate::config::pattern;

/// A filter whose expressions are compiled.
#[derive(Debug)]
pub(super) struct Matcher {
    include: Option<Set>,
    exclude: Option<Set>,
}

#[derive(Debug)]
enum Set {
    Strict(Vec<String>),
    Regexp(Regex),
}

impl Matcher {
    /// Compiles a filter.
    ///
    /// # Errors
    /// Why an expression cannot be compiled.
    pub fn new(filter: &Filter) -> Result<Matcher, String> {
        let set = |names: &Option<Names>| names.as_ref().map(Set::new).transpose();
        Ok(Matcher {
            include: set(&filter.include)?,
            exclude: set(&filter.exclude)?,
        })
    }

    /// Whether a name passes.
    pub fn takes(&self, name: &str) -> bool {
        let has = |set: &Set| set.has(name);
        self.include.as_ref().is_none_or(has) && !self.exclude.as_ref().is_some_and(has)
    }
}

impl Set {
    fn new(names: &Names) -> Result<Set, String> {
        Ok(match names {
            Names::Strict(names) => Set::Strict(names.clone()),
            Names::Regexp(texts) => Set::Regexp(pattern::compile_any(texts)?),
        })
    }

    fn has(&self, name: &str) -> bool {
        match self {
            Set::Strict(names) => names.iter().any(|own| own == name),
            Set::Regexp(regex) => regex.is_match(name),
        }
    }
}
