//! What is wrong with an expression, and where.

use std::fmt;

/// A fault in an expression. `word` and the byte range locate it inside the words given, for a caret under it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExprError {
    /// Index of the word; may be the number of words when one is missing.
    pub word: usize,
    /// First byte of the fault in that word.
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

    /// The same fault where the word given was `shift` words further to the right.
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
