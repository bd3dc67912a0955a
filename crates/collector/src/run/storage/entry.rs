//! What is in the entries of the collector's journals. Numbers are little-endian.
//!
//! | where | entry |
//! |---|---|
//! | intake, data | signal (1 byte), length of the receiver's id (2), the id, the origin, the request |
//! | intake, note | length of the component's name (2), the name, decisions of 19 bytes: trace (16), flags (1), policy (2) |
//! | queue, data | records (8), the origin, the request |
//!
//! The origin is there where the highest bit of the signal or the records is set: its length (4),
//! and it ([`Origin::encode`]).

use std::sync::Arc;

use bytes::Bytes;
use tail::shard::Decided;

use crate::config::Signal;
use crate::run::origin::Origin;
use crate::run::prefixed::{put, take};

/// Bytes of a decision.
const DECIDED_BYTES: usize = 19;
const KEPT: u8 = 1;
const HAS_POLICY: u8 = 2;
/// Bits that say that there is an origin.
const SIGNAL_HAS_ORIGIN: u8 = 1 << 7;
const RECORDS_HAVE_ORIGIN: u64 = 1 << 63;

/// What stands before a request that a receiver took.
#[must_use]
pub fn request_head(signal: Signal, receiver: &str, origin: Option<&Origin>) -> Vec<u8> {
    let mut head = vec![signal as u8 | origin.map_or(0, |_| SIGNAL_HAS_ORIGIN)];
    put_name(receiver, &mut head);
    put_origin(origin, &mut head);
    head
}

/// A request that a receiver took.
#[derive(Debug, PartialEq, Eq)]
pub struct Taken<'a> {
    /// What it is of.
    pub signal: Signal,
    /// The receiver's id.
    pub receiver: &'a str,
    /// Where it came from, where that was kept.
    pub origin: Option<Arc<Origin>>,
    /// It.
    pub request: Bytes,
}

/// It; none where it is no such entry.
#[must_use]
pub fn request(payload: &Bytes) -> Option<Taken<'_>> {
    let (first, rest) = payload.split_first()?;
    let signal = first & !SIGNAL_HAS_ORIGIN;
    let signal = Signal::ALL.into_iter().find(|one| *one as u8 == signal)?;
    let (receiver, rest) = name(rest)?;
    let (origin, rest) = origin(first & SIGNAL_HAS_ORIGIN != 0, rest)?;
    Some(Taken {
        signal,
        receiver,
        origin,
        request: payload.slice_ref(rest),
    })
}

/// Decisions of a component.
#[must_use]
pub fn decisions(component: &str, decided: &[Decided]) -> Vec<u8> {
    let mut note = Vec::with_capacity(2 + component.len() + decided.len() * DECIDED_BYTES);
    put_name(component, &mut note);
    for one in decided {
        note.extend(one.id);
        let policy = one.policy.map_or(0, |_| HAS_POLICY);
        note.push(policy | if one.kept { KEPT } else { 0 });
        note.extend(one.policy.unwrap_or_default().to_le_bytes());
    }
    note
}

/// The component, and its decisions; none where it is no such note.
#[must_use]
pub fn read_decisions(note: &[u8]) -> Option<(&str, impl Iterator<Item = Decided>)> {
    let (component, rest) = name(note)?;
    let (decisions, []) = rest.as_chunks::<DECIDED_BYTES>() else {
        return None;
    };
    let decided = decisions.iter().filter_map(|bytes| {
        let (id, rest) = bytes.split_first_chunk::<16>()?;
        let [flags, low, high] = rest else {
            return None;
        };
        let policy = u16::from_le_bytes([*low, *high]);
        Some(Decided {
            id: *id,
            kept: flags & KEPT != 0,
            policy: (flags & HAS_POLICY != 0).then_some(policy),
        })
    });
    Some((component, decided))
}

