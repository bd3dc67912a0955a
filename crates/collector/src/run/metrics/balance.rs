//! The metrics of load balancers, as the Collector has them, and the queues of their backends.

use std::sync::atomic::Ordering::Relaxed;

use super::Sheet;
use crate::run::send::{BOUNDS_MS, Balancer};
use crate::run::start::View;

pub(super) fn write(view: &View, page: &mut Sheet) {
    if view.balancers.is_empty() {
        return;
    }
    resolutions(view, page);
    let name = "otelcol_loadbalancer_num_backends";
    page.about(name, "gauge", "backends in use");
    each(view, |id, balancer| {
        let labels = [("exporter", id), ("resolver", balancer.resolver())];
        page.line(name, &labels, balancer.view().len() as u64);
    });
    let name = "otelcol_loadbalancer_num_backend_updates";
    page.about(
        name,
        "counter",
        "times that the backends were others than before",
    );
    each(view, |id, balancer| {
        let labels = [("exporter", id), ("resolver", balancer.resolver())];
        page.line(name, &labels, balancer.counts.updates.load(Relaxed));
    });
    outcomes(view, page);
    latencies(view, page);
    queues(view, page);
}

fn each(view: &View, mut work: impl FnMut(&str, &Balancer)) {
    for (id, balancer) in &view.balancers {
        work(id, balancer);
    }
}

fn resolutions(view: &View, page: &mut Sheet) {
    let name = "otelcol_loadbalancer_num_resolutions";
    page.about(name, "counter", "times that backends were asked for");
    each(view, |id, balancer| {
        let counts = &balancer.counts;
        for (success, count) in [("true", &counts.resolved), ("false", &counts.failed)] {
            let labels = [
                ("exporter", id),
                ("resolver", balancer.resolver()),
                ("success", success),
            ];
            page.line(name, &labels, count.load(Relaxed));
        }
    });
}

fn outcomes(view: &View, page: &mut Sheet) {
    let name = "otelcol_loadbalancer_backend_outcome";
    page.about(name, "counter", "attempts to send, by their outcome");
    each(view, |id, balancer| {
        for backend in balancer.view() {
            let tally = backend.attempts.tally();
            for (success, count) in [("true", tally.succeeded), ("false", tally.failed)] {
                let labels = [
                    ("exporter", id),
                    ("endpoint", &*backend.endpoint),
                    ("success", success),
                ];
                page.line(name, &labels, count);
            }
        }
    });
}

fn latencies(view: &View, page: &mut Sheet) {
    let name = "otelcol_loadbalancer_backend_latency";
    page.about(name, "histogram", "milliseconds of attempts to send");
    each(view, |id, balancer| {
        for backend in balancer.view() {
            let tally = backend.attempts.tally();
            let labels = [("exporter", id), ("endpoint", &*backend.endpoint)];
            let mut count = 0;
            let bounds = BOUNDS_MS.iter().map(u64::to_string);
            for (bound, bucket) in bounds.chain(["+Inf".to_owned()]).zip(tally.counts) {
                count += bucket;
                let labels = [labels[0], labels[1], ("le", &*bound)];
                page.line(&format!("{name}_bucket"), &labels, count);
            }
            page.line(&format!("{name}_sum"), &labels, tally.sum_ms);
            page.line(&format!("{name}_count"), &labels, count);
        }
    });
}

/// What waits for each backend, under names of our own: the Collector has none.
fn queues(view: &View, page: &mut Sheet) {
    let name = "otelcol_loadbalancer_backend_queue_size";
    page.about(name, "gauge", "what waits for a backend");
    each(view, |id, balancer| {
        for backend in balancer.view() {
            let labels = [("exporter", id), ("endpoint", &*backend.endpoint)];
            page.line(name, &labels, backend.sender.fill().0);
        }
    });
}
