//! The spanned tree: what was written, section by section, before anything is understood.
//!
//! Words are `String`s although a configuration is a file of bytes: a byte that is not part of valid UTF-8 (a latin-1 letter in a
//! quoted value, or `\xe9`) is kept as one private character and given back by [`bytes_of`], so nothing is lost and every part of
//! a word can still be cut and compared as text. Whoever puts configuration text on the wire or into a file goes through
//! [`bytes_of`]; for ordinary text that is free.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

pub use sample::raw::bytes_of;
use sample::raw::{RAW_BYTE_BASE, is_raw};

/// A source file, text given in memory, or the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// As given on the command line; the name in diagnostics.
    pub name: String,
    /// Physical lines without their line feed, for the excerpt under a diagnostic. Raw bytes as in [`Word::text`].
    pub lines: Vec<String>,
}

/// A place in a source: the line, counted from 1 as HAProxy does, and the byte range in its excerpt (`source.lines[line - 1]`).
#[derive(Clone, PartialEq, Eq)]
pub struct Span {
    /// Where the line stands.
    pub source: Arc<Source>,
    /// Counted from 1; 0 for a place that is a file but no line.
    pub line: u32,
    /// First byte of the range in the line.
    pub start: u32,
    /// One past the last byte of the range; equal to `start` when the place is a whole line.
    pub end: u32,
}

impl Span {
    /// One character of a source, its line and column counted from 1; the line's end where there is none.
    pub fn of_character(source: Arc<Source>, line: u32, column: u32) -> Span {
        let text = source.lines.get((line as usize).wrapping_sub(1));
        let text = text.map_or("", String::as_str);
        let found = text.char_indices().nth((column as usize).saturating_sub(1));
        let (start, end) =
            found.map_or((text.len(), text.len()), |(at, c)| (at, at + c.len_utf8()));
        Span {
            source,
            line,
            start: start as u32,
            end: end as u32,
        }
    }

    /// The line written there, empty where the span is a whole file.
    pub fn excerpt(&self) -> &str {
        let index = (self.line as usize).wrapping_sub(1);
        self.source.lines.get(index).map_or("", String::as_str)
    }

    /// `file:line`, as HAProxy names a place in messages.
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

/// A word after quotes, escapes and environment variables are resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// The resolved text. Bytes that are no UTF-8 stand as private characters, see [`bytes_of`].
    pub text: String,
    /// Where it was written, quotes and variables included. The words of one `"${X[*]}"` share a place.
    pub span: Span,
}

impl Word {
    /// The exact bytes of the word.
    pub fn bytes(&self) -> Cow<'_, [u8]> {
        bytes_of(&self.text)
    }
}

/// One line of a section. `no` and `default` prefixes are taken off. Never without words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// The keyword and its arguments; at least one word, at most [`crate::lexer::MAX_LINE_ARGS`], none of them empty.
    pub words: Vec<Word>,
    /// The prefix that stood before the keyword.
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

    /// The text of argument `index`, where the keyword is 0; empty where there is none, as HAProxy's parsers see it.
    pub fn arg(&self, index: usize) -> &str {
        self.words.get(index).map_or("", |word| word.text.as_str())
    }

    /// Where the keyword stands.
    pub fn span(&self) -> &Span {
        &self.words[0].span
    }
}

/// What stood before a keyword (manual §3 and §4: `no option …`, `default option …`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Prefix {
    /// Nothing.
    #[default]
    None,
    /// `no`: the keyword is negated.
    No,
    /// `default`: the keyword is set back to its default.
    Default,
}

/// A section: its header line and its statements. Sections of the same kind and name are still apart here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// The line that opens the section; its keyword is one of the section names given to the reader.
    pub header: Statement,
    /// The lines of the section in order. `setenv`, `presetenv`, `unsetenv` and `resetenv` of `global` are already carried out
    /// and checked by the reader, and still stand here.
    pub statements: Vec<Statement>,
    /// The `[scope]` in force at the header, for the files of filters that have scopes.
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
    /// In the order of the files and of their lines.
    pub sections: Vec<Section>,
}

/// The text for `bytes`: UTF-8 stays as it is, every other byte becomes one private character. [`bytes_of`] is its exact inverse.
pub fn text_of(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            if is_raw(c) {
                c.encode_utf8(&mut [0; 4])
                    .bytes()
                    .for_each(|b| text.push(raw(b)))
            } else {
                text.push(c)
            }
        }
        chunk.invalid().iter().for_each(|&b| text.push(raw(b)));
    }
    text
}

fn raw(byte: u8) -> char {
    char::from_u32(RAW_BYTE_BASE + u32::from(byte)).unwrap_or(char::REPLACEMENT_CHARACTER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_string_survives_as_text() {
        let cases: [&[u8]; 6] = [
            b"",
            b"plain",
            "h\u{e9}llo".as_bytes(),
            b"caf\xe9",
            b"\xff\xfe\x80",
            "\u{10ffe9}\u{10ff00}".as_bytes(),
        ];
        for bytes in cases {
            assert_eq!(bytes_of(&text_of(bytes)).as_ref(), bytes);
        }
        assert!(matches!(bytes_of("caf\u{e9}"), Cow::Borrowed(_)));
    }

    #[test]
    fn a_part_of_a_word_keeps_its_bytes() {
        let text = text_of(b"a=\xe9;b=\xe8");
        let (first, second) = text.split_once(';').unwrap();
        assert_eq!(bytes_of(first).as_ref(), b"a=\xe9");
        assert_eq!(bytes_of(second).as_ref(), b"b=\xe8");
    }
}
