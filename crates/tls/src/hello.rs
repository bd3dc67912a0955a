//! Reads the first handshake message of a client, its hello (RFC 8446 §4.1.2), before an acceptor
//! is chosen by it.
//!
//! The message may be cut into any number of records (RFC 8446 §5.1). This module only joins them;
//! the library reads them again afterwards, and [`crate::Session::accept`] checks that it read the
//! same name.

use rustls::pki_types::ServerName;

/// Record types (RFC 8446 §5.1).
const HANDSHAKE: u8 = 22;
const ALERT: u8 = 21;
/// The type of a hello (RFC 8446 §4).
const CLIENT_HELLO: u8 = 1;
/// Type and length of a message (RFC 8446 §4).
const MESSAGE_HEADER_BYTES: usize = 4;
/// The longest message that the library reads, without its header.
const MESSAGE_BYTES_MAX: usize = 0xffff;
/// The longest content of a record (RFC 8446 §5.1).
const RECORD_BYTES_MAX: usize = 1 << 14;
const RECORD_HEADER_BYTES: usize = 5;

/// Joins the records of a hello. Each call gets all bytes since the beginning of the connection;
/// each byte is read once.
#[derive(Debug, Default)]
pub(crate) struct HelloReader {
    /// The position of the next record.
    at: usize,
    /// The message so far, if it does not fit in the first record.
    joined: Vec<u8>,
    result: Option<Reading>,
}

/// What the bytes so far are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// The beginning of a hello.
    Unfinished,
    /// A hello with this many bytes.
    Whole(usize),
    /// No hello, whatever follows.
    Unreadable,
}

impl HelloReader {
    /// Continues with the bytes since the last call; `bytes` begins with those that it has read.
    pub fn read(&mut self, bytes: &[u8]) -> Reading {
        loop {
            if let Some(result) = self.result {
                return result;
            }
            let content = match bytes.get(self.at..).unwrap_or_default() {
                [HANDSHAKE, 3, _, high, low, rest @ ..] => {
                    let len = usize::from(u16::from_be_bytes([*high, *low]));
                    if len == 0 || len > RECORD_BYTES_MAX {
                        return self.end(Reading::Unreadable);
                    }
                    match rest.get(..len) {
                        Some(content) => content,
                        None => return Reading::Unfinished,
                    }
                }
                [] | [HANDSHAKE] | [HANDSHAKE, 3, ..] => return Reading::Unfinished,
                _ => return self.end(Reading::Unreadable),
            };
            let is_first = self.at == 0;
            self.at += RECORD_HEADER_BYTES + content.len();
            if is_first {
                self.result = message(content);
            }
            if self.result.is_none() {
                self.joined.extend_from_slice(content);
                self.result = message(&self.joined);
            }
        }
    }

    fn end(&mut self, result: Reading) -> Reading {
        self.result = Some(result);
        result
    }

    /// The hello with its header, once it is whole. `bytes` are those of the last
    /// [`HelloReader::read`].
    pub fn hello<'a>(&'a self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        let Some(Reading::Whole(len)) = self.result else {
            return None;
        };
        if self.joined.is_empty() {
            bytes.get(RECORD_HEADER_BYTES..)?.get(..len)
        } else {
            self.joined.get(..len)
        }
    }
}

/// Whether bytes are a whole message or none; None: more of it must follow.
fn message(bytes: &[u8]) -> Option<Reading> {
    match bytes {
        [CLIENT_HELLO, a, b, c, ..] => {
            let len = u32::from_be_bytes([0, *a, *b, *c]) as usize;
            if len > MESSAGE_BYTES_MAX {
                return Some(Reading::Unreadable);
            }
            let len = len + MESSAGE_HEADER_BYTES;
            (bytes.len() >= len).then_some(Reading::Whole(len))
        }
        [CLIENT_HELLO, ..] => None,
        _ => Some(Reading::Unreadable),
    }
}

