//! `filter <name> …` (manual §9): selects the parser.

use super::line::{Line, Parse};
use super::proxy::ProxyBuild;
use crate::keywords::{self, filters};
use crate::tree::Statement;

impl ProxyBuild<'_, '_> {
    /// Records the filters of a section before its rules are read, because rules name filters.
    /// [`statement`] reads the same lines again and reports their faults.
    pub fn open_filters(&mut self, statements: &[Statement]) {
        self.open_otel_filters(statements);
        self.bandwidth_limits = super::bandwidth::declared(statements);
    }
}

/// `filter <name> …`
pub fn statement(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let name = line.need(1, || "'filter' expects the name of a filter.".into())?;
    let Some(filter) = keywords::find(filters::KEYWORDS, name) else {
        let hint = super::did_you_mean(name, filters::KEYWORDS.iter().map(|row| row.name));
        return Err(line.fault(1, format!("unknown filter '{name}'{hint}.")));
    };
    match super::parser_of(filter, line, 1, build.shared)? {
        Some(parser) => parser(build, line),
        None => Ok(()),
    }
}
