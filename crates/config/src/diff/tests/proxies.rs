//! Effects on settings, rules and conditions of proxies.

use super::{effects, in_listen};

#[test]
fn proxies_come_and_go() {
    assert_eq!(
        effects(
            "frontend a\n bind :1\nbackend b\n",
            "backend b\nbackend c\n server s 1.1.1.1:1\nlisten a\n bind :1 ssl\n option tracing endpoint x\n"
        ),
        [
            "frontend a section -1: frontend a",
            "frontend a listener *:1 -2: bind *:1",
            "backend c section +2: backend c",
            "listen a section +4: listen a !",
            "listen a listener *:1 +5: bind *:1 ssl",
        ]
    );
}

#[test]
fn a_mode_needs_a_restart() {
    assert_eq!(in_listen("mode http", ""), ["mode -2: mode http !"]);
    assert_eq!(
        in_listen("mode log", "mode http"),
        ["mode 2~2: mode log → mode http !"]
    );
}

#[test]
fn settings_have_one_value() {
    assert_eq!(
        in_listen(
            "timeout client 5s\ntimeout client 6s\noption httplog\noption forwardfor\nerrorfile 503 /a",
            "timeout client 7s\nlog-format \"a b\"\noption forwardfor except 10.0.0.0/8\nerrorloc 503 http://a/\nretries 5",
        ),
        [
            "setting error page 503 6~5: errorfile 503 /a → errorloc 503 http://a/",
            "setting log-format 4~3: option httplog → log-format 'a b'",
            "setting option forwardfor 5~4: option forwardfor → option forwardfor except 10.0.0.0/8",
            "setting retries +6: retries 5",
            "setting timeout client 3~2: timeout client 6s → timeout client 7s",
        ]
    );
    assert_eq!(
        in_listen(
            "option httpclose\ncookie A insert",
            "option http-server-close\nno option abortonclose"
        ),
        [
            "setting connection mode 2~2: option httpclose → option http-server-close",
            "setting cookie -3: cookie A insert",
            "setting option abortonclose +3: no option abortonclose",
        ]
    );
}

#[test]
fn a_setting_of_defaults_concerns_each_proxy_that_has_it() {
    assert_eq!(
        effects(
            "defaults\n timeout client 1s\n timeout server 1s\nfrontend f\nbackend b\nlisten own\n timeout client 1s\n timeout server 1s\n",
            "defaults\n timeout client 2s\n timeout server 1s\nfrontend f\nbackend b\nlisten own\n timeout client 1s\n timeout server 1s\n"
        ),
        ["frontend f setting timeout client 2~2: timeout client 1s → timeout client 2s"]
    );
    assert_eq!(
        effects(
            "defaults a\n maxconn 1\ndefaults b\n maxconn 2\nfrontend f from a\n",
            "defaults a\n maxconn 1\ndefaults b\n maxconn 2\nfrontend f from b\n"
        ),
        ["frontend f setting maxconn 2~4: maxconn 1 → maxconn 2"]
    );
}

#[test]
fn rules_are_added_removed_changed_and_moved() {
    assert_eq!(
        in_listen(
            "http-request set-header A a\nhttp-request set-header B b\nhttp-request deny if x\nhttp-request allow if y\nhttp-request tarpit if z",
            "http-request set-header A c\nhttp-request deny if x\nhttp-request set-header N n\nhttp-request tarpit if z\nhttp-request set-header B b",
        ),
        [
            "list http-request 2~2: http-request set-header A a → http-request set-header A c",
            "list http-request -5: http-request allow if y",
            "list http-request +4: http-request set-header N n",
            "list http-request 3>6: http-request set-header B b",
        ]
    );
}

#[test]
fn lists_are_apart() {
    assert_eq!(
        in_listen(
            "tcp-request connection reject if a\ntcp-request content reject if a\nuse_backend x if a\nuse_backend y if b",
            "tcp-request content reject if a\ntcp-request connection accept\nuse_backend y if b\nuse_backend x if a\nfilter bwlim-in x limit 5",
        ),
        [
            "list filter +6: filter bwlim-in x limit 5",
            "list tcp-request connection 2~3: tcp-request connection reject if a → tcp-request connection accept",
            "list use_backend 4>5: use_backend x if a",
        ]
    );
}

#[test]
fn a_condition_comes_with_the_rules_that_use_it() {
    assert_eq!(
        in_listen(
            "acl a src 1.1.1.1\nacl a src 2.2.2.2\nacl unused path /\nhttp-request deny if !a\nhttp-request allow if { path a }\nuse_backend x unless b or a",
            "acl a src 2.2.2.2\nacl a src 3.3.3.3\nhttp-request deny if !a\nhttp-request allow if { path a }\nuse_backend x unless b or a",
        ),
        [
            "acl a -2: acl a src 1.1.1.1",
            "acl a +3: acl a src 3.3.3.3 [4: http-request deny if !a] [6: use_backend x unless b or a]",
            "acl unused -4: acl unused path /",
        ]
    );
}

#[test]
fn tracing_needs_a_restart() {
    assert_eq!(
        in_listen(
            "option tracing endpoint http://a\nfilter opentelemetry config a",
            "filter compression\nfilter opentelemetry config b"
        ),
        [
            "setting option tracing -2: option tracing endpoint http://a !",
            "list filter +2: filter compression",
            "list filter 3~3: filter opentelemetry config a → filter opentelemetry config b !",
        ]
    );
}
