//! The metrics of load balancers, as the Collector has them, and the queues of their backends.

use std::sync::atomic::Ordering::Relaxed;

use super::Balancer;
use crate::run::metrics::{Kind, Sheet};
use crate::run::send::{BackendView, Backends as _};

pub(super) fn write(id: &str, balancer: &Balancer, page: &mut Sheet) {
    let of_resolver = [("exporter", id), ("resolver", balancer.resolver())];
    let name = "otelcol_loadbalancer_num_resolutions";
    let help = "times that backends were asked for";
    page.about(Kind::Counter, name, "{resolutions}", help);
    let counts = &balancer.counts;
    for (success, count) in [("true", &counts.resolved), ("false", &counts.failed)] {
        let [exporter, resolver] = of_resolver;
        let labels = [exporter, resolver, ("success", success)];
        page.point(&labels, count.load(Relaxed));
    }
    let backends = balancer.view();
    let name = "otelcol_loadbalancer_num_backends";
    page.about(Kind::Gauge, name, "{backends}", "backends in use");
    page.point(&of_resolver, backends.len() as u64);
    let name = "otelcol_loadbalancer_num_backend_updates";
    let help = "times that the backends were others than before";
    page.about(Kind::Counter, name, "{updates}", help);
    page.point(&of_resolver, counts.updates.load(Relaxed));
    for backend in &backends {
        describe(id, backend, page);
    }
}

/// Attempts to send to a backend, and the requests that wait for it. The Collector has no metric of the
/// requests that wait: its name is our own.
fn describe(id: &str, backend: &BackendView, page: &mut Sheet) {
    let [exporter, endpoint] = [("exporter", id), ("endpoint", &*backend.endpoint)];
    let attempts = &backend.attempts;
    let name = "otelcol_loadbalancer_backend_outcome";
    let help = "attempts to send, by their outcome";
    page.about(Kind::Counter, name, "{outcomes}", help);
    for (success, count) in [("true", attempts.succeeded()), ("false", attempts.failed())] {
        page.point(&[exporter, endpoint, ("success", success)], count);
    }
    let name = "otelcol_loadbalancer_backend_latency";
    let help = "milliseconds of attempts to send";
    page.about(Kind::Histogram, name, "ms", help);
    page.counted(&[exporter, endpoint], &attempts.times_ms);
    let name = "otelcol_loadbalancer_backend_queue_size";
    page.about(Kind::Gauge, name, "{batch}", "what waits for a backend");
    page.point(&[exporter, endpoint], backend.sender.fill().0);
}
