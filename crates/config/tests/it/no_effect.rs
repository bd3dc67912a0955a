//! Keywords without an effect: those that only configure a missing feature are accepted and
//! reported; those that enable it are refused.

use crate::common;

use common::{messages, read, report};
use spangate_config::diagnostic::Severity;

const TIMEOUTS: &str = " timeout client 1s\n timeout server 1s\n timeout connect 1s\n";

/// The notices of a file that is accepted without a warning.
fn notices(text: &str) -> Vec<String> {
    let Ok((_, diagnostics)) = read(text) else {
        panic!("refused:\n{}", report(text));
    };
    assert_eq!(
        messages(&diagnostics, Severity::Warning),
        Vec::<String>::new()
    );
    messages(&diagnostics, Severity::Notice)
}

fn alerts(text: &str) -> Vec<String> {
    let Err(diagnostics) = read(text) else {
        return Vec::new();
    };
    messages(&diagnostics, Severity::Alert)
}

/// The keywords in the file that Debian's package installs.
#[test]
fn a_distribution_s_file_is_taken() {
    let text = format!(
        "global
 log /dev/log local0
 log /dev/log local1 notice
 chroot /
 stats socket /run/some/admin.sock mode 660 level admin
 stats timeout 30s
 user root
 group root
 daemon
 ca-base /etc/ssl/certs
 crt-base /etc/ssl/private
 ssl-default-bind-ciphers ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256
 ssl-default-bind-ciphersuites TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384
 ssl-default-bind-options ssl-min-ver TLSv1.2 no-tls-tickets
defaults
 log global
 mode http
 option httplog
 option dontlognull
{TIMEOUTS}"
    );
    assert_eq!(notices(&text), Vec::<String>::new());
}

#[test]
fn a_big_file_gets_one_notice_for_each_absent_feature() {
    let text = format!("global\n{}", " tune.lua.maxmem 100\n".repeat(1_000));
    let told = notices(&text);
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(
        told[0],
        "no effect of tune.lua.maxmem at t.cfg:2 and 999 more places : Lua is not implemented yet."
    );
}

/// HAProxy's example of traces is accepted; lines that it would refuse are refused.
#[test]
fn traces_are_checked_and_have_no_effect() {
    let text = "traces
 trace all sink stderr level developer
 trace h2 verbosity complete start now
traces
 trace stream event +any follow session lock backend
";
    assert_eq!(
        notices(text),
        ["no effect of traces, trace at t.cfg:1 and 4 more places : they have no meaning here."]
    );
    for (line, message) in [
        ("trace h9 start now", "No such trace source 'h9'."),
        (
            "trace all start now",
            "'start' not applicable to meta-source 'all'.",
        ),
        ("trace h2 begin", "Unknown trace keyword 'begin'."),
        ("trace h2 level loud", "No such trace level 'loud'."),
        ("trace h2 follow h9", "No such trace source 'h9'."),
    ] {
        assert_eq!(alerts(&format!("traces\n {line}\n")), [message]);
    }
}

#[test]
fn each_place_is_told_in_diagnostic_mode() {
    let shown = report("global\n nopoll\n noepoll\n");
    for (place, name) in [("t.cfg:2", "nopoll"), ("t.cfg:3", "noepoll")] {
        assert!(
            shown.contains(&format!(
                "[{place}] : keyword '{name}' has no effect: there is one poller here."
            )),
            "{shown}"
        );
    }
}

/// The notices would hide the error.
#[test]
fn an_error_stands_alone() {
    let text = format!("global\n nopoll\ndefaults\n mode http\n{TIMEOUTS} bogus\n");
    let Err(diagnostics) = read(&text) else {
        panic!("accepted");
    };
    assert_eq!(
        messages(&diagnostics, Severity::Notice),
        Vec::<String>::new()
    );
    assert_eq!(messages(&diagnostics, Severity::Alert).len(), 1);
}

