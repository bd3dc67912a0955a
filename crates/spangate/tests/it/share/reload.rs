//! Tables that a reload in place shares, changes and no longer shares.

use super::store::{Keeps, Redis};
use crate::common::cli::{ask_any, until_any_holds};
use crate::common::http::Client;
use crate::common::{Folder, Proxy, address, listener};

fn config(socket: &std::path::Path, stored: &str) -> String {
    format!(
        "global
 nbthread 1
 stats socket {} level admin
defaults
 mode http
 timeout client 40s
 timeout server 5s
 timeout connect 1s
backend t
 stick-table type string len 40 size 1k expire 10m store {stored}
frontend fe
 bind \"fd@${{FE}}\"
 http-request track-sc0 path table t
 http-request return status 200
",
        socket.display()
    )
}

#[test]
fn a_reload_in_place_follows_the_line() {
    let Some(redis) = Redis::start(Keeps::Nothing) else {
        return;
    };
    let folder = Folder::new();
    let socket = folder.path("cli");
    let front = listener();
    let text = config(&socket, "http_req_cnt");
    let file = folder.path("spangate.cfg");
    let proxy = Proxy::start_in(folder, &text, &[("FE", &front)]);
    let whole = std::fs::read_to_string(&file).expect("the file");
    let rest = whole.strip_prefix(&*text).expect("its beginning");
    let get = || assert_eq!(Client::connect(address(&front)).get("/a").status, 200);
    let until = |count: u32| {
        until_any_holds(&socket, "show table t", |answer| {
            answer.contains("key=/a ") && answer.contains(&format!("http_req_cnt={count}\n"))
        });
    };
    let reload = |stored: &str| {
        std::fs::write(&file, format!("{}{rest}", config(&socket, stored))).expect("the file");
        let done = ask_any(&socket, "reload");
        assert!(done.contains("is in use"), "{done}");
    };
    get();
    assert_eq!(ask_any(&socket, "show share").trim(), "");
    let shared = format!("http_req_cnt share {} every 10s", redis.url());
    reload(&shared);
    get();
    get();
    until(2);
    // Its last changes are sent, and the table that follows reads them.
    reload(&format!("http_req_cnt share {}", redis.url()));
    get();
    until(3);
    let state = ask_any(&socket, "show share");
    assert_eq!(state.matches("table=t ").count(), 1, "{state}");
    reload("http_req_cnt");
    get();
    until(1);
    assert_eq!(ask_any(&socket, "show share").trim(), "");
    proxy.stop();
}
