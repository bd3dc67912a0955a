//! Priorities (RFC 9218): the urgency of a response. All else is ignored.

/// The urgency of a response whose client says nothing (RFC 9218 §4.1); 0 is the most urgent.
const URGENCY_DEFAULT: u8 = 3;

/// How important the stream of a response with this `Priority` value is to QUIC: higher is more
/// important, 0 is usual.
pub(super) fn of(value: &[u8]) -> i32 {
    i32::from(URGENCY_DEFAULT) - i32::from(urgency(value))
}

/// The member `u` of the dictionary; the last one counts (RFC 9651 §3.2).
fn urgency(value: &[u8]) -> u8 {
    let mut urgency = URGENCY_DEFAULT;
    for member in value.split(|byte| *byte == b',') {
        let item = match member.trim_ascii().strip_prefix(b"u") {
            Some([b'=', item @ ..]) => item,
            _ => continue,
        };
        let end = item.iter().position(|byte| *byte == b';');
        urgency = match item[..end.unwrap_or(item.len())] {
            [digit @ b'0'..=b'7'] => digit - b'0',
            // RFC 9218 §4: a value out of range is as none.
            _ => URGENCY_DEFAULT,
        };
    }
    urgency
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urgencies() {
        for (value, priority) in [
            (&b""[..], 0),
            (b"u=0", 3),
            (b"u=7, i", -4),
            (b"i, u=1", 2),
            (b"i,u=5;a=b", -2),
            (b"u=1, u=4", -1),
            (b"u=8", 0),
            (b"u=-1", 0),
            (b"u", 0),
            (b"uu=1", 0),
            (b"u=\"1\"", 0),
        ] {
            assert_eq!(of(value), priority, "{}", value.escape_ascii());
        }
    }
}
