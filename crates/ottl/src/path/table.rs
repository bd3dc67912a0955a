//! The paths that there are, and what each is in OTLP's messages (`trace.proto`, `resource.proto`,
//! `common.proto`).

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
pub const WHOLE: &[&str] = &["status"];

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
    /// The message that it is in, and how it is written.
    pub fn written(self) -> (Message, Form) {
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
        }
    }
}
