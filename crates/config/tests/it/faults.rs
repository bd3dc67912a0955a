//! The text of each fault, and the place of its caret.

use crate::common;

use common::{report, under_caret};

/// A faulty line, its message, and the word above the caret (empty: after the end of the line).
type Case = (&'static str, &'static str, &'static str);

const GLOBAL: &[Case] = &[
    (
        "foo bar",
        "unknown keyword 'foo' in 'global' section",
        "foo",
    ),
    (
        "maxcon 5",
        "unknown keyword 'maxcon' in 'global' section; did you mean 'maxconn' maybe ?",
        "maxcon",
    ),
    (
        "maxconn 10 20",
        "'maxconn' cannot handle unexpected argument '20'.",
        "20",
    ),
    (
        "maxconn x",
        "'maxconn' expects an integer argument, got 'x'.",
        "x",
    ),
    ("maxconn", "'maxconn' expects an integer as argument.", ""),
    (
        "nbproc 2",
        "nbproc is not supported any more since HAProxy 2.5.",
        "nbproc",
    ),
    (
        "master-worker",
        "support for 'master-worker' was removed in version 3.5. Use -W or -Ws in the startup script instead.",
        "master-worker",
    ),
    (
        "master-worker exit",
        "'master-worker' only supports 'no-exit-on-failure' option.",
        "exit",
    ),
    (
        "ssl-dh-param-file /nonexistent/dh.pem",
        "'ssl-dh-param-file': unable to load DH parameters from file </nonexistent/dh.pem>.",
        "/nonexistent/dh.pem",
    ),
    (
        "nbthread 0",
        "'nbthread' value must be between 1 and 4096 (was 0).",
        "0",
    ),
    (
        "nbthread 64",
        "'nbthread' asks for 64 threads where 2 cores may be used.",
        "64",
    ),
    (
        "setcap cap_net_raw,cap_kill",
        "'setcap' : unsupported capability 'cap_kill'. Supported ones are: cap_net_raw, cap_net_admin, cap_net_bind_service and \
         cap_sys_admin.",
        "cap_net_raw,cap_kill",
    ),
    (
        "lua-load x.lua",
        "keyword 'lua-load' is known but not implemented yet by this version.",
        "lua-load",
    ),
    (
        "busy-polling",
        "keyword 'busy-polling' has no effect: workers always sleep",
        "busy-polling",
    ),
    (
        "hard-stop-after 5x",
        "unexpected character 'x' in 'hard-stop-after'.",
        "5x",
    ),
    (
        "hard-stop-after 99d",
        "timer overflow in argument '99d' to 'hard-stop-after'",
        "99d",
    ),
    (
        "hard-stop-after 5us",
        "timer underflow in argument '5us' to 'hard-stop-after'",
        "5us",
    ),
    (
        "stats otlp to",
        "'to' : unexpected. Usage: 'stats otlp [endpoint <url>|collector://<name>] [service <name>] [interval <time>]'",
        "to",
    ),
    (
        "stats otlp endpoint ftp://x",
        "'endpoint' is 'ftp://x': must begin with http:// or https://.",
        "ftp://x",
    ),
    (
        "stats otlp endpoint collector://x",
        "there is no section 'collector x'",
        "collector://x",
    ),
    (
        "stats otlp service",
        "'service' expects a name as argument.",
        "",
    ),
    (
        "stats otlp interval 10ms",
        "'interval' expects a time from 100ms to 1h.",
        "10ms",
    ),
    (
        "stats otlp interval soon",
        "unexpected character 's' in 'interval'",
        "soon",
    ),
    (
        "stats socket",
        "'stats socket' in global section expects an address",
        "",
    ),
    (
        "stats socket /x levl admin",
        "'stats socket /x' : unknown keyword 'levl'; did you mean 'level' maybe ?",
        "levl",
    ),
    (
        "stats socket /x level root",
        "'level' only supports 'user', 'operator', and 'admin'.",
        "root",
    ),
    (
        "stats sockets /x",
        "'stats' only supports 'socket', 'maxconn', 'timeout' and 'otlp' (got 'sockets').",
        "sockets",
    ),
    (
        "tune.bufsize 5q",
        "unexpected 'q' after size passed to 'tune.bufsize'.",
        "5q",
    ),
    (
        "tune.http.maxhdr 0",
        "'tune.http.maxhdr' expects a numeric value between 1 and 32767.",
        "0",
    ),
    (
        "log",
        "log : expects <address> and <facility> as arguments.",
        "",
    ),
    (
        "log stdout locl0",
        "log : unknown log facility 'locl0'; did you mean 'local0' maybe ?.",
        "locl0",
    ),
    (
        "log stdout local0 loud",
        "log : unknown optional log level 'loud'.",
        "loud",
    ),
    (
        "log stdout len 5 local0",
        "log : invalid log length '5', must be between 80 and 65535.",
        "5",
    ),
    (
        "log stdout format x local0",
        "log : unknown log format 'x'.",
        "x",
    ),
    (
        "log stdout sample 1-3,2:5 local0",
        "log : sample ranges are overlapping",
        "1-3,2:5",
    ),
    (
        "log stdout sample 1-3:2 local0",
        "log : sample size 2 should be greater or equal",
        "1-3:2",
    ),
    (
        "log global",
        "log : 'global' is not supported for a global syslog server.",
        "global",
    ),
    (
        "user no-such-user-here",
        "cannot find user id for 'no-such-user-here'.",
        "no-such-user-here",
    ),
];

const FRONTEND: &[Case] = &[
    ("foo", "unknown keyword 'foo' in 'frontend' section", "foo"),
    ("bind :80 foo", "'bind :80' : unknown keyword 'foo'.", "foo"),
    (
        "bind :80 nbconn 2",
        "keyword 'bind … nbconn' is known but not implemented yet by this version.",
        "nbconn",
    ),
    (
        "bind :80 tcp-ut x",
        "'tcp-ut' : expects a positive delay in milliseconds.",
        "x",
    ),
    (
        "bind :80 tcp-ut",
        "'tcp-ut' : missing TCP User Timeout value.",
        "",
    ),
    (
        "clitcpka-cnt 5x",
        "'clitcpka-cnt' : unexpected character 'x' in integer value '5x'.",
        "5x",
    ),
    (
        "clitcpka-idle",
        "'clitcpka-idle' expects an integer value.",
        "",
    ),
    (
        "bind :80 ssl crt x",
        "unable to stat SSL certificate from file 'x' : No such file or directory.",
        "x",
    ),
    ("bind :80 ca-sign-file", "missing CAfile path", ""),
    ("bind :80 ca-sign-pass", "missing CAkey password", ""),
    (
        "bind :80 shards 4",
        "keyword 'bind … shards' has no effect: every worker has its own listeners.",
        "shards",
    ),
    (
        "bind :80 maxconn",
        "'maxconn' expects an integer as argument.",
        "",
    ),
    (
        "bind :80 maxconn x",
        "'maxconn' expects an integer, got 'x'.",
        "x",
    ),
    (
        "bind :80 mode 9",
        "'mode' expects an octal number (got '9').",
        "9",
    ),
    (
        "bind :80 tcp-ss 3",
        "'tcp-ss' : TCP Save SYN option expects an integer argument from 0 to 2.",
        "3",
    ),
    (
        "bind :80 process 1",
        "please use 'thread' instead.",
        "process",
    ),
    (
        "bind",
        "'bind' expects {<path>|[addr1]:port1[-end1]}{,[addr]:port[-end]}... as arguments.",
        "",
    ),
    (
        "bind :8000-800",
        "'bind' : invalid port range '8000-800'.",
        ":8000-800",
    ),
    (
        "bind 10.0.0.1",
        "'bind' : missing port number: '10.0.0.1'.",
        "10.0.0.1",
    ),
    (
        "bind vsock@1:443",
        "address family 'vsock@' is known but not implemented yet by this version.",
        "vsock@1:443",
    ),
    (
        "reqrep a b",
        "The 'reqrep' directive is not supported anymore since HAProxy 2.1. Use 'http-request replace-path'",
        "reqrep",
    ),
    (
        "balance roundrobin",
        "'balance' ignored because frontend 'f' has no backend capability.",
        "balance",
    ),
    (
        "fullconn 5",
        "has no backend capability. Maybe you want 'maxconn' instead ?",
        "fullconn",
    ),
    (
        "server s :80",
        "'server' not allowed because frontend 'f' has no backend capability.",
        "server",
    ),
    (
        "default_backend nope",
        "Proxy 'f': unable to find required default_backend: 'nope'.",
        "nope",
    ),
    (
        "default_backend bakc",
        "unable to find required default_backend: 'bakc'; did you mean 'back' maybe ?",
        "bakc",
    ),
    (
        "use_backend nope",
        "Proxy 'f': unable to find required use_backend: 'nope'.",
        "nope",
    ),
    (
        "use_backend back when x",
        "unexpected keyword 'when' after switching rule, only 'if' and 'unless' are allowed.",
        "when",
    ),
    ("use_backend back if", "missing condition after 'if'.", ""),
    (
        "mode htp",
        "unknown proxy mode 'htp'; did you mean 'http' maybe ?.",
        "htp",
    ),
    (
        "mode health",
        "'mode health' doesn't exist anymore.",
        "health",
    ),
    (
        "timeout clien 5s",
        "(got 'clien'); did you mean 'client' maybe ?",
        "clien",
    ),
    (
        "timeout client",
        "'timeout client' expects an integer value (in milliseconds).",
        "",
    ),
    (
        "timeout client 5x",
        "unexpected character 'x' in 'timeout client'.",
        "5x",
    ),
    (
        "timeout client 5s 6s",
        "'timeout client' : unexpected extra argument '6s' after value '5s'.",
        "6s",
    ),
    (
        "timeout server 5s",
        "'timeout server' will be ignored because frontend 'f' has no backend capability.",
        "server",
    ),
    (
        "log stdout profile nope local0",
        "unknown log-profile 'nope'.",
        "nope",
    ),
    (
        "log backend@bak local0",
        "log : uses unknown log backend 'bak'; did you mean 'back' maybe ?.",
        "backend@bak",
    ),
    (
        "log ring@r local0",
        "log : uses unknown ring named 'r'.",
        "ring@r",
    ),
    (
        "log-steps accept,clos",
        "invalid log step name (clos). Expected values are: accept, request, connect, response, close",
        "accept,clos",
    ),
    ("log-format-sd", "log-format-sd expects an argument.", ""),
    (
        "http-request do-log profile nope",
        "unknown log-profile 'nope'.",
        "nope",
    ),
    (
        "http-request do-log now",
        "expects 'if', 'unless' or end of line, got 'now'.",
        "now",
    ),
    (
        "mode log",
        "mode syslog is only applicable on proxies with backend capability.",
        "log",
    ),
    ("option foo", "unknown option 'foo'.", "foo"),
    (
        "option tracing endpoint ftp://x",
        "'endpoint' is 'ftp://x': must begin with http:// or https://.",
        "ftp://x",
    ),
    (
        "option tracing service a endpoint http://[::1",
        "'endpoint' is 'http://[::1': an IPv6 address stands in brackets.",
        "http://[::1",
    ),
    (
        "option dontlogNull",
        "unknown option 'dontlogNull'; did you mean 'dontlognull' maybe ?",
        "dontlogNull",
    ),
    (
        "option httplog x",
        "keyword 'httplog' only supports option 'clf'.",
        "x",
    ),
    (
        "option httpchk",
        "'httpchk' ignored because frontend 'f' has no backend capability.",
        "httpchk",
    ),
    (
        "option http-tunnel",
        "option 'http-tunnel' is not supported any more since HAProxy 2.1",
        "http-tunnel",
    ),
    (
        "option forwardfor except x",
        "'forwardfor' : 'x' is not an address[/mask].",
        "x",
    ),
    (
        "no option httplog",
        "negation/default is not supported for option 'httplog'.",
        "httplog",
    ),
    (
        "http-request set-heder x y",
        "'http-request' : unknown action 'set-heder'; did you mean 'set-header' maybe ?",
        "set-heder",
    ),
    (
        "http-request set-header X",
        "'set-header' expects exactly 2 arguments.",
        "",
    ),
    (
        "http-request replace-path a",
        "'replace-path' expects <match-regex> and <replace-format> as arguments.",
        "",
    ),
    (
        "http-request replace-header x ( b",
        "failed to parse the regex : regex '(' is invalid",
        "(",
    ),
    (
        "http-request del-header x -m len",
        "-m with unsupported matching method 'len'.",
        "len",
    ),
    (
        "http-request del-headers-bin bin(00) -m reg",
        "-m reg is unsupported with del-headers-bin",
        "reg",
    ),
    (
        "http-request normalize-uri fragment-strip",
        "'normalize-uri' action is experimental, must be allowed via a global 'expose-experimental-directives'.",
        "normalize-uri",
    ),
    (
        "http-request strict-mode maybe",
        "Unexpected value 'maybe'. Only 'on' and 'off' are supported.",
        "maybe",
    ),
    (
        "http-request pause 0",
        "null value is not valid for a 'pause' rule.",
        "0",
    ),
    (
        "http-request set-log-level loud",
        "'set-log-level' expects exactly 1 argument (log level name or 'silent').",
        "loud",
    ),
    (
        "http-request silent-drop rst-ttl 0",
        "valid rst-ttl values are [1-255].",
        "0",
    ),
    (
        "http-response redirect prefix /x",
        "response only supports redirect type 'location'.",
        "prefix",
    ),
    (
        "tcp-request content capture src",
        "a positive 'len' argument is mandatory.",
        "",
    ),
    (
        "http-request track-sc0 src",
        "unable to find table 'f' referenced by track-sc0",
        "src",
    ),
    (
        "http-request return status 99",
        "Unexpected status code '99'.",
        "99",
    ),
    (
        "http-request return content-type a/b",
        "content-type 'a/b' ignored by the http reply because neither errorfile nor payload defined.",
        "a/b",
    ),
    (
        "http-request deny status 404 default-errorfiles hdr x y",
        "hdr parameters ignored by the http reply when used with an errorfile.",
        "y",
    ),
    (
        "http-request return string x",
        "a content type must be defined when non-empty payload is configured.",
        "x",
    ),
    (
        "http-request return status 204 content-type a string x",
        "No body expected for 204 responses.",
        "x",
    ),
    (
        "http-request return string x file y",
        "unexpected 'file' argument, 'string' already defined.",
        "file",
    ),
    (
        "http-request deny deny_status 999",
        "Unexpected status code '999'.",
        "999",
    ),
    (
        "http-request deny deny_status 299",
        "status code '299' not handled by default with 'default-errorfiles' argument.",
        "299",
    ),
    (
        "http-request deny foo",
        "'deny' expects 'status', 'content-type'",
        "foo",
    ),
    (
        "http-request allow foo",
        "expects 'if', 'unless' or end of line, got 'foo'.",
        "foo",
    ),
    (
        "http-request redirect code 301",
        "redirect expects 'location', 'prefix' or 'scheme' with a destination.",
        "",
    ),
    (
        "http-request redirect location / code 200",
        "'code': unsupported HTTP code '200'",
        "200",
    ),
    (
        "http-request set-var txn.x",
        "invalid or incomplete action 'set-var'.",
        "set-var",
    ),
    (
        "tcp-request connection foo",
        "'tcp-request connection' : unknown action 'foo' in frontend 'f'.",
        "foo",
    ),
    (
        "tcp-request connection expect-proxy x",
        "only supports 'layer4' in frontend 'f' (got 'x').",
        "x",
    ),
    (
        "tcp-request conection accept",
        "did you mean 'connection' maybe ?",
        "conection",
    ),
    (
        "tcp-request inspect-delay x",
        "unexpected character 'x' in 'tcp-request inspect-delay'.",
        "x",
    ),
    (
        "tcp-response content accept",
        "'tcp-response' ignored because frontend 'f' has no backend capability.",
        "tcp-response",
    ),
    (
        "capture request header Host",
        "'capture request' expects 'header' <header_name> 'len' <len>.",
        "header",
    ),
    (
        "capture reply header Host len 5",
        "'capture' expects 'cookie' or 'request header' or 'response header'.",
        "reply",
    ),
    (
        "errorfile 999 /x",
        "errorfile : status code '999' not handled.",
        "999",
    ),
    (
        "errorfile 503 /no/such/file",
        "'errorfile' : error opening file '/no/such/file'.",
        "/no/such/file",
    ),
    (
        "errorfiles nope",
        "unable to find the http-errors section 'nope'.",
        "nope",
    ),
    (
        "log-format a b",
        "log-format expects only one argument, don't forget to escape spaces!",
        "b",
    ),
    ("id 0", "custom id has to be > 0.", "0"),
    (
        "acl a!b src 1.1.1.1",
        "character '!' is not permitted in acl name 'a!b'.",
        "a!b",
    ),
    (
        "acl or src 1.1.1.1",
        "acl name 'or' will never match.",
        "or",
    ),
    (
        "filter spoe",
        "keyword 'filter spoe' is known but not implemented yet by this version.",
        "spoe",
    ),
    (
        "filter opentelemetri id x",
        "unknown filter 'opentelemetri'; did you mean 'opentelemetry' maybe ?",
        "opentelemetri",
    ),
    (
        "filter opentelemetry id x id y config f",
        "'id' already defined.",
        "id",
    ),
    (
        "filter opentelemetry id x config /nowhere",
        "Cannot read filter file '/nowhere' : ",
        "/nowhere",
    ),
    (
        "filter opentelemetry id x",
        "filter 'opentelemetry' expects 'config <file>'.",
        "",
    ),
];

const BACKEND: &[Case] = &[
    (
        "bind :81",
        "'bind' ignored because backend 'b' has no frontend capability.",
        "bind",
    ),
    (
        "maxconn 5",
        "has no frontend capability. Maybe you want 'fullconn' instead ?",
        "maxconn",
    ),
    (
        "option httplog",
        "backend 'b' : 'option httplog' directive is ignored in backends.",
        "httplog",
    ),
    (
        "server s",
        "'server' expects <name> and <addr>[:<port>] as arguments.",
        "",
    ),
    (
        "server s 127.0.0.1 foo",
        "'server b/s' : unknown keyword 'foo'.",
        "foo",
    ),
    (
        "server s 127.0.0.1 weigth 5",
        "'server b/s' : unknown keyword 'weigth'; did you mean 'weight' maybe ?.",
        "weigth",
    ),
    (
        "server s 127.0.0.1 weight 300",
        "'weight' expects a number from 0 to 256, got '300'.",
        "300",
    ),
    (
        "server s 127.0.0.1:1 log-bufsize x inter 5s",
        "log-bufsize has to be > 0.",
        "x",
    ),
    (
        "server s 127.0.0.1:1 log-proto octets",
        "'log-proto' expects one of 'legacy' or 'octet-count' but got 'octets'.",
        "octets",
    ),
    (
        "server s 127.0.0.1:80-90",
        "'server b/s' : port range not allowed here",
        "127.0.0.1:80-90",
    ),
    (
        "server s/1 127.0.0.1",
        "character '/' is not permitted in server name 's/1'.",
        "s/1",
    ),
    (
        "server first 127.0.0.1:81",
        "another server named 'first' was already defined at t.cfg:",
        "first",
    ),
    (
        "server s 127.0.0.1 proxy-v2-options foo",
        "'proxy-v2-options' : parsing 'foo' failed, unknown option.",
        "foo",
    ),
    (
        "default-server id 5",
        "'id' option is not accepted in default-server sections.",
        "default-server",
    ),
    (
        "balance foo",
        "balance only supports 'roundrobin', 'static-rr', 'leastconn'",
        "foo",
    ),
    (
        "balance rdp-cookie()",
        "rdp-cookie : missing cookie name.",
        "rdp-cookie()",
    ),
    (
        "balance hdr",
        "balance hdr(name) requires an http header field name.",
        "hdr",
    ),
    (
        "balance uri deep",
        "balance uri only accepts parameters 'len', 'depth', 'path-only', and 'whole' (got 'deep').",
        "deep",
    ),
    (
        "hash-type other",
        "'hash-type' only supports 'consistent' and 'map-based'.",
        "other",
    ),
    (
        "hash-balance-factor 100",
        "'hash-balance-factor' must be 0 or greater than 100.",
        "100",
    ),
    (
        "hash-preserve-affinity never",
        "'hash-preserve-affinity': unknown keyword 'never'",
        "never",
    ),
    (
        "server-template s 3-1 127.0.0.1",
        "Wrong server-template number or range arg '3-1'.",
        "3-1",
    ),
    (
        "server s 127.0.0.1:1 init-addr dns",
        "'init-addr' : unknown init-addr method 'dns', supported methods are 'libc', 'last', 'none'.",
        "dns",
    ),
    (
        "server s 127.0.0.1:1 init-addr 1.2.3.4,::1",
        "'init-addr' : initial address already specified, cannot add '::1'.",
        "1.2.3.4,::1",
    ),
    (
        "server s 127.0.0.1:1 from nobody",
        "invalid 'nobody' value for 'from' keyword.",
        "nobody",
    ),
    (
        "server s 127.0.0.1:1 hash-key name",
        "'hash-key' has to be 'id', 'id32', 'guid', 'addr', or 'addr-port'.",
        "name",
    ),
    (
        "http-reuse sometimes",
        "'http-reuse' only supports 'never', 'safe', 'aggressive', 'always'.",
        "sometimes",
    ),
    (
        "tcp-request connection accept",
        "tcp-request connection is not allowed because backend 'b' is not a frontend.",
        "connection",
    ),
    (
        "block if x",
        "The 'block' directive is not supported anymore since HAProxy 2.1. Use 'http-request deny'",
        "block",
    ),
    (
        "dispatch 1.1.1.1:80",
        "support for 'dispatch' was removed in version 3.5.",
        "dispatch",
    ),
    ("source", "'source' expects <addr>[:<port>]", ""),
    (
        "source 1.1.1.1 usesrc",
        "'usesrc' expects <addr>[:<port>], 'client', 'clientip', or 'hdr_ip(name,#)'",
        "",
    ),
    (
        "source 1.1.1.1 usesrc clients.invalid:x",
        "'usesrc clients.invalid:x'",
        "clients.invalid:x",
    ),
    (
        "source 1.1.1.1 usesrc 1.1.1.1:1-2",
        "'usesrc 1.1.1.1:1-2' : port range not allowed here.",
        "1.1.1.1:1-2",
    ),
    (
        "source 1.1.1.1 usesrc hdr_ip(x,-11)",
        "header occurrence must be >= -10.",
        "(x,-11)",
    ),
];

const DEFAULTS: &[Case] = &[
    (
        "bind :80",
        "'bind' not allowed in 'defaults' section.",
        "bind",
    ),
    (
        "server s :80",
        "'server' not allowed in 'defaults' section.",
        "server",
    ),
    (
        "http-request deny",
        "'http-request' not allowed in anonymous 'defaults' section.",
        "http-request",
    ),
    (
        "acl a always_true",
        "'acl' not allowed in anonymous 'defaults' section.",
        "acl",
    ),
    (
        "timeout contimeout 5s",
        "the 'contimeout' directive is not supported anymore since HAProxy 2.1. Use 'timeout connect'.",
        "contimeout",
    ),
    (
        "timeout connect 1y",
        "unexpected character 'y' in 'timeout connect'.",
        "1y",
    ),
];

fn check(before: &str, cases: &[Case], after: &str) {
    for (line, message, word) in cases {
        let text = format!("{before}    {line}\n{after}");
        let shown = report(&text);
        assert!(
            shown.contains(message),
            "{line}: no '{message}' in\n{shown}"
        );
        let times = shown.matches(message).count();
        assert_eq!(times, 1, "{line}: told once\n{shown}");
        assert_eq!(
            under_caret(&shown, message).as_deref(),
            Some(*word),
            "{line}\n{shown}"
        );
    }
}

const TIMEOUTS: &str = "    timeout client 1s\n    timeout server 1s\n    timeout connect 1s\n";

#[test]
fn of_global() {
    check("global\n", GLOBAL, "");
}

#[test]
fn of_frontends() {
    let before = format!(
        "defaults\n    mode http\n{TIMEOUTS}backend back\n    server s 127.0.0.1:80\nfrontend f\n    bind :80\n"
    );
    check(&before, FRONTEND, "");
}

#[test]
fn of_backends() {
    check(
        &format!("defaults\n    mode http\n{TIMEOUTS}backend b\n    server first 127.0.0.1:80\n"),
        BACKEND,
        "",
    );
}

#[test]
fn of_defaults_once_however_many_use_them() {
    check(
        "defaults\n",
        DEFAULTS,
        "frontend f\n    bind :80\nbackend b\nbackend c\nlisten l\n    bind :81\n",
    );
}

#[test]
fn all_of_a_file_in_one_run() {
    let shown =
        report("global\n  foo\ndefaults\n  bar\nfrontend f\n  baz\nbackend b\n  server s\n  qux\n");
    for word in ["foo", "bar", "baz", "qux"] {
        assert!(
            shown.contains(&format!("unknown keyword '{word}'")),
            "{shown}"
        );
    }
    assert!(shown.contains("'server' expects"));
}

/// The number of alerts for `line` in a backend.
fn alerts(line: &str) -> (usize, String) {
    let shown = report(&format!("backend b\n{TIMEOUTS}    {line}\n"));
    (shown.matches("[ALERT]").count(), shown)
}

#[test]
fn a_bad_option_ends_its_line() {
    for line in [
        "server s 127.0.0.1:1 inter fall rise",
        "server s 127.0.0.1:1 weight maxconn minconn",
        "server s 127.0.0.1:1 fall x rise y inter z",
        "default-server inter fall rise",
        "default-server foo bar baz",
    ] {
        let (count, shown) = alerts(line);
        assert_eq!(count, 1, "{line}: {shown}");
    }
    let text = format!("frontend f\n{TIMEOUTS}    bind :80 maxconn backlog id\n");
    assert_eq!(report(&text).matches("[ALERT]").count(), 1);
    // A word that is not implemented is reported, and so are the faults after it.
    let text = format!("frontend f\n{TIMEOUTS}    bind :80 nbconn 9 maxconn backlog id\n");
    let shown = report(&text);
    assert_eq!(shown.matches("[ALERT]").count(), 2, "{shown}");
}

#[test]
fn default_server_has_no_address() {
    let hint = "unknown keyword '127.0.0.1:1'. Hint: no address was expected for this server.";
    let (_, shown) = alerts("default-server 127.0.0.1:1 weight 3");
    assert!(shown.contains(hint), "{shown}");
}

#[test]
fn variables_outside_of_quotes_are_told() {
    let help =
        "Outside double quotes, environment variables are read in addresses only: write \"${X}\".";
    let cases = [
        ("timeout queue ${X}", true),
        ("timeout queue $X", true),
        ("timeout queue \"${X-5x}\"", false),
        ("timeout queue '$X'", false),
        ("timeout queue \\$X", false),
        ("timeout queue $", false),
        ("timeout queue 5x", false),
    ];
    for (line, is_told) in cases {
        let (count, shown) = alerts(line);
        assert_eq!(count, 1, "{line}: {shown}");
        assert_eq!(shown.contains(help), is_told, "{line}: {shown}");
    }
}

#[test]
fn of_names() {
    let cases = [
        ("backend\n", "'backend' expects an <id> argument"),
        (
            "backend a!b\n",
            "character '!' is not permitted in 'backend' name 'a!b'.",
        ),
        (
            "backend x\nbackend x\n",
            "backend 'x' has the same name as backend 'x' declared at t.cfg:1. This is no longer supported as of 3.3.",
        ),
        (
            "frontend x\nbackend x\n",
            "backend 'x' has the same name as frontend 'x' declared at t.cfg:1.",
        ),
        (
            "listen x :80\n",
            "please use the 'bind' keyword for listening addresses.",
        ),
        (
            "backend x from d\n",
            "defaults section 'd' not found for backend 'x'.",
        ),
        (
            "defaults d\ndefaults d\nbackend x from d\n",
            "ambiguous defaults section name 'd' referenced by backend 'x'",
        ),
        (
            "backend x from\n",
            "'from' expects the name of a defaults section.",
        ),
        ("log-profile\n", "missing name for log-profile section."),
        (
            "log-profile a!b\n",
            "character '!' is not permitted in 'log-profile' name 'a!b'.",
        ),
        (
            "log-profile p\nlog-profile p\n",
            "log-profile section 'p' has the same name as another log-profile section declared at t.cfg:1.",
        ),
        (
            "log-profile p\n  of any drop\n",
            "unknown keyword 'of' in 'log-profile' section",
        ),
        (
            "log-profile p\n  on clos drop\n",
            "'on' expects a log step: accept, request, connect, response, close,",
        ),
        (
            "log-profile p\n  on close\n",
            "'on close' expects 'drop', 'format' or 'sd'.",
        ),
        (
            "log-profile p\n  on close format\n",
            "'on close format' expects a logformat string.",
        ),
        (
            "log-profile p\n  on any format x drop\n",
            "'on any' expects 'drop', 'format' or 'sd'.",
        ),
        (
            "log-profile p\n  on any format %zz\n",
            "no such format alias 'zz'.",
        ),
        (
            "fcgi-app r\n",
            "section 'fcgi-app' is known but not implemented yet by this version.",
        ),
        (
            "peers p\n  pear a 1.1.1.1:1\n",
            "unknown keyword 'pear' in 'peers' section; did you mean 'peer' maybe ?",
        ),
        (
            "program p\n",
            "The 'program' section is not supported anymore since HAProxy 3.3.",
        ),
        (
            "http-errors e\n  errorfile 999 /x\n",
            "errorfile : status code '999' not handled.",
        ),
        (
            "http-errors e\n  foo\n",
            "unknown keyword 'foo' in 'http-errors' section",
        ),
    ];
    for (text, message) in cases {
        let shown = report(text);
        assert_eq!(
            shown.matches(message).count(),
            1,
            "{text}: '{message}' in\n{shown}"
        );
    }
}

#[test]
fn of_the_whole() {
    let t = TIMEOUTS;
    let cases = [
        (
            "frontend f\n  bind :80\n".to_owned(),
            "missing timeouts for frontend 'f'.",
        ),
        (
            "backend b\n  server s 127.0.0.1:80\n".to_owned(),
            "missing timeouts for backend 'b'.",
        ),
        ("backend b\n".to_owned(), ""),
        (
            format!("defaults d\n{t}  http-request deny\nlisten l from d\n"),
            "a listen section cannot inherit from a defaults section defining TCP/HTTP rules.",
        ),
        (
            format!("defaults d\n{t}  tcp-request content accept\ndefaults e from d\n"),
            "a defaults section cannot inherit from a defaults section defining TCP/HTTP rules (defaults section at t.cfg:1).",
        ),
        (
            format!("defaults d\n{t}  http-request deny\nfrontend f from d\nbackend b from d\n"),
            "frontends and backends cannot inherit from the same defaults section if it defines TCP/HTTP rules (defaults section at t.cfg:1).",
        ),
        (
            format!("defaults d\n{t}  tcp-request session accept\nbackend b from d\n"),
            "a backend section cannot inherit from a defaults section defining 'tcp-request connection' or 'tcp-request session' rules (defaults section at t.cfg:1).",
        ),
        (
            format!("defaults d\n{t}  tcp-response content accept\nfrontend f from d\n"),
            "a frontend section cannot inherit from a defaults section defining 'tcp-response content' rules (defaults section at t.cfg:1).",
        ),
        (
            format!("defaults d\n{t}frontend f\n  bind :80\n  http-request add-header a: b\n"),
            "header name 'a:' contains forbidden character ':'.",
        ),
        (
            format!("defaults\n{t}frontend f\n"),
            "frontend 'f' has no 'bind' directive.",
        ),
        (
            format!("defaults\n{t}frontend f\n  bind :80\n  option tcplog\n"),
            "log format ignored for frontend 'f' since it has no log address.",
        ),
        (
            format!("defaults\n{t}listen f\n  bind :80\n  option httplog\n  log stdout local0\n"),
            "'option httplog' not usable with proxy 'f' (needs 'mode http'). Falling back to 'option tcplog'.",
        ),
        (
            format!("defaults\n{t}listen f\n  bind :80\n  http-request deny\n"),
            "'http-request' rules ignored for proxy 'f' as they require HTTP mode.",
        ),
        (
            format!("defaults\n{t}listen f\n  bind :80\n  monitor-uri /x\n"),
            "'monitor-uri' statement ignored for proxy 'f' as it requires HTTP mode.",
        ),
        (
            format!("defaults\n{t}  option forwardfor\nlisten f\n  bind :80\n"),
            "'option forwardfor' ignored for proxy 'f' as it requires HTTP mode.",
        ),
        (
            format!("defaults\n{t}backend f\n  option originalto\n"),
            "'option originalto' ignored for backend 'f' as it requires HTTP mode.",
        ),
        (
            format!("defaults\n{t}backend f\n  option forwarded\n"),
            "'option forwarded' ignored for backend 'f' as it requires HTTP mode.",
        ),
        (
            format!("defaults\n{t}  mode http\n  log-format %ci\n  option httplog\n"),
            "'option httplog' overrides previous 'log-format' in 'defaults' section.",
        ),
        (
            format!("defaults\n{t}listen f\n  bind :80\n  option http-pretend-keepalive\n"),
            "'option http-pretend-keepalive' ignored for proxy 'f' as it requires HTTP mode.",
        ),
        (
            format!("defaults\n{t}listen f\n  bind :80\n  log backend@f local0\n"),
            "a log directive uses incompatible log backend 'f'.",
        ),
        (
            "backend l\n  mode log\n  balance leastconn\n".to_owned(),
            "in backend 'l': \"balance\" only supports 'roundrobin', 'random', 'sticky' and 'log-hash'.",
        ),
        (
            "backend l\n  mode log\n  server s 127.0.0.1:514\n  server t udp@127.0.0.1:514\n"
                .to_owned(),
            "cannot mix server types within a log backend, 't' srv's network type differs from previous server.",
        ),
        (
            "backend l\n  mode log\n  balance log-hash hex,nope\n".to_owned(),
            "unknown converter 'nope'",
        ),
        (
            "backend l\n  mode log\n  tcp-request content accept\n".to_owned(),
            "Cannot use tcp-request rules with 'mode log' in backend 'l'. They will be ignored.",
        ),
        (
            format!("defaults\n{t}listen f\n  bind :80\n  balance uri\n"),
            "Layer 7 hash not possible for proxy 'f' (needs 'mode http').",
        ),
        (
            format!(
                "defaults\n{t}backend b\nfrontend f\n  mode http\n  bind :80\n  default_backend b\n"
            ),
            "http frontend 'f' (t.cfg:6) tries to use incompatible tcp backend 'b' (t.cfg:5) as its default backend (see 'mode').",
        ),
        (
            format!(
                "defaults\n{t}listen f\n  bind :80\n  server s :80\n  tcp-request content switch-mode http\n  http-request deny\n"
            ),
            "Proxy 'f' : 'switch-mode http' configured for a tcp proxy with no backend. Incoming connections upgraded to HTTP cannot be routed to TCP servers",
        ),
        (
            format!(
                "defaults\n{t}backend b\nlisten f\n  bind :80\n  default_backend b\n  server s :80\n"
            ),
            "In proxy 'f', the 'default_backend' rule always has precedence over the servers, which will never be used.",
        ),
        (
            "backend a\n  id 7\nbackend b\n  id 7\n".to_owned(),
            "backend 'b' reuses same custom id as backend 'a' (declared at t.cfg:1).",
        ),
    ];
    for (text, message) in cases {
        let shown = report(&text);
        match message {
            "" => assert_eq!(shown, "", "{text}"),
            _ => assert_eq!(
                shown.matches(message).count(),
                1,
                "{text}: '{message}' in\n{shown}"
            ),
        }
    }
}

#[test]
fn of_the_order_of_rules() {
    let before = format!("defaults\n  mode http\n{TIMEOUTS}backend b\nfrontend f\n  bind :80\n");
    let cases = [
        (
            "use_backend b\n  http-request deny",
            "a 'http-request' rule placed after a 'use_backend' rule will still be processed before.",
        ),
        (
            "redirect location /\n  http-request deny",
            "a 'http-request' rule placed after a 'redirect' rule will",
        ),
        (
            "http-request deny\n  tcp-request content accept",
            "a 'tcp-request content' rule placed after an 'http-request' rule will",
        ),
        (
            "tcp-request session accept\n  tcp-request connection accept",
            "a 'tcp-request connection' rule placed after a 'tcp-request session' rule",
        ),
        (
            "http-request deny\n  http-request allow",
            "previous 'http-request' action is final and has no condition attached, further entries are NOOP.",
        ),
        (
            "http-request auth\n  http-request allow",
            "previous 'http-request' action is final and has no condition attached, further entries are NOOP.",
        ),
        (
            "http-request redirect location %[var(txn.a)] ignore-empty\n  http-request allow",
            "",
        ),
        (
            "http-request deny if TRUE\n  http-request reject\n  redirect location /\n  use_backend b",
            "",
        ),
    ];
    for (lines, message) in cases {
        let shown = report(&format!("{before}  {lines}\n"));
        match message {
            "" => assert_eq!(shown, "", "{lines}"),
            _ => assert_eq!(
                shown.matches(message).count(),
                1,
                "{lines}: '{message}' in\n{shown}"
            ),
        }
    }
}
