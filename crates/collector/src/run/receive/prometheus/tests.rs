//! From what a target exposes to a request.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use export::get::Getter;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value as Number;
use prost::Message;
use tail::store::Budget;

use super::fetch::Fetched;
use super::process::{Report, Scraped, Series, leave, process};
use super::relabel;
use super::target::{Shared, Target};
use super::text::{Format, Labels};
use crate::config::components::receivers::prometheus::PrometheusReceiver;
use crate::config::receiver;
use crate::run::charge::Memory;
use crate::run::receive::Intake;
use crate::run::{Log, receive};

/// Bytes of the budget.
const MEMORY_BYTES: u64 = 1 << 20;
const NOW_MS: i64 = 1_700_000_000_000;

fn settings(job: &str, more: &str) -> PrometheusReceiver {
    let settings = receiver(&format!(
        "prometheus: {{ config: {{ scrape_configs: [ {{ job_name: j, {job} }} ] }}, {more} }}"
    ));
    let settings: &PrometheusReceiver = settings.get().expect("a receiver");
    settings.clone()
}

fn memory() -> Arc<Memory> {
    Memory::new(&Arc::new(Budget::new(MEMORY_BYTES)))
}

/// A target `h:1` of a job with these options.
fn target(job: &str, more: &str) -> Target {
    let settings = settings(job, more);
    let job = settings.jobs[0].clone();
    let intake = Intake::new([None, None, None], Default::default(), &memory());
    let shared = Arc::new(Shared {
        id: "prometheus".to_owned(),
        getter: Getter::new(&job.client.tls, Duration::from_secs(1)).expect("a client"),
        metric_rules: relabel::rules(&job.metric_relabel).expect("rules"),
        external_labels: settings.external_labels.iter().cloned().collect(),
        trims_suffixes: settings.trims_suffixes,
        reports_extra: settings.reports_extra,
        has_too_many: AtomicBool::new(false),
        intake: Arc::new(intake),
        log: Log::new(|_, _| {}),
        job,
    });
    let discovered = [
        ("__address__", "h:1"),
        ("__scheme__", "http"),
        ("__metrics_path__", "/metrics"),
        ("job", "j"),
        ("instance", "h:1"),
    ];
    let discovered = discovered.map(|(name, value)| (name.to_owned(), value.to_owned()));
    Target::new(Labels::from(discovered), &shared)
}

fn exposed(text: &str, format: Format) -> Result<Fetched, String> {
    Ok(Fetched {
        bytes: text.as_bytes().to_vec(),
        format,
        is_gzip: false,
        room: memory().body(0).expect("room"),
    })
}

const REPORT: Report = Report {
    now_ms: NOW_MS,
    seconds: 0.5,
};

fn attributes(attributes: &[KeyValue]) -> String {
    let mut line = String::new();
    for attribute in attributes {
        let value = attribute.value.as_ref().and_then(|any| any.value.as_ref());
        let Some(Value::StringValue(text)) = value else {
            panic!("{attribute:?}");
        };
        write!(line, " {}={text}", attribute.key).expect("a text");
    }
    line
}

