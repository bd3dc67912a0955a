//! Stick tables: limits on clients, persistence, and commands that show and change tables (manual
//! §11, management guide §9.3).

use std::io::{Read, Write};
use std::net::TcpStream;

use crate::common;
use crate::common::cli::ask_any;
use crate::common::http::Client;
use crate::common::origin::{Origin, ok};
use common::{DEFAULTS, Folder, Proxy, address, listener};

fn get(front: &std::net::TcpListener, path: &str, fields: &str) -> (u16, String) {
    let mut client = Client::connect(address(front));
    client.send(format!("GET {path} HTTP/1.1\r\nhost: x\r\n{fields}\r\n"));
    let response = client.response().expect("an answer");
    (response.status, response.text())
}

#[test]
fn clients_are_limited_by_what_they_did() {
    let front = listener();
    let config = format!(
        "{DEFAULTS}
frontend fe
    bind \"fd@${{FE}}\"
    stick-table type string len 16 size 10 expire 1h store http_req_cnt,gpc0,http_req_rate(1h)
    http-request track-sc0 req.hdr(x-user)
    http-request sc-inc-gpc0(0) if {{ path /bad }}
    http-request deny deny_status 403 if {{ sc0_get_gpc0 gt 0 }}
    http-request deny deny_status 429 if {{ sc_http_req_rate(0) gt 3 }}
    http-request return status 200 content-type text/plain lf-string \"%[sc0_http_req_cnt]\"
"
    );
    let proxy = Proxy::start(&config, &[("FE", &front)]);
    for count in ["1", "2", "3"] {
        let (status, text) = get(&front, "/", "x-user: ann\r\n");
        assert_eq!((status, &*text), (200, count));
    }
    assert_eq!(get(&front, "/", "x-user: ann\r\n").0, 429);
    assert_eq!(get(&front, "/", "x-user: bob\r\n").0, 200, "another key");
    assert_eq!(get(&front, "/bad", "x-user: bob\r\n").0, 403);
    assert_eq!(get(&front, "/", "x-user: bob\r\n").0, 403, "remembered");
    assert_eq!(
        get(&front, "/", "").1,
        "",
        "without a key nothing is tracked"
    );
    proxy.stop();
}

#[test]
fn clients_stay_with_their_server() {
    let front = listener();
    let [one, two] = ["one", "two"].map(|name| Origin::start(move |_| ok(name)));
    let config = format!(
        "{DEFAULTS}
frontend fe
    bind \"fd@${{FE}}\"
    default_backend be
backend be
    balance roundrobin
    stick-table type string len 16 size 100 expire 1h
    stick on req.hdr(x-user)
    server one {}
    server two {}
",
        one.at, two.at
    );
    let proxy = Proxy::start(&config, &[("FE", &front)]);
    let user = |name: &str| get(&front, "/", &format!("x-user: {name}\r\n")).1;
    let (ann, bob) = (user("ann"), user("bob"));
    assert_ne!(ann, bob, "in turn");
    for _ in 0..5 {
        assert_eq!((user("ann"), user("bob")), (ann.clone(), bob.clone()));
    }
    proxy.stop();
}

/// The lines of `show table` without the parts that differ between runs: the pointer and the time.
fn entries(told: &str) -> Vec<String> {
    let lines = told.lines().filter(|line| line.starts_with("0x"));
    let rest = lines.map(|line| {
        let words = line.split(' ').skip(1);
        let kept: Vec<&str> = words.filter(|word| !word.starts_with("exp=")).collect();
        kept.join(" ")
    });
    let mut entries: Vec<String> = rest.collect();
    entries.sort();
    entries
}

