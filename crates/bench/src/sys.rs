//! The only module of this crate with `unsafe` code: epoll, signals and resource limits, each in a
//! safe function.
//!
//! The only state here is the flag that an interrupt sets.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

#[cfg(feature = "tls")]
use tokio::io::unix::AsyncFd;

/// Set by SIGINT or SIGTERM after [`catch_interrupts`] was called.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

extern "C" fn note_interrupt(_signal: libc::c_int) {
    INTERRUPTED.store(true, Ordering::Relaxed);
}

/// From now on, the first SIGINT or SIGTERM only sets the flag; a second one ends the process.
pub fn catch_interrupts() {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        // SAFETY: an all-zero sigaction is a valid value: no flags, an empty mask.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = note_interrupt as extern "C" fn(libc::c_int) as libc::sighandler_t;
        action.sa_flags = libc::SA_RESETHAND;
        // SAFETY: the handler only stores to an atomic, which is async-signal-safe; both pointers
        // are valid.
        unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) };
    }
}

/// Whether SIGINT or SIGTERM arrived since [`catch_interrupts`].
pub fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// Waits for `time`, or less when a signal arrives.
pub fn pause(time: Duration) {
    let ms = libc::c_int::try_from(time.as_millis()).unwrap_or(libc::c_int::MAX);
    // SAFETY: with a count of 0 the descriptor array is not read.
    unsafe { libc::poll(std::ptr::null_mut(), 0, ms) };
}

/// Sends `signal` to the process `pid`.
///
/// # Errors
/// `ESRCH` if it has ended, `EPERM` if it belongs to another user.
pub fn kill(pid: u32, signal: libc::c_int) -> io::Result<()> {
    let pid = libc::pid_t::try_from(pid).map_err(io::Error::other)?;
    // SAFETY: takes two integers.
    check(unsafe { libc::kill(pid, signal) }).map(drop)
}

/// Makes the child of `command` get SIGTERM when the thread that starts it ends, however that ends.
pub fn die_with_parent(command: &mut Command) {
    // SAFETY: the closure runs between fork and exec and makes one system call that takes integers
    // only.
    unsafe {
        command.pre_exec(|| check(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM)).map(drop));
    }
}

/// Raises the limit of open files towards `wanted`, beyond the hard limit where that is allowed.
/// Returns the limit that holds now.
pub fn raise_open_files(wanted: u64) -> u64 {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the pointer is to a valid rlimit.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
    if limit.rlim_cur >= wanted {
        return limit.rlim_cur;
    }
    for max in [limit.rlim_max.max(wanted), limit.rlim_max] {
        let new = libc::rlimit {
            rlim_cur: max.min(wanted),
            rlim_max: max,
        };
        // SAFETY: the pointer is to a valid rlimit.
        if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const new) } == 0 {
            return new.rlim_cur;
        }
    }
    limit.rlim_cur
}

/// What this thread has had of a core since it began: a busy machine does not show in it.
#[cfg(any(feature = "patterns", feature = "tls"))]
pub fn thread_time() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the kernel writes one `timespec`, which lives for the call.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// How many clock ticks `/proc/PID/stat` counts in a second.
pub fn ticks_per_second() -> u64 {
    // SAFETY: takes an integer.
    u64::try_from(unsafe { libc::sysconf(libc::_SC_CLK_TCK) }).unwrap_or(100)
}

/// A timer as a file descriptor, which is readable once it has expired.
#[cfg(feature = "tls")]
pub struct TimerFd(OwnedFd);

#[cfg(feature = "tls")]
impl TimerFd {
    /// A timer that is not armed.
    ///
    /// # Errors
    /// Descriptors or memory are exhausted.
    pub fn new() -> io::Result<Self> {
        let flags = libc::TFD_NONBLOCK | libc::TFD_CLOEXEC;
        // SAFETY: takes two integers.
        let fd = check(unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, flags) })?;
        // SAFETY: the descriptor is new and nobody else owns it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Arms it for `time` from now. It is not readable before.
    ///
    /// # Errors
    /// Those of `timerfd_settime(2)`.
    pub fn arm(&self, time: Duration) -> io::Result<()> {
        let value = libc::itimerspec {
            it_interval: libc::timespec {
                tv_sec: 0,
                tv_nsec: 0,
            },
            it_value: libc::timespec {
                tv_sec: libc::time_t::try_from(time.as_secs()).unwrap_or(libc::time_t::MAX),
                // A value of 0 would disarm the timer.
                tv_nsec: libc::c_long::from(time.subsec_nanos().max(1).cast_signed()),
            },
        };
        let (fd, old) = (self.0.as_raw_fd(), std::ptr::null_mut());
        // SAFETY: the pointer is to a valid itimerspec; the old value is not requested. Setting the
        // timer clears an unread expiry.
        check(unsafe { libc::timerfd_settime(fd, 0, &raw const value, old) })?;
        Ok(())
    }
}

