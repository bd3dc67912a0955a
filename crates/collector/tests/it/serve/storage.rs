//! What outlives a collector. A process that is killed leaves its files as they are: a copy of the
//! folder, taken at some moment, is what the next one finds.

use std::collections::BTreeMap;
use std::path::Path;

use super::*;

const SAMPLER: &str = "tail_sampling: { storage: file_storage, decision_wait: WAIT, POLICIES }";
const ALWAYS: &str = "policies: [ { name: a, type: always_sample } ]";

/// A folder that is gone with this.
pub(super) struct Folder(TempFile);

impl Folder {
    pub(super) fn new() -> Folder {
        Folder(TempFile::new())
    }

    pub(super) fn path(&self) -> &Path {
        &self.0.0
    }

    /// What a process that is killed now would leave.
    pub(super) fn snapshot(&self) -> Folder {
        let copy = Folder::new();
        copy_all(self.path(), copy.path());
        copy
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(self.path());
    }
}

fn copy_all(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        let to = to.join(entry.file_name());
        if entry.file_type().expect("a type").is_dir() {
            copy_all(&entry.path(), &to);
        } else {
            // A segment may go meanwhile.
            drop(std::fs::copy(entry.path(), to));
        }
    }
}

/// A configuration with a storage in a folder, a processor and an exporter.
fn keeping(folder: &Folder, processors: &str, exporter: &str) -> String {
    let names = match processors {
        "" => "",
        _ => processors.split(':').next().unwrap_or_default(),
    };
    let kind = exporter.split(':').next().unwrap_or_default();
    format!(
        "processors: {{ {processors} }}\nexporters: {{ {exporter} }}\nextensions: {{ file_storage: {{ directory: '{}' }} }}\n\
         service: {{ {NO_METRICS}, extensions: [file_storage], pipelines: {{ traces: {{ receivers: [otlp], processors: [{names}], exporters: [{kind}] }} }} }}",
        folder.path().display()
    )
}

fn sampler(folder: &Folder, wait: &str, policies: &str, file: &TempFile) -> Collector {
    let processor = SAMPLER.replace("WAIT", wait).replace("POLICIES", policies);
    let exporter = format!("file: {{ path: '{}' }}", file.0.display());
    collector(&keeping(folder, &processor, &exporter))
}

async fn sent(collector: &Collector, first: u64, traces: u64) {
    let client = grpc(collector);
    let deadline = Instant::now() + PATIENCE;
    loop {
        match send(&client, request(first, traces)).await {
            Outcome::Taken { rejected: 0, .. } => return,
            // What an earlier one left comes first.
            Outcome::Busy { .. } => assert!(Instant::now() < deadline),
            other => panic!("{other:?}"),
        }
    }
}

/// How often each span came, by the number of its trace.
fn came(file: &TempFile) -> BTreeMap<u64, usize> {
    let mut came = BTreeMap::new();
    for span in file.spans() {
        let id = span["traceId"].as_str().expect("an id");
        let trace = u64::from_str_radix(&id[16..], 16).expect("a number");
        *came.entry(trace).or_default() += 1;
    }
    came
}

#[tokio::test]
async fn what_waits_when_a_process_is_killed_is_decided_by_the_next_one_with_all_its_spans() {
    let (folder, file) = (Folder::new(), TempFile::new());
    let first = sampler(&folder, "300s", ERRORS, &file);
    // The second span of each trace comes with another request.
    for _ in 0..2 {
        sent(&first, 0, 100).await;
    }
    sent(&first, 100, 100).await;
    let killed = folder.snapshot();
    let again = TempFile::new();
    let second = sampler(&killed, "1s", ERRORS, &again);
    until("the decision", || traces(&second).exported == 60).await;
    let balance = traces(&second);
    assert_eq!(
        (balance.accepted, balance.recovered, balance.dropped),
        (600, 600, 540)
    );
    assert_eq!(balance.held(), 0);
    let [balance, ..] = second.end().await;
    assert_eq!(balance.shutdown, 0);
    let came = came(&again);
    assert_eq!(came.len(), 20);
    for (trace, spans) in came {
        assert_eq!((trace % 10, spans), (0, if trace < 100 { 4 } else { 2 }));
    }
    // All was settled: nothing is left.
    let third = TempFile::new();
    let third = sampler(&killed, "1s", ERRORS, &third);
    assert_eq!(third.end().await[0], Balance::default());
}

