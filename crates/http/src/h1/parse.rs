//! The grammar of start lines and field lines (RFC 9112 §2–§5). Other modules decide their meaning.
//!
//! The bytes are copied into the head's buffer once and parsed there, so every offset refers to
//! that buffer.

use super::facts::{Facts, Keep};
use super::{EMPTY_LINES_MAX, Limits, ParseError, Parsed, Strictness, head_end};
use crate::bytes::{
    PAD, ShortName, TOKEN_LOWER, load_four, lower_name, short_name, skip_text, store_short_name,
    words,
};
use crate::head::{Field, Span, span};
use crate::{Head, Method, Name, Version, field_name};

/// Inputs up to this size are copied whole; of longer ones only the head, so that a body after it
/// is not copied.
const COPY_ALL_MAX: usize = 1024;

/// Why parsing stopped before the end of the head.
pub(super) enum Stop {
    /// The input ended.
    More,
    Bad(ParseError),
}

impl From<ParseError> for Stop {
    fn from(error: ParseError) -> Self {
        Stop::Bad(error)
    }
}

/// A head being parsed: `at` is the next byte, `end` the number of bytes; zeros follow them.
pub(super) struct Parser<'a> {
    pub head: &'a mut Head,
    pub at: usize,
    pub end: usize,
    pub relaxed: bool,
    fields_max: usize,
}

