//! Receivers and the load balancer, as users write them.

use spangate_collector::config::Signal;
use spangate_collector::config::components::exporters::load_balancing::{
    K8s, LoadBalancingExporter, Resolver, Routing,
};
use spangate_collector::config::components::receivers::host_metrics::HostMetricsReceiver;
use spangate_collector::config::components::receivers::jaeger::JaegerReceiver;
use spangate_collector::config::components::receivers::prometheus::PrometheusReceiver;
use spangate_collector::config::components::receivers::zipkin::ZipkinReceiver;
use spangate_collector::config::components::shared::address::Listen;

use super::{errors, good};

/// A configuration whose only receiver is given.
fn receiver(kind: &str, options: &str) -> String {
    format!(
        "service: {{ pipelines: {{ traces: {{ receivers: [{kind}], exporters: [nop] }} }} }}\nexporters: {{ nop: }}\nreceivers:\n  {kind}:\n{options}"
    )
}

/// A configuration whose only exporter is given.
fn exporter(kind: &str, options: &str) -> String {
    format!(
        "service: {{ pipelines: {{ traces: {{ receivers: [nop], exporters: [{kind}] }} }} }}\nreceivers: {{ nop: }}\nexporters:\n  {kind}:\n{options}"
    )
}

#[test]
fn zipkin() {
    let (config, warnings) = good(&receiver("zipkin", ""));
    let zipkin: &ZipkinReceiver = config.receivers[0].settings.get().expect("a receiver");
    assert!(
        matches!(&zipkin.server.listen, Listen::Tcp { host, port: 9411, .. } if host == "localhost")
    );
    assert!(!zipkin.parse_string_tags);
    let text = "    endpoint: 0.0.0.0:9411\n    parse_string_tags: true\n    tls: { cert_file: c, key_file: k }\n    cors: { allowed_origins: ['*'] }\n    max_request_body_size: 1000";
    let (config, more) = good(&receiver("zipkin", text));
    let zipkin: &ZipkinReceiver = config.receivers[0].settings.get().expect("a receiver");
    assert!(zipkin.parse_string_tags && zipkin.server.tls.is_some());
    assert_eq!(zipkin.server.body_bytes_max, 1000);
    assert!(warnings.is_empty() && more.is_empty());
    let wrong = receiver("zipkin", "    endpont: a:1");
    assert!(
        errors(&wrong)[0].contains("endpoint"),
        "{:?}",
        errors(&wrong)
    );
}

#[test]
fn jaeger() {
    // As the Collector's own example writes it.
    let text = "    protocols:\n      grpc:\n      thrift_http:\n      thrift_compact:\n      thrift_binary:\n        endpoint: 0.0.0.0:6832\n        queue_size: 5_000\n        max_packet_size: 131_072\n        workers: 50\n        socket_buffer_size: 8_388_608";
    let (config, warnings) = good(&receiver("jaeger", text));
    let jaeger: &JaegerReceiver = config.receivers[0].settings.get().expect("a receiver");
    let port = |listen: &Listen| match listen {
        Listen::Tcp { port, .. } => *port,
        Listen::Unix(_) => 0,
    };
    assert_eq!(
        jaeger.grpc.as_ref().map(|grpc| port(&grpc.listen)),
        Some(14250)
    );
    assert_eq!(
        jaeger.thrift_http.as_ref().map(|http| port(&http.listen)),
        Some(14268)
    );
    let compact = jaeger.thrift_compact.as_ref().expect("compact");
    assert_eq!(
        (&*compact.host, compact.port, compact.datagram_bytes_max),
        ("localhost", 6831, 65_000)
    );
    let binary = jaeger.thrift_binary.as_ref().expect("binary");
    assert_eq!(
        (&*binary.host, binary.port, binary.socket_buffer_bytes),
        ("0.0.0.0", 6832, 8_388_608)
    );
    assert_eq!(warnings.len(), 2);
    assert!(
        warnings
            .iter()
            .all(|warning| warning.contains("has no effect")),
        "{warnings:?}"
    );

    let fault = |options: &str| errors(&receiver("jaeger", options)).join("\n");
    assert!(fault("    protocols: {}").contains("must have 'grpc', 'thrift_http'"));
    assert!(fault("").contains("'protocols' is missing"));
    let removed = fault("    protocols: { grpc: }\n    remote_sampling: { host_endpoint: 'a:1' }");
    assert!(
        removed.contains("remote_sampling") && removed.contains("jaegerremotesampling"),
        "{removed}"
    );
    assert!(
        fault("    protocols: { thrift_compact: { endpoint: a } }").contains("'a' has no port")
    );
}

