//! `servicegraph`: requests between services as metrics, from pairs of spans.

use super::span_metrics::{BOUNDS_NS, Buckets};
use super::{Connector, ConnectorSettings, TRACES_TO_METRICS};
use crate::config::components::{Entry, Parse, TRACES, name};
use crate::config::options::{Kind, Opt, Section, opt};

/// Settings of the search for requests between services.
#[derive(Clone, Debug, PartialEq)]
pub struct ServiceGraph {
    /// Buckets of the durations, in seconds.
    pub buckets: Buckets,
    /// Attributes of spans or resources that metrics have, with `client_` or `server_` before them.
    pub dimensions: Vec<String>,
    /// Requests that wait for their second span.
    pub items_max: usize,
    /// The time that a request waits for its second span.
    pub ttl_ns: u64,
    /// Attributes of client spans that name a server without spans; empty: there are none.
    pub peer_attributes: Vec<String>,
    /// Whether metrics say which side had no span.
    pub tells_virtual_node: bool,
    /// Time between two requests of metrics; 0: soon after spans.
    pub flush_interval_ns: u64,
    /// By how much metrics are older than they are.
    pub offset_ns: u64,
    /// Attributes of client spans that name a database.
    pub database_attributes: Vec<String>,
}

impl ConnectorSettings for ServiceGraph {}

/// Requests that a store may hold.
const ITEMS_MAX: i64 = 1 << 20;
/// Buckets of an exponential histogram.
const SIZE_MAX: i64 = 16384;
const NO_CACHE: &str =
    "series without a request for 15 minutes are forgotten when metrics are handed on";
const NO_LOOP: &str = "requests expire when spans come and when metrics are handed on";

#[rustfmt::skip]
const STORE: &[Opt] = &[
    opt("ttl", Kind::Duration, "2s", "how long a span waits for the other one"),
    opt("max_items", Kind::Int(0, ITEMS_MAX), "1000", "requests that wait for a span; spans of further ones are dropped"),
];
#[rustfmt::skip]
const OPTIONS: &[Opt] = &[
    opt("latency_histogram_buckets", Kind::Durations, "", "upper bounds of durations; 2ms to 15s where it is not written"),
    opt("exponential_histogram_max_size", Kind::Int(0, SIZE_MAX), "0", "exponential histograms of so many buckets instead; 0: none"),
    opt("dimensions", Kind::Texts, "", "attributes of the resource or the span that metrics have, as `client_…` and `server_…`"),
    opt("store", Kind::Section(&[STORE]), "", "requests that wait for the second of their spans"),
    opt("virtual_node_peer_attributes", Kind::Texts, "peer.service,db.name,db.system", "attributes of a client span that name a server which has no spans; an empty list: such requests are not told"),
    opt("virtual_node_extra_label", Kind::Flag, "false", "an attribute `virtual_node`: the side that has no spans"),
    opt("metrics_flush_interval", Kind::Duration, "60s", "time between two requests of metrics; 0: within a second of spans"),
    opt("metrics_timestamp_offset", Kind::Duration, "0s", "by how much the times of metrics are earlier"),
    opt("database_name_attributes", Kind::Texts, "db.name", "attributes that name a database: such a client span is a request without a second span"),
    opt("database_name_attribute", Kind::Text, "", "one such attribute").deprecated("write 'database_name_attributes'"),
    opt("cache_loop", Kind::Duration, "1m", "time between two looks for old series").no_effect(NO_CACHE),
    opt("store_expiration_loop", Kind::Duration, "2s", "time between two looks for requests that have waited too long").no_effect(NO_LOOP),
    opt("metrics_exporter", Kind::Text, "", "where metrics went").no_effect("pipelines say where they go"),
];

pub(crate) const ENTRY: Entry = Entry {
    names: &[name("servicegraph"), name("service_graph")],
    doc: "counts and measures requests between services",
    takes: TRACES,
    carries: TRACES,
    options: &[OPTIONS],
    parse: Parse::Connector {
        pairs: TRACES_TO_METRICS,
        parse,
    },
};

fn parse(section: &Section<'_>) -> Connector {
    let store = section.section("store");
    let databases = match section.text_unless_empty("database_name_attribute") {
        Some(name) if section.written("database_name_attributes").is_none() => vec![name],
        _ => section.texts("database_name_attributes"),
    };
    Connector::new(ServiceGraph {
        buckets: buckets(section),
        dimensions: section.texts("dimensions"),
        items_max: store.int("max_items"),
        ttl_ns: store.duration_ns("ttl"),
        peer_attributes: section.texts("virtual_node_peer_attributes"),
        tells_virtual_node: section.flag("virtual_node_extra_label"),
        flush_interval_ns: section.duration_ns("metrics_flush_interval"),
        offset_ns: section.duration_ns("metrics_timestamp_offset"),
        database_attributes: databases,
    })
}

fn buckets(section: &Section<'_>) -> Buckets {
    let size: usize = section.int("exponential_histogram_max_size");
    let is_written = section.written("latency_histogram_buckets").is_some();
    if is_written && size > 0 {
        // The text of the Collector.
        section.fault("use either `latency_histogram_buckets` or `exponential_histogram_max_size`");
    }
    if size > 0 {
        return Buckets::Exponential(size);
    }
    let bounds = if is_written {
        section.durations_ns("latency_histogram_buckets")
    } else {
        BOUNDS_NS.to_vec()
    };
    if !bounds.is_sorted_by(|a, b| a < b) {
        section.error("latency_histogram_buckets", "must rise");
    }
    Buckets::Explicit(bounds.iter().map(|bound| *bound as f64 / 1e9).collect())
}
