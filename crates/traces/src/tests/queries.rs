//! Matches of queries, and the content of answers.

use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, KeyValueList};
use opentelemetry_proto::tonic::trace::v1::span::{Event, Link};
use serde_json::json;

use super::model::{NOW_MS, attribute, failed, http, id, request, span, string};
use crate::store::BYTES_MIN;
use crate::{Decision, HeatMapQuery, Limits, Stage, Store, TraceQuery};

/// Three traces: a fast one, one with a second service, and one that failed.
fn shop() -> Store {
    let store = Store::new(Limits::default());
    let front = vec![
        http(span(0, 1, 0, 0, 5), "/cart", 200),
        http(span(1, 1, 0, 1000, 80), "/cart", 200),
        failed(http(span(2, 1, 0, 2000, 300), "/pay", 503)),
    ];
    store.add(&request("front", front), Stage::Seen, NOW_MS);
    let stock = vec![span(1, 2, 1, 1010, 60)];
    store.add(&request("stock", stock), Stage::Seen, NOW_MS + 1);
    store
}

fn found(store: &Store, pairs: &[(&str, &str)]) -> Vec<u64> {
    let query = TraceQuery::from_pairs(pairs.iter().copied()).unwrap();
    let list = store.list(&query, NOW_MS + 3000);
    assert_eq!(list.matched, list.traces.len() as u64);
    let number = |id: &str| u64::from_str_radix(&id[16..], 16).unwrap() - 1;
    list.traces.iter().map(|row| number(&row.id)).collect()
}

#[test]
fn lists_are_filtered() {
    let store = shop();
    assert_eq!(found(&store, &[]), [2, 1, 0], "the newest first");
    assert_eq!(found(&store, &[("service", "stock")]), [1]);
    assert_eq!(found(&store, &[("service", "nobody")]), [0_u64; 0]);
    assert_eq!(found(&store, &[("route", "/cart")]), [1, 0]);
    assert_eq!(found(&store, &[("name", "GET *")]), [2, 1, 0]);
    // Both conditions must hold for one span: the service of one and the route of another do not
    // match.
    assert_eq!(
        found(&store, &[("service", "stock"), ("route", "/cart")]),
        [0_u64; 0]
    );
    assert_eq!(found(&store, &[("status", "5xx")]), [2]);
    assert_eq!(found(&store, &[("error", "1")]), [2]);
    assert_eq!(found(&store, &[("error", "0")]), [1, 0]);
    assert_eq!(found(&store, &[("min_ms", "80")]), [2, 1]);
    assert_eq!(found(&store, &[("max_ms", "79.9")]), [0]);
    let since = (NOW_MS + 1000).to_string();
    assert_eq!(found(&store, &[("since", &since)]), [2, 1]);
    assert_eq!(found(&store, &[("until", &since)]), [0]);
    let limited = TraceQuery::from_pairs([("limit", "1")]).unwrap();
    let list = store.list(&limited, NOW_MS + 3000);
    assert_eq!((list.traces.len(), list.matched), (1, 3));
    assert_eq!((list.held.traces, list.held.spans), (3, 4));
}

#[test]
fn decisions_are_shown() {
    let store = shop();
    assert_eq!(found(&store, &[("kept", "1")]), [0_u64; 0]);
    let decision = |trace, kept, policy| Decision {
        id: id(trace),
        kept,
        policy,
    };
    let decisions = [
        decision(0, false, None),
        decision(1, true, Some("slow")),
        decision(2, true, Some("errors")),
        // An unknown trace that is not kept: nothing is stored.
        decision(8, false, Some("drop")),
        // An unknown trace whose spans arrive later.
        decision(9, true, Some("late")),
    ];
    store.decided(decisions, NOW_MS);
    assert_eq!(found(&store, &[("kept", "1")]), [2, 1]);
    assert_eq!(found(&store, &[("kept", "0")]), [0]);
    assert_eq!(found(&store, &[("policy", "errors")]), [2]);
    assert_eq!(store.services(NOW_MS).policies, ["errors", "late", "slow"]);
    assert_eq!(store.trace(&id(9)), None, "none of its spans came yet");
    store.add(
        &request("front", vec![span(9, 1, 0, 0, 1)]),
        Stage::Kept,
        NOW_MS,
    );
    let trace = store.trace(&id(9)).unwrap();
    assert_eq!(
        (trace.kept, trace.policy.as_deref()),
        (Some(true), Some("late"))
    );
    store.check();
}

