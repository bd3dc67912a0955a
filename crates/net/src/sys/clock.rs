//! Clocks.

use std::mem::zeroed;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

/// The current time of both clocks. Only drivers call this.
#[must_use]
pub fn now() -> crate::Now {
    crate::Now::new(clock(libc::CLOCK_MONOTONIC), clock(libc::CLOCK_REALTIME))
}

/// The most that the wall clock may differ from the time predicted by the monotonic clock,
/// nanoseconds.
const WALL_APART_NS_MAX: u64 = 100_000;

/// The current time. Unless the wall clock was set, it is advanced from `before` by the monotonic
/// clock: two moments have the same distance on both clocks, however long the two readings are
/// apart.
#[must_use]
pub fn now_after(before: crate::Now) -> crate::Now {
    going_on(before, now())
}

fn going_on(before: crate::Now, now: crate::Now) -> crate::Now {
    let passed_ns = now.mono_ns.saturating_sub(before.mono_ns);
    let wall_ns = before.wall_ns.saturating_add(passed_ns);
    if wall_ns.abs_diff(now.wall_ns) <= WALL_APART_NS_MAX {
        crate::Now::new(now.mono_ns, wall_ns)
    } else {
        now
    }
}

/// The monotonic clock alone, in nanoseconds.
#[must_use]
pub fn monotonic_ns() -> u64 {
    clock(libc::CLOCK_MONOTONIC)
}

/// Nanoseconds of processor time that this thread has used.
#[must_use]
pub fn thread_cpu_ns() -> u64 {
    clock(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Nanoseconds of processor time that all threads of the process have used.
#[must_use]
pub fn process_cpu_ns() -> u64 {
    clock(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// The clock of a thread's processor time, which other threads may read.
#[derive(Debug)]
pub struct ThreadClock(AtomicI32);

/// The clock of no thread.
const NO_CLOCK: libc::clockid_t = libc::clockid_t::MAX;

impl Default for ThreadClock {
    fn default() -> Self {
        ThreadClock(AtomicI32::new(NO_CLOCK))
    }
}

impl ThreadClock {
    /// The calling thread becomes the clock's thread.
    pub fn bind(&self) {
        let mut id = NO_CLOCK;
        // SAFETY: the thread is the calling one, and the pointer describes `id`.
        let code = unsafe { libc::pthread_getcpuclockid(libc::pthread_self(), &mut id) };
        self.0.store(if code == 0 { id } else { NO_CLOCK }, Relaxed);
    }

    /// Nanoseconds of processor time that the thread has used; none before [`ThreadClock::bind`],
    /// and after the thread's end.
    #[must_use]
    pub fn cpu_ns(&self) -> Option<u64> {
        match self.0.load(Relaxed) {
            NO_CLOCK => None,
            id => Some(clock(id)).filter(|ns| *ns > 0),
        }
    }
}

/// A clock's nanoseconds; 0 if there is no such clock.
fn clock(id: libc::clockid_t) -> u64 {
    // SAFETY: an all-zero timespec is valid and the pointer describes it.
    let time = unsafe {
        let mut time: libc::timespec = zeroed();
        libc::clock_gettime(id, &mut time);
        time
    };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Whether the kernel's clock is the counter that [`counter`] reads.
#[must_use]
pub fn clock_is_counter() -> bool {
    const SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    cfg!(target_arch = "x86_64")
        && std::fs::read_to_string(SOURCE).is_ok_and(|source| source.trim() == "tsc")
}

/// The processor's counter, which counts at a steady pace; 0 where there is none.
#[must_use]
#[inline]
pub fn counter() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every processor of this architecture has the instruction, and the kernel lets
    // processes use it.
    return unsafe { core::arch::x86_64::_rdtsc() };
    #[cfg(not(target_arch = "x86_64"))]
    0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Now;

    #[test]
    fn the_wall_clock_goes_on_until_it_is_set() {
        let at = |mono_ns, wall_ns| Now::new(mono_ns, wall_ns);
        let before = at(1_000_000, 50_000_000);
        for late in [0, 1, 100_000] {
            let now = going_on(before, at(3_000_000, 52_000_000 + late));
            assert_eq!(now, at(3_000_000, 52_000_000));
        }
        assert_eq!(
            going_on(before, at(3_000_000, 51_900_000)).wall_ns,
            52_000_000
        );
        for set in [at(3_000_000, 52_100_001), at(3_000_000, 0)] {
            assert_eq!(going_on(before, set), set);
        }
    }
}
