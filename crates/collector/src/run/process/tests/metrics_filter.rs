//! Conditions on metrics and data points, with results that are worked out by hand.

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::{HistogramDataPoint, Metric, ScopeMetrics};
use otlp::Signal;
use otlp::scan::Malformed;
use ottl::{Context, Failure};
use prost::Message;
use tail::settings::ErrorMode;

use super::metrics::{gauge, histogram, int, metric, request, sum, summary};
use super::transform::group;
use super::{kv, log_of, text};
use crate::config::components::processors::action::AttributeValue;
use crate::config::components::processors::filter::{Filter, Kept};
use crate::config::components::processors::records::MetricMatching;
use crate::config::components::processors::statements::Group;
use crate::run::process::failures::{Failures, Fault};
use crate::run::process::filter::Rules;

fn rules_of(settings: &Filter) -> Rules {
    Rules::new(settings, Failures::new("filter", &log_of().0)).unwrap()
}

fn rules(conditions: Vec<Group>) -> Rules {
    rules_of(&Filter {
        metrics: conditions,
        ..Filter::default()
    })
}

/// Two resources, `cart` and `auth`; the first with a scope without metrics.
fn metrics() -> ExportMetricsServiceRequest {
    let mut request = request(vec![
        metric("requests", sum(vec![int("x", 1), int("y", 2)])),
        metric("load", gauge(vec![int("x", 3)])),
        metric(
            "sizes",
            histogram(vec![HistogramDataPoint {
                attributes: vec![kv("a", text("z"))],
                count: 5,
                ..HistogramDataPoint::default()
            }]),
        ),
        metric("old", summary(vec![])),
        Metric {
            name: "none".into(),
            ..Metric::default()
        },
    ]);
    let scopes = &mut request.resource_metrics[0].scope_metrics;
    scopes.push(ScopeMetrics::default());
    let mut auth = super::metrics::request(vec![metric("load", gauge(vec![int("x", 4)]))]);
    let resource = auth.resource_metrics[0].resource.as_mut().unwrap();
    resource.attributes = vec![kv("service.name", text("auth"))];
    request.resource_metrics.extend(auth.resource_metrics);
    request
}

/// The names of metrics that are left, with their numbers of data points, and how many data points
/// are gone.
fn left(rules: &Rules) -> (Vec<String>, u64) {
    let bytes = metrics().encode_to_vec();
    let edited = rules.filter(Signal::Metrics, &bytes, None).unwrap();
    let records = |bytes: &[u8]| otlp::count::records(Signal::Metrics, bytes).unwrap();
    let before = records(&bytes);
    let bytes = edited.bytes.unwrap_or(bytes);
    assert_eq!(records(&bytes), before - edited.dropped);
    let left = ExportMetricsServiceRequest::decode(&bytes[..]).unwrap();
    let mut names = Vec::new();
    for resource in &left.resource_metrics {
        assert!(!resource.scope_metrics.is_empty());
        for scope in &resource.scope_metrics {
            assert!(!scope.metrics.is_empty());
            for metric in &scope.metrics {
                let points = match metric.data.as_ref() {
                    Some(Data::Gauge(data)) => data.data_points.len(),
                    Some(Data::Sum(data)) => data.data_points.len(),
                    Some(Data::Histogram(data)) => data.data_points.len(),
                    Some(Data::Summary(data)) => data.data_points.len(),
                    _ => 0,
                };
                names.push(format!("{} {points}", metric.name));
            }
        }
    }
    (names, edited.dropped)
}

const ALL: [&str; 6] = [
    "requests 2",
    "load 1",
    "sizes 1",
    "old 0",
    "none 0",
    "load 1",
];

