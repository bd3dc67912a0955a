//! Where connections to servers come from and go to, when the client decides (`usesrc`, servers
//! without an address).

use super::script::play;

/// A request whose client has this address.
fn ask(client: &str, field: &str) -> String {
    format!("{client} > GET / HTTP/1.1|host: a|{field}||")
}

const ANSWER: &str = " > HTTP/1.1 200 OK|content-length: 0||";

#[test]
fn connections_come_from_the_clients_address_and_are_reused_for_it_alone() {
    let lines = "http-reuse always\nsource 10.9.9.9 usesrc clientip\nhttp-request set-src hdr(x)";
    let (one, other) = (ask("c1", "x: 10.0.0.1"), ask("c1", "x: 10.0.0.2"));
    let (two, done) = (ask("c2", "x: 10.0.0.1"), "drain c1");
    play(
        "clientip",
        lines,
        &format!(
            "{one}\ns1 from 10.0.0.1:0\ns1 ok\ns1{ANSWER}\n{other}\ns2 from 10.0.0.2:0\ns2 ok\ns2{ANSWER}\n{done}
             {two}\ns1 <~ GET\ns1{ANSWER}\ns3 none\nc2 <~ HTTP/1.1 200\n
             c3 > GET / HTTP/1.1|host: a|x: 2001:db8::1||\ns3 from [2001:db8::1]:0"
        ),
    );
}

#[test]
fn client_brings_its_port() {
    let lines = "http-reuse always\nsource 0.0.0.0 usesrc client\nhttp-request set-src hdr(x)\n\
                 http-request set-src-port hdr(p)";
    let (one, other) = (
        ask("c1", "x: 10.0.0.1|p: 7001"),
        ask("c2", "x: 10.0.0.1|p: 7002"),
    );
    play(
        "client",
        lines,
        &format!("{one}\ns1 from 10.0.0.1:7001\ns1 ok\ns1{ANSWER}\n{other}\ns2 from 10.0.0.1:7002"),
    );
}

#[test]
fn a_header_has_the_address_and_without_it_the_proxy_has_its_own() {
    let lines = "http-reuse always\nserver one 127.0.0.1:81 source 10.9.9.9 usesrc hdr_ip(x-forwarded-for,-2)";
    let (one, none) = (
        ask("c1", "x-forwarded-for: 10.0.0.1, 10.0.0.2"),
        ask("c2", "x-forwarded-for: 10.0.0.1"),
    );
    let (bad, again) = (
        ask("c3", "x-forwarded-for: unknown, 10.0.0.2"),
        ask("c1", "x-forwarded-for: 10.0.0.1|x-forwarded-for: 10.0.0.5"),
    );
    play(
        "hdr_ip",
        lines,
        &format!(
            "{one}\ns1 from 10.0.0.1:0\ns1 ok\ns1{ANSWER}\n{none}\ns2 from -\ns2 ok\ns2{ANSWER}
             {bad}\ns3 none\ns2{ANSWER}\n{again}\ns1{ANSWER}\ns3 none"
        ),
    );
}

#[test]
fn an_address_that_is_written_is_every_clients() {
    let lines = "http-reuse always\nsource 0.0.0.0 usesrc 10.7.7.7:8000 interface lo";
    let (one, two) = (ask("c1", "a: b"), ask("c2", "a: b"));
    play(
        "usesrc addr",
        lines,
        &format!("{one}\ns1 from 10.7.7.7:8000\ns1 ok\ns1{ANSWER}\n{two}\ns1{ANSWER}\ns2 none"),
    );
}

#[test]
fn a_server_without_an_address_is_where_the_client_wanted() {
    for (server, port) in [("0.0.0.0", 83), ("0.0.0.0:+10", 93), ("0.0.0.0:90", 90)] {
        let lines = format!(
            "http-reuse always\nhttp-request set-dst hdr(to)\nhttp-request set-dst-port int(83)\n\
             server any {server}"
        );
        let (one, other) = (ask("c1", "to: 10.0.0.1"), ask("c1", "to: 10.0.0.2"));
        play(
            server,
            &lines,
            &format!(
                "{one}\ns1 to 10.0.0.1:{port}\ns1 ok\ns1{ANSWER}\n{other}\ns2 to 10.0.0.2:{port}\ns2 ok\ns2{ANSWER}
                 {one}\ns1{ANSWER}\ns3 none"
            ),
        );
    }
}

#[test]
fn a_client_keeps_as_many_connections_for_itself_as_it_may() {
    let one = ask("c1", "to: 10.0.0.1");
    let other = ask("c1", "to: 10.0.0.2");
    // The second connection is kept beside the first one, or closed.
    for (max, third) in [
        (
            "",
            format!("s1 open\ns2 open\n{one}\ns1{ANSWER}\n{other}\ns2{ANSWER}\ns3 none"),
        ),
        (
            "max-session-srv-conns 1\n",
            format!("s1 open\ns2 end\n{one}\ns1{ANSWER}\ns3 none"),
        ),
        ("max-session-srv-conns 0\n", "s1 end\ns2 end".to_owned()),
    ] {
        let lines =
            format!("{max}http-reuse never\nhttp-request set-dst hdr(to)\nserver any 0.0.0.0:81");
        let script = format!(
            "{one}\ns1 ok\ns1{ANSWER}\n{other}\ns2 to 10.0.0.2:81\ns2 ok\ns2{ANSWER}\n{third}\nc1 fin"
        );
        play(max, &lines, &script);
    }
}

#[test]
fn a_fast_connection_opens_only_with_data_at_hand() {
    let fast = "server one 127.0.0.1:81 tfo";
    let one = ask("c1", "a: b");
    play(
        "http",
        fast,
        &format!("{one}\ns1 fast\ns1 ok\ns1 <~ GET\ns1{ANSWER}\nc1 fin"),
    );
    play(
        "off",
        "server one 127.0.0.1:81 tfo no-tfo",
        &format!("{one}\ns1 slow"),
    );
    play(
        "again",
        &format!("retries 1\n{fast}"),
        &format!("{one}\ns1 fast\ns1 refuse\nwait 1000\ns2 slow"),
    );
    // The server may be the one that speaks first.
    play(
        "tcp",
        &format!("mode tcp\nno log\n{fast}"),
        "c1 open\ns1 slow\ns1 ok\ns1 > 220 hello|\nc1 < 220 hello|",
    );
    play(
        "header",
        &format!("mode tcp\nno log\n{fast} send-proxy"),
        "c1 open\ns1 fast\ns1 ok\ns1 <~ PROXY TCP4",
    );
}

#[test]
fn ports_of_a_range_are_used_in_turn() {
    let get = |client: u32, server: u32, port: u32| {
        format!(
            "c{client} > GET / HTTP/1.1|host: a||\ns{server} own 10.0.0.1:{port}\ns{server} ok\ns{server} > HTTP/1.1 204 No Content|connection: close||\nlog 204 ----\n"
        )
    };
    let script: String = [
        get(1, 1, 1000),
        get(2, 2, 1001),
        get(3, 3, 1002),
        get(4, 4, 1000),
    ]
    .concat();
    play(
        "in turn",
        "source 10.0.0.1:1000-1002\nserver one 127.0.0.1:81",
        &script,
    );
    play(
        "of the server",
        "server one 127.0.0.1:81 source 10.0.0.1:1000-1002",
        &script,
    );
}
