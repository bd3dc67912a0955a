//! Reads log formats: `%alias`, `%{+Q}alias`, `%(name:type)alias`, `%[expression]`, `%%` and text.

use super::alias::ALIASES;
use super::write::Flags;
use super::{Item, LogFormat};
use crate::compile::Reading;
use crate::{Compiler, ExprError, Place, Style};

/// Flags by name; those without a bit are known but not served yet.
const FLAGS: &[(&str, Option<Flags>)] = &[
    ("M", Some(Flags::MANDATORY)),
    ("Q", Some(Flags::QUOTE)),
    ("X", Some(Flags::HEX)),
    ("E", Some(Flags::ESCAPE)),
    ("bin", Some(Flags::BIN)),
    ("json", None),
    ("cbor", None),
];

/// Output types that an item's name may give.
const TYPES: &[&str] = &["str", "sint", "bool", "raw"];

/// Compiles a log format.
pub(crate) fn compile(
    compiler: &mut Compiler,
    text: &str,
    place: Place,
    style: Style,
) -> Result<LogFormat, ExprError> {
    let base = Flags::default().with(Flags::MANDATORY, style == Style::Log);
    let mut reader = Reader {
        compiler,
        text,
        at: 0,
        place,
        merges_spaces: style != Style::Http,
        flags: base,
        items: Vec::new(),
    };
    while reader.at < text.len() {
        reader.item()?;
    }
    Ok(LogFormat::new(reader.items, style))
}

struct Reader<'c, 't> {
    compiler: &'c mut Compiler,
    text: &'t str,
    at: usize,
    place: Place,
    merges_spaces: bool,
    /// Of the items that follow; `%{...}o` changes them.
    flags: Flags,
    items: Vec<Item>,
}

impl Reader<'_, '_> {
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
                self.items.push(Item::Space);
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
        if let Some(Item::Text(last)) = self.items.last_mut() {
            *last = [last, text].concat().into_boxed_slice();
        } else {
            self.items.push(Item::Text(text.into()));
        }
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
        if self.byte() == Some(b'(') {
            self.name()?;
        }
        let flags = if self.byte() == Some(b'{') {
            self.item_flags()?
        } else {
            self.flags
        };
        match self.byte() {
            Some(b'[') => self.expression(start, flags),
            Some(byte) if byte.is_ascii_alphanumeric() => self.alias(start, flags),
            None => {
                let written = &self.text[start..];
                Err(self.fault(start, format!("truncated line after '{written}'")))
            }
            // Another byte after a lone percent sign: both stand for themselves, as in HAProxy the byte does.
            Some(_) if self.at == start + 1 => Ok(()),
            Some(_) => {
                let written = self.text[start..self.at].trim_end_matches('}');
                Err(self.fault(
                    start,
                    format!("parse argument modifier without alias name near '{written}}}'"),
                ))
            }
        }
    }

    /// `(name:type)`: only of use with an encoding, checked here and then left out.
    fn name(&mut self) -> Result<(), ExprError> {
        let start = self.at;
        let Some(length) = self.text[start..].find(')') else {
            self.at = self.text.len();
            return Err(self.fault(
                start,
                format!("truncated line after '{}'", &self.text[start - 1..]),
            ));
        };
        let inner = &self.text[start + 1..start + length];
        self.at = start + length + 1;
        let (name, kind) = inner.split_once(':').unwrap_or((inner, "str"));
        if let Some(other) = name
            .chars()
            .find(|c| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '-'))
        {
            return Err(self.fault(start, format!(
                "invalid character in custom name near '{other}' at position {start} line : '{}'", self.text
            )));
        }
        if !TYPES.contains(&kind) {
            return Err(self.fault(start, format!(
                "unexpected output type '{kind}' at position {} line : '{}'. Supported types are: str, sint, bool, raw",
                start + 2 + name.len(), self.text
            )));
        }
        Ok(())
    }

    /// `{+Q,-E}`. What is no flag is left out, as HAProxy does, with a warning.
    fn item_flags(&mut self) -> Result<Flags, ExprError> {
        let start = self.at;
        let Some(length) = self.text[start..].find('}') else {
            self.at = self.text.len();
            return Err(self.fault(
                start,
                format!("truncated line after '{}'", &self.text[start..]),
            ));
        };
        let inner = &self.text[start + 1..start + length];
        self.at = start + length + 1;
        let mut flags = self.flags;
        for word in inner.split(',') {
            let (on, name) = match word.split_at_checked(1) {
                Some(("+", name)) => (true, name),
                Some(("-", name)) => (false, name),
                _ => (true, ""),
            };
            match FLAGS.iter().find(|(known, _)| *known == name) {
                Some((_, Some(flag))) => flags = flags.with(*flag, on),
                Some((_, None)) if !on => {}
                Some((name, None)) => {
                    return Err(self.fault(
                        start,
                        format!("log format flag '{name}' is known but not implemented yet"),
                    ));
                }
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

    fn alias(&mut self, start: usize, flags: Flags) -> Result<(), ExprError> {
        let rest = &self.text[self.at..];
        let length = rest.bytes().take_while(u8::is_ascii_alphanumeric).count();
        let name = &rest[..length];
        self.at += length;
        if name == "o" {
            self.flags = flags;
            return Ok(());
        }
        let Some(alias) = ALIASES.iter().find(|alias| alias.name == name) else {
            return Err(self.fault(start, format!(
                "no such format alias '{name}'. If you wanted to emit the '%' character verbatim, you need to use '%%'"
            )));
        };
        self.compiler.needs.note_alias(name);
        // `bin` counts only when it is set for the whole format.
        self.items.push(Item::Alias(alias, flags));
        Ok(())
    }

    fn expression(&mut self, start: usize, flags: Flags) -> Result<(), ExprError> {
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
                let flags = flags.with(Flags::BIN, self.flags.has(Flags::BIN));
                self.items.push(Item::Expr(compiled.expr, flags));
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
