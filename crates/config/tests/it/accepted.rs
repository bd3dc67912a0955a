//! Accepted files, and their meaning.

use crate::common;

use common::{accepted, read, report};
use spangate_config::model::*;
use std::time::Duration;
use syntax::octets::Octets;

const TIMEOUTS: &str = "    timeout client 1s\n    timeout server 2s\n    timeout connect 3s\n";

#[test]
fn pattern_sets() {
    let text = "defaults
    mode http
    timeout client 1s
frontend f
    bind :80
    http-request set-map(virt@seen) %[src] %[date] if { src,map_ip(virt@seen) -m found }
    http-request deny if { src -u 7 10.0.0.0/8 192.168.0.0/16 }
    http-response add-acl(virt@bad) %[src]
    http-after-response del-acl(virt@bad) %[src] if { src -f virt@bad }
    http-request del-map(opt@none) x
";
    let (config, diagnostics) = read(text).unwrap_or_else(|all| panic!("{all:?}"));
    let sets = &config.patterns;
    let listed: Vec<_> = sets.iter().map(|set| (set.id(), set.name())).collect();
    let wanted = [(0, Some("virt@seen")), (1, Some("virt@bad")), (7, None)];
    assert_eq!(listed, wanted);
    let rules = &config.proxies[0];
    let HttpAction::EditPatterns(edit) = &rules.http_request[0].action else {
        panic!("{:?}", rules.http_request[0]);
    };
    assert!(matches!(edit.change, PatternChange::Set(_)));
    edit.set.add(b"10.0.0.1", b"now").expect("added");
    assert_eq!(sets.find("virt@seen").map(|set| set.len()), Some(1));
    assert_eq!(sets.find("#7").map(|set| set.len()), Some(2));
    let told: Vec<&str> = diagnostics.iter().map(|item| &*item.message).collect();
    assert_eq!(
        told,
        ["no ACL and no map reads 'opt@none': this action has no effect."]
    );
}

#[test]
fn servers_start_from_what_their_lines_name() {
    let text = format!(
        "defaults
    mode http
{TIMEOUTS}    default-server maxconn 9
backend b
    default-server weight 10
    server one 127.0.0.1:1
    server two 127.0.0.1:1 from none weight 2
    server three 127.0.0.1:1 from srv:two
    default-server name other weight 5
    server four 127.0.0.1:1 from srv:other
    default-server name other from be:
    server five 127.0.0.1:1 from srv:b/other
    default-server from none
    server six 127.0.0.1:1
    server-template t 2 127.0.0.1:7 from srv:five id 40
    server-template r 3-4 127.0.0.1:8
"
    );
    let (config, _) = read(&text).unwrap_or_else(|all| panic!("{all:?}"));
    let servers = config.proxies[0].servers.iter();
    let found: Vec<_> = servers
        .map(|server| {
            (
                server.name.as_str(),
                server.id,
                server.weight,
                server.maxconn,
            )
        })
        .collect();
    let wanted = [
        ("one", 1, 10, 9),
        ("two", 2, 2, 0),
        ("three", 3, 2, 0),
        ("four", 4, 5, 0),
        ("five", 5, 10, 9),
        ("six", 6, 1, 0),
        ("t1", 40, 10, 9),
        ("t2", 8, 10, 9),
        ("r3", 9, 1, 0),
        ("r4", 10, 1, 0),
    ];
    assert_eq!(found, wanted);
}

