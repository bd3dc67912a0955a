//! The files that filters name. Each is read once.

use crate::condition::BuildInfo;
use crate::diagnostic::Diagnostics;
use crate::environment::Environment;
use crate::reader::{self, Options};
use crate::tree::{Source, Statement, Tree};
use std::collections::BTreeMap;
use std::sync::Arc;
use telemetry::settings::Settings;

use super::super::collector;
use super::super::line::Line;

/// The largest accepted file of a filter, in bytes.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// Returns the bytes of a file, or the reason why it cannot be read.
pub type ReadFile<'a> = dyn Fn(&str) -> Result<Vec<u8>, String> + 'a;

/// By name as written: the content of a file, or the reason why it cannot be read.
#[derive(Clone, Debug, Default)]
pub struct Files {
    files: BTreeMap<String, Result<Arc<Tree>, String>>,
    /// OpenTelemetry's environment variables.
    variables: BTreeMap<String, String>,
    /// The names of the sections `collector`.
    collectors: Vec<String>,
    /// Settings by name and context.
    settings: BTreeMap<(String, Option<String>), Read>,
}

/// The result of reading a file with exporters, samplers and processors.
#[derive(Clone, Debug)]
pub enum Read {
    /// Its settings, and warnings.
    Good(Box<Settings>, Vec<String>),
    /// Its source, and all faults in it.
    Wrong(Arc<Source>, Vec<telemetry::settings::Error>),
    /// The reason why it cannot be read.
    Unread(String),
}

impl Files {
    /// The content of a file.
    pub fn get(&self, name: &str) -> Option<Arc<Tree>> {
        self.files.get(name)?.as_ref().ok().cloned()
    }

    /// The reason why a file cannot be read.
    pub fn error(&self, name: &str) -> Option<&str> {
        self.files.get(name)?.as_ref().err().map(String::as_str)
    }

    /// The settings in a file with exporters, samplers and processors.
    pub fn settings(&self, file: &str, context: Option<&str>) -> Option<&Read> {
        self.settings
            .get(&(file.to_owned(), context.map(str::to_owned)))
    }

    /// An environment variable, if it is one of OpenTelemetry's.
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str)
    }

    /// Reads the files that the instrumentations in a filter's file name.
    fn add_settings(&mut self, tree: &Tree, read_file: &ReadFile<'_>, environment: &Environment) {
        let get = |name: &str| {
            let value = environment.get(name)?;
            Some(String::from_utf8_lossy(value).into_owned())
        };
        let sections = tree.sections.iter();
        let statements = sections
            .filter(|section| section.kind() == super::SECTIONS[0])
            .flat_map(|section| &section.statements);
        for line in statements.filter(|statement| statement.keyword() == "config") {
            let file = line.arg(1);
            let context = line.words.get(2).map(|word| word.text.to_string());
            let read = match read_file(file).map(String::from_utf8) {
                Err(error) => Read::Unread(error),
                Ok(Err(_)) => Read::Unread("it is not UTF-8".to_owned()),
                Ok(Ok(text)) => {
                    let parsed = telemetry::settings::parse(&text, file, context.as_deref(), &get);
                    match parsed.and_then(|parsed| self.with_collectors(parsed)) {
                        Ok((settings, warnings)) => Read::Good(Box::new(settings), warnings),
                        Err(errors) => {
                            Read::Wrong(Arc::new(Source::new(file, text.into_bytes())), errors)
                        }
                    }
                }
            };
            self.settings.insert((file.to_owned(), context), read);
        }
    }

    /// Settings, after a check that every collector that they name exists.
    fn with_collectors(
        &self,
        parsed: (Settings, Vec<String>),
    ) -> Result<(Settings, Vec<String>), Vec<telemetry::settings::Error>> {
        let named = parsed.0.collectors();
        let unknown = named.filter(|(_, collector)| !self.collectors.contains(&collector.name));
        let errors = unknown.map(|(_, collector)| telemetry::settings::Error {
            line: collector.at.map_or(1, |at| at.line),
            column: collector.at.map_or(1, |at| at.column),
            message: collector::no_such(&collector.name, &self.collectors),
        });
        let mut errors: Vec<_> = errors.collect();
        errors.sort_by_key(|error| (error.line, error.column));
        errors.dedup();
        if errors.is_empty() {
            Ok(parsed)
        } else {
            Err(errors)
        }
    }

    /// Adds a file's text.
    pub fn add(
        &mut self,
        name: &str,
        text: &[u8],
        build: &BuildInfo,
        read_file: &ReadFile<'_>,
        environment: &mut Environment,
        diagnostics: &mut Diagnostics,
    ) {
        let options = Options {
            sections: &super::SECTIONS,
            build,
        };
        let (tree, found) = reader::read_text(name, text, &options, environment);
        diagnostics.append(found);
        self.add_settings(&tree, read_file, environment);
        self.files.insert(name.to_owned(), Ok(Arc::new(tree)));
    }
}

/// Reads every file that a `filter` line of the tree names. Names are relative to the working
/// directory.
pub fn read(
    tree: &Tree,
    build: &BuildInfo,
    read_file: &ReadFile<'_>,
    environment: &mut Environment,
    diagnostics: &mut Diagnostics,
) -> Files {
    let variables = environment.iter().filter_map(|(name, value)| {
        let name = std::str::from_utf8(name).ok()?;
        let value = String::from_utf8_lossy(value).into_owned();
        name.starts_with("OTEL_").then(|| (name.to_owned(), value))
    });
    let mut files = Files {
        variables: variables.collect(),
        collectors: collector::names(tree),
        ..Files::default()
    };
    let statements = tree.sections.iter().flat_map(|section| &section.statements);
    let filters = statements.filter(|statement: &&Statement| statement.keyword() == "filter");
    for statement in filters {
        let Ok(Some(words)) = super::words(&Line::new(statement)) else {
            continue;
        };
        let (_, name) = words.config;
        if files.files.contains_key(name) {
            continue;
        }
        match read_file(name) {
            Ok(text) => {
                files.add(name, &text, build, read_file, environment, diagnostics);
            }
            Err(error) => {
                files.files.insert(name.to_owned(), Err(error));
            }
        }
    }
    files
}

/// The bytes of a file, up to the size limit.
pub fn bounded(name: &str) -> Result<Vec<u8>, String> {
    let text = ::files::read(name, FILE_BYTES_MAX + 1).map_err(|error| error.to_string())?;
    if text.len() as u64 > FILE_BYTES_MAX {
        Err(format!("larger than {FILE_BYTES_MAX} bytes"))
    } else {
        Ok(text)
    }
}
