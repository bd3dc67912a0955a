//! The input of the parsers of statements: the words of one line, and functions for faults in these
//! words.

use crate::diagnostic::Severity;
use crate::tree::{Prefix, Span, Statement, Word};
use sample::ExprError;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use syntax::octets::Octets;

/// A fault in a statement. A caret marks its span.
#[derive(Clone, Debug)]
pub struct Fault {
    /// A warning keeps the configuration usable.
    pub severity: Severity,
    /// The faulty word, or the place after the last one if a word is missing.
    pub span: Span,
    /// The message without place and line feed.
    pub message: String,
}

impl Fault {
    /// An error at `span`.
    pub fn new(span: Span, message: impl Into<String>) -> Box<Fault> {
        Box::new(Fault {
            severity: Severity::Alert,
            span,
            message: message.into(),
        })
    }

    /// The same as a warning.
    pub fn as_warning(mut self: Box<Fault>) -> Box<Fault> {
        self.severity = Severity::Warning;
        self
    }
}

/// The result of a parser: its value, or the first fault.
pub type Parse<T = ()> = Result<T, Box<Fault>>;

/// The words of a statement. Indices count from the keyword, which is 0.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    statement: &'a Statement,
}

impl<'a> Line<'a> {
    /// The line of a statement. A statement always has a keyword.
    pub fn new(statement: &'a Statement) -> Line<'a> {
        Line { statement }
    }

    /// The keyword.
    pub fn keyword(&self) -> &'a str {
        self.statement.keyword()
    }

    /// `no`, `default` or nothing.
    pub fn prefix(&self) -> Prefix {
        self.statement.prefix
    }

    /// All words, including the keyword.
    pub fn words(&self) -> &'a [Word] {
        &self.statement.words
    }

    /// The number of words, including the keyword.
    pub fn count(&self) -> usize {
        self.statement.words.len()
    }

    /// The text of word `index`, for comparisons with keywords and for names and numbers; empty if
    /// there is none.
    pub fn arg(&self, index: usize) -> &'a str {
        self.statement.arg(index)
    }

    /// The exact bytes of word `index`, for values that are sent and for expressions; empty if
    /// there is none.
    pub fn bytes(&self, index: usize) -> &'a [u8] {
        self.statement.words.get(index).map_or(b"", Word::bytes)
    }

    /// The bytes of the words from word `index` on.
    pub fn bytes_from(&self, index: usize) -> Vec<&'a [u8]> {
        self.statement
            .words
            .iter()
            .skip(index)
            .map(Word::bytes)
            .collect()
    }

    /// The texts from word `index` on.
    pub fn texts(&self, index: usize) -> Vec<&'a str> {
        self.statement
            .words
            .iter()
            .skip(index)
            .map(|word| word.text.as_str())
            .collect()
    }

    /// The place of word `index`; if there is none, one column after the end of the line.
    pub fn span(&self, index: usize) -> Span {
        match self.statement.words.get(index) {
            Some(word) => word.span.clone(),
            None => {
                let last = &self.statement.words[self.statement.words.len() - 1].span;
                Span {
                    start: last.end,
                    end: last.end + 1,
                    ..last.clone()
                }
            }
        }
    }

    /// An error at word `index`.
    pub fn fault(&self, index: usize, message: impl Into<String>) -> Box<Fault> {
        Fault::new(self.span(index), message)
    }

    /// The exact bytes of word `index`.
    pub fn octets(&self, index: usize) -> Octets {
        self.bytes(index).into()
    }

    /// Word `index` as the name of a file.
    pub fn path(&self, index: usize) -> &'a Path {
        Path::new(OsStr::from_bytes(self.bytes(index)))
    }

    /// The words from word `index` on, joined by single spaces as in HAProxy.
    pub fn joined(&self, index: usize) -> Octets {
        self.bytes_from(index).join(&b' ').into()
    }

    /// The bytes between the parentheses at the end of word `index`.
    pub fn inside_parentheses(&self, index: usize) -> Option<&'a [u8]> {
        let word = self.bytes(index);
        let open = memchr::memchr(b'(', word)?;
        word[open + 1..].strip_suffix(b")")
    }

    /// The text of word `index`, or an error with this message if it is missing.
    pub fn need(&self, index: usize, message: impl FnOnce() -> String) -> Parse<&'a str> {
        match self.arg(index) {
            "" => Err(self.fault(index, message())),
            text => Ok(text),
        }
    }

    /// Refuses more than `args` words after word `from`.
    pub fn at_most_after(&self, from: usize, args: usize) -> Parse {
        if self.count() > from + args + 1 {
            let extra = from + args + 1;
            Err(self.fault(
                extra,
                format!(
                    "'{}' cannot handle unexpected argument '{}'.",
                    self.texts(0)[..=from].join(" "),
                    self.arg(extra)
                ),
            ))
        } else {
            Ok(())
        }
    }

    /// Refuses more than `args` words after the keyword.
    pub fn at_most(&self, args: usize) -> Parse {
        self.at_most_after(0, args)
    }

    /// Places a fault of the expression compiler, whose input was the words from `from` on.
    pub fn expr_fault(&self, from: usize, error: &ExprError, context: &str) -> Box<Fault> {
        let index = from + error.word;
        let span = self.span(index);
        let literal = self
            .words()
            .get(index)
            .is_some_and(|word| (span.end - span.start) as usize == word.bytes().len());
        let span = if literal
            && error.start < error.end
            && span.start as usize + error.end <= span.end as usize
        {
            Span {
                start: span.start + error.start as u32,
                end: span.start + error.end as u32,
                ..span
            }
        } else {
            span
        };
        let dot = if error.message.ends_with('.') {
            ""
        } else {
            "."
        };
        Fault::new(span, format!("{context} : {}{dot}", error.message))
    }
}