#[test]
fn servers_whose_names_are_not_resolved() {
    let text = format!(
        "defaults
    mode http
{TIMEOUTS}backend b
    server none host.invalid:80 init-addr none
    server last host.invalid:80 init-addr last,none
    server fixed host.invalid:80 init-addr 192.0.2.7
    server plain 127.0.0.1:80 init-addr none
    server failed host.invalid:80 init-addr libc,none
"
    );
    let (config, diagnostics) = read(&text).unwrap_or_else(|all| panic!("{all:?}"));
    let servers = config.proxies[0].servers.iter();
    let found: Vec<_> = servers
        .map(|server| (server.name.as_str(), server.unresolved))
        .collect();
    let wanted = [
        ("none", true),
        ("last", true),
        ("fixed", false),
        ("plain", false),
        ("failed", true),
    ];
    assert_eq!(found, wanted);
    let fixed = net::Addr::Inet("192.0.2.7:80".parse().expect("an address"));
    let address = &config.proxies[0].servers[2].address;
    assert_eq!(*address, ServerAddress::Fixed(fixed));
    let told: Vec<&str> = diagnostics.iter().map(|item| &*item.message).collect();
    assert_eq!(
        told,
        ["'server b/failed' : could not resolve address 'host.invalid', disabling server."]
    );
    let last = format!(
        "defaults\n mode http\n{TIMEOUTS}backend b\n server last host.invalid:80 init-addr last\n"
    );
    let refused = read(&last).expect_err("nothing is left");
    assert!(format!("{refused:?}").contains("no method found to resolve address"));
}

#[test]
fn options_of_tcp_sockets() {
    let text = format!(
        "defaults
    mode http
{TIMEOUTS}    option tcpka
    clitcpka-idle 1m
    srvtcpka-intvl 7
    srvtcpka-cnt 3
frontend f
    bind :80 tcp-ut 5s cc reno tcp-md5sig secret namespace blue transparent
    default_backend b
backend b
    default-server tcp-ut 30s
    server one 127.0.0.1:1
    server two 127.0.0.1:2 tcp-ut 0 cc bbr
"
    );
    let config = accepted(&text);
    let [front, back] = &config.proxies[..] else {
        panic!("{:?}", config.proxies);
    };
    assert_eq!(front.options.client_keepalive.idle_s, Some(60));
    assert_eq!(front.options.client_keepalive.interval_s, None);
    assert_eq!(back.options.server_keepalive.interval_s, Some(7));
    assert_eq!(back.options.server_keepalive.probes, Some(3));
    let bind = &front.binds[0];
    assert!(bind.transparent);
    assert_eq!(bind.tcp.user_timeout_ms, Some(5000));
    assert_eq!(bind.tcp.congestion.as_deref(), Some("reno"));
    assert_eq!(bind.tcp.md5_key.as_deref(), Some(&b"secret"[..]));
    assert_eq!(bind.tcp.namespace.as_deref(), Some("blue"));
    assert_eq!(back.servers[0].tcp.user_timeout_ms, Some(30_000));
    assert_eq!(back.servers[1].tcp.user_timeout_ms, None);
    assert_eq!(back.servers[1].tcp.congestion.as_deref(), Some("bbr"));
}

