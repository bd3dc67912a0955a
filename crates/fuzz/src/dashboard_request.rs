//! What a client sends to the dashboard: queries, actions, and requests to be explained.

use std::sync::{Arc, LazyLock};

use config::environment::Environment;
use config::load::LoadOptions;
use config::reader::Input;
use proxy::explain::{Question, explain};
use proxy::{Process, RuntimeConfig, Tls};

/// A configuration with many kinds of rules.
const CONFIG: &str = "defaults
    mode http
    timeout client 1s
    timeout server 1s
    timeout connect 1s
frontend web
    bind :80
    declare capture request len 20
    capture request header user-agent len 30
    stick-table type ip size 10 expire 1m store http_req_rate(10s)
    tcp-request connection track-sc0 src
    tcp-request session set-var(sess.a) src
    tcp-request inspect-delay 1s
    tcp-request content capture req.hdr(host) len 10
    http-request set-var(txn.a) path,field(2,/),lower
    http-request wait-for-body time 1s
    http-request set-src hdr(x-src)
    http-request replace-path (.*)/old(.*) \\1/new\\2
    http-request replace-header cookie (.*)a(.*) \\1b\\2
    http-request set-query %[query,url_dec] if { query -m found }
    http-request add-header x %[url_param(x)] if { path_beg /api/ }
    http-request del-header cookie if { path_end /no }
    http-request auth unless { http_auth_group(u) g } !{ path_beg / }
    http-request redirect location /%[path] if { path_sub // }
    http-request deny if { req.hdr_cnt(host) gt 1 }
    use_backend %[path,field(3,/)] if { path_beg /to/ }
    default_backend b
backend b
    balance url_param x
    stick-table type string size 10
    stick on req.cook(a)
    cookie C insert indirect
    http-response set-var(res.a) res.hdr(x),lower
    http-response replace-value vary (.*)a(.*) \\1b\\2
    http-response del-header server if { status 200:299 }
    http-response set-status 404 reason \"No such thing\" if { status 500 }
    http-response redirect location /%[res.hdr(location)] if { status 302 }
    http-response return status 200 hdr x %[res.hdr(y)] if { res.hdr_cnt(y) gt 1 }
    http-response deny if { res.hdr(z) -m found }
    http-after-response set-header x-a %[var(res.a)]
    use-server s if { var(txn.a) -m str s }
    server s 127.0.0.1:1 cookie a
    server t 127.0.0.1:2 cookie b
userlist u
    group g
    user a insecure-password b groups g
";

static RUNNING: LazyLock<Arc<RuntimeConfig>> = LazyLock::new(|| {
    let build = config::condition::BuildInfo::default();
    let options = LoadOptions {
        build: &build,
        settings: config::build::Settings::default(),
        zero_warning: false,
    };
    let input = Input {
        name: "f.cfg".to_owned(),
        text: CONFIG.into(),
    };
    let loaded = config::load::load(&[input], options, &mut Environment::new());
    let (config, _) = loaded.unwrap_or_else(|found| panic!("{:?}", found.iter().next()));
    Arc::new(proxy::prepare(config, Tls::default(), Process::default()))
});

/// Whatever comes, it is read or refused; what is a request has an explanation with an outcome.
pub fn dashboard_request(data: &[u8]) {
    dashboard::read_anything(data);
    let question = Question {
        head: data.to_vec(),
        port: 80,
        is_tls: false,
        source: None,
        frontend: None,
        response: None,
    };
    explained(&question);
    // The same bytes as the response to a plain request.
    explained(&Question {
        head: b"GET /api/ HTTP/1.1\r\nhost: a\r\n\r\n".to_vec(),
        response: Some(data.to_vec()),
        ..question
    });
}

fn explained(question: &Question) {
    let shared = Arc::new(RUNNING.share(1));
    if let Ok(explained) = explain(&RUNNING, &shared, question, net::sys::now()) {
        assert!(!explained.outcome.is_empty(), "{explained:?}");
        let response = explained.response_outcome.as_deref();
        assert_eq!(response.is_some(), question.response.is_some());
        assert_ne!(response, Some(""), "{explained:?}");
    }
}
