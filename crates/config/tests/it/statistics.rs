//! `stats …` of proxies, `stats-file`, `guid`, `use-service`: accepted and refused lines.

use crate::common;

use common::{accepted, report};
use spangate_config::model::{HttpAction, Service};

const DEFAULTS: &str = "
defaults
    mode http
    timeout client 1s
    timeout server 1s
    timeout connect 1s
";

#[test]
fn pages() {
    let config = accepted(&format!(
        "global\n    stats-file /tmp/counters\n    description here\n{DEFAULTS}    stats enable\n    stats refresh 2m\n    \
         stats auth a:b:c\n    stats auth d\nfrontend inherits\n    bind :80\n    guid g1\n    \
         http-request use-service prometheus-exporter if {{ path /metrics }}\nlisten own\n    bind :81,:82 guid-prefix p\n    \
         stats uri /s\n    stats realm R\\ S\n    stats scope .\n    stats scope own\n    stats scope .\n    \
         stats admin if TRUE\n    stats show-legends\n    stats show-version\n    stats hide-version\n    stats show-node n.1\n    \
         stats show-desc\n    stats show-modules\nlisten rules\n    bind :83\n    stats http-request allow if TRUE\n    \
         stats http-request auth realm R\nbackend none\n    stats hide-version\n"
    ));
    assert_eq!(
        config
            .global
            .stats_file
            .as_deref()
            .and_then(|path| path.to_str()),
        Some("/tmp/counters")
    );
    let page = |place: usize| config.proxies[place].stats.as_deref().expect("a page");
    let inherited = page(0);
    assert_eq!(inherited.uri, "/haproxy?stats");
    assert_eq!(inherited.refresh_s, 120);
    let users: Vec<_> = inherited
        .users
        .iter()
        .map(|(user, password)| (user.to_string(), password.to_string()))
        .collect();
    assert_eq!(
        users,
        [
            ("a".to_owned(), "b:c".to_owned()),
            ("d".to_owned(), String::new())
        ]
    );
    assert_eq!(config.proxies[0].guid.as_deref(), Some("g1"));
    assert!(matches!(
        config.proxies[0].http_request[0].action,
        HttpAction::UseService(Service::PrometheusExporter)
    ));
    // A section's own settings replace all inherited ones.
    let own = page(1);
    assert_eq!(
        (&own.uri, own.refresh_s, own.users.len()),
        (&"/s".into(), 0, 0)
    );
    assert_eq!(own.realm.as_deref(), Some(&b"R S"[..]));
    assert_eq!(own.scope.len(), 2);
    assert_eq!(own.admin.len(), 1);
    assert!(own.shows_legends && own.shows_modules && !own.shows_version);
    assert_eq!(own.node, Some(Some("n.1".into())));
    assert_eq!(own.description, Some(None));
    let guids: Vec<_> = config.proxies[1]
        .binds
        .iter()
        .map(|bind| bind.guid.as_deref())
        .collect();
    assert_eq!(guids, [Some("p-0"), Some("p-1")]);
    assert_eq!(page(2).http_request.len(), 2);
    // A line that only removes something creates no page.
    assert!(config.proxies[3].stats.is_none());
}

#[test]
fn faults() {
    for (line, message) in [
        (
            "stats",
            "missing keyword in 'stats', expects 'admin', 'uri',",
        ),
        (
            "stats nothing",
            "unknown stats parameter 'nothing', expects 'admin',",
        ),
        ("stats uri", "'uri' needs an URI prefix."),
        ("stats realm", "'realm' needs an realm name."),
        ("stats auth", "'auth' needs a user:password account."),
        ("stats scope", "'scope' needs a proxy name."),
        (
            "stats refresh 1x",
            "unexpected character 'x' in argument to stats refresh interval.",
        ),
        (
            "stats refresh 1us",
            "timer underflow in argument <1us> to stats refresh interval",
        ),
        (
            "stats refresh 99999999999",
            "timer overflow in argument <99999999999>",
        ),
        (
            "stats admin",
            "'stats admin' requires either 'if' or 'unless' followed by a condition.",
        ),
        (
            "stats admin if nothing",
            "error detected while parsing a 'stats admin' rule : no such ACL : 'nothing'",
        ),
        ("stats show-node a/b", "invalid node name"),
        (
            "stats http-request nothing",
            "'http-request' expects 'add-acl(*)',",
        ),
        ("stats http-request tarpit", "stats http-request tarpit"),
        (
            "http-request use-service nothing",
            "unknown service name 'nothing'",
        ),
        (
            "tcp-request content use-service",
            "'use-service' expects a service name as argument.",
        ),
        (
            "tcp-request content use-service prometheus-exporter",
            "Prometheus exporter service only available on 'http-request' rulesets.",
        ),
        (
            "tcp-request content use-service nothing",
            "unknown service name 'nothing'.",
        ),
        (
            "tcp-request content use-service lua.x",
            "keyword 'use-service lua.x' is known but not implemented yet",
        ),
        ("guid a/b", "'guid' : invalid character '/'"),
    ] {
        let shown = report(&format!("{DEFAULTS}frontend f\n    bind :80\n    {line}\n"));
        assert!(shown.contains(message), "{line}: {shown}");
    }
    let both = report(&format!(
        "{DEFAULTS}frontend f\n    bind :80\n    stats auth a:b\n    stats http-request allow\n"
    ));
    assert!(
        both.contains(
            "proxy 'f': stats 'auth'/'realm' and 'http-request' can't be used at the same time."
        ),
        "{both}"
    );
    let defaults = report(&format!("{DEFAULTS}    stats admin if TRUE\n"));
    assert!(
        defaults.contains("'stats admin' not allowed in 'defaults' section."),
        "{defaults}"
    );
}

#[test]
fn what_only_warns() {
    for (mode, line, message) in [
        (
            "http",
            "stats show-desc",
            "'show-desc' requires a parameter or 'desc' to be set in the global section.",
        ),
        (
            "tcp",
            "stats enable",
            "'stats' statement ignored for frontend 'f' as it requires HTTP mode.",
        ),
        (
            "http",
            "stats auth a:b\n    stats auth a:c",
            "uri auth: ignoring duplicated user 'a'.",
        ),
    ] {
        let shown = report(&format!(
            "{DEFAULTS}frontend f\n    mode {mode}\n    bind :80\n    {line}\n"
        ));
        assert!(shown.contains(message), "{line}: {shown}");
        assert!(!shown.contains("[ALERT]"), "{line}: {shown}");
    }
}
