//! The program between real clients and real servers.

use crate::common;

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::mpsc::Receiver;
use std::time::Duration;

use common::http::{Client, Reader, Wire};
use common::origin::{Origin, ok, on_unix};
use common::{
    DEADLINE, DEFAULTS, Folder, Proxy, accept, address, join, listener, spawn, uninterrupted,
};

/// A body that reveals misplaced bytes.
fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|index| (index * 31 % 251) as u8).collect()
}

fn one_server(extra: &str, origin: &Origin) -> String {
    let at = origin.at;
    format!("{DEFAULTS}{extra}\nlisten l\n bind \"fd@${{FRONT}}\"\n server s {at}\n")
}

#[test]
fn connections_are_kept_on_both_sides() {
    let origin = Origin::echo();
    let front = listener();
    let proxy = Proxy::start(&one_server("", &origin), &[("FRONT", &front)]);
    let mut client = Client::connect(address(&front));
    for number in 0..20 {
        let answer = client.get(&format!("/{number}"));
        assert_eq!(answer.line, "HTTP/1.1 200 OK");
        assert_eq!(
            answer.text(),
            format!("GET /{number} HTTP/1.1\nhost: test\nbody 0\n")
        );
    }
    // Pipelined requests are answered in order.
    client.send("GET /a HTTP/1.1\r\nhost: x\r\n\r\nGET /b HTTP/1.1\r\nhost: x\r\n\r\n");
    assert!(client.response().unwrap().text().starts_with("GET /a "));
    assert!(client.response().unwrap().text().starts_with("GET /b "));
    proxy.stop();
}

#[test]
fn servers_see_an_address_that_is_not_the_proxys() {
    let foreign: SocketAddr = "192.0.2.7:0".parse().unwrap();
    let socket = net::sys::stream_socket(&net::Addr::Inet(foreign)).unwrap();
    if net::sys::set_transparent(socket.as_raw_fd(), false).is_err() {
        return common::skipped("this process may not use foreign addresses");
    }
    let (front, origin) = (listener(), listener());
    let at = address(&origin);
    let config = format!(
        "{DEFAULTS} retries 0\nfrontend f\n bind \"fd@${{FRONT}}\"\n http-request set-src hdr(from)\n use_backend %[path,field(2,/)]\n\
         backend clientip\n source 127.0.0.1 usesrc clientip\n server s {at}\n\
         backend client\n http-request set-src-port hdr(port)\n server s {at} source 127.0.0.1 usesrc client\n\
         backend none\n source 127.0.0.4\n server s {at}\n"
    );
    let proxy = Proxy::start(&config, &[("FRONT", &front)]);
    let reserved = common::Port::reserve();
    let port = reserved.number;
    for (path, ip, is_port) in [
        ("clientip", "127.0.0.2", false),
        ("client", "127.0.0.3", true),
        ("none", "127.0.0.4", false),
    ] {
        let mut client = Client::connect(address(&front));
        client.send(format!(
            "GET /{path} HTTP/1.1\r\nhost: x\r\nfrom: {ip}\r\nport: {port}\r\n\r\n"
        ));
        let seen = accept(&origin, path).peer_addr().unwrap();
        assert_eq!(seen.ip().to_string(), ip, "{path}");
        assert_eq!(seen.port() == port, is_port, "{path}: {seen}");
    }
    proxy.stop();
}

#[test]
fn fast_connections_carry_requests_and_servers_that_speak_first() {
    let origin = Origin::echo();
    let greeter = Origin::raw(|mut stream| {
        let _ = stream.write_all(b"220 hello\r\n");
    });
    let (front, raw) = (listener(), listener());
    let config = format!(
        "{DEFAULTS}\nfrontend f\n bind \"fd@${{FRONT}}\"\n default_backend b\nbackend b\n http-reuse never\n server s {} tfo\n\
         listen l\n mode tcp\n bind \"fd@${{RAW}}\"\n server s {} tfo\n",
        origin.at, greeter.at
    );
    let proxy = Proxy::start(&config, &[("FRONT", &front), ("RAW", &raw)]);
    // From the second connection on, the system may know the server's TCP Fast Open cookie.
    for _ in 0..3 {
        let answer = Client::connect(address(&front)).get("/x");
        assert_eq!(answer.text(), "GET /x HTTP/1.1\nhost: test\nbody 0\n");
        let mut greeted = Reader::over(TcpStream::connect(address(&raw)).unwrap());
        assert_eq!(greeted.everything(), b"220 hello\r\n");
    }
    proxy.stop();
}

/// Each of their first requests has a separate connection (`http-reuse safe`), which no other
/// client may use.
#[test]
fn clients_that_ask_once_leave_few_connections_behind() {
    const CLIENTS: usize = 100;
    const LEFT_MAX: u32 = 16;
    let origin = Origin::echo();
    let front = listener();
    let folder = Folder::new();
    let cli = folder.path("cli.sock");
    let config = format!(
        "global\n stats socket {}\n{}",
        cli.display(),
        one_server("", &origin)
    );
    let proxy = Proxy::start_in(folder, &config, &[("FRONT", &front)]);
    for _ in 0..CLIENTS {
        assert_eq!(Client::connect(address(&front)).get("/").status, 200);
    }
    let table = common::cli::ask_any(&cli, "show servers conn");
    let place = table
        .lines()
        .next()
        .expect("a head")
        .trim_start_matches("# ")
        .split(' ')
        .position(|name| name == "idle_cur");
    let row = table.lines().find(|line| line.starts_with("l/s "));
    let mut fields = row.unwrap_or_else(|| panic!("{table}")).split(' ');
    let idle = fields.nth(place.expect("a column")).expect("its field");
    let idle: u32 = idle.parse().expect(&table);
    assert!((1..=LEFT_MAX).contains(&idle), "{table}");
    proxy.stop();
}

