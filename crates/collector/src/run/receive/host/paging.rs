//! `paging`: swap space (`/proc/swaps`), and pages that go in and out (`/proc/vmstat`).

use std::collections::HashMap;

use super::files::{Root, number, unescaped};
use super::points::Points;
use super::{Fault, Probe};

/// Metrics that are missing without either file.
const USAGE_METRICS: u64 = 1;
const PAGING_METRICS: u64 = 2;
/// The Collector (`gopsutil`) multiplies all counts of `/proc/vmstat` by this number of bytes, those
/// of operations and faults too. So does this receiver: else the series of a host would change with
/// the program that reads them.
const PAGE_BYTES: u64 = 4096;
/// Bytes of the blocks of `/proc/swaps` (proc(5)).
const BLOCK_BYTES: u64 = 1024;

/// The scraper.
pub(super) struct Paging;

impl Probe for Paging {
    fn read(&mut self, root: &Root, points: &mut Points<'_>) -> Vec<Fault> {
        let usage = usage(root, points).map_err(|why| {
            let why = format!("failed to read page file stats: {why}");
            Fault::new(USAGE_METRICS, why)
        });
        let paging = paging(root, points).map_err(|why| {
            let why = format!("failed to read swap info: {why}");
            Fault::new(PAGING_METRICS, why)
        });
        usage.err().into_iter().chain(paging.err()).collect()
    }
}

fn usage(root: &Root, points: &mut Points<'_>) -> Result<(), String> {
    // The first line is the head.
    for line in root.read("proc/swaps")?.lines().skip(1) {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let Some(name) = fields.first() else {
            continue;
        };
        let bytes = |place| number(&fields, place).saturating_mul(BLOCK_BYTES);
        let (device, total, used) = (unescaped(name), bytes(2), bytes(3));
        for (state, bytes) in [("used", used), ("free", total.saturating_sub(used))] {
            let attributes = [("device", device.as_str()), ("state", state)];
            points.int("system.paging.usage", &attributes, bytes);
            let part = bytes as f64 / total as f64;
            if part.is_finite() {
                points.double("system.paging.utilization", &attributes, part);
            }
        }
    }
    Ok(())
}

fn paging(root: &Root, points: &mut Points<'_>) -> Result<(), String> {
    let text = root.read("proc/vmstat")?;
    let pairs = text.lines().filter_map(|line| {
        let (key, value) = line.split_once(' ')?;
        Some((key, value.trim().parse::<u64>().ok()?))
    });
    let counts: HashMap<&str, u64> = pairs.collect();
    let count = |key| {
        let pages = counts.get(key).copied().unwrap_or(0);
        pages.saturating_mul(PAGE_BYTES)
    };
    for (kind, direction, key) in [
        ("major", "page_in", "pswpin"),
        ("major", "page_out", "pswpout"),
        ("minor", "page_in", "pgpgin"),
        ("minor", "page_out", "pgpgout"),
    ] {
        let attributes = [("direction", direction), ("type", kind)];
        points.int("system.paging.operations", &attributes, count(key));
    }
    let (all, major) = (count("pgfault"), count("pgmajfault"));
    for (kind, faults) in [("major", major), ("minor", all.saturating_sub(major))] {
        points.int("system.paging.faults", &[("type", kind)], faults);
    }
    Ok(())
}