#[test]
fn tables_are_shown_and_changed_by_commands() {
    let folder = Folder::new();
    let (socket, front) = (folder.path("cli.sock"), listener());
    let config = format!(
        "global\n stats socket {} level admin\n{DEFAULTS}
frontend fe
    bind \"fd@${{FE}}\"
    http-request use-service prometheus-exporter if {{ path /metrics }}
    http-request track-sc0 req.hdr(x-user) table users
    http-request return status 200
backend users
    stick-table type string len 16 size 1k expire 1h store http_req_cnt,gpc(2),gpc0_rate(1m)
backend addresses
    stick-table type ip size 5 store conn_cnt
",
        socket.display()
    );
    let proxy = Proxy::start_in(folder, &config, &[("FE", &front)]);
    let ask = |line: &str| ask_any(&socket, line);
    for user in ["ann", "ann", "a b=c"] {
        get(&front, "/", &format!("x-user: {user}\r\n"));
    }
    let all = ask("show table");
    assert!(
        all.contains("# table: users, type: string, size:1024, used:2\n"),
        "{all}"
    );
    assert!(
        all.contains("# table: addresses, type: ip, size:5, used:0\n"),
        "{all}"
    );
    let zero = "gpc0_rate(60000)=0 http_req_cnt";
    let array = "gpc0=0 gpc1=0";
    assert_eq!(
        entries(&ask("show table users")),
        [
            format!("key=a\\ b\\=c use=0 shard=0 {zero}=1 {array}"),
            format!("key=ann use=0 shard=0 {zero}=2 {array}"),
        ]
    );
    let some = |condition: &str| entries(&ask(&format!("show table users {condition}"))).len();
    assert_eq!(some("data.http_req_cnt gt 1"), 1);
    assert_eq!(some("data.http_req_cnt ge 1 data.gpc[1] eq 0"), 2);
    assert_eq!(some("data.gpc eq 0"), 2);
    assert_eq!(some("data.gpc[7] eq 0"), 0);
    assert_eq!(some("key ann"), 1);
    assert_eq!(some("key nobody"), 0);

    assert_eq!(
        ask("set table users key eve data.http_req_cnt 7 data.gpc[1] 3"),
        "\n"
    );
    assert_eq!(
        entries(&ask("show table users key eve")),
        [format!("key=eve use=0 shard=0 {zero}=7 gpc0=0 gpc1=3")]
    );
    assert_eq!(
        ask("set table addresses key 10.0.0.1 data.conn_cnt 2"),
        "\n"
    );
    assert_eq!(
        entries(&ask("show table addresses")),
        ["key=10.0.0.1 use=0 shard=0 conn_cnt=2"]
    );
    let pointer = ask("show table addresses");
    let pointer = pointer.lines().find_map(|line| line.split_once(": key="));
    let (pointer, _) = pointer.expect("an entry");
    assert_eq!(ask(&format!("clear table addresses ptr {pointer}")), "\n");
    assert_eq!(entries(&ask("show table addresses")).len(), 0);

    for (command, told) in [
        ("show table nothing", "No such table\n\n"),
        // Not even the head of the table.
        ("show table users key nobody", "\n"),
        ("show table users key", "Key value expected\n\n"),
        ("show table addresses key x", "Invalid key\n\n"),
        ("show table users ptr 12", "Malformed ptr.\n\n"),
        (
            "set table users key a data.conn_cnt 1",
            "Data type not stored in this table\n\n",
        ),
        (
            "set table users key a data.http_req_cnt",
            "Require a valid integer value to store\n\n",
        ),
        (
            "set table users key a data.gpc1 1",
            "Data type not stored in this table\n\n",
        ),
        (
            "show table users data.gpc1 gt 0",
            "Filter entry #1: Data type not stored in this table\n\n",
        ),
        (
            "set table users key a data.gpc[x] 1",
            "Unknown data type\n\n",
        ),
        (
            "set table users key a data.gpc[1]x 1",
            "Unknown data type\n\n",
        ),
        (
            "set table users key a data.http_req_cnt[0] 1",
            "Unknown data type\n\n",
        ),
        (
            "set table users key a data.gpc[9] 1",
            "index out of range in this data array\n\n",
        ),
        (
            "clear table users data.x eq 1",
            "Filter entry #1: Unknown data type\n\n",
        ),
    ] {
        assert_eq!(ask(command), told, "{command}");
    }
    let metrics = get(&front, "/metrics", "").1;
    assert!(
        metrics.contains("\nhaproxy_sticktable_size{name=\"addresses\",type=\"ip\"} 5\n"),
        "{metrics}"
    );

    assert_eq!(ask("clear table users data.http_req_cnt eq 7"), "\n");
    assert_eq!(some("key eve"), 0);
    assert_eq!(ask("clear table users key ann"), "\n");
    assert_eq!(some("key ann"), 0);
    assert_eq!(ask("clear table users"), "\n");
    assert_eq!(entries(&ask("show table users")).len(), 0);
    proxy.stop();
}

