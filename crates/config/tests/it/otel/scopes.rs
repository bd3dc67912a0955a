//! Lines of `otel-scope`, and the events that scopes are bound to.

use super::{Case, Expect, LISTEN, Refused, Taken, Warned, check};

#[test]
fn scopes() {
    let cases: &[Case] = &[
        ("span b", Taken),
        ("span b parent a link a kind client", Taken),
        ("span b link a link a", Taken),
        ("span", Refused("'span' expects a name.", "")),
        ("span *", Refused("'*' is no name of a span.", "*")),
        (
            "span *req*",
            Refused("'*req*' is no name of a span.", "*req*"),
        ),
        (
            "span b parent",
            Refused("'parent' expects an argument.", ""),
        ),
        (
            "span b parent b",
            Refused("a span cannot be its own parent.", "b"),
        ),
        (
            "span b parent nobody",
            Refused("'nobody' is neither a span nor a context", "nobody"),
        ),
        ("span b kind odd", Refused("unknown kind 'odd'", "odd")),
        (
            "span b kind client kind server",
            Refused("'kind' already defined.", "server"),
        ),
        (
            "span b root root",
            Refused("'root' already defined.", "root"),
        ),
        ("span b below a", Refused("'below' : unexpected.", "below")),
        (
            "span a kind client",
            Refused("span 'a' is already defined in this scope.", "a"),
        ),
        ("span if", Refused("'if' is a reserved word.", "if")),
        (
            "span b root",
            Warned("span 'b' is 'root', and so is 'a'", "b"),
        ),
        ("attribute k str(x)", Taken),
        ("attribute k str(x) str(x) src", Taken),
        ("attribute k \"%[src]:%[src_port] %ci\"", Taken),
        ("attribute k str(x) if TRUE\n attribute k str(y)", Taken),
        (
            "attribute k str(x)\n attribute k str(y)",
            Refused("'k' already unconditionally set.", "k"),
        ),
        ("attribute k", Refused("wrong number of arguments", "")),
        (
            "attribute k strr(x)",
            Refused("unknown fetch method 'strr'", "strr"),
        ),
        (
            "attribute k str(x),lowr",
            Refused("unknown converter 'lowr'", "lowr"),
        ),
        (
            "attribute k str(x) if { path /a",
            Refused("missing closing '}' in condition.", "{"),
        ),
        (
            "attribute k str(x) unless nobody",
            Refused("no such ACL : 'nobody'", "nobody"),
        ),
        (
            "attribute k \"%[src\" more",
            Refused("a log format is one word", "more"),
        ),
        ("event e k str(x)", Taken),
        ("event e time ms int(5) k str(x)", Taken),
        ("event e time int(5) k str(x)", Taken),
        ("event e k", Refused("wrong number of arguments", "")),
        (
            "event e k str(x)\n event e k str(y)",
            Refused("already unconditionally set.", "e"),
        ),
        ("baggage a.b-c_d str(x)", Taken),
        (
            "baggage a=b str(x)",
            Refused("character '=' is not permitted in the key", "a=b"),
        ),
        ("status ok", Taken),
        ("status ignore", Taken),
        ("status error str(x) if TRUE\n status ok", Taken),
        ("status fine", Refused("unknown status 'fine'", "fine")),
        (
            "status ok\n status error",
            Refused("'status' already unconditionally set.", "status"),
        ),
        ("link a", Taken),
        ("link a attr k str(x) l str(y)", Taken),
        (
            "link a a attr k str(x)",
            Refused("'attr' needs a single span or context", "attr"),
        ),
        (
            "link a attr k",
            Refused("'attr' expects a key and a sample.", "k"),
        ),
        (
            "link a attr k str(x) k str(y)",
            Refused("'k' already defined.", "k"),
        ),
        ("exception E message str(x) attr k str(y)", Taken),
        (
            "exception E because str(x)",
            Refused("'because' : expected 'message", "because"),
        ),
        ("inject x", Taken),
        ("inject x use-vars use-headers", Taken),
        (
            "inject Ctx-X use-vars",
            Warned(
                "'inject' : the variables of 'Ctx-X' are called txn.ctxDx.*.",
                "Ctx-X",
            ),
        ),
        ("inject - b3 w3c", Taken),
        (
            "inject x use-vars use-vars",
            Refused("'use-vars' already defined.", "use-vars"),
        ),
        (
            "inject x zipkin",
            Refused("'zipkin': expected 'use-headers'", "zipkin"),
        ),
        (
            "inject x:y",
            Refused("character ':' is not permitted", "x:y"),
        ),
        (
            "inject x\n inject y",
            Refused("'inject' already defined for this span.", "inject"),
        ),
        (
            "inject X\n span b\n inject x use-vars",
            Warned("'inject' : 'x' is already injected at line 8", "x"),
        ),
        (
            "inject -\n span b\n inject -y",
            Warned("another one of this proxy writes the same headers", "-y"),
        ),
        ("extract c", Taken),
        ("extract - use-headers b3", Taken),
        (
            "extract c use-vars use-headers",
            Refused("exclude each other.", "use-vars"),
        ),
        ("extract a", Refused("'a' is the name of a span.", "a")),
        (
            "extract c\n extract c",
            Refused("'c' already defined in this scope.", "c"),
        ),
        ("finish a", Taken),
        ("finish * *req* *res*", Taken),
        ("finish a a", Refused("'a' already defined.", "a")),
        (
            "finish nobody",
            Refused("'nobody' is neither a span nor a context", "nobody"),
        ),
        ("finish", Refused("'finish' expects at least one name.", "")),
        (
            "instrument cnt_int n value int(1)\n instrument update n attr k src",
            Taken,
        ),
        (
            "instrument hist_int n value int(1) bounds \"1 2 3\" unit By desc x aggr histogram",
            Taken,
        ),
        (
            "instrument cnt_int n value int(1)\n instrument cnt_int N value int(2)",
            Taken,
        ),
        (
            "instrument cnt_int n value int(1)\n instrument gauge_int n value int(1)",
            Refused("already defined with another type.", "n"),
        ),
        (
            "instrument cnt_int n unit s value int(1)\n instrument cnt_int n unit ms value int(1)",
            Refused("already defined with another unit.", "n"),
        ),
        (
            "instrument cnt_int n desc x value int(1)\n instrument cnt_int n desc y value int(1)",
            Refused("already defined with another description.", "n"),
        ),
        (
            "instrument hist_int n bounds 1 value int(1)\n instrument hist_int n bounds 2 value int(1)",
            Refused("already defined with another aggregation.", "n"),
        ),
        (
            "instrument cnt_int n",
            Refused("'instrument' expects 'value <sample>'.", ""),
        ),
        (
            "instrument cnt_int 1n value int(1)",
            Refused("invalid name '1n' of an instrument", "1n"),
        ),
        (
            "instrument double n value int(1)",
            Refused("unknown type 'double'", "double"),
        ),
        (
            "instrument update n",
            Refused("no scope defines the instrument 'n'.", "n"),
        ),
        (
            "instrument cnt_int n value int(1) bounds 1",
            Refused("'bounds' are for 'hist_int' only.", "bounds"),
        ),
        (
            "instrument hist_int n value int(1) bounds \"1 1\"",
            Refused("the same number twice", "\"1 1\""),
        ),
        (
            "instrument hist_int n value int(1) bounds x",
            Refused("got 'x'", "x"),
        ),
        (
            "instrument cnt_int n value int(1) aggr mean",
            Refused("unknown aggregation 'mean'", "mean"),
        ),
        ("log-record info str(x)", Taken),
        (
            "log-record Warn4 id 3 event e span a time ms int(1) attr k src str(x) src",
            Taken,
        ),
        (
            "log-record loud str(x)",
            Refused("unknown severity 'loud'", "loud"),
        ),
        ("log-record info", Refused("wrong number of arguments", "")),
        (
            "log-record info id x str(x)",
            Refused("'id' expects an integer, got 'x'.", "x"),
        ),
        (
            "log-record info id 1 id 2 str(x)",
            Refused("already defined.", "str(x)"),
        ),
        (
            "log-record info span nobody str(x)",
            Refused("'nobody' is neither a span nor a context", "nobody"),
        ),
        (
            "set-var txn.x src src\n unset-var txn.x txn.y if TRUE",
            Taken,
        ),
        (
            "set-var x.y src",
            Refused("invalid variable name 'x.y'", "x.y"),
        ),
        (
            "set-var txn.x src\n set-var txn.x dst",
            Refused("'txn.x' already unconditionally set.", "txn.x"),
        ),
        ("set-var-ctx txn.x a trace-id", Taken),
        ("set-var-ctx txn.x a baggage(k)", Taken),
        (
            "set-var-ctx txn.x a colour",
            Refused("unknown field 'colour'", "colour"),
        ),
        (
            "set-var-ctx txn.x a",
            Refused("wrong number of arguments", ""),
        ),
        ("otel-stop", Taken),
        (
            "otel-stop if { path /health }\n otel-stop unless TRUE",
            Taken,
        ),
        ("acl mine path /x\n attribute k src if mine", Taken),
        (
            "attribute k src if mine\n acl mine path /x",
            Refused("no such ACL : 'mine'", "mine"),
        ),
        (
            "otel-event on-stream-stop",
            Refused("'otel-event' already defined in this scope.", "otel-event"),
        ),
        (
            "idle-timeout 5s",
            Refused("needs the event 'on-idle-timeout'.", "s"),
        ),
        ("idle-timeout 0", Refused("at least a millisecond.", "0")),
        (
            "atribute k src",
            Refused("unknown keyword 'atribute'", "atribute"),
        ),
    ];
    check(cases.iter().map(|(lines, expected)| {
        let otel = format!(
            "[f]\notel-instrumentation i\n config OTEL_YML\n scopes s\notel-scope s\n otel-event on-frontend-http-request\n span a root\n {lines}\n"
        );
        (LISTEN, otel, *expected)
    }));
}

