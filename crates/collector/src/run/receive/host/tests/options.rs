//! Switches of metrics, and filters.

use super::*;

/// The names of metrics.
fn names(lines: &[String]) -> BTreeSet<String> {
    let metrics = lines.iter().filter(|line| line.starts_with("system."));
    let names = metrics.filter_map(|line| line.split(' ').next());
    names.map(str::to_owned).collect()
}

/// All metrics of the scrapers, and whether they are made where nothing is written.
const METRICS: [(&str, &str, bool); 44] = [
    ("cpu", "system.cpu.frequency", false),
    ("cpu", "system.cpu.logical.count", false),
    ("cpu", "system.cpu.physical.count", false),
    ("cpu", "system.cpu.time", true),
    ("cpu", "system.cpu.utilization", false),
    ("memory", "system.linux.memory.available", false),
    ("memory", "system.linux.memory.dirty", false),
    ("memory", "system.memory.limit", false),
    ("memory", "system.memory.linux.hugepages.limit", false),
    ("memory", "system.memory.linux.hugepages.page_size", false),
    ("memory", "system.memory.linux.hugepages.reserved", false),
    ("memory", "system.memory.linux.hugepages.surplus", false),
    ("memory", "system.memory.linux.hugepages.usage", false),
    ("memory", "system.memory.linux.hugepages.utilization", false),
    ("memory", "system.memory.linux.shared", false),
    ("memory", "system.memory.page_size", false),
    ("memory", "system.memory.usage", true),
    ("memory", "system.memory.utilization", false),
    ("load", "system.cpu.load_average.15m", true),
    ("load", "system.cpu.load_average.1m", true),
    ("load", "system.cpu.load_average.5m", true),
    ("disk", "system.disk.io", true),
    ("disk", "system.disk.io_time", true),
    ("disk", "system.disk.merged", true),
    ("disk", "system.disk.operation_time", true),
    ("disk", "system.disk.operations", true),
    ("disk", "system.disk.pending_operations", true),
    ("disk", "system.disk.weighted_io_time", true),
    ("filesystem", "system.filesystem.inodes.usage", true),
    ("filesystem", "system.filesystem.usage", true),
    ("filesystem", "system.filesystem.utilization", false),
    ("network", "system.network.connections", true),
    ("network", "system.network.conntrack.count", false),
    ("network", "system.network.conntrack.max", false),
    ("network", "system.network.dropped", true),
    ("network", "system.network.errors", true),
    ("network", "system.network.io", true),
    ("network", "system.network.packets", true),
    ("paging", "system.paging.faults", true),
    ("paging", "system.paging.operations", true),
    ("paging", "system.paging.usage", true),
    ("paging", "system.paging.utilization", false),
    ("processes", "system.processes.count", true),
    ("processes", "system.processes.created", true),
];

#[test]
fn each_metric_has_a_switch() {
    let scrapers = || {
        let all = METRICS.iter().map(|(scraper, ..)| *scraper);
        all.collect::<BTreeSet<_>>()
    };
    let made = |written: &str| {
        let mut host = host(written);
        // Utilization of processors needs two.
        scrape(&mut host);
        names(&scrape(&mut host))
    };
    let expected = |is_flipped: bool| {
        let metrics = METRICS.iter().filter(|(.., is_on)| *is_on != is_flipped);
        let names = metrics.map(|(_, name, _)| (*name).to_owned());
        names.collect::<BTreeSet<_>>()
    };
    let plain: Vec<String> = scrapers()
        .iter()
        .map(|name| format!("{name}: {{}}"))
        .collect();
    assert_eq!(made(&plain.join(", ")), expected(false));
    let flipped = scrapers().into_iter().map(|scraper| {
        let own = METRICS.iter().filter(|(of, ..)| *of == scraper);
        let switches = own.map(|(_, name, is_on)| format!("{name}: {{ enabled: {} }}", !is_on));
        let switches: Vec<_> = switches.collect();
        format!("{scraper}: {{ metrics: {{ {} }} }}", switches.join(", "))
    });
    let flipped: Vec<String> = flipped.collect();
    assert_eq!(made(&flipped.join(", ")), expected(true));
}

