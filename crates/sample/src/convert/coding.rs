//! Codings: hexadecimal, base64, URL, JSON.

use super::{Convert, bytes_in, convert, written};
use crate::args::ArgKind::{Int, Str};
use crate::args::{Arg, NONE, int_at, spec, str_at};
use crate::text::push_hex;
use crate::{Kind, SAMPLE_BYTES_MAX, Value};

pub(crate) const CONVERTERS: &[Convert] = &[
    convert(
        "hex",
        NONE,
        Kind::Bin,
        Kind::Str,
        "two hexadecimal digits a byte",
        |_, value, _| {
            coded(&value, |bytes, out| {
                for byte in bytes {
                    push_hex(out, *byte);
                }
                Some(())
            })
        },
    ),
    convert(
        "hex2i",
        NONE,
        Kind::Str,
        Kind::Int,
        "hexadecimal digits as an integer",
        |_, value, _| {
            let digits = bytes_in(&value)?;
            let value = digits.iter().try_fold(0_u64, |sum, digit| {
                Some((sum << 4) | u64::from(http::hex_digit(*digit)?))
            })?;
            Some(Value::Int(value as i64))
        },
    ),
    convert(
        "base64",
        NONE,
        Kind::Bin,
        Kind::Str,
        "base64 (RFC 4648 §4)",
        |_, value, _| {
            coded(&value, |bytes, out| {
                encode64(bytes, out);
                Some(())
            })
        },
    ),
    convert(
        "ub64enc",
        NONE,
        Kind::Bin,
        Kind::Str,
        "base64 for URLs, without padding (RFC 4648 §5)",
        |_, value, _| {
            coded(&value, |bytes, out| {
                encode_in(bytes, URL, false, out);
                Some(())
            })
        },
    ),
    convert(
        "b64dec",
        NONE,
        Kind::Str,
        Kind::Bin,
        "decodes base64",
        |_, value, _| {
            let decoded = coded(&value, decode64)?;
            as_bin(decoded)
        },
    ),
    convert(
        "ub64dec",
        NONE,
        Kind::Str,
        Kind::Bin,
        "decodes base64 for URLs",
        |_, value, _| {
            let decoded = coded(&value, decode_url64)?;
            as_bin(decoded)
        },
    ),
    convert(
        "url_dec",
        spec(0, &[Int]),
        Kind::Str,
        Kind::Str,
        "decodes percent coding; in forms + is a space",
        |args, value, _| {
            let in_form = int_at(args, 0).is_some_and(|flag| flag != 0);
            coded(&value, |bytes, out| url_decode(bytes, in_form, out))
        },
    ),
    convert(
        "url_enc",
        spec(0, &[Str]),
        Kind::Str,
        Kind::Str,
        "percent coding for a query",
        |_, value, _| {
            coded(&value, |bytes, out| {
                for byte in bytes {
                    match byte {
                        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                            out.push(*byte)
                        }
                        byte => {
                            out.push(b'%');
                            push_hex(out, *byte);
                        }
                    }
                }
                Some(())
            })
        },
    )
    .checked(url_enc_kind),
    convert(
        "json",
        spec(1, &[Str]),
        Kind::Str,
        Kind::Str,
        "escaped for a JSON string",
        |args, value, _| {
            let input = *INPUTS.get(usize::try_from(int_at(args, 0)?).ok()?)?;
            coded(&value, |bytes, out| json(bytes, input, out))
        },
    )
    .checked(json_input),
];

/// The result of `write` on the bytes; None if it fails or is too long.
fn coded<'a>(
    value: &Value<'_>,
    write: impl FnOnce(&[u8], &mut Vec<u8>) -> Option<()>,
) -> Option<Value<'a>> {
    let bytes = bytes_in(value)?;
    written(|out| write(bytes, out)).map(Value::Str)
}

