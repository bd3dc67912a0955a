//! `memory`: `/proc/meminfo`.

use std::collections::HashMap;

use super::files::Root;
use super::points::Points;
use super::{Fault, Probe};

/// Metrics that are missing without the file, as the Collector counts them.
const METRICS: u64 = 2;
/// The attribute of metrics of huge pages.
const HUGE_STATE: &str = "system.memory.linux.hugepages.state";

/// The scraper.
pub(super) struct Memory;

impl Probe for Memory {
    fn read(&mut self, root: &Root, points: &mut Points<'_>) -> Vec<Fault> {
        match root.read("proc/meminfo") {
            Ok(text) => add(&Info::of(&text), points).into_iter().collect(),
            Err(why) => vec![Fault::new(METRICS, why)],
        }
    }
}

/// The numbers of the file. Amounts of memory are in bytes.
struct Info<'a>(HashMap<&'a str, u64>);

impl Info<'_> {
    fn of(text: &str) -> Info<'_> {
        let numbers = text.lines().filter_map(|line| {
            let (key, value) = line.split_once(':')?;
            let mut parts = value.split_whitespace();
            let number: u64 = parts.next()?.parse().ok()?;
            // Without a unit it is a count of pages.
            let unit = if parts.next() == Some("kB") { 1024 } else { 1 };
            Some((key.trim(), number.saturating_mul(unit)))
        });
        Info(numbers.collect())
    }

    fn get(&self, key: &str) -> u64 {
        self.0.get(key).copied().unwrap_or(0)
    }

    /// Memory that programs can have without swapping. Kernels before 3.14 do not tell it.
    fn available(&self) -> u64 {
        let told = self.0.get("MemAvailable").copied();
        told.unwrap_or_else(|| self.get("MemFree").saturating_add(self.get("Cached")))
    }
}

fn add(info: &Info<'_>, points: &mut Points<'_>) -> Option<Fault> {
    let total = info.get("MemTotal");
    let reclaimable = info.get("SReclaimable");
    let states = [
        // The feature gate `UseLinuxMemAvailable` of the Collector is on.
        ("used", total.saturating_sub(info.available())),
        ("free", info.get("MemFree")),
        ("buffered", info.get("Buffers")),
        ("cached", info.get("Cached").saturating_add(reclaimable)),
        ("slab_reclaimable", reclaimable),
        ("slab_unreclaimable", info.get("SUnreclaim")),
    ];
    for (state, bytes) in states {
        points.int("system.memory.usage", &[("state", state)], bytes);
    }
    points.int("system.memory.limit", &[], total);
    points.int(
        "system.memory.page_size",
        &[],
        rustix::param::page_size() as u64,
    );
    points.int("system.linux.memory.available", &[], info.available());
    points.int("system.linux.memory.dirty", &[], info.get("Dirty"));
    points.int("system.memory.linux.shared", &[], info.get("Shmem"));
    huge_pages(info, points);
    if !points.wants("system.memory.utilization") {
        return None;
    }
    if total == 0 {
        return Some(Fault::new(METRICS, "invalid total memory: 0"));
    }
    for (state, bytes) in states {
        let part = bytes as f64 / total as f64;
        points.double("system.memory.utilization", &[("state", state)], part);
    }
    None
}

fn huge_pages(info: &Info<'_>, points: &mut Points<'_>) {
    let (total, free) = (info.get("HugePages_Total"), info.get("HugePages_Free"));
    let numbers = [
        ("page_size", info.get("Hugepagesize")),
        ("limit", total),
        ("reserved", info.get("HugePages_Rsvd")),
        ("surplus", info.get("HugePages_Surp")),
    ];
    for (name, number) in numbers {
        points.int(
            &format!("system.memory.linux.hugepages.{name}"),
            &[],
            number,
        );
    }
    for (state, pages) in [("free", free), ("used", total.saturating_sub(free))] {
        let attributes = [(HUGE_STATE, state)];
        points.int("system.memory.linux.hugepages.usage", &attributes, pages);
        if total > 0 {
            let part = pages as f64 / total as f64;
            points.double(
                "system.memory.linux.hugepages.utilization",
                &attributes,
                part,
            );
        }
    }
}
