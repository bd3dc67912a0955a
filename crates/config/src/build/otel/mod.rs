//! `filter opentelemetry` and the language of its file: `otel.cfg` → [`telemetry::Program`].
//!
//! A filter's file is read together with the tree ([`files`]). A filter is opened before the
//! statements of its proxy, because rules name its groups. It is compiled after them, because its
//! conditions name the ACLs of its proxy.

pub mod check;
pub mod files;
mod filter;
mod group;
mod instrument;
mod instrumentation;
mod log_record;
mod names;
mod sampling;
mod scope;
mod span;
pub mod statistics;
pub mod tracing;
mod values;

pub use files::Files;
pub use filter::{FilterBuild, compile};
pub use group::{http_group, tcp_group};
pub use instrumentation::keywords as instrumentation_keywords;
pub use scope::keywords as scope_keywords;

use super::line::{Fault, Line, Parse};
use super::proxy::ProxyBuild;
use crate::tree::{Section, Span, Statement, Tree};
use std::sync::Arc;

/// A declared filter, which is compiled at the end of its proxy.
#[derive(Clone, Debug)]
pub struct Declared {
    /// `id`
    pub id: String,
    /// The place of the declaration.
    pub span: Span,
    /// `config`
    pub file: String,
    /// The content of the file.
    pub tree: Arc<Tree>,
    /// The `[section]` that is used.
    pub section: String,
}

/// The default id of a filter.
const ID_DEFAULT: &str = "otel-filter";

/// The sections of `otel.cfg`.
pub const SECTIONS: [&str; 3] = ["otel-instrumentation", "otel-group", "otel-scope"];

impl Declared {
    /// The sections of a kind, in order.
    pub fn sections<'t>(&'t self, kind: &'t str) -> impl Iterator<Item = &'t Section> {
        let own = move |section: &&Section| {
            section.scope.as_deref() == Some(&self.section) || section.scope.is_none()
        };
        let all = self.tree.sections.iter().filter(own);
        all.filter(move |section| section.kind() == kind)
    }

    /// The index of a group.
    pub fn group(&self, name: &str) -> Option<usize> {
        self.sections("otel-group")
            .position(|group| group.name().is_some_and(|word| word.text == name))
    }
}

/// The words of a `filter opentelemetry` line.
pub struct Words<'a> {
    /// `id`
    pub id: Option<(usize, &'a str)>,
    /// `config`
    pub config: (usize, &'a str),
    /// The name of the section.
    pub section: Option<&'a str>,
}

/// Parses a `filter` line; None if it is for another filter.
pub fn words<'a>(line: &Line<'a>) -> Parse<Option<Words<'a>>> {
    if line.arg(1) != "opentelemetry" {
        return Ok(None);
    }
    let (mut id, mut config, mut section) = (None, None, None);
    let mut at = 2;
    while at < line.count() {
        let word = line.arg(at);
        match word {
            "id" | "config" => {
                let value =
                    line.need(at + 1, || format!("'{word}' expects a name as argument."))?;
                let twice = match word {
                    "id" => id.replace((at + 1, value)).is_some(),
                    _ => config.replace((at + 1, value)).is_some(),
                };
                if twice {
                    return Err(line.fault(at, format!("'{word}' already defined.")));
                }
                if word == "id" && matches!(value, "if" | "unless") {
                    return Err(line.fault(at + 1, format!("'{value}' is a reserved word.")));
                }
                at += 2;
            }
            name if config.is_some_and(|(place, _)| place + 1 == at) => {
                if matches!(name, "if" | "unless") {
                    return Err(line.fault(at, format!("'{name}' is a reserved word.")));
                }
                section = Some(name);
                at += 1;
            }
            _ => {
                return Err(line.fault(
                    at,
                    format!("unknown argument '{word}' of filter 'opentelemetry': it takes 'id <id>' and 'config <file> [<section>]'."),
                ));
            }
        }
    }
    let config = config.ok_or_else(|| {
        line.fault(
            line.count(),
            "filter 'opentelemetry' expects 'config <file>'.",
        )
    })?;
    Ok(Some(Words {
        id,
        config,
        section,
    }))
}

impl ProxyBuild<'_, '_> {
    /// Opens the filters of a section's statements. [`statement`] reads the same lines again and
    /// reports their faults.
    pub fn open_otel_filters(&mut self, statements: &[Statement]) {
        for statement in statements.iter().filter(|line| line.keyword() == "filter") {
            let line = Line::new(statement);
            let Ok(Some(words)) = words(&line) else {
                continue;
            };
            let (_, file) = words.config;
            let (at, id) = words.id.unwrap_or((1, ID_DEFAULT));
            let Some(tree) = self.shared.filter_files.get(file) else {
                continue;
            };
            self.filters.push(Declared {
                id: id.to_owned(),
                span: line.span(at),
                file: file.to_owned(),
                tree,
                section: words.section.unwrap_or(id).to_owned(),
            });
        }
    }
}

/// `filter opentelemetry [id <id>] config <file> [<section>]`
pub fn statement(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let Some(words) = words(line)? else {
        return Ok(());
    };
    let (at, file) = words.config;
    if let Some(error) = build.shared.filter_files.error(file) {
        return Err(line.fault(at, format!("Cannot read filter file '{file}' : {error}.")));
    }
    if words.id.is_none() {
        let message = format!("filter 'opentelemetry' has no id: it is called '{ID_DEFAULT}'.");
        return Err(line.fault(1, message).as_warning());
    }
    Ok(())
}

/// A fault in a line of a filter's file.
fn usage(line: &Line<'_>, at: usize, usage: &str) -> Box<Fault> {
    line.fault(
        at,
        format!(
            "'{}' : wrong number of arguments. Usage: {usage}",
            line.keyword()
        ),
    )
}
