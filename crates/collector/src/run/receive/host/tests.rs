//! Scrapes of the files in `tests/host`.

mod faults;
mod options;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::io;
use std::path::Path;

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::metrics::v1::NumberDataPoint;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value as Number;
use prost::Message;

use super::file_system::Usage;
use super::*;
use crate::config::components::receivers::host_metrics::FileSystems;
use crate::config::receiver;

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/host");
const NOW_NS: u64 = 1_700_000_100_000_000_000;

/// The scrapers of a receiver, which read a root directory.
fn host_in(root: &Path, scrapers: &str) -> Host {
    let root = root.display();
    let settings = receiver(&format!(
        "host_metrics: {{ root_path: '{root}', scrapers: {{ {scrapers} }} }}"
    ));
    let settings: &HostMetricsReceiver = settings.get().expect("a receiver");
    let mut host = Host::new(settings).expect("a host");
    for (active, scraper) in host.scrapers.iter_mut().zip(&settings.scrapers) {
        if let ScraperKind::FileSystem(settings) = &scraper.kind {
            active.probe = Box::new(file_systems(settings));
        }
    }
    host
}

fn host(scrapers: &str) -> Host {
    host_in(Path::new(FIXTURES), scrapers)
}

fn file_systems(settings: &FileSystems) -> FileSystem {
    let file_system = FileSystem::new(settings).expect("filters");
    file_system.with_usage(|path| match path.strip_prefix(FIXTURES) {
        Ok(path) if path != Path::new("home/gone") => Ok(Usage {
            total_bytes: 1000,
            free_bytes: 400,
            available_bytes: 300,
            inodes: 50,
            free_inodes: 20,
        }),
        _ => Err(io::Error::from(io::ErrorKind::NotFound)),
    })
}

/// A request as lines: the metric, its unit and kind, then each point.
fn lines(request: &[u8]) -> Vec<String> {
    let request = ExportMetricsServiceRequest::decode(request).expect("a request");
    let mut lines = Vec::new();
    for resource in request.resource_metrics {
        assert_eq!(
            resource.schema_url,
            "https://opentelemetry.io/schemas/1.9.0"
        );
        for scope in resource.scope_metrics {
            let name = scope.scope.expect("a scope").name;
            lines.push(name.rsplit('/').next().unwrap_or_default().to_owned());
            for metric in scope.metrics {
                assert!(!metric.description.is_empty());
                let (kind, points) = match metric.data.expect("data") {
                    Data::Gauge(gauge) => ("gauge", gauge.data_points),
                    Data::Sum(sum) => {
                        assert_eq!(sum.aggregation_temporality, 2, "cumulative");
                        let kind = if sum.is_monotonic { "counter" } else { "sum" };
                        (kind, sum.data_points)
                    }
                    other => panic!("{other:?}"),
                };
                lines.push(format!("{} {} {kind}", metric.name, metric.unit));
                lines.extend(points.iter().map(point));
            }
        }
    }
    lines
}

fn point(point: &NumberDataPoint) -> String {
    assert_eq!(point.start_time_unix_nano, 1_700_000_000_000_000_000);
    assert_eq!(point.time_unix_nano, NOW_NS);
    let mut line = String::from(" ");
    for attribute in &point.attributes {
        let value = attribute.value.as_ref().and_then(|any| any.value.as_ref());
        let Some(Value::StringValue(text)) = value else {
            panic!("{attribute:?}");
        };
        write!(line, " {}={text}", attribute.key).expect("a text");
    }
    match point.value {
        Some(Number::AsInt(value)) => write!(line, " {value}").expect("a text"),
        Some(Number::AsDouble(value)) => write!(line, " {value:.4}").expect("a text"),
        None => panic!("{point:?}"),
    }
    line
}

/// Data of a scrape that has not failed.
fn scrape(host: &mut Host) -> Vec<String> {
    let scraped = host.scrape(NOW_NS);
    for result in &scraped.results {
        assert_eq!((result.errored, &result.error), (0, &None));
    }
    lines(&scraped.request)
}

fn text(lines: &[&str]) -> Vec<String> {
    lines.iter().map(|line| (*line).to_owned()).collect()
}

