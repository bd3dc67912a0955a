//! How many records a request holds, without decoding any.

use crate::scan::{self, Malformed, Scanner, Visitor};
use crate::wire::{Reader, Value};

use crate::Signal;

/// `Export*ServiceRequest.resource_*`
const RESOURCES: u32 = 1 << 3 | 2;
/// `Resource*.scope_*`
const SCOPES: u32 = 2 << 3 | 2;
/// `Scope*.spans`, `.metrics`, `.log_records`
const RECORDS: u32 = 2 << 3 | 2;
/// `Metric`: gauge, sum, histogram, exponential histogram, summary.
const DATA: [u32; 5] = [5 << 3 | 2, 7 << 3 | 2, 9 << 3 | 2, 10 << 3 | 2, 11 << 3 | 2];
/// `data_points` of each.
const POINTS: u32 = 1 << 3 | 2;

/// The spans, log records or data points of an `Export*ServiceRequest`.
///
/// # Errors
/// What is malformed. Records themselves are not looked into, but for metrics.
pub fn records(signal: Signal, request: &[u8]) -> Result<u64, Malformed> {
    let mut count = 0;
    each(request, RESOURCES, |resource| {
        each(resource, SCOPES, |scope| {
            count += match signal {
                Signal::Traces | Signal::Logs => fields(scope, RECORDS)?,
                Signal::Metrics => points_of(scope)?,
            };
            Ok(())
        })
    })?;
    Ok(count)
}

/// The spans of an `ExportTraceServiceRequest`, all of which is looked into.
///
/// # Errors
/// What is malformed, at any level.
pub fn well_formed_spans(request: &[u8]) -> Result<u64, Malformed> {
    let mut spans = Spans(0);
    Scanner::default().walk(request, &mut spans)?;
    Ok(spans.0)
}

/// Reads spans to count them.
struct Spans(u64);

