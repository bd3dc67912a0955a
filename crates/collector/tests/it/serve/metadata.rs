//! What requests say besides their bodies, through whole collectors.

use std::collections::BTreeSet;

use super::*;

/// Sets attributes to all that is known of a client.
const TELLING: &str = "attributes: { actions: [ \
    { key: tenant, action: upsert, from_context: metadata.X-Tenant }, \
    { key: plain, action: insert, from_context: x-tenant }, \
    { key: host, action: insert, from_context: metadata.host }, \
    { key: from, action: insert, from_context: client.address }, \
    { key: user, action: insert, from_context: auth.username }, \
    { key: secret, action: insert, from_context: auth.password } ] }";

/// A collector that takes OTLP with these options, and writes what passes some processors to a
/// file.
fn telling(options: &str, processors: &str, names: &str, file: &TempFile) -> Collector {
    let server = format!("{{ endpoint: '127.0.0.1:0', {options} }}");
    start(&format!(
        "receivers: {{ otlp: {{ protocols: {{ grpc: {server}, http: {server} }} }}, zipkin: {server} }}\n\
         extensions: {{ basicauth: {{ htpasswd: {{ inline: 'me:word' }} }} }}\n\
         processors: {{ {processors} }}\n\
         exporters: {{ file: {{ path: '{}' }} }}\n\
         service: {{ {METERED}, extensions: [basicauth], pipelines: {{ traces: {{ receivers: [otlp, zipkin], processors: [{names}], exporters: [file] }} }} }}",
        file.0.display()
    ))
}

/// The texts of the attributes of all spans, without the host's port.
fn told(file: &TempFile) -> BTreeSet<String> {
    let text = |span: &serde_json::Value| {
        let attributes = span["attributes"].as_array().into_iter().flatten();
        let texts = attributes.filter_map(|one| {
            let text = one["value"]["stringValue"].as_str()?;
            let text = text.rsplit_once(':').map_or(text, |(host, _)| host);
            Some(format!("{}={text}", one["key"].as_str()?))
        });
        texts.collect::<Vec<_>>().join(" ")
    };
    file.spans().iter().map(text).collect()
}

/// `me:word`
const ME: (&str, &str) = ("authorization", "Basic bWU6d29yZA==");

#[tokio::test]
async fn attributes_are_set_to_what_a_request_says() {
    let own = "include_metadata: true, auth: { authenticator: basicauth }";
    let all = "tenant=a plain=a host=127.0.0.1 from=127.0.0.1 user=me";
    let two = "tenant=a;b plain=a;b host=127.0.0.1 from=127.0.0.1 user=me";
    let batch = "batch: { timeout: 10ms }";
    let tail =
        "tail_sampling: { decision_wait: 1s, policies: [ { name: all, type: always_sample } ] }";
    // Options of receivers, what stands before, its name, and what is told of requests with one
    // value and with two.
    let cases = [
        (own, "", "", [all, two]),
        (own, batch, "batch,", ["from="; 2]),
        (
            own,
            "batch: { timeout: 10ms, metadata_keys: [X-Tenant] }",
            "batch,",
            ["tenant=a plain=a from=", "tenant=a;b plain=a;b from="],
        ),
        (own, tail, "tail_sampling,", ["from="; 2]),
        (
            "auth: { authenticator: basicauth }",
            "",
            "",
            ["from=127.0.0.1 user=me"; 2],
        ),
    ];
    for (options, before, name, expected) in cases {
        let file = TempFile::new();
        let processors = format!(
            "{before}{} {TELLING}",
            if before.is_empty() { "" } else { "," }
        );
        let collector = telling(options, &processors, &format!("{name} attributes"), &file);
        let one = [ME, ("X-Tenant", "a")];
        let two = [ME, ("x-tenant", "a"), ("x-tenant", "b")];
        let none = settings::Compression::None;
        let clients = [
            grpc_with(&collector, &one),
            http_with(&collector, none, &one),
            grpc_with(&collector, &two),
        ];
        for client in clients {
            let outcome = send(&client, request(0, 5)).await;
            assert!(matches!(outcome, Outcome::Taken { .. }), "{outcome:?}");
        }
        let zipkin = address(&collector, "zipkin http");
        let fields = [("content-type", "application/json"), ME, ("x-tenant", "a")];
        let span = formats::zipkin_span("9", "z");
        let (status, ..) = formats::post(&zipkin, "/api/v2/spans", &fields, span.into()).await;
        assert_eq!(status.as_u16(), 202);
        let [balance, ..] = collector.end().await;
        assert_eq!((balance.exported, balance.held()), (31, 0));
        // The span of Zipkin has a tag, too.
        let told = told(&file).into_iter();
        let told: BTreeSet<String> = told.map(|line| line.replace("n=1 ", "")).collect();
        let expected = expected.map(str::to_owned);
        assert_eq!(told, BTreeSet::from(expected), "{options} {name}");
    }
}

