//! What a thread has read, to be read again elsewhere.

use std::collections::HashMap;
use std::io::{self, ErrorKind, Read, Write};

/// Most bytes of a snapshot that is received. Patterns are the largest files, and a configuration
/// with more of them would not fit memory either.
pub const BYTES_MAX: u64 = 8 << 30;
/// The first bytes of a snapshot that is sent.
const MAGIC: &[u8; 8] = b"files 1\n";
/// The first bytes of a text that is sent instead: why there is no snapshot.
const REFUSED: &[u8; 8] = b"refused\n";
/// The longest such text, bytes.
const REASON_BYTES_MAX: u64 = 1024;
/// Of a failure that has no number of the system.
const NO_ERRNO: i32 = 0;

/// The outcome of a question to the system.
pub(crate) type Answer = io::Result<Vec<u8>>;

/// What is asked about a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Question {
    Content = 0,
    Info = 1,
    Names = 2,
    Addresses = 3,
    Other = 4,
}

/// The answers to everything that was asked, by the number of the question and the name.
#[derive(Debug, Default)]
pub struct Snapshot(HashMap<(u8, Vec<u8>), Kept>);

/// An answer: the content, or a failure.
#[derive(Debug)]
struct Kept {
    /// The number of the failure, [`NO_ERRNO`] for one with a text. None: there was no failure.
    errno: Option<i32>,
    /// The content, or the text of the failure.
    bytes: Vec<u8>,
}

impl Snapshot {
    /// Keeps an answer. Of several contents of a file, the longest stays: reads with a lower limit
    /// begin with the same bytes.
    pub(crate) fn keep(&mut self, question: Question, name: &[u8], answer: &Answer) {
        let kept = match answer {
            Ok(bytes) => Kept {
                errno: None,
                bytes: bytes.clone(),
            },
            Err(error) => match error.raw_os_error() {
                Some(errno) => Kept {
                    errno: Some(errno),
                    bytes: Vec::new(),
                },
                None => Kept {
                    errno: Some(NO_ERRNO),
                    bytes: error.to_string().into_bytes(),
                },
            },
        };
        let key = (question as u8, name.to_vec());
        let had = self.0.get(&key);
        if question == Question::Content && had.is_some_and(|had| had.is_longer(&kept)) {
            return;
        }
        self.0.insert(key, kept);
    }

    /// The answer that was kept.
    pub(crate) fn answer(&self, question: Question, name: &[u8]) -> Answer {
        let Some(kept) = self.0.get(&(question as u8, name.to_vec())) else {
            return Err(ErrorKind::NotFound.into());
        };
        match kept.errno {
            None => Ok(kept.bytes.clone()),
            Some(NO_ERRNO) => {
                let text = String::from_utf8_lossy(&kept.bytes);
                Err(io::Error::other(text.into_owned()))
            }
            Some(errno) => Err(io::Error::from_raw_os_error(errno)),
        }
    }

    /// Sends the snapshot to a process of the same machine.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write_to(&self, mut into: impl Write) -> io::Result<()> {
        into.write_all(MAGIC)?;
        into.write_all(&(self.0.len() as u64).to_ne_bytes())?;
        for ((question, name), kept) in &self.0 {
            let (is_failure, errno) = match kept.errno {
                None => (0, NO_ERRNO),
                Some(errno) => (1, errno),
            };
            into.write_all(&[*question, is_failure])?;
            into.write_all(&errno.to_ne_bytes())?;
            for bytes in [name, &kept.bytes] {
                into.write_all(&(bytes.len() as u64).to_ne_bytes())?;
                into.write_all(bytes)?;
            }
        }
        into.flush()
    }

    /// Sends why there is no snapshot.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn refuse(mut into: impl Write, reason: &str) -> io::Result<()> {
        into.write_all(REFUSED)?;
        into.write_all(reason.as_bytes())
    }

    /// Receives a snapshot, of at most [`BYTES_MAX`] bytes.
    ///
    /// # Errors
    /// Those of the reader; the sender's reason, if it has refused; `UnexpectedEof` if the sender ended before it had sent everything.
    pub fn read_from(from: impl Read) -> io::Result<Snapshot> {
        let mut from = from.take(BYTES_MAX);
        match &array(&mut from)? {
            MAGIC => {}
            REFUSED => {
                let mut reason = Vec::new();
                from.take(REASON_BYTES_MAX).read_to_end(&mut reason)?;
                let reason = String::from_utf8_lossy(&reason);
                return Err(io::Error::other(reason.into_owned()));
            }
            _ => return Err(ErrorKind::InvalidData.into()),
        }
        let mut entries = HashMap::new();
        for _ in 0..u64::from_ne_bytes(array(&mut from)?) {
            let [question, is_failure] = array(&mut from)?;
            let errno = i32::from_ne_bytes(array(&mut from)?);
            let name = text(&mut from)?;
            let kept = Kept {
                errno: (is_failure != 0).then_some(errno),
                bytes: text(&mut from)?,
            };
            entries.insert((question, name), kept);
        }
        Ok(Snapshot(entries))
    }
}

impl Kept {
    fn is_longer(&self, than: &Kept) -> bool {
        self.errno.is_none() && than.errno.is_none() && self.bytes.len() > than.bytes.len()
    }
}

fn array<const BYTES: usize>(from: &mut impl Read) -> io::Result<[u8; BYTES]> {
    let mut bytes = [0; BYTES];
    from.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// A length, and so many bytes. Memory grows with what arrives, not with what is announced.
fn text(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let len = u64::from_ne_bytes(array(from)?);
    let mut bytes = Vec::new();
    from.take(len).read_to_end(&mut bytes)?;
    if bytes.len() as u64 == len {
        Ok(bytes)
    } else {
        Err(ErrorKind::UnexpectedEof.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_is_refused() {
        let mut snapshot = Snapshot::default();
        snapshot.keep(Question::Content, b"/a", &Ok(b"text".to_vec()));
        snapshot.keep(Question::Info, b"/b", &Err(ErrorKind::NotFound.into()));
        let mut sent = Vec::new();
        snapshot.write_to(&mut sent).expect("memory takes it");
        for end in 0..sent.len() {
            Snapshot::read_from(&sent[..end]).expect_err("it is cut");
        }
        Snapshot::read_from(&sent[..]).expect("whole");
    }

    #[test]
    fn a_refusal_has_a_reason() {
        let mut sent = Vec::new();
        Snapshot::refuse(&mut sent, "not now").expect("memory takes it");
        let error = Snapshot::read_from(&sent[..]).expect_err("refused");
        assert_eq!(error.to_string(), "not now");
    }

    #[test]
    fn a_length_that_is_a_lie_takes_no_memory() {
        let mut sent = MAGIC.to_vec();
        sent.extend_from_slice(&u64::MAX.to_ne_bytes());
        sent.extend_from_slice(&[0, 0, 0, 0, 0, 0]);
        sent.extend_from_slice(&u64::MAX.to_ne_bytes());
        Snapshot::read_from(&sent[..]).expect_err("it is cut");
    }
}
