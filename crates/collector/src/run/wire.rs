//! Fields of a protobuf message with the bytes that they came as, so that what is not changed can be copied.

use tail::scan::Malformed;
use tail::wire::Reader;

pub use tail::wire::Value;

/// One field.
#[derive(Clone, Copy, Debug)]
pub struct Field<'a> {
    /// `number << 3 | wire type`
    pub key: u32,
    /// Its key and what it holds, as they came.
    pub whole: &'a [u8],
    /// What it holds.
    pub value: Value<'a>,
}

impl<'a> Field<'a> {
    /// The message that it holds, if it is the field of this number.
    #[must_use]
    pub fn message(&self, number: u32) -> Option<&'a [u8]> {
        match self.value {
            Value::Bytes(bytes) if self.key >> 3 == number => Some(bytes),
            _ => None,
        }
    }
}

/// Walks over the fields of a message; the first that is malformed ends it.
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    reader: Reader<'a>,
}

impl<'a> Fields<'a> {
    /// Of this message.
    #[must_use]
    pub fn new(message: &'a [u8]) -> Fields<'a> {
        Fields {
            reader: Reader::new(message),
        }
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<Field<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        let start = self.reader.rest();
        let field = match self.reader.field().transpose()? {
            Ok(field) => field,
            Err(fault) => {
                self.reader = Reader::new(b"");
                return Some(Err(fault));
            }
        };
        Some(Ok(Field {
            key: field.key,
            whole: &start[..start.len() - self.reader.rest().len()],
            value: field.value,
        }))
    }
}

/// What the last field of this key holds: bytes, or none where there is no such field.
///
/// # Errors
/// The message is malformed, or a field of this number is of another type.
pub fn last_bytes(message: &[u8], key: u32) -> Result<Option<&[u8]>, Malformed> {
    let mut last = None;
    for field in Fields::new(message) {
        let field = field?;
        match field.value {
            Value::Bytes(bytes) if field.key == key => last = Some(bytes),
            _ if field.key >> 3 == key >> 3 => return Err(Malformed::WireType),
            _ => {}
        }
    }
    Ok(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_and_their_bytes() {
        let message = b"\x08\x96\x01\x12\x82\x00ab\x19abcdefgh\x25abcd";
        let fields: Vec<_> = Fields::new(message).map(Result::unwrap).collect();
        let keys: Vec<_> = fields.iter().map(|field| field.key).collect();
        assert_eq!(keys, [0x08, 0x12, 0x19, 0x25]);
        assert!(matches!(fields[0].value, Value::Varint(150)));
        assert!(matches!(fields[1].value, Value::Bytes(b"ab")));
        let wholes: Vec<_> = fields.iter().flat_map(|field| field.whole).collect();
        assert!(wholes.into_iter().eq(message));
        assert_eq!(last_bytes(message, 0x12), Ok(Some(&b"ab"[..])));
        assert_eq!(last_bytes(message, 0x32), Ok(None));
        assert_eq!(last_bytes(message, 0x0a), Err(Malformed::WireType));
    }

    #[test]
    fn what_is_malformed_ends_it() {
        let fault = |message: &[u8]| {
            let mut fields = Fields::new(message);
            let fault = fields.next().unwrap().unwrap_err();
            assert!(fields.next().is_none());
            fault
        };
        assert_eq!(fault(b"\x00\x01"), Malformed::FieldNumber);
        assert_eq!(fault(b"\x0b"), Malformed::WireType);
        assert_eq!(fault(b"\x0a\x05abcd"), Malformed::Truncated);
        assert_eq!(fault(b"\x0d\x05\x00"), Malformed::Truncated);
        assert_eq!(fault(b"\x08\xff"), Malformed::Truncated);
        assert_eq!(fault(&[0xff; 11]), Malformed::Varint);
        let long = [&[0x0a], &[0xff; 9][..], &[0x01]].concat();
        assert_eq!(fault(&long), Malformed::Truncated);
    }
}
