//! Child processes: they end with this program, are measured as a tree, and are ended by id.

use std::fs;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use crate::Failure;
use crate::clock::Deadline;
use crate::sys;

/// Most time for a child to end before it is killed.
const END_PATIENCE: Duration = Duration::from_secs(3);
/// The polling interval for a state without an event.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// A running child; the drop ends it.
pub struct Process {
    child: Child,
}

impl Process {
    /// Starts `command` in a separate process group, so that Ctrl-C reaches it only through this
    /// program.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(command: &mut Command) -> io::Result<Self> {
        use std::os::unix::process::CommandExt;
        command.stdin(Stdio::null()).process_group(0);
        sys::die_with_parent(command);
        Ok(Self {
            child: command.spawn()?,
        })
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Its exit status, after it has ended.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Connects to `address` as soon as it listens there.
    ///
    /// # Errors
    /// It has ended, does not listen within `patience`, or this program is interrupted.
    pub fn connect(
        &mut self,
        address: SocketAddr,
        patience: Duration,
    ) -> Result<TcpStream, Failure> {
        let deadline = Deadline::after(patience);
        loop {
            let problem = match TcpStream::connect(address) {
                Ok(stream) => return Ok(stream),
                Err(error) => error,
            };
            if let Some(status) = self.ended() {
                return Err(format!("it ended before it listened on {address}: {status}").into());
            }
            if deadline.passed() || sys::interrupted() {
                return Err(format!("it does not listen on {address}: {problem}").into());
            }
            sys::pause(LOOK_EVERY);
        }
    }

    /// Sends `signal` and waits at most `patience` for the end.
    pub fn end(&mut self, signal: libc::c_int, patience: Duration) -> Option<ExitStatus> {
        let deadline = Deadline::after(patience);
        if self.ended().is_none() && sys::kill(self.id(), signal).is_err() {
            return None;
        }
        loop {
            if let Some(status) = self.ended() {
                return Some(status);
            }
            if deadline.passed() {
                return None;
            }
            sys::pause(LOOK_EVERY);
        }
    }

    /// The number of its descendants.
    #[cfg(feature = "tls")]
    pub fn descendants(&self) -> usize {
        tree(self.id()).len() - 1
    }

    /// The CPU time of the process and all its descendants until now.
    pub fn usage(&self) -> Usage {
        tree(self.id())
            .into_iter()
            .fold(Usage::default(), |sum, pid| sum.add(Usage::of(pid)))
    }

    /// The current memory of the process and all its descendants.
    pub fn memory(&self) -> Memory {
        tree(self.id())
            .into_iter()
            .fold(Memory::default(), |sum, pid| sum.add(Memory::of(pid)))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.end(libc::SIGTERM, END_PATIENCE).is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// CPU time used.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// Time on a CPU in nanoseconds, if the kernel records it exactly.
    run_ns: u64,
    /// In user mode, in clock ticks.
    user_ticks: u64,
    /// In the kernel, in clock ticks.
    system_ticks: u64,
}

impl Usage {
    fn of(pid: u32) -> Self {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let (user_ticks, system_ticks) = stat_ticks(&stat).unwrap_or_default();
        let from_ticks = (user_ticks + system_ticks) * (1_000_000_000 / sys::ticks_per_second());
        Self {
            run_ns: run_ns(pid).unwrap_or(from_ticks),
            user_ticks,
            system_ticks,
        }
    }

    fn add(self, other: Self) -> Self {
        Self {
            run_ns: self.run_ns + other.run_ns,
            user_ticks: self.user_ticks + other.user_ticks,
            system_ticks: self.system_ticks + other.system_ticks,
        }
    }

    /// The use since `earlier`: total microseconds, and those in user mode. The total is as exact
    /// as the kernel's record; the share in user mode comes from clock ticks.
    pub fn since(self, earlier: Self) -> (f64, f64) {
        let total_us = self.run_ns.saturating_sub(earlier.run_ns) as f64 / 1000.0;
        let user = self.user_ticks.saturating_sub(earlier.user_ticks) as f64;
        let system = self.system_ticks.saturating_sub(earlier.system_ticks) as f64;
        let share = if user + system > 0.0 {
            user / (user + system)
        } else {
            0.0
        };
        (total_us, total_us * share)
    }
}

/// The work of all cores of the machine until now, in clock ticks.
#[cfg(feature = "tls")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    busy: u64,
    all: u64,
}

#[cfg(feature = "tls")]
impl Machine {
    /// The ticks until now.
    pub fn now() -> Self {
        let text = fs::read_to_string("/proc/stat").unwrap_or_default();
        Self::parse(&text).unwrap_or_default()
    }

