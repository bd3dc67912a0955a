//! Hides the secrets of a statement that was read.

use super::{HIDDEN, Marks, Word};
use crate::build::legacy::quoted;
use crate::tree::{self, Span};

/// The words of a statement as text, without secrets, one for each of `words`. A word has quotes
/// only where it needs them. A word with a variable of the environment stays as written, because
/// the value of a variable may be a secret. Of several words from one variable, the first has the
/// text and the others are empty.
#[must_use]
pub fn hide_words(words: &[tree::Word]) -> Vec<String> {
    let mut shown: Vec<Word> = Vec::with_capacity(words.len());
    let mut left = words;
    while let Some(first) = left.first() {
        // The words of one variable have overlapping places.
        let mut place = first.span.clone();
        let mut count = 1;
        while let Some(word) = left.get(count).filter(|word| overlaps(&place, &word.span)) {
            place.end = place.end.max(word.span.end);
            count += 1;
        }
        let mut raw = raw_of(first, &place);
        for word in &left[..count] {
            shown.push(Word {
                text: word.text.as_str().to_owned(),
                range: 0..raw.len(),
                raw: std::mem::take(&mut raw),
            });
        }
        left = &left[count..];
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

/// Whether a word begins in a place.
fn overlaps(place: &Span, word: &Span) -> bool {
    place.line == word.line && word.start < place.end
}

/// The text of a word at a place: as written if it has a variable, otherwise with the quotes that
/// it needs.
fn raw_of(word: &tree::Word, place: &Span) -> String {
    let written = place.excerpt();
    match written.get(place.start as usize..place.end as usize) {
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
