//! Persistence cookies: who sees them, which server they lead to, what logs tell of them.

use super::script::play;

const SERVERS: &str = "\nserver one 127.0.0.1:81 cookie A\nserver two 127.0.0.1:82 cookie B";

/// A request with a cookie goes out as `sent` to a server, which answers; the client gets `got`.
fn case(name: &str, lines: &str, cookie: &str, sent: &str, answer: &str, got: &str, flags: &str) {
    let cookie = match cookie {
        "" => String::new(),
        cookie => format!("cookie: {cookie}|"),
    };
    let sent = match sent {
        "" => String::new(),
        sent => format!("cookie: {sent}|"),
    };
    let script = format!(
        "c1 > GET / HTTP/1.1|host: a|{cookie}|
        s1 ok
        s1 < GET / HTTP/1.1|host: a|{sent}|
        s1 > HTTP/1.1 204 No Content|{answer}|
        c1 < HTTP/1.1 204 No Content|{got}|
        log 204 --{flags}"
    );
    play(name, lines, &script);
}

#[test]
fn inserted() {
    let one = "server one 127.0.0.1:81 cookie A";
    let set = "set-cookie: S=A; path=/|";
    let plain = &format!("cookie S insert\n{one}");
    let hidden = &format!("cookie S insert indirect\n{one}");
    case("none yet", plain, "", "", "", set, "NI");
    case("seen by the server", plain, "S=A", "S=A", "", "", "VN");
    case("of nobody", plain, "S=C", "S=C", "", set, "II");
    case("empty", plain, "S=", "S=", "", set, "II");
    case("another name", plain, "s=A", "s=A", "", set, "NI");
    case("hidden", hidden, "S=A", "", "", "", "VN");
    case("hidden though of nobody", hidden, "S=C", "", "", set, "II");
    for (cookie, sent) in [
        ("S=A; a=1", "a=1"),
        ("a=1; S=A", "a=1"),
        ("a=1; S=A; b=2", "a=1; b=2"),
        ("a=1;S=A;b=2", "a=1; b=2"),
        ("a = 1 ; S=A ;b= 2", "a=1; b=2"),
        ("S=A; S=B; a=1", "a=1"),
        ("a; S=A", "a"),
        ("S=A; $Path=/; a=1", "a=1"),
        ("$Version=1; S=A; $Path=/", ""),
        ("S = A ; a=\"x;S=A\"", "a=\"x;S=A\""),
        ("S=A,a=1", "a=1"),
        (";S=A", ""),
    ] {
        case(cookie, hidden, cookie, sent, "", "", "VN");
    }
    let own = "set-cookie: S=x|set-cookie: T=y|";
    case(
        "the server's own goes",
        plain,
        "S=A",
        "S=A",
        own,
        "set-cookie: T=y|",
        "VD",
    );
    case(
        "unless preserved",
        &format!("cookie S insert preserve\n{one}"),
        "",
        "",
        own,
        own,
        "NP",
    );
    case(
        "a server without a value",
        "cookie S insert\nserver one 127.0.0.1:81",
        "S=A",
        "S=A",
        "",
        "set-cookie: S=; Expires=Thu, 01-Jan-1970 00:00:01 GMT; path=/|",
        "II",
    );
    case(
        "attributes",
        &format!("cookie S insert domain .a.b domain c.d attr X=1 httponly secure attr Y\n{one}"),
        "",
        "",
        "",
        "set-cookie: S=A; path=/; domain=.a.b; domain=c.d; HttpOnly; Secure; X=1; Y|",
        "NI",
    );
    case(
        "after POST only",
        &format!("cookie S insert postonly\n{one}"),
        "",
        "",
        "",
        "",
        "NN",
    );
    let nocache = &format!("cookie S insert nocache\n{one}");
    let tagged = "etag: \"x\"|set-cookie: S=A; path=/|cache-control: private|";
    case(
        "not to be cached",
        nocache,
        "",
        "",
        "etag: \"x\"|",
        tagged,
        "NI",
    );
    case("nobody would cache it", nocache, "", "", "", set, "NI");
    case(
        "made of the address",
        "cookie S insert dynamic\ndynamic-cookie-key k\nserver one 127.0.0.1:81",
        "",
        "",
        "",
        DYNAMIC,
        "NI",
    );
}

/// What HAProxy 3.5 gives the same server.
const DYNAMIC: &str = "set-cookie: S=f28f38c17bc17efc; path=/|";

#[test]
fn rewritten_and_prefixed() {
    let one = "server one 127.0.0.1:81 cookie A";
    let rewrite = &format!("cookie S rewrite\n{one}");
    let prefix = &format!("cookie S prefix\n{one}");
    let set = |value: &str| format!("set-cookie: S={value}; Path=/; X|");
    case("rewritten", rewrite, "", "", &set("x"), &set("A"), "NR");
    case("not there", rewrite, "S=A", "S=A", "", "", "VN");
    case("prefixed", prefix, "", "", &set("x"), &set("A~x"), "NR");
    case("taken off", prefix, "S=A~x; b=1", "S=x; b=1", "", "", "VN");
    case("none to take off", prefix, "S=A", "S=A", "", "", "VN");
    case("not ours", prefix, "S=x~y", "S=y", "", "", "IN");
    case(
        "passive",
        &format!("cookie S\n{one}"),
        "S=A",
        "S=A",
        &set("x"),
        &set("x"),
        "--",
    );
}

