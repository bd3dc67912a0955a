//! Go's expressions in the words of `regex-automata`, where the two differ (Go: `regexp/syntax`).

use std::borrow::Cow;

use regex_automata::meta::Regex;

/// Bytes that the parts of one policy's expressions may take, compiled.
const REGEX_BYTES_MAX: usize = 4 << 20;

/// Compiles expressions of which any may match, anywhere in a text.
///
/// # Errors
/// Which expression is none, and why.
pub fn compile(values: &[String]) -> Result<Regex, String> {
    // Bytes need not be UTF-8; whatever is not is matched by no character.
    let syntax = regex_automata::util::syntax::Config::new().utf8(false);
    let config = Regex::config()
        .utf8_empty(false)
        .nfa_size_limit(Some(REGEX_BYTES_MAX))
        .hybrid_cache_capacity(1 << 20);
    let build = |values: &[String]| {
        let values: Vec<_> = values.iter().map(|value| translated(value)).collect();
        let values: Vec<&str> = values.iter().map(AsRef::as_ref).collect();
        let mut builder = Regex::builder();
        let built = builder
            .configure(config.clone())
            .syntax(syntax)
            .build_many(&values);
        built.map_err(|error| error.to_string())
    };
    build(values).map_err(|error| {
        let bad = values
            .iter()
            .find(|value| build(std::slice::from_ref(value)).is_err());
        let bad = bad.map(String::as_str).unwrap_or("all together");
        format!("the regular expression {bad:?} cannot be compiled: {error}")
    })
}

/// The same expression as `regex-automata` reads it: `\d`, `\s`, `\w` and `\b` are of ASCII in Go;
/// a `{` that begins no repetition stands for itself, and so does what would be an operator of sets
/// within a class; `\Q…\E` is a text.
#[must_use]
pub fn translated(text: &str) -> Cow<'_, str> {
    if !text.contains(['\\', '{', '[']) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + text.len() / 2);
    let (mut rest, mut class) = (text, None);
    while let Some(char) = rest.chars().next() {
        let len = match (char, &mut class) {
            ('\\', _) => escape(rest, class.is_some(), &mut out),
            ('[', None) => begin_class(rest, &mut class, &mut out),
            ('[', Some(_)) => in_class(rest, &mut out),
            (']', Some(at)) if *at != rest.len() => {
                class = None;
                out.push(']');
                1
            }
            (']', Some(_)) | ('&' | '~', Some(_)) => {
                out.push('\\');
                out.push(char);
                1
            }
            ('{', None) if !is_repetition(rest) => {
                out.push_str("\\{");
                1
            }
            _ => {
                out.push(char);
                char.len_utf8()
            }
        };
        rest = &rest[len..];
    }
    Cow::Owned(out)
}

/// A class begins. A `]` as its first character belongs to it; `class` says where that would be, by
/// what is left there.
fn begin_class(rest: &str, class: &mut Option<usize>, out: &mut String) -> usize {
    let begin = if rest.starts_with("[^") { "[^" } else { "[" };
    out.push_str(begin);
    *class = Some(rest.len() - begin.len());
    begin.len()
}

/// A `[` within a class: that of `[:alpha:]`, or itself.
fn in_class(rest: &str, out: &mut String) -> usize {
    let name = rest.strip_prefix("[:").and_then(|name| {
        let len = name.find(":]")?;
        let is_name = |byte: u8| byte.is_ascii_lowercase() || byte == b'^';
        name[..len].bytes().all(is_name).then_some(len + 4)
    });
    match name {
        Some(len) => {
            out.push_str(&rest[..len]);
            len
        }
        None => {
            out.push_str("\\[");
            1
        }
    }
}