#[tokio::test]
async fn what_was_decided_is_not_decided_anew() {
    let (folder, file) = (Folder::new(), TempFile::new());
    let first = sampler(&folder, "10ms", ERRORS, &file);
    sent(&first, 0, 100).await;
    until("the decision", || traces(&first).exported == 20).await;
    // A late span; and with it the decisions are written.
    sent(&first, 1, 1).await;
    let killed = folder.snapshot();
    let again = TempFile::new();
    let second = sampler(&killed, "10ms", ALWAYS, &again);
    sent(&second, 200, 1).await;
    until("all of it", || traces(&second).held() == 0).await;
    // What was kept may come again, for nobody knows that it arrived.
    let kept: BTreeMap<u64, usize> = (0..100).step_by(10).map(|trace| (trace, 2)).collect();
    assert_eq!(came(&file), kept);
    let mut expected = kept;
    expected.insert(200, 2);
    assert_eq!(came(&again), expected);
    second.end().await;
    first.end().await;
}

#[tokio::test]
async fn what_waits_at_the_end_waits_for_the_next_start() {
    for (processor, spans) in [
        (
            SAMPLER.replace("WAIT", "300s").replace("POLICIES", ERRORS),
            60,
        ),
        (
            "groupbytrace: { store_on_disk: true, wait_duration: 300s, num_workers: 3 }".to_owned(),
            600,
        ),
    ] {
        let (folder, file) = (Folder::new(), TempFile::new());
        let exporter = format!("file: {{ path: '{}' }}", file.0.display());
        let first = collector(&keeping(&folder, &processor, &exporter));
        sent(&first, 0, 300).await;
        let [balance, ..] = first.end().await;
        assert_eq!((balance.held(), balance.shutdown), (600, 0));
        assert_eq!(file.spans().len(), 0);
        let second = processor.replace("300s", "100ms");
        let second = collector(&keeping(&folder, &second, &exporter));
        until("all of it", || traces(&second).exported == spans).await;
        let [balance, ..] = second.end().await;
        assert_eq!((balance.accepted, balance.held()), (600, 0));
        assert_eq!(file.spans().len() as u64, spans);
    }
}

#[tokio::test]
async fn what_waits_in_a_queue_is_sent_by_the_next_process() {
    left_to_the_next("").await;
}

/// Requests are put together first: senders are answered when what they are put into is written.
#[tokio::test]
async fn what_a_queue_put_together_is_sent_by_the_next_process() {
    left_to_the_next("batch: { flush_timeout: 10ms, sizer: bytes, min_size: 1000000 },").await;
}

async fn left_to_the_next(batch: &str) {
    let file = TempFile::new();
    let sink = collector(&format!(
        "exporters: {{ file: {{ path: '{}' }} }}\nservice: {{ {NO_METRICS}, pipelines: {{ traces: {{ receivers: [otlp], exporters: [file] }} }} }}",
        file.0.display()
    ));
    let exporter = |endpoint: &str| {
        format!(
            "otlp: {{ endpoint: '{endpoint}', tls: {{ insecure: true }}, sending_queue: {{ {batch} storage: file_storage }}, \
             retry_on_failure: {{ initial_interval: 10ms, max_interval: 20ms, max_elapsed_time: 0s }} }}"
        )
    };
    let folder = Folder::new();
    // Nobody listens there.
    let dead = std::net::TcpListener::bind("127.0.0.1:0").expect("an address");
    let target = dead.local_addr().expect("an address").to_string();
    drop(dead);
    let first = collector(&keeping(&folder, "", &exporter(&target)));
    for number in 0..10 {
        sent(&first, number * 10, 10).await;
    }
    let killed = folder.snapshot();
    let second = collector(&keeping(
        &killed,
        "",
        &exporter(&address(&sink, "otlp grpc")),
    ));
    until("all of it", || traces(&second).exported == 200).await;
    let balance = traces(&second);
    assert_eq!((balance.accepted, balance.recovered), (200, 200));
    second.end().await;
    let third = collector(&keeping(&killed, "", &exporter(&target)));
    assert_eq!(third.end().await[0], Balance::default(), "nothing is left");
    // What the sink took it may not have written yet.
    sink.end().await;
    let came = came(&file);
    assert_eq!(came.len(), 100);
    assert!(came.values().all(|spans| *spans == 2), "{came:?}");
}

