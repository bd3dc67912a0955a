//! Writes protobuf: only what OTLP encoders need.
//!
//! Every function appends to a buffer. A nested message is written with [`message`], which inserts
//! its length afterwards; lengths are minimal varints, so the bytes equal those of other encoders.

/// The size of a varint.
#[must_use]
#[inline]
pub fn varint_len(value: u64) -> usize {
    // 7 bits per byte, at least one byte.
    (64 - (value | 1).leading_zeros() as usize).div_ceil(7)
}

/// A varint.
#[inline]
pub fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// The key of a field: its number and wire type 0 (varint), 1 (64 bits), 2 (bytes) or 5 (32 bits).
#[inline]
pub fn key(out: &mut Vec<u8>, field: u32, wire: u32) {
    varint(out, u64::from(field << 3 | wire));
}

/// A field of type `uint*`, `int*`, `bool` or an enum.
#[inline]
pub fn uint(out: &mut Vec<u8>, field: u32, value: u64) {
    key(out, field, 0);
    varint(out, value);
}

/// A field of type `sint32`, whose sign is in its lowest bit.
#[inline]
pub fn sint(out: &mut Vec<u8>, field: u32, value: i32) {
    let zigzag = (value << 1 ^ value >> 31).cast_unsigned();
    uint(out, field, u64::from(zigzag));
}

/// A field of type `fixed64` or `sfixed64`.
#[inline]
pub fn fixed64(out: &mut Vec<u8>, field: u32, value: u64) {
    key(out, field, 1);
    out.extend_from_slice(&value.to_le_bytes());
}

/// A field of type `double`.
#[inline]
pub fn double(out: &mut Vec<u8>, field: u32, value: f64) {
    fixed64(out, field, value.to_bits());
}

/// A field of type `fixed32`.
#[inline]
pub fn fixed32(out: &mut Vec<u8>, field: u32, value: u32) {
    key(out, field, 5);
    out.extend_from_slice(&value.to_le_bytes());
}

/// A field of type `bytes` or `string`.
#[inline]
pub fn bytes(out: &mut Vec<u8>, field: u32, value: &[u8]) {
    key(out, field, 2);
    varint(out, value.len() as u64);
    out.extend_from_slice(value);
}

/// A packed field of 64-bit values (`repeated fixed64`, `repeated double` by their bits).
pub fn packed(out: &mut Vec<u8>, field: u32, values: impl ExactSizeIterator<Item = u64>) {
    key(out, field, 2);
    varint(out, 8 * values.len() as u64);
    for value in values {
        out.extend_from_slice(&value.to_le_bytes());
    }
}

/// The content of a field that [`bytes()`] wrote.
#[must_use]
pub fn field_bytes(field: &[u8]) -> &[u8] {
    let after_varint = |bytes: &'_ [u8]| {
        let last = bytes.iter().position(|byte| byte & 0x80 == 0);
        last.map_or(bytes.len(), |last| last + 1)
    };
    let rest = &field[after_varint(field)..];
    &rest[after_varint(rest)..]
}

/// A message field, whose content `write` appends.
#[inline]
pub fn message(out: &mut Vec<u8>, field: u32, write: impl FnOnce(&mut Vec<u8>)) {
    key(out, field, 2);
    // Reserves the usual size of the length; if it is longer, the content is moved.
    let start = out.len();
    out.push(0);
    write(out);
    let len = out.len() - start - 1;
    if len < 0x80 {
        out[start] = len as u8;
        return;
    }
    let more = varint_len(len as u64) - 1;
    let end = out.len();
    out.resize(end + more, 0);
    out.copy_within(start + 1..end, start + 1 + more);
    let mut rest = len as u64;
    for place in &mut out[start..start + more] {
        *place = rest as u8 | 0x80;
        rest >>= 7;
    }
    out[start + more] = rest as u8;
}

/// A `KeyValue`, whose `AnyValue` `value` appends.
#[inline]
pub fn key_value(out: &mut Vec<u8>, field: u32, key: &[u8], value: impl FnOnce(&mut Vec<u8>)) {
    message(out, field, |out| {
        bytes(out, 1, key);
        message(out, 2, value);
    });
}

/// A `KeyValue` with a text.
pub fn text_value(out: &mut Vec<u8>, field: u32, key: &str, value: &str) {
    key_value(out, field, key.as_bytes(), |out| {
        bytes(out, 1, value.as_bytes())
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_read_back() {
        for length in [0, 1, 127, 128, 70_000] {
            let text = vec![b'x'; length];
            for number in [1, 5, 16, 3000] {
                let mut field = Vec::new();
                bytes(&mut field, number, &text);
                assert_eq!(field_bytes(&field), text);
            }
        }
        assert_eq!(field_bytes(b""), b"");
        assert_eq!(field_bytes(b"\xff"), b"");
    }
}
