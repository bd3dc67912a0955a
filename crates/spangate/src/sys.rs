//! The system calls of the process's life cycle. Only this module and `confine` have `unsafe` code
//! in this crate.

use std::io;
use std::mem::{MaybeUninit, zeroed};
use std::os::fd::{FromRawFd as _, OwnedFd};
use std::process::ExitCode;
use std::time::Duration;

/// The signals that the process waits for, blocked in every thread that is started after
/// [`Signals::block`].
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
        let signals = Signals::of(signals);
        // SAFETY: the pointer describes the set.
        check(unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &signals.0, std::ptr::null_mut()) })?;
        Ok(signals)
    }

    fn of(signals: &[libc::c_int]) -> Self {
        // SAFETY: sigemptyset fills the set that the pointer describes; sigaddset changes it.
        unsafe {
            let mut set = MaybeUninit::<libc::sigset_t>::uninit();
            libc::sigemptyset(set.as_mut_ptr());
            let mut set = set.assume_init();
            for signal in signals {
                libc::sigaddset(&mut set, *signal);
            }
            Signals(set)
        }
    }

    /// Waits for one of the signals, for at most `left`.
    pub fn wait_for(&self, left: Duration) -> Option<libc::c_int> {
        let left = libc::timespec {
            tv_sec: left.as_secs() as _,
            tv_nsec: left.subsec_nanos() as _,
        };
        // SAFETY: the pointers describe the set and the time; no info is asked for.
        let signal = unsafe { libc::sigtimedwait(&self.0, std::ptr::null_mut(), &left) };
        (signal > 0).then_some(signal)
    }

    /// A descriptor that is readable while one of the signals waits for this process.
    ///
    /// # Errors
    /// `errno` of `signalfd`.
    pub fn descriptor(&self) -> io::Result<OwnedFd> {
        // SAFETY: the pointer describes the set; the new descriptor has no other owner.
        unsafe {
            let fd = check(libc::signalfd(-1, &self.0, libc::SFD_CLOEXEC))?;
            Ok(OwnedFd::from_raw_fd(fd))
        }
    }

    /// Unblocks the signals, so that their default actions apply again.
    pub fn release(&self) {
        // SAFETY: the pointer describes the set.
        unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, &self.0, std::ptr::null_mut()) };
    }

    /// Waits for one of the signals.
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

/// Whether a process exists. One of another user does.
pub(crate) fn is_alive(pid: i32) -> bool {
    match kill(pid, 0) {
        Ok(()) => true,
        Err(error) => error.raw_os_error() == Some(libc::EPERM),
    }
}

/// Sends a signal to this process, for the wait of the main thread.
pub(crate) fn signal_self(signal: libc::c_int) {
    // SAFETY: no pointers.
    unsafe { libc::kill(libc::getpid(), signal) };
}

/// Sets the limit of descriptors to `wanted`, or to the highest allowed value, but to no more than
/// `most`. Returns the limit that holds now.
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

/// The highest limit of descriptors that this process may set.
pub(crate) fn hard_limit_of_descriptors() -> u64 {
    // SAFETY: an all-zero rlimit is valid; the pointer describes it.
    unsafe {
        let mut limit: libc::rlimit = zeroed();
        libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit);
        limit.rlim_max
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

/// The side of [`go_to_background`] on which the caller runs.
pub(crate) enum Background {
    /// The process that the user started. It ends with this code: 0 when the daemon serves,
    /// otherwise the daemon's exit code.
    Starter(ExitCode),
    /// The process in the background.
    Daemon(Detached),
}

/// A daemon that still has the standard streams of the process that the user started, and makes
/// that process wait.
pub(crate) struct Detached(io::PipeWriter);

impl Detached {
    /// Reports that the daemon serves: the daemon closes the standard streams, and the waiting
    /// process ends with success. If this value is dropped instead, the waiting process waits for
    /// the end of the daemon.
    pub fn ready(mut self) {
        use io::Write as _;
        if let Some(null) = null() {
            leave_standard_streams(&null);
        }
        // The other process may not wait any more.
        let _ = self.0.write_all(b"R");
    }
}

/// Forks a process that continues in the background. This process waits for [`Detached::ready`] of
/// that one. No thread may run yet.
///
/// # Errors
/// `errno` of `pipe` or `fork`.
pub(crate) fn go_to_background(signals: &Signals) -> io::Result<Background> {
    let (reader, writer) = io::pipe()?;
    // SAFETY: this process has one thread, so the child may call any function.
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
            let code = if read_byte(&reader) {
                0
            } else {
                wait_for_child().map_or(1, |(_, code)| code.max(1))
            };
            Ok(Background::Starter(ExitCode::from(code)))
        }
    }
}

