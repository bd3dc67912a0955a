//! Commands that change backends (management guide §9.3).

use std::net::{SocketAddr, TcpStream};

use config::model::ServerAddress;
use net::Addr;

use crate::commands::{named, start};
use crate::common::http::Client;
use crate::common::{accept, address, listener};

#[test]
fn a_backend_is_deleted() {
    let (one, front, held) = (named("one"), listener(), listener());
    let config = format!(
        "frontend f\n bind \"fd@${{FRONT}}\"\n force-be-switch if {{ req.hdr(x-admin) 1 }}\n\
         acl low be_conn_free(by_expression) lt 0\n use_backend by_rule if low\n use_backend %[req.hdr(x-be)]\n\
         listen both\n bind 127.0.0.1:0\n\
         backend gone\n server s {}\n\
         backend busy\n server s {}\n\
         backend by_rule\nbackend by_expression\n",
        one.at,
        address(&held)
    );
    let (proxy, ask) = start(&config, &[("FRONT", &front)]);
    let get = |backend: &str, admin: &str| {
        let mut client = Client::connect(address(&front));
        client.send(format!(
            "GET / HTTP/1.1\r\nhost: t\r\nx-be: {backend}\r\nx-admin: {admin}\r\nconnection: close\r\n\r\n"
        ));
        client.response().expect("an answer").status
    };
    assert_eq!(get("gone", ""), 200);
    for (line, answer) in [
        ("del backend", "Usage: del backend <name>.\n"),
        ("del backend gone now", "Usage: del backend <name>.\n"),
        ("del backend other", "No such backend.\n"),
        ("del backend f", "No such backend.\n"),
        ("del backend both", "Cannot delete a listen section.\n"),
        (
            "del backend by_rule",
            "This proxy cannot be removed at runtime due to other configuration elements pointing to it.\n",
        ),
        (
            "del backend by_expression",
            "This proxy cannot be removed at runtime due to other configuration elements pointing to it.\n",
        ),
        (
            "del backend gone",
            "Backend must be unpublished prior to its deletion.\n",
        ),
        ("unpublish backend gone", "Backend unpublished.\n"),
        (
            "del backend gone",
            "Only a backend without server can be deleted.\n",
        ),
        (
            "wait 1ms be-removable gone",
            "Failed. Only a backend without server can be deleted.\n",
        ),
        ("wait 1ms be-removable", "Missing backend name.\n"),
    ] {
        assert_eq!(ask(line), answer, "{line}");
    }
    assert_eq!((get("gone", ""), get("gone", "1")), (503, 200));
    assert_eq!(ask("disable server gone/s"), "");
    assert_eq!(ask("wait 10s srv-removable gone/s"), "Done.\n");
    assert_eq!(ask("del server gone/s"), "Server deleted.\n");
    assert_eq!(ask("wait 10s be-removable gone"), "Done.\n");
    assert!(ask("show stat gone 2 -1").contains("gone,BACKEND,"));
    assert_eq!(ask("del backend gone"), "Backend deleted.\n");
    assert!(!ask("show stat gone 2 -1").contains("BACKEND"));
    assert!(!ask("show stat").contains("gone"));
    assert!(!ask("show backend").contains("gone"));
    assert!(!ask("show default-server").contains("gone"));
    assert_eq!(ask("del backend gone"), "No such backend.\n");
    assert_eq!(ask("publish backend gone"), "No such backend.\n");
    assert!(ask("add server gone/s 127.0.0.1:1").contains("No such backend."));
    // No backend has this name any more, even for a forced switch.
    assert_eq!((get("gone", ""), get("gone", "1")), (503, 503));

    // A backend with a stream stays until the stream ends.
    let mut client = TcpStream::connect(address(&front)).expect("a connection");
    let request = b"GET / HTTP/1.1\r\nhost: t\r\nx-be: busy\r\n\r\n";
    std::io::Write::write_all(&mut client, request).expect("sent");
    let server = accept(&held, "the request's connection");
    assert_eq!(
        ask("unpublish backend busy; disable server busy/s"),
        "Backend unpublished.\n\n"
    );
    assert!(ask("wait 1ms be-removable busy").starts_with("Failed. Only a backend without server"));
    drop((client, server));
    assert_eq!(ask("wait 10s srv-removable busy/s"), "Done.\n");
    assert_eq!(ask("del server busy/s"), "Server deleted.\n");
    assert_eq!(ask("wait 10s be-removable busy"), "Done.\n");
    assert_eq!(ask("del backend busy"), "Backend deleted.\n");
    proxy.stop();
}

