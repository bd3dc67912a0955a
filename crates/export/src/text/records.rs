//! Spans and log records as text, read from protobuf field by field
//! (`opentelemetry/proto/{trace,logs}/v1`).

use otlp::Signal;

use super::write::Writer;
use otlp::scan::Malformed;
use otlp::wire::{Wire, field};

/// The ratio of text size to protobuf size, measured on spans of the filter.
const GROWTH: usize = 3;

/// The names of `SpanKind`.
const KINDS: [&str; 6] = [
    "unspecified",
    "internal",
    "server",
    "client",
    "producer",
    "consumer",
];
/// The names of `StatusCode`.
const CODES: [&str; 3] = ["unset", "ok", "error"];
/// The names of `SeverityNumber`.
const SEVERITIES: [&str; 25] = [
    "unspecified",
    "trace",
    "trace2",
    "trace3",
    "trace4",
    "debug",
    "debug2",
    "debug3",
    "debug4",
    "info",
    "info2",
    "info3",
    "info4",
    "warn",
    "warn2",
    "warn3",
    "warn4",
    "error",
    "error2",
    "error3",
    "error4",
    "fatal",
    "fatal2",
    "fatal3",
    "fatal4",
];

/// A request of spans or of log records as text.
pub(super) fn encode(signal: Signal, request: &[u8]) -> Result<Vec<u8>, Malformed> {
    let mut records = Records {
        writer: Writer::new(request.len() * GROWTH),
        lists: Vec::new(),
    };
    // Both messages have the same field numbers, except inside the records.
    each(request, |number, wire| match number {
        1 => records.origin(signal, wire.message()?),
        _ => Ok(()),
    })?;
    Ok(records.writer.out)
}

/// Calls `take` with each field of a message.
#[inline]
fn each<'a>(
    message: &'a [u8],
    mut take: impl FnMut(u64, Wire<'a>) -> Result<(), Malformed>,
) -> Result<(), Malformed> {
    let mut rest = message;
    while !rest.is_empty() {
        let (number, wire, behind) = field(rest).ok_or(Malformed::Truncated)?;
        rest = behind;
        take(number, wire)?;
    }
    Ok(())
}

struct Records<'a> {
    writer: Writer,
    /// Elements of the lists of the current record, each with its field number.
    lists: Vec<(u64, &'a [u8])>,
}

impl<'a> Records<'a> {
    /// `ResourceSpans` or `ResourceLogs`.
    fn origin(&mut self, signal: Signal, message: &'a [u8]) -> Result<(), Malformed> {
        // The resource is written first, whatever the order of the fields.
        let mut resource = &[][..];
        each(message, |number, wire| {
            if number == 1 {
                resource = wire.message()?;
            }
            Ok(())
        })?;
        self.writer.raw("resource");
        let writer = &mut self.writer;
        each(resource, |number, wire| match number {
            1 => writer.pair(" ", wire.message()?),
            _ => Ok(()),
        })?;
        self.writer.raw("\n");
        each(message, |number, wire| match number {
            2 => self.scope(signal, wire.message()?),
            _ => Ok(()),
        })
    }

    /// `ScopeSpans` or `ScopeLogs`.
    fn scope(&mut self, signal: Signal, message: &'a [u8]) -> Result<(), Malformed> {
        let mut scope = None;
        each(message, |number, wire| {
            if number == 1 {
                scope = Some(wire.message()?);
            }
            Ok(())
        })?;
        if let Some(scope) = scope {
            let (mut name, mut version) = (&[][..], &[][..]);
            each(scope, |number, wire| {
                match number {
                    1 => name = wire.message()?,
                    2 => version = wire.message()?,
                    _ => {}
                }
                Ok(())
            })?;
            self.writer.raw("scope ");
            self.writer.quoted(name);
            self.writer.raw(" version ");
            self.writer.quoted(version);
            self.writer.raw("\n");
        }
        each(message, |number, wire| match (number, signal) {
            (2, Signal::Logs) => self.log(wire.message()?),
            (2, _) => self.span(wire.message()?),
            _ => Ok(()),
        })
    }

    fn span(&mut self, message: &'a [u8]) -> Result<(), Malformed> {
        let mut span = Span::default();
        self.lists.clear();
        let lists = &mut self.lists;
        each(message, |number, wire| {
            match number {
                1 => span.trace_id = wire.message()?,
                2 => span.span_id = wire.message()?,
                4 => span.parent = wire.message()?,
                5 => span.name = wire.message()?,
                6 => span.kind = wire.number()?,
                7 => span.start_ns = wire.number()?,
                8 => span.end_ns = wire.number()?,
                9 | 11 | 13 => lists.push((number, wire.message()?)),
                15 => span.status = Some(wire.message()?),
                _ => {}
            }
            Ok(())
        })?;
        self.head(&span);
        if let Some(status) = span.status {
            self.status(status)?;
        }
        self.attributes(9)?;
        let lists = std::mem::take(&mut self.lists);
        for &(_, event) in lists.iter().filter(|(number, _)| *number == 11) {
            self.event(event)?;
        }
        for &(_, link) in lists.iter().filter(|(number, _)| *number == 13) {
            self.link(link)?;
        }
        self.lists = lists;
        Ok(())
    }

