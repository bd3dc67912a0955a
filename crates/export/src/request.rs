//! Export requests: workers' records, concatenated, in OTLP's envelope.
//!
//! Nothing is decoded or copied: a request is a list of pieces, and a worker's buffer returns to
//! its queue when its last piece is dropped.

use std::sync::Arc;

use bytes::Bytes;
use otlp::wire::{self, Reader, Value};
use otlp::write;
use telemetry::queue::{Batch, Queue};

/// A part of a worker's batch: whole fields.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    pub bytes: Bytes,
    pub records: usize,
}

/// One export request.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// The encoded message, in pieces.
    pub frames: Vec<Bytes>,
    /// The number of its records.
    pub records: usize,
    /// Its size, bytes.
    pub bytes: usize,
}

impl Request {
    /// The message in one piece.
    pub(crate) fn flat(&self) -> Vec<u8> {
        self.frames.concat()
    }
}

impl Piece {
    /// A batch, whose buffer returns to the queue when dropped.
    pub(crate) fn new(batch: Batch, queue: &Arc<Queue>) -> Piece {
        struct Spare(Vec<u8>, Arc<Queue>);
        impl AsRef<[u8]> for Spare {
            fn as_ref(&self) -> &[u8] {
                &self.0
            }
        }
        impl Drop for Spare {
            fn drop(&mut self) {
                self.1.reuse(std::mem::take(&mut self.0));
            }
        }
        Piece {
            bytes: Bytes::from_owner(Spare(batch.bytes, Arc::clone(queue))),
            records: batch.records as usize,
        }
    }

    /// Splits off the first records: as many as the limits allow, and at least one. Bytes that are
    /// not valid fields stay together.
    pub(crate) fn split(&mut self, records_max: usize, bytes_max: usize) -> Piece {
        let (mut at, mut records) = (0, 0);
        while records < records_max.max(1) {
            let Some(len) = field_len(&self.bytes[at..]) else {
                break;
            };
            if records > 0 && at + len > bytes_max {
                break;
            }
            (at, records) = (at + len, records + 1);
        }
        if records == 0 || records >= self.records || at == self.bytes.len() {
            let records = std::mem::take(&mut self.records);
            let bytes = std::mem::take(&mut self.bytes);
            return Piece { bytes, records };
        }
        self.records -= records;
        let bytes = self.bytes.split_to(at);
        Piece { bytes, records }
    }
}

/// The size of the first field, which must be a message: its key, its length and its content.
fn field_len(bytes: &[u8]) -> Option<usize> {
    let mut reader = Reader::new(bytes);
    match reader.field().ok()??.value {
        Value::Bytes(_) => Some(bytes.len() - reader.rest().len()),
        _ => None,
    }
}

/// The messages in a sequence of message fields.
pub(crate) fn messages(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    wire::fields(bytes).map_while(|field| match field.value {
        Value::Bytes(message) => Some(message),
        _ => None,
    })
}

/// The envelope around the records of a request. The messages of the three signals have the same
/// field numbers.
#[derive(Debug)]
pub(crate) struct Envelope {
    /// `ResourceSpans.resource`: an encoded field.
    resource: Vec<u8>,
    /// `ScopeSpans.scope`: an encoded field.
    scope: Vec<u8>,
}

impl Envelope {
    pub(crate) fn new(resource: &[(String, String)], scope: &str, version: &str) -> Envelope {
        let mut envelope = Envelope {
            resource: Vec::new(),
            scope: Vec::new(),
        };
        write::message(&mut envelope.resource, 1, |out| {
            for (key, value) in resource {
                write::text_value(out, 1, key, value);
            }
        });
        write::message(&mut envelope.scope, 1, |out| {
            write::bytes(out, 1, scope.as_bytes());
            if !version.is_empty() {
                write::bytes(out, 2, version.as_bytes());
            }
        });
        envelope
    }

    /// A request made of pieces.
    pub(crate) fn request(&self, pieces: &[Piece]) -> Request {
        let records_len: usize = pieces.iter().map(|piece| piece.bytes.len()).sum();
        let scope_len = self.scope.len() + records_len;
        // Each length is preceded by a key of one byte.
        let scope_field = 1 + write::varint_len(scope_len as u64) + scope_len;
        let resource_len = self.resource.len() + scope_field;
        let mut head = Vec::with_capacity(self.resource.len() + self.scope.len() + 24);
        write::key(&mut head, 1, 2);
        write::varint(&mut head, resource_len as u64);
        head.extend_from_slice(&self.resource);
        write::key(&mut head, 2, 2);
        write::varint(&mut head, scope_len as u64);
        head.extend_from_slice(&self.scope);
        let bytes = head.len() + records_len;
        let mut frames = Vec::with_capacity(pieces.len() + 1);
        frames.push(Bytes::from(head));
        frames.extend(pieces.iter().map(|piece| piece.bytes.clone()));
        Request {
            frames,
            records: pieces.iter().map(|piece| piece.records).sum(),
            bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(lens: &[usize]) -> Piece {
        let mut bytes = Vec::new();
        for len in lens {
            write::bytes(&mut bytes, 2, &vec![7; *len]);
        }
        Piece {
            bytes: bytes.into(),
            records: lens.len(),
        }
    }

    #[test]
    fn a_piece_is_split_between_records() {
        let mut rest = piece(&[10, 200, 0, 5]);
        let first = rest.split(2, usize::MAX);
        assert_eq!((first.records, first.bytes.len()), (2, 12 + 203));
        assert_eq!((rest.records, rest.bytes.len()), (2, 2 + 7));
        let second = rest.split(9, 3);
        assert_eq!((second.records, second.bytes.len()), (1, 2));
        let third = rest.split(9, 3);
        assert_eq!(
            (third.records, third.bytes.len()),
            (1, 7),
            "larger than the limit"
        );
        assert_eq!((rest.records, rest.bytes.len()), (0, 0));
    }

    #[test]
    fn what_is_no_fields_stays_together() {
        for bytes in [&[0x12, 0x05, 1][..], &[0x08, 1], &[0xff; 12], &[0x12]] {
            let mut rest = Piece {
                bytes: Bytes::copy_from_slice(bytes),
                records: 3,
            };
            let first = rest.split(1, 1);
            assert_eq!((first.records, &first.bytes[..]), (3, bytes));
            assert!(rest.bytes.is_empty());
            assert_eq!(messages(bytes).count(), 0);
        }
    }

    #[test]
    fn messages_of_fields() {
        let bytes = piece(&[1, 0, 300]).bytes;
        let lens: Vec<_> = messages(&bytes).map(<[u8]>::len).collect();
        assert_eq!(lens, [1, 0, 300]);
    }
}