#[test]
fn events() {
    let http = Warned(
        "'on-http-wait-request' does not come in mode TCP.",
        "on-http-wait-request",
    );
    let early = Warned(
        "'on-stream-start' does not come to a filter of a backend.",
        "on-stream-start",
    );
    let tcp = LISTEN.replace("bind :80", "mode tcp\n    bind :80");
    let backend = LISTEN.replace("listen web\n    bind :80\n", "backend web\n");
    let cases: &[(&str, &str, Expect)] = &[
        (LISTEN, "otel-event on-http-wait-request", Taken),
        (&tcp, "otel-event on-http-wait-request", http),
        (&tcp, "otel-event on-stream-start", Taken),
        (
            &tcp,
            "otel-event on-tcp-response\n extract x use-vars",
            Taken,
        ),
        (
            &tcp,
            "otel-event on-tcp-response\n extract x",
            Warned("'extract' finds no headers", "extract"),
        ),
        (&backend, "otel-event on-stream-start", early),
        (&backend, "otel-event on-backend-http-request", Taken),
        (
            LISTEN,
            "otel-event on-stream-start\n extract x use-headers",
            Taken,
        ),
        (
            LISTEN,
            "otel-event on-stream-stop\n inject x",
            Refused("'inject' cannot write headers at 'on-stream-stop'.", "s"),
        ),
        (
            LISTEN,
            "otel-event on-stream-stop\n inject x use-vars",
            Taken,
        ),
        (
            LISTEN,
            "otel-event on-nothing",
            Refused("unknown event 'on-nothing'", "on-nothing"),
        ),
        (
            LISTEN,
            "otel-event",
            Refused("'otel-event' expects the name of an event.", ""),
        ),
        (
            LISTEN,
            "otel-event on-idle-timeout",
            Refused("needs an 'idle-timeout'.", "s"),
        ),
        (
            LISTEN,
            "otel-event on-idle-timeout\n idle-timeout 5s",
            Taken,
        ),
        (
            LISTEN,
            "otel-event on-stream-start if { src 10.0.0.1 } or TRUE",
            Taken,
        ),
        (
            LISTEN,
            "",
            Warned("otel-scope 's' has no 'otel-event': it never runs.", "s"),
        ),
    ];
    check(cases.iter().map(|(config, lines, expected)| {
        let otel = format!(
            "[f]\notel-instrumentation i\n config OTEL_YML\n scopes s\notel-scope s\n span a root\n {lines}\n"
        );
        (*config, otel, *expected)
    }));
}
