//! Paths: `attributes["key"]`, `resource.attributes["key"]`, `status.code`.

mod exemplar;
mod log;
mod metric;
mod point;
mod table;

use super::client::{Client, Told};
use super::eval::{Failure, Subject};
use super::key::{self, Found, Key};
use super::lexer::Token;
use super::parser::Parser;
use super::value::{ENTRIES, Value};
use super::{Context, Error};
use exemplar::EXEMPLAR;
use log::LOG;
use metric::{METRIC, MetricRoot};
use otlp::scan::{Attributes, RESOURCE_ATTRIBUTES, SCOPE_ATTRIBUTES};
use otlp::tracestate;
use otlp::wire::{Value as Wire, fields, last_bytes};
use point::{POINT, PointRoot};
use table::{EVENT_ATTRIBUTES, KINDS, Root, SPAN_ATTRIBUTES, SPAN_EVENTS, SPAN_LINKS};
pub use table::{Form, Message, Shape, kind_of, symbol};

/// A path.
#[derive(Debug)]
pub struct Path {
    root: Root,
    keys: Vec<Key>,
    /// Where spans have the attribute that the first key names.
    place: Option<u8>,
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
    let (table, rest) = table_of(&words, parser).map_err(|why| Error::new(start.at, why))?;
    let name = rest.join(".");
    let found = table.iter().find(|(known, _)| *known == name);
    let Some((_, root)) = found.copied() else {
        let path = words.join(".");
        let why = if words == ["otelcol", "grpc", "metadata"] {
            "otelcol.grpc.metadata is not supported: the same is in otelcol.client.metadata, where the receiver has 'include_metadata: true'".to_owned()
        } else if table::WHOLE.contains(&name.as_str()) {
            format!("the path {path} is no value here: name a part of it")
        } else {
            format!("the path {path} is not supported")
        };
        return Err(Error::new(start.at, why));
    };
    let mut keys = key::parse(parser)?;
    if let Some(client) = client(root, &mut keys).map_err(|why| Error::new(start.at, why))? {
        parser.client.push(client);
        return Ok(Path {
            root,
            keys,
            place: None,
        });
    }
    parser.schemas |= matches!(root, Root::ResourceSchema | Root::ScopeSchema);
    check(root, &keys, &name, parser.scope.context).map_err(|why| Error::new(start.at, why))?;
    let place = match (keys.first(), &mut parser.keys) {
        (Some(Key::Name(name)), Some(places)) if root == Root::SpanAttributes => places.place(name),
        _ => None,
    };
    Ok(Path { root, keys, place })
}

/// Checks that a path has such keys, and that it can be read in a context.
fn check(root: Root, keys: &[Key], name: &str, context: Context) -> Result<(), String> {
    let unseen = match root {
        Root::Metric(MetricRoot::DataPoints) => Context::Metric,
        Root::Point(PointRoot::Exemplars) => Context::DataPoint,
        _ => context,
    };
    if context != unseen {
        // Else all parts of a message would be counted again for each of them.
        return Err(format!(
            "the path {name} of a {unseen} is not supported with the context {context}: use the context {unseen}"
        ));
    }
    let fits = match root.shape() {
        Shape::Any => true,
        Shape::Map => !matches!(keys.first(), Some(Key::Index(_))),
        Shape::Fixed | Shape::Scalar => {
            let is_member = root == Root::TraceState && keys.len() == 1;
            keys.is_empty() || is_member && !matches!(keys.first(), Some(Key::Index(_)))
        }
    };
    if fits {
        Ok(())
    } else {
        Err(format!("{name} has no such key"))
    }
}

/// The client property of a path; none for other paths. Receivers keep only the properties that the
/// configuration names, so the key must be a literal.
fn client(root: Root, keys: &mut [Key]) -> Result<Option<Client>, &'static str> {
    Ok(Some(match (root, keys.first_mut()) {
        (Root::ClientAddress, None) => Client::Address,
        (Root::ClientAddress, Some(_)) => return Err("otelcol.client.addr has no such key"),
        (Root::ClientMetadata, Some(Key::Name(name))) => {
            name.make_ascii_lowercase();
            Client::Field(String::from_utf8_lossy(name).into_owned())
        }
        (Root::ClientAuth, Some(Key::Name(name))) => {
            Client::Auth(String::from_utf8_lossy(name).into_owned())
        }
        (Root::ClientMetadata | Root::ClientAuth, _) => {
            return Err(
                "name one key of it in quotes, as in otelcol.client.metadata[\"x-tenant\"]",
            );
        }
        _ => return Ok(None),
    }))
}

type Table = &'static [(&'static str, Root)];

