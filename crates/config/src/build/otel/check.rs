//! Checks on a filter's whole file: scopes that never run, duplicates, missing parts. Settings that
//! HAProxy's older filter accepted give at most a warning.

use super::super::line::{Fault, Line};
use super::super::proxy::ProxyBuild;
use super::Declared;
use super::filter::FilterBuild;
use crate::model::{Config, Mode};
use crate::tree::{Section, Span, Statement};
use std::collections::{HashMap, HashSet};
use telemetry::program::Event;

/// State that the filters of one proxy share.
#[derive(Debug, Default)]
pub struct Seen {
    /// The files and sections that inject.
    injecting: Vec<(String, String)>,
    /// A filter writes the standard header names (W3C).
    writes_bare: bool,
    /// Injected names in lower case, each with its filter and line.
    names: HashMap<String, (String, u32)>,
}

/// The uses of a scope.
#[derive(Clone, Copy, Debug, Default)]
pub struct Use {
    /// A `scopes` line of the instrumentation names it.
    pub at_event: bool,
    /// A group names it.
    pub in_group: bool,
}

impl Use {
    fn is_any(self) -> bool {
        self.at_event || self.in_group
    }

    fn runs(self, section: &Section) -> bool {
        self.in_group || self.at_event && has_event(section)
    }
}

/// Checks that an id belongs to one filter; a filter that several proxies inherit counts as one.
pub fn id(build: &mut ProxyBuild<'_, '_>, declared: &Declared) {
    let span = &declared.span;
    let same = |known: &Span| known.source.name == span.source.name && known.line == span.line;
    let shared = &mut *build.shared;
    let known = shared.filter_ids.iter().find(|(id, _)| *id == declared.id);
    match known {
        Some((_, known)) if !same(known) => {
            let message = format!(
                "filter 'opentelemetry' : id '{}' is already used at {}:{}.",
                declared.id, known.source.name, known.line
            );
            shared.settle(Err(Fault::new(span.clone(), message)));
        }
        Some(_) => {}
        None => shared.filter_ids.push((declared.id.clone(), span.clone())),
    }
}

/// Checks a filter after all its scopes were compiled; `uses` is indexed by scope.
pub fn check(build: &mut FilterBuild<'_, '_, '_>, uses: &[Use]) {
    let declared = build.declared;
    let scopes: Vec<&Section> = declared.sections("otel-scope").collect();
    let used = || {
        let used = scopes.iter().zip(uses).filter(|(_, of)| of.is_any());
        used.map(|(section, _)| *section)
    };
    let mut faults = Vec::new();
    sections(declared, &mut faults);
    groups(build, &mut faults);
    for (section, of) in scopes.iter().zip(uses) {
        unused(section, *of, &mut faults);
    }
    for section in used() {
        events(build, section, &mut faults);
    }
    variables(used(), &mut faults);
    let runs = scopes
        .iter()
        .zip(uses)
        .filter(|(section, of)| of.runs(section));
    let runs = runs.map(|(section, _)| *section);
    roots(declared, runs, &mut faults);
    injects(build, used(), &mut faults);
    if build.program.require_context && !lines(used(), "extract").any(|_| true) {
        let message = "'require-context' needs an 'extract' in a scope that is used.";
        let options = lines(declared.sections("otel-instrumentation"), "option");
        let mut options = options.filter(|line| line.arg(1) == "require-context");
        faults.extend(options.next().map(|line| line.fault(1, message)));
    }
    for fault in faults {
        build.settle(Err(fault));
    }
}

type Faults = Vec<Box<Fault>>;

/// The lines of sections that begin with a keyword.
fn lines<'t>(
    sections: impl Iterator<Item = &'t Section>,
    keyword: &'static str,
) -> impl Iterator<Item = Line<'t>> {
    let statements = sections.flat_map(|section| &section.statements);
    let named = statements.filter(move |line: &&Statement| line.keyword() == keyword);
    named.map(Line::new)
}

