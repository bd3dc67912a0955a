//! A disk that is full.

use super::*;

/// Runs the test `name` alone in a process that gets an error, not a signal, when a file would
/// exceed its size limit. True in that process.
pub(super) fn in_limited_process(name: &str) -> bool {
    if std::env::var_os("SPANGATE_TEST_CHILD").is_some() {
        return true;
    }
    let run = std::process::Command::new("sh")
        .args(["-c", "trap '' XFSZ; exec \"$0\" --exact \"$1\""])
        .arg(std::env::current_exe().expect("a program"))
        .arg(name)
        .env("SPANGATE_TEST_CHILD", "1")
        .output()
        .expect("it runs");
    let told = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success() && told.contains("1 passed"), "{told}");
    false
}

/// Limits the size of every file that this process writes. Like a full disk, the limit admits a
/// part of a write and refuses the rest.
pub(super) fn limit_files(bytes: Option<u64>) {
    let limits = rustix::process::Rlimit {
        current: bytes,
        ..rustix::process::getrlimit(rustix::process::Resource::Fsize)
    };
    rustix::process::setrlimit(rustix::process::Resource::Fsize, limits).expect("a limit");
}

/// A queue with a storage in a folder, before a backend.
fn queue(folder: &TempFile, backend: &str) -> Collector {
    start(&format!(
        "receivers: {{ otlp: {{ protocols: {{ grpc: {{ endpoint: '127.0.0.1:0' }} }} }} }}\n\
         exporters: {{ otlp: {{ endpoint: '{backend}', tls: {{ insecure: true }}, sending_queue: {{ storage: file_storage }} }} }}\n\
         extensions: {{ file_storage: {{ directory: '{}' }} }}\n\
         service: {{ {NO_METRICS}, extensions: [file_storage], pipelines: {{ traces: {{ receivers: [otlp], exporters: [otlp] }} }} }}",
        folder.0.display()
    ))
}

#[tokio::test]
async fn a_request_that_a_full_disk_has_refused_is_not_delivered() {
    if !in_limited_process("serve::disk::a_request_that_a_full_disk_has_refused_is_not_delivered") {
        return;
    }
    let sink = collector(&format!(
        "exporters: {{ nop: }}\nservice: {{ {NO_METRICS}, pipelines: {{ traces: {{ receivers: [otlp], exporters: [nop] }} }} }}"
    ));
    let folder = TempFile::new();
    let front = queue(&folder, &address(&sink, "otlp grpc"));
    let client = grpc(&front);
    limit_files(Some(1000));
    // A part of the entry fits.
    let refused = send(&client, request(0, 100)).await;
    assert!(matches!(refused, Outcome::Busy { .. }), "{refused:?}");
    let balance = traces(&front);
    assert_eq!((balance.accepted, balance.refused), (0, 200));
    limit_files(None);
    until_taken(&client, request(0, 100)).await;
    until("delivery", || traces(&front).exported == 200).await;
    let [balance, ..] = front.end().await;
    assert_eq!((balance.accepted, balance.held()), (200, 0));
    assert_eq!(traces(&sink).accepted, 200);
    let next = queue(&folder, &address(&sink, "otlp grpc"));
    let [balance, ..] = next.end().await;
    assert_eq!(balance.recovered, 0);
    let _ = std::fs::remove_dir_all(&folder.0);
}

/// Sends a request until it is taken.
async fn until_taken(client: &Client, body: Bytes) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match send(client, body.clone()).await {
            Outcome::Taken { rejected: 0, .. } => return,
            Outcome::Busy { .. } => assert!(Instant::now() < deadline, "it is never taken"),
            other => panic!("{other:?}"),
        }
    }
}
