//! Words and signs of a condition.

use super::Error;
use syntax::hex;

/// A word or a sign.
#[derive(Clone, Debug, PartialEq)]
pub enum Token {
    /// A name, a keyword or an enum.
    Word(String),
    Text(String),
    Int(i64),
    Float(f64),
    Bytes(Vec<u8>),
    /// `==`, `(`, `.` and others.
    Sign(&'static str),
}

/// Signs, those that begin with another one before it.
const SIGNS: &[&str] = &[
    "==", "!=", ">=", "<=", ">", "<", "=", "+", "-", "*", "/", "(", ")", "[", "]", "{", "}", ",",
    ".", ":",
];

/// All tokens and where they begin.
pub fn tokens(text: &str) -> Result<Vec<(usize, Token)>, Error> {
    let bytes = text.as_bytes();
    let (mut tokens, mut at) = (Vec::new(), 0);
    while let Some(byte) = bytes.get(at) {
        if byte.is_ascii_whitespace() {
            at += 1;
            continue;
        }
        let (token, len) = match byte {
            b'"' => quoted(&text[at..]).map_err(|why| Error::new(at, why))?,
            b'0'..=b'9' => number(&text[at..]).map_err(|why| Error::new(at, why))?,
            b'.' if bytes.get(at + 1).is_some_and(u8::is_ascii_digit) => {
                number(&text[at..]).map_err(|why| Error::new(at, why))?
            }
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => {
                let len = length(&bytes[at..], |byte| {
                    byte.is_ascii_alphanumeric() || byte == b'_'
                });
                (Token::Word(text[at..at + len].to_owned()), len)
            }
            _ => {
                let sign = SIGNS.iter().find(|sign| text[at..].starts_with(**sign));
                let sign = sign.ok_or_else(|| {
                    let character = text[at..].chars().next().unwrap_or_default();
                    Error::new(
                        at,
                        format!("the character {character:?} has no meaning here"),
                    )
                })?;
                (Token::Sign(sign), sign.len())
            }
        };
        tokens.push((at, token));
        at += len;
    }
    Ok(tokens)
}

fn length(bytes: &[u8], inside: impl Fn(u8) -> bool) -> usize {
    bytes.iter().take_while(|byte| inside(**byte)).count()
}

fn number(text: &str) -> Result<(Token, usize), String> {
    let bytes = text.as_bytes();
    if let Some(digits) = text.strip_prefix("0x") {
        let len = length(digits.as_bytes(), |byte| byte.is_ascii_hexdigit());
        return match hex::decode(&digits.as_bytes()[..len]) {
            Some(bytes) if len > 0 => Ok((Token::Bytes(bytes), len + 2)),
            _ => Err("bytes have an even number of hexadecimal digits".to_owned()),
        };
    }
    let whole = length(bytes, |byte| byte.is_ascii_digit());
    if bytes.get(whole) != Some(&b'.') {
        let value = text[..whole]
            .parse()
            .map_err(|_| "the number has more than 64 bits")?;
        return Ok((Token::Int(value), whole));
    }
    let mut len = whole + 1 + length(&bytes[whole + 1..], |byte| byte.is_ascii_digit());
    if matches!(bytes.get(len), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(len + 1), Some(b'+' | b'-')));
        let digits = length(&bytes[(len + 1 + sign).min(bytes.len())..], |byte| {
            byte.is_ascii_digit()
        });
        if digits > 0 {
            len += 1 + sign + digits;
        }
    }
    let value = text[..len].parse().map_err(|_| "this is no number")?;
    Ok((Token::Float(value), len))
}

fn quoted(text: &str) -> Result<(Token, usize), String> {
    let mut value = String::new();
    let mut characters = text.char_indices().skip(1);
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Ok((Token::Text(value), at + 1)),
            '\\' => match characters.next().map(|(_, escaped)| escaped) {
                Some('n') => value.push('\n'),
                Some('r') => value.push('\r'),
                Some('t') => value.push('\t'),
                Some(escaped @ ('"' | '\\')) => value.push(escaped),
                Some(other) => {
                    return Err(format!(
                        "\\{other} is no escape; a backslash is written \\\\"
                    ));
                }
                None => break,
            },
            _ => value.push(character),
        }
    }
    Err("the text has no closing quote".to_owned())
}
