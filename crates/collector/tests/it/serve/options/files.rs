//! What the exporter `file` writes.

use super::*;
use crate::serve::disk::{in_limited_process, limit_files};

/// A folder that is gone with this.
struct TempFolder(PathBuf);

impl TempFolder {
    fn new() -> TempFolder {
        let TempFile(path) = &*std::mem::ManuallyDrop::new(TempFile::new());
        TempFolder(path.clone())
    }
}

impl Drop for TempFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A request of one span for each service; an empty name is no attribute.
fn of_services(services: &[&str]) -> Bytes {
    let text = |value: &str| AnyValue {
        value: Some(any_value::Value::StringValue(value.into())),
    };
    let resource = |service: &&str| ResourceSpans {
        resource: Some(Resource {
            attributes: { Some(*service) }
                .filter(|service| !service.is_empty())
                .map(|service| KeyValue {
                    key: "service.name".into(),
                    value: Some(text(service)),
                    ..KeyValue::default()
                })
                .into_iter()
                .collect(),
            ..Resource::default()
        }),
        scope_spans: vec![ScopeSpans {
            spans: vec![Span {
                trace_id: vec![7; 16],
                span_id: vec![7; 8],
                name: (*service).into(),
                ..Span::default()
            }],
            ..ScopeSpans::default()
        }],
        ..ResourceSpans::default()
    };
    let request = ExportTraceServiceRequest {
        resource_spans: services.iter().map(resource).collect(),
    };
    request.encode_to_vec().into()
}

/// The requests of a file with lengths before them.
fn framed(
    path: &std::path::Path,
    decode: impl Fn(&[u8]) -> Vec<u8>,
) -> Vec<ExportTraceServiceRequest> {
    let bytes = std::fs::read(path).expect("a file");
    let mut rest = &bytes[..];
    let mut requests = Vec::new();
    while let Some((len, more)) = rest.split_first_chunk::<4>() {
        let (message, more) = more.split_at(u32::from_be_bytes(*len) as usize);
        requests.push(ExportTraceServiceRequest::decode(&decode(message)[..]).expect("a request"));
        rest = more;
    }
    assert_eq!(rest, b"");
    requests
}

#[tokio::test]
async fn each_service_has_its_file_and_none_leaves_the_folder() {
    let folder = TempFolder::new();
    let path = folder.0.display();
    let exporter = format!(
        "file: {{ path: '{path}/t-*.bin', format: proto, compression: zstd, group_by: {{ enabled: true, resource_attribute: service.name, max_open_files: 1 }} }}"
    );
    let front = sender(&exporter, "file", "", "");
    let client = grpc(&front);
    taken(&client, of_services(&["a", "b", "", "a"])).await;
    taken(&client, of_services(&["../../b", "a"])).await;
    until("all is written", || traces(&front).held() == 0).await;
    let balance = traces(&front);
    // Who says no service is in no file.
    assert_eq!((balance.exported, balance.rejected), (5, 1));
    let plain = |message: &[u8]| zstd::decode_all(message).expect("zstd");
    let names = |name: &str| -> Vec<Vec<String>> {
        let requests = framed(&folder.0.join(name), plain).into_iter();
        let spans = |request: ExportTraceServiceRequest| {
            let resources = request.resource_spans.into_iter();
            resources
                .map(|one| one.scope_spans[0].spans[0].name.clone())
                .collect()
        };
        requests.map(spans).collect()
    };
    assert_eq!(names("t-a.bin"), [vec!["a", "a"], vec!["a"]]);
    assert_eq!(names("t-b.bin"), [["b"]]);
    assert_eq!(names("t-../b.bin"), [["../../b"]]);
}

#[tokio::test]
async fn a_file_is_continued_or_begun_anew() {
    let file = TempFile::new();
    for (append, spans) in [("true", 20), ("true", 40), ("false", 20)] {
        let exporter = format!("file: {{ path: '{}', append: {append} }}", file.0.display());
        let front = sender(&exporter, "file", "", "");
        taken(&grpc(&front), request(0, 10)).await;
        until("it is written", || traces(&front).exported == 20).await;
        front.end().await;
        assert_eq!(file.spans().len(), spans, "{append}");
    }
}

