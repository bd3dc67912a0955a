//! `servicegraph`: requests between services, from the span of the client and that of the server.
//!
//! Spans are looked at when their batch is taken. A span waits for the other one of its request in a
//! store; requests with both, and those that have waited long enough, are counted.

mod store;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use export::clock::now_unix_ns;
use otlp::scan::{Any, Attributes, Malformed, Span, span};
use otlp::text::text_of;
use otlp::view::View;
use otlp::write;
use tokio::time::Instant;

use self::store::{Edge, Full, Key, Store};
use super::flush::{Flusher, Gather, To};
use super::series::{Count, ENTRY, Room, Shape, Table};
use super::span_metrics::durations::Durations;
use super::spans::check;
use super::{ConnectorDeps, StartConnector};
use crate::config::Signal;
use crate::config::components::connectors::service_graph::ServiceGraph as Settings;
use crate::run::consume::{Consumer, Does, FanOut, Permit, Refusal, Refused, refused};
use crate::run::data::Batch;
use crate::run::metrics::{Kind, Sheet};
use crate::run::part::PartName;

/// The scope of the metrics, as the Collector names it.
const SCOPE: &str = "traces_service_graph";
/// From the first spans to the metrics, where they are not handed on at an interval.
const SOON: Duration = Duration::from_secs(1);
/// A series without a request for so long is forgotten, as in the Collector.
const SERIES_IDLE_NS: u64 = 15 * 60 * 1_000_000_000;
/// The client of a request that came from outside.
const USER: &[u8] = b"user";
/// A server that no attribute names.
const UNKNOWN: &[u8] = b"unknown";
/// `SpanKind`
const SERVER: i32 = 2;
const CLIENT: i32 = 3;
const PRODUCER: i32 = 4;
const CONSUMER: i32 = 5;
/// `STATUS_CODE_ERROR`
const ERROR: i32 = 2;
/// `Resource.attributes`, `Span.attributes`
const OF_RESOURCE: u32 = 1 << 3 | 2;
const OF_SPAN: u32 = 9 << 3 | 2;

impl StartConnector for Settings {
    fn start(&self, deps: ConnectorDeps<'_>) -> Result<Vec<Arc<dyn Consumer>>, String> {
        let to = To {
            next: FanOut::of(deps.next),
            signal: Signal::Metrics,
            account: Arc::clone(deps.account),
        };
        let interval = match self.flush_interval_ns {
            0 => SOON,
            interval_ns => Duration::from_nanos(interval_ns),
        };
        let flusher = Flusher::start(deps.id, Graph::new(self), to, interval, deps.log);
        deps.parts.push(Arc::clone(&flusher) as _);
        Ok(vec![Arc::new(ServiceGraph { flusher })])
    }
}

/// See the module.
struct ServiceGraph {
    flusher: Arc<Flusher<Graph>>,
}

impl Consumer for ServiceGraph {
    fn reserve(&self, batch: Batch) -> Result<Box<dyn Permit>, Box<Refused>> {
        if let Err(fault) = check(&batch.bytes, false) {
            return refused(batch, Refusal::Malformed(fault.to_string()));
        }
        let flusher = Arc::clone(&self.flusher);
        Ok(Does::new(move || {
            let mut graph = flusher.gathered();
            let added = graph.add(&batch.bytes, Instant::now(), now_unix_ns());
            debug_assert!(added.is_ok(), "it was checked: {added:?}");
        }))
    }
}

/// Type of the connection of two services.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Connection {
    #[default]
    Unknown,
    MessagingSystem,
    Database,
    VirtualNode,
}

impl Connection {
    fn text(self) -> &'static str {
        match self {
            Connection::Unknown => "",
            Connection::MessagingSystem => "messaging_system",
            Connection::Database => "database",
            Connection::VirtualNode => "virtual_node",
        }
    }
}

/// Counts so far, and requests that wait for a span.
struct Graph {
    settings: Settings,
    store: Store,
    metrics: Metrics,
    /// Spans have come since the last request.
    is_new: bool,
    /// The time of the last request, in nanoseconds of the UNIX epoch.
    last_ns: u64,
    /// Spans that found no room, requests, and requests that waited in vain.
    dropped_spans: u64,
    edges: u64,
    expired: u64,
}

struct Metrics {
    requests: Table<Count>,
    failed: Table<Count>,
    server: Table<Durations>,
    client: Table<Durations>,
    room: Room,
}

