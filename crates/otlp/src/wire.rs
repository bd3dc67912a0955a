//! Reading protobuf: the fields of a message, one after the other, without copying any.

use crate::scan::Malformed;

/// Wire types (protobuf encoding, "Message Structure"). Groups are not among them: they are
/// deprecated, and OTLP has none.
pub const VARINT: u32 = 0;
/// 64 bits.
pub const FIXED64: u32 = 1;
/// A message, a text or bytes.
pub const BYTES: u32 = 2;
/// 32 bits.
pub const FIXED32: u32 = 5;

/// What is left of a message.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

/// One field.
#[derive(Clone, Copy, Debug)]
pub struct Field<'a> {
    /// Its number and wire type, `number << 3 | wire type`.
    pub key: u32,
    /// What it holds.
    pub value: Value<'a>,
}

/// What a field holds, by its wire type.
#[derive(Clone, Copy, Debug)]
pub enum Value<'a> {
    /// Type 0.
    Varint(u64),
    /// Type 1.
    Fixed64(u64),
    /// Type 2: a message, a text or bytes.
    Bytes(&'a [u8]),
    /// Type 5.
    Fixed32(u32),
}

impl<'a> Reader<'a> {
    /// Of this message.
    #[inline]
    #[must_use]
    pub fn new(message: &'a [u8]) -> Reader<'a> {
        Reader { rest: message }
    }

    /// Bytes that were not read yet.
    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// A varint of up to 64 bits.
    #[inline]
    pub fn varint(&mut self) -> Result<u64, Malformed> {
        if let [byte @ 0..0x80, rest @ ..] = self.rest {
            self.rest = rest;
            return Ok(u64::from(*byte));
        }
        self.long_varint()
    }

    #[inline]
    fn long_varint(&mut self) -> Result<u64, Malformed> {
        // The lengths of most messages take two bytes.
        if let [low, high @ 0..0x80, rest @ ..] = self.rest {
            self.rest = rest;
            return Ok(u64::from(low & 0x7f) | u64::from(*high) << 7);
        }
        self.longer_varint()
    }

    #[cold]
    fn longer_varint(&mut self) -> Result<u64, Malformed> {
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
        if self.rest.len() < 10 {
            return Err(Malformed::Truncated);
        }
        Err(Malformed::Varint)
    }

    /// Passes over the key of the next field, if it is this one, of a single byte.
    #[inline]
    pub fn next_is(&mut self, key: u32) -> bool {
        match self.rest {
            [byte, rest @ ..] if u32::from(*byte) == key => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    /// Passes over the fields that come next as long as they are messages of this key, of a single
    /// byte; gives how many.
    #[inline]
    pub fn pass(&mut self, key: u32) -> Result<u64, Malformed> {
        let mut count = 0;
        while let [first, after @ ..] = self.rest
            && u32::from(*first) == key
        {
            // Most lengths of spans and of records take two bytes.
            if let [low @ 0x80..=0xff, high @ 0..0x80, rest @ ..] = after {
                let len = usize::from(low & 0x7f) | usize::from(*high) << 7;
                self.rest = rest.get(len..).ok_or(Malformed::Truncated)?;
            } else {
                self.rest = after;
                self.bytes()?;
            }
            count += 1;
        }
        Ok(count)
    }

    /// The key of the next field.
    #[inline]
    pub fn key(&mut self) -> Result<u32, Malformed> {
        if let [byte @ 8..0x80, rest @ ..] = self.rest {
            self.rest = rest;
            return Ok(u32::from(*byte));
        }
        self.long_key()
    }

    #[inline(never)]
    fn long_key(&mut self) -> Result<u32, Malformed> {
        let key = self.varint()?;
        // Field numbers have 29 bits and begin at 1.
        match u32::try_from(key) {
            Ok(key) if key >= 8 => Ok(key),
            _ => Err(Malformed::FieldNumber),
        }
    }

    /// One byte.
    #[inline]
    pub fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*byte)
    }

    /// So many bytes.
    #[inline]
    pub fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(bytes)?;
        self.rest = rest;
        Some(taken)
    }