#[tokio::test]
async fn a_full_storage_refuses_and_takes_again_once_there_is_room() {
    let (folder, file) = (Folder::new(), TempFile::new());
    let processor = SAMPLER.replace("WAIT", "1s").replace("POLICIES", ERRORS);
    let exporter = format!("file: {{ path: '{}' }}", file.0.display());
    let yaml = keeping(&folder, &processor, &exporter);
    let full = collector(&yaml.replace("{ directory:", "{ limit_mib: 1, directory:"));
    let client = grpc(&full);
    let mut first = 0;
    let refused = loop {
        match send(&client, request(first, 1000)).await {
            Outcome::Taken { .. } => first += 1000,
            other => break other,
        }
        assert!(first < 100_000, "there is no bound");
    };
    assert!(
        matches!(refused, Outcome::Busy { after: Some(_), .. }),
        "{refused:?}"
    );
    let balance = traces(&full);
    assert_eq!(balance.held(), first * 2);
    sent(&full, first, 1000).await;
    until("the decision", || traces(&full).held() == 0).await;
    assert_eq!(traces(&full).exported, (first + 1000) / 5);
    full.end().await;
    assert_eq!(came(&file).len() as u64, (first + 1000) / 10);
}

#[tokio::test]
async fn one_process_at_a_time_has_a_storage() {
    let (folder, file) = (Folder::new(), TempFile::new());
    let first = sampler(&folder, "1s", ERRORS, &file);
    let processor = SAMPLER.replace("WAIT", "1s").replace("POLICIES", ERRORS);
    let yaml = keeping(&folder, &processor, "nop:");
    let yaml = yaml.replace("{ directory:", "{ timeout: 10ms, directory:");
    let text = format!(
        "yaml:receivers: {{ otlp: {{ protocols: {{ grpc: {{ endpoint: '127.0.0.1:0' }} }} }} }}\n{yaml}"
    );
    let outside = Outside {
        variable: &|_| None,
        read_file: &|path| Err(path.to_owned()),
    };
    let config = config::load(&[&text], &config::Options::default(), outside);
    let config = config.unwrap_or_else(|faults| panic!("{faults:?}"));
    let setup = || Setup {
        log: Log::new(|_, _| {}),
        seed: 1,
        record_policy: false,
        memory_used_bytes: resident_bytes,
        traces: None,
    };
    let refused = Collector::start(&config, setup()).err().expect("a refusal");
    assert!(
        refused.0.contains("another process has it"),
        "{}",
        refused.0
    );
    first.end().await;
    let second = Collector::start(&config, setup());
    second
        .unwrap_or_else(|error| panic!("{}", error.0))
        .end()
        .await;
}

#[tokio::test]
async fn what_was_refused_is_not_taken_by_the_next_process() {
    let (folder, file) = (Folder::new(), TempFile::new());
    let policies = format!("num_traces: 100, block_on_overflow: true, {ALWAYS}");
    let first = sampler(&folder, "300s", &policies, &file);
    sent(&first, 0, 100).await;
    for number in 1..4 {
        let refused = send(&grpc(&first), request(number * 100, 100)).await;
        assert!(matches!(refused, Outcome::Busy { .. }), "{refused:?}");
    }
    let balance = traces(&first);
    assert_eq!((balance.accepted, balance.refused), (200, 600));
    first.end().await;
    let second = sampler(&folder, "1s", ALWAYS, &file);
    until("all of it", || traces(&second).exported == 200).await;
    let balance = traces(&second);
    assert_eq!((balance.accepted, balance.recovered), (200, 200));
    second.end().await;
}