impl Graph {
    fn new(settings: &Settings) -> Graph {
        let durations = || Table::new(Durations::new(&settings.buckets));
        Graph {
            store: Store::new(settings.items_max, Duration::from_nanos(settings.ttl_ns)),
            metrics: Metrics {
                requests: Table::new(Count::default()),
                failed: Table::new(Count::default()),
                server: durations(),
                client: durations(),
                room: Room::default(),
            },
            settings: settings.clone(),
            is_new: false,
            last_ns: 0,
            dropped_spans: 0,
            edges: 0,
            expired: 0,
        }
    }

    /// Looks at the spans of a request that was checked. As in the Collector, those of a resource
    /// without a service are passed over.
    fn add(&mut self, request: &[u8], now: Instant, now_ns: u64) -> Result<(), Malformed> {
        self.is_new = true;
        self.expire(now, now_ns);
        for message in View::request(Signal::Traces, request)?.all("resourceSpans") {
            let resource = message
                .one("resource")
                .map_or(&b""[..], |one| one.encoded());
            let service = Attributes::new(resource, OF_RESOURCE).get(b"service.name");
            let Some(service) = service else { continue };
            let around = Around {
                resource,
                service: text_of(service),
            };
            for scope in message.all("scopeSpans") {
                for one in scope.all("spans") {
                    self.span(&span(one.encoded(), &mut ())?, &around, now, now_ns);
                }
            }
        }
        Ok(())
    }

    fn span(&mut self, span: &Span<'_>, around: &Around<'_>, now: Instant, now_ns: u64) {
        let is_client = match span.kind {
            CLIENT | PRODUCER => true,
            SERVER | CONSUMER => false,
            _ => return,
        };
        let key = Key {
            trace_id: span.trace_id,
            // Both name the span of the client.
            span_id: id(if is_client {
                span.span_id
            } else {
                span.parent_span_id
            }),
        };
        let settings = &self.settings;
        let added = self.store.upsert(key, now, |edge| {
            edge.connection = match span.kind {
                PRODUCER | CONSUMER => Connection::MessagingSystem,
                _ => Connection::Unknown,
            };
            edge.is_failed |= span.status == ERROR;
            around.dimensions(settings, span, is_client, edge);
            let seconds = span.end_ns.saturating_sub(span.start_ns) as f64 / 1e9;
            if !is_client {
                (edge.server, edge.server_s) = (around.service.clone(), seconds);
                return;
            }
            (edge.client, edge.client_s) = (around.service.clone(), seconds);
            let own = |name: &String| attribute(span.message, OF_SPAN, name);
            edge.peer = settings.peer_attributes.iter().find_map(own);
            let either = |name: &String| around.attribute(span, name);
            if let Some(database) = settings.database_attributes.iter().find_map(either) {
                edge.connection = Connection::Database;
                (edge.server, edge.server_s) = (database, seconds);
            }
        });
        match added {
            Ok(added) => {
                self.edges += u64::from(added.is_new);
                if let Some(edge) = added.complete {
                    self.metrics.count(settings, &edge, "", now_ns);
                }
            }
            Err(Full) => self.dropped_spans += 1,
        }
    }

    /// Counts the requests that have waited long enough, as far as they have a virtual node.
    fn expire(&mut self, now: Instant, now_ns: u64) {
        while let Some((key, mut edge)) = self.store.expired(now) {
            self.expired += 1;
            if self.settings.peer_attributes.is_empty() {
                continue;
            }
            edge.connection = Connection::VirtualNode;
            let side = if edge.client.is_empty() && key.span_id == [0; 8] {
                edge.client = USER.to_vec();
                "client"
            } else if edge.server.is_empty() {
                edge.server = edge.peer.take().unwrap_or_else(|| UNKNOWN.to_vec());
                "server"
            } else {
                continue;
            };
            self.metrics.count(&self.settings, &edge, side, now_ns);
        }
    }
}

/// Resource of a span.
struct Around<'a> {
    resource: &'a [u8],
    service: Vec<u8>,
}

impl Around<'_> {
    /// An attribute of the resource, or else of the span, as a text.
    fn attribute(&self, span: &Span<'_>, name: &str) -> Option<Vec<u8>> {
        let of_resource = attribute(self.resource, OF_RESOURCE, name);
        of_resource.or_else(|| attribute(span.message, OF_SPAN, name))
    }

    fn dimensions(&self, settings: &Settings, span: &Span<'_>, is_client: bool, edge: &mut Edge) {
        for name in &settings.dimensions {
            if let Some(value) = self.attribute(span, name) {
                let side = if is_client { "client" } else { "server" };
                edge.dimension(format!("{side}_{name}").into_bytes(), value);
            }
        }
    }
}

