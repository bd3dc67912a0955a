//! Recovery: what an earlier process left.

use std::collections::{HashSet, VecDeque};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use bytes::Bytes;

use crate::folder;
use crate::format::{
    HEAD_BYTES, Item, Items, Kind, START_BYTES, has_start, is_cut_entry, read_done, start,
};
use crate::hold::{Hold, Place};

/// The most bytes of a segment's file that are read.
const FILE_BYTES_MAX: u64 = 4 << 30;

/// The entries and notes that an earlier process left in a journal's folder. Segments whose holds
/// are all dropped are removed.
#[derive(Debug, Default)]
pub struct Left {
    /// All notes, in the order in which they were made.
    pub notes: Vec<Bytes>,
    /// Damage found in the files.
    pub damage: Damage,
    segments: VecDeque<(Hold, PathBuf)>,
    done: HashSet<(u64, u64)>,
}

/// Damage that was found in the files of a journal when it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Damage {
    /// Files with damage.
    pub files: u64,
    /// Bytes in them that belong to no entry; 0 for an empty file.
    pub bytes: u64,
}

impl Damage {
    /// One more file, with this many damaged bytes.
    pub(crate) fn add(&mut self, bytes: usize) {
        self.files += 1;
        self.bytes += bytes as u64;
    }
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

/// Reads a segment: its notes, and which entries are done.
///
/// The last segment written may be truncated, because a process may have ended within a write: its
/// incomplete end is cut off. Without `fsync`, a loss of power leaves files that are empty, or that
/// have zeros or other bytes in the place of entries. Readable entries are kept; the rest is
/// reported and counted.
///
/// # Errors
/// The file cannot be read, or it is not a file of this journal.
pub(crate) fn look(
    left: &mut Left,
    number: u64,
    path: &Path,
    is_last: bool,
    report: &dyn Fn(&str),
) -> Result<Found, String> {
    let fault = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let file = read(path).map_err(|error| fault(&error))?;
    let start_is_lost = !has_start(number, &file);
    if start_is_lost && !is_unwritten(number, &file) {
        return Err(fault(
            &"is not a file of this journal, or its start is damaged",
        ));
    }
    let contents = Contents::read(left, number, &file);
    if start_is_lost && contents.entries == 0 {
        left.damage.add(file.len());
        report(&fault(&format!(
            "has {} bytes and no entry, as after a loss of power: what was in it is lost",
            file.len()
        )));
        return Ok(Found::Nothing);
    }
    let mut damaged = contents.damaged;
    if start_is_lost {
        damaged += START_BYTES;
    }
    let mut end = file.len();
    if is_last && contents.end < end {
        if !is_cut_entry(number, &file, contents.end) {
            damaged += end - contents.end;
        }
        end = contents.end;
        let cut = File::options().write(true).open(path);
        cut.and_then(|file| file.set_len(end as u64))
            .map_err(|error| fault(&error))?;
    } else {
        damaged += end - contents.end;
    }
    if damaged > 0 {
        left.damage.add(damaged);
        report(&fault(&format!(
            "{damaged} bytes are damaged: what was in them is lost"
        )));
    }
    Ok(Found::Segment(end as u64))
}

/// Whether a file's header is missing or incomplete.
fn is_unwritten(number: u64, file: &[u8]) -> bool {
    let written = &file[..file.len().min(START_BYTES)];
    written.iter().all(|byte| *byte == 0) || start(number).starts_with(file)
}

/// Layout of the bytes of a segment.
struct Contents {
    entries: u64,
    /// Bytes between entries that belong to no entry.
    damaged: usize,
    /// The end of the last entry.
    end: usize,
}

impl Contents {
    /// Reads the entries, and takes their notes and marks.
    fn read(left: &mut Left, number: u64, file: &[u8]) -> Contents {
        let mut contents = Contents {
            entries: 0,
            damaged: 0,
            end: START_BYTES.min(file.len()),
        };
        let mut since_entry = 0;
        for item in Items::new(number, file) {
            let (at, kind, payload) = match item {
                Item::Entry { at, kind, payload } => (at as usize, kind, payload),
                Item::Damaged(_, bytes) => {
                    since_entry += bytes as usize;
                    continue;
                }
            };
            contents.entries += 1;
            contents.damaged += std::mem::take(&mut since_entry);
            contents.end = at + HEAD_BYTES + payload.len();
            match kind {
                Kind::Data => {}
                Kind::Note => left.notes.push(Bytes::copy_from_slice(payload)),
                Kind::Done => left.done.extend(read_done(payload)),
            }
        }
        contents
    }
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
