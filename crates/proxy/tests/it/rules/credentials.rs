//! `http-request auth`, users and groups.

use super::script::{play, play_running};
use crate::setups::runtime_config;

/// `play` puts the lines into a section; these stand before it, with one of their own after it.
fn with_users(lines: &str) -> String {
    format!(
        "{lines}\nuserlist L\ngroup g users bob\nuser bob insecure-password pw\nuser al password $5$rounds=1000$saltstring$S2dlplsLzofRuJ/frAjtaYev58CdqEN6fUby2laILG1\nbackend last"
    )
}

fn ask(target: &str, header: &str) -> String {
    format!("c1 > GET {target} HTTP/1.1|host: a|{header}|")
}

const BOB: &str = "authorization: Basic Ym9iOnB3|";
const AL: &str = "authorization: Basic YWw6cGFzc3dvcmQ=|";
const WRONG: &str = "authorization: Basic Ym9iOnB4|";
const REFUSED: &str = "log 401 LR--\ns1 none\nc1 open";

#[test]
fn users_may_pass() {
    let rule = &with_users("http-request auth unless { http_auth(L) }\nserver one 127.0.0.1:81");
    for header in [BOB, AL] {
        play(
            header,
            rule,
            &format!("{}\ns1 ok\ns1 <~ GET /", ask("/", header)),
        );
    }
    // The second time a hash is not made again.
    let twice = format!(
        "{ask}\ns1 ok\ns1 > HTTP/1.1 204 No Content||\nc1 <~ HTTP/1.1 204\n{ask}\ns1 <~ GET /",
        ask = ask("/", AL)
    );
    play("twice", rule, &twice);
    for header in [
        WRONG,
        "",
        "authorization: Basic|",
        "authorization: Bearer x|",
    ] {
        let script = format!(
            "{}\nc1 <~ HTTP/1.1 401 Unauthorized|\n{REFUSED}",
            ask("/", header)
        );
        play(header, rule, &script);
    }
}

#[test]
fn groups() {
    let rule =
        &with_users("http-request deny unless { http_auth_group(L) g }\nserver one 127.0.0.1:81");
    play(
        "in it",
        rule,
        &format!("{}\ns1 ok\ns1 <~ GET /", ask("/", BOB)),
    );
    play(
        "not in it",
        rule,
        &format!("{}\nc1 <~ HTTP/1.1 403 \nlog 403 PR--", ask("/", AL)),
    );
}

#[test]
fn challenges() {
    let page = "http-error status 401 hdr www-authenticate x hdr a b";
    let said = |realm: &str| {
        format!(
            "c1 < HTTP/1.1 401 Unauthorized|a: b|content-length: 0|www-authenticate: Basic realm=\"{realm}\"||\n{REFUSED}"
        )
    };
    play(
        "the section's name",
        &format!("{page}\nhttp-request auth"),
        &format!("{}\n{}", ask("/", ""), said("rules")),
    );
    play(
        "a realm of its own",
        &format!("{page}\nhttp-request auth realm \"my place\" if {{ path / }}"),
        &format!("{}\n{}", ask("/", ""), said("my place")),
    );
    let proxied = "option http-use-proxy-header\nhttp-error status 407 hdr a b\nhttp-request auth";
    play(
        "as a proxy",
        proxied,
        &format!(
            "{}\nc1 < HTTP/1.1 407 Proxy Authentication Required|a: b|content-length: 0|proxy-authenticate: Basic realm=\"rules\"||\nlog 407 LR--",
            ask("http://a/", "")
        ),
    );
    play(
        "not as a proxy",
        proxied,
        &format!("{}\nc1 <~ HTTP/1.1 401 ", ask("/", "")),
    );
}

/// Rules of `defaults` are shared: the realm is the name of the proxy that asks, and `path` is
/// looked at in all of them.
#[test]
fn rules_of_defaults() {
    for name in ["one", "two"] {
        let front = |name: &str, port: u16| {
            format!("frontend {name} from d\n bind 127.0.0.1:{port}\n default_backend b\n")
        };
        let other = if name == "one" { "two" } else { "one" };
        let text = format!(
            "defaults d\n mode http\n timeout client 9s\n http-error status 401 hdr a b\n http-request auth if {{ path / }}\n\
             {}{}defaults e\n mode http\n timeout server 1s\n timeout connect 1s\nbackend b\n server s 127.0.0.1:81\n",
            front(name, 80),
            front(other, 82),
        );
        let script = format!(
            "{}\nc1 < HTTP/1.1 401 Unauthorized|a: b|content-length: 0|www-authenticate: Basic realm=\"{name}\"||\nquiet",
            ask("/", "")
        );
        play_running(name, runtime_config(&text), &script);
    }
}