#[test]
fn load_balancing() {
    let text = "    routing_key: service\n    protocol:\n      otlp:\n        timeout: 1s\n        tls:\n          insecure: true\n        sending_queue: { queue_size: 5 }\n    resolver:\n      static:\n        hostnames:\n        - backend-1:4317\n        - backend-2\n        - '[::1]:55690'";
    for kind in ["loadbalancing", "load_balancing/x"] {
        let (config, warnings) = good(&exporter(kind, text));
        assert!(warnings.is_empty(), "{warnings:?}");
        let balancer: &LoadBalancingExporter =
            config.exporters[0].settings.get().expect("its settings");
        assert_eq!(balancer.routing, Routing::Service);
        assert_eq!(balancer.otlp.client.otlp.timeout_ms, 1000);
        assert!(!balancer.otlp.client.is_tls());
        assert_eq!(
            balancer.otlp.queue.as_ref().map(|queue| queue.size_max),
            Some(5)
        );
        let names = ["backend-1:4317", "backend-2", "[::1]:55690"].map(str::to_owned);
        assert_eq!(balancer.resolver, Resolver::Static(names.to_vec()));
    }
    let text = "    protocol: { otlp: { endpoint: 'x:1' } }\n    resolver: { dns: { hostname: 'collectors.example', port: '55690', interval: 0s } }";
    let (config, warnings) = good(&exporter("loadbalancing", text));
    let balancer: &LoadBalancingExporter =
        config.exporters[0].settings.get().expect("its settings");
    let Resolver::Dns(dns) = &balancer.resolver else {
        panic!("{balancer:?}");
    };
    assert_eq!(
        (&*dns.hostname, dns.port),
        ("collectors.example", Some(55690))
    );
    assert_eq!(
        (dns.interval_ns, dns.timeout_ns),
        (5_000_000_000, 1_000_000_000)
    );
    assert_eq!(balancer.routing, Routing::TraceId);
    assert!(
        warnings.len() == 1 && warnings[0].contains("the resolver tells the backends"),
        "{warnings:?}"
    );
}

#[test]
fn load_balancing_over_a_service() {
    let resolver = |options: &str| {
        let text = format!("    resolver: {{ k8s: {options} }}");
        let (config, warnings) = good(&exporter("loadbalancing", &text));
        assert!(warnings.is_empty(), "{warnings:?}");
        let balancer = config.exporters[0].settings.get();
        let balancer: &LoadBalancingExporter = balancer.expect("a balancer");
        balancer.resolver.clone()
    };
    let whole = "{ service: otel-sampler.observability, ports: [4317, 14317], timeout: 5s, return_hostnames: true }";
    let written = K8s {
        service: "otel-sampler".into(),
        namespace: Some("observability".into()),
        ports: vec![4317, 14317],
        timeout_ns: 5_000_000_000,
        return_hostnames: true,
    };
    assert_eq!(resolver(whole), Resolver::K8s(written));
    let least = K8s {
        service: "lb".into(),
        namespace: None,
        ports: Vec::new(),
        timeout_ns: 60_000_000_000,
        return_hostnames: false,
    };
    assert_eq!(resolver("{ service: lb }"), Resolver::K8s(least.clone()));
    assert_eq!(
        resolver("{ service: lb, ports: [], timeout: 0s }"),
        Resolver::K8s(least)
    );
}

/// Options of the load balancer, and a part of the error that they are.
const MISTAKES: &[(&str, &str)] = &[
    ("", "'resolver' is missing"),
    ("    resolver: {}", "must have 'static', 'dns' or 'k8s'"),
    (
        "    resolver: { static: { hostnames: [a] }, dns: { hostname: a } }",
        "must have one resolver only",
    ),
    (
        "    resolver: { static: { hostnames: [] } }",
        "must name a backend at least",
    ),
    (
        "    resolver: { static: { hostnames: ['http://a:1'] } }",
        "'http://a:1' is a URL",
    ),
    (
        "    resolver: { dns: { hostname: a, port: 'x' } }",
        "'x' is no port",
    ),
    (
        "    resolver: { k8s: { service: a }, dns: { hostname: a } }",
        "must have one resolver only",
    ),
    (
        "    resolver: { k8s: { ports: [4317] } }",
        "resolver::k8s: 'service' is missing",
    ),
    (
        "    resolver: { k8s: { service: a.b.svc.cluster.local } }",
        "'a.b.svc.cluster.local' must be the name of a service, or name.namespace",
    ),
    (
        "    resolver: { k8s: { service: . } }",
        "'.' must be the name of a service",
    ),
    (
        "    resolver: { k8s: { service: a.b, ports: [4317, 65536] } }",
        "ports: must be from 1 to 65535, not 65536",
    ),
    (
        "    resolver: { k8s: { service: a.b, ports: 4317 } }",
        "ports: must be a list of whole numbers, not 4317",
    ),
    (
        "    resolver: { k8s: { service: a.b, ports: ['4317'] } }",
        "write 4317 without quotes",
    ),
    (
        "    resolver: { aws_cloud_map: { namespace: a } }",
        "resolver::aws_cloud_map: not supported: not yet",
    ),
    (
        "    resolver: { static: { hostnames: [a] } }\n    routing_key: resource",
        "'resource' is not supported yet",
    ),
    (
        "    resolver: { static: { hostnames: [a] } }\n    routing_key: traceid",
        "must be traceID or service, not 'traceid'",
    ),
    (
        "    resolver: { static: { hostnames: [a] } }\n    sending_queue: { queue_size: 0 }",
        "queue_size",
    ),
];

