//! A configuration consists of bytes: a file may contain a Latin-1 letter, and `\xe9` in a word is
//! that byte. [`Octets`] keeps them exactly; [`readable`] displays them.

use std::fmt::{self, Write as _};
use std::ops::Deref;

/// Bytes from a configuration: the value of a header, a cookie, a path. They are mostly UTF-8, but
/// not always.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Octets(Box<[u8]>);

impl Octets {
    /// The exact bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl Deref for Octets {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl AsRef<[u8]> for Octets {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl<T: AsRef<[u8]> + ?Sized> From<&T> for Octets {
    fn from(bytes: &T) -> Octets {
        Octets(bytes.as_ref().into())
    }
}

impl From<Vec<u8>> for Octets {
    fn from(bytes: Vec<u8>) -> Octets {
        Octets(bytes.into_boxed_slice())
    }
}

impl From<String> for Octets {
    fn from(text: String) -> Octets {
        Octets(text.into_bytes().into_boxed_slice())
    }
}

impl PartialEq<str> for Octets {
    fn eq(&self, other: &str) -> bool {
        *self.0 == *other.as_bytes()
    }
}

impl PartialEq<&str> for Octets {
    fn eq(&self, other: &&str) -> bool {
        *self == **other
    }
}

impl fmt::Display for Octets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        readable(&self.0).fmt(f)
    }
}

impl fmt::Debug for Octets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", readable(&self.0))
    }
}

/// Displays bytes: UTF-8 is unchanged, and every other byte is shown as the escape `\xHH` of the
/// configuration.
#[must_use]
pub fn readable<T: AsRef<[u8]> + ?Sized>(bytes: &T) -> Readable<'_> {
    Readable(bytes.as_ref())
}

/// The first character of `bytes`, or its first byte if it is not valid UTF-8; empty if there are
/// no bytes.
#[must_use]
pub fn first_character(bytes: &[u8]) -> Readable<'_> {
    let chunk = bytes.utf8_chunks().next();
    let first = chunk.and_then(|chunk| chunk.valid().chars().next());
    let len = first.map_or(1, char::len_utf8);
    Readable(&bytes[..len.min(bytes.len())])
}

/// See [`readable`].
#[derive(Clone, Copy)]
pub struct Readable<'a>(&'a [u8]);

impl fmt::Display for Readable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.utf8_chunks() {
            f.write_str(chunk.valid())?;
            for byte in chunk.invalid() {
                write!(f, "\\x{byte:02x}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Readable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        fmt::Display::fmt(self, f)?;
        f.write_char('"')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_no_text_are_shown_as_escapes() {
        for (bytes, shown) in [
            (&b""[..], ""),
            (b"plain", "plain"),
            ("h\u{e9}llo".as_bytes(), "h\u{e9}llo"),
            (b"caf\xe9 \xff\xfe", "caf\\xe9 \\xff\\xfe"),
            (b"\xe2\x82", "\\xe2\\x82"),
        ] {
            assert_eq!(readable(bytes).to_string(), shown);
            assert_eq!(Octets::from(bytes).to_string(), shown);
            assert_eq!(Octets::from(bytes).as_bytes(), bytes);
        }
        assert_eq!(Octets::from("a"), "a");
    }

    #[test]
    fn the_first_character_may_be_a_byte() {
        for (bytes, first) in [
            (&b""[..], ""),
            (b"ab", "a"),
            ("\u{e9}b".as_bytes(), "\u{e9}"),
            (b"\xe9b", "\\xe9"),
        ] {
            assert_eq!(first_character(bytes).to_string(), first);
        }
    }
}
