//! The attributes of series: default ones, and those that the settings name.

use std::ops::Range;

use otlp::scan::{Any, Attributes, Span};
use otlp::view::View;
use otlp::write;

use super::series::{ENTRY, entry};
use crate::config::components::connectors::dimension::Dimension;
use crate::config::components::connectors::span_metrics::SpanMetrics as Settings;

/// Field keys of attributes: of a resource, a span and an event.
const OF_RESOURCE: u32 = 1 << 3 | 2;
const OF_SPAN: u32 = 9 << 3 | 2;
const OF_EVENT: u32 = 3 << 3 | 2;

const INSTANCE: &str = "collector.instance.id";

/// A metric, for the attributes that only it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    Calls,
    Duration,
}

/// Which attributes there are.
pub struct Attributed {
    /// Those that are looked up: of all metrics, of calls, of durations, of events.
    dimensions: Vec<Named>,
    common: Range<usize>,
    calls: Range<usize>,
    duration: Range<usize>,
    events: Range<usize>,
    /// Whether `service.name`, `span.name`, `span.kind` and `status.code` are there.
    has: [bool; 4],
    /// `collector.instance.id`, as an entry; empty: it is not there.
    instance: Vec<u8>,
    scopes: Vec<String>,
    tells_sampling: bool,
}

struct Named {
    key: Vec<u8>,
    /// An encoded `AnyValue`.
    default: Option<Vec<u8>>,
}

impl Attributed {
    /// The default ones, and these dimensions.
    pub fn plain(dimensions: &[Dimension]) -> Attributed {
        Attributed {
            dimensions: dimensions.iter().map(Named::new).collect(),
            common: 0..dimensions.len(),
            calls: 0..0,
            duration: 0..0,
            events: 0..0,
            has: [true; 4],
            instance: Vec::new(),
            scopes: Vec::new(),
            tells_sampling: false,
        }
    }

    /// Of `span_metrics` in a collector with this instance identifier.
    pub fn new(settings: &Settings, instance_id: &str) -> Attributed {
        let mut dimensions = Vec::new();
        let mut add = |more: &[Dimension]| {
            let begin = dimensions.len();
            dimensions.extend(more.iter().map(Named::new));
            begin..dimensions.len()
        };
        let histogram = settings.histogram.as_ref();
        let common = add(&settings.dimensions);
        let calls = add(&settings.calls_dimensions);
        let duration = add(histogram.map_or(&[], |histogram| &histogram.dimensions));
        let events = add(settings.events.as_deref().unwrap_or_default());
        let has = |key: &str| !settings.excluded.iter().any(|excluded| excluded == key);
        let mut instance = Vec::new();
        if has(INSTANCE) {
            write::text_value(&mut instance, ENTRY, INSTANCE, instance_id);
        }
        Attributed {
            dimensions,
            common,
            calls,
            duration,
            events,
            has: ["service.name", "span.name", "span.kind", "status.code"].map(has),
            instance,
            scopes: settings.scopes.clone(),
            tells_sampling: settings.tells_sampling,
        }
    }
}

impl Named {
    fn new(dimension: &Dimension) -> Named {
        let default = dimension.default.as_ref().map(|text| {
            let mut value = Vec::new();
            write::bytes(&mut value, 1, text.as_bytes());
            value
        });
        Named {
            key: dimension.name.clone().into_bytes(),
            default,
        }
    }
}

/// The values of the attributes of one message by their places; each is read once.
type Values<'a> = Vec<Option<&'a [u8]>>;

/// Makes the attributes of series while a request is read.
pub struct Keys<'d, 'a> {
    attributed: &'d Attributed,
    of_resource: Values<'a>,
    of_span: Values<'a>,
    of_event: Values<'a>,
    service: Vec<u8>,
    scope: Vec<u8>,
    /// What all metrics of a span have besides what is looked up.
    fixed: Vec<u8>,
    key: Vec<u8>,
}

impl<'d, 'a> Keys<'d, 'a> {
    /// For one request.
    pub fn new(attributed: &'d Attributed) -> Keys<'d, 'a> {
        Keys {
            attributed,
            of_resource: Vec::new(),
            of_span: Vec::new(),
            of_event: Vec::new(),
            service: Vec::new(),
            scope: Vec::new(),
            fixed: Vec::new(),
            key: Vec::new(),
        }
    }

