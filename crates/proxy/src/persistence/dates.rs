//! Dates in cookies for `maxidle` and `maxlife`: UNIX time in units of 4 seconds, 30 bits, as 5
//! digits in base 64, the highest first. This is HAProxy's format, so that clients keep their
//! cookies after a migration in either direction.

/// The length of a date, bytes.
pub(crate) const DATE_BYTES: usize = 5;

const STEP_S: u64 = 4;
const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Appends a date in seconds of UNIX time, rounded up.
pub(crate) fn append(seconds: u64, out: &mut Vec<u8>) {
    let steps = seconds.div_ceil(STEP_S);
    for place in (0..DATE_BYTES).rev() {
        out.push(DIGITS[(steps >> (6 * place)) as usize & 63]);
    }
}

/// The date at the start of a text; none where there is no valid one, and for date zero.
pub(crate) fn read(text: &[u8]) -> Option<u64> {
    let digits = text.get(..DATE_BYTES)?;
    let steps = digits.iter().try_fold(0_u64, |steps, digit| {
        let value = DIGITS.iter().position(|known| known == digit)?;
        Some(steps << 6 | value as u64)
    })?;
    (steps > 0).then_some(steps * STEP_S)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        for seconds in [4, 1_795_179_660, 4_294_967_292] {
            let mut out = Vec::new();
            append(seconds, &mut out);
            assert_eq!((out.len(), read(&out)), (DATE_BYTES, Some(seconds)));
        }
        let mut out = Vec::new();
        append(1, &mut out);
        assert_eq!(out, b"AAAAB");
    }

    #[test]
    fn what_is_none() {
        for text in [&b""[..], b"AAAA", b"AAAAA", b"AAA=B", b"AAA\xffB"] {
            assert_eq!(read(text), None, "{text:?}");
        }
    }
}
