//! OTLP's protobuf, as far as needed to count records: it follows lengths and does not read contents.

/// The signal of a message; the number is its index in counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Spans.
    Traces,
    /// Log records.
    Logs,
    /// Data points.
    Metrics,
}

/// The field numbers that lead to records, one level of messages after the other.
type Path = &'static [&'static [u64]];

/// `resource_spans`, `scope_spans`, `spans`; logs have other names with the same numbers.
const RECORDS: Path = &[&[1], &[2], &[2]];
/// `resource_metrics`, `scope_metrics`, `metrics`; then a gauge, a sum, either histogram or a summary; `data_points`.
const POINTS: Path = &[&[1], &[2], &[2], &[5, 7, 9, 10, 11], &[1]];

/// A varint has at most this many bytes.
const VARINT_BYTES_MAX: usize = 10;

/// The number of records in `message`, an export request; `None` if it is malformed.
pub fn records(signal: Signal, message: &[u8]) -> Option<u64> {
    match signal {
        Signal::Traces | Signal::Logs => walk(message, RECORDS),
        Signal::Metrics => walk(message, POINTS),
    }
}

fn walk(message: &[u8], path: &[&[u64]]) -> Option<u64> {
    let Some((wanted, below)) = path.split_first() else {
        return Some(1);
    };
    let mut rest = message;
    let mut total = 0;
    while !rest.is_empty() {
        let tag = varint(&mut rest)?;
        let number = tag >> 3;
        if number == 0 {
            return None;
        }
        match tag & 7 {
            0 => drop(varint(&mut rest)?),
            1 => drop(take(&mut rest, 8)?),
            2 => {
                let length = varint(&mut rest)?;
                let content = take(&mut rest, usize::try_from(length).ok()?)?;
                if wanted.contains(&number) {
                    total += walk(content, below)?;
                }
            }
            5 => drop(take(&mut rest, 4)?),
            _ => return None,
        }
    }
    Some(total)
}

fn take<'a>(rest: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, after) = rest.split_at_checked(count)?;
    *rest = after;
    Some(taken)
}

fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for (place, byte) in rest.iter().take(VARINT_BYTES_MAX).enumerate() {
        let bits = u64::from(byte & 0x7f);
        // The tenth byte has room for one bit.
        if place == VARINT_BYTES_MAX - 1 && bits > 1 {
            return None;
        }
        value |= bits << (7 * place);
        if byte & 0x80 == 0 {
            *rest = &rest[place + 1..];
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A field with a length.
    fn field(number: u8, content: &[u8]) -> Vec<u8> {
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

    /// `count` spans of 200 bytes each, after a resource and before a schema URL.
    fn spans(count: usize) -> Vec<u8> {
        let mut scope = field(1, b"a scope");
        (0..count).for_each(|_| scope.extend(field(2, &[7; 200])));
        let mut resource = field(1, &field(2, b"looks like scopes"));
        resource.extend(field(2, &scope));
        resource.extend(field(2, &scope));
        resource.extend(field(3, b"https://example.com/schema"));
        field(1, &resource)
    }

    #[test]
    fn counts_records_of_every_scope_and_resource() {
        assert_eq!(records(Signal::Traces, b""), Some(0));
        assert_eq!(records(Signal::Traces, &spans(3)), Some(6));
        let twice = [spans(3), spans(40)].concat();
        assert_eq!(records(Signal::Traces, &twice), Some(86));
        assert_eq!(records(Signal::Logs, &twice), Some(86));
    }

    #[test]
    fn counts_points_of_every_kind_of_metric() {
        let points = [field(1, b"one"), field(1, b"two"), field(2, b"other")].concat();
        let metrics: Vec<u8> = [5, 7, 9, 10, 11, 6]
            .iter()
            .flat_map(|kind| field(2, &[field(1, b"name"), field(*kind, &points)].concat()))
            .collect();
        let message = field(1, &field(2, &metrics));
        assert_eq!(records(Signal::Metrics, &message), Some(10));
    }

    #[test]
    fn passes_over_fields_of_every_wire_type() {
        let mut message = vec![0x48, 0x96, 0x01]; // 9: varint 150
        message.extend([0x51, 1, 2, 3, 4, 5, 6, 7, 8]); // 10: 64 bits
        message.extend([0x5d, 1, 2, 3, 4]); // 11: 32 bits
        message.extend(spans(1));
        assert_eq!(records(Signal::Traces, &message), Some(2));
    }

    #[test]
    fn refuses_what_is_cut_or_no_protobuf() {
        let whole = spans(2);
        // Within the single field of the message, every cut leaves a length that exceeds the bytes.
        for cut in 1..whole.len() {
            assert_eq!(records(Signal::Traces, &whole[..cut]), None, "{cut}");
        }
        assert_eq!(records(Signal::Traces, &[0x0b, 0]), None, "a group");
        assert_eq!(records(Signal::Traces, &[0x02, 0]), None, "field 0");
        assert_eq!(records(Signal::Traces, &[0xff; 11]), None, "a long varint");
        assert_eq!(
            records(
                Signal::Traces,
                &[
                    0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f
                ]
            ),
            None
        );
    }
}
