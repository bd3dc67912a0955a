//! `stick-table … share`: the store, its options, and what is refused.

use spangate_config::diagnostic::Severity;
use tables::{Password, Share, StoreAddress};

use crate::common::{accepted, messages, read};

fn table(words: &str) -> String {
    format!("backend b\n stick-table type ip size 10 {words}\n")
}

fn share_of(words: &str) -> Share {
    let config = accepted(&table(&format!("expire 1m store gpc0 {words}")));
    let table = config.tables.first().expect("a table");
    table.definition().share().expect("a store").clone()
}

fn inet(host: &str, port: u16) -> StoreAddress {
    let host = host.to_owned();
    StoreAddress::Inet { host, port }
}

#[test]
fn addresses() {
    let address = |url: &str| {
        let store = share_of(&format!("share {url}")).store;
        (store.address, store.database)
    };
    assert_eq!(address("redis://db.test"), (inet("db.test", 6379), 0));
    assert_eq!(
        address("redis://10.0.0.1:7000/3"),
        (inet("10.0.0.1", 7000), 3)
    );
    assert_eq!(address("valkey://[::1]/2"), (inet("::1", 6379), 2));
    assert_eq!(address("redis://[::1]:80/"), (inet("::1", 80), 0));
    let path = StoreAddress::Unix("/run/redis.sock".to_owned());
    assert_eq!(address("redis+unix:///run/redis.sock"), (path, 0));
}

#[test]
fn options() {
    let share = share_of("share redis://a");
    assert_eq!((share.every_ms, &*share.prefix), (100, "spangate"));
    assert_eq!((&share.store.user, &share.store.password), (&None, &None));
    let share = share_of("share redis://a db 4 user u password p@:/ every 2s prefix shop.eu");
    assert_eq!((share.every_ms, &*share.prefix), (2000, "shop.eu"));
    assert_eq!(share.store.database, 4);
    assert_eq!(share.store.user.as_deref(), Some("u"));
    assert_eq!(share.store.password, Some(Password("p@:/".to_owned())));
    assert!(!format!("{share:?}").contains("p@:/"));
    // The order of the words of the line does not matter.
    let config = accepted(&table(
        "share redis://a every 50ms store gpc0,conn_cur expire 1m",
    ));
    let table = config.tables.first().expect("a table");
    let fields = table.definition().shared_fields();
    assert_eq!(fields.len(), 1);
    assert_eq!(table.definition().share().expect("a store").every_ms, 50);
}

#[test]
fn faults() {
    let whole = "expire 1m store gpc0";
    let expected = "expects redis://<host>[:<port>][/<database>] or redis+unix://<path>.";
    let cases = [
        (format!("{whole} share"), expected),
        (format!("{whole} share 127.0.0.1:6379"), expected),
        (format!("{whole} share redis://"), expected),
        (format!("{whole} share redis://a:0"), expected),
        (format!("{whole} share redis://a:70000"), expected),
        (format!("{whole} share redis://a/x"), expected),
        (format!("{whole} share redis://a?db=1"), expected),
        (format!("{whole} share redis://[::1"), expected),
        (format!("{whole} share redis+unix://run"), expected),
        (
            format!("{whole} share rediss://a"),
            "share: 'rediss://' is not supported: use a 'listen' section",
        ),
        (
            format!("{whole} share redis://u:p@a"),
            "share: write a user and a password as 'user <name>' and 'password <password>'.",
        ),
        (
            format!("{whole} share redis://a user u"),
            "share: 'user' needs a 'password'.",
        ),
        (
            format!("{whole} share redis://a password"),
            "share: missing argument after 'password'.",
        ),
        (
            format!("{whole} share redis://a db x"),
            "share: 'db' expects a number from 0 to 65535.",
        ),
        (
            format!("{whole} share redis://a every 1ms"),
            "share: 'every' expects a time from 10 ms to 10 s.",
        ),
        (
            format!("{whole} share redis://a every x"),
            "share: 'every' expects a time from 10 ms to 10 s.",
        ),
        (
            format!("{whole} share redis://a prefix a/b"),
            "share: a prefix has letters, digits and the characters '-_.:' only.",
        ),
        (
            "store gpc0 share redis://a".to_owned(),
            "stick-table: 'share' needs 'expire'",
        ),
        (
            "expire 1m store conn_cur share redis://a".to_owned(),
            "stick-table: 'share' needs a counter, a rate or a tag to share",
        ),
        (
            format!("{whole} share redis://a peers p"),
            "stick-table: 'share' cannot be used with 'peers'",
        ),
    ];
    for (words, expected) in cases {
        let found = match read(&table(&words)) {
            Ok((_, found)) => found,
            Err(found) => found,
        };
        let alerts = messages(&found, Severity::Alert).join("\n");
        assert!(alerts.contains(expected), "{words}\n{alerts}");
    }
    let text = "global\n localpeer a\npeers p\n bind :1\n server a\n table t type ip size 1 share redis://a\n";
    let Err(found) = read(text) else {
        panic!("a table of a section 'peers' is refused");
    };
    let alerts = messages(&found, Severity::Alert).join("\n");
    assert!(
        alerts.contains("table: unknown argument 'share'."),
        "{alerts}"
    );
}