#[test]
fn what_is_wrong_with_a_load_balancer_is_told() {
    for (options, part) in MISTAKES {
        let told = errors(&exporter("loadbalancing", options)).join("\n");
        assert!(told.contains(part), "{options}: {told}");
    }
}

#[test]
fn only_traces_are_balanced() {
    let text = "receivers: { otlp: { protocols: { grpc: } } }\nexporters: { loadbalancing: { resolver: { static: { hostnames: [a] } } }, nop: }\nservice: { pipelines: { traces: { receivers: [otlp], exporters: [loadbalancing] }, logs: { receivers: [otlp], exporters: [loadbalancing] } } }";
    let (config, warnings) = good(text);
    let signals: Vec<_> = config
        .pipelines
        .iter()
        .map(|pipeline| pipeline.id.signal)
        .collect();
    assert_eq!(signals, [Signal::Traces]);
    assert!(
        warnings
            .iter()
            .any(|warning| warning.contains("loadbalancing")),
        "{warnings:?}"
    );
}

/// A configuration whose only receiver is `host_metrics`, in a pipeline of metrics.
fn host_metrics(options: &str) -> String {
    format!(
        "service: {{ pipelines: {{ metrics: {{ receivers: [host_metrics], exporters: [nop] }} }} }}\nexporters: {{ nop: }}\nreceivers:\n  host_metrics:\n{options}"
    )
}

#[test]
fn host_metrics_is_refused_where_the_collector_refuses_it() {
    let cases = [
        (
            "    scrapers:",
            "scrapers: must specify at least one scraper when using hostmetrics receiver",
        ),
        (
            "    collection_interval: 0s\n    scrapers: { cpu: }",
            "collection_interval: requires positive value",
        ),
        (
            "    scrapers: { disk: { include: { devices: [a] } } }",
            "scrapers::disk::include: unrecognized match_type: '', valid types are: [regexp strict]",
        ),
        (
            "    scrapers: { disk: { exclude: { devices: ['['], match_type: regexp } } }",
            "scrapers::disk::exclude::devices: '[' is no regular expression",
        ),
        (
            "    scrapers: { process: }",
            "scrapers::process: not supported: this scraper is not built in",
        ),
        (
            "    scrapers: { cpu: , system: { metrics: { system.uptime: { enabled: true } } } }",
            "scrapers::system: not supported: this scraper is not built in",
        ),
        (
            "    scrapers: { cpu: { metrics: { system.cpu.time: { attributes: [cpu] } } } }",
            "attributes: not supported: points of a metric are not aggregated over attributes",
        ),
        (
            "    scrapers: { cup: }",
            "unknown key (did you mean 'cpu'?)",
        ),
    ];
    for (options, error) in cases {
        let errors = errors(&host_metrics(options));
        assert!(errors[0].contains(error), "{options}: {errors:?}");
        assert_eq!(errors.len(), 1, "{errors:?}");
    }
}

#[test]
fn host_metrics_has_the_defaults_of_the_collector() {
    let (config, warnings) = good(&host_metrics("    scrapers: { load: }"));
    assert!(warnings.is_empty(), "{warnings:?}");
    let host: &HostMetricsReceiver = config.receivers[0].settings.get().expect("a receiver");
    assert_eq!(host.collection_interval_ns, 60_000_000_000);
    assert_eq!(host.initial_delay_ns, 1_000_000_000);
    assert_eq!((&host.root_path, host.scrapers.len()), (&None, 1));
    // The old name, and a pipeline of logs, which gets nothing.
    let old = host_metrics("    scrapers: { load: }").replace("host_metrics", "hostmetrics");
    let (config, _) = good(&old);
    assert!(
        config.receivers[0]
            .settings
            .get::<HostMetricsReceiver>()
            .is_some()
    );
}