#[test]
fn a_whole_file() {
    let text = format!(
        "global
    stats socket \"/tmp/s.sock\" level admin mode 600
    stats socket \"fd@7\" level admin
global
    nbthread 2
    maxconn 1000
    log stderr local0 info
    log 127.0.0.1:5514 len 200 format rfc5424 sample 1,3-4:10 local7 notice err
    hard-stop-after 30s
    tune.bufsize 32k
defaults
    mode http
    option httplog
    log global
{TIMEOUTS}
frontend fe
    bind 127.0.0.1:8080,[::1]:8081 name x maxconn 7
    bind :9000-9002 accept-proxy
    maxconn 500
    use_backend be
    default_backend be
backend be
    balance leastconn
    option forwardfor except 127.0.0.0/8 header X-Client if-none
    http-reuse always
    retries 1
    server s1 127.0.0.1:80 maxconn 5 weight 10 backup
    server s2 127.0.0.1:+1 disabled send-proxy
listen li
    bind /tmp/l.sock mode 600
    server s1 unix@/tmp/origin.sock
"
    );
    let config = accepted(&text);
    let global = &config.global;
    assert_eq!(
        (global.nbthread, global.maxconn, global.tune.bufsize_bytes),
        (Some(2), Some(1000), 32768)
    );
    assert_eq!(global.hard_stop_after, Some(Duration::from_secs(30)));
    assert_eq!(global.stats_sockets.len(), 2);
    assert_eq!(global.stats_sockets[0].mode, Some(0o600));
    assert_eq!(global.stats_sockets[1].address, BindAddress::Fd(7));
    assert_eq!(global.log[0].to, LogSink::Fd(2));
    assert_eq!(
        (
            global.log[0].facility,
            global.log[0].level_max,
            global.log[0].format
        ),
        (16, 6, LogWire::Raw)
    );
    let udp = &global.log[1];
    assert_eq!(
        (
            udp.len,
            udp.format,
            udp.facility,
            udp.level_max,
            udp.level_min
        ),
        (200, LogWire::Rfc5424, 23, 5, 3)
    );
    assert_eq!(
        udp.sample,
        Some(LogSample {
            ranges: vec![(1, 1), (3, 4)],
            size: 10
        })
    );

    let [fe, be, li] = &config.proxies[..] else {
        panic!("three proxies")
    };
    assert!(fe.is_frontend && !fe.is_backend && fe.mode == Mode::Http && fe.maxconn == Some(500));
    assert_eq!(fe.binds.len(), 5);
    assert_eq!(
        (
            fe.binds[0].name.as_deref(),
            fe.binds[1].maxconn,
            fe.binds[0].id,
            fe.binds[4].id
        ),
        (Some(&b"x"[..]), Some(7), 1, 5)
    );
    assert!(fe.binds[2].accept_proxy && !fe.binds[1].accept_proxy);
    assert_eq!(fe.binds[0].origin, "t.cfg:20");
    assert_eq!((fe.log.len(), fe.log_format.is_some()), (2, true));
    assert_eq!(fe.default_backend, Some(1));
    assert!(
        matches!(fe.use_backend[0].target, BackendTarget::Static(1))
            && fe.use_backend[0].condition.is_none()
    );

    assert!(be.is_backend && !be.is_frontend && matches!(be.balance, Balance::LeastConn));
    assert_eq!((be.retries, be.http_reuse), (1, HttpReuse::Always));
    let forward = be.forwardfor.as_ref().expect("forwardfor");
    assert_eq!(
        (
            forward.header.to_string().as_str(),
            forward.if_none,
            forward.except.map(|e| e.1)
        ),
        ("X-Client", true, Some(8))
    );
    let [s1, s2] = &be.servers[..] else {
        panic!("two servers")
    };
    assert_eq!((s1.maxconn, s1.weight, s1.backup, s1.id), (5, 10, true, 1));
    assert!(s2.disabled && s2.send_proxy.v1 && !s2.send_proxy.v2);
    assert!(matches!(
        s2.address,
        ServerAddress::PortOffset { offset: 1, .. }
    ));
    assert_eq!(s1.pool_purge_delay, Duration::from_secs(5));

    assert!(li.is_frontend && li.is_backend && li.default_backend == Some(2));
    assert_eq!(li.retries, 3);
    assert_eq!(li.timeout.connect, Some(Duration::from_secs(3)));
    assert_eq!(
        config
            .proxies
            .iter()
            .map(|proxy| proxy.id)
            .collect::<Vec<_>>(),
        [2, 3, 4]
    );
}

#[test]
fn defaults_are_folded_in() {
    let text = format!(
        "defaults one
    mode http
    option nolinger
    option httpclose
    retries 7
    default-server weight 5 maxconn 9
{TIMEOUTS}
defaults two from one
    no option nolinger
    option http-server-close
    timeout client 9s
backend a from one
    server s 127.0.0.1:80
backend b from two
    server s 127.0.0.1:80 weight 6
    default-server weight 8
    server t 127.0.0.1:80
listen c
    bind :80
    no option http-server-close
"
    );
    let config = accepted(&text);
    let [a, b, c] = &config.proxies[..] else {
        panic!("three proxies")
    };
    assert_eq!(
        (a.mode, a.retries, a.connection_mode),
        (Mode::Http, 7, ConnectionMode::Close)
    );
    assert!(a.options.nolinger && !b.options.nolinger);
    assert_eq!(
        (b.connection_mode, b.timeout.client),
        (ConnectionMode::ServerClose, Some(Duration::from_secs(9)))
    );
    assert_eq!(c.connection_mode, ConnectionMode::KeepAlive);
    assert_eq!(
        c.timeout.client,
        Some(Duration::from_secs(9)),
        "the last defaults where none is named"
    );
    assert_eq!((a.servers[0].weight, a.servers[0].maxconn), (5, 9));
    assert_eq!(
        b.servers.iter().map(|s| s.weight).collect::<Vec<_>>(),
        [6, 8]
    );
}

