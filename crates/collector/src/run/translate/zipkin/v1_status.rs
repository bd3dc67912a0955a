//! The status of a span of version 1, by the annotations that may tell it.

use crate::run::translate::span::{Any, Code, Span};

use super::model::status_code;

/// What the annotations told so far, the one that counts most first: OpenCensus, OpenTelemetry,
/// `error`, HTTP.
#[derive(Default)]
pub struct Status {
    census: Option<Code>,
    census_message: String,
    own: Option<Code>,
    own_message: String,
    is_error: bool,
    http: Option<Code>,
    http_message: String,
}

impl Status {
    /// Looks at an annotation; whether it says nothing besides.
    pub fn takes(&mut self, key: &str, value: &Any<'_>) -> bool {
        let text = || value.as_text().to_owned();
        match key {
            "census.status_code" => {
                let code = |number| if number == 0 { Code::Ok } else { Code::Error };
                self.census = number(value).map(code).or(self.census);
            }
            "census.status_description" | "opencensus.status_description" => {
                self.census_message = text();
            }
            "otel.status_code" => {
                self.own = Some(match number(value) {
                    Some(1) => Code::Ok,
                    Some(2) => Code::Error,
                    _ => status_code(value.as_text()),
                });
            }
            "otel.status_description" => self.own_message = text(),
            "error" => self.is_error = true,
            "http.status_code" => {
                let code = |number| match number {
                    100..400 => Code::Unset,
                    _ => Code::Error,
                };
                self.http = number(value).map(code).or(self.http);
                return false;
            }
            "http.status_message" => {
                self.http_message = text();
                return false;
            }
            _ => return false,
        }
        true
    }

    /// Sets the status of a span.
    pub fn set(self, span: &mut Span<'_>) {
        let (code, message) = match self {
            Status {
                census: Some(code),
                census_message,
                ..
            } => (code, census_message),
            Status {
                own: Some(code),
                own_message,
                ..
            } => (code, own_message),
            Status {
                is_error: true,
                census_message,
                own_message,
                ..
            } => {
                let message = [census_message, own_message];
                let first = message.into_iter().find(|text| !text.is_empty());
                (Code::Error, first.unwrap_or_default())
            }
            Status {
                http: Some(code),
                http_message,
                ..
            } => (code, http_message),
            _ => return,
        };
        span.status = code;
        span.status_message = message.into();
    }
}

fn number(value: &Any<'_>) -> Option<i32> {
    match value {
        Any::Int(number) => i32::try_from(*number).ok(),
        Any::Text(text) => text.parse().ok(),
        _ => None,
    }
}
