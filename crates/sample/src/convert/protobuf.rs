//! Fields of protobuf messages, also within gRPC frames. The work is linear in the input, without
//! recursion.

use super::{Convert, bytes_of, convert};
use crate::args::ArgKind::{FieldNumbers, Str};
use crate::args::{Arg, int_at, spec, str_at};
use crate::{Kind, Value};

pub(crate) const CONVERTERS: &[Convert] = &[
    convert(
        "protobuf",
        spec(1, &[FieldNumbers, Str]),
        Kind::Bin,
        Kind::Bin,
        "a field of a protobuf message; an integer where a type is named",
        |args, value, _| {
            let message = bytes_of(value)?;
            find(args, &message)?.of(message)
        },
    )
    .checked(field_type),
    convert(
        "ungrpc",
        spec(1, &[FieldNumbers, Str]),
        Kind::Bin,
        Kind::Bin,
        "a field of the protobuf messages of a gRPC body",
        |args, value, _| {
            let body = bytes_of(value)?;
            let found =
                messages(&body).find_map(|message| find(args, message.bytes)?.shifted(message.at));
            found?.of(body)
        },
    )
    .checked(field_type),
];

/// Types by name: how the bytes of a field become an integer.
const TYPES: &[(&str, Type)] = &[
    ("int32", Type::Varint(|bits| bits as i64)),
    ("uint32", Type::Varint(|bits| bits as i64)),
    ("int64", Type::Varint(|bits| bits as i64)),
    ("uint64", Type::Varint(|bits| bits as i64)),
    ("bool", Type::Varint(|bits| bits as i64)),
    ("enum", Type::Varint(|bits| bits as i64)),
    ("sint32", Type::Varint(zigzag)),
    ("sint64", Type::Varint(zigzag)),
    ("fixed32", Type::Bits32(|bits| bits.into())),
    ("sfixed32", Type::Bits32(|bits| (bits as i32).into())),
    (
        "float",
        Type::Bits32(|bits| i64::from(truncated(f64::from(f32::from_bits(bits))) as u32)),
    ),
    ("fixed64", Type::Bits64(|bits| bits as i64)),
    ("sfixed64", Type::Bits64(|bits| bits as i64)),
    (
        "double",
        Type::Bits64(|bits| truncated(f64::from_bits(bits))),
    ),
];

/// How a named type interprets the bits of its wire type.
#[derive(Clone, Copy)]
enum Type {
    Varint(fn(u64) -> i64),
    Bits32(fn(u32) -> i64),
    Bits64(fn(u64) -> i64),
}

fn zigzag(bits: u64) -> i64 {
    (bits >> 1) as i64 ^ -((bits & 1) as i64)
}

/// The integer part, converted like a processor does to a 64-bit unsigned number: a value that does
/// not fit becomes 2^63.
fn truncated(number: f64) -> i64 {
    const TWO_63: f64 = 9_223_372_036_854_775_808.0;
    if number >= TWO_63 {
        return if number < 2.0 * TWO_63 {
            (number - TWO_63) as i64 ^ i64::MIN
        } else {
            0
        };
    }
    if number >= -TWO_63 {
        number as i64
    } else {
        i64::MIN
    }
}

fn field_type(args: &mut [Arg]) -> Result<(), String> {
    if args.len() < 2 {
        return Ok(());
    }
    let name = str_at(args, 1);
    match TYPES.iter().position(|(known, _)| known.as_bytes() == name) {
        Some(index) => {
            args[1] = Arg::Int(index as i64);
            Ok(())
        }
        None => Err(format!(
            "Wrong protocol buffer type '{}'",
            String::from_utf8_lossy(name)
        )),
    }
}

/// A field that was found.
enum Found {
    /// The range of its bytes, if no type was named.
    Range(usize, usize),
    Int(i64),
}

impl Found {
    fn of(self, bytes: crate::Bytes<'_>) -> Option<Value<'_>> {
        Some(match self {
            Found::Range(start, end) => Value::Bin(bytes.slice(start, end)),
            Found::Int(number) => Value::Int(number),
        })
    }

    /// The same relative to a buffer that begins `by` bytes earlier.
    fn shifted(self, by: usize) -> Option<Found> {
        Some(match self {
            Found::Range(start, end) => Found::Range(start + by, end + by),
            found => found,
        })
    }
}

/// One gRPC message (flag, length, bytes) and the position of its bytes.
struct Message<'b> {
    bytes: &'b [u8],
    at: usize,
}

const GRPC_HEADER: usize = 5;

/// The complete messages of a body. As in HAProxy, a compressed one is searched too.
fn messages(body: &[u8]) -> impl Iterator<Item = Message<'_>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let [_, length @ ..] = body.get(at..)?.first_chunk::<GRPC_HEADER>()?;
        let start = at + GRPC_HEADER;
        let end = start.checked_add(u32::from_be_bytes(*length) as usize)?;
        at = end;
        Some(Message {
            bytes: body.get(start..end)?,
            at: start,
        })
    })
}

/// Wire types (protobuf encoding, "Message structure").
const VARINT: u64 = 0;
const BITS_64: u64 = 1;
const LENGTH: u64 = 2;
const BITS_32: u64 = 5;