#[test]
fn what_turns_a_feature_on_is_refused_and_its_tuning_is_no_error_more() {
    let frontend =
        |options: &str| format!("defaults\n mode http\n{TIMEOUTS}frontend f\n bind :1 {options}\n");
    let cases = [
        (
            frontend("backlog 3 accept-netscaler-cip 9"),
            "bind … accept-netscaler-cip",
        ),
        (frontend("quic-force-retry nbconn 2"), "bind … nbconn"),
    ];
    for (text, name) in cases {
        assert_eq!(
            alerts(&text),
            [format!(
                "keyword '{name}' is known but not implemented yet by this version."
            )]
        );
    }
}

#[test]
fn arguments_of_what_does_nothing_are_still_checked() {
    let global = |line: &str| format!("global\n {line}\n");
    let proxy = |line: &str| format!("defaults d\n mode http\n{TIMEOUTS} {line}\n");
    let cases = [
        (global("cpu-map banana"), "cpu-map expects"),
        (global("thread-groups -3"), "-3"),
        (
            global("ssl-default-bind-options no-such-option"),
            "no-such-option",
        ),
        (global("tune.h2.max-frame-size 1"), "tune.h2.max-frame-size"),
        (proxy("timeout check banana"), "timeout check"),
        (
            proxy("http-request set-nice x y z if nosuchacl"),
            "set-nice",
        ),
        (proxy("http-request set-nice 5 if nosuchacl"), "nosuchacl"),
        (proxy("http-check expect stauts 200"), "stauts"),
        (proxy("option httpchk GET / HTTP/1.1 a b"), "'b'"),
    ];
    for (text, part) in cases {
        let found = alerts(&text);
        assert_eq!(found.len(), 1, "{text}: {found:?}");
        assert!(found[0].contains(part), "{text}: {found:?}");
    }
}

#[test]
fn sections_of_absent_features_are_checked_line_by_line() {
    let text = "cache c
 total-max-size 4
 max-age 60
";
    let told = notices(text);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].ends_with("the cache is not implemented yet."),
        "{}",
        told[0]
    );
    let found = alerts("cache c\n max-age x\n bogus\n");
    assert_eq!(found.len(), 2, "{found:?}");
}

/// As in HAProxy, a time ends after its first unit, with a warning.
#[test]
fn what_follows_the_unit_of_a_time_is_told() {
    let text = format!(
        "defaults\n mode http\n{TIMEOUTS} timeout queue 1d2h\n timeout check 50\n timeout tarpit 1d\n"
    );
    let Ok((_, diagnostics)) = read(&text) else {
        panic!("refused:\n{}", report(&text));
    };
    let warnings = messages(&diagnostics, Severity::Warning);
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(
        warnings[0].starts_with("unexpected character '2' after the timer value '1d2h'"),
        "{warnings:?}"
    );
    assert!(
        warnings[1].contains("('50ms') if that was the intent"),
        "{warnings:?}"
    );
}

#[test]
fn the_filter_that_traces_is_checked_and_has_no_effect() {
    let file = |arguments: &str| {
        format!(
            "{}frontend f\n bind 127.0.0.1:1\n filter trace {arguments}\n",
            proxies()
        )
    };
    for arguments in ["", "name X random-forwarding max-fwd 10 hexdump", "quiet"] {
        let told = notices(&file(arguments));
        assert_eq!(told.len(), 1, "{arguments}: {told:?}");
        assert!(told[0].contains("filter trace"), "{told:?}");
    }
    for (arguments, part) in [
        ("name", "without value"),
        ("max-fwd x", "expect unsigned integer"),
        ("loud", "loud"),
    ] {
        let found = alerts(&file(arguments));
        assert!(
            found.len() == 1 && found[0].contains(part),
            "{arguments}: {found:?}"
        );
    }
}

fn proxies() -> String {
    format!("defaults\n mode http\n{TIMEOUTS}")
}