/// `option contstats`: bytes count while they flow, and once.
#[test]
fn bytes_count_while_they_flow() {
    const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2000\r\n\r\n";
    const HALF: usize = 1000;
    let release = listener();
    let at_release = address(&release);
    let origin = Origin::raw(move |mut stream| {
        let _ = stream.read(&mut [0; 1024]);
        let _ = stream.write_all(HEAD.as_bytes());
        let _ = stream.write_all(&[b'x'; HALF]);
        let _ = TcpStream::connect(at_release)
            .expect("the test")
            .read(&mut [0]);
        let _ = stream.write_all(&[b'x'; HALF]);
    });
    let folder = Folder::new();
    let cli = folder.path("cli.sock");
    let (flows, ends) = (listener(), listener());
    let frontend = |name: &str, option: &str| {
        format!(
            "frontend {name}
    bind \"fd@${{{name}}}\"
    option socket-stats
    {option}
    stick-table type ip size 10 expire 1h store bytes_in_cnt,bytes_out_cnt
    tcp-request connection track-sc0 src
    use_backend be-{name}
backend be-{name}
    server s {}
",
            origin.at
        )
    };
    let config = format!(
        "{DEFAULTS}\nglobal\n stats socket {} level admin\n{}{}",
        cli.display(),
        frontend("FLOWS", "option contstats"),
        frontend("ENDS", "")
    );
    let proxy = Proxy::start_in(folder, &config, &[("FLOWS", &flows), ("ENDS", &ends)]);
    let part = (HEAD.len() + HALF).to_string();
    let whole = (HEAD.len() + 2 * HALF).to_string();
    let counted = |name: &str| {
        let mut all = Vec::new();
        for (proxy, kind) in [(name.to_owned(), 9), (format!("be-{name}"), 6)] {
            let stat = ask_any(&cli, &format!("show stat {proxy} {kind} -1"));
            let rows = stat.lines().skip(1).filter(|row| row.contains(','));
            all.extend(rows.map(|row| row.split(',').nth(9).expect("bout").to_owned()));
        }
        let shown = ask_any(&cli, &format!("show table {name}"));
        let bytes = shown.split_once("bytes_out_cnt=").expect("an entry").1;
        all.push(bytes.trim().to_owned());
        all
    };
    for (name, front, early) in [("FLOWS", &flows, &*part), ("ENDS", &ends, "0")] {
        let mut client = Client::connect(address(front));
        client.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
        let _head = client.reader.head().expect("a head");
        while client.reader.rest.len() < HALF {
            let mut more = [0; HALF];
            let count = client.reader.wire.read(&mut more).expect("a part");
            client.reader.rest.extend_from_slice(&more[..count]);
        }
        // Frontend, listener, backend, server and table.
        assert_eq!(counted(name), [early; 5], "{name}");
        drop(release.accept().expect("the origin"));
        let mut left = [0; HALF];
        client.reader.wire.read_exact(&mut left).expect("the rest");
        common::eventually("all is counted once", || {
            (counted(name) == [&*whole; 5]).then_some(())
        });
    }
    proxy.stop();
}

/// Bytes that rules reject count as received, and a service of the process counts as the server of
/// its response: HAProxy 3.5's figures.
#[test]
fn bytes_that_reach_no_server_and_come_from_none_are_counted() {
    let folder = Folder::new();
    let cli = folder.path("cli.sock");
    let (front, tcp) = (listener(), listener());
    let config = format!(
        "{DEFAULTS}
global
    stats socket {} level admin
frontend fe
    bind \"fd@${{FE}}\"
    stick-table type ip size 10 expire 1h store bytes_in_cnt,bytes_out_cnt
    http-request track-sc0 src
    stats uri /stats
    http-request use-service prometheus-exporter if {{ path /metrics }}
frontend tcp
    mode tcp
    bind \"fd@${{TCP}}\"
    stick-table type ip size 10 expire 1h store bytes_in_cnt,bytes_out_cnt
    tcp-request inspect-delay 10s
    tcp-request connection track-sc0 src
    tcp-request content reject if {{ req.len ge 30 }}
",
        cli.display()
    );
    let proxy = Proxy::start_in(folder, &config, &[("FE", &front), ("TCP", &tcp)]);
    let counted = |table: &str, what: &str| {
        let shown = ask_any(&cli, &format!("show table {table}"));
        let value = shown.split_once(&format!("{what}=")).expect("an entry").1;
        let value = value.split_whitespace().next().expect("a number");
        value.parse::<usize>().expect("a number")
    };
    let mut before = 0;
    for path in ["/stats", "/metrics"] {
        let (status, text) = get(&front, path, "");
        assert_eq!(status, 200, "{path}");
        // The head, too.
        let least = before + text.len() + 30;
        before = common::eventually("the response is counted", || {
            let bytes = counted("fe", "bytes_out_cnt");
            (least..least + 300).contains(&bytes).then_some(bytes)
        });
    }
    let mut client = TcpStream::connect(address(&tcp)).expect("a connection");
    client.write_all(&[b'x'; 30]).expect("sent");
    assert!(!matches!(client.read(&mut [0]), Ok(1..)));
    common::eventually("the bytes are counted", || {
        (counted("tcp", "bytes_in_cnt") == 30).then_some(())
    });
    proxy.stop();
}

