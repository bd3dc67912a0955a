//! Folders: one process at a time, and the files in them.

use std::fs::{self, DirBuilder, File, TryLockError};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The file that is locked.
const LOCK_NAME: &str = "lock";
/// Between two attempts to lock it.
const LOCK_AGAIN: Duration = Duration::from_millis(20);
/// How names of segments end.
const EXTENSION: &str = "journal";

/// A folder that this process has for itself; others may have it once this is gone, or the process is.
#[derive(Debug)]
pub struct Lock {
    /// The lock is the file's.
    _file: File,
}

impl Lock {
    /// Locks a folder, which is made with these permissions if any are given. Waits so long for another process.
    ///
    /// # Errors
    /// Why it cannot be had.
    pub fn take(folder: &Path, permissions: Option<u32>, wait: Duration) -> Result<Lock, String> {
        let fault = |error: &dyn std::fmt::Display| format!("{}: {error}", folder.display());
        if let Some(mode) = permissions {
            let made = DirBuilder::new().recursive(true).mode(mode).create(folder);
            made.map_err(|error| fault(&error))?;
        }
        let path = folder.join(LOCK_NAME);
        let file = File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .open(path);
        let file = file.map_err(|error| fault(&error))?;
        let until = now() + wait;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Lock { _file: file }),
                Err(TryLockError::Error(error)) => return Err(fault(&error)),
                Err(TryLockError::WouldBlock) if now() >= until => {
                    return Err(fault(&"another process has it"));
                }
                // There is no event to wait for: the other process does not know of this one.
                Err(TryLockError::WouldBlock) => std::thread::park_timeout(LOCK_AGAIN),
            }
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "files are locked and written in real time; nothing is decided by it"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}

pub(crate) fn path(folder: &Path, segment: u64) -> PathBuf {
    folder.join(format!("{segment:016x}.{EXTENSION}"))
}

/// The segments that are in a folder, the oldest first, and the bytes of their files.
pub(crate) fn segments(folder: &Path) -> io::Result<Vec<(u64, u64)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let number = Path::new(&name)
            .file_stem()
            .and_then(|stem| u64::from_str_radix(stem.to_str()?, 16).ok());
        // Numbers below the highest only, so that there is always a next one.
        if let Some(number) = number.filter(|number| *number < u64::MAX)
            && entry.path() == path(folder, number)
        {
            found.push((number, entry.metadata()?.len()));
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// Folders in a folder that have segments of a journal.
#[must_use]
pub fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let named = entries.filter(|entry| {
        let found = entry.path().is_dir().then(|| segments(&entry.path()));
        found.is_some_and(|found| found.is_ok_and(|found| !found.is_empty()))
    });
    let names = named.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.collect()
}

/// What was made or removed in a folder is on the disk.
pub(crate) fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}