impl<'a> Visitor<'a> for Spans {
    fn resource(&mut self, _: &[u8], _: &'a [u8]) {}

    fn scope(&mut self, _: &[u8], _: &'a [u8]) {}

    fn span(&mut self, message: &'a [u8]) -> Result<(), Malformed> {
        scan::span(message, &mut ())?;
        self.0 += 1;
        Ok(())
    }
}

/// The data points of a `Metric`.
///
/// # Errors
/// What is malformed.
pub fn points(metric: &[u8]) -> Result<u64, Malformed> {
    let mut count = 0;
    let mut reader = Reader::new(metric);
    while let Some(field) = reader.field()? {
        if let (true, Value::Bytes(data)) = (DATA.contains(&field.key), field.value) {
            count += fields(data, POINTS)?;
        }
    }
    Ok(count)
}

/// Those of all metrics of a `ScopeMetrics`.
fn points_of(scope: &[u8]) -> Result<u64, Malformed> {
    let mut count = 0;
    each(scope, RECORDS, |metric| {
        count += points(metric)?;
        Ok(())
    })?;
    Ok(count)
}

/// The messages of a key.
fn fields(message: &[u8], key: u32) -> Result<u64, Malformed> {
    let mut count = 0;
    let mut reader = Reader::new(message);
    loop {
        count += reader.pass(key)?;
        // Another one, or the same with a key that is written with more bytes than it needs.
        match reader.field()? {
            None => return Ok(count),
            Some(field) => count += u64::from(field.key == key),
        }
    }
}

/// Calls `work` with each message that is a field of this key.
#[inline]
fn each(
    message: &[u8],
    key: u32,
    mut work: impl FnMut(&[u8]) -> Result<(), Malformed>,
) -> Result<(), Malformed> {
    let mut reader = Reader::new(message);
    while let Some(field) = reader.field()? {
        if let (true, Value::Bytes(inner)) = (field.key == key, field.value) {
            work(inner)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_counted() {
        let field = |number: u8, value: &[u8]| {
            let mut field = vec![number << 3 | 2, value.len() as u8];
            field.extend_from_slice(value);
            field
        };
        let spans = [field(2, b"\x08\x01"), field(1, b""), field(2, b"")].concat();
        let scope = [field(2, &spans), field(1, b""), field(2, &spans)].concat();
        let request = field(1, &scope);
        assert_eq!(records(Signal::Traces, &request), Ok(4));
        let cut = records(Signal::Traces, &request[..7]);
        assert_eq!(cut, Err(Malformed::Truncated));
        assert_eq!(records(Signal::Traces, b""), Ok(0));
        assert_eq!(
            records(Signal::Traces, b"\x07"),
            Err(Malformed::FieldNumber)
        );
        assert_eq!(records(Signal::Traces, b"\x0b"), Err(Malformed::WireType));
        assert_eq!(records(Signal::Traces, &[0xff; 12]), Err(Malformed::Varint));
        let metric = [
            field(1, b"name"),
            field(7, &[field(1, b""), field(1, b"")].concat()),
        ]
        .concat();
        let request = field(1, &field(2, &field(2, &metric)));
        assert_eq!(records(Signal::Metrics, &request), Ok(2));
    }

    fn counted(signal: Signal, request: &[u8]) -> Option<u64> {
        records(signal, request).ok()
    }

    /// A field with a length.
    fn long(number: u8, content: &[u8]) -> Vec<u8> {
        let mut out = vec![number << 3 | 2];
        let mut length = content.len();
        while length >= 0x80 {
            out.push(length as u8 | 0x80);
            length >>= 7;
        }
        out.push(length as u8);
        out.extend(content);
        out
    }

    /// `count` spans of 200 bytes each, behind a resource and before a schema's URL.
    fn spans(count: usize) -> Vec<u8> {
        let mut scope = long(1, b"a scope");
        (0..count).for_each(|_| scope.extend(long(2, &[7; 200])));
        let mut resource = long(1, &long(2, b"looks like scopes"));
        resource.extend(long(2, &scope));
        resource.extend(long(2, &scope));
        resource.extend(long(3, b"https://example.com/schema"));
        long(1, &resource)
    }

    #[test]
    fn counts_records_of_every_scope_and_resource() {
        assert_eq!(counted(Signal::Traces, b""), Some(0));
        assert_eq!(counted(Signal::Traces, &spans(3)), Some(6));
        let twice = [spans(3), spans(40)].concat();
        assert_eq!(counted(Signal::Traces, &twice), Some(86));
        assert_eq!(counted(Signal::Logs, &twice), Some(86));
    }

    #[test]
    fn counts_points_of_every_kind_of_metric() {
        let points = [long(1, b"one"), long(1, b"two"), long(2, b"other")].concat();
        let metrics: Vec<u8> = [5, 7, 9, 10, 11, 6]
            .iter()
            .flat_map(|kind| long(2, &[long(1, b"name"), long(*kind, &points)].concat()))
            .collect();
        let message = long(1, &long(2, &metrics));
        assert_eq!(counted(Signal::Metrics, &message), Some(10));
    }

    #[test]
    fn passes_over_fields_of_every_wire_type() {
        let mut message = vec![0x48, 0x96, 0x01]; // 9: varint 150
        message.extend([0x51, 1, 2, 3, 4, 5, 6, 7, 8]); // 10: 64 bits
        message.extend([0x5d, 1, 2, 3, 4]); // 11: 32 bits
        message.extend(spans(1));
        assert_eq!(counted(Signal::Traces, &message), Some(2));
    }

    #[test]
    fn refuses_what_is_cut_or_no_protobuf() {
        let whole = spans(2);
        // Inside the one field of the message every cut leaves a length that is not there.
        for cut in 1..whole.len() {
            assert_eq!(counted(Signal::Traces, &whole[..cut]), None, "{cut}");
        }
        assert_eq!(counted(Signal::Traces, &[0x0b, 0]), None, "a group");
        assert_eq!(counted(Signal::Traces, &[0x02, 0]), None, "field 0");
        assert_eq!(counted(Signal::Traces, &[0xff; 11]), None, "a long varint");
        assert_eq!(
            counted(
                Signal::Traces,
                &[
                    0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f
                ]
            ),
            None
        );
    }
}
