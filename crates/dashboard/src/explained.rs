//! `GET /api/explain`: what the configuration does with a request.

use serde_json::Value;

use crate::query;

/// The question as the user wrote it.
#[derive(Clone, Debug, Default)]
pub struct Question {
    /// The method.
    pub method: String,
    /// The URL, with scheme and host.
    pub url: String,
    /// Header fields, `name: value`.
    pub fields: Vec<String>,
    /// The client's address; empty: unknown.
    pub source: String,
    /// The frontend's name; empty: the frontend that listens on the URL's port.
    pub frontend: String,
    /// The assumed response: a status or a status line; empty: none.
    pub response: String,
    /// Its header fields, `name: value`.
    pub response_fields: Vec<String>,
}

/// Explains a request, or returns what is wrong with it.
pub type Explain = dyn Fn(&Question) -> Result<Value, String> + Send + Sync;

/// Reads the query.
///
/// # Errors
/// A parameter is unknown.
pub fn read(text: &str) -> Result<Question, String> {
    let mut question = Question {
        method: "GET".to_owned(),
        ..Question::default()
    };
    for (name, value) in query::pairs(text) {
        match &*name {
            "method" => question.method = value,
            "url" => question.url = value,
            "header" => question.fields.push(value),
            "source" => question.source = value,
            "frontend" => question.frontend = value,
            "response" => question.response = value,
            "response_header" => question.response_fields.push(value),
            _ => return Err(format!("there is no parameter '{name}'")),
        }
    }
    Ok(question)
}