/// A request as lines: resources, scopes, metrics and points. Times are told where they are not that
/// of the scrape. What a target says of itself is left out unless `with_own`.
fn lines(request: &[u8], with_own: bool) -> Vec<String> {
    let request = ExportMetricsServiceRequest::decode(request).expect("a request");
    let mut lines = Vec::new();
    let time = |start: u64, time: u64, flags: u32| {
        let mut text = String::new();
        if start != 0 {
            write!(text, " start={}", start / 1_000_000).expect("a text");
        }
        if time != NOW_MS as u64 * 1_000_000 {
            write!(text, " time={}", time / 1_000_000).expect("a text");
        }
        if flags == 1 {
            text.push_str(" stale");
        }
        text
    };
    for resource in request.resource_metrics {
        let own = resource.resource.expect("a resource");
        lines.push(format!("resource{}", attributes(&own.attributes)));
        for scope in resource.scope_metrics {
            let own = scope.scope.expect("a scope");
            if !own.name.ends_with("prometheusreceiver") {
                lines.push(format!(
                    "scope {} {}{}{}",
                    own.name,
                    own.version,
                    scope.schema_url,
                    attributes(&own.attributes)
                ));
            }
            for metric in scope.metrics {
                let is_own = metric.name == "up" || metric.name.starts_with("scrape_");
                if is_own && !with_own {
                    continue;
                }
                let kind = attributes(&metric.metadata);
                let about = format!("{} [{}] {}", metric.name, metric.unit, metric.description);
                let (data, points): (&str, Vec<String>) = match metric.data.expect("data") {
                    Data::Gauge(gauge) => ("gauge", gauge.data_points.iter().map(number).collect()),
                    Data::Sum(sum) => {
                        assert_eq!(sum.aggregation_temporality, 2);
                        let data = if sum.is_monotonic { "counter" } else { "sum" };
                        (data, sum.data_points.iter().map(number).collect())
                    }
                    Data::Histogram(all) => {
                        assert_eq!(all.aggregation_temporality, 2);
                        let points = all.data_points.iter().map(|point| {
                            let times = time(
                                point.start_time_unix_nano,
                                point.time_unix_nano,
                                point.flags,
                            );
                            let own = attributes(&point.attributes);
                            let (count, sum) = (point.count, point.sum);
                            let (bounds, counts) = (&point.explicit_bounds, &point.bucket_counts);
                            format!(" {own} count={count} sum={sum:?} {bounds:?} {counts:?}{times}")
                        });
                        ("histogram", points.collect())
                    }
                    Data::Summary(all) => {
                        let points = all.data_points.iter().map(|point| {
                            let times = time(
                                point.start_time_unix_nano,
                                point.time_unix_nano,
                                point.flags,
                            );
                            let own = attributes(&point.attributes);
                            let parts = point.quantile_values.iter();
                            let parts: Vec<_> =
                                parts.map(|one| (one.quantile, one.value)).collect();
                            format!(
                                " {own} count={} sum={} {parts:?}{times}",
                                point.count, point.sum
                            )
                        });
                        ("summary", points.collect())
                    }
                    other => panic!("{other:?}"),
                };
                lines.push(format!("{about} {data}{kind}"));
                lines.extend(points);
            }
        }
    }
    fn number(point: &opentelemetry_proto::tonic::metrics::v1::NumberDataPoint) -> String {
        let mut line = format!(" {}", attributes(&point.attributes));
        match point.value {
            Some(Number::AsDouble(value)) => write!(line, " {value}").expect("a text"),
            _ => assert_eq!(point.flags, 1),
        }
        if point.start_time_unix_nano != 0 {
            write!(line, " start={}", point.start_time_unix_nano / 1_000_000).expect("a text");
        }
        if point.time_unix_nano != NOW_MS as u64 * 1_000_000 {
            write!(line, " time={}", point.time_unix_nano / 1_000_000).expect("a text");
        }
        if point.flags == 1 {
            line.push_str(" stale");
        }
        for exemplar in &point.exemplars {
            let ids = (exemplar.trace_id.len(), exemplar.span_id.len());
            let own = attributes(&exemplar.filtered_attributes);
            write!(line, " exemplar {ids:?}{own}").expect("a text");
        }
        line
    }
    lines
}

fn scrape(target: &Target, last: Series, text: &str) -> Scraped {
    process(target, last, exposed(text, Format::Text), REPORT)
}

fn once(job: &str, text: &str) -> Vec<String> {
    let scraped = scrape(&target(job, ""), Series::default(), text);
    assert_eq!(scraped.failure, None);
    lines(&scraped.request, false)
}

const RESOURCE: &str = "resource service.name=j server.address=h service.instance.id=h:1 server.port=1 url.scheme=http";

