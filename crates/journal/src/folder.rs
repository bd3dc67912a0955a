//! Folders: a lock that admits one process at a time, and the files in a folder.

use std::fs::{self, DirBuilder, File, TryLockError};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The file that is locked.
const LOCK_NAME: &str = "lock";
/// The pause between two attempts to lock the file.
const LOCK_AGAIN: Duration = Duration::from_millis(20);
/// The extension of segment files.
const EXTENSION: &str = "journal";

/// Exclusive use of a folder. The lock is released when this value is dropped or the process ends.
#[derive(Debug)]
pub struct Lock {
    /// The file holds the lock.
    _file: File,
}

impl Lock {
    /// Locks a folder, and makes it with the given permissions if it does not exist. Waits at most
    /// `wait` for another process.
    ///
    /// # Errors
    /// The folder cannot be made or locked.
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

/// The segments in a folder, the oldest first, and the sizes of their files.
pub(crate) fn segments(folder: &Path) -> io::Result<Vec<(u64, u64)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let number = Path::new(&name)
            .file_stem()
            .and_then(|stem| u64::from_str_radix(stem.to_str()?, 16).ok());
        // The highest number is excluded, so that there is always a next one.
        if let Some(number) = number.filter(|number| *number < u64::MAX)
            && entry.path() == path(folder, number)
        {
            found.push((number, entry.metadata()?.len()));
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// The subfolders of a folder that contain segments of a journal.
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

/// Syncs the directory, so that created and removed files are on the disk.
pub(crate) fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}
