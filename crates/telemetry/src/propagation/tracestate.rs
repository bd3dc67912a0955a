//! `tracestate` (W3C Trace Context level 2 §3.3), and the two values that OpenTelemetry's samplers keep in it.
//!
//! A state is kept as the bytes of one field: [`read`] makes them of what came, without blanks around its members. The
//! functions take any other bytes too, of which they see what is well formed.

mod sampling;

use super::hex::trim;

pub use sampling::{THRESHOLD_MAX, randomness, set_threshold, threshold, threshold_of};

/// Members of a list (§3.3.1.1).
pub const MEMBERS_MAX: usize = 32;
/// Bytes of a list: what everyone passes on (§3.3.1.5).
pub const STATE_BYTES_MAX: usize = 512;
/// Bytes of a key (§3.3.1.3.1).
const KEY_BYTES_MAX: usize = 256;
/// Bytes of a value (§3.3.1.3.2).
const VALUE_BYTES_MAX: usize = 256;

/// Appends the list of a field's lines, in their order, without blanks around members and without empty members. Nothing is
/// appended, and false returned, if it is malformed or too long: all of it is to be dropped then (§4.3, step 7).
pub fn read<'a>(lines: impl IntoIterator<Item = &'a [u8]>, out: &mut Vec<u8>) -> bool {
    let start = out.len();
    let mut count = 0;
    for line in lines {
        if !append(line, start, &mut count, out) {
            out.truncate(start);
            return false;
        }
    }
    true
}

/// Appends one line to the list that begins at `start` and has `count` members.
pub(super) fn append(line: &[u8], start: usize, count: &mut usize, out: &mut Vec<u8>) -> bool {
    for member in line.split(|byte| *byte == b',').map(trim) {
        if member.is_empty() {
            continue;
        }
        *count += 1;
        let comma = usize::from(out.len() > start);
        let room = STATE_BYTES_MAX.saturating_sub(out.len() - start + comma);
        if *count > MEMBERS_MAX || member.len() > room || split(member).is_none() {
            return false;
        }
        if comma == 1 {
            out.push(b',');
        }
        out.extend_from_slice(member);
    }
    true
}

/// The well-formed members of a list, each a key and its value; not more than a list may have.
pub fn members(state: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    whole_members(state).filter_map(split)
}

/// The value of a key.
#[must_use]
pub fn get<'a>(state: &'a [u8], key: &[u8]) -> Option<&'a [u8]> {
    members(state)
        .find(|(name, _)| *name == key)
        .map(|(_, value)| value)
}

/// The members of a list, well formed or not.
fn whole_members(state: &[u8]) -> impl Iterator<Item = &[u8]> {
    state
        .split(|byte| *byte == b',')
        .map(trim)
        .filter(|member| !member.is_empty())
        .take(MEMBERS_MAX)
}

/// A member's key and value, if both are well formed.
fn split(member: &[u8]) -> Option<(&[u8], &[u8])> {
    let equals = member.iter().position(|byte| *byte == b'=')?;
    let (key, value) = (&member[..equals], &member[equals + 1..]);
    (is_key(key) && is_value(value)).then_some((key, value))
}

/// §3.3.1.3.1: begins with a lower-case letter or a digit.
fn is_key(key: &[u8]) -> bool {
    let inside =
        |byte: &u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'*' | b'/' | b'@');
    matches!(key.first(), Some(b'a'..=b'z' | b'0'..=b'9'))
        && key.len() <= KEY_BYTES_MAX
        && key.iter().all(inside)
}

/// §3.3.1.3.2: visible characters and spaces but `,` and `=`; no space at the end.
fn is_value(value: &[u8]) -> bool {
    value.last().is_some_and(|last| *last != b' ')
        && value.len() <= VALUE_BYTES_MAX
        && value
            .iter()
            .all(|byte| matches!(byte, b' '..=b'~') && !matches!(byte, b',' | b'='))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(lines: &[&str]) -> Option<String> {
        let mut out = b"before".to_vec();
        let good = read(lines.iter().map(|line| line.as_bytes()), &mut out);
        let text = String::from_utf8(out).unwrap();
        let list = text.strip_prefix("before").unwrap().to_string();
        assert!(good || list.is_empty());
        good.then_some(list)
    }

    #[test]
    fn lines_are_joined_without_blanks() {
        assert_eq!(
            joined(&["a=1 ,\tb=2", "", " , c@d=x y ,"]).unwrap(),
            "a=1,b=2,c@d=x y"
        );
        assert_eq!(joined(&[]).unwrap(), "");
    }

    #[test]
    fn what_is_malformed_is_dropped_whole() {
        for bad in [
            "a", "a=", "=b", "A=b", "a=b=c", "a =b", "a=\u{e9}", "a=b,!", "_a=b", "a=\x01",
        ] {
            assert_eq!(joined(&["k=v", bad]), None, "{bad}");
        }
        let key = "k".repeat(257);
        assert_eq!(joined(&[&format!("{key}=v")]), None);
        assert!(joined(&[&format!("{}=v", &key[1..])]).is_some());
        assert_eq!(joined(&[&format!("k={}", "v".repeat(257))]), None);
    }

    #[test]
    fn a_list_has_its_limits() {
        let many: Vec<_> = (0..33).map(|at| format!("k{at}=v")).collect();
        assert_eq!(joined(&[&many.join(",")]), None);
        assert!(joined(&[&many[1..].join(",")]).is_some());
        let long = format!("a={},b={}", "v".repeat(253), "v".repeat(254));
        assert_eq!(joined(&[&long]).unwrap().len(), STATE_BYTES_MAX);
        assert_eq!(joined(&[&long, "c=d"]), None);
        assert_eq!(joined(&[&format!("{long}v")]), None);
    }

    #[test]
    fn a_member_is_found() {
        assert_eq!(get(b"a=1,b=2,b=3", b"b"), Some(&b"2"[..]));
        assert_eq!(get(b"a=1", b"c"), None);
    }
}