#[test]
fn an_anonymous_defaults_starts_afresh() {
    let text = format!("defaults\n    retries 7\ndefaults\n{TIMEOUTS}backend a\n");
    assert_eq!(accepted(&text).proxies[0].retries, 3);
}

#[test]
fn what_log_lines_name() {
    use sample::LogOrigin;
    let config = accepted(
        "global\n log stdout profile p local0\nfrontend f\n mode http\n log global\n log backend@l sample 1:2 local1\n \
         log-steps accept,close\n http-request do-log profile q if TRUE\n log-format %ci\n log-format-sd [a]\n\
         log-profile q\n on http-req drop\n\
         log-profile p\n log-tag t\n on error format e sd [s]\n on any format a\n on close format c\n on close drop\n\
         backend l\n mode log\n server s udp@127.0.0.1:514\n",
    );
    let proxy = &config.proxies[0];
    assert_eq!(proxy.log.len(), 2);
    assert_eq!(
        (proxy.log[0].profile, &proxy.log[1].to),
        (Some(1), &LogSink::Backend(1))
    );
    assert_eq!(
        proxy.log_steps,
        Some(vec![LogOrigin::Accept, LogOrigin::Close])
    );
    assert!(proxy.log_format_sd.is_some());
    assert!(matches!(
        proxy.http_request[0].action,
        HttpAction::DoLog { profile: Some(0) }
    ));
    let profile = &config.log_profiles[1];
    assert_eq!(
        (profile.name.as_str(), profile.tag.as_deref()),
        ("p", Some(&b"t"[..]))
    );
    let says = |origin| {
        let step = profile.step(origin).expect("a step");
        let text = |format: &Option<sample::LogFormat>| {
            let text = format.as_ref().and_then(sample::LogFormat::constant);
            text.map(|text| String::from_utf8_lossy(text).into_owned())
        };
        (step.drop, text(&step.format), text(&step.sd))
    };
    assert_eq!(
        says(LogOrigin::SessionError),
        (false, Some("e".into()), Some("[s]".into()))
    );
    assert_eq!(
        says(LogOrigin::SessionKilled),
        says(LogOrigin::SessionError)
    );
    assert_eq!(says(LogOrigin::Request), (false, Some("a".into()), None));
    assert_eq!(says(LogOrigin::Close), (true, Some("c".into()), None));
    assert!(config.log_profiles[0].step(LogOrigin::Close).is_none());
}

/// `log global` in `defaults` and in a proxy that starts from it count once.
#[test]
fn global_logs_are_taken_once() {
    let config = accepted(
        "global\n log stdout local0\ndefaults\n log global\nbackend a\n log global\nbackend b\n no log\n log global\n",
    );
    let counts: Vec<usize> = config.proxies.iter().map(|proxy| proxy.log.len()).collect();
    assert_eq!(counts, [1, 1]);
}

#[test]
fn logs_are_inherited_added_and_cancelled() {
    let text = "global\n log stdout local0\ndefaults\n log global\n log stderr local1\nbackend a\nbackend b\n no log\nbackend c\n log stdout local2\n";
    let config = accepted(text);
    assert_eq!(
        config
            .proxies
            .iter()
            .map(|proxy| proxy.log.len())
            .collect::<Vec<_>>(),
        [2, 0, 3]
    );
}

#[test]
fn timeouts_in_every_unit_and_zero_is_none() {
    let config = accepted(
        "backend b\n timeout connect 5\n timeout server 1m\n timeout queue 0\n timeout tunnel 1h\n",
    );
    let timeout = config.proxies[0].timeout;
    assert_eq!(timeout.connect, Some(Duration::from_millis(5)));
    assert_eq!(
        (timeout.server, timeout.queue),
        (Some(Duration::from_secs(60)), None)
    );
    assert_eq!(timeout.tunnel, Some(Duration::from_secs(3600)));
}