/// The paths among which one is, and what is left of its name.
fn table_of<'w, 't>(
    words: &'w [&'t str],
    parser: &Parser<'_, '_>,
) -> Result<(Table, &'w [&'t str]), String> {
    let context = parser.scope.context;
    let (of, table, rest) = match words {
        ["otelcol", rest @ ..] if !rest.is_empty() => (Context::Resource, table::OTELCOL, rest),
        [prefix, rest @ ..] if !rest.is_empty() && context_of(prefix).is_some() => {
            let of = context_of(prefix).unwrap_or(context);
            (of, table_in(of), rest)
        }
        rest if parser.scope.prefixed => return Err(no_prefix(&rest.join("."), context)),
        rest => (context, table_in(context), rest),
    };
    if !context.sees(of) {
        return Err(format!(
            "the path {} is not supported with the context {context}",
            words.join(".")
        ));
    }
    Ok((table, rest))
}

/// The context of a prefix.
fn context_of(prefix: &str) -> Option<Context> {
    if prefix == "instrumentation_scope" {
        return Some(Context::Scope);
    }
    Context::ALL
        .into_iter()
        .find(|context| context.name() == prefix)
}

fn table_in(context: Context) -> Table {
    match context {
        Context::Resource => table::RESOURCE,
        Context::Scope => table::SCOPE,
        Context::Span => table::SPAN,
        Context::SpanEvent => table::EVENT,
        Context::Metric => METRIC,
        Context::DataPoint => POINT,
        Context::Exemplar => EXEMPLAR,
        Context::Log => LOG,
    }
}

fn no_prefix(path: &str, context: Context) -> String {
    let seen = Context::ALL.into_iter().filter(|of| context.sees(*of));
    let seen: Vec<String> = seen.map(|of| format!("{of}.{path}")).collect();
    let seen = match seen.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => seen.concat(),
    };
    format!("{path} does not say what it is of: write {seen}")
}

impl Path {
    /// What is there.
    pub fn get<'a>(&'a self, subject: &Subject<'a, '_, '_>) -> Result<Value<'a>, Failure> {
        let span = subject.span;
        let kind = || {
            usize::try_from(span.kind)
                .ok()
                .and_then(|kind| KINDS.get(kind))
                .copied()
        };
        Ok(match self.root {
            Root::SpanAttributes => return self.span_attribute(subject),
            Root::ResourceAttributes => {
                return self.attribute(subject.around.resource, RESOURCE_ATTRIBUTES, subject);
            }
            Root::ScopeAttributes => {
                return self.attribute(subject.around.scope, SCOPE_ATTRIBUTES, subject);
            }
            Root::EventAttributes => match &subject.event {
                Some((event, _)) => {
                    return self.attribute(event.message, EVENT_ATTRIBUTES, subject);
                }
                None => Value::Nil,
            },
            Root::Cache => return self.attribute(subject.cache, ENTRIES, subject),
            Root::TraceState => match self.keys.first() {
                Some(key) => match key.get(subject)? {
                    Found::Name(key) => {
                        let value = tracestate::get(span.trace_state, &key);
                        Value::Text(value.unwrap_or_default().into())
                    }
                    Found::Index(_) => return Err(Failure::Type),
                },
                None => Value::Text(span.trace_state.into()),
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
            Root::Events => Value::Messages(span.message.into(), SPAN_EVENTS),
            Root::Links => Value::Messages(span.message.into(), SPAN_LINKS),
            Root::TraceId => Value::Bytes(span.trace_id.to_vec().into()),
            Root::TraceIdText => hex_or_empty(&span.trace_id),
            Root::SpanId => Value::Bytes(whole_id(span.span_id)),
            Root::SpanIdText => hex_or_empty(span.span_id),
            Root::ParentId => Value::Bytes(whole_id(span.parent_span_id)),
            Root::ParentIdText => hex_or_empty(span.parent_span_id),
            Root::Count(message, number) => {
                let counts =
                    fields(message.bytes(subject)).filter(|field| field.key == number << 3);
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
            Root::ResourceSchema => Value::Text(subject.schemas.resource.into()),
            Root::ScopeSchema => Value::Text(subject.schemas.scope.into()),
            Root::ClientAddress => match subject.client {
                Some(told) => told.address(),
                None => Value::text(""),
            },
            Root::ClientMetadata => return self.told(subject.client.map(Told::fields), subject),
            Root::ClientAuth => return self.told(subject.client.map(Told::auth), subject),
            Root::EventIndex => Value::Int(subject.event.map_or(0, |(_, index)| index as i64)),
            Root::Log(root) => match subject.record.log() {
                Some(log) => return self.of_log(root, log, subject),
                None => Value::Nil,
            },
            Root::Metric(root) => match subject.record.metric() {
                Some(metric) => return self.of_metric(root, metric, subject),
                None => Value::Nil,
            },
            Root::Point(root) => match subject.record.point() {
                Some(point) => return self.of_point(root, point, subject),
                None => Value::Nil,
            },
            Root::Exemplar(root) => match subject.record.exemplar() {
                Some(exemplar) => return self.of_exemplar(root, exemplar, subject),
                None => Value::Nil,
            },
        })
    }

    fn span_attribute<'a>(&'a self, subject: &Subject<'a, '_, '_>) -> Result<Value<'a>, Failure> {
        match (self.place, subject.slots) {
            (Some(place), Some(slots)) => {
                let found = slots.get(place).map_or(Value::Nil, Value::from);
                self.inner(found, subject)
            }
            _ => self.attribute(subject.span.message, SPAN_ATTRIBUTES, subject),
        }
    }

    fn attribute<'a>(
        &'a self,
        message: &'a [u8],
        key: u32,
        subject: &Subject<'a, '_, '_>,
    ) -> Result<Value<'a>, Failure> {
        match self.keys.first() {
            None => Ok(Value::Map(message.into(), key)),
            Some(Key::Name(name)) => {
                let found = Attributes::new(message, key).get(name);
                self.inner(found.map_or(Value::Nil, Value::from), subject)
            }
            Some(other) => {
                let map = Value::Map(message.into(), key);
                self.inner(other.get(subject)?.of(&map)?, subject)
            }
        }
    }

