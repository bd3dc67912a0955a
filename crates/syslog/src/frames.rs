//! The messages of a stream (RFC 6587): each after its length, or each before a line feed.

#[cfg(test)]
mod tests;

/// Most digits of a length.
const LENGTH_DIGITS_MAX: usize = 10;

/// Cuts a stream into messages.
#[derive(Debug)]
pub struct Frames {
    buffer: Vec<u8>,
    /// The beginning of the current message in the buffer.
    at: usize,
    /// The place up to which the buffer has no line feed.
    scanned: usize,
    message_bytes_max: usize,
    assumes_lines: bool,
}

/// Why the rest of a stream cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A message begins with neither a length nor `<`, or its length is no number.
    Framing,
    /// A message is longer than allowed.
    TooLong,
}

impl Frames {
    /// The beginning of a stream whose messages have at most `message_bytes_max` bytes.
    /// `assumes_lines`: every message is a line, whatever it begins with.
    #[must_use]
    pub fn new(message_bytes_max: usize, assumes_lines: bool) -> Frames {
        Frames {
            buffer: Vec::new(),
            at: 0,
            scanned: 0,
            message_bytes_max,
            assumes_lines,
        }
    }

    /// Adds received bytes. The caller takes the messages before it adds more, so the buffer is
    /// bounded by the longest message and these bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.at);
        self.scanned -= self.at;
        self.at = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole message; none until more bytes come.
    ///
    /// # Errors
    /// The stream is faulty; the same error follows from then on.
    pub fn next_message(&mut self) -> Result<Option<&[u8]>, Fault> {
        let Some(first) = self.buffer.get(self.at) else {
            return Ok(None);
        };
        let range = match first {
            _ if self.assumes_lines => self.line()?,
            b'<' => self.line()?,
            b'1'..=b'9' => self.counted()?,
            _ => return Err(Fault::Framing),
        };
        let Some(Found { start, end, next }) = range else {
            return Ok(None);
        };
        (self.at, self.scanned) = (next, next);
        Ok(Some(&self.buffer[start..end]))
    }

    /// A message up to a line feed.
    fn line(&mut self) -> Result<Option<Found>, Fault> {
        let rest = &self.buffer[self.scanned..];
        let Some(end) = rest.iter().position(|byte| *byte == b'\n') else {
            self.scanned = self.buffer.len();
            let is_too_long = self.scanned - self.at > self.message_bytes_max;
            return if is_too_long {
                Err(Fault::TooLong)
            } else {
                Ok(None)
            };
        };
        let end = self.scanned + end;
        if end - self.at > self.message_bytes_max {
            return Err(Fault::TooLong);
        }
        let line = &self.buffer[self.at..end];
        // Some devices add a carriage return (RFC 6587 §3.4.2).
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        Ok(Some(Found {
            start: self.at,
            end: self.at + line.len(),
            next: end + 1,
        }))
    }

    /// A message after its length.
    fn counted(&self) -> Result<Option<Found>, Fault> {
        let rest = &self.buffer[self.at..];
        let digits = rest.iter().take(LENGTH_DIGITS_MAX + 1);
        let digits = digits.take_while(|byte| byte.is_ascii_digit()).count();
        match rest.get(digits) {
            _ if digits > LENGTH_DIGITS_MAX => return Err(Fault::Framing),
            None => return Ok(None),
            Some(b' ') => {}
            Some(_) => return Err(Fault::Framing),
        }
        let length = rest[..digits]
            .iter()
            .fold(0_u64, |length, digit| length * 10 + u64::from(digit - b'0'));
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        if length > self.message_bytes_max {
            return Err(Fault::TooLong);
        }
        let start = self.at + digits + 1;
        let end = start + length;
        Ok((end <= self.buffer.len()).then_some(Found {
            start,
            end,
            next: end,
        }))
    }
}

/// A message in the buffer, and the beginning of the next one.
struct Found {
    start: usize,
    end: usize,
    next: usize,
}
