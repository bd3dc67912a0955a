//! The paths that there are, and what each is in OTLP's messages (`trace.proto`, `resource.proto`,
//! `common.proto`).

use super::exemplar::ExemplarRoot;
use super::log::LogRoot;
use super::metric::MetricRoot;
use super::point::PointRoot;
use crate::eval::Record;
use crate::value::ENTRIES;
use otlp::scan::{RESOURCE_ATTRIBUTES, SCOPE_ATTRIBUTES};

/// `Span.attributes`
pub const SPAN_ATTRIBUTES: u32 = 9 << 3 | 2;
/// `Span.Event.attributes`
pub const EVENT_ATTRIBUTES: u32 = 3 << 3 | 2;

/// `Span.events`
pub const SPAN_EVENTS: u32 = 11 << 3 | 2;
/// `Span.links`
pub const SPAN_LINKS: u32 = 13 << 3 | 2;

/// Where a path begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Root {
    SpanAttributes,
    ResourceAttributes,
    ScopeAttributes,
    EventAttributes,
    Cache,
    TraceState,
    Name,
    Kind,
    KindText,
    KindDeprecatedText,
    StartNs,
    EndNs,
    Start,
    End,
    StatusCode,
    StatusMessage,
    Flags,
    Events,
    Links,
    TraceId,
    TraceIdText,
    SpanId,
    SpanIdText,
    ParentId,
    ParentIdText,
    /// A varint of a message, by its field's number.
    Count(Message, u32),
    ScopeName,
    ScopeVersion,
    EventName,
    EventNs,
    EventTime,
    EventIndex,
    ResourceSchema,
    ScopeSchema,
    ClientAddress,
    ClientMetadata,
    ClientAuth,
    Log(LogRoot),
    Metric(MetricRoot),
    Point(PointRoot),
    Exemplar(ExemplarRoot),
}

/// How statements may use a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Read only.
    Fixed,
    /// A value that can be set.
    Scalar,
    /// A map.
    Map,
    /// A value of any type.
    Any,
}

/// What a path reads, and statements write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// `Resource`
    Resource,
    /// `InstrumentationScope`
    Scope,
    /// `Span`
    Span,
    /// `Span.Event`
    Event,
    /// `LogRecord`
    Log,
    /// `Metric`; in the context of a data point, without its data points.
    Metric,
    /// A data point of any kind; in the context of an exemplar, without its exemplars.
    Point,
    /// `Exemplar`
    Exemplar,
    /// The text `ResourceSpans.schema_url`
    ResourceSchema,
    /// The text `ScopeSpans.schema_url`
    ScopeSchema,
    /// A `KeyValueList` that lives as long as statements are run on one subject.
    Cache,
}

/// How a path is written. The numbers are those of fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Attributes under this field key.
    Attributes(u32),
    /// `string`
    Text(u32),
    /// The whole message is a text.
    Whole,
    /// `uint32`, `int32` or an enum.
    Number(u32),
    /// `fixed32`
    Fixed32(u32),
    /// `fixed64`: nanoseconds, as a number.
    Nanoseconds(u32),
    /// The same, as a time.
    Time(u32),
    /// `bytes` of this length.
    Id(u32, usize),
    /// The same in hexadecimal digits.
    IdText(u32, usize),
    /// An enum whose names these are; with what stands before each in upper case.
    Kind(u32, &'static str),
    /// `Status.code` within this field.
    StatusCode(u32),
    /// `Status.message` within this field.
    StatusMessage(u32),
    /// The whole of it or one member.
    TraceState(u32),
    /// An `AnyValue`.
    Any(u32),
    /// The same as a text.
    AnyText(u32),
    /// `fixed64`, as a number.
    Fixed64(u32),
    /// `double`, or `optional double`.
    Double(u32),
    /// `sint32`
    Sint32(u32),
    /// `repeated fixed64`
    Fixed64List(u32),
    /// `repeated double`
    DoubleList(u32),
    /// `as_double`, of the field's number, of a number point or exemplar.
    NumberDouble(u32),
    /// The same where `as_int` is set.
    NumberInt(u32),
    /// `Buckets.offset` within this field.
    BucketOffset(u32),
    /// `Buckets.bucket_counts` within this field.
    BucketCounts(u32),
    /// `aggregation_temporality` within this field.
    Temporality(u32),
    /// `is_monotonic` within this field.
    Monotonic(u32),
    /// The subject has no such field: nothing is written.
    Nothing,
    /// It cannot be written.
    Fixed,
}

