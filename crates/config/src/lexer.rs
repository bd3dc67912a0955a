//! Splits a line of a configuration into words: quotes, escapes, comments and environment variables
//! (manual §2.2, §2.3).
//!
//! It follows HAProxy byte for byte, also in surprising cases. There is no line continuation (a
//! backslash at the end of a line is literal). A backslash before a tab is literal. A carriage
//! return after a word ends the line. Variables are expanded inside double quotes only. A default
//! value (`${X-default}`) is literal up to the brace. Work and memory are linear in the line and
//! its expansion; both are limited by [`MAX_LINE_BYTES`].

use crate::environment::Environment;
use crate::tree::Text;
use std::fmt;
use std::ops::Range;

#[cfg(test)]
mod tests;

/// Most words in a line; a line with more is refused (HAProxy has the same limit).
pub const MAX_LINE_ARGS: usize = 64;

/// Most bytes of a line as written, and of all its words after expansion. HAProxy is limited only
/// by memory.
pub const MAX_LINE_BYTES: usize = 1 << 20;

/// The inputs for reading a line, other than the line.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The source of the value of `$X`.
    pub environment: &'a Environment,
    /// `${.FILE}`
    pub file: &'a str,
    /// `${.LINE}`
    pub line: u32,
    /// `${.SECTION}`: the name of the section, or its kind if it has none; None before the first
    /// section.
    pub section: Option<&'a [u8]>,
    /// Whether `#` starts a comment: in files, not in the expression of `-cc`.
    pub comments: bool,
}

/// A word and its place in the bytes of the line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// The resolved word.
    pub text: Text,
    /// The range as written, including quotes.
    pub range: Range<usize>,
    /// For an empty word: the unset variable that caused it.
    pub unset: Option<Range<usize>>,
}

/// The words of a line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line {
    /// At most [`MAX_LINE_ARGS`].
    pub words: Vec<Token>,
    /// Text of the line that is not part of the words.
    pub ignored: Option<Ignored>,
}

/// Text that HAProxy silently drops from a line, with its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ignored {
    /// Text after a carriage return.
    AfterCarriageReturn(usize),
    /// The rest of a word after `\x00`.
    AfterNul(usize),
}

/// Why a line cannot be split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LexError {
    /// What is wrong.
    pub kind: LexErrorKind,
    /// Byte offset in the line.
    pub offset: usize,
}

/// The kinds of faults in a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LexErrorKind {
    /// A quote is not closed.
    Quote,
    /// `${` is not closed.
    Brace,
    /// `$` is not followed by a name, or by a pseudo-variable that does not exist.
    VariableName,
    /// `\x` is not followed by two hexadecimal digits.
    Hex,
    /// `[` in `${X[*]}` is not followed by `*]`.
    Expansion,
    /// More than [`MAX_LINE_ARGS`] words.
    TooManyWords,
    /// More than [`MAX_LINE_BYTES`] bytes.
    TooLong,
}

impl fmt::Display for LexErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LexErrorKind::Quote => f.write_str("unmatched quote"),
            LexErrorKind::Brace => f.write_str("unmatched brace in environment variable name"),
            LexErrorKind::VariableName => {
                f.write_str("forbidden first char in environment variable name")
            }
            LexErrorKind::Hex => f.write_str("truncated or invalid hexadecimal sequence"),
            LexErrorKind::Expansion => f.write_str("truncated or invalid word expansion sequence"),
            LexErrorKind::TooManyWords => write!(f, "too many words, more than {MAX_LINE_ARGS}"),
            LexErrorKind::TooLong => write!(f, "line too long, more than {MAX_LINE_BYTES} bytes"),
        }
    }
}

/// Splits `line`, which has no line feed. A NUL byte ends it.
pub fn split(line: &[u8], context: &Context<'_>) -> Result<Line, LexError> {
    if line.len() > MAX_LINE_BYTES {
        return Err(LexError {
            kind: LexErrorKind::TooLong,
            offset: MAX_LINE_BYTES,
        });
    }
    let mut lexer = Lexer {
        line,
        context,
        at: 0,
        out: Line::default(),
        word: Vec::new(),
        word_at: None,
        in_word: false,
        quote: None,
        empty_quote: false,
        unset: None,
        emitted: 0,
    };
    lexer.run()?;
    Ok(lexer.out)
}

/// White space as defined by C's `isspace`.
pub(crate) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

