//! A journal as its users see it.

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

/// Bytes of data that wait to be written; one entry that is larger is taken when nothing waits.
pub const WAITING_BYTES_MAX: u64 = 64 << 20;

/// How a journal works.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Entries count once they are on the disk; else once the system has them, which outlives the process, but no loss of power.
    pub fsync: bool,
    /// A segment that has so many bytes is followed by the next.
    pub segment_bytes: u64,
    /// And one that is so old: what is done with is not kept for long.
    pub segment_age: Duration,
    /// A file whose start is damaged is set aside; else nothing is opened.
    pub recreate: bool,
}

/// Hears what is wrong; called from any thread.
pub type Report = Box<dyn Fn(&str) + Send + Sync>;

/// Hears what became of an entry; called on the writing thread, so it must not wait.
pub type Written = Box<dyn FnOnce(Result<Place, Failed>) + Send>;

/// See the crate.
#[derive(Debug)]
pub struct Journal {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// What the thread shares with others.
pub(crate) struct Shared {
    queue: Mutex<Queue>,
    pub came: Condvar,
    pub space: Arc<Space>,
    /// The disk did not take the last entries.
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
    /// Bytes of data among them.
    pub bytes: u64,
    /// Segments that nobody holds any more.
    pub let_go: Vec<u64>,
    pub closing: bool,
}

/// An entry that waits.
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
    /// Opens the journal of a folder, which is made if it is not there. The folder is the caller's alone (see
    /// [`Lock`](crate::Lock)).
    ///
    /// # Errors
    /// Why it cannot be opened.
    pub fn open(
        folder: &Path,
        settings: Settings,
        space: Arc<Space>,
        report: Report,
    ) -> Result<(Journal, Left), String> {
        let fault = |error: io::Error| format!("{}: {error}", folder.display());
        fs::create_dir_all(folder).map_err(fault)?;
        let shared = Arc::new(Shared {
            queue: Mutex::default(),
            came: Condvar::new(),
            space,
            is_failing: AtomicBool::new(false),
        });
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

    /// Appends an entry of data, made of two parts. `written` hears when it is there, and gets its place.
    ///
    /// # Errors
    /// Why it is not taken; `written` hears nothing then.
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

    /// Notes something. It is written in its turn, whatever room there is: notes are what makes room.
    pub fn note(&self, note: Vec<u8>) {
        self.control(Kind::Note, note);
    }

    /// An entry need not be read again.
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

    /// Writes what waits, removes what nobody needs, and ends.
    pub fn end(&self) {
        self.shared.queue().closing = true;
        self.shared.came.notify_one();
        let thread = self.thread.lock();
        let thread = thread.unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // It does not panic; if it did, there is nothing to be saved here.
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
    pub fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nobody holds a segment any more.
    pub(crate) fn let_go(&self, segment: u64) {
        self.queue().let_go.push(segment);
        self.came.notify_one();
    }
}
