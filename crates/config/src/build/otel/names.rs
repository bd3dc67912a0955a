//! Names in a filter's file. Spans and contexts are numbered before the compilation, keys in the
//! order of their use.

use super::super::line::{Line, Parse};
use crate::tree::Section;
use otlp::write;
use std::collections::HashMap;
use telemetry::program::{ContextSlot, Ref, SpanSlot, TextId};

/// The longest name, in characters.
const NAME_CHARS_MAX: usize = 127;
/// Most spans, contexts or keys of a file.
const NAMES_MAX: usize = u16::MAX as usize - 1;

/// Names in their order.
#[derive(Debug, Default)]
pub struct Names {
    pub spans: Numbered,
    pub contexts: Numbered,
    texts: Numbered,
    /// The texts, encoded as protobuf fields with number 1.
    pub encoded: Vec<Box<[u8]>>,
}

/// A name and its number.
#[derive(Debug, Default)]
pub struct Numbered {
    by_name: HashMap<String, u16>,
    pub names: Vec<Box<str>>,
}

impl Numbered {
    fn number(&mut self, name: &str) -> Option<u16> {
        if let Some(number) = self.by_name.get(name) {
            return Some(*number);
        }
        let number = u16::try_from(self.names.len()).ok()?;
        if self.names.len() >= NAMES_MAX {
            return None;
        }
        self.names.push(name.into());
        self.by_name.insert(name.to_owned(), number);
        Some(number)
    }

    pub fn find(&self, name: &str) -> Option<u16> {
        self.by_name.get(name).copied()
    }
}

impl Names {
    /// Numbers the spans and contexts that the scopes define.
    pub fn collect<'t>(&mut self, scopes: impl Iterator<Item = &'t Section>) {
        for statement in scopes.flat_map(|scope| &scope.statements) {
            match statement.keyword() {
                "span" => {
                    self.spans.number(statement.arg(1));
                }
                "extract" => {
                    self.contexts.number(statement.arg(1));
                }
                _ => {}
            }
        }
    }

    /// A key of attributes or the name of an event in word `at`.
    pub fn text(&mut self, line: &Line<'_>, at: usize) -> Parse<TextId> {
        self.text_of(line.arg(at))
            .ok_or_else(|| line.fault(at, "too many names in this file."))
    }

    /// The number of a text.
    pub fn text_of(&mut self, text: &str) -> Option<TextId> {
        let number = self.texts.number(text)?;
        if usize::from(number) == self.encoded.len() {
            let mut field = Vec::new();
            write::bytes(&mut field, 1, text.as_bytes());
            self.encoded.push(field.into());
        }
        Some(number)
    }

    /// The span that word `at` defines.
    pub fn span(&self, line: &Line<'_>, at: usize) -> Parse<SpanSlot> {
        named(line, at)?;
        let too_many = || line.fault(at, "too many spans in this file.");
        self.spans.find(line.arg(at)).ok_or_else(too_many)
    }

    /// The context that word `at` defines.
    pub fn context(&self, line: &Line<'_>, at: usize) -> Parse<ContextSlot> {
        named(line, at)?;
        let too_many = || line.fault(at, "too many contexts in this file.");
        self.contexts.find(line.arg(at)).ok_or_else(too_many)
    }

    /// The span or context that word `at` refers to.
    pub fn reference(&self, line: &Line<'_>, at: usize) -> Parse<Ref> {
        let name = line.arg(at);
        named(line, at)?;
        let found = Ref {
            span: self.spans.find(name),
            context: self.contexts.find(name),
        };
        if found == Ref::default() {
            let known = self.spans.names.iter().chain(&self.contexts.names);
            let hint = super::super::did_you_mean(name, known.map(|name| &**name));
            return Err(line.fault(
                at,
                format!("'{name}' is neither a span nor a context of any scope{hint}."),
            ));
        }
        Ok(found)
    }
}

/// Checks a name: it must not be too long, or be a word that begins a condition.
pub fn named(line: &Line<'_>, at: usize) -> Parse {
    let name = line.arg(at);
    if matches!(name, "if" | "unless") {
        return Err(line.fault(at, format!("'{name}' is a reserved word.")));
    }
    if name.chars().count() > NAME_CHARS_MAX {
        let message = format!("name too long: at most {NAME_CHARS_MAX} characters.");
        return Err(line.fault(at, message));
    }
    Ok(())
}