    /// 64 bits, the least byte first.
    #[inline]
    pub fn fixed64(&mut self) -> Result<u64, Malformed> {
        let (value, rest) = self.rest.split_first_chunk().ok_or(Malformed::Truncated)?;
        self.rest = rest;
        Ok(u64::from_le_bytes(*value))
    }

    /// 32 bits, the least byte first.
    #[inline]
    pub fn fixed32(&mut self) -> Result<u32, Malformed> {
        let (value, rest) = self.rest.split_first_chunk().ok_or(Malformed::Truncated)?;
        self.rest = rest;
        Ok(u32::from_le_bytes(*value))
    }

    /// A length and so many bytes.
    #[inline]
    pub fn bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let len = self.varint()?;
        if len > self.rest.len() as u64 {
            return Err(Malformed::Truncated);
        }
        let (value, rest) = self.rest.split_at(len as usize);
        self.rest = rest;
        Ok(value)
    }

    /// What a field with this key holds.
    #[inline]
    pub fn value(&mut self, key: u32) -> Result<Value<'a>, Malformed> {
        Ok(match key & 7 {
            VARINT => Value::Varint(self.varint()?),
            FIXED64 => Value::Fixed64(self.fixed64()?),
            BYTES => Value::Bytes(self.bytes()?),
            FIXED32 => Value::Fixed32(self.fixed32()?),
            _ => return Err(Malformed::WireType),
        })
    }

    /// The next field; none at the end.
    #[inline]
    pub fn field(&mut self) -> Result<Option<Field<'a>>, Malformed> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let key = self.key()?;
        let value = self.value(key)?;
        Ok(Some(Field { key, value }))
    }
}

/// The fields of a message that is known to be well formed; it ends where it is not.
pub fn fields<'a>(message: &'a [u8]) -> impl Iterator<Item = Field<'a>> + 'a {
    let mut reader = Reader::new(message);
    std::iter::from_fn(move || reader.field().ok().flatten())
}

/// The last field of this number that holds bytes, as `key` gives it; empty if there is none.
pub fn last_bytes(message: &[u8], key: u32) -> &[u8] {
    let found = fields(message).filter(|field| field.key == key).last();
    match found.map(|field| field.value) {
        Some(Value::Bytes(bytes)) => bytes,
        _ => b"",
    }
}

/// A field with the bytes that it came as, so that what is not changed can be copied.
#[derive(Clone, Copy, Debug)]
pub struct Whole<'a> {
    /// `number << 3 | wire type`
    pub key: u32,
    /// Its key and what it holds, as they came.
    pub whole: &'a [u8],
    /// What it holds.
    pub value: Value<'a>,
}