#[test]
fn segments_are_signed_where_a_key_is_set() {
    let (front, signed) = (listener(), listener());
    let at = address(&signed);
    if net::sys::set_md5_key(signed.as_raw_fd(), &net::Addr::Inet(at), b"x").is_err() {
        return common::skipped("this kernel signs no segments");
    }
    let config = format!(
        "{DEFAULTS} timeout connect 300ms\n retries 0\nfrontend f\n bind \"fd@${{FRONT}}\"\n use_backend %[path,field(2,/)]\n\
         backend right\n server s {at} tcp-md5sig secret\nbackend wrong\n server s {at} tcp-md5sig other\n\
         backend none\n server s {at}\n\
         frontend signed\n bind \"fd@${{SIGNED}}\" tcp-md5sig secret\n http-request return status 200\n"
    );
    let proxy = Proxy::start(&config, &[("FRONT", &front), ("SIGNED", &signed)]);
    let mut client = Client::connect(address(&front));
    assert_eq!(client.get("/right").status, 200);
    assert_eq!(client.get("/wrong").status, 503);
    assert_eq!(client.get("/none").status, 503);
    proxy.stop();
}

/// A SOCKS4 proxy that connects one client to this origin and sends its answer byte by byte.
/// Returns the client's request, and its further bytes up to the end of a line.
fn socks4_proxy(
    answer: u8,
    origin: Option<std::net::SocketAddr>,
) -> (TcpListener, Receiver<Asked>) {
    let proxy = listener();
    let own = proxy.try_clone().unwrap();
    let asked = spawn(move || {
        let mut client = accept(&own, "a client of the SOCKS4 proxy");
        let mut request = [0; 16];
        client.read_exact(&mut request).unwrap();
        client.set_nodelay(true).unwrap();
        for byte in [0, answer, 1, 2, 3, 4, 5, 6] {
            client.write_all(&[byte]).unwrap();
        }
        let mut line = Vec::new();
        let Some(origin) = origin else {
            let _ = client.read_to_end(&mut line);
            return (request, line);
        };
        let mut byte = [0];
        while !line.ends_with(b"\r\n") && client.read(&mut byte).unwrap() > 0 {
            line.push(byte[0]);
        }
        let mut server = TcpStream::connect(origin).unwrap();
        let (mut from, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
        spawn(move || std::io::copy(&mut from, &mut to));
        spawn(move || std::io::copy(&mut server, &mut client));
        (request, line)
    });
    (proxy, asked)
}

type Asked = ([u8; 16], Vec<u8>);

#[test]
fn a_socks4_proxy_leads_to_the_server() {
    let origin = Origin::echo();
    let front = listener();
    let (socks, asked) = socks4_proxy(90, Some(origin.at));
    let via = address(&socks);
    let config = format!(
        "{DEFAULTS}listen l\n bind \"fd@${{FRONT}}\"\n server s 10.1.2.3:258 socks4 {via} send-proxy\n"
    );
    let proxy = Proxy::start(&config, &[("FRONT", &front)]);
    let mut client = Client::connect(address(&front));
    assert_eq!(
        client.get("/through").text().lines().next(),
        Some("GET /through HTTP/1.1")
    );
    assert_eq!(client.get("/again").status, 200);
    let (request, line) = join(&asked, "the SOCKS4 proxy");
    assert_eq!(request, *b"\x04\x01\x01\x02\x0a\x01\x02\x03HAProxy\0");
    assert!(line.starts_with(b"PROXY TCP4 127.0.0.1 "), "{line:?}");
    proxy.stop();
}

#[test]
fn a_socks4_proxy_that_refuses_is_no_server() {
    let front = listener();
    let (socks, asked) = socks4_proxy(91, None);
    let via = address(&socks);
    let config = format!(
        "{DEFAULTS}listen l\n bind \"fd@${{FRONT}}\"\n retries 0\n server s 10.1.2.3:80 socks4 {via}\n \
         http-after-response set-header why %[bc_err_name]\n"
    );
    let proxy = Proxy::start(&config, &[("FRONT", &front)]);
    let answer = Client::connect(address(&front)).get("/");
    assert_eq!(
        (answer.status, answer.field("why")),
        (503, Some("SOCKS4_DENY"))
    );
    assert_eq!(join(&asked, "the SOCKS4 proxy").1, b"");
    proxy.stop();
}

/// Multipath TCP (RFC 8684) to a server, if the kernel supports it.
#[test]
fn several_paths_for_one_connection() {
    let any = net::Addr::Inet(([127, 0, 0, 1], 0).into());
    let Ok(back) = net::sys::socket_of(&any, libc::IPPROTO_MPTCP) else {
        return common::skipped("this kernel has no TCP with several paths");
    };
    net::sys::bind(&back, &any).unwrap();
    net::sys::listen(back.as_raw_fd(), 1).unwrap();
    let back = TcpListener::from(back);
    back.set_nonblocking(false).unwrap();
    let at = address(&back);
    let front = listener();
    let config = format!("{DEFAULTS}listen l\n bind \"fd@${{FRONT}}\"\n server s mptcp@{at}\n");
    let server = spawn(move || {
        let stream = accept(&back, "the proxy");
        let info = net::sys::option(stream.as_raw_fd(), libc::SOL_SOCKET, libc::SO_PROTOCOL);
        let mut server = Reader::over(stream);
        server.head().unwrap();
        server.wire.write_all(b"HTTP/1.1 204 No\r\n\r\n").unwrap();
        info.unwrap()
    });
    let proxy = Proxy::start(&config, &[("FRONT", &front)]);
    let mut client = Client::connect(address(&front));
    assert_eq!(client.get("/").status, 204);
    assert_eq!(join(&server, "the answer"), libc::IPPROTO_MPTCP);
    proxy.stop();
}

#[test]
fn every_kind_of_address_listens_and_is_reached() {
    let folder = Folder::new();
    let path = folder.path("front.sock").display().to_string();
    let back = folder.path("back.sock").display().to_string();
    let name = format!("spangate-test-{}", std::process::id());
    on_unix(UnixListener::bind(&back).unwrap(), |_| ok("unix"));
    let abstract_addr = |end: &str| {
        std::os::unix::net::SocketAddr::from_abstract_name(format!("{name}-{end}")).unwrap()
    };
    on_unix(
        UnixListener::bind_addr(&abstract_addr("back")).unwrap(),
        |_| ok("abstract"),
    );
    let six = TcpListener::bind("[::1]:0").expect("IPv6 on the loopback");
    let origin_six = TcpListener::bind("[::1]:0").expect("IPv6 on the loopback");
    let at_six = address(&origin_six);
    let served = spawn(move || {
        let (mut stream, _) = origin_six.accept().unwrap();
        let mut reader = Reader::over(stream.try_clone().unwrap());
        reader.head().unwrap();
        stream.write_all(&ok("six")).unwrap();
    });
    let front = listener();
    let config = format!(
        "{DEFAULTS}
frontend f
    bind \"fd@${{FRONT}}\"
    bind \"fd@${{SIX}}\"
    bind unix@{path} mode 600
    bind abnsz@{name}-front
    use_backend %[path,field(2,/)]
backend unix
    server s unix@{back}
backend abns
    server s abnsz@{name}-back
backend six
    server s {at_six}
"
    );
    let proxy = Proxy::start_in(folder, &config, &[("FRONT", &front), ("SIX", &six)]);
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&path).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(Client::connect(address(&front)).get("/unix").text(), "unix");
    assert_eq!(
        Client::connect(address(&six)).get("/abns").text(),
        "abstract"
    );
    assert_eq!(
        Client::over(UnixStream::connect(&path).unwrap())
            .get("/six")
            .text(),
        "six"
    );
    let stream = UnixStream::connect_addr(&abstract_addr("front")).unwrap();
    assert_eq!(Client::over(stream).get("/unix").text(), "unix");
    join(&served, "the server");
    proxy.stop();
}

