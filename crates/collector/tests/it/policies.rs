//! `tail_sampling` and its policies, `groupbytrace`.

use spangate_collector::config::Processor;
use spangate_collector::config::components::processors::tail_sampling::PolicySampling;
use tail::settings::{
    Emit, ErrorMode, GroupByTrace, Policy, PolicyKind, StatusCodes, Strategy, TailSampling,
};

use crate::{errors, good, with_policies, with_processors};

fn sampler(text: &str) -> (TailSampling, Vec<String>) {
    let (config, warnings) = good(text);
    let settings: &TailSampling = config.processors[0].settings.get().expect("a sampler");
    (settings.clone(), warnings)
}

fn policy(name: &str, kind: PolicyKind) -> Policy {
    Policy {
        name: name.to_owned(),
        kind,
    }
}

#[test]
fn defaults_are_those_of_the_engine() {
    let text = with_processors(
        "tail_sampling, groupbytrace",
        "  tail_sampling:\n  groupbytrace:\n",
    );
    let (config, _) = good(&text);
    let expected = [
        Processor::new(TailSampling::default()),
        Processor::new(GroupByTrace::default()),
    ];
    let found = config
        .processors
        .into_iter()
        .map(|component| component.settings);
    assert_eq!(found.collect::<Vec<_>>(), expected);
}

#[test]
fn every_option_is_read() {
    let options = "
  tail_sampling:
    decision_wait: 10s
    decision_wait_after_root_received: 2s
    num_traces: 100_000
    block_on_overflow: true
    expected_new_traces_per_sec: 1000
    decision_cache: { sampled_cache_size: 10, non_sampled_cache_size: 20 }
    sample_on_first_match: true
    sampling_strategy: span-ingest
    drop_pending_traces_on_shutdown: true
    maximum_trace_size_bytes: 1000000
    num_shards: 8
    policies:
      - { name: all, type: always_sample }
  groupbytrace: { wait_duration: 10s, num_traces: 5000, num_workers: 2, emit_strategy: service, discard_orphans: false }
";
    let (config, warnings) = good(&with_processors("groupbytrace, tail_sampling", options));
    let expected = TailSampling {
        policies: vec![policy("all", PolicyKind::AlwaysSample)],
        decision_wait_ns: 10_000_000_000,
        wait_after_root_ns: 2_000_000_000,
        traces_max: 100_000,
        block_on_overflow: true,
        expected_new_traces_per_s: 1000,
        sampled_cache_size: 10,
        non_sampled_cache_size: 20,
        sample_on_first_match: true,
        strategy: Strategy::SpanIngest,
        drop_pending_on_shutdown: true,
        trace_bytes_max: 1_000_000,
        shards: 8,
        storage: None,
        ..TailSampling::default()
    };
    assert_eq!(config.processors[0].settings, Processor::new(expected));
    let expected = GroupByTrace {
        wait_ns: 10_000_000_000,
        traces_max: 5000,
        workers: 2,
        emit: Emit::Service,
        ..GroupByTrace::default()
    };
    assert_eq!(config.processors[1].settings, Processor::new(expected));
    assert_eq!(warnings, [""; 0]);
}

