//! `POST /api/reload`: a reload in place, or only its effects.

use config::secrets;
use serde_json::{Map, Value};

use crate::configuration::cut_out;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reload {
    /// Only the effects that a reload would have.
    Preview,
    /// The reload.
    Apply,
}

/// Reloads, or shows the effects. Returns the text of the command `reload`, or why nothing has
/// changed.
pub type Reloader = dyn Fn(Reload) -> Result<String, String> + Send + Sync;

/// Reads a request's body: `{"apply": true}` or `{"apply": false}`.
///
/// # Errors
/// The fault in the body.
pub fn read(body: &[u8]) -> Result<Reload, String> {
    let body: Map<String, Value> =
        serde_json::from_slice(body).map_err(|error| format!("the body is no object: {error}"))?;
    match body.get("apply").and_then(Value::as_bool) {
        Some(true) => Ok(Reload::Apply),
        Some(false) => Ok(Reload::Preview),
        None => Err("'apply' must be true or false".to_owned()),
    }
}

/// The answer of the command without secrets. The effects in it have none. A message about a line has
/// that line below it, indented, and often a mark below the wrong word. Both may show a secret.
pub fn without_secrets(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut hidden = Vec::new();
    let mut lines = text.lines().peekable();
    let mut is_below_message = false;
    while let Some(line) = lines.next() {
        if is_below_message && line.starts_with("  ") {
            let mark = lines.peek().and_then(|below| end_of_mark(below));
            shown.push_str(&quote(line, mark, &mut hidden));
        } else {
            shown.push_str(line);
        }
        shown.push('\n');
        is_below_message = line.starts_with('[');
    }
    cut_out(shown, &hidden)
}

/// Where the mark of a line ends, in characters; None for a line that is no mark.
fn end_of_mark(line: &str) -> Option<usize> {
    let mark = line.trim_start();
    let is_mark = !mark.is_empty() && mark.bytes().all(|byte| byte == b'^');
    is_mark.then(|| line.chars().count())
}

/// A quoted line without its secrets, which are appended to `hidden`. All words after the wrong one are
/// hidden, because nothing tells which of them are secrets.
fn quote(line: &str, mark: Option<usize>, hidden: &mut Vec<String>) -> String {
    let end = mark.and_then(|mark| line.char_indices().nth(mark));
    let (known, unknown) = line.split_at(end.map_or(line.len(), |(at, _)| at));
    let quote = secrets::hide(known);
    hidden.extend(quote.hidden);
    if unknown.trim().is_empty() {
        return quote.text;
    }
    let words = unknown.split_whitespace();
    hidden.extend(words.map(|word| format!("'{}'", word.trim_matches(['"', '\'']))));
    format!("{} {}", quote.text, secrets::HIDDEN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_read() {
        assert_eq!(read(br#"{"apply":true}"#), Ok(Reload::Apply));
        assert_eq!(read(br#"{"apply":false}"#), Ok(Reload::Preview));
        for wrong in ["", "{}", "[true]", r#"{"apply":"false"}"#, r#"{"apply":1}"#] {
            assert!(read(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn quoted_lines_and_messages_have_no_secrets() {
        let text = "[ALERT]    (1) : config : parsing [f:4] : 'user' : unknown option 'hunter2'.\n  \
            user ann insecure-password hunter2\n                             ^^^^^^^\n\
            [ALERT]    (1) : config : Fatal errors found in configuration.\n 4  4  ~ user ann\n";
        let shown = without_secrets(text);
        assert!(!shown.contains("hunter2"), "{shown}");
        assert!(
            shown.contains("  user ann insecure-password ***\n"),
            "{shown}"
        );
        assert!(shown.contains("unknown option '***'"), "{shown}");
        let text = "[ALERT]    (1) : config : parsing [f:4] : unknown keyword 'usr', not 'hunter2'.\n  \
            usr ann password \"hunter2\" hunter3\n  ^^^\n";
        let of_keyword = without_secrets(text);
        assert!(
            of_keyword.contains("'usr', not ***.\n  usr ***\n  ^^^\n"),
            "{of_keyword}"
        );
        assert!(shown.ends_with(" 4  4  ~ user ann\n"), "{shown}");
    }
}