#[test]
fn unix_sockets_have_the_rights_that_are_asked_for() {
    use std::os::unix::fs::MetadataExt;
    let folder = Folder::new();
    let (plain, own) = (folder.path("plain.sock"), folder.path("own.sock"));
    let me = std::fs::metadata(folder.root()).unwrap();
    let config = format!(
        "global\n unix-bind mode 660 uid {} gid {}\n{DEFAULTS}\nfrontend f\n bind unix@{}\n bind unix@{} mode 600\n http-request return status 200\n",
        me.uid(),
        me.gid(),
        plain.display(),
        own.display()
    );
    let proxy = Proxy::start_in(folder, &config, &[]);
    for (path, mode) in [(&plain, 0o660), (&own, 0o600)] {
        let socket = std::fs::metadata(path).unwrap();
        assert_eq!(
            (socket.mode() & 0o777, socket.uid(), socket.gid()),
            (mode, me.uid(), me.gid())
        );
    }
    proxy.stop();
}

#[test]
fn tcp_passes_each_end_on_by_itself() {
    let origin = Origin::raw(|mut stream| {
        // All bytes of the client until its end, then the answer, then our end.
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        all.reverse();
        stream.write_all(&all).unwrap();
        stream.close_write();
    });
    let front = listener();
    let proxy = Proxy::start(&one_server(" mode tcp\n", &origin), &[("FRONT", &front)]);
    let mut client = Client::connect(address(&front));
    let bytes = pattern(300_000);
    client.send(&bytes);
    client.reader.wire.shutdown(Shutdown::Write).unwrap();
    let mut back = client.reader.everything();
    back.reverse();
    assert!(back == bytes, "{} bytes came back", back.len());
    proxy.stop();
}

#[test]
fn a_computed_name_leads_from_tcp_to_http_but_not_back() {
    let origin = Origin::echo();
    let (tcp, web) = (listener(), listener());
    let config = format!(
        "{DEFAULTS}\nfrontend t\n mode tcp\n bind \"fd@${{TCP}}\"\n use_backend %[str(web)]\nfrontend w\n bind \"fd@${{WEB}}\"\n \
         use_backend %[str(raw)]\n default_backend web\nbackend web\n http-response set-header x-backend web\n server s {0}\nbackend raw\n \
         mode tcp\n server s {0}\n",
        origin.at
    );
    let proxy = Proxy::start(&config, &[("TCP", &tcp), ("WEB", &web)]);
    for front in [&tcp, &web] {
        let mut client = Client::connect(address(front));
        for path in ["/first", "/second"] {
            assert_eq!(client.get(path).field("x-backend"), Some("web"));
        }
    }
    let mut client = Client::connect(address(&tcp));
    client.send("no HTTP at all\r\n\r\n");
    assert_eq!(client.response().unwrap().status, 400);
    proxy.stop();
}