#[test]
fn rules_and_pages() {
    let text = format!(
        "http-errors e
    errorloc 404 http://a/
    errorloc303 500 http://b/
defaults
    mode http
{TIMEOUTS}
listen l
    bind :80
    errorfiles e 404
    http-error status 503 hdr x y
    monitor-uri /up
    monitor fail unless {{ nbsrv gt 0 }}
    http-request wait-for-body time 1s at-least 1k
    http-request return status 200 content-type text/plain string \"hello world\"
    http-request deny deny_status 404
    http-request deny status 429
    http-request return errorfiles e status 404
    http-request allow
    http-response deny
    redirect location /x code 301 drop-query
    tcp-request inspect-delay 5s
    tcp-request connection expect-proxy layer4
    tcp-request content accept
    tcp-response content close
    capture request header Host len 32
    declare capture response len 8
"
    );
    let config = accepted(&text);
    let proxy = &config.proxies[0];
    assert!(matches!(
        &proxy.error_pages[..],
        [(404, ErrorPage::Redirect { status: 302, location }), (503, ErrorPage::Reply(reply))]
            if location == "http://a/" && reply.headers.len() == 1
    ));
    let replies: Vec<&Reply> = proxy
        .http_request
        .iter()
        .filter_map(|rule| match &rule.action {
            HttpAction::Return(reply) | HttpAction::Deny(reply) => Some(reply),
            _ => None,
        })
        .collect();
    assert!(matches!(&replies[0].body, ReplyBody::Fixed(bytes) if **bytes == *b"hello world"));
    assert!(replies[1].status == 404 && matches!(replies[1].body, ReplyBody::Default));
    assert!(replies[2].status == 429 && matches!(replies[2].body, ReplyBody::Empty));
    assert!(
        matches!(&replies[3].body, ReplyBody::Raw(bytes) if bytes.ends_with(b"Location: http://a/\r\n\r\n"))
    );
    assert!(
        matches!(&proxy.http_response[0].action, HttpAction::Deny(reply) if reply.status == 502)
    );
    assert!(
        matches!(&proxy.redirects[0].action, HttpAction::Redirect(to) if to.code == 301 && to.options.drop_query)
    );
    assert_eq!(
        proxy.tcp_request_inspect_delay,
        Some(Duration::from_secs(5))
    );
    assert!(matches!(
        proxy.tcp_request_connection[0].action,
        TcpAction::ExpectProxy
    ));
    assert!(matches!(
        proxy.tcp_response_content[0].action,
        TcpAction::Close
    ));
    assert_eq!(
        proxy.capture_request,
        [Capture {
            header: "Host".into(),
            len: 32
        }]
    );
    assert_eq!(
        proxy.capture_response,
        [Capture {
            header: Octets::default(),
            len: 8
        }]
    );
}

type Is = fn(&Balance) -> bool;

#[test]
fn balance_in_every_form() {
    let cases: [(&str, Is); 11] = [
        ("roundrobin", |b| matches!(b, Balance::RoundRobin)),
        ("static-rr", |b| matches!(b, Balance::StaticRr)),
        ("leastconn", |b| matches!(b, Balance::LeastConn)),
        ("first", |b| matches!(b, Balance::First)),
        ("random", |b| matches!(b, Balance::Random { draws: 2 })),
        ("random(5)", |b| matches!(b, Balance::Random { draws: 5 })),
        ("source", |b| matches!(b, Balance::Source)),
        ("uri", |b| {
            matches!(
                b,
                Balance::Uri {
                    whole: false,
                    len: None,
                    depth: None,
                    path_only: false
                }
            )
        }),
        ("uri whole len 5 depth 2", |b| {
            matches!(
                b,
                Balance::Uri {
                    whole: true,
                    len: Some(5),
                    depth: Some(2),
                    ..
                }
            )
        }),
        (
            "url_param id",
            |b| matches!(b, Balance::UrlParam { name, .. } if name == "id"),
        ),
        (
            "hdr(Host) use_domain_only",
            |b| matches!(b, Balance::Hdr { name, use_domain_only: true } if name == "Host"),
        ),
    ];
    for (text, expected) in cases {
        let config = accepted(&format!("backend b\n mode http\n balance {text}\n"));
        assert!(
            expected(&config.proxies[0].balance),
            "{text}: {:?}",
            config.proxies[0].balance
        );
    }
}