fn attribute(message: &[u8], key: u32, name: &str) -> Option<Vec<u8>> {
    let value: Option<Any<'_>> = Attributes::new(message, key).get(name.as_bytes());
    value.map(text_of)
}

/// A span's identifier; zero where there is none.
fn id(bytes: &[u8]) -> [u8; 8] {
    bytes.try_into().unwrap_or_default()
}

impl Metrics {
    /// Counts a request. `side` is the one without a span; empty: both have one.
    fn count(&mut self, settings: &Settings, edge: &Edge, side: &str, now_ns: u64) {
        let key = key(settings, edge, side);
        let room = &mut self.room;
        if let Some(series) = self.requests.series(&key, 0, room, now_ns) {
            series.value.add(1);
        }
        if edge.is_failed
            && let Some(series) = self.failed.series(&key, 0, room, now_ns)
        {
            series.value.add(1);
        }
        for (table, seconds) in [
            (&mut self.server, edge.server_s),
            (&mut self.client, edge.client_s),
        ] {
            if let Some(series) = table.series(&key, 0, room, now_ns) {
                series.value.add(seconds, 1);
            }
        }
    }
}

/// The attributes of a request's series, as a `KeyValueList`.
fn key(settings: &Settings, edge: &Edge, side: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut text = |name: &[u8], value: &[u8]| {
        write::key_value(&mut out, ENTRY, name, |out| write::bytes(out, 1, value));
    };
    text(b"client", &edge.client);
    text(b"server", &edge.server);
    text(b"connection_type", edge.connection.text().as_bytes());
    for (name, value) in edge.dimensions() {
        text(name, value);
    }
    if settings.tells_virtual_node {
        text(b"virtual_node", side.as_bytes());
    }
    write::key_value(&mut out, ENTRY, b"failed", |out| {
        write::uint(out, 2, edge.is_failed.into());
    });
    out
}

impl Gather for Graph {
    fn requests(&mut self, now_ns: u64) -> Vec<(Vec<u8>, u64)> {
        let expired = self.expired;
        self.expire(Instant::now(), now_ns);
        self.is_new |= self.expired > expired;
        let is_new = std::mem::take(&mut self.is_new);
        if self.settings.flush_interval_ns == 0 && !is_new {
            return Vec::new();
        }
        let before_ns = now_ns.saturating_sub(SERIES_IDLE_NS);
        let told_ns = now_ns.saturating_sub(self.settings.offset_ns);
        let last_ns = std::mem::replace(&mut self.last_ns, told_ns);
        let shape = |name, unit| Shape {
            name,
            unit,
            is_delta: false,
            last_ns,
            now_ns: told_ns,
        };
        let Metrics {
            requests,
            failed,
            server,
            client,
            room,
        } = &mut self.metrics;
        requests.expire(before_ns, room);
        failed.expire(before_ns, room);
        server.expire(before_ns, room);
        client.expire(before_ns, room);
        let (mut request, mut points) = (Vec::new(), 0);
        write::message(&mut request, 1, |out| {
            write::message(out, 2, |out| {
                write::message(out, 1, |out| write::bytes(out, 1, SCOPE.as_bytes()));
                points += requests.write(&shape("traces_service_graph_request_total", ""), out);
                let shape_failed = shape("traces_service_graph_request_failed_total", "");
                points += failed.write(&shape_failed, out);
                points += server.write(&shape("traces_service_graph_request_server", "s"), out);
                points += client.write(&shape("traces_service_graph_request_client", "s"), out);
            });
        });
        if points == 0 {
            return Vec::new();
        }
        vec![(request, points)]
    }

    fn repeats(&self) -> bool {
        true
    }

    /// As in the Collector.
    fn describe(&mut self, name: &PartName, sheet: &mut Sheet) {
        for (metric, help, count) in [
            (
                "otelcol_connector_servicegraph_dropped_spans",
                "spans whose requests found no room",
                self.dropped_spans,
            ),
            (
                "otelcol_connector_servicegraph_total_edges",
                "requests that were seen",
                self.edges,
            ),
            (
                "otelcol_connector_servicegraph_expired_edges",
                "requests that waited for a span in vain",
                self.expired,
            ),
        ] {
            sheet.about(Kind::Counter, metric, "1", help);
            sheet.point(&[("connector", &name.id)], count);
        }
        sheet.about(
            Kind::Gauge,
            "spangate_connector_servicegraph_waiting_edges",
            "{request}",
            "requests that wait for a span",
        );
        sheet.point(&[("connector", &name.id)], self.store.count() as u64);
    }
}
