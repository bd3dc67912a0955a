//! Bytes as digits: binary, decimal, hexadecimal; integers as bytes; removal of control characters.

use super::{Convert, bytes_of, convert, written};
use crate::args::ArgKind::{Int, Str};
use crate::args::{Arg, NONE, int_at, spec, str_at};
use crate::text::{push_hex, push_uint};
use crate::{Bytes, Kind, SAMPLE_BYTES_MAX, Value};

const CHUNKS: crate::args::Spec = spec(1, &[Str, Int, Int]);

pub(crate) const CONVERTERS: &[Convert] = &[
    convert(
        "base2",
        NONE,
        Kind::Bin,
        Kind::Str,
        "eight binary digits a byte",
        |_, value, _| {
            let bytes = bytes_of(value)?;
            if bytes.len() > SAMPLE_BYTES_MAX / 8 {
                return None;
            }
            let text = written(|out| {
                for byte in bytes.iter() {
                    out.extend((0..8).rev().map(|bit| b'0' + (byte >> bit & 1)));
                }
                Some(())
            });
            text.map(Value::Str)
        },
    ),
    convert(
        "be2dec",
        CHUNKS,
        Kind::Bin,
        Kind::Str,
        "big-endian integers as decimal digits",
        |args, value, _| {
            in_chunks(args, value, |chunk, out| {
                push_uint(out, integer(chunk.iter()));
            })
        },
    )
    .checked(decimal_chunks),
    convert(
        "le2dec",
        CHUNKS,
        Kind::Bin,
        Kind::Str,
        "little-endian integers as decimal digits",
        |args, value, _| {
            in_chunks(args, value, |chunk, out| {
                push_uint(out, integer(chunk.iter().rev()));
            })
        },
    )
    .checked(decimal_chunks),
    convert(
        "be2hex",
        CHUNKS,
        Kind::Bin,
        Kind::Str,
        "hexadecimal digits, separated",
        |args, value, _| {
            in_chunks(args, value, |chunk, out| {
                for byte in chunk {
                    push_hex(out, *byte);
                }
            })
        },
    )
    .checked(hexadecimal_chunks),
    convert(
        "htonl",
        NONE,
        Kind::Int,
        Kind::Bin,
        "the low 32 bits in network byte order",
        |_, value, _| match value {
            Value::Int(number) => written(|out| {
                out.extend_from_slice(&(number as u32).to_be_bytes());
                Some(())
            })
            .map(Value::Bin),
            _ => None,
        },
    ),
    convert(
        "has_ctl",
        spec(0, &[Str]),
        Kind::Bin,
        Kind::Bool,
        "whether control characters of a mask are in it",
        |args, value, _| {
            let mask = int_at(args, 0).unwrap_or(CONTROLS_BUT_TAB) as u64;
            let bytes = bytes_of(value)?;
            let found = bytes.iter().any(|byte| match byte {
                0..0x20 => mask >> byte & 1 == 1,
                0x7f => mask >> 32 & 1 == 1,
                _ => false,
            });
            Some(Value::Bool(found))
        },
    )
    .checked(control_mask),
];

/// Every control character except the tab.
const CONTROLS_BUT_TAB: i64 = 0x1_ffff_fdff;
const CONTROLS: i64 = 0x1_ffff_ffff;
/// Characters that a header value must not contain: NUL, LF, CR.
const CONTROLS_OF_HTTP: i64 = 0x2401;

/// Writes the chunks with the separator between them. Stops before the first chunk that does not
/// fit.
fn in_chunks<'a>(
    args: &[Arg],
    value: Value<'_>,
    write: impl Fn(&[u8], &mut Vec<u8>),
) -> Option<Value<'a>> {
    let bytes = bytes_of(value)?;
    let size = match int_at(args, 1) {
        // Without a chunk size, only `be2hex` is accepted: everything is one chunk.
        None | Some(..=0) => bytes.len().max(1),
        Some(size) => usize::try_from(size).unwrap_or(usize::MAX),
    };
    let truncated = int_at(args, 2) == Some(1);
    let mut out = Bytes::buffer();
    let text = out.as_vec();
    for (index, chunk) in bytes.chunks(size).enumerate() {
        if truncated && chunk.len() < size {
            break;
        }
        let before = text.len();
        if index > 0 {
            text.extend_from_slice(str_at(args, 0));
        }
        write(chunk, text);
        if text.len() > SAMPLE_BYTES_MAX {
            text.truncate(before);
            break;
        }
    }
    Some(Value::Str(out.into()))
}

