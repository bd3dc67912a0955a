//! `processes`: how many there are in each state, and how many were created.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::Path;

use super::files::Root;
use super::points::Points;
use super::{Fault, Probe};

/// Metrics that are missing without the files.
const METRICS: u64 = 2;
/// Bytes of `/proc/PID/stat` that are read: the state stands behind a number and a name of 15 bytes
/// (64 of a kernel thread).
const STAT_BYTES_MAX: u64 = 512;

/// The scraper.
pub(super) struct Processes;

impl Probe for Processes {
    fn read(&mut self, root: &Root, points: &mut Points<'_>) -> Vec<Fault> {
        let added = add(root, points);
        let fault = added.map_err(|why| Fault::new(METRICS, why));
        fault.err().into_iter().collect()
    }
}

fn add(root: &Root, points: &mut Points<'_>) -> Result<(), String> {
    let mut counts = states(root)?;
    let stat = root.read("proc/stat")?;
    let count = |key: &str| -> u64 {
        let mut lines = stat.lines();
        let found = lines.find_map(|line| line.strip_prefix(key)?.trim().parse().ok());
        found.unwrap_or(0)
    };
    // These are counted at one moment, unlike the processes above.
    counts.insert("blocked", count("procs_blocked "));
    counts.insert("running", count("procs_running "));
    let known = counts
        .values()
        .fold(0, |sum: u64, count| sum.saturating_add(*count));
    // As in the Collector: the number of all threads, less what is known.
    let total = scheduled(root)?;
    if total > known {
        counts.insert("unknown", total - known);
    }
    for (status, count) in counts {
        points.int("system.processes.count", &[("status", status)], count);
    }
    points.int("system.processes.created", &[], count("processes "));
    Ok(())
}

/// Counts of processes by their states.
fn states(root: &Root) -> Result<BTreeMap<&'static str, u64>, String> {
    let folder = root.path("proc");
    let entries = fs::read_dir(&folder);
    let entries = entries.map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut counts = BTreeMap::new();
    for entry in entries.flatten() {
        let name = entry.file_name();
        let is_process = name.as_encoded_bytes().iter().all(u8::is_ascii_digit);
        // One that has ended meanwhile has no file.
        if let Some(status) = is_process.then(|| status(&entry.path())).flatten() {
            *counts.entry(status).or_insert(0) += 1;
        }
    }
    Ok(counts)
}

/// The state of a process (proc(5)), by its folder.
fn status(folder: &Path) -> Option<&'static str> {
    let mut bytes = Vec::new();
    let file = fs::File::open(folder.join("stat")).ok()?;
    file.take(STAT_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    // The name stands in parentheses and may have some of its own.
    let after_name = bytes.iter().rposition(|byte| *byte == b')')? + 1;
    let state = bytes[after_name..].iter().find(|byte| **byte != b' ')?;
    Some(match state {
        b'D' | b'U' => "blocked",
        b'I' => "idle",
        b'L' => "locked",
        b'R' => "running",
        b'S' => "sleeping",
        b'T' | b't' => "stopped",
        b'W' => "paging",
        b'Z' => "zombies",
        _ => "unknown",
    })
}

/// Entities that the kernel schedules: the second number of the fourth field of `/proc/loadavg`.
fn scheduled(root: &Root) -> Result<u64, String> {
    let text = root.read("proc/loadavg")?;
    let field = text.split_whitespace().nth(3);
    let number = field.and_then(|field| field.split_once('/')?.1.parse().ok());
    let path = root.path("proc/loadavg");
    number.ok_or_else(|| format!("{}: has no number of processes", path.display()))
}