/// The cookie value for the servers' addresses and the key; the tests of `config` compare it with
/// HAProxy's.
fn cookie_value(at: SocketAddr, key: &str) -> String {
    let key = key.as_bytes();
    let value = config::dynamic::cookie_value(&ServerAddress::Fixed(Addr::Inet(at)), key);
    String::from_utf8(value.expect("a value").to_vec()).expect("text")
}

#[test]
fn cookie_values_by_address_change() {
    let (one, two, front) = (named("one"), named("two"), listener());
    let config = format!(
        "frontend f\n bind \"fd@${{FRONT}}\"\n default_backend b\n\
         backend b\n balance roundrobin\n cookie SRV insert dynamic\n dynamic-cookie-key first\n server s1 {}\n server own 127.0.0.1:1 cookie mine disabled\n\
         backend log-only\n mode log\n balance roundrobin\n",
        one.at
    );
    let (proxy, ask) = start(&config, &[("FRONT", &front)]);
    let set_cookie = || {
        let answer = Client::connect(address(&front)).get("/");
        let cookie = answer.field("set-cookie").map(str::to_owned);
        cookie.map(|cookie| cookie[..cookie.find(';').expect("attributes")].to_owned())
    };
    let value = |at, key: &str| Some(format!("SRV={}", cookie_value(at, key)));
    assert_eq!(set_cookie(), value(one.at, "first"));
    assert_eq!(ask("set dynamic-cookie-key backend b second"), "");
    assert_eq!(set_cookie(), value(one.at, "second"));
    let stats = ask("show stat b 4 -1 typed");
    assert!(
        stats.contains(&cookie_value(one.at, "second")) && stats.contains(":str:mine\n"),
        "{stats}"
    );
    assert_eq!(ask("disable dynamic-cookie backend b"), "");
    // The client's cookie is removed.
    assert_eq!(set_cookie().as_deref(), Some("SRV="));
    assert_eq!(ask("enable dynamic-cookie backend b"), "");
    assert_eq!(set_cookie(), value(one.at, "second"));
    // A server with a new address, and an added server.
    assert!(
        ask(&format!(
            "set server b/s1 addr {} port {}",
            two.at.ip(),
            two.at.port()
        ))
        .contains("changed")
    );
    assert_eq!(set_cookie(), value(two.at, "second"));
    assert!(ask(&format!("add server b/s2 {}", one.at)).contains("New server registered."));
    assert!(ask("show stat b 4 -1 typed").contains(&cookie_value(one.at, "second")));
    for (line, answer) in [
        (
            "enable dynamic-cookie backend",
            "A backend name is expected.\n",
        ),
        ("enable dynamic-cookie backend x", "No such backend.\n"),
        (
            "disable dynamic-cookie backend log-only",
            "Not available.\n",
        ),
        ("set dynamic-cookie-key backend x", "No such backend.\n"),
        (
            "set dynamic-cookie-key backend b",
            "String value expected.\n",
        ),
    ] {
        assert_eq!(ask(line), answer, "{line}");
    }
    proxy.stop();
}

