//! The pipe through which a worker reports its start to the master: messages, and at the end a
//! record. The record says that the worker serves, and carries the settings for the master in the
//! worker's files.

use std::io::{self, Read, Write};

use config::model::MasterTune;

/// Most bytes of messages that are kept.
const KEPT_BYTES_MAX: usize = 64 << 10;
/// The bytes around the record at the end. Messages contain no NUL.
const BEGINS: u8 = 0;
const ENDS: u8 = b'R';
/// The two bytes around the record, a flag and a number.
const RECORD_BYTES: usize = 1 + 1 + size_of::<u32>() + 1;

/// What the master reads from the pipe.
#[derive(Debug, PartialEq)]
pub(super) struct Start {
    /// The messages of the start.
    pub messages: String,
    /// None if the worker ended before it served.
    pub serves: Option<MasterTune>,
}

/// Reports that the worker serves, after the messages of its start.
///
/// # Errors
/// The master has ended.
pub(crate) fn tell(mut pipe: impl Write, messages: &str, tune: MasterTune) -> io::Result<()> {
    pipe.write_all(messages.as_bytes())?;
    let [a, b, c, d] = tune.reloads_max.to_ne_bytes();
    let stays = u8::from(tune.stays_on_failure);
    pipe.write_all(&[BEGINS, stays, a, b, c, d, ENDS])
}

/// What a worker has written to the pipe so far.
#[derive(Debug, Default)]
pub(super) struct Report(Vec<u8>);

/// The state of a start after a read.
#[derive(Debug, PartialEq)]
pub(super) enum Progress {
    Starting,
    /// The worker serves, or has ended.
    Over(Start),
}

impl Report {
    /// Reads once from the pipe. Blocks if the pipe is not readable.
    pub fn read(&mut self, mut pipe: impl Read) -> Progress {
        let mut buffer = [0; 4096];
        let said = &mut self.0;
        match pipe.read(&mut buffer) {
            Ok(count) if count > 0 => said.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            _ => {
                return Progress::Over(Start {
                    messages: self.messages(),
                    serves: None,
                });
            }
        }
        if let Some((messages, tune)) = split(said) {
            return Progress::Over(Start {
                messages: String::from_utf8_lossy(messages).into_owned(),
                serves: Some(tune),
            });
        }
        if said.len() > 2 * KEPT_BYTES_MAX {
            // From here on, only the end of the text matters.
            said.drain(KEPT_BYTES_MAX..said.len() - RECORD_BYTES);
        }
        Progress::Starting
    }

    /// The messages of a worker that has not served yet.
    pub fn messages(&self) -> String {
        String::from_utf8_lossy(&self.0).into_owned()
    }
}

/// Splits a worker's output into its messages and the record after them; None without a record.
fn split(said: &[u8]) -> Option<(&[u8], MasterTune)> {
    match said.split_last_chunk::<RECORD_BYTES>()? {
        (messages, &[BEGINS, stays, a, b, c, d, ENDS]) => {
            let tune = MasterTune {
                stays_on_failure: stays != 0,
                reloads_max: u32::from_ne_bytes([a, b, c, d]),
            };
            Some((messages, tune))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns one byte per read.
    struct Slow<'a>(&'a [u8]);

    impl Read for Slow<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let count = self.0.len().min(1);
            self.0.read(&mut into[..count])
        }
    }

    /// Reads until the worker serves or ends.
    fn read(mut pipe: impl Read) -> Start {
        let mut report = Report::default();
        loop {
            if let Progress::Over(start) = report.read(&mut pipe) {
                return start;
            }
        }
    }

    #[test]
    fn what_is_told_is_read() {
        for reloads_max in [0, 50, u32::from_ne_bytes([ENDS; 4]), u32::MAX] {
            let tune = MasterTune {
                stays_on_failure: reloads_max == 50,
                reloads_max,
            };
            let mut pipe = Vec::new();
            tell(&mut pipe, "Some WORDS\nR", tune).expect("memory takes it");
            let whole = Start {
                messages: "Some WORDS\nR".to_owned(),
                serves: Some(tune),
            };
            assert_eq!(read(&pipe[..]), whole);
            assert_eq!(read(Slow(&pipe)), whole);
            let cut = read(&pipe[..pipe.len() - 1]);
            assert_eq!(cut.serves, None, "it ended before");
        }
    }

    #[test]
    fn no_more_than_a_bound_is_kept() {
        let mut pipe = vec![b'x'; 5 * KEPT_BYTES_MAX];
        tell(&mut pipe, "", MasterTune::default()).expect("memory takes it");
        let start = read(&pipe[..]);
        assert_eq!(start.serves, Some(MasterTune::default()));
        assert!(start.messages.len() <= 2 * KEPT_BYTES_MAX);
    }
}