/// Runs `parse` on a copy of the input, within the limits.
pub(super) fn run(
    input: &[u8],
    limits: Limits,
    strictness: Strictness,
    head: &mut Head,
    parse: impl FnOnce(&mut Parser<'_>) -> Result<Parsed, Stop>,
) -> Result<Option<Parsed>, ParseError> {
    let mut parser = Parser::load(input, limits, strictness, head);
    let result = parse(&mut parser);
    let end = parser.end;
    match result {
        Ok(parsed) => Ok(Some(parsed)),
        Err(Stop::More) if end < limits.head_bytes_max => {
            head.clear();
            Ok(None)
        }
        Err(Stop::More) => {
            let error = if has_line(&head.buf[..end]) {
                ParseError::TooLarge
            } else {
                ParseError::TargetTooLong
            };
            head.clear();
            Err(error)
        }
        Err(Stop::Bad(error)) => {
            head.clear();
            Err(error)
        }
    }
}

/// Parses a whole trailer section (RFC 9112 §7.1.2), its final empty line included, into `head`.
pub(super) fn trailers(
    input: &[u8],
    limits: Limits,
    strictness: Strictness,
    head: &mut Head,
) -> Result<Option<usize>, ParseError> {
    let parsed = run(input, limits, strictness, head, |parser| {
        parser.fields(&mut Facts::trailers())?;
        Ok(Parsed {
            consumed: parser.at,
            ..Parsed::default()
        })
    });
    match parsed {
        Err(ParseError::TargetTooLong) => Err(ParseError::TooLarge),
        parsed => Ok(parsed?.map(|parsed| parsed.consumed)),
    }
}

impl<'a> Parser<'a> {
    fn load(input: &[u8], limits: Limits, strictness: Strictness, head: &'a mut Head) -> Self {
        let end = match input.len() {
            0..=COPY_ALL_MAX => input.len(),
            len => whole_head(input).unwrap_or(len),
        };
        let end = end.min(limits.head_bytes_max);
        head.clear();
        head.buf.extend_from_slice(&input[..end]);
        head.buf.extend_from_slice(&[0; PAD]);
        let relaxed = strictness == Strictness::Relaxed;
        Parser {
            head,
            at: 0,
            end,
            relaxed,
            fields_max: limits.fields_max,
        }
    }

    /// The byte at `at`, zero beyond the end.
    pub fn byte(&self, at: usize) -> u8 {
        self.head.buf[at]
    }

    /// `error`, unless the input ends at `at`.
    pub fn bad(&self, at: usize, error: ParseError) -> Stop {
        if at >= self.end {
            Stop::More
        } else {
            Stop::Bad(error)
        }
    }

    /// Skips the empty lines that may come before a start line.
    #[inline(always)]
    pub fn empty_lines(&mut self) -> Result<(), Stop> {
        if matches!(self.byte(self.at), b'\r' | b'\n') {
            self.skip_empty_lines()
        } else {
            Ok(())
        }
    }

    #[cold]
    fn skip_empty_lines(&mut self) -> Result<(), Stop> {
        let mut lines = 0;
        while matches!(self.byte(self.at), b'\r' | b'\n') {
            if lines == EMPTY_LINES_MAX {
                return Err(ParseError::TooManyEmptyLines.into());
            }
            self.line_end(ParseError::BareCr)?;
            lines += 1;
        }
        Ok(())
    }

    /// Skips one of the usual methods, if it and one space follow, but not the space.
    #[inline]
    pub fn usual_method(&mut self) -> Option<Method> {
        let (method, len) = match &load_four(&self.head.buf, self.at)? {
            b"GET " => (Method::Get, 3),
            b"POST" if self.byte(self.at + 4) == b' ' => (Method::Post, 4),
            _ => return None,
        };
        self.at += len;
        Some(method)
    }

    /// Skips a token and returns it; empty if there is none.
    pub fn token(&mut self) -> &[u8] {
        let from = self.at;
        while TOKEN_LOWER[self.head.buf[self.at] as usize] != 0 {
            self.at += 1;
        }
        &self.head.buf[from..self.at]
    }

    /// Skips the spaces between two words of a request line, however many there are; the line is
    /// written with one.
    #[inline(always)]
    pub fn spaces(&mut self, otherwise: ParseError) -> Result<(), Stop> {
        if let [b' ', b'!'..=255, ..] = self.head.buf[self.at..] {
            self.at += 1;
            Ok(())
        } else {
            self.odd_spaces(otherwise)
        }
    }

    #[cold]
    fn odd_spaces(&mut self, otherwise: ParseError) -> Result<(), Stop> {
        self.space(otherwise)?;
        while self.byte(self.at) == b' ' {
            self.at += 1;
        }
        Ok(())
    }

    /// Skips the one space between two words of a start line; when relaxed, any number of spaces
    /// and tabs.
    pub fn space(&mut self, otherwise: ParseError) -> Result<(), Stop> {
        if self.byte(self.at) == b' ' {
            self.at += 1;
        } else if !self.relaxed || self.byte(self.at) != b'\t' {
            return Err(self.bad(self.at, otherwise));
        }
        while self.relaxed && matches!(self.byte(self.at), b' ' | b'\t') {
            self.at += 1;
        }
        Ok(())
    }

    /// Skips the end of a line.
    pub fn line_end(&mut self, otherwise: ParseError) -> Result<(), Stop> {
        self.at = line_end(&self.head.buf, self.at, self.end, self.relaxed, otherwise)?;
        Ok(())
    }

    /// Skips `HTTP/1.1` and its CRLF, if exactly that follows.
    #[inline]
    pub fn usual_version(&mut self) -> bool {
        let usual = self.head.buf[self.at..].starts_with(b"HTTP/1.1\r\n");
        if usual {
            self.at += 10;
            self.head.start.version = Version::Http11;
        }
        usual
    }

    /// Parses the version from `from` to `to`. Returns its length if it is written unchanged.
    pub fn version(&mut self, from: usize, to: usize) -> Result<Option<usize>, Stop> {
        let text = &self.head.buf[from..to];
        let start = &mut self.head.start;
        start.version = match text {
            b"HTTP/1.1" => Version::Http11,
            [_, _, _, _, _, major, _, minor]
                if *major > b'1' || (*major == b'1' && *minor >= b'1') =>
            {
                Version::Http11
            }
            _ => Version::Http10,
        };
        match text {
            [b'H', b'T', b'T', b'P', b'/', b'0'..=b'9', b'.', b'0'..=b'9'] => {
                Ok((text == start.version.as_str().as_bytes()).then_some(text.len()))
            }
            _ if self.relaxed
                && text
                    .iter()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"./".contains(byte)) =>
            {
                start.version_text = span(from, to - from);
                Ok(Some(to - from))
            }
            _ => Err(ParseError::BadVersion.into()),
        }
    }

    /// If the length permits, marks the start line that began at `from` as ready to be written
    /// unchanged: parts that add up to that length, with a version that is written unchanged, can
    /// only be separated by one space each.
    #[inline]
    pub fn keep_line(&mut self, from: usize, parts_len: usize) {
        const SPACES_AND_CRLF: usize = 4;
        if self.at - from == parts_len + SPACES_AND_CRLF {
            self.head.start.line = span(from, self.at - from);
        }
    }

    /// Parses field lines up to and including the empty line, and cuts the buffer there.
    pub fn fields(&mut self, facts: &mut Facts) -> Result<(), Stop> {
        let mut buf = std::mem::take(&mut self.head.buf);
        let result = self.fields_in(&mut buf, facts);
        self.head.buf = buf;
        self.at = result?;
        self.head.buf.truncate(self.at);
        Ok(())
    }

    fn fields_in(&mut self, buf: &mut [u8], facts: &mut Facts) -> Result<usize, Stop> {
        let from = self.at;
        let mut at = from;
        // Whether all lines are as they will be written.
        let mut is_plain = true;
        loop {
            if matches!(buf[at], b'\r' | b'\n') {
                let next = line_end(buf, at, self.end, self.relaxed, ParseError::BareCr)?;
                let block = (is_plain && next == at + 2).then_some(from..at);
                self.head.count_parsed(block);
                return Ok(next);
            }
            let Some((field, next)) = usual_field(buf, at) else {
                let (kept_line, next) = self.odd_field(buf, at, facts)?;
                is_plain &= kept_line;
                at = next;
                continue;
            };
            if next >= self.end {
                return Err(Stop::More);
            }
            self.push(field)?;
            if field.id.is_deciding() {
                is_plain &= self.heed(buf, field, facts)?;
            }
            at = next;
        }
    }

    /// Adds a field to the index.
    #[inline(always)]
    fn push(&mut self, field: Field) -> Result<(), Stop> {
        if self.head.fields.len() >= self.fields_max {
            return Err(ParseError::TooManyFields.into());
        }
        self.head.push_parsed(field);
        Ok(())
    }

    /// Notes what the last field says about the message, and removes it if that is already known.
    /// Whether its line will be written unchanged.
    #[inline(always)]
    fn heed(&mut self, buf: &[u8], field: Field, facts: &mut Facts) -> Result<bool, Stop> {
        match facts.field(buf, field.id, field.value)? {
            Keep::Yes => return Ok(field.line),
            Keep::No => {
                self.head.fields.pop();
            }
            Keep::Only(value) => {
                if let Some(last) = self.head.fields.last_mut() {
                    last.line &= value == last.value;
                    last.value = value;
                    return Ok(last.line);
                }
            }
        }
        Ok(false)
    }

    /// Parses a field line that [`usual_field`] does not take, and adds its field. Whether the line
    /// will be written unchanged, and the position after it.
    #[inline(never)]
    fn odd_field(
        &mut self,
        buf: &mut [u8],
        at: usize,
        facts: &mut Facts,
    ) -> Result<(bool, usize), Stop> {
        let (len, is_token) = self.field_name(buf, at)?;
        let (value, next) = match usual_value(buf, at + len) {
            Some(found) => found,
            None => self.field_value(buf, at + len + 1)?,
        };
        if next >= self.end {
            return Err(Stop::More);
        }
        if !is_token {
            return Ok((false, next));
        }
        let line = value.at as usize == at + len + 2 && (value.at + value.len) as usize + 2 == next;
        let (first, last) = words(buf, at, len);
        let id = Name::from_words(first, last, &buf[at..at + len]);
        let mut field = Field {
            name: span(at, len),
            value,
            id,
            live: true,
            line,
            mark: 0,
        };
        if id == Name::Other {
            field.mark = field_name::mark(&buf[at..at + len]);
        }
        self.push(field)?;
        let kept_line = if id.is_deciding() {
            self.heed(buf, field, facts)?
        } else {
            line
        };
        Ok((kept_line, next))
    }

    /// Skips a field name up to its colon and lower-cases it. Returns its length and whether it is
    /// a token; it always is unless relaxed.
    #[inline]
    fn field_name(&self, buf: &mut [u8], from: usize) -> Result<(usize, bool), Stop> {
        let mut at = lower_name(buf, from);
        let stop = loop {
            let byte = buf[at];
            let lower = TOKEN_LOWER[byte as usize];
            if lower == 0 {
                break byte;
            }
            buf[at] = lower;
            at += 1;
        };
        if stop == b':' && at > from {
            return Ok((at - from, true));
        }
        self.odd_field_name(buf, from, at)
    }

    #[cold]
    fn odd_field_name(&self, buf: &[u8], from: usize, at: usize) -> Result<(usize, bool), Stop> {
        let error = match buf[at] {
            b':' => return Err(ParseError::BadFieldName.into()),
            b' ' | b'\t' if at == from => ParseError::FoldedField,
            b' ' | b'\t' => ParseError::SpaceBeforeColon,
            _ => ParseError::BadFieldName,
        };
        if at >= self.end {
            return Err(Stop::More);
        }
        if !self.relaxed {
            return Err(error.into());
        }
        let rest = &buf[at..self.end];
        match rest
            .iter()
            .position(|byte| matches!(byte, b':' | b'\r' | b'\n'))
        {
            Some(len) if rest[len] == b':' => Ok((at + len - from, false)),
            Some(_) => Err(error.into()),
            None => Err(Stop::More),
        }
    }

    /// Skips a field value and its line end, and trims the value. When relaxed, continuation lines
    /// are joined with spaces (RFC 9112 §5.2).
    #[inline(never)]
    fn field_value(&self, buf: &mut [u8], from: usize) -> Result<(Span, usize), Stop> {
        let mut at = from;
        while matches!(buf[at], b' ' | b'\t') {
            at += 1;
        }
        let mut from = at;
        loop {
            at = skip_text(buf, at);
            let error = match buf[at] {
                b'\r' | b'\n' => {
                    let next = line_end(buf, at, self.end, self.relaxed, ParseError::BareCr)?;
                    if !matches!(buf[next], b' ' | b'\t') {
                        let mut to = at;
                        while to > from && matches!(buf[to - 1], b' ' | b'\t') {
                            to -= 1;
                        }
                        while from < to && matches!(buf[from], b' ' | b'\t') {
                            from += 1;
                        }
                        return Ok((span(from, to - from), next));
                    }
                    if !self.relaxed {
                        return Err(ParseError::FoldedField.into());
                    }
                    buf[at..next].fill(b' ');
                    at = next;
                    continue;
                }
                b'\t' => {
                    at += 1;
                    continue;
                }
                0 => ParseError::NulInFieldValue,
                _ => ParseError::BadFieldValue,
            };
            if at >= self.end {
                return Err(Stop::More);
            }
            if !self.relaxed {
                return Err(error.into());
            }
            at += 1;
        }
    }
}