#[test]
fn processors_have_times_by_state() {
    assert_eq!(
        scrape(&mut host("cpu: {}")),
        text(&[
            "cpuscraper",
            "system.cpu.time s counter",
            "  cpu=cpu0 state=user 1.1000",
            "  cpu=cpu0 state=system 0.3000",
            "  cpu=cpu0 state=idle 14.0000",
            "  cpu=cpu0 state=interrupt 0.0200",
            "  cpu=cpu0 state=nice 0.1000",
            "  cpu=cpu0 state=softirq 0.0300",
            "  cpu=cpu0 state=steal 0.0400",
            "  cpu=cpu0 state=wait 0.2000",
            "  cpu=cpu1 state=user 2.2000",
            "  cpu=cpu1 state=system 0.6000",
            "  cpu=cpu1 state=idle 30.0000",
            "  cpu=cpu1 state=interrupt 0.0400",
            "  cpu=cpu1 state=nice 0.2000",
            "  cpu=cpu1 state=softirq 0.0400",
            "  cpu=cpu1 state=steal 0.0400",
            "  cpu=cpu1 state=wait 0.3000",
        ])
    );
}

#[test]
fn utilization_is_the_part_of_the_time_since_the_last_scrape() {
    let folder = Folder::new();
    let stat = |user: u32, idle: u32| {
        let text = format!("cpu0 {user} 0 0 {idle} 0 0 0 0 0 0\ncpu1 1 0 0 1\nbtime 1700000000\n");
        folder.write("proc/stat", &text);
    };
    stat(100, 100);
    let switches = "metrics: { system.cpu.time: { enabled: false }, system.cpu.utilization: { enabled: true } }";
    let mut host = host_in(&folder.0, &format!("cpu: {{ {switches} }}"));
    assert!(scrape(&mut host).is_empty());
    stat(130, 110);
    let lines = scrape(&mut host);
    assert_eq!(lines[1], "system.cpu.utilization 1 gauge");
    assert_eq!(lines[2], "  cpu=cpu0 state=user 0.7500");
    assert_eq!(lines[4], "  cpu=cpu0 state=idle 0.2500");
    // Nothing was counted for the second one.
    assert_eq!(lines[10], "  cpu=cpu1 state=user 0.0000");
}

#[test]
fn memory_is_told_by_state() {
    assert_eq!(
        scrape(&mut host("memory:")),
        text(&[
            "memoryscraper",
            "system.memory.usage By sum",
            "  state=used 614400",
            "  state=free 102400",
            "  state=buffered 51200",
            "  state=cached 225280",
            "  state=slab_reclaimable 20480",
            "  state=slab_unreclaimable 10240",
        ])
    );
}

#[test]
fn loads_may_be_divided_by_the_number_of_processors() {
    let expected = |loads: [&str; 3]| {
        let [one, five, fifteen] = loads;
        text(&[
            "loadscraper",
            "system.cpu.load_average.15m {thread} gauge",
            &format!("  {fifteen}"),
            "system.cpu.load_average.1m {thread} gauge",
            &format!("  {one}"),
            "system.cpu.load_average.5m {thread} gauge",
            &format!("  {five}"),
        ])
    };
    assert_eq!(
        scrape(&mut host("load: {}")),
        expected(["0.5000", "1.2500", "2.0000"])
    );
    assert_eq!(
        scrape(&mut host("load: { cpu_average: true }")),
        expected(["0.2500", "0.6250", "1.0000"])
    );
}

#[test]
fn disks_are_told_by_device_and_direction() {
    let sda = "include: { devices: [sda], match_type: strict }";
    assert_eq!(
        scrape(&mut host(&format!("disk: {{ {sda} }}"))),
        text(&[
            "diskscraper",
            "system.disk.io By counter",
            "  device=sda direction=read 10240",
            "  device=sda direction=write 20480",
            "system.disk.io_time s counter",
            "  device=sda 3.5000",
            "system.disk.merged {operations} counter",
            "  device=sda direction=read 1",
            "  device=sda direction=write 3",
            "system.disk.operation_time s counter",
            "  device=sda direction=read 1.5000",
            "  device=sda direction=write 2.5000",
            "system.disk.operations {operations} counter",
            "  device=sda direction=read 10",
            "  device=sda direction=write 30",
            "system.disk.pending_operations {operations} sum",
            "  device=sda 2",
            "system.disk.weighted_io_time s counter",
            "  device=sda 4.5000",
        ])
    );
}

