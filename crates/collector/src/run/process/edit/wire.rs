//! Fields of a protobuf message with the bytes that they came as, so that what is not changed can be copied.

use tail::scan::Malformed;

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

/// What a field holds, by its wire type.
#[derive(Clone, Copy, Debug)]
pub enum Value<'a> {
    /// Type 0.
    Varint(u64),
    /// Type 2: a message, a text or bytes.
    Bytes(&'a [u8]),
    /// Types 1 and 5: of 64 or 32 bits.
    Fixed,
}

/// Walks over the fields of a message; the first that is malformed ends it.
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    /// Of this message.
    #[must_use]
    pub fn new(message: &'a [u8]) -> Fields<'a> {
        Fields { rest: message }
    }

    fn field(&mut self) -> Result<Field<'a>, Malformed> {
        let start = self.rest;
        // Field numbers have 29 bits and begin at 1.
        let key = u32::try_from(self.varint()?).ok().filter(|key| *key >= 8);
        let key = key.ok_or(Malformed::FieldNumber)?;
        let value = match key & 7 {
            0 => Value::Varint(self.varint()?),
            1 => self.take(8).map(|_| Value::Fixed)?,
            2 => {
                let len = usize::try_from(self.varint()?).map_err(|_| Malformed::Truncated)?;
                Value::Bytes(self.take(len)?)
            }
            5 => self.take(4).map(|_| Value::Fixed)?,
            _ => return Err(Malformed::WireType),
        };
        let whole = &start[..start.len() - self.rest.len()];
        Ok(Field { key, whole, value })
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self
            .rest
            .split_at_checked(len)
            .ok_or(Malformed::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    fn varint(&mut self) -> Result<u64, Malformed> {
        let mut value = 0;
        for (at, byte) in self.rest.iter().enumerate().take(10) {
            // The tenth byte holds one bit.
            if at == 9 && *byte > 1 {
                return Err(Malformed::Varint);
            }
            value |= u64::from(byte & 0x7f) << (7 * at);
            if byte & 0x80 == 0 {
                self.rest = &self.rest[at + 1..];
                return Ok(value);
            }
        }
        Err(match self.rest.len() {
            0..10 => Malformed::Truncated,
            _ => Malformed::Varint,
        })
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<Field<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.rest = b"";
        }
        Some(field)
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
