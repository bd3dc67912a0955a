//! Health checks: the scripts from options and rules, and refused settings.

use crate::common::{accepted, read, report};
use spangate_config::model::*;
use std::time::Duration;

const TIMEOUTS: &str = " timeout client 1s\n timeout server 1s\n timeout connect 1s\n";

fn backend(lines: &str) -> String {
    format!("defaults\n mode http\n{TIMEOUTS}backend b\n{lines} server s 127.0.0.1:80 check\n")
}

fn script(lines: &str) -> CheckScript {
    let config = accepted(&backend(lines));
    match &config.proxies[0].check {
        Some(BackendCheck::Script(script)) => (**script).clone(),
        other => panic!("{lines}: {other:?}"),
    }
}

/// The kinds of a script's rules with their steps: `C0 S0 E1`.
fn steps(script: &CheckScript) -> String {
    let steps = script.rules.iter().map(|rule| {
        let kind = match &rule.action {
            CheckAction::Connect(connect) if connect.is_implicit => "c",
            CheckAction::Connect(_) => "C",
            CheckAction::Send(_) => "S",
            CheckAction::Expect(_) => "E",
            CheckAction::Assign(_) => "V",
        };
        format!("{kind}{}", rule.index)
    });
    steps.collect::<Vec<_>>().join(" ")
}

fn request(script: &CheckScript, nth: usize) -> &CheckRequest {
    let requests = script.rules.iter().filter_map(|rule| match &rule.action {
        CheckAction::Send(CheckSend::Http(request)) => Some(request),
        _ => None,
    });
    requests.into_iter().nth(nth).expect("a request")
}

#[test]
fn what_the_options_come_to() {
    for (lines, kind, wanted) in [
        ("", CheckKind::Connect, "c0"),
        (" option tcp-check\n", CheckKind::Tcp, "c0"),
        (" option httpchk\n", CheckKind::Http, "c0 S0 E1"),
        (" option redis-check\n", CheckKind::Protocol, "c0 S0 E1"),
        (" option ldap-check\n", CheckKind::Protocol, "c0 S0 E1 E2"),
        (" option ssl-hello-chk\n", CheckKind::Protocol, "c0 S0 E1"),
        (" option spop-check\n", CheckKind::Protocol, "C0 S1 E2"),
        (" option mysql-check\n", CheckKind::Protocol, "C0 E1"),
        (
            " option mysql-check user me pre-41\n",
            CheckKind::Protocol,
            "C0 S1 E2 E3",
        ),
        (
            " option pgsql-check user me\n",
            CheckKind::Protocol,
            "C0 S1 E2 E3",
        ),
        (
            " option smtpchk EHLO me\n",
            CheckKind::Protocol,
            "C0 E1 E2 S3 E4 S5 E6",
        ),
        (
            " option tcp-check\n tcp-check comment first\n tcp-check connect port 25\n tcp-check expect string 220\n",
            CheckKind::Tcp,
            "C1 E2",
        ),
        (
            " option httpchk\n http-check connect port 81\n http-check send uri /a\n http-check expect status 200\n",
            CheckKind::Http,
            "C0 S1 E2",
        ),
        (
            " option httpchk GET /x\n http-check connect port 81\n",
            CheckKind::Http,
            "C0 S1 E2",
        ),
    ] {
        let script = script(lines);
        assert_eq!(script.kind, kind, "{lines}");
        assert_eq!(steps(&script), wanted, "{lines}");
    }
}

#[test]
fn the_packets_of_databases() {
    let sent = |lines: &str| {
        let script = script(lines);
        let sent = script.rules.iter().find_map(|rule| match &rule.action {
            CheckAction::Send(CheckSend::Bytes(bytes)) => Some(bytes.to_vec()),
            _ => None,
        });
        sent.expect("bytes")
    };
    assert_eq!(
        sent(" option mysql-check user haproxy pre-41\n"),
        b"\x0e\x00\x00\x01\x00\x80\x00\x00\x01haproxy\x00\x00\x01\x00\x00\x00\x01"
    );
    let packet = sent(" option mysql-check user haproxy\n");
    assert_eq!(packet[..4], [7 + 7 + 27, 0, 0, 1]);
    assert_eq!(packet.len(), 4 + 41 + 5);
    let packet = sent(" option mysql-check user haproxy post-80\n");
    assert_eq!(packet[0], 7 + 7 + 27 + 22);
    assert_eq!(packet.len(), 4 + 63 + 5);
    assert_eq!(
        sent(" option pgsql-check user me\n"),
        b"\x00\x00\x00\x11\x00\x03\x00\x00user\x00me\x00\x00"
    );
    assert_eq!(sent(" option spop-check\n").len(), 4 + 0x4e);
}