    fn told<'a>(
        &'a self,
        told: Option<Value<'a>>,
        subject: &Subject<'a, '_, '_>,
    ) -> Result<Value<'a>, Failure> {
        let (Some(told), Some(key)) = (told, self.keys.first()) else {
            return Ok(Value::Nil);
        };
        self.inner(key.get(subject)?.of(&told)?, subject)
    }

    /// Goes on with the keys behind the first.
    fn inner<'a>(
        &'a self,
        mut value: Value<'a>,
        subject: &Subject<'a, '_, '_>,
    ) -> Result<Value<'a>, Failure> {
        for key in &self.keys[1..] {
            value = key.get(subject)?.of(&value)?;
        }
        Ok(value)
    }

    /// The message that it is in, and how it is written there, for a subject.
    #[must_use]
    pub fn written(&self, subject: &Subject<'_, '_, '_>) -> (Message, Form) {
        self.root.written(subject.record)
    }

    /// How statements may use it, without its keys.
    #[must_use]
    pub(crate) fn shape(&self) -> Shape {
        self.root.shape()
    }

    /// Whether it has keys.
    #[must_use]
    pub fn has_keys(&self) -> bool {
        !self.keys.is_empty()
    }

    /// Its keys for a subject.
    ///
    /// # Errors
    /// One is neither a text nor a number.
    pub fn keys<'a>(&'a self, subject: &Subject<'a, '_, '_>) -> Result<Vec<Found<'a>>, Failure> {
        self.keys.iter().map(|key| key.get(subject)).collect()
    }
}

impl Message {
    /// Its bytes, of a subject.
    #[must_use]
    pub fn bytes<'a>(self, subject: &Subject<'a, '_, '_>) -> &'a [u8] {
        match self {
            Message::Resource => subject.around.resource,
            Message::Scope => subject.around.scope,
            Message::Span => subject.span.message,
            Message::Event => subject.event.map_or(b"", |(event, _)| event.message),
            Message::Log => subject.record.log().map_or(b"", |log| log.message),
            Message::Metric => subject.record.metric().map_or(b"", |metric| metric.message),
            Message::Point => subject.record.point().map_or(b"", |point| point.message),
            Message::Exemplar => {
                let exemplar = subject.record.exemplar();
                exemplar.map_or(b"", |exemplar| exemplar.message)
            }
            Message::ResourceSchema => subject.schemas.resource,
            Message::ScopeSchema => subject.schemas.scope,
            Message::Cache => subject.cache,
        }
    }
}

/// An identifier in hexadecimal digits; empty if it is zero or absent.
fn hex_or_empty<'a>(id: &[u8]) -> Value<'a> {
    let empty = id.iter().all(|byte| *byte == 0);
    Value::text(if empty {
        String::new()
    } else {
        syntax::hex::text(id)
    })
}

fn whole_id<'a>(id: &'a [u8]) -> std::borrow::Cow<'a, [u8]> {
    if id.is_empty() {
        vec![0; 8].into()
    } else {
        id.into()
    }
}
