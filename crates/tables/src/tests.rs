use std::sync::Arc;

use crate::{
    Data, Definition, EntryRef, Event, KeyType, Place, Removal, StoreError, Table, Tracked,
};

fn period(text: &str) -> Option<u32> {
    text.parse().ok()
}

fn table(size: u32, expire_ms: Option<u64>, stores: &[(Data, &[&str])]) -> Arc<Table> {
    let mut definition = Definition::new("t", KeyType::String, size);
    definition.expire_ms = expire_ms;
    for (data, arguments) in stores {
        definition
            .store(*data, arguments, period)
            .expect("a data type");
    }
    Arc::new(Table::new(definition))
}

fn gpc0(table: &Table, key: &str, now_ms: u64) -> Option<i64> {
    table.with(key.as_bytes(), now_ms, |entry| entry.get(Data::Gpc0, 0))?
}

fn add(table: &Table, key: &str, now_ms: u64) -> bool {
    let added = table.with_new(key.as_bytes(), now_ms, |entry| {
        entry.add(Data::Gpc0, 0, 1);
        entry.touch();
    });
    added.is_some()
}

#[test]
fn entries_end_when_nobody_touches_them() {
    let table = table(10, Some(100), &[(Data::Gpc0, &[])]);
    assert!(add(&table, "a", 1_000));
    assert!(add(&table, "b", 1_050));
    assert!(add(&table, "a", 1_060));
    assert_eq!(gpc0(&table, "a", 1_159), Some(2));
    assert_eq!(gpc0(&table, "b", 1_149), Some(1));
    assert_eq!(table.used(1_149), 2);
    // Reading does not touch.
    assert_eq!(gpc0(&table, "b", 1_150), None);
    assert_eq!(table.used(1_150), 1);
    assert_eq!(table.used(1_160), 0);
    assert!(add(&table, "a", 1_160));
    assert_eq!(gpc0(&table, "a", 1_160), Some(1));
}

#[test]
fn a_full_table_gives_up_its_oldest_entry() {
    let table = table(3, None, &[(Data::Gpc0, &[])]);
    for (at, key) in ["a", "b", "c", "a", "d", "e"].into_iter().enumerate() {
        assert!(add(&table, key, at as u64));
    }
    let kept: Vec<_> = ["a", "b", "c", "d", "e"]
        .iter()
        .map(|key| gpc0(&table, key, 9))
        .collect();
    assert_eq!(kept, [Some(2), None, None, Some(1), Some(1)]);
    assert_eq!(table.used(9), 3);
}

#[test]
fn nopurge_refuses_new_entries() {
    let mut definition = Definition::new("t", KeyType::Integer, 2);
    definition.no_purge = true;
    definition.expire_ms = Some(10);
    let table = Table::new(definition);
    let make = |key: u32, now_ms| {
        let key = key.to_be_bytes();
        table
            .with_new(&key, now_ms, |entry| entry.touch())
            .is_some()
    };
    assert!(make(1, 0) && make(2, 5));
    assert!(!make(3, 9));
    assert!(make(2, 9));
    // The first one's time is over.
    assert!(make(3, 10));
    assert!(!make(4, 11));
    assert_eq!(table.used(11), 2);
}

#[test]
fn held_entries_stay() {
    let stores: [(Data, &[&str]); 2] = [(Data::ConnCur, &[]), (Data::ConnCnt, &[])];
    let table = table(2, Some(10), &stores);
    let mut tracked = Tracked::default();
    let hold = |now_ms| table.hold(b"a", now_ms).expect("room");
    tracked.track(0, hold(0), false, 0, []);
    tracked.track(2, hold(1), false, 1, []);
    let current = |now_ms| table.with(b"a", now_ms, |entry| entry.get(Data::ConnCur, 0));
    assert_eq!(current(500), Some(Some(2)));
    assert_eq!(table.remove(b"a", 500), Removal::InUse);
    for key in ["b", "c", "d"] {
        assert!(add(&table, key, 500));
    }
    assert_eq!(table.used(501), 2);
    assert_eq!(table.with(b"a", 501, |entry| entry.trackers()), Some(2));
    tracked.end(600);
    assert!(!tracked.any() && tracked.get(0).is_none());
    // Its counter changed, and so it was touched.
    assert_eq!(current(609), Some(Some(0)));
    assert_eq!(current(610), None);
}

