//! The metrics of the process.

use std::fs;

use export::clock::now_unix_ns;

use super::Sheet;
use super::sheet::{Kind, Number};
use crate::run::process::memory::{data_bytes, resident_bytes};
use crate::run::start::View;

/// Parts of a second that `/proc` counts times in (`USER_HZ`, proc(5)): the same on all machines
/// that Linux runs on today.
const TICKS_PER_S: f64 = 100.0;

pub(super) fn write(view: &View, page: &mut Sheet) {
    let uptime_ns = now_unix_ns().saturating_sub(view.begun_ns);
    let values: [(Kind, &str, &'static str, &str, Number); 5] = [
        (
            Kind::Counter,
            "uptime",
            "s",
            "time since the collector began",
            (uptime_ns as f64 / 1e9).into(),
        ),
        (
            Kind::Counter,
            "cpu_seconds",
            "s",
            "time of processors, of the user and of the system",
            cpu_s().into(),
        ),
        (
            Kind::Gauge,
            "memory_rss",
            "By",
            "memory that is resident",
            resident_bytes().into(),
        ),
        (
            Kind::Gauge,
            "runtime_heap_alloc_bytes",
            "By",
            "memory that the allocator gave out",
            (view.memory_used_bytes)().into(),
        ),
        (
            Kind::Gauge,
            "runtime_total_sys_memory_bytes",
            "By",
            "memory that the process has from the system",
            data_bytes().into(),
        ),
    ];
    for (kind, name, unit, help, value) in values {
        page.about(kind, &format!("otelcol_process_{name}"), unit, help);
        page.point(&[], value);
    }
}

/// Seconds that threads of the process ran; 0 where nothing tells.
fn cpu_s() -> f64 {
    let text = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name of the program may have spaces and parentheses in it. What follows begins with the
    // third field (proc(5)).
    let fields = text.rsplit_once(')').map_or("", |(_, fields)| fields);
    let ticks = fields.split_whitespace().skip(11).take(2);
    let ticks: f64 = ticks.filter_map(|word| word.parse::<f64>().ok()).sum();
    ticks / TICKS_PER_S
}
