use std::sync::Arc;

use super::*;
use crate::run::send::prometheus::native::Buckets;
use crate::run::send::prometheus::point::Quantile;
use crate::run::send::prometheus::store::{Metric, Sample};

fn view(name: &str, kind: Kind, unit: Option<&str>, point: Point) -> View {
    View {
        metric: Metric {
            name: name.into(),
            kind,
            help: "a \"b\"\\\n".into(),
            unit: unit.map(Into::into),
        },
        series: vec![Sample {
            labels: Arc::new(Labels::from_pairs(&[("l", "q\"\\\n"), ("m.n", "")])),
            point: Arc::new(point),
        }],
        has_times: false,
    }
}

fn point(value: Value) -> Point {
    Point {
        start_ns: 0,
        time_ns: 1_500_000_000,
        value,
        exemplars: Vec::new(),
    }
}

fn exemplar(value: f64) -> Exemplar {
    Exemplar {
        value,
        time_ns: 2_000_000_000,
        trace_id: [1; 16],
        span_id: [0; 8],
    }
}

fn text(view: View, is_open: bool) -> String {
    write(&[view], is_open, Escaping::Underscores)
}

const IDS: &str = r#"l="q\"\\\n",m_n="""#;

#[test]
fn counters_have_their_suffix_and_exemplars() {
    let counted = Point {
        exemplars: vec![exemplar(0.5)],
        ..point(Value::Int(1_234_567))
    };
    let written = text(
        view("a_s_total", Kind::Counter, Some("s"), counted.clone()),
        false,
    );
    let wanted = format!(
        "# HELP a_s_total a \"b\"\\\\\\n\n# TYPE a_s_total counter\na_s_total{{{IDS}}} 1.234567e+06\n"
    );
    assert_eq!(written, wanted);
    let written = text(
        view("a_s_total", Kind::Counter, Some("s"), counted.clone()),
        true,
    );
    let id = "01".repeat(16);
    let wanted = format!(
        "# HELP a_s a \\\"b\\\"\\\\\\n\n# TYPE a_s counter\n# UNIT a_s s\n\
         a_s_total{{{IDS}}} 1.234567e+06 # {{trace_id=\"{id}\"}} 0.5 2.0\n# EOF\n"
    );
    assert_eq!(written, wanted);
    let written = text(view("a", Kind::Counter, Some("s"), counted), true);
    assert!(written.contains("# TYPE a unknown\na{"), "{written}");
}

#[test]
fn histograms_have_cumulative_buckets() {
    let histogram = Point {
        exemplars: vec![exemplar(0.7), exemplar(5.0)],
        ..point(Value::Histogram(Histogram {
            count: 6,
            sum: 7.5,
            bounds: vec![0.5, 1.0],
            counts: vec![1, 2],
        }))
    };
    let written = text(view("h", Kind::Histogram, None, histogram.clone()), false);
    let lines: Vec<_> = written.lines().skip(2).collect();
    let wanted = [
        format!("h_bucket{{{IDS},le=\"0.5\"}} 1"),
        format!("h_bucket{{{IDS},le=\"1\"}} 3"),
        format!("h_bucket{{{IDS},le=\"+Inf\"}} 6"),
        format!("h_sum{{{IDS}}} 7.5"),
        format!("h_count{{{IDS}}} 6"),
    ];
    assert_eq!(lines, wanted);
    let timed = View {
        has_times: true,
        ..view("h", Kind::Histogram, None, histogram)
    };
    let written = text(timed, true);
    let lines: Vec<_> = written.lines().skip(2).collect();
    let id = "01".repeat(16);
    let wanted = [
        format!("h_bucket{{{IDS},le=\"0.5\"}} 1 1.5"),
        format!("h_bucket{{{IDS},le=\"1.0\"}} 3 1.5 # {{trace_id=\"{id}\"}} 0.7 2.0"),
        format!("h_bucket{{{IDS},le=\"+Inf\"}} 6 1.5 # {{trace_id=\"{id}\"}} 5.0 2.0"),
        format!("h_sum{{{IDS}}} 7.5 1.5"),
        format!("h_count{{{IDS}}} 6 1.5"),
        "# EOF".to_owned(),
    ];
    assert_eq!(lines, wanted);
}

#[test]
fn summaries_have_quantiles_and_exponential_histograms_no_buckets() {
    let summary = point(Value::Summary(Summary {
        count: 3,
        sum: 0.0,
        quantiles: vec![Quantile {
            quantile: 0.5,
            value: f64::NAN,
        }],
    }));
    let written = text(view("s", Kind::Summary, None, summary), false);
    let lines: Vec<_> = written.lines().skip(1).collect();
    let wanted = [
        "# TYPE s summary".to_owned(),
        format!("s{{{IDS},quantile=\"0.5\"}} NaN"),
        format!("s_sum{{{IDS}}} 0"),
        format!("s_count{{{IDS}}} 3"),
    ];
    assert_eq!(lines, wanted);
    let native = point(Value::Native(Native {
        count: 3,
        sum: 2.0,
        scale: 0,
        zero_count: 1,
        zero_threshold: 0.0,
        positive: Buckets {
            offset: 0,
            counts: vec![2],
        },
        negative: Buckets::default(),
    }));
    let written = text(view("e", Kind::Histogram, None, native), true);
    let lines: Vec<_> = written.lines().skip(2).collect();
    let wanted = [
        format!("e_bucket{{{IDS},le=\"+Inf\"}} 3"),
        format!("e_sum{{{IDS}}} 2.0"),
        format!("e_count{{{IDS}}} 3"),
        "# EOF".to_owned(),
    ];
    assert_eq!(lines, wanted);
}

#[test]
fn names_that_are_not_plain_are_quoted() {
    let written = write(
        &[view("a.b", Kind::Gauge, None, point(Value::Double(-1.0)))],
        false,
        Escaping::AllowUtf8,
    );
    let lines: Vec<_> = written.lines().skip(1).collect();
    let labels = r#"l="q\"\\\n","m.n"="""#;
    let wanted = [
        "# TYPE \"a.b\" gauge".to_owned(),
        format!("{{\"a.b\",{labels}}} -1"),
    ];
    assert_eq!(lines, wanted);
}

#[test]
fn numbers_are_written_as_go_writes_them() {
    for (value, wanted, open) in [
        (0.0, "0", "0.0"),
        (1.0, "1", "1.0"),
        (100_000.0, "100000", "100000.0"),
        (1e6, "1e+06", "1e+06"),
        (0.0001, "0.0001", "0.0001"),
        (0.000_012, "1.2e-05", "1.2e-05"),
        (-2.5e100, "-2.5e+100", "-2.5e+100"),
        (f64::INFINITY, "+Inf", "+Inf"),
        (f64::NEG_INFINITY, "-Inf", "-Inf"),
        (f64::NAN, "NaN", "NaN"),
    ] {
        assert_eq!(
            (number(value).as_str(), open_number(value).as_str()),
            (wanted, open)
        );
    }
}
