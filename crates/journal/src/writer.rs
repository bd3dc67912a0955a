//! The writing thread.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, IoSlice, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use crate::Failed;
use crate::folder::{self, now};
use crate::format::{self, START_BYTES};
use crate::hold::{Hold, Place};
use crate::journal::{Report, Settings, Shared, Waiting};
use crate::left::{self, Found, Left};

/// The pause after a disk error before the next attempt.
const AGAIN: Duration = Duration::from_millis(500);
/// The most slices of one write (`IOV_MAX` of Linux).
const SLICES_MAX: usize = 1024;

/// The segment being written.
struct Current {
    hold: Hold,
    file: File,
    bytes: u64,
    since: Instant,
}

/// What is known of a segment's file.
#[derive(Default)]
struct Known {
    bytes: u64,
    is_let_go: bool,
}

pub(crate) struct Writer {
    shared: Arc<Shared>,
    folder: PathBuf,
    settings: Settings,
    report: Report,
    segments: BTreeMap<u64, Known>,
    current: Option<Current>,
    /// The number of the next segment.
    next: u64,
    let_go: Vec<u64>,
    /// Notes and marks that could not be written yet: no caller waits for them.
    again: Vec<Waiting>,
    /// A file whose end has entries that were refused and could not be cut off, and the length that
    /// it should have.
    uncut: Option<(File, u64)>,
    told: bool,
}

impl Writer {
    pub fn new(shared: &Arc<Shared>, folder: &Path, settings: Settings, report: Report) -> Writer {
        Writer {
            shared: Arc::clone(shared),
            folder: folder.to_owned(),
            settings,
            report,
            segments: BTreeMap::new(),
            current: None,
            next: 0,
            let_go: Vec::new(),
            again: Vec::new(),
            uncut: None,
            told: false,
        }
    }

    /// Recovers what an earlier process left.
    pub fn recover(&mut self) -> Result<Left, String> {
        let found = folder::segments(&self.folder);
        let found = found.map_err(|error| format!("{}: {error}", self.folder.display()))?;
        let mut left = Left::default();
        let last = found.last().map(|(number, _)| *number);
        for (number, file_bytes) in found {
            self.next = number + 1;
            let path = folder::path(&self.folder, number);
            let is_last = Some(number) == last;
            let looked = left::look(&mut left, number, &path, is_last, &*self.report);
            match looked {
                Ok(Found::Segment(bytes)) => {
                    self.shared.space.add(bytes);
                    let known = Known {
                        bytes,
                        is_let_go: false,
                    };
                    self.segments.insert(number, known);
                    left.push(Hold::new(number, &self.shared), path);
                }
                Ok(Found::Nothing) => {
                    fs::remove_file(&path).map_err(|error| error.to_string())?;
                }
                Err(why) if self.settings.recreate => {
                    let aside = left::set_aside(&path, &self.folder);
                    let aside = aside.map_err(|error| format!("{why}; {error}"))?;
                    left.damage.add(file_bytes as usize);
                    (self.report)(&format!("{why}; it is now {}", aside.display()));
                }
                Err(why) => return Err(why),
            }
        }
        Ok(left)
    }

    /// Runs until the journal is closed.
    pub fn run(mut self) {
        loop {
            let (came, closing) = self.wait();
            let mut entries = std::mem::take(&mut self.again);
            entries.extend(came);
            let is_written = entries.is_empty() || self.commit(entries);
            if is_written {
                // Released segments are removed only now, when the notes made before their release
                // are written.
                self.seal_old();
                self.remove();
            }
            if closing {
                // The next process would read refused entries.
                let _ = self.cut_refused();
                if is_written {
                    self.current = None;
                    let mut last = std::mem::take(&mut self.shared.queue().let_go);
                    self.let_go.append(&mut last);
                    self.remove();
                }
                return;
            }
            if !is_written {
                self.pause();
            }
        }
    }