/// Opens /dev/null, which is out of reach after a chroot. None if there is none.
pub(crate) fn null() -> Option<std::fs::File> {
    let mut options = std::fs::File::options();
    options.read(true).write(true).open("/dev/null").ok()
}

/// Redirects the standard streams of a daemon to /dev/null.
pub(crate) fn leave_standard_streams(null: &std::fs::File) {
    for fd in 0..3 {
        // SAFETY: no pointers; the standard streams belong to no object.
        unsafe { libc::dup2(std::os::fd::AsRawFd::as_raw_fd(null), fd) };
    }
}

/// The side of a fork on which the caller runs.
pub(crate) enum Child {
    Me,
    Other(i32),
}

/// Forks a worker, which ends when its master ends. No thread may run yet, except those of the
/// master's runtime interface.
///
/// # Errors
/// `errno` of `fork`.
pub(crate) fn fork_worker() -> io::Result<Child> {
    let master = std::process::id() as i32;
    // SAFETY: the only other threads of a master are those of its runtime interface. They hold no
    // lock that the child takes. The C library restores the allocator's locks in the child.
    match check(unsafe { libc::fork() })? {
        0 => {
            // The master blocks SIGTERM. A worker that reads its files ends by it.
            Signals::of(&[libc::SIGTERM]).release();
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

/// Lets the system end this process after a time, unless it ends before (SIGALRM).
pub(crate) fn end_after(time: std::time::Duration) {
    let seconds = u32::try_from(time.as_secs()).unwrap_or(u32::MAX);
    // SAFETY: no pointers; the signal has its default action.
    unsafe { libc::alarm(seconds) };
}

/// Ends the process at once, without cleanup (`debug dev exit`).
#[expect(
    clippy::disallowed_methods,
    reason = "nothing is to be put in order: that is what is asked for"
)]
pub(crate) fn exit_now(code: i32) -> ! {
    std::process::exit(code)
}

/// Waits for a byte. Returns false if the other side closed without one.
pub(crate) fn read_byte(mut pipe: &io::PipeReader) -> bool {
    use std::io::Read as _;
    pipe.read_exact(&mut [0]).is_ok()
}

/// Closes descriptors that belonged to threads of the process before a fork. Nothing in this
/// process owns them.
pub(crate) fn close_inherited(descriptors: &[std::os::fd::RawFd]) {
    for fd in descriptors {
        // SAFETY: the owning threads do not exist in this process, so nothing else uses or closes
        // the descriptor.
        unsafe { libc::close(*fd) };
    }
}

/// A child that has ended, and its exit code (128 plus the signal's number after a signal).
pub(crate) fn reap() -> Option<(i32, u8)> {
    wait_with(libc::WNOHANG)
}

/// Waits for any child to end. None: there is no child left.
pub(crate) fn wait_for_child() -> Option<(i32, u8)> {
    wait_with(0)
}

fn wait_with(options: libc::c_int) -> Option<(i32, u8)> {
    let mut status = 0;
    // SAFETY: the pointer describes `status`.
    let pid = unsafe { libc::waitpid(-1, &mut status, options) };
    let code = if libc::WIFSIGNALED(status) {
        128 + libc::WTERMSIG(status)
    } else {
        libc::WEXITSTATUS(status)
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

/// Random bytes that nobody else knows.
pub(crate) fn secret() -> [u8; 32] {
    let mut secret = [0; 32];
    for part in secret.chunks_mut(size_of::<u64>()) {
        part.copy_from_slice(&random_seed().to_ne_bytes());
    }
    secret
}

/// Free memory up to this size is kept instead of returned to the kernel.
#[cfg(all(target_env = "gnu", feature = "export"))]
const KEPT_BYTES_MAX: libc::c_int = 64 << 20;
/// Allocations up to this size use the kept memory; glibc allows no higher value.
#[cfg(all(target_env = "gnu", feature = "export"))]
const KEPT_PIECE_BYTES_MAX: libc::c_int = 32 << 20;

/// Makes the allocator keep freed memory for later allocations. Request bodies are allocated and
/// freed in pieces of hundreds of kilobytes. By default, glibc returns such pieces to the kernel
/// each time, and the kernel zeroes them each time. For a receiver this costs more than all other
/// work.
#[cfg(feature = "export")]
pub(crate) fn keep_memory() {
    // SAFETY: no pointers; called before there are other threads.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, KEPT_PIECE_BYTES_MAX);
        libc::mallopt(libc::M_TRIM_THRESHOLD, KEPT_BYTES_MAX);
    }
}

/// Bytes of memory in use: the sum of live allocations.
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
