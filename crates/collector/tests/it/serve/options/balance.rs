//! Options of the load balancer that backends show.

use std::collections::BTreeSet;

use super::*;

/// A span of a service, by its name, in a trace.
fn of_service(service: &str, trace: u8) -> ResourceSpans {
    let value = any_value::Value::StringValue(service.into());
    ResourceSpans {
        resource: Some(Resource {
            attributes: vec![KeyValue {
                key: "service.name".into(),
                value: Some(AnyValue { value: Some(value) }),
                ..KeyValue::default()
            }],
            ..Resource::default()
        }),
        scope_spans: vec![ScopeSpans {
            spans: vec![Span {
                trace_id: vec![trace; 16],
                span_id: vec![7; 8],
                name: service.into(),
                ..Span::default()
            }],
            ..ScopeSpans::default()
        }],
        ..ResourceSpans::default()
    }
}

/// A collector that spreads what comes over backends.
fn balancer(options: &str) -> Collector {
    let protocol = "protocol: { otlp: { tls: { insecure: true } } }";
    let exporter = format!("loadbalancing: {{ {protocol}, {options} }}");
    sender(&exporter, "loadbalancing", "", "")
}

/// How many of two backends get spans of a trace of twenty services, and of a service with twenty
/// traces.
async fn spread(routing: &str) -> [usize; 2] {
    let files = [TempFile::new(), TempFile::new()];
    let sinks = files.each_ref().map(|file| {
        collector(&format!(
            "exporters: {{ file: {{ path: '{}' }} }}\nservice: {{ {NO_METRICS}, pipelines: {{ traces: {{ receivers: [otlp], exporters: [file] }} }} }}",
            file.0.display()
        ))
    });
    let names = sinks.each_ref().map(|sink| address(sink, "otlp grpc"));
    let front = balancer(&format!(
        "{routing} resolver: {{ static: {{ hostnames: {names:?} }} }}"
    ));
    let services = (0..20).map(|number| of_service(&format!("s{number}"), 1));
    let traces_of_one = (0..20).map(|number| of_service("one", 100 + number));
    let request = ExportTraceServiceRequest {
        resource_spans: services.chain(traces_of_one).collect(),
    };
    taken(&grpc(&front), request.encode_to_vec().into()).await;
    until("all is sent", || traces(&front).exported == 40).await;
    for sink in sinks {
        sink.end().await;
    }
    let with = |is_it: &dyn Fn(&str) -> bool| {
        let has = |file: &&TempFile| {
            let names: BTreeSet<_> = { file.spans().into_iter() }
                .map(|span| span["name"].as_str().expect("a name").to_owned())
                .collect();
            names.iter().any(|name| is_it(name))
        };
        files.iter().filter(has).count()
    };
    [
        with(&|name| name.starts_with('s')),
        with(&|name| name == "one"),
    ]
}

#[tokio::test]
async fn what_goes_together_is_a_trace_or_a_service() {
    assert_eq!(spread("").await, [1, 2]);
    assert_eq!(spread("routing_key: service,").await, [2, 1]);
}
