//! A filter during its compilation.

use super::super::line::{Fault, Line, Parse};
use super::super::proxy::ProxyBuild;
use super::super::{parser_of, unknown};
use super::check::{self, Use};
use super::names::Names;
use super::{Declared, group, instrumentation, scope};
use crate::keywords::{self, Keyword};
use crate::model::OtelFilter;
use crate::tree::{Section, Span};
use sample::Acls;
use std::collections::HashMap;
use telemetry::program::{Event, Program, Scope};

/// Parses one keyword of a filter's file.
pub type FilterParser = fn(&mut FilterBuild<'_, '_, '_>, &Line<'_>) -> Parse;

/// See the module.
pub struct FilterBuild<'a, 'b, 'd> {
    /// Its proxy: the ACLs, and the state that all sections share.
    pub proxy: &'a mut ProxyBuild<'b, 'd>,
    /// Its declaration.
    pub declared: &'a Declared,
    /// The result.
    pub filter: OtelFilter,
    /// The program so far.
    pub program: Program,
    /// The names in the file.
    pub names: Names,
    /// `acl` lines of the instrumentation.
    pub acls: Acls,
    /// `acl` lines of the current scope.
    pub scope_acls: Acls,
    /// The current scope.
    pub scope: Scope,
    /// `scopes` of the instrumentation: names with their places.
    pub used_scopes: Vec<(String, Span)>,
    /// `groups` of the instrumentation: names with their places.
    pub used_groups: Vec<(String, Span)>,
    /// Instruments by name in lower case, with the value of the first `instrument` line of each.
    pub instruments: HashMap<String, super::instrument::Known>,
    /// The same for the current scope.
    pub scope_instruments: HashMap<String, sample::Expr>,
    /// Updates of instruments that scopes further down may define: scope, index, name, line.
    pub pending_updates: Vec<super::instrument::Pending>,
    /// Keywords of the instrumentation that occurred already.
    pub seen: Vec<String>,
    /// Scopes by name.
    pub scopes: HashMap<String, u32>,
}

/// Compiles a declared filter. Its faults are added to the diagnostics.
pub fn compile(proxy: &mut ProxyBuild<'_, '_>, declared: &Declared) -> Option<OtelFilter> {
    check::id(proxy, declared);
    let mut build = FilterBuild {
        filter: OtelFilter {
            id: declared.id.clone(),
            file: declared.file.clone(),
            ..OtelFilter::default()
        },
        proxy,
        declared,
        program: Program {
            honours_parent: true,
            ..Program::default()
        },
        names: Names::default(),
        acls: Acls::default(),
        scope_acls: Acls::default(),
        scope: Scope::default(),
        used_scopes: Vec::new(),
        used_groups: Vec::new(),
        instruments: HashMap::new(),
        scope_instruments: HashMap::new(),
        pending_updates: Vec::new(),
        seen: Vec::new(),
        scopes: HashMap::new(),
    };
    let sections: Vec<&Section> = declared.sections("otel-instrumentation").collect();
    let (first, more) = match sections[..] {
        [] => {
            let message = format!(
                "no otel-instrumentation for filter '{}' in section [{}] of '{}'.",
                declared.id, declared.section, declared.file
            );
            build
                .proxy
                .shared
                .settle(Err(Fault::new(declared.span.clone(), message)));
            return None;
        }
        [first, ref more @ ..] => (first, more),
    };
    for section in more {
        let line = Line::new(&section.header);
        let fault = line.fault(
            0,
            "otel-instrumentation is already defined for this filter.",
        );
        build.proxy.shared.settle(Err(fault));
    }
    build.names.collect(declared.sections("otel-scope"));
    build.section(first, instrumentation::keywords());
    if let Some(name) = first.name() {
        build.filter.instrumentation = name.text.to_string();
    }
    build.scopes();
    build.groups();
    build.finish(first)
}

