//! The tree with source places: the text of each section, before its meaning is known.
//!
//! A configuration file consists of bytes, and so does a word: `caf\xe9` is four bytes. [`Text`]
//! reads as the text for messages and comparisons with keywords. Its exact bytes ([`Text::bytes`])
//! are used for values that are sent, for expressions and for files.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use syntax::octets::readable;

/// A source file, text given in memory, or the command line.
#[derive(Clone, PartialEq, Eq)]
pub struct Source {
    /// The name in diagnostics, as given on the command line.
    pub name: String,
    text: Vec<u8>,
    /// The start of each line.
    starts: Vec<u32>,
}

impl Source {
    /// A source with the lines of `text`.
    pub fn new(name: impl Into<String>, text: Vec<u8>) -> Source {
        let ends = memchr::memchr_iter(b'\n', &text).map(|at| at as u32 + 1);
        let starts = [0].into_iter().chain(ends).collect();
        Source {
            name: name.into(),
            text,
            starts,
        }
    }

    /// The whole text.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// The line with this number, counted from 1, without its line feed; empty if there is none.
    pub fn line(&self, number: u32) -> &[u8] {
        let index = (number as usize).wrapping_sub(1);
        let Some(&start) = self.starts.get(index) else {
            return b"";
        };
        let next = self.starts.get(index.wrapping_add(1));
        let line = &self.text[start as usize..next.map_or(self.text.len(), |next| *next as usize)];
        line.strip_suffix(b"\n").unwrap_or(line)
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// A place in a source: the line, counted from 1 as in HAProxy, and the byte range in it.
#[derive(Clone, PartialEq, Eq)]
pub struct Span {
    /// The source of the line.
    pub source: Arc<Source>,
    /// Counted from 1; 0 for a whole file.
    pub line: u32,
    /// First byte of the range in the line.
    pub start: u32,
    /// The position after the last byte of the range; equal to `start` for a whole line.
    pub end: u32,
}

impl Span {
    /// The first environment variable in this place outside of quotes, where it is literal text.
    pub fn unquoted_variable(&self) -> Option<String> {
        let line = self.source.line(self.line);
        let written = line.get(self.start as usize..self.end as usize)?;
        let mut quote = None;
        let mut at = 0;
        while let Some(byte) = written.get(at) {
            match (byte, quote) {
                (b'\\', None | Some(b'"')) => at += 1,
                (b'"' | b'\'', None) => quote = Some(*byte),
                (_, Some(open)) if open == *byte => quote = None,
                (b'$', None) => {
                    let name = &written[at + 1..];
                    let is_braced = name.first() == Some(&b'{');
                    let name = &name[usize::from(is_braced)..];
                    let is_of_name = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'_';
                    let length = name.iter().take_while(is_of_name).count();
                    let name = std::str::from_utf8(&name[..length]).unwrap_or_default();
                    if !name.is_empty() {
                        return Some(format!("${{{name}}}"));
                    }
                }
                _ => {}
            }
            at += 1;
        }
        None
    }

    /// One character of a source, by line and column counted from 1; if it does not exist, the
    /// line's end.
    pub fn of_character(source: Arc<Source>, line: u32, column: u32) -> Span {
        let mut at = 0;
        let mut len = 0;
        let mut left = column;
        'line: for chunk in source.line(line).utf8_chunks() {
            let valid = chunk.valid().chars().map(char::len_utf8);
            for one in valid.chain(chunk.invalid().iter().map(|_| 1)) {
                at += len;
                len = one;
                left = left.saturating_sub(1);
                if left == 0 {
                    break 'line;
                }
            }
        }
        if left > 0 {
            (at, len) = (source.line(line).len(), 0);
        }
        Span {
            source,
            line,
            start: at as u32,
            end: (at + len) as u32,
        }
    }

    /// The line of the span; empty for a whole file.
    pub fn excerpt(&self) -> &[u8] {
        self.source.line(self.line)
    }

    /// `file:line`, as HAProxy writes a place in messages.
    pub fn place(&self) -> String {
        format!("{}:{}", self.source.name, self.line)
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}:{}:{}..{}",
            self.source.name, self.line, self.start, self.end
        )
    }
}

/// The resolved bytes of a word. It reads as `str`: the text itself if it is UTF-8, otherwise with
/// its other bytes escaped by [`readable`], which equals no keyword.
#[derive(Clone, PartialEq, Eq)]
pub struct Text {
    readable: Box<str>,
    /// The bytes, if they are not UTF-8.
    raw: Option<Box<[u8]>>,
}

impl Text {
    /// The exact bytes.
    pub fn bytes(&self) -> &[u8] {
        match &self.raw {
            Some(raw) => raw,
            None => self.readable.as_bytes(),
        }
    }

