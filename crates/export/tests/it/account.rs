//! That every record is accounted for, whatever workers and receivers do at the same time.

use crate::support;

use std::sync::Arc;
use std::time::Duration;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use support::*;
use telemetry::account::{Loss, Signal};
use telemetry::settings::{BatchProcessor, Exporter, Processor};

#[test]
fn many_workers_and_a_receiver_in_a_bad_mood() {
    const WORKERS: usize = 4;
    const BATCHES: usize = 300;
    let answer = |number: usize| match number % 7 {
        1 => (503, Vec::new(), Vec::new()),
        3 => (400, Vec::new(), Vec::new()),
        5 => (429, vec![("retry-after", "0".to_owned())], Vec::new()),
        _ => ok(),
    };
    let receiver = Receiver::start((0..10_000).map(answer).collect());
    let mut settings = otlp_http(receiver.address);
    // One at a time, so that the order of requests is that of answers.
    settings.requests_max = 1;
    let processor = Processor::Batch(BatchProcessor {
        queue_records_max: 200,
        delay_ms: 1,
        export_timeout_ms: 1000,
        batch_records_max: 32,
    });
    let exporter = Exporter::OtlpHttp(Box::new(settings));
    let exporters = start(pipeline(Signal::Traces, exporter, processor));
    let queue = Arc::clone(&exporters.pipelines()[0].queue);
    let workers: Vec<_> = (0..WORKERS)
        .map(|worker| {
            let queue = Arc::clone(&queue);
            let work = move || {
                for batch in 0..BATCHES {
                    let count = 1 + (batch * 7 + worker) % 40;
                    offer_spans(&queue, &vec!["a"; count]);
                }
            };
            std::thread::Builder::new().spawn(work).unwrap()
        })
        .collect();
    // Read while everything moves, a sum is never above what began.
    while workers.iter().any(|worker| !worker.is_finished()) {
        let account = &queue.account;
        let lost: u64 = Loss::ALL.iter().map(|why| account.lost(*why)).sum();
        let ended = account.exported() + lost;
        assert!(ended <= account.started());
    }
    workers
        .into_iter()
        .for_each(|worker| worker.join().unwrap());
    assert!(exporters.flush(DEADLINE));
    assert_eq!((queue.depth(), queue.account.in_flight()), ((0, 0), 0));
    exporters.shutdown(Duration::from_secs(1));
    assert_balance(&queue);
    let [exported, failed, rejected, full, shutdown] = counts(&queue.account);
    assert_eq!((rejected, shutdown), (0, 0));
    assert!(
        exported > 0 && failed > 0 && full > 0,
        "{:?}",
        queue.account
    );

    // What the receiver took is what was counted as exported.
    let (mut taken, mut number) = (0, 0);
    while let Some(got) = receiver.try_next() {
        if answer(number).0 == 200 {
            let request: ExportTraceServiceRequest = got.decoded();
            let records = request.resource_spans[0].scope_spans[0].spans.len();
            assert!(records <= 32);
            taken += records as u64;
        }
        number += 1;
    }
    assert_eq!(taken, exported);
}

#[test]
fn many_threads_may_hold_the_exporters() {
    fn shared<T: Send + Sync + 'static>() {}
    shared::<spangate_export::Exporters>();
    shared::<spangate_export::Health>();
    shared::<spangate_export::Memory>();
}
