//! Dictionaries of server names, so that a name that was sent once is a number from then on (peers
//! protocol 2.1, "Entry update message format"). Each direction of a connection has one.

use std::sync::Arc;

use crate::reader::Reader;
use crate::{Malformed, varint};

/// The most names of a dictionary, as in HAProxy; the numbers on the wire are 1 to this one.
pub const ENTRIES_MAX: usize = 128;

/// The names that the other side has received.
#[derive(Debug, Default)]
pub struct Sent {
    names: Vec<Arc<str>>,
    /// The place that the next new name takes when all are taken.
    next: usize,
}

impl Sent {
    /// Appends a name: in full the first time, else its number.
    pub fn put(&mut self, out: &mut Vec<u8>, name: &Arc<str>) {
        let mut part = Vec::with_capacity(varint::BYTES_MAX + name.len());
        match self.names.iter().position(|known| known == name) {
            Some(at) => varint::put(&mut part, at as u64 + 1),
            None => {
                let at = self.next;
                self.next = (at + 1) % ENTRIES_MAX;
                match self.names.get_mut(at) {
                    Some(old) => *old = Arc::clone(name),
                    None => self.names.push(Arc::clone(name)),
                }
                varint::put(&mut part, at as u64 + 1);
                varint::put(&mut part, name.len() as u64);
                part.extend_from_slice(name.as_bytes());
            }
        }
        varint::put(out, part.len() as u64);
        out.extend_from_slice(&part);
    }

    /// The names by number, from 0.
    pub fn names(&self) -> &[Arc<str>] {
        &self.names
    }
}

/// The names that the other side has sent.
#[derive(Debug, Default)]
pub struct Received {
    names: Vec<Option<Arc<str>>>,
}

impl Received {
    /// Reads a name; none if the field is empty, or if its number is unknown.
    pub fn get(&mut self, from: &mut Reader<'_>) -> Result<Option<Arc<str>>, Malformed> {
        let mut part = Reader(from.text()?);
        if part.is_empty() {
            return Ok(None);
        }
        let number = part.varint()?;
        let at = usize::try_from(number)
            .ok()
            .and_then(|number| number.checked_sub(1));
        let at = at.filter(|at| *at < ENTRIES_MAX).ok_or(Malformed)?;
        if part.is_empty() {
            return Ok(self.names.get(at).cloned().flatten());
        }
        let name: Arc<str> = String::from_utf8_lossy(part.text()?).into();
        if self.names.len() <= at {
            self.names.resize(at + 1, None);
        }
        self.names[at] = Some(Arc::clone(&name));
        Ok(Some(name))
    }

    /// The names by number, from 0.
    pub fn names(&self) -> &[Option<Arc<str>>] {
        &self.names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sent_in_full_once() {
        let (mut sent, mut received) = (Sent::default(), Received::default());
        let mut pass = |name: &str| {
            let mut out = Vec::new();
            sent.put(&mut out, &name.into());
            let mut reader = Reader(&out);
            assert_eq!(received.get(&mut reader), Ok(Some(name.into())));
            assert!(reader.is_empty());
            out.len()
        };
        assert_eq!(pass("alpha"), 8);
        assert_eq!(pass("alpha"), 2);
        for number in 0..ENTRIES_MAX {
            pass(&number.to_string());
        }
        // Its place was taken.
        assert_eq!(pass("alpha"), 8);
        assert_eq!(pass("127"), 2);
    }

    #[test]
    fn wrong_numbers_are_refused() {
        let mut received = Received::default();
        let mut get = |bytes: &[u8]| received.get(&mut Reader(bytes));
        assert_eq!(get(&[0]), Ok(None));
        assert_eq!(get(&[1, 0]), Err(Malformed));
        assert_eq!(get(&[1, 129]), Err(Malformed));
        assert_eq!(get(&[1, 5]), Ok(None), "not sent in full before");
        assert_eq!(get(&[3, 1, 9, b'a']), Err(Malformed));
        assert_eq!(get(&[9, 1]), Err(Malformed));
    }
}
