//! `ExtractGrokPatterns`: regular expressions with names for their parts, `%{SYNTAX:name:type}`, as
//! the library go-grok of the Collector reads them.

mod patterns;

use super::text::text;
use super::{Function, Written, prepare, prepared};
use crate::eval::Failure;
use crate::pattern::compile;
use crate::value::{ENTRIES, Value, entry};
use otlp::write;
use regex_automata::meta::Regex;
use regex_automata::{Input, PatternID};
use std::collections::HashMap;
use std::fmt::Write as _;

/// Limit of nested pattern names.
const DEPTH_MAX: u32 = 32;
/// Limit of bytes of an expression after all names are expanded.
const EXPRESSION_BYTES_MAX: usize = 256 << 10;

const PARAMS: &[&str] = &[
    "target",
    "pattern",
    "?named_captures_only",
    "?pattern_definitions",
];

pub const FUNCTIONS: &[Function] = &[prepare("ExtractGrokPatterns", PARAMS, |written| {
    let grok = Grok::new(written)?;
    prepared(move |args, _| grok.extracted(text(&args[0])?))
})];

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Type {
    Text,
    Int,
    Float,
    Bool,
}

impl Type {
    fn of(name: &str) -> Result<Type, String> {
        Ok(match name {
            "string" => Type::Text,
            "int" | "long" => Type::Int,
            "float" | "double" => Type::Float,
            "bool" | "boolean" => Type::Bool,
            _ => return Err(format!("{name} is no type of a grok pattern")),
        })
    }
}

/// An expression that was compiled.
struct Grok {
    regex: Regex,
    /// Groups of the expression, and the names of their values.
    fields: Vec<(usize, String, Type)>,
}

impl Grok {
    fn new(written: &Written<'_>) -> Result<Grok, String> {
        let pattern = written.text(1)?.unwrap_or_default();
        let mut expansion = Expansion {
            named_only: written.flag(2)?.unwrap_or(false),
            own: HashMap::new(),
            groups: Vec::new(),
            types: HashMap::new(),
            out: String::new(),
        };
        for definition in written.texts(3)? {
            match definition.split_once('=') {
                Some((name, pattern)) if !name.contains(':') => {
                    expansion.own.insert(name, pattern);
                }
                _ => {
                    return Err(format!(
                        "{definition:?} is no pattern definition: NAME=PATTERN"
                    ));
                }
            }
        }
        expansion.expand(pattern, DEPTH_MAX)?;
        let regex = compile(&[expansion.out])?;
        let names = regex.group_info().pattern_names(PatternID::ZERO);
        let mut fields = Vec::new();
        for (group, name) in names.enumerate() {
            let Some(name) = name else { continue };
            // Generated groups have numbered names; other groups are named in the pattern itself.
            let own = name.strip_prefix(GROUP).and_then(|number| {
                let number: usize = number.parse().ok()?;
                expansion.groups.get(number).cloned()
            });
            let name = own.unwrap_or_else(|| name.to_owned()).replace("___", ".");
            let kind = expansion.types.get(&name).copied();
            fields.push((group, name, kind.unwrap_or(Type::Text)));
        }
        if expansion.named_only && fields.is_empty() {
            return Err("the pattern of ExtractGrokPatterns has no group with a name".to_owned());
        }
        Ok(Grok { regex, fields })
    }

    fn extracted<'a>(&self, text: &[u8]) -> Result<Value<'a>, Failure> {
        let mut found: Vec<(&str, Vec<u8>)> = Vec::new();
        let mut slots = vec![None; 2 * self.regex.group_info().group_len(PatternID::ZERO)];
        self.regex.search_slots(&Input::new(text), &mut slots);
        for (group, name, kind) in &self.fields {
            let (Some(from), Some(to)) = (slots[2 * group], slots[2 * group + 1]) else {
                continue;
            };
            let part = &text[from.get()..to.get()];
            if part.is_empty() {
                continue;
            }
            let any = typed(part, *kind)?;
            // The last value of a repeated name wins.
            match found.iter_mut().find(|(known, _)| known == name) {
                Some((_, value)) => *value = any,
                None => found.push((name, any)),
            }
        }
        let mut out = Vec::new();
        for (name, any) in &found {
            entry(&mut out, name.as_bytes(), any);
        }
        Ok(Value::Map(out.into(), ENTRIES))
    }
}

