//! Inheritance from `defaults` sections.

use crate::common;

use common::{accepted, read, report};
use spangate_config::diagnostic::Rendering;
use spangate_config::model::{HttpAction, Mode};
use std::sync::Arc;

const TIMEOUTS: &str = " timeout client 1s\n timeout server 1s\n timeout connect 1s\n";

/// The messages about a text, without their lines.
fn messages(text: &str) -> Vec<String> {
    let diagnostics = match read(text) {
        Ok((_, diagnostics)) | Err(diagnostics) => diagnostics,
    };
    diagnostics
        .iter()
        .map(|item| item.message.clone())
        .collect()
}

#[test]
fn rules_of_defaults_are_shared() {
    let config = accepted(&format!(
        "defaults d\n mode http\n{TIMEOUTS} http-request set-header x 1\n http-request strict-mode off\n \
         http-response set-header x 1\n http-after-response set-header x 1\n tcp-request content accept\n \
         errorloc 503 /x\n http-request auth\n\
         backend a from d\nbackend b from d\n http-request set-header y 1\n"
    ));
    let [a, b] = &config.proxies[..] else {
        panic!("two proxies")
    };
    let shared = |one: &[Arc<_>], other: &[Arc<_>]| {
        !one.is_empty()
            && one
                .iter()
                .zip(other)
                .all(|(one, other)| Arc::ptr_eq(one, other))
    };
    assert!(shared(&a.http_request, &b.http_request));
    assert!(shared(&a.http_response, &b.http_response));
    assert!(shared(&a.http_after_response, &b.http_after_response));
    let (one, other) = (&a.tcp_request_content, &b.tcp_request_content);
    assert!(one.len() == 1 && Arc::ptr_eq(&one[0], &other[0]));
    // A section's own rules begin in strict mode.
    let own: Vec<&HttpAction> = b.http_request[3..]
        .iter()
        .map(|rule| &rule.action)
        .collect();
    assert!(matches!(
        own[..],
        [HttpAction::StrictMode(true), HttpAction::SetHeader { .. }]
    ));
    assert_eq!((a.http_request.len(), a.error_pages.len()), (3, 1));
}

#[test]
fn settings_are_those_of_the_side() {
    let config = accepted(&format!(
        "defaults d\n mode http\n{TIMEOUTS} maxconn 7\n retries 9\n balance leastconn\n monitor-uri /m\n cookie C insert\n \
         log stdout local0\n log-format %ci\n unique-id-format x\n default-server weight 5\n option dontlognull\n \
         http-request capture src len 9\n default_backend b\n\
         frontend f from d\n bind :80\n http-request capture dst len 5\n\
         defaults e\n mode http\n{TIMEOUTS} maxconn 7\n retries 9\n cookie C insert\n default-server weight 5\n timeout queue 3s\n\
         backend b\n server s 127.0.0.1:80\nlisten l\n bind :81\n"
    ));
    let [f, b, l] = &config.proxies[..] else {
        panic!("three proxies")
    };
    assert_eq!((f.maxconn, f.retries, f.mode), (Some(7), 3, Mode::Http));
    assert!(f.monitor_uri.is_some() && f.cookie.is_none() && f.log_format.is_some());
    let lens: Vec<usize> = f.capture_request.iter().map(|slot| slot.len).collect();
    assert_eq!((lens, f.default_backend), (vec![9, 5], Some(1)));
    assert_eq!((b.maxconn, b.retries), (None, 9));
    assert!(b.cookie.is_some() && b.log_format.is_none());
    assert_eq!(b.servers[0].weight, 5);
    assert_eq!((l.maxconn, l.retries), (Some(7), 9));
    assert_eq!(l.timeout.queue, Some(std::time::Duration::from_secs(3)));
}

#[test]
fn a_defaults_starts_from_another() {
    let config = accepted(&format!(
        "defaults base\n mode http\n{TIMEOUTS} log stdout local0\n option httplog\n default-server maxconn 9\n\
         defaults more from base\n retries 5\n default-server weight 2\n\
         listen l from more\n bind :80\n server s 127.0.0.1:80\n"
    ));
    let proxy = &config.proxies[0];
    assert_eq!((proxy.retries, proxy.log.len()), (5, 1));
    let server = &proxy.servers[0];
    assert_eq!((server.weight, server.maxconn), (2, 9));
    assert!(proxy.log_format.is_some());
}

#[test]
fn faults_are_told_where_they_stand_and_once() {
    let proxies: String = (0..5).map(|n| format!("backend b{n} from d\n")).collect();
    let text = format!(
        "defaults d\n mode http\n timeout server 1x\n http-request set-header x %[foo]\n http-request deny if nosuch\n \
         balance zork\n{proxies}"
    );
    let shown = report(&text);
    for part in ["timeout server", "foo", "nosuch", "balance only"] {
        let lines = shown.lines().filter(|line| line.starts_with("[ALERT]"));
        assert_eq!(
            lines.filter(|line| line.contains(part)).count(),
            1,
            "{shown}"
        );
    }
}

