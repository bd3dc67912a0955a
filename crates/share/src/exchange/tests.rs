//! Exchanges with a store that a script of the test drives: it adds batches as `script.lua` does,
//! and may lose answers, data, or go back to an older state.

mod store;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use redis::Value;
use tables::{Data, Definition, KeyType, Share, Store, StoreAddress, Table};

use self::store::FakeStore;
use super::*;

const NOW_MS: u64 = 1_000_000;
const EVERY_MS: u64 = 100;

fn random() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// A process: its table and its exchange.
struct Process {
    table: Arc<Table>,
    exchange: Exchange,
}

impl Process {
    fn new() -> Process {
        let mut definition = Definition::new("t", KeyType::Binary, 20_000);
        definition.key_bytes = 16;
        definition.expire_ms = Some(600_000);
        for data in [Data::HttpReqCnt, Data::BytesInCnt, Data::Gpt0] {
            definition.store(data, &[], |_| None).expect("a type");
        }
        let period = |text: &str| text.parse().ok();
        let stored = definition.store(Data::HttpReqRate, &["10000"], period);
        stored.expect("a type");
        definition.set_share(Share {
            store: Store {
                address: StoreAddress::Unix("/none".to_owned()),
                database: 0,
                user: None,
                password: None,
            },
            every_ms: EVERY_MS as u32,
            prefix: "p".to_owned(),
        });
        let table = Arc::new(Table::new(definition));
        let log = ShareLog::open(Arc::clone(&table), || {}).expect("the only log");
        let exchange = Exchange::new(log, random).expect("a shared table");
        Process { table, exchange }
    }

    fn count(&self, key: &[u8], requests: u64, now_ms: u64) {
        self.table.with_new(key, now_ms, |entry| {
            entry.add(Data::HttpReqCnt, 0, requests);
            entry.add(Data::BytesInCnt, 0, requests * 1_000_000_000_000);
            entry.add(Data::HttpReqRate, 0, requests);
            entry.touch();
        });
    }

    fn get(&self, key: &[u8], data: Data, now_ms: u64) -> Option<i64> {
        let get = |entry: &mut tables::Entry<'_>| entry.get(data, 0);
        self.table.with(key, now_ms, get).flatten()
    }

    fn requests(&self, key: &[u8]) -> Option<i64> {
        self.get(key, Data::HttpReqCnt, NOW_MS)
    }

    /// A whole round with a store that answers.
    fn round(&mut self, store: &mut FakeStore, now_ms: u64) {
        self.exchange.begin_round();
        while let Some(request) = self.exchange.request(now_ms) {
            let answer = store.answer(&request.command("sha"), now_ms);
            self.exchange.answered(answer, now_ms).expect("it fits");
        }
    }

    /// Sends one batch, whose answer is lost.
    fn send_without_answer(&mut self, store: &mut FakeStore, now_ms: u64) {
        self.exchange.begin_round();
        let request = self.exchange.request(now_ms).expect("a batch");
        store.answer(&request.command("sha"), now_ms);
        self.exchange.failed();
    }
}

#[test]
fn two_processes_count_together() {
    let (mut one, mut other, mut store) = (Process::new(), Process::new(), FakeStore::default());
    one.count(b"k", 10, NOW_MS);
    other.count(b"k", 7, NOW_MS);
    one.round(&mut store, NOW_MS);
    other.round(&mut store, NOW_MS);
    assert_eq!(
        (one.requests(b"k"), other.requests(b"k")),
        (Some(10), Some(17))
    );
    // It is read again although nothing was touched.
    one.round(&mut store, NOW_MS + EVERY_MS);
    assert_eq!(one.requests(b"k"), Some(17));
    let read = |data| one.get(b"k", data, NOW_MS + EVERY_MS);
    assert_eq!(read(Data::BytesInCnt), Some(17_000_000_000_000));
    assert_eq!(read(Data::HttpReqRate), Some(17));
    // A store's key makes no entry.
    other.count(b"elsewhere", 1, NOW_MS);
    other.round(&mut store, NOW_MS);
    one.round(&mut store, NOW_MS + 2 * EVERY_MS);
    assert_eq!(one.requests(b"elsewhere"), None);
    assert!(one.exchange.is_told());
}

