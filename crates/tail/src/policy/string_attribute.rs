//! `string_attribute`: an attribute is one of some texts, or some regular expression is found in
//! it.
//!
//! The Collector caches the results of regular expressions. Here a match takes linear time, so there
//! is no cache.

use otlp::scan::Any;
use ottl::pattern;
use regex_automata::meta::Regex;

/// The texts or expressions.
#[derive(Debug)]
pub enum Texts {
    Exact(Vec<Box<[u8]>>),
    Regex(Regex),
}

impl Texts {
    /// Compiles them. An exact empty text matches nothing.
    ///
    /// # Errors
    /// Which expression is none, and why.
    pub fn new(values: &[String], regex: bool) -> Result<Texts, String> {
        if regex {
            return pattern::compile(values).map(Texts::Regex);
        }
        let texts = values.iter().filter(|value| !value.is_empty());
        Ok(Texts::Exact(
            texts.map(|text| text.as_bytes().into()).collect(),
        ))
    }

    /// An attribute matches; `on_span` as an empty text matches only on a resource. What is no text
    /// reads as empty.
    pub fn matches(&self, value: Any<'_>, on_span: bool) -> bool {
        let text = match value {
            Any::Text(text) => text,
            _ => b"",
        };
        if on_span && text.is_empty() {
            return false;
        }
        match self {
            Texts::Exact(texts) => texts.iter().any(|wanted| **wanted == *text),
            Texts::Regex(regex) => regex.is_match(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(values: &[&str], regex: bool) -> Texts {
        let values: Vec<String> = values.iter().map(|value| (*value).to_owned()).collect();
        Texts::new(&values, regex).unwrap()
    }

    #[test]
    fn exact_texts() {
        let exact = texts(&["gold", "", "a.c"], false);
        assert!(exact.matches(Any::Text(b"gold"), true));
        assert!(!exact.matches(Any::Text(b"abc"), true));
        assert!(!exact.matches(Any::Text(b""), false));
        assert!(!exact.matches(Any::Int(1), true));
    }

    #[test]
    fn expressions_are_not_anchored() {
        let regex = texts(&["/health", "^[a-c]+$"], true);
        assert!(regex.matches(Any::Text(b"/api/healthz/health"), true));
        assert!(regex.matches(Any::Text(b"abc"), true));
        assert!(!regex.matches(Any::Text(b"abcd"), true));
        let any = texts(&[".*"], true);
        assert!(any.matches(Any::Text(b""), false) && !any.matches(Any::Text(b""), true));
        assert!(
            any.matches(Any::Int(3), false),
            "what is no text reads as empty"
        );
    }

    #[test]
    fn a_bad_expression_is_named() {
        let error = Texts::new(&["ok".to_owned(), "(".to_owned()], true).unwrap_err();
        assert!(error.contains("\"(\""), "{error}");
        let large = Texts::new(&[".{1000}".repeat(30)], true);
        assert!(large.is_err(), "what takes too much memory is refused");
    }
}
