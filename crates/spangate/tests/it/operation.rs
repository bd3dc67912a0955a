//! What an operator asks about the process: facts, the work of its workers, descriptors, levels.

use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};

use crate::common::cli::{ask_any, until_any_holds};
use crate::common::http::Client;
use crate::common::origin::Origin;
use crate::common::{DEFAULTS, Folder, Proxy, address, listener};

/// The fields of HAProxy 3.5's `show info`, in order.
const HAPROXY_FIELDS: &str = "Name Version Release_date Nbthread Nbproc Process_num Pid Uptime Uptime_sec \
    Memmax_MB PoolAlloc_MB PoolUsed_MB PoolFailed Ulimit-n Maxsock Maxconn Hard_maxconn CurrConns \
    CumConns CumReq MaxSslConns CurrSslConns CumSslConns Maxpipes PipesUsed PipesFree ConnRate \
    ConnRateLimit MaxConnRate SessRate SessRateLimit MaxSessRate SslRate SslRateLimit MaxSslRate \
    SslFrontendKeyRate SslFrontendMaxKeyRate SslFrontendSessionReuse_pct SslBackendKeyRate \
    SslBackendMaxKeyRate SslCacheLookups SslCacheMisses CompressBpsIn CompressBpsOut \
    CompressBpsRateLim Tasks Run_queue Idle_pct node Stopping Jobs Unstoppable_Jobs Listeners \
    ActivePeers ConnectedPeers DroppedLogs BusyPolling FailedResolutions TotalBytesOut \
    TotalSplicedBytesOut BytesOutRate DebugCommandsIssued CumRecvLogs Build_info Memmax_bytes \
    PoolAlloc_bytes PoolUsed_bytes Start_time_sec Tainted TotalWarnings MaxconnReached BootTime_ms \
    Niced_tasks CurrStreams CumStreams BlockedTrafficWarnings PatternsAdded PatternsFreed \
    NbThreadGroups";

fn start(global: &str, config: &str, listeners: &[(&str, &TcpListener)]) -> (Proxy, PathBuf) {
    let folder = Folder::new();
    let path = folder.path("cli.sock");
    let config = format!(
        "global\n stats socket {} level admin\n{global}{DEFAULTS}{config}",
        path.display()
    );
    (Proxy::start_in(folder, &config, listeners), path)
}

/// The value of a field of `show info`.
fn fact(info: &str, name: &str) -> String {
    let mut lines = info.lines();
    let found = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    found
        .unwrap_or_else(|| panic!("no {name} in {info}"))
        .to_owned()
}

fn number(path: &Path, name: &str) -> u64 {
    let text = fact(&ask_any(path, "show info"), name);
    text.parse().unwrap_or_else(|_| panic!("{name}: {text}"))
}

#[test]
fn show_info_has_haproxys_fields() {
    let front = listener();
    let config = "frontend f\n bind \"fd@${FRONT}\"\n http-request return status 200\n";
    let (proxy, path) = start("", config, &[("FRONT", &front)]);
    let info = ask_any(&path, "show info");
    let names = info
        .lines()
        .filter_map(|line| Some(line.split_once(": ")?.0.replace(' ', "_")));
    let names: Vec<String> = names.filter(|name| name != "Panics").collect();
    let wanted: Vec<&str> = HAPROXY_FIELDS.split_whitespace().collect();
    assert_eq!(names, wanted);
    proxy.stop();
}