#[test]
fn a_new_process_continues_from_the_totals() {
    let (mut one, mut store) = (Process::new(), FakeStore::default());
    one.count(b"k", 10, NOW_MS);
    one.round(&mut store, NOW_MS);
    let mut next = Process::new();
    next.count(b"k", 1, NOW_MS);
    next.round(&mut store, NOW_MS);
    assert_eq!(next.requests(b"k"), Some(11));
}

#[test]
fn a_lost_answer_counts_once() {
    let (mut one, mut store) = (Process::new(), FakeStore::default());
    one.count(b"k", 3, NOW_MS);
    one.send_without_answer(&mut store, NOW_MS);
    one.count(b"k", 2, NOW_MS);
    one.round(&mut store, NOW_MS);
    assert_eq!(one.requests(b"k"), Some(5));
    assert_eq!(store.sum(b"k", "http_req_cnt"), 5);
    // A copy on the old connection arrives late.
    one.count(b"k", 1, NOW_MS);
    one.exchange.begin_round();
    let request = one.exchange.request(NOW_MS).expect("a batch");
    let copy = request.command("sha");
    one.exchange.failed();
    one.round(&mut store, NOW_MS);
    store.answer(&copy, NOW_MS);
    assert_eq!(store.sum(b"k", "http_req_cnt"), 6);
    assert_eq!(one.requests(b"k"), Some(6));
}

#[test]
fn a_store_that_is_away_costs_no_memory_and_no_count() {
    let (mut one, mut store) = (Process::new(), FakeStore::default());
    one.count(b"k", 1, NOW_MS);
    one.round(&mut store, NOW_MS);
    for number in 0..10_000_u32 {
        one.count(&number.to_be_bytes(), 2, NOW_MS);
        one.count(b"k", 1, NOW_MS);
        one.exchange.begin_round();
        assert!(one.exchange.request(NOW_MS).is_some());
        one.exchange.failed();
    }
    assert!(one.exchange.batches.len() <= 2);
    // `k` changed again after its last batch.
    assert_eq!(one.exchange.waiting(), 10_002);
    assert_eq!(one.requests(b"k"), Some(10_001));
    one.round(&mut store, NOW_MS);
    assert!(one.exchange.is_told());
    assert_eq!(store.sum(b"k", "http_req_cnt"), 10_001);
    assert_eq!(store.sum(&77_u32.to_be_bytes(), "http_req_cnt"), 2);
    assert_eq!(one.exchange.counters().sent, 10_003);
}

#[test]
fn an_empty_store_is_filled_again() {
    let (mut one, mut other, mut store) = (Process::new(), Process::new(), FakeStore::default());
    one.count(b"k", 10, NOW_MS);
    one.round(&mut store, NOW_MS);
    other.count(b"k", 5, NOW_MS);
    other.round(&mut store, NOW_MS);
    store = FakeStore::default();
    one.count(b"k", 1, NOW_MS);
    one.round(&mut store, NOW_MS);
    assert_eq!(one.exchange.counters().resends, 1);
    // The other one has nothing to tell, and sees it all the same.
    let later_ms = NOW_MS + HEARTBEAT_MS;
    other.round(&mut store, later_ms);
    assert_eq!(store.sum(b"k", "http_req_cnt"), 16);
    one.round(&mut store, later_ms);
    assert_eq!(
        (one.requests(b"k"), other.requests(b"k")),
        (Some(16), Some(16))
    );
    let later_ms = later_ms + RESEND_PAUSE_MS;
    // It is lost once more, with a batch on its way.
    one.count(b"k", 2, later_ms);
    one.send_without_answer(&mut store, later_ms);
    store = FakeStore::default();
    one.round(&mut store, later_ms);
    other.count(b"k", 1, later_ms);
    other.round(&mut store, later_ms);
    assert_eq!(store.sum(b"k", "http_req_cnt"), 19);
}

