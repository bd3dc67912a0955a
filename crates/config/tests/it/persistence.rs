//! Cookies, `use-server`, `retry-on`, users and related actions: accepted and refused lines.

use crate::common;

use common::{accepted, report};
use spangate_config::model::{
    Amount, CaptureCookie, CookieMode, HttpAction, ServerTarget, TimeoutKind,
};

const DEFAULTS: &str = "
defaults
    mode http
    timeout client 1s
    timeout server 1s
    timeout connect 1s
";
const USERS: &str = "userlist L\n    group g\n    user u insecure-password p groups g\n";

#[test]
fn cookies() {
    let config = accepted(&format!(
        "{DEFAULTS}    cookie OLD prefix\nlisten l\n    bind :80\n    cookie S insert indirect nocache postonly preserve \
         httponly secure domain .a.b maxidle 30m maxlife 8h dynamic attr X=1\n    dynamic-cookie-key k\n    \
         capture cookie S= len 9\n    server a 10.0.0.1:80 cookie A\n    server b 10.0.0.2:80\n    \
         server c 10.0.0.3:80 redir http://c\nbackend b\n    server a 10.0.0.1:80\n"
    ));
    let proxy = &config.proxies[0];
    let cookie = proxy.cookie.as_ref().expect("a cookie");
    assert_eq!(
        (cookie.name.as_bytes(), cookie.mode),
        (&b"S"[..], CookieMode::Insert)
    );
    assert!(cookie.indirect && cookie.nocache && cookie.postonly && cookie.preserve);
    assert_eq!((cookie.maxidle_s, cookie.maxlife_s), (1800, 28_800));
    assert_eq!(cookie.attributes, "; domain=.a.b; HttpOnly; Secure; X=1");
    let capture = CaptureCookie {
        prefix: "S=".into(),
        len: 9,
    };
    assert_eq!(proxy.capture_cookie, Some(capture));
    let values: Vec<usize> = proxy
        .servers
        .iter()
        .map(|server| server.cookie.as_deref().map_or(0, <[u8]>::len))
        .collect();
    assert_eq!(values, [1, 16, 16]);
    assert_eq!(proxy.servers[2].redir.as_deref(), Some(&b"http://c"[..]));
    // The cookie of `defaults`; without a key, servers get no value.
    let other = &config.proxies[1];
    assert_eq!(
        other.cookie.as_ref().map(|cookie| cookie.mode),
        Some(CookieMode::Prefix)
    );
    assert_eq!(other.servers[0].cookie, None);
}

#[test]
fn rules() {
    let config = accepted(&format!(
        "{USERS}{DEFAULTS}    retry-on all-retryable-errors\nlisten l\n    bind :80\n    use-server b if TRUE\n    \
         use-server %[path] unless TRUE\n    force-persist if TRUE\n    ignore-persist unless TRUE\n    \
         persist rdp-cookie(x)\n    force-be-switch if TRUE\n    retry-on empty-response 503 404\n    \
         http-request set-timeout tarpit 2s\n    http-request set-retries int(3)\n    \
         http-request auth realm here unless {{ http_auth_group(L) g }}\n    \
         server a 10.0.0.1:80\n    server b 10.0.0.2:80\nbackend other\n"
    ));
    let proxy = &config.proxies[0];
    assert!(matches!(
        proxy.use_server[0].target,
        ServerTarget::Static(1)
    ));
    assert!(matches!(
        proxy.use_server[1].target,
        ServerTarget::Dynamic(_)
    ));
    let forces: Vec<bool> = proxy.persist_rules.iter().map(|rule| rule.force).collect();
    assert_eq!(
        (forces, proxy.force_be_switch.len()),
        (vec![true, false], 1)
    );
    assert_eq!(proxy.rdp_cookie.as_deref(), Some(&b"x"[..]));
    let events = &proxy.retry_on;
    assert!(events.empty_response && !events.conn_failure && !events.junk_response);
    assert_eq!(events.statuses, [503, 404]);
    assert_eq!(config.proxies[1].retry_on.statuses, [500, 502, 503, 504]);
    let actions: Vec<&HttpAction> = proxy.http_request.iter().map(|rule| &rule.action).collect();
    assert!(matches!(
        actions[..],
        [
            HttpAction::SetTimeout {
                kind: TimeoutKind::Tarpit,
                amount: Amount::Fixed(2000)
            },
            HttpAction::SetRetries(Amount::Expr(_)),
            HttpAction::Auth { realm: Some(realm) }
        ] if *realm == "here"
    ));
}

