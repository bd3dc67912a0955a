use std::sync::atomic::{AtomicU32, Ordering};

use super::*;
use crate::{Change, Data, Definition, KeyType, Password, Share, Store, StoreAddress, Total};

const NOW_MS: u64 = 100_000;

/// A table that stores these types; periods are ten seconds.
fn table(size: u32, stores: &[Data]) -> Arc<Table> {
    let mut definition = Definition::new("t", KeyType::String, size);
    definition.expire_ms = Some(60_000);
    for data in stores {
        let arguments: &[&str] = match (data.is_array(), data.argument()) {
            (true, crate::Argument::None) => &["2"],
            (true, crate::Argument::Period) => &["2", "10000"],
            (false, crate::Argument::Period) => &["10000"],
            (false, crate::Argument::None) => &[],
        };
        let stored = definition.store(*data, arguments, |text| text.parse().ok());
        stored.expect("a data type");
    }
    definition.set_share(Share {
        store: Store {
            address: StoreAddress::Unix("/none".to_owned()),
            database: 0,
            user: None,
            password: Some(Password("secret".to_owned())),
        },
        every_ms: 100,
        prefix: "p".to_owned(),
    });
    definition.store_server();
    Arc::new(Table::new(definition))
}

fn add(table: &Table, key: &[u8], data: Data, amount: u64, now_ms: u64) {
    table.with_new(key, now_ms, |entry| {
        entry.add(data, 0, amount);
        entry.touch();
    });
}

fn get(table: &Table, key: &[u8], data: Data, now_ms: u64) -> Option<i64> {
    table
        .with(key, now_ms, |entry| entry.get(data, 0))
        .flatten()
}

/// All changes, by key.
fn changes(log: &mut ShareLog, now_ms: u64) -> Vec<(Vec<u8>, Vec<Change>)> {
    let mut found = Vec::new();
    log.take(usize::MAX, now_ms, |entry| {
        let mut changes = Vec::new();
        if entry.take_changes(&mut changes) {
            found.push((entry.key().to_vec(), changes));
        }
    });
    found.sort_by(|one, other| one.0.cmp(&other.0));
    found
}

#[test]
fn changes_are_taken_once_and_totals_keep_what_came_meanwhile() {
    let table = table(100, &[Data::HttpReqCnt, Data::BytesInCnt, Data::ConnCur]);
    let mut log = ShareLog::open(Arc::clone(&table), || {}).expect("the only log");
    assert!(ShareLog::open(Arc::clone(&table), || {}).is_none());
    add(&table, b"k", Data::HttpReqCnt, 3, NOW_MS);
    add(&table, b"k", Data::BytesInCnt, 1 << 40, NOW_MS);
    add(&table, b"k", Data::ConnCur, 1, NOW_MS);
    assert_eq!(log.noted(), 1);
    let expected = vec![Change::Add(3), Change::Add(1 << 40)];
    assert_eq!(changes(&mut log, NOW_MS), [(b"k".to_vec(), expected)]);
    assert_eq!(changes(&mut log, NOW_MS), []);
    // Two more come before the answer, which has ten of another proxy.
    add(&table, b"k", Data::HttpReqCnt, 2, NOW_MS);
    assert!(log.merge(b"k", NOW_MS, &[Total::Sum(13), Total::Unknown]));
    assert_eq!(get(&table, b"k", Data::HttpReqCnt, NOW_MS), Some(15));
    assert_eq!(get(&table, b"k", Data::BytesInCnt, NOW_MS), Some(1 << 40));
    let expected = vec![Change::Add(2), Change::None];
    assert_eq!(changes(&mut log, NOW_MS), [(b"k".to_vec(), expected)]);
    assert!(!log.merge(b"other", NOW_MS, &[Total::Sum(13)]));
    assert_eq!(table.used(NOW_MS), 1);
}