#[test]
fn a_table_of_held_entries_takes_no_other() {
    let table = table(2, Some(10), &[]);
    let held: Vec<EntryRef> = ["a", "b"]
        .iter()
        .map(|key| table.hold(key.as_bytes(), 0).expect("room"))
        .collect();
    assert!(table.hold(b"c", 100).is_none());
    assert_eq!(table.used(100), 2);
    drop(held);
    assert!(table.hold(b"c", 100).is_some());
}

#[test]
fn keys_are_cut_and_filled() {
    let mut definition = Definition::new("t", KeyType::Binary, 4);
    definition.key_bytes = 4;
    let table = Arc::new(Table::new(definition));
    let place = |key: &[u8]| {
        let held = table.hold(key, 0).expect("room");
        held.with(0, |entry| table.definition().shown(entry.key()).to_vec())
    };
    assert_eq!(place(b"ab"), b"ab\0\0");
    assert_eq!(place(b"ab\0\0\0"), b"ab\0\0");
    assert_eq!(place(b"abcdef"), b"abcd");
    assert_eq!(table.used(0), 2);
    let strings = Definition::new("s", KeyType::String, 4);
    assert_eq!(strings.comparable(b"ab\0cd"), b"ab");
    assert_eq!(strings.comparable(&[b'x'; 40]).len(), 31);
}

#[test]
fn stores_are_checked() {
    let mut definition = Definition::new("t", KeyType::Ip, 4);
    let mut store = |data, arguments: &[&str]| definition.store(data, arguments, period);
    assert_eq!(store(Data::Gpc, &["3"]), Ok(()));
    assert_eq!(store(Data::Gpc, &["3"]), Err(StoreError::Twice));
    assert_eq!(store(Data::Gpt, &["101"]), Err(StoreError::Length));
    assert_eq!(store(Data::Gpt, &[]), Err(StoreError::MissingArgument));
    assert_eq!(
        store(Data::GpcRate, &["2"]),
        Err(StoreError::MissingArgument)
    );
    assert_eq!(store(Data::GpcRate, &["2", "x"]), Err(StoreError::Period));
    assert_eq!(store(Data::GpcRate, &["2", "500"]), Ok(()));
    assert_eq!(store(Data::ConnCnt, &["1"]), Err(StoreError::ExtraArgument));
    let table = Table::new(definition);
    table.with_new(&[1, 2, 3, 4], 1_000, |entry| {
        assert_eq!(entry.add(Data::Gpc, 2, 5), Some(5));
        assert_eq!(entry.get(Data::Gpc, 1), Some(0));
        assert_eq!(entry.get(Data::Gpc, 3), None);
        assert_eq!(entry.add(Data::GpcRate, 1, 7), Some(7));
        assert_eq!(entry.get(Data::GpcRate, 0), Some(0));
        assert_eq!(entry.get(Data::GpcRate, 1), Some(7));
        assert!(!entry.set(Data::ConnCur, 0, 1));
    });
}

#[test]
fn bytes_are_totals_and_rates_in_units() {
    let mut definition = Definition::new("t", KeyType::Ip, 4);
    definition.bytes_factor = 10;
    for (data, arguments) in [
        (Data::BytesInCnt, &[][..]),
        (Data::BytesInRate, &["1000"][..]),
    ] {
        definition.store(data, arguments, period).expect("stored");
    }
    let table = Arc::new(Table::new(definition));
    let held = table.hold(&[1, 1, 1, 1], 5_000).expect("room");
    held.count(Event::BytesIn(u64::from(u32::MAX)), 5_000);
    held.count(Event::BytesIn(12), 5_000);
    held.with(5_000, |entry| {
        let total = i64::from(u32::MAX) + 12;
        assert_eq!(entry.get(Data::BytesInCnt, 0), Some(total));
        assert_eq!(
            entry.get(Data::BytesInRate, 0),
            Some((429_496_730 + 2) * 10)
        );
    });
}

#[test]
fn servers_are_remembered() {
    let mut definition = Definition::new("t", KeyType::String, 4);
    definition.store_server();
    definition.store_server();
    let table = Table::new(definition);
    table.store_server(b"a", 0, 7, "s7");
    let found = table.with(b"a", 1, |entry| {
        let name = table.server_name(entry);
        (entry.get(Data::ServerId, 0), name)
    });
    assert_eq!(found, Some((Some(7), Some("s7".into()))));
    table.with_new(b"b", 0, |entry| assert_eq!(table.server_name(entry), None));
}

