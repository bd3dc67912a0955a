//! Filters that a `filter` line adds (manual §9).

use super::arguments::Args;
use super::{Keyword, Places};
use crate::build::proxy::ProxyParser;
use crate::build::{bandwidth, compression, haproxy_traces, otel};

/// A filter, with the parser of its line.
pub type Filter = Keyword<ProxyParser>;

const fn not_yet(name: &'static str, doc: &'static str) -> Filter {
    Keyword::not_yet(name, Places::NONE, doc)
}

/// Every filter.
#[rustfmt::skip]
pub const KEYWORDS: &[Filter] = &[
    Keyword::yes("bwlim-in", Places::NONE, bandwidth::filter, "Limits the bandwidth of uploads."),
    Keyword::yes("bwlim-out", Places::NONE, bandwidth::filter, "Limits the bandwidth of downloads."),
    not_yet("cache", "Where the cache stands among the filters."),
    Keyword::yes("comp-req", Places::NONE, compression::filter_requests, "Compresses requests."),
    Keyword::yes("comp-res", Places::NONE, compression::filter_responses, "Compresses responses."),
    Keyword::yes("compression", Places::NONE, compression::filter, "Where compression stands among the filters; without this line, it is the last one."),
    not_yet("fcgi-app", "Where FastCGI stands among the filters."),
    Keyword::yes("opentelemetry", Places::NONE, otel::statement, "Spans, events and metrics of streams, as a file describes them."),
    Keyword::gone("opentracing", Places::NONE, "filter 'opentracing' was removed from HAProxy 3.5: 'filter opentelemetry' takes its place."),
    not_yet("spoe", "Sends streams' data to an agent."),
    Keyword::moot("trace", Places::NONE, "it prints the calls of HAProxy's own filters, which do not exist here", Args::Own(haproxy_traces::filter_trace), "Prints the calls of filters."),
];
