//! The system calls of the process' life: the one module of this crate with `unsafe` code.

use std::ffi::CString;
use std::io;
use std::mem::{MaybeUninit, zeroed};
use std::process::ExitCode;

/// The signals that the process waits for, blocked in every thread that is started after [`Signals::block`].
pub(crate) struct Signals(libc::sigset_t);

fn check(rc: libc::c_int) -> io::Result<libc::c_int> {
    if rc < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(rc)
    }
}

impl Signals {
    /// Blocks these signals in this thread and those it starts.
    ///
    /// # Errors
    /// `errno` of `pthread_sigmask`.
    pub fn block(signals: &[libc::c_int]) -> io::Result<Self> {
        // SAFETY: sigemptyset fills the set that the pointer describes; sigaddset and pthread_sigmask read it.
        unsafe {
            let mut set = MaybeUninit::<libc::sigset_t>::uninit();
            libc::sigemptyset(set.as_mut_ptr());
            let mut set = set.assume_init();
            for signal in signals {
                libc::sigaddset(&mut set, *signal);
            }
            check(libc::pthread_sigmask(
                libc::SIG_BLOCK,
                &set,
                std::ptr::null_mut(),
            ))?;
            Ok(Signals(set))
        }
    }

    /// Waits for one of them.
    pub fn wait(&self) -> Option<libc::c_int> {
        // SAFETY: the pointer describes the set; no info is asked for.
        let signal = unsafe { libc::sigwaitinfo(&self.0, std::ptr::null_mut()) };
        (signal > 0).then_some(signal)
    }
}

/// Sends a signal to a process.
pub(crate) fn kill(pid: i32, signal: libc::c_int) -> io::Result<()> {
    // SAFETY: no pointers.
    check(unsafe { libc::kill(pid, signal) }).map(drop)
}

/// Makes the main thread's wait see a signal of this process' own.
pub(crate) fn signal_self(signal: libc::c_int) {
    // SAFETY: no pointers.
    unsafe { libc::kill(libc::getpid(), signal) };
}

/// Asks for `wanted` descriptors, or all that may be had, but not more than `most`; how many there are now.
pub(crate) fn raise_descriptors(wanted: Option<u64>, most: u64) -> u64 {
    // SAFETY: an all-zero rlimit is valid; the pointers describe it.
    unsafe {
        let mut limit: libc::rlimit = zeroed();
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) != 0 {
            return 1024;
        }
        let target = wanted.unwrap_or(limit.rlim_max).min(most);
        if target > limit.rlim_cur {
            let raised = libc::rlimit {
                rlim_cur: target,
                rlim_max: limit.rlim_max.max(target),
            };
            let capped = libc::rlimit {
                rlim_cur: limit.rlim_max,
                rlim_max: limit.rlim_max,
            };
            if libc::setrlimit(libc::RLIMIT_NOFILE, &raised) != 0 {
                libc::setrlimit(libc::RLIMIT_NOFILE, &capped);
            }
            libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit);
        }
        limit.rlim_cur
    }
}

/// Limits the address space (`-m`).
///
/// # Errors
/// `errno` of `setrlimit`.
pub(crate) fn limit_memory(bytes: u64) -> io::Result<()> {
    let limit = libc::rlimit {
        rlim_cur: bytes,
        rlim_max: bytes,
    };
    // SAFETY: the pointer describes the limit.
    check(unsafe { libc::setrlimit(libc::RLIMIT_AS, &limit) }).map(drop)
}

/// Confines the process: chroot, then group, then user; each only where asked for.
///
/// # Errors
/// The step that failed.
pub(crate) fn confine(
    chroot: Option<&str>,
    uid: Option<u32>,
    gid: Option<u32>,
) -> Result<(), String> {
    let failed = |what: &str| format!("Cannot {what} : {}.", io::Error::last_os_error());
    if let Some(directory) = chroot {
        let path =
            CString::new(directory).map_err(|_| "Cannot chroot : a NUL in the path.".to_owned())?;
        let root = c"/";
        // SAFETY: both pointers are NUL-terminated strings.
        if unsafe { libc::chroot(path.as_ptr()) != 0 || libc::chdir(root.as_ptr()) != 0 } {
            return Err(failed(&format!("chroot({directory})")));
        }
    }
    if let Some(gid) = gid {
        // SAFETY: no supplementary groups: the pointer is not read.
        unsafe { libc::setgroups(0, std::ptr::null()) };
        // SAFETY: no pointers.
        if unsafe { libc::setgid(gid) } != 0 {
            return Err(failed(&format!("set gid {gid}")));
        }
    }
    if let Some(uid) = uid {
        // SAFETY: no pointers.
        if unsafe { libc::setuid(uid) } != 0 {
            return Err(failed(&format!("set uid {uid}")));
        }
    }
    Ok(())
}

