//! Hides the secrets of a statement that was read.

use super::{HIDDEN, Marks, Word};
use crate::build::legacy::quoted;
use crate::tree::{self, Span};

/// The words of a statement as text, without secrets, one for each of `words`. A word has quotes only
/// where it needs them. A word with a variable of the environment stays as written, because the
/// value of a variable may be a secret. Of several words from one variable, the first has the text
/// and the others are empty.
#[must_use]
pub fn hide_words(words: &[tree::Word]) -> Vec<String> {
    let mut shown: Vec<Word> = Vec::with_capacity(words.len());
    let mut last: Option<&Span> = None;
    for word in words {
        let is_repeated = last.is_some_and(|last| {
            (last.line, last.start, last.end) == (word.span.line, word.span.start, word.span.end)
                && last.start < last.end
        });
        last = Some(&word.span);
        let raw = if is_repeated {
            String::new()
        } else {
            raw_of(word)
        };
        shown.push(Word {
            text: word.text.as_str().to_owned(),
            range: 0..raw.len(),
            raw,
        });
    }
    let mut marks = Marks::new(&shown);
    marks.mark();
    let cuts = marks.cuts;
    let texts = shown.iter().zip(cuts);
    texts
        .map(|(word, cut)| match cut {
            Some(_) if word.raw.is_empty() => String::new(),
            Some(cut) => format!("{}{HIDDEN}", word.raw.get(..cut).unwrap_or_default()),
            None => word.raw.clone(),
        })
        .collect()
}

/// The text of a word: as written if it has a variable, otherwise with the quotes that it needs.
fn raw_of(word: &tree::Word) -> String {
    let Span { start, end, .. } = word.span;
    let written = word.span.excerpt().get(start as usize..end as usize);
    match written {
        Some(written) if has_variable(written) => String::from_utf8_lossy(written).into_owned(),
        _ => quoted(&word.text),
    }
}

/// Whether a word as written may have a variable: a `$` outside of single quotes. After an odd
/// quote, it has one.
fn has_variable(written: &[u8]) -> bool {
    let mut in_single = false;
    let mut in_double = false;
    let mut bytes = written.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' if !in_single => {
                bytes.next();
            }
            b'\'' if !in_double => in_single = !in_single,
            b'"' if !in_single => in_double = !in_double,
            b'$' if !in_single => return true,
            _ => {}
        }
    }
    false
}