/// HAProxy parses these numbers like C's `atol`.
#[test]
fn what_follows_the_digits_of_a_number_does_not_count() {
    let config = accepted(
        "backend b
 retries 5;
 server s 127.0.0.1:1 weight 20.2% maxconn 100,
",
    );
    let server = &config.proxies[0].servers[0];
    assert_eq!((server.weight, server.maxconn), (20, 100));
    assert_eq!(config.proxies[0].retries, 5);
}

#[test]
fn a_capture_slot_may_be_longer_than_any_message() {
    let config = accepted(
        "frontend f
 mode http
 declare capture request len 40000000
 http-request capture req.body id 0
",
    );
    assert_eq!(config.proxies[0].capture_request[0].len, 40_000_000);
}

#[test]
fn a_warning_refuses_only_where_none_is_allowed() {
    assert!(read("frontend f\n bind :80\n").is_ok());
    assert!(read("global\n zero-warning\nfrontend f\n bind :80\n").is_err());
}

#[test]
fn expressions_conditions_and_variables() {
    let text = format!(
        "defaults d
    mode http
{TIMEOUTS}    acl local src 127.0.0.1
    http-request set-var(txn.a) str(x) if local
frontend l from d
    bind :80
    acl local src 127.0.0.1
    log stdout local0
    log-format \"%ci %[var(txn.a)]\"
    unique-id-format %{{+X}}o\\ %ci:%cp
    http-request set-header X-A \"%[src] %[var(txn.a)]\" if local !{{ path_beg /x }}
    http-request set-src hdr(X-Forwarded-For)
    http-request capture req.hdr(Host) len 40
    http-request return status 200 content-type text/plain lf-string \"%[src]\" hdr X-B %[dst] unless local
    tcp-request content set-var(sess.b) src
    use_backend %[req.hdr(Host)] if {{ hdr(Host) -m found }}
defaults e
    mode http
{TIMEOUTS}backend b
    balance hash req.hdr(Host)
    server s 127.0.0.1:80 send-proxy-v2 set-proxy-v2-tlv-fmt(0xE1) %[src]
"
    );
    let config = accepted(&text);
    let proxy = &config.proxies[0];
    assert_eq!((config.slots.txn, config.slots.sess), (1, 1));
    assert!(proxy.log_format.is_some() && proxy.unique_id_format.is_some());
    assert!(
        matches!(proxy.http_request[0].action, HttpAction::Var(_)),
        "rules of defaults come first"
    );
    assert!(
        proxy
            .http_request
            .iter()
            .filter(|rule| rule.condition.is_some())
            .count()
            == 3
    );
    assert!(matches!(
        proxy.http_request[3].action,
        HttpAction::Capture { slot: 0, .. }
    ));
    assert_eq!(
        proxy.capture_request,
        [Capture {
            header: Octets::default(),
            len: 40
        }]
    );
    assert!(matches!(
        proxy.use_backend[0].target,
        BackendTarget::Dynamic(_)
    ));
    let backend = &config.proxies[1];
    assert!(matches!(backend.balance, Balance::Hash(_)));
    assert!(
        matches!(&backend.servers[0].send_proxy, SendProxy { v2: true, tlvs, .. } if tlvs.len() == 1 && tlvs[0].0 == 0xE1)
    );
}

