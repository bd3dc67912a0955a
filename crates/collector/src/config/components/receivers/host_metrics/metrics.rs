//! The metrics of the receiver `host_metrics`: one entry each, by their scrapers, as the Collector's
//! `metadata.yaml` files have them.

use crate::config::options::{Kind, Opt, Table, opt};

/// A metric of a scraper.
#[derive(Debug, PartialEq, Eq)]
pub struct Metric {
    /// Its name.
    pub name: &'static str,
    /// Its unit (UCUM).
    pub unit: &'static str,
    /// The kind of its data.
    pub data: Data,
    /// Whether it is made where `enabled` is not written.
    pub is_on: bool,
    /// Its description, also in the reference of options.
    pub description: &'static str,
}

/// Kinds of data. All sums are cumulative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Data {
    /// A monotonic sum.
    Counter,
    /// A sum that is not monotonic.
    UpDownCounter,
    /// A gauge.
    Gauge,
}

use Data::{Counter, Gauge, UpDownCounter};

const fn on(name: &'static str, unit: &'static str, data: Data, doc: &'static str) -> Metric {
    Metric {
        name,
        unit,
        data,
        is_on: true,
        description: doc,
    }
}

const fn off(name: &'static str, unit: &'static str, data: Data, doc: &'static str) -> Metric {
    Metric {
        is_on: false,
        ..on(name, unit, data, doc)
    }
}

#[rustfmt::skip]
pub(super) static CPU: [Metric; 5] = [
    off("system.cpu.frequency", "Hz", Gauge, "Current frequency of the CPU core in Hz."),
    off("system.cpu.logical.count", "{cpu}", UpDownCounter, "Number of available logical CPUs."),
    off("system.cpu.physical.count", "{cpu}", UpDownCounter, "Number of available physical CPUs."),
    on("system.cpu.time", "s", Counter, "Total seconds each logical CPU spent on each mode."),
    off("system.cpu.utilization", "1", Gauge, "Difference in system.cpu.time since the last measurement per logical CPU, divided by the elapsed time (value in interval [0,1])."),
];
#[rustfmt::skip]
pub(super) static MEMORY: [Metric; 13] = [
    off("system.linux.memory.available", "By", UpDownCounter, "An estimate of how much memory is available for starting new applications, without swapping. This is a more accurate alternative than system.memory.usage with state=free. (Linux only)"),
    off("system.linux.memory.dirty", "By", UpDownCounter, "The amount of dirty memory according to `/proc/meminfo`."),
    off("system.memory.limit", "By", UpDownCounter, "Total bytes of memory available."),
    off("system.memory.linux.hugepages.limit", "{page}", UpDownCounter, "Total number of hugepages available."),
    off("system.memory.linux.hugepages.page_size", "By", UpDownCounter, "System hugepage size in bytes."),
    off("system.memory.linux.hugepages.reserved", "{page}", UpDownCounter, "Number of reserved hugepages."),
    off("system.memory.linux.hugepages.surplus", "{page}", UpDownCounter, "Number of surplus hugepages."),
    off("system.memory.linux.hugepages.usage", "{page}", UpDownCounter, "Number of hugepages in use by state."),
    off("system.memory.linux.hugepages.utilization", "1", Gauge, "Percentage of hugepages in use by state."),
    off("system.memory.linux.shared", "By", UpDownCounter, "Shared memory usage, including tmpfs filesystems and System V/POSIX shared memory."),
    off("system.memory.page_size", "By", Gauge, "A constant value for the system's configured page size."),
    on("system.memory.usage", "By", UpDownCounter, "Bytes of memory in use."),
    off("system.memory.utilization", "1", Gauge, "Percentage of memory bytes in use."),
];
#[rustfmt::skip]
pub(super) static LOAD: [Metric; 3] = [
    on("system.cpu.load_average.15m", "{thread}", Gauge, "Average CPU Load over 15 minutes."),
    on("system.cpu.load_average.1m", "{thread}", Gauge, "Average CPU Load over 1 minute."),
    on("system.cpu.load_average.5m", "{thread}", Gauge, "Average CPU Load over 5 minutes."),
];
#[rustfmt::skip]
pub(super) static DISK: [Metric; 7] = [
    on("system.disk.io", "By", Counter, "Disk bytes transferred."),
    on("system.disk.io_time", "s", Counter, "Time disk spent activated. On Windows, this is calculated as the inverse of disk idle time."),
    on("system.disk.merged", "{operations}", Counter, "The number of disk reads/writes merged into single physical disk access operations."),
    on("system.disk.operation_time", "s", Counter, "Time spent in disk operations."),
    on("system.disk.operations", "{operations}", Counter, "Disk operations count."),
    on("system.disk.pending_operations", "{operations}", UpDownCounter, "The queue size of pending I/O operations."),
    on("system.disk.weighted_io_time", "s", Counter, "Time disk spent activated multiplied by the queue length."),
];
#[rustfmt::skip]
pub(super) static FILE_SYSTEM: [Metric; 3] = [
    on("system.filesystem.inodes.usage", "{inodes}", UpDownCounter, "FileSystem inodes used."),
    on("system.filesystem.usage", "By", UpDownCounter, "Filesystem bytes used."),
    off("system.filesystem.utilization", "1", Gauge, "Fraction of filesystem bytes used."),
];
#[rustfmt::skip]
pub(super) static NETWORK: [Metric; 7] = [
    on("system.network.connections", "{connections}", UpDownCounter, "The number of connections."),
    off("system.network.conntrack.count", "{entries}", UpDownCounter, "The count of entries in conntrack table."),
    off("system.network.conntrack.max", "{entries}", UpDownCounter, "The limit for entries in the conntrack table."),
    on("system.network.dropped", "{packets}", Counter, "The number of packets dropped."),
    on("system.network.errors", "{errors}", Counter, "The number of errors encountered."),
    on("system.network.io", "By", Counter, "The number of bytes transmitted and received."),
    on("system.network.packets", "{packets}", Counter, "The number of packets transferred."),
];
#[rustfmt::skip]
pub(super) static PAGING: [Metric; 4] = [
    on("system.paging.faults", "{faults}", Counter, "The number of page faults."),
    on("system.paging.operations", "{operations}", Counter, "The number of paging operations."),
    on("system.paging.usage", "By", UpDownCounter, "Swap (unix) or pagefile (windows) usage."),
    off("system.paging.utilization", "1", Gauge, "Swap (unix) or pagefile (windows) utilization."),
];
#[rustfmt::skip]
pub(super) static PROCESSES: [Metric; 2] = [
    on("system.processes.count", "{processes}", UpDownCounter, "Total number of processes in each state."),
    on("system.processes.created", "{processes}", Counter, "Total number of created processes."),
];

