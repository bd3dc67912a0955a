//! The metrics of exporters and of their queues: each counts its own copy of the records, whatever
//! others do.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::sheet::Kind;
use super::{Sheet, items, records};
use crate::config::Signal;
use crate::run::send::{Counts, Sender};
use crate::run::start::View;

type Named = (String, Signal, Arc<Sender>);

pub(super) fn write(view: &View, page: &mut Sheet) {
    let all = all(view);
    outcomes(&all, page);
    queues(&all, page);
    for (id, backends) in &view.backends {
        backends.describe(id, page);
    }
    for (id, _, sender) in &all {
        sender.describe(id, page);
    }
}

/// All exporters with a queue by their ids. Backends of load balancers are exporters, by the names
/// that the Collector gives them.
fn all(view: &View) -> Vec<Named> {
    let mut all = view.senders.clone();
    for (_, backends) in &view.backends {
        let backends = backends.view().into_iter();
        all.extend(backends.map(|one| (one.exporter, one.signal, one.sender)));
    }
    all
}

fn outcomes(all: &[Named], page: &mut Sheet) {
    type Count = fn(&Counts) -> &AtomicU64;
    let counters: [(&str, &str, Count); 3] = [
        ("sent", "taken by the back end", |counts| &counts.sent),
        ("send_failed", "not taken by the back end", |counts| {
            &counts.failed
        }),
        (
            "enqueue_failed",
            "lost for lack of room while other exporters took theirs",
            |counts| &counts.passed_by,
        ),
    ];
    for signal in Signal::ALL {
        let what = records(signal);
        for (name, help, count) in counters {
            let name = format!("otelcol_exporter_{name}_{what}");
            let help = format!("{what} {help}");
            page.about(Kind::Counter, &name, items(signal), &help);
            for (id, _, sender) in all.iter().filter(|(_, own, _)| *own == signal) {
                let mut labels = vec![("exporter", id.as_str())];
                if let Some((address, port)) = sender.server() {
                    labels.push(("server_address", address));
                    labels.push(("server_port", port));
                }
                page.point(&labels, count(sender.counts()).load(Relaxed));
            }
        }
    }
}

fn queues(all: &[Named], page: &mut Sheet) {
    type Value = fn(&Sender) -> u64;
    let gauges: [(&str, &'static str, &str, Value); 4] = [
        ("queue_size", "{batch}", "what waits", |sender| {
            sender.fill().0
        }),
        (
            "queue_capacity",
            "{batch}",
            "the most that may wait",
            |sender| sender.fill().1,
        ),
        ("queue_bytes", "By", "bytes that wait", |sender| {
            sender.depth().1
        }),
        (
            "in_flight_requests",
            "{request}",
            "requests that are being sent or wait for the next attempt",
            |sender| sender.counts().in_flight.load(Relaxed),
        ),
    ];
    for (name, unit, help, value) in gauges {
        let name = format!("otelcol_exporter_{name}");
        page.about(Kind::Gauge, &name, unit, help);
        for (id, signal, sender) in all {
            let signal = signal.to_string();
            let labels = [("data_type", &*signal), ("exporter", id)];
            page.point(&labels, value(sender));
        }
    }
}
