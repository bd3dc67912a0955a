//! `GET /api/config`: the files of the running configuration, and the messages about them at the start.

use serde_json::{Value, json};

/// Most bytes of a file in the answer.
const TEXT_BYTES_MAX: usize = 1 << 20;
/// The replacement for a secret.
const HIDDEN: &str = "***";

/// A file of the configuration.
#[derive(Clone, Debug)]
pub struct Text {
    /// Its name in messages.
    pub name: String,
    /// Its content.
    pub bytes: Vec<u8>,
}

/// A message about the configuration.
#[derive(Clone, Debug)]
pub struct Notice {
    /// `warning` or `notice`.
    pub severity: &'static str,
    /// Its file and line; None for a message without a line.
    pub place: Option<(String, u32)>,
    /// The text.
    pub message: String,
}

/// The answer, without passwords.
pub fn shown(texts: &[Text], notices: &[Notice]) -> Value {
    let files = texts.iter().map(|text| {
        let all = String::from_utf8_lossy(&text.bytes);
        let end = all.floor_char_boundary(TEXT_BYTES_MAX.min(all.len()));
        let lines: Vec<String> = all[..end].lines().map(without_secrets).collect();
        json!({ "name": text.name, "lines": lines, "cut": end < all.len() })
    });
    let notices = notices.iter().map(|notice| {
        json!({
            "severity": notice.severity,
            "file": notice.place.as_ref().map(|(file, _)| file),
            "line": notice.place.as_ref().map(|(_, line)| line),
            "message": notice.message,
        })
    });
    json!({ "files": files.collect::<Vec<_>>(), "notices": notices.collect::<Vec<_>>() })
}

/// A line without its passwords: `stats auth`, `auth`, `user … password`, and related keywords.
fn without_secrets(line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    let is = |place: usize, word: &str| words.get(place) == Some(&word);
    let from = match words
        .iter()
        .position(|word| matches!(*word, "password" | "insecure-password"))
    {
        Some(place) if is(0, "user") => Some(place + 1),
        _ if is(0, "auth") => Some(1),
        _ if is(0, "stats") && is(1, "auth") => Some(2),
        _ => None,
    };
    let Some(secret) = from.and_then(|from| words.get(from)) else {
        return line.to_owned();
    };
    // The position of the word in the line.
    let at = secret.as_ptr().addr() - line.as_ptr().addr();
    let shown = match secret.split_once(':') {
        Some((user, _)) if !is(0, "user") => format!("{user}:{HIDDEN}"),
        _ => HIDDEN.to_owned(),
    };
    format!(
        "{}{shown}{}",
        &line[..at],
        hidden_rest(&line[at + secret.len()..])
    )
}

/// The text after a secret. A password with spaces continues up to the closing quote.
fn hidden_rest(rest: &str) -> &str {
    match rest.contains(['"', '\'', '\\']) {
        true => "",
        false => rest,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_hidden() {
        let cases = [
            ("  stats auth ann:secret", "  stats auth ann:***"),
            ("\tauth ann:se:cret # x", "\tauth ann:*** # x"),
            (
                "user ann insecure-password secret groups g",
                "user ann insecure-password *** groups g",
            ),
            ("user ann password $5$x", "user ann password ***"),
            ("auth \"ann:a secret\"", "auth \"ann:***"),
            ("stats auth", "stats auth"),
            ("http-request auth realm x", "http-request auth realm x"),
            ("server a 127.0.0.1:80", "server a 127.0.0.1:80"),
        ];
        for (line, shown) in cases {
            assert_eq!(without_secrets(line), shown);
        }
    }
}
