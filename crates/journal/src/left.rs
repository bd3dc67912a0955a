//! Recovery: what an earlier process left.

use std::collections::{HashSet, VecDeque};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use bytes::Bytes;

use crate::folder;
use crate::format::{Item, Items, Kind, START_BYTES, has_start, read_done};
use crate::hold::{Hold, Place};

/// The most bytes of a segment's file that are read.
const FILE_BYTES_MAX: u64 = 4 << 30;

/// The entries and notes that an earlier process left in a journal's folder. Segments whose holds
/// are all dropped are removed.
#[derive(Debug, Default)]
pub struct Left {
    /// All notes, in the order in which they were made.
    pub notes: Vec<Bytes>,
    segments: VecDeque<(Hold, PathBuf)>,
    done: HashSet<(u64, u64)>,
}

/// A segment that an earlier process left.
#[derive(Debug)]
pub struct Segment {
    hold: Hold,
    file: Bytes,
    done: Vec<u64>,
}

/// An entry of data.
#[derive(Debug)]
pub struct Entry {
    /// Its place.
    pub place: Place,
    /// Its payload, a slice of the segment's buffer.
    pub payload: Bytes,
}

impl Left {
    /// Whether there is nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// The entries of the next segment that are not done; none at the end.
    ///
    /// # Errors
    /// The segment cannot be read; its file stays.
    pub fn next_segment(&mut self) -> Option<Result<Segment, String>> {
        let (hold, path) = self.segments.pop_front()?;
        let mut done: Vec<u64> = Vec::new();
        let number = hold.segment();
        self.done.retain(|(segment, at)| {
            let is_here = *segment == number;
            done.extend(is_here.then_some(*at));
            !is_here
        });
        done.sort_unstable();
        Some(match read(&path) {
            Ok(file) => Ok(Segment { hold, file, done }),
            Err(error) => {
                hold.stay();
                Err(format!("{}: {error}", path.display()))
            }
        })
    }
}

/// Segments that were not read stay on the disk.
impl Drop for Left {
    fn drop(&mut self) {
        self.segments.iter().for_each(|(hold, _)| hold.stay());
    }
}

impl Segment {
    /// Keeps the segment for the next process, as if it had not been read.
    pub fn stay(&self) {
        self.hold.stay();
    }

    /// The entries, in order.
    pub fn entries(&self) -> impl Iterator<Item = Entry> {
        Items::new(self.hold.segment(), &self.file).filter_map(|item| match item {
            Item::Entry {
                at,
                kind: Kind::Data,
                payload,
            } if self.done.binary_search(&at).is_err() => Some(Entry {
                place: Place {
                    hold: self.hold.clone(),
                    at,
                },
                payload: self.file.slice_ref(payload),
            }),
            _ => None,
        })
    }
}

fn read(path: &Path) -> io::Result<Bytes> {
    let bytes = fs::metadata(path)?.len();
    if bytes > FILE_BYTES_MAX {
        return Err(io::Error::other(format!(
            "has more than {FILE_BYTES_MAX} bytes"
        )));
    }
    fs::read(path).map(Bytes::from)
}

/// What a file contains.
pub(crate) enum Found {
    /// A segment, of which this many bytes are valid.
    Segment(u64),
    /// Nothing.
    Nothing,
}

/// Reads a segment: its notes, and which entries are done. The last segment written may be
/// truncated, because a process may have ended within a write: its incomplete end is cut off.
pub(crate) fn look(
    left: &mut Left,
    number: u64,
    path: &Path,
    is_last: bool,
    report: &dyn Fn(&str),
) -> Result<Found, String> {
    let fault = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let file = read(path).map_err(|error| fault(&error))?;
    if !has_start(number, &file) {
        // The first write was not completed.
        return if is_last && file.len() < START_BYTES {
            Ok(Found::Nothing)
        } else {
            Err(fault(
                &"is not a file of this journal, or its start is damaged",
            ))
        };
    }
    let (mut end, mut damaged) = (START_BYTES, 0);
    let mut damaged_behind = 0;
    for item in Items::new(number, &file) {
        match item {
            Item::Damaged(_, bytes) => damaged_behind += bytes,
            Item::Entry { at, kind, payload } => {
                damaged += std::mem::take(&mut damaged_behind);
                end = at as usize + crate::format::HEAD_BYTES + payload.len();
                match kind {
                    Kind::Data => {}
                    Kind::Note => left.notes.push(Bytes::copy_from_slice(payload)),
                    Kind::Done => {
                        left.done.extend(read_done(payload));
                    }
                }
            }
        }
    }
    if is_last && damaged_behind > 0 {
        let cut = File::options().write(true).open(path);
        cut.and_then(|file| file.set_len(end as u64))
            .map_err(|error| fault(&error))?;
    } else {
        damaged += damaged_behind;
        end = file.len();
    }
    if damaged > 0 {
        report(&fault(&format!(
            "{damaged} bytes are damaged: what was in them is lost"
        )));
    }
    Ok(Found::Segment(end as u64))
}

impl Left {
    pub(crate) fn push(&mut self, hold: Hold, path: PathBuf) {
        self.segments.push_back((hold, path));
    }
}

/// Moves a file aside, so that the journal begins anew without it; returns the new path.
pub(crate) fn set_aside(path: &Path, folder: &Path) -> io::Result<PathBuf> {
    let aside = path.with_extension("damaged");
    fs::rename(path, &aside)?;
    folder::sync(folder)?;
    Ok(aside)
}
