//! The messages of OTLP 1.x: opentelemetry/proto/{common,resource,trace,metrics,logs}/v1 and
//! collector/*/v1.

use crate::Signal;

/// The fields of a message.
pub(crate) struct Message(pub &'static [Field]);

impl Message {
    /// The field of this JSON name.
    pub(crate) fn named(&self, name: &str) -> Option<&'static Field> {
        self.0.iter().find(|field| field.json_name() == name)
    }
}

/// The export request of a signal.
pub(crate) fn request(signal: Signal) -> &'static Message {
    match signal {
        Signal::Traces => &TRACES,
        Signal::Metrics => &METRICS,
        Signal::Logs => &LOGS,
    }
}

/// A field.
pub(crate) struct Field {
    /// The field number, 1 to 31.
    pub number: u32,
    /// The field's JSON name, with quotes and a colon.
    pub name: &'static str,
    pub kind: Kind,
    /// Whether it is a list.
    pub many: bool,
}

impl Field {
    /// Its JSON name.
    pub(crate) fn json_name(&self) -> &'static str {
        self.name.trim_matches(['"', ':'])
    }

    /// Its message, if it is one.
    pub(crate) fn message(&self) -> Option<&'static Message> {
        match self.kind {
            Kind::Message(message) => Some(message()),
            _ => None,
        }
    }
}

