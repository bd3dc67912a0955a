//! A fault in an expression, and its place.

use std::fmt;

/// A fault in an expression. `word` and the byte range locate it in the given words, for a caret
/// below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExprError {
    /// Index of the word; equals the number of words if one is missing.
    pub word: usize,
    /// First byte of the fault in the word.
    pub start: usize,
    /// Byte after the fault.
    pub end: usize,
    /// What is wrong, in HAProxy's words where users know them.
    pub message: String,
}

impl ExprError {
    /// A fault at a byte range of a word.
    #[must_use]
    pub fn at(word: usize, start: usize, end: usize, message: impl Into<String>) -> ExprError {
        ExprError {
            word,
            start,
            end,
            message: message.into(),
        }
    }

    /// The same fault for a word that is `shift` places further to the right.
    #[must_use]
    pub fn shifted(mut self, shift: usize) -> ExprError {
        self.word += shift;
        self
    }
}

impl fmt::Display for ExprError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)
    }
}

impl std::error::Error for ExprError {}
