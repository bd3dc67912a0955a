//! `host_metrics`: metrics of the host, read from `/proc` and `/sys`.

pub mod metrics;

use std::path::PathBuf;

use self::metrics::Metric;
use super::{Receiver, ReceiverSettings};
use crate::config::components::{Entry, Parse, Signal, name};
use crate::config::options::{Kind, Opt, Section, Table, opt};
use crate::config::pattern;

/// A receiver that reads what the kernel counts.
#[derive(Clone, Debug, PartialEq)]
pub struct HostMetricsReceiver {
    /// Time between two scrapes; not zero.
    pub collection_interval_ns: u64,
    /// Time before the first one.
    pub initial_delay_ns: u64,
    /// The host's root directory; none: that of the process.
    pub root_path: Option<PathBuf>,
    /// At least one.
    pub scrapers: Vec<Scraper>,
}

/// A scraper and the metrics that it makes.
#[derive(Clone, Debug, PartialEq)]
pub struct Scraper {
    /// Its name.
    pub name: &'static str,
    /// Enabled metrics.
    pub metrics: Vec<&'static Metric>,
    /// Its kind, and the options that only it has.
    pub kind: ScraperKind,
}

/// Scrapers, with the options of each.
#[derive(Clone, Debug, PartialEq)]
pub enum ScraperKind {
    /// `cpu`
    Cpu,
    /// `memory`
    Memory,
    /// `load`
    Load {
        /// Loads are divided by the number of processors.
        is_per_cpu: bool,
    },
    /// `disk`, of some devices.
    Disk(Filter),
    /// `filesystem`
    FileSystem(Box<FileSystems>),
    /// `network`, of some interfaces.
    Network(Filter),
    /// `paging`
    Paging,
    /// `processes`
    Processes,
}

/// Which file systems are looked at.
#[derive(Clone, Debug, PartialEq)]
pub struct FileSystems {
    /// Those without a device too.
    pub with_virtual: bool,
    /// By device.
    pub devices: Filter,
    /// By type.
    pub types: Filter,
    /// By mount point.
    pub mount_points: Filter,
}

/// Names that are taken.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    /// None: all that are not excluded.
    pub include: Option<Names>,
    /// None: nothing is excluded.
    pub exclude: Option<Names>,
}

/// Names as a filter has them.
#[derive(Clone, Debug, PartialEq)]
pub enum Names {
    /// Whole names.
    Strict(Vec<String>),
    /// Regular expressions, which may match a part of a name.
    Regexp(Vec<String>),
}

impl ReceiverSettings for HostMetricsReceiver {}

#[rustfmt::skip]
const CACHE: &[Opt] = &[
    opt("cacheenabled", Kind::Flag, "false", "results are remembered"),
    opt("cachemaxnumentries", Kind::Int(0, i64::MAX), "0", "how many"),
];
#[rustfmt::skip]
const MATCH: &[Opt] = &[
    opt("match_type", Kind::Word(&["strict", "regexp"]), "", "`strict` or `regexp`; must be written with names"),
    opt("regexp", Kind::Section(&[CACHE]), "", "how regular expressions are kept").no_effect("results are not remembered: matches are fast without"),
];
#[rustfmt::skip]
const DEVICES: &[Opt] = &[opt("devices", Kind::Texts, "", "names of devices")];
#[rustfmt::skip]
const INTERFACES: &[Opt] = &[opt("interfaces", Kind::Texts, "", "names of interfaces")];
#[rustfmt::skip]
const TYPES: &[Opt] = &[opt("fs_types", Kind::Texts, "", "types of file systems")];
#[rustfmt::skip]
const MOUNT_POINTS: &[Opt] = &[opt("mount_points", Kind::Texts, "", "mount points")];

