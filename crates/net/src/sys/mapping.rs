//! Files in memory.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use libc::c_void;

/// Makes a file `bytes` long and reserves room for it, so that later writes through a [`Mapping`] do
/// not find the disk full, which would end the process.
///
/// # Errors
/// The disk is full, or the file system cannot reserve room.
pub fn reserve(file: &File, bytes: u64) -> io::Result<()> {
    let bytes = libc::off_t::try_from(bytes).map_err(|_| io::ErrorKind::FileTooLarge)?;
    // SAFETY: no pointers.
    match unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, bytes) } {
        0 => Ok(()),
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}

/// A file in memory, to write to. What is written is in the file, also if this process is killed.
///
/// Other processes may map the same file, so that its bytes are never lent. A process that cuts the
/// file shorter ends this one with SIGBUS.
#[derive(Debug)]
pub struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the memory belongs to the value, and no thread has a pointer of its own to it.
unsafe impl Send for Mapping {}

impl Mapping {
    /// The first `bytes` of a file that is open for reading and writing, and at least as long.
    ///
    /// # Errors
    /// `errno` of `mmap`.
    pub fn of(file: &File, bytes: usize) -> io::Result<Mapping> {
        // SAFETY: the kernel chooses a free range of addresses.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Mapping { start, bytes })
    }

    /// Writes bytes at a place.
    ///
    /// # Panics
    /// They do not fit.
    pub fn write(&mut self, at: usize, from: &[u8]) {
        let end = at.checked_add(from.len());
        assert!(end.is_some_and(|end| end <= self.bytes), "it fits");
        // SAFETY: the range is within the mapping, which overlaps with no memory of this program.
        unsafe {
            let to = self.start.as_ptr().add(at);
            std::ptr::copy_nonoverlapping(from.as_ptr(), to, from.len());
        }
    }

    /// Writes a number in the byte order of the machine, after all earlier writes and before all
    /// later ones.
    ///
    /// # Panics
    /// It does not fit, or the place is not a multiple of 8.
    pub fn store(&mut self, at: usize, number: u64) {
        let is_aligned = at.is_multiple_of(align_of::<AtomicU64>());
        assert!(is_aligned && at < self.bytes && self.bytes - at >= size_of::<u64>());
        // SAFETY: the place is within the mapping and aligned, because a mapping begins with a page.
        let cell = unsafe { AtomicU64::from_ptr(self.start.as_ptr().add(at).cast()) };
        fence(Ordering::SeqCst);
        cell.store(number, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping belongs to this value, and nothing else refers to it.
        unsafe { libc::munmap(self.start.as_ptr().cast::<c_void>(), self.bytes) };
    }
}
