//! Files of a journal: written from the input and damaged as it says, and the input itself as a
//! file.

use bytes::Bytes;
use collector::run::storage::entry;
use journal::format::{
    HEAD_BYTES, Item, Items, Kind, START_BYTES, has_start, head, read_done, start,
};

/// The segment.
const NUMBER: u64 = 3;

/// The input as a file; and as what is written to one, cut and changed: first how many bytes are
/// cut off, where one is changed and how, then payloads, each behind its kind and length.
pub fn journal_file(data: &[u8]) {
    walk(data);
    let Some((&[cut, at, change], payloads)) = data.split_first_chunk() else {
        return;
    };
    let (file, entries) = written(payloads);
    assert!(has_start(NUMBER, &file));
    assert_eq!(walk(&file), entries, "what is written is read");
    let end = file.len() - usize::from(cut) % (file.len() - START_BYTES + 1);
    let mut damaged = file[..end].to_vec();
    let hit = START_BYTES + usize::from(at) * (file.len() - START_BYTES) / 256;
    if let Some(byte) = damaged.get_mut(hit) {
        *byte ^= change;
    }
    let is_whole = |(at, _, payload): &&(u64, Kind, Vec<u8>)| {
        let (from, to) = (*at as usize, *at as usize + HEAD_BYTES + payload.len());
        to <= end && (change == 0 || !(from..to).contains(&hit))
    };
    let whole: Vec<_> = entries.iter().filter(is_whole).cloned().collect();
    assert_eq!(
        walk(&damaged),
        whole,
        "damage takes what it hits, and nothing else"
    );
}

type Entry = (u64, Kind, Vec<u8>);

fn written(mut payloads: &[u8]) -> (Vec<u8>, Vec<Entry>) {
    let (mut file, mut entries) = (start(NUMBER).to_vec(), Vec::new());
    while let Some((&[kind, len], rest)) = payloads.split_first_chunk() {
        let kind = [Kind::Data, Kind::Done, Kind::Note][usize::from(kind) % 3];
        let (payload, rest) = rest.split_at(rest.len().min(len.into()));
        let (first, second) = payload.split_at(payload.len() / 3);
        let at = file.len() as u64;
        file.extend(head(NUMBER, at, kind, [first, second]));
        file.extend(payload);
        entries.push((at, kind, payload.to_vec()));
        payloads = rest;
    }
    (file, entries)
}

/// The entries of a file: all bytes are those of an entry or damaged, in their order.
fn walk(file: &[u8]) -> Vec<Entry> {
    let (mut end, mut entries) = (START_BYTES.min(file.len()) as u64, Vec::new());
    for item in Items::new(NUMBER, file) {
        match item {
            Item::Damaged(at, bytes) => {
                assert!(at == end && bytes > 0);
                end += bytes;
            }
            Item::Entry { at, kind, payload } => {
                assert_eq!(at, end);
                end += (HEAD_BYTES + payload.len()) as u64;
                entries.push((at, kind, payload.to_vec()));
                contents(payload);
            }
        }
    }
    assert_eq!(end, file.len() as u64);
    entries
}

/// What users of the journal make of it; what is read is written the same.
fn contents(payload: &[u8]) {
    assert_eq!(read_done(payload).is_some(), payload.len() >= 16);
    if let Some((component, decided)) = entry::read_decisions(payload) {
        let decided: Vec<_> = decided.collect();
        let written = entry::decisions(component, &decided);
        assert_eq!(written.len(), payload.len());
        let (again, read) = entry::read_decisions(&written).expect("what was written");
        assert_eq!((again, read.collect()), (component, decided));
    }
    let payload = Bytes::copy_from_slice(payload);
    if let Some(taken) = entry::request(&payload) {
        let head = entry::request_head(taken.signal, taken.receiver, taken.origin.as_deref());
        assert_eq!([&head, &taken.request[..]].concat(), payload);
    }
    if let Some((records, origin, request)) = entry::queued(&payload) {
        let head = entry::queued_head(records, origin.as_deref());
        assert_eq!([&head, &request[..]].concat(), payload);
    }
}
