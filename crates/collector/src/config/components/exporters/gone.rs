//! Exporters that the Collector had, and what to write in their place.

use crate::config::components::{EVERY, Entry, Parse, TRACES, name};

pub(crate) const JAEGER: Entry = Entry {
    names: &[name("jaeger")],
    doc: "removed from the Collector",
    takes: TRACES,
    carries: &[],
    options: &[],
    parse: Parse::Refused("Jaeger takes OTLP itself: use the exporter 'otlp' with its port 4317"),
};

pub(crate) const OPENCENSUS: Entry = Entry {
    names: &[name("opencensus")],
    doc: "removed from the Collector",
    takes: EVERY,
    carries: &[],
    options: &[],
    parse: Parse::Refused("OpenCensus has ended: use the exporter 'otlp'"),
};
