//! What is often written and means something else: it is told.

use crate::{errors, good, with_policies, with_processors};

/// What is said of a configuration with these policies.
const POLICIES: &[(&str, &str)] = &[
    (
        "{ name: a, type: string_attribute, string_attribute: { key: url.path, values: [ '/actuator/.*' ] } }",
        "a.yaml:8:87: processors::tail_sampling::policies[0]::string_attribute::values: '/actuator/.*' looks like a pattern, but is compared as a whole: set 'enabled_regex_matching: true'",
    ),
    (
        "{ name: a, type: always_sample, probabilistic: { sampling_percentage: 10 } }",
        "a.yaml:8:54: processors::tail_sampling::policies[0]::probabilistic: means nothing to a policy of type 'always_sample'",
    ),
    (
        "{ name: a, type: probabilistic }",
        "a.yaml:8:7: processors::tail_sampling::policies[0]::probabilistic::sampling_percentage: is 0: no trace is kept",
    ),
    (
        "{ name: a, type: and }",
        "a.yaml:8:7: processors::tail_sampling::policies[0]::and::and_sub_policy: there are no policies: it keeps every trace",
    ),
    (
        "{ name: a, type: boolean_attribute, boolean_attribute: { value: true } }",
        "a.yaml:8:43: processors::tail_sampling::policies[0]::boolean_attribute::key: names no attribute: nothing matches",
    ),
    (
        "{ name: a, type: composite, composite: { max_total_spans_per_second: 5, policy_order: [c, b, d], composite_sub_policy: [ { name: b, type: always_sample }, { name: c, type: trace_flags } ] } }",
        "a.yaml:8:93: processors::tail_sampling::policies[0]::composite::policy_order: has no effect: the order of 'composite_sub_policy' counts, and it is another one",
    ),
    (
        "",
        "a.yaml:7:15: processors::tail_sampling::policies: there are none: no trace is kept",
    ),
];

#[test]
fn policies_that_are_not_what_they_seem() {
    for (written, warning) in POLICIES {
        let (_, warnings) = good(&with_policies(written));
        assert!(
            warnings.iter().any(|found| found == warning),
            "{warnings:#?}"
        );
    }
}

/// Processors, their options, and what is said.
const PROCESSORS: &[(&str, &str, &str)] = &[
    (
        "batch, tail_sampling",
        "  batch:\n  tail_sampling: { policies: [ { name: a, type: always_sample } ] }",
        "a.yaml:4:58: service::pipelines::traces: 'batch' before 'tail_sampling' only delays spans, which are put together anew there: put it after",
    ),
    (
        "tail_sampling, groupbytrace",
        "  groupbytrace:\n  tail_sampling: { policies: [ { name: a, type: always_sample } ] }",
        "a.yaml:4:73: service::pipelines::traces: 'groupbytrace' after 'tail_sampling' waits once more for traces that are whole already",
    ),
    (
        "batch, memory_limiter",
        "  batch:\n  memory_limiter: { check_interval: 1s, limit_mib: 400 }",
        "a.yaml:4:65: service::pipelines::traces: 'memory_limiter' after 'batch' refuses data too late: put it first",
    ),
    (
        "",
        "  tail_sampling: { policies: [ { name: a, type: always_sample } ] }",
        "a.yaml:6:3: processors::tail_sampling: is in no pipeline and is not started",
    ),
    (
        "",
        "  geoip: { auth_type: none }",
        "a.yaml:6:3: processors::geoip: is in no pipeline and is not started; it is of the type 'geoip', which is not built in",
    ),
    (
        "tail_sampling",
        "  tail_sampling: { num_traces: 100, decision_wait: 10s, expected_new_traces_per_sec: 1000, policies: [ { name: a, type: always_sample } ] }",
        "a.yaml:6:32: processors::tail_sampling::num_traces: is 100, but 1000 new traces a second wait for 'decision_wait': 10000 are there at a time, and the oldest are decided early",
    ),
    (
        "groupbytrace",
        "  groupbytrace: { wait_duration: 30 }",
        "a.yaml:6:34: processors::groupbytrace::wait_duration: is less than a millisecond: is the unit missing?",
    ),
    (
        "queued_retry, batch",
        "  queued_retry: { num_workers: 4 }\n  batch:",
        "a.yaml:4:58: service::pipelines::traces: 'queued_retry' is left out: exporters have 'sending_queue' and 'retry_on_failure'",
    ),
    (
        "memory_limiter",
        "  memory_limiter: { check_interval: 1s, limit_mib: 400, ballast_size_mib: 100 }",
        "a.yaml:6:57: processors::memory_limiter::ballast_size_mib: has no effect: there is no garbage collector to be run",
    ),
];

#[test]
fn processors_that_are_not_what_they_seem() {
    for (order, options, warning) in PROCESSORS {
        let (_, warnings) = good(&with_processors(order, options));
        assert_eq!(warnings, [*warning]);
    }
}

