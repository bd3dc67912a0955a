//! The metrics of processors: what passes each, and what each tells itself.

use super::Sheet;
use super::sheet::Kind;
use crate::run::start::View;

pub(super) fn write(view: &View, page: &mut Sheet) {
    passages(view, page);
    for passage in &view.processors {
        (passage.describe)(passage, page);
    }
    budget(view, page);
    for one in &view.parts {
        one.part.describe(&one.name, page);
    }
}

/// What goes in and comes out of each.
fn passages(view: &View, page: &mut Sheet) {
    for (name, is_in) in [("incoming", true), ("outgoing", false)] {
        let help = format!("records that are {name}");
        let name = format!("otelcol_processor_{name}_items");
        page.about(Kind::Counter, &name, "{item}", &help);
        for passage in &view.processors {
            let count = if is_in {
                passage.incoming()
            } else {
                passage.outgoing()
            };
            let signal = passage.signal.to_string();
            let labels = [
                ("otel_signal", &*signal),
                ("processor", &*passage.processor),
            ];
            page.point(&labels, count);
        }
    }
}

/// What waits for decisions may take a part of the memory; of interest where something decides.
fn budget(view: &View, page: &mut Sheet) {
    if view.parts.iter().all(|one| one.part.pending().is_none()) {
        return;
    }
    let gauges = [
        (
            "spangate_tail_budget_bytes",
            "bytes that waiting traces may take",
            view.budget.bytes_max(),
        ),
        (
            "spangate_tail_held_bytes",
            "bytes that they take",
            view.budget.used_bytes(),
        ),
    ];
    for (name, help, value) in gauges {
        page.about(Kind::Gauge, name, "By", help);
        page.point(&[], value);
    }
}