pub const SPAN: &[(&str, Root)] = &[
    ("attributes", Root::SpanAttributes),
    ("cache", Root::Cache),
    ("name", Root::Name),
    ("kind", Root::Kind),
    ("kind.string", Root::KindText),
    ("kind.deprecated_string", Root::KindDeprecatedText),
    ("start_time_unix_nano", Root::StartNs),
    ("end_time_unix_nano", Root::EndNs),
    ("start_time", Root::Start),
    ("end_time", Root::End),
    ("status.code", Root::StatusCode),
    ("status.message", Root::StatusMessage),
    ("flags", Root::Flags),
    ("events", Root::Events),
    ("links", Root::Links),
    ("trace_state", Root::TraceState),
    ("trace_id", Root::TraceId),
    ("trace_id.string", Root::TraceIdText),
    ("span_id", Root::SpanId),
    ("span_id.string", Root::SpanIdText),
    ("parent_span_id", Root::ParentId),
    ("parent_span_id.string", Root::ParentIdText),
    ("dropped_attributes_count", Root::Count(Message::Span, 10)),
    ("dropped_events_count", Root::Count(Message::Span, 12)),
    ("dropped_links_count", Root::Count(Message::Span, 14)),
];

pub const RESOURCE: &[(&str, Root)] = &[
    ("schema_url", Root::ResourceSchema),
    ("attributes", Root::ResourceAttributes),
    ("cache", Root::Cache),
    (
        "dropped_attributes_count",
        Root::Count(Message::Resource, 2),
    ),
];

pub const SCOPE: &[(&str, Root)] = &[
    ("schema_url", Root::ScopeSchema),
    ("name", Root::ScopeName),
    ("version", Root::ScopeVersion),
    ("attributes", Root::ScopeAttributes),
    ("cache", Root::Cache),
    ("dropped_attributes_count", Root::Count(Message::Scope, 4)),
];

pub const EVENT: &[(&str, Root)] = &[
    ("name", Root::EventName),
    ("attributes", Root::EventAttributes),
    ("cache", Root::Cache),
    ("time_unix_nano", Root::EventNs),
    ("time", Root::EventTime),
    ("event_index", Root::EventIndex),
    ("dropped_attributes_count", Root::Count(Message::Event, 4)),
];

pub const OTELCOL: &[(&str, Root)] = &[
    ("client.addr", Root::ClientAddress),
    ("client.metadata", Root::ClientMetadata),
    ("client.auth.attributes", Root::ClientAuth),
];

/// Paths that the Collector has and that are no value here.
pub const WHOLE: &[&str] = &["status", "positive", "negative"];

/// Names of kinds by number.
pub const KINDS: [&str; 6] = [
    "Unspecified",
    "Internal",
    "Server",
    "Client",
    "Producer",
    "Consumer",
];

const SYMBOLS: &[(&str, i64)] = &[
    ("SPAN_KIND_UNSPECIFIED", 0),
    ("SPAN_KIND_INTERNAL", 1),
    ("SPAN_KIND_SERVER", 2),
    ("SPAN_KIND_CLIENT", 3),
    ("SPAN_KIND_PRODUCER", 4),
    ("SPAN_KIND_CONSUMER", 5),
    ("STATUS_CODE_UNSET", 0),
    ("STATUS_CODE_OK", 1),
    ("STATUS_CODE_ERROR", 2),
    ("METRIC_DATA_TYPE_NONE", 0),
    ("METRIC_DATA_TYPE_GAUGE", 1),
    ("METRIC_DATA_TYPE_SUM", 2),
    ("METRIC_DATA_TYPE_HISTOGRAM", 3),
    ("METRIC_DATA_TYPE_EXPONENTIAL_HISTOGRAM", 4),
    ("METRIC_DATA_TYPE_SUMMARY", 5),
    ("AGGREGATION_TEMPORALITY_UNSPECIFIED", 0),
    ("AGGREGATION_TEMPORALITY_DELTA", 1),
    ("AGGREGATION_TEMPORALITY_CUMULATIVE", 2),
    ("FLAG_NONE", 0),
    ("FLAG_NO_RECORDED_VALUE", 1),
    ("SEVERITY_NUMBER_UNSPECIFIED", 0),
    ("SEVERITY_NUMBER_TRACE", 1),
    ("SEVERITY_NUMBER_TRACE2", 2),
    ("SEVERITY_NUMBER_TRACE3", 3),
    ("SEVERITY_NUMBER_TRACE4", 4),
    ("SEVERITY_NUMBER_DEBUG", 5),
    ("SEVERITY_NUMBER_DEBUG2", 6),
    ("SEVERITY_NUMBER_DEBUG3", 7),
    ("SEVERITY_NUMBER_DEBUG4", 8),
    ("SEVERITY_NUMBER_INFO", 9),
    ("SEVERITY_NUMBER_INFO2", 10),
    ("SEVERITY_NUMBER_INFO3", 11),
    ("SEVERITY_NUMBER_INFO4", 12),
    ("SEVERITY_NUMBER_WARN", 13),
    ("SEVERITY_NUMBER_WARN2", 14),
    ("SEVERITY_NUMBER_WARN3", 15),
    ("SEVERITY_NUMBER_WARN4", 16),
    ("SEVERITY_NUMBER_ERROR", 17),
    ("SEVERITY_NUMBER_ERROR2", 18),
    ("SEVERITY_NUMBER_ERROR3", 19),
    ("SEVERITY_NUMBER_ERROR4", 20),
    ("SEVERITY_NUMBER_FATAL", 21),
    ("SEVERITY_NUMBER_FATAL2", 22),
    ("SEVERITY_NUMBER_FATAL3", 23),
    ("SEVERITY_NUMBER_FATAL4", 24),
];