#[test]
fn each_type_becomes_a_kind_of_metric() {
    let text = "# HELP c_total Calls\n# TYPE c_total counter\nc_total{a=\"b\"} 3\nc_total{a=\"c\"} 4\n\
                # TYPE g gauge\ng 1.5\nunknown 2 1600000000000\n\
                # TYPE h histogram\nh_bucket{le=\"1\"} 2\nh_bucket{le=\"+Inf\"} 5\nh_bucket{le=\"0.5\"} 1\nh_sum 7\nh_count 5\n\
                # TYPE s summary\ns{quantile=\"0.5\"} 9\ns_sum 20\ns_count 3\n";
    assert_eq!(
        once("", text),
        [
            RESOURCE,
            "c_total [] Calls counter prometheus.type=counter",
            "  a=b 3",
            "  a=c 4",
            "g []  gauge prometheus.type=gauge",
            "  1.5",
            "unknown []  gauge prometheus.type=unknown",
            "  2 time=1600000000000",
            "h []  histogram prometheus.type=histogram",
            "  count=5 sum=Some(7.0) [0.5, 1.0] [1, 1, 3]",
            "s []  summary prometheus.type=summary",
            "  count=3 sum=20 [(0.5, 9.0)]",
        ]
    );
    // A histogram that cannot be is left out.
    let text =
        "# TYPE h histogram\nh_bucket{le=\"1\"} 2\nh_bucket{le=\"2\"} 1\nh_sum 7\nh_count 5\n";
    assert!(once("", text).len() <= 1);
}

#[test]
fn openmetrics_has_start_times_units_and_exemplars() {
    let text = "# TYPE c_seconds counter\n# UNIT c_seconds seconds\nc_seconds_total 3 # {trace_id=\"0102030405060708090a0b0c0d0e0f10\",span_id=\"x\",a=\"b\"} 0.5\nc_seconds_created 1600000000\n\
                # TYPE i info\ni_info{v=\"1\"} 1\n# TYPE h histogram\nh_bucket{le=\"+Inf\"} 1\nh_count 1\nh_created 1600000001\n# EOF\n";
    let scraped = process(
        &target("", ""),
        Series::default(),
        exposed(text, Format::OpenMetrics),
        REPORT,
    );
    assert_eq!(
        lines(&scraped.request, false),
        [
            RESOURCE,
            "c_seconds_total [s]  counter prometheus.type=counter",
            "  3 start=1600000000000 exemplar (16, 0) a=b span_id=x",
            "i []  sum prometheus.type=info",
            "  v=1 1",
            "h []  histogram prometheus.type=histogram",
            "  count=1 sum=None [] [1] start=1600000001000",
        ]
    );
    let trimming = target("", "trim_metric_suffixes: true");
    let fetched = exposed(text, Format::OpenMetrics);
    let scraped = process(&trimming, Series::default(), fetched, REPORT);
    assert!(lines(&scraped.request, false)[1].starts_with("c [s]"));
}

#[test]
fn series_that_are_gone_become_stale() {
    let target = target("", "");
    let text = "# TYPE c counter\nc{a=\"1\"} 1\nc{a=\"2\"} 2\n# TYPE s summary\ns_count 1\ns_sum 1\nt 1 1600000000000\n";
    let first = scrape(&target, Series::default(), text);
    let second = scrape(&target, first.series, "# TYPE c counter\nc{a=\"1\"} 1\n");
    let shown = lines(&second.request, true);
    assert!(shown.contains(&"  a=1 1".to_owned()) && shown.contains(&"  a=2 stale".to_owned()));
    assert!(
        shown
            .iter()
            .any(|line| line.contains("count=0") && line.ends_with(" stale"))
    );
    // A series with times of its own is not told to be stale.
    assert!(!shown.iter().any(|line| line.starts_with("t ")));
    // Now the target cannot be scraped, then it is gone.
    let third = process(&target, second.series, Err("refused".to_owned()), REPORT);
    assert_eq!(third.failure.as_deref(), Some("refused"));
    let shown = lines(&third.request, true);
    assert!(shown.contains(&"  a=1 stale".to_owned()), "{shown:?}");
    let up = shown.iter().position(|line| line.starts_with("up "));
    assert_eq!(shown[up.expect("up") + 1], "  0");
    let again = scrape(&target, third.series, "# TYPE c counter\nc{a=\"1\"} 1\n");
    let gone = lines(&leave(&target, again.series, NOW_MS), true);
    assert!(gone.contains(&"  a=1 stale".to_owned()), "{gone:?}");
    assert_eq!(
        gone.iter().filter(|line| line.ends_with(" stale")).count(),
        6
    );
}