#[test]
fn spans_that_come_again_are_held_once() {
    let store = shop();
    let before = store.held_now(NOW_MS);
    let again = vec![
        http(span(1, 1, 0, 1000, 80), "/cart", 200),
        span(1, 3, 1, 1020, 10),
    ];
    store.add(&request("front", again), Stage::Kept, NOW_MS);
    let held = store.held_now(NOW_MS);
    assert_eq!((held.traces, held.spans), (before.traces, before.spans + 1));
    assert_eq!(store.trace(&id(1)).unwrap().kept, Some(true));
    // A span without an identifier is not recognised; many spans in one request are compared with a
    // set.
    let mut nameless = span(3, 1, 0, 0, 1);
    nameless.span_id.clear();
    let mut many = vec![nameless.clone(), nameless];
    many.extend((1..50).chain(1..50).map(|number| span(3, number, 0, 0, 1)));
    store.add(&request("front", many), Stage::Seen, NOW_MS);
    assert_eq!(store.trace(&id(3)).unwrap().spans.len(), 2 + 49);
    store.check();
}

#[test]
fn a_trace_is_told_with_all_that_it_has() {
    let store = Store::new(Limits::default());
    let value = |value| AnyValue { value: Some(value) };
    let mut root = failed(http(span(0, 1, 0, 0, 7), "/a", 500));
    root.trace_state = "ot=th:8".to_owned();
    root.attributes.extend([
        attribute("big", Value::IntValue(i64::MAX)),
        attribute("ratio", Value::DoubleValue(0.5)),
        attribute("none", Value::DoubleValue(f64::NAN)),
        attribute("raw", Value::BytesValue(vec![0xab, 1])),
        attribute("yes", Value::BoolValue(true)),
        attribute(
            "list",
            Value::ArrayValue(ArrayValue {
                values: vec![value(Value::IntValue(1)), AnyValue::default()],
            }),
        ),
        attribute(
            "map",
            Value::KvlistValue(KeyValueList {
                values: vec![string("k", "v")],
            }),
        ),
        string("yes", "the first counts"),
    ]);
    root.events = vec![Event {
        time_unix_nano: root.start_time_unix_nano + 1_500_000,
        name: "retry".to_owned(),
        attributes: vec![string("server", "s1")],
        ..Event::default()
    }];
    root.links = vec![Link {
        trace_id: vec![0xaa; 16],
        span_id: vec![0xbb; 8],
        attributes: vec![string("why", "batch")],
        ..Link::default()
    }];
    let spans = vec![span(0, 2, 1, 2, 3), root];
    store.add(&request("shop", spans), Stage::Kept, NOW_MS);
    let trace = serde_json::to_value(store.trace(&id(0)).unwrap()).unwrap();
    assert_eq!(trace["id"], "00000000000000000000000000000001");
    assert_eq!(trace["kept"], true);
    assert_eq!(trace["duration_ms"], 7.0);
    let root = &trace["spans"][0];
    let expected = json!({
        "id": "0000000000000001", "parent": null, "service": "shop", "name": "GET /a", "kind": "server",
        "start_ms": NOW_MS as f64, "offset_ms": 0.0, "duration_ms": 7.0,
        "status": {"code": "error", "message": "it broke"},
        "attributes": {
            "http.route": "/a", "http.response.status_code": 500, "big": "9223372036854775807", "ratio": 0.5,
            "none": "NaN", "raw": "ab01", "yes": true, "list": [1, null], "map": {"k": "v"},
        },
        "events": [{"name": "retry", "time_ms": NOW_MS as f64 + 1.5, "offset_ms": 1.5, "attributes": {"server": "s1"}}],
        "links": [{"trace": "aa".repeat(16), "span": "bb".repeat(8), "attributes": {"why": "batch"}}],
        "resource": {"service.name": "shop"}, "scope": {"name": "tests", "version": "1"}, "trace_state": "ot=th:8",
    });
    assert_eq!(*root, expected);
    let child = &trace["spans"][1];
    assert_eq!(child["parent"], "0000000000000001");
    assert_eq!(
        (&child["offset_ms"], &child["kind"]),
        (&json!(2.0), &json!("client"))
    );
}

#[test]
fn the_root_names_its_trace_whenever_it_comes() {
    let store = Store::new(Limits::default());
    store.add(
        &request("b", vec![span(0, 3, 2, 50, 1)]),
        Stage::Seen,
        NOW_MS,
    );
    store.add(
        &request("a", vec![span(0, 2, 1, 10, 60)]),
        Stage::Seen,
        NOW_MS,
    );
    let row = |store: &Store| store.list(&TraceQuery::default(), NOW_MS).traces.remove(0);
    assert_eq!(
        (row(&store).service, row(&store).name),
        ("a".into(), "span 2".into())
    );
    let root = http(span(0, 1, 0, 20, 5), "/x", 404);
    store.add(&request("front", vec![root]), Stage::Seen, NOW_MS);
    let row = row(&store);
    assert_eq!(
        (&*row.service, row.route.as_deref(), row.status),
        ("front", Some("/x"), Some(404))
    );
    assert_eq!(
        (row.start_ms, row.duration_ms, row.spans),
        ((NOW_MS + 10) as f64, 60.0, 3)
    );
}

