//! Policies as the dashboard shows and tries them.

use spangate_collector::config::components::exporters::dashboard::DashboardExporter;
use spangate_collector::config::components::processors::tail_sampling::yaml;
use spangate_collector::config::policies::{POLICIES_BYTES_MAX, PoliciesFault, policies};
use tail::settings::TailSampling;
use traces::Limits;

use crate::{good, with_policies};

fn fault(text: &str) -> (String, u32, u32) {
    let PoliciesFault {
        error,
        line,
        column,
    } = policies(text).unwrap_err();
    (error, line, column)
}

/// One policy of each type, with every option.
const EVERY: &str = r#"
- { name: a, type: always_sample }
- { name: flags, type: trace_flags }
- { name: slow, type: latency, latency: { threshold_ms: 5, upper_threshold_ms: 900 } }
- { name: "true", type: numeric_attribute, numeric_attribute: { key: "a b", min_value: -5, max_value: 9, invert_match: true } }
- { name: "per: cent", type: probabilistic, probabilistic: { sampling_percentage: 12.5, hash_salt: "s$$1" } }
- { name: all of it, type: probabilistic, probabilistic: { sampling_percentage: 100 } }
- { name: s, type: status_code, status_code: { status_codes: [ERROR, UNSET] } }
- { name: texts, type: string_attribute, string_attribute: { key: k, values: ['^/a/\d+$$', "x\"y\\z", '', '1', "é\n\t"], enabled_regex_matching: true, invert_match: true } }
- { name: b, type: boolean_attribute, boolean_attribute: { key: k, value: true, invert_match: true } }
- { name: state, type: trace_state, trace_state: { key: k, values: [a, b] } }
- { name: r, type: rate_limiting, rate_limiting: { spans_per_second: 10, burst_capacity: 30 } }
- { name: by, type: bytes_limiting, bytes_limiting: { bytes_per_second: 10 } }
- { name: n, type: span_count, span_count: { min_spans: 2, max_spans: 5 } }
- { name: o, type: ottl_condition, ottl_condition: { error_mode: silent, span: ['attributes["a"] == "b"', 'IsMatch(name, "^x$$")'], spanevent: ['name == "e"'] } }
- name: and
  type: and
  and:
    and_sub_policy:
      - { name: one, type: always_sample }
      - { name: two, type: not, not: { not_sub_policy: { name: three, type: latency, latency: { threshold_ms: 1 } } } }
- { name: not, type: not, not: { not_sub_policy: { name: x, type: always_sample } } }
- { name: drop, type: drop, drop: { drop_sub_policy: [ { name: x, type: span_count, span_count: { min_spans: 7 } } ] } }
- name: c
  type: composite
  composite:
    max_total_spans_per_second: 100
    composite_sub_policy:
      - { name: one, type: always_sample }
      - { name: two, type: and, and: { and_sub_policy: [ { name: x, type: trace_flags } ] } }
    rate_allocation: [ { policy: one, percent: 60 }, { policy: two, percent: 40 } ]
"#;

#[test]
fn policies_are_written_as_they_are_read() {
    let (settings, warnings) = policies(EVERY).unwrap();
    assert_eq!(warnings, []);
    assert_eq!(settings.policies.len(), 18);
    let written = yaml(&settings.policies);
    let (again, warnings) =
        policies(&written).unwrap_or_else(|fault| panic!("{fault:?}\n{written}"));
    assert_eq!(again.policies, settings.policies, "{written}");
    assert_eq!(warnings, [], "{written}");
    // A configuration takes the same text.
    let indented: String = written
        .lines()
        .map(|line| format!("      {line}\n"))
        .collect();
    let text = with_policies("").replace(
        "policies: [\n      \n    ]",
        &format!("policies:\n{indented}"),
    );
    let (config, _) = good(&text);
    let read: &TailSampling = config.processors[0].settings.get().expect("a sampler");
    assert_eq!(read.policies, settings.policies);
    assert!(written.starts_with("- name: a\n  type: always_sample\n- name: flags\n"));
    assert!(written.contains("- name: slow\n  type: latency\n  latency:\n    threshold_ms: 5\n    upper_threshold_ms: 900\n"));
}