#[test]
fn batches_that_the_store_lost_are_sent_again() {
    let (mut one, mut store) = (Process::new(), FakeStore::default());
    one.count(b"k", 1, NOW_MS);
    one.round(&mut store, NOW_MS);
    let old = store.clone();
    for number in 1..=5_u64 {
        one.count(b"k", number, NOW_MS + number);
        one.round(&mut store, NOW_MS + number);
    }
    store = old;
    one.count(b"k", 100, NOW_MS + 10);
    one.round(&mut store, NOW_MS + 10);
    assert_eq!(store.sum(b"k", "http_req_cnt"), 116);
    assert_eq!(one.requests(b"k"), Some(116));
    assert_eq!(one.exchange.counters().lost_batches, 0);
}

#[test]
fn batches_that_are_not_kept_are_counted_as_lost() {
    let (mut one, mut store) = (Process::new(), FakeStore::default());
    one.count(b"k", 1, NOW_MS);
    one.round(&mut store, NOW_MS);
    let old = store.clone();
    one.count(b"k", 2, NOW_MS);
    one.round(&mut store, NOW_MS);
    for number in 0..5000_u32 {
        one.count(&number.to_be_bytes(), 1, NOW_MS + 1);
    }
    one.round(&mut store, NOW_MS + 1);
    let kept: usize = one
        .exchange
        .batches
        .iter()
        .map(|batch| batch.items.len())
        .sum();
    assert!(kept <= KEPT_ITEMS_MAX);
    store = old;
    one.count(b"k", 4, NOW_MS + 2);
    one.round(&mut store, NOW_MS + 2);
    assert_eq!(store.sum(b"k", "http_req_cnt"), 5);
    assert!(store.entries() > KEPT_ITEMS_MAX / 2);
    assert!(one.exchange.counters().lost_batches > 0);
    assert!(one.exchange.is_told());
}

/// A store that never agrees costs an attempt per connection, and no walk over the table for each.
#[test]
fn a_store_that_contradicts_itself_is_left() {
    let (mut one, mut store) = (Process::new(), FakeStore::default());
    for number in 1..=3 {
        one.count(b"k", 1, NOW_MS + number);
        one.round(&mut store, NOW_MS + number);
    }
    let bulk = |text: &str| Value::BulkString(text.as_bytes().to_vec());
    let last = |number| Value::Array(vec![bulk("last"), Value::Int(number)]);
    let mut answer = |value: Value, now_ms| {
        one.count(b"k", 1, now_ms);
        one.exchange.begin_round();
        assert!(one.exchange.request(now_ms).is_some());
        let taken = one.exchange.answered(value, now_ms).is_ok();
        if !taken {
            one.exchange.failed();
        }
        taken
    };
    assert!(answer(last(1), NOW_MS));
    assert!(!answer(last(2), NOW_MS));
    assert!(answer(last(2), NOW_MS));
    let lost = || Value::Array(vec![bulk("lost")]);
    assert!(answer(lost(), NOW_MS));
    assert!(!answer(lost(), NOW_MS));
    let ok = Value::Array(vec![bulk("ok"), bulk("5"), Value::Nil]);
    assert!(answer(ok.clone(), NOW_MS));
    assert!(!answer(lost(), NOW_MS + RESEND_PAUSE_MS - 1));
    assert!(answer(lost(), NOW_MS + RESEND_PAUSE_MS));
    let later_ms = NOW_MS + HEARTBEAT_MS;
    store = FakeStore::default();
    one.round(&mut store, later_ms);
    assert_eq!(Some(store.sum(b"k", "http_req_cnt")), one.requests(b"k"));
}

