//! Finds one value in a JSON text by its path, without building a tree: one pass, limited depth, no
//! recursion.
//!
//! It follows the mjson library, which HAProxy uses: the first value at the path counts, the text
//! after it is not checked, and the elements of an array are counted by their commas.

/// The kind and the range of the found value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// The part that parses as a number.
    Number(usize, usize),
    True,
    False,
    /// The text between the quotes, escapes unresolved.
    Text(usize, usize),
    /// The text with its brackets.
    Array(usize, usize),
    /// `null`, or an object.
    Other,
}

/// Most levels of nested arrays and objects.
const DEPTH_MAX: usize = 20;

/// The value at a path (`$.name.other[3]`; a backslash escapes a dot or bracket in a name). None if
/// there is no such value, or if the text before it is not JSON.
pub(super) fn find(text: &[u8], path: &[u8]) -> Option<Found> {
    if path.first() != Some(&b'$') {
        return None;
    }
    let mut search = Search {
        path,
        path_at: 1,
        depth: 0,
        matched: 0,
        index: 0,
        wanted: 0,
        opened: None,
    };
    scan(text, |token| search.step(text, &token))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Open(u8),
    Close(u8),
    Comma,
    Colon,
    Key,
    Text,
    Number,
    True,
    False,
    Null,
}

/// A token and its range.
struct Token {
    kind: Kind,
    start: usize,
    end: usize,
}

enum Verdict {
    Continue,
    Stop(Option<Found>),
}

#[derive(Clone, Copy)]
enum Expect {
    Value,
    Key,
    Colon,
    CommaOrEnd,
}

/// Passes tokens to `step` until it has a verdict, the first value ends, or the text is invalid.
fn scan(text: &[u8], mut step: impl FnMut(Token) -> Verdict) -> Option<Found> {
    let mut nesting = [0_u8; DEPTH_MAX];
    let mut depth = 0;
    let mut expect = Expect::Value;
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        if matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
            at += 1;
            continue;
        }
        let rest = &text[at..];
        let (kind, len) = match (expect, byte) {
            (Expect::Value, b'{' | b'[') => (Kind::Open(byte), 1),
            (Expect::Value, b']') if depth > 0 => (Kind::Close(byte), 1),
            (Expect::Value, b't') if rest.starts_with(b"true") => (Kind::True, 4),
            (Expect::Value, b'n') if rest.starts_with(b"null") => (Kind::Null, 4),
            (Expect::Value, b'f') if rest.starts_with(b"false") => (Kind::False, 5),
            (Expect::Value, b'-' | b'0'..=b'9') => (Kind::Number, number(rest).1),
            (Expect::Value, b'"') => (Kind::Text, quoted(rest)?),
            (Expect::Key, b'"') => (Kind::Key, quoted(rest)?),
            (Expect::Key, b'}') => (Kind::Close(byte), 1),
            (Expect::Colon, b':') => (Kind::Colon, 1),
            (Expect::CommaOrEnd, b',') => (Kind::Comma, 1),
            (Expect::CommaOrEnd, b']' | b'}') => (Kind::Close(byte), 1),
            _ => return None,
        };
        match kind {
            Kind::Open(byte) => {
                *nesting.get_mut(depth)? = byte;
                depth += 1;
            }
            Kind::Close(byte) => {
                // In ASCII, a closing bracket is two after its opening one.
                if depth == 0 || nesting[depth - 1] + 2 != byte {
                    return None;
                }
                depth -= 1;
            }
            _ => {}
        }
        let end = at + len;
        let token = Token {
            kind,
            start: at,
            end,
        };
        if let Verdict::Stop(found) = step(token) {
            return found;
        }
        if depth == 0 {
            return None;
        }
        expect = match kind {
            Kind::Open(b'{') => Expect::Key,
            Kind::Open(_) | Kind::Colon => Expect::Value,
            Kind::Key => Expect::Colon,
            Kind::Comma if nesting[depth - 1] == b'{' => Expect::Key,
            Kind::Comma => Expect::Value,
            _ => Expect::CommaOrEnd,
        };
        at = end;
    }
    None
}

