//! The system calls of the process' life: the one module of this crate with `unsafe` code.

use std::io;
use std::mem::{MaybeUninit, zeroed};
use std::process::ExitCode;
use std::time::Duration;

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

    /// Waits for one of them, for so long.
    pub fn wait_for(&self, left: Duration) -> Option<libc::c_int> {
        let left = libc::timespec {
            tv_sec: left.as_secs() as _,
            tv_nsec: left.subsec_nanos() as _,
        };
        // SAFETY: the pointers describe the set and the time; no info is asked for.
        let signal = unsafe { libc::sigtimedwait(&self.0, std::ptr::null_mut(), &left) };
        (signal > 0).then_some(signal)
    }

    /// Lets them do again what they do by default.
    pub fn release(&self) {
        // SAFETY: the pointer describes the set.
        unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, &self.0, std::ptr::null_mut()) };
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

/// Sets the limit of descriptors to `wanted`, or to all that may be had, but not to more than `most`; how many there are now.
pub(crate) fn limit_descriptors(wanted: Option<u64>, most: u64) -> u64 {
    // SAFETY: an all-zero rlimit is valid; the pointers describe it.
    unsafe {
        let mut limit: libc::rlimit = zeroed();
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) != 0 {
            return 1024;
        }
        let target = wanted.unwrap_or(limit.rlim_max).min(most);
        if target != limit.rlim_cur {
            let raised = libc::rlimit {
                rlim_cur: target,
                rlim_max: limit.rlim_max.max(target),
            };
            let capped = libc::rlimit {
                rlim_cur: target.min(limit.rlim_max),
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

/// Which side of [`go_to_background`] this is.
pub(crate) enum Background {
    /// The process that was started. It ends with this code: 0 once the daemon serves, otherwise the daemon's.
    Starter(ExitCode),
    /// The process in the background.
    Daemon(Detached),
}

/// A daemon that still has the standard streams of who started it, and makes that one wait.
pub(crate) struct Detached(io::PipeWriter);

impl Detached {
    /// The daemon serves: lets go of the standard streams, and the process that was started ends well. Dropped without it, that one
    /// waits for the end of this process.
    pub fn ready(mut self) {
        use io::Write as _;
        leave_standard_streams();
        // Nobody may be waiting any more.
        let _ = self.0.write_all(b"R");
    }
}

/// Goes on in a process in the background; what this one waits for is that process' [`Detached::ready`]. No thread may run yet.
///
/// # Errors
/// `errno` of `pipe` or `fork`.
pub(crate) fn go_to_background(signals: &Signals) -> io::Result<Background> {
    let (reader, writer) = io::pipe()?;
    // SAFETY: this process has one thread, so the child may do anything.
    match check(unsafe { libc::fork() })? {
        0 => {
            drop(reader);
            // SAFETY: no pointers.
            unsafe { libc::setsid() };
            Ok(Background::Daemon(Detached(writer)))
        }
        _ => {
            drop(writer);
            signals.release();
            let code = match read_byte(&reader) {
                true => 0,
                false => wait_for_child().map_or(1, |(_, code)| code.max(1)),
            };
            Ok(Background::Starter(ExitCode::from(code)))
        }
    }
}

/// Makes the standard streams of a daemon lead nowhere.
pub(crate) fn leave_standard_streams() {
    // SAFETY: a NUL-terminated path and descriptors of our own.
    unsafe {
        let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
        for fd in 0..3 {
            libc::dup2(null, fd);
        }
        if null > 2 {
            libc::close(null);
        }
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
    // SAFETY: other threads of a master are those of its runtime interface, which hold no lock that the child takes; the allocator's
    // are made whole by the C library.
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

/// Ends the process as it is (`debug dev exit`).
#[expect(
    clippy::disallowed_methods,
    reason = "nothing is to be put in order: that is what is asked for"
)]
pub(crate) fn exit_now(code: i32) -> ! {
    std::process::exit(code)
}

/// Waits for a byte; false when the other side was closed without one.
pub(crate) fn read_byte(mut pipe: &io::PipeReader) -> bool {
    use std::io::Read as _;
    pipe.read_exact(&mut [0]).is_ok()
}

/// Closes descriptors that threads of the process before a fork owned. Nothing in this process owns them.
pub(crate) fn close_inherited(descriptors: &[std::os::fd::RawFd]) {
    for fd in descriptors {
        // SAFETY: the threads that owned it do not exist in this process, so nobody uses or closes it.
        unsafe { libc::close(*fd) };
    }
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
