//! The metrics of load balancers, as the Collector has them, and the queues of their backends.

use std::sync::atomic::Ordering::Relaxed;

use super::Sheet;
use super::sheet::Kind;
use crate::run::send::Balancer;
use crate::run::start::View;

pub(super) fn write(view: &View, page: &mut Sheet) {
    if view.balancers.is_empty() {
        return;
    }
    resolutions(view, page);
    let name = "otelcol_loadbalancer_num_backends";
    page.about(Kind::Gauge, name, "{backends}", "backends in use");
    each(view, |id, balancer| {
        let labels = [("exporter", id), ("resolver", balancer.resolver())];
        page.point(&labels, balancer.view().len() as u64);
    });
    let name = "otelcol_loadbalancer_num_backend_updates";
    let help = "times that the backends were others than before";
    page.about(Kind::Counter, name, "{updates}", help);
    each(view, |id, balancer| {
        let labels = [("exporter", id), ("resolver", balancer.resolver())];
        page.point(&labels, balancer.counts.updates.load(Relaxed));
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
    let help = "times that backends were asked for";
    page.about(Kind::Counter, name, "{resolutions}", help);
    each(view, |id, balancer| {
        let counts = &balancer.counts;
        for (success, count) in [("true", &counts.resolved), ("false", &counts.failed)] {
            let labels = [
                ("exporter", id),
                ("resolver", balancer.resolver()),
                ("success", success),
            ];
            page.point(&labels, count.load(Relaxed));
        }
    });
}

fn outcomes(view: &View, page: &mut Sheet) {
    let name = "otelcol_loadbalancer_backend_outcome";
    let help = "attempts to send, by their outcome";
    page.about(Kind::Counter, name, "{outcomes}", help);
    each(view, |id, balancer| {
        for backend in balancer.view() {
            let attempts = &backend.attempts;
            for (success, count) in [("true", attempts.succeeded()), ("false", attempts.failed())] {
                let labels = [
                    ("exporter", id),
                    ("endpoint", &*backend.endpoint),
                    ("success", success),
                ];
                page.point(&labels, count);
            }
        }
    });
}

fn latencies(view: &View, page: &mut Sheet) {
    let name = "otelcol_loadbalancer_backend_latency";
    let help = "milliseconds of attempts to send";
    page.about(Kind::Histogram, name, "ms", help);
    each(view, |id, balancer| {
        for backend in balancer.view() {
            let labels = [("exporter", id), ("endpoint", &*backend.endpoint)];
            page.counted(&labels, &backend.attempts.times_ms);
        }
    });
}

/// What waits for each backend, under names of our own: the Collector has none.
fn queues(view: &View, page: &mut Sheet) {
    let name = "otelcol_loadbalancer_backend_queue_size";
    page.about(Kind::Gauge, name, "{batch}", "what waits for a backend");
    each(view, |id, balancer| {
        for backend in balancer.view() {
            let labels = [("exporter", id), ("endpoint", &*backend.endpoint)];
            page.point(&labels, backend.sender.fill().0);
        }
    });
}
