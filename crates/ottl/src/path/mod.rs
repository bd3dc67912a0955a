//! Paths: `attributes["key"]`, `resource.attributes["key"]`, `status.code`.

mod table;

use super::client::{Client, Told};
use super::eval::{Failure, Subject};
use super::key::{self, Found, Key};
use super::lexer::Token;
use super::parser::Parser;
use super::value::{ENTRIES, Value};
use super::{Context, Error};
use otlp::scan::{Attributes, RESOURCE_ATTRIBUTES, SCOPE_ATTRIBUTES};
use otlp::tracestate;
use otlp::wire::{Value as Wire, fields, last_bytes};
use table::{EVENT_ATTRIBUTES, KINDS, Root, SPAN_ATTRIBUTES, SPAN_EVENTS, SPAN_LINKS};
pub use table::{Form, Message, kind_of, symbol};

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
    let indexed = matches!(root.written().1, Form::Attributes(_));
    let fits = indexed || keys.is_empty() || root == Root::TraceState && keys.len() == 1;
    if !fits || matches!(keys.first(), Some(Key::Index(_))) {
        return Err(Error::new(start.at, format!("{name} has no such key")));
    }
    let place = match (keys.first(), &mut parser.keys) {
        (Some(Key::Name(name)), Some(places)) if root == Root::SpanAttributes => places.place(name),
        _ => None,
    };
    Ok(Path { root, keys, place })
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
        ["resource", rest @ ..] if !rest.is_empty() => (Context::Resource, table::RESOURCE, rest),
        ["instrumentation_scope" | "scope", rest @ ..] if !rest.is_empty() => {
            (Context::Scope, table::SCOPE, rest)
        }
        ["span", rest @ ..] if !rest.is_empty() => (Context::Span, table::SPAN, rest),
        ["spanevent", rest @ ..] if !rest.is_empty() => (Context::SpanEvent, table::EVENT, rest),
        rest if parser.scope.prefixed => {
            let path = rest.join(".");
            return Err(format!(
                "{path} does not say what it is of: write resource.{path}, scope.{path}, span.{path} or spanevent.{path}"
            ));
        }
        rest => match context {
            Context::Resource => (context, table::RESOURCE, rest),
            Context::Scope => (context, table::SCOPE, rest),
            Context::Span => (context, table::SPAN, rest),
            Context::SpanEvent => (context, table::EVENT, rest),
        },
    };
    if of > context {
        return Err(format!(
            "the path {} is not supported with the context {context}",
            words.join(".")
        ));
    }
    Ok((table, rest))
}

impl Path {
    /// What is there.
    pub fn get<'a>(&'a self, subject: &Subject<'a, '_, '_>) -> Result<Value<'a>, Failure> {
        let span = subject.span;
        let hex_or_empty = |id: &[u8]| {
            let empty = id.iter().all(|byte| *byte == 0);
            Value::text(if empty {
                String::new()
            } else {
                syntax::hex::text(id)
            })
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

    /// The message that it is in, and how it is written there.
    #[must_use]
    pub fn written(&self) -> (Message, Form) {
        self.root.written()
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
            Message::ResourceSchema => subject.schemas.resource,
            Message::ScopeSchema => subject.schemas.scope,
            Message::Cache => subject.cache,
        }
    }
}

fn whole_id<'a>(id: &'a [u8]) -> std::borrow::Cow<'a, [u8]> {
    if id.is_empty() {
        vec![0; 8].into()
    } else {
        id.into()
    }
}