#[test]
fn conditions_drop_metrics_and_data_points() {
    use Context::{DataPoint, Metric, Resource, Scope};
    for (context, condition, expected, dropped) in [
        (
            Metric,
            r#"name == "load""#,
            &["requests 2", "sizes 1", "old 0", "none 0"][..],
            2,
        ),
        (
            Metric,
            "type == METRIC_DATA_TYPE_SUMMARY",
            &["requests 2", "load 1", "sizes 1", "none 0", "load 1"],
            0,
        ),
        (
            Metric,
            r#"HasAttrOnDatapoint("a", "y")"#,
            &["load 1", "sizes 1", "old 0", "none 0", "load 1"],
            2,
        ),
        (Metric, "false", &ALL, 0),
        (Metric, "true", &[], 5),
        // A metric without data points goes where there are conditions on data points.
        (
            DataPoint,
            "false",
            &["requests 2", "load 1", "sizes 1", "none 0", "load 1"],
            0,
        ),
        (
            DataPoint,
            r#"attributes["a"] == "x""#,
            &["requests 1", "sizes 1", "none 0"],
            3,
        ),
        (
            DataPoint,
            "value_int >= 3",
            &["requests 2", "sizes 1", "none 0"],
            2,
        ),
        (
            DataPoint,
            r#"metric.name == "sizes" and count == 5"#,
            &["requests 2", "load 1", "none 0", "load 1"],
            1,
        ),
        (
            DataPoint,
            "metric.is_monotonic == true",
            &["load 1", "sizes 1", "none 0", "load 1"],
            2,
        ),
        (
            DataPoint,
            r#"resource.attributes["service.name"] == "auth""#,
            &["requests 2", "load 1", "sizes 1", "none 0"],
            1,
        ),
        (
            Resource,
            r#"attributes["service.name"] == "cart""#,
            &["load 1"],
            4,
        ),
        (Scope, r#"name == "lib""#, &[], 5),
    ] {
        let rules = rules(vec![group(context, &[condition], &[])]);
        assert_eq!(
            left(&rules),
            (
                expected.iter().map(|name| (*name).to_owned()).collect(),
                dropped
            ),
            "{condition}"
        );
    }
    let both = rules(vec![
        group(Metric, &[r#"name == "load""#], &[]),
        group(DataPoint, &["value_int == 1"], &[]),
    ]);
    assert_eq!(
        left(&both),
        (
            vec!["requests 1".into(), "sizes 1".into(), "none 0".into()],
            3
        )
    );
}

#[test]
fn conditions_that_fail_are_false_or_refuse_the_batch() {
    let failing = |error_mode| Group {
        error_mode,
        ..group(
            Context::DataPoint,
            &["Len(value_int) == 1", "value_int == 1"],
            &[],
        )
    };
    assert_eq!(left(&rules(vec![failing(ErrorMode::Ignore)])).1, 1);
    let bytes = metrics().encode_to_vec();
    let refused = rules(vec![failing(ErrorMode::Propagate)]);
    let refused = refused.filter(Signal::Metrics, &bytes, None).unwrap_err();
    assert_eq!(refused, Fault::Ottl(Failure::Type));
}

#[test]
fn metrics_are_included_and_excluded() {
    let matching = |regex, names: &[&str], resource: &[(&str, &str)]| MetricMatching {
        regex,
        names: names.iter().map(|name| (*name).to_owned()).collect(),
        resources: resource
            .iter()
            .map(|(key, value)| {
                let value = AttributeValue::Text((*value).to_owned());
                ((*key).to_owned(), Some(value))
            })
            .collect(),
    };
    let kept = |include, exclude| {
        let kept_metrics = Kept { include, exclude };
        let rules = rules_of(&Filter {
            kept_metrics,
            ..Filter::default()
        });
        left(&rules).0
    };
    let load = matching(false, &["load"], &[]);
    assert_eq!(kept(Some(load.clone()), None), ["load 1", "load 1"]);
    assert_eq!(
        kept(None, Some(load)),
        ["requests 2", "sizes 1", "old 0", "none 0"]
    );
    let regex = matching(true, &["^(re|si)", "d$"], &[]);
    assert_eq!(kept(None, Some(regex)), ["none 0"]);
    let cart = matching(false, &[], &[("service.name", "cart")]);
    assert_eq!(kept(Some(cart.clone()), None), ALL[..5]);
    assert_eq!(kept(None, Some(cart)), ["load 1"]);
    // A match of either excludes: the metrics of `auth`, and `old`.
    let both = matching(false, &["old"], &[("service.name", "auth")]);
    assert_eq!(
        kept(None, Some(both)),
        ["requests 2", "load 1", "sizes 1", "none 0"]
    );
    let include = matching(true, &["load"], &[("service.name", "a.*")]);
    let exclude = matching(true, &["x"], &[]);
    assert_eq!(kept(Some(include), Some(exclude)), ["load 1", "load 1"]);
}

#[test]
fn metrics_that_are_left_are_as_they_came() {
    let bytes = request(vec![metric("m", sum(vec![int("x", 1)]))]).encode_to_vec();
    let conditions = vec![
        group(Context::Metric, &["false"], &[]),
        group(Context::DataPoint, &["false"], &[]),
    ];
    let edited = rules(conditions)
        .filter(Signal::Metrics, &bytes, None)
        .unwrap();
    assert_eq!(edited.bytes, None);
    // Conditions on logs drop no metrics.
    let logs = rules_of(&Filter {
        logs: vec![group(Context::Log, &["true"], &[])],
        ..Filter::default()
    });
    assert_eq!(
        logs.filter(Signal::Metrics, &bytes, None).unwrap().bytes,
        None
    );
}

#[test]
fn malformed_metrics_are_refused() {
    let mut bytes = request(vec![metric("m", sum(vec![int("x", 1)]))]).encode_to_vec();
    // The key of `as_int`, and its lowest byte: the key becomes that of another type.
    let place = bytes.windows(2).position(|pair| pair == [0x31, 1]).unwrap();
    bytes[place] = 0x30;
    for context in [Context::Metric, Context::DataPoint] {
        let rules = rules(vec![group(context, &["true"], &[])]);
        let refused = rules.filter(Signal::Metrics, &bytes, None).unwrap_err();
        assert!(
            matches!(refused, Fault::Malformed(Malformed::WireType)),
            "{refused}"
        );
    }
}