/// The length of the quoted text at the beginning. Only backslashes, quotes and a few raw control
/// characters can be escaped.
fn quoted(text: &[u8]) -> Option<usize> {
    let mut at = 1;
    loop {
        match *text.get(at)? {
            b'"' => return Some(at + 1),
            0 => return None,
            b'\\' => {
                let escapes = matches!(
                    text.get(at + 1),
                    Some(b'\\' | b'"' | 0x08 | 0x0c | b'\n' | b'\r' | b'\t')
                );
                at += 1 + usize::from(escapes);
            }
            _ => at += 1,
        }
    }
}

/// Parses a number. Returns its value and its length; 0 bytes if it does not end like a number.
/// Computes with the same steps as mjson, so that the printed result is the same.
pub(super) fn number(text: &[u8]) -> (f64, usize) {
    let digit = |at: usize| {
        text.get(at)
            .filter(|byte| byte.is_ascii_digit())
            .map(|byte| f64::from(byte - b'0'))
    };
    let sign = if text.first() == Some(&b'-') {
        -1.0
    } else {
        1.0
    };
    let mut at = usize::from(matches!(text.first(), Some(b'-' | b'+')));
    let (mut number, mut len) = (0.0, 0);
    if digit(at).is_some() {
        while let Some(digit) = digit(at) {
            number = number * 10.0 + digit;
            at += 1;
        }
        len = at;
    } else if text.get(at) != Some(&b'.') {
        return (0.0, 0);
    }
    number *= sign;
    if text.get(at) == Some(&b'.') {
        at += 1;
        let (mut fraction, mut place) = (0.0, 0.1);
        while let Some(digit) = digit(at) {
            fraction += place * digit;
            place /= 10.0;
            at += 1;
        }
        number += fraction * sign;
        len = at;
    }
    if matches!(text.get(at), Some(b'e' | b'E')) {
        at += 1;
        let negative = text.get(at) == Some(&b'-');
        at += usize::from(negative);
        at += usize::from(text.get(at) == Some(&b'+'));
        let mut exponent = 0_u32;
        while let Some(digit) = digit(at) {
            exponent = exponent.saturating_mul(10).saturating_add(digit as u32);
            at += 1;
        }
        let factor = power_of_ten(exponent.min(i32::MAX as u32));
        match (exponent, negative) {
            (0, _) => {}
            (_, false) => number *= factor,
            (_, true) => number /= factor,
        }
        return (number, at);
    }
    let ends_with_digit = at > 0 && text[at - 1].is_ascii_digit();
    (number, if ends_with_digit { len } else { 0 })
}

fn power_of_ten(mut exponent: u32) -> f64 {
    let (mut power, mut factor) = (10.0, 1.0);
    while exponent > 0 {
        if exponent & 1 == 1 {
            factor *= power;
        }
        power *= power;
        exponent >>= 1;
    }
    factor
}

/// The progress along the path.
struct Search<'p> {
    path: &'p [u8],
    path_at: usize,
    /// The depth of the current token.
    depth: usize,
    /// The number of path parts that were found.
    matched: usize,
    /// The commas seen in the counted array, and the number to see.
    index: i64,
    wanted: i64,
    /// The start of the array or object that is the result.
    opened: Option<usize>,
}

