//! The journal's interface for its users.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;

use crate::format::{self, ENTRY_BYTES_MAX, HEAD_BYTES, Kind};
use crate::hold::Place;
use crate::left::Left;
use crate::writer::Writer;
use crate::{Failed, Space};

/// The most bytes of data that may wait to be written; a larger entry is accepted when nothing
/// waits.
pub const WAITING_BYTES_MAX: u64 = 64 << 20;

/// The settings of a journal.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Entries are acknowledged once they are on the disk; otherwise once the kernel has them, so
    /// that they survive the process but not a loss of power.
    pub fsync: bool,
    /// A segment that has reached this size is followed by the next one.
    pub segment_bytes: u64,
    /// A segment that has reached this age is followed by the next one, so that finished data is
    /// removed soon.
    pub segment_age: Duration,
    /// A file with a damaged start is set aside; otherwise the journal is not opened.
    pub recreate: bool,
}

/// Receives error messages; called from any thread.
pub type Report = Box<dyn Fn(&str) + Send + Sync>;

/// Receives the result of an append; called on the writing thread, so it must not block.
pub type Written = Box<dyn FnOnce(Result<Place, Failed>) + Send>;

/// A journal.
#[derive(Debug)]
pub struct Journal {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// The state that the writing thread shares with others.
pub(crate) struct Shared {
    queue: Mutex<Queue>,
    pub came: Condvar,
    pub space: Arc<Space>,
    /// The last entries could not be written to the disk.
    pub is_failing: AtomicBool,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Shared")
    }
}

#[derive(Default)]
pub(crate) struct Queue {
    pub entries: Vec<Waiting>,
    /// Bytes of data among the waiting entries.
    pub bytes: u64,
    /// Segments whose last hold is gone.
    pub let_go: Vec<u64>,
    pub closing: bool,
}

/// An entry that waits to be written.
pub(crate) struct Waiting {
    pub kind: Kind,
    pub head: Vec<u8>,
    pub body: Bytes,
    pub written: Option<Written>,
}

impl Waiting {
    pub fn bytes(&self) -> u64 {
        (HEAD_BYTES + self.head.len() + self.body.len()) as u64
    }
}

impl Journal {
    /// Opens the journal of a folder, which is made if it does not exist. The caller must own the
    /// folder exclusively (see [`Lock`](crate::Lock)).
    ///
    /// # Errors
    /// The journal cannot be opened.
    pub fn open(
        folder: &Path,
        settings: Settings,
        space: Arc<Space>,
        report: Report,
    ) -> Result<(Journal, Left), String> {
        let fault = |error: io::Error| format!("{}: {error}", folder.display());
        fs::create_dir_all(folder).map_err(fault)?;
        let shared = Arc::new(Shared::new(space));
        let mut writer = Writer::new(&shared, folder, settings, report);
        let left = writer.recover()?;
        let thread = std::thread::Builder::new().name("journal".into());
        let thread = thread.spawn(move || writer.run()).map_err(fault)?;
        let journal = Journal {
            shared,
            thread: Mutex::new(Some(thread)),
        };
        Ok((journal, left))
    }

    /// Appends an entry of data, made of two parts. `written` is called with its place once it is
    /// written.
    ///
    /// # Errors
    /// The entry is not accepted; `written` is not called then.
    pub fn append(&self, head: Vec<u8>, body: Bytes, written: Written) -> Result<(), Failed> {
        let shared = &self.shared;
        let entry = Waiting {
            kind: Kind::Data,
            head,
            body,
            written: Some(written),
        };
        let bytes = entry.bytes();
        if bytes > ENTRY_BYTES_MAX as u64 {
            return Err(Failed::TooLarge);
        }
        if shared.is_failing.load(Relaxed) {
            return Err(Failed::Disk);
        }
        let mut queue = shared.queue();
        if queue.closing {
            return Err(Failed::Closed);
        }
        let fits = queue.bytes == 0 || queue.bytes + bytes <= WAITING_BYTES_MAX;
        if !fits || !shared.space.reserve(bytes) {
            return Err(Failed::Full);
        }
        queue.bytes += bytes;
        queue.entries.push(entry);
        drop(queue);
        shared.came.notify_one();
        Ok(())
    }

    /// Appends a note. It is written in its turn even beyond the room limit, because notes are what
    /// makes room.
    pub fn note(&self, note: Vec<u8>) {
        self.control(Kind::Note, note);
    }

    /// Marks an entry as done: it need not be read again.
    pub fn done(&self, place: Place) {
        let done = format::done(place.hold.segment(), place.at);
        self.control(Kind::Done, done.to_vec());
    }

    fn control(&self, kind: Kind, payload: Vec<u8>) {
        let entry = Waiting {
            kind,
            head: payload,
            body: Bytes::new(),
            written: None,
        };
        let mut queue = self.shared.queue();
        if !queue.closing {
            self.shared.space.add(entry.bytes());
            queue.entries.push(entry);
            drop(queue);
            self.shared.came.notify_one();
        }
    }

    /// Writes the waiting entries, removes the segments that are not held, and ends the thread.
    pub fn end(&self) {
        self.shared.queue().closing = true;
        self.shared.came.notify_one();
        let thread = self.thread.lock();
        let thread = thread.unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // The thread does not panic; if it did, nothing could be saved here.
            let _ = thread.join();
        }
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        self.end();
    }
}

impl Shared {
    pub fn new(space: Arc<Space>) -> Shared {
        Shared {
            queue: Mutex::default(),
            came: Condvar::new(),
            space,
            is_failing: AtomicBool::new(false),
        }
    }

    pub fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that the last hold of a segment is gone.
    pub(crate) fn let_go(&self, segment: u64) {
        self.queue().let_go.push(segment);
        self.came.notify_one();
    }
}