fn as_bin(value: Value<'_>) -> Option<Value<'_>> {
    match value {
        Value::Str(bytes) => Some(Value::Bin(bytes)),
        _ => None,
    }
}

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const URL: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Encodes base64 with padding.
pub(super) fn encode64(bytes: &[u8], out: &mut Vec<u8>) {
    encode_in(bytes, STANDARD, true, out);
}

fn encode_in(bytes: &[u8], alphabet: &[u8; 64], padded: bool, out: &mut Vec<u8>) {
    for chunk in bytes.chunks(3) {
        let [a, b, c] = [
            chunk[0],
            chunk.get(1).copied().unwrap_or(0),
            chunk.get(2).copied().unwrap_or(0),
        ];
        let bits = u32::from(a) << 16 | u32::from(b) << 8 | u32::from(c);
        for position in 0..4 {
            if position <= chunk.len() {
                out.push(alphabet[(bits >> (18 - 6 * position) & 63) as usize]);
            } else if padded {
                out.push(b'=');
            }
        }
    }
}

/// Decodes base64 like HAProxy: padding may end any group of four, and bits beyond the last byte
/// are dropped.
pub(crate) fn decode64(text: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let (groups, []) = text.as_chunks::<4>() else {
        return None;
    };
    for group in groups {
        let padding = group.iter().rev().take_while(|byte| **byte == b'=').count();
        if padding == 4 {
            return None;
        }
        push_group(group, 4 - padding, &STANDARD_VALUES, out)?;
    }
    Some(())
}

/// Decodes base64 for URLs, which has no padding. As in HAProxy, `=` counts as the last letter.
pub(super) fn decode_url64(text: &[u8], out: &mut Vec<u8>) -> Option<()> {
    for group in text.chunks(4) {
        if group.len() == 1 {
            return None;
        }
        push_group(group, group.len(), &URL_VALUES, out)?;
    }
    Some(())
}

/// Decodes the bytes of the first `count` letters of a group.
fn push_group(group: &[u8], count: usize, values: &[u8; 256], out: &mut Vec<u8>) -> Option<()> {
    let mut bits = 0_u32;
    for position in 0..4 {
        let value = match group[..count].get(position) {
            Some(letter) => values[usize::from(*letter)],
            None => 0,
        };
        if value == NO_LETTER {
            return None;
        }
        bits = bits << 6 | u32::from(value);
    }
    out.extend_from_slice(&bits.to_be_bytes()[1..count.max(1)]);
    Some(())
}

const NO_LETTER: u8 = 255;
static STANDARD_VALUES: [u8; 256] = values(STANDARD);
static URL_VALUES: [u8; 256] = values(URL);

/// The index of each byte in an alphabet.
const fn values(alphabet: &[u8; 64]) -> [u8; 256] {
    let mut values = [NO_LETTER; 256];
    let mut place = 0;
    while place < 64 {
        values[alphabet[place] as usize] = place as u8;
        place += 1;
    }
    if alphabet[63] == b'_' {
        values[b'=' as usize] = 63;
    }
    values
}

/// A `+` means a space in a form, and after the first `?`. An invalid escape fails; a NUL byte ends
/// the text.
fn url_decode(text: &[u8], mut in_form: bool, out: &mut Vec<u8>) -> Option<()> {
    let mut rest = crate::cast::until_nul(text);
    loop {
        match rest {
            [] => return Some(()),
            [b'%', high, low, after @ ..] => {
                out.push(http::hex_byte(*high, *low)?);
                rest = after;
            }
            [b'%', ..] => return None,
            [b'+', after @ ..] if in_form => {
                out.push(b' ');
                rest = after;
            }
            [byte, after @ ..] => {
                in_form |= *byte == b'?';
                out.push(*byte);
                rest = after;
            }
        }
    }
}

fn url_enc_kind(args: &mut [Arg]) -> Result<(), String> {
    match str_at(args, 0) {
        b"" | b"query" => Ok(()),
        _ => Err("Unexpected encode type. Allowed value is 'query'".into()),
    }
}

/// How `json` reads its input (manual §7.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Input {
    name: &'static str,
    /// The input is UTF-8; otherwise each byte is a code point.
    utf8: bool,
    /// Overlong encodings of code points are accepted.
    permissive: bool,
    /// Invalid input is skipped; otherwise it fails.
    skipping: bool,
}

const fn input(name: &'static str, utf8: bool, permissive: bool, skipping: bool) -> Input {
    Input {
        name,
        utf8,
        permissive,
        skipping,
    }
}

const INPUTS: [Input; 5] = [
    input("ascii", false, false, false),
    input("utf8", true, false, false),
    input("utf8s", true, false, true),
    input("utf8p", true, true, false),
    input("utf8ps", true, true, true),
];

fn json_input(args: &mut [Arg]) -> Result<(), String> {
    let name = str_at(args, 0);
    let named = INPUTS
        .iter()
        .position(|input| input.name.as_bytes() == name);
    let Some(place) = named.or(name.is_empty().then_some(0)) else {
        return Err(
            "Unexpected input code type. Allowed value are 'ascii', 'utf8', 'utf8s', 'utf8p' and 'utf8ps'".into()
        );
    };
    args[0] = Arg::Int(place as i64);
    Ok(())
}

