//! `GET /api/explain`: what the configuration does with a request.

use serde_json::Value;

use crate::query;

/// What is asked, as it was written.
#[derive(Clone, Debug, Default)]
pub struct Question {
    /// The method.
    pub method: String,
    /// The URL, with its scheme and name.
    pub url: String,
    /// Header fields, `name: value`.
    pub fields: Vec<String>,
    /// The client's address; empty: it is not known.
    pub source: String,
    /// The frontend's name; empty: that which listens on the URL's port.
    pub frontend: String,
}

/// Explains a request, or says what is wrong with it.
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
            _ => return Err(format!("there is no parameter '{name}'")),
        }
    }
    Ok(question)
}
