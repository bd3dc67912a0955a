//! A field name from a configuration: looked up once, when the configuration is loaded.

use crate::Name;

/// A name in lower case, with its entry in the table of names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldName {
    id: Name,
    text: Box<[u8]>,
    mark: u8,
}

/// The number of a bit (of 64) that a name without a table entry sets in its head; several names
/// may share a bit.
#[inline]
pub(crate) fn mark(name: &[u8]) -> u8 {
    // Many names share their beginning or their end, few share both.
    if let (Some(first), Some(last)) = (name.first_chunk::<8>(), name.last_chunk::<8>()) {
        let mixed = u64::from_le_bytes(*first) ^ u64::from_le_bytes(*last).rotate_left(29);
        return (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58) as u8;
    }
    let last = name.last().map_or(0, |byte| u32::from(*byte));
    ((name.len() as u32 * 7 + last) % 64) as u8
}

impl FieldName {
    /// A field name, given in any case.
    #[must_use]
    pub fn new(name: &[u8]) -> FieldName {
        let text = name.to_ascii_lowercase();
        FieldName {
            id: Name::from_lower(&text),
            mark: mark(&text),
            text: text.into(),
        }
    }

    /// The name's table entry; [`Name::Other`] for a name without one.
    #[must_use]
    #[inline]
    pub fn id(&self) -> Name {
        self.id
    }

    /// The [`mark`] of a name without a table entry.
    #[inline]
    pub(crate) fn mark(&self) -> u8 {
        self.mark
    }

    /// The name in lower case.
    #[must_use]
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Head;
    use crate::h1::{Limits, Strictness, parse_request};

    #[test]
    fn a_name_that_was_looked_up_finds_what_a_text_finds() {
        let wire =
            b"GET / HTTP/1.1\r\nHost: a\r\nX-One: 1\r\nx-two: 2\r\nX-ONE: 3\r\naccept: 4\r\n\r\n";
        let mut head = Head::default();
        let limits = Limits {
            head_bytes_max: 1000,
            fields_max: 10,
        };
        assert!(
            parse_request(wire, limits, Strictness::Strict, &mut head)
                .is_ok_and(|parsed| parsed.is_some())
        );
        head.append(b"X-Three", b"5");
        head.append_named(&FieldName::new(b"X-Four"), b"6");
        let all = |head: &Head, name: &str| {
            let looked_up = FieldName::new(name.as_bytes());
            let (mut values, mut from) = (Vec::new(), 0);
            while let Some((at, value)) = head.next_named(&looked_up, from) {
                values.push(value.to_vec());
                from = at + 1;
            }
            let found = head.find(name.as_bytes()).map(|(_, value)| value.to_vec());
            assert_eq!(values, found.collect::<Vec<_>>(), "{name}");
            values.len()
        };
        let names = [
            "host", "X-One", "x-TWO", "x-three", "x-four", "Accept", "x-none", "x-eno", "via", "",
        ];
        let counts = names.map(|name| all(&head, name));
        assert_eq!(counts, [1, 2, 1, 1, 1, 1, 0, 0, 0, 0]);
        head.remove_named(&FieldName::new(b"x-one"));
        head.remove_named(&FieldName::new(b"ACCEPT"));
        assert_eq!(
            names.map(|name| all(&head, name)),
            [1, 0, 1, 1, 1, 0, 0, 0, 0, 0]
        );
    }
}
