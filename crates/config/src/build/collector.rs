//! Sections `collector`: the configuration of an OpenTelemetry Collector beside the proxies. The
//! code that runs the collectors reads the files.

use super::line::{Line, Parse};
use super::values::{bad_name_character, time_message, whole_time};
use super::{Shared, did_you_mean, unknown};
use crate::keywords::{self, Keyword, Places, State};
use crate::model::CollectorSection;
use crate::tree::{Section, Tree};
use std::path::Path;
use std::time::Duration;

/// Default time between the end of our own root span and the decision on its trace.
const ROOT_WAIT_DEFAULT: Duration = Duration::from_secs(2);
/// The largest number of threads that is useful.
const THREADS_MAX: u16 = 256;

type Parser = fn(&mut CollectorSection, &Line<'_>) -> Parse;
type K = Keyword<Parser>;

const fn k(name: &'static str, parser: Parser, doc: &'static str) -> K {
    Keyword::yes(name, Places::NONE, parser, doc)
}

#[rustfmt::skip]
const KEYWORDS: &[K] = &[
    k("config", config, "A file of the Collector's configuration; several are merged. Required."),
    k("drop-part", drop_part, "Leaves a component out of all pipelines, as `--drop-part` of `spangate collect`."),
    k("feature-gates", feature_gates, "As `--feature-gates` of `spangate collect`."),
    k("root-wait", root_wait, "Decides a trace that began here as long after its root has come, where `decision_wait_after_root_received` is not set; 0: that shortens nothing (default 2s)."),
    k("strict", strict, "A pipeline that cannot be started is an error, whatever its signal."),
    k("threads", threads, "Threads that serve the collector (default 1)."),
];

/// The keywords of the section.
pub fn keywords() -> &'static [K] {
    KEYWORDS
}

/// The names of the `collector` sections in the tree.
pub fn names(tree: &Tree) -> Vec<String> {
    let sections = tree.sections.iter();
    let sections = sections.filter(|section| section.kind() == "collector");
    let name = |section: &Section| section.name().map(|name| name.text.to_string());
    sections.filter_map(name).collect()
}

/// Reads a section.
pub fn section(section: &Section, shared: &mut Shared<'_>) {
    let header = Line::new(&section.header);
    let mut made = CollectorSection {
        name: header.arg(1).to_owned(),
        span: header.span(1),
        files: Vec::new(),
        strict: false,
        drop_parts: Vec::new(),
        feature_gates: Vec::new(),
        threads: 1,
        root_wait: ROOT_WAIT_DEFAULT,
    };
    let result = name(&header, shared);
    shared.settle(result);
    for line in section.statements.iter().map(Line::new) {
        let result = match keywords::find(KEYWORDS, line.keyword()).map(|known| known.state) {
            Some(State::Supported(parser)) => parser(&mut made, &line),
            _ => Err(unknown(&line, "collector", KEYWORDS.iter().map(|k| k.name))),
        };
        shared.settle(result);
    }
    if made.files.is_empty() {
        let message = format!("collector '{}' has no 'config'.", made.name);
        shared.diagnostics.alert(&header.span(0), message);
    }
    for (file, span) in &mut made.files {
        let path = shared
            .default_path
            .resolve(Path::new(file), &span.source.name);
        *file = path.to_string_lossy().into_owned();
    }
    shared.collectors.push(made);
}

fn name(header: &Line<'_>, shared: &Shared<'_>) -> Parse {
    let name = header.need(1, || "missing name for collector section.".into())?;
    header.at_most(1)?;
    if let Some(bad) = bad_name_character(header.bytes(1)) {
        let message = format!("character '{bad}' is not permitted in 'collector' name '{name}'.");
        return Err(header.fault(1, message));
    }
    let twin = shared.collectors.iter().find(|other| other.name == name);
    twin.map_or(Ok(()), |twin| {
        let place = twin.span.place();
        let message = format!(
            "collector section '{name}' has the same name as another one declared at {place}."
        );
        Err(header.fault(1, message))
    })
}

/// `config <file>`
fn config(section: &mut CollectorSection, line: &Line<'_>) -> Parse {
    let name = line.need(1, || "'config' expects a file name as argument.".into())?;
    line.at_most(1)?;
    let span = line.span(1);
    section.files.push((name.to_owned(), span));
    Ok(())
}

/// `drop-part <id>`
fn drop_part(section: &mut CollectorSection, line: &Line<'_>) -> Parse {
    let id = line.need(1, || {
        "'drop-part' expects the id of a component as argument.".into()
    })?;
    line.at_most(1)?;
    section.drop_parts.push(id.to_owned());
    Ok(())
}

/// `feature-gates <list>`
fn feature_gates(section: &mut CollectorSection, line: &Line<'_>) -> Parse {
    let list = line.need(1, || {
        "'feature-gates' expects a list of gates as argument.".into()
    })?;
    line.at_most(1)?;
    section.feature_gates.push(list.to_owned());
    Ok(())
}

/// `root-wait <time>`
fn root_wait(section: &mut CollectorSection, line: &Line<'_>) -> Parse {
    let text = line.need(1, || "'root-wait' expects a time as argument.".into())?;
    line.at_most(1)?;
    let fault = |bad| line.fault(1, time_message(bad, text, "root-wait"));
    section.root_wait = whole_time(text).map_err(fault)?;
    Ok(())
}

/// `strict`
fn strict(section: &mut CollectorSection, line: &Line<'_>) -> Parse {
    line.at_most(0)?;
    section.strict = true;
    Ok(())
}

/// `threads <number>`
fn threads(section: &mut CollectorSection, line: &Line<'_>) -> Parse {
    let text = line.need(1, || "'threads' expects a number as argument.".into())?;
    line.at_most(1)?;
    let number = text.parse().ok();
    let number = number.filter(|number| (1..=THREADS_MAX).contains(number));
    section.threads = number.ok_or_else(|| {
        let message = format!("'threads' expects a number from 1 to {THREADS_MAX}, got '{text}'.");
        line.fault(1, message)
    })?;
    Ok(())
}

/// The message for a name without a section.
pub fn no_such(name: &str, names: &[String]) -> String {
    let hint = did_you_mean(name, names.iter().map(String::as_str));
    format!("there is no section 'collector {name}'{hint}.")
}

/// The first collector that a filter names and that does not exist.
pub fn unknown_of<'s>(
    settings: &'s telemetry::settings::Settings,
    names: &[String],
) -> Option<&'s str> {
    let mut named = settings.collectors();
    let unknown = named.find(|(_, collector)| !names.contains(&collector.name));
    unknown.map(|(_, collector)| collector.name.as_str())
}