fn names_in(folder: &TempFolder) -> Vec<String> {
    let entries = std::fs::read_dir(&folder.0).expect("a folder");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    let mut names: Vec<_> = names
        .map(|name| name.to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// Writes several megabytes by an exporter with this rotation: the names in its folder.
async fn rotated(folder: &TempFolder, rotation: &str) -> Vec<String> {
    let _ = std::fs::create_dir(&folder.0);
    let front = sender(
        &format!(
            "file: {{ path: '{}/t.json', rotation: {{ {rotation} }} }}",
            folder.0.display()
        ),
        "file",
        "",
        "",
    );
    let client = grpc(&front);
    for _ in 0..4 {
        taken(&client, request(0, 2000)).await;
    }
    front.end().await;
    names_in(folder)
}

#[tokio::test]
async fn full_files_are_put_aside_as_the_settings_say() {
    // Each request has more than half a megabyte of JSON.
    for (rotation, files) in [
        ("max_megabytes: 1, max_backups: 100", 4),
        ("max_megabytes: 1, max_backups: 2", 3),
        ("max_megabytes: 100", 1),
    ] {
        let folder = TempFolder::new();
        assert_eq!(rotated(&folder, rotation).await.len(), files, "{rotation}");
    }
    let old = "t-2020-01-01T00-00-00.000.json";
    for (days, is_left) in [("0", true), ("2", false)] {
        let folder = TempFolder::new();
        std::fs::create_dir(&folder.0).expect("a folder");
        std::fs::write(folder.0.join(old), "").expect("a file");
        let names = rotated(&folder, &format!("max_megabytes: 1, max_days: {days}")).await;
        assert_eq!(names.iter().any(|name| name == old), is_left, "{names:?}");
    }
}

#[tokio::test]
async fn full_files_may_have_the_local_time() {
    if std::env::var_os("SPANGATE_TEST_CHILD").is_none() {
        // The variables of a process are set at its start; there it is twelve hours later.
        let name = "serve::options::files::full_files_may_have_the_local_time";
        let own = std::env::current_exe().expect("a program");
        let run = std::process::Command::new(own)
            .args(["--exact", name])
            .env("TZ", "XXX-12")
            .env("SPANGATE_TEST_CHILD", "1")
            .output()
            .expect("it runs");
        let told = String::from_utf8_lossy(&run.stdout);
        assert!(run.status.success() && told.contains("1 passed"), "{told}");
        return;
    }
    let [utc, local] = [TempFolder::new(), TempFolder::new()];
    let utc = rotated(&utc, "max_megabytes: 1").await;
    let local = rotated(&local, "max_megabytes: 1, localtime: true").await;
    // `t-2026-01-31T12-…`
    let hour = |names: &[String]| -> u32 { names[0][13..15].parse().expect("an hour") };
    let later = (hour(&local) + 24 - hour(&utc)) % 24;
    assert!([12, 13].contains(&later), "{utc:?} {local:?}");
}

#[tokio::test]
async fn folders_are_made_with_the_permissions_of_the_settings() {
    use std::os::unix::fs::PermissionsExt as _;
    for (permissions, mode) in [("", 0o755), (", directory_permissions: '0700'", 0o700)] {
        let folder = TempFolder::new();
        let path = folder.0.display();
        let exporter =
            format!("file: {{ path: '{path}/t.json', create_directory: true {permissions} }}");
        let front = sender(&exporter, "file", "", "");
        taken(&grpc(&front), request(0, 10)).await;
        front.end().await;
        let found = std::fs::metadata(&folder.0)
            .expect("a folder")
            .permissions();
        // The process's mask may take some away.
        assert_eq!(found.mode() & 0o777 & !mode, 0, "{permissions}");
        assert_eq!(found.mode() & 0o700, 0o700);
        assert_eq!(names_in(&folder), ["t.json"]);
    }
}

#[tokio::test]
async fn no_more_files_are_open_than_the_settings_say() {
    for (options, open) in [("", 3), (", max_open_files: 2", 2)] {
        let folder = TempFolder::new();
        let path = folder.0.display();
        let front = sender(
            &format!(
                "file: {{ path: '{path}/*.json', group_by: {{ enabled: true, resource_attribute: service.name {options} }} }}"
            ),
            "file",
            "",
            "",
        );
        taken(&grpc(&front), of_services(&["a", "b", "c"])).await;
        until("all is written", || traces(&front).exported == 3).await;
        let links = std::fs::read_dir("/proc/self/fd").expect("Linux").flatten();
        let targets = links.filter_map(|link| std::fs::read_link(link.path()).ok());
        let own = targets.filter(|target| target.starts_with(&folder.0));
        assert_eq!(own.count(), open, "{options}");
    }
}

/// A collector that receives OTLP and writes files, and its log.
fn file_collector(options: &str) -> (Collector, Arc<Mutex<Vec<String>>>) {
    start_logged(
        Level::Warn,
        &format!(
            "receivers: {{ otlp: {{ protocols: {{ grpc: {{ endpoint: '127.0.0.1:0' }} }} }} }}\n\
             exporters: {{ file: {{ {options} }} }}\n\
             service: {{ {NO_METRICS}, pipelines: {{ traces: {{ receivers: [otlp], exporters: [file] }} }} }}"
        ),
    )
}

async fn until_tried_again(lines: &Mutex<Vec<String>>) {
    until("a failed attempt", || {
        let lines = lines.lock().expect("no panic");
        lines.iter().any(|line| line.contains("tried again"))
    })
    .await;
}

#[tokio::test]
async fn a_full_disk_delays_requests_and_leaves_no_part_of_one() {
    if !in_limited_process(
        "serve::options::files::a_full_disk_delays_requests_and_leaves_no_part_of_one",
    ) {
        return;
    }
    let file = TempFile::new();
    let (collector, lines) = file_collector(&format!("path: '{}'", file.0.display()));
    let client = grpc(&collector);
    taken(&client, request(0, 10)).await;
    until("the first", || traces(&collector).exported == 20).await;
    let whole = std::fs::metadata(&file.0).expect("a file").len();
    limit_files(Some(whole + whole / 2));
    taken(&client, request(10, 10)).await;
    until_tried_again(&lines).await;
    assert_eq!(std::fs::metadata(&file.0).expect("a file").len(), whole);
    assert_eq!(file.spans().len(), 20);
    limit_files(None);
    until("the second", || traces(&collector).exported == 40).await;
    assert_eq!(file.spans().len(), 40);
    assert_eq!(collector.end().await[0].failed, 0);
}

#[tokio::test]
async fn a_full_disk_delays_only_the_files_that_it_affects() {
    if !in_limited_process(
        "serve::options::files::a_full_disk_delays_only_the_files_that_it_affects",
    ) {
        return;
    }
    let folder = TempFolder::new();
    let (collector, lines) = file_collector(&format!(
        "path: '{}/*.json', group_by: {{ enabled: true, resource_attribute: service.name }}",
        folder.0.display()
    ));
    let large = [&["a"][..], &["b"; 40]].concat();
    limit_files(Some(1000));
    taken(&grpc(&collector), of_services(&large)).await;
    until_tried_again(&lines).await;
    let spans = |name: &str| TempFile(folder.0.join(name)).spans().len();
    assert_eq!(
        std::fs::metadata(folder.0.join("b.json"))
            .expect("a file")
            .len(),
        0
    );
    limit_files(None);
    until("all is written", || traces(&collector).exported == 41).await;
    // No record is written twice.
    assert_eq!((spans("a.json"), spans("b.json")), (1, 40));
}