#[test]
fn optional_metrics_have_the_values_of_the_files() {
    let on = |scraper: &str, names: &[&str]| {
        let switches = names
            .iter()
            .map(|name| format!("{name}: {{ enabled: true }}"));
        let switches: Vec<_> = switches.collect();
        let lines = scrape(&mut host(&format!(
            "{scraper}: {{ metrics: {{ {} }} }}",
            switches.join(", ")
        )));
        let mut found = Vec::new();
        for name in names {
            let first = lines
                .iter()
                .position(|line| line.starts_with(&format!("{name} ")));
            let first = first.expect(name);
            let points = lines[first + 1..]
                .iter()
                .take_while(|line| line.starts_with(' '));
            found.push(lines[first].clone());
            found.extend(points.cloned());
        }
        found
    };
    assert_eq!(
        on(
            "cpu",
            &[
                "system.cpu.frequency",
                "system.cpu.logical.count",
                "system.cpu.physical.count"
            ]
        ),
        text(&[
            "system.cpu.frequency Hz gauge",
            "  cpu=cpu0 2400500000.0000",
            "  cpu=cpu1 1200000000.0000",
            "system.cpu.logical.count {cpu} sum",
            "  2",
            "system.cpu.physical.count {cpu} sum",
            "  1",
        ])
    );
    let huge = "system.memory.linux.hugepages";
    let state = "system.memory.linux.hugepages.state";
    assert_eq!(
        on(
            "memory",
            &[
                "system.linux.memory.available",
                "system.linux.memory.dirty",
                "system.memory.limit",
                &format!("{huge}.limit"),
                &format!("{huge}.page_size"),
                &format!("{huge}.reserved"),
                &format!("{huge}.surplus"),
                &format!("{huge}.usage"),
                &format!("{huge}.utilization"),
                "system.memory.linux.shared",
            ]
        ),
        text(&[
            "system.linux.memory.available By sum",
            "  409600",
            "system.linux.memory.dirty By sum",
            "  3072",
            "system.memory.limit By sum",
            "  1024000",
            "system.memory.linux.hugepages.limit {page} sum",
            "  8",
            "system.memory.linux.hugepages.page_size By sum",
            "  2097152",
            "system.memory.linux.hugepages.reserved {page} sum",
            "  2",
            "system.memory.linux.hugepages.surplus {page} sum",
            "  1",
            "system.memory.linux.hugepages.usage {page} sum",
            &format!("  {state}=free 6"),
            &format!("  {state}=used 2"),
            "system.memory.linux.hugepages.utilization 1 gauge",
            &format!("  {state}=free 0.7500"),
            &format!("  {state}=used 0.2500"),
            "system.memory.linux.shared By sum",
            "  7168",
        ])
    );
    assert_eq!(
        on(
            "network",
            &[
                "system.network.conntrack.count",
                "system.network.conntrack.max"
            ]
        ),
        text(&[
            "system.network.conntrack.count {entries} sum",
            "  12",
            "system.network.conntrack.max {entries} sum",
            "  65536",
        ])
    );
    let utilization = on("memory", &["system.memory.utilization"]);
    assert_eq!(utilization[1], "  state=used 0.6000");
    assert_eq!(utilization[4], "  state=cached 0.2200");
    let utilization = on("paging", &["system.paging.utilization"]);
    assert_eq!(utilization[1], "  device=/swap file state=used 0.2500");
    let utilization = on("filesystem", &["system.filesystem.utilization"]);
    let root = "  device=/dev/sda1 mode=rw mountpoint=/ type=ext4";
    assert_eq!(utilization[1], format!("{root} 0.6667"));
}

/// The values of an attribute.
fn values(lines: &[String], key: &str) -> BTreeSet<String> {
    let parts = lines.iter().flat_map(|line| line.split(' '));
    let values = parts.filter_map(|part| part.strip_prefix(key)?.strip_prefix('='));
    values.map(str::to_owned).collect()
}

#[test]
fn filters_choose_devices_interfaces_and_file_systems() {
    let chosen = |key: &str, scraper: &str, options: &str| {
        let lines = scrape(&mut host(&format!("{scraper}: {{ {options} }}")));
        let all = values(&lines, key).into_iter().collect::<Vec<_>>();
        all.join(" ")
    };
    let disks = |options: &str| chosen("device", "disk", options);
    assert_eq!(disks(""), "loop0 sda sda1");
    // An expression may match a part of a name; a name is whole.
    let sd = "devices: [sd], match_type: regexp";
    assert_eq!(disks(&format!("include: {{ {sd} }}")), "sda sda1");
    assert_eq!(disks(&format!("exclude: {{ {sd} }}")), "loop0");
    let sda = "devices: [sda], match_type: strict";
    assert_eq!(
        disks(&format!("include: {{ {sd} }}, exclude: {{ {sda} }}")),
        "sda1"
    );
    let interfaces = |options: &str| chosen("device", "network", options);
    assert_eq!(interfaces(""), "eth0 lo");
    let lo = "interfaces: [lo], match_type: strict";
    assert_eq!(interfaces(&format!("include: {{ {lo} }}")), "lo");
    assert_eq!(interfaces(&format!("exclude: {{ {lo} }}")), "eth0");

    let mounts = |options: &str| chosen("mountpoint", "filesystem", options);
    assert_eq!(mounts(""), "/ /home /tank");
    let all = "include_virtual_filesystems: true";
    // A blank of a mount point ends the value here.
    assert_eq!(mounts(all), "/ /home /mnt/bound /run /run/netns/a /tank");
    let cases = [
        ("devices: [/dev/sda1]", "devices", "/", "/home /tank"),
        ("fs_types: [xfs, zfs]", "fs_types", "/home /tank", "/"),
        ("mount_points: [/]", "mount_points", "/", "/home /tank"),
    ];
    for (names, what, included, excluded) in cases {
        let filter =
            |verb: &str| mounts(&format!("{verb}_{what}: {{ {names}, match_type: strict }}"));
        assert_eq!(filter("include"), included, "{what}");
        assert_eq!(filter("exclude"), excluded, "{what}");
    }
    let devices = chosen("device", "filesystem", all);
    assert_eq!(devices, "/ /dev/sda1 /dev/sda2 net:[12345] tank/data tmpfs");
}
