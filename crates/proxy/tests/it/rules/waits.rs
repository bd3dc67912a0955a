//! Bodies that a rule or an option waits for.

use super::script::play;

#[test]
fn for_a_request() {
    let rule = "http-request wait-for-body time 2s";
    let some = "http-request wait-for-body time 2s at-least 3";
    let post = "c1 > POST / HTTP/1.1|host: a|content-length: 4||";
    let chunks = "c1 > POST / HTTP/1.1|host: a|transfer-encoding: chunked||";
    let sent = "s1 ok\ns1 < POST / HTTP/1.1|host: a|content-length: 4||";
    let cases: &[(&str, &str, String)] = &[
        ("all of it at once", rule, format!("{post}body\n{sent}body")),
        (
            "in parts",
            rule,
            format!("{post}bo\nwait 1999\ns1 none\nc1 > dy\n{sent}body"),
        ),
        (
            "too late",
            rule,
            format!("{post}bo\nwait 1999\nc1 open\nwait 1\nc1 <~ HTTP/1.1 408 \nc1 end\nlog 408 cR--\ns1 none\nquiet"),
        ),
        (
            "the client's end",
            rule,
            format!("{post}bo\nc1 fin\nc1 <~ HTTP/1.1 400 \nc1 end\nlog 400 CR--\ns1 none\nquiet"),
        ),
        ("enough of it", some, format!("{post}bod\n{sent}bod\nc1 > y")),
        (
            "chunks, whose frames do not count",
            some,
            format!("{chunks}1|a|1|b|\ns1 none\nc1 > 1|c|\ns1 ok\ns1 <~ POST / "),
        ),
        (
            "the rules before are not run again, those after are",
            "http-request add-header x 1\nhttp-request wait-for-body time 2s\nhttp-request add-header y 1",
            format!("{post}bo\nc1 > dy\ns1 ok\ns1 < POST / HTTP/1.1|host: a|content-length: 4|x: 1|y: 1||body"),
        ),
        (
            "asked for",
            rule,
            "c1 > POST / HTTP/1.1|host: a|content-length: 1|expect: 100-continue||\nc1 < HTTP/1.1 100 Continue||\nc1 > x\ns1 ok\ns1 < POST / HTTP/1.1|host: a|content-length: 1||x".into(),
        ),
        (
            "none",
            rule,
            "c1 > GET / HTTP/1.1|host: a||\ns1 ok\ns1 < GET / HTTP/1.1|host: a||".into(),
        ),
        (
            "buffered, cut by the client's end",
            "option http-buffer-request",
            format!("{post}bo\ns1 none\nc1 fin\nc1 <~ HTTP/1.1 400 \nlog 400 CR--\ns1 none\nquiet"),
        ),
    ];
    for (name, lines, script) in cases {
        play(name, lines, script);
    }
}

#[test]
fn for_a_response() {
    let rule = "http-response wait-for-body time 2s";
    let get = "c1 > GET / HTTP/1.1|host: a||\ns1 ok";
    let head = "HTTP/1.1 200 OK|content-length: 4||";
    let cases: &[(&str, &str, String)] = &[
        (
            "all of it at once",
            rule,
            format!("{get}\ns1 > {head}body\nc1 < {head}body\nlog 200 ----\nc1 open\ns1 open"),
        ),
        (
            "in parts",
            rule,
            format!(
                "{get}\ns1 > {head}bo\nwait 1999\nc1 < \ns1 > dy\nc1 < {head}body\nlog 200 ----\nc1 open\ns1 open"
            ),
        ),
        (
            "too late",
            rule,
            format!(
                "{get}\ns1 > {head}bo\nwait 1999\nc1 < \nwait 1\nc1 <~ HTTP/1.1 504 \nlog 504 sH--\ns1 end\nquiet"
            ),
        ),
        (
            "enough of it, then the server's time counts anew",
            "http-response wait-for-body time 2s at-least 3",
            format!(
                "{get}\ns1 > {head}bod\nc1 < {head}bod\nwait 19999\ns1 > y\nc1 < y\nlog 200 ----"
            ),
        ),
        (
            "until the end of the connection",
            rule,
            format!(
                "{get}\ns1 > HTTP/1.1 200 OK||bo\nc1 < \ns1 > dy\ns1 fin\nc1 < HTTP/1.1 200 OK|connection: close||body\nc1 end\nlog 200 ----"
            ),
        ),
        (
            "cut by the server's end",
            rule,
            format!("{get}\ns1 > {head}bo\ns1 fin\nc1 < {head}bo\nc1 gone\nlog 200 SD--\nquiet"),
        ),
        (
            "cut by the server's reset",
            rule,
            format!("{get}\ns1 > {head}bo\ns1 rst\nc1 <~ HTTP/1.1 502 \nlog 502 SH--\nquiet"),
        ),
        (
            "the client leaves",
            rule,
            format!("{get}\ns1 > {head}bo\nc1 rst\ns1 end\nquiet"),
        ),
    ];
    for (name, lines, script) in cases {
        play(name, lines, script);
    }
}
