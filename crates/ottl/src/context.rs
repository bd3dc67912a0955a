//! Contexts: what statements and conditions are evaluated for.

use otlp::Signal;
use std::fmt;

/// The subject of conditions and statements; paths without a prefix are its.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Context {
    /// A resource.
    Resource,
    /// A scope.
    Scope,
    /// A span.
    Span,
    /// An event of a span.
    SpanEvent,
    /// A metric.
    Metric,
    /// A data point of a metric.
    DataPoint,
    /// An exemplar of a data point.
    Exemplar,
    /// A log record.
    Log,
}

impl Context {
    /// All contexts, each before those that are within it.
    pub const ALL: [Context; 8] = [
        Context::Resource,
        Context::Scope,
        Context::Span,
        Context::SpanEvent,
        Context::Metric,
        Context::DataPoint,
        Context::Exemplar,
        Context::Log,
    ];

    /// The contexts of a signal, each before those that are within it.
    #[must_use]
    pub const fn of(signal: Signal) -> &'static [Context] {
        use Context::{DataPoint, Exemplar, Log, Metric, Resource, Scope, Span, SpanEvent};
        match signal {
            Signal::Traces => &[Resource, Scope, Span, SpanEvent],
            Signal::Metrics => &[Resource, Scope, Metric, DataPoint, Exemplar],
            Signal::Logs => &[Resource, Scope, Log],
        }
    }

    /// The context around this one.
    #[must_use]
    pub const fn outer(self) -> Option<Context> {
        match self {
            Context::Resource => None,
            Context::Scope => Some(Context::Resource),
            Context::Span | Context::Metric | Context::Log => Some(Context::Scope),
            Context::SpanEvent => Some(Context::Span),
            Context::DataPoint => Some(Context::Metric),
            Context::Exemplar => Some(Context::DataPoint),
        }
    }

    /// Whether paths of another context can be read in this one: it is the same, or around it.
    #[must_use]
    pub fn sees(self, other: Context) -> bool {
        self == other || self.outer().is_some_and(|outer| outer.sees(other))
    }

    /// The prefix of its paths.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Context::Resource => "resource",
            Context::Scope => "scope",
            Context::Span => "span",
            Context::SpanEvent => "spanevent",
            Context::Metric => "metric",
            Context::DataPoint => "datapoint",
            Context::Exemplar => "exemplar",
            Context::Log => "log",
        }
    }
}

impl fmt::Display for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