#[test]
fn rule_actions() {
    let text = format!(
        "global
    expose-experimental-directives
defaults d
    mode http
{TIMEOUTS}
    http-request strict-mode off
    http-request early-hint Link x
frontend l from d
    bind :80
    tcp-request connection set-mark 0x10
    tcp-request content capture src len 15
    tcp-request content set-priority-class int(3)
    http-request del-header x- -m beg if TRUE
    http-request replace-value x-a ^a(.) \\1b unless FALSE
    http-request replace-path /a(.*) \\1
    http-request add-headers-bin var(txn.h) prefix x-
    http-request normalize-uri path-strip-dotdot full if TRUE
    http-request normalize-uri percent-to-uppercase
    http-request pause 10ms
    http-request pause hdr(x),mul(2) if TRUE
    http-request set-log-level silent
    http-request set-bc-tos 010
    http-request set-nice 10
    http-request wait-for-handshake
    http-request silent-drop rst-ttl 64
    redirect prefix / set-cookie A
"
    );
    let config = accepted(&text);
    let proxy = &config.proxies[0];
    let rules = &proxy.http_request;
    // The section's own rules begin in strict mode; a line without effect here is not a rule.
    assert_eq!(rules.len(), 2 + 1 + 12);
    assert!(matches!(rules[2].action, HttpAction::StrictMode(true)));
    let HttpAction::DelHeader(NameMatch::Text(NameMethod::Begins, name)) = &rules[3].action else {
        panic!("{:?}", rules[3]);
    };
    assert_eq!(name, "x-");
    let HttpAction::ReplaceHeader(rewrite) = &rules[4].action else {
        panic!("{:?}", rules[4]);
    };
    assert!(rewrite.by_value && rewrite.with.id == 0);
    let HttpAction::ReplaceTarget { part, with } = &rules[5].action else {
        panic!("{:?}", rules[5]);
    };
    assert_eq!((*part, with.id), (TargetPart::Path, 1));
    assert_eq!(with.format.constant(), Some(&b"\\1"[..]));
    let tos = rules.iter().find_map(|rule| match &rule.action {
        HttpAction::Stream(StreamAction::SetTos(Side::Server, Number::Fixed(tos))) => Some(*tos),
        _ => None,
    });
    assert_eq!(tos, Some(8), "octal");
    let last = rules[rules.len() - 1].place;
    let file = &config.files[last.file as usize];
    assert_eq!((file.as_str(), last.line), ("t.cfg", 28));
    assert_eq!(proxy.capture_request[0].len, 15);
    assert_eq!(proxy.redirects.len(), 1);
    assert!(proxy.redirects[0].place.line > 0);
}

/// HAProxy expands variables in addresses outside of double quotes too.
#[test]
fn variables_in_addresses() {
    let text = format!(
        "global
    setenv IP 127.0.0.1
    setenv PORT 81
    log $IP local0
defaults
    mode http
{TIMEOUTS}frontend f
    bind $IP:${{PORT}},:8${{PORT}}
listen l
    bind /tmp/${{PORT}}_$NONE
    source ${{IP}}
    server a ${{IP}}:$PORT addr $IP
    server b '${{IP}}':82 source $IP
"
    );
    let config = accepted(&text);
    let binds = |proxy: usize| {
        let binds = config.proxies[proxy].binds.iter();
        let shown = binds.map(|bind| match &bind.address {
            BindAddress::Addr(address) => address.to_string(),
            BindAddress::Quic(addr) => format!("quic {addr}"),
            BindAddress::Fd(fd) => format!("fd@{fd}"),
        });
        shown.collect::<Vec<_>>()
    };
    assert_eq!(binds(0), ["127.0.0.1:81", "0.0.0.0:881"]);
    assert_eq!(binds(1), ["unix@/tmp/81_"]);
    let servers: Vec<String> = config.proxies[1]
        .servers
        .iter()
        .map(|server| match &server.address {
            ServerAddress::Fixed(address) => address.to_string(),
            other => format!("{other:?}"),
        })
        .collect();
    assert_eq!(servers, ["127.0.0.1:81", "127.0.0.1:82"]);
    let shown = report(&format!("backend b\n{TIMEOUTS}    server s $NONE\n"));
    let message =
        "'server b/s' : '$NONE' resolves to an empty address (environment variable missing?).";
    assert!(shown.contains(message), "{shown}");
}

