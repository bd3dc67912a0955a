//! Where the exporter `debug` writes.

use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::sync::{Mutex, PoisonError};

use super::Told;
use crate::config::Signal;
use crate::run::Log;

/// See the module.
pub(super) enum Output {
    /// The own log.
    Log(Log),
    /// `output_paths`
    Paths(Mutex<Vec<Path>>),
}

pub(super) enum Path {
    Stdout,
    Stderr,
    File(File),
}

impl Output {
    /// The own log where there are no paths.
    ///
    /// # Errors
    /// Which file cannot be opened, and why.
    pub(super) fn open(paths: &[String], log: &Log) -> Result<Output, String> {
        if paths.is_empty() {
            return Ok(Output::Log(log.clone()));
        }
        let open = |path: &String| match path.as_str() {
            "stdout" => Ok(Path::Stdout),
            "stderr" => Ok(Path::Stderr),
            path => {
                let opened = OpenOptions::new().create(true).append(true).open(path);
                let opened = opened.map_err(|error| format!("output_paths: {path}: {error}"));
                opened.map(Path::File)
            }
        };
        let paths: Result<_, String> = paths.iter().map(open).collect();
        Ok(Output::Paths(Mutex::new(paths?)))
    }

    pub(super) fn write(&self, exporter: &str, signal: Signal, told: &Told) {
        match self {
            Output::Log(log) => {
                let mut own = format!(
                    "\"otelcol.component.id\": \"{exporter}\", \"otelcol.component.kind\": \"exporter\", \
                     \"otelcol.signal\": \"{signal}\""
                );
                let text = told.text.as_ref();
                let text = text.map(|text| format!("{text}\t{{{own}}}"));
                fields(&mut own, &told.counts);
                log.info(&format!("{}\t{{{own}}}", told.head));
                if let Some(text) = text {
                    log.info(&text);
                }
            }
            Output::Paths(paths) => {
                let mut own = String::new();
                fields(&mut own, &told.counts);
                let mut line = format!("{}\t{{{own}}}\n", told.head);
                if let Some(text) = &told.text {
                    line.push_str(text);
                    line.push('\n');
                }
                let mut paths = paths.lock().unwrap_or_else(PoisonError::into_inner);
                for path in paths.iter_mut() {
                    // What cannot be written has nowhere to say so.
                    let _ = match path {
                        Path::Stdout => std::io::stdout().write_all(line.as_bytes()),
                        Path::Stderr => std::io::stderr().write_all(line.as_bytes()),
                        Path::File(file) => file.write_all(line.as_bytes()),
                    };
                }
            }
        }
    }
}

fn fields(out: &mut String, counts: &[(&str, usize)]) {
    for (name, count) in counts {
        if !out.is_empty() {
            out.push_str(", ");
        }
        // Writing to a text cannot fail.
        let _ = write!(out, "\"{name}\": {count}");
    }
}