#[test]
fn a_target_tells_of_itself() {
    let target = target(
        "scrape_timeout: 3s, scrape_interval: 5s, sample_limit: 9, metric_relabel_configs: [ { source_labels: [__name__], regex: b, action: drop } ]",
        "report_extra_scrape_metrics: true",
    );
    let scraped = scrape(&target, Series::default(), "a 1\nb 2\n");
    assert_eq!(
        lines(&scraped.request, true),
        [
            RESOURCE,
            "a []  gauge prometheus.type=unknown",
            "  1",
            "up [] The scraping was successful gauge prometheus.type=gauge",
            "  1",
            "scrape_duration_seconds [s] Duration of the scrape gauge prometheus.type=gauge",
            "  0.5",
            "scrape_samples_scraped [] The number of samples the target exposed gauge prometheus.type=gauge",
            "  2",
            "scrape_samples_post_metric_relabeling [] The number of samples remaining after metric relabeling was applied gauge prometheus.type=gauge",
            "  1",
            "scrape_series_added [] The approximate number of new series in this scrape gauge prometheus.type=gauge",
            "  1",
            "scrape_timeout_seconds []  gauge prometheus.type=unknown",
            "  3",
            "scrape_sample_limit []  gauge prometheus.type=unknown",
            "  9",
            "scrape_body_size_bytes []  gauge prometheus.type=unknown",
            "  8",
        ]
    );
}

#[test]
fn labels_of_a_sample_and_of_its_target_may_be_the_same() {
    let text = "a{job=\"x\",exported_job=\"y\"} 1\n";
    let renamed = once("", text);
    assert_eq!(renamed[0], RESOURCE);
    assert_eq!(renamed[2], "  exported_exported_job=x exported_job=y 1");
    let honored = once("honor_labels: true", text);
    assert!(honored[0].starts_with("resource service.name=x"));
    assert_eq!(once("honor_timestamps: false", "a 1 5\n")[2], "  1");
}

#[test]
fn target_info_and_scopes_describe_resources_and_scopes() {
    let text = "target_info{a=\"b\"} 1\notel_scope_info{otel_scope_name=\"n\",otel_scope_version=\"1\",c=\"d\"} 1\n\
                m{otel_scope_name=\"n\",otel_scope_version=\"1\",e=\"f\"} 2\n";
    let shown = once("", text);
    assert_eq!(shown[0], format!("{RESOURCE} a=b"));
    assert_eq!(shown[1], "scope n 1 c=d");
    assert_eq!(shown[3], "  e=f 2");
}

#[test]
fn limits_fail_a_scrape() {
    for (options, text, why) in [
        ("sample_limit: 1", "a 1\nb 1\n", "sample limit exceeded"),
        (
            "label_limit: 4",
            "a{b=\"c\",d=\"e\"} 1\n",
            "label_limit exceeded (metric: a)",
        ),
        (
            "label_name_length_limit: 8",
            "a{long_name=\"c\"} 1\n",
            "label_name_length_limit exceeded (metric: a)",
        ),
        (
            "label_value_length_limit: 3",
            "a{b=\"long\"} 1\n",
            "label_value_length_limit exceeded (metric: a)",
        ),
        ("", "a b\n", "line 1: a value is no number"),
    ] {
        let scraped = scrape(&target(options, ""), Series::default(), text);
        assert_eq!(scraped.failure.as_deref(), Some(why), "{options}");
        let shown = lines(&scraped.request, false);
        assert_eq!(shown, [RESOURCE]);
    }
    // Series that are remembered take memory.
    let many: String = (0..20_000)
        .map(|number| format!("a{{l=\"{number}\"}} 1\n"))
        .collect();
    let scraped = scrape(&target("", ""), Series::default(), &many);
    let why = "there is no memory for the series of the target";
    assert_eq!(scraped.failure.as_deref(), Some(why));
    // A body that grows beyond the limit as it is decompressed.
    let mut bytes = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    io_write(&mut bytes, &"# a comment\n".repeat(10_000));
    let fetched = Fetched {
        is_gzip: true,
        bytes: bytes.finish().expect("bytes"),
        ..exposed("", Format::Text).unwrap_or_else(|why| panic!("{why}"))
    };
    let target = target("body_size_limit: 10KB", "");
    let scraped = process(&target, Series::default(), Ok(fetched), REPORT);
    assert_eq!(scraped.failure.as_deref(), Some("body size limit exceeded"));
}

