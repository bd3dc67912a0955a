use crate::testing::{Facts, none, response};

fn get() -> Facts {
    Facts::with_request(
        "GET /a/b.html?x=1&name=v%20w;y=&x=2 HTTP/1.1\nHost: www.example.com:8080\nX-List: a, \"b,c\" ,d\n\
         X-List: e,\nX-Ip: 10.0.0.1:80, nonsense, [2001:db8::1]\nCookie: a=1; b=\"x;y\"; a=3\nCookie: c=4\nContent-Length: 42\n\n",
    )
}

fn check(facts: &Facts, cases: &[(&str, Option<&str>)]) {
    for (expr, wanted) in cases {
        assert_eq!(facts.text(expr).as_deref(), *wanted, "{expr}");
    }
}

#[test]
fn parts_of_the_start_line() {
    check(
        &get(),
        &[
            ("method", Some("GET")),
            ("url", Some("/a/b.html?x=1&name=v%20w;y=&x=2")),
            ("path", Some("/a/b.html")),
            ("pathq", Some("/a/b.html?x=1&name=v%20w;y=&x=2")),
            ("query", Some("x=1&name=v%20w;y=&x=2")),
            ("query(with_qm)", Some("?x=1&name=v%20w;y=&x=2")),
            ("base", Some("www.example.com:8080/a/b.html")),
            ("baseq,length", Some("51")),
            ("req.ver", Some("1.1")),
            ("urlp(x)", Some("1")),
            ("urlp(name),url_dec", Some("v w")),
            ("urlp(y)", Some("")),
            ("urlp(Y)", None),
            ("urlp(Y,,i)", Some("")),
            ("urlp", Some("1")),
            ("urlp_val(x)", Some("1")),
            ("urlp(none)", None),
        ],
    );
    let absolute =
        Facts::with_request("GET http://example.com:81/p?q HTTP/1.0\nHost: example.com:81\n\n");
    check(
        &absolute,
        &[
            ("path", Some("/p")),
            ("url", Some("http://example.com:81/p?q")),
            ("req.ver", Some("1.0")),
        ],
    );
    let star = Facts::with_request("OPTIONS * HTTP/1.1\nHost: h\n\n");
    check(
        &star,
        &[("path", None), ("base", Some("h")), ("url", Some("*"))],
    );
}

#[test]
fn values_of_fields_by_occurrence() {
    check(
        &get(),
        &[
            ("req.hdr(host)", Some("www.example.com:8080")),
            ("req.hdr(HOST),host_only", Some("www.example.com")),
            ("req.hdr(x-list)", Some("")),
            ("req.hdr(x-list,1)", Some("a")),
            ("req.hdr(x-list,2)", Some("\"b,c\"")),
            ("req.hdr(x-list,3)", Some("d")),
            ("req.hdr(x-list,4)", Some("e")),
            ("req.hdr(x-list,6)", None),
            ("req.hdr(x-list,-2)", Some("e")),
            ("req.hdr(x-list,-5)", Some("a")),
            ("req.hdr(x-list,-6)", None),
            ("req.fhdr(x-list)", Some("e,")),
            ("req.fhdr(x-list,1)", Some("a, \"b,c\" ,d")),
            ("req.hdr_cnt(x-list)", Some("5")),
            ("req.fhdr_cnt(x-list)", Some("2")),
            ("req.fhdr_cnt", Some("7")),
            ("req.hdr_val(content-length)", Some("42")),
            ("req.hdr_ip(x-ip,1)", Some("10.0.0.1")),
            ("req.hdr_ip(x-ip,2)", None),
            ("req.hdr_ip(x-ip)", Some("2001:db8::1")),
            ("req.hdr(none)", None),
            ("req.hdr_cnt(none)", Some("0")),
            (
                "req.hdr_names",
                Some("host,x-list,x-list,x-ip,cookie,cookie,content-length"),
            ),
        ],
    );
}

#[test]
fn cookies() {
    check(
        &get(),
        &[
            ("req.cook(a)", Some("3")),
            ("req.cook(b)", Some("\"x;y\"")),
            ("req.cook(c)", Some("4")),
            ("req.cook", Some("1")),
            ("req.cook_cnt(a)", Some("2")),
            ("req.cook_cnt", Some("4")),
            ("req.cook_val(c)", Some("4")),
            ("req.cook(d)", None),
        ],
    );
    let mut facts = Facts::new();
    facts.response = Some(response(
        "HTTP/1.1 200 OK\nSet-Cookie: sid=1; Path=/\nSet-Cookie: t=2\nContent-Length: 0\n\n",
    ));
    check(
        &facts,
        &[
            ("res.cook(sid)", Some("1")),
            ("res.cook(Path)", None),
            ("res.cook_cnt", Some("2")),
            ("status", Some("200")),
            ("res.ver", Some("1.1")),
            ("res.hdr(content-length)", Some("0")),
        ],
    );
}

#[test]
fn nothing_without_a_message() {
    for expr in [
        "path",
        "req.hdr(host)",
        "status",
        "res.hdr(x)",
        "urlp(x)",
        "base",
        "req.cook(a)",
    ] {
        none(expr);
    }
}

#[test]
fn oddly_formed_values_give_values_and_never_panic() {
    for value in [
        "", ",", ",,", "\"", "\"\\", "a\"b,c", "=", ";", "=;=", "$a=1", "a", "a=\"\\", "::", "[",
        "]:1", ":",
    ] {
        let mut facts = Facts::with_request("GET /?=&;& HTTP/1.1\nHost: h\n\n");
        let head = facts.request.as_mut().expect("a request");
        head.append(b"x", value.as_bytes());
        head.append(b"cookie", value.as_bytes());
        for expr in [
            "req.hdr(x)",
            "req.hdr(x,2)",
            "req.hdr_ip(x)",
            "req.cook(a)",
            "req.cook",
            "req.cook_cnt",
            "urlp",
            "urlp(a)",
        ] {
            let _ = facts.text(expr);
        }
    }
}
