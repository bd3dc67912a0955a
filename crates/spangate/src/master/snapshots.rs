//! The files of a worker's reload in place. The worker may be in a `chroot` or have no right to read
//! them. Its master has, but does not read a file because a worker names it: a process of its own
//! reads the configuration of the command line, and what that names, and sends a snapshot.

use std::io::BufWriter;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

use super::board::Board;
use crate::args::Args;
use crate::load;
use crate::process::FILES_TIME;
use crate::sys::{self, Child};

/// Forks a process that reads the files and sends them. Returns its number.
///
/// # Errors
/// The system allows no other process.
pub(super) fn send(args: &Args, board: &Board, to: UnixStream) -> std::io::Result<i32> {
    // As for a worker: no other thread holds the lock in the child.
    let state = board.lock();
    match sys::fork_worker()? {
        Child::Me => {
            sys::close_inherited(&state.descriptors);
            drop(state);
            sys::end_after(FILES_TIME);
            let ((), snapshot) = files::record(|| {
                files::without_pipes(|| load::read_everything(args));
            });
            // The worker reports what it does not get.
            let _ = snapshot.write_to(BufWriter::new(to));
            sys::end_worker(ExitCode::SUCCESS)
        }
        Child::Other(pid) => Ok(pid),
    }
}
