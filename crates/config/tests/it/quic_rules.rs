//! `quic-initial` rules.

use spangate_config::diagnostic::{Diagnostics, Severity};
use spangate_config::model::{Config, QuicAction};

use crate::common::{self, accepted, read};

const TIMEOUTS: &str = " timeout client 1s\n timeout server 1s\n timeout connect 1s\n";

fn actions(config: &Config, proxy: &str) -> Vec<QuicAction> {
    let mut proxies = config.proxies.iter();
    let proxy = proxies.find(|found| found.name == proxy).expect("a proxy");
    let rules = proxy.quic_initial.iter();
    rules.map(|rule| rule.action).collect()
}

#[test]
fn each_action_is_a_rule_with_or_without_a_condition() {
    let config = accepted(
        "log-profile p\nfrontend f\n mode http\n bind :80\n acl known src 10.0.0.0/8\n \
         quic-initial accept if known\n quic-initial dgram-drop unless { dst_port 443 }\n \
         quic-initial do-log\n quic-initial do-log profile p if known\n \
         quic-initial send-retry if { src_port lt 2000 }\n quic-initial reject\n",
    );
    assert_eq!(
        actions(&config, "f"),
        [
            QuicAction::Accept,
            QuicAction::Drop,
            QuicAction::DoLog { profile: None },
            QuicAction::DoLog { profile: Some(0) },
            QuicAction::SendRetry,
            QuicAction::Reject,
        ]
    );
    let rules = config.proxies[0].quic_initial.iter();
    let always: Vec<_> = rules.map(|rule| rule.condition.is_none()).collect();
    assert_eq!(always, [false, false, true, false, false, true]);
}

#[test]
fn the_rules_of_defaults_precede_those_of_frontends() {
    let config = accepted(&format!(
        "defaults d\n mode http\n{TIMEOUTS} quic-initial dgram-drop if {{ src 10.0.0.1 }}\n\
         defaults other\n mode http\n{TIMEOUTS}\
         frontend f from d\n bind :80\n quic-initial accept\n\
         listen l from d\n bind :81\n server s 127.0.0.1:1\n\
         backend b from d\n server s 127.0.0.1:1\n\
         frontend g from other\n bind :82\n",
    ));
    assert_eq!(
        actions(&config, "f"),
        [QuicAction::Drop, QuicAction::Accept]
    );
    assert_eq!(actions(&config, "l"), [QuicAction::Drop]);
    assert_eq!(actions(&config, "b"), []);
    assert_eq!(actions(&config, "g"), []);
}

fn diagnostics(text: &str) -> Diagnostics {
    match read(text) {
        Ok((_, diagnostics)) | Err(diagnostics) => diagnostics,
    }
}

/// The severity and the text of the diagnostics about a line.
fn about(line: &str) -> Vec<(Severity, String)> {
    let text = format!(
        "defaults\n mode http\n{TIMEOUTS}frontend f\n bind :80\n acl by_path path /\n \
         tcp-request session accept\n {line}\n"
    );
    let found = diagnostics(&text);
    let found = found.iter();
    found
        .map(|one| (one.severity, one.message.clone()))
        .collect()
}

#[test]
fn a_rule_that_cannot_match_is_a_warning_and_a_wrong_one_an_error() {
    let misplaced = (
        Severity::Warning,
        "a 'quic-initial' rule placed after a 'tcp-request session' rule will still be processed before.",
    );
    for (line, severity, wanted) in [
        (
            "quic-initial accept if { path / }",
            Severity::Warning,
            "keyword 'path' which is incompatible with 'frontend tcp-request connection rule'",
        ),
        (
            "quic-initial accept if by_path",
            Severity::Warning,
            "acl 'by_path' will never match",
        ),
        (
            "quic-initial accept if { ssl_fc_sni a }",
            Severity::Warning,
            "keyword 'ssl_fc_sni' which is incompatible",
        ),
        (
            "quic-initial rejct",
            Severity::Alert,
            "expects one of 'accept', 'dgram-drop', 'do-log', 'reject', 'send-retry', got 'rejct'; did you mean 'reject'",
        ),
        ("quic-initial", Severity::Alert, "got nothing"),
        (
            "quic-initial if { src 10.0.0.1 }",
            Severity::Alert,
            "got 'if'",
        ),
        (
            "quic-initial accept now",
            Severity::Alert,
            "expects 'if', 'unless' or end of line, got 'now'",
        ),
        (
            "quic-initial accept if nosuch",
            Severity::Alert,
            "no such ACL : 'nosuch'",
        ),
        (
            "quic-initial do-log profile nosuch",
            Severity::Alert,
            "unknown log-profile 'nosuch'",
        ),
        ("quic-initial accept", misplaced.0, misplaced.1),
    ] {
        let found = about(line);
        let is_there = found
            .iter()
            .any(|(level, text)| *level == severity && text.contains(wanted));
        assert!(is_there, "{line}: {found:?}");
    }
}

#[test]
fn rules_need_a_frontend_in_http_mode() {
    for (text, wanted) in [
        (
            "defaults\n mode http\n quic-initial accept\n",
            "'quic-initial' not allowed in anonymous 'defaults' section.",
        ),
        (
            "backend b\n mode http\n quic-initial accept\n",
            "'quic-initial' only available in frontend or listen section.",
        ),
        (
            "frontend f\n mode tcp\n bind :80\n quic-initial accept\n",
            "'quic-initial' needs 'mode http', which frontend 'f' does not have here.",
        ),
        (
            "defaults d\n quic-initial accept\n mode http\n",
            "'quic-initial' needs 'mode http', which defaults 'd' does not have here.",
        ),
    ] {
        common::refused(text);
        let shown = common::report(text);
        assert!(shown.contains(wanted), "{text}: {shown}");
    }
}
