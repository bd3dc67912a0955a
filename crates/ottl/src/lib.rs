//! Conditions and statements of the OpenTelemetry Transformation Language (OTTL).
//!
//! `==`, `!=`, `<`, `<=`, `>`, `>=`, `and`, `or`, `not`, parentheses, `+ - * /`, texts, numbers,
//! booleans, `nil`, bytes and enums; paths of all contexts of [`Context`]; the functions of
//! `function::FUNCTIONS`. What is not among these is refused by its name when a
//! condition is parsed.

mod client;
mod context;
mod edit;
mod eval;
pub mod fnv;
mod function;
mod key;
mod lexer;
mod outside;
mod parser;
mod path;
pub mod pattern;
mod replace;
mod statement;
mod value;
mod zone;

pub use client::{Client, Told};
pub use context::Context;
pub use edit::{Aggregation, Distribution, Merge, MetricEdit};
pub use edit::{Edit, Editor, Replace, Strategy, editors, texts};
pub use eval::{Failure, Record, Schemas, Subject};
pub use function::{Function, MISSING, names as function_names};
pub use key::Found;
pub use outside::Outside;
pub use parser::Term;
pub use path::{Form, Message, Path, kind_of};
pub use statement::Statement;
pub use value::{ENTRIES, VALUE_BYTES_MAX, Value, check_depth};
pub use zone::Zone;

use otlp::scan::Keys;
use parser::{Parser, Scope};
use std::fmt;

/// Bytes of a condition.
pub const CONDITION_BYTES_MAX: usize = 16 << 10;

/// Parentheses, functions and operators inside each other.
pub const DEPTH_MAX: u32 = 64;

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
pub struct Condition {
    test: parser::Test,
    client: Vec<Client>,
    schemas: bool,
}

impl Condition {
    /// Parses a condition; the attributes of spans that it names get places in `keys`.
    ///
    /// # Errors
    /// What is wrong, and where.
    pub fn parse(text: &str, context: Context, keys: &mut Keys) -> Result<Condition, Error> {
        let scope = Scope {
            context,
            prefixed: false,
        };
        condition(text, scope, Some(keys))
    }

    /// Parses a condition whose paths all say what they are of (`span.name`), for a context.
    ///
    /// # Errors
    /// As [`Condition::parse`]; also where a path is of something within the context.
    pub fn prefixed(text: &str, context: Context) -> Result<Condition, Error> {
        let scope = Scope {
            context,
            prefixed: true,
        };
        condition(text, scope, None)
    }

    /// Whether it is true.
    ///
    /// # Errors
    /// It cannot be said, because of what the subject is.
    pub fn is_true(&self, subject: &Subject<'_, '_, '_>) -> Result<bool, Failure> {
        self.test.is_true(subject)
    }

    /// The client properties that it reads.
    #[must_use]
    pub fn client(&self) -> &[Client] {
        &self.client
    }

    /// Whether it reads a `schema_url`.
    #[must_use]
    pub fn reads_schemas(&self) -> bool {
        self.schemas
    }
}

fn condition(text: &str, scope: Scope, keys: Option<&mut Keys>) -> Result<Condition, Error> {
    let tokens = tokens(text)?;
    let mut parser = Parser::new(&tokens, text.len(), scope, keys);
    let test = parser.any()?;
    parser.finish()?;
    Ok(Condition {
        test,
        client: parser.client,
        schemas: parser.schemas,
    })
}

fn tokens(text: &str) -> Result<Vec<(usize, lexer::Token)>, Error> {
    if text.len() > CONDITION_BYTES_MAX {
        let why = format!("a condition has no more than {CONDITION_BYTES_MAX} bytes");
        return Err(Error::new(CONDITION_BYTES_MAX, why));
    }
    lexer::tokens(text)
}

#[cfg(test)]
mod tests;