    /// The resource of what follows, and its `service.name`.
    pub fn resource(&mut self, message: &'a [u8], service: Any<'a>) {
        fill(&mut self.of_resource, self.attributed, message, OF_RESOURCE);
        self.service.clear();
        if self.attributed.has[0] {
            let text = match service {
                Any::Text(text) => text,
                _ => b"",
            };
            put_text(&mut self.service, "service.name", text);
        }
    }

    /// The scope of what follows.
    pub fn scope(&mut self, message: Option<View<'a>>) {
        self.scope.clear();
        let Some(message) = message else { return };
        let name = message.text("name");
        if !name.is_empty() && self.attributed.scopes.iter().any(|scope| *scope == name) {
            let (name, version) = (message.bytes("name"), message.bytes("version"));
            put_text(&mut self.scope, "span.instrumentation.scope.name", name);
            put_text(
                &mut self.scope,
                "span.instrumentation.scope.version",
                version,
            );
        }
    }

    /// The span of what follows, and whether it counts for several.
    pub fn span(&mut self, span: &Span<'a>, is_extrapolated: bool) {
        fill(&mut self.of_span, self.attributed, span.message, OF_SPAN);
        let [_, has_name, has_kind, has_status] = self.attributed.has;
        self.fixed.clear();
        self.fixed.extend_from_slice(&self.service);
        if has_name {
            put_text(&mut self.fixed, "span.name", span.name);
        }
        if has_kind {
            put_text(&mut self.fixed, "span.kind", kind(span.kind).as_bytes());
        }
        if has_status {
            let status = status(span.status).as_bytes();
            put_text(&mut self.fixed, "status.code", status);
        }
        self.fixed.extend_from_slice(&self.attributed.instance);
        self.fixed.extend_from_slice(&self.scope);
        if self.attributed.tells_sampling {
            let method = if is_extrapolated {
                "extrapolated"
            } else {
                "counted"
            };
            put_text(&mut self.fixed, "sampling.method", method.as_bytes());
        }
    }

    /// The attributes of a metric of the span, as a `KeyValueList`.
    pub fn of_span(&mut self, metric: Metric) -> &[u8] {
        self.of_event.clear();
        let own = match metric {
            Metric::Calls => &self.attributed.calls,
            Metric::Duration => &self.attributed.duration,
        };
        self.key([self.attributed.common.clone(), own.clone()])
    }

    /// Those of an event of the span.
    pub fn of_event(&mut self, message: &'a [u8]) -> &[u8] {
        fill(&mut self.of_event, self.attributed, message, OF_EVENT);
        self.key([
            self.attributed.common.clone(),
            self.attributed.events.clone(),
        ])
    }

    fn key(&mut self, ranges: [Range<usize>; 2]) -> &[u8] {
        self.key.clear();
        self.key.extend_from_slice(&self.fixed);
        for place in ranges.into_iter().flatten() {
            let named = &self.attributed.dimensions[place];
            let all = [&self.of_span, &self.of_event, &self.of_resource];
            let found = all.into_iter().find_map(|values| *values.get(place)?);
            if let Some(value) = found.or(named.default.as_deref()) {
                entry(&mut self.key, ENTRY, &named.key, value);
            }
        }
        &self.key
    }
}

/// Looks all attributes of a message up in one pass; the first of each counts.
fn fill<'a>(values: &mut Values<'a>, attributed: &Attributed, message: &'a [u8], field: u32) {
    values.clear();
    values.resize(attributed.dimensions.len(), None);
    if values.is_empty() {
        return;
    }
    for (key, value) in Attributes::new(message, field) {
        for (place, named) in values.iter_mut().zip(&attributed.dimensions) {
            if named.key == key && place.is_none() {
                *place = Some(value);
            }
        }
    }
}

fn put_text(out: &mut Vec<u8>, key: &str, text: &[u8]) {
    write::key_value(out, ENTRY, key.as_bytes(), |out| write::bytes(out, 1, text));
}

/// The names of kinds in OTLP; those of unknown kinds are empty, as in the Collector.
fn kind(kind: i32) -> &'static str {
    match kind {
        0 => "SPAN_KIND_UNSPECIFIED",
        1 => "SPAN_KIND_INTERNAL",
        2 => "SPAN_KIND_SERVER",
        3 => "SPAN_KIND_CLIENT",
        4 => "SPAN_KIND_PRODUCER",
        5 => "SPAN_KIND_CONSUMER",
        _ => "",
    }
}

fn status(code: i32) -> &'static str {
    match code {
        0 => "STATUS_CODE_UNSET",
        1 => "STATUS_CODE_OK",
        2 => "STATUS_CODE_ERROR",
        _ => "",
    }
}