    /// Waits for work; returns the entries, and whether this is the last round.
    fn wait(&mut self) -> (Vec<Waiting>, bool) {
        let mut queue = self.shared.queue();
        loop {
            let is_due = self.current.as_ref().is_some_and(|current| {
                now().saturating_duration_since(current.since) >= self.settings.segment_age
            });
            let has_work = !queue.entries.is_empty()
                || !queue.let_go.is_empty()
                || !self.again.is_empty()
                || queue.closing
                || is_due;
            if has_work {
                self.let_go.append(&mut queue.let_go);
                queue.bytes = 0;
                return (std::mem::take(&mut queue.entries), queue.closing);
            }
            let came = &self.shared.came;
            queue = match &self.current {
                None => came.wait(queue).unwrap_or_else(PoisonError::into_inner),
                Some(_) => {
                    let waited = came.wait_timeout(queue, self.settings.segment_age);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    /// Pauses after a disk error: nothing is accepted for a while.
    fn pause(&self) {
        let until = now() + AGAIN;
        let mut queue = self.shared.queue();
        while !queue.closing {
            let left = until.saturating_duration_since(now());
            if left.is_zero() {
                break;
            }
            let waited = self.shared.came.wait_timeout(queue, left);
            queue = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        drop(queue);
        self.shared.is_failing.store(false, Relaxed);
    }

    /// Writes entries; either all of them are acknowledged or none.
    fn commit(&mut self, entries: Vec<Waiting>) -> bool {
        match self.write(&entries) {
            Ok(places) => {
                if std::mem::take(&mut self.told) {
                    (self.report)(&format!("{}: is written again", self.folder.display()));
                }
                for (entry, place) in entries.into_iter().zip(places) {
                    if let Some(written) = entry.written {
                        written(Ok(place));
                    }
                }
                true
            }
            Err(error) => {
                self.shared.is_failing.store(true, Relaxed);
                if !std::mem::replace(&mut self.told, true) {
                    let folder = self.folder.display();
                    (self.report)(&format!("{folder}: cannot be written: {error}"));
                }
                self.give_up_current();
                for mut entry in entries {
                    match entry.written.take() {
                        Some(written) => {
                            self.shared.space.release(entry.bytes());
                            written(Err(Failed::Disk));
                        }
                        None => self.again.push(entry),
                    }
                }
                false
            }
        }
    }

    fn write(&mut self, entries: &[Waiting]) -> io::Result<Vec<Place>> {
        self.cut_refused()?;
        let fsync = self.settings.fsync;
        // The holders of a segment's entries decide when it is removed; a full segment is no longer
        // current.
        let bytes_max = self.settings.segment_bytes;
        self.current.take_if(|current| current.bytes >= bytes_max);
        let current = match &mut self.current {
            Some(current) => current,
            None => self.begin()?,
        };
        let number = current.hold.segment();
        let (mut at, mut places, mut heads) = (current.bytes, Vec::new(), Vec::new());
        for entry in entries {
            heads.push(format::head(
                number,
                at,
                entry.kind,
                [&entry.head, &entry.body],
            ));
            places.push(Place {
                hold: current.hold.clone(),
                at,
            });
            at += entry.bytes();
        }
        let mut slices = Vec::with_capacity(entries.len() * 3);
        for (entry, head) in entries.iter().zip(&heads) {
            slices.extend([
                IoSlice::new(head),
                IoSlice::new(&entry.head),
                IoSlice::new(&entry.body),
            ]);
        }
        slices.retain(|slice| !slice.is_empty());
        write_all(&mut current.file, &mut slices)?;
        if fsync {
            current.file.sync_data()?;
        }
        current.bytes = at;
        self.segments.entry(number).or_default().bytes = at;
        Ok(places)
    }

    /// Begins the next segment.
    fn begin(&mut self) -> io::Result<&mut Current> {
        let number = self.next;
        let path = folder::path(&self.folder, number);
        let mut file = File::options()
            .write(true)
            .create(true)
            .truncate(true)
            .open(&path)?;
        if let Err(error) = file.write_all(&format::start(number)) {
            // The next start would take an incomplete header for damage after a loss of power.
            let _ = fs::remove_file(&path);
            return Err(error);
        }
        if self.settings.fsync {
            file.sync_data()?;
            folder::sync(&self.folder)?;
        }
        self.next += 1;
        self.shared.space.add(START_BYTES as u64);
        let known = Known {
            bytes: START_BYTES as u64,
            is_let_go: false,
        };
        self.segments.insert(number, known);
        Ok(self.current.insert(Current {
            hold: Hold::new(number, &self.shared),
            file,
            bytes: START_BYTES as u64,
            since: now(),
        }))
    }

    /// Ends the current segment if it is old enough.
    fn seal_old(&mut self) {
        let age = self.settings.segment_age;
        let is_old = |current: &mut Current| now().saturating_duration_since(current.since) >= age;
        self.current.take_if(is_old);
    }

    /// Abandons the current segment after a failed write: cuts off what was not acknowledged, and
    /// appends nothing more.
    fn give_up_current(&mut self) {
        if let Some(current) = self.current.take() {
            self.uncut = Some((current.file, current.bytes));
            // The next write tries again where this fails.
            let _ = self.cut_refused();
        }
    }

    /// Cuts off entries that were refused. Until that succeeds nothing is written, so that a refused
    /// entry is not read by the next process.
    fn cut_refused(&mut self) -> io::Result<()> {
        if let Some((file, bytes)) = &self.uncut {
            file.set_len(*bytes)?;
            self.uncut = None;
        }
        Ok(())
    }

    /// Removes segments without holds, the oldest first and without a gap: the notes in a segment
    /// refer to older ones.
    fn remove(&mut self) {
        for number in self.let_go.drain(..) {
            if let Some(known) = self.segments.get_mut(&number) {
                known.is_let_go = true;
            }
        }
        while let Some(oldest) = self.segments.first_entry()
            && oldest.get().is_let_go
        {
            let path = folder::path(&self.folder, *oldest.key());
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    (self.report)(&format!("{}: {error}", path.display()));
                    return;
                }
                _ => self.shared.space.release(oldest.remove().bytes),
            }
        }
    }
}

fn write_all(file: &mut File, mut slices: &mut [IoSlice<'_>]) -> io::Result<()> {
    while !slices.is_empty() {
        let some = slices.len().min(SLICES_MAX);
        match file.write_vectored(&slices[..some]) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => IoSlice::advance_slices(&mut slices, written),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use bytes::Bytes;

    use super::*;
    use crate::Space;
    use crate::format::Kind;

    #[test]
    fn nothing_is_written_before_refused_entries_are_cut_off() {
        let folder = std::env::temp_dir().join(format!("spangate-writer-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let shared = Arc::new(Shared::new(Arc::new(Space::new(1 << 20))));
        let settings = Settings {
            fsync: false,
            segment_bytes: 1 << 20,
            segment_age: Duration::from_secs(3600),
            recreate: false,
        };
        let mut writer = Writer::new(&shared, &folder, settings, Box::new(|_| {}));
        let path = folder::path(&folder, 7);
        fs::write(&path, b"taken, refused").unwrap();
        let commit = |writer: &mut Writer| {
            let (tell, told) = mpsc::channel();
            let entry = Waiting {
                kind: Kind::Data,
                head: Vec::new(),
                body: Bytes::from_static(b"entry"),
                written: Some(Box::new(move |written| tell.send(written).unwrap())),
            };
            writer.commit(vec![entry]);
            told.recv().unwrap().err()
        };
        // A file that is open for reading cannot be cut.
        writer.uncut = Some((File::open(&path).unwrap(), 5));
        assert_eq!(commit(&mut writer), Some(Failed::Disk));
        writer.uncut = Some((File::options().write(true).open(&path).unwrap(), 5));
        assert_eq!(commit(&mut writer), None);
        assert_eq!(fs::read(&path).unwrap(), b"taken");
        fs::remove_dir_all(&folder).unwrap();
    }
}
