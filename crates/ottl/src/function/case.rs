//! Cases of names: `snake_case` and `CamelCase`, as the library strcase of the Collector makes them.

/// Converts a name to lower-case words joined by underscores. A new word starts between a
/// lower-case and an upper-case letter, between a letter and a digit, and at the last of several
/// upper-case letters.
pub fn snake(text: &str) -> String {
    let text = text.trim().as_bytes();
    let mut out = Vec::with_capacity(text.len() + 2);
    for (at, &byte) in text.iter().enumerate() {
        let next = text.get(at + 1).copied().unwrap_or_default();
        let changes = match byte {
            b'A'..=b'Z' => next.is_ascii_lowercase() || next.is_ascii_digit(),
            b'a'..=b'z' => next.is_ascii_uppercase() || next.is_ascii_digit(),
            b'0'..=b'9' => next.is_ascii_alphabetic(),
            _ => false,
        };
        let before = at.checked_sub(1).map(|at| text[at]);
        let ends_acronym = byte.is_ascii_uppercase()
            && next.is_ascii_lowercase()
            && before.is_some_and(|before| before.is_ascii_uppercase());
        if ends_acronym {
            out.push(b'_');
        }
        match byte {
            b' ' | b'_' | b'-' | b'.' => out.push(b'_'),
            byte => out.push(byte.to_ascii_lowercase()),
        }
        let ends_word = !byte.is_ascii_uppercase() || next.is_ascii_digit();
        if changes && ends_word {
            out.push(b'_');
        }
    }
    // Only bytes of ASCII were changed.
    String::from_utf8_lossy(&out).into_owned()
}

/// Joins the words of a name, each with an upper-case first letter. Characters other than ASCII
/// letters and digits are dropped.
pub fn camel(text: &str) -> String {
    let text = text.trim();
    // The one acronym that the library knows.
    let (text, is_acronym) = if text == "ID" {
        ("id", true)
    } else {
        (text, false)
    };
    let mut out = String::with_capacity(text.len());
    let (mut begins_word, mut after_capital) = (true, false);
    for byte in text.bytes() {
        let is_capital = byte.is_ascii_uppercase();
        let shown = if begins_word {
            byte.to_ascii_uppercase()
        } else if after_capital && is_capital && !is_acronym {
            byte.to_ascii_lowercase()
        } else {
            byte
        };
        after_capital = is_capital;
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {
                out.push(char::from(shown));
                begins_word = false;
            }
            b'0'..=b'9' => {
                out.push(char::from(shown));
                begins_word = true;
            }
            byte => begins_word = matches!(byte, b'_' | b' ' | b'-' | b'.'),
        }
    }
    out
}