#[test]
fn listings_go_on_where_they_stopped() {
    let table = table(5_000, Some(1_000), &[(Data::Gpc0, &[])]);
    for key in 0..3_000 {
        assert!(add(&table, &key.to_string(), key / 3));
    }
    let mut seen = Vec::new();
    let mut from = Some(Place::default());
    let mut rounds = 0;
    while let Some(place) = from {
        let mut left = 100;
        from = table.list(place, 1_099, |here, entry| {
            assert_eq!(Place::of_pointer(here.pointer()), Some(here));
            seen.push(String::from_utf8_lossy(entry.key()).into_owned());
            left -= 1;
            left > 0
        });
        rounds += 1;
    }
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), 2_700);
    assert!(rounds >= 27);
    assert_eq!(table.used(1_099), 2_700);
}

/// As a list of entries would behave, whatever comes in whatever order.
#[test]
fn a_table_agrees_with_a_list() {
    for seed in 1..200_u64 {
        let (size, expire_ms) = (8, 50);
        let table = table(size, Some(expire_ms), &[(Data::Gpc0, &[])]);
        let mut list: Vec<(u64, u64, i64)> = Vec::new();
        let (mut now_ms, mut state) = (1_000, seed);
        for _ in 0..400 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let (key, what) = (state >> 8 & 15, state >> 16 & 7);
            now_ms += state >> 24 & 15;
            list.retain(|(_, touched, _)| touched + expire_ms > now_ms);
            let text = key.to_string();
            let known = list.iter_mut().find(|(known, ..)| *known == key);
            match what {
                0 => {
                    let removed = table.remove(text.as_bytes(), now_ms);
                    assert_eq!(removed == Removal::Removed, known.is_some());
                    list.retain(|(known, ..)| *known != key);
                }
                1..4 => assert_eq!(gpc0(&table, &text, now_ms), known.map(|entry| entry.2)),
                _ => {
                    assert!(add(&table, &text, now_ms));
                    match known {
                        Some(entry) => (entry.1, entry.2) = (now_ms, entry.2 + 1),
                        None => {
                            if list.len() == size as usize {
                                // Several entries may be equally old. The table removes any of
                                // them: find the one that it has removed.
                                let oldest = list.iter().map(|entry| entry.1).min();
                                let gone = list.iter().position(|entry| {
                                    Some(entry.1) == oldest
                                        && gpc0(&table, &entry.0.to_string(), now_ms).is_none()
                                });
                                list.swap_remove(gone.expect("an oldest one is gone"));
                            }
                            list.push((key, now_ms, 1));
                        }
                    }
                }
            }
            assert_eq!(table.used(now_ms), list.len() as u32, "seed {seed}");
        }
    }
}

#[test]
fn many_threads_lose_no_count() {
    const THREADS: u64 = 8;
    const ROUNDS: u64 = 5_000;
    let stores: [(Data, &[&str]); 3] = [
        (Data::Gpc0, &[]),
        (Data::ConnCur, &[]),
        (Data::HttpReqRate, &["10000"]),
    ];
    let table = table(4_096, Some(1_000_000), &stores);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let table = &table;
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    let now_ms = 1_000 + round / 100;
                    assert!(add(table, "hot", now_ms));
                    let mut tracked = Tracked::default();
                    let key = (round * (thread + 1) % 10_000).to_string();
                    if let Some(held) = table.hold(key.as_bytes(), now_ms) {
                        tracked.track(0, held, false, now_ms, [Event::Request]);
                        tracked.count(Event::Request, now_ms);
                    }
                    tracked.end(now_ms);
                }
            });
        }
    });
    let now_ms = 1_000 + ROUNDS / 100;
    assert_eq!(gpc0(&table, "hot", now_ms), Some((THREADS * ROUNDS) as i64));
    let (mut entries, mut current, mut trackers) = (0, 0, 0);
    table.list(Place::default(), now_ms, |_, entry| {
        entries += 1;
        current += entry.get(Data::ConnCur, 0).unwrap_or(0);
        trackers += entry.trackers();
        true
    });
    assert_eq!((current, trackers), (0, 0));
    assert_eq!(table.used(now_ms), entries);
    assert!(entries <= 4_096);
}