impl FilterBuild<'_, '_, '_> {
    /// Reads the statements of a section.
    fn section(&mut self, section: &Section, table: &'static [Keyword<FilterParser>]) {
        let header = Line::new(&section.header);
        let named = header
            .need(1, || {
                format!("'{}' expects a name as argument.", header.keyword())
            })
            .and_then(|_| header.at_most(1));
        self.settle(named);
        for line in section.statements.iter().map(Line::new) {
            self.proxy.shared.enter_line(&line);
            let result = self.statement(&line, table);
            self.settle(result);
        }
    }

    fn statement(&mut self, line: &Line<'_>, table: &'static [Keyword<FilterParser>]) -> Parse {
        let Some(keyword) = keywords::find(table, line.keyword()) else {
            return Err(unknown(line, "otel", table.iter().map(|k| k.name)));
        };
        match parser_of(keyword, line, 0, self.proxy.shared)? {
            Some(parser) => parser(self, line),
            None => Ok(()),
        }
    }

    fn scopes(&mut self) {
        let declared = self.declared;
        for section in declared.sections("otel-scope") {
            let header = Line::new(&section.header);
            let name = header.arg(1).to_owned();
            self.scope = Scope {
                name: name.clone().into(),
                ..Scope::default()
            };
            self.scope_acls = Acls::default();
            self.scope_instruments.clear();
            self.section(section, scope::keywords());
            let checked = scope::check(self, &header);
            self.settle(checked);
            super::instrument::end_scope(self);
            let number = self.program.scopes.len() as u32;
            if self.scopes.insert(name.clone(), number).is_some() {
                let message = format!("otel-scope '{name}' is already defined.");
                self.settle(Err(header.fault(1, message)));
            }
            let scope = std::mem::take(&mut self.scope);
            self.program.scopes.push(scope);
        }
        super::instrument::resolve(self);
    }

    fn groups(&mut self) {
        let declared = self.declared;
        for section in declared.sections("otel-group") {
            let built = group::build(self, section);
            self.program.groups.push(built);
        }
    }

    fn finish(mut self, section: &Section) -> Option<OtelFilter> {
        let header = Line::new(&section.header);
        if self.filter.settings_file.is_empty() {
            let message = format!(
                "otel-instrumentation '{}' has no 'config'.",
                self.filter.instrumentation
            );
            self.settle(Err(header.fault(0, message)));
        }
        self.bind();
        self.program.spans = std::mem::take(&mut self.names.spans.names);
        self.program.texts = std::mem::take(&mut self.names.encoded);
        self.program
            .policies
            .sort_by_key(|policy| policy.rule.rank());
        scope::finish_contexts(&mut self);
        self.program.seal();
        let FilterBuild {
            mut filter,
            program,
            ..
        } = self;
        filter.program = program;
        Some(filter)
    }

    /// Binds the scopes of the instrumentation to their events.
    fn bind(&mut self) {
        self.program.by_event = vec![Vec::new(); Event::ALL.len()];
        let mut uses = vec![Use::default(); self.program.scopes.len()];
        for (name, span) in std::mem::take(&mut self.used_scopes) {
            match self.scopes.get(&name) {
                Some(scope) => uses[*scope as usize].at_event = true,
                None => {
                    let hint =
                        super::super::did_you_mean(&name, self.scopes.keys().map(String::as_str));
                    let message = format!("otel-scope '{name}' is not defined{hint}.");
                    self.settle(Err(Fault::new(span, message)));
                }
            }
        }
        for (number, scope) in self.program.scopes.iter().enumerate() {
            if let (true, Some(event)) = (uses[number].at_event, scope.event) {
                self.program.by_event[event as usize].push(number as u32);
                self.program.events |= event.bit();
                if let Some(ms) = scope.idle_ms {
                    let least = self.program.idle_ms.map_or(ms, |known| known.min(ms));
                    self.program.idle_ms = Some(least);
                }
            }
        }
        for group in &self.program.groups {
            for scope in &group.scopes {
                uses[*scope as usize].in_group = true;
            }
        }
        let groups = &self.program.groups;
        let missing = |(name, _): &&(String, Span)| !groups.iter().any(|one| *one.name == **name);
        let missing: Vec<_> = self.used_groups.iter().filter(missing).cloned().collect();
        for (name, span) in missing {
            let message = format!("otel-group '{name}' is not defined.");
            self.settle(Err(Fault::new(span, message)));
        }
        check::check(self, &uses);
    }

    /// Records a fault.
    pub fn settle(&mut self, result: Parse) {
        self.proxy.shared.settle(result);
    }
}
