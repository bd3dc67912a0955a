use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::{Data, Definition, KeyType, Stored, StoredValue, Table, Update, UpdateId, UpdateLog};

fn table(size: u32) -> Arc<Table> {
    let mut definition = Definition::new("t", KeyType::String, size);
    definition.expire_ms = Some(1_000);
    let period = |text: &str| text.parse().ok();
    for (data, arguments) in [(Data::Gpc0, &[][..]), (Data::Gpc1Rate, &["1000"])] {
        definition.store(data, arguments, period).expect("stored");
    }
    definition.store_server();
    Arc::new(Table::new(definition))
}

fn add(table: &Table, key: &str, now_ms: u64) {
    table.with_new(key.as_bytes(), now_ms, |entry| {
        entry.add(Data::Gpc0, 0, 1);
        entry.touch();
    });
}

/// The keys of all updates behind one.
fn keys(log: &UpdateLog, mut after: UpdateId, now_ms: u64) -> Vec<String> {
    let mut keys = Vec::new();
    while let Some((id, key)) = log.next(&mut after, now_ms, |id, entry| {
        (id, String::from_utf8_lossy(entry.key()).into_owned())
    }) {
        assert_eq!(id, after);
        keys.push(key);
    }
    assert_eq!(after, log.last());
    keys
}

#[test]
fn the_last_update_of_an_entry_counts() {
    let table = table(10);
    let mut log = UpdateLog::open(Arc::clone(&table), || {}).expect("the first log");
    assert!(UpdateLog::open(Arc::clone(&table), || {}).is_none());
    assert!(!log.collect(0));
    for key in ["a", "b"] {
        add(&table, key, 0);
        assert!(log.collect(0));
    }
    // Nobody was told of the update of "a", and it keeps its number.
    add(&table, "a", 0);
    assert!(log.collect(0));
    assert_eq!(log.last(), 2);
    assert_eq!(keys(&log, 0, 0), ["a", "b"]);
    // Somebody was told of it.
    add(&table, "a", 0);
    assert!(log.collect(1));
    assert_eq!(keys(&log, 0, 0), ["b", "a"]);
    assert_eq!(keys(&log, 2, 0), ["a"]);
    table.remove(b"a", 0);
    assert_eq!(keys(&log, 0, 0), ["b"]);
    // Another entry at the same place is not the removed one.
    table.with_new(b"c", 0, |_| ());
    assert_eq!(keys(&log, 0, 0), ["b"]);
    assert!(keys(&log, 0, 1_000).is_empty(), "expired");
}

#[test]
fn a_log_is_not_much_longer_than_its_table() {
    let table = table(100);
    let mut log = UpdateLog::open(Arc::clone(&table), || {}).expect("a log");
    for number in 0..20_000 {
        add(&table, &(number % 150).to_string(), 0);
        if number % 7 == 0 {
            log.collect(log.last());
            assert!(log.records() <= 2 * 100 + 1024 + 7);
        }
    }
    log.collect(log.last());
    assert_eq!(keys(&log, 0, 0).len(), 100);
}

#[test]
fn the_owner_is_woken_once() {
    let table = table(10);
    let wakes = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&wakes);
    let wake = move || {
        counted.fetch_add(1, Ordering::Relaxed);
    };
    let mut log = UpdateLog::open(Arc::clone(&table), wake).expect("a log");
    add(&table, "a", 0);
    assert!(!log.sleep(), "there is an update already");
    log.collect(0);
    assert!(log.sleep());
    assert_eq!(wakes.load(Ordering::Relaxed), 0);
    add(&table, "a", 0);
    add(&table, "b", 0);
    assert_eq!(wakes.load(Ordering::Relaxed), 1);
    // Reading is no update, and neither is a merge.
    log.collect(0);
    assert!(log.sleep());
    table.with(b"a", 0, |entry| entry.get(Data::Gpc0, 0));
    let nothing = Update {
        values: &[],
        server: None,
        expires_in_ms: None,
    };
    assert!(table.merge(b"a", 0, &nothing));
    assert_eq!(wakes.load(Ordering::Relaxed), 1);
    assert!(!log.collect(0));
}

#[test]
fn what_is_stored_is_restored() {
    let [from, to] = [table(10), table(10)];
    from.store_server(b"k", 5_000, 3, "s3");
    let mut values = Vec::new();
    let server = from.with(b"k", 5_000, |entry| {
        entry.add(Data::Gpc0, 0, 7);
        entry.add(Data::Gpc1Rate, 0, 9);
        for data in Data::all() {
            values.extend(entry.stored(data, 0).map(|stored| StoredValue {
                data,
                index: 0,
                stored,
            }));
        }
        from.server_name(entry)
    });
    assert_eq!(values.len(), 3);
    // What does not suit is ignored.
    values.push(StoredValue {
        data: Data::Gpc0,
        index: 1,
        stored: Stored::Number(1),
    });
    values.push(StoredValue {
        data: Data::Gpc1Rate,
        index: 0,
        stored: Stored::Number(1),
    });
    let update = Update {
        values: &values,
        server: server.flatten().as_deref().map(|_| "s3"),
        expires_in_ms: Some(300),
    };
    // The clocks of processes differ.
    assert!(to.merge(b"k", 90_000, &update));
    let shown = to.with(b"k", 90_000, |entry| {
        let numbers = [Data::Gpc0, Data::Gpc1Rate, Data::ServerId];
        let numbers = numbers.map(|data| entry.get(data, 0).unwrap_or(-1));
        (numbers, to.server_name(entry), entry.expires_in_ms())
    });
    assert_eq!(shown, Some(([7, 9, 3], Some("s3".into()), 300)));
    assert_eq!(to.used(90_299), 1);
    assert!(to.with(b"k", 90_300, |_| ()).is_none());
    assert_eq!(to.updates(), 0);
}

#[test]
fn numbers_of_other_processes_are_found_again() {
    let table = table(10);
    let mut log = UpdateLog::open(Arc::clone(&table), || {}).expect("a log");
    for _ in 0..5 {
        add(&table, "a", 0);
        log.collect(log.last());
    }
    assert_eq!(log.meant(3, 0), Some(3));
    assert_eq!(log.meant(3, 4), None);
    assert_eq!(log.meant(6, 1), None);
    assert_eq!(log.meant(u32::MAX, 1), None);
}

/// Workers update while the log is read; at the end it has told the last value of each entry.
#[test]
fn no_update_is_lost() {
    const ROUNDS: u32 = 20_000;
    let table = table(10_000);
    let mut log = UpdateLog::open(Arc::clone(&table), || {}).expect("a log");
    let mut told = std::collections::HashMap::new();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..2_u32)
            .map(|worker| {
                let table = &table;
                scope.spawn(move || {
                    for round in 0..ROUNDS {
                        add(table, &((round * (worker + 1)) % 500).to_string(), 0);
                    }
                })
            })
            .collect();
        let mut after = 0;
        loop {
            let is_over = workers.iter().all(|worker| worker.is_finished());
            let any = log.collect(after);
            while let Some((key, value)) = log.next(&mut after, 0, |_, entry| {
                (entry.key().to_vec(), entry.get(Data::Gpc0, 0))
            }) {
                told.insert(key, value);
            }
            if is_over && !any {
                return;
            }
        }
    });
    assert_eq!(told.len(), 500);
    for (key, value) in told {
        let now = table.with(&key, 0, |entry| entry.get(Data::Gpc0, 0));
        assert_eq!(now, Some(value));
    }
}
