//! Changes of the text without an effect.

use super::{comparison, effects};

fn same(old: &str, new: &str) {
    let found = effects(old, new);
    assert!(found.is_empty(), "{old}\n{new}\n{found:#?}");
    let found = effects(new, old);
    assert!(found.is_empty(), "{new}\n{old}\n{found:#?}");
}

#[test]
fn the_form_of_lines_does_not_matter() {
    same(
        "frontend f\n  bind :80\n  http-request set-header X \"a b\" if { path /x }\n",
        "# new\nfrontend   f # c\n\tbind  :80\n\n\thttp-request set-header X 'a b' if { path /\"x\" } # d\n",
    );
    same(
        "global\n maxconn 5\nfrontend f\n bind :80\n",
        "global\nglobal\n maxconn 5\nfrontend f\n bind *:80\n",
    );
    same(
        "listen l\n bind :80\n bind :81\n",
        "listen l\n bind 0.0.0.0:81,ipv4@:80\n",
    );
}

#[test]
fn the_order_of_independent_lines_does_not_matter() {
    same(
        "listen l\n mode http\n timeout client 5s\n timeout server 5s\n option httplog\n bind :80\n http-request deny if a\n acl a src 1.1.1.1\n",
        "listen l\n bind :80\n acl a src 1.1.1.1\n option httplog\n timeout server 5s\n timeout client 5s\n mode http\n http-request deny if a\n",
    );
    same(
        "listen l\n http-request deny if a\n use_backend x if b\n log 1.1.1.1 local0\n log 2.2.2.2 local0\n",
        "listen l\n use_backend x if b\n log 2.2.2.2 local0\n http-request deny if a\n log 1.1.1.1 local0\n",
    );
    same(
        "frontend a\n bind :1\nbackend b\nuserlist u\n user x password y\nring r\n size 5\n",
        "ring r\n size 5\nuserlist u\n user x password y\nbackend b\nfrontend a\n bind :1\n",
    );
    same(
        "backend b\n server a 1.1.1.1:1 check weight 5 inter 2s\n",
        "backend b\n server a 1.1.1.1:1 weight 5 inter 2000ms check\n",
    );
    same(
        "resolvers r\n nameserver a 1.1.1.1:53\n timeout retry 1s\n hold nx 5s\n",
        "resolvers r\n hold nx 5s\n timeout retry 1s\n nameserver a 1.1.1.1:53\n",
    );
}

#[test]
fn the_place_of_a_setting_does_not_matter() {
    same(
        "frontend f\n mode http\n timeout client 5s\n bind :1\nbackend b\n mode http\n timeout server 5s\n",
        "defaults\n mode http\n timeout client 5000\n timeout server 5s\n timeout server-fin 1s\n\
         backend b\n timeout server-fin 0\nfrontend f\n bind :1\n",
    );
    same(
        "defaults d\n timeout client 1s\n option httplog\ndefaults e from d\n retries 5\nlisten l from e\n bind :1\n",
        "listen l\n bind :1\n timeout client 1s\n option httplog\n retries 5\n",
    );
    same(
        "defaults\n option dontlognull\n option httplog\n log global\nfrontend f\n no option dontlognull\n log-format x\n no log\n",
        "frontend f\n log-format x\n",
    );
    same(
        "defaults d\n acl bad src 1.1.1.1\n http-request deny if bad\nfrontend f from d\n http-request allow\n",
        "frontend f\n acl bad src 1.1.1.1\n http-request deny if bad\n http-request allow\n",
    );
    same(
        "backend b\n default-server check weight 5\n server a 1.1.1.1:1\n server b 1.1.1.2:1 weight 1 no-check\n",
        "backend b\n server a 1.1.1.1:1 weight 5 check\n default-server disabled\n server b 1.1.1.2:1 enabled\n",
    );
    same(
        "defaults\n default-server inter 1s\nbackend b\n server-template a 1-2 x:1\n",
        "backend b\n server a1 x:1 inter 1s\n server a2 x:1 inter 1000\n",
    );
    same(
        "defaults\n stats uri /a\n stats auth a:b\nlisten l\n stats uri /c\n",
        "listen l\n stats uri /c\n",
    );
    same(
        "defaults\n option httpchk\n http-check send uri /a\nbackend b\n http-check send uri /b\n",
        "backend b\n option httpchk\n http-check send uri /b\n",
    );
}

#[test]
fn lines_that_say_what_is_the_case_anyway() {
    same(
        "listen l\n mode tcp\n retries 3\n http-reuse safe\n option http-keep-alive\n no option nolinger\n enabled\n",
        "listen l\n timeout client 0\n no option httpclose\n",
    );
    same(
        "listen l\n option tcpka\n",
        "listen l\n option clitcpka\n option srvtcpka\n",
    );
    same(
        "listen l\n timeout handshake 5s\n",
        "listen l\n timeout client-hs 5s\n",
    );
}

#[test]
fn what_does_nothing_is_left_out() {
    same(
        "global\n nosplice\n tune.pipesize 5\nlisten l\n option splice-auto\n",
        "listen l\ntraces\n trace h1\n",
    );
    // A frontend has no timeouts of servers, a backend no log format.
    same(
        "defaults\n timeout server 5s\nfrontend f\n bind :1\n",
        "defaults\n timeout server 6s\nfrontend f\n timeout connect 1s\n bind :1\n",
    );
    same(
        "defaults\n option httplog\nbackend b\n",
        "backend b\n option httplog\n",
    );
}

#[test]
fn conditions_and_macros_are_applied_first() {
    same(
        "global\n setenv A 5s\nlisten l\n.if defined(NOPE)\n timeout client 1s\n.endif\n timeout server \"$A\"\n",
        "global\n setenv A 5s\nlisten l\n timeout server 5s\n",
    );
}

#[test]
fn a_configuration_equals_itself() {
    let text = include_str!("../../../../../examples/demo.cfg");
    assert!(comparison(text, text).is_empty());
    assert!(!comparison(text, "").is_empty());
}
