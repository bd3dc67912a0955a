//! The runtime interface (management guide §9.3).

use crate::common;

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;

use common::{DEADLINE, DEFAULTS, Folder, Proxy, address, listener};

fn ask_unix(path: &std::path::Path, line: &str) -> String {
    let mut stream = UnixStream::connect(path).expect("the socket");
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    stream.write_all(line.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn commands_are_answered_over_every_socket() {
    let folder = Folder::new();
    let (plain, numbers) = (folder.path("plain.sock"), folder.path("numbers.sock"));
    let tcp = listener();
    let config = format!(
        "global
    description for tests
    maxconn 123
    stats socket {} mode 640 level admin
    stats socket unix@{} severity-output number
    stats socket \"fd@${{CLI}}\" level user
{DEFAULTS}",
        plain.display(),
        numbers.display()
    );
    let proxy = Proxy::start_in(folder, &config, &[("CLI", &tcp)]);
    let mode = std::fs::metadata(&plain).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o640);

    let version = ask_unix(&plain, "show version\n");
    assert!(
        version.starts_with("3.5") && version.ends_with("\n\n"),
        "{version:?}"
    );
    assert_eq!(
        ask_unix(&numbers, "show version\n"),
        format!("[6]: {version}")
    );
    let both = ask_unix(&plain, "show version; show version\n");
    assert_eq!(both, format!("{version}{version}"));

    let help = ask_unix(&plain, "help\n");
    assert!(
        help.starts_with("The following commands are valid at this level:\n"),
        "{help}"
    );
    assert!(help.contains("  show info "), "{help}");
    let unknown = ask_unix(&plain, "nonsense\n");
    assert!(
        unknown.starts_with("Unknown command: 'nonsense'"),
        "{unknown}"
    );
    assert!(unknown.ends_with("\n\n"), "{unknown:?}");
    let missing = ask_unix(&numbers, "show cache\n");
    let wanted = "[3]: Command 'show cache' is known but not implemented yet by this version.\n\n";
    assert_eq!(missing, wanted);
    assert_eq!(ask_unix(&plain, "\n"), "\n");

    let typed = ask_unix(&plain, "show info typed desc\n");
    for line in [
        "0.Name.1:POSV:str:HAProxy:\"Name of the product\"",
        "15.Maxconn.1:CLPV:u32:123:\"Most client connections at once\"",
        "17.CurrConns.1:MGPV:u32:0:\"Client connections now\"",
        "1000.Panics.1:MCPV:u64:0:\"Internal errors, each of which ended what it happened on\"",
    ] {
        assert!(typed.lines().any(|known| known == line), "{typed}");
    }
    let float = ask_unix(&plain, "show info float\n");
    let uptime = float
        .lines()
        .find_map(|line| line.strip_prefix("Uptime_sec: "));
    assert!(uptime.is_some_and(|text| text.contains('.')), "{float}");
    let json = ask_unix(&plain, "show info json\n");
    let fields: Vec<serde_json::Value> = serde_json::from_str(&json).expect("JSON");
    let pid = fields
        .iter()
        .find(|field| field["field"]["name"] == "Pid")
        .expect("a field");
    let wanted = serde_json::json!({
        "field": {"pos": 6, "name": "Pid"},
        "processNum": 1,
        "tags": {"origin": "Status", "nature": "Gauge", "scope": "Process"},
        "value": {"type": "u32", "value": proxy.running.pid()},
    });
    assert_eq!(*pid, wanted);

    // The client may close its sending direction before it gets the answer.
    let mut stream = TcpStream::connect(address(&tcp)).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    stream.write_all(b"show info\n").unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut info = String::new();
    stream.read_to_string(&mut info).unwrap();
    for line in [
        "Name: HAProxy",
        "Maxconn: 123",
        "description: for tests",
        "Nbthread: 1",
    ] {
        assert!(info.lines().any(|known| known == line), "{line} in {info}");
    }
    assert!(
        info.contains(&format!("Pid: {}\n", proxy.running.pid())),
        "{info}"
    );
    proxy.stop();
}

#[test]
fn a_session_has_many_commands() {
    let folder = Folder::new();
    let path = folder.path("cli.sock");
    let config = format!(
        "global\n stats socket {} level admin\n tune.cli.max-payload-size 20k\n{DEFAULTS}",
        path.display()
    );
    let proxy = Proxy::start_in(folder, &config, &[]);
    let mut stream = UnixStream::connect(&path).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    let mut exchange = |sent: &[u8], wanted: &str| {
        stream.write_all(sent).unwrap();
        let mut got = vec![0; wanted.len()];
        stream.read_exact(&mut got).unwrap();
        assert_eq!(String::from_utf8_lossy(&got), wanted);
    };
    exchange(b"prompt\n", "\n> ");
    exchange(b"echo one; echo two\n", "one\n\ntwo\n\n> ");
    exchange(b"echo three <<\n", "+ ");
    exchange(b"one\n", "+ ");
    exchange(&[b'x'; 18 << 10], "");
    exchange(b"\n\n", "three\n\n> ");
    exchange(b"wait 1ms; echo four\n", "Done.\n\nfour\n\n> ");
    exchange(b"echo five <<\n", "+ ");
    exchange(&[b'x'; 21 << 10], "The payload is too big.");
    // Bytes that a client sends after the last answer do not destroy that answer.
    assert_eq!(
        ask_unix(&path, &format!("echo\n{}", "x\n".repeat(9_000))),
        "\n\n"
    );
    proxy.stop();
}

#[test]
fn one_silent_client_does_not_hold_the_others() {
    let folder = Folder::new();
    let path = folder.path("cli.sock");
    let config = format!(
        "global\n stats socket {}\n stats maxconn 2\n{DEFAULTS}",
        path.display()
    );
    let proxy = Proxy::start_in(folder, &config, &[]);
    let silent = UnixStream::connect(&path).unwrap();
    for _ in 0..3 {
        assert!(ask_unix(&path, "show version\n").starts_with("3.5"));
    }
    drop(silent);
    proxy.stop();
}
