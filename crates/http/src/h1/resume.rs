//! When to parse an incomplete head again.

use memchr::memchr;

/// Where the first head in `input` ends: after the first empty line that follows another line. Looks from `from` on,
/// which is how much of the input was looked at before.
#[must_use]
pub fn head_end(input: &[u8], from: usize) -> Option<usize> {
    // The line ends that matter may have begun up to two bytes earlier.
    let mut at = from.saturating_sub(2);
    while let Some(found) = memchr(b'\n', input.get(at..)?) {
        at += found + 1;
        match input.get(at..)? {
            [b'\n', ..] => return Some(at + 1),
            [b'\r', b'\n', ..] => return Some(at + 2),
            _ => {}
        }
    }
    None
}

/// Tells whether more bytes of an incomplete head are worth another parse, at a cost linear in the head's length:
/// when it ends in them, and otherwise, to find errors early, each time the input has doubled.
#[derive(Clone, Copy, Debug, Default)]
pub struct Resume {
    scanned: usize,
    parsed: usize,
}

impl Resume {
    /// `input` is all of the head that came so far; call it once before each parse. The first call answers yes.
    pub fn is_worth_it(&mut self, input: &[u8], limits: super::Limits) -> bool {
        let ends = head_end(input, self.scanned).is_some();
        let full = input.len() >= limits.head_bytes_max;
        let parse = ends || full || self.parsed == 0 || input.len() / 2 >= self.parsed;
        self.scanned = input.len();
        if parse {
            self.parsed = input.len();
        }
        parse
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::h1::Limits;

    #[test]
    fn heads_end_at_an_empty_line() {
        let input = b"GET / HTTP/1.1\r\nhost: h\r\n\r\nbody\r\n\r\n";
        for from in 0..27 {
            assert_eq!(head_end(input, from), Some(27), "{from}");
        }
        assert_eq!(head_end(&input[..26], 0), None);
        assert_eq!(head_end(b"a\n\nb", 0), Some(3));
        assert_eq!(head_end(b"", 5), None);
    }

    #[test]
    fn a_head_byte_by_byte_is_parsed_few_times() {
        let mut input = b"GET / HTTP/1.1\r\n".to_vec();
        input.extend(b"a: b\r\n".repeat(1000));
        input.extend(b"\r\n");
        let mut resume = Resume::default();
        let parses =
            (1..=input.len()).filter(|&len| resume.is_worth_it(&input[..len], Limits::default()));
        let parses: Vec<_> = parses.collect();
        assert_eq!(parses.last(), Some(&input.len()));
        assert!(parses.len() < 20, "{parses:?}");
    }
}