/// A part of a text as an `AnyValue`.
fn typed(part: &[u8], kind: Type) -> Result<Vec<u8>, Failure> {
    let text = || std::str::from_utf8(part).map_err(|_| Failure::Syntax);
    let mut any = Vec::new();
    match kind {
        Type::Text => write::bytes(&mut any, 1, part),
        Type::Int => {
            let value: i64 = text()?.parse().map_err(|_| Failure::Syntax)?;
            write::uint(&mut any, 3, value as u64);
        }
        Type::Float => {
            let value = otlp::text::double_of(part).ok_or(Failure::Syntax)?;
            write::double(&mut any, 4, value);
        }
        Type::Bool => {
            let value = match text()? {
                "1" | "t" | "T" | "true" | "TRUE" | "True" => true,
                "0" | "f" | "F" | "false" | "FALSE" | "False" => false,
                _ => return Err(Failure::Syntax),
            };
            write::uint(&mut any, 2, u64::from(value));
        }
    }
    Ok(any)
}

/// The name of a group of the expression is this text and a number. The names in a pattern are not
/// used for that, because several groups may have the same name.
const GROUP: &str = "grok__";

/// An expression whose names are being written out.
struct Expansion<'d> {
    named_only: bool,
    /// Patterns of the caller.
    own: HashMap<&'d str, &'d str>,
    /// Names by the numbers of their groups.
    groups: Vec<String>,
    types: HashMap<String, Type>,
    out: String,
}

impl Expansion<'_> {
    fn expand(&mut self, pattern: &str, depth: u32) -> Result<(), String> {
        let Some(depth) = depth.checked_sub(1) else {
            return Err(format!(
                "grok patterns are nested deeper than {DEPTH_MAX}: does one name itself?"
            ));
        };
        let mut rest = pattern;
        while let Some(at) = rest.find("%{") {
            self.out.push_str(&rest[..at]);
            let Some((inner, after)) = rest[at + 2..].split_once('}') else {
                break;
            };
            if !is_reference(inner) {
                // Not a reference: copy it literally.
                self.out.push_str("%{");
                rest = &rest[at + 2..];
                continue;
            }
            self.reference(inner, depth)?;
            rest = after;
            if self.out.len() > EXPRESSION_BYTES_MAX {
                return Err(format!(
                    "a grok pattern has more than {EXPRESSION_BYTES_MAX} bytes, names written out"
                ));
            }
        }
        self.out.push_str(rest);
        Ok(())
    }

    /// `SYNTAX`, `SYNTAX:name` or `SYNTAX:name:type`.
    fn reference(&mut self, inner: &str, depth: u32) -> Result<(), String> {
        let mut words = inner.split(':');
        let syntax = words.next().unwrap_or_default();
        let (name, kind) = (words.next(), words.next());
        let own = self.own.get(syntax).map(|pattern| (*pattern).to_owned());
        let pattern = own.or_else(|| patterns::find(syntax)).ok_or_else(|| {
            format!("the grok pattern {syntax} is not built in: give it in pattern_definitions")
        })?;
        if let (Some(name), Some(kind)) = (name, kind) {
            self.types.insert(name.to_owned(), Type::of(kind)?);
        }
        match name {
            None if self.named_only => self.out.push_str("(?:"),
            name => {
                let _ = write!(self.out, "(?P<{GROUP}{}>", self.groups.len());
                self.groups.push(name.unwrap_or(syntax).to_owned());
            }
        }
        self.expand(&pattern, depth)?;
        self.out.push(')');
        Ok(())
    }
}

/// Whether the text in `%{…}` is a pattern reference.
fn is_reference(inner: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let mut words = inner.split(':');
    let fits = |word: Option<&str>, others: &[u8]| {
        word.is_none_or(|word| {
            !word.is_empty()
                && word
                    .bytes()
                    .all(|byte| is_word(byte) || others.contains(&byte))
        })
    };
    fits(words.next(), b"") && fits(words.next(), b"+.") && fits(words.next(), b"") && {
        words.next().is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles() {
        for name in patterns::names() {
            let mut expansion = Expansion {
                named_only: false,
                own: HashMap::new(),
                groups: Vec::new(),
                types: HashMap::new(),
                out: String::new(),
            };
            expansion
                .expand(&format!("%{{{name}:x}}"), DEPTH_MAX)
                .unwrap();
            compile(&[expansion.out]).unwrap_or_else(|why| panic!("{name}: {why}"));
        }
    }
}
