//! Statements: an editor, and a condition behind `where`.

use super::client::Client;
use super::edit::{self, Edit};
use super::eval::{Failure, Subject};
use super::parser::{Parser, Scope, Test};
use super::{Context, Error};

/// A statement that was parsed.
#[derive(Debug)]
pub struct Statement {
    edit: Edit,
    condition: Option<Test>,
    client: Vec<Client>,
    schemas: bool,
}

impl Statement {
    /// Parses a statement for a context. With `prefixed`, every path must say what it is of
    /// (`span.name`).
    ///
    /// # Errors
    /// What is wrong, and where.
    pub fn parse(text: &str, context: Context, prefixed: bool) -> Result<Statement, Error> {
        let tokens = super::tokens(text)?;
        let scope = Scope { context, prefixed };
        let mut parser = Parser::new(&tokens, text.len(), scope, None);
        let edit = edit::parse(&mut parser)?;
        let condition = if parser.word("where") {
            Some(parser.any()?)
        } else {
            None
        };
        parser.finish()?;
        Ok(Statement {
            edit,
            condition,
            client: parser.client,
            schemas: parser.schemas,
        })
    }

    /// The client properties that it reads.
    #[must_use]
    pub fn client(&self) -> &[Client] {
        &self.client
    }

    /// Whether it reads or writes a `schema_url`.
    #[must_use]
    pub fn reads_schemas(&self) -> bool {
        self.schemas
    }

    /// Whether it is an editor of metrics, which may change the number of data points.
    #[must_use]
    pub fn is_of_metrics(&self) -> bool {
        matches!(self.edit, Edit::Metric(_))
    }

    /// What it does to a subject; none where its condition is false.
    ///
    /// # Errors
    /// The condition cannot be evaluated.
    pub fn edit(&self, subject: &Subject<'_, '_, '_>) -> Result<Option<&Edit>, Failure> {
        Ok(match &self.condition {
            Some(condition) if !condition.is_true(subject)? => None,
            _ => Some(&self.edit),
        })
    }
}
