//! What is wrong or strange in a configuration, and where.

use std::cell::RefCell;
use std::fmt;

/// Diagnostics of one load that are kept; one more says that there were others.
pub const DIAGNOSTICS_MAX: usize = 500;

/// A place in one of the files that were read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct At {
    /// Number of the file, in the order of reading.
    pub file: u32,
    /// From 1.
    pub line: u32,
    /// In characters, from 1.
    pub column: u32,
}

/// Whether a configuration can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// It cannot.
    Error,
    /// It can, but something is not as it looks.
    Warning,
}

/// One thing to tell about a configuration; shown as `file:line:column: message`, or the message
/// alone where it is about the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// The file's name as it was given.
    pub file: String,
    /// Line, from 1; 0: it is about no file.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// What is wrong, with the path of the option.
    pub message: String,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Diagnostic {
            file, line, column, ..
        } = self;
        match line {
            0 => write!(out, "{}", self.message),
            line => write!(out, "{file}:{line}:{column}: {}", self.message),
        }
    }
}

/// What has been found so far, and the files that places are in.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    files: RefCell<Vec<String>>,
    found: RefCell<Vec<(Severity, At, String)>>,
}

impl Notes {
    /// The number of a file that is read now.
    pub(crate) fn file(&self, name: &str) -> u32 {
        let mut files = self.files.borrow_mut();
        files.push(one_line(name));
        u32::try_from(files.len() - 1).unwrap_or(u32::MAX)
    }

    /// The name of a file.
    pub(crate) fn file_name(&self, at: At) -> String {
        let files = self.files.borrow();
        files.get(at.file as usize).cloned().unwrap_or_default()
    }

    /// `file:line` of a place, for messages about another place.
    pub(crate) fn place(&self, at: At) -> String {
        format!("{}:{}", self.file_name(at), at.line)
    }

    pub(crate) fn error(&self, at: At, message: impl Into<String>) {
        self.add(Severity::Error, at, message.into());
    }

    pub(crate) fn warn(&self, at: At, message: impl Into<String>) {
        self.add(Severity::Warning, at, message.into());
    }

    fn add(&self, severity: Severity, at: At, message: String) {
        let mut found = self.found.borrow_mut();
        let item = (severity, at, one_line(&message));
        if found.len() > DIAGNOSTICS_MAX || found.contains(&item) {
            return;
        }
        if found.len() < DIAGNOSTICS_MAX {
            return found.push(item);
        }
        // Past the bound nothing is told any more but that there is more: an error, so that nothing
        // runs unread.
        let message = format!("more than {DIAGNOSTICS_MAX} messages: the rest is not told");
        found.push((Severity::Error, At::default(), message));
    }

    pub(crate) fn has_errors(&self) -> bool {
        let found = self.found.borrow();
        found
            .iter()
            .any(|(severity, ..)| *severity == Severity::Error)
    }

    /// Everything, in the order of the files.
    pub(crate) fn into_diagnostics(self) -> Vec<Diagnostic> {
        let mut found = self.found.into_inner();
        found.sort_by_key(|(severity, at, _)| (*at, *severity));
        let files = self.files.into_inner();
        let diagnostic = |(severity, at, message): (Severity, At, String)| Diagnostic {
            severity,
            file: files.get(at.file as usize).cloned().unwrap_or_default(),
            line: at.line,
            column: at.column,
            message,
        };
        found.into_iter().map(diagnostic).collect()
    }
}

/// A text without control characters: what comes from outside breaks no line.
fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() {
            line.extend(c.escape_default())
        } else {
            line.push(c)
        }
    }
    line
}