#[tokio::test]
async fn statements_and_conditions_read_client_metadata() {
    let file = TempFile::new();
    let transform = r#"transform: { trace_statements: [
        'set(span.attributes["tenant"], otelcol.client.metadata["X-Tenant"][0]) where otelcol.client.metadata["x-tenant"] != nil',
        'set(span.attributes["count"], String(Len(otelcol.client.metadata["x-tenant"])))',
        'set(span.attributes["from"], otelcol.client.addr)',
        'set(span.attributes["user"], otelcol.client.auth.attributes["username"])'
    ] }"#;
    let filter = r#"filter: { error_mode: propagate, trace_conditions: [
        'otelcol.client.metadata["x-other"] != nil and span.attributes["user"] == "me"'
    ] }"#;
    let own = "include_metadata: true, auth: { authenticator: basicauth }";
    let collector = telling(
        own,
        &format!("{transform}, {filter}"),
        "transform, filter",
        &file,
    );
    let none = settings::Compression::None;
    let clients = [
        http_with(&collector, none, &[ME, ("X-Tenant", "a")]),
        grpc_with(&collector, &[ME, ("x-tenant", "b"), ("x-tenant", "c")]),
        http_with(&collector, none, &[ME, ("x-tenant", "d"), ("x-other", "")]),
    ];
    for client in clients {
        let outcome = send(&client, request(0, 5)).await;
        assert!(matches!(outcome, Outcome::Taken { .. }), "{outcome:?}");
    }
    collector.end().await;
    assert_eq!(
        told(&file),
        BTreeSet::from([
            "tenant=a count=1 from=127.0.0.1 user=me".to_owned(),
            "tenant=b count=2 from=127.0.0.1 user=me".to_owned(),
        ])
    );
}

#[tokio::test]
async fn more_fields_than_are_kept_are_refused() {
    let file = TempFile::new();
    let collector = telling("include_metadata: true", TELLING, "attributes", &file);
    let long = "v".repeat(17 << 10);
    let none = settings::Compression::None;
    let client = http_with(&collector, none, &[("x-tenant", &long)]);
    let outcome = send(&client, request(0, 5)).await;
    let Outcome::Refused(why) = outcome else {
        panic!("{outcome:?}");
    };
    assert!(
        why.contains("413") && why.contains("header fields"),
        "{why}"
    );
    // What nobody asks for is of no account.
    let other = http_with(&collector, none, &[("x-other", &long)]);
    let outcome = send(&other, request(0, 5)).await;
    assert!(matches!(outcome, Outcome::Taken { .. }), "{outcome:?}");
}

#[tokio::test]
async fn each_tenant_has_its_batches_and_there_may_be_so_many() {
    let file = TempFile::new();
    let batch =
        "batch: { timeout: 300s, metadata_keys: [x-tenant], metadata_cardinality_limit: 2 }";
    let processors = format!("{batch}, {TELLING}");
    let own = "include_metadata: true";
    let collector = telling(own, &processors, "batch, attributes", &file);
    for (tenant, is_taken) in [("a", true), ("b", true), ("c", false), ("a", true)] {
        let client = grpc_with(&collector, &[("x-tenant", tenant)]);
        let outcome = send(&client, request(0, 5)).await;
        let taken = matches!(outcome, Outcome::Taken { .. });
        // For good: nobody makes room for another one.
        let refused = matches!(&outcome, Outcome::Refused(why) if why.contains("combination"));
        assert_eq!(
            (taken, refused),
            (is_taken, !is_taken),
            "{tenant}: {outcome:?}"
        );
    }
    let balance = traces(&collector);
    assert_eq!(
        (balance.accepted, balance.refused, balance.held()),
        (30, 10, 30)
    );
    let line =
        "otelcol_processor_batch_metadata_cardinality{pipeline=\"traces\",processor=\"batch\"} 2\n";
    let page = metrics(&collector).await;
    assert!(page.contains(line), "{page}");
    collector.end().await;
    let lines = std::fs::read_to_string(&file.0).expect("a file");
    assert_eq!((lines.lines().count(), file.spans().len()), (2, 30));
    let told = told(&file);
    let expected = ["a", "b"].map(|tenant| format!("tenant={tenant} plain={tenant} from="));
    assert_eq!(told, BTreeSet::from(expected));
}