#[test]
fn entries_that_are_there_before_the_log_are_noted() {
    let table = table(100, &[Data::HttpReqCnt]);
    add(&table, b"k", Data::HttpReqCnt, 3, NOW_MS);
    let mut log = ShareLog::open(Arc::clone(&table), || {}).expect("the only log");
    let expected = [(b"k".to_vec(), vec![Change::Add(3)])];
    assert_eq!(changes(&mut log, NOW_MS), expected);
}

#[test]
fn counts_wrap_and_may_fall() {
    let table = table(100, &[Data::Gpc0]);
    let mut log = ShareLog::open(Arc::clone(&table), || {}).expect("the only log");
    add(&table, b"k", Data::Gpc0, 5, NOW_MS);
    changes(&mut log, NOW_MS);
    log.merge(b"k", NOW_MS, &[Total::Sum(u64::from(u32::MAX) - 1)]);
    add(&table, b"k", Data::Gpc0, 4, NOW_MS);
    assert_eq!(get(&table, b"k", Data::Gpc0, NOW_MS), Some(2));
    let expected = [(b"k".to_vec(), vec![Change::Add(4)])];
    assert_eq!(changes(&mut log, NOW_MS), expected);
    // `set table` sets it for all proxies.
    table.with(b"k", NOW_MS, |entry| {
        entry.set(Data::Gpc0, 0, 0);
        entry.touch();
    });
    let expected = [(b"k".to_vec(), vec![Change::Add(-2)])];
    assert_eq!(changes(&mut log, NOW_MS), expected);
}

#[test]
fn events_of_a_rate_are_shared_over_the_end_of_a_period() {
    let table = table(100, &[Data::HttpReqRate]);
    let mut log = ShareLog::open(Arc::clone(&table), || {}).expect("the only log");
    let events = |log: &mut ShareLog, now_ms| match changes(log, now_ms).as_slice() {
        [] => 0,
        [(_, one)] => match one[0] {
            Change::Events(events) => events,
            _ => 0,
        },
        _ => panic!("one key"),
    };
    add(&table, b"k", Data::HttpReqRate, 7, NOW_MS);
    assert_eq!(events(&mut log, NOW_MS), 7);
    // The store's period began four seconds ago, and others count.
    let total = Total::Rate {
        age_ms: 4000,
        current: 20,
        previous: 10,
    };
    log.merge(b"k", NOW_MS, &[total]);
    assert_eq!(get(&table, b"k", Data::HttpReqRate, NOW_MS), Some(26));
    // Three in this period, and two in the next one.
    add(&table, b"k", Data::HttpReqRate, 3, NOW_MS + 1000);
    add(&table, b"k", Data::HttpReqRate, 2, NOW_MS + 7000);
    assert_eq!(events(&mut log, NOW_MS + 7000), 5);
    // After a long pause only what is not over.
    add(&table, b"k", Data::HttpReqRate, 1, NOW_MS + 8000);
    add(&table, b"k", Data::HttpReqRate, 4, NOW_MS + 50_000);
    assert_eq!(events(&mut log, NOW_MS + 50_000), 4);
}

#[test]
fn the_last_tag_counts() {
    let table = table(100, &[Data::Gpt]);
    let mut log = ShareLog::open(Arc::clone(&table), || {}).expect("the only log");
    let set = |value| {
        table.with_new(b"k", NOW_MS, |entry| {
            entry.set(Data::Gpt, 1, value);
            entry.touch();
        });
    };
    let read = || table.with(b"k", NOW_MS, |entry| entry.get(Data::Gpt, 1));
    set(5);
    let expected = vec![Change::None, Change::Set(5)];
    assert_eq!(changes(&mut log, NOW_MS), [(b"k".to_vec(), expected)]);
    log.merge(b"k", NOW_MS, &[Total::Unknown, Total::Tag(6)]);
    assert_eq!(read(), Some(Some(6)));
    set(7);
    log.merge(b"k", NOW_MS, &[Total::Unknown, Total::Tag(8)]);
    assert_eq!(read(), Some(Some(7)));
}