impl Search<'_> {
    fn step(&mut self, text: &[u8], token: &Token) -> Verdict {
        match token.kind {
            Kind::Open(bracket) => {
                if bracket == b'[' && self.depth == self.matched && self.next_is(b'[') {
                    self.index = 0;
                    self.wanted = number(&self.path[self.path_at + 1..]).0 as i64;
                    if self.wanted == 0 {
                        self.matched += 1;
                        self.path_at += b"[0]".len();
                    }
                }
                if self.is_there() {
                    self.opened = Some(token.start);
                }
                self.depth += 1;
            }
            Kind::Close(bracket) => {
                self.depth = self.depth.saturating_sub(1);
                if let Some(start) = self.opened.filter(|_| self.is_there()) {
                    return Verdict::Stop(Some(match bracket {
                        b']' => Found::Array(start, token.end),
                        _ => Found::Other,
                    }));
                }
            }
            Kind::Comma if self.depth == self.matched + 1 => {
                self.index += 1;
                if self.index == self.wanted {
                    let rest = self.path.get(self.path_at..).unwrap_or_default();
                    let Some(bracket) = memchr::memchr(b']', rest) else {
                        return Verdict::Stop(None);
                    };
                    self.path_at += bracket + 1;
                    self.matched += 1;
                }
            }
            Kind::Key if self.depth == self.matched + 1 => {
                if let Some(len) = self.names(&text[token.start + 1..token.end - 1]) {
                    self.matched += 1;
                    self.path_at += len;
                }
            }
            // The entered object ended without this key.
            Kind::Key if self.depth == self.matched => return Verdict::Stop(None),
            Kind::Comma | Kind::Colon | Kind::Key => {}
            value => {
                if self.is_there() {
                    return Verdict::Stop(Some(match value {
                        Kind::Text => Found::Text(token.start + 1, token.end - 1),
                        Kind::Number => Found::Number(token.start, token.end),
                        Kind::True => Found::True,
                        Kind::False => Found::False,
                        _ => Found::Other,
                    }));
                }
            }
        }
        Verdict::Continue
    }

    fn next_is(&self, byte: u8) -> bool {
        self.path.get(self.path_at) == Some(&byte)
    }

    /// Whether the current place is the whole path.
    fn is_there(&self) -> bool {
        self.path_at >= self.path.len() && self.depth == self.matched
    }

    /// Whether the path continues with a dot and this key. Returns the length of that part of the
    /// path.
    fn names(&self, key: &[u8]) -> Option<usize> {
        let rest = self.path.get(self.path_at..)?.strip_prefix(b".")?;
        let (mut at, mut key) = (0, key.iter());
        loop {
            match rest.get(at) {
                None | Some(b'.' | b'[') => return key.next().is_none().then_some(at + 1),
                Some(b'\\') => at += 1,
                Some(_) => {}
            }
            if key.next() != rest.get(at) {
                return None;
            }
            at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found<'t>(text: &'t str, path: &str) -> Option<&'t str> {
        Some(match find(text.as_bytes(), path.as_bytes())? {
            Found::Number(start, end) | Found::Text(start, end) | Found::Array(start, end) => {
                &text[start..end]
            }
            Found::True => "true",
            Found::False => "false",
            Found::Other => "other",
        })
    }

    #[test]
    fn paths_lead_to_the_first_value() {
        let text = r#"{"a": 1, "b": {"c": [10, {"d": "x"}, [1, 2]], "e.f": "dot"}, "a": 2, "t": true, "n": null}"#;
        for (path, wanted) in [
            ("$.a", Some("1")),
            ("$.b.c", Some(r#"[10, {"d": "x"}, [1, 2]]"#)),
            ("$.b.c[0]", Some("10")),
            ("$.b.c[1].d", Some("x")),
            ("$.b.c[2]", Some("[1, 2]")),
            ("$.b.c[2][1]", Some("2")),
            (r"$.b.e\.f", Some("dot")),
            ("$.b", Some("other")),
            ("$.t", Some("true")),
            ("$.n", Some("other")),
            ("$.b.c[3]", None),
            ("$.b.c[1", None),
            ("$.x", None),
            ("a", None),
            ("", None),
        ] {
            assert_eq!(found(text, path), wanted, "{path}");
        }
        assert_eq!(found("\"x\"", "$"), Some("x"));
        assert_eq!(found("[1, 2]", "$"), Some("[1, 2]"));
        assert_eq!(found(r#"{"a":[]}"#, "$.a"), Some("[]"));
    }

    #[test]
    fn what_is_no_json_ends_the_search() {
        for text in [
            "",
            "{",
            "{a:1}",
            r#"{"a" 1}"#,
            r#"{"b":1 "a":1}"#,
            r#"{"b":]}"#,
            r#"["a":1]"#,
            "{\"b\0\":1}",
        ] {
            assert_eq!(found(text, "$.a"), None, "{text}");
        }
        // Text after the found value is not checked.
        assert_eq!(found(r#"{"a":1 garbage"#, "$.a"), Some("1"));
        let deep = format!("{}1", "[".repeat(DEPTH_MAX + 1));
        assert_eq!(found(&deep, "$.a"), None);
    }
}