#[test]
fn facts_follow_what_happens() {
    let (front, held) = (listener(), listener());
    let config = format!(
        "frontend f\n bind \"fd@${{FRONT}}\"\n http-request return status 200 if {{ path /own }}\n \
         http-request set-map(virt@m) %[path] 1 if {{ path /map }}\n default_backend b\n\
         backend b\n http-request set-header x %[path,map(virt@m)]\n server s {}\n",
        address(&held)
    );
    let (proxy, path) = start(" maxconn 4\n", &config, &[("FRONT", &front)]);
    let before = ask_any(&path, "show info");
    for (name, value) in [
        ("Tainted", "0"),
        ("DebugCommandsIssued", "0"),
        ("CurrStreams", "0"),
        ("PatternsFreed", "0"),
        ("MaxconnReached", "0"),
        ("NbThreadGroups", "1"),
    ] {
        assert_eq!(fact(&before, name), value, "{name}");
    }
    let streams = number(&path, "CumStreams");
    let patterns = number(&path, "PatternsAdded");

    // Two streams that wait for the server, and one that ends.
    let mut clients = Vec::new();
    for target in ["/map", "/other"] {
        let mut client = TcpStream::connect(address(&front)).expect("a connection");
        let head = format!("GET {target} HTTP/1.1\r\nhost: t\r\n\r\n");
        client.write_all(head.as_bytes()).expect("sent");
        clients.push(client);
    }
    let mut third = Client::connect(address(&front));
    assert_eq!(third.get("/own").status, 200);
    let info = until_any_holds(&path, "show info", |info| fact(info, "CurrStreams") == "2");
    let of = |name: &str| fact(&info, name).parse::<u64>().expect(name);
    assert_eq!(of("CumStreams"), streams + 3);
    assert_eq!(of("PatternsAdded"), patterns + 1);
    // Three clients, two connections to the server, two streams.
    assert_eq!(of("Tasks"), 7);
    assert!(of("Idle_pct") <= 100);
    assert_eq!(fact(&info, "MaxconnReached"), "0");

    // The fourth connection takes the last place.
    let last = TcpStream::connect(address(&front)).expect("a connection");
    until_any_holds(&path, "show info", |info| {
        fact(info, "MaxconnReached") == "1"
    });
    assert_eq!(ask_any(&path, "del map virt@m /map"), "\n");
    assert_eq!(number(&path, "PatternsFreed"), 1);

    // Commands of the expert mode leave a mark; `debug dev hash` needs no mode.
    assert_eq!(ask_any(&path, "debug dev hash x"), "x\n\n");
    assert_eq!(number(&path, "DebugCommandsIssued"), 0);
    ask_any(&path, "expert-mode on; debug dev delay 1");
    let info = ask_any(&path, "show info");
    assert_eq!(fact(&info, "DebugCommandsIssued"), "1");
    assert_eq!(fact(&info, "Tainted"), "0x4");
    drop((clients, last));
    proxy.stop();
}

#[test]
fn sent_bytes_have_a_rate() {
    let front = listener();
    let config = "frontend f\n bind \"fd@${FRONT}\"\n http-request return status 200 content-type text/plain \
                  string 0123456789\n";
    let (proxy, path) = start("", config, &[("FRONT", &front)]);
    // The rate is measured again a second later, so that the requests of the first second count.
    let info = until_any_holds(&path, "show info", |info| {
        assert_eq!(Client::connect(address(&front)).get("/").status, 200);
        fact(info, "BytesOutRate") != "0"
    });
    let rate: u64 = fact(&info, "BytesOutRate").parse().expect("a number");
    let total: u64 = fact(&info, "TotalBytesOut").parse().expect("a number");
    assert!(rate <= total, "{info}");
    proxy.stop();
}

#[test]
fn warnings_of_the_start_are_counted() {
    let front = listener();
    // No timeouts: one warning.
    let folder = Folder::new();
    let path = folder.path("cli.sock");
    let config = format!(
        "global\n stats socket {} level admin\ndefaults\n mode http\n\
         frontend f\n bind \"fd@${{FRONT}}\"\n http-request return status 200\n",
        path.display()
    );
    let proxy = Proxy::start_in(folder, &config, &[("FRONT", &front)]);
    let logs = ask_any(&path, "show startup-logs");
    let printed = logs.lines().filter(|line| line.starts_with("[WARNING]"));
    let printed = printed.count() as u64;
    assert!(printed > 0, "{logs}");
    assert_eq!(number(&path, "TotalWarnings"), printed);
    proxy.stop();
}

#[test]
fn activity_is_told_for_each_worker() {
    let front = listener();
    let config =
        "global\n nbthread 2\nfrontend f\n bind \"fd@${FRONT}\"\n http-request return status 200\n";
    let (proxy, path) = start("", config, &[("FRONT", &front)]);
    assert_eq!(Client::connect(address(&front)).get("/").status, 200);
    let line = |command: &str, name: &str| -> String {
        let answer = ask_any(&path, command);
        let mut lines = answer.lines();
        let found = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        found
            .unwrap_or_else(|| panic!("no {name} in {answer}"))
            .to_owned()
    };
    let accepted = line("show activity", "accepted");
    let numbers: Vec<u64> = accepted
        .split(' ')
        .filter_map(|word| word.parse().ok())
        .collect();
    let [total, first, second] = numbers[..] else {
        panic!("{accepted}");
    };
    assert!(total > 0 && total == first + second, "{accepted}");
    assert_eq!(line("show activity -1", "accepted"), accepted);
    assert_eq!(line("show activity 0", "accepted"), total.to_string());
    assert_eq!(line("show activity 1", "accepted"), first.to_string());
    assert_eq!(line("show activity 2", "accepted"), second.to_string());
    let loops: u64 = line("show activity 0", "loops").parse().expect("a number");
    let events: u64 = line("show activity 0", "events").parse().expect("a number");
    assert!(loops > 0 && events > 0);
    for wrong in ["3", "-2"] {
        assert_eq!(
            ask_any(&path, &format!("show activity {wrong}")),
            "Thread ID number must be between -1 and nbthread\n\n"
        );
    }
    proxy.stop();
}