fn sections(declared: &Declared, faults: &mut Faults) {
    let kinds = super::SECTIONS.iter();
    let mut outside = kinds
        .flat_map(|kind| declared.sections(kind))
        .filter(|section| section.scope.is_none());
    if let Some(section) = outside.next() {
        let line = Line::new(&section.header);
        let message = format!(
            "sections before any [section] belong to every filter of this file; they should stand under [{}].",
            declared.section
        );
        faults.push(line.fault(0, message).as_warning());
    }
    // Whether the section continues after another one.
    let (mut was_own, mut ended) = (false, false);
    for section in &declared.tree.sections {
        let own = section.scope.as_deref() == Some(&declared.section);
        ended |= was_own && !own;
        if own && !was_own && ended {
            let line = Line::new(&section.header);
            let message = format!("[{}] already stands above.", declared.section);
            faults.push(line.fault(0, message).as_warning());
        }
        was_own = own;
    }
}

fn groups(build: &FilterBuild<'_, '_, '_>, faults: &mut Faults) {
    let declared = build.declared;
    let mut names = HashSet::new();
    for section in declared.sections("otel-group") {
        let line = Line::new(&section.header);
        let name = line.arg(1);
        if !names.insert(name) {
            let message = format!("otel-group '{name}' is already defined.");
            faults.push(line.fault(1, message));
        } else if !build.used_groups.iter().any(|(used, _)| used == name) {
            let message = format!("otel-group '{name}' is not used.");
            faults.push(line.fault(1, message).as_warning());
        }
    }
}

fn has_event(section: &Section) -> bool {
    let mut lines = section.statements.iter();
    lines.any(|line| line.keyword() == "otel-event")
}

fn unused(section: &Section, of: Use, faults: &mut Faults) {
    let line = Line::new(&section.header);
    let why = match of {
        Use {
            at_event: true,
            in_group: false,
        } if !has_event(section) => "has no 'otel-event': it never runs",
        of if of.is_any() => return,
        _ => "is not used",
    };
    let message = format!("otel-scope '{}' {why}.", line.arg(1));
    faults.push(line.fault(1, message).as_warning());
}

fn events(build: &FilterBuild<'_, '_, '_>, section: &Section, faults: &mut Faults) {
    let proxy = &build.proxy.proxy;
    let tcp = proxy.mode == Mode::Tcp;
    for line in lines(std::iter::once(section), "otel-event") {
        let Some(event) = Event::named(line.arg(1)) else {
            continue;
        };
        let why = match event {
            event if tcp && event.is_http() => "does not come in mode TCP",
            event if !proxy.is_frontend && event.is_frontends() => {
                "does not come to a filter of a backend"
            }
            _ => continue,
        };
        let message = format!("'{}' {why}.", event.name());
        faults.push(line.fault(1, message).as_warning());
    }
    let headers = |line: &Line<'_>| carrier(line) != Carried::Variables;
    for keyword in ["extract", "inject"] {
        let found = lines(std::iter::once(section), keyword);
        for line in found.filter(|line| tcp && headers(line)) {
            let message = format!("'{keyword}' finds no headers in mode TCP.");
            faults.push(line.fault(0, message).as_warning());
        }
    }
}

fn roots<'t>(declared: &Declared, used: impl Iterator<Item = &'t Section>, faults: &mut Faults) {
    let mut root: Option<&str> = None;
    let mut any = false;
    for line in lines(used, "span") {
        any = true;
        let words = &line.words()[2.min(line.count())..];
        // The word after one of these is a name.
        let takes = |word: &str| matches!(word, "parent" | "link" | "kind");
        let is_root = words
            .iter()
            .enumerate()
            .any(|(at, word)| word.text == "root" && !(at > 0 && takes(&words[at - 1].text)));
        let name = line.arg(1);
        match root {
            _ if !is_root => {}
            None => root = Some(name),
            Some(known) if known != name => {
                let message =
                    format!("span '{name}' is 'root', and so is '{known}': a trace has one.");
                faults.push(line.fault(1, message).as_warning());
            }
            Some(_) => {}
        }
    }
    if let (true, None, Some(section)) =
        (any, root, declared.sections("otel-instrumentation").next())
    {
        let line = Line::new(&section.header);
        let message = "no span of the scopes that are used is 'root'.";
        faults.push(line.fault(0, message).as_warning());
    }
}