#[test]
fn all_changes_of_this_process_are_sent_to_an_empty_store() {
    let table = table(5000, &[Data::HttpReqCnt, Data::BytesInCnt, Data::Gpt0]);
    let mut log = ShareLog::open(Arc::clone(&table), || {}).expect("the only log");
    for number in 0..2000 {
        let key = format!("k{number}");
        add(&table, key.as_bytes(), Data::HttpReqCnt, 2, NOW_MS);
        add(&table, key.as_bytes(), Data::BytesInCnt, 100, NOW_MS);
    }
    assert_eq!(changes(&mut log, NOW_MS).len(), 2000);
    let others = [Total::Tag(9), Total::Sum(50), Total::Sum(5000)];
    log.merge(b"k1", NOW_MS, &others);
    add(&table, b"k1", Data::HttpReqCnt, 1, NOW_MS);
    log.forget_exchanges(NOW_MS);
    let again = changes(&mut log, NOW_MS);
    assert_eq!(again.len(), 2000);
    let expected = [Change::None, Change::Add(2), Change::Add(100)];
    assert_eq!(again[0].1, expected);
    let expected = [Change::Set(9), Change::Add(3), Change::Add(100)];
    assert_eq!(again[1].1, expected);
    assert_eq!(get(&table, b"k1", Data::HttpReqCnt, NOW_MS), Some(51));
    // The others have not sent theirs yet.
    log.merge(
        b"k1",
        NOW_MS,
        &[Total::Tag(9), Total::Sum(3), Total::Sum(100)],
    );
    assert_eq!(get(&table, b"k1", Data::HttpReqCnt, NOW_MS), Some(3));
    log.forget_exchanges(NOW_MS);
    assert_eq!(changes(&mut log, NOW_MS)[1].1[1], Change::Add(3));
}

#[test]
fn a_removed_entry_with_changes_is_counted() {
    let table = table(2, &[Data::HttpReqCnt]);
    let mut log = ShareLog::open(Arc::clone(&table), || {}).expect("the only log");
    for key in [b"a", b"b", b"c"] {
        add(&table, key, Data::HttpReqCnt, 1, NOW_MS);
    }
    assert_eq!(changes(&mut log, NOW_MS).len(), 2);
    assert_eq!(log.removed_unsent(), 1);
    // The place of a removed entry starts with nothing.
    add(&table, b"d", Data::HttpReqCnt, 1, NOW_MS + 1);
    let expected = [(b"d".to_vec(), vec![Change::Add(1)])];
    assert_eq!(changes(&mut log, NOW_MS + 1), expected);
    assert_eq!(log.removed_unsent(), 1);
}

#[test]
fn notes_are_taken_in_parts_and_the_owner_is_woken_once() {
    let table = table(10_000, &[Data::HttpReqCnt]);
    let rings = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&rings);
    let wake = move || {
        counted.fetch_add(1, Ordering::Relaxed);
    };
    let mut log = ShareLog::open(Arc::clone(&table), wake).expect("the only log");
    for number in 0..1000_u32 {
        add(
            &table,
            format!("k{number}").as_bytes(),
            Data::HttpReqCnt,
            1,
            NOW_MS,
        );
    }
    assert_eq!(rings.load(Ordering::Relaxed), 0);
    assert!(!log.sleep());
    let mut left = 1000;
    while left > 0 {
        let most = left.min(300);
        assert_eq!(log.take(300, NOW_MS, |_| ()), most);
        left -= most;
    }
    assert_eq!(log.take(300, NOW_MS, |_| ()), 0);
    assert!(log.sleep());
    for _ in 0..2 {
        add(&table, b"x", Data::HttpReqCnt, 1, NOW_MS);
    }
    assert_eq!(rings.load(Ordering::Relaxed), 1);
}

#[test]
fn a_password_is_not_shown() {
    let table = table(1, &[]);
    assert!(!format!("{table:?}").contains("secret"));
}
