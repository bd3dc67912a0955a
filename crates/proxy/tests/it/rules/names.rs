//! Header names as peers want them, and trailers.

use super::script::play;

#[test]
fn other_characters() {
    let get = "c1 > GET / HTTP/1.1|host: a|x_y: 1|x-z: 2|a.b: 3||";
    let sent = |fields: &str| format!("{get}\ns1 ok\ns1 < GET / HTTP/1.1|host: a|{fields}|");
    let option = |policy: &str| format!("option http-restrict-req-hdr-names {policy}");
    play(
        "preserved",
        &option("preserve"),
        &sent("x_y: 1|x-z: 2|a.b: 3|"),
    );
    play("deleted", &option("delete"), &sent("x-z: 2|"));
    play(
        "rejected",
        &option("reject"),
        &format!("{get}\nc1 <~ HTTP/1.1 403 Forbidden|\nlog 403 PR--\ns1 none"),
    );
    play(
        "before the backend, and after its rules",
        &format!(
            "http-request set-header u_v 1\ndefault_backend app\nbackend app\n{}\nhttp-request set-header x %[req.hdr(x_y)]",
            option("delete")
        ),
        &sent("x-z: 2|x: 1|"),
    );
}

#[test]
fn the_servers_name() {
    play(
        "in place of what the client says, and after a retry that of the other one",
        "http-send-name-header X-Server\nretries 2\nretry-on 503\noption redispatch\nserver one 127.0.0.1:81\nserver two 127.0.0.1:82",
        "c1 > GET / HTTP/1.1|host: a|x-server: me||\ns1 ok\ns1 < GET / HTTP/1.1|host: a|x-server: one||\ns1 > HTTP/1.1 503 No|content-length: 0||\ns2 ok\ns2 < GET / HTTP/1.1|host: a|x-server: two||",
    );
}

#[test]
fn another_case() {
    // `play` puts the lines into a section; `global` may stand after it.
    let names = "global\nh1-case-adjust x-a X-a\nh1-case-adjust content-length Content-LENGTH\nbackend last";
    let of = |options: &str| format!("{options}\nserver one 127.0.0.1:81\n{names}");
    let get = "c1 > GET / HTTP/1.1|host: a|x-a: x-a: 1|x-ab: 2||\ns1 ok";
    let answer = "s1 > HTTP/1.1 200 OK|x-a: 1|content-length: 10||x-a: 1||";
    play(
        "to servers",
        &of("option h1-case-adjust-bogus-server"),
        &format!(
            "{get}\ns1 < GET / HTTP/1.1|host: a|X-a: x-a: 1|x-ab: 2||\n{answer}\nc1 < HTTP/1.1 200 OK|x-a: 1|content-length: 10||x-a: 1||"
        ),
    );
    play(
        "to clients",
        &of("option h1-case-adjust-bogus-client"),
        &format!(
            "{get}\ns1 < GET / HTTP/1.1|host: a|x-a: x-a: 1|x-ab: 2||\n{answer}\nc1 < HTTP/1.1 200 OK|X-a: 1|Content-LENGTH: 10||x-a: 1||"
        ),
    );
    play(
        "in our own answers",
        &of("option h1-case-adjust-bogus-client\nhttp-request return status 200"),
        "c1 > GET / HTTP/1.1|host: a||\nc1 < HTTP/1.1 200 OK|Content-LENGTH: 0||",
    );
}

#[test]
fn trailers() {
    let post = "c1 > POST / HTTP/1.1|host: a|transfer-encoding: chunked||1|a|0|t: 1||\ns1 ok";
    let answer = "s1 > HTTP/1.1 200 OK|transfer-encoding: chunked||1|a|0|t: 1||";
    let sent = "s1 < POST / HTTP/1.1|host: a|transfer-encoding: chunked||1|a|0|";
    let got = "c1 < HTTP/1.1 200 OK|transfer-encoding: chunked||1|a|0|";
    let cases = [
        ("", "t: 1|", "t: 1|"),
        ("option http-drop-request-trailers", "", "t: 1|"),
        ("option http-drop-response-trailers", "t: 1|", ""),
    ];
    for (option, up, down) in cases {
        play(
            option,
            option,
            &format!("{post}\n{sent}{up}|\n{answer}\n{got}{down}|\nlog 200 ----"),
        );
    }
}