/// What a request said besides its data is kept with them: in a queue, and before a sampler.
#[tokio::test]
async fn the_next_process_knows_where_data_came_from() {
    let setter = "headers_setter: { headers: [ { key: x-told, from_context: x-tenant, default_value: nobody } ] }";
    let telling =
        "attributes: { actions: [ { key: tenant, action: insert, from_context: x-tenant } ] }";
    let sampler = |wait: &str| {
        format!(
            "{telling}, {}",
            SAMPLER.replace("WAIT", wait).replace("POLICIES", ALWAYS)
        )
    };
    // Where it is kept: processors of the first and of the next process, their names, and options
    // of the queue.
    let cases = [
        (String::new(), String::new(), "", "storage: file_storage"),
        (
            sampler("300s"),
            sampler("1s"),
            "attributes, tail_sampling",
            "",
        ),
    ];
    for (first, next, names, queue) in cases {
        let file = TempFile::new();
        let sink = start(&format!(
            "receivers: {{ otlp: {{ protocols: {{ grpc: {{ endpoint: '127.0.0.1:0', include_metadata: true }} }} }} }}\n\
             processors: {{ attributes: {{ actions: [ {{ key: told, action: insert, from_context: x-told }} ] }} }}\n\
             exporters: {{ file: {{ path: '{}' }} }}\n\
             service: {{ {NO_METRICS}, pipelines: {{ traces: {{ receivers: [otlp], processors: [attributes], exporters: [file] }} }} }}",
            file.0.display()
        ));
        let front = |folder: &Folder, processors: &str, endpoint: &str| {
            start(&format!(
                "receivers: {{ otlp: {{ protocols: {{ grpc: {{ endpoint: '127.0.0.1:0', include_metadata: true }} }} }} }}\n\
                 processors: {{ {processors} }}\n\
                 extensions: {{ file_storage: {{ directory: '{}' }}, {setter} }}\n\
                 exporters: {{ otlp: {{ endpoint: '{endpoint}', tls: {{ insecure: true }}, auth: {{ authenticator: headers_setter }}, sending_queue: {{ {queue} }}, \
                 retry_on_failure: {{ initial_interval: 10ms, max_interval: 20ms, max_elapsed_time: 0s }} }} }}\n\
                 service: {{ {NO_METRICS}, extensions: [file_storage, headers_setter], pipelines: {{ traces: {{ receivers: [otlp], processors: [{names}], exporters: [otlp] }} }} }}",
                folder.path().display()
            ))
        };
        let folder = Folder::new();
        // Nobody listens there.
        let one = front(&folder, &first, "127.0.0.1:1");
        let client = grpc_with(&one, &[("x-tenant", "a")]);
        let outcome = send(&client, request(0, 10)).await;
        assert!(matches!(outcome, Outcome::Taken { .. }), "{outcome:?}");
        let killed = folder.snapshot();
        let two = front(&killed, &next, &address(&sink, "otlp grpc"));
        until("all of it", || traces(&two).exported == 20).await;
        two.end().await;
        sink.end().await;
        let spans = file.spans();
        assert_eq!(spans.len(), 20, "{names}");
        // A sampler loses it, but what is before it does not.
        let key = if names.is_empty() { "told" } else { "tenant" };
        let told = serde_json::json!({ "key": key, "value": { "stringValue": "a" } });
        let has = |span: &serde_json::Value| {
            span["attributes"]
                .as_array()
                .is_some_and(|all| all.contains(&told))
        };
        assert!(spans.iter().all(has), "{names}: {spans:?}");
    }
}

/// A collector with a storage of these options in a folder, and a queue before a backend that is
/// not there.
fn stored(folder: &Folder, options: &str) -> Result<Collector, String> {
    let dead = "retry_on_failure: { initial_interval: 1h, max_interval: 1h, max_elapsed_time: 0s }";
    let config = load(&format!(
        "receivers: {{ otlp: {{ protocols: {{ grpc: {{ endpoint: '127.0.0.1:0' }} }} }} }}\n\
         exporters: {{ otlphttp: {{ endpoint: 'http://127.0.0.1:1', {dead}, sending_queue: {{ storage: file_storage }} }} }}\n\
         extensions: {{ file_storage: {{ directory: '{}', {options} }} }}\n\
         service: {{ {METERED}, extensions: [file_storage], pipelines: {{ traces: {{ receivers: [otlp], exporters: [otlphttp] }} }} }}",
        folder.path().display()
    ));
    Collector::start(&config, setup()).map_err(|error| error.0)
}