/// The type of a field, which determines how it is written.
pub(crate) enum Kind {
    /// A function, because messages may contain each other.
    Message(fn() -> &'static Message),
    Text,
    /// Bytes, in hexadecimal.
    Hex,
    /// Bytes, in base64.
    Base64,
    Bool,
    /// Also enumerations.
    Uint32,
    Fixed32,
    Sint32,
    Int64,
    Sfixed64,
    Uint64,
    Fixed64,
    Double,
}

macro_rules! message {
    ($name:ident { $($number:literal $json:literal $kind:ident $(($inner:ident))? $([$many:ident])?,)* }) => {
        pub(crate) static $name: Message = Message(&[$(Field {
            number: $number,
            name: concat!("\"", $json, "\":"),
            kind: message!(@kind $kind $($inner)?),
            many: message!(@many $($many)?),
        }),*]);
    };
    (@kind Message $inner:ident) => { Kind::Message(|| &$inner) };
    (@kind $kind:ident) => { Kind::$kind };
    (@many many) => { true };
    (@many) => { false };
}

message!(TRACES { 1 "resourceSpans" Message(RESOURCE_SPANS) [many], });
message!(METRICS { 1 "resourceMetrics" Message(RESOURCE_METRICS) [many], });
message!(LOGS { 1 "resourceLogs" Message(RESOURCE_LOGS) [many], });

message!(RESOURCE_SPANS {
    1 "resource" Message(RESOURCE),
    2 "scopeSpans" Message(SCOPE_SPANS) [many],
    3 "schemaUrl" Text,
});
message!(SCOPE_SPANS {
    1 "scope" Message(SCOPE),
    2 "spans" Message(SPAN) [many],
    3 "schemaUrl" Text,
});
message!(RESOURCE_METRICS {
    1 "resource" Message(RESOURCE),
    2 "scopeMetrics" Message(SCOPE_METRICS) [many],
    3 "schemaUrl" Text,
});
message!(SCOPE_METRICS {
    1 "scope" Message(SCOPE),
    2 "metrics" Message(METRIC) [many],
    3 "schemaUrl" Text,
});
message!(RESOURCE_LOGS {
    1 "resource" Message(RESOURCE),
    2 "scopeLogs" Message(SCOPE_LOGS) [many],
    3 "schemaUrl" Text,
});
message!(SCOPE_LOGS {
    1 "scope" Message(SCOPE),
    2 "logRecords" Message(LOG_RECORD) [many],
    3 "schemaUrl" Text,
});

message!(RESOURCE {
    1 "attributes" Message(KEY_VALUE) [many],
    2 "droppedAttributesCount" Uint32,
    3 "entityRefs" Message(ENTITY_REF) [many],
});
message!(ENTITY_REF {
    1 "schemaUrl" Text,
    2 "type" Text,
    3 "idKeys" Text [many],
    4 "descriptionKeys" Text [many],
});
message!(SCOPE {
    1 "name" Text,
    2 "version" Text,
    3 "attributes" Message(KEY_VALUE) [many],
    4 "droppedAttributesCount" Uint32,
});
message!(KEY_VALUE {
    1 "key" Text,
    2 "value" Message(ANY_VALUE),
});
message!(ANY_VALUE {
    1 "stringValue" Text,
    2 "boolValue" Bool,
    3 "intValue" Int64,
    4 "doubleValue" Double,
    5 "arrayValue" Message(ARRAY_VALUE),
    6 "kvlistValue" Message(KEY_VALUE_LIST),
    7 "bytesValue" Base64,
});
message!(ARRAY_VALUE { 1 "values" Message(ANY_VALUE) [many], });
message!(KEY_VALUE_LIST { 1 "values" Message(KEY_VALUE) [many], });

message!(SPAN {
    1 "traceId" Hex,
    2 "spanId" Hex,
    3 "traceState" Text,
    4 "parentSpanId" Hex,
    5 "name" Text,
    6 "kind" Uint32,
    7 "startTimeUnixNano" Fixed64,
    8 "endTimeUnixNano" Fixed64,
    9 "attributes" Message(KEY_VALUE) [many],
    10 "droppedAttributesCount" Uint32,
    11 "events" Message(EVENT) [many],
    12 "droppedEventsCount" Uint32,
    13 "links" Message(LINK) [many],
    14 "droppedLinksCount" Uint32,
    15 "status" Message(STATUS),
    16 "flags" Fixed32,
});
message!(EVENT {
    1 "timeUnixNano" Fixed64,
    2 "name" Text,
    3 "attributes" Message(KEY_VALUE) [many],
    4 "droppedAttributesCount" Uint32,
});
message!(LINK {
    1 "traceId" Hex,
    2 "spanId" Hex,
    3 "traceState" Text,
    4 "attributes" Message(KEY_VALUE) [many],
    5 "droppedAttributesCount" Uint32,
    6 "flags" Fixed32,
});
message!(STATUS {
    2 "message" Text,
    3 "code" Uint32,
});

message!(LOG_RECORD {
    1 "timeUnixNano" Fixed64,
    2 "severityNumber" Uint32,
    3 "severityText" Text,
    5 "body" Message(ANY_VALUE),
    6 "attributes" Message(KEY_VALUE) [many],
    7 "droppedAttributesCount" Uint32,
    8 "flags" Fixed32,
    9 "traceId" Hex,
    10 "spanId" Hex,
    11 "observedTimeUnixNano" Fixed64,
    12 "eventName" Text,
});

message!(METRIC {
    1 "name" Text,
    2 "description" Text,
    3 "unit" Text,
    5 "gauge" Message(GAUGE),
    7 "sum" Message(SUM),
    9 "histogram" Message(HISTOGRAM),
    10 "exponentialHistogram" Message(EXPONENTIAL_HISTOGRAM),
    11 "summary" Message(SUMMARY),
    12 "metadata" Message(KEY_VALUE) [many],
});
message!(GAUGE { 1 "dataPoints" Message(NUMBER_POINT) [many], });
message!(SUM {
    1 "dataPoints" Message(NUMBER_POINT) [many],
    2 "aggregationTemporality" Uint32,
    3 "isMonotonic" Bool,
});
message!(HISTOGRAM {
    1 "dataPoints" Message(HISTOGRAM_POINT) [many],
    2 "aggregationTemporality" Uint32,
});
message!(EXPONENTIAL_HISTOGRAM {
    1 "dataPoints" Message(EXPONENTIAL_POINT) [many],
    2 "aggregationTemporality" Uint32,
});
message!(SUMMARY { 1 "dataPoints" Message(SUMMARY_POINT) [many], });
message!(SUMMARY_POINT {
    2 "startTimeUnixNano" Fixed64,
    3 "timeUnixNano" Fixed64,
    4 "count" Fixed64,
    5 "sum" Double,
    6 "quantileValues" Message(QUANTILE) [many],
    7 "attributes" Message(KEY_VALUE) [many],
    8 "flags" Uint32,
});
message!(QUANTILE {
    1 "quantile" Double,
    2 "value" Double,
});
message!(NUMBER_POINT {
    2 "startTimeUnixNano" Fixed64,
    3 "timeUnixNano" Fixed64,
    4 "asDouble" Double,
    5 "exemplars" Message(EXEMPLAR) [many],
    6 "asInt" Sfixed64,
    7 "attributes" Message(KEY_VALUE) [many],
    8 "flags" Uint32,
});
message!(HISTOGRAM_POINT {
    2 "startTimeUnixNano" Fixed64,
    3 "timeUnixNano" Fixed64,
    4 "count" Fixed64,
    5 "sum" Double,
    6 "bucketCounts" Fixed64 [many],
    7 "explicitBounds" Double [many],
    8 "exemplars" Message(EXEMPLAR) [many],
    9 "attributes" Message(KEY_VALUE) [many],
    10 "flags" Uint32,
    11 "min" Double,
    12 "max" Double,
});
message!(EXPONENTIAL_POINT {
    1 "attributes" Message(KEY_VALUE) [many],
    2 "startTimeUnixNano" Fixed64,
    3 "timeUnixNano" Fixed64,
    4 "count" Fixed64,
    5 "sum" Double,
    6 "scale" Sint32,
    7 "zeroCount" Fixed64,
    8 "positive" Message(BUCKETS),
    9 "negative" Message(BUCKETS),
    10 "flags" Uint32,
    11 "exemplars" Message(EXEMPLAR) [many],
    12 "min" Double,
    13 "max" Double,
    14 "zeroThreshold" Double,
});
message!(BUCKETS {
    1 "offset" Sint32,
    2 "bucketCounts" Uint64 [many],
});
message!(EXEMPLAR {
    2 "timeUnixNano" Fixed64,
    3 "asDouble" Double,
    4 "spanId" Hex,
    5 "traceId" Hex,
    6 "asInt" Sfixed64,
    7 "filteredAttributes" Message(KEY_VALUE) [many],
});
