//! `tracestate` (W3C Trace Context level 2 §3.3), and the two values that OpenTelemetry's samplers
//! keep in it.
//!
//! A state is kept as the bytes of one field: [`read`] makes them from the received lines, without
//! blanks around members. The functions also accept other bytes; they use the well-formed members.

mod sampling;

pub use sampling::{DIGITS, THRESHOLD_MAX, randomness, set_threshold, threshold, threshold_of};
pub use sampling::{randomness_of_digits, threshold_digits, threshold_of_digits};

/// The most members of a list; a longer list is malformed.
pub const MEMBERS_MAX: usize = 32;
/// The number of bytes of a list that are forwarded, as the specification recommends.
pub const STATE_BYTES_MAX: usize = 512;
/// The most bytes of a key.
const KEY_BYTES_MAX: usize = 256;
/// The most bytes of a value.
const VALUE_BYTES_MAX: usize = 256;
/// Members of this size or more are removed first if a list is too long.
const LONG_BYTES_MIN: usize = 129;

/// Appends the list from a field's lines, in order, without blanks around members and without empty
/// members; if it is too long, some members are left out ("tracestate limits"). If it is malformed,
/// appends nothing and returns false: the whole list must be dropped then.
pub fn read<'a>(lines: impl IntoIterator<Item = &'a [u8]>, out: &mut Vec<u8>) -> bool {
    let mut reader = Reader::new(out);
    lines.into_iter().for_each(|line| reader.line(line));
    reader.end()
}

/// Reads a list line by line.
#[derive(Debug)]
pub struct Reader<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
    count: usize,
    malformed: bool,
}

impl<'a> Reader<'a> {
    /// Appends the list to `out`.
    pub fn new(out: &'a mut Vec<u8>) -> Reader<'a> {
        Reader {
            start: out.len(),
            out,
            count: 0,
            malformed: false,
        }
    }

    /// Takes one line of the field.
    pub fn line(&mut self, line: &[u8]) {
        let members = line.split(|byte| *byte == b',').map(trim);
        for member in members.filter(|member| !member.is_empty()) {
            self.count += 1;
            self.malformed |= self.count > MEMBERS_MAX || split(member).is_none();
            if self.malformed {
                return;
            }
            push(member, self.start, self.out);
        }
    }

    /// Ends the list; returns whether it was well-formed.
    pub fn end(self) -> bool {
        if self.malformed {
            self.out.truncate(self.start);
        }
        shorten(self.out, self.start, self.start);
        !self.malformed
    }
}

/// Appends a member to the list that begins at `start`.
fn push(member: &[u8], start: usize, out: &mut Vec<u8>) {
    if out.len() > start {
        out.push(b',');
    }
    out.extend_from_slice(member);
}

/// Removes whole members of the list that begins at `start` until it is short enough: long members
/// first, then the last ones. Members before `kept`, the end of a member or `start`, stay.
fn shorten(list: &mut Vec<u8>, start: usize, kept: usize) {
    for long_only in [true, false] {
        let mut end = list.len();
        while list.len() - start > STATE_BYTES_MAX && end > kept {
            let comma = list[kept..end].iter().rposition(|byte| *byte == b',');
            let begin = kept + comma.unwrap_or_default();
            let len = end - begin - usize::from(comma.is_some());
            if !long_only || len >= LONG_BYTES_MIN {
                list.drain(begin..end);
            }
            end = begin;
        }
    }
    // The first member may have been removed.
    if list.get(start) == Some(&b',') {
        list.remove(start);
    }
}

/// The well-formed members of a list, each a key and its value; at most [`MEMBERS_MAX`].
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

/// Removes the spaces and tabs at both ends (OWS, RFC 9110 §5.6.3).
#[inline]
#[must_use]
pub fn trim(mut bytes: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = bytes {
        bytes = rest;
    }
    while let [rest @ .., b' ' | b'\t'] = bytes {
        bytes = rest;
    }
    bytes
}

/// The members of a list, well-formed or not.
fn whole_members(state: &[u8]) -> impl Iterator<Item = &[u8]> {
    state
        .split(|byte| *byte == b',')
        .map(trim)
        .filter(|member| !member.is_empty())
        .take(MEMBERS_MAX)
}

/// A member's key and value, if both are well-formed.
fn split(member: &[u8]) -> Option<(&[u8], &[u8])> {
    let equals = member.iter().position(|byte| *byte == b'=')?;
    let (key, value) = (&member[..equals], &member[equals + 1..]);
    (is_key(key) && is_value(value)).then_some((key, value))
}

/// A key begins with a lower-case letter or a digit.
fn is_key(key: &[u8]) -> bool {
    let inside =
        |byte: &u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'*' | b'/' | b'@');
    matches!(key.first(), Some(b'a'..=b'z' | b'0'..=b'9'))
        && key.len() <= KEY_BYTES_MAX
        && key.iter().all(inside)
}

/// A value consists of visible characters and spaces, without `,` and `=`, and does not end with a
/// space.
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
        // Over the limit, long members go and then the last.
        assert_eq!(
            joined(&[&long, "c=d"]).unwrap(),
            format!("{},c=d", &long[..255])
        );
        assert_eq!(
            joined(&[&long[..254], &format!("{}vv", &long[256..])]).unwrap(),
            long[..254]
        );
        assert_eq!(
            joined(&[&long, &long, "c=d,e=f"]).unwrap(),
            format!("{},c=d,e=f", &long[..255])
        );
        let short: Vec<_> = (0..6)
            .map(|at| format!("k{at}={}", "v".repeat(99)))
            .collect();
        assert_eq!(joined(&[&short.join(",")]).unwrap(), short[..4].join(","));
        let first = format!("a={},", "v".repeat(200));
        let rest = [&short[..4], &["z=y".to_string()]].concat().join(",");
        assert_eq!(joined(&[&first, &rest]).unwrap(), rest);
    }

    #[test]
    fn a_member_is_found() {
        assert_eq!(get(b"a=1,b=2,b=3", b"b"), Some(&b"2"[..]));
        assert_eq!(get(b"a=1", b"c"), None);
    }
}