/// A field line of the usual layout whose name is in the table, and the position after it. None for
/// every other line.
#[inline(always)]
fn usual_field(buf: &mut [u8], at: usize) -> Option<(Field, usize)> {
    let name = short_name(buf, at)?;
    let (id, first, last) = Name::from_any_words(&name);
    if id == Name::Other {
        return None;
    }
    let (value, next) = usual_value(buf, at + name.len)?;
    store_short_name(
        buf,
        at,
        ShortName {
            first,
            last,
            ..name
        },
    );
    let field = Field {
        name: span(at, name.len),
        value,
        id,
        live: true,
        line: true,
        mark: 0,
    };
    Some((field, next))
}

/// The value after the colon of a field line of the usual layout: one space, text, CRLF, then
/// another line. None for every other layout.
#[inline(always)]
fn usual_value(buf: &[u8], colon: usize) -> Option<(Span, usize)> {
    let from = colon + 2;
    match load_four(buf, colon)? {
        [_, b' ', first, _] if first != b' ' => {}
        _ => return None,
    }
    let to = skip_text(buf, from);
    // The value is not empty and does not end with a space; the next line does not continue it.
    match load_four(buf, to - 1)? {
        [last, b'\r', b'\n', next] if last != b' ' && next != b' ' && next != b'\t' => {
            Some((span(from, to - from), to + 2))
        }
        _ => None,
    }
}