#[test]
fn tcp_responses_are_inspected() {
    let origin = Origin::raw(|mut stream| {
        let mut name = [0; 4];
        stream.read_exact(&mut name).unwrap();
        stream.write_all(&name[..1]).unwrap();
        stream.write_all(&name[1..]).unwrap();
        let _ = uninterrupted(|| stream.read(&mut name));
    });
    let extra = " mode tcp\n tcp-response inspect-delay 10s\n";
    let config = format!(
        "{DEFAULTS}\nlisten l\n{extra} bind \"fd@${{FRONT}}\"\n tcp-response content accept if {{ res.payload(0,4) -m str good }}\n \
         tcp-response content reject if {{ res.payload(0,4) -m found }}\n server s {}\n",
        origin.at
    );
    let front = listener();
    let proxy = Proxy::start(&config, &[("FRONT", &front)]);
    let mut client = Client::connect(address(&front));
    client.send("good");
    assert_eq!(client.reader.exactly(4).unwrap(), b"good");
    let mut client = Client::connect(address(&front));
    client.send("evil");
    assert_eq!(client.reader.everything(), b"");
    proxy.stop();
}

/// A log line with normalised times and ports.
fn plain(line: &str) -> String {
    let mut out = String::new();
    let mut digits = String::new();
    for letter in line.chars().chain(['\0']) {
        if letter.is_ascii_digit() {
            digits.push(letter);
            continue;
        }
        // Ports and process numbers are replaced; short numbers stay.
        out.push_str(if digits.len() > 3 { "N" } else { &digits });
        digits.clear();
        out.push(letter);
    }
    out.trim_end_matches(['\0', '\n']).to_owned()
}

/// Replaces the date in brackets and the timers between slashes in field `at` by `T`.
fn without_times(line: &str, at: usize) -> String {
    let mut words: Vec<String> = line.split(' ').map(str::to_owned).collect();
    for word in &mut words {
        if word.starts_with('[') && word.ends_with(']') && word.contains('/') {
            *word = "[T]".into();
        }
    }
    words[at] = words[at]
        .split('/')
        .map(|_| "t")
        .collect::<Vec<_>>()
        .join("/");
    words.join(" ")
}

#[test]
fn log_lines_are_whole() {
    let origin = Origin::echo();
    let (front, tcp) = (listener(), listener());
    let sink = UdpSocket::bind("127.0.0.1:0").unwrap();
    sink.set_read_timeout(Some(DEADLINE)).unwrap();
    let to = sink.local_addr().unwrap();
    let config = format!(
        "{DEFAULTS}
    log {to} format rfc3164 local3
    log stdout format raw local0
frontend web
    bind \"fd@${{FRONT}}\"
    option httplog
    capture request header host len 8
    http-response capture res.hdr(content-length) id 0
    declare capture response len 4
    http-request capture path len 3
    default_backend back
backend back
    server one {at}
frontend raw
    mode tcp
    option tcplog
    bind \"fd@${{TCP}}\"
    default_backend plain
backend plain
    mode tcp
    server two {at}
",
        at = origin.at
    )
    .replace("    http-response capture res.hdr(content-length) id 0\n    declare capture response len 4\n", "    declare capture response len 4\n    http-response capture res.hdr(content-length) id 0\n");
    let proxy = Proxy::start(&config, &[("FRONT", &front), ("TCP", &tcp)]);
    let receive = || {
        let mut buffer = [0; 4096];
        let count = uninterrupted(|| sink.recv(&mut buffer)).expect("a log line");
        String::from_utf8_lossy(&buffer[..count]).into_owned()
    };
    let mut client = Client::connect(address(&front));
    client.get("/path?query");
    let line = receive();
    assert!(line.ends_with('\n'));
    let (head, text) = line.split_once("]: ").expect("a syslog header");
    // <priority>Mmm dd hh:mm:ss host tag[pid
    assert!(
        head.starts_with("<158>") && head.contains(" localhost haproxy["),
        "{head}"
    );
    let web = "127.0.0.1:N [T] web back/one t/t/t/t/t 200 82 - - ---- 1/1/0/0/0 0/0 {test|/pa} {43} \"GET /path?query HTTP/1.1\"";
    assert_eq!(without_times(&plain(text), 4), web);
    let mut client = Client::connect(address(&tcp));
    client.send("GET /x HTTP/1.1\r\nconnection: close\r\n\r\n");
    client.reader.everything();
    drop(client);
    let line = receive();
    let (_, text) = line.split_once("]: ").expect("a syslog header");
    let raw = "127.0.0.1:N [T] raw plain/two t/t/t 80 -- 2/1/0/0/0 0/0";
    assert_eq!(without_times(&plain(text), 4), raw);
    let printed = proxy.stop();
    let lines: Vec<String> = printed
        .lines()
        .map(|line| without_times(&plain(line), 4))
        .collect();
    assert_eq!(lines, [web, raw]);
}

#[test]
fn an_upgrade_becomes_a_tunnel() {
    let origin = Origin::raw(|stream| {
        let mut reader = Reader::over(stream);
        let head = reader.head().unwrap();
        assert_eq!(head.field("upgrade"), Some("websocket"));
        let answer = "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\nhello";
        reader.wire.write_all(answer.as_bytes()).unwrap();
        while let Some(byte) = reader.exactly(1) {
            reader.wire.write_all(&byte).unwrap();
        }
    });
    let front = listener();
    let proxy = Proxy::start(&one_server("", &origin), &[("FRONT", &front)]);
    let mut client = Client::connect(address(&front));
    client.send("GET /chat HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\nfirst");
    let head = client.reader.head().unwrap();
    assert_eq!(
        (head.status, head.field("upgrade")),
        (101, Some("websocket"))
    );
    assert_eq!(client.reader.exactly(10).unwrap(), b"hellofirst");
    client.send("more");
    assert_eq!(client.reader.exactly(4).unwrap(), b"more");
    client.reader.wire.close_write();
    assert!(client.is_closed());
    proxy.stop();
}

