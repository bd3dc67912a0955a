//! Parses log formats: `%alias`, `%{+Q}alias`, `%(name:type)alias`, `%[expression]`, `%%` and text.

use super::alias::ALIASES;
use super::settle::{Named, settle};
use super::write::{Flags, Output, Typed};
use super::{Item, LogFormat};
use crate::compile::{Reading, ascii};
use crate::{Compiler, ExprError, Place, Style};
use syntax::octets::{first_character, readable};

/// Flags by name.
const FLAGS: &[(&str, Flags)] = &[
    ("M", Flags::MANDATORY),
    ("Q", Flags::QUOTE),
    ("X", Flags::HEX),
    ("E", Flags::ESCAPE),
    ("bin", Flags::BIN),
    ("json", Flags::JSON),
    ("cbor", Flags::CBOR),
];

/// Output types that an item's name can specify.
const TYPES: &[(&str, Typed)] = &[
    ("str", Typed::Str),
    ("sint", Typed::Int),
    ("bool", Typed::Bool),
    ("raw", Typed::Raw),
];

/// Compiles a log format.
pub(crate) fn compile(
    compiler: &mut Compiler,
    text: &[u8],
    place: Place,
    style: Style,
) -> Result<LogFormat, ExprError> {
    let base = match style {
        Style::Log => Flags::MANDATORY,
        Style::Http | Style::UniqueId => Flags::HTTP,
        Style::Plain => Flags::default(),
    };
    let mut reader = Reader {
        compiler,
        text,
        at: 0,
        place,
        merges_spaces: matches!(style, Style::Log | Style::UniqueId),
        flags: base,
        global: None,
        items: Vec::new(),
    };
    while reader.at < text.len() {
        reader.item()?;
    }
    let global = reader.global.unwrap_or_default();
    Ok(LogFormat::new(settle(reader.items, global)))
}

struct Reader<'c, 't> {
    compiler: &'c mut Compiler,
    text: &'t [u8],
    at: usize,
    place: Place,
    merges_spaces: bool,
    /// The flags of the following items; `%{...}o` changes them.
    flags: Flags,
    /// The flags that every `%{...}o` has set; None before the first one.
    global: Option<Flags>,
    items: Vec<Named>,
}