fn json(bytes: &[u8], input: Input, out: &mut Vec<u8>) -> Option<()> {
    let mut rest = bytes;
    while let [first, after @ ..] = rest {
        if !input.utf8 {
            json_char(u32::from(*first), out);
            rest = after;
            continue;
        }
        let point = code_point(rest);
        rest = &rest[point.len..];
        match point.code {
            // Four digits cannot represent larger code points.
            Some(code @ ..=0xffff) if !point.overlong || input.permissive => json_char(code, out),
            _ if input.skipping => {}
            _ => return None,
        }
        if out.len() > SAMPLE_BYTES_MAX {
            return None;
        }
    }
    Some(())
}

/// The code point of a UTF-8 sequence; the old form with up to six bytes is accepted too.
struct CodePoint {
    /// None for a broken sequence and for a value that is no character.
    code: Option<u32>,
    /// The sequence is longer than necessary.
    overlong: bool,
    /// The number of bytes read.
    len: usize,
}

/// Decodes the sequence at the beginning of bytes that are not empty.
fn code_point(bytes: &[u8]) -> CodePoint {
    let first = bytes[0];
    let len = match first.leading_ones() {
        0 => 1,
        count @ 2..=6 => count as usize,
        _ => 0,
    };
    let broken = |len| CodePoint {
        code: None,
        overlong: false,
        len,
    };
    if len == 0 || len > bytes.len() {
        return broken(1);
    }
    let mut code = match len {
        1 => u32::from(first),
        _ => u32::from(first & (0x7f >> len)),
    };
    for (at, byte) in bytes[..len].iter().enumerate().skip(1) {
        if byte & 0xc0 != 0x80 {
            return broken(at);
        }
        code = code << 6 | u32::from(byte & 0x3f);
    }
    let needed = match code {
        0..0x80 => 1,
        0x80..0x800 => 2,
        0x800..0x1_0000 => 3,
        0x1_0000..0x20_0000 => 4,
        _ => len,
    };
    CodePoint {
        code: (!matches!(code, 0xd800..=0xdfff | 0xfffe | 0xffff)).then_some(code),
        overlong: len > needed,
        len,
    }
}

fn json_char(code: u32, out: &mut Vec<u8>) {
    let short = match code {
        0x22 => b'"',
        0x5c => b'\\',
        0x2f => b'/',
        0x08 => b'b',
        0x0c => b'f',
        0x0d => b'r',
        0x0a => b'n',
        0x09 => b't',
        0x20..=0x7e => return out.push(code as u8),
        _ => {
            out.extend_from_slice(b"\\u");
            let start = out.len();
            push_hex(out, (code >> 8) as u8);
            push_hex(out, code as u8);
            out[start..].make_ascii_lowercase();
            return;
        }
    };
    out.extend_from_slice(&[b'\\', short]);
}

#[cfg(test)]
mod tests {
    use crate::testing::{convert_text, none};

    #[test]
    fn codings() {
        for (expr, wanted) in [
            ("str(Az0),hex", "417A30"),
            ("bin(417a30)", "Az0"),
            ("str(1f),hex2i", "31"),
            ("int(5),hex", "0000000000000005"),
            ("bool(true),hex", "0000000000000001"),
            ("str(M),base64", "TQ=="),
            ("str(Ma),base64", "TWE="),
            ("str(Man),base64", "TWFu"),
            ("str(TWE=),b64dec", "Ma"),
            ("str(TWFu),b64dec", "Man"),
            ("bin(fbff),ub64enc", "-_8"),
            ("str(-_8),ub64dec,hex", "FBFF"),
            ("str(a%20b+c),url_dec", "a b+c"),
            ("str(a%20b+c),url_dec(1)", "a b c"),
            ("str(a+b?c+d),url_dec", "a+b?c d"),
            ("str('a b/?&ü'),url_enc", "a%20b%2F%3F%26%C3%BC"),
            (r#"str('a"\\/b'),json(ascii)"#, r#"a\"\\\\\/b"#),
            ("str(ü),json(utf8)", "\\u00fc"),
            ("str(ü),json(ascii)", "\\u00c3\\u00bc"),
        ] {
            assert_eq!(convert_text(expr), wanted, "{expr}");
        }
        for expr in [
            "str(1fzz),hex2i",
            "str(TWE),b64dec",
            "str(====),b64dec",
            "str(a%2),url_dec",
            "str(a%zz),url_dec",
            "bin(ff),json(utf8)",
        ] {
            none(expr);
        }
    }
}