    /// Parses the first line: user, nice, system, idle, waiting for I/O, interrupts, soft
    /// interrupts, stolen. Guest time is included in user time.
    fn parse(stat: &str) -> Option<Self> {
        let words = stat.lines().next()?.strip_prefix("cpu ")?;
        let ticks: Vec<u64> = words
            .split_whitespace()
            .take(8)
            .map(|word| word.parse().ok())
            .collect::<Option<_>>()?;
        let all = ticks.iter().sum();
        let idle = ticks.get(3)? + ticks.get(4)?;
        Some(Self {
            busy: all - idle,
            all,
        })
    }

    /// The share of all cores that was busy since `earlier`.
    pub fn busy_since(self, earlier: Self) -> f64 {
        let all = self.all.saturating_sub(earlier.all).max(1);
        self.busy.saturating_sub(earlier.busy) as f64 / all as f64
    }
}

/// Memory held, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Resident, shared pages counted for each process.
    pub resident: u64,
    /// Resident; shared pages are divided among their users.
    pub proportional: u64,
    /// Resident and not shared.
    pub private: u64,
}

impl Memory {
    fn of(pid: u32) -> Self {
        fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))
            .map_or(Self::default(), |text| smaps(&text))
    }

    fn add(self, other: Self) -> Self {
        Self {
            resident: self.resident + other.resident,
            proportional: self.proportional + other.proportional,
            private: self.private + other.private,
        }
    }
}

/// CPU time of all living threads of `pid` in nanoseconds; `None` if the kernel does not record it.
fn run_ns(pid: u32) -> Option<u64> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    tasks.flatten().try_fold(0, |sum, task| {
        let text = fs::read_to_string(task.path().join("schedstat")).ok()?;
        Some(sum + text.split_whitespace().next()?.parse::<u64>().ok()?)
    })
}

/// `root` and all its descendants.
fn tree(root: u32) -> Vec<u32> {
    let mut all = vec![root];
    let mut next = 0;
    while let Some(&pid) = all.get(next) {
        next += 1;
        let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else {
            continue;
        };
        for task in tasks.flatten() {
            let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            all.extend(
                children
                    .split_whitespace()
                    .filter_map(|word| word.parse::<u32>().ok()),
            );
        }
    }
    all
}

/// User and system ticks of `/proc/PID/stat`; the command's name may hold anything, so fields count
/// from the last `)`.
fn stat_ticks(stat: &str) -> Option<(u64, u64)> {
    let mut fields = stat[stat.rfind(')')? + 1..].split_whitespace().skip(11);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

fn smaps(text: &str) -> Memory {
    let mut memory = Memory::default();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let name = words.next().unwrap_or_default();
        let bytes = words
            .next()
            .and_then(|word| word.parse::<u64>().ok())
            .unwrap_or(0)
            * 1024;
        match name {
            "Rss:" => memory.resident = bytes,
            "Pss:" => memory.proportional = bytes,
            "Private_Clean:" | "Private_Dirty:" => memory.private += bytes,
            _ => {}
        }
    }
    memory
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_ticks_behind_a_hostile_name() {
        let stat = "77 (a) b (c) S 1 77 77 0 -1 4194304 100 0 0 0 12 34 0 0 20 0 1 0 5";
        assert_eq!(stat_ticks(stat), Some((12, 34)));
        assert_eq!(stat_ticks("77 (a"), None);
    }

    #[test]
    fn splits_the_exact_total_by_ticks() {
        let before = Usage {
            run_ns: 1000,
            user_ticks: 10,
            system_ticks: 10,
        };
        let after = Usage {
            run_ns: 4_001_000,
            user_ticks: 11,
            system_ticks: 13,
        };
        assert_eq!(after.since(before), (4000.0, 1000.0));
        assert_eq!(before.since(before), (0.0, 0.0));
    }

    #[cfg(feature = "tls")]
    #[test]
    fn the_machine_is_busy_when_it_neither_idles_nor_waits() {
        let before = Machine::parse("cpu  10 0 10 100 20 0 0 0 7 7\ncpu0 1 2").unwrap();
        let after = Machine::parse("cpu  16 1 11 108 22 0 1 1 9 9\ncpu0 1 2").unwrap();
        assert!((after.busy_since(before) - 0.5).abs() < 1e-9);
        assert!(before.busy_since(before).abs() < 1e-9);
        assert_eq!(Machine::parse("intr 7"), None);
    }

    #[test]
    fn sums_private_memory() {
        let text = "55d0-7ffc ---p 00000000 00:00 0 [rollup]\nRss: 100 kB\nPss: 60 kB\nPss_Dirty: 9 kB\nPrivate_Clean: 20 kB\nPrivate_Dirty: 30 kB\n";
        assert_eq!(
            smaps(text),
            Memory {
                resident: 102_400,
                proportional: 61_440,
                private: 51_200
            }
        );
    }

    #[test]
    fn finds_and_ends_a_child() {
        let mut child = Process::start(Command::new("sleep").arg("60")).unwrap();
        assert!(tree(std::process::id()).contains(&child.id()));
        assert!(child.memory().resident > 0);
        assert!(child.ended().is_none());
        assert!(child.end(libc::SIGTERM, Duration::from_secs(20)).is_some());
    }
}
