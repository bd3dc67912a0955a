//! Measures queries over 100,000 traces: `cargo run --release -p spangate-traces --example
//! queries`.
#![expect(clippy::print_stdout, reason = "it tells what it measured")]

use std::time::Instant;

use otlp::write;
use spangate_traces::{HeatMapQuery, Limits, Stage, Store, TraceQuery};
use tail::settings::{Policy, PolicyKind, StatusCodes, TailSampling};

const TRACES: u64 = 100_000;
const SPANS: u64 = 10;
const BEGIN_MS: u64 = 1_700_000_000_000;

fn text(out: &mut Vec<u8>, field: u32, key: &str, value: &str) {
    write::message(out, field, |out| {
        write::bytes(out, 1, key.as_bytes());
        write::message(out, 2, |out| write::bytes(out, 1, value.as_bytes()));
    });
}

/// A request with one service's spans of a hundred traces.
fn request(first: u64, service: u64) -> Vec<u8> {
    let mut out = Vec::new();
    write::message(&mut out, 1, |out| {
        write::message(out, 1, |out| {
            text(out, 1, "service.name", &format!("service-{service}"));
            text(out, 1, "host.name", "a-host-of-some-name");
        });
        write::message(out, 2, |out| {
            for trace in first..first + 100 {
                for number in (0..SPANS).filter(|number| number % 5 == service) {
                    write::message(out, 2, |out| span(out, trace, number));
                }
            }
        });
    });
    out
}

fn span(out: &mut Vec<u8>, trace: u64, number: u64) {
    let random = trace.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let id = [random.to_be_bytes(), trace.to_be_bytes()].concat();
    let start_ns = (BEGIN_MS + trace) * 1_000_000 + number * 100_000;
    write::bytes(out, 1, &id);
    write::bytes(out, 2, &(trace << 8 | number | 1 << 60).to_be_bytes());
    if number > 0 {
        write::bytes(out, 4, &(trace << 8 | 1 << 60).to_be_bytes());
    }
    write::bytes(out, 5, format!("GET /route/{}", trace % 40).as_bytes());
    write::uint(out, 6, 2);
    write::fixed64(out, 7, start_ns);
    write::fixed64(out, 8, start_ns + (random >> 44) * 1000);
    text(out, 9, "http.route", &format!("/route/{}", trace % 40));
    text(
        out,
        9,
        "user_agent.original",
        "a browser of some name, version 1.0",
    );
    text(out, 9, "url.path", "/route/of/some/length/17");
    if trace.is_multiple_of(50) {
        write::message(out, 15, |out| write::uint(out, 3, 2));
    }
}

#[expect(clippy::disallowed_methods, reason = "it measures")]
fn timed<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let begin = Instant::now();
    let result = work();
    println!("{what:<24} {:8.2} ms", begin.elapsed().as_secs_f64() * 1e3);
    result
}

fn main() {
    let store = Store::new(Limits {
        bytes_max: 4 << 30,
        age_max_ms: u64::MAX,
    });
    let requests: Vec<_> = (0..TRACES / 100)
        .flat_map(|batch| (0..5).map(move |service| request(batch * 100, service)))
        .collect();
    let now_ms = BEGIN_MS + TRACES;
    timed("add all", || {
        requests
            .iter()
            .for_each(|request| store.add(request, Stage::Seen, now_ms));
    });
    timed("add all again", || {
        requests
            .iter()
            .for_each(|request| store.add(request, Stage::Kept, now_ms));
    });
    let held = store.held_now(now_ms);
    println!(
        "{} traces, {} spans, {} bytes: {} a span",
        held.traces,
        held.spans,
        held.bytes,
        held.bytes / held.spans
    );
    let query = |pairs: &[(&str, &str)]| TraceQuery::from_pairs(pairs.iter().copied());
    for pairs in [
        &[][..],
        &[("service", "service-3"), ("route", "/route/7")],
        &[("name", "*/route/1*"), ("min_ms", "500"), ("error", "1")],
        &[("service", "nobody")],
    ] {
        let list = timed(&format!("list {}", pairs.len()), || {
            store.list(&query(pairs).expect("a query"), now_ms)
        });
        println!("  {} match", list.matched);
    }
    timed("heat map", || {
        store.heat_map(&HeatMapQuery::default(), now_ms)
    });
    timed("services", || store.services(now_ms));
    let id = store.list(&TraceQuery::default(), now_ms).traces[0]
        .id
        .clone();
    let id = spangate_traces::trace_id(&id).expect("an identifier");
    timed("one trace", || store.trace(&id));
    let errors = StatusCodes {
        error: true,
        ..StatusCodes::default()
    };
    let condition = PolicyKind::OttlCondition {
        span: vec!["IsMatch(attributes[\"url.path\"], \"^/route/.*/17$\")".to_owned()],
        span_event: Vec::new(),
        error_mode: Default::default(),
    };
    let policy = |name: &str, kind| Policy {
        name: name.to_owned(),
        kind,
    };
    let settings = TailSampling {
        policies: vec![
            policy("errors", PolicyKind::StatusCode(errors)),
            policy("condition", condition),
        ],
        ..TailSampling::default()
    };
    let run = timed("dry run", || store.dry_run(&settings, now_ms));
    let run = run.expect("good policies");
    println!("  {} of {} traces kept", run.kept, run.traces);
}
