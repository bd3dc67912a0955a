//! When to parse an incomplete head again.

use memchr::memchr;

/// The end of the first head in `input`: after the first empty line that follows another line. The
/// search starts at `from`, the number of bytes examined before.
#[must_use]
pub fn head_end(input: &[u8], from: usize) -> Option<usize> {
    // The relevant line ends may have begun up to two bytes earlier.
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

/// Says when to parse an incomplete head again, at a cost linear in the head's length: when the new
/// bytes contain its end, and otherwise, to find errors early, each time the input has doubled.
#[derive(Clone, Copy, Debug, Default)]
pub struct Resume {
    scanned: usize,
    parsed: usize,
}

impl Resume {
    /// `input` is all of the head received so far; call this once before each parse. The first call
    /// returns true.
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
