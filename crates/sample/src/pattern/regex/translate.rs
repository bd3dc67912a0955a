//! Translates PCRE's syntax to that of the automata. They differ in details: which characters may
//! be escaped, the meaning of a `{` or `[` that begins nothing, POSIX classes, control characters.
//!
//! The pattern is read like in PCRE without Unicode mode: byte by byte. Every byte that is not a
//! letter, digit or operator is written as `\xHH`, so that no byte gets a meaning that it did not
//! have.

use std::fmt::Write as _;

/// Why a pattern cannot be translated, and the position of the fault.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// PCRE would refuse it too.
    Invalid(String, usize),
    /// No automaton supports it.
    Unsupported(&'static str, usize),
}

/// Most nested groups.
const NESTING_MAX: usize = 250;

const VERTICAL: &str = r"\n\x0B\x0C\r\x85";
const HORIZONTAL: &str = r"\t\x20\xA0";
const POSIX_CLASSES: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct",
    "space", "upper", "word", "xdigit",
];

/// Translates a pattern.
pub(super) fn translate(pattern: &[u8]) -> Result<String, Fault> {
    let mut reader = Reader {
        pattern,
        at: 0,
        out: String::with_capacity(pattern.len() + 16),
        groups: Vec::new(),
        extended: false,
        repeatable: false,
    };
    while let Some(byte) = reader.take() {
        reader.item(byte)?;
    }
    if reader.groups.is_empty() {
        Ok(reader.out)
    } else {
        Err(invalid("missing closing parenthesis", pattern.len()))
    }
}

struct Reader<'p> {
    pattern: &'p [u8],
    at: usize,
    out: String,
    /// For each open group, the value of `extended` before it.
    groups: Vec<bool>,
    /// `(?x)`: blanks and comments are ignored.
    extended: bool,
    /// The preceding item can be repeated by a quantifier.
    repeatable: bool,
}

/// One member of a class.
enum Member {
    Byte(u8),
    /// Several characters, in the syntax of the output.
    Set(String),
    /// No character: `\E` and the like.
    Nothing,
}

fn invalid(what: &str, at: usize) -> Fault {
    Fault::Invalid(what.to_owned(), at)
}

impl<'p> Reader<'p> {
    fn peek(&self) -> Option<u8> {
        self.pattern.get(self.at).copied()
    }

    fn take(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn take_if(&mut self, byte: u8) -> bool {
        let is = self.peek() == Some(byte);
        self.at += usize::from(is);
        is
    }

    fn rest(&self) -> &'p [u8] {
        &self.pattern[self.at..]
    }

