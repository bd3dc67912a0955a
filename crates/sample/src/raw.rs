//! Words of the configuration are text; bytes that are no UTF-8 stand in it as private characters, one each.

use std::borrow::Cow;

/// The first of the 256 characters that stand for a byte (the end of the last private-use plane).
pub const RAW_BYTE_BASE: u32 = 0x10_ff00;

/// The exact bytes that a word, or any part of one, was written with.
#[must_use]
pub fn bytes_of(text: &str) -> Cow<'_, [u8]> {
    // Only planes 4-16 start with these bytes; ordinary text takes this way out.
    if !text.contains(is_raw) {
        return Cow::Borrowed(text.as_bytes());
    }
    let mut bytes = Vec::with_capacity(text.len());
    for c in text.chars() {
        match is_raw(c) {
            true => bytes.push((c as u32 - RAW_BYTE_BASE) as u8),
            false => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    Cow::Owned(bytes)
}

/// The same for text that is in bytes already; what is no text stays as it is.
pub(crate) fn undone(bytes: Vec<u8>) -> Vec<u8> {
    match std::str::from_utf8(&bytes).map(bytes_of) {
        Ok(Cow::Owned(exact)) => exact,
        _ => bytes,
    }
}

/// Whether a character stands for a byte.
#[must_use]
pub fn is_raw(c: char) -> bool {
    c as u32 >= RAW_BYTE_BASE
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Place;
    use crate::testing::{Facts, compiler, convert_text};

    #[test]
    fn private_characters_are_bytes() {
        assert_eq!(&*bytes_of("a\u{10ffe9}é"), b"a\xe9\xc3\xa9");
        assert_eq!(undone("\u{10ff00}".into()), [0]);
        assert_eq!(undone(vec![0xff]), [0xff]);
        assert_eq!(convert_text("str(\u{10ffe9}),hex"), "E9");
        let facts = Facts::new();
        for words in [
            "{ str(x\u{10ffe9}) x\u{10ffe9} }",
            "{ str(x\u{10ffe9}) -m reg x[\u{10ffe8}-\u{10ffea}]$ }",
            "{ str(x\u{10ffe9}),regsub(\u{10ffe9},y) xy }",
            "{ str(é) -m sub -u 1 \u{10ffc3} }",
        ] {
            let split: Vec<&str> = words.split(' ').collect();
            let condition =
                compiler().condition(&crate::Acls::default(), &split, false, Place::ALL);
            assert!(condition.expect(words).matches(&facts.scope()), "{words}");
        }
    }
}
