//! The receiver `host_metrics`: what the kernel counts, read from `/proc` and `/sys`.
//!
//! One file a scraper, as the Collector has them. Values, attributes and states are those of the
//! Collector on Linux, which reads by `gopsutil`.

mod cpu;
mod disk;
mod file_system;
mod files;
mod filter;
mod load;
mod memory;
mod network;
mod paging;
mod points;
mod processes;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::time::Duration;

use self::cpu::Cpu;
use self::disk::Disk;
use self::file_system::FileSystem;
use self::files::Root;
use self::load::Load;
use self::network::Network;
use self::points::Points;
use super::scrape::{Schedule, Scrape, ScrapeResult, Scraped, source};
use super::{Source, SourceDeps, StartReceiver};
use crate::config::components::receivers::host_metrics::metrics::Metric;
use crate::config::components::receivers::host_metrics::{
    HostMetricsReceiver, Scraper, ScraperKind,
};

impl StartReceiver for HostMetricsReceiver {
    fn source(&self, deps: SourceDeps<'_>) -> Result<Option<Box<dyn Source>>, String> {
        let schedule = Schedule {
            initial_delay: Duration::from_nanos(self.initial_delay_ns),
            interval: Duration::from_nanos(self.collection_interval_ns.max(1)),
        };
        Ok(Some(source(deps, Host::new(self)?, schedule)))
    }
}

/// Reads the files of one scraper.
trait Probe: Send {
    /// Adds the points of now. Returns what could not be read.
    fn read(&mut self, root: &Root, points: &mut Points<'_>) -> Vec<Fault>;
}

/// Something that could not be read.
#[derive(Debug, PartialEq, Eq)]
struct Fault {
    /// Metrics that are missing for that, as the Collector counts them.
    errored: u64,
    why: String,
}

impl Fault {
    /// `errored` metrics are missing.
    fn new(errored: u64, why: impl Into<String>) -> Fault {
        let why = why.into();
        Fault { errored, why }
    }
}

/// The scrapers of a receiver.
struct Host {
    root: Root,
    /// When the host was started, in nanoseconds of the UNIX epoch.
    boot_ns: u64,
    scrapers: Vec<Active>,
}

/// A scraper and the metrics that it makes.
struct Active {
    name: &'static str,
    metrics: Vec<&'static Metric>,
    probe: Box<dyn Probe>,
}

impl Host {
    fn new(settings: &HostMetricsReceiver) -> Result<Host, String> {
        let root = settings.root_path.clone();
        let root = Root(root.unwrap_or_else(|| PathBuf::from("/")));
        let boot_ns = boot_time_s(&root)?.saturating_mul(1_000_000_000);
        let active = |scraper: &Scraper| {
            Ok(Active {
                name: scraper.name,
                metrics: scraper.metrics.clone(),
                probe: probe(&scraper.kind)?,
            })
        };
        let scrapers: Result<Vec<_>, String> = settings.scrapers.iter().map(active).collect();
        Ok(Host {
            root,
            boot_ns,
            scrapers: scrapers?,
        })
    }
}

fn probe(kind: &ScraperKind) -> Result<Box<dyn Probe>, String> {
    Ok(match kind {
        ScraperKind::Cpu => Box::new(Cpu::default()),
        ScraperKind::Memory => Box::new(memory::Memory),
        ScraperKind::Load { is_per_cpu } => Box::new(Load {
            is_per_cpu: *is_per_cpu,
        }),
        ScraperKind::Disk(filter) => Box::new(Disk::new(filter)?),
        ScraperKind::FileSystem(settings) => Box::new(FileSystem::new(settings)?),
        ScraperKind::Network(filter) => Box::new(Network::new(filter)?),
        ScraperKind::Paging => Box::new(paging::Paging),
        ScraperKind::Processes => Box::new(processes::Processes),
    })
}

impl Scrape for Host {
    fn scrapers(&self) -> Vec<&'static str> {
        self.scrapers.iter().map(|active| active.name).collect()
    }

    fn scrape(&mut self, now_ns: u64) -> Scraped {
        let mut scraped = Scraped::default();
        for active in &mut self.scrapers {
            let mut points = Points::new(&active.metrics, self.boot_ns, now_ns);
            let faults = active.probe.read(&self.root, &mut points);
            points.write(active.name, &mut scraped.request);
            let reasons: Vec<_> = faults.iter().map(|fault| fault.why.as_str()).collect();
            scraped.results.push(ScrapeResult {
                metrics: points.count(),
                errored: faults.iter().map(|fault| fault.errored).sum(),
                error: (!reasons.is_empty()).then(|| reasons.join("; ")),
            });
        }
        scraped
    }
}

/// When the host was started, in seconds of the UNIX epoch: `btime` of `/proc/stat` (proc(5)).
fn boot_time_s(root: &Root) -> Result<u64, String> {
    let text = root.read("proc/stat")?;
    let mut lines = text.lines();
    let time = lines.find_map(|line| line.strip_prefix("btime ")?.trim().parse().ok());
    time.ok_or_else(|| format!("{}: has no 'btime'", root.path("proc/stat").display()))
}

/// Times of processors in `/proc/stat`: `cpu0`, `cpu1` and so on, without their sum.
fn processors(stat: &str) -> impl Iterator<Item = Vec<&str>> {
    let fields = stat.lines().map(|line| line.split_whitespace().collect());
    fields.filter(|fields: &Vec<&str>| {
        let name = fields.first().and_then(|name| name.strip_prefix("cpu"));
        name.is_some_and(|number| number.starts_with(|c: char| c.is_ascii_digit()))
    })
}