#[test]
fn what_depends_on_who_uses_it() {
    let defaults = format!("defaults d\n mode http\n{TIMEOUTS}");
    let cases = [
        // Conditions belong to their section.
        (
            " acl a src 127.0.0.1\nbackend b from d\n http-request deny if a\n",
            Some("error detected while parsing 'http-request deny' : no such ACL : 'a'."),
        ),
        (" default_backend none\nbackend b from d\n", None),
        (
            " default_backend none\nfrontend f from d\n bind :80\n",
            Some("unable to find required default_backend: 'none'."),
        ),
        (
            " default_backend none\nfrontend f from d\n bind :80\n default_backend b\nbackend b from d\n",
            None,
        ),
        // The capture slots are those of the frontend from which the request came.
        (
            " http-request capture src id 3\nbackend b from d\n server s 127.0.0.1:80\n",
            None,
        ),
        (
            " http-request capture src id 3\nfrontend f from d\n bind :80\n",
            Some("unable to find capture id '3' referenced by this rule."),
        ),
        (
            " http-request capture src len 3\nbackend b from d\n",
            Some(
                "backend or defaults sections cannot inherit from a defaults section defining captures (defaults section at t.cfg:1).",
            ),
        ),
        (
            " mode log\nfrontend f from d\n bind :80\n",
            Some(
                "frontend 'f' : mode syslog is only applicable on proxies with backend capability.",
            ),
        ),
        (
            "backend a from d\ndefaults d\n mode http\n",
            Some(
                "defaults 'd' has the same name as another defaults section declared at t.cfg:1 which was explicitly referenced hence cannot be replaced. Please remove or rename one of the offending defaults section.",
            ),
        ),
        (
            "backend a from d\nbackend b\n",
            Some(
                "defaults section 'd' (declared at t.cfg:1) is explicitly referenced by another proxy and implicitly used here. To avoid any ambiguity don't mix both usage. Add a last defaults section not explicitly used or always use explicit references.",
            ),
        ),
        // The rule is valid at one of the places where rules of `defaults` may run.
        (
            " http-request set-timeout client 1s\nbackend b from d\n",
            None,
        ),
    ];
    for (text, message) in cases {
        let found = messages(&format!("{defaults}{text}"));
        let wanted: Vec<&str> = message.into_iter().collect();
        assert_eq!(found, wanted, "{text}");
    }
}

#[test]
fn many_proxies_of_many_rules_are_small() {
    let rules: String = (0..100)
        .map(|n| format!(" http-request set-header x-h{n} v{n} if {{ path_beg /p{n} }}\n"))
        .collect();
    let proxies: String = (0..500).map(|n| format!("backend b{n} from d\n")).collect();
    let config = accepted(&format!(
        "defaults d\n mode http\n{TIMEOUTS}{rules}{proxies}"
    ));
    let last = &config.proxies[499];
    assert_eq!(last.http_request.len(), 100);
    // One reference per proxy, and none for the section itself.
    assert_eq!(Arc::strong_count(&last.http_request[99]), 500);
}

#[test]
fn what_many_sections_say_hides_no_error() {
    let lines = |each: &str| -> String {
        (0..1100)
            .map(|n| format!("backend b{n}\n{each} server s 127.0.0.1:80\n"))
            .collect()
    };
    // Notices about lines without effect appear once, warnings for each section.
    for (defaults, each) in [
        (TIMEOUTS, " timeout check 5s\n"),
        ("", ""),
        (" timeout check 5s\n", ""),
    ] {
        let text = format!(
            "defaults\n mode http\n{defaults}{}backend last\n nonsense\n",
            lines(each)
        );
        let diagnostics = read(&text).expect_err("refused");
        let shown = diagnostics.render(&Rendering::default());
        assert!(shown.contains("unknown keyword 'nonsense'"), "{each}");
        assert!(shown.lines().count() < 40, "{shown}");
    }
}

#[test]
fn rules_of_defaults_are_without_effect_in_a_tcp_proxy_and_nothing_is_said() {
    let text = format!(
        "defaults d\n mode http\n{TIMEOUTS} http-request deny\nbackend b from d\n mode tcp\n server s 127.0.0.1:80\n"
    );
    assert_eq!(messages(&text), [""; 0]);
    let own = messages(&format!("{text} http-request allow\n"));
    assert_eq!(
        own,
        ["'http-request' rules ignored for backend 'b' as they require HTTP mode."]
    );
}
