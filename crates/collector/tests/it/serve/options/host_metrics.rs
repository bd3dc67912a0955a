//! The receiver `host_metrics`, from files of a host to a file of records.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value as Json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;

const HOST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/host");

/// A collector that scrapes a host into a file.
fn scraping(root: &Path, options: &str, rest: &str) -> (Collector, TempFile) {
    let file = TempFile::new();
    let collector = start(&format!(
        "receivers: {{ host_metrics: {{ root_path: '{}', {options} }} }}
exporters: {{ file: {{ path: '{}' }} }}
service: {{ {rest}, pipelines: {{ metrics: {{ receivers: [host_metrics], exporters: [file] }} }} }}",
        root.display(),
        file.0.display()
    ));
    (collector, file)
}

/// The first time of each scrape, by its scope, in nanoseconds of the UNIX epoch.
fn times(file: &TempFile) -> Vec<(String, u64)> {
    let text = std::fs::read_to_string(&file.0).unwrap_or_default();
    let mut times = Vec::new();
    for line in text.lines() {
        let request: Json = serde_json::from_str(line).expect("JSON");
        for resource in request["resourceMetrics"].as_array().expect("a list") {
            let scope = &resource["scopeMetrics"][0];
            let name = scope["scope"]["name"].as_str().expect("a name");
            let metric = &scope["metrics"][0];
            let data = if metric["sum"].is_null() {
                &metric["gauge"]
            } else {
                &metric["sum"]
            };
            let time = data["dataPoints"][0]["timeUnixNano"].as_str();
            let time = time.and_then(|time| time.parse().ok()).expect("a time");
            times.push((name.rsplit('/').next().unwrap_or_default().to_owned(), time));
        }
    }
    times
}

fn scraped(collector: &Collector) -> u64 {
    collector.view.accounts[Signal::Metrics as usize]
        .balance()
        .accepted
}

/// The values of metrics of one name on the collector's page, by all of their labels.
fn on_page(page: &str, name: &str) -> BTreeMap<String, u64> {
    let own = page.lines().filter_map(|line| line.strip_prefix(name));
    let own = own.filter_map(|line| line.strip_prefix('{')?.split_once("} "));
    own.map(|(labels, value)| (labels.to_owned(), value.parse().expect("a number")))
        .collect()
}

#[tokio::test]
async fn a_host_is_scraped_again_and_again_until_the_end() {
    let options = "collection_interval: 10ms, initial_delay: 0s, scrapers: { load: , memory: }";
    let metrics = "telemetry: { metrics: { readers: [ { pull: { exporter: { prometheus: { host: 127.0.0.1, port: 0 } } } } ] } }";
    let (collector, file) = scraping(Path::new(HOST), options, metrics);
    // Three loads and six states a scrape.
    until("three scrapes", || scraped(&collector) >= 27).await;
    let page = self::metrics(&collector).await;
    let of = |name: &str| on_page(&page, name);
    let points = of("otelcol_scraper_scraped_metric_points");
    let labels: Vec<_> = points.keys().map(String::as_str).collect();
    assert_eq!(labels.len(), 2, "{page}");
    assert!(labels[0].starts_with("receiver=\"host_metrics\",scraper=\"load\""));
    let metrics: Vec<u64> = points.values().copied().collect();
    // The Collector counts metrics here: three of loads, one of memory.
    assert!(metrics[1] >= 3 && metrics[0] >= 9, "{metrics:?}");
    let errored = of("otelcol_scraper_errored_metric_points");
    assert_eq!(errored.values().sum::<u64>(), 0);
    let accepted = of("otelcol_receiver_accepted_metric_points");
    let (labels, count) = accepted.iter().next().expect("a receiver");
    assert!(labels.contains("receiver=\"host_metrics\"") && labels.contains("transport=\"\""));
    assert!(*count >= 27 && *count % 9 == 0, "{count}");
    // The pipeline ends when the source has: nothing is refused or lost.
    let [_, balance, _] = collector.end().await;
    assert_eq!((balance.refused, balance.dropped), (0, 0));
    assert_eq!(balance.exported, balance.accepted);
    let times = times(&file);
    assert_eq!(times.len() as u64, balance.accepted / 9 * 2);
    assert_eq!(
        (&*times[0].0, &*times[1].0),
        ("memoryscraper", "loadscraper")
    );
}

