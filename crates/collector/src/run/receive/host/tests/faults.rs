//! Files that are missing or hold garbage.

use super::*;

#[test]
fn what_cannot_be_read_is_counted_and_the_rest_is_made() {
    let folder = Folder::new();
    folder.write("proc/stat", "cpu0 1 2 3 4\nbtime 1700000000\n");
    let all = "cpu: , memory: , load: , disk: , filesystem: , network: , paging: , processes: ";
    let mut host = host_in(&folder.0, all);
    let scraped = host.scrape(NOW_NS);
    let results = scraped.results.iter();
    let counts: Vec<_> = results.map(|one| (one.metrics, one.errored)).collect();
    let expected = [
        (1, 0),
        (0, 2),
        (0, 3),
        (0, 7),
        (0, 2),
        (0, 5),
        (0, 3),
        (0, 2),
    ];
    assert_eq!(counts, expected);
    let memory = scraped.results[1].error.as_deref().unwrap_or_default();
    assert!(memory.contains("proc/meminfo: No such file"), "{memory}");
    // Without the time of its start nothing is begun.
    folder.write("proc/stat", "cpu0 1 2 3 4\n");
    let settings = receiver(&format!(
        "host_metrics: {{ root_path: '{}', scrapers: {{ cpu: }} }}",
        folder.0.display()
    ));
    let settings: &HostMetricsReceiver = settings.get().expect("a receiver");
    let why = Host::new(settings).err().expect("a fault");
    assert!(why.ends_with("proc/stat: has no 'btime'"), "{why}");
}

#[test]
fn files_of_garbage_cost_no_panic() {
    let folder = Folder::new();
    let all = "cpu: , memory: , load: , disk: , filesystem: { include_virtual_filesystems: true }, network: , paging: , processes: ";
    std::fs::create_dir_all(folder.0.join("proc/1")).expect("a folder");
    std::fs::create_dir_all(folder.0.join("proc/net")).expect("a folder");
    for garbage in [
        "",
        ":",
        "\u{0}\u{ff}",
        "a b c d e f g h i j k l m n o p\n: - :\ncpu9\n",
        "99999999999999999999 - 1 2 3 4 5 6 - 7\ncpu0 99999999999999999999 18446744073709551615 18446744073709551615\n",
        "MemTotal: 18446744073709551615 kB\nMemFree: 18446744073709551615 kB\nCached: 18446744073709551615 kB\n",
        "x: 18446744073709551615 18446744073709551615 18446744073709551615\nx 1 18446744073709551615 18446744073709551615 18446744073709551615\n",
    ] {
        for file in [
            "meminfo",
            "loadavg",
            "diskstats",
            "swaps",
            "vmstat",
            "1/mountinfo",
            "1/stat",
            "net/dev",
            "net/tcp",
            "cpuinfo",
        ] {
            folder.write(&format!("proc/{file}"), garbage);
        }
        folder.write("proc/stat", &format!("btime 1700000000\n{garbage}"));
        let mut host = host_in(&folder.0, all);
        host.scrape(NOW_NS);
        let scraped = host.scrape(NOW_NS);
        assert_eq!(scraped.results.len(), 8);
        ExportMetricsServiceRequest::decode(&*scraped.request).expect("a request");
    }
}