    /// Consumes the text before `end`, and `end`. Consumes nothing if `end` does not follow.
    fn take_until(&mut self, end: &[u8]) -> Option<&'p [u8]> {
        let start = self.at;
        let length = memchr::memmem::find(self.rest(), end)?;
        self.at += length + end.len();
        Some(&self.pattern[start..start + length])
    }

    fn item(&mut self, byte: u8) -> Result<(), Fault> {
        match byte {
            b'\\' => self.escape()?,
            b'[' => self.class()?,
            b'(' => self.group()?,
            b')' => {
                let outer = self.groups.pop();
                self.extended =
                    outer.ok_or_else(|| invalid("unmatched closing parenthesis", self.at - 1))?;
                self.operator(")", true);
            }
            b'|' => self.operator("|", false),
            b'^' => self.operator("^", false),
            b'$' => self.operator("$", false),
            b'.' => self.operator(".", true),
            b'*' => self.quantifier("*")?,
            b'+' => self.quantifier("+")?,
            b'?' => self.quantifier("?")?,
            b'{' => match self.counts() {
                Some(counts) => self.quantifier(&counts)?,
                None => self.literal(byte),
            },
            b' ' | b'\t' | b'\n' | 0x0b | 0x0c | b'\r' if self.extended => {}
            b'#' if self.extended => {
                if self.take_until(b"\n").is_none() {
                    self.at = self.pattern.len();
                }
            }
            byte => self.literal(byte),
        }
        Ok(())
    }

    fn operator(&mut self, text: &str, repeatable: bool) {
        self.out.push_str(text);
        self.repeatable = repeatable;
    }

    /// An item that matches a position and no byte.
    fn place(&mut self, text: &str) -> Result<(), Fault> {
        self.operator(text, false);
        Ok(())
    }

    fn literal(&mut self, byte: u8) {
        push_byte(&mut self.out, byte);
        self.repeatable = true;
    }

    /// `{n}`, `{n,}`, `{n,m}`, `{,m}` after the brace. Anything else is a literal brace, and
    /// nothing is consumed.
    fn counts(&mut self) -> Option<String> {
        let rest = self.rest();
        let end = rest.iter().position(|byte| *byte == b'}')?;
        let inside = std::str::from_utf8(&rest[..end]).ok()?;
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let counts = match inside.split_once(',') {
            None if is_number(inside) => format!("{{{inside}}}"),
            Some((min, "")) if is_number(min) => format!("{{{min},}}"),
            // PCRE2 since 10.43 and POSIX have this form; before, it was literal text.
            Some(("", max)) if is_number(max) => format!("{{0,{max}}}"),
            Some((min, max)) if is_number(min) && is_number(max) => format!("{{{min},{max}}}"),
            _ => return None,
        };
        self.at += end + 1;
        Some(counts)
    }

    fn quantifier(&mut self, text: &str) -> Result<(), Fault> {
        if !self.repeatable {
            let what = "quantifier does not follow a repeatable item";
            return Err(invalid(what, self.at - 1));
        }
        self.out.push_str(text);
        if self.peek() == Some(b'+') {
            return Err(Fault::Unsupported("possessive quantifier", self.at));
        }
        if self.take_if(b'?') {
            self.out.push('?');
        }
        self.repeatable = false;
        Ok(())
    }

    /// Continues after an opening parenthesis.
    fn group(&mut self) -> Result<(), Fault> {
        let start = self.at - 1;
        if self.groups.len() >= NESTING_MAX {
            return Err(invalid("parentheses are too deeply nested", start));
        }
        let unsupported = |what| Err(Fault::Unsupported(what, start));
        let opening = match self.rest() {
            [b'*', ..] => return unsupported("a verb in parentheses"),
            [b'?', b'#', ..] => {
                let missing = invalid("missing ) after (?# comment", self.pattern.len());
                return self.take_until(b")").map(|_| ()).ok_or(missing);
            }
            [b'?', b':', ..] => {
                self.at += 2;
                "(?:".to_owned()
            }
            [b'?', b'=' | b'!', ..] => return unsupported("look-ahead"),
            [b'?', b'<', b'=' | b'!', ..] => return unsupported("look-behind"),
            [b'?', b'>', ..] => return unsupported("atomic group"),
            [b'?', b'|', ..] => return unsupported("branch reset"),
            [b'?', b'(', ..] => return unsupported("conditional group"),
            [b'?', b'P', b'=', ..] => return unsupported("back-reference"),
            [b'?', b'R' | b'&' | b'0'..=b'9' | b'+', ..]
            | [b'?', b'P', b'>', ..]
            | [b'?', b'-', b'0'..=b'9', ..] => return unsupported("recursion"),
            [b'?', b'C', ..] => return unsupported("callout"),
            [b'?', b'P', b'<', ..] => self.name(3, b">")?,
            [b'?', b'<', ..] => self.name(2, b">")?,
            [b'?', b'\'', ..] => self.name(2, b"'")?,
            [b'?', ..] => {
                let before = self.extended;
                self.at += 1;
                let flags = self.flags(start)?;
                if self.take_if(b')') {
                    if !flags.is_empty() {
                        self.out.push_str(&format!("(?{flags})"));
                    }
                    self.repeatable = false;
                    return Ok(());
                }
                // `flags` has stopped at a colon.
                self.at += 1;
                self.groups.push(before);
                self.operator(&format!("(?{flags}:"), false);
                return Ok(());
            }
            _ => "(".to_owned(),
        };
        self.groups.push(self.extended);
        self.operator(&opening, false);
        Ok(())
    }

    /// A name that begins after `skip` bytes.
    fn name(&mut self, skip: usize, end: &[u8]) -> Result<String, Fault> {
        self.at += skip;
        let start = self.at;
        let name = self.take_until(end).unwrap_or_default();
        let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        match std::str::from_utf8(name) {
            Ok(name) if !name.is_empty() && name.bytes().all(|byte| is_name(&byte)) => {
                Ok(format!("(?P<{name}>"))
            }
            _ => Err(invalid("syntax error in subpattern name", start)),
        }
    }

    /// Flags up to a colon or parenthesis, which is not consumed. Flags for blanks are handled
    /// here.
    fn flags(&mut self, start: usize) -> Result<String, Fault> {
        let (mut flags, mut on) = (String::new(), true);
        loop {
            match self.peek() {
                Some(flag @ (b'i' | b'm' | b's' | b'U')) => flags.push(char::from(flag)),
                Some(b'x') => self.extended = on,
                Some(b'-') if on => {
                    on = false;
                    flags.push('-');
                }
                Some(b':' | b')') => break,
                Some(b'n' | b'J' | b'^') => {
                    return Err(Fault::Unsupported("this option", self.at));
                }
                _ => {
                    return Err(invalid(
                        "unrecognized character after (? or (?-",
                        self.at.max(start),
                    ));
                }
            }
            self.at += 1;
        }
        Ok(flags.trim_end_matches('-').to_owned())
    }

    /// Continues after a backslash outside of classes.
    fn escape(&mut self) -> Result<(), Fault> {
        let start = self.at - 1;
        let Some(byte) = self.take() else {
            return Err(invalid("\\ at end of pattern", self.pattern.len()));
        };
        let unsupported = |what| Err(Fault::Unsupported(what, start));
        match byte {
            b'b' => return self.place(r"\b"),
            b'B' => return self.place(r"\B"),
            b'A' => return self.place(r"\A"),
            b'z' | b'Z' => return self.place(r"\z"),
            b'd' | b'D' | b'w' | b'W' | b's' | b'S' => {
                self.out.push('\\');
                self.out.push(char::from(byte));
            }
            b'h' => self.out.push_str(&format!("[{HORIZONTAL}]")),
            b'H' => self.out.push_str(&format!("[^{HORIZONTAL}]")),
            b'v' => self.out.push_str(&format!("[{VERTICAL}]")),
            b'V' => self.out.push_str(&format!("[^{VERTICAL}]")),
            b'R' => self.out.push_str(&format!(r"(?:\r\n|[{VERTICAL}])")),
            b'N' => self.out.push_str(r"[^\n]"),
            b'C' => self.out.push_str("(?s:.)"),
            b'Q' => {
                let text = self.quoted();
                if text.is_empty() {
                    return Ok(());
                }
                text.iter().for_each(|byte| push_byte(&mut self.out, *byte));
            }
            b'E' => return Ok(()),
            b'G' => return unsupported("\\G"),
            b'K' => return unsupported("\\K"),
            b'X' => return unsupported("\\X"),
            b'p' | b'P' => return unsupported("Unicode property"),
            b'g' | b'k' => return unsupported("back-reference"),
            b'1'..=b'9' if !self.is_octal() => return unsupported("back-reference"),
            byte => {
                let byte = self.character(byte, start)?;
                push_byte(&mut self.out, byte);
            }
        }
        self.repeatable = true;
        Ok(())
    }

    /// The text of `\Q…\E`; the `\E` is optional.
    fn quoted(&mut self) -> &'p [u8] {
        let start = self.at;
        let end = memchr::memmem::find(self.rest(), b"\\E").map(|length| start + length);
        self.at = end.map_or(self.pattern.len(), |end| end + 2);
        &self.pattern[start..end.unwrap_or(self.pattern.len())]
    }

    /// Whether the last digit begins an octal number: the digits are not the number of any group.
    fn is_octal(&self) -> bool {
        let digits = &self.pattern[self.at - 1..];
        let count = digits
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        let opened = self.pattern.iter().filter(|byte| **byte == b'(').count();
        let number = std::str::from_utf8(&digits[..count]).ok();
        let number = number.and_then(|text| text.parse::<usize>().ok());
        digits[0] < b'8' && number.is_none_or(|number| number > 9 && number > opened)
    }

    /// The byte of an escape whose first character was consumed.
    fn character(&mut self, byte: u8, start: usize) -> Result<u8, Fault> {
        Ok(match byte {
            b'a' => 7,
            b'e' => 0x1b,
            b'f' => 0x0c,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'c' => match self.take() {
                Some(control @ b' '..=b'~') => control.to_ascii_uppercase() ^ 0x40,
                _ => {
                    return Err(invalid(
                        "\\c must be followed by a printable ASCII character",
                        self.at,
                    ));
                }
            },
            b'x' if self.take_if(b'{') => self.braced(16, start)?,
            b'o' if self.take_if(b'{') => self.braced(8, start)?,
            b'x' => self.digits(16, 2, 0),
            b'0'..=b'7' => self.digits(8, 2, byte - b'0'),
            byte if !byte.is_ascii_alphanumeric() => byte,
            _ => return Err(invalid("unrecognized character follows \\", start + 1)),
        })
    }

    fn braced(&mut self, radix: u32, start: usize) -> Result<u8, Fault> {
        let digits = self.take_until(b"}").unwrap_or_default();
        let text = std::str::from_utf8(digits).unwrap_or("");
        let plus = text.starts_with('+');
        let number = u32::from_str_radix(text, radix).ok().filter(|_| !plus);
        let number =
            number.ok_or_else(|| invalid("digits missing or wrong in \\x{} or \\o{}", start))?;
        u8::try_from(number).map_err(|_| {
            invalid(
                "character code point value in \\x{} or \\o{} is too large",
                start,
            )
        })
    }

    /// Reads up to `count` more digits of a number that begins with `number`; bits above eight are
    /// dropped.
    fn digits(&mut self, radix: u32, count: usize, number: u8) -> u8 {
        let mut number = u32::from(number);
        for _ in 0..count {
            let digit = self
                .peek()
                .and_then(|byte| char::from(byte).to_digit(radix));
            let Some(digit) = digit else { break };
            number = number * radix + digit;
            self.at += 1;
        }
        number as u8
    }

    /// Continues after an opening bracket.
    fn class(&mut self) -> Result<(), Fault> {
        for (word, boundary) in [(&b"[:<:]]"[..], r"\b{start}"), (b"[:>:]]", r"\b{end}")] {
            if self.rest().starts_with(word) {
                self.at += word.len();
                self.operator(boundary, true);
                return Ok(());
            }
        }
        self.out.push('[');
        if self.take_if(b'^') {
            self.out.push('^');
        }
        let first = self.at;
        loop {
            let unfinished = invalid(
                "missing terminating ] for character class",
                self.pattern.len(),
            );
            if self.at > first && self.take_if(b']') {
                break;
            }
            match self.member().ok_or(unfinished)?? {
                Member::Nothing => {}
                Member::Set(set) => self.out.push_str(&set),
                Member::Byte(low) => {
                    push_byte(&mut self.out, low);
                    if let Some(high) = self.range_end()? {
                        if high < low {
                            let what = "range out of order in character class";
                            return Err(invalid(what, self.at - 1));
                        }
                        self.out.push('-');
                        push_byte(&mut self.out, high);
                    }
                }
            }
        }
        self.operator("]", true);
        Ok(())
    }

    /// The end of a range, if a hyphen follows and then something other than the end of the class.
    fn range_end(&mut self) -> Result<Option<u8>, Fault> {
        match self.rest() {
            [b'-', b']', ..] | [] => return Ok(None),
            [b'-', ..] => self.at += 1,
            _ => return Ok(None),
        }
        let place = self.at;
        match self.member().transpose()? {
            Some(Member::Byte(high)) => Ok(Some(high)),
            Some(_) => Err(invalid("invalid range in character class", place)),
            None => Ok(None),
        }
    }

    /// The next member of a class; None at the end of the pattern.
    fn member(&mut self) -> Option<Result<Member, Fault>> {
        let start = self.at;
        Some(match self.take()? {
            b'[' if matches!(self.peek(), Some(b':' | b'.' | b'=')) => {
                self.posix_class().unwrap_or(Ok(Member::Byte(b'[')))
            }
            b'\\' => self.class_escape(start),
            byte => Ok(Member::Byte(byte)),
        })
    }

    /// `[:name:]`, from its colon on; None if it does not end like one.
    fn posix_class(&mut self) -> Option<Result<Member, Fault>> {
        let rest = self.rest();
        let mark = rest[0];
        let length = memchr::memmem::find(&rest[1..], &[mark, b']'])?;
        let name = &rest[1..=length];
        if name.contains(&b']') || name.contains(&b'\\') {
            return None;
        }
        let name = String::from_utf8_lossy(name).into_owned();
        let place = self.at;
        if mark != b':' {
            let what = "POSIX collating elements are not supported";
            return Some(Err(invalid(what, place)));
        }
        self.at += length + 3;
        let known = POSIX_CLASSES.contains(&name.trim_start_matches('^'));
        Some(if known {
            Ok(Member::Set(format!("[:{name}:]")))
        } else {
            Err(invalid("unknown POSIX class name", place + 1))
        })
    }

    fn class_escape(&mut self, start: usize) -> Result<Member, Fault> {
        let Some(byte) = self.take() else {
            return Err(invalid("\\ at end of pattern", self.pattern.len()));
        };
        Ok(match byte {
            b'd' | b'D' | b'w' | b'W' | b's' | b'S' => {
                Member::Set(format!("\\{}", char::from(byte)))
            }
            b'h' => Member::Set(HORIZONTAL.to_owned()),
            b'H' => Member::Set(format!("[^{HORIZONTAL}]")),
            b'v' => Member::Set(VERTICAL.to_owned()),
            b'V' => Member::Set(format!("[^{VERTICAL}]")),
            b'b' => Member::Byte(8),
            b'Q' => {
                let mut set = String::new();
                for byte in self.quoted() {
                    push_byte(&mut set, *byte);
                }
                Member::Set(set)
            }
            b'E' => Member::Nothing,
            b'p' | b'P' => return Err(Fault::Unsupported("Unicode property", start)),
            byte => Member::Byte(self.character(byte, start)?),
        })
    }
}

/// Writes a literal byte, in a class and outside.
fn push_byte(out: &mut String, byte: u8) {
    if byte.is_ascii_alphanumeric() {
        out.push(char::from(byte));
    } else {
        // Writing to a string cannot fail.
        let _ = write!(out, "\\x{byte:02X}");
    }
}