#[tokio::test(start_paused = true)]
async fn scrapes_come_after_the_delay_and_at_the_interval() {
    let counted = async |options: &str, seconds: u64| {
        let options = format!("scrapers: {{ load: }}, {options}");
        let (collector, _file) = scraping(Path::new(HOST), &options, NO_METRICS);
        let until = tokio::time::Instant::now() + Duration::from_secs(seconds);
        // A scrape runs on another thread, which virtual time does not wait for.
        let mut last = 0;
        while tokio::time::Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(100)).await;
            last = last.max(scraped(&collector));
        }
        collector.end().await;
        last / 3
    };
    let all = counted("initial_delay: 2s, collection_interval: 5s", 20).await;
    // At 2, 7, 12 and 17 seconds.
    assert_eq!(all, 4);
    assert_eq!(counted("initial_delay: 30s", 20).await, 0);
    // A minute after the first second is beyond the end.
    assert_eq!(counted("", 20).await, 1);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_scraped_once_another_collector_has_taken_over() {
    let options = "collection_interval: 1s, initial_delay: 0s, scrapers: { load: }";
    let (collector, _file) = scraping(Path::new(HOST), options, NO_METRICS);
    until("a scrape", || scraped(&collector) > 0).await;
    let (next, _file) = scraping(Path::new(HOST), options, NO_METRICS);
    collector.stop_listening();
    let before = scraped(&collector);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(scraped(&collector), before);
    assert!(scraped(&next) > before);
    let [_, balance, _] = collector.end_for(&next.view).await;
    assert_eq!((balance.refused, balance.dropped), (0, 0));
    next.end().await;
}

/// A folder that is removed.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[tokio::test]
async fn a_receiver_that_reads_nothing_is_not_healthy() {
    let folder = Folder(TempFile::new().0.with_extension("host"));
    std::fs::create_dir_all(folder.0.join("proc")).expect("a folder");
    std::fs::write(folder.0.join("proc/stat"), "btime 1700000000\n").expect("a file");
    let receiver = format!(
        "host_metrics: {{ root_path: '{}', collection_interval: 10ms, initial_delay: 0s, scrapers: {{ memory: }} }}",
        folder.0.display()
    );
    let collector = start(&format!(
        "receivers: {{ {receiver} }}\nexporters: {{ nop: }}
extensions: {{ healthcheckv2: {{ use_v2: true, component_health: {{ include_recoverable_errors: true, recovery_duration: 1ns }}, http: {{ endpoint: '127.0.0.1:0', status: {{ path: /up }} }} }} }}
service: {{ {NO_METRICS}, extensions: [healthcheckv2], pipelines: {{ metrics: {{ receivers: [host_metrics], exporters: [nop] }} }} }}"
    ));
    let failing = || {
        let (_, source) = collector.view.sources.first().expect("a source");
        source.failing()
    };
    until("a scrape has failed", || failing().is_some()).await;
    let (status, shown) = status_of(&collector).await;
    assert_eq!(status, "HTTP/1.1 500");
    assert_eq!(shown["status"], "StatusRecoverableError");
    let error = shown["error"].as_str().expect("a reason");
    assert!(error.contains("proc/meminfo"), "{error}");
    // It scrapes on.
    std::fs::write(folder.0.join("proc/meminfo"), "MemTotal: 1 kB\n").expect("a file");
    until("a scrape has succeeded", || failing().is_none()).await;
    let (status, shown) = status_of(&collector).await;
    assert_eq!(
        (&*status, &shown["status"]),
        ("HTTP/1.1 200", &"StatusOK".into())
    );
    assert!(scraped(&collector) > 0);
    collector.end().await;
}

/// The status of HTTP of the page of `healthcheckv2`, and what it says of the receiver.
async fn status_of(collector: &Collector) -> (String, Json) {
    let page = address(collector, "healthcheckv2");
    let mut stream = tokio::net::TcpStream::connect(page).await.expect("a page");
    let request = b"GET /up?verbose HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    stream.write_all(request).await.expect("a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    let body: Json = serde_json::from_str(body).expect("JSON");
    let parts = &body["components"]["pipeline:metrics"]["components"];
    (
        head[..12].to_owned(),
        parts["receiver:host_metrics"].clone(),
    )
}