/// A `\` and what it stands before.
fn escape(rest: &str, in_class: bool, out: &mut String) -> usize {
    let Some(next) = rest[1..].chars().next() else {
        out.push('\\');
        return 1;
    };
    let words = match next {
        'd' => "[0-9]",
        'D' => "[^0-9]",
        's' => "[\\t\\n\\f\\r ]",
        'S' => "[^\\t\\n\\f\\r ]",
        'w' => "[0-9A-Za-z_]",
        'W' => "[^0-9A-Za-z_]",
        'b' if !in_class => "(?-u:\\b)",
        'B' if !in_class => "(?-u:\\B)",
        'Q' if !in_class => return quoted(rest, out),
        _ => {
            out.push('\\');
            out.push(next);
            // The braces of `\p{Greek}` and `\x{41}` are no repetition.
            let after = &rest[1 + next.len_utf8()..];
            let braces = matches!(next, 'p' | 'P' | 'x') && after.starts_with('{');
            let len = braces.then(|| after.find('}')).flatten();
            let len = len.map_or(0, |len| len + 1);
            out.push_str(&after[..len]);
            return 1 + next.len_utf8() + len;
        }
    };
    out.push_str(words);
    2
}

/// `\Q…\E`, where the end of the expression ends it too.
fn quoted(rest: &str, out: &mut String) -> usize {
    let inner = &rest[2..];
    let (inner, len) = match inner.find("\\E") {
        Some(len) => (&inner[..len], 2 + len + 2),
        None => (inner, rest.len()),
    };
    for char in inner.chars() {
        if char.is_ascii_punctuation() {
            out.push('\\');
        }
        out.push(char);
    }
    len
}

/// Whether `{` begins `{n}`, `{n,}` or `{n,m}`.
fn is_repetition(rest: &str) -> bool {
    let Some((inner, _)) = rest[1..].split_once('}') else {
        return false;
    };
    let (least, most) = inner.split_once(',').unwrap_or((inner, "0"));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    !least.is_empty() && is_number(least) && is_number(most)
}

#[cfg(test)]
mod tests {
    use super::compile;

    fn is_match(pattern: &str, text: &[u8]) -> bool {
        compile(&[pattern.to_owned()]).unwrap().is_match(text)
    }

    #[test]
    fn classes_are_of_ascii() {
        for (pattern, yes, no) in [
            (r"^\d$", "7", "\u{667}"),
            (r"^\w+$", "a_1", "é"),
            (r"^\W$", "é", "a"),
            (r"^[\w.]+$", "a.b", "é"),
            (r"^[^\s]$", "\u{b}", " "),
            (r"\bcaf\b", "café", "cafe"),
            (r"^caf\B.$", "cafe", "café"),
            (r"^.$", "é", "ab"),
            (r"(?i)^É$", "é", "e"),
            (r"^\p{Greek}$", "α", "a"),
            (r"^\x{e9}$", "é", "e"),
        ] {
            assert!(is_match(pattern, yes.as_bytes()), "{pattern} {yes}");
            assert!(!is_match(pattern, no.as_bytes()), "{pattern} {no}");
        }
    }

    #[test]
    fn what_is_no_operator_stands_for_itself() {
        for (pattern, yes, no) in [
            (r"^/users/{id}$", "/users/{id}", "/users/1"),
            (r"^a{,2}$", "a{,2}", "aa"),
            (r"^a{1,2}$", "aa", "aaa"),
            (r"^a{2,}$", "aaa", "a"),
            (r"^[[a]$", "[", "b"),
            (r"^[]a]$", "]", "["),
            (r"^[^]a]$", "b", "]"),
            (r"^[a&&b]$", "&", "c"),
            (r"^[a~~b]$", "~", "c"),
            (r"^[[:alpha:]{}]+$", "a{}", "1"),
            (r"^\Qa.b{}\E+$", "a.b{}}", "axb{}"),
            (r"^\Qa.[", "a.[", "ab["),
        ] {
            assert!(is_match(pattern, yes.as_bytes()), "{pattern} {yes}");
            assert!(!is_match(pattern, no.as_bytes()), "{pattern} {no}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_matched_by_nothing() {
        assert!(is_match("a", b"\xffa"));
        assert!(is_match("", b"\xff"));
        assert!(!is_match("^.$", b"\xff"));
    }

    #[test]
    fn what_go_refuses_is_refused() {
        for bad in ["(", "a**b(", r"\", "[a", r"\8", "(?=a)", r"\k<a>"] {
            assert!(compile(&[bad.to_owned()]).is_err(), "{bad}");
        }
    }
}