/// The position after the line end at `at`: CRLF or, when relaxed, a lone LF.
#[inline]
pub(super) fn line_end(
    buf: &[u8],
    at: usize,
    end: usize,
    relaxed: bool,
    otherwise: ParseError,
) -> Result<usize, Stop> {
    match (buf[at], buf[at + 1]) {
        (b'\r', b'\n') => Ok(at + 2),
        (b'\r', _) if at + 1 >= end => Err(Stop::More),
        (b'\r', _) => Err(ParseError::BareCr.into()),
        (b'\n', _) if relaxed => Ok(at + 1),
        (b'\n', _) => Err(ParseError::BareLf.into()),
        _ if at >= end => Err(Stop::More),
        _ => Err(otherwise.into()),
    }
}

/// The length of the first head, including the empty lines before it.
fn whole_head(input: &[u8]) -> Option<usize> {
    let empty = empty_lines_len(input);
    head_end(&input[empty..], 0).map(|len| empty + len)
}

/// Whether there is a whole line that is not empty.
fn has_line(bytes: &[u8]) -> bool {
    memchr::memchr(b'\n', &bytes[empty_lines_len(bytes)..]).is_some()
}

fn empty_lines_len(bytes: &[u8]) -> usize {
    let is_end = |byte: &&u8| matches!(byte, b'\r' | b'\n');
    bytes.iter().take_while(is_end).count()
}