/// Finds the field with the numbers in the first argument. If a field on the way is not a message,
/// the search ends.
fn find(args: &[Arg], message: &[u8]) -> Option<Found> {
    let Some(Arg::Numbers(path)) = args.first() else {
        return None;
    };
    let (last, mut parents) = path.split_last().map(|(last, rest)| (*last, rest.iter()))?;
    let mut parent = parents.next();
    let mut reader = Reader {
        bytes: message,
        at: 0,
    };
    while reader.at < reader.bytes.len() {
        let key = reader.varint()?;
        let number = (key >> 3) as u32;
        let start = reader.at;
        match key & 7 {
            VARINT => drop(reader.varint()?),
            BITS_64 => drop(reader.take(8)?),
            BITS_32 => drop(reader.take(4)?),
            LENGTH => {
                let length = reader.varint()?;
                let inner = reader.at;
                reader.take(usize::try_from(length).ok()?)?;
                if parent == Some(&number) {
                    // Continue within the message; the bytes after it are not read.
                    reader = Reader {
                        bytes: &reader.bytes[..reader.at],
                        at: inner,
                    };
                    parent = parents.next();
                    continue;
                }
            }
            _ => return None,
        }
        match parent {
            Some(parent) if *parent == number => return None,
            None if number == last => return field(args, &reader, key & 7, start),
            _ => {}
        }
    }
    None
}

/// The field between `start` and the reader's position.
fn field(args: &[Arg], reader: &Reader<'_>, wire: u64, start: usize) -> Option<Found> {
    let mut value = Reader {
        bytes: &reader.bytes[..reader.at],
        at: start,
    };
    let Some(index) = int_at(args, 1) else {
        if wire == LENGTH {
            value.varint()?;
        }
        return Some(Found::Range(value.at, reader.at));
    };
    let (_, kind) = TYPES.get(usize::try_from(index).ok()?)?;
    let bytes = &value.bytes[start..];
    Some(Found::Int(match (kind, wire) {
        (Type::Varint(read), VARINT) => read(value.varint()?),
        (Type::Bits32(read), BITS_32) => read(u32::from_le_bytes(*bytes.first_chunk()?)),
        (Type::Bits64(read), BITS_64) => read(u64::from_le_bytes(*bytes.first_chunk()?)),
        _ => return None,
    }))
}

/// Reads a message, never beyond its end.
struct Reader<'m> {
    bytes: &'m [u8],
    at: usize,
}

impl Reader<'_> {
    fn take(&mut self, count: usize) -> Option<()> {
        if count > self.bytes.len() - self.at {
            return None;
        }
        self.at += count;
        Some(())
    }

    /// A number of at most ten bytes. An empty one is 0, as in HAProxy.
    fn varint(&mut self) -> Option<u64> {
        if self.at == self.bytes.len() {
            return Some(0);
        }
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = *self.bytes.get(self.at)?;
            self.at += 1;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{convert_text, none};

    /// Messages of protobuf's own documentation of its encoding, and nested ones.
    #[test]
    fn fields_of_messages() {
        for (expr, wanted) in [
            ("bin(089601),protobuf(1,int32)", "150"),
            ("bin(089601),protobuf(1),hex", "9601"),
            ("bin(120774657374696e67),protobuf(2)", "testing"),
            ("bin(1a03089601),protobuf(3.1,int32)", "150"),
            ("bin(1a03089601),protobuf(3),protobuf(1,uint64)", "150"),
            // A sibling before, and one after.
            ("bin(08011a03089601),protobuf(3.1,int32)", "150"),
            ("bin(0803),protobuf(1,sint32)", "-2"),
            ("bin(08ffffffffffffffffff01),protobuf(1,int64)", "-1"),
            ("bin(0dffffffff),protobuf(1,fixed32)", "4294967295"),
            ("bin(0dffffffff),protobuf(1,sfixed32)", "-1"),
            ("bin(09ffffffffffffffff),protobuf(1,sfixed64)", "-1"),
            ("bin(0d0000c03f),protobuf(1,float)", "1"),
            ("bin(090000000000002a40),protobuf(1,double)", "13"),
            ("bin(0a00),protobuf(1),length", "0"),
            ("bin(0000000003089601),ungrpc(1,int32)", "150"),
            (
                "bin(00000000020801 0000000003109601),ungrpc(2,int32)",
                "150",
            ),
        ] {
            assert_eq!(convert_text(&expr.replace(' ', "")), wanted, "{expr}");
        }
    }

    #[test]
    fn bad_messages_have_no_fields() {
        for expr in [
            "bin(089601),protobuf(2)",
            "bin(0896),protobuf(1,int32)",
            "bin(089601),protobuf(1,fixed32)",
            "bin(089601),protobuf(1.1)",
            "bin(1205616263),protobuf(2)",
            "bin(0b01),protobuf(1)",
            "bin(08ffffffffffffffffffff01),protobuf(1)",
            "bin(0000000004089601),ungrpc(1)",
            "bin(1a03089601 0801),protobuf(3.2)",
        ] {
            none(&expr.replace(' ', ""));
        }
    }
}
