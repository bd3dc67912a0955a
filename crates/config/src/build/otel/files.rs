//! The files that filters name, read once each.

use crate::condition::BuildInfo;
use crate::diagnostic::Diagnostics;
use crate::environment::Environment;
use crate::reader::{self, Options};
use crate::tree::{Statement, Tree};
use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::line::Line;

/// A filter's file that is larger is refused, in bytes.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// By name as written: what a file holds, or why it cannot be read.
#[derive(Clone, Debug, Default)]
pub struct Files {
    files: BTreeMap<String, Result<Arc<Tree>, String>>,
}

impl Files {
    /// What a file holds.
    pub fn get(&self, name: &str) -> Option<Arc<Tree>> {
        self.files.get(name)?.as_ref().ok().cloned()
    }

    /// Why it cannot be read.
    pub fn error(&self, name: &str) -> Option<&str> {
        self.files.get(name)?.as_ref().err().map(String::as_str)
    }

    /// Adds a file's text.
    pub fn add(
        &mut self,
        name: &str,
        text: &[u8],
        build: &BuildInfo,
        environment: &mut Environment,
        diagnostics: &mut Diagnostics,
    ) {
        let options = Options {
            sections: &super::SECTIONS,
            build,
        };
        let (tree, found) = reader::read_text(name, text, &options, environment);
        diagnostics.append(found);
        self.files.insert(name.to_owned(), Ok(Arc::new(tree)));
    }
}

/// Reads every file that a `filter` line of the tree names. Names count from the working folder.
pub fn read(
    tree: &Tree,
    build: &BuildInfo,
    environment: &mut Environment,
    diagnostics: &mut Diagnostics,
) -> Files {
    let mut files = Files::default();
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
        match bounded(name) {
            Ok(text) => files.add(name, &text, build, environment, diagnostics),
            Err(error) => {
                files.files.insert(name.to_owned(), Err(error));
            }
        }
    }
    files
}

/// The bytes of a file of bearable size.
pub fn bounded(name: &str) -> Result<Vec<u8>, String> {
    use std::io::Read as _;
    let file = std::fs::File::open(name).map_err(|error| error.to_string())?;
    let mut text = Vec::new();
    let read = file.take(FILE_BYTES_MAX + 1).read_to_end(&mut text);
    read.map_err(|error| error.to_string())?;
    match text.len() as u64 > FILE_BYTES_MAX {
        true => Err(format!("larger than {FILE_BYTES_MAX} bytes")),
        false => Ok(text),
    }
}
