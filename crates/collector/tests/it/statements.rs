//! `filter`, `transform` and `resourcedetection` as they are written.

use ottl::Context;
use spangate_collector::config::components::processors::filter::Filter;
use spangate_collector::config::components::processors::resource_detection::{
    Detector, ResourceDetection,
};
use spangate_collector::config::components::processors::statements::Group;
use spangate_collector::config::components::processors::transform::Transform;
use tail::settings::ErrorMode;

use crate::{errors, good, with_processors};

fn transform(options: &str) -> (Transform, Vec<String>) {
    let (config, warnings) = good(&with_processors("transform", options));
    let transform: &Transform = config.processors[0].settings.get().expect("a transform");
    (transform.clone(), warnings)
}

fn filter(options: &str) -> (Filter, Vec<String>) {
    let (config, warnings) = good(&with_processors("filter", options));
    let filter: &Filter = config.processors[0].settings.get().expect("a filter");
    (filter.clone(), warnings)
}

fn detection(options: &str) -> (ResourceDetection, Vec<String>) {
    let (config, warnings) = good(&with_processors("resourcedetection", options));
    let detection: &ResourceDetection = config.processors[0].settings.get().expect("a detection");
    (detection.clone(), warnings)
}

#[test]
fn a_plain_list_finds_its_context() {
    for (statement, context) in [
        (r#"set(resource.attributes["a"], 1)"#, Context::Resource),
        (
            r#"set(scope.attributes["a"], resource.attributes["a"])"#,
            Context::Scope,
        ),
        (
            r#"set(resource.attributes["a"], span.name) where IsRootSpan()"#,
            Context::Span,
        ),
        (
            r#"set(span.attributes["e"], spanevent.name)"#,
            Context::SpanEvent,
        ),
    ] {
        let (transform, warnings) = transform(&format!(
            "  transform:\n    trace_statements:\n      - '{statement}'"
        ));
        assert!(warnings.is_empty(), "{warnings:#?}");
        let [group] = transform.traces.as_slice() else {
            panic!("{transform:?}");
        };
        assert_eq!(
            (group.context, group.error_mode),
            (context, ErrorMode::Ignore)
        );
        assert_eq!(group.statements, [statement]);
    }
}

#[test]
fn lists_of_other_signals_find_their_context() {
    use Context::{DataPoint, Exemplar, Log, Metric, Resource};
    for (key, statements, context) in [
        (
            "log_statements",
            r#"'set(log.body, log.attributes["a"])'"#,
            Log,
        ),
        (
            "log_statements",
            r#"'set(resource.attributes["a"], 1)'"#,
            Resource,
        ),
        ("metric_statements", "'convert_sum_to_gauge()'", Metric),
        (
            "metric_statements",
            r#"'set(resource.attributes["a"], 1)', 'set(metric.unit, "s")'"#,
            Metric,
        ),
        (
            "metric_statements",
            r#"'set(metric.unit, "s") where datapoint.value_int > 1'"#,
            DataPoint,
        ),
        (
            "metric_statements",
            r#"'keep_keys(exemplar.filtered_attributes, []) where datapoint.flags == 0'"#,
            Exemplar,
        ),
    ] {
        let (transform, warnings) = transform(&format!("  transform: {{ {key}: [{statements}] }}"));
        assert!(warnings.is_empty(), "{warnings:#?}");
        let groups = [transform.logs, transform.metrics].concat();
        let contexts: Vec<Context> = groups.iter().map(|group| group.context).collect();
        assert_eq!(contexts, [context], "{statements}");
    }
    let told = |key: &str, statement: &str| {
        let options = format!("  transform: {{ {key}: ['{statement}'] }}");
        errors(&with_processors("transform", &options)).join("\n")
    };
    for (key, statement, why) in [
        (
            "log_statements",
            r#"set(span.name, "a")"#,
            "span.name is not supported",
        ),
        (
            "log_statements",
            r#"set(body, "a")"#,
            "write resource.body, scope.body or log.body",
        ),
        (
            "log_statements",
            "unroll()",
            "the editor unroll is not supported",
        ),
        (
            "log_statements",
            r#"set(log.body, ParseCLF(log.body))"#,
            "ParseCLF is not supported: it is not built in",
        ),
        (
            "metric_statements",
            "extract_count_metric(true) where datapoint.value_int == 1",
            "datapoint.value_int is not supported with the context metric",
        ),
        (
            "metric_statements",
            r#"set(exemplar.int_value, Len(datapoint.exemplars))"#,
            "use the context datapoint",
        ),
        (
            "metric_statements",
            "set(datapoint.flags, Len(metric.data_points))",
            "data_points of a metric is not supported with the context",
        ),
    ] {
        let told = told(key, statement);
        assert!(told.contains(why), "{statement}: {told}");
    }
}

#[test]
fn groups_have_a_context_conditions_and_an_error_mode() {
    let (transform, warnings) = transform(
        r#"  transform:
    error_mode: propagate
    trace_statements:
      - context: Resource
        statements:
          - keep_keys(attributes, ["service.name"])
      - error_mode: silent
        conditions: [ 'span.kind == 2', 'span.name == "a"' ]
        statements:
          - replace_pattern(span.name, "^kube_([0-9]+_)", "k8s.$$1.")
    metric_statements:
      - context: datapoint
        statements: [ 'set(value_int, 1)' ]
    profile_statements: [ 'anything()' ]"#,
    );
    let [first, second] = transform.traces.as_slice() else {
        panic!("{transform:?}");
    };
    assert_eq!(
        (first.context, first.error_mode),
        (Context::Resource, ErrorMode::Propagate)
    );
    assert_eq!(
        (second.context, second.error_mode),
        (Context::Span, ErrorMode::Silent)
    );
    assert_eq!(second.conditions.len(), 2);
    assert!(second.statements[0].contains("k8s.$1."), "{second:?}");
    assert_eq!(warnings.len(), 1, "{warnings:#?}");
    assert!(
        warnings[0].contains("profile_statements: has no effect"),
        "{warnings:#?}"
    );
}

#[test]
fn statements_that_are_wrong_are_told_with_their_place() {
    let told = |options: &str| errors(&with_processors("transform", options)).join("\n");
    for (statements, why) in [
        (
            r#"['set(attributes["a"], 1)']"#,
            "write resource.attributes",
        ),
        (
            r#"['set(span.attributes["a"], UserAgent(span.name))']"#,
            "UserAgent is not supported: the list of user agents",
        ),
        (
            r#"['convert_sum_to_gauge()']"#,
            "the editor convert_sum_to_gauge is not supported with the context spanevent",
        ),
        (
            r#"[{ context: metric, statements: ['set(name, "a")'] }]"#,
            "must be one of resource, scope, span, spanevent",
        ),
        (
            r#"[{ context: scope, statements: ['set(span.name, "a")'] }]"#,
            "not supported with the context scope",
        ),
        (
            r#"[{ context: span, statements: ['set(name, "a")'], shared_cache: 1 }]"#,
            "shared_cache: must be true or false",
        ),
        (
            r#"[{ context: span, statement: ['set(name, "a")'] }]"#,
            "did you mean 'statements'",
        ),
        (
            r#"['set(span.name, "a")', { context: span }]"#,
            "must be a map of options",
        ),
        (r#"'set(span.name, "a")'"#, "must be a list of maps"),
    ] {
        let told = told(&format!("  transform:\n    trace_statements: {statements}"));
        assert!(told.contains(why), "{statements}: {told}");
        assert!(told.contains("a.yaml:7"), "{told}");
    }
}

#[test]
fn a_filter_has_conditions_of_three_ages() {
    let (newest, warnings) = filter(
        r#"  filter:
    error_mode: propagate
    trace_conditions:
      - 'span.attributes["a"] == 1'
      - 'resource.attributes["b"] == 2'"#,
    );
    assert!(warnings.is_empty(), "{warnings:#?}");
    // Each condition finds its context.
    let [span, resource] = newest.traces.as_slice() else {
        panic!("{newest:?}");
    };
    assert_eq!(
        (span.context, span.error_mode),
        (Context::Span, ErrorMode::Propagate)
    );
    assert_eq!(resource.context, Context::Resource);
    assert_eq!((span.conditions.len(), resource.conditions.len()), (1, 1));
    let (older, warnings) = filter(
        r#"  filter:
    traces:
      span:
        - 'IsMatch(attributes["http.target"], "^/(health|ready)$")'
        - 'name == "a, b"'
      spanevent: 'name == "x"'
      resource: [ 'attributes["env"] == "dev"' ]"#,
    );
    assert!(warnings.is_empty(), "{warnings:#?}");
    let contexts: Vec<Context> = older.traces.iter().map(|group| group.context).collect();
    assert_eq!(
        contexts,
        [Context::Resource, Context::Span, Context::SpanEvent]
    );
    let (oldest, warnings) = filter(
        "  filter:
    spans:
      include: { match_type: strict, services: [a] }
      exclude: { match_type: regexp, span_names: ['^b'] }",
    );
    assert!(warnings.is_empty(), "{warnings:#?}");
    assert!(oldest.traces.is_empty());
    assert!(oldest.spans.include.is_some() && oldest.spans.exclude.is_some());
}

#[test]
fn what_a_filter_cannot_do_is_told() {
    let options = "  filter:\n    spans: { include: { match_type: expr, services: [a] } }";
    let told = errors(&with_processors("filter", options)).join("\n");
    assert!(
        told.contains("must be one of strict, regexp, not 'expr'"),
        "{told}"
    );
    let options = "  filter:\n    traces: { span: ['nome == 1'] }";
    let told = errors(&with_processors("filter", options)).join("\n");
    assert!(told.contains("the path nome is not supported"), "{told}");
    for (options, why) in [
        (
            "metrics: { exclude: { match_type: expr, metric_names: [a] } }",
            "the language expr is not supported",
        ),
        (
            "metrics: { include: { expressions: ['MetricName == \"a\"'] } }",
            "the language expr is not supported",
        ),
        (
            "metrics: { include: { match_type: regexp, metric_names: ['('] } }",
            "metric_names: ",
        ),
        (
            "logs: { include: { severity_number: { min: LOUD } } }",
            "must be a severity",
        ),
        (
            "logs: { log_record: ['span.name == \"a\"'] }",
            "span.name is not supported",
        ),
        (
            "metric_conditions: ['log.body == 1']",
            "log.body is not supported",
        ),
        (
            "log_conditions: [ { context: span, conditions: ['name == \"a\"'] } ]",
            "must be one of resource, scope, log",
        ),
    ] {
        let options = format!("  filter: {{ {options} }}");
        let told = errors(&with_processors("filter", &options)).join("\n");
        assert!(told.contains(why), "{options}: {told}");
    }
}

#[test]
fn filters_of_metrics_and_logs_have_conditions_of_three_ages() {
    let contexts =
        |groups: &[Group]| -> Vec<Context> { groups.iter().map(|group| group.context).collect() };
    let (newest, warnings) = filter(
        r#"  filter:
    metric_conditions:
      - 'metric.name == "a"'
      - 'datapoint.value_int == 0'
      - 'HasAttrKeyOnDatapoint("b")'
    log_conditions:
      - { context: log, conditions: [ 'body == "a"', 'severity_number < SEVERITY_NUMBER_WARN' ] }
    metrics: { metric: [ 'name == "a"' ] }"#,
    );
    use Context::{DataPoint, Log, Metric, Resource};
    assert_eq!(contexts(&newest.metrics), [Metric, DataPoint, Metric]);
    assert_eq!(contexts(&newest.logs), [Log]);
    assert_eq!(newest.logs[0].conditions.len(), 2);
    assert!(
        warnings
            .join("")
            .contains("metrics: has no effect: there are 'metric_conditions'"),
        "{warnings:#?}"
    );
    let (older, warnings) = filter(
        r#"  filter:
    metrics:
      resource: [ 'attributes["a"] == 1' ]
      metric: [ 'type == METRIC_DATA_TYPE_HISTOGRAM' ]
      datapoint: [ 'metric.name == "a"' ]
    logs:
      resource: [ 'attributes["a"] == 1' ]
      log_record: [ 'IsMatch(body, ".*password.*")' ]"#,
    );
    assert!(warnings.is_empty(), "{warnings:#?}");
    assert_eq!(contexts(&older.metrics), [Resource, Metric, DataPoint]);
    assert_eq!(contexts(&older.logs), [Resource, Log]);
    let (oldest, warnings) = filter(
        "  filter:
    metrics:
      include: { match_type: regexp, metric_names: ['^a'] }
      exclude: { resource_attributes: [ { key: b, value: c } ] }
    logs:
      include: { severity_number: { min: warn2, match_undefined: true } }
      exclude: { match_type: strict, bodies: [x], severity_texts: [y], record_attributes: [ { key: z } ] }",
    );
    assert!(warnings.is_empty(), "{warnings:#?}");
    let (metrics, logs) = (&oldest.kept_metrics, &oldest.kept_logs);
    assert!(
        metrics
            .include
            .as_ref()
            .is_some_and(|include| include.regex)
    );
    assert_eq!(
        metrics
            .exclude
            .as_ref()
            .map(|exclude| exclude.resources.len()),
        Some(1)
    );
    let severity = logs.include.as_ref().and_then(|include| include.severity);
    assert_eq!(
        severity.map(|severity| (severity.min, severity.match_undefined)),
        Some((14, true))
    );
    assert_eq!(
        logs.exclude
            .as_ref()
            .map(|exclude| exclude.attributes.len()),
        Some(1)
    );
}

#[test]
fn detectors_and_their_attributes() {
    let (detection, warnings) = detection(
        "  resourcedetection:
    detectors: [env, system, gcp]
    timeout: 2s
    override: false
    attributes: [a]
    env: { attributes: { included: ['service.*'] } }
    system:
      hostname_sources: [os]
      resource_attributes:
        host.id: { enabled: true }
        os.type: { enabled: false }",
    );
    let gcp = Detector::Absent("gcp".to_owned());
    assert_eq!(detection.detectors, [Detector::Env, Detector::System, gcp]);
    assert!(!detection.replace && detection.only == ["a"]);
    assert_eq!(detection.system.name_sources, ["os"]);
    assert_eq!(detection.system.attributes, ["host.name", "host.id"]);
    assert_eq!(detection.env.included, ["service.*"]);
    let warnings = warnings.join("\n");
    assert!(warnings.contains("'gcp' is not built in"), "{warnings}");
    assert!(warnings.contains("timeout: has no effect"), "{warnings}");
    let (default, _) = self::detection("  resourcedetection:");
    assert_eq!(default.detectors, [Detector::Env]);
    assert_eq!(default.system.attributes, ["host.name", "os.type"]);
    let options = "  resourcedetection: { detectors: [sytem] }";
    let told = errors(&with_processors("resourcedetection", options)).join("\n");
    assert!(told.contains("there is no detector 'sytem'"), "{told}");
}