    /// The text for comparisons with keywords, names, numbers and messages; never for a value that
    /// is sent.
    pub fn as_str(&self) -> &str {
        &self.readable
    }
}

impl From<&[u8]> for Text {
    fn from(bytes: &[u8]) -> Text {
        match std::str::from_utf8(bytes) {
            Ok(text) => Text {
                readable: text.into(),
                raw: None,
            },
            Err(_) => Text {
                readable: readable(bytes).to_string().into(),
                raw: Some(bytes.into()),
            },
        }
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.readable
    }
}

impl PartialEq<str> for Text {
    fn eq(&self, other: &str) -> bool {
        self.bytes() == other.as_bytes()
    }
}

impl PartialEq<&str> for Text {
    fn eq(&self, other: &&str) -> bool {
        *self == **other
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.readable)
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.readable)
    }
}

/// A word after quotes, escapes and environment variables are resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// The resolved text.
    pub text: Text,
    /// The place as written, including quotes and variables. The words of one `"${X[*]}"` share a
    /// place.
    pub span: Span,
}

impl Word {
    /// The exact bytes of the word.
    pub fn bytes(&self) -> &[u8] {
        self.text.bytes()
    }
}

/// One line of a section, without the prefixes `no` and `default`. It always has words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// The keyword and its arguments; at least one word, at most [`crate::lexer::MAX_LINE_ARGS`],
    /// none of them empty.
    pub words: Vec<Word>,
    /// The prefix before the keyword.
    pub prefix: Prefix,
}

impl Statement {
    /// The first word.
    pub fn keyword(&self) -> &str {
        self.words.first().map_or("", |word| word.text.as_str())
    }

    /// The words after the keyword.
    pub fn args(&self) -> &[Word] {
        self.words.get(1..).unwrap_or_default()
    }

    /// The text of argument `index`; the keyword is 0. Empty if there is none, as in HAProxy's
    /// parsers.
    pub fn arg(&self, index: usize) -> &str {
        self.words.get(index).map_or("", |word| word.text.as_str())
    }

    /// The place of the keyword.
    pub fn span(&self) -> &Span {
        &self.words[0].span
    }
}

/// The word before a keyword (manual §3 and §4: `no option …`, `default option …`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Prefix {
    /// Nothing.
    #[default]
    None,
    /// `no`: the keyword is negated.
    No,
    /// `default`: the keyword is reset to its default.
    Default,
}

/// A section: its header line and its statements. Sections with the same kind and name are still
/// separate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// The line that opens the section; its keyword is one of the section names given to the
    /// reader.
    pub header: Statement,
    /// The lines of the section in order. They include `setenv`, `presetenv`, `unsetenv` and
    /// `resetenv` of `global`, which the reader has already executed and checked.
    pub statements: Vec<Statement>,
    /// The `[scope]` that applies to the header, in the files of filters with scopes.
    pub scope: Option<Arc<str>>,
}

impl Section {
    /// The kind: `global`, `frontend`, …
    pub fn kind(&self) -> &str {
        self.header.keyword()
    }

    /// The name after the kind, if it has one.
    pub fn name(&self) -> Option<&Word> {
        self.header.words.get(1)
    }
}

/// All sections of all files, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    /// The sections, in the order of the files and of their lines.
    pub sections: Vec<Section>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_string_survives_as_text() {
        let cases: [(&[u8], &str); 6] = [
            (b"", ""),
            (b"plain", "plain"),
            ("h\u{e9}llo".as_bytes(), "h\u{e9}llo"),
            (b"caf\xe9", "caf\\xe9"),
            (b"\xff\xfe\x80", "\\xff\\xfe\\x80"),
            ("\u{10ffe9}".as_bytes(), "\u{10ffe9}"),
        ];
        for (bytes, shown) in cases {
            let text = Text::from(bytes);
            assert_eq!((text.bytes(), text.as_str()), (bytes, shown));
        }
        assert_ne!(Text::from(&b"caf\xe9"[..]), "caf\\xe9");
    }

    #[test]
    fn lines_are_those_of_the_text() {
        let source = Source::new("a", b"one\ntw\xe9\n\nlast".to_vec());
        let lines: Vec<&[u8]> = (0..7).map(|number| source.line(number)).collect();
        assert_eq!(lines, [&b""[..], b"one", b"tw\xe9", b"", b"last", b"", b""]);
        assert_eq!(source.line(u32::MAX), b"");
    }

    #[test]
    fn characters_are_counted_and_bytes_located() {
        let source = Arc::new(Source::new("a", b"\xc3\xa9\xe9x".to_vec()));
        let range = |column| {
            let span = Span::of_character(source.clone(), 1, column);
            (span.start, span.end)
        };
        assert_eq!(
            [1, 2, 3, 4, 9].map(range),
            [(0, 2), (2, 3), (3, 4), (4, 4), (4, 4)]
        );
    }
}
