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

/// A text with an escape for each byte that is not plain. Plain bytes are ASCII.
#[must_use]
pub fn escaped(text: &str, is_plain: impl Fn(u8) -> bool) -> String {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if is_plain(byte) {
            out.push(char::from(byte));
        } else {
            let digit = |value: u8| char::from(DIGITS[usize::from(value)]);
            out.extend(['%', digit(byte >> 4), digit(byte & 15)]);
        }
    }
    out
}

/// Whether a byte stands for itself anywhere in a URL (RFC 3986 section 2.3).
#[must_use]
pub fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_escaped() {
        assert_eq!(escaped("a-b=\u{e9} %", is_unreserved), "a-b%3D%C3%A9%20%25");
        assert_eq!(escaped("a%b", |byte| byte != b'%'), "a%25b");
    }

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