    #[inline]
    fn head(&mut self, span: &Span<'_>) {
        let writer = &mut self.writer;
        writer.raw("span ");
        writer.quoted(span.name);
        writer.raw(" trace ");
        writer.trace_id(span.trace_id);
        writer.raw(" id ");
        writer.hex(span.span_id);
        writer.raw(" parent ");
        match span.parent {
            [] => writer.raw("none"),
            parent => writer.hex(parent),
        }
        writer.raw(" kind ");
        writer.raw(name(&KINDS, span.kind));
        writer.raw(" start ");
        writer.time(span.start_ns);
        writer.raw(" duration ");
        writer.microseconds(span.end_ns.saturating_sub(span.start_ns));
        writer.raw(" us\n");
    }

    fn status(&mut self, message: &[u8]) -> Result<(), Malformed> {
        let (mut code, mut text) = (0, &[][..]);
        each(message, |number, wire| {
            match number {
                2 => text = wire.message()?,
                3 => code = wire.number()?,
                _ => {}
            }
            Ok(())
        })?;
        self.writer.raw("  status ");
        self.writer.raw(name(&CODES, code));
        self.writer.raw(" ");
        self.writer.quoted(text);
        self.writer.raw("\n");
        Ok(())
    }

    /// The attributes of a record, which are elements of a list, one per line.
    #[inline]
    fn attributes(&mut self, list: u64) -> Result<(), Malformed> {
        for &(number, pair) in &self.lists {
            if number == list {
                self.writer.pair("  ", pair)?;
                self.writer.raw("\n");
            }
        }
        Ok(())
    }

    fn event(&mut self, message: &[u8]) -> Result<(), Malformed> {
        let (mut time_ns, mut name) = (0, &[][..]);
        each(message, |number, wire| {
            match number {
                1 => time_ns = wire.number()?,
                2 => name = wire.message()?,
                _ => {}
            }
            Ok(())
        })?;
        self.writer.raw("  event ");
        self.writer.quoted(name);
        self.writer.raw(" at ");
        self.writer.time(time_ns);
        self.pairs(message, 3)
    }

    fn link(&mut self, message: &[u8]) -> Result<(), Malformed> {
        let (mut trace_id, mut span_id) = (&[][..], &[][..]);
        each(message, |number, wire| {
            match number {
                1 => trace_id = wire.message()?,
                2 => span_id = wire.message()?,
                _ => {}
            }
            Ok(())
        })?;
        self.writer.raw("  link trace ");
        self.writer.trace_id(trace_id);
        self.writer.raw(" id ");
        self.writer.hex(span_id);
        self.pairs(message, 4)
    }

    /// Appends the attributes of a message to the current line, and ends it.
    fn pairs(&mut self, message: &[u8], list: u64) -> Result<(), Malformed> {
        let writer = &mut self.writer;
        each(message, |number, wire| {
            if number == list {
                writer.pair(" ", wire.message()?)
            } else {
                Ok(())
            }
        })?;
        self.writer.raw("\n");
        Ok(())
    }

    fn log(&mut self, message: &'a [u8]) -> Result<(), Malformed> {
        let mut log = Log::default();
        self.lists.clear();
        let lists = &mut self.lists;
        each(message, |number, wire| {
            match number {
                1 => log.time_ns = wire.number()?,
                2 => log.severity = wire.number()?,
                5 => log.body = Some(wire.message()?),
                6 => lists.push((number, wire.message()?)),
                9 => log.trace_id = wire.message()?,
                10 => log.span_id = wire.message()?,
                12 => log.event = wire.message()?,
                _ => {}
            }
            Ok(())
        })?;
        let writer = &mut self.writer;
        writer.raw("log ");
        writer.raw(name(&SEVERITIES, log.severity));
        writer.raw(" at ");
        writer.time(log.time_ns);
        writer.raw(" ");
        match log.body {
            Some(body) => writer.value(body)?,
            None => writer.raw("null"),
        }
        if !log.event.is_empty() {
            writer.raw(" event ");
            writer.quoted(log.event);
        }
        if !log.trace_id.is_empty() {
            writer.raw(" trace ");
            writer.trace_id(log.trace_id);
            writer.raw(" span ");
            writer.hex(log.span_id);
        }
        writer.raw("\n");
        self.attributes(6)
    }
}

/// The content of a span's line, and its status.
#[derive(Default)]
struct Span<'a> {
    trace_id: &'a [u8],
    span_id: &'a [u8],
    parent: &'a [u8],
    name: &'a [u8],
    kind: u64,
    start_ns: u64,
    end_ns: u64,
    status: Option<&'a [u8]>,
}

/// The content of a log record's line.
#[derive(Default)]
struct Log<'a> {
    time_ns: u64,
    severity: u64,
    body: Option<&'a [u8]>,
    trace_id: &'a [u8],
    span_id: &'a [u8],
    event: &'a [u8],
}

/// The name of an enumeration's number; for an unknown number, the name of 0.
#[inline]
fn name(names: &[&'static str], number: u64) -> &'static str {
    let place = usize::try_from(number).unwrap_or(usize::MAX);
    names
        .get(place)
        .or(names.first())
        .copied()
        .unwrap_or_default()
}