#[test]
fn policies_stand_alone_or_in_their_processor() {
    let list = "- { name: a, type: always_sample }";
    for text in [
        list.to_owned(),
        format!("policies:\n  {list}"),
        format!("tail_sampling:\n  decision_wait: 5s\n  policies:\n    {list}"),
        format!("tail_sampling/x:\n  policies:\n    {list}"),
    ] {
        let (settings, _) = policies(&text).unwrap_or_else(|fault| panic!("{fault:?}\n{text}"));
        assert_eq!(settings.policies[0].name, "a");
    }
}

#[test]
fn what_is_wrong_has_its_place() {
    let unknown = fault("- { name: a, type: always_sample }\n- { name: b, type: latenzy }");
    assert!(
        unknown
            .0
            .contains("policies[1]::type: must be one of always_sample"),
        "{unknown:?}"
    );
    assert_eq!((unknown.1, unknown.2), (2, 20));
    let slip = fault("- name: a\n  type: latency\n  latency:\n    treshold_ms: 5");
    assert!(
        slip.0.ends_with("(did you mean 'threshold_ms'?)"),
        "{slip:?}"
    );
    assert_eq!((slip.1, slip.2), (4, 5));
    let twice = fault("- { name: a, type: always_sample }\n- { name: a, type: trace_flags }");
    assert!(
        twice.0.contains("'a' is the name of two policies"),
        "{twice:?}"
    );
    assert_eq!(twice.1, 2);
    let regex = fault(
        "- { name: a, type: string_attribute, string_attribute: { key: k, values: ['('], enabled_regex_matching: true } }",
    );
    assert_eq!((regex.1, regex.2), (1, 75), "{regex:?}");
    let broken = fault("- { name: a\n- b");
    assert!(broken.1 >= 1 && !broken.0.is_empty(), "{broken:?}");
    assert_eq!(fault(""), ("there are no policies".to_owned(), 1, 1));
    assert!(fault("policie: 5").0.contains("did you mean 'policies'?"));
    assert!(fault("just a text").0.contains("must be a map of options"));
    let long = "#".repeat(POLICIES_BYTES_MAX + 1);
    assert!(fault(&long).0.contains("is longer than"));
}

#[test]
fn a_guests_text_reads_neither_variables_nor_files() {
    // It is set in every process.
    assert!(std::env::var("PATH").is_ok());
    let (settings, warnings) = policies("- { name: 'x${env:PATH}', type: always_sample }").unwrap();
    assert_eq!(settings.policies[0].name, "x");
    assert!(warnings[0].message.contains("PATH"), "{warnings:?}");
    let file = fault("- { name: '${file:/etc/passwd}', type: always_sample }");
    assert!(file.0.contains("files are not read here"), "{file:?}");
}

#[test]
fn limits_of_all_exporters_count() {
    let text = "receivers: { nop: }
exporters:
  dashboard:
  dashboard/large: { max_bytes: 100000000, max_age: 2h, unsampled: false }
  dashboard/unused: { max_bytes: 900000000 }
service:
  telemetry: { metrics: { level: none } }
  pipelines: { traces: { receivers: [nop], exporters: [dashboard, dashboard/large] } }
";
    let (config, _) = good(text);
    let expected = Limits {
        bytes_max: 100_000_000,
        age_max_ms: 7_200_000,
    };
    assert_eq!(config.trace_store(), Some(expected));
    let first: &DashboardExporter = config.exporters[0].settings.get().expect("its settings");
    assert!(first.unsampled);
    assert_eq!(
        first.limits,
        Limits::default(),
        "what the table says is the store's default"
    );
}
