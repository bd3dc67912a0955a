//! What the codec of HTTP/3 reads and writes ([`http::h3::record`]), as calls of a connection.

use http::h3::record::{self, Kind, Record};

use crate::{Connection, Received};

/// The records of a connection: what comes on its streams becomes records, and records that are
/// sent are written to them.
#[derive(Debug, Default)]
pub struct Records {
    /// Records that the codec has given back, to be read again.
    echoes: Vec<u8>,
    /// What closes the connection: a code and a reason.
    close: Option<(u64, Vec<u8>)>,
}

impl Records {
    /// Writes the records of the codec to the streams.
    pub fn send(&mut self, connection: &mut Connection, mut records: &[u8]) {
        while let Ok(Some((record, bytes))) = Record::read(records) {
            let stream = record.head.stream;
            match record.head.kind {
                Kind::Data => connection.write(stream, record.payload, record.head.end),
                Kind::Fin => connection.write(stream, b"", true),
                Kind::Reset => connection.reset(stream, record.number()),
                Kind::Stop => connection.stop(stream, record.number()),
                Kind::Consumed => connection.consumed(stream, record.number()),
                Kind::Priority => connection.prioritize(stream, record.priority()),
                Kind::Echo => self.echoes.extend_from_slice(&records[..bytes]),
                Kind::Close => {
                    self.close
                        .get_or_insert_with(|| (record.number(), record.reason().to_vec()));
                }
                // These go the other way.
                Kind::Stopped | Kind::Written | Kind::Streams => {}
            }
            records = &records[bytes..];
        }
    }

    /// Appends the records of what came, until there are `most` bytes of them. What was given back
    /// comes behind all that has come meanwhile.
    pub fn receive(&mut self, connection: &mut Connection, most: usize, records: &mut Vec<u8>) {
        while records.len() < most {
            let Some(received) = connection.receive() else {
                records.append(&mut self.echoes);
                return;
            };
            match received {
                Received::Data {
                    stream,
                    bytes,
                    ends,
                } => record::data(stream, &bytes, ends, records),
                Received::Fin(stream) => record::fin(stream, records),
                Received::Reset { stream, code } => record::reset(stream, code, records),
                Received::Stopped { stream, code } => record::stopped(stream, code, records),
                Received::Streams(count) => record::streams(count, records),
                Received::Written { stream, bytes } => {
                    record::written(stream.unwrap_or(record::CONNECTION), bytes, records);
                }
            }
        }
    }

    /// Asks for the connection to be closed with a code of HTTP/3 (RFC 9114 §8.1). Only the first
    /// code is used.
    pub fn ask_to_close(&mut self, code: u64) {
        self.close.get_or_insert((code, Vec::new()));
    }

    /// Closes the connection if that was asked for.
    pub fn close_if_asked(&mut self, connection: &mut Connection, now_ns: u64) {
        if let Some((code, reason)) = self.close.take() {
            connection.close(now_ns, code, &reason);
        }
    }
}
