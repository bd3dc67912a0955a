//! Parses numbers and addresses from bytes, and writes them into byte vectors, without the
//! formatting machinery.

use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr};

/// Appends a decimal number.
#[inline]
pub fn push_uint(out: &mut Vec<u8>, number: u64) {
    // Most numbers in a log line have one digit.
    if number < 10 {
        out.push(b'0' + number as u8);
    } else {
        push_digits(out, number);
    }
}

/// The decimal digits of 0 to 99.
static PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[b'0'; 2]; 100];
    let mut number = 0;
    while number < 100 {
        pairs[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    pairs
};

fn push_digits(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(decimal(number, &mut [0; 20]));
}

/// The decimal digits of a number, in the caller's buffer.
pub fn decimal(mut number: u64, digits: &mut [u8; 20]) -> &[u8] {
    let mut at = digits.len();
    while number >= 10 {
        at -= 2;
        digits[at..at + 2].copy_from_slice(&PAIRS[(number % 100) as usize]);
        number /= 100;
    }
    if number > 0 || at == digits.len() {
        at -= 1;
        digits[at] = b'0' + number as u8;
    }
    &digits[at..]
}

/// Appends a signed decimal number.
pub(crate) fn push_int(out: &mut Vec<u8>, number: i64) {
    if number < 0 {
        out.push(b'-');
    }
    push_uint(out, number.unsigned_abs());
}

/// Appends the last `width` decimal digits, with leading zeros.
pub fn push_padded(out: &mut Vec<u8>, number: u64, width: u32) {
    for position in (0..width).rev() {
        out.push(b'0' + (number / 10_u64.pow(position) % 10) as u8);
    }
}

const HEX_UPPER: &[u8; 16] = b"0123456789ABCDEF";

/// The two hexadecimal digits of a byte, in upper case.
pub(crate) fn hex_digits(byte: u8) -> [u8; 2] {
    [byte >> 4, byte & 15].map(|digit| HEX_UPPER[usize::from(digit)])
}

/// Appends a byte as two hexadecimal digits in upper case.
pub(crate) fn push_hex(out: &mut Vec<u8>, byte: u8) {
    out.extend_from_slice(&hex_digits(byte));
}

/// Appends a number in upper-case hexadecimal, at least `width` digits wide.
pub(crate) fn push_hex_number(out: &mut Vec<u8>, number: u64, width: u32) {
    let digits = (64 - number.leading_zeros()).div_ceil(4).max(width).max(1);
    for position in (0..digits).rev() {
        out.push(HEX_UPPER[(number >> (4 * position) & 15) as usize]);
    }
}

/// Appends an IP address as text.
pub fn push_ip(out: &mut Vec<u8>, ip: IpAddr) {
    match ip {
        IpAddr::V4(ip) => push_ipv4(out, ip),
        IpAddr::V6(ip) => match ip.segments() {
            // C's inet_ntop writes a compatible address (RFC 4291 §2.5.5.1) like a mapped one.
            [0, 0, 0, 0, 0, 0, high, _] if high != 0 => {
                out.extend_from_slice(b"::");
                push_ipv4(out, Ipv4Addr::from(u128::from(ip) as u32));
            }
            // Writing to a vector cannot fail.
            _ => drop(write!(out, "{ip}")),
        },
    }
}

fn push_ipv4(out: &mut Vec<u8>, ip: Ipv4Addr) {
    for (index, octet) in ip.octets().into_iter().enumerate() {
        if index > 0 {
            out.push(b'.');
        }
        push_uint(out, u64::from(octet));
    }
}

/// Parses a number like HAProxy: as many digits as there are, 0 without any; saturates. Returns the
/// number and the number of bytes consumed.
pub(crate) fn read_int(bytes: &[u8]) -> (i64, usize) {
    let (negative, start) = match bytes.first() {
        Some(b'-') => (true, 1),
        Some(b'+') => (false, 1),
        _ => (false, 0),
    };
    let mut value = 0_i64;
    let mut at = start;
    while let Some(digit) = bytes.get(at).filter(|byte| byte.is_ascii_digit()) {
        let digit = i64::from(digit - b'0');
        value = value.saturating_mul(10);
        value = if negative {
            value.saturating_sub(digit)
        } else {
            value.saturating_add(digit)
        };
        at += 1;
    }
    (value, if at == start { 0 } else { at })
}

/// The IPv4 address at the beginning of a text, and its length: four numbers. Leading zeros are
/// allowed, and neither a digit nor a dot may follow.
pub(crate) fn ipv4_prefix(text: &[u8]) -> Option<(Ipv4Addr, usize)> {
    let is_end = |byte: &u8| !(byte.is_ascii_digit() || *byte == b'.');
    let end = text.iter().position(is_end).unwrap_or(text.len());
    let mut octets = [0_u8; 4];
    let mut count = 0;
    for part in text[..end].split(|byte| *byte == b'.') {
        let number = part.iter().try_fold(0_u8, |number, digit| {
            number.checked_mul(10)?.checked_add(digit - b'0')
        });
        *octets.get_mut(count)? = number.filter(|_| !part.is_empty())?;
        count += 1;
    }
    (count == 4).then_some((octets.into(), end))
}

/// Parses all bytes as decimal digits without a check, like HAProxy in places where it trusts them;
/// wraps.
pub(crate) fn read_ui(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0_u32, |sum, byte| {
        let digit = u32::from(*byte).wrapping_sub(u32::from(b'0'));
        sum.wrapping_mul(10).wrapping_add(digit)
    })
}

