//! Paths: `attributes["key"]`, `resource.attributes["key"]`, `status.code`.

use super::eval::{Failure, Subject};
use super::lexer::Token;
use super::parser::Parser;
use super::value::Value;
use super::{Context, Error};
use crate::scan::{Any, Attributes, RESOURCE_ATTRIBUTES, SCOPE_ATTRIBUTES};
use crate::wire::{Value as Wire, fields, last_bytes};
use telemetry::propagation::tracestate;

/// `Span.attributes`, `Span.Event.attributes`
const SPAN_ATTRIBUTES: u32 = 9 << 3 | 2;
const EVENT_ATTRIBUTES: u32 = 3 << 3 | 2;

/// A path.
#[derive(Debug)]
pub struct Path {
    root: Root,
    keys: Vec<Key>,
    /// Where spans have the attribute that the first key names.
    place: Option<u8>,
}

/// A key: `["text"]` or `[number]`.
#[derive(Debug)]
enum Key {
    Name(Box<[u8]>),
    Index(i64),
}

/// Where a path begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Root {
    SpanAttributes,
    ResourceAttributes,
    ScopeAttributes,
    EventAttributes,
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
    TraceId,
    TraceIdText,
    SpanId,
    SpanIdText,
    ParentId,
    ParentIdText,
    /// A varint of the span's message, by its field key.
    SpanCount(u32),
    ScopeName,
    ScopeVersion,
    EventName,
    EventNs,
    EventTime,
    EventIndex,
}

const SPAN: &[(&str, Root)] = &[
    ("attributes", Root::SpanAttributes),
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
    ("trace_state", Root::TraceState),
    ("trace_id", Root::TraceId),
    ("trace_id.string", Root::TraceIdText),
    ("span_id", Root::SpanId),
    ("span_id.string", Root::SpanIdText),
    ("parent_span_id", Root::ParentId),
    ("parent_span_id.string", Root::ParentIdText),
    ("dropped_attributes_count", Root::SpanCount(10 << 3)),
    ("dropped_events_count", Root::SpanCount(12 << 3)),
    ("dropped_links_count", Root::SpanCount(14 << 3)),
];

const RESOURCE: &[(&str, Root)] = &[("attributes", Root::ResourceAttributes)];

const SCOPE: &[(&str, Root)] = &[
    ("name", Root::ScopeName),
    ("version", Root::ScopeVersion),
    ("attributes", Root::ScopeAttributes),
];

const EVENT: &[(&str, Root)] = &[
    ("name", Root::EventName),
    ("attributes", Root::EventAttributes),
    ("time_unix_nano", Root::EventNs),
    ("time", Root::EventTime),
    ("event_index", Root::EventIndex),
];

const KINDS: [&str; 6] = [
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

/// Parses a path.
pub fn parse(parser: &mut Parser<'_, '_>) -> Result<Path, Error> {
    let start = parser.error("");
    let mut words = Vec::new();
    loop {
        match parser.next() {
            Some(Token::Word(word)) => words.push(word.as_str()),
            _ => return Err(Error::new(start.at, "a path is expected here")),
        }
        if !parser.sign(".") {
            break;
        }
    }
    let event = parser.context == Context::SpanEvent;
    let (table, rest) = match words.as_slice() {
        ["resource", rest @ ..] => (RESOURCE, rest),
        ["instrumentation_scope" | "scope", rest @ ..] => (SCOPE, rest),
        ["span", rest @ ..] => (SPAN, rest),
        ["spanevent", rest @ ..] if event => (EVENT, rest),
        rest if event => (EVENT, rest),
        rest => (SPAN, rest),
    };
    let name = rest.join(".");
    let root = table
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, root)| *root);
    let Some(root) = root else {
        let path = words.join(".");
        return Err(Error::new(
            start.at,
            format!("the path {path} is not supported"),
        ));
    };
    let keys = keys(parser)?;
    let indexed = matches!(
        root,
        Root::SpanAttributes
            | Root::ResourceAttributes
            | Root::ScopeAttributes
            | Root::EventAttributes
    );
    let fits = indexed || keys.is_empty() || root == Root::TraceState && keys.len() == 1;
    if !fits || !matches!(keys.first(), None | Some(Key::Name(_))) {
        return Err(Error::new(start.at, format!("{name} has no such key")));
    }
    let place = match keys.first() {
        Some(Key::Name(name)) if root == Root::SpanAttributes => parser.keys.place(name),
        _ => None,
    };
    Ok(Path { root, keys, place })
}

fn keys(parser: &mut Parser<'_, '_>) -> Result<Vec<Key>, Error> {
    let mut keys = Vec::new();
    while parser.sign("[") {
        let bad = parser.error("a text or a number is expected here");
        keys.push(match parser.next() {
            Some(Token::Text(name)) => Key::Name(name.as_bytes().into()),
            Some(Token::Int(index)) => Key::Index(*index),
            _ => return Err(bad),
        });
        parser.expect("]")?;
    }
    Ok(keys)
}

