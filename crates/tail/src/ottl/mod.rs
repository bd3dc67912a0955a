//! Conditions of the OpenTelemetry Transformation Language (OTTL), as far as policies need them.
//!
//! `==`, `!=`, `<`, `<=`, `>`, `>=`, `and`, `or`, `not`, parentheses, `+ - * /`, texts, numbers, booleans, `nil`, bytes and
//! enums; paths of spans, span events, resources and scopes; the functions of [`FUNCTIONS`]. What is not among these is
//! refused by its name when a condition is parsed.

mod eval;
mod function;
mod lexer;
mod parser;
mod path;
mod value;

pub use eval::{Failure, Subject};
pub use function::FUNCTIONS;

use crate::policy::Keys;
use std::fmt;

/// Bytes of a condition.
pub const CONDITION_BYTES_MAX: usize = 16 << 10;

/// Parentheses, functions and operators inside each other.
pub const DEPTH_MAX: u32 = 64;

/// What a condition is about, where a path does not say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Context {
    /// A span.
    Span,
    /// An event of a span.
    SpanEvent,
}

/// What is wrong with a condition, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The byte at which it was noticed.
    pub at: usize,
    /// What it is.
    pub why: String,
}

impl Error {
    fn new(at: usize, why: impl Into<String>) -> Error {
        Error {
            at,
            why: why.into(),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at character {}: {}", self.at + 1, self.why)
    }
}

impl std::error::Error for Error {}

/// A condition that was parsed.
#[derive(Debug)]
pub struct Condition(parser::Test);

impl Condition {
    /// Parses a condition; the attributes of spans that it names get places in `keys`.
    ///
    /// # Errors
    /// What is wrong, and where.
    pub fn parse(text: &str, context: Context, keys: &mut Keys) -> Result<Condition, Error> {
        if text.len() > CONDITION_BYTES_MAX {
            let why = format!("a condition has no more than {CONDITION_BYTES_MAX} bytes");
            return Err(Error::new(CONDITION_BYTES_MAX, why));
        }
        let tokens = lexer::tokens(text)?;
        parser::parse(&tokens, text.len(), context, keys).map(Condition)
    }

    /// Whether it is true.
    ///
    /// # Errors
    /// It cannot be said, because of what the subject is.
    pub fn is_true(&self, subject: &Subject<'_, '_, '_>) -> Result<bool, Failure> {
        self.0.is_true(subject)
    }
}

#[cfg(test)]
mod tests;
