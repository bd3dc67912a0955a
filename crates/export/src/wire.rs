//! Reads protobuf without building messages: fields in sequence, borrowed from the input.

use crate::request::varint;

/// A protobuf value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wire<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// The first field: its number, its value, and the bytes after it; none at the end, and if no field begins there.
#[inline(always)]
pub(crate) fn field(bytes: &[u8]) -> Option<(u64, Wire<'_>, &[u8])> {
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
    let (key, len) = varint(bytes)?;
    let rest = &bytes[len..];
    let (wire, rest) = match key & 7 {
        0 => {
            let (number, len) = varint(rest)?;
            (Wire::Number(number), &rest[len..])
        }
        1 => {
            let (number, rest) = rest.split_first_chunk::<8>()?;
            (Wire::Number(u64::from_le_bytes(*number)), rest)
        }
        2 => {
            let (size, len) = varint(rest)?;
            let (bytes, rest) = rest[len..].split_at_checked(usize::try_from(size).ok()?)?;
            (Wire::Bytes(bytes), rest)
        }
        5 => {
            let (number, rest) = rest.split_first_chunk::<4>()?;
            (Wire::Number(u64::from(u32::from_le_bytes(*number))), rest)
        }
        _ => return None,
    };
    Some((key >> 3, wire, rest))
}
