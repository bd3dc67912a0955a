//! The spanned tree: what was written, section by section, before anything is understood.

use std::sync::Arc;

/// A source file (or `-f` standard input, or the command line).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// As given on the command line; the name in diagnostics.
    pub name: String,
    /// Physical lines, for the excerpt under a diagnostic.
    pub lines: Vec<String>,
}

/// A place in a source: the line, counted from 1 as HAProxy does (the last physical line of a continued one),
/// and the byte range in its excerpt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    pub source: Arc<Source>,
    pub line: u32,
    pub start: u32,
    pub end: u32,
}

/// A word after quotes, escapes and environment variables are resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    pub text: String,
    pub span: Span,
}

/// One line of a section. `no` and `default` prefixes are taken off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    pub words: Vec<Word>,
    pub prefix: Prefix,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Prefix { #[default] None, No, Default }

/// A section: its header line and its statements. Sections of the same kind and name are still apart here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    pub header: Statement,
    pub statements: Vec<Statement>,
}

/// All sections of all files, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    pub sections: Vec<Section>,
}
