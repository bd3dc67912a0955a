//! The reply of an agent of the stream processing offload protocol to HELLO (HAProxy's
//! `doc/SPOE.txt` §3.2).

use config::model::CheckStatus;

use super::Parsed;

pub(crate) const INVALID: &str = "invalid frame received";
const AGENT_HELLO: u8 = 101;
const AGENT_DISCONNECT: u8 = 102;
/// Length, type, flags, stream and frame.
const HEADER_BYTES: usize = 11;
const FRAME_BYTES_MIN: u64 = 256;
const FRAME_BYTES_MAX: u64 = 16384 - 4;

/// Error texts by their code.
const REASONS: [&str; 14] = [
    "normal",
    "I/O error",
    "a timeout occurred",
    "frame is too big",
    INVALID,
    "version value not found",
    "max-frame-size value not found",
    "capabilities value not found",
    "unsupported version",
    "max-frame-size too big or too small",
    "fragmentation not supported",
    "invalid interlaced frames",
    "frame-id not found",
    "resource allocation error",
];

fn failed(code: usize) -> Parsed {
    Parsed::Failed {
        status: CheckStatus::Layer7Invalid,
        code: code as i64,
        text: REASONS
            .get(code)
            .unwrap_or(&"an unknown error occurred")
            .to_string(),
    }
}

/// Parses a frame AGENT-HELLO.
pub(crate) fn hello(input: &[u8]) -> Parsed {
    let Some((header, rest)) = input.split_at_checked(HEADER_BYTES) else {
        return Parsed::Wait;
    };
    let length = u32::from_be_bytes([header[0], header[1], header[2], header[3]]) as usize;
    let kind = header[4];
    let is_hello = matches!(kind, AGENT_HELLO | AGENT_DISCONNECT);
    if !is_hello || header[5..] != [0, 0, 0, 1, 0, 0] {
        return failed(4);
    }
    if input.len() < 4 + length {
        return Parsed::Wait;
    }
    match kind {
        AGENT_DISCONNECT => disconnect(rest),
        _ => items(rest),
    }
}

fn disconnect(mut rest: &[u8]) -> Parsed {
    let mut code = 99;
    while !rest.is_empty() {
        let Some((name, value)) = item(&mut rest) else {
            return failed(4);
        };
        if let (b"status-code", Value::Int(number)) = (name, value) {
            code = usize::try_from(number).unwrap_or(99);
        }
    }
    failed(code)
}

fn items(mut rest: &[u8]) -> Parsed {
    let (mut version, mut size, mut capabilities) = (false, false, false);
    while !rest.is_empty() {
        let Some((name, value)) = item(&mut rest) else {
            return failed(4);
        };
        match (name, value) {
            (b"version", Value::Text(text)) => {
                if text.starts_with(b"2.") || text == b"2" {
                    version = true
                } else {
                    return failed(8);
                }
            }
            (b"max-frame-size", Value::Int(number)) => {
                if !(FRAME_BYTES_MIN..=FRAME_BYTES_MAX).contains(&number) {
                    return failed(9);
                }
                size = true;
            }
            (b"capabilities", Value::Text(_)) => capabilities = true,
            (b"version" | b"max-frame-size" | b"capabilities", _) => return failed(4),
            _ => {}
        }
    }
    match (version, size, capabilities) {
        (false, _, _) => failed(5),
        (_, false, _) => failed(6),
        (_, _, false) => failed(7),
        (true, true, true) => Parsed::Good,
    }
}

enum Value<'a> {
    Int(u64),
    Text(&'a [u8]),
    Other,
}

/// Takes a name and its value from the front.
fn item<'a>(rest: &mut &'a [u8]) -> Option<(&'a [u8], Value<'a>)> {
    let name = text(rest)?;
    let (kind, after) = rest.split_first()?;
    *rest = after;
    let skip = |rest: &mut &'a [u8], bytes: usize| {
        *rest = rest.get(bytes..)?;
        Some(Value::Other)
    };
    let value = match kind & 0x0f {
        0 | 1 => Value::Other,
        2..=5 => Value::Int(varint(rest)?),
        6 => skip(rest, 4)?,
        7 => skip(rest, 16)?,
        8 | 9 => Value::Text(text(rest)?),
        _ => return None,
    };
    (!name.is_empty()).then_some((name, value))
}

fn text<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(varint(rest)?).ok()?;
    let (text, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(text)
}

/// A variable-length number: up to 239 in one byte; otherwise four bits in the first byte and seven
/// in each following one.
fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut next = || {
        let (first, after) = rest.split_first()?;
        *rest = after;
        Some(u64::from(*first))
    };
    let mut number = next()?;
    if number < 240 {
        return Some(number);
    }
    let mut shift = 4;
    loop {
        let byte = next()?;
        number = number.checked_add(byte.checked_shl(shift)?)?;
        if byte < 128 {
            return Some(number);
        }
        shift += 7;
        if shift > 60 {
            return None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(items: &[u8]) -> Vec<u8> {
        let length = (items.len() + 7) as u32;
        let mut frame = length.to_be_bytes().to_vec();
        frame.extend([AGENT_HELLO, 0, 0, 0, 1, 0, 0]);
        frame.extend(items);
        frame
    }

    #[test]
    fn hellos_are_read() {
        let items = b"\x07version\x082\x00".to_vec();
        assert_eq!(hello(&frame(&items)), failed(4), "a length that is cut off");
        let items =
            b"\x07version\x08\x032.0\x0emax-frame-size\x03\xfc\xf0\x06\x0ccapabilities\x08\x00";
        let whole = frame(items);
        assert_eq!(hello(&whole), Parsed::Good);
        for cut in 0..whole.len() {
            assert_eq!(hello(&whole[..cut]), Parsed::Wait, "{cut}");
        }
        assert_eq!(hello(&frame(b"\x07version\x08\x031.0")), failed(8));
        assert_eq!(hello(&frame(b"")), failed(5));
        assert_eq!(hello(&frame(b"\x07version\x08\x032.0")), failed(6));
        assert_eq!(hello(&frame(b"\x0emax-frame-size\x03\x05")), failed(9));
    }
}