/// Where a line writes or reads its context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Carried {
    Variables,
    /// Headers whose names begin with a prefix.
    Headers,
    /// Headers with the standard names.
    Bare,
}

/// The same rules as in [`FilterBuild::carrier`].
fn carrier(line: &Line<'_>) -> Carried {
    let words = || line.words().iter().skip(2).map(|word| word.text.as_str());
    let vars = words().any(|word| word == "use-vars");
    let headers = words().any(|word| word == "use-headers");
    let formats = words().any(|word| !matches!(word, "use-vars" | "use-headers"));
    match line.arg(1).starts_with('-') {
        _ if formats => Carried::Bare,
        true if headers || !vars => Carried::Bare,
        _ if vars && !headers => Carried::Variables,
        _ => Carried::Headers,
    }
}

fn injects<'t>(
    build: &mut FilterBuild<'_, '_, '_>,
    used: impl Iterator<Item = &'t Section>,
    faults: &mut Faults,
) {
    let declared = build.declared;
    let seen = &mut build.proxy.otel_seen;
    let lines: Vec<Line<'_>> = lines(used, "inject").collect();
    let section = (declared.file.clone(), declared.section.clone());
    if !lines.is_empty() && seen.injecting.contains(&section) {
        let message = format!(
            "filter '{}' : another filter of this proxy uses [{}] of '{}', which injects.",
            declared.id, declared.section, declared.file
        );
        faults.push(Fault::new(declared.span.clone(), message));
        return;
    }
    seen.injecting.push(section);
    for line in lines {
        let name = line.arg(1);
        let carried = carrier(&line);
        if carried == Carried::Bare && std::mem::replace(&mut seen.writes_bare, true) {
            let message = "'inject' : another one of this proxy writes the same headers; the last that runs counts.";
            faults.push(line.fault(1, message).as_warning());
            continue;
        }
        // The name comes from the event.
        if name == "-" {
            continue;
        }
        let place = (declared.id.clone(), line.span(1).line);
        let known = seen.names.insert(name.to_ascii_lowercase(), place);
        faults.extend(known.map(|(id, at)| if id == declared.id {
            let message = format!("'inject' : '{name}' is already injected at line {at}; the last that runs counts.");
            line.fault(1, message).as_warning()
        } else {
            let message = format!("'inject' : '{name}' is already injected by filter '{id}' of this proxy.");
            line.fault(1, message)
        }));
    }
}

/// Names of variables cannot have dashes or capital letters. Such letters in names of contexts are
/// replaced, which users of the variables must know.
fn variables<'t>(used: impl Iterator<Item = &'t Section> + Clone, faults: &mut Faults) {
    for keyword in ["extract", "inject"] {
        for line in lines(used.clone(), keyword) {
            let vars = line
                .words()
                .iter()
                .skip(2)
                .any(|word| word.text == "use-vars");
            let name = line.arg(1);
            let changed = |byte: u8| byte == b'-' || byte.is_ascii_uppercase();
            if vars && name != "-" && name.bytes().any(changed) {
                let message = format!(
                    "'{keyword}' : the variables of '{name}' are called txn.{}.*.",
                    name.to_ascii_lowercase().replace('-', "D")
                );
                faults.push(line.fault(1, message).as_warning());
            }
        }
    }
}

/// The contexts that expressions read and no filter extracts.
pub fn unknown_contexts<'a>(
    config: &'a Config,
    asked: impl Iterator<Item = &'a str>,
) -> impl Iterator<Item = &'a str> {
    let extracted = |name: &str| {
        let contexts = config
            .otel
            .iter()
            .flat_map(|filter| &filter.program.contexts);
        contexts.into_iter().any(|context| &*context.name == name)
    };
    asked.filter(move |name| !extracted(name))
}
