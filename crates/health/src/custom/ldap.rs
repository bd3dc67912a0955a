//! The response to an LDAP bind (RFC 4511 §4.2.2).

use config::model::CheckStatus;

use super::Parsed;

const NOT_LDAP: &str = "Not LDAPv3 protocol";

/// Parses a bind response. The byte before the length was already checked.
pub(crate) fn bind(input: &[u8]) -> Parsed {
    let Some((length, rest)) = input.get(1..).and_then(length) else {
        return Parsed::Wait;
    };
    let Ok(length) = length else {
        return Parsed::invalid(NOT_LDAP);
    };
    if rest.len() < length {
        return Parsed::Wait;
    }
    // Message number 1, and the tag of a bind response.
    let Some(rest) = rest.strip_prefix(b"\x02\x01\x01\x61") else {
        return Parsed::invalid(NOT_LDAP);
    };
    let Some((_, rest)) = any_length(rest) else {
        return Parsed::Wait;
    };
    match rest {
        [0x0a, 0x01, 0, ..] => Parsed::Good,
        [0x0a, 0x01, code, ..] => Parsed::Failed {
            status: CheckStatus::Layer7WrongStatus,
            code: i64::from(*code),
            text: "See RFC: http://tools.ietf.org/html/rfc4511#section-4.1.9".to_owned(),
        },
        [] | [0x0a] | [0x0a, 0x01] => Parsed::Wait,
        _ => Parsed::invalid(NOT_LDAP),
    }
}

/// A length and the bytes after it; an error if its form is not the one that servers use. None if
/// it is incomplete.
fn length(input: &[u8]) -> Option<(Result<usize, ()>, &[u8])> {
    let (first, rest) = input.split_first()?;
    let bytes = match first {
        0..=0x7f => return Some((Ok(usize::from(*first)), rest)),
        _ => usize::from(first & 0x7f),
    };
    if !matches!(bytes, 2 | 4) {
        return Some((Err(()), rest));
    }
    let (number, rest) = rest.split_at_checked(bytes)?;
    let number = number
        .iter()
        .fold(0_usize, |number, byte| number << 8 | usize::from(*byte));
    Some((Ok(number), rest))
}

/// Skips a length of any form.
fn any_length(input: &[u8]) -> Option<((), &[u8])> {
    let (first, rest) = input.split_first()?;
    let bytes = match first {
        0..=0x7f => 0,
        _ => usize::from(first & 0x7f),
    };
    Some(((), rest.get(bytes..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binds_are_read() {
        let good = b"\x30\x0c\x02\x01\x01\x61\x07\x0a\x01\x00\x04\x00\x04\x00";
        assert_eq!(bind(good), Parsed::Good);
        for cut in 0..good.len() {
            assert_eq!(bind(&good[..cut]), Parsed::Wait, "{cut}");
        }
        // Active Directory writes lengths of four bytes.
        let long = b"\x30\x84\x00\x00\x00\x10\x02\x01\x01\x61\x84\x00\x00\x00\x07\x0a\x01\x00\x04\x00\x04\x00";
        assert_eq!(bind(long), Parsed::Good);
        let refused = b"\x30\x0c\x02\x01\x01\x61\x07\x0a\x01\x31\x04\x00\x04\x00";
        assert!(matches!(bind(refused), Parsed::Failed { code: 0x31, .. }));
        let other = b"\x30\x0c\x02\x01\x02\x61\x07\x0a\x01\x00\x04\x00\x04\x00";
        assert_eq!(bind(other), Parsed::invalid(NOT_LDAP));
        assert_eq!(bind(b"\x30\x83aaaa"), Parsed::invalid(NOT_LDAP));
    }
}
