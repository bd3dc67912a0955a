//! What the filter `opentelemetry` says of its faults, and to whom.

use crate::traces::traced;

const GET: &str = "c1 > GET /a HTTP/1.1|host: h||";
const OK: &str = "HTTP/1.1 200 OK|content-length: 2||";
/// `local0`, as `log … format priority` writes it.
const WARNING: &str = "log <132>[OTEL]: [f]";
const ERROR: &str = "log <131>[OTEL]: [f]";
const ORPHAN: &str = "span 'child' is not started: its parent 'gone' is neither an open span nor an extracted context";
const BINARY: &str = "attribute 'bin' of span 'root' is left out: its value is binary";

/// A filter with these lines in its instrumentation, whose requests each have two faults.
fn faulty(lines: &str) -> String {
    format!(
        "otel-instrumentation i
 config otel.yml
 scopes start request
 {lines}
otel-scope start
 span root root
 attribute bin path,sha1
 otel-event on-stream-start
otel-scope request
 span child parent gone
 span gone2
 otel-event on-frontend-http-request
otel-scope never
 span gone parent root
"
    )
}

fn request() -> String {
    format!("{GET}\ns1 ok\ns1 <~ GET /a HTTP/1.1|host: h|\ns1 > {OK}hi\nc1 < {OK}hi\nquiet")
}

fn again() -> String {
    format!("{GET}\ns1 <~ GET /a HTTP/1.1|host: h|\ns1 > {OK}hi\nc1 < {OK}hi\nquiet")
}

#[test]
fn each_cause_is_told_once_in_a_while() {
    let (first, second) = (request(), again());
    let script = format!(
        "{first}\n{WARNING} {BINARY}\n{WARNING} {ORPHAN}\nnolog\n{second}\n{second}\nnolog
         wait 4000\n{second}\nwait 4000\n{second}\nwait 4000\n{second}
         {WARNING} {BINARY} (8 more suppressed)\n{WARNING} {ORPHAN}\nnolog"
    );
    let log = "log 127.0.0.1:514 format priority local0";
    let out = traced("soft", &faulty(log), "no log", &script);
    assert_eq!(
        out.tree().iter().filter(|span| **span == ">root").count(),
        6
    );
    assert_eq!(out.counters.soft_errors, 12);
    assert_eq!(out.counters.lines_suppressed, 8);
    assert_eq!(out.counters.attached, 6);
}

#[test]
fn a_hard_error_is_an_error_and_ends_the_work() {
    let log =
        "log 127.0.0.1:514 format priority local0\n option hard-errors\n option dontlog-normal";
    let script = format!("{}\n{ERROR} {BINARY}\nnolog", request());
    let out = traced("hard", &faulty(log), "no log", &script);
    assert_eq!(out.tree(), [">root"]);
    assert_eq!((out.counters.hard_errors, out.counters.soft_errors), (1, 0));
}

#[test]
fn nothing_is_said_where_nobody_listens() {
    let quiet = [
        ("no target", ""),
        (
            "errors only",
            "log 127.0.0.1:514 format priority local0\n option dontlog-normal",
        ),
        ("a level", "log 127.0.0.1:514 format priority local0 err"),
    ];
    for (name, lines) in quiet {
        let out = traced(
            name,
            &faulty(lines),
            "no log",
            &format!("{}\nnolog", request()),
        );
        assert_eq!(out.counters.soft_errors, 2, "{name}");
    }
}

#[test]
fn measurements_that_are_none() {
    let otel = "otel-instrumentation i
 config otel.yml
 scopes request
 log 127.0.0.1:514 format priority local0
otel-scope request
 instrument gauge_int size value path
 instrument cnt_int count value int(1)
 instrument update size
 instrument update count attr k path,sha1
 otel-event on-frontend-http-request
";
    let script = format!(
        "{}\n{WARNING} instrument 'size' records nothing: its value is not a number
         {WARNING} instrument 'count' records nothing: its attribute 'k' is binary\nnolog",
        request()
    );
    let out = traced("instruments", otel, "no log", &script);
    assert_eq!(out.counters.soft_errors, 2);
}

#[test]
fn attributes_of_links_and_log_records() {
    let otel = "otel-instrumentation i
 config otel.yml
 scopes start
 log 127.0.0.1:514 format priority local0
otel-scope start
 span root root
 span child parent root
 link root attr of path,sha1
 log-record info attr on path,sha1 attr n int(1) str(said)
 otel-event on-frontend-http-request
";
    let script = format!(
        "{}\n{WARNING} attribute 'of' of span 'child' is left out: its value is binary
         {WARNING} attribute 'on' of a log record of scope 'start' is left out: its value is binary\nnolog",
        request()
    );
    let out = traced("details", otel, "no log", &script);
    assert_eq!(out.counters.soft_errors, 2);
}

#[test]
fn more_text_than_a_stream_may_have() {
    let long = "x".repeat(1000);
    let attributes: String = (0..1100)
        .map(|number| format!(" attribute k{number} str({long})\n"))
        .collect();
    let otel = format!(
        "otel-instrumentation i
 config otel.yml
 scopes start
 log 127.0.0.1:514 format priority local0
otel-scope start
 span root root
{attributes} otel-event on-frontend-http-request
"
    );
    let script = format!(
        "{}\n{WARNING} texts of a stream are left empty: it has more than 1 MiB of them\nnolog",
        request()
    );
    let out = traced("texts", &otel, "no log", &script);
    assert_eq!(out.counters.soft_errors, 1);
}