impl Path {
    /// What is there.
    pub fn get<'a>(&self, subject: &Subject<'a, '_, '_>) -> Result<Value<'a>, Failure> {
        let span = subject.span;
        let hex_or_empty = |id: &[u8]| {
            let empty = id.iter().all(|byte| *byte == 0);
            Value::Text(if empty { Vec::new() } else { hex(id) }.into())
        };
        let kind = || {
            usize::try_from(span.kind)
                .ok()
                .and_then(|kind| KINDS.get(kind))
                .copied()
        };
        Ok(match self.root {
            Root::SpanAttributes => return self.span_attribute(subject),
            Root::ResourceAttributes => {
                return self.attribute(subject.around.resource, RESOURCE_ATTRIBUTES);
            }
            Root::ScopeAttributes => return self.attribute(subject.around.scope, SCOPE_ATTRIBUTES),
            Root::EventAttributes => match &subject.event {
                Some((event, _)) => return self.attribute(event.message, EVENT_ATTRIBUTES),
                None => Value::Nil,
            },
            Root::TraceState => match self.keys.first() {
                Some(Key::Name(key)) => match tracestate::get(span.trace_state, key) {
                    Some(value) => Value::Text(value.into()),
                    None => Value::Text((&b""[..]).into()),
                },
                _ => Value::Text(span.trace_state.into()),
            },
            Root::Name => Value::Text(span.name.into()),
            Root::Kind => Value::Int(span.kind.into()),
            Root::KindText => Value::Text(kind().unwrap_or_default().as_bytes().into()),
            Root::KindDeprecatedText => {
                let text = kind().map(|kind| format!("SPAN_KIND_{}", kind.to_uppercase()));
                Value::Text(text.unwrap_or_default().into_bytes().into())
            }
            Root::StartNs => Value::Int(span.start_ns as i64),
            Root::EndNs => Value::Int(span.end_ns as i64),
            Root::Start => Value::Time(span.start_ns as i64),
            Root::End => Value::Time(span.end_ns as i64),
            Root::StatusCode => Value::Int(span.status.into()),
            Root::StatusMessage => Value::Text(span.status_message().into()),
            Root::Flags => Value::Int(span.flags.into()),
            Root::TraceId => Value::Bytes(span.trace_id.to_vec().into()),
            Root::TraceIdText => hex_or_empty(&span.trace_id),
            Root::SpanId => Value::Bytes(whole_id(span.span_id)),
            Root::SpanIdText => hex_or_empty(span.span_id),
            Root::ParentId => Value::Bytes(whole_id(span.parent_span_id)),
            Root::ParentIdText => hex_or_empty(span.parent_span_id),
            Root::SpanCount(key) => {
                let counts = fields(span.message).filter(|field| field.key == key);
                match counts.last().map(|field| field.value) {
                    Some(Wire::Varint(count)) => Value::Int(count as u32 as i64),
                    _ => Value::Int(0),
                }
            }
            Root::ScopeName => Value::Text(last_bytes(subject.around.scope, 1 << 3 | 2).into()),
            Root::ScopeVersion => Value::Text(last_bytes(subject.around.scope, 2 << 3 | 2).into()),
            Root::EventName => {
                let name = subject.event.as_ref().map(|(event, _)| event.name);
                Value::Text(name.unwrap_or_default().into())
            }
            Root::EventNs => Value::Int(subject.event.map_or(0, |(event, _)| event.time_ns as i64)),
            Root::EventTime => {
                Value::Time(subject.event.map_or(0, |(event, _)| event.time_ns as i64))
            }
            Root::EventIndex => Value::Int(subject.event.map_or(0, |(_, index)| index as i64)),
        })
    }

    fn span_attribute<'a>(&self, subject: &Subject<'a, '_, '_>) -> Result<Value<'a>, Failure> {
        match self.place {
            Some(place) => {
                let found = subject.slots.get(place);
                self.inner(found.map_or(Value::Nil, Value::from), found.is_some())
            }
            None => self.attribute(subject.span.message, SPAN_ATTRIBUTES),
        }
    }

    fn attribute<'a>(&self, message: &'a [u8], key: u32) -> Result<Value<'a>, Failure> {
        match self.keys.first() {
            Some(Key::Name(name)) => {
                let found = Attributes::new(message, key).get(name);
                self.inner(found.map_or(Value::Nil, Value::from), found.is_some())
            }
            _ => Ok(Value::Map(message, key)),
        }
    }

    /// Goes on with the keys behind the first.
    fn inner<'a>(&self, mut value: Value<'a>, found: bool) -> Result<Value<'a>, Failure> {
        if !found {
            return Ok(Value::Nil);
        }
        for key in &self.keys[1..] {
            let next: Option<Any<'a>> = match (key, &value) {
                (Key::Name(name), Value::Map(message, key)) => {
                    Attributes::new(message, *key).get(name)
                }
                (Key::Index(index), Value::List(array)) => {
                    let index = usize::try_from(*index).map_err(|_| Failure::Index)?;
                    Some(Any::items(array).nth(index).ok_or(Failure::Index)?)
                }
                _ => return Err(Failure::Type),
            };
            match next {
                Some(next) => value = next.into(),
                None => return Ok(Value::Nil),
            }
        }
        Ok(value)
    }
}

fn whole_id<'a>(id: &'a [u8]) -> std::borrow::Cow<'a, [u8]> {
    if id.is_empty() {
        vec![0; 8].into()
    } else {
        id.into()
    }
}

/// Lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> Vec<u8> {
    let digit = |half: u8| b"0123456789abcdef"[usize::from(half)];
    bytes
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)])
        .collect()
}
