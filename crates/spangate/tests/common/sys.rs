//! The system calls of the tests that the standard library has no function for.

use std::io;
use std::os::fd::RawFd;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Lets the program that `command` starts have these descriptors, by the same numbers.
pub fn inherit(command: &mut Command, fds: Vec<RawFd>) {
    let keep = move || {
        for fd in &fds {
            // SAFETY: no pointers; fcntl may be called between fork and exec.
            if unsafe { libc::fcntl(*fd, libc::F_SETFD, 0) } < 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(())
    };
    // SAFETY: the closure calls only what may be called between fork and exec.
    unsafe { command.pre_exec(keep) };
}

/// Sends a signal; whether there is such a process.
pub fn signal(pid: u32, signal: i32) -> bool {
    // SAFETY: no pointers.
    unsafe { libc::kill(pid as i32, signal) == 0 }
}

/// Asks for this many descriptors; how many there are now.
pub fn raise_descriptors(wanted: u64) -> u64 {
    // SAFETY: an all-zero rlimit is valid; the pointers describe it.
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit);
        if limit.rlim_cur < wanted {
            limit.rlim_cur = wanted.min(limit.rlim_max);
            libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
            libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit);
        }
        limit.rlim_cur
    }
}
