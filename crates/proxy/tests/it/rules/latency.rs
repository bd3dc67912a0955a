//! Histograms of `option latency-histograms`.

use std::sync::Arc;

use spangate_proxy::statistics::{Cursor, Selection, View};
use stats::Kind;
use stats::latency::{PARTS, bucket};

use super::script::Play;
use crate::setups::runtime_config;
use net::Driver as _;

#[test]
fn the_time_that_a_connection_was_idle_is_not_that_of_a_request() {
    let runtime_config = runtime_config(
        "defaults
    mode http
    timeout client 10s
    timeout server 10s
    timeout connect 1s
    option latency-histograms
listen l
    bind :80
    server one 127.0.0.1:81
",
    );
    let shared = Arc::new(runtime_config.share(1));
    let mut play = Play::of(&runtime_config, &shared, 0);
    for line in [
        "c1 > GET / HTTP/1.1|host: a||",
        "s1 ok",
        "wait 30",
        "s1 > HTTP/1.1 204 No Content||",
        "wait 4000",
        "c1 > GET / HTTP/1.1|host: a||",
        "wait 30",
        "s1 > HTTP/1.1 204 No Content||",
    ] {
        play.line(line).expect(line);
        play.settle();
    }
    let servers = shared.server_tables();
    let view = View {
        runtime_config: &runtime_config,
        shared: &shared,
        servers: &servers,
        now: play.driver.now(),
        legends: false,
    };
    let (mut cursor, selection) = (Cursor::default(), Selection::default());
    let mut seen = Vec::new();
    while let Some((_, row)) = cursor.next(&view, &selection) {
        let total = &row.latency.as_ref().expect("histograms").parts[PARTS - 1];
        assert_eq!(
            total.counts[bucket(30)],
            2,
            "{:?}: {:?}",
            row.kind,
            total.counts
        );
        assert_eq!(total.count(), 2);
        seen.push(row.kind);
    }
    assert_eq!(seen, [Kind::Frontend, Kind::Server, Kind::Backend]);
    play.engine.finish(&mut play.driver);
}