/// Flow lists with trailing commas over several lines, as most files have them.
const POLICIES: &str = r#"
      {
        name: all,
        type: always_sample,
      },
      { name: slow, type: latency, latency: {threshold_ms: 5000, upper_threshold_ms: 10000} },
      { name: number, type: numeric_attribute, numeric_attribute: {key: http.status_code, min_value: 400, max_value: 599, invert_match: true} },
      { name: least, type: numeric_attribute, numeric_attribute: {key: k, min_value: -5} },
      { name: share, type: probabilistic, probabilistic: {sampling_percentage: 0.1, hash_salt: s} },
      { name: errors, type: status_code, status_code: {status_codes: [ERROR, UNSET]} },
      { name: ok, type: status_code, status_code: {status_codes: OK} },
      { name: paths, type: string_attribute, string_attribute: {key: url.path, values: [\/health, "/actuator/.*"], enabled_regex_matching: true, cache_max_size: 10, invert_match: true} },
      { name: texts, type: string_attribute, string_attribute: {key: k, values: [a, b]} },
      { name: flag, type: boolean_attribute, boolean_attribute: {key: k, value: true, invert_match: true} },
      { name: state, type: trace_state, trace_state: { key: key3, values: [value1, value2] } },
      { name: flags, type: trace_flags },
      { name: spans, type: rate_limiting, rate_limiting: {spans_per_second: 35} },
      { name: bytes, type: bytes_limiting, bytes_limiting: {bytes_per_second: 1024000, burst_capacity: 2048000} },
      { name: count, type: span_count, span_count: {min_spans: 2, max_spans: 20} },
      { name: ottl, type: ottl_condition, ottl_condition: {
           error_mode: ignore,
           span: [ "attributes[\"a\"] == \"b\"", ],
           spanevent: "IsMatch(name, \"a,b\")",
      } },
      { name: both, type: and, and: { and_sub_policy: [
           { name: one, type: always_sample },
           { name: two, type: not, not: { not_sub_policy: { name: three, type: trace_flags } } },
      ] } },
      { name: none, type: not, not: { not_sub_policy: { type: always_sample } } },
      { name: away, type: drop, drop: { drop_sub_policy: [ { name: one, type: trace_flags } ] } },
      { name: mix, type: composite, composite: {
           max_total_spans_per_second: 1000,
           policy_order: [one, two],
           composite_sub_policy: [
             { name: one, type: latency, latency: { threshold_ms: 1 } },
             { name: two, type: and, and: { and_sub_policy: [ { name: x, type: always_sample } ] } },
           ],
           rate_allocation: [ { policy: one, percent: 50 } ],
      } },
"#;

#[test]
fn every_policy_is_read() {
    let (settings, warnings) = sampler(&with_policies(POLICIES));
    let text = |text: &str| text.to_owned();
    let sub = |name: &str, kind| Box::new(policy(name, kind));
    let latency = |threshold_ms, upper_threshold_ms| PolicyKind::Latency {
        threshold_ms,
        upper_threshold_ms,
    };
    let codes = |unset, ok, error| PolicyKind::StatusCode(StatusCodes { unset, ok, error });
    let expected = [
        ("all", PolicyKind::AlwaysSample),
        ("slow", latency(5000, 10_000)),
        (
            "number",
            PolicyKind::NumericAttribute {
                key: text("http.status_code"),
                min: Some(400),
                max: Some(599),
                invert: true,
            },
        ),
        (
            "least",
            PolicyKind::NumericAttribute {
                key: text("k"),
                min: Some(-5),
                max: None,
                invert: false,
            },
        ),
        (
            "share",
            PolicyKind::Probabilistic {
                percentage: 0.1,
                hash_salt: text("s"),
            },
        ),
        ("errors", codes(true, false, true)),
        ("ok", codes(false, true, false)),
        (
            "paths",
            PolicyKind::StringAttribute {
                key: text("url.path"),
                values: vec![text("\\/health"), text("/actuator/.*")],
                regex: true,
                invert: true,
            },
        ),
        (
            "texts",
            PolicyKind::StringAttribute {
                key: text("k"),
                values: vec![text("a"), text("b")],
                regex: false,
                invert: false,
            },
        ),
        (
            "flag",
            PolicyKind::BooleanAttribute {
                key: text("k"),
                value: true,
                invert: true,
            },
        ),
        (
            "state",
            PolicyKind::TraceState {
                key: text("key3"),
                values: vec![text("value1"), text("value2")],
            },
        ),
        ("flags", PolicyKind::TraceFlags),
        (
            "spans",
            PolicyKind::RateLimiting {
                spans_per_second: 35,
                burst_capacity: 0,
            },
        ),
        (
            "bytes",
            PolicyKind::BytesLimiting {
                bytes_per_second: 1_024_000,
                burst_capacity: 2_048_000,
            },
        ),
        ("count", PolicyKind::SpanCount { min: 2, max: 20 }),
        (
            "ottl",
            PolicyKind::OttlCondition {
                span: vec![text("attributes[\"a\"] == \"b\"")],
                span_event: vec![text("IsMatch(name, \"a,b\")")],
                error_mode: ErrorMode::Ignore,
            },
        ),
        (
            "both",
            PolicyKind::And(vec![
                policy("one", PolicyKind::AlwaysSample),
                policy("two", PolicyKind::Not(sub("three", PolicyKind::TraceFlags))),
            ]),
        ),
        ("none", PolicyKind::Not(sub("", PolicyKind::AlwaysSample))),
        (
            "away",
            PolicyKind::Drop(vec![policy("one", PolicyKind::TraceFlags)]),
        ),
        (
            "mix",
            PolicyKind::Composite {
                spans_per_second_max: 1000,
                policies: vec![
                    policy("one", latency(1, 0)),
                    policy(
                        "two",
                        PolicyKind::And(vec![policy("x", PolicyKind::AlwaysSample)]),
                    ),
                ],
                rates: vec![(text("one"), 50)],
            },
        ),
    ];
    let expected = expected.map(|(name, kind)| policy(name, kind));
    for (found, expected) in settings.policies.iter().zip(&expected) {
        assert_eq!(found, expected);
    }
    assert_eq!(settings.policies.len(), expected.len());
    let cache = "a.yaml:19:146: processors::tail_sampling::policies[7]::string_attribute::cache_max_size: has no effect: no answers are remembered: expressions take linear time";
    assert_eq!(warnings, [cache]);
}

