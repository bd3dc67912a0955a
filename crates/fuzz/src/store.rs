//! What a store of shared stick tables sends.

use std::sync::Arc;

use share::Exchange;
use tables::{Data, Definition, KeyType, Share, ShareLog, Store, StoreAddress, Table};

/// The time of all calls, in milliseconds.
const NOW_MS: u64 = 100_000;

/// Any answer to a batch: it changes no other entry, what was counted here is not lost, and the
/// exchange goes on.
pub fn store_answer(data: &[u8]) {
    let Ok(value) = redis::parse_redis_value(data) else {
        return;
    };
    let table = table();
    let log = ShareLog::open(Arc::clone(&table), || {}).expect("the only log");
    let mut exchange = Exchange::new(log, || 7).expect("a shared table");
    for round in 0..3 {
        table.with_new(b"k", NOW_MS, |entry| {
            entry.add(Data::HttpReqCnt, 0, 1);
            entry.add(Data::HttpReqRate, 0, 1);
            entry.touch();
        });
        exchange.begin_round();
        let Some(request) = exchange.request(NOW_MS + round) else {
            panic!("an entry was touched");
        };
        assert!(!request.command("sha").get_packed_command().is_empty());
        if exchange.answered(value.clone(), NOW_MS + round).is_err() {
            exchange.failed();
        }
        assert_eq!(table.used(NOW_MS), 1);
        assert!(exchange.waiting() <= 4 && exchange.watched() <= 1);
    }
}

fn table() -> Arc<Table> {
    let mut definition = Definition::new("t", KeyType::String, 8);
    definition.expire_ms = Some(60_000);
    let stores: [(Data, &[&str]); 3] = [
        (Data::Gpt0, &[]),
        (Data::HttpReqCnt, &[]),
        (Data::HttpReqRate, &["1000"]),
    ];
    for (data, arguments) in stores {
        let stored = definition.store(data, arguments, |text| text.parse().ok());
        stored.expect("a data type");
    }
    definition.set_share(Share {
        store: Store {
            address: StoreAddress::Unix("/none".to_owned()),
            database: 0,
            user: None,
            password: None,
        },
        every_ms: 100,
        prefix: "p".to_owned(),
    });
    Arc::new(Table::new(definition))
}