#[test]
fn what_cannot_be_of_pods_is_told() {
    for (options, wrong) in [
        (
            "auth_type: none",
            "auth_type: 'none' is not built in: the API server is asked as the pod's service account only",
        ),
        (
            "auth_type: kubeConfig",
            "auth_type: 'kubeConfig' is not built in: the API server is asked as the pod's service account only",
        ),
        (
            "extract: { labels: [ { key: a, key_regex: b } ] }",
            "extract::labels[0]::key_regex: write 'key' or 'key_regex', not both",
        ),
        (
            "extract: { annotations: [ { key_regex: '(' } ] }",
            "extract::annotations[0]::key_regex: '(' is no regular expression: unclosed group",
        ),
        (
            "exclude: { pods: [ { name: '(' } ] }",
            "exclude::pods[0]::name: '(' is no regular expression: unclosed group",
        ),
        (
            "filter: { namespace: '../x' }",
            "filter::namespace: is no name of a namespace",
        ),
        (
            "filter: { node_from_env_var: NO_SUCH_VARIABLE_HERE }",
            "filter::node_from_env_var: the environment has no variable 'NO_SUCH_VARIABLE_HERE'",
        ),
        (
            "pod_association: [ { sources: [ { from: resource_attribute } ] } ]",
            "pod_association[0]::sources[0]: 'name' is required: which attribute",
        ),
        (
            "pod_association: [ { sources: [ { from: connection }, { from: connection }, { from: connection }, { from: connection }, { from: connection } ] } ]",
            "pod_association[0]::sources: more than 4 sources",
        ),
    ] {
        let text = with_processors(
            "k8s_attributes",
            &format!("  k8s_attributes: {{ {options} }}"),
        );
        let told = errors(&text);
        let told: Vec<_> = told
            .iter()
            .filter_map(|line| line.split_once("processors::k8s_attributes::"))
            .collect();
        assert_eq!(told.len(), 1, "{told:?}");
        assert_eq!(told[0].1, wrong);
    }
}

#[test]
fn redactions_that_are_wrong() {
    for (options, error) in [
        (
            "blocked_values: ['a', '(']",
            "blocked_values: '(' is no regular expression: unclosed group",
        ),
        (
            "hash_function: sha256",
            "hash_function: must be one of md5, sha1, sha3, hmac-sha256, hmac-sha512, not 'sha256'",
        ),
        (
            "hash_function: hmac-sha512, hmac_key: short",
            "hmac_key: must have at least 64 bytes for hmac-sha512, and has 5",
        ),
        (
            "url_sanitizer: { enabled: true }",
            "url_sanitizer: not supported: a model that was trained for the Collector decides what is replaced; use 'blocked_values'",
        ),
        (
            "db_sanitizer: { sql: { enabled: true } }",
            "db_sanitizer: not supported: statements of databases are not parsed; use 'blocked_values'",
        ),
    ] {
        let options = format!("  redaction: {{ {options} }}");
        let found = errors(&with_processors("redaction", &options));
        let wanted = format!("processors::redaction::{error}");
        assert!(found[0].ends_with(&wanted), "{found:?}\n{wanted}");
    }
    let (_, warnings) = good(&with_processors(
        "redaction",
        "  redaction: { summary: all }",
    ));
    assert!(warnings[0].ends_with("summary: is not known: it is taken for silent"));
}

#[test]
fn options_of_streams_that_are_wrong() {
    for (options, error) in [
        (
            "include: { metrics: [a] }",
            "include: match_type must be set if metrics are supplied",
        ),
        (
            "exclude: { match_type: strict }",
            "exclude: metrics must be supplied if match_type is set",
        ),
        (
            "include: { match_type: regexp, metrics: ['('] }",
            "include::metrics: '(' is no regular expression: unclosed group",
        ),
        (
            "include: { metric_types: [gauge] }",
            "include::metric_types: found invalid metric type 'gauge': use sum, histogram or exponentialhistogram",
        ),
    ] {
        let text = format!(
            "receivers: {{ nop: }}\nexporters: {{ nop: }}\nprocessors: {{ cumulativetodelta: {{ {options} }} }}\n\
             service: {{ pipelines: {{ metrics: {{ receivers: [nop], processors: [cumulativetodelta], exporters: [nop] }} }} }}"
        );
        let found = errors(&text);
        let wanted = format!("processors::cumulativetodelta::{error}");
        assert!(found[0].ends_with(&wanted), "{found:?}\n{wanted}");
    }
    for (options, error) in [
        ("max_stale: 0s", "max_stale: must be a positive duration"),
        (
            "storage: file_storage",
            "storage: not supported: sums are kept in memory only",
        ),
    ] {
        let text = format!(
            "receivers: {{ nop: }}\nexporters: {{ nop: }}\nprocessors: {{ deltatocumulative: {{ {options} }} }}\n\
             service: {{ pipelines: {{ metrics: {{ receivers: [nop], processors: [deltatocumulative], exporters: [nop] }} }} }}"
        );
        let found = errors(&text);
        let wanted = format!("processors::deltatocumulative::{error}");
        assert!(found[0].ends_with(&wanted), "{found:?}\n{wanted}");
    }
}

#[test]
fn the_port_of_grpc_is_none_of_an_exporter_over_http() {
    let text = |endpoint: &str| {
        format!(
            "receivers: {{ nop: }}\nexporters: {{ otlphttp: {{ endpoint: '{endpoint}' }} }}\n\
             service: {{ pipelines: {{ traces: {{ receivers: [nop], exporters: [otlphttp] }} }} }}"
        )
    };
    let hint = "4317 is the port of OTLP over gRPC: over HTTP it is 4318, over gRPC the exporter is 'otlp_grpc'";
    let place = "a.yaml:2:36: exporters::otlphttp::endpoint";
    let (_, warnings) = good(&text("http://localhost:4317"));
    assert_eq!(
        warnings,
        [format!("{place}: 'http://localhost:4317': {hint}")]
    );
    let wrong = "'localhost:4317' must begin with http:// or https://";
    assert_eq!(
        errors(&text("localhost:4317"))[0],
        format!("{place}: {wrong}; {hint}")
    );
    assert!(good(&text("http://localhost:4318")).1.is_empty());
}