/// The value of an enum.
pub fn symbol(name: &str) -> Option<i64> {
    let found = SYMBOLS.iter().find(|(symbol, _)| *symbol == name);
    found.map(|(_, value)| *value)
}

/// The number of a kind by its name: as it is, or in capitals behind a prefix.
#[must_use]
pub fn kind_of(name: &[u8], prefix: &str) -> Option<u64> {
    let place = match prefix {
        "" => KINDS.iter().position(|kind| kind.as_bytes() == name),
        prefix => {
            let name = name.strip_prefix(prefix.as_bytes())?;
            let is_it = |kind: &&str| kind.to_ascii_uppercase().as_bytes() == name;
            KINDS.iter().position(is_it)
        }
    };
    place.map(|place| place as u64)
}

impl Root {
    /// How statements may use it, whatever the subject is.
    pub fn shape(self) -> Shape {
        match self {
            Root::Metric(MetricRoot::Metadata) | Root::Point(PointRoot::Attributes) => Shape::Map,
            Root::Metric(MetricRoot::DataPoints)
            | Root::Point(PointRoot::Exemplars | PointRoot::QuantileValues) => Shape::Fixed,
            Root::Metric(_) | Root::Point(_) => Shape::Scalar,
            root => match root.written(Record::None).1 {
                Form::Attributes(_) => Shape::Map,
                Form::Any(_) => Shape::Any,
                Form::Fixed => Shape::Fixed,
                _ => Shape::Scalar,
            },
        }
    }

    /// The message that it is in, and how it is written.
    pub fn written(self, record: Record<'_, '_>) -> (Message, Form) {
        use Message::{Cache, Event, Resource, Scope, Span};
        match self {
            Root::SpanAttributes => (Span, Form::Attributes(SPAN_ATTRIBUTES)),
            Root::ResourceAttributes => (Resource, Form::Attributes(RESOURCE_ATTRIBUTES)),
            Root::ScopeAttributes => (Scope, Form::Attributes(SCOPE_ATTRIBUTES)),
            Root::EventAttributes => (Event, Form::Attributes(EVENT_ATTRIBUTES)),
            Root::Cache => (Cache, Form::Attributes(ENTRIES)),
            Root::TraceState => (Span, Form::TraceState(3)),
            Root::Name => (Span, Form::Text(5)),
            Root::Kind => (Span, Form::Number(6)),
            Root::KindText => (Span, Form::Kind(6, "")),
            Root::KindDeprecatedText => (Span, Form::Kind(6, "SPAN_KIND_")),
            Root::StartNs => (Span, Form::Nanoseconds(7)),
            Root::EndNs => (Span, Form::Nanoseconds(8)),
            Root::Start => (Span, Form::Time(7)),
            Root::End => (Span, Form::Time(8)),
            Root::StatusCode => (Span, Form::StatusCode(15)),
            Root::StatusMessage => (Span, Form::StatusMessage(15)),
            Root::Flags => (Span, Form::Fixed32(16)),
            Root::Events | Root::Links => (Span, Form::Fixed),
            Root::TraceId => (Span, Form::Id(1, 16)),
            Root::TraceIdText => (Span, Form::IdText(1, 16)),
            Root::SpanId => (Span, Form::Id(2, 8)),
            Root::SpanIdText => (Span, Form::IdText(2, 8)),
            Root::ParentId => (Span, Form::Id(4, 8)),
            Root::ParentIdText => (Span, Form::IdText(4, 8)),
            Root::Count(message, number) => (message, Form::Number(number)),
            Root::ScopeName => (Scope, Form::Text(1)),
            Root::ScopeVersion => (Scope, Form::Text(2)),
            Root::EventName => (Event, Form::Text(2)),
            Root::EventNs => (Event, Form::Nanoseconds(1)),
            Root::EventTime => (Event, Form::Time(1)),
            Root::EventIndex => (Event, Form::Fixed),
            Root::ResourceSchema => (Message::ResourceSchema, Form::Whole),
            Root::ScopeSchema => (Message::ScopeSchema, Form::Whole),
            Root::ClientAddress | Root::ClientMetadata | Root::ClientAuth => {
                (Resource, Form::Fixed)
            }
            Root::Log(root) => root.written(),
            Root::Metric(root) => root.written(record),
            Root::Point(root) => root.written(record),
            Root::Exemplar(root) => root.written(),
        }
    }
}