#[test]
fn services_and_heat_map() {
    let store = shop();
    let services = serde_json::to_value(store.services(NOW_MS)).unwrap();
    let expected = json!({
        "services": [
            {"name": "front", "names": ["GET /cart", "GET /pay"], "routes": ["/cart", "/pay"]},
            {"name": "stock", "names": ["span 2"], "routes": []},
        ],
        "policies": [],
    });
    assert_eq!(services, expected);
    let pairs = [("columns", "3"), ("rows", "2"), ("service", "front")];
    let query = HeatMapQuery::from_pairs(pairs).unwrap();
    let map = store.heat_map(&query, NOW_MS + 3000);
    assert_eq!(
        (map.since, map.until, map.matched),
        (NOW_MS, NOW_MS + 3000, 3)
    );
    // 5, 80 and 300 ms, in rows from 1 to 31.6 ms and from there to 1000 ms.
    assert_eq!(map.columns, [[1, 0], [0, 1], [0, 1]]);
    assert_eq!(map.errors, [[0, 0], [0, 0], [0, 1]]);
}

#[test]
fn the_oldest_goes_first() {
    let limits = Limits {
        bytes_max: BYTES_MIN,
        age_max_ms: 1000,
    };
    let store = Store::new(limits);
    let long = |trace| {
        let mut span = span(trace, 1, 0, 0, 1);
        span.attributes = vec![string("pad", &"x".repeat(20_000))];
        request("s", vec![span])
    };
    for trace in 0..200 {
        store.add(&long(trace), Stage::Seen, NOW_MS + trace);
        let held = store.held_now(NOW_MS + trace);
        assert!(held.bytes <= BYTES_MIN, "{held:?}");
    }
    store.check();
    let held = store.held_now(NOW_MS + 199);
    assert!((40..60).contains(&held.traces), "{held:?}");
    assert_eq!(held.oldest_ms, Some(NOW_MS + 200 - held.traces));
    assert_eq!(store.trace(&id(0)), None);
    assert!(store.trace(&id(199)).is_some());
    // The maximum age.
    assert_eq!(store.held_now(NOW_MS + 1199).traces, 1);
    let empty = store.held_now(NOW_MS + 1200);
    assert_eq!((empty.traces, empty.spans, empty.bytes), (0, 0, 0));
    store.check();
}

#[test]
fn one_trace_takes_a_part_of_the_store_and_no_more() {
    let store = Store::new(Limits {
        bytes_max: 8 << 20,
        ..Limits::default()
    });
    for round in 0..30 {
        let spans = (0..1000).map(|number| {
            let mut span = span(0, round * 1000 + number, 0, 0, 1);
            span.attributes = vec![string("pad", &"x".repeat(if round < 2 { 500 } else { 10 }))];
            span
        });
        store.add(&request("s", spans.collect()), Stage::Seen, NOW_MS);
    }
    store.check();
    let held = store.held_now(NOW_MS);
    assert!(held.bytes < 3 << 20, "{held:?}");
    assert_eq!(held.spans + held.left_out, 30_000);
    assert_eq!(store.trace(&id(0)).unwrap().left_out, held.left_out);
}

#[test]
fn what_cannot_be_read_is_counted() {
    let store = Store::new(Limits::default());
    let mut wrong = span(0, 1, 0, 0, 1);
    wrong.trace_id = vec![1; 5];
    let good = span(1, 1, 0, 0, 1);
    store.add(
        &request("s", vec![wrong, good.clone()]),
        Stage::Seen,
        NOW_MS,
    );
    let mut cut = request("s", vec![good]);
    cut.truncate(cut.len() - 1);
    store.add(&cut, Stage::Seen, NOW_MS);
    let held = store.held_now(NOW_MS);
    assert_eq!((held.spans, held.unreadable), (1, 2));
}

#[test]
fn smaller_limits_count_at_once() {
    let store = Store::new(Limits::default());
    for trace in 0..5000 {
        let spans = (1..5).map(|number| span(trace, number, 0, 0, 1)).collect();
        store.add(&request("s", spans), Stage::Seen, NOW_MS);
    }
    assert!(store.held_now(NOW_MS).bytes > BYTES_MIN);
    let limits = Limits {
        bytes_max: 0,
        ..Limits::default()
    };
    store.limit(limits, NOW_MS);
    let held = store.held_now(NOW_MS);
    assert_eq!(held.bytes_max, BYTES_MIN);
    assert!(held.bytes <= BYTES_MIN && held.traces > 100, "{held:?}");
}