#[test]
fn dates() {
    let one = "server one 127.0.0.1:81 cookie A";
    let get = |cookie: &str| {
        format!(
            "c1 > GET / HTTP/1.1|host: a|cookie: S={cookie}||\ns1 ok\ns1 <~ GET /\ns1 > HTTP/1.1 204 No Content||"
        )
    };
    let cases = [
        ("a date is given", "maxidle 60", "A", "S=A¦", "VU"),
        ("an old one", "maxidle 60", "A¦AAAAB", "S=A¦", "EI"),
        ("an old life", "maxlife 60", "A¦AAAAB¦AAAAB", "S=A¦", "OI"),
        ("one of next year", "maxidle 60", "A¦z////", "S=A¦", "EI"),
        ("no limits: no dates", "", "A¦AAAAB", "S=A; path=/|", "VU"),
        ("no date", "maxidle 60", "A¦====B", "S=A¦", "VU"),
    ];
    for (name, options, cookie, set, flags) in cases {
        let lines = format!("cookie S insert {options}\n{one}");
        let get = get(cookie);
        let got = format!("c1 <~ HTTP/1.1 204 No Content|set-cookie: {set}");
        play(name, &lines, &format!("{get}\n{got}\nlog 204 --{flags}"));
    }
}

#[test]
fn the_way_they_lead() {
    let insert = &format!("cookie S insert{SERVERS}");
    let to = |cookie: &str, server: u8| {
        format!("c1 > GET / HTTP/1.1|host: a|cookie: S={cookie}||\ns1 to 127.0.0.1:{server}\n")
    };
    let two = to("B", 82);
    let answered =
        "s1 ok\ns1 > HTTP/1.1 204 No Content||\nc1 < HTTP/1.1 204 No Content||\nlog 204 --VN";
    play("to the second", insert, &format!("{two}{answered}"));
    play(
        "to the first",
        insert,
        &format!("{}{answered}", to("A", 81)),
    );
    let down = &format!("cookie S insert{SERVERS} disabled");
    play(
        "down: another one",
        down,
        &format!(
            "{}s1 ok\ns1 > HTTP/1.1 204 No Content||\nc1 < HTTP/1.1 204 No Content|set-cookie: S=A; path=/||\nlog 204 --DI",
            to("B", 81)
        ),
    );
    play(
        "option persist",
        &format!("option persist\n{down}"),
        &format!("{two}s1 refuse\nc1 <~ HTTP/1.1 503 \nlog 503 SCDN"),
    );
    play(
        "option persist, and away from there",
        &format!("option persist\noption redispatch\nretries 1\n{down}"),
        &format!(
            "{two}s1 refuse\ns2 to 127.0.0.1:81\ns2 ok\ns2 > HTTP/1.1 204 No Content||\nc1 < HTTP/1.1 204 No Content|set-cookie: S=A; path=/||\nlog 204 --DI"
        ),
    );
    play(
        "force-persist",
        &format!("force-persist if {{ path / }}\noption redispatch\nretries 1\n{down}"),
        &format!(
            "{two}s1 refuse\nwait 1000\ns2 to 127.0.0.1:82\ns2 refuse\nc1 <~ HTTP/1.1 503 \nlog 503 SCDN"
        ),
    );
    play(
        "ignore-persist",
        &format!("ignore-persist if {{ path / }}\n{insert}"),
        &format!(
            "{}s1 ok\ns1 > HTTP/1.1 204 No Content|set-cookie: S=x||\nc1 < HTTP/1.1 204 No Content|set-cookie: S=x||\nlog 204 --UN",
            to("B", 81)
        ),
    );
    play(
        "a retry stays, the last one may leave",
        &format!("option redispatch\nretries 2\n{insert}"),
        &format!(
            "{two}s1 refuse\nwait 1000\ns2 to 127.0.0.1:82\ns2 refuse\ns3 to 127.0.0.1:81\ns3 ok\ns3 > HTTP/1.1 204 No Content||\nc1 < HTTP/1.1 204 No Content|set-cookie: S=A; path=/||\nlog 204 --DI"
        ),
    );
    play(
        "it waits for its server",
        "cookie S insert\nserver one 127.0.0.1:81 cookie A maxconn 1\nserver two 127.0.0.1:82 cookie B",
        &format!(
            "{}c2 > GET /2 HTTP/1.1|host: a|cookie: S=A||\ns2 none\n{answered}\ns2 to 127.0.0.1:81",
            to("A", 81)
        ),
    );
    play(
        "a full queue",
        "cookie S insert\noption redispatch\nserver one 127.0.0.1:81 cookie A maxconn 1 maxqueue 1\nserver two 127.0.0.1:82 cookie B",
        &format!(
            "{}c2 > GET /2 HTTP/1.1|host: a|cookie: S=A||\ns2 none\nc3 > GET /3 HTTP/1.1|host: a|cookie: S=A||\ns2 to 127.0.0.1:82",
            to("A", 81)
        ),
    );
}