impl<'a> Whole<'a> {
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
    type Item = Result<Whole<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        let start = self.reader.rest();
        let field = match self.reader.field().transpose()? {
            Ok(field) => field,
            Err(fault) => {
                self.reader = Reader::new(b"");
                return Some(Err(fault));
            }
        };
        Some(Ok(Whole {
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
pub fn one_bytes(message: &[u8], key: u32) -> Result<Option<&[u8]>, Malformed> {
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

/// A value whose wire type is only that of a number or of bytes.
#[derive(Clone, Copy, Debug)]
pub enum Wire<'a> {
    /// Types 0, 1 and 5.
    Number(u64),
    /// Type 2.
    Bytes(&'a [u8]),
}

impl<'a> Wire<'a> {
    /// Its bytes.
    ///
    /// # Errors
    /// It is a number.
    #[inline]
    pub fn message(self) -> Result<&'a [u8], Malformed> {
        match self {
            Wire::Bytes(bytes) => Ok(bytes),
            Wire::Number(_) => Err(Malformed::WireType),
        }
    }

    /// Its number.
    ///
    /// # Errors
    /// It is bytes.
    #[inline]
    pub fn number(self) -> Result<u64, Malformed> {
        match self {
            Wire::Number(number) => Ok(number),
            Wire::Bytes(_) => Err(Malformed::WireType),
        }
    }
}

/// The first field: its number, its value, and the bytes after it; none at the end, and if no field
/// begins there.
#[inline(always)]
pub fn field(bytes: &[u8]) -> Option<(u64, Wire<'_>, &[u8])> {
    // Most fields have a key of one byte, and a length or a number of one byte.
    if let [key @ ..0x80, rest @ ..] = bytes {
        let number = u64::from(key >> 3);
        match (key & 7, rest) {
            (2, [len @ ..0x80, rest @ ..]) => {
                let (value, rest) = rest.split_at_checked(usize::from(*len))?;
                return Some((number, Wire::Bytes(value), rest));
            }
            (1, _) => {
                let (value, rest) = rest.split_first_chunk::<8>()?;
                let value = u64::from_le_bytes(*value);
                return Some((number, Wire::Number(value), rest));
            }
            (0, [value @ ..0x80, rest @ ..]) => {
                return Some((number, Wire::Number(u64::from(*value)), rest));
            }
            _ => {}
        }
    }
    any_field(bytes)
}

fn any_field(bytes: &[u8]) -> Option<(u64, Wire<'_>, &[u8])> {
    let mut reader = Reader::new(bytes);
    let field = reader.field().ok()??;
    let wire = match field.value {
        Value::Varint(number) | Value::Fixed64(number) => Wire::Number(number),
        Value::Fixed32(number) => Wire::Number(u64::from(number)),
        Value::Bytes(bytes) => Wire::Bytes(bytes),
    };
    Some((u64::from(field.key >> 3), wire, reader.rest()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write;

    #[test]
    fn varints_are_read_back() {
        for value in [0, 1, 127, 128, 16383, 16384, u64::from(u32::MAX), u64::MAX] {
            let mut bytes = Vec::new();
            write::varint(&mut bytes, value);
            let mut reader = Reader::new(&bytes);
            assert_eq!(reader.varint(), Ok(value));
            assert!(reader.rest().is_empty());
            bytes.pop();
            assert_eq!(Reader::new(&bytes).varint(), Err(Malformed::Truncated));
        }
        assert_eq!(Reader::new(&[0xff; 11]).varint(), Err(Malformed::Varint));
    }

    #[test]
    fn fields_of_one_key_are_passed_over() {
        let mut bytes = Vec::new();
        for len in [0, 1, 127, 128, 16383, 16384, 70000] {
            write::bytes(&mut bytes, 2, &vec![0x12; len]);
        }
        let whole = bytes.len();
        write::uint(&mut bytes, 3, 1);
        let mut reader = Reader::new(&bytes);
        assert_eq!((reader.pass(0x1a), reader.pass(0x12)), (Ok(0), Ok(7)));
        assert_eq!(reader.rest().len(), bytes.len() - whole);
        for cut in [1, 69_999, 70_001, 70_003, 90_000 - 3000] {
            let mut reader = Reader::new(&bytes[..whole - cut]);
            assert_eq!(reader.pass(0x12), Err(Malformed::Truncated), "{cut}");
        }
    }

    #[test]
    fn what_is_no_field_is_refused() {
        let read = |bytes: &[u8]| Reader::new(bytes).field().map(|field| field.is_some());
        assert_eq!(read(b""), Ok(false));
        assert_eq!(read(b"\x08\x01"), Ok(true));
        assert_eq!(read(b"\x00\x01"), Err(Malformed::FieldNumber));
        assert_eq!(read(b"\x0b"), Err(Malformed::WireType));
        assert_eq!(read(b"\x0a\x05abcd"), Err(Malformed::Truncated));
        assert_eq!(read(b"\x0d\x05\x00"), Err(Malformed::Truncated));
        let long = [&[0x0a], &[0xff; 9][..], &[0x01]].concat();
        assert_eq!(read(&long), Err(Malformed::Truncated));
    }

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
        assert_eq!(one_bytes(message, 0x12), Ok(Some(&b"ab"[..])));
        assert_eq!(one_bytes(message, 0x32), Ok(None));
        assert_eq!(one_bytes(message, 0x0a), Err(Malformed::WireType));
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
