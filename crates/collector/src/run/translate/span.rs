//! Spans on their way to OTLP (`trace.proto`, `common.proto`).

use std::borrow::Cow;
use std::collections::HashMap;

use otlp::write;

/// A value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum Any<'a> {
    Text(Cow<'a, str>),
    Bool(bool),
    Int(i64),
    Double(f64),
    Bytes(&'a [u8]),
}

impl<'a> Any<'a> {
    /// Of bytes that should be UTF-8; what is not becomes a sign of replacement.
    pub fn text(bytes: &'a [u8]) -> Any<'a> {
        Any::Text(String::from_utf8_lossy(bytes))
    }

    /// The text that it is; what is none is empty, as in the Collector.
    pub fn into_text(self) -> Cow<'a, str> {
        match self {
            Any::Text(text) => text,
            _ => Cow::Borrowed(""),
        }
    }

    /// The same, not taken.
    pub fn as_text(&self) -> &str {
        match self {
            Any::Text(text) => text,
            _ => "",
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Any::Text(text) => write::bytes(out, 1, text.as_bytes()),
            Any::Bool(value) => write::uint(out, 2, u64::from(*value)),
            Any::Int(value) => write::uint(out, 3, *value as u64),
            Any::Double(value) => write::double(out, 4, *value),
            Any::Bytes(bytes) => write::bytes(out, 7, bytes),
        }
    }
}

/// Attributes in the order in which they came.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Attributes<'a>(pub Vec<(Cow<'a, str>, Any<'a>)>);

/// Up to so many a list is searched, beyond it a table is made.
const FEW: usize = 16;

impl<'a> Attributes<'a> {
    /// Adds one; [`Attributes::unique`] makes it replace what has its key.
    pub fn add(&mut self, key: impl Into<Cow<'a, str>>, value: Any<'a>) {
        self.0.push((key.into(), value));
    }

    /// Replaces the value of a key, or adds it.
    pub fn put(&mut self, key: &'static str, value: Any<'a>) {
        match self.0.iter_mut().find(|(own, _)| own == key) {
            Some((_, place)) => *place = value,
            None => self.add(key, value),
        }
    }

    /// Leaves the last value of each key, in the place of its first.
    pub fn unique(&mut self) {
        let all = std::mem::take(&mut self.0);
        let mut places: HashMap<Cow<'a, str>, usize> = HashMap::new();
        let is_large = all.len() > FEW;
        for (key, value) in all {
            let next = self.0.len();
            let place = if is_large {
                *places.entry(key.clone()).or_insert(next)
            } else {
                let same = self.0.iter().position(|(own, _)| *own == key);
                same.unwrap_or(next)
            };
            match self.0.get_mut(place) {
                Some((_, own)) => *own = value,
                None => self.0.push((key, value)),
            }
        }
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&Any<'a>> {
        let found = self.0.iter().find(|(own, _)| own == key);
        found.map(|(_, value)| value)
    }

    /// The value of a key, which is no attribute any more.
    pub fn take(&mut self, key: &str) -> Option<Any<'a>> {
        let place = self.0.iter().position(|(own, _)| own == key)?;
        Some(self.0.remove(place).1)
    }

    /// Appends them as fields of this number.
    pub fn write(&self, out: &mut Vec<u8>, field: u32) {
        for (key, value) in &self.0 {
            write::key_value(out, field, key.as_bytes(), |out| value.write(out));
        }
    }

    /// The message `Resource` that has them.
    pub fn resource(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.write(&mut out, 1);
        out
    }
}

/// The message `InstrumentationScope` of a name and a version.
pub fn scope(name: &str, version: &str) -> Vec<u8> {
    let mut out = Vec::new();
    if !name.is_empty() {
        write::bytes(&mut out, 1, name.as_bytes());
    }
    if !version.is_empty() {
        write::bytes(&mut out, 2, version.as_bytes());
    }
    out
}

/// `Span.SpanKind`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    #[default]
    Unspecified,
    Internal,
    Server,
    Client,
    Producer,
    Consumer,
}

