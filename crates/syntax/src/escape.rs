//! `%` escapes (RFC 3986 section 2.1) in URLs, forms and a few environment variables.

/// The meaning of `+`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plus {
    /// A plus sign.
    Plus,
    /// A space (`application/x-www-form-urlencoded`).
    Space,
}

/// The decoded bytes of a text; None if an escape is invalid.
#[must_use]
pub fn unescaped(text: &str, plus: Plus) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'%' => {
                let mut digit = || char::from(bytes.next()?).to_digit(16);
                (digit()? << 4 | digit()?) as u8
            }
            b'+' if plus == Plus::Space => b' ',
            byte => byte,
        });
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_bytes() {
        let both = |text| [Plus::Plus, Plus::Space].map(|plus| unescaped(text, plus));
        assert_eq!(
            both("a%20+%C3%a9"),
            [b"a +\xc3\xa9".to_vec(), b"a  \xc3\xa9".to_vec()].map(Some)
        );
        for wrong in ["%", "%4", "a%zz", "%+1", "%é"] {
            assert_eq!(both(wrong), [None, None], "{wrong}");
        }
    }
}
