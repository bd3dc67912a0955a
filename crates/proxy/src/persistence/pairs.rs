//! Parses the cookies of one field as HAProxy does (RFC 2109 with browser extensions, RFC 6265
//! §5.2).

/// A cookie, or other text between two delimiters. Offsets are in the field's value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pair {
    /// The position of the delimiter before it; 0 for the first.
    pub from: usize,
    /// The range of the name.
    pub name: (usize, usize),
    /// The position of the equal sign.
    pub equal: usize,
    /// The range of the value without surrounding blanks. Without an equal sign it is empty and at
    /// the delimiter after the name.
    pub value: (usize, usize),
    /// The position of the delimiter after it, or the end.
    pub next: usize,
    pub has_value: bool,
}

/// Iterates over the pairs of a field's value. In requests a comma is a delimiter too.
pub(crate) struct Pairs<'a> {
    line: &'a [u8],
    at: usize,
    commas: bool,
    began: bool,
}

impl<'a> Pairs<'a> {
    /// The cookies of a `Cookie` field.
    pub fn of_request(line: &'a [u8]) -> Pairs<'a> {
        Pairs {
            line,
            at: 0,
            commas: true,
            began: false,
        }
    }

    /// The cookie of a `Set-Cookie` field; its attributes are not cookies.
    pub fn of_response(line: &'a [u8]) -> Option<Pair> {
        let mut pairs = Pairs {
            line,
            at: 0,
            commas: false,
            began: false,
        };
        pairs.next()
    }
}

impl Iterator for Pairs<'_> {
    type Item = Pair;

    fn next(&mut self) -> Option<Pair> {
        let (line, from) = (self.line, self.at);
        if from >= line.len() {
            return None;
        }
        let delimiter = usize::from(std::mem::replace(&mut self.began, true));
        let begin = skip_blanks(line, from + delimiter);
        let is_end = |byte: &u8| matches!(byte, b'=' | b';') || (self.commas && *byte == b',');
        let end = begin
            + line[begin..]
                .iter()
                .position(is_end)
                .unwrap_or(line.len() - begin);
        let name = (begin, trim_end(line, begin, end));
        let has_value = line.get(end) == Some(&b'=');
        let (value, next) = if has_value {
            let begin = skip_blanks(line, end + 1);
            let next = value_end(line, begin);
            ((begin, trim_end(line, begin, next)), next)
        } else {
            ((end, end), end)
        };
        self.at = next;
        Some(Pair {
            from,
            name,
            equal: end,
            value,
            next,
            has_value,
        })
    }
}

fn skip_blanks(line: &[u8], at: usize) -> usize {
    let blanks = line[at..].iter().take_while(|byte| is_blank(**byte));
    at + blanks.count()
}

fn trim_end(line: &[u8], begin: usize, end: usize) -> usize {
    let blanks = line[begin..end]
        .iter()
        .rev()
        .take_while(|byte| is_blank(**byte));
    end - blanks.count()
}

impl Pair {
    /// Whether there are blanks beside the equal sign, which HAProxy removes.
    pub fn is_loose(&self) -> bool {
        self.has_value && (self.name.1 != self.equal || self.value.0 != self.equal + 1)
    }
}

pub(super) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// The end of a value: at a comma or semicolon that is not quoted.
fn value_end(line: &[u8], begin: usize) -> usize {
    let (mut quoted, mut escaped) = (false, false);
    for (at, byte) in line.iter().enumerate().skip(begin) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b',' | b';' if !quoted => return at,
            _ => {}
        }
    }
    line.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(line: &str) -> Vec<(&str, Option<&str>)> {
        let text = |(from, to): (usize, usize)| &line[from..to];
        Pairs::of_request(line.as_bytes())
            .map(|pair| (text(pair.name), pair.has_value.then(|| text(pair.value))))
            .collect()
    }

    #[test]
    fn lines() {
        for (line, wanted) in [
            ("", &[][..]),
            ("a=1", &[("a", Some("1"))]),
            (
                "a=1; b=2,c=3",
                &[("a", Some("1")), ("b", Some("2")), ("c", Some("3"))],
            ),
            (" a = 1 ;b", &[("a", Some("1")), ("b", None)]),
            (
                "a=\"x;y\\\";z\"; b=",
                &[("a", Some("\"x;y\\\";z\"")), ("b", Some(""))],
            ),
            (";", &[("", None), ("", None)]),
            ("a=1;", &[("a", Some("1")), ("", None)]),
            ("a=\"", &[("a", Some("\""))]),
        ] {
            assert_eq!(found(line), wanted, "{line}");
        }
    }
}