#[test]
fn connect_becomes_a_tunnel() {
    let origin = Origin::raw(|stream| {
        let mut reader = Reader::over(stream);
        let head = reader.head().unwrap();
        assert_eq!(head.line, "CONNECT host:443 HTTP/1.1");
        reader.wire.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
        while let Some(byte) = reader.exactly(1) {
            reader.wire.write_all(&byte).unwrap();
        }
    });
    let front = listener();
    let proxy = Proxy::start(&one_server("", &origin), &[("FRONT", &front)]);
    let mut client = Client::connect(address(&front));
    client.send("CONNECT host:443 HTTP/1.1\r\nhost: host:443\r\n\r\n");
    assert_eq!(client.reader.head().unwrap().status, 200);
    client.send("through");
    assert_eq!(client.reader.exactly(7).unwrap(), b"through");
    proxy.stop();
}

#[test]
fn the_proxy_protocol_carries_the_client_through_a_chain() {
    let origin = Origin::echo();
    for version in [
        "send-proxy",
        "send-proxy-v2",
        "send-proxy-v2 proxy-v2-options crc32c,unique-id",
    ] {
        let (front, inner) = (listener(), listener());
        let config = format!(
            "{DEFAULTS}
frontend outer
    bind \"fd@${{FRONT}}\" accept-proxy
    unique-id-format id-%ci
    default_backend chain
backend chain
    server s {at} {version}
frontend inner
    bind \"fd@${{INNER}}\" accept-proxy
    http-request set-header x-seen %[src]:%[src_port]>%[dst]:%[dst_port]
    http-request set-header x-id %[fc_pp_unique_id]
    default_backend origin
backend origin
    server s {origin}
",
            at = address(&inner),
            origin = origin.at
        );
        let proxy = Proxy::start(&config, &[("FRONT", &front), ("INNER", &inner)]);
        let mut client = Client::connect(address(&front));
        client.send("PROXY TCP4 1.2.3.4 5.6.7.8 1111 80\r\nGET / HTTP/1.1\r\nhost: x\r\n\r\n");
        let text = client.response().expect("an answer").text();
        assert!(
            text.contains("x-seen: 1.2.3.4:1111>5.6.7.8:80\n"),
            "{version}: {text}"
        );
        assert_eq!(
            text.contains("x-id: id-1.2.3.4\n"),
            version.contains("unique-id"),
            "{version}: {text}"
        );
        let mut wrong = Client::connect(address(&front));
        wrong.send("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
        assert!(wrong.is_closed(), "a client without the header is closed");
        proxy.stop();
    }
}

#[test]
fn error_pages_are_the_configured_ones() {
    let folder = Folder::new();
    let page = folder.write(
        "503.http",
        "HTTP/1.1 503 Busy\r\ncache-control: no-store\r\ncontent-type: text/plain\r\n\r\nlater\n",
    );
    let empty = folder.write("403.http", "");
    let front = listener();
    let config = format!(
        "{DEFAULTS} errorfile 503 {page}\n errorfile 403 {empty}\n errorloc 404 http://elsewhere/\nfrontend f\n bind \"fd@${{FRONT}}\"\n http-request deny deny_status 403 if {{ path /no }}\n \
         http-request deny deny_status 404 if {{ path /gone }}\n http-request deny deny_status 429 if {{ path /many }}\n default_backend none\nbackend none\n"
    );
    let proxy = Proxy::start_in(folder, &config, &[("FRONT", &front)]);
    let mut client = Client::connect(address(&front));
    let answer = client.get("/");
    assert_eq!(
        (&*answer.line, answer.text()),
        ("HTTP/1.1 503 Busy", "later\n".to_owned())
    );
    assert_eq!(answer.field("cache-control"), Some("no-store"));
    // A page without a length ends its connection, as in HAProxy.
    assert!(client.is_closed());
    let mut client = Client::connect(address(&front));
    let answer = client.get("/gone");
    assert_eq!(
        (answer.status, answer.field("location")),
        (302, Some("http://elsewhere/"))
    );
    let answer = client.get("/many");
    assert_eq!(answer.line, "HTTP/1.1 429 Too Many Requests");
    assert!(
        answer
            .text()
            .starts_with("<html><body><h1>429 Too Many Requests</h1>\n")
    );
    client.send("GET /no HTTP/1.1\r\nhost: x\r\n\r\n");
    assert!(client.is_closed(), "an empty page is no answer");
    proxy.stop();
}

#[test]
fn timeouts_answer_in_time() {
    let silent = Origin::raw(|mut stream| {
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let front = listener();
    let extra = " timeout server 150ms\n timeout http-request 150ms\n";
    let proxy = Proxy::start(&one_server(extra, &silent), &[("FRONT", &front)]);
    let mut client = Client::connect(address(&front));
    assert_eq!(client.get("/").status, 504);
    let mut slow = Client::connect(address(&front));
    slow.send("GET / HTTP/1.1\r\nhost:");
    let answer = slow.response().expect("an answer");
    assert_eq!(
        (answer.status, answer.field("connection")),
        (408, Some("close"))
    );
    assert!(slow.is_closed());
    proxy.stop();
}

#[test]
fn a_full_server_keeps_its_requests_waiting() {
    // The server reports the number of concurrent requests; the first one waits for a message.
    let (origin, held, release) = Origin::holding(|request| ok(&request.line));
    let front = listener();
    let config = format!(
        "{DEFAULTS} timeout queue 10s\nlisten l\n bind \"fd@${{FRONT}}\"\n http-request return status 200 hdr queue %[queue(l)] if {{ path /queue }}\n server s {} maxconn 1\n",
        origin.at
    );
    let proxy = Proxy::start(&config, &[("FRONT", &front)]);
    let mut first = Client::connect(address(&front));
    first.send("GET /hold HTTP/1.1\r\nhost: x\r\n\r\n");
    accept(&held, "the first is being served");
    let mut second = Client::connect(address(&front));
    second.send("GET /second HTTP/1.1\r\nhost: x\r\n\r\n");
    let mut probe = Client::connect(address(&front));
    while probe.get("/queue").field("queue") != Some("1") {}
    drop(accept(&release, "it waits for the word"));
    assert_eq!(first.response().unwrap().text(), "GET /hold HTTP/1.1");
    assert_eq!(second.response().unwrap().text(), "GET /second HTTP/1.1");
    proxy.stop();
}

#[test]
fn a_hash_with_a_full_queue_is_refused() {
    let (held, release) = (listener(), listener());
    let (at_held, at_release) = (address(&held), address(&release));
    let origin = Origin::start(move |_| {
        drop(TcpStream::connect(at_held));
        let _ = TcpStream::connect(at_release).unwrap().read(&mut [0]);
        ok("done")
    });
    let front = listener();
    let config = format!(
        "{DEFAULTS} timeout queue 10s\nlisten l\n bind \"fd@${{FRONT}}\"\n balance hash path\n http-request return status 200 hdr queue %[queue(l)] if {{ path /queue }}\n \
         server s {} maxconn 1 maxqueue 1\n",
        origin.at
    );
    let proxy = Proxy::start(&config, &[("FRONT", &front)]);
    let mut first = Client::connect(address(&front));
    first.send("GET /a HTTP/1.1\r\nhost: x\r\n\r\n");
    let first_at_origin = accept(&held, "the first is being served");
    let mut second = Client::connect(address(&front));
    second.send("GET /a HTTP/1.1\r\nhost: x\r\n\r\n");
    let mut probe = Client::connect(address(&front));
    while probe.get("/queue").field("queue") != Some("1") {}
    let mut third = Client::connect(address(&front));
    assert_eq!(third.get("/a").status, 503, "the queue is full");
    drop(first_at_origin);
    drop(accept(&release, "it waits for the word"));
    assert_eq!(first.response().unwrap().status, 200);
    accept(&held, "the second is being served");
    drop(accept(&release, "it waits for the word"));
    assert_eq!(second.response().unwrap().status, 200);
    proxy.stop();
}

#[test]
fn two_workers_share_one_listener() {
    let origin = Origin::echo();
    let front = listener();
    let config = one_server("", &origin).replace("nbthread 1", "nbthread 2");
    let proxy = Proxy::start(&config, &[("FRONT", &front)]);
    let mut clients: Vec<Client> = (0..40).map(|_| Client::connect(address(&front))).collect();
    for round in 0..5 {
        for client in &mut clients {
            assert_eq!(client.get(&format!("/{round}")).status, 200);
        }
    }
    proxy.stop();
}

#[test]
fn large_bodies_pass_both_ways_beside_a_slow_reader() {
    const SIZE: usize = 1 << 20;
    let origin = Origin::start(|request| ok(&request.body));
    let front = listener();
    let proxy = Proxy::start(&one_server("", &origin), &[("FRONT", &front)]);
    let body = pattern(SIZE);
    // It sends a request and does not read.
    let mut slow = Client::connect(address(&front));
    let stream = slow.reader.wire.try_clone().unwrap();
    let sent = {
        let body = body.clone();
        spawn(move || {
            let mut stream = stream;
            let head = format!("POST /slow HTTP/1.1\r\nhost: x\r\ncontent-length: {SIZE}\r\n\r\n");
            stream.write_all(head.as_bytes()).unwrap();
            stream.write_all(&body).unwrap();
        })
    };
    join(&sent, "the slow client's body");
    // The other clients are served meanwhile, with a length and in chunks.
    for chunked in [false, true] {
        let mut client = Client::connect(address(&front));
        if chunked {
            client.send("POST /c HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n");
            for piece in body.chunks(70_000) {
                client.send(format!("{:x}\r\n", piece.len()));
                client.send(piece);
                client.send("\r\n");
            }
            client.send("0\r\n\r\n");
        } else {
            client.send(format!(
                "POST /l HTTP/1.1\r\nhost: x\r\ncontent-length: {SIZE}\r\n\r\n"
            ));
            client.send(&body);
        }
        assert!(
            client.response().unwrap().body == body,
            "chunked: {chunked}"
        );
    }
    assert!(slow.response().unwrap().body == body);
    proxy.stop();
}

#[test]
fn a_client_that_asks_first_is_asked_to_go_on() {
    let origin = Origin::raw(|stream| {
        let mut reader = Reader::over(stream);
        let head = reader.head().unwrap();
        assert_eq!(head.field("expect"), Some("100-continue"));
        reader
            .wire
            .write_all(b"HTTP/1.1 100 Continue\r\n\r\n")
            .unwrap();
        let body = reader.body(&head, false).unwrap();
        reader.wire.write_all(&ok(body)).unwrap();
    });
    let front = listener();
    let proxy = Proxy::start(&one_server("", &origin), &[("FRONT", &front)]);
    let mut client = Client::connect(address(&front));
    client.send("POST / HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 4\r\n\r\n");
    assert_eq!(client.response().unwrap().status, 100);
    client.send("body");
    assert_eq!(client.response().unwrap().text(), "body");
    proxy.stop();
}

#[test]
fn redirects_variables_and_queries() {
    let front = listener();
    let config = format!(
        "global\n set-var proc.one int(20)\n set-var proc.two var(proc.one),add(3)\n set-var-fmt proc.text \"n%[var(proc.two)]\"\n{DEFAULTS}\nfrontend f\n bind \"fd@${{FRONT}}\"\n \
         http-request return status 200 hdr x %[var(proc.text)] if {{ path /var }}\n http-request redirect location /there?a=1 keep-query if {{ path /amp }}\n \
         http-request redirect location /there keep-query\n"
    );
    let proxy = Proxy::start(&config, &[("FRONT", &front)]);
    let mut client = Client::connect(address(&front));
    assert_eq!(client.get("/var").field("x"), Some("n23"));
    assert_eq!(client.get("/x?q=2").field("location"), Some("/there?q=2"));
    assert_eq!(client.get("/x").field("location"), Some("/there"));
    assert_eq!(
        client.get("/amp?q=2").field("location"),
        Some("/there?a=1&q=2")
    );
    proxy.stop();
}

#[test]
fn nothing_waits_for_a_client_that_left_the_queue() {
    let (origin, held, release) = Origin::holding(|request| {
        assert!(
            !request.line.contains("/left"),
            "a request that was given up reached the server"
        );
        ok(&request.line)
    });
    let front = listener();
    let config = format!(
        "{DEFAULTS} timeout queue 10s\nlisten l\n bind \"fd@${{FRONT}}\"\n http-request return status 200 hdr queue %[queue(l)] if {{ path /queue }}\n server s {} maxconn 1\n",
        origin.at
    );
    let proxy = Proxy::start(&config, &[("FRONT", &front)]);
    let mut first = Client::connect(address(&front));
    first.send("GET /hold HTTP/1.1\r\nhost: x\r\n\r\n");
    accept(&held, "the first is being served");
    let mut left = Client::connect(address(&front));
    left.send("GET /left HTTP/1.1\r\nhost: x\r\n\r\n");
    let mut probe = Client::connect(address(&front));
    while probe.get("/queue").field("queue") != Some("1") {}
    // In an HTTP backend, half-closing counts as leaving (manual §4.2 option abortonclose).
    left.reader.wire.close_write();
    assert!(left.is_closed(), "who left gets no answer");
    while probe.get("/queue").field("queue") != Some("0") {}
    drop(accept(&release, "it waits for the word"));
    assert_eq!(first.response().unwrap().status, 200);
    assert_eq!(first.get("/next").status, 200);
    proxy.stop();
}

#[test]
fn a_dynamic_limit_grows_with_the_load() {
    // Reports each request, and answers all when this test releases them.
    let (held, release) = (listener(), listener());
    let (at_held, at_release) = (address(&held), address(&release));
    let origin = Origin::start(move |_| {
        drop(TcpStream::connect(at_held));
        let _ = TcpStream::connect(at_release).unwrap().read(&mut [0]);
        ok("done")
    });
    let front = listener();
    let config = format!(
        "{DEFAULTS}\nfrontend f\n bind \"fd@${{FRONT}}\"\n http-request return status 200 hdr queue %[queue(b)] if {{ path /queue }}\n default_backend b\n\
         backend b\n fullconn 4\n server s {} minconn 1 maxconn 2\n",
        origin.at
    );
    let proxy = Proxy::start(&config, &[("FRONT", &front)]);
    let ask = || {
        let mut client = Client::connect(address(&front));
        client.send("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
        client
    };
    let mut probe = Client::connect(address(&front));
    let mut queue_is = |wanted: &str| while probe.get("/queue").field("queue") != Some(wanted) {};
    let mut clients = vec![ask()];
    accept(&held, "the first is being served");
    // Up to three requests, the limit is 1; with the fourth, it is 2.
    for queued in ["1", "2"] {
        clients.push(ask());
        queue_is(queued);
    }
    clients.push(ask());
    accept(&held, "a second is served beside it");
    queue_is("2");
    drop(front);
    let released = spawn(move || {
        while let Ok((stream, _)) = release.accept() {
            drop(stream)
        }
    });
    for client in &mut clients {
        assert_eq!(client.response().unwrap().status, 200);
    }
    drop(released);
    proxy.stop();
}

#[test]
fn a_client_stays_with_the_server_of_its_connection() {
    let (one, two) = (Origin::start(|_| ok("one")), Origin::start(|_| ok("two")));
    let served_by = |option: &str| {
        let front = listener();
        let config = format!(
            "{DEFAULTS}\nlisten l\n bind \"fd@${{FRONT}}\"\n http-reuse never\n{option} balance roundrobin\n server one {}\n server two {}\n",
            one.at, two.at
        );
        let proxy = Proxy::start(&config, &[("FRONT", &front)]);
        let mut client = Client::connect(address(&front));
        let servers: Vec<String> = (0..4).map(|_| client.get("/").text()).collect();
        proxy.stop();
        servers
    };
    assert_eq!(served_by(""), ["one", "two", "one", "two"]);
    assert_eq!(served_by(" option prefer-last-server\n"), ["one"; 4]);
}

#[test]
fn a_map_keeps_haproxys_order() {
    let origins: Vec<Origin> = ["a", "b", "c", "d"]
        .map(|name| Origin::start(move |_| ok(name)))
        .into();
    let servers = |weights: [u32; 4]| -> String {
        let lines = origins.iter().zip(weights).enumerate();
        lines
            .map(|(index, (origin, weight))| {
                format!(" server s{index} {} weight {weight}\n", origin.at)
            })
            .collect()
    };
    // From HAProxy 3.5: `static-rr` shows the map for hashes.
    let cases = [
        ([3, 1, 2, 5], "abdadcdadcdab"),
        ([10, 20, 30, 40], "abdcdbcdcdab"),
    ];
    for (weights, expected) in cases {
        let front = listener();
        let config = format!(
            "{DEFAULTS}\nlisten l\n bind \"fd@${{FRONT}}\"\n balance static-rr\n{}",
            servers(weights)
        );
        let proxy = Proxy::start(&config, &[("FRONT", &front)]);
        let mut client = Client::connect(address(&front));
        let order: String = (0..expected.len())
            .map(|_| client.get("/").text())
            .collect();
        assert_eq!(order, expected);
        proxy.stop();
    }
}

/// Deadlines in this file are only for failures.
const _: () = assert!(DEADLINE.as_secs() >= Duration::from_secs(10).as_secs());

/// Descriptors of a process with a low limit, and its clients.
const FEW_DESCRIPTORS: usize = 128;
const MANY_CLIENTS: usize = 300;

#[test]
fn clients_for_whom_there_are_no_descriptors_wait() {
    let origin = Origin::echo();
    let front = listener();
    let global = format!("global\n ulimit-n {FEW_DESCRIPTORS}\n nbthread 2\n");
    let config = format!(
        "{global}{}\nlisten l\n bind \"fd@${{FRONT}}\"\n server s {}\n",
        DEFAULTS.replace("global\n    nbthread 1\n", ""),
        origin.at
    );
    let proxy = Proxy::start(&config, &[("FRONT", &front)]);
    let connect = |_| {
        let stream = TcpStream::connect(address(&front)).expect("the kernel's queue");
        stream.set_read_timeout(Some(DEADLINE)).expect("a deadline");
        stream
    };
    let mut clients: Vec<TcpStream> = (0..MANY_CLIENTS).map(connect).collect();
    for client in &mut clients {
        let request = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
        client.write_all(request).expect("room");
    }
    for mut client in clients {
        let mut answer = String::new();
        client.read_to_string(&mut answer).expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    }
    proxy.stop();
}

/// Patterns with look-ahead run in PCRE2, which may give up.
#[cfg(feature = "pcre2")]
#[test]
fn a_pattern_that_cannot_be_decided_lets_nothing_through() {
    let origin = Origin::echo();
    let front = listener();
    let (at, slow) = (origin.at, "^/(?!x)(?:(?:a+)+b|a+!)$");
    let config = format!(
        "{DEFAULTS}frontend f\n bind \"fd@${{FRONT}}\"\n \
         http-request deny if {{ path_reg '{slow}' }}\n \
         use_backend other if {{ req.hdr(x-backend) -m reg '{slow}' }}\n \
         default_backend b\n\
         backend b\n http-response deny if {{ res.hdr(x-slow) -m reg '{slow}' }}\n \
         http-request replace-header x-dirty '{slow}' x\n \
         server s {at}\n\
         backend other\n server s {at}\n"
    );
    let proxy = Proxy::start(&config, &[("FRONT", &front)]);
    let status = |path: &str, field: &str| {
        let mut client = Client::connect(address(&front));
        client.send(format!("GET {path} HTTP/1.1\r\nhost: x\r\n{field}\r\n"));
        client.response().expect("a response").status
    };
    let a = "a".repeat(60);
    assert_eq!(status("/plain", ""), 200);
    // Hundreds of thousands of steps are within the limit.
    assert_eq!(status(&format!("/{}!", "a".repeat(18)), ""), 403);
    assert_eq!(status(&format!("/{a}!"), ""), 500);
    assert_eq!(status("/plain", &format!("x-backend: /{a}!\r\n")), 503);
    assert_eq!(status("/plain", &format!("x-dirty: /{a}!\r\n")), 500);
    // Each request is judged alone.
    assert_eq!(status("/plain", ""), 200);
    proxy.stop();
}

/// A client that sends a request and its end at once: whether the connection to the server or that
/// end is seen first, the outcome is the same (HAProxy: 400, CH).
#[test]
fn a_request_with_the_end_of_its_client_has_one_outcome() {
    const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nhost: test\r\n\r\n";
    let (front, log) = (
        listener(),
        UdpSocket::bind("127.0.0.1:0").expect("a socket"),
    );
    log.set_read_timeout(Some(DEADLINE)).expect("a deadline");
    // Does not answer the request in question.
    let origin = Origin::raw(|stream| {
        let mut client = Client::on(stream);
        while let Some(request) = client.reader.head() {
            if request.line.starts_with("GET /first") {
                let _ = client.reader.wire.write_all(&ok("x"));
            }
        }
    });
    let config = format!(
        "{DEFAULTS} log {} format raw local0\n log-format \"%ST %ts\"\nlisten l\n bind \"fd@${{FRONT}}\"\n option http-server-close\n server s {}\n",
        log.local_addr().expect("an address"),
        origin.at
    );
    let proxy = Proxy::start(&config, &[("FRONT", &front)]);
    let logged = || {
        let mut line = [0; 64];
        let bytes = uninterrupted(|| log.recv(&mut line)).expect("a log line");
        String::from_utf8_lossy(&line[..bytes]).trim().to_owned()
    };
    for is_kept in [false, true] {
        for _ in 0..8 {
            let mut client = Client::connect(address(&front));
            if is_kept {
                assert_eq!(client.get("/first").status, 200);
                assert_eq!(logged(), "200 --");
            }
            client.reader.wire.write_all(REQUEST).expect("sent");
            client
                .reader
                .wire
                .shutdown(Shutdown::Write)
                .expect("its end");
            let status = client.response().map(|response| response.status);
            assert_eq!((status, &*logged()), (Some(400), "400 CH"), "{is_kept}");
        }
    }
    proxy.stop();
}
