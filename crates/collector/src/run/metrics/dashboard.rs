//! What the trace store of the dashboard holds.

use export::clock::now_unix_ms;
use traces::answer::HeldNow;

use super::sheet::Kind;
use super::{Sheet, View};

type Value = fn(&HeldNow) -> u64;

const GAUGES: [(&str, &str, &str, Value); 4] = [
    (
        "spangate_dashboard_held_bytes",
        "By",
        "bytes that the traces of the dashboard take",
        |held| held.bytes,
    ),
    (
        "spangate_dashboard_limit_bytes",
        "By",
        "bytes that they may take",
        |held| held.bytes_max,
    ),
    (
        "spangate_dashboard_traces",
        "{traces}",
        "traces of the dashboard",
        |held| held.traces,
    ),
    (
        "spangate_dashboard_spans",
        "{spans}",
        "their spans",
        |held| held.spans,
    ),
];

const COUNTERS: [(&str, &str, Value); 2] = [
    (
        "spangate_dashboard_left_out_spans",
        "spans that their traces had no room for",
        |held| held.left_out,
    ),
    (
        "spangate_dashboard_unreadable_spans",
        "spans that could not be read",
        |held| held.unreadable,
    ),
];

pub(super) fn write(view: &View, page: &mut Sheet) {
    let Some(store) = &view.traces else {
        return;
    };
    let held = store.held_now(now_unix_ms());
    for (name, unit, help, value) in GAUGES {
        page.about(Kind::Gauge, name, unit, help);
        page.point(&[], value(&held));
    }
    for (name, help, value) in COUNTERS {
        page.about(Kind::Counter, name, "{spans}", help);
        page.point(&[], value(&held));
    }
}