const CPU: &[Opt] = &[made(Kind::Section(metrics::CPU_OPTIONS))];
const MEMORY: &[Opt] = &[made(Kind::Section(metrics::MEMORY_OPTIONS))];
#[rustfmt::skip]
const LOAD: &[Opt] = &[
    made(Kind::Section(metrics::LOAD_OPTIONS)),
    opt("cpu_average", Kind::Flag, "false", "loads are divided by the number of logical processors"),
];
#[rustfmt::skip]
const DISK: &[Opt] = &[
    made(Kind::Section(metrics::DISK_OPTIONS)),
    opt("include", Kind::Section(&[DEVICES, MATCH]), "", "the only devices"),
    opt("exclude", Kind::Section(&[DEVICES, MATCH]), "", "devices that are left out"),
];
#[rustfmt::skip]
const FILE_SYSTEM: &[Opt] = &[
    made(Kind::Section(metrics::FILE_SYSTEM_OPTIONS)),
    opt("include_virtual_filesystems", Kind::Flag, "false", "file systems without a device, and bind mounts, too"),
    opt("include_devices", Kind::Section(&[DEVICES, MATCH]), "", "the only devices"),
    opt("exclude_devices", Kind::Section(&[DEVICES, MATCH]), "", "devices that are left out"),
    opt("include_fs_types", Kind::Section(&[TYPES, MATCH]), "", "the only types"),
    opt("exclude_fs_types", Kind::Section(&[TYPES, MATCH]), "", "types that are left out"),
    opt("include_mount_points", Kind::Section(&[MOUNT_POINTS, MATCH]), "", "the only mount points"),
    opt("exclude_mount_points", Kind::Section(&[MOUNT_POINTS, MATCH]), "", "mount points that are left out"),
];
#[rustfmt::skip]
const NETWORK: &[Opt] = &[
    made(Kind::Section(metrics::NETWORK_OPTIONS)),
    opt("include", Kind::Section(&[INTERFACES, MATCH]), "", "the only interfaces"),
    opt("exclude", Kind::Section(&[INTERFACES, MATCH]), "", "interfaces that are left out"),
];
const PAGING: &[Opt] = &[made(Kind::Section(metrics::PAGING_OPTIONS))];
const PROCESSES: &[Opt] = &[made(Kind::Section(metrics::PROCESSES_OPTIONS))];

const NOT_BUILT_IN: &str = "this scraper is not built in";
/// Scrapers of the Collector that are refused. Most are written without options.
const ABSENT: [&str; 4] = ["process", "system", "nfs", "hardware"];

#[rustfmt::skip]
const SCRAPERS: &[Opt] = &[
    opt("cpu", Kind::Maybe(&[CPU]), "", "time of processors, from `/proc/stat`; off where it is not written"),
    opt("memory", Kind::Maybe(&[MEMORY]), "", "`/proc/meminfo`; off where it is not written"),
    opt("load", Kind::Maybe(&[LOAD]), "", "`/proc/loadavg`; off where it is not written"),
    opt("disk", Kind::Maybe(&[DISK]), "", "`/proc/diskstats`; off where it is not written"),
    opt("filesystem", Kind::Maybe(&[FILE_SYSTEM]), "", "space of mounted file systems; off where it is not written"),
    opt("network", Kind::Maybe(&[NETWORK]), "", "interfaces and TCP connections, from `/proc/net`; off where it is not written"),
    opt("paging", Kind::Maybe(&[PAGING]), "", "`/proc/swaps` and `/proc/vmstat`; off where it is not written"),
    opt("processes", Kind::Maybe(&[PROCESSES]), "", "counts of processes by state; off where it is not written"),
    opt("process", Kind::Maybe(&[]), "", "each process").refused(NOT_BUILT_IN),
    opt("system", Kind::Maybe(&[]), "", "the uptime").refused(NOT_BUILT_IN),
    opt("nfs", Kind::Maybe(&[]), "", "NFS").refused(NOT_BUILT_IN),
    opt("hardware", Kind::Maybe(&[]), "", "sensors").refused(NOT_BUILT_IN),
];
#[rustfmt::skip]
const OPTIONS: &[Opt] = &[
    opt("collection_interval", Kind::Duration, "1m", "time between two scrapes"),
    opt("initial_delay", Kind::Duration, "1s", "time before the first one"),
    opt("timeout", Kind::Duration, "0s", "a scrape ends after this time; 0: never").no_effect("a scrape reads files of the kernel, and the next one waits for it"),
    opt("root_path", Kind::Text, "", "the host's root directory, as a container sees it"),
    opt("metadata_collection_interval", Kind::Duration, "5m", "time between two events of the host").no_effect("there are no events of the host, which the Collector has in pipelines of logs"),
    opt("scrapers", Kind::Section(&[SCRAPERS]), "", "one of these or more"),
];
const TABLE: Table = &[OPTIONS];