#[test]
fn the_request_of_the_option_and_that_of_the_rule_are_one() {
    let fixed = |text: &Option<CheckText>| match text {
        Some(CheckText::Fixed(text)) => text.to_string(),
        other => panic!("{other:?}"),
    };
    for lines in [
        " option httpchk GET /old HTTP/1.1\n http-check send uri /new hdr host x\n",
        " http-check send uri /new hdr host x\n option httpchk GET\n http-check send-state\n",
    ] {
        let script = script(lines);
        assert_eq!(steps(&script).matches('S').count(), 1, "{lines}");
        assert_eq!(request(&script, 0).headers.len(), 1);
    }
    let script = script(" option httpchk GET /old HTTP/1.1 www\n http-check send uri /new\n");
    let request = request(&script, 0);
    assert_eq!(fixed(&request.uri), "/new");
    assert_eq!(request.method.as_deref(), Some(&b"GET"[..]));
    assert_eq!(request.version.as_deref(), Some(&b"HTTP/1.1"[..]));
    assert_eq!(request.headers[0].0.to_string(), "host");
    // The implied connection uses the host of the request.
    let CheckAction::Connect(connect) = &script.rules[0].action else {
        panic!("{script:?}");
    };
    let host = connect.host.as_ref().and_then(|host| host.constant());
    assert_eq!(host, Some(&b"www"[..]));
}

#[test]
fn a_section_of_its_own_replaces_the_rules_of_defaults() {
    let text = format!(
        "defaults\n mode http\n option httpchk GET /of-defaults\n http-check expect status 204\n{TIMEOUTS}\
         backend a\n server s 127.0.0.1:1 check\n\
         backend b\n option httpchk HEAD /own\n server s 127.0.0.1:1 check\n\
         backend c\n http-check disable-on-404\n server s 127.0.0.1:1\n"
    );
    let config = accepted(&text);
    let of = |place: usize| match &config.proxies[place].check {
        Some(BackendCheck::Script(script)) => script,
        other => panic!("{other:?}"),
    };
    let expected = |script: &CheckScript| {
        script.rules.iter().find_map(|rule| match &rule.action {
            CheckAction::Expect(expect) => match &expect.what {
                Expectation::Status(ranges) => Some(ranges.clone()),
                _ => None,
            },
            _ => None,
        })
    };
    assert_eq!(expected(of(0)), Some(vec![(204, 204)]));
    assert_eq!(expected(of(1)), Some(vec![(200, 399)]));
    assert_eq!(request(of(1), 0).method.as_deref(), Some(&b"HEAD"[..]));
    // As in HAProxy, a section without its own rules keeps the inherited ones, which do not set it.
    assert!(!of(2).disable_on_404);
}

#[test]
fn comments_belong_to_what_follows() {
    let script = script(
        " option tcp-check\n tcp-check comment hello\n tcp-check connect\n tcp-check comment greeting\n \
         tcp-check expect string a\n tcp-check expect string b comment own\n tcp-check send x\n",
    );
    let comments: Vec<_> = script
        .rules
        .iter()
        .map(|rule| rule.comment.as_ref().map(|text| text.to_string()))
        .collect();
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(
        comments,
        [some("hello"), some("greeting"), some("own"), None]
    );
}

#[test]
fn the_options_of_a_server() {
    let text = format!(
        "defaults\n mode http\n{TIMEOUTS}healthcheck own\n type redis-check\n\
         backend b\n default-server check inter 1s fastinter 200ms downinter 5s rise 3 fall 4\n \
         server s 127.0.0.1:80 port 81 addr 127.0.0.2 observe layer7 error-limit 5 on-error mark-down \
         on-marked-down shutdown-sessions on-marked-up shutdown-backup-sessions slowstart 1500ms init-state down \
         agent-check agent-port 99 agent-inter 3s agent-send hello healthcheck own check-proto none\n \
         server t 127.0.0.1:81 no-check track s\n"
    );
    let config = accepted(&text);
    let checks = &config.proxies[0].servers[0].checks;
    assert!(checks.enabled && checks.agent.enabled);
    assert_eq!(checks.inter, Duration::from_secs(1));
    assert_eq!(checks.fastinter, Some(Duration::from_millis(200)));
    assert_eq!(checks.downinter, Some(Duration::from_secs(5)));
    assert_eq!((checks.rise, checks.fall, checks.port), (3, 4, 81));
    assert_eq!(
        checks.addr,
        Some(net::Addr::Inet("127.0.0.2:0".parse().unwrap()))
    );
    assert_eq!(checks.observe, Observe::Layer7);
    assert_eq!(checks.on_error, OnError::MarkDown);
    assert_eq!((checks.error_limit, checks.agent.port), (5, 99));
    assert_eq!(checks.slowstart, Duration::from_secs(2));
    assert_eq!(checks.init_state, InitState::Down);
    assert_eq!(checks.agent.send.to_string(), "hello");
    assert!(checks.ends_sessions_when_down && checks.ends_backup_sessions_when_up);
    assert_eq!(
        checks.script.as_ref().map(|script| steps(script)),
        Some("c0 S0 E1".into())
    );
    assert_eq!(config.proxies[0].servers[1].checks.tracked, Some((0, 0)));
}