/// A policy, what is wrong with it, and where (under the policy's path).
const WRONG: &[(&str, &str)] = &[
    (
        "{ type: always_sample }",
        "::name: is missing: metrics and attributes tell policies by it, and the Collector does not start without it; write a name that \
         no other policy has, such as 'name: always_sample-1'",
    ),
    (
        "{ name: '', type: latency, latency: { threshold_ms: 5 } }",
        "::name: is missing: metrics and attributes tell policies by it, and the Collector does not start without it; write a name that \
         no other policy has, such as 'name: latency-1'",
    ),
    ("{ name: a }", ": 'type' is missing: what it asks"),
    (
        "{ name: a, type: probabalistic }",
        "::type: must be one of always_sample, latency, numeric_attribute, probabilistic, status_code, string_attribute, boolean_attribute, trace_state, trace_flags, rate_limiting, bytes_limiting, span_count, ottl_condition, and, not, drop, composite, not 'probabalistic' (did you mean 'probabilistic'?)",
    ),
    (
        "{ name: a, type: always_sample, decision: drop }",
        "::decision: not supported: a policy that drops traces has `type: drop`",
    ),
    (
        "{ name: a, type: probabilistic, sampling_percentage: 5 }",
        "::sampling_percentage: not supported: write `probabilistic: { sampling_percentage: … }`",
    ),
    (
        "{ name: a, type: latency, latency: { treshold_ms: 5 } }",
        "::latency::treshold_ms: unknown key (did you mean 'threshold_ms'?)",
    ),
    (
        "{ name: a, type: latency, latency: { threshold_ms: 5s } }",
        "::latency::threshold_ms: must be a whole number, not '5s'",
    ),
    (
        "{ name: a, type: latency, latency: { threshold_ms: '5' } }",
        "::latency::threshold_ms: must be a whole number: write 5 without quotes",
    ),
    (
        "{ name: a, type: latency, latency: { threshold_ms: -5 } }",
        "::latency::threshold_ms: must be at least 0, not -5",
    ),
    (
        "{ name: a, type: latency, latency: 5 }",
        "::latency: must be a map of options, not 5",
    ),
    (
        "{ name: a, type: status_code, status_code: { status_codes: [Error] } }",
        "::status_code::status_codes: 'Error' is written ERROR",
    ),
    (
        "{ name: a, type: status_code, status_code: { status_codes: [FAILED] } }",
        "::status_code::status_codes: 'FAILED' is no status: OK, ERROR and UNSET are",
    ),
    (
        "{ name: a, type: status_code }",
        "::status_code::status_codes: must name OK, ERROR or UNSET",
    ),
    (
        "{ name: a, type: numeric_attribute, numeric_attribute: { key: k } }",
        "::numeric_attribute::min_value: or 'max_value' must be there, and not 0",
    ),
    (
        "{ name: a, type: string_attribute, string_attribute: { key: k, values: [ '[a' ], enabled_regex_matching: true } }",
        "::string_attribute::values: '[a' is no regular expression: unclosed character class",
    ),
    (
        "{ name: a, type: string_attribute, string_attribute: { key: k, values: [200] } }",
        "::string_attribute::values: must be text: write 200 in quotes",
    ),
    (
        "{ name: a, type: ottl_condition, ottl_condition: { error_mode: ignore } }",
        "::ottl_condition: needs a condition in 'span' or 'spanevent'",
    ),
    (
        "{ name: a, type: ottl_condition, ottl_condition: { span_event: [x], span: [y] } }",
        "::ottl_condition::span_event: not supported: write 'spanevent'",
    ),
    (
        "{ name: a, type: ottl_condition, ottl_condition: { span: ['otelcol.client.addr != \"\"'] } }",
        "::ottl_condition::span: client metadata is lost when spans are grouped into traces: copy it to an attribute with a transform processor in front",
    ),
    (
        "{ name: a, type: ottl_condition, ottl_condition: { spanevent: ['scope.schema_url != \"\"'] } }",
        "::ottl_condition::spanevent: schema_url is lost when spans are grouped into traces: copy it to an attribute with a transform processor in front",
    ),
    (
        "{ name: a, type: ottl_condition, ottl_condition: { span: ['attributes[\"k\"] == '] } }",
        "::ottl_condition::span: at character 20: a value is expected here",
    ),
    (
        "{ name: a, type: not }",
        "::not::not_sub_policy: must be a policy",
    ),
    (
        "{ name: a, type: and, and: { and_sub_policy: [ { name: b, type: drop } ] } }",
        "::and::and_sub_policy[0]::type: must be one of always_sample, latency, numeric_attribute, probabilistic, status_code, string_attribute, boolean_attribute, trace_state, trace_flags, rate_limiting, bytes_limiting, span_count, ottl_condition, not, not 'drop'",
    ),
    (
        "{ name: a, type: composite, composite: { composite_sub_policy: [ { name: b, type: composite, composite: {} } ] } }",
        "::composite::composite_sub_policy[0]::composite: unknown key",
    ),
];

