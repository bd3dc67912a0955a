//! Where `num_traces` is reached.

use super::*;

#[tokio::test]
async fn the_oldest_traces_are_decided_early_and_one_warning_names_the_option() {
    let file = TempFile::new();
    let (sampler, lines) = start_logged(
        Level::Warn,
        &format!(
            "receivers: {{ otlp: {{ protocols: {{ grpc: {{ endpoint: '127.0.0.1:0' }} }} }} }}\n\
             processors: {{ tail_sampling: {{ decision_wait: 300s, num_traces: 40, {ERRORS} }} }}\n\
             exporters: {{ file: {{ path: '{}' }} }}\n\
             service: {{ {METERED}, pipelines: {{ traces: {{ receivers: [otlp], processors: [tail_sampling], exporters: [file] }} }} }}",
            file.0.display()
        ),
    );
    let client = grpc(&sampler);
    for first in (0..200).step_by(20) {
        let outcome = send(&client, request(first, 20)).await;
        assert!(matches!(outcome, Outcome::Taken { .. }), "{outcome:?}");
    }
    // One span in ten traces is an error, and late spans follow.
    let late = send(&client, request(140, 20)).await;
    assert!(matches!(late, Outcome::Taken { .. }), "{late:?}");
    until("the early decisions", || traces(&sampler).held() == 80).await;
    let balance = traces(&sampler);
    assert_eq!(
        (balance.accepted, balance.exported, balance.dropped),
        (440, 36, 324)
    );
    let page = metrics(&sampler).await;
    for expected in [
        "spangate_tail_traces_decided_early{pipeline=\"traces\",processor=\"tail_sampling\"} 160",
        "otelcol_processor_tail_sampling_sampling_trace_dropped_too_early",
    ] {
        assert!(page.contains(expected), "{expected}\n{page}");
    }
    let dropped = { page.lines() }.find(|line| {
        line.starts_with("otelcol_processor_tail_sampling_sampling_trace_dropped_too_early")
    });
    assert!(
        dropped.is_some_and(|line| line.ends_with(" 144")),
        "{dropped:?}"
    );
    until("the warning", || {
        !lines.lock().expect("no panic").is_empty()
    })
    .await;
    assert_eq!(sampler.end().await[0].held(), 0);
    assert_eq!(
        *lines.lock().expect("no panic"),
        [
            "processor 'tail_sampling': num_traces (40) is reached: the oldest traces are decided before decision_wait is over, \
          on the spans that have come; raise num_traces"
        ]
    );
}