/// The name that a client requests, as sessions give it: in lower case. `name` is the host name in
/// its server_name extension (RFC 6066 §3). None if it is an address, which counts as no name, or
/// if it is invalid: then the session refuses the client.
#[must_use]
pub fn requested_name(name: &[u8]) -> Option<String> {
    match ServerName::try_from(name) {
        Ok(ServerName::DnsName(name)) => Some(name.to_lowercase_owned().as_ref().to_owned()),
        _ => None,
    }
}

/// A record with a fatal alert (RFC 8446 §6), for a client that has got no other record.
pub(crate) fn fatal_alert(description: u8) -> [u8; 7] {
    const FATAL: u8 = 2;
    [ALERT, 3, 3, 0, 2, FATAL, description]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(content: &[u8]) -> Vec<u8> {
        let len = (content.len() as u16).to_be_bytes();
        [&[HANDSHAKE, 3, 1], &len[..], content].concat()
    }

    fn hello(len: usize) -> Vec<u8> {
        let head = (len as u32).to_be_bytes();
        let body: Vec<u8> = (0..len).map(|at| at as u8).collect();
        [&[CLIENT_HELLO], &head[1..], &body].concat()
    }

    #[test]
    fn a_hello_is_read_however_it_is_cut() {
        for len in [0, 1, 300, 20_000, MESSAGE_BYTES_MAX] {
            let message = hello(len);
            for piece in [1, 2, 3, 4, 5, 100, 16_384] {
                let records: Vec<u8> = message.chunks(piece).flat_map(record).collect();
                for step in [1, 7, records.len()] {
                    let mut reader = HelloReader::default();
                    let mut end = 0;
                    while end < records.len() {
                        assert_eq!(reader.read(&records[..end]), Reading::Unfinished);
                        assert_eq!(reader.hello(&records[..end]), None);
                        end = (end + step).min(records.len());
                    }
                    let whole = Reading::Whole(message.len());
                    assert_eq!(reader.read(&records), whole, "{len} {piece} {step}");
                    assert_eq!(reader.hello(&records), Some(&message[..]));
                }
            }
        }
    }

    #[test]
    fn what_follows_a_hello_is_not_a_part_of_it() {
        let message = hello(30);
        let more = record(&[&message[..], b"more"].concat());
        let mut reader = HelloReader::default();
        assert_eq!(reader.read(&more), Reading::Whole(34));
        assert_eq!(reader.hello(&more), Some(&message[..]));
    }

    #[test]
    fn other_bytes_are_refused_at_the_first_that_is_wrong() {
        let too_long = (RECORD_BYTES_MAX as u16 + 1).to_be_bytes();
        let first = record(&hello(30)[..10]);
        let after = |bytes: &[u8]| [&first[..], bytes].concat();
        let all: [&[u8]; 11] = [
            b"G",
            &[0x80],
            &[HANDSHAKE, 2],
            &[ALERT],
            &record(b""),
            &[&[HANDSHAKE, 3, 1], &too_long[..]].concat(),
            &record(&[2]),
            &record(&[CLIENT_HELLO, 1, 0, 0]),
            &after(&[ALERT]),
            &after(&record(b"")),
            &after(&[20]),
        ];
        for bytes in all {
            let mut reader = HelloReader::default();
            let before = &bytes[..bytes.len() - 1];
            assert_eq!(reader.read(before), Reading::Unfinished, "{bytes:?}");
            assert_eq!(reader.read(bytes), Reading::Unreadable, "{bytes:?}");
            assert_eq!(reader.hello(bytes), None);
            let longer = [bytes, &record(&hello(30))].concat();
            assert_eq!(reader.read(&longer), Reading::Unreadable);
        }
    }

    #[test]
    fn names_are_those_of_hosts() {
        let of = |name: &[u8]| requested_name(name);
        assert_eq!(of(b"ONE.test").as_deref(), Some("one.test"));
        assert_eq!(of(b"one.test.").as_deref(), Some("one.test."));
        for none in [&b"127.0.0.1"[..], b"::1", b"", b"one\xff", b"a b"] {
            assert_eq!(of(none), None, "{none:?}");
        }
    }
}