#[test]
fn a_process_that_the_store_forgot_does_not_count_twice() {
    let (mut one, mut store) = (Process::new(), FakeStore::default());
    one.count(b"k", 3, NOW_MS);
    one.round(&mut store, NOW_MS);
    store.forget_processes();
    let later_ms = NOW_MS + PROCESS_KEPT_MS;
    one.exchange.log.table().with(b"k", NOW_MS, |entry| {
        entry.add(Data::HttpReqCnt, 0, 2);
        entry.touch();
    });
    one.round(&mut store, later_ms);
    assert_eq!(store.sum(b"k", "http_req_cnt"), 5);
    assert_eq!(one.exchange.counters().resends, 0);
}

#[test]
fn events_that_are_too_old_do_not_count_in_a_rate() {
    let (mut one, mut store) = (Process::new(), FakeStore::default());
    one.count(b"k", 50, NOW_MS);
    one.exchange.begin_round();
    assert!(one.exchange.request(NOW_MS).is_some());
    one.exchange.failed();
    let later_ms = NOW_MS + 30_000;
    one.count(b"k", 1, later_ms);
    one.round(&mut store, later_ms);
    assert_eq!(one.get(b"k", Data::HttpReqRate, later_ms), Some(1));
    assert_eq!(one.get(b"k", Data::HttpReqCnt, later_ms), Some(51));
}

#[test]
fn a_rate_falls_without_events() {
    let (mut one, mut other, mut store) = (Process::new(), Process::new(), FakeStore::default());
    one.count(b"k", 40, NOW_MS);
    other.count(b"k", 60, NOW_MS);
    one.round(&mut store, NOW_MS);
    other.round(&mut store, NOW_MS);
    one.round(&mut store, NOW_MS + EVERY_MS);
    assert_eq!(
        one.get(b"k", Data::HttpReqRate, NOW_MS + EVERY_MS),
        Some(100)
    );
    // A period of the store begins at a multiple of ten seconds; half of the next one is over.
    one.round(&mut store, NOW_MS + 9900);
    assert_eq!(one.get(b"k", Data::HttpReqRate, NOW_MS + 15_000), Some(50));
    assert_eq!(one.get(b"k", Data::HttpReqRate, NOW_MS + 25_000), Some(0));
}

#[test]
fn the_last_tag_is_the_tag_of_all() {
    let (mut one, mut other, mut store) = (Process::new(), Process::new(), FakeStore::default());
    let tag = |process: &Process, value| {
        process.table.with_new(b"k", NOW_MS, |entry| {
            entry.set(Data::Gpt0, 0, value);
            entry.touch();
        });
    };
    tag(&one, 5);
    one.round(&mut store, NOW_MS);
    other.count(b"k", 1, NOW_MS);
    other.round(&mut store, NOW_MS);
    assert_eq!(other.get(b"k", Data::Gpt0, NOW_MS), Some(5));
    tag(&other, 0);
    other.round(&mut store, NOW_MS);
    one.round(&mut store, NOW_MS + EVERY_MS);
    assert_eq!(one.get(b"k", Data::Gpt0, NOW_MS), Some(0));
}

#[test]
fn wrong_answers_change_nothing() {
    let (mut one, mut store) = (Process::new(), FakeStore::default());
    one.count(b"k", 3, NOW_MS);
    let bulk = |text: &str| Value::BulkString(text.as_bytes().to_vec());
    let ok = |entry: Value| Value::Array(vec![bulk("ok"), bulk("5"), entry]);
    let answers = [
        Value::Nil,
        Value::Okay,
        Value::Array(Vec::new()),
        Value::Array(vec![bulk("lost")]),
        Value::Array(vec![bulk("last")]),
        Value::Array(vec![bulk("last"), Value::Int(-1)]),
        Value::Array(vec![bulk("last"), Value::Int(0)]),
        Value::Array(vec![bulk("last"), Value::Int(i64::MAX)]),
        Value::Array(vec![bulk("ok")]),
        Value::Array(vec![bulk("ok"), bulk("5")]),
        Value::Array(vec![bulk("ok"), bulk("-5"), Value::Nil]),
        ok(Value::Int(5)),
        ok(Value::Array(Vec::new())),
        ok(Value::Array(vec![Value::Int(1)])),
    ];
    for answer in answers {
        one.exchange.begin_round();
        assert!(one.exchange.request(NOW_MS).is_some());
        let shown = format!("{answer:?}");
        assert!(one.exchange.answered(answer, NOW_MS).is_err(), "{shown}");
        one.exchange.failed();
        assert_eq!(one.requests(b"k"), Some(3), "{shown}");
    }
    one.round(&mut store, NOW_MS);
    assert_eq!(store.sum(b"k", "http_req_cnt"), 3);
    // A key that is something else in the store.
    one.count(b"k", 1, NOW_MS);
    one.exchange.begin_round();
    assert!(one.exchange.request(NOW_MS).is_some());
    let taken = one.exchange.answered(ok(Value::Nil), NOW_MS);
    assert_eq!((taken, one.requests(b"k")), (Ok(()), Some(4)));
}