pub(crate) const ENTRY: Entry = Entry {
    names: &[name("host_metrics"), name("hostmetrics")],
    doc: "metrics of the host: processors, memory, load, disks, file systems, network, paging, processes",
    takes: &[Signal::Metrics, Signal::Logs],
    carries: &[Signal::Metrics],
    options: TABLE,
    parse: Parse::Receiver(parse),
};

const fn made(metrics: Kind) -> Opt {
    opt("metrics", metrics, "", "which metrics are made")
}

fn parse(section: &Section<'_>) -> Receiver {
    let collection_interval_ns = section.duration_ns("collection_interval");
    if collection_interval_ns == 0 {
        section.error("collection_interval", "requires positive value");
    }
    let root_path = section.text_unless_empty("root_path");
    let scrapers = scrapers(&section.section("scrapers"));
    // A scraper that there is not was told as that.
    let written = section.written("scrapers");
    if scrapers.is_empty() && written.is_none_or(|node| node.entries().is_empty()) {
        section.error(
            "scrapers",
            "must specify at least one scraper when using hostmetrics receiver",
        );
    }
    Receiver::new(HostMetricsReceiver {
        collection_interval_ns,
        initial_delay_ns: section.duration_ns("initial_delay"),
        root_path: root_path.map(PathBuf::from),
        scrapers,
    })
}

fn scrapers(section: &Section<'_>) -> Vec<Scraper> {
    type Of = fn(&Section<'_>) -> ScraperKind;
    let all: [(&str, &'static [Metric], Of); 8] = [
        ("cpu", &metrics::CPU, |_| ScraperKind::Cpu),
        ("memory", &metrics::MEMORY, |_| ScraperKind::Memory),
        ("load", &metrics::LOAD, |load| ScraperKind::Load {
            is_per_cpu: load.flag("cpu_average"),
        }),
        ("disk", &metrics::DISK, |disk| {
            ScraperKind::Disk(filter(disk, ("include", "exclude"), "devices"))
        }),
        ("filesystem", &metrics::FILE_SYSTEM, |files| {
            ScraperKind::FileSystem(Box::new(file_systems(files)))
        }),
        ("network", &metrics::NETWORK, |network| {
            ScraperKind::Network(filter(network, ("include", "exclude"), "interfaces"))
        }),
        ("paging", &metrics::PAGING, |_| ScraperKind::Paging),
        ("processes", &metrics::PROCESSES, |_| ScraperKind::Processes),
    ];
    for name in ABSENT {
        // With options it was refused as they were checked.
        if section.key_at(name).is_some() && section.written(name).is_none() {
            section.error(name, &format!("not supported: {NOT_BUILT_IN}"));
        }
    }
    let written = all.into_iter().filter_map(|(name, metrics, kind)| {
        let own = section.maybe(name)?;
        let switches = own.section("metrics");
        let is_on = |metric: &&Metric| switches.section(metric.name).flag("enabled");
        Some(Scraper {
            name,
            metrics: metrics.iter().filter(is_on).collect(),
            kind: kind(&own),
        })
    });
    written.collect()
}

fn file_systems(section: &Section<'_>) -> FileSystems {
    let of = |keys, list| filter(section, keys, list);
    FileSystems {
        with_virtual: section.flag("include_virtual_filesystems"),
        devices: of(("include_devices", "exclude_devices"), "devices"),
        types: of(("include_fs_types", "exclude_fs_types"), "fs_types"),
        mount_points: of(
            ("include_mount_points", "exclude_mount_points"),
            "mount_points",
        ),
    }
}

fn filter(section: &Section<'_>, (include, exclude): (&str, &str), list: &str) -> Filter {
    Filter {
        include: names(&section.section(include), list),
        exclude: names(&section.section(exclude), list),
    }
}

fn names(section: &Section<'_>, list: &str) -> Option<Names> {
    let names = section.texts(list);
    if names.is_empty() {
        return None;
    }
    match section.text("match_type").as_str() {
        "strict" => Some(Names::Strict(names)),
        "regexp" => {
            if let Err(why) = pattern::compile_any(&names) {
                section.error(list, &why);
            }
            Some(Names::Regexp(names))
        }
        _ => {
            let message = "unrecognized match_type: '', valid types are: [regexp strict]";
            section.fault(message);
            None
        }
    }
}