#[test]
fn what_is_wrong_with_a_policy_is_told_with_its_path() {
    for (written, message) in WRONG {
        let found = errors(&with_policies(written));
        let wanted = format!("processors::tail_sampling::policies[0]{message}");
        let told = |error: &String| {
            error
                .split_once(": ")
                .is_some_and(|(_, rest)| rest == wanted)
        };
        assert!(found.iter().any(told), "{written}\n{found:#?}\n{wanted}");
    }
}

#[test]
fn policies_that_cannot_run_together_are_told() {
    let service = |at| {
        format!(
            "{{ name: s{at}, type: string_attribute, string_attribute: {{ key: service.name, values: [s{at}] }} }}"
        )
    };
    let group = |at: usize| {
        let subs: Vec<String> = (3 * at..3 * at + 3).map(service).collect();
        let subs = subs.join(", ");
        format!("{{ name: g{at}, type: and, and: {{ and_sub_policy: [ {subs} ] }} }}")
    };
    let many: Vec<String> = (0..700).map(group).collect();
    let found = errors(&with_policies(&many.join(",\n      ")));
    let wanted = "policies ask more than 2048 things of spans";
    assert!(found.len() == 1 && found[0].ends_with(wanted), "{found:?}");
    good(&with_policies(&many[..600].join(",\n      ")));
}

#[test]
fn a_file_with_a_policy_for_each_service_is_taken() {
    let policy = |at| {
        format!(
            "{{ name: p{at}, type: and, and: {{ and_sub_policy: [ \
             {{ name: service, type: string_attribute, string_attribute: {{ key: service.name, values: [s{at}] }} }}, \
             {{ name: slow, type: latency, latency: {{ threshold_ms: {at}00 }} }}, \
             {{ name: error, type: status_code, status_code: {{ status_codes: [ERROR] }} }}, \
             {{ name: route, type: string_attribute, string_attribute: {{ key: route, values: [/health], invert_match: {} }} }} ] }} }}",
            at % 2 == 0
        )
    };
    let many: Vec<String> = (1..=55).map(policy).collect();
    good(&with_policies(&many.join(",\n      ")));
}

