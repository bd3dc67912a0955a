//! A distcc message: tokens of four letters, each with eight hexadecimal digits. The digits are a
//! number, or the length of the bytes that follow them (distcc's doc/protocol-3.txt).

use super::Sniffed;

/// A token and its parameter.
const TOKEN_BYTES: usize = 12;

/// Tokens whose parameter is a number; no bytes follow it.
const BODILESS: [&[u8; 4]; 5] = [b"ARGC", b"DIST", b"DONE", b"NFIL", b"STAT"];

/// A token that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token<'a> {
    /// Its parameter.
    pub parameter: u32,
    /// The bytes after it that have arrived.
    pub body: &'a [u8],
    /// All of these bytes have arrived.
    pub is_whole: bool,
}

/// The token of this name by its occurrence, counted from 1; 0 is any. `room` is the size of the
/// buffer: bytes that do not fit are not waited for.
#[must_use]
pub fn token<'a>(
    bytes: &'a [u8],
    name: [u8; 4],
    occurrence: u32,
    room: usize,
) -> Sniffed<Token<'a>> {
    let mut at = 0_usize;
    let mut seen = 0;
    loop {
        let Some(head) = bytes
            .get(at..)
            .and_then(|rest| rest.first_chunk::<TOKEN_BYTES>())
        else {
            return if at.saturating_add(TOKEN_BYTES) <= room {
                Sniffed::More
            } else {
                Sniffed::No
            };
        };
        let (found, digits) = head.split_at(4);
        let Some(parameter) = parameter(digits) else {
            return Sniffed::No;
        };
        at += TOKEN_BYTES;
        let is_bodiless = BODILESS.iter().any(|name| *name == found);
        let length = if is_bodiless { 0 } else { parameter as usize };
        if found == name {
            seen += 1;
            if occurrence == 0 || seen == occurrence {
                let rest = &bytes[at..];
                return Sniffed::Found(Token {
                    parameter,
                    body: &rest[..length.min(rest.len())],
                    is_whole: length <= rest.len(),
                });
            }
        }
        at = at.saturating_add(length);
    }
}

fn parameter(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0_u32, |value, digit| {
        let digit = char::from(*digit).to_digit(16)?;
        Some(value << 4 | digit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: usize = 1000;
    const JOB: &[u8] = b"DIST00000001ARGC00000002ARGV00000003gccARGV00000002-cDOTI00000006int a;";

    fn found(name: &[u8; 4], occurrence: u32) -> Option<(u32, &'static [u8])> {
        match token(JOB, *name, occurrence, ROOM) {
            Sniffed::Found(token) => Some((token.parameter, token.body)),
            _ => None,
        }
    }

    #[test]
    fn tokens_by_name_and_occurrence() {
        assert_eq!(found(b"DIST", 0), Some((1, &b""[..])));
        assert_eq!(found(b"ARGC", 1), Some((2, &b""[..])));
        assert_eq!(found(b"ARGV", 0), Some((3, &b"gcc"[..])));
        assert_eq!(found(b"ARGV", 2), Some((2, &b"-c"[..])));
        assert_eq!(found(b"DOTI", 1), Some((6, &b"int a;"[..])));
        assert_eq!(token(JOB, *b"ARGV", 3, ROOM), Sniffed::More);
    }

    #[test]
    fn what_cannot_come_is_not_waited_for() {
        let huge = b"DOTIffffffffint";
        let Sniffed::Found(body) = token(huge, *b"DOTI", 0, ROOM) else {
            panic!("it is there");
        };
        assert_eq!((body.body, body.is_whole), (&b"int"[..], false));
        assert_eq!(token(huge, *b"DONE", 0, ROOM), Sniffed::No);
        assert_eq!(token(b"DIST0000000g", *b"DIST", 0, ROOM), Sniffed::No);
        assert_eq!(token(b"DIST", *b"DIST", 0, ROOM), Sniffed::More);
    }
}