/// A line of a `listen`, and its message.
const FAULTS: &[(&str, &str)] = &[
    ("cookie", "'cookie' expects <cookie_name> as argument."),
    (
        "cookie S inser",
        "'cookie' supports 'rewrite', 'insert', 'prefix',",
    ),
    (
        "cookie S insert rewrite",
        "cookie 'rewrite', 'insert' and 'prefix' modes are incompatible.",
    ),
    (
        "cookie S rewrite indirect",
        "cookie 'rewrite' and 'indirect' modes are incompatible.",
    ),
    (
        "cookie S preserve",
        "cookie 'preserve' requires at least 'insert' or 'indirect'.",
    ),
    (
        "cookie S insert domain nodot",
        "domain 'nodot' contains no embedded dot",
    ),
    (
        "cookie S insert domain a?.b",
        "character '?' is not permitted in domain name 'a?.b'.",
    ),
    (
        "cookie S insert maxidle 1x",
        "unexpected character 'x' in argument to <maxidle>.",
    ),
    (
        "cookie S insert maxlife 99999d",
        "timer overflow in argument <99999d> to <maxlife>",
    ),
    (
        "cookie S insert attr a;b",
        "character '%x3B' is not permitted in attribute value.",
    ),
    (
        "dynamic-cookie-key",
        "'dynamic-cookie-key' expects <secret_key> as argument.",
    ),
    (
        "capture cookie S 5",
        "'capture' expects 'cookie' <cookie_name> 'len' <len>.",
    ),
    (
        "capture cookie S len 100",
        "truncating capture length to 63 bytes for proxy 'l'.",
    ),
    ("use-server", "'use-server' expects a server name."),
    (
        "use-server s",
        "'use-server' requires either 'if' or 'unless' followed by a condition.",
    ),
    (
        "use-server t if TRUE",
        "unable to find server 't' referenced in a 'use-server' rule.",
    ),
    (
        "ignore-persist unles TRUE",
        "'ignore-persist' requires either 'if' or 'unless'",
    ),
    ("persist", "missing persist method."),
    ("persist cookie", "unknown persist method."),
    (
        "persist rdp-cookie()",
        "persist rdp-cookie(name)' requires an rdp cookie name.",
    ),
    (
        "retry-on",
        "'retry-on' needs at least one keyword to specify when to retry",
    ),
    (
        "retry-on none 503",
        "'retry-on' 'none' keyword only usable alone",
    ),
    ("retry-on 418", "'retry-on': unknown keyword '418'"),
    (
        "http-request set-timeout client",
        "expects exactly 2 arguments.",
    ),
    (
        "http-request set-timeout foo 1s",
        "'set-timeout' rule supports",
    ),
    (
        "http-request set-timeout client 0",
        "null value is not valid for a 'set-timeout client' rule.",
    ),
    (
        "http-request set-timeout client 99d",
        "timer overflow in argument '99d' to rule",
    ),
    (
        "http-request set-timeout client 5us",
        "timer underflow in argument '5us' to rule",
    ),
    (
        "http-request set-retries 101",
        "expects an expression or an integer between 1 and 100.",
    ),
    (
        "http-send-name-header",
        "'http-send-name-header' requires a header string.",
    ),
    (
        "http-send-name-header Host",
        "'Host' cannot be used as header name for 'http-send-name-header' directive.",
    ),
    (
        "option http-restrict-req-hdr-names",
        "missing parameter. option 'http-restrict-req-hdr-names' expects",
    ),
    (
        "option http-restrict-req-hdr-names drop",
        "invalid parameter 'drop'. option 'http-restrict-req-hdr-names' expects",
    ),
    (
        "rate-limit requests 3",
        "'rate-limit' only supports 'sessions' (got 'requests').",
    ),
    (
        "max-keep-alive-queue -2",
        "'max-keep-alive-queue' expects a number from -1 to",
    ),
    ("http-request auth realm", "missing realm value."),
    (
        "http-request auth if { http_auth(x) }",
        "unable to find userlist 'x'",
    ),
    (
        "http-request auth if { http_auth_group(L) x }",
        "http_auth_group(): invalid group 'x'",
    ),
];

#[test]
fn faults() {
    for (line, message) in FAULTS {
        let text = format!(
            "{USERS}{DEFAULTS}listen l\n    bind :80\n    server s 10.0.0.1:80\n    {line}\n"
        );
        let shown = report(&text);
        assert_eq!(
            shown.matches(message).count(),
            1,
            "{line}: '{message}' in\n{shown}"
        );
    }
}

