//! Names of hosts and services.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use domain::base::name::{Label, ToLabelIter};

/// The longest label (RFC 1035 §2.3.4), in bytes.
const LABEL_BYTES_MAX: usize = 63;

/// The longest name as text without its last dot: 255 bytes on the wire (RFC 1035 §2.3.4).
const NAME_BYTES_MAX: usize = 253;

/// A name: lower case, without a dot at its end, of labels of 1 to 63 bytes. It is cheap to clone.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(Arc<str>);

/// What is wrong with a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameError {
    /// It is empty, or two dots follow each other, or it begins with one.
    EmptyLabel,
    /// A label is longer than 63 bytes.
    LabelTooLong,
    /// It is longer than 253 bytes.
    TooLong,
    /// It has a byte other than letters, digits, `-` and `_`.
    InvalidCharacter,
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NameError::EmptyLabel => "a label is empty",
            NameError::LabelTooLong => "a label is longer than 63 bytes",
            NameError::TooLong => "the name is longer than 253 bytes",
            NameError::InvalidCharacter => "found an invalid character",
        })
    }
}

impl Error for NameError {}

impl Name {
    /// Reads a name as a configuration or a client writes it. One dot at its end is allowed.
    ///
    /// # Errors
    /// It is no name of letters, digits, `-` and `_`, or too long.
    pub fn parse(text: &str) -> Result<Name, NameError> {
        let text = text.strip_suffix('.').unwrap_or(text);
        if text.len() > NAME_BYTES_MAX {
            return Err(NameError::TooLong);
        }
        for label in text.split('.') {
            if label.is_empty() {
                return Err(NameError::EmptyLabel);
            }
            let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
            if !label.bytes().all(is_allowed) {
                return Err(NameError::InvalidCharacter);
            }
            if label.len() > LABEL_BYTES_MAX {
                return Err(NameError::LabelTooLong);
            }
        }
        Ok(Name(text.to_ascii_lowercase().into()))
    }

    /// The name in a message; none for the root and for bytes that text cannot show unescaped.
    pub(crate) fn of_message(name: &impl ToLabelIter) -> Option<Name> {
        let mut text = String::new();
        for label in name.iter_labels().filter(|label| !label.is_root()) {
            if !text.is_empty() {
                text.push('.');
            }
            for &byte in Label::as_slice(label) {
                if !byte.is_ascii_graphic() || b".\\".contains(&byte) {
                    return None;
                }
                text.push(char::from(byte.to_ascii_lowercase()));
            }
        }
        (!text.is_empty()).then(|| Name(text.into()))
    }

    /// The name as in messages (RFC 1035 §3.1), uncompressed.
    pub(crate) fn wire(&self) -> Vec<u8> {
        let mut wire = Vec::with_capacity(self.0.len() + 2);
        for label in self.0.split('.') {
            // Both constructors bound labels at 63 bytes.
            wire.push(label.len() as u8);
            wire.extend_from_slice(label.as_bytes());
        }
        wire.push(0);
        wire
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether HAProxy takes the name for a service: it begins with an underscore (manual §5.3.1).
    #[must_use]
    pub fn is_service(&self) -> bool {
        self.0.starts_with('_')
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_lower_case_without_a_last_dot() {
        let name = Name::parse("WWW.Example.COM.").unwrap();
        assert_eq!(name.as_str(), "www.example.com");
        assert_eq!(name.wire(), b"\x03www\x07example\x03com\0");
        assert!(!name.is_service());
        assert!(Name::parse("_http._tcp.example.com").unwrap().is_service());
    }

    #[test]
    fn what_is_no_name_is_refused() {
        let label = "a".repeat(64);
        let long = format!("{}a", "abcdefg.".repeat(32));
        for (text, error) in [
            ("", NameError::EmptyLabel),
            (".", NameError::EmptyLabel),
            ("a..b", NameError::EmptyLabel),
            (".a", NameError::EmptyLabel),
            ("a b", NameError::InvalidCharacter),
            ("a\0", NameError::InvalidCharacter),
            ("ä", NameError::InvalidCharacter),
            (label.as_str(), NameError::LabelTooLong),
            (long.as_str(), NameError::TooLong),
        ] {
            assert_eq!(Name::parse(text), Err(error), "{text}");
        }
        assert!(Name::parse(&label[..63]).is_ok());
        assert!(Name::parse(&"a.".repeat(127)).is_ok());
    }
}