/// `Status.StatusCode`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Code {
    #[default]
    Unset,
    Ok,
    Error,
}

/// A span.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Span<'a> {
    pub trace_id: [u8; 16],
    pub span_id: [u8; 8],
    pub trace_state: Cow<'a, str>,
    /// Zeros: none.
    pub parent_id: [u8; 8],
    pub name: Cow<'a, str>,
    pub kind: Kind,
    pub start_ns: u64,
    pub end_ns: u64,
    pub attributes: Attributes<'a>,
    pub events: Vec<Event<'a>>,
    pub links: Vec<Link<'a>>,
    pub status: Code,
    pub status_message: Cow<'a, str>,
    /// The flags of W3C's trace context.
    pub flags: u32,
}

/// An event of a span.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Event<'a> {
    pub time_ns: u64,
    pub name: Cow<'a, str>,
    pub attributes: Attributes<'a>,
    pub dropped_attributes: u32,
}

/// A link to another span.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Link<'a> {
    pub trace_id: [u8; 16],
    pub span_id: [u8; 8],
    pub trace_state: Cow<'a, str>,
    pub attributes: Attributes<'a>,
    pub dropped_attributes: u32,
}

fn text(out: &mut Vec<u8>, field: u32, text: &str) {
    if !text.is_empty() {
        write::bytes(out, field, text.as_bytes());
    }
}

fn count(out: &mut Vec<u8>, field: u32, count: u32) {
    if count > 0 {
        write::uint(out, field, u64::from(count));
    }
}

impl Span<'_> {
    /// Appends it as a field `ScopeSpans.spans`.
    pub fn write(&self, out: &mut Vec<u8>) {
        write::message(out, 2, |out| self.write_fields(out));
    }

    fn write_fields(&self, out: &mut Vec<u8>) {
        write::bytes(out, 1, &self.trace_id);
        write::bytes(out, 2, &self.span_id);
        text(out, 3, &self.trace_state);
        if self.parent_id != [0; 8] {
            write::bytes(out, 4, &self.parent_id);
        }
        text(out, 5, &self.name);
        if self.kind != Kind::Unspecified {
            write::uint(out, 6, self.kind as u64);
        }
        write::fixed64(out, 7, self.start_ns);
        write::fixed64(out, 8, self.end_ns);
        self.attributes.write(out, 9);
        for event in &self.events {
            write::message(out, 11, |out| event.write_fields(out));
        }
        for link in &self.links {
            write::message(out, 13, |out| link.write_fields(out));
        }
        if self.status != Code::Unset || !self.status_message.is_empty() {
            write::message(out, 15, |out| {
                text(out, 2, &self.status_message);
                count(out, 3, self.status as u32);
            });
        }
        if self.flags != 0 {
            write::fixed32(out, 16, self.flags);
        }
    }
}

impl Event<'_> {
    fn write_fields(&self, out: &mut Vec<u8>) {
        write::fixed64(out, 1, self.time_ns);
        text(out, 2, &self.name);
        self.attributes.write(out, 3);
        count(out, 4, self.dropped_attributes);
    }
}

impl Link<'_> {
    fn write_fields(&self, out: &mut Vec<u8>) {
        write::bytes(out, 1, &self.trace_id);
        write::bytes(out, 2, &self.span_id);
        text(out, 3, &self.trace_state);
        self.attributes.write(out, 4);
        count(out, 5, self.dropped_attributes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_value_of_a_key_counts_and_stands_first() {
        for more in [0, 40] {
            let mut all = Attributes::default();
            for number in 0..more {
                all.add(format!("k{number}"), Any::Int(number));
            }
            all.add("a", Any::Int(1));
            all.add("b", Any::Bool(true));
            all.add("a", Any::Int(2));
            all.unique();
            assert_eq!(all.0.len() as i64, more + 2);
            assert_eq!(all.get("a"), Some(&Any::Int(2)));
            assert_eq!(all.0[more as usize].0, "a");
            assert_eq!(all.take("a"), Some(Any::Int(2)));
            assert_eq!(all.take("a"), None);
        }
    }
}