#[cfg(feature = "tls")]
impl AsRawFd for TimerFd {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// A timer of tokio's that is more exact than tokio's milliseconds.
#[cfg(feature = "tls")]
pub struct Timer(AsyncFd<TimerFd>);

#[cfg(feature = "tls")]
impl Timer {
    /// A timer that is not armed, in a runtime.
    ///
    /// # Errors
    /// Descriptors or memory are exhausted.
    pub fn new() -> io::Result<Self> {
        // SAFETY: an owned descriptor stays open, and the same, until it is dropped.
        Ok(Self(unsafe { AsyncFd::register(TimerFd::new()?) }?))
    }

    /// Waits for `time`.
    ///
    /// # Errors
    /// Those of `timerfd_settime(2)`.
    pub async fn wait(&self, time: Duration) -> io::Result<()> {
        self.0.get_ref().arm(time)?;
        self.0.readable().await?.clear_ready();
        Ok(())
    }
}

/// An epoll instance.
pub struct Epoll(OwnedFd);

impl Epoll {
    /// Most events that one [`Epoll::wait`] returns.
    pub const EVENTS_MAX: usize = 256;

    /// A new instance.
    ///
    /// # Errors
    /// Descriptors or memory are exhausted.
    pub fn new() -> io::Result<Self> {
        // SAFETY: takes an integer.
        let fd = check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        // SAFETY: the descriptor is new and nobody else owns it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Watches a connection, edge-triggered, for reading and writing.
    ///
    /// # Errors
    /// Those of `epoll_ctl(2)`.
    pub fn watch_stream(&self, fd: &impl AsRawFd) -> io::Result<()> {
        self.add(
            fd.as_raw_fd(),
            libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLRDHUP | libc::EPOLLET,
        )
    }

    /// Watches a listener that several instances share; an event wakes one of them.
    ///
    /// # Errors
    /// Those of `epoll_ctl(2)`.
    pub fn watch_listener(&self, fd: &impl AsRawFd) -> io::Result<()> {
        self.add(fd.as_raw_fd(), libc::EPOLLIN | libc::EPOLLEXCLUSIVE)
    }

    fn add(&self, fd: RawFd, events: libc::c_int) -> io::Result<()> {
        let mut event = libc::epoll_event {
            events: events.cast_unsigned(),
            u64: u64::from(fd.cast_unsigned()),
        };
        // SAFETY: the pointer is to a valid event; the kernel checks both descriptors.
        check(unsafe {
            libc::epoll_ctl(self.0.as_raw_fd(), libc::EPOLL_CTL_ADD, fd, &raw mut event)
        })
        .map(drop)
    }

    /// Waits without a limit and puts the descriptors with events into `ready`.
    ///
    /// # Errors
    /// Those of `epoll_wait(2)`, except `EINTR`, which returns without descriptors.
    pub fn wait(&self, ready: &mut Vec<RawFd>) -> io::Result<()> {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; Self::EVENTS_MAX];
        let room = libc::c_int::try_from(events.len()).unwrap_or(1);
        ready.clear();
        // SAFETY: the array has room for the given number of events.
        let count = match check(unsafe {
            libc::epoll_wait(self.0.as_raw_fd(), events.as_mut_ptr(), room, -1)
        }) {
            Ok(count) => usize::try_from(count).unwrap_or(0),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
            Err(error) => return Err(error),
        };
        ready.extend(
            events
                .iter()
                .take(count)
                .filter_map(|event| RawFd::try_from(event.u64).ok()),
        );
        Ok(())
    }
}

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}