#[test]
fn file_systems_with_a_device_are_told() {
    let home = "include_mount_points: { mount_points: ['^/home$'], match_type: regexp }";
    let own = "device=/dev/sda2 mode=ro mountpoint=/home type=xfs";
    assert_eq!(
        scrape(&mut host(&format!("filesystem: {{ {home} }}"))),
        text(&[
            "filesystemscraper",
            "system.filesystem.inodes.usage {inodes} sum",
            &format!("  {own} state=used 30"),
            &format!("  {own} state=free 20"),
            "system.filesystem.usage By sum",
            &format!("  {own} state=used 600"),
            &format!("  {own} state=free 300"),
            &format!("  {own} state=reserved 100"),
        ])
    );
}

#[test]
fn interfaces_and_connections_are_told() {
    let eth0 = "include: { interfaces: [eth0], match_type: strict }";
    let state = |state: &str, count: u32| format!("  protocol=tcp state={state} {count}");
    let counters = |receive: u32, transmit: u32| {
        [
            format!("  device=eth0 direction=transmit {transmit}"),
            format!("  device=eth0 direction=receive {receive}"),
        ]
    };
    let mut expected = text(&[
        "networkscraper",
        "system.network.connections {connections} sum",
    ]);
    expected.extend([
        state("ESTABLISHED", 1),
        state("SYN_SENT", 0),
        state("SYN_RECV", 0),
        state("FIN_WAIT1", 1),
        state("TIME_WAIT", 0),
        state("CLOSE", 0),
        state("CLOSE_WAIT", 0),
        state("LAST_ACK", 0),
        state("LISTEN", 2),
        state("CLOSING", 0),
        // The Collector has these though Linux has no such states.
        state("DELETE", 0),
        state("FIN_WAIT_1", 0),
        state("FIN_WAIT_2", 0),
    ]);
    for (name, receive, transmit) in [
        ("system.network.dropped {packets} counter", 2, 4),
        ("system.network.errors {errors} counter", 1, 3),
        ("system.network.io By counter", 5000, 6000),
        ("system.network.packets {packets} counter", 50, 60),
    ] {
        expected.push(name.to_owned());
        expected.extend(counters(receive, transmit));
    }
    assert_eq!(
        scrape(&mut host(&format!("network: {{ {eth0} }}"))),
        expected
    );
}

#[test]
fn swap_space_and_faults_are_told() {
    assert_eq!(
        scrape(&mut host("paging: {}")),
        text(&[
            "pagingscraper",
            "system.paging.faults {faults} counter",
            "  type=major 16384",
            "  type=minor 106496",
            "system.paging.operations {operations} counter",
            "  direction=page_in type=major 4096",
            "  direction=page_out type=major 8192",
            "  direction=page_in type=minor 20480",
            "  direction=page_out type=minor 24576",
            "system.paging.usage By sum",
            "  device=/swap file state=used 1024000",
            "  device=/swap file state=free 3072000",
        ])
    );
}

#[test]
fn processes_are_counted_by_state() {
    assert_eq!(
        scrape(&mut host("processes: {}")),
        text(&[
            "processesscraper",
            "system.processes.count {processes} sum",
            "  status=blocked 1",
            "  status=idle 1",
            "  status=running 2",
            "  status=sleeping 1",
            "  status=unknown 44",
            "  status=zombies 1",
            "system.processes.created {processes} counter",
            "  4242",
        ])
    );
}

/// A folder that is removed.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "spangate-host-{}-{}",
            std::process::id(),
            COUNT.fetch_add(1, Relaxed)
        );
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(folder.join("proc")).expect("a folder");
        Folder(folder)
    }

    fn write(&self, path: &str, text: &str) {
        std::fs::write(self.0.join(path), text).expect("a file");
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