#[test]
fn use_server() {
    let lines = |rules: &str| format!("{rules}\ncookie S prefix{SERVERS}");
    let get = |cookie: &str| format!("c1 > GET /x HTTP/1.1|host: a|to: two|cookie: S={cookie}||");
    play(
        "before the cookie, whose prefix goes all the same",
        &lines("use-server two if { path /x }"),
        &format!(
            "{}\ns1 to 127.0.0.1:82\ns1 ok\ns1 < GET /x HTTP/1.1|host: a|to: two|cookie: S=v||\ns1 > HTTP/1.1 204 No Content||\nlog 204 --UN",
            get("A~v")
        ),
    );
    play(
        "unless",
        &lines("use-server two unless { path /x }"),
        &format!("{}\ns1 to 127.0.0.1:81", get("A~v")),
    );
    play(
        "by a name made at run time",
        &lines("use-server %[req.hdr(to)] if TRUE"),
        &format!("{}\ns1 to 127.0.0.1:82", get("x")),
    );
    play(
        "a name that nobody has",
        &lines("use-server %[path] if TRUE\nuse-server two if TRUE"),
        &format!("{}\ns1 to 127.0.0.1:81", get("x")),
    );
    play(
        "one that is down leaves it to the next rule",
        "use-server two if TRUE\nuse-server three if TRUE\nserver one 127.0.0.1:81\nserver two 127.0.0.1:82 disabled\nserver three 127.0.0.1:83 weight 0",
        &format!("{}\ns1 to 127.0.0.1:83", get("x")),
    );
    play(
        "TCP",
        "mode tcp\nuse-server two if { src 10.0.0.1 }\nserver one 127.0.0.1:81\nserver two 127.0.0.1:82",
        "c1 connects\ns1 to 127.0.0.1:82",
    );
    play(
        "a redirect in place of a server",
        "http-after-response set-header x 1\nserver one 127.0.0.1:81 redir http://img.b",
        &format!(
            "{}\ns1 none\nc1 < HTTP/1.1 302 Found|cache-control: no-cache|content-length: 0|location: http://img.b/x|x: 1||\nlog 302 LC--\nc1 > POST / HTTP/1.1|host: a|content-length: 0||\ns1 ok\ns1 <~ POST /",
            get("x")
        ),
    );
}

#[test]
fn rdp_cookies() {
    let servers = "server one 127.0.0.1:81\nserver two 127.0.0.1:82";
    let wait = "mode tcp\ntcp-request inspect-delay 1s\ntcp-request content accept if { req.len gt 20 }\npersist rdp-cookie";
    // Address and port as a terminal server writes them, in the order of little-endian machines.
    let cookie = "c1 > 0123456789aCookie: msts=16777343.20992.0000|";
    for (name, servers, port) in [
        ("found", servers.to_owned(), 82),
        ("of nobody", servers.replace("82", "83"), 81),
        ("down", format!("{servers} disabled"), 81),
        (
            "down, but asked for",
            format!("option persist\n{servers} disabled"),
            82,
        ),
        (
            "not before use-server",
            format!("use-server one if TRUE\n{servers}"),
            81,
        ),
    ] {
        let lines = format!("{wait}\n{servers}");
        play(name, &lines, &format!("{cookie}\ns1 to 127.0.0.1:{port}"));
    }
}

#[test]
fn captured() {
    let lines = "capture cookie a len 5\nlog-format \"%CC %CS %ST\"";
    play(
        "both ways",
        lines,
        "c1 > GET / HTTP/1.1|host: a|cookie: b=1; ab=234; a=5||\ns1 ok\ns1 > HTTP/1.1 204 No Content|set-cookie: b=1|set-cookie: a=6; path=/||\nlog ab=23 a=6 204",
    );
    play(
        "of a refused request",
        &format!("{lines}\nhttp-request deny"),
        "c1 > GET / HTTP/1.1|host: a|cookie: a=1||\nlog a=1 - 403",
    );
}

#[test]
fn a_cacheable_cookie_is_blocked() {
    let lines = "option checkcache";
    let answer = |fields: &str| {
        format!(
            "c1 > GET / HTTP/1.1|host: a||\ns1 ok\ns1 > HTTP/1.1 200 OK|content-length: 0|set-cookie: a=1|{fields}|"
        )
    };
    play(
        "blocked",
        lines,
        &format!("{}\nc1 <~ HTTP/1.1 502 \nlog 502 PH--", answer("etag: x|")),
    );
    play(
        "not cacheable",
        lines,
        &format!(
            "{}\nc1 <~ HTTP/1.1 200 OK",
            answer("cache-control: no-store|")
        ),
    );
}
