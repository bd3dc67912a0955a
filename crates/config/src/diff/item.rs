//! A line of a configuration as comparisons see it.

use super::{Place, Written};
use crate::secrets;
use crate::tree::{Prefix, Span, Statement, Word};
use std::ops::Range;

/// A statement, and whether it comes from a `defaults`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item<'t> {
    pub statement: &'t Statement,
    pub is_inherited: bool,
}

impl<'t> Item<'t> {
    /// A line of the section itself.
    pub fn own(statement: &'t Statement) -> Self {
        Item {
            statement,
            is_inherited: false,
        }
    }

    /// What makes two lines equal: the bytes of their words.
    pub fn key(&self) -> Vec<u8> {
        let mut key = match self.statement.prefix {
            Prefix::None => Vec::new(),
            Prefix::No => b"no ".to_vec(),
            Prefix::Default => b"default ".to_vec(),
        };
        key.extend(key_of(&self.statement.words));
        key
    }

    /// The whole line.
    pub fn written(&self) -> Written {
        let words = joined(&secrets::hide_words(&self.statement.words));
        let text = match self.statement.prefix {
            Prefix::None => words,
            Prefix::No => format!("no {words}"),
            Prefix::Default => format!("default {words}"),
        };
        Written {
            text,
            place: place(self.statement.span()),
        }
    }
}

/// The bytes of words, in a form that is unique for each list of words.
pub(super) fn key_of(words: &[Word]) -> Vec<u8> {
    let mut key = Vec::with_capacity(words.iter().map(|word| word.bytes().len() + 4).sum());
    for word in words {
        key.extend((word.bytes().len() as u32).to_be_bytes());
        key.extend(word.bytes());
    }
    key
}

/// Some words of a line.
pub(super) fn part(statement: &Statement, words: Range<usize>) -> String {
    let all = secrets::hide_words(&statement.words);
    joined(all.get(words).unwrap_or_default())
}

/// Words with a space between them; a word that repeats the place of the one before it is empty.
fn joined(words: &[String]) -> String {
    let words: Vec<&str> = words
        .iter()
        .map(String::as_str)
        .filter(|word| !word.is_empty())
        .collect();
    words.join(" ")
}

/// The line of a place.
pub(super) fn place(span: &Span) -> Place {
    Place {
        file: span.source.name.clone(),
        line: span.line,
    }
}
