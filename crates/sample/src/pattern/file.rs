//! The text of pattern and map files (manual §2.7, §7.3.1 map).

use super::reference::Columns;

/// A line of a file that is not empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileLine<'t> {
    /// The pattern.
    pub key: &'t [u8],
    /// The text after the first blanks; empty for patterns of ACLs.
    pub value: &'t [u8],
    /// Its number, from 1.
    pub line: usize,
}

/// The entries of a file. Empty lines and lines that begin with `#` are skipped, and so are blanks
/// before a key. A line of an ACL is one pattern. A line of a map is split at its first blanks, and
/// blanks at its end are dropped. A line ends at CR, LF or NUL.
pub fn lines(text: &[u8], columns: Columns) -> impl Iterator<Item = FileLine<'_>> {
    let numbered = text.split(|byte| *byte == b'\n').enumerate();
    numbered.filter_map(move |(at, line)| {
        if line.first() == Some(&b'#') {
            return None;
        }
        let line = &line[leading_blanks(line)..];
        let end = memchr::memchr2(b'\r', 0, line).unwrap_or(line.len());
        let line = &line[..end];
        let (key, value) = match columns {
            Columns::Keys => (line, &line[line.len()..]),
            Columns::KeysAndValues => {
                let end = memchr::memchr2(b' ', b'\t', line).unwrap_or(line.len());
                let value = &line[end..];
                (&line[..end], without_blanks(value))
            }
        };
        (!key.is_empty()).then_some(FileLine {
            key,
            value,
            line: at + 1,
        })
    })
}

fn is_blank(byte: &u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

fn leading_blanks(text: &[u8]) -> usize {
    text.iter().take_while(|byte| is_blank(byte)).count()
}

fn without_blanks(text: &[u8]) -> &[u8] {
    let text = &text[leading_blanks(text)..];
    let trailing = text.iter().rev().take_while(|byte| is_blank(byte)).count();
    &text[..text.len() - trailing]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str, columns: Columns) -> Vec<(String, String, usize)> {
        let text_of = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        lines(text.as_bytes(), columns)
            .map(|line| (text_of(line.key), text_of(line.value), line.line))
            .collect()
    }

    #[test]
    fn lines_of_both_kinds() {
        let text = "# comment\n\n \t a b \t\r\n#\n # no comment\nc\n\r\nd\te  f g\0h\nlast";
        let entry = |key: &str, value: &str, line| (key.to_owned(), value.to_owned(), line);
        assert_eq!(
            all(text, Columns::KeysAndValues),
            [
                entry("a", "b", 3),
                entry("#", "no comment", 5),
                entry("c", "", 6),
                entry("d", "e  f g", 8),
                entry("last", "", 9),
            ]
        );
        assert_eq!(
            all(text, Columns::Keys),
            [
                entry("a b \t", "", 3),
                entry("# no comment", "", 5),
                entry("c", "", 6),
                entry("d\te  f g", "", 8),
                entry("last", "", 9),
            ]
        );
    }
}