#[test]
fn a_backend_is_added() {
    let (one, two, front) = (named("one"), named("two"), listener());
    let config = "frontend f\n bind \"fd@${FRONT}\"\n force-be-switch if { req.hdr(x-admin) 1 }\n\
         use_backend %[req.hdr(x-be)]\n\
         defaults plain\n timeout client 5s\n timeout server 5s\n timeout connect 5s\n\
         defaults marked from plain\n mode http\n http-response set-header x-from marked\n balance roundrobin\n\
         stats enable\n stats uri /stats\n option httpchk GET /health\n\
         defaults tunnel from plain\n mode tcp\n";
    let (proxy, ask) = start(config, &[("FRONT", &front)]);
    let get = |backend: &str, admin: &str| {
        let mut client = Client::connect(address(&front));
        client.send(format!(
            "GET / HTTP/1.1\r\nhost: t\r\nx-be: {backend}\r\nx-admin: {admin}\r\nconnection: close\r\n\r\n"
        ));
        let answer = client.response().expect("an answer");
        let from = answer.field("x-from").map(str::to_owned);
        (answer.status, from, answer.text())
    };
    let usage = "Usage: add backend <name> from <defproxy> [mode <px_mode>].\n";
    for (line, answer) in [
        ("add backend", "Require backend name.\n"),
        ("add backend new", usage),
        ("add backend new from marked mode", usage),
        ("add backend new from marked guid 1", usage),
        (
            "add backend n/w from marked",
            "Invalid character '/' in backend name.\n",
        ),
        (
            "add backend new from other",
            "Cannot find default proxy 'other'.\n",
        ),
        (
            "add backend new from plain",
            "Mode is required as 'plain' default proxy does not explicitly defines it.\n",
        ),
        (
            "add backend new from plain mode ftp",
            "Unknown proxy mode.\n",
        ),
        (
            "add backend new from plain mode log",
            "Dynamic backends are compatible with only TCP or HTTP mode.\n",
        ),
        (
            "add backend f from marked",
            "A proxy named 'f' exists already.\n",
        ),
        ("show defaults", "plain\nmarked\ntunnel\n"),
        ("show backend", "# name\n"),
        ("publish backend new", "No such backend.\n"),
    ] {
        assert_eq!(ask(line), answer, "{line}");
    }
    assert_eq!(get("new", "1").0, 503);
    assert_eq!(
        ask("add backend new from marked"),
        "New backend registered.\n"
    );
    assert_eq!(
        ask("add backend new from marked"),
        "A proxy named 'new' exists already.\n"
    );
    assert_eq!(ask("show backend"), "# name\nnew\n");
    assert!(ask("show stat new 2 -1").contains("new,BACKEND,"));
    assert_eq!(
        ask(&format!("add server new/s {}; enable server new/s", one.at)),
        "New server registered.\n\n"
    );
    // First it serves only requests that may use unpublished backends, then all. It has the
    // settings of its defaults.
    assert_eq!(get("new", "").0, 503);
    let answered = |body: &str| (200, Some("marked".to_owned()), body.to_owned());
    assert_eq!(get("new", "1"), answered("one"));
    assert_eq!(ask("publish backend new"), "Backend published.\n");
    assert_eq!(get("new", ""), answered("one"));
    assert!(ask("show servers state new").contains(" new "));
    assert!(ask("show stat new 4 -1").contains("new,s,"));

    // A second backend beside it; the name of a deleted one can be used again.
    assert_eq!(
        ask("add backend other from plain mode http"),
        "New backend registered.\n"
    );
    for line in [
        "unpublish backend new; disable server new/s",
        "wait 10s srv-removable new/s",
        "del server new/s",
        "wait 10s be-removable new",
    ] {
        ask(line);
    }
    assert_eq!(ask("del backend new"), "Backend deleted.\n");
    assert_eq!(get("new", "1").0, 503);
    assert_eq!(
        ask("add backend new from marked"),
        "New backend registered.\n"
    );
    ask(&format!(
        "add server new/t {}; enable server new/t; publish backend new",
        two.at
    ));
    assert_eq!(get("new", ""), answered("two"));
    assert_eq!(
        ask("add backend tunnel1 from tunnel"),
        "New backend registered.\n"
    );
    assert_eq!(get("tunnel1", "1").0, 503, "a request of HTTP stays one");

    // The number of reserved places.
    let mut added = 1;
    let refused = loop {
        let answer = ask(&format!("add backend more{added} from tunnel mode tcp"));
        if answer != "New backend registered.\n" {
            break answer;
        }
        added += 1;
        assert!(added < 1000);
    };
    assert_eq!(added, 32);
    assert!(
        refused.starts_with("No place is left for a backend of this mode from 'tunnel'"),
        "{refused}"
    );
    proxy.stop();
}
