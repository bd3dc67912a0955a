//! Reads log formats: `%alias`, `%{+Q}alias`, `%(name:type)alias`, `%[expression]`, `%%` and text.

use super::alias::ALIASES;
use super::settle::{Named, settle};
use super::write::{Flags, Output, Typed};
use super::{Item, LogFormat};
use crate::compile::Reading;
use crate::{Compiler, ExprError, Place, Style};

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

/// Output types that an item's name may give.
const TYPES: &[(&str, Typed)] = &[
    ("str", Typed::Str),
    ("sint", Typed::Int),
    ("bool", Typed::Bool),
    ("raw", Typed::Raw),
];

/// Compiles a log format.
pub(crate) fn compile(
    compiler: &mut Compiler,
    text: &str,
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
    text: &'t str,
    at: usize,
    place: Place,
    merges_spaces: bool,
    /// Of the items that follow; `%{...}o` changes them.
    flags: Flags,
    /// Those that every `%{...}o` has set; none before the first one.
    global: Option<Flags>,
    items: Vec<Named>,
}

impl<'t> Reader<'_, 't> {
    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
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
                let rest = &self.text.as_bytes()[self.at..];
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

    /// What begins with a percent sign.
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
                    char::from(b), self.at - 1, self.text
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
                let written = &self.text[start..];
                Err(self.fault(start, format!("truncated line after '{written}'")))
            }
            // Another byte after a lone percent sign: both stand for themselves, as in HAProxy the byte does.
            Some(_) if !has_flags => Ok(()),
            Some(_) => {
                let written = self.text[start..self.at].trim_end_matches('}');
                Err(self.fault(
                    start,
                    format!("parse argument modifier without alias name near '{written}}}'"),
                ))
            }
        }
    }

    /// `(name:type)`: of use with an encoding.
    fn name(&mut self) -> Result<(&'t str, Typed), ExprError> {
        let start = self.at;
        let text = self.text;
        let Some(length) = text[start..].find(')') else {
            self.at = text.len();
            return Err(self.fault(start, "truncated line after '%'"));
        };
        let inner = &text[start + 1..start + length];
        self.at = start + length + 1;
        let (name, kind) = match inner.split_once(':') {
            Some((name, kind)) => (name, Some(kind)),
            None => (inner, None),
        };
        let is_odd = |c: &char| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '-');
        let mut letters = name.char_indices().chain(
            kind.into_iter()
                .flat_map(|kind| kind.char_indices().map(|(at, c)| (at + name.len() + 1, c))),
        );
        if let Some((at, odd)) = letters.find(|(_, c)| is_odd(c)) {
            return Err(self.fault(
                start,
                format!(
                    "invalid character in custom name near '{odd}' at position {} line : '{text}'",
                    start + 1 + at
                ),
            ));
        }
        let Some(kind) = kind else {
            return Ok((name, Typed::Same));
        };
        match TYPES.iter().find(|(known, _)| *known == kind) {
            Some((_, typed)) => Ok((name, *typed)),
            None => Err(self.fault(start, format!(
                "unexpected output type '{kind}' at position {} line : '{text}'. Supported types are: str, sint, bool, raw",
                start + 2 + name.len()
            ))),
        }
    }

    /// `{+Q,-E}`. What is no flag is left out, as HAProxy does, with a warning.
    fn item_flags(&mut self) -> Result<Flags, ExprError> {
        let start = self.at;
        let Some(length) = self.text[start..].find('}') else {
            self.at = self.text.len();
            return Err(self.fault(
                start,
                format!("truncated line after '{}'", &self.text[start + 1..]),
            ));
        };
        let inner = &self.text[start + 1..start + length];
        self.at = start + length + 1;
        let mut flags = self.flags;
        for word in inner.split(',') {
            // Of several signs in a word, the last one counts.
            let (on, name) = match word.rfind(['+', '-']) {
                Some(at) => (word.as_bytes()[at] == b'+', &word[at + 1..]),
                None => (true, ""),
            };
            match FLAGS.iter().find(|(known, _)| *known == name) {
                // The first encoding stays.
                Some((_, flag))
                    if on && flag.has(Flags::ENCODING) && flags.has(Flags::ENCODING) => {}
                Some((_, flag)) => flags = flags.with(*flag, on),
                None => {
                    let warning = self.fault(
                        start,
                        format!("log format flag '{word}' is unknown and ignored"),
                    );
                    self.compiler.warn(warning);
                }
            }
        }
        Ok(flags)
    }

    fn alias(&mut self, start: usize, name_given: &str, output: Output) -> Result<(), ExprError> {
        let rest = &self.text[self.at..];
        let length = rest.bytes().take_while(u8::is_ascii_alphanumeric).count();
        let name = &rest[..length];
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
                let expression = text.split(']').next().unwrap_or(text);
                if !error.message.starts_with("sample fetch <") {
                    error.message = format!(
                        "failed to parse sample expression <{expression}> : {}",
                        error.message
                    );
                }
                error.start += self.at;
                error.end += self.at;
                error
            })?;
        let written = &text[..compiled.end];
        self.at += compiled.end;
        match self.text[self.at..].chars().next() {
            Some(']') => {
                self.at += 1;
                self.push(name, Item::Expr(compiled.expr, output));
                Ok(())
            }
            Some(other) => Err(self.fault(
                start,
                format!("expected ']' after '{written}', but found '{other}'"),
            )),
            None => Err(self.fault(start, format!("missing ']' after '{written}'"))),
        }
    }
}
