//! The exporter `prometheus`: it holds the last value of each series, and serves them on a page.

mod accumulate;
mod escape;
mod exporter;
mod labels;
mod names;
mod native;
mod negotiate;
mod point;
mod proto;
mod remote_write;
mod store;
mod text;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use export::client::Outcome;
use otlp::view::View;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::config::Signal;
use crate::config::components::exporters::prometheus::PrometheusExporter;
use crate::config::components::shared::http::HttpServer;
use crate::run::data::Batch;
use crate::run::log::Shown;
pub(in crate::run) use names::UNITS;
pub(in crate::run) use remote_write::STALE;

use labels::{Labeller, Labels, Resource};
use negotiate::{Format, Negotiated};
use point::{Data, Incoming, Kind, Point, Value};
use store::{
    HELD_BYTES_MAX, HELP_BYTES_MAX, Limits, Metric, NAME_BYTES_MAX, Refusal, SERIES_MAX, Sample,
    Snapshot, Store,
};

/// Pages that are being sent at a time: a client that does not read keeps one in memory.
const PAGES_MAX: usize = 16;
/// Characters of a metric's name that a message tells.
const TOLD_CHARS_MAX: usize = 100;

/// The series of an exporter.
pub struct Exposition {
    /// The server of its page.
    server: HttpServer,
    send_timestamps: bool,
    open_metrics: bool,
    labeller: Labeller,
    store: Mutex<Store>,
    /// Of [`PAGES_MAX`].
    pages: Arc<Semaphore>,
}

/// A page that is being sent.
struct Page {
    body: Vec<u8>,
    _permit: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for Page {
    fn as_ref(&self) -> &[u8] {
        &self.body
    }
}

/// Outcome for a series.
struct Change {
    metric: Metric,
    labels: Labels,
    /// None: it has no value any more.
    incoming: Option<Incoming>,
}

/// Points that are not taken.
#[derive(Default)]
struct Rejected {
    points: u64,
    /// Of the first one.
    why: String,
}

impl Rejected {
    fn add(&mut self, metric: &str, why: &str) {
        if self.points == 0 {
            let told: String = metric.chars().take(TOLD_CHARS_MAX).collect();
            self.why = format!("metric '{}': {why}", Shown(&told));
        }
        self.points += 1;
    }
}

impl Exposition {
    pub(super) fn new(settings: &PrometheusExporter) -> Arc<Exposition> {
        let expiration = Duration::from_nanos(settings.metric_expiration_ns);
        let limits = Limits {
            series_max: SERIES_MAX,
            held_bytes_max: HELD_BYTES_MAX,
        };
        Arc::new(Exposition {
            server: settings.server.clone(),
            send_timestamps: settings.send_timestamps,
            open_metrics: settings.open_metrics,
            labeller: Labeller::new(&settings.naming),
            store: Mutex::new(Store::new(expiration, limits, Instant::now())),
            pages: Arc::new(Semaphore::new(PAGES_MAX)),
        })
    }

    /// Takes the data points of a batch.
    pub(super) fn take(&self, batch: &Batch) -> Outcome {
        let request = match View::request(Signal::Metrics, &batch.bytes) {
            Ok(request) => request,
            Err(fault) => return Outcome::Refused(format!("it is malformed: {fault}")),
        };
        let mut rejected = Rejected::default();
        for one in request.all("resourceMetrics") {
            let resource = one.one("resource");
            let resource = self.labeller.resource(resource.as_ref());
            // Made before the lock is taken: the page and the other senders take it too.
            let mut changes = Vec::new();
            for scope in one.all("scopeMetrics") {
                self.read(&scope, &resource, &mut changes, &mut rejected);
            }
            self.apply(&resource, changes, &mut rejected);
        }
        Outcome::Taken {
            rejected: rejected.points,
            message: rejected.why,
        }
    }

    /// Reads the metrics of a scope.
    fn read(
        &self,
        scope: &View<'_>,
        resource: &Resource,
        changes: &mut Vec<Change>,
        rejected: &mut Rejected,
    ) {
        let of_scope = self.labeller.scope(scope);
        for metric in scope.all("metrics") {
            let Some(data) = Data::of(&metric) else {
                continue;
            };
            let told = metric.text("name");
            let named = self.metric(&metric, &data);
            for point in data.points() {
                let change = || {
                    let metric = named.clone()?;
                    let scope = of_scope.as_ref().map_err(|why| *why)?;
                    let labels = self.labeller.series(&point, resource, scope, metric.kind)?;
                    Ok(Change {
                        metric,
                        labels,
                        incoming: incoming(&point, &data)?,
                    })
                };
                match change() {
                    Ok(change) => changes.push(change),
                    Err(why) => rejected.add(&told, why),
                }
            }
        }
    }