/// Requests whose heads cannot be used count, their bytes do not, and it is the client's error
/// unless it was too slow: HAProxy 3.5's figures.
#[test]
fn heads_that_cannot_be_used_count_as_requests_without_bytes() {
    const HEAD: &str = "GET / HTTP/1.1\r\nhost: a\r\n";
    const FAILED: &str = "http_req_cnt=1 http_err_cnt=1 bytes_in_cnt=0";
    let folder = Folder::new();
    let cli = folder.path("cli.sock");
    let (front, hasty) = (listener(), listener());
    let config = format!(
        "{DEFAULTS}
global
    stats socket {} level admin
frontend fe
    bind \"fd@${{FE}}\"
    stick-table type ip size 10 expire 1h store http_req_cnt,http_err_cnt,bytes_in_cnt
    tcp-request connection track-sc0 src
    http-request return status 200
frontend hasty
    bind \"fd@${{HASTY}}\"
    timeout http-request 1
    stick-table type ip size 10 expire 1h store http_req_cnt,http_err_cnt,bytes_in_cnt
    tcp-request connection track-sc0 src
    http-request return status 200
",
        cli.display()
    );
    let proxy = Proxy::start_in(folder, &config, &[("FE", &front), ("HASTY", &hasty)]);
    let invalid = format!("{HEAD}no field\r\n\r\n");
    let cases = [
        (
            "fe",
            &front,
            format!("{HEAD}\r\n"),
            false,
            200,
            "http_req_cnt=1 http_err_cnt=0 bytes_in_cnt=27",
        ),
        ("fe", &front, invalid, false, 400, FAILED),
        ("fe", &front, HEAD.to_owned(), true, 400, FAILED),
        ("fe", &front, String::new(), true, 400, FAILED),
        (
            "hasty",
            &hasty,
            HEAD.to_owned(),
            false,
            408,
            "http_req_cnt=1 http_err_cnt=0 bytes_in_cnt=0",
        ),
    ];
    for (table, at, sent, ends, status, counted) in cases {
        let mut client = Client::connect(address(at));
        client.send(&sent);
        if ends {
            let wire = &client.reader.wire;
            wire.shutdown(std::net::Shutdown::Write).expect("its end");
        }
        assert_eq!(
            client.response().expect("an answer").status,
            status,
            "{sent:?}"
        );
        drop(client);
        let shown = common::eventually("it is counted", || {
            let shown = ask_any(&cli, &format!("show table {table}"));
            shown.contains(counted).then_some(shown)
        });
        assert!(shown.contains("used:1"), "{shown}");
        // The entry is in use until the connection is closed.
        common::eventually("it is cleared", || {
            ask_any(&cli, &format!("clear table {table}"));
            let shown = ask_any(&cli, &format!("show table {table}"));
            shown.contains("used:0").then_some(())
        });
    }
    let stat = ask_any(&cli, "show stat fe 1 -1");
    let (names, row) = stat.split_once('\n').expect("two lines");
    let value = |name: &str| {
        let place = names.split(',').position(|one| one == name).expect(name);
        row.split(',').nth(place).expect(name).to_owned()
    };
    assert_eq!(
        (&*value("req_tot"), &*value("bin"), &*value("ereq")),
        ("4", "27", "3"),
        "{stat}"
    );
    proxy.stop();
}
