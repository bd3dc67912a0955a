//! Zipkin's JSON, read span by span: what a body holds besides the span that is being read takes no
//! memory.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::net::IpAddr;

use serde::Deserializer;
use serde::de::{Deserialize, Error, MapAccess, SeqAccess, Visitor};

use super::{model, values};
use crate::run::translate::SPAN_PARTS_MAX;
use crate::run::translate::span::{Any, Attributes, Kind};

/// Reads a list and hands on each element that is not null.
///
/// # Errors
/// What is no such list, or what `each` says.
pub fn read<'a, T: Deserialize<'a>>(
    body: &'a [u8],
    each: impl FnMut(T) -> Result<(), String>,
) -> Result<(), String> {
    let mut reader = serde_json::Deserializer::from_slice(body);
    let list = List(each, PhantomData);
    let read = reader.deserialize_seq(list).and_then(|()| reader.end());
    read.map_err(|error| format!("the JSON is no list of spans: {error}"))
}

struct List<T, F>(F, PhantomData<T>);

impl<'a, T: Deserialize<'a>, F: FnMut(T) -> Result<(), String>> Visitor<'a> for List<T, F> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a list of spans")
    }

    fn visit_seq<A: SeqAccess<'a>>(mut self, mut items: A) -> Result<(), A::Error> {
        while let Some(item) = items.next_element::<Option<T>>()? {
            if let Some(item) = item {
                (self.0)(item).map_err(A::Error::custom)?;
            }
        }
        Ok(())
    }
}

/// A text that is copied only where it has escapes.
#[derive(serde::Deserialize, Debug, Default)]
pub struct Text<'a>(#[serde(borrow)] pub Cow<'a, str>);

/// What a field holds that may be null or missing.
pub fn text(text: Option<Text<'_>>) -> Cow<'_, str> {
    text.unwrap_or_default().0
}

/// A list of a span, of [`SPAN_PARTS_MAX`] elements at most.
#[derive(Debug)]
pub struct Parts<T>(pub Vec<T>);

impl<T> Default for Parts<T> {
    fn default() -> Parts<T> {
        Parts(Vec::new())
    }
}

impl<'a, T: Deserialize<'a>> Deserialize<'a> for Parts<T> {
    fn deserialize<D: Deserializer<'a>>(from: D) -> Result<Parts<T>, D::Error> {
        let mut parts = Vec::new();
        let add = |part| {
            if parts.len() == SPAN_PARTS_MAX {
                return Err(format!("a span has more than {SPAN_PARTS_MAX} annotations"));
            }
            parts.push(part);
            Ok(())
        };
        from.deserialize_seq(List(add, PhantomData))?;
        Ok(Parts(parts))
    }
}

/// `tags`
#[derive(Debug, Default)]
struct Tags<'a>(Attributes<'a>);

impl<'de: 'a, 'a> Deserialize<'de> for Tags<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Tags<'a>, D::Error> {
        struct Map;
        impl<'a> Visitor<'a> for Map {
            type Value = Tags<'a>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a map of texts")
            }

            fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<Tags<'a>, A::Error> {
                let mut tags = Tags::default();
                while let Some((key, value)) = map.next_entry::<Text<'a>, Option<Text<'a>>>()? {
                    if tags.0.0.len() == SPAN_PARTS_MAX {
                        let why = format!("a span has more than {SPAN_PARTS_MAX} tags");
                        return Err(A::Error::custom(why));
                    }
                    tags.0.add(key.0, Any::Text(text(value)));
                }
                Ok(tags)
            }
        }
        from.deserialize_map(Map)
    }
}

/// A span of version 2.
#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Span<'a> {
    #[serde(borrow)]
    trace_id: Option<Text<'a>>,
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    parent_id: Option<Text<'a>>,
    #[serde(borrow)]
    kind: Option<Text<'a>>,
    #[serde(borrow)]
    name: Option<Text<'a>>,
    timestamp: Option<u64>,
    duration: Option<u64>,
    #[serde(borrow)]
    local_endpoint: Option<Endpoint<'a>>,
    #[serde(borrow)]
    remote_endpoint: Option<Endpoint<'a>>,
    #[serde(borrow)]
    annotations: Option<Parts<Annotation<'a>>>,
    #[serde(borrow)]
    tags: Option<Tags<'a>>,
}

/// `Endpoint`, the same in both versions.
#[derive(serde::Deserialize, Debug, Default)]
#[serde(rename_all = "camelCase")]
pub struct Endpoint<'a> {
    #[serde(borrow)]
    pub service_name: Option<Text<'a>>,
    #[serde(borrow)]
    pub ipv4: Option<Text<'a>>,
    #[serde(borrow)]
    pub ipv6: Option<Text<'a>>,
    pub port: Option<i64>,
}

#[derive(serde::Deserialize, Debug)]
struct Annotation<'a> {
    timestamp: Option<u64>,
    #[serde(borrow)]
    value: Option<Text<'a>>,
}

impl<'a> Span<'a> {
    /// As the model has it.
    ///
    /// # Errors
    /// Which identifier or address is none.
    pub fn read(self) -> Result<model::Span<'a>, String> {
        let parent = text(self.parent_id);
        let annotations = self.annotations.unwrap_or_default().0.into_iter();
        let annotations = annotations.map(|one| (one.timestamp.unwrap_or(0), text(one.value)));
        Ok(model::Span {
            trace_id: values::trace_id(&text(self.trace_id))?,
            id: values::id(&text(self.id))?,
            parent_id: match &*parent {
                "" => [0; 8],
                parent => values::id(parent)?,
            },
            kind: kind(&text(self.kind)),
            name: text(self.name),
            timestamp_us: self.timestamp.unwrap_or(0),
            duration_us: self.duration.unwrap_or(0),
            local: self.local_endpoint.unwrap_or_default().read()?,
            remote: self.remote_endpoint.unwrap_or_default().read()?,
            annotations: annotations.collect(),
            tags: self.tags.unwrap_or_default().0,
        })
    }
}

impl<'a> Endpoint<'a> {
    fn read(self) -> Result<model::Endpoint<'a>, String> {
        Ok(model::Endpoint {
            v4: address(self.ipv4)?,
            v6: address(self.ipv6)?,
            port: u16::try_from(self.port.unwrap_or(0)).map_err(|_| "a port is no port")?,
            service: text(self.service_name),
        })
    }
}

fn address(written: Option<Text<'_>>) -> Result<Option<IpAddr>, String> {
    match &*text(written) {
        "" => Ok(None),
        text => match text.parse() {
            Ok(address) => Ok(Some(address)),
            Err(_) => Err("an endpoint has an address that is none".to_owned()),
        },
    }
}

fn kind(text: &str) -> Kind {
    match text {
        "CLIENT" => Kind::Client,
        "SERVER" => Kind::Server,
        "PRODUCER" => Kind::Producer,
        "CONSUMER" => Kind::Consumer,
        _ => Kind::Unspecified,
    }
}