#[tokio::test]
async fn a_tenant_is_told_to_the_back_end() {
    let tail =
        "tail_sampling: { decision_wait: 1s, policies: [ { name: all, type: always_sample } ] }";
    let line =
        |tenant: &str| format!("tenant={tenant} plain={tenant} host=127.0.0.1 from=127.0.0.1");
    // What stands before the exporters, its name, and the tenants that are told.
    let cases = [
        ("", "", ["a", "nobody"]),
        (
            "batch: { metadata_keys: [x-tenant] }",
            "batch",
            ["a", "nobody"],
        ),
        ("batch:", "batch", ["nobody", "nobody"]),
        (tail, "tail_sampling", ["nobody", "nobody"]),
    ];
    for (processors, names, tenants) in cases {
        let file = TempFile::new();
        let sink = telling("include_metadata: true", TELLING, "attributes", &file);
        let (grpc_at, http_at) = (address(&sink, "otlp grpc"), address(&sink, "otlp http"));
        let auth = "auth: { authenticator: headers_setter }";
        let front = start(&format!(
            "receivers: {{ otlp: {{ protocols: {{ grpc: {{ endpoint: '127.0.0.1:0', include_metadata: true }} }} }} }}\n\
             processors: {{ {processors} }}\n\
             exporters: {{ otlp: {{ endpoint: '{grpc_at}', tls: {{ insecure: true }}, {auth} }}, \
             otlphttp: {{ endpoint: 'http://{http_at}', {auth}, sending_queue: {{ batch: {{ partition: {{ metadata_keys: [X-Tenant] }} }} }} }} }}\n\
             extensions: {{ headers_setter: {{ headers: [ {{ key: X-Tenant, from_context: x-tenant, default_value: nobody }} ] }} }}\n\
             service: {{ {NO_METRICS}, extensions: [headers_setter], pipelines: {{ traces: {{ receivers: [otlp], processors: [{names}], exporters: [otlp, otlphttp] }} }} }}"
        ));
        for fields in [&[("x-tenant", "a")][..], &[]] {
            let outcome = send(&grpc_with(&front, fields), request(0, 5)).await;
            assert!(matches!(outcome, Outcome::Taken { .. }), "{outcome:?}");
        }
        let [balance, ..] = front.end().await;
        assert_eq!((balance.exported, balance.held()), (20, 0), "{names}");
        sink.end().await;
        let expected = tenants.map(line);
        assert_eq!(told(&file), BTreeSet::from(expected), "{names}");
        assert_eq!(file.spans().len(), 40, "{names}");
    }
}

#[tokio::test]
async fn data_of_a_request_with_two_tenants_are_not_sent() {
    let file = TempFile::new();
    let sink = telling("include_metadata: true", TELLING, "attributes", &file);
    let front = start(&format!(
        "receivers: {{ otlp: {{ protocols: {{ grpc: {{ endpoint: '127.0.0.1:0', include_metadata: true }} }} }} }}\n\
         exporters: {{ otlp: {{ endpoint: '{}', tls: {{ insecure: true }}, auth: {{ authenticator: headers_setter }} }} }}\n\
         extensions: {{ headers_setter: {{ headers: [ {{ key: X-Tenant, from_context: x-tenant }} ] }} }}\n\
         service: {{ {NO_METRICS}, extensions: [headers_setter], pipelines: {{ traces: {{ receivers: [otlp], exporters: [otlp] }} }} }}",
        address(&sink, "otlp grpc")
    ));
    let client = grpc_with(&front, &[("x-tenant", "a"), ("x-tenant", "b")]);
    let outcome = send(&client, request(0, 5)).await;
    assert!(matches!(outcome, Outcome::Taken { .. }), "{outcome:?}");
    let [balance, ..] = front.end().await;
    assert_eq!((balance.failed, balance.exported), (10, 0));
    assert_eq!(traces(&sink).accepted, 0);
}