fn io_write(out: &mut impl std::io::Write, text: &str) {
    out.write_all(text.as_bytes()).expect("a text");
}

#[test]
fn rules_change_keep_and_drop_labels() {
    let apply = |option: &str, rule: &str| {
        let settings = settings(&format!("{option}: [ {{ {rule} }} ]"), "");
        let job = &settings.jobs[0];
        let settings = if option == "relabel_configs" {
            &job.relabel
        } else {
            &job.metric_relabel
        };
        let rules = relabel::rules(settings).expect("rules");
        let labels = [("a", "Xy"), ("b", "2"), ("ma", "p")];
        let mut labels: Labels = labels
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into();
        let is_kept = relabel::apply(&rules, &mut labels);
        let pairs: Vec<_> = labels
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        if is_kept {
            pairs.join(" ")
        } else {
            "dropped".to_owned()
        }
    };
    let same = "a=Xy b=2 ma=p";
    for (rule, expected) in [
        (
            "source_labels: [a, b], target_label: c",
            "a=Xy b=2 c=Xy;2 ma=p",
        ),
        (
            "source_labels: [a, b], separator: '-', regex: '(.)(.)-(?P<n>.)', target_label: 'c_$$2', replacement: '$${n}$$1'",
            "a=Xy b=2 c_y=2X ma=p",
        ),
        ("source_labels: [a], regex: X, target_label: c", same),
        (
            "source_labels: [a], target_label: b, replacement: ''",
            "a=Xy ma=p",
        ),
        (
            "source_labels: [a], target_label: c, action: lowercase",
            "a=Xy b=2 c=xy ma=p",
        ),
        (
            "source_labels: [a], target_label: c, action: Uppercase",
            "a=Xy b=2 c=XY ma=p",
        ),
        ("source_labels: [a], regex: X., action: keep", same),
        ("source_labels: [a], regex: X, action: keep", "dropped"),
        (
            "source_labels: [a], regex: 'X(?i)Y', action: drop",
            "dropped",
        ),
        ("source_labels: [a], regex: Y, action: drop", same),
        (
            "source_labels: [a], target_label: b, action: keepequal",
            "dropped",
        ),
        (
            "source_labels: [a], target_label: b, action: dropequal",
            same,
        ),
        // As Prometheus does: the last eight bytes of the MD5.
        (
            "source_labels: [a], target_label: c, modulus: 1000, action: hashmod",
            "a=Xy b=2 c=749 ma=p",
        ),
        (
            "regex: 'm(.)', replacement: 'n$$1', action: labelmap",
            "a=Xy b=2 ma=p na=p",
        ),
        ("regex: 'm.|b', action: labeldrop", "a=Xy"),
        ("regex: 'm.|b', action: labelkeep", "b=2 ma=p"),
    ] {
        for option in ["relabel_configs", "metric_relabel_configs"] {
            assert_eq!(apply(option, rule), expected, "{option}: {rule}");
        }
    }
}

#[test]
fn a_url_has_the_parameters_of_the_job_and_of_rules() {
    let settings = settings("metrics_path: m, params: { a: [b c, d], e: [] }", "");
    let mut discovered: Labels = [
        ("__address__", "h:1"),
        ("__scheme__", "https"),
        ("__metrics_path__", "m"),
        ("__param_a", "b c"),
        ("__param_x", "ü"),
        ("job", "j"),
        ("instance", "i"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into();
    let of = |discovered: &Labels| {
        let target = target("", "");
        let mut shared = Arc::into_inner(target.shared).expect("one");
        shared.job = settings.jobs[0].clone();
        Target::new(discovered.clone(), &Arc::new(shared)).url
    };
    assert_eq!(of(&discovered), "https://h:1/m?a=b%20c&a=d&x=%C3%BC");
    discovered.remove("__param_a");
    assert_eq!(of(&discovered), "https://h:1/m?a=d&x=%C3%BC");
    let _ = receive::prometheus::parse("", Format::Text);
}