/// Iterates over the words of a line of options.
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'a> {
    /// The line.
    pub line: Line<'a>,
    /// The index of the next word.
    pub at: usize,
}

impl<'a> Cursor<'a> {
    /// The next word, without consuming it; empty at the end.
    pub fn peek(&self) -> &'a str {
        self.line.arg(self.at)
    }

    /// Consumes the next word; empty at the end.
    pub fn take(&mut self) -> &'a str {
        let word = self.peek();
        self.at += 1;
        word
    }

    /// The word consumed last.
    pub fn last(&self) -> &'a str {
        self.line.arg(self.at - 1)
    }

    /// Consumes the argument of the word taken last, which must exist.
    pub fn value(&mut self, what: &str) -> Parse<&'a str> {
        let name = self.last();
        let value = self
            .line
            .need(self.at, || format!("'{name}' expects {what} as argument."))?;
        self.at += 1;
        Ok(value)
    }

    /// Like [`Cursor::value`], for an argument whose exact bytes are needed.
    pub fn octets(&mut self, what: &str) -> Parse<Octets> {
        self.value(what)?;
        Ok(self.line.bytes(self.at - 1).into())
    }

    /// Consumes an argument that begins with a number within `range`. Characters after its digits
    /// are ignored, as with C's `atol`, which HAProxy uses for such words.
    pub fn number<T>(&mut self, range: std::ops::RangeInclusive<T>) -> Parse<T>
    where
        T: std::str::FromStr + PartialOrd + std::fmt::Display,
    {
        let name = self.last();
        let text = self.value("an integer")?;
        match leading_integer(text).parse::<T>() {
            Ok(number) if range.contains(&number) => Ok(number),
            Ok(_) => Err(self.fault(format!(
                "'{name}' expects a number from {} to {}, got '{text}'.",
                range.start(),
                range.end()
            ))),
            Err(_) => Err(self.fault(format!("'{name}' expects an integer, got '{text}'."))),
        }
    }

    /// An error at the word taken last.
    pub fn fault(&self, message: impl Into<String>) -> Box<Fault> {
        self.line.fault(self.at - 1, message)
    }
}

/// The sign and the digits at the beginning of a word; empty if it does not begin with a number.
pub fn leading_integer(text: &str) -> &str {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let digits = unsigned.bytes().take_while(u8::is_ascii_digit).count();
    match digits {
        0 => "",
        _ => &text[..text.len() - unsigned.len() + digits],
    }
}