struct Lexer<'a> {
    line: &'a [u8],
    context: &'a Context<'a>,
    /// The position of the next byte to read.
    at: usize,
    out: Line,
    /// The current word.
    word: Vec<u8>,
    /// The start of the current word: its first byte or the quote before it.
    word_at: Option<usize>,
    /// Whether there is a current word; it may be empty.
    in_word: bool,
    /// The open quote and its position.
    quote: Option<(u8, usize)>,
    /// No byte was added since the quote was opened: closing it makes an empty word.
    empty_quote: bool,
    /// An unset variable that left the word empty.
    unset: Option<Range<usize>>,
    /// The number of bytes added so far.
    emitted: usize,
}

impl Lexer<'_> {
    fn run(&mut self) -> Result<(), LexError> {
        self.skip_space();
        loop {
            let quoted = self.quote.map(|(quote, _)| quote);
            match (self.peek(0), quoted) {
                (0 | b'\n', _) => break,
                (b'\r', _) => {
                    self.note_carriage_return();
                    break;
                }
                (b'#', None) if self.context.comments => break,
                (quote @ (b'"' | b'\''), None) => self.open_quote(quote),
                (byte, Some(quote)) if byte == quote => self.close_quote(),
                (b'\\', None | Some(b'"')) => self.escape()?,
                (b'$', Some(b'"')) => self.variable()?,
                (byte, None) if is_space(byte) => self.separator(),
                (byte, _) => {
                    self.emit(byte, self.at)?;
                    self.at += 1;
                }
            }
        }
        self.finish_word(self.at);
        match self.quote {
            Some((_, offset)) => Err(LexError {
                kind: LexErrorKind::Quote,
                offset,
            }),
            None => Ok(()),
        }
    }

    /// The byte `ahead` of the next one; 0 past the end.
    fn peek(&self, ahead: usize) -> u8 {
        self.line.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn error<T>(&self, kind: LexErrorKind, offset: usize) -> Result<T, LexError> {
        Err(LexError { kind, offset })
    }

    fn open_quote(&mut self, quote: u8) {
        self.quote = Some((quote, self.at));
        self.empty_quote = true;
        self.word_at.get_or_insert(self.at);
        self.at += 1;
    }

    fn close_quote(&mut self) {
        self.quote = None;
        self.at += 1;
        self.in_word |= self.empty_quote;
    }

    /// A carriage return among other white space is white space; only one directly after a word
    /// ends the line.
    fn skip_space(&mut self) {
        while is_space(self.peek(0)) {
            self.at += 1;
        }
    }

    fn separator(&mut self) {
        self.finish_word(self.at);
        self.word_at = None;
        self.skip_space();
    }

    /// Adds a byte to the word; begins a word at `from` if there is none.
    fn emit(&mut self, byte: u8, from: usize) -> Result<(), LexError> {
        self.begin_word(from)?;
        if byte == 0 {
            self.out.ignored.get_or_insert(Ignored::AfterNul(from));
        }
        self.emitted += 1;
        if self.emitted > MAX_LINE_BYTES {
            return self.error(LexErrorKind::TooLong, from);
        }
        self.word.push(byte);
        self.empty_quote = false;
        Ok(())
    }

    fn begin_word(&mut self, from: usize) -> Result<(), LexError> {
        self.word_at.get_or_insert(from);
        self.in_word = true;
        if self.out.words.len() == MAX_LINE_ARGS {
            return self.error(LexErrorKind::TooManyWords, from);
        }
        Ok(())
    }

    fn finish_word(&mut self, end: usize) {
        if !std::mem::take(&mut self.in_word) {
            return;
        }
        let start = self.word_at.take().unwrap_or(end);
        let unset = self.unset.take();
        // Words are C strings in HAProxy, so an escaped NUL ends the word.
        let bytes = self
            .word
            .split(|&byte| byte == 0)
            .next()
            .unwrap_or_default();
        let unset = unset.filter(|_| bytes.is_empty());
        self.out.words.push(Token {
            text: bytes.into(),
            range: start..end,
            unset,
        });
        self.word.clear();
    }

    fn note_carriage_return(&mut self) {
        let rest = &self.line[self.at..];
        if !rest.iter().all(|&byte| is_space(byte)) {
            self.out
                .ignored
                .get_or_insert(Ignored::AfterCarriageReturn(self.at));
        }
    }

    /// Reads a backslash outside of single quotes. A sequence that is not an escape is literal.
    fn escape(&mut self) -> Result<(), LexError> {
        let from = self.at;
        let weak = self.quote.is_some();
        let (byte, len) = match self.peek(1) {
            escaped @ (b' ' | b'\\' | b'\'' | b'"') => (escaped, 2),
            b'#' if self.context.comments => (b'#', 2),
            b'$' if weak => (b'$', 2),
            b't' => (b'\t', 2),
            b'n' => (b'\n', 2),
            b'r' => (b'\r', 2),
            b'x' => match http::hex_byte(self.peek(2), self.peek(3)) {
                Some(byte) => (byte, 4),
                None => return self.error(LexErrorKind::Hex, from),
            },
            _ => (b'\\', 1),
        };
        self.at += len;
        self.emit(byte, from)
    }

    /// `$X`, `${X}`, `${X-default}`, `${X[*]}`, `${X[*]-default}` inside double quotes.
    fn variable(&mut self) -> Result<(), LexError> {
        let from = self.at;
        self.at += 1;
        let brace = (self.peek(0) == b'{').then_some(self.at);
        self.at += usize::from(brace.is_some());
        let name = self.variable_name()?;
        let context = self.context;
        let mut value = lookup(context, &self.line[name.clone()]).map_err(|kind| LexError {
            kind,
            offset: name.start,
        })?;
        let default;
        let mut expand = false;
        if let Some(brace) = brace {
            expand = self.expansion_mark()?;
            default = self.default_value(brace)?;
            value = value.or(default.map(|range| self.line[range].into()));
        }
        // An expansion to no words leaves no word at all, although it is quoted.
        self.empty_quote &= !expand;
        match value {
            Some(value) if expand => self.emit_words(&value, from)?,
            Some(value) => {
                self.unset = None;
                value.iter().try_for_each(|&byte| self.emit(byte, from))?;
            }
            None if expand => {}
            None => {
                self.begin_word(from)?;
                self.unset.get_or_insert(name);
            }
        }
        Ok(())
    }

    fn variable_name(&mut self) -> Result<Range<usize>, LexError> {
        let start = self.at;
        if !matches!(self.peek(0), b'_' | b'.' | b'a'..=b'z' | b'A'..=b'Z') {
            return self.error(LexErrorKind::VariableName, start);
        }
        self.at += 1;
        while matches!(self.peek(0), b'_' | b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9') {
            self.at += 1;
        }
        Ok(start..self.at)
    }

    fn expansion_mark(&mut self) -> Result<bool, LexError> {
        if self.peek(0) != b'[' {
            return Ok(false);
        }
        if (self.peek(1), self.peek(2)) != (b'*', b']') {
            return self.error(LexErrorKind::Expansion, self.at);
        }
        self.at += 3;
        Ok(true)
    }

    /// The text between the `-` and the closing brace. Continues after that brace.
    fn default_value(&mut self, brace: usize) -> Result<Option<Range<usize>>, LexError> {
        let start = self.at + 1;
        let has_default = self.peek(0) == b'-';
        if has_default {
            while !matches!(self.peek(0), b'}' | 0) {
                self.at += 1;
            }
        }
        if self.peek(0) != b'}' {
            return self.error(LexErrorKind::Brace, brace);
        }
        let end = self.at;
        self.at += 1;
        Ok(has_default.then_some(start..end))
    }

    /// Adds `value`, split at white space. Its first and last word are joined with the text around
    /// the variable.
    fn emit_words(&mut self, value: &[u8], from: usize) -> Result<(), LexError> {
        for &byte in value {
            if is_space(byte) {
                self.finish_word(self.at);
            } else {
                self.emit(byte, from)?;
            }
        }
        Ok(())
    }
}

/// The value of an environment variable or of a pseudo-variable, whose name begins with a dot.
fn lookup<'a>(
    context: &Context<'a>,
    name: &[u8],
) -> Result<Option<std::borrow::Cow<'a, [u8]>>, LexErrorKind> {
    Ok(match name {
        b".FILE" => Some(context.file.as_bytes().into()),
        b".LINE" => Some(context.line.to_string().into_bytes().into()),
        b".SECTION" => context.section.map(Into::into),
        [b'.', ..] => return Err(LexErrorKind::VariableName),
        _ => context.environment.get(name).map(Into::into),
    })
}
