//! The settings of the telemetry.

use telemetry::settings::{Exporter, Processor, Settings, parse};

/// Whatever a file is, it is settings that can be run or errors in the order of their places within
/// it; and the same each time.
pub fn otel_yml(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let environment =
        |name: &str| (name == "OTEL_RESOURCE_ATTRIBUTES").then(|| text.chars().take(64).collect());
    let read = || parse(text, "otel.yml", Some("c"), &environment);
    let result = read();
    assert_eq!(result, read());
    match result {
        Ok((settings, _)) => settings_hold(&settings),
        Err(errors) => {
            assert!(!errors.is_empty());
            // A YAML line also ends at a lone CR.
            let lines = text.split(['\n', '\r']).count();
            assert!(errors.is_sorted_by_key(|error| (error.line, error.column)));
            for error in errors {
                assert!(
                    (1..=lines + 1).contains(&error.line) && error.column > 0,
                    "{error:?}"
                );
                assert!(!error.message.is_empty());
            }
        }
    }
}

fn settings_hold(settings: &Settings) {
    let traces = settings.traces.iter().flat_map(|traces| &traces.pipelines);
    let logs = settings.logs.iter().flat_map(|logs| &logs.pipelines);
    let metrics = settings
        .metrics
        .iter()
        .flat_map(|metrics| &metrics.pipelines);
    let mut exporters = 0;
    for pipeline in traces.chain(logs) {
        if let Processor::Batch(batch) = pipeline.processor {
            assert!(batch.batch_records_max <= batch.queue_records_max && batch.delay_ms > 0);
        }
        exporter_holds(&pipeline.exporter);
        exporters += 1;
    }
    for pipeline in metrics {
        assert!(pipeline.reader.timeout_ms <= pipeline.reader.interval_ms);
        exporter_holds(&pipeline.exporter);
        exporters += 1;
    }
    assert!(exporters > 0);
}

fn exporter_holds(exporter: &Exporter) {
    let endpoint = match exporter {
        Exporter::OtlpHttp(http) => &http.endpoint,
        Exporter::OtlpGrpc(grpc) => &grpc.endpoint,
        Exporter::Zipkin(zipkin) => &zipkin.endpoint,
        Exporter::Collector(collector) => {
            assert!(collector.at.is_some());
            return;
        }
        Exporter::OtlpFile(_) | Exporter::Ostream(_) | Exporter::Memory { .. } => return,
    };
    assert!(endpoint.starts_with("http://") || endpoint.starts_with("https://"));
}