/// Parses a whole text as a number; None if it is not a number, or does not fit.
pub(crate) fn parse_int(text: &str) -> Option<i64> {
    text.parse().ok()
}

/// Parses an integer like C's `strtoll` with base 0: `0x` begins hexadecimal digits, another `0`
/// octal ones; saturates. Returns the integer and the number of bytes consumed, 0 without any
/// digit.
pub(crate) fn read_c_int(bytes: &[u8]) -> (i64, usize) {
    let sign = usize::from(matches!(bytes.first(), Some(b'-' | b'+')));
    let (base, start) = match &bytes[sign..] {
        [b'0', b'x' | b'X', digit, ..] if digit.is_ascii_hexdigit() => (16, sign + 2),
        [b'0', ..] => (8, sign),
        _ => (10, sign),
    };
    let mut value = 0_i64;
    let mut at = start;
    while let Some(digit) = bytes
        .get(at)
        .and_then(|byte| char::from(*byte).to_digit(base))
    {
        value = value.saturating_mul(base.into());
        value = if bytes[0] == b'-' {
            value.saturating_sub(digit.into())
        } else {
            value.saturating_add(digit.into())
        };
        at += 1;
    }
    (value, if at == start { 0 } else { at })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn numbers_are_written_as_the_standard_library_does() {
        for number in [0, 1, 9, 10, 99, 100, 65_535, i64::MAX, -1, -10, i64::MIN] {
            assert_eq!(text(|out| push_int(out, number)), number.to_string());
        }
        assert_eq!(text(|out| push_hex_number(out, 0x2f, 4)), "002F");
        assert_eq!(text(|out| push_hex_number(out, 0x1_2345, 4)), "12345");
        assert_eq!(text(|out| push_padded(out, 7, 3)), "007");
        assert_eq!(
            text(|out| push_ip(out, "127.0.0.1".parse().expect("ip"))),
            "127.0.0.1"
        );
        assert_eq!(
            text(|out| push_ip(out, "2001:db8::1".parse().expect("ip"))),
            "2001:db8::1"
        );
        for ip in ["::1.2.3.4", "::ffff:1.2.3.4", "::1", "::", "::1:0:0"] {
            assert_eq!(text(|out| push_ip(out, ip.parse().expect("ip"))), ip);
        }
    }

    #[test]
    fn numbers_are_read_up_to_the_first_other_byte_and_saturate() {
        for (bytes, value, used) in [
            ("12ab", 12, 2),
            ("-7", -7, 2),
            ("+3,", 3, 2),
            ("", 0, 0),
            ("-", 0, 0),
            ("x", 0, 0),
            ("99999999999999999999", i64::MAX, 20),
            ("-99999999999999999999", i64::MIN, 21),
        ] {
            assert_eq!(read_int(bytes.as_bytes()), (value, used), "{bytes}");
        }
    }

    #[test]
    fn numbers_as_c_reads_them() {
        for (bytes, value, used) in [
            ("12", 12, 2),
            ("-012x", -10, 4),
            ("0x1fg", 31, 4),
            ("0x", 0, 1),
            ("-0X10", -16, 5),
            ("", 0, 0),
            ("x", 0, 0),
            ("0xffffffffffffffffffff", i64::MAX, 22),
        ] {
            assert_eq!(read_c_int(bytes.as_bytes()), (value, used), "{bytes}");
        }
    }
}
