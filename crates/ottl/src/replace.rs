//! Replacements in texts, by regular expressions as Go's `ReplaceAllString` does, and by patterns
//! with `*`.

use super::eval::{Failure, Subject};
use super::function::{self, Build, Function};
use super::parser::Term;
use super::value::{VALUE_BYTES_MAX, Value};
use crate::pattern::compile;
use regex_automata::PatternID;
use regex_automata::meta::Regex;
use regex_automata::util::captures::Captures;

/// What is replaced, and by what.
#[derive(Debug)]
pub struct Replace {
    pattern: Box<Regex>,
    /// A regular expression: parts of a text are replaced. Else the pattern is of a whole text.
    parts: bool,
    replacement: Term,
    function: Option<&'static Function>,
    /// What stands around the function's text.
    format: Option<(String, String)>,
}

impl Replace {
    /// Compiles it.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn new(
        pattern: &str,
        parts: bool,
        replacement: Term,
        function: Option<&'static Function>,
        format: Option<String>,
    ) -> Result<Replace, String> {
        if let Some(function) = function
            && !(function.params.len() == 1 && matches!(function.build, Build::Eval(_)))
        {
            return Err(format!("{} takes no text alone", function.name));
        }
        let format = match format {
            None => None,
            Some(format) => match format.split_once("%s") {
                Some((before, after)) if !before.contains('%') && !after.contains('%') => {
                    Some((before.to_owned(), after.to_owned()))
                }
                _ => return Err("the format must have one %s".to_owned()),
            },
        };
        let pattern = if parts {
            pattern.to_owned()
        } else {
            glob(pattern)?
        };
        Ok(Replace {
            pattern: Box::new(compile(&[pattern])?),
            parts,
            replacement,
            function,
            format,
        })
    }

    /// The text that replaces.
    ///
    /// # Errors
    /// It is no text.
    pub fn replacement(&self, subject: &Subject<'_, '_, '_>) -> Result<Vec<u8>, Failure> {
        match self.replacement.get(subject)? {
            Value::Text(text) => Ok(text.into_owned()),
            _ => Err(Failure::Type),
        }
    }

    /// What a text becomes; none where nothing matches.
    ///
    /// # Errors
    /// The function gives no text, or the text becomes too large.
    pub fn apply(&self, text: &[u8], replacement: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
        if !self.parts {
            return if self.pattern.is_match(text) {
                self.finished(replacement.to_vec()).map(Some)
            } else {
                Ok(None)
            };
        }
        let (mut out, mut from) = (None::<Vec<u8>>, 0);
        for found in self.pattern.captures_iter(text) {
            let Some(span) = found.get_match().map(|found| found.span()) else {
                continue;
            };
            // An empty match within a character is none.
            if text.get(span.start).is_some_and(|byte| byte & 0xc0 == 0x80) && span.is_empty() {
                continue;
            }
            let out = out.get_or_insert_default();
            out.extend_from_slice(&text[from..span.start]);
            let mut expanded = Vec::new();
            self.expand(replacement, text, &found, &mut expanded);
            out.extend_from_slice(&self.finished(expanded)?);
            from = span.end;
            if out.len() > VALUE_BYTES_MAX {
                return Err(Failure::Size);
            }
        }
        Ok(out.map(|mut out| {
            out.extend_from_slice(&text[from..]);
            out
        }))
    }

    fn finished(&self, text: Vec<u8>) -> Result<Vec<u8>, Failure> {
        let Some(function) = self.function else {
            return Ok(text);
        };
        let Value::Text(text) = function::apply(function, Value::Text(text.into()))? else {
            return Err(Failure::Type);
        };
        Ok(match &self.format {
            Some((before, after)) => [before.as_bytes(), &text, after.as_bytes()].concat(),
            None => text.into_owned(),
        })
    }

    /// Appends a template: `$1`, `${name}` and `$$` in it stand for groups and a dollar (Go:
    /// `Regexp.Expand`).
    fn expand(&self, template: &[u8], text: &[u8], found: &Captures, out: &mut Vec<u8>) {
        let mut rest = template;
        while let Some(at) = memchr::memchr(b'$', rest) {
            out.extend_from_slice(&rest[..at]);
            rest = &rest[at + 1..];
            if let [b'$', after @ ..] = rest {
                out.push(b'$');
                rest = after;
                continue;
            }
            let Some((name, after)) = group(rest) else {
                out.push(b'$');
                continue;
            };
            rest = after;
            let number = match name.parse::<usize>() {
                Ok(number) => Some(number),
                Err(_) => self.pattern.group_info().to_index(PatternID::ZERO, name),
            };
            // A group that there is not is an empty text.
            if let Some(span) = number.and_then(|number| found.get_group(number)) {
                out.extend_from_slice(&text[span.range()]);
            }
        }
        out.extend_from_slice(rest);
    }
}

/// The name of a group behind a dollar, and what follows.
fn group(rest: &[u8]) -> Option<(&str, &[u8])> {
    let is_word = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'_';
    let braced = rest.strip_prefix(b"{");
    let inner = braced.unwrap_or(rest);
    let len = inner.iter().take_while(is_word).count();
    let (name, after) = inner.split_at(len);
    let after = match braced {
        Some(_) => after.strip_prefix(b"}")?,
        None => after,
    };
    (len > 0).then_some((std::str::from_utf8(name).ok()?, after))
}

/// A pattern of a whole text as a regular expression: `*` and `?`, classes `[a-z]` and `[!a]`,
/// choices `{a,b}`, and `\` in front of what stands for itself.
fn glob(pattern: &str) -> Result<String, String> {
    let mut out = "(?s)^".to_owned();
    let (mut chars, mut choices) = (pattern.chars().peekable(), 0_u32);
    while let Some(char) = chars.next() {
        match char {
            '*' => out.push_str(".*"),
            '?' => out.push('.'),
            '{' => {
                choices += 1;
                out.push_str("(?:");
            }
            '}' if choices > 0 => {
                choices -= 1;
                out.push(')');
            }
            ',' if choices > 0 => out.push('|'),
            '[' => {
                out.push('[');
                if chars.next_if_eq(&'!').is_some() {
                    out.push('^');
                }
                loop {
                    match chars.next() {
                        Some(']') => break,
                        Some('-') => out.push('-'),
                        Some(char) => literal(char, &mut out),
                        None => return Err(format!("the pattern {pattern:?} has no ]")),
                    }
                }
                out.push(']');
            }
            '\\' => match chars.next() {
                Some(char) => literal(char, &mut out),
                None => return Err(format!("the pattern {pattern:?} ends with a \\")),
            },
            char => literal(char, &mut out),
        }
    }
    if choices > 0 {
        return Err(format!("the pattern {pattern:?} has no }}"));
    }
    out.push('$');
    Ok(out)
}

fn literal(char: char, out: &mut String) {
    if char.is_ascii_punctuation() {
        out.push('\\');
    }
    out.push(char);
}
