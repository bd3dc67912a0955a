//! What a peer sends.

use std::sync::Arc;

use peers::layout::Layout;
use peers::{PeerSetup, Section, Setup, SharedTable, varint};
use tables::{Data, Definition, KeyType, Table, UpdateLog};

/// The time of all calls, in milliseconds.
const NOW_MS: u64 = 1000;
/// The entries of the table.
const ENTRIES_MAX: u32 = 8;
/// The most bytes that are sent in one turn, not counting answers to received messages.
const TURN_BYTES_MAX: usize = 32 << 10;
/// Bytes of the hello that precedes them.
const HELLO: &[u8] = b"HAProxyS 2.1\na\nb 1 1\n";

/// What a peer sends, alone and after a hello, at once and byte by byte: both ways have the same
/// effect, and the memory in use is bounded. Definitions and numbers that were read are encoded
/// again to the same bytes, unless the peer chose an encoding of another length.
pub fn peer_session(data: &[u8]) {
    let greeted = [HELLO, data].concat();
    for bytes in [data, &greeted] {
        let (at_once, in_parts) = (exchange(bytes, bytes.len().max(1)), exchange(bytes, 1));
        assert_eq!(at_once, in_parts);
    }
    if let Ok((layout, _)) = Layout::parse(data) {
        let body = layout.body();
        let again = Layout::parse(&body).expect("its own format");
        assert_eq!(again.0.columns, layout.columns);
        assert_eq!((again.0.id, again.0.key), (layout.id, layout.key));
    }
    if let Ok(Some((value, length))) = varint::get(data) {
        assert!(length <= varint::BYTES_MAX);
        let mut out = Vec::new();
        varint::put(&mut out, value);
        assert_eq!(varint::get(&out), Ok(Some((value, out.len()))));
    }
}

/// The entries of the table after an exchange, as `(key, gpc0)`.
fn exchange(data: &[u8], part_bytes: usize) -> Vec<(Vec<u8>, Option<i64>)> {
    let mut definition = Definition::new("t", KeyType::String, ENTRIES_MAX);
    // A full table would keep other entries at each run.
    definition.no_purge = true;
    let stores: [(Data, &[&str]); 4] = [
        (Data::Gpc0, &[]),
        (Data::ConnRate, &["1000"]),
        (Data::Gpt, &["2"]),
        (Data::BytesInCnt, &[]),
    ];
    for (data, arguments) in stores {
        let stored = definition.store(data, arguments, |text| text.parse().ok());
        stored.expect("a data type");
    }
    definition.store_server();
    let table = Arc::new(Table::new(definition));
    let log = UpdateLog::open(Arc::clone(&table), || {}).expect("the only log");
    table.with_new(b"own", NOW_MS, |entry| entry.touch());
    let peer = |name: &str| PeerSetup {
        name: name.to_owned(),
        shown: String::new(),
        shard: 0,
    };
    let setup = Setup {
        name: "p".to_owned(),
        local: "a".to_owned(),
        pid: 1,
        peers: vec![peer("a"), peer("b")],
        tables: vec![SharedTable {
            log,
            write_to: None,
        }],
        shards: 0,
        follows_another: false,
        random: Box::new(|| 4),
    };
    let mut section = Section::new(setup, NOW_MS);
    section.collect();
    let id = section.accept(NOW_MS).expect("room");
    for part in data.chunks(part_bytes) {
        section.receive(id, part, NOW_MS);
    }
    // What was sent in between would change what the peer may confirm.
    let sent_bytes = section.pull(id, NOW_MS).len();
    assert!(sent_bytes <= TURN_BYTES_MAX + 4 * data.len());
    section.tick(NOW_MS);
    let _ = section.view(NOW_MS);
    let mut entries = Vec::new();
    table.list(tables::Place::default(), NOW_MS, |_, entry| {
        entries.push((entry.key().to_vec(), entry.get(Data::Gpc0, 0)));
        true
    });
    assert!(entries.len() <= ENTRIES_MAX as usize);
    entries.sort();
    entries
}