    /// Metadata of a metric on the page.
    fn metric(&self, metric: &View<'_>, data: &Data<'_>) -> Result<Metric, &'static str> {
        let (name, unit) = (metric.text("name"), metric.text("unit"));
        if name.len().max(unit.len()) > NAME_BYTES_MAX {
            return Err("its name or its unit is too long");
        }
        let name = self.labeller.namer.metric(&name, &unit, data.instrument);
        let help = metric.text("description");
        let help_bytes = help.floor_char_boundary(HELP_BYTES_MAX);
        Ok(Metric {
            name: name.ok_or("nothing is left of its name")?.into(),
            kind: data.instrument.kind(),
            help: help[..help_bytes].into(),
            unit: self.labeller.namer.unit(&unit).map(Into::into),
        })
    }

    fn apply(&self, resource: &Resource, changes: Vec<Change>, rejected: &mut Rejected) {
        let now = Instant::now();
        let mut store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        let target = { resource.target.as_ref() }.and_then(|target| store.target(target));
        for change in changes {
            let metric = change.metric;
            let Some(incoming) = change.incoming else {
                store.remove(&metric.name, &change.labels);
                continue;
            };
            let put = store.put(&metric, change.labels, target.as_ref(), incoming, now);
            match put {
                Ok(()) => {}
                Err(Refusal::Type) => {
                    rejected.add(
                        &metric.name,
                        "there is a metric of this name and another type",
                    );
                }
                Err(Refusal::Full) => rejected.add(&metric.name, &full()),
            }
        }
    }

    /// The media type of the page and the page, for a client that accepts this. None while too many
    /// pages are being sent.
    pub(in crate::run) fn page(&self, accept: &str) -> Option<(String, Bytes)> {
        let permit = Arc::clone(&self.pages).try_acquire_owned().ok()?;
        let negotiated = Negotiated::by(accept, self.open_metrics);
        let snapshot = {
            let mut store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
            store.snapshot(Instant::now())
        };
        let views = self.views(snapshot);
        let escaping = negotiated.escaping;
        let body = match negotiated.format {
            Format::Text => text::write(&views, false, escaping).into_bytes(),
            Format::OpenMetrics(_) => text::write(&views, true, escaping).into_bytes(),
            Format::Protobuf => proto::write(&views, escaping),
        };
        let page = Page {
            body,
            _permit: permit,
        };
        Some((negotiated.content_type(), Bytes::from_owner(page)))
    }

    /// The metrics that are shown, with `target_info` among them.
    fn views(&self, snapshot: Snapshot) -> Vec<store::View> {
        let mut views = snapshot.metrics;
        for view in &mut views {
            view.has_times = self.send_timestamps;
        }
        let name: Arc<str> = self.labeller.namer.target_info().into();
        let place = views.binary_search_by(|view| view.metric.name.cmp(&name));
        // A metric of the data may have this name: it is shown instead.
        if let Err(place) = place {
            views.insert(place, target_info(name, snapshot.targets));
        }
        views
    }
}

/// Reads a point; none: its series has no value any more.
///
/// # Errors
/// Why the page cannot show it.
fn incoming(point: &View<'_>, data: &Data<'_>) -> Result<Option<Incoming>, &'static str> {
    if point::has_no_value(point) {
        return Ok(None);
    }
    Ok(Some(Incoming {
        point: Point::read(point, data.instrument)?,
        temporality: data.temporality,
    }))
}

fn target_info(name: Arc<str>, targets: Vec<Arc<Labels>>) -> store::View {
    let point = Arc::new(Point {
        start_ns: 0,
        time_ns: 0,
        value: Value::Int(1),
        exemplars: Vec::new(),
    });
    let series = targets.into_iter().map(|labels| Sample {
        labels,
        point: Arc::clone(&point),
    });
    store::View {
        metric: Metric {
            name,
            kind: Kind::Gauge,
            help: "Target metadata".into(),
            unit: None,
        },
        series: series.collect(),
        has_times: false,
    }
}

fn full() -> String {
    format!(
        "no room for its series: an exporter holds {SERIES_MAX}, and {} MiB, at most",
        HELD_BYTES_MAX >> 20
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::components::exporters::prometheus::{Naming, ResourceLabels, Translation};
    use crate::config::components::shared::address::{Family, Listen};

    #[tokio::test]
    async fn clients_that_do_not_read_keep_few_pages() {
        let listen = Listen::Tcp {
            host: String::new(),
            port: 0,
            family: Family::Any,
        };
        let exposition = Exposition::new(&PrometheusExporter {
            server: HttpServer::plain(listen),
            send_timestamps: false,
            metric_expiration_ns: 0,
            open_metrics: true,
            naming: Naming {
                namespace: String::new(),
                const_labels: Vec::new(),
                const_labels_first: true,
                translation: Translation {
                    suffixes: true,
                    utf8: false,
                },
                scope_labels: true,
                resource_labels: ResourceLabels::default(),
            },
        });
        let accept = "application/openmetrics-text";
        let mut sent: Vec<_> = (0..PAGES_MAX).map(|_| exposition.page(accept)).collect();
        let is_empty = |page: &Option<(String, Bytes)>| {
            { page.as_ref() }.is_some_and(|(_, body)| body == "# EOF\n")
        };
        assert!(sent.iter().all(is_empty));
        assert!(exposition.page(accept).is_none());
        sent.pop();
        assert!(exposition.page(accept).is_some());
    }
}