#[test]
fn mailers_and_who_mails() {
    let text = format!(
        "mailers m\n mailer one 127.0.0.1:25\n timeout mail 20s\ndefaults\n mode http\n{TIMEOUTS}\
         backend b\n email-alert mailers m\n email-alert from a@x\n email-alert to b@x\n email-alert level notice\n \
         server s 127.0.0.1:80 check\n"
    );
    let config = accepted(&text);
    let alert = config.proxies[0].email_alert.as_ref().expect("an alert");
    assert_eq!((alert.mailers, alert.level), (0, 5));
    assert_eq!(config.mailers[0].timeout, Duration::from_secs(20));
}

#[test]
fn what_is_refused() {
    let track = |options: &str| {
        format!(
            "defaults\n mode http\n{TIMEOUTS}backend b\n server a 127.0.0.1:1 {options}\n server c 127.0.0.1:1\n"
        )
    };
    let cases = [
        (
            backend(" option httpchk\n http-check expect stauts 200\n"),
            "but got 'stauts' as argument",
        ),
        (
            backend(" option httpchk\n http-check expect status 300-200\n"),
            "invalid range of status codes",
        ),
        (
            backend(" option httpchk\n http-check expect string a string b\n"),
            "only one pattern expected",
        ),
        (
            backend(" option httpchk\n http-check send meth GET\n http-check send meth GET\n"),
            "missing connect rule",
        ),
        (
            backend(
                " option httpchk\n http-check connect\n http-check expect status 200\n http-check connect\n http-check expect status 200\n",
            ),
            "missing send rule",
        ),
        (
            backend(" option httpchk\n http-check frob\n"),
            "but got 'frob'",
        ),
        (
            backend(" option tcp-check\n tcp-check send-binary abc\n"),
            "invalid binary string",
        ),
        (
            backend(" option tcp-check\n tcp-check send x\n tcp-check connect\n"),
            "first step MUST also be a 'connect'",
        ),
        (
            backend(" option tcp-check\n tcp-check connect port 0\n"),
            "expects a valid TCP port",
        ),
        (
            backend(" option tcp-check\n tcp-check connect proto h2\n"),
            "invalid MUX protocol 'h2' for tcp-check",
        ),
        (
            backend(" option tcp-check\n tcp-check expect ! min-recv 5\n"),
            "[!] not supported with 'min-recv'",
        ),
        (
            backend(" option tcp-check\n tcp-check expect string x error-status L7OK\n"),
            "only supports 'L4CON', 'L6RSP', 'L7RSP' or 'L7STS' status (got 'L7OK')",
        ),
        (
            backend(" option mysql-check user\n"),
            "expects <username> as argument",
        ),
        (
            backend(" option pgsql-check\n"),
            "expects 'user <username>' as argument",
        ),
        (
            backend(" option external-check\n"),
            "unable to find required 'global.external-check'",
        ),
        (
            backend(" option httpchk GET / HTTP/1.0\\r\\nHost:\\ x\n"),
            "hiding headers or body",
        ),
        (
            backend(" email-alert mailers none\n email-alert from a\n email-alert to b\n"),
            "unable to find mailers 'none'",
        ),
        (
            track("track c"),
            "does not have any check nor agent enabled",
        ),
        (
            track("track none"),
            "unable to find required server 'none' for tracking",
        ),
        (
            track("track x/none"),
            "unable to find required proxy 'x' for tracking",
        ),
        (
            track("check track c"),
            "unable to enable checks and tracking at the same time",
        ),
        (track("track a"), "tracking chain looping back to b/a"),
        (track("check check-proto h2"), "incompatible MUX protocol"),
        (
            track("check healthcheck none"),
            "healthcheck section 'none' not found for server 'a'",
        ),
        (track("inter 0"), "inter"),
        (track("observe layer5"), "observe"),
        (
            "healthcheck h\n type frob\n".into(),
            "unknown healthcheck type 'frob'",
        ),
        (
            "healthcheck h\n type tcp-check\n http-check send\n".into(),
            "unable to configure 'http-check' rule for 'tcp-check' healthcheck",
        ),
        (
            "healthcheck h\n tcp-check connect\n type httpchk\n".into(),
            "cannot set 'httpchk' type with 'tcp-check' rules",
        ),
    ];
    for (text, part) in cases {
        assert!(read(&text).is_err(), "{text}: accepted");
        let shown = report(&text);
        assert!(shown.contains(part), "{text}\n{shown}");
    }
}

#[test]
fn rules_without_their_option_are_told() {
    let shown = report(&backend(" http-check expect status 200\n"));
    let message =
        "backend 'b' uses http-check rules without 'option httpchk', so the rules are ignored.";
    assert!(shown.contains(message), "{shown}");
}