#[test]
fn an_entry_that_is_refused_concerns_no_other() {
    let bulk = |text: &str| Value::BulkString(text.as_bytes().to_vec());
    for entry in [
        bulk(""),
        bulk("- 1 2"),
        bulk("- 1 2 3,4 5"),
        bulk("- 1 2 3,x"),
        bulk("- 1 2 3,4\u{fe}"),
        bulk("- 99999999999999999999 2 3,4"),
        Value::Array(vec![bulk("WRONGTYPE an\r\nentry")]),
    ] {
        let mut one = Process::new();
        one.count(b"k", 3, NOW_MS);
        one.exchange.begin_round();
        assert!(one.exchange.request(NOW_MS).is_some());
        let shown = format!("{entry:?}");
        let answer = Value::Array(vec![bulk("ok"), bulk("5"), entry]);
        assert_eq!(one.exchange.answered(answer, NOW_MS), Ok(()), "{shown}");
        assert_eq!(one.requests(b"k"), Some(3), "{shown}");
        assert_eq!(one.exchange.counters().refused, 1, "{shown}");
        let why = one.exchange.refused();
        assert!(!why.is_empty() && !why.contains('\n'), "{why}");
    }
}

#[test]
fn keys_may_have_any_bytes() {
    let (mut one, mut other, mut store) = (Process::new(), Process::new(), FakeStore::default());
    let keys: [&[u8]; 4] = [b"\r\n$5\r\n", b"\0\xff\0 ", b" ", b""];
    for key in keys {
        one.count(key, 2, NOW_MS);
        other.count(key, 3, NOW_MS);
    }
    one.round(&mut store, NOW_MS);
    other.round(&mut store, NOW_MS);
    for key in keys {
        assert_eq!(other.requests(key), Some(5));
    }
}

#[test]
fn a_round_reads_a_bounded_number_of_keys() {
    let (mut one, mut store) = (Process::new(), FakeStore::default());
    for number in 0..10_000_u32 {
        one.count(&number.to_be_bytes(), 1, NOW_MS);
    }
    one.round(&mut store, NOW_MS);
    assert_eq!(one.exchange.counters().merged, 10_000);
    for (round, merged) in [(1, 4096), (2, 8192), (3, 12_288)] {
        one.round(&mut store, NOW_MS + round * EVERY_MS);
        assert_eq!(one.exchange.counters().merged, 10_000 + merged);
    }
}

#[test]
fn it_sleeps_until_something_is_due() {
    let (mut one, mut store) = (Process::new(), FakeStore::default());
    assert_eq!(one.exchange.due_ms(), 0);
    one.round(&mut store, NOW_MS);
    assert_eq!(one.exchange.due_ms(), NOW_MS + HEARTBEAT_MS);
    one.count(b"k", 2, NOW_MS);
    one.round(&mut store, NOW_MS);
    assert_eq!(one.exchange.due_ms(), NOW_MS + EVERY_MS);
    one.exchange.begin_round();
    assert!(one.exchange.request(NOW_MS).is_none());
}