fn integer<'a>(bytes: impl Iterator<Item = &'a u8>) -> u64 {
    bytes.fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

fn decimal_chunks(args: &mut [Arg]) -> Result<(), String> {
    match int_at(args, 1).unwrap_or(0) {
        1..=8 => truncation(args),
        size => Err(format!("chunk_size out of [1..8] range ({size})")),
    }
}

fn hexadecimal_chunks(args: &mut [Arg]) -> Result<(), String> {
    let size = int_at(args, 1).unwrap_or(0);
    let needed = !str_at(args, 0).is_empty() || int_at(args, 2).unwrap_or(0) != 0;
    if needed && size <= 0 {
        return Err(format!("chunk_size needs to be positive ({size})"));
    }
    // Without a separator, the chunk size does not matter.
    if !needed && let Some(size) = args.get_mut(1) {
        *size = Arg::Int(0);
    }
    truncation(args)
}

fn truncation(args: &[Arg]) -> Result<(), String> {
    match int_at(args, 2).unwrap_or(0) {
        0 | 1 => Ok(()),
        other => Err(format!("Unsupported truncate value ({other})")),
    }
}

fn control_mask(args: &mut [Arg]) -> Result<(), String> {
    let Some(Arg::Str(text)) = args.first() else {
        return Ok(());
    };
    let mask = match &**text {
        b"" => CONTROLS_BUT_TAB,
        b"any" => CONTROLS,
        b"http" => CONTROLS_OF_HTTP,
        text => {
            let (mask, used) = crate::text::read_c_int(text);
            if used != text.len() {
                let text = String::from_utf8_lossy(text);
                return Err(format!(
                    "cannot parse value '{text}', problem at position {used}; \
                     expecting an integer value (decimal or hex with '0x' prefix)."
                ));
            }
            mask
        }
    };
    let excess = mask & !CONTROLS;
    if excess != 0 {
        let text = String::from_utf8_lossy(text);
        return Err(format!(
            "unsupported excess bits {excess:#x} in argument value {text}"
        ));
    }
    args[0] = Arg::Int(mask);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testing::convert_text;

    /// The manual's examples (§7.3.1), and the answers of HAProxy. The manual is wrong about
    /// `le2dec`.
    #[test]
    fn digits_of_bytes() {
        for (expr, wanted) in [
            ("bin(01020304050607),be2dec(:,2)", "258:772:1286:7"),
            ("bin(01020304050607),be2dec(-,2,1)", "258-772-1286"),
            ("bin(01020304050607),be2dec(,2,1)", "2587721286"),
            ("bin(7f000001),be2dec(.,1)", "127.0.0.1"),
            ("bin(ffffffffffffffff),be2dec(,8)", "18446744073709551615"),
            ("bin(01020304050607),le2dec(:,2)", "513:1027:1541:7"),
            ("bin(01020304050607),le2dec(-,2,1)", "513-1027-1541"),
            ("bin(ff000080),le2dec(,4)", "2147483903"),
            ("bin(01020304050607),be2hex", "01020304050607"),
            ("bin(01020304050607),be2hex(:,2)", "0102:0304:0506:07"),
            ("bin(01020304050607),be2hex(--,2,1)", "0102--0304--0506"),
            ("bin(0102030405060708),be2hex(,3,1)", "010203040506"),
            ("bin(0102),be2hex(,1)", "0102"),
            ("bin(0580),base2", "0000010110000000"),
            ("int(-2),htonl,hex", "FFFFFFFE"),
            ("ipv4(1.2.3.4),base2", "00000001000000100000001100000100"),
        ] {
            assert_eq!(convert_text(expr), wanted, "{expr}");
        }
    }

    #[test]
    fn control_characters_of_a_mask() {
        for (expr, wanted) in [
            ("bin(41),has_ctl", "0"),
            ("bin(4109),has_ctl", "0"),
            ("bin(410a),has_ctl", "1"),
            ("bin(417f),has_ctl", "1"),
            ("bin(4109),has_ctl(any)", "1"),
            ("bin(41097f),has_ctl(http)", "0"),
            ("bin(4100),has_ctl(http)", "1"),
            ("bin(417f),has_ctl(0x100002401)", "1"),
            ("bin(4109),has_ctl(512)", "1"),
            ("bin(4109),has_ctl(01000)", "1"),
        ] {
            assert_eq!(convert_text(expr), wanted, "{expr}");
        }
    }

    /// The result of a long input stops before the limit, as in HAProxy.
    #[test]
    fn long_results_are_cut_between_chunks() {
        let bytes = vec![0xff; crate::SAMPLE_BYTES_MAX];
        let args = [
            crate::args::Arg::Str(Box::from(&b":"[..])),
            crate::args::Arg::Int(2),
        ];
        let value = super::in_chunks(&args, crate::Value::Bin((&bytes[..]).into()), |_, out| {
            out.extend_from_slice(b"65535");
        });
        let Some(crate::Value::Str(text)) = value else {
            panic!("a text");
        };
        assert!(text.len() <= crate::SAMPLE_BYTES_MAX && text.ends_with(b":65535"));
    }
}
