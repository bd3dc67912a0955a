//! `debug`: what passes, in the log. `logging` is its old name.

use super::{Exporter, ExporterSettings};
use crate::config::components::shared::queue;
use crate::config::components::{EVERY, Entry, Parse, name, old_name};
use crate::config::options::{Kind, Opt, Section, opt};

/// An exporter into the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DebugExporter {
    /// How much is told.
    pub verbosity: Verbosity,
    /// Messages of a second that are all told.
    pub sampling_initial: u64,
    /// Then one of so many; 0: none.
    pub sampling_thereafter: u64,
    /// Where it is told; empty: the own log.
    pub output_paths: Vec<String>,
}

impl ExporterSettings for DebugExporter {
    fn is_ordered(&self) -> bool {
        true
    }
}

/// How much of the data is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verbosity {
    /// Counts.
    Basic,
    /// A line for each record.
    Normal,
    /// Everything.
    Detailed,
}

#[rustfmt::skip]
const LEVELS: &[&str] = &["basic", "normal", "detailed"];
#[rustfmt::skip]
const LOG_LEVELS: &[&str] = &["debug", "info", "warn", "error", "dpanic", "panic", "fatal"];

#[rustfmt::skip]
const OPTIONS: &[Opt] = &[
    opt("verbosity", Kind::WordAnyCase(LEVELS), "basic", "how much is told"),
    opt("sampling_initial", Kind::Int(0, i64::MAX), "2", "batches of a signal and second that are all told"),
    opt("sampling_thereafter", Kind::Int(0, i64::MAX), "1", "then one of so many; 0: none"),
    opt("use_internal_logger", Kind::Flag, "true", "into the own log; else to `output_paths`"),
    opt("output_paths", Kind::Texts, "", "files, `stdout` or `stderr`; stdout where it is not written; control characters are escaped"),
    opt("sending_queue", Kind::Section(queue::TABLE), "", "what waits before it").no_effect("the log is written at once"),
    opt("loglevel", Kind::WordAnyCase(LOG_LEVELS), "", "old form of `verbosity`").deprecated("write 'verbosity': detailed for debug, else normal"),
];

pub(crate) const ENTRY: Entry = Entry {
    names: &[
        name("debug"),
        old_name(
            "logging",
            "the exporter 'logging' is now 'debug': it is taken for that",
        ),
    ],
    doc: "what passes, in the log",
    takes: EVERY,
    carries: EVERY,
    options: &[OPTIONS],
    parse: Parse::Exporter(parse),
};

fn parse(section: &Section<'_>) -> Exporter {
    let is_own_log = section.flag("use_internal_logger");
    let mut output_paths = section.texts("output_paths");
    let written = section.written("output_paths").is_some();
    match (is_own_log, written) {
        (true, true) => {
            section.error(
                "output_paths",
                "counts only with 'use_internal_logger: false'",
            );
        }
        (false, true) if output_paths.is_empty() => {
            section.error("output_paths", "must name a file, stdout or stderr");
        }
        (false, false) => output_paths.push("stdout".to_owned()),
        _ => {}
    }
    Exporter::new(DebugExporter {
        verbosity: verbosity(section),
        sampling_initial: section.int("sampling_initial"),
        sampling_thereafter: section.int("sampling_thereafter"),
        output_paths,
    })
}

fn verbosity(section: &Section<'_>) -> Verbosity {
    if section.written("verbosity").is_none() {
        match section.text("loglevel").to_ascii_lowercase().as_str() {
            "debug" => return Verbosity::Detailed,
            "info" => return Verbosity::Normal,
            _ => {}
        }
    }
    section.choice(
        "verbosity",
        &[
            ("basic", Verbosity::Basic),
            ("normal", Verbosity::Normal),
            ("detailed", Verbosity::Detailed),
        ],
    )
}