/// What stands before a request that waits in a queue.
#[must_use]
pub fn queued_head(records: u64, origin: Option<&Origin>) -> Vec<u8> {
    let records = records | origin.map_or(0, |_| RECORDS_HAVE_ORIGIN);
    let mut head = records.to_le_bytes().to_vec();
    put_origin(origin, &mut head);
    head
}

/// Its records, its origin, and the request.
#[must_use]
pub fn queued(payload: &Bytes) -> Option<(u64, Option<Arc<Origin>>, Bytes)> {
    let (first, rest) = payload.split_first_chunk::<8>()?;
    let first = u64::from_le_bytes(*first);
    let (origin, rest) = origin(first & RECORDS_HAVE_ORIGIN != 0, rest)?;
    let records = first & !RECORDS_HAVE_ORIGIN;
    Some((records, origin, payload.slice_ref(rest)))
}

fn put_origin(origin: Option<&Origin>, out: &mut Vec<u8>) {
    if let Some(origin) = origin {
        put(out, 4, &origin.encode());
    }
}

/// An origin that is there or not, and what stands behind it.
fn origin(is_there: bool, bytes: &[u8]) -> Option<(Option<Arc<Origin>>, &[u8])> {
    if !is_there {
        return Some((None, bytes));
    }
    let mut rest = bytes;
    let origin = Origin::decode(take(&mut rest, 4)?)?;
    Some((Some(Arc::new(origin)), rest))
}

fn put_name(name: &str, out: &mut Vec<u8>) {
    // Ids are shorter: a type of 63 characters and a name of 1024.
    let len = name.floor_char_boundary(usize::from(u16::MAX));
    put(out, 2, &name.as_bytes()[..len]);
}

fn name(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let mut rest = bytes;
    let name = take(&mut rest, 2)?;
    Some((std::str::from_utf8(name).ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let body = Bytes::from_static(b"request");
        let known = Arc::new(Origin::with_fields(&[("a", "b")]));
        for origin in [None, Some(known)] {
            let mut entry = request_head(Signal::Logs, "otlp/\u{e9}", origin.as_deref());
            entry.extend(&body);
            let taken = Taken {
                signal: Signal::Logs,
                receiver: "otlp/\u{e9}",
                origin: origin.clone(),
                request: body.clone(),
            };
            assert_eq!(request(&Bytes::from(entry)), Some(taken));
            let head = queued_head(12, origin.as_deref());
            let entry = Bytes::from([&head[..], b"request"].concat());
            assert_eq!(queued(&entry), Some((12, origin, body.clone())));
        }
        let decided: Vec<Decided> = [(true, None), (false, Some(7)), (true, Some(u16::MAX))]
            .into_iter()
            .zip(0..)
            .map(|((kept, policy), number)| Decided {
                id: [number; 16],
                kept,
                policy,
            })
            .collect();
        let note = decisions("traces tail_sampling", &decided);
        let (component, read) = read_decisions(&note).unwrap();
        assert_eq!(component, "traces tail_sampling");
        assert_eq!(read.collect::<Vec<_>>(), decided);
    }

    #[test]
    fn what_is_cut_is_no_entry() {
        let known = Origin::with_fields(&[("a", "b")]);
        for origin in [None, Some(&known)] {
            let entry = Bytes::from(request_head(Signal::Traces, "otlp", origin));
            for cut in 0..entry.len() {
                assert_eq!(request(&entry.slice(..cut)), None);
            }
            let entry = Bytes::from(queued_head(1, origin));
            for cut in 0..entry.len() {
                assert_eq!(queued(&entry.slice(..cut)), None);
            }
        }
        assert_eq!(request(&Bytes::from_static(b"\x03\0\0")), None, "no signal");
        let decided = Decided {
            id: [1; 16],
            kept: true,
            policy: None,
        };
        let note = decisions("c", &[decided]);
        for cut in 4..note.len() {
            assert!(read_decisions(&note[..cut]).is_none());
        }
        assert_eq!(queued(&Bytes::from_static(b"1234567")), None);
    }
}