/// A configuration whose only receiver is `prometheus`, in a pipeline of metrics.
fn prometheus(options: &str) -> String {
    format!(
        "service: {{ pipelines: {{ metrics: {{ receivers: [prometheus], exporters: [nop] }} }} }}\nexporters: {{ nop: }}\nreceivers: {{ prometheus: {{ {options} }} }}"
    )
}

#[test]
fn prometheus_is_refused_where_the_collector_refuses_it() {
    let job =
        |options: &str| format!("config: {{ scrape_configs: [ {{ job_name: j, {options} }} ] }}");
    let cases = [
        (
            "config: {}".to_owned(),
            "no Prometheus scrape_configs or target_allocator set",
        ),
        (
            "config: { scrape_configs: [ { job_name: j }, { job_name: j } ] }".to_owned(),
            "found multiple scrape configs with job name \"j\"",
        ),
        (
            job("scrape_interval: 1s, scrape_timeout: 2s"),
            "scrape timeout greater than scrape interval",
        ),
        (
            job("relabel_configs: [ { action: hashmod, target_label: a } ]"),
            "hashmod requires non-zero modulus",
        ),
        (
            job("relabel_configs: [ { source_labels: [a] } ]"),
            "replace action requires 'target_label' value",
        ),
        (
            job("relabel_configs: [ { regex: '(', target_label: a } ]"),
            "is no regular expression",
        ),
        (
            job("basic_auth: { username: a }, bearer_token: b"),
            "at most one of basic_auth",
        ),
        (
            job("authorization: { type: Basic }"),
            "use \"basic_auth\" instead",
        ),
        (
            job("authorization: { credentials: a, credentials_file: b }"),
            "at most one of credentials & credentials_file",
        ),
        (
            job("tls_config: { cert_file: a }"),
            "a certificate needs its key",
        ),
        (
            job("tls_config: { min_version: TLS10 }"),
            "TLS 1.2 is the oldest version",
        ),
        (
            job("kubernetes_sd_configs: [ { role: pod } ]"),
            "not supported: this discovery is not built in",
        ),
        (
            job("dns_sd_configs: [ { names: [a] } ]"),
            "not supported: this discovery is not built in",
        ),
        (
            job("file_sd_configs: [ { files: [a.txt] } ]"),
            "is not valid for file discovery",
        ),
        (
            job("http_sd_configs: [ { url: 'ftp://a' } ]"),
            "URL scheme must be 'http' or 'https'",
        ),
        (job("body_size_limit: 1XB"), "'1XB' is no size"),
        (job("oauth2: { client_id: a }"), "not supported"),
        (
            format!("use_start_time_metric: true, {}", job("")),
            "not supported: the Collector took it out",
        ),
        (
            format!("target_allocator: {{ endpoint: a }}, {}", job("")),
            "not supported",
        ),
    ];
    for (options, error) in cases {
        let errors = errors(&prometheus(&options));
        assert!(errors[0].contains(error), "{options}: {errors:?}");
    }
}

#[test]
fn prometheus_has_the_defaults_of_the_collector() {
    let (config, _) = good(&prometheus(
        "config: { global: { scrape_interval: 5s, scrape_timeout: 7s }, scrape_configs: [ { job_name: a, body_size_limit: 2KiB }, { job_name: b, scrape_interval: 30s } ] }",
    ));
    let receiver: &PrometheusReceiver = config.receivers[0].settings.get().expect("a receiver");
    let times = receiver
        .jobs
        .iter()
        .map(|job| (job.interval_ns, job.timeout_ns));
    assert_eq!(
        times.collect::<Vec<_>>(),
        [
            (5_000_000_000, 5_000_000_000),
            (30_000_000_000, 7_000_000_000)
        ]
    );
    let job = &receiver.jobs[0];
    assert_eq!((&*job.metrics_path, &*job.scheme), ("/metrics", "http"));
    assert!(job.honors_timestamps && !job.honors_labels && job.is_compressed);
    assert_eq!(job.limits.body_bytes, Some(2048));
    // The word that a secret is does not stand in the settings as they are shown.
    let shown = "config: { scrape_configs: [ { job_name: j, bearer_token: hidden } ] }";
    let (config, _) = good(&prometheus(shown));
    assert!(!format!("{config:?}").contains("hidden"));
}