#[test]
fn descriptors_are_told_with_what_they_are() {
    let front = listener();
    let silent = Origin::raw(|mut stream| {
        let mut buffer = [0; 64];
        // Until the proxy closes.
        while std::io::Read::read(&mut stream, &mut buffer).is_ok_and(|count| count > 0) {}
    });
    let config = format!(
        "frontend front\n bind \"fd@${{FRONT}}\"\n default_backend b\nbackend b\n server s {}\n",
        silent.at
    );
    let (proxy, path) = start("", &config, &[("FRONT", &front)]);
    let mut client = TcpStream::connect(address(&front)).expect("a connection");
    client
        .write_all(b"GET / HTTP/1.1\r\nhost: t\r\n\r\n")
        .expect("sent");
    let server = format!(" sv={} src=", silent.at);
    until_any_holds(&path, "show fd b", |list| list.contains(&server));
    let own = client.local_addr().expect("an address");
    let frontend = format!(" fe=front src={own} dst={}", address(&front));
    let listens = format!(" l.fe=front addr={}", address(&front));
    let global = format!(" l.fe=GLOBAL addr=unix@{}\n", path.display());
    let has = |command: &str| {
        let list = ask_any(&path, command);
        let pipes = list.contains(" : pipe:");
        let files = list.contains(" : anon_inode:");
        let mut of = vec![pipes, files];
        of.extend([&listens, &frontend, &server].map(|text| list.contains(text.as_str())));
        of
    };
    assert_eq!(has("show fd l"), [false, false, true, false, false]);
    assert_eq!(has("show fd f"), [false, false, false, true, false]);
    assert_eq!(has("show fd s"), [false, false, false, false, true]);
    assert_eq!(has("show fd c"), [false, false, false, true, true]);
    let all = has("show fd");
    assert_eq!(all[1..], [true; 4]);
    assert_eq!(has("show fd !f")[1..], [true, true, false, true]);
    let list = ask_any(&path, "show fd l");
    assert!(list.contains(&global), "{list}");
    let line = list.lines().next().expect("a listener");
    let fd = line.split_whitespace().next().expect("a number");
    for one in [format!("show fd {fd}"), format!("show fd 1/{fd}")] {
        assert_eq!(ask_any(&path, &one), format!("{line}\n\n"));
    }
    assert_eq!(ask_any(&path, "show fd z"), "Invalid FD type\n\n");
    drop(client);
    proxy.stop();
}

#[test]
fn levels_are_haproxys() {
    let front = listener();
    let config = "frontend f\n bind \"fd@${FRONT}\"\n http-request return status 200\n";
    let (proxy, path) = start("", config, &[("FRONT", &front)]);
    let denied = |level: &str, line: &str| {
        ask_any(&path, &format!("{level}; {line}")).contains("Permission denied")
    };
    for line in [
        "show peers",
        "show pools",
        "show ssl cert",
        "show ssl ca-file",
        "show ssl crl-file",
        "show ssl sni",
        "show tasks",
        "show threads",
    ] {
        assert!(!denied("user", line), "{line}");
    }
    for line in ["show startup-logs", "show activity", "show fd", "show env"] {
        assert!(denied("user", line) && !denied("operator", line), "{line}");
    }
    for line in ["show profiling", "set profiling tasks off"] {
        assert!(denied("operator", line), "{line}");
    }
    proxy.stop();
}

#[test]
fn help_has_what_is_similar() {
    let front = listener();
    let config = "frontend f\n bind \"fd@${FRONT}\"\n http-request return status 200\n";
    let (proxy, path) = start("", config, &[("FRONT", &front)]);
    let title = "The following commands are valid at this level:";
    for (line, found) in [
        ("help show stat", "  show stat "),
        ("help shwo stat", "  show stat "),
        ("help show st", "  show stat "),
    ] {
        let text = ask_any(&path, line);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], title, "{line}");
        assert!(lines[1].starts_with(found), "{line}: {text}");
        assert!(
            lines[2].starts_with("  help [<command>] "),
            "{line}: {text}"
        );
    }
    proxy.stop();
}