#[tokio::test]
async fn the_folder_of_a_storage_is_made_as_the_settings_say() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::new();
    assert!(stored(&folder, "create_directory: false").is_err());
    let started = stored(&folder, "directory_permissions: '0700'").expect("it starts");
    let mode = std::fs::metadata(folder.path())
        .expect("a folder")
        .permissions();
    assert_eq!(mode.mode() & 0o777, 0o700);
    started.end().await;
}

#[tokio::test]
async fn a_folder_that_another_process_has_is_waited_for() {
    let folder = Folder::new();
    let first = stored(&folder, "").expect("it starts");
    assert!(stored(&folder, "timeout: 1ns").is_err());
    // The default is a second.
    let folder = Arc::new(folder);
    let waiting = Arc::clone(&folder);
    let second = tokio::task::spawn_blocking(move || stored(&waiting, "timeout: 1h"));
    tokio::time::sleep(Duration::from_millis(1500)).await;
    drop(first);
    let second = second.await.expect("no panic");
    second.expect("it starts").end().await;
}

#[tokio::test]
async fn a_file_that_is_broken_is_set_aside_where_that_is_asked_for() {
    let folder = Folder::new();
    let first = stored(&folder, "").expect("it starts");
    sent(&first, 0, 10).await;
    let killed = folder.snapshot();
    drop(first);
    let mut broken = 0;
    for entry in std::fs::read_dir(killed.path())
        .expect("a folder")
        .flatten()
    {
        for file in std::fs::read_dir(entry.path())
            .into_iter()
            .flatten()
            .flatten()
        {
            std::fs::write(
                file.path(),
                "this is no journal, but it is long enough to be one",
            )
            .unwrap();
            broken += 1;
        }
    }
    assert!(broken > 0);
    assert!(stored(&killed, "").is_err());
    let second = stored(&killed, "recreate: true").expect("it starts");
    assert_eq!(traces(&second).recovered, 0);
    second.end().await;
}

#[tokio::test]
async fn groups_that_wait_may_have_a_storage() {
    let (folder, file) = (Folder::new(), TempFile::new());
    let exporter = format!("file: {{ path: '{}' }}", file.0.display());
    let group = |wait: &str| {
        let group = format!("groupbytrace: {{ wait_duration: {wait}, storage: file_storage }}");
        collector(&keeping(&folder, &group, &exporter))
    };
    let first = group("300s");
    sent(&first, 0, 10).await;
    assert_eq!(first.end().await[0].exported, 0);
    let second = group("1s");
    until("they go on", || traces(&second).exported == 20).await;
    assert_eq!(traces(&second).recovered, 20);
    second.end().await;
}

#[tokio::test]
async fn files_that_a_loss_of_power_emptied_do_not_keep_a_collector_from_its_start() {
    let folder = Folder::new();
    let first = stored(&folder, "").expect("it starts");
    sent(&first, 0, 10).await;
    let killed = folder.snapshot();
    drop(first);
    let folders = std::fs::read_dir(killed.path())
        .expect("a folder")
        .flatten();
    let journal = folders.map(|entry| entry.path()).find(|path| path.is_dir());
    let journal = journal.expect("a journal");
    std::fs::write(journal.join("00000000000000a0.journal"), [0; 100]).expect("a file");
    std::fs::write(journal.join("00000000000000a1.journal"), "").expect("a file");
    let second = stored(&killed, "").expect("it starts");
    until("the rest", || traces(&second).recovered == 20).await;
    let page = metrics(&second).await;
    for line in [
        "spangate_storage_damaged_files{storage=\"file_storage\"} 2",
        "spangate_storage_damaged_bytes{storage=\"file_storage\"} 100",
    ] {
        assert!(page.contains(line), "{page}");
    }
    second.end().await;
}
