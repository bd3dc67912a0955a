//! Effects on `bind` and server lines.

use super::{effects, in_listen};

#[test]
fn listeners_open_and_close() {
    assert_eq!(
        in_listen(
            "bind :80\nbind 1.1.1.1:81-90 name a",
            "bind :80,:8080 name b"
        ),
        [
            "listener 1.1.1.1:81-90 -3: bind 1.1.1.1:81-90 name a",
            "listener *:80 name +2: name b",
            "listener *:8080 +2: bind *:8080 name b",
        ]
    );
    // The same address in two ways.
    assert_eq!(
        in_listen(
            "bind :80 interface a\nbind :80 interface b",
            "bind :80 interface a"
        ),
        ["listener *:80 -3: bind *:80 interface b"]
    );
}

#[test]
fn options_of_listeners_change() {
    assert_eq!(
        in_listen(
            "bind :443 ssl crt a.pem crt b.pem alpn h2,http/1.1 interface eth0 no-tls-tickets",
            "bind :443 ssl crt a.pem crt c.pem alpn h2 interface eth1 v6only",
        ),
        [
            "listener *:443 alpn 2~2: alpn h2,http/1.1 → alpn h2",
            "listener *:443 crt 2~2: crt a.pem crt b.pem → crt a.pem crt c.pem",
            "listener *:443 interface 2~2: interface eth0 → interface eth1 !",
            "listener *:443 tls-tickets -2: no-tls-tickets",
            "listener *:443 v6only +2: v6only !",
        ]
    );
}

#[test]
fn servers_come_go_move_and_change() {
    assert_eq!(
        in_listen(
            "server a 1.1.1.1:1 check\nserver b 1.1.1.2:1\nserver c 1.1.1.3:1",
            "server b 1.1.1.9:1 weight 5\nserver a 1.1.1.1:1\nserver d 1.1.1.4:1",
        ),
        [
            "server c -4: server c 1.1.1.3:1",
            "server b address 3~2: 1.1.1.2:1 → 1.1.1.9:1",
            "server b weight +2: weight 5",
            "server a 2>3: server a 1.1.1.1:1",
            "server a check -2: check",
            "server d +4: server d 1.1.1.4:1",
        ]
    );
}

#[test]
fn options_of_servers_come_from_several_lines() {
    assert_eq!(
        in_listen(
            "default-server inter 1s source 1.1.1.1 interface a check\nserver a 1.1.1.1:1",
            "default-server inter 2s rise 5\ndefault-server name n maxconn 5\nserver a 1.1.1.1:1 from srv:n\nserver b b:1 from none",
        ),
        [
            "server a check -2: check",
            "server a inter -2: inter 1s",
            "server a maxconn +3: maxconn 5",
            "server a source -2: source 1.1.1.1 interface a",
            "server b +5: server b b:1 from none",
        ]
    );
    assert_eq!(
        effects(
            "defaults\n default-server ssl verify none\nbackend b\n server a a:1\n",
            "defaults\n default-server ssl verify required outlier-ejection errors 5 interval 3s slowstart 5s\nbackend b\n server a a:1\n"
        ),
        [
            "backend b server a outlier-ejection +2: outlier-ejection errors 5 interval 3s",
            "backend b server a slowstart +2: slowstart 5s",
            "backend b server a verify 2~2: verify none → verify required",
        ]
    );
}

#[test]
fn servers_of_templates_are_servers() {
    assert_eq!(
        in_listen(
            "server-template a 1-2 x:1 check",
            "server-template a 2-3 x:1 check weight 2"
        ),
        [
            "server a1 -2: server a1 x:1 check",
            "server a2 weight +2: weight 2",
            "server a3 +2: server a3 x:1 check weight 2",
        ]
    );
    let many = "server-template a 1-9000 x:1\nserver-template b 1-9000 x:1";
    assert_eq!(
        in_listen(many, "server-template a 1-9000 x:1"),
        ["server b1-9000 -3: server b1-9000 x:1"]
    );
}

#[test]
fn options_may_come_from_a_variable() {
    let text = |options: &str| {
        format!("global\n setenv O \"{options}\"\nbackend b\n server a x:1 \"${{O[*]}}\" id 5\n")
    };
    assert_eq!(
        effects(&text("check"), &text("check weight 5")),
        [
            "global setting setenv O 2~2: setenv O *** → setenv O *** !",
            "backend b server a weight +4: weight …",
        ]
    );
}