impl<'t> Reader<'_, 't> {
    fn byte(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn fault(&self, start: usize, message: impl Into<String>) -> ExprError {
        ExprError::at(
            0,
            start,
            self.at.max(start + 1).min(self.text.len()),
            message,
        )
    }

    fn item(&mut self) -> Result<(), ExprError> {
        match self.byte() {
            Some(b'%') => self.percent(),
            Some(b' ') if self.merges_spaces => {
                self.at += 1;
                self.push("", Item::Space);
                Ok(())
            }
            _ => {
                let rest = &self.text[self.at..];
                let ends = |byte: &u8| *byte == b'%' || (*byte == b' ' && self.merges_spaces);
                let length = rest.iter().position(ends).unwrap_or(rest.len());
                let text: Box<[u8]> = rest[..length].into();
                self.at += length;
                self.push_text(&text);
                Ok(())
            }
        }
    }

    fn push_text(&mut self, text: &[u8]) {
        if let Some(Named {
            item: Item::Text(last),
            ..
        }) = self.items.last_mut()
        {
            *last = [last, text].concat().into_boxed_slice();
        } else {
            self.push("", Item::Text(text.into()));
        }
    }

    fn push(&mut self, name: &str, item: Item) {
        self.items.push(Named {
            name: name.into(),
            item,
        });
    }

    /// Parses an item that begins with a percent sign.
    fn percent(&mut self) -> Result<(), ExprError> {
        let start = self.at;
        self.at += 1;
        match self.byte() {
            Some(b'%') => {
                self.at += 1;
                self.push_text(b"%");
                return Ok(());
            }
            Some(b @ (b'0'..=b'9' | b' ' | b'\t')) => {
                self.at += 1;
                return Err(self.fault(start, format!(
                    "unexpected alias name near '{}' at position {} line : '{}'. Maybe you want to write a single '%', \
                     use the syntax '%%'",
                    char::from(b), self.at - 1, readable(self.text)
                )));
            }
            _ => {}
        }
        let (name, typed) = match self.byte() {
            Some(b'(') => self.name()?,
            _ => ("", Typed::Same),
        };
        let has_flags = self.byte() == Some(b'{');
        let flags = if has_flags {
            self.item_flags()?
        } else {
            self.flags
        };
        let output = Output { flags, typed };
        match self.byte() {
            Some(b'[') => self.expression(start, name, output),
            Some(byte) if byte.is_ascii_alphanumeric() => self.alias(start, name, output),
            None => {
                let written = readable(&self.text[start..]);
                Err(self.fault(start, format!("truncated line after '{written}'")))
            }
            // A percent sign before another byte: as in HAProxy, both are literal.
            Some(_) if !has_flags => Ok(()),
            Some(_) => {
                let written = readable(&self.text[start..self.at]);
                Err(self.fault(
                    start,
                    format!("parse argument modifier without alias name near '{written}'"),
                ))
            }
        }
    }

    /// `(name:type)`: used with an encoding.
    fn name(&mut self) -> Result<(&'t str, Typed), ExprError> {
        let start = self.at;
        let text = self.text;
        let Some(length) = memchr::memchr(b')', &text[start..]) else {
            self.at = text.len();
            return Err(self.fault(start, "truncated line after '%'"));
        };
        let inner = &text[start + 1..start + length];
        self.at = start + length + 1;
        let colon = memchr::memchr(b':', inner);
        let is_odd = |byte: u8| !byte.is_ascii_alphanumeric() && !matches!(byte, b'_' | b'-');
        let odd = (0..inner.len()).find(|at| colon != Some(*at) && is_odd(inner[*at]));
        if let Some(at) = odd {
            return Err(self.fault(
                start,
                format!(
                    "invalid character in custom name near '{}' at position {} line : '{}'",
                    first_character(&inner[at..]),
                    start + 1 + at,
                    readable(text)
                ),
            ));
        }
        // Only ASCII is left here.
        let Some(colon) = colon else {
            return Ok((ascii(inner), Typed::Same));
        };
        let (name, kind) = (ascii(&inner[..colon]), ascii(&inner[colon + 1..]));
        match TYPES.iter().find(|(known, _)| *known == kind) {
            Some((_, typed)) => Ok((name, *typed)),
            None => Err(self.fault(start, format!(
                "unexpected output type '{kind}' at position {} line : '{}'. Supported types are: str, sint, bool, raw",
                start + 2 + name.len(),
                readable(text)
            ))),
        }
    }

    /// `{+Q,-E}`. An unknown flag is ignored with a warning, as in HAProxy.
    fn item_flags(&mut self) -> Result<Flags, ExprError> {
        let start = self.at;
        let Some(length) = memchr::memchr(b'}', &self.text[start..]) else {
            self.at = self.text.len();
            return Err(self.fault(
                start,
                format!(
                    "truncated line after '{}'",
                    readable(&self.text[start + 1..])
                ),
            ));
        };
        let inner = &self.text[start + 1..start + length];
        self.at = start + length + 1;
        let mut flags = self.flags;
        for word in inner.split(|byte| *byte == b',') {
            // If a word has several signs, the last one counts.
            let (on, name) = match memchr::memrchr2(b'+', b'-', word) {
                Some(at) => (word[at] == b'+', &word[at + 1..]),
                None => (true, &b""[..]),
            };
            match FLAGS.iter().find(|(known, _)| known.as_bytes() == name) {
                // The first encoding wins.
                Some((_, flag))
                    if on && flag.has(Flags::ENCODING) && flags.has(Flags::ENCODING) => {}
                Some((_, flag)) => flags = flags.with(*flag, on),
                None => {
                    let warning = self.fault(
                        start,
                        format!(
                            "log format flag '{}' is unknown and ignored",
                            readable(word)
                        ),
                    );
                    self.compiler.warn(warning);
                }
            }
        }
        Ok(flags)
    }

    fn alias(&mut self, start: usize, name_given: &str, output: Output) -> Result<(), ExprError> {
        let rest = &self.text[self.at..];
        let length = rest
            .iter()
            .take_while(|byte| byte.is_ascii_alphanumeric())
            .count();
        let name = ascii(&rest[..length]);
        self.at += length;
        if name == "o" {
            self.flags = output.flags;
            let global = self.global.unwrap_or(output.flags);
            self.global = Some(global.and(output.flags));
            return Ok(());
        }
        let Some(alias) = ALIASES.iter().find(|alias| alias.name == name) else {
            return Err(self.fault(start, format!(
                "no such format alias '{name}'. If you wanted to emit the '%' character verbatim, you need to use '%%'"
            )));
        };
        self.compiler.needs.note_alias(name);
        self.push(name_given, Item::Alias(alias, output));
        Ok(())
    }

    fn expression(&mut self, start: usize, name: &str, output: Output) -> Result<(), ExprError> {
        self.at += 1;
        let text = &self.text[self.at..];
        let compiled = self
            .compiler
            .expression(&[text], self.place, Reading::Prefix)
            .map_err(|mut error| {
                let expression = text.split(|byte| *byte == b']').next().unwrap_or(text);
                if !error.message.starts_with("sample fetch <") {
                    error.message = format!(
                        "failed to parse sample expression <{}> : {}",
                        readable(expression),
                        error.message
                    );
                }
                error.start += self.at;
                error.end += self.at;
                error
            })?;
        let written = readable(&text[..compiled.end]);
        self.at += compiled.end;
        match self.byte() {
            Some(b']') => {
                self.at += 1;
                self.push(name, Item::Expr(compiled.expr, output));
                Ok(())
            }
            Some(_) => {
                let other = first_character(&self.text[self.at..]);
                Err(self.fault(
                    start,
                    format!("expected ']' after '{written}', but found '{other}'"),
                ))
            }
            None => Err(self.fault(start, format!("missing ']' after '{written}'"))),
        }
    }
}
