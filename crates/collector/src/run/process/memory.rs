//! The memory that there is, and that is in use.

use std::fs;

/// Bytes that this process may use: those of the machine, or of its control group where that has
/// fewer.
#[must_use]
pub fn memory_bytes() -> u64 {
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| {
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix("MemTotal:"))?;
        let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        Some(kib * 1024)
    });
    let limits = [
        "/sys/fs/cgroup/memory.max",
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
    ];
    let group = limits.iter().find_map(|path| {
        let text = fs::read_to_string(path).ok()?;
        text.trim().parse::<u64>().ok()
    });
    let known = machine.into_iter().chain(group);
    known.min().unwrap_or(UNKNOWN_BYTES)
}

/// What is assumed where nothing tells.
const UNKNOWN_BYTES: u64 = 2 << 30;
/// Of a page, as `/proc` counts them.
const PAGE_BYTES: u64 = 4096;

/// Bytes that are resident.
#[must_use]
pub fn resident_bytes() -> u64 {
    statm_bytes(1)
}

/// Bytes of data and stacks, resident or not.
#[must_use]
pub fn data_bytes() -> u64 {
    statm_bytes(5)
}

/// A number of `/proc/self/statm`, by its place (proc(5)).
fn statm_bytes(place: usize) -> u64 {
    let text = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text
        .split(' ')
        .nth(place)
        .and_then(|word| word.trim().parse::<u64>().ok());
    pages.unwrap_or(0) * PAGE_BYTES
}