/// Goes to the background. Returns the child's number in the parent, none in the child. No thread may run yet.
///
/// # Errors
/// `errno` of `fork`.
pub(crate) fn fork_to_background() -> io::Result<Option<i32>> {
    // SAFETY: this process has one thread, so the child may do anything.
    match check(unsafe { libc::fork() })? {
        0 => {
            // SAFETY: no pointers, then a NUL-terminated path and descriptors of our own.
            unsafe {
                libc::setsid();
                let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
                for fd in 0..3 {
                    libc::dup2(null, fd);
                }
                if null > 2 {
                    libc::close(null);
                }
            }
            Ok(None)
        }
        child => Ok(Some(child)),
    }
}

/// Which side of a fork this is.
pub(crate) enum Child {
    Me,
    Other(i32),
}

/// Forks a worker, which ends when its master does. No thread may run yet.
///
/// # Errors
/// `errno` of `fork`.
pub(crate) fn fork_worker() -> io::Result<Child> {
    let master = std::process::id() as i32;
    // SAFETY: this process has one thread, so the child may do anything.
    match check(unsafe { libc::fork() })? {
        0 => {
            // SAFETY: no pointers.
            let orphaned = unsafe {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM);
                libc::getppid() != master
            };
            if orphaned {
                end_worker(ExitCode::FAILURE);
            }
            Ok(Child::Me)
        }
        child => Ok(Child::Other(child)),
    }
}

/// Ends a worker process: it must not return into its master's code.
#[expect(
    clippy::disallowed_methods,
    reason = "a forked worker has no caller to return to"
)]
pub(crate) fn end_worker(code: ExitCode) -> ! {
    std::process::exit(i32::from(code != ExitCode::SUCCESS))
}

/// Waits for a byte; false when the other side was closed without one.
pub(crate) fn read_byte(mut pipe: &io::PipeReader) -> bool {
    use std::io::Read as _;
    pipe.read_exact(&mut [0]).is_ok()
}

/// A child that has ended, and its exit code (128 and the signal's number for one that a signal ended).
pub(crate) fn reap() -> Option<(i32, u8)> {
    wait_with(libc::WNOHANG)
}

/// Waits for any child to end; none is left when there is no answer.
pub(crate) fn wait_for_child() -> Option<(i32, u8)> {
    wait_with(0)
}

fn wait_with(options: libc::c_int) -> Option<(i32, u8)> {
    let mut status = 0;
    // SAFETY: the pointer describes `status`.
    let pid = unsafe { libc::waitpid(-1, &mut status, options) };
    let code = match libc::WIFSIGNALED(status) {
        true => 128 + libc::WTERMSIG(status),
        false => libc::WEXITSTATUS(status),
    };
    (pid > 0).then_some((pid, code as u8))
}

/// The machine's name.
pub(crate) fn hostname() -> String {
    let mut name = [0_u8; 256];
    // SAFETY: pointer and length describe the buffer, whose last byte stays NUL.
    unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len() - 1) };
    let len = name.iter().position(|byte| *byte == 0).unwrap_or(0);
    String::from_utf8_lossy(&name[..len]).into_owned()
}

/// Seconds that local time is ahead of UTC now.
pub(crate) fn utc_offset_seconds() -> i32 {
    // SAFETY: localtime_r fills the tm that the pointer describes; all-zero is valid.
    unsafe {
        let now = libc::time(std::ptr::null_mut());
        let mut local: libc::tm = zeroed();
        libc::localtime_r(&now, &mut local);
        local.tm_gmtoff as i32
    }
}

/// Random bits from the system.
pub(crate) fn random_seed() -> u64 {
    let mut seed = 0_u64;
    // SAFETY: pointer and length describe `seed`.
    unsafe { libc::getrandom((&raw mut seed).cast(), size_of::<u64>(), 0) };
    seed
}

/// Free memory up to this is kept rather than given back.
#[cfg(all(target_env = "gnu", feature = "export"))]
const KEPT_BYTES_MAX: libc::c_int = 64 << 20;
/// Pieces up to this are of the memory that is kept; the most that glibc takes.
#[cfg(all(target_env = "gnu", feature = "export"))]
const KEPT_PIECE_BYTES_MAX: libc::c_int = 32 << 20;

/// Lets the allocator keep what is freed for what is asked for next. Bodies of requests come and go by the hundred
/// kilobytes, and glibc gives such pieces back to the kernel each time, which zeroes them each time: for a receiver that is
/// more work than all else.
#[cfg(feature = "export")]
pub(crate) fn keep_memory() {
    // SAFETY: no pointers; called before there are other threads.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, KEPT_PIECE_BYTES_MAX);
        libc::mallopt(libc::M_TRIM_THRESHOLD, KEPT_BYTES_MAX);
    }
}

/// Bytes of memory in use: what the allocator has given out.
#[cfg(all(target_env = "gnu", feature = "export"))]
pub(crate) fn memory_used_bytes() -> u64 {
    // SAFETY: no pointers.
    let info = unsafe { libc::mallinfo2() };
    (info.uordblks + info.hblkhd) as u64
}

#[cfg(all(not(target_env = "gnu"), feature = "export"))]
pub(crate) fn memory_used_bytes() -> u64 {
    collector::run::process::memory::resident_bytes()
}