/// The switches of the metrics of each scraper.
pub(super) const CPU_OPTIONS: Table = &[&options(&CPU)];
pub(super) const MEMORY_OPTIONS: Table = &[&options(&MEMORY)];
pub(super) const LOAD_OPTIONS: Table = &[&options(&LOAD)];
pub(super) const DISK_OPTIONS: Table = &[&options(&DISK)];
pub(super) const FILE_SYSTEM_OPTIONS: Table = &[&options(&FILE_SYSTEM)];
pub(super) const NETWORK_OPTIONS: Table = &[&options(&NETWORK)];
pub(super) const PAGING_OPTIONS: Table = &[&options(&PAGING)];
pub(super) const PROCESSES_OPTIONS: Table = &[&options(&PROCESSES)];

const NOT_AGGREGATED: &str = "points of a metric are not aggregated over attributes";

const AGGREGATION: [Opt; 2] = [
    opt(
        "aggregation_strategy",
        Kind::Any,
        "",
        "how points are put together",
    )
    .refused(NOT_AGGREGATED),
    opt(
        "attributes",
        Kind::Any,
        "",
        "the attributes that points have",
    )
    .refused(NOT_AGGREGATED),
];
const ENABLED: &[Opt] = &[opt("enabled", Kind::Flag, "true", "it is made")];
const DISABLED: &[Opt] = &[opt("enabled", Kind::Flag, "false", "it is made")];

/// The options of metrics: a section each.
const fn options<const N: usize>(metrics: &[Metric; N]) -> [Opt; N] {
    let mut options = [opt("", Kind::Any, "", ""); N];
    let mut index = 0;
    while index < N {
        let metric = &metrics[index];
        let kind = if metric.is_on {
            Kind::Section(&[ENABLED, &AGGREGATION])
        } else {
            Kind::Section(&[DISABLED, &AGGREGATION])
        };
        options[index] = opt(metric.name, kind, "", metric.description);
        index += 1;
    }
    options
}
