//! Commands that help to find faults: captured messages, variables, logs, hidden names (management
//! guide §9.3).

use std::net::{TcpStream, UdpSocket};

use crate::common::cli::{ask_any, until_any_holds};
use crate::common::http::Client;
use crate::common::origin::Origin;
use crate::common::{DEADLINE, DEFAULTS, Folder, Proxy, address, listener};

use std::io::{Read, Write};
use std::path::PathBuf;

/// A proxy with a runtime interface at the path given.
fn start(
    global: &str,
    config: &str,
    listeners: &[(&str, &std::net::TcpListener)],
) -> (Proxy, PathBuf) {
    let folder = Folder::new();
    let path = folder.path("cli.sock");
    let config = format!(
        "global\n stats socket {} level admin\n{global}{DEFAULTS}{config}",
        path.display()
    );
    (Proxy::start_in(folder, &config, listeners), path)
}

/// Sends this text and reads the whole answer.
fn exchange(front: &std::net::TcpListener, sent: &[u8]) -> String {
    let mut stream = TcpStream::connect(address(front)).expect("a connection");
    stream.set_read_timeout(Some(DEADLINE)).expect("a deadline");
    stream.write_all(sent).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

#[test]
fn messages_that_are_refused_can_be_looked_at() {
    let front = listener();
    let junk = Origin::raw(|mut stream| {
        let mut buffer = [0; 1024];
        let _ = stream.read(&mut buffer);
        let _ = stream.write_all(b"HTTP/1.1 2x0 \xff\\\r\n\r\n");
    });
    let config = format!(
        "frontend front\n bind \"fd@${{FRONT}}\"\n use_backend back if TRUE\nbackend back\n server srv {}\n",
        junk.at
    );
    let (proxy, path) = start("", &config, &[("FRONT", &front)]);
    let ask = |line: &str| ask_any(&path, line);
    let none = ask("show errors");
    let head = none
        .strip_prefix("Total events captured on [")
        .expect("a head");
    assert!(head.ends_with("] : 0\n\n"), "{none}");

    let answer = exchange(&front, b"GET /a b HTTP/1.1\r\nhost: t\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    let shown = ask("show errors");
    assert!(shown.contains("] : 1\n \n["), "{shown}");
    let lines: Vec<&str> = shown.lines().skip(2).collect();
    assert!(
        lines[0].ends_with("] frontend front (#2): invalid request"),
        "{shown}"
    );
    assert!(
        lines[1]
            .starts_with("  backend <NONE> (#-1), server <NONE> (#-1), event #0, src 127.0.0.1:"),
        "{shown}"
    );
    assert_eq!(
        lines[2],
        "  buffer starts at 0 (including 0 out), 16354 free,"
    );
    assert_eq!(lines[3], "  len 30, wraps at 16384, error at position 8");
    assert_eq!(
        &lines[5..],
        [
            "  ",
            "  00000  GET /a b HTTP/1.1\\r\\n",
            "  00019  host: t\\r\\n",
            "  00028  \\r\\n",
            ""
        ]
    );

    let answer = exchange(
        &front,
        b"GET / HTTP/1.1\r\nhost: t\r\nconnection: close\r\n\r\n",
    );
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
    let shown = ask("show errors back response");
    assert!(shown.contains("] : 2\n"), "{shown}");
    assert!(shown.contains("] backend back (#3): invalid response\n  frontend front (#2), server srv (#1), event #1, src 127.0.0.1:"), "{shown}");
    assert!(shown.contains("error at position 10\n"), "{shown}");
    assert!(
        shown.contains("\n  00000  HTTP/1.1 2x0 \\xFF\\\\\\r\\n\n"),
        "{shown}"
    );
    assert!(!shown.contains("invalid request"), "{shown}");
    // For the backend's captured response, the frontend is the other end.
    assert!(ask("show errors front").contains("invalid response"));
    assert!(!ask("show errors front request").contains("invalid response"));
    assert!(!ask("show errors 99").contains("invalid"));
    assert_eq!(ask("show errors nobody"), "No such proxy.\n\n");

    let hidden = ask("set anon on 7; show errors");
    for secret in ["front ", "back", "srv", "HTTP/1.1"] {
        assert!(
            !hidden
                .replace(" frontend ", " ")
                .replace(" backend ", " ")
                .contains(secret),
            "{hidden}"
        );
    }
    proxy.stop();
}

#[test]
fn variables_of_the_process_are_set() {
    let front = listener();
    let config = "frontend f\n bind \"fd@${FRONT}\"\n http-request return status 200 content-type text/plain lf-string \"%[var(proc.text)] %[var(proc.number)]\"\n";
    let global = " set-var proc.text str(old)\n";
    let (proxy, path) = start(global, config, &[("FRONT", &front)]);
    let ask = |line: &str| ask_any(&path, line);
    let mut client = Client::connect(address(&front));
    assert_eq!(client.get("/").text(), "old ");
    for (line, answer) in [
        ("set var proc.text str(new)", "\n"),
        ("set var proc.number expr int(5),add(2)", "\n"),
        (
            "get var proc.number",
            "proc.number: type=sint value=<7>\n\n",
        ),
    ] {
        assert_eq!(ask(line), answer, "{line}");
    }
    assert_eq!(client.get("/").text(), "new 7");
    assert_eq!(
        ask("set var proc.text fmt n=%[var(proc.number)]\\ %%"),
        "\n"
    );
    assert_eq!(client.get("/").text(), "n=7 % 7");
    for (line, refusal) in [
        ("set var", "Missing process-wide variable identifier."),
        (
            "set var proc.text",
            "Missing either 'expr', 'fmt' or expression.",
        ),
        (
            "set var proc.text bar str(x)",
            "arg type must be either 'expr' or 'fmt' but got 'bar'.",
        ),
        (
            "set var sess.text str(x)",
            "only scope 'proc' is permitted here.",
        ),
        (
            "set var proc.other str(x)",
            "nothing in the configuration names variable 'proc.other'.",
        ),
        (
            "set var proc.text nonsense(x)",
            "unknown fetch method 'nonsense'",
        ),
        ("set var proc.text path", "sample fetch <path> may not be"),
        ("set var proc.text fmt %[", "'set var': "),
    ] {
        let answer = ask(line);
        assert!(answer.contains(refusal), "{line}: {answer}");
    }
    assert_eq!(client.get("/").text(), "n=7 % 7");
    proxy.stop();
}

#[test]
fn a_message_is_sent_to_the_logs() {
    let front = listener();
    let logs = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    logs.set_read_timeout(Some(DEADLINE)).expect("a deadline");
    let at = logs.local_addr().expect("an address");
    let file = Folder::new();
    let global = format!(" log {at} local0 info\n log {at} local1 err\n");
    let config = "frontend f\n bind \"fd@${FRONT}\"\n http-request return status 200\n";
    let (proxy, path) = start(&global, config, &[("FRONT", &front)]);
    let ask = |line: &str| ask_any(&path, line);
    assert!(ask("debug dev log x").contains("restricted to expert mode"));
    assert_eq!(ask("expert-mode on -; debug dev log one two"), "\n");
    let mut message = [0; 512];
    let received = logs.recv(&mut message).expect("a message");
    let text = String::from_utf8_lossy(&message[..received]).into_owned();
    assert!(
        text.starts_with("<134>") && text.trim_end().ends_with("]: one two"),
        "{text}"
    );
    assert_eq!(ask("expert-mode on -; debug dev hash x"), "x\n\n");
    assert_eq!(ask("expert-mode on -; debug dev delay 1"), "\n");
    drop(file);
    let mut stream = std::os::unix::net::UnixStream::connect(&path).expect("the socket");
    stream
        .write_all(b"expert-mode on; debug dev exit 7\n")
        .expect("sent");
    assert_eq!(proxy.running.end().status.code(), Some(7));
}

#[test]
fn names_and_addresses_are_hidden_in_a_session() {
    let (front, origin) = (listener(), listener());
    let config = format!(
        "frontend secret_front\n bind \"fd@${{FRONT}}\"\n default_backend secret_back\n\
         backend secret_back\n server secret_srv 192.0.2.77:80 disabled\n server held {}\n",
        address(&origin)
    );
    let (proxy, path) = start(" anonkey 5\n", &config, &[("FRONT", &front)]);
    let mut busy = TcpStream::connect(address(&front)).expect("a connection");
    busy.write_all(b"GET /secret_path HTTP/1.1\r\nhost: t\r\n\r\n")
        .expect("sent");
    until_any_holds(&path, "show sess", |sessions| {
        sessions.contains("secret_front")
    });
    for line in [
        "show servers state",
        "show servers conn",
        "show sess all",
        "show sess show-uri",
    ] {
        let plain = ask_any(&path, line);
        assert!(plain.contains("secret_"), "{line}: {plain}");
        let hidden = ask_any(&path, &format!("set anon on; {line}"));
        for secret in ["secret_", "192.0.2.77"] {
            assert!(!hidden.contains(secret), "{line}: {hidden}");
        }
        assert_eq!(hidden.lines().count(), plain.lines().count() + 1, "{line}");
    }
    let same = ask_any(&path, "set anon on; show servers conn secret_back");
    let again = ask_any(&path, "set anon on 5; show servers conn secret_back");
    assert_eq!(same, again, "the key of section global");
    drop(busy);
    proxy.stop();
}

#[test]
fn what_the_process_does_is_told_as_programs_expect_it() {
    let front = listener();
    let config = "frontend f\n bind \"fd@${FRONT}\"\n http-request return status 200\n";
    let (proxy, path) = start("", config, &[("FRONT", &front)]);
    let ask = |line: &str| ask_any(&path, line);
    assert_eq!(Client::connect(address(&front)).get("/").status, 200);
    let activity = ask("show activity");
    assert!(
        activity.starts_with("thread_id: 1 (1..1)\ndate_now: "),
        "{activity}"
    );
    let number = |name: &str| {
        let line = activity.lines().find_map(|line| line.strip_prefix(name));
        line.expect(name).parse::<f64>().expect(name)
    };
    assert!(number("uptime_now: ") > 0.0 && number("date_now: ") > 1.0e9);
    // One of them checked that the program serves.
    assert_eq!((number("accepted: "), number("requests: ")), (2.0, 2.0));
    assert_eq!(
        ask("show profiling"),
        "Per-task CPU profiling              : off           # set profiling tasks {on|auto|off}\n\
         Memory usage profiling              : off           # set profiling memory {on|off}\n\n"
    );
    for (line, answer) in [
        ("set profiling tasks off", "\n"),
        (
            "set profiling tasks on",
            "This command does not apply here: there are no tasks",
        ),
        (
            "set profiling memory on",
            "This command does not apply here: memory comes from",
        ),
        (
            "set profiling tasks x",
            "Expects a combination of either 'on', 'auto', 'off',",
        ),
        ("show profiling status", "Per-task CPU profiling "),
        ("show profiling tasks byaddr 3", "\n"),
        ("show profiling x", "Expects either 'all', 'status', "),
        ("set profiling memory x", "Expects either 'on' or 'off'.\n"),
        ("set profiling", "Expects either 'tasks' or 'memory'.\n"),
        (
            "debug dev panic",
            "Command 'debug dev panic' is known but not implemented yet by this version.\n",
        ),
    ] {
        let answered = ask(line);
        assert!(answered.starts_with(answer), "{line}: {answered}");
    }
    proxy.stop();
}
