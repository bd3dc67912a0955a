//! Messages that are read by the names of their fields, and the statuses of gRPC.

use export::rpc::Status;
use otlp::Signal;
use otlp::scan::{MetricKind, log, metric, metric_frame, point};
use otlp::view::View;

/// A request of any signal: what is accepted is read to its end, and so is what is within it.
pub fn otlp_view(data: &[u8]) {
    if let Ok(request) = View::request(Signal::Traces, data) {
        let scopes = request
            .all("resourceSpans")
            .flat_map(|one| one.all("scopeSpans"));
        for span in scopes.flat_map(|one| one.all("spans")) {
            let _ = (span.text("name"), span.number("startTimeUnixNano"));
            span.all("events").for_each(|event| attributes(&event));
            attributes(&span);
        }
    }
    if let Ok(request) = View::request(Signal::Metrics, data) {
        let scopes = request
            .all("resourceMetrics")
            .flat_map(|one| one.all("scopeMetrics"));
        for metric in scopes.flat_map(|one| one.all("metrics")) {
            for kind in ["sum", "histogram", "exponentialHistogram"] {
                for point in metric.all(kind).flat_map(|data| data.all("dataPoints")) {
                    attributes(&point);
                    numbers(kind, &point, data.len());
                }
            }
        }
    }
    records(data);
    if let Ok(value) = otlp::view::value(data) {
        let _ = otlp::text::text_of(value);
    }
}

/// A record of any kind: what is accepted is read to its end, and a metric without its data points
/// gets them back.
fn records(data: &[u8]) {
    if let Ok(log) = log(data) {
        let _ = otlp::text::text_of(log.body());
        assert!(log.attributes().count() <= data.len());
    }
    for kind in MetricKind::ALL {
        if let Ok(point) = point(kind.point(), data) {
            let lists = [
                point.bucket_counts(),
                point.positive().counts(),
                point.negative().counts(),
            ];
            assert!(lists.iter().all(|list| list.len() <= data.len()));
            assert!(point.quantiles().count() <= data.len());
        }
    }
    let Ok(whole) = metric(data) else {
        return;
    };
    let mut frame = Vec::new();
    metric_frame(data, &mut frame).expect("a metric");
    let around = metric(&frame).expect("a metric without its data points");
    assert_eq!((around.kind, around.points().count()), (whole.kind, 0));
    assert!(frame.len() <= data.len() && around.name == whole.name);
}

fn attributes(message: &View<'_>) {
    for (_, value) in message.attributes("attributes") {
        let _ = otlp::text::text_of(value);
    }
}

/// No list is longer than the bytes that it came in.
fn numbers(kind: &str, point: &View<'_>, bytes: usize) {
    let lists = match kind {
        "histogram" => vec![
            point.numbers("bucketCounts"),
            point.numbers("explicitBounds"),
        ],
        "exponentialHistogram" => {
            let sides = ["positive", "negative"].into_iter();
            let sides = sides.filter_map(|side| point.one(side));
            sides.map(|side| side.numbers("bucketCounts")).collect()
        }
        _ => Vec::new(),
    };
    assert!(lists.iter().all(|list| list.len() <= bytes));
}

/// A status: what is read is written and read again as the same.
pub fn grpc_status(data: &[u8]) {
    if let Ok(status) = Status::decode(data) {
        assert_eq!(Status::decode(&status.encode()), Ok(status));
    }
}
