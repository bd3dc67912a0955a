//! CPU time, which other programs on the machine do not change much, and how late decisions are.

use std::collections::VecDeque;
use std::fmt;

/// CPU time of this thread.
fn cpu_ns() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is that of a `timespec` that lives while the call runs.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Resident bytes of this process, which has one thread.
pub fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().split(' ').next()?.parse::<u64>().ok());
    kib.unwrap_or_default() * 1024
}

/// Calls of one kind.
#[derive(Default)]
pub struct Work {
    /// What they took together.
    pub all_ns: u64,
    /// Spans that they took in.
    pub spans: u64,
    took_ns: Vec<u32>,
}

impl Work {
    /// Calls something; gives what it gave, and what it took.
    pub fn measure<T>(&mut self, work: impl FnOnce() -> T) -> (T, u64) {
        let start = cpu_ns();
        let done = work();
        let took_ns = cpu_ns() - start;
        self.all_ns += took_ns;
        self.took_ns.push(took_ns as u32);
        (done, took_ns)
    }
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut took = self.took_ns.clone();
        took.sort_unstable();
        let at = |part: f64| {
            took.get((took.len() as f64 * part) as usize)
                .or(took.last())
        };
        let ms = |part| f64::from(*at(part).unwrap_or(&0)) / 1e6;
        write!(
            f,
            "{} calls, {:.3} ms p50, {:.3} p99, {:.3} longest",
            took.len(),
            ms(0.5),
            ms(0.99),
            ms(1.0)
        )
    }
}

/// Traces in the order of their arrival, which is that of their decisions, and how late these were.
#[derive(Default)]
pub struct Late {
    /// When they are due, and how many.
    waiting: VecDeque<(u64, u64)>,
    /// How late, in microseconds, and how many.
    late: Vec<(u64, u64)>,
}

impl Late {
    /// Traces came.
    pub fn arrived(&mut self, traces: u64, due_ns: u64) {
        if traces > 0 {
            self.waiting.push_back((due_ns, traces));
        }
    }

    /// So many of the oldest were decided; they are noted if `counts`.
    pub fn decided(&mut self, mut traces: u64, now_ns: u64, counts: bool) {
        while traces > 0
            && let Some((due_ns, waiting)) = self.waiting.front_mut()
        {
            let some = traces.min(*waiting);
            if counts {
                self.late
                    .push((now_ns.saturating_sub(*due_ns) / 1000, some));
            }
            *waiting -= some;
            traces -= some;
            if *waiting == 0 {
                self.waiting.pop_front();
            }
        }
    }
}

impl fmt::Display for Late {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut late = self.late.clone();
        late.sort_unstable();
        let all: u64 = late.iter().map(|(_, traces)| traces).sum();
        let at = |part: f64| {
            let mut left = (all as f64 * part) as u64;
            let found = late.iter().find(|(_, traces)| {
                let here = left < *traces;
                left = left.saturating_sub(*traces);
                here
            });
            found
                .or(late.last())
                .map_or(0.0, |(us, _)| *us as f64 / 1e3)
        };
        let (half, most, longest) = (at(0.5), at(0.99), at(1.0));
        write!(f, "{half:.2} ms p50, {most:.2} p99, {longest:.2} longest")
    }
}