#[test]
fn names_are_unique() {
    let found = errors(&with_policies(
        "{ name: a, type: always_sample },\n      { name: a, type: trace_flags }",
    ));
    assert_eq!(
        found,
        [
            "a.yaml:9:15: processors::tail_sampling::policies[1]::name: 'a' is the name of two policies"
        ]
    );
}

#[test]
fn policies_that_count_need_whole_traces() {
    let policies = "{ name: a, type: and, and: { and_sub_policy: [ { name: b, type: span_count, span_count: { max_spans: 3 } } ] } }";
    let text = with_policies(policies).replace(
        "policies: [",
        "sampling_strategy: span-ingest\n    policies: [",
    );
    let found = errors(&text);
    let error = "processors::tail_sampling::policies[0]: 'b' keeps count over spans, which 'sampling_strategy: span-ingest' has no place for";
    assert_eq!(found, [format!("a.yaml:9:7: {error}")]);
}

/// Options of a processor, and the error that they are.
const OPTIONS: &[(&str, &str, &str)] = &[
    (
        "tail_sampling",
        "num_shards: 300",
        "num_shards: must be from 1 to 256, not 300",
    ),
    (
        "tail_sampling",
        "sampling_strategy: span_ingest",
        "sampling_strategy: must be one of trace-complete, span-ingest, not 'span_ingest' (did you mean 'span-ingest'?)",
    ),
    (
        "tail_sampling",
        "tail_storage: file_storage",
        "tail_storage: not supported: traces are kept in memory; 'storage' keeps them over the end of the process too",
    ),
    (
        "tail_sampling",
        "offload_to_disk: true",
        "offload_to_disk: unknown key",
    ),
    (
        "tail_sampling",
        "decision_wait: 10 s",
        "decision_wait: must be a duration such as 300ms, 5s or 1m30s, not '10 s'",
    ),
    (
        "tail_sampling",
        "decision_wait: -1s",
        "decision_wait: must not be negative, but is '-1s'",
    ),
    (
        "tail_sampling",
        "policies: { name: a }",
        "policies: must be a list of maps, not a map",
    ),
    (
        "groupbytrace",
        "store_on_disk: true",
        "store_on_disk: there is no 'file_storage' in service::extensions",
    ),
];

#[test]
fn what_is_wrong_with_an_option_is_told_with_its_path() {
    for (processor, written, message) in OPTIONS {
        let found = errors(&with_processors(
            processor,
            &format!("  {processor}:\n    {written}\n"),
        ));
        let told = format!("processors::{processor}::{message}");
        assert!(
            found.len() == 1 && found[0].ends_with(&told),
            "{written}\n{found:#?}"
        );
    }
}

#[test]
fn what_is_grouped_may_be_sampled_at_once() {
    let options = "
  groupbytrace: { wait_duration: 10s, num_traces: 1000, num_events: 10000 }
  policysampling:
    policies: [ { name: errors, type: status_code, status_code: { status_codes: [ERROR] } } ]
";
    let (config, warnings) = good(&with_processors("groupbytrace, policysampling", options));
    let settings = config.processors[1].settings.get();
    let PolicySampling(settings) = settings.expect("a sampler");
    assert_eq!((settings.decision_wait_ns, settings.policies.len()), (0, 1));
    let said = "num_events: has no effect: there is no queue of events to size";
    assert!(
        warnings.len() == 1 && warnings[0].ends_with(said),
        "{warnings:?}"
    );
    let (_, warnings) = good(&with_processors("policysampling", options));
    let said = "'policysampling' without a 'groupbytrace' before it decides on parts of traces";
    assert!(
        warnings.iter().any(|warning| warning.ends_with(said)),
        "{warnings:?}"
    );
    let wrong = options.replace("[ERROR]", "[ERR]");
    assert!(errors(&with_processors("groupbytrace, policysampling", &wrong))[0].contains("ERR"));
}
