//! What is in the entries of the collector's journals. Numbers are little-endian.
//!
//! | where | entry |
//! |---|---|
//! | intake, data | signal (1 byte), length of the receiver's id (2), the id, the request |
//! | intake, note | length of the component's name (2), the name, decisions of 19 bytes: trace (16), flags (1), policy (2) |
//! | queue, data | records (8), the request |

use bytes::Bytes;
use tail::shard::Decided;

use crate::config::Signal;

/// Bytes of a decision.
const DECIDED_BYTES: usize = 19;
const KEPT: u8 = 1;
const HAS_POLICY: u8 = 2;

/// What stands before a request that a receiver took.
#[must_use]
pub fn request_head(signal: Signal, receiver: &str) -> Vec<u8> {
    let mut head = vec![signal as u8];
    put_name(receiver, &mut head);
    head
}

/// Its signal, its receiver and the request; none where it is no such entry.
#[must_use]
pub fn request(payload: &Bytes) -> Option<(Signal, &str, Bytes)> {
    let (signal, rest) = payload.split_first()?;
    let signal = Signal::ALL.into_iter().find(|one| *one as u8 == *signal)?;
    let (receiver, rest) = name(rest)?;
    Some((signal, receiver, payload.slice_ref(rest)))
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
pub fn queued_head(records: u64) -> Vec<u8> {
    records.to_le_bytes().to_vec()
}

/// Its records, and the request.
#[must_use]
pub fn queued(payload: &Bytes) -> Option<(u64, Bytes)> {
    let (records, rest) = payload.split_first_chunk::<8>()?;
    Some((u64::from_le_bytes(*records), payload.slice_ref(rest)))
}

fn put_name(name: &str, out: &mut Vec<u8>) {
    // Ids are shorter: a type of 63 characters and a name of 1024.
    let len = name.floor_char_boundary(usize::from(u16::MAX));
    out.extend((len as u16).to_le_bytes());
    out.extend(&name.as_bytes()[..len]);
}

fn name(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let (len, rest) = bytes.split_first_chunk::<2>()?;
    let (name, rest) = rest.split_at_checked(u16::from_le_bytes(*len).into())?;
    Some((std::str::from_utf8(name).ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let body = Bytes::from_static(b"request");
        let mut entry = request_head(Signal::Logs, "otlp/\u{e9}");
        entry.extend(&body);
        let entry = Bytes::from(entry);
        assert_eq!(
            request(&entry),
            Some((Signal::Logs, "otlp/\u{e9}", body.clone()))
        );
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
        let entry = Bytes::from([queued_head(12), b"request".to_vec()].concat());
        assert_eq!(queued(&entry), Some((12, body)));
    }

    #[test]
    fn what_is_cut_is_no_entry() {
        let entry = Bytes::from(request_head(Signal::Traces, "otlp"));
        for cut in 0..entry.len() {
            assert_eq!(request(&entry.slice(..cut)), None);
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