#[test]
fn compression_is_inherited_and_refused_word_by_word() {
    let config = accepted(
        "global\n maxzlibmem 16\n tune.comp.maxlevel 3\ndefaults\n mode http\n timeout client 1s\n timeout server 1s\n timeout connect 1s\n \
         compression algo gzip\nbackend a\nbackend b\n filter compression\n compression algo-res gzip deflate\n compression type text/ a/b\n \
         compression type-res c/d\n compression minsize-res 1k\n compression offload\n compression direction both\n \
         compression algo-req deflate\n compression algo-req gzip\n compression type-req e/f\n compression minsize-req 2k\n",
    );
    assert_eq!(config.global.maxzlibmem_mib, Some(16));
    assert_eq!(config.global.tune.comp_level, 3);
    let [a, b] = [0, 1].map(|at| config.proxies[at].compression.clone().expect("one"));
    assert_eq!(a.codings, [Coding::Gzip]);
    assert!(a.responses.is_on && a.responses.types.is_empty() && !a.offload);
    assert!(!a.requests.is_on && a.request_coding.is_none());
    assert_eq!(b.codings, [Coding::Gzip, Coding::Deflate]);
    assert_eq!(b.responses.types.len(), 3);
    assert!(b.offload && b.responses.is_on && b.responses.min_bytes == 1024);
    // The last algorithm counts, as in HAProxy.
    assert_eq!(b.request_coding, Some(Coding::Gzip));
    assert_eq!(b.requests.types.len(), 1);
    assert!(b.requests.is_on && b.requests.min_bytes == 2048);
    for (line, message) in [
        ("compression", "'compression' expects 'algo', 'type',"),
        ("compression algo br", "'br' is not a supported algorithm."),
        (
            "compression algo",
            "'compression algo' expects <algorithm>.",
        ),
        ("compression type", "'compression type' expects <type>."),
        (
            "compression direction up",
            "'direction' expects 'request', 'response', or 'both'.",
        ),
        (
            "compression algo-req br",
            "'br' is not a supported algorithm.",
        ),
        (
            "compression algo-req",
            "'compression algo-req' expects <algorithm>.",
        ),
        ("compression minsize-req x", "'minsize-req'"),
        ("compression minsize-res x", "'minsize-res'"),
    ] {
        let shown = report(&format!("backend b\n {line}\n"));
        assert!(
            shown.contains("[ALERT]") && shown.contains(message),
            "{line}: {shown}"
        );
    }
    let shown = report("defaults\n compression offload\n");
    assert!(
        shown.contains("[WARNING]") && shown.contains("'offload' setting ignored"),
        "{shown}"
    );
}

/// Unusual spellings in old configurations that HAProxy accepts.
#[test]
fn habits_of_old_files() {
    let config = accepted(
        "global\n node 'haproxy.example.com'\ndefaults mine mode http\n mode http\n timeout client 1s\n \
         timeout server 1s\n timeout connect 1s\nfrontend f\n bind :80\n default_backend b\n \
         acl small status -m int eq -- 200\n http-response set-header x y if small\n \
         http-request capture req.hdr(host) id 0\n declare capture request len 20\n \
         http-response capture res.hdr(x) id 0\n declare capture response len 20\n\
         backend b\n balance roundrobin | leastconn\n server s 127.0.0.1:1\n",
    );
    assert_eq!(config.global.node.as_deref(), Some("haproxy.example.com"));
    assert!(matches!(config.proxies[1].balance, Balance::RoundRobin));
    for what in ["request", "response"] {
        let shown = report(&format!(
            "frontend f\n mode http\n bind :80\n http-{what} capture hdr(a) id 0\n"
        ));
        assert!(
            shown.contains("[ALERT]") && shown.contains("unable to find capture id '0'"),
            "{shown}"
        );
        let side = if what == "request" {
            "frontend"
        } else {
            "backend"
        };
        let shown = report(&format!(
            "{side} p\n mode http\n option accept-invalid-http-{what}\n"
        ));
        let wanted = format!(
            "option 'accept-invalid-http-{what}' is deprecated. please use 'option \
             accept-unsafe-violations-in-http-{what}' if absolutely needed."
        );
        assert!(
            shown.contains("[WARNING]") && shown.contains(&wanted),
            "{shown}"
        );
    }
}

/// Since HAProxy 3.3.
#[test]
fn the_default_of_balance_is_random() {
    let config = accepted(
        "defaults\n timeout server 1s\n timeout connect 1s\nbackend a\n server s 127.0.0.1:1\n\
         backend b\n balance\n server s 127.0.0.1:1\nbackend c\n balance random(3)\n server s 127.0.0.1:1\n",
    );
    for (place, wanted) in [(0, 2), (1, 2), (2, 3)] {
        let balance = &config.proxies[place].balance;
        assert!(
            matches!(balance, Balance::Random { draws } if *draws == wanted),
            "{place}: {balance:?}"
        );
    }
}