#[test]
fn faults_of_users() {
    let cases = [
        (
            "user a password abJnggxhB/yWI",
            "the encrypted password used for user 'a' is not supported by crypt(3)",
        ),
        (
            "user a password plain",
            "[WARNING]  (1) : config : parsing [t.cfg:4] : no password matches the encrypted password used for user 'a': \
             it has the form of no hash.",
        ),
        (
            "user a password $1$short",
            "no password matches the encrypted password used for user 'a': it ends too early.",
        ),
        (
            "user u insecure-password x",
            "ignoring duplicated user 'u' in userlist 'L'.",
        ),
        (
            "user a groups x",
            "userlist 'L': no such group 'x' specified in user 'a'",
        ),
        (
            "user a pass x",
            "'user' only supports 'password', 'insecure-password' and 'groups' options.",
        ),
        (
            "group g users u",
            "ignoring duplicated group 'g' in userlist 'L'.",
        ),
        (
            "group h users u,x",
            "userlist 'L': no such user 'x' specified in group 'h'",
        ),
        (
            "group h users u users u",
            "'users' option already defined in 'group' name 'h'.",
        ),
        ("group h u", "'group' only supports 'users' option."),
        (
            "group a?b",
            "character '?' is not permitted in 'group' name 'a?b'.",
        ),
        ("users", "unknown keyword 'users' in 'userlist' section"),
        ("userlist L", "ignoring duplicated userlist 'L'."),
        ("userlist", "'userlist' expects <name> as arguments."),
    ];
    for (line, message) in cases {
        let shown = report(&format!("{USERS}    {line}\n"));
        assert_eq!(
            shown.matches(message).count(),
            1,
            "{line}: '{message}' in\n{shown}"
        );
    }
}

#[test]
fn faults_of_places() {
    let cases = [
        (
            "defaults\n    use-server s if TRUE\n",
            "'use-server' not allowed in 'defaults' section.",
        ),
        (
            "frontend f\n    bind :80\n    retry-on 503\n",
            "'retry-on' only available in backend or listen section.",
        ),
        (
            "backend b\n    force-be-switch if TRUE\n",
            "'force-be-switch' only available in frontend or listen section.",
        ),
        (
            "backend b\n    http-request set-timeout client 1s\n",
            "'b' has no frontend capability.",
        ),
        (
            "frontend f\n    bind :80\n    http-request set-timeout server 1s\n",
            "'f' has no backend capability.",
        ),
        (
            "frontend f\n    bind :80\n    http-request set-retries 1\n",
            "only available in backend or listen section.",
        ),
        (
            "backend b\n    mode tcp\n    cookie S insert\n    server s 10.0.0.1:80 cookie a\n",
            "cookie will be ignored for backend 'b' (needs 'mode http').",
        ),
        (
            "backend b\n    mode tcp\n    server s 10.0.0.1:80 redir http://a\n",
            "backend 'b' : server cannot have cookie or redirect prefix in non-HTTP mode.",
        ),
        (
            "backend b\n    mode tcp\n    persist rdp-cookie\n    server s 10.0.0.1\n",
            "RDP cookie persistence will not work for server 's' because it lacks an explicit port number.",
        ),
    ];
    for (text, message) in cases {
        let shown = report(&format!("{DEFAULTS}{text}"));
        assert_eq!(shown.matches(message).count(), 1, "'{message}' in\n{shown}");
    }
}

#[test]
fn cases_of_names() {
    let config = accepted(
        "global\n    h1-case-adjust x-a X-A\n    h1-case-adjust host HOST\n    maxconnrate 5\n    maxsessrate 0\n",
    );
    let names = &config.global.h1_case;
    assert_eq!(
        names.get(&b"x-a"[..]).map(|name| &**name),
        Some(&b"X-A"[..])
    );
    assert_eq!(
        (config.global.maxconnrate, config.global.maxsessrate),
        (Some(5), None)
    );
    for (lines, message) in [
        (
            "h1-case-adjust x",
            "'h1-case-adjust' expects <from> and <to> as arguments.",
        ),
        (
            "h1-case-adjust x y",
            "<from> and <to> must not differ except the case.",
        ),
        (
            "h1-case-adjust x X\n    h1-case-adjust x X",
            "duplicate entry 'x'.",
        ),
        (
            "h1-case-adjust-file /no/file",
            "h1-headers-case-adjust-file '/no/file' : failed to open file.",
        ),
    ] {
        let shown = report(&format!("global\n    {lines}\n"));
        assert_eq!(shown.matches(message).count(), 1, "'{message}' in\n{shown}");
    }
}
