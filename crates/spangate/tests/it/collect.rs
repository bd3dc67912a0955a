//! `spangate collect` and `spangate tracegen` as programs.

use crate::common;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Command, Output, Stdio};

use common::Folder;
use common::collector::Running;

fn spangate(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spangate"));
    command.args(words).stdin(Stdio::null());
    command
}

fn output(words: &[&str]) -> Output {
    spangate(words).output().expect("it runs")
}

const CONFIG: &str = "
receivers:
  otlp:
    protocols:
      grpc: { endpoint: '127.0.0.1:0' }
      http: { endpoint: '127.0.0.1:0' }
processors:
  tail_sampling:
    decision_wait: 1s
    policies:
      - { name: errors, type: status_code, status_code: { status_codes: [ERROR] } }
  batch:
exporters:
  nop:
extensions:
  health_check: { endpoint: '127.0.0.1:0' }
service:
  extensions: [health_check]
  telemetry: { metrics: { readers: [ { pull: { exporter: { prometheus: { host: 127.0.0.1, port: 0 } } } } ] } }
  pipelines:
    traces: { receivers: [otlp], processors: [tail_sampling, batch], exporters: [nop] }
";

/// The body of an answer.
fn get(address: &str, path: &str) -> String {
    let mut stream = std::net::TcpStream::connect(address).expect("a page");
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    body.to_owned()
}

#[test]
fn traces_come_in_are_decided_and_accounted_for() {
    let mut collector = Running::start(CONFIG);
    let grpc = collector.address("otlp grpc");
    let http = collector.address("otlp http");
    let health = collector.address("health_check");
    let metrics = collector.address("metrics");
    for (protocol, address) in [("grpc", &grpc), ("http", &http)] {
        let endpoint = format!("http://{address}");
        let sent = output(&[
            "tracegen",
            "--quiet",
            "--protocol",
            protocol,
            "--endpoint",
            &endpoint,
            "--traces",
            "500",
            "--errors",
            "20",
            "--batch",
            "100",
        ]);
        let said = String::from_utf8_lossy(&sent.stdout);
        assert!(sent.status.success(), "{said}");
        assert!(
            said.contains("4000 sent = 4000 accepted + 0 rejected"),
            "{said}"
        );
    }
    assert!(get(&health, "/").contains("Server available"));
    let page = get(&metrics, "/metrics");
    for protocol in ["grpc", "http"] {
        let line = format!(
            "otelcol_receiver_accepted_spans{{receiver=\"otlp\",transport=\"{protocol}\"}} 4000\n"
        );
        assert!(page.contains(&line), "{line}\n{page}");
    }
    assert!(common::sys::signal(collector.child.id(), libc::SIGTERM));
    let account = collector.line("8000 accepted");
    let number = |word: &str| -> u64 {
        let before = account.split(&format!(" {word}")).next().expect("a number");
        let digits = before.rsplit(' ').next().expect("a number");
        digits.parse().expect("a number")
    };
    assert_eq!(number("exported") + number("dropped"), 8000, "{account}");
    // A fifth of the traces has failed; the seed is always the same.
    assert!((1000..2200).contains(&number("exported")), "{account}");
    assert!(
        account.contains("0 failed + 0 rejected + 0 lost at the end + 0 held; 0 refused"),
        "{account}"
    );
    assert!(collector.child.wait().expect("its end").success());
}

#[test]
fn a_configuration_and_the_components_are_printed() {
    let folder = Folder::new();
    let path = folder.write("collector.yaml", CONFIG);
    let said = |words: &[&str]| {
        let output = output(words);
        assert!(output.stderr.is_empty(), "{output:?}");
        assert!(output.status.success());
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    let print = ["collect", "print-config", "--config", &path];
    let set = "--set=exporters.otlp.headers.x=my-key";
    let text = said(&[&print[..], &[set]].concat());
    let end =
        "exporters:\n    nop: null\n    otlp:\n        headers:\n            x: \"[REDACTED]\"\n";
    assert!(text.contains(end), "{text}");
    let text = said(&[&print[..], &[set, "--mode=unredacted", "--format", "json"]].concat());
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(json["exporters"]["otlp"]["headers"]["x"], "my-key");
    let missing = output(&["collect", "print-config", "--config", "/no/such/file"]);
    assert_eq!(missing.status.code(), Some(1));
    let text = said(&["collect", "components"]);
    assert!(text.contains("processors:\n    - name: batch\n"), "{text}");
    for (mode, wrong) in [
        ("--mode", "--mode expects redacted or unredacted, not 'x'"),
        ("--format", "--format expects yaml or json, not 'x'"),
    ] {
        let output = output(&[&print[..], &[mode, "x"]].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains(wrong), "{said}");
    }
}

#[test]
fn configurations_are_judged() {
    let judged = |yaml: &str| {
        let folder = Folder::new();
        let path = folder.write("collector.yaml", yaml);
        let output = output(&["collect", "validate", "--config", &path]);
        let said = String::from_utf8_lossy(&output.stderr).replace(&path, "c.yaml");
        (output.status.code().expect("an exit code"), said)
    };
    assert_eq!(judged(CONFIG), (0, String::new()));
    let (code, said) = judged(&CONFIG.replace("[ERROR]", "[ERR]"));
    assert_eq!(code, 1, "{said}");
    assert!(
        said.starts_with("error: c.yaml:11:") && said.contains("ERR"),
        "{said}"
    );
    let metrics = CONFIG.replace(
        "  pipelines:\n",
        "  pipelines:\n    metrics: { receivers: [statsd], exporters: [nop] }\n",
    );
    let metrics = metrics.replace("processors:\n  tail", "  statsd: {}\nprocessors:\n  tail");
    let (code, said) = judged(&metrics);
    assert_eq!(code, 3, "{said}");
    assert!(
        said.contains("the pipeline 'metrics' is not started"),
        "{said}"
    );
    let (code, said) = judged("receivers: [");
    assert_eq!(code, 1, "{said}");
    assert_eq!(output(&["collect"]).status.code(), Some(1));
    assert_eq!(output(&["collect", "--help"]).status.code(), Some(0));
}

#[test]
fn a_hangup_reads_the_configuration_again_and_loses_nothing() {
    let mut collector = Running::start(CONFIG);
    let address = collector.address("otlp grpc");
    collector.line("running: traces");
    let send = |address: &str| {
        let endpoint = format!("http://{address}");
        let words = [
            "tracegen",
            "--quiet",
            "--protocol",
            "grpc",
            "--endpoint",
            &endpoint,
            "--traces",
            "50",
        ];
        assert!(output(&words).status.success());
    };
    send(&address);
    // A faulty configuration changes nothing.
    collector.folder.write("collector.yaml", "receivers: 5");
    collector.signal("HUP");
    collector.line("the running one stays active");
    send(&address);
    // A valid one takes over, at the same sockets, and the previous one ends beside it.
    let other = CONFIG.replace("traces:", "traces/other:");
    collector.folder.write("collector.yaml", &other);
    collector.signal("HUP");
    assert_eq!(collector.address("otlp grpc"), address);
    collector.line("running: traces/other");
    send(&address);
    collector.line("the previous configuration has ended");
    let account = collector.line("spans: ");
    assert!(
        account.contains(" + 0 lost at the end + 0 held; 0 refused"),
        "{account}"
    );
    assert!(!account.contains("spans: 0 accepted"), "{account}");
    // Where the port of the new one is in use, it does not start, which changes nothing.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").port();
    let wrong = other.replace(
        "grpc: { endpoint: '127.0.0.1:0'",
        &format!("grpc: {{ endpoint: '127.0.0.1:{port}'"),
    );
    collector.folder.write("collector.yaml", &wrong);
    collector.signal("HUP");
    collector.line("the running one stays active");
    send(&address);
    // With files of its own, the previous one ends first, and starts again where the next does not.
    let files = wrong.replace("  nop:", "  nop:\n  file: { path: out.json }");
    let files = files.replace("[nop]", "[nop, file]");
    collector.folder.write("collector.yaml", &files);
    collector.signal("HUP");
    collector.line("the previous one starts again");
    let address = collector.address("otlp grpc");
    send(&address);
    collector.line("running: traces/other");
    collector.signal("TERM");
    assert!(collector.child.wait().expect("an end").success());
}

/// An address that no other test uses, where nobody listens yet.
fn nobody_yet() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.78:0").expect("a port");
    listener.local_addr().expect("an address").to_string()
}

/// While a back end is away, hangups refuse nothing, and what waits for it goes on waiting.
#[test]
fn a_hangup_hands_over_what_waits_for_a_back_end_that_is_away() {
    const TRACES: u64 = 20;
    let away = nobody_yet();
    let retry = "initial_interval: 50ms, max_interval: 100ms, max_elapsed_time: 0s";
    let exporter = format!(
        "  otlphttp: {{ endpoint: 'http://{away}', sending_queue: {{ num_consumers: 2 }}, retry_on_failure: {{ {retry} }} }}"
    );
    let config = CONFIG.replace("  nop:", &exporter);
    let config = config.replace(
        "[tail_sampling, batch], exporters: [nop]",
        "[], exporters: [otlphttp]",
    );
    let mut collector = Running::start(&config);
    let address = collector.address("otlp http");
    let endpoint = format!("http://{address}");
    let traces = TRACES.to_string();
    let words = "tracegen --quiet --protocol http --traces";
    let words: Vec<_> = { words.split(' ') }
        .chain([&*traces, "--endpoint", &endpoint])
        .collect();
    let send = || assert!(output(&words).status.success());
    send();
    for number in 0..3 {
        let next = config.replace("traces:", &format!("traces/{number}:"));
        collector.folder.write("collector.yaml", &next);
        collector.signal("HUP");
        assert_eq!(collector.address("otlp http"), address);
        collector.line(&format!("running: traces/{number}"));
        send();
    }
    let sink = CONFIG.replace(
        "http: { endpoint: '127.0.0.1:0'",
        &format!("http: {{ endpoint: '{away}'"),
    );
    let mut sink = Running::start(&sink.replace("[tail_sampling, batch]", "[]"));
    sink.line("running");
    collector.signal("TERM");
    let exit = collector.child.wait().expect("an end");
    let said: Vec<_> = collector.lines.try_iter().collect();
    assert!(exit.success(), "{said:?}");
    let accepted = |account: &str| -> u64 {
        let (_, account) = account.split_once("spans: ").expect("an account");
        let (number, _) = account.split_once(" accepted").expect("a number");
        number.parse().expect("a number")
    };
    sink.signal("TERM");
    let account = sink.line("spans: ");
    assert!(sink.child.wait().expect("an end").success());
    let last = said
        .iter()
        .rfind(|line| line.contains("spans: "))
        .expect("an account");
    assert_eq!(accepted(&account), 4 * accepted(last), "{said:#?}");
}

/// The head of an answer whose body has a length.
fn answered(connection: &mut BufReader<TcpStream>) -> String {
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let begin = head.len();
        let count = connection.read_line(&mut head).expect("a line");
        assert!(count > 0, "the connection ended: {head}");
        let line = head[begin..].trim().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().expect("a length");
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    connection.read_exact(&mut body).expect("a body");
    head.to_ascii_lowercase()
}

/// A client that sends one request after the other is told which is the last, and none is lost.
#[test]
fn a_hangup_cuts_no_connection_off() {
    let mut collector = Running::start(CONFIG);
    let address = collector.address("otlp http");
    let stream = TcpStream::connect(&address).expect("a connection");
    stream
        .set_read_timeout(Some(common::DEADLINE))
        .expect("an option");
    let mut connection = BufReader::new(stream);
    let request = "POST /v1/traces HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";
    let mut ask = || {
        connection
            .get_mut()
            .write_all(request.as_bytes())
            .expect("a request");
        let head = answered(&mut connection);
        assert!(head.starts_with("http/1.1 200 "), "{head}");
        head.contains("connection: close")
    };
    assert!(!ask());
    collector.signal("HUP");
    collector.line("running");
    collector.line("running");
    while !ask() {}
    let mut rest = Vec::new();
    connection.read_to_end(&mut rest).expect("an end");
    assert!(rest.is_empty());
    collector.line("the previous configuration has ended");
    collector.signal("TERM");
    assert!(collector.child.wait().expect("an end").success());
}

#[test]
fn the_end_tells_what_it_waits_for_and_how_to_end_at_once() {
    let dead = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let target = dead.local_addr().expect("an address");
    let config = CONFIG
        .replace(
            "  nop:",
            &format!("  otlphttp: {{ endpoint: 'http://{target}' }}"),
        )
        .replace(
            "[tail_sampling, batch], exporters: [nop]",
            "[], exporters: [otlphttp]",
        );
    let mut collector = Running::start(&config);
    let endpoint = format!("http://{}", collector.address("otlp http"));
    let words = "tracegen --quiet --protocol http --traces 1 --endpoint";
    let words: Vec<_> = words.split(' ').chain([&*endpoint]).collect();
    assert!(output(&words).status.success());
    collector.signal("TERM");
    collector.line("ending: no new records are accepted");
    let line = collector.line("waiting at most 25 s for ");
    assert!(
        line.contains(" batches for exporter 'otlphttp'")
            && line.ends_with("; SIGINT ends at once and loses them"),
        "{line}"
    );
    collector.signal("INT");
    collector.line("SIGINT: pending records are lost");
    assert!(!collector.child.wait().expect("an end").success());
}

/// What a collector with these options of its log writes to a file from its start to its end.
fn logged(options: &str) -> String {
    let folder = Folder::new();
    let socket = folder.path("up");
    let path = folder.write("own.log", "");
    let logs = format!("telemetry: {{ logs: {{ output_paths: ['{path}'], {options} }},");
    let health = format!(
        "health_check: {{ transport: unix, endpoint: '{}' }}",
        socket.display()
    );
    let config = CONFIG
        .replace("telemetry: {", &logs)
        .replace("health_check: { endpoint: '127.0.0.1:0' }", &health);
    let mut collector = Running::start(&config);
    common::eventually("it is there", || {
        let mut stream = std::os::unix::net::UnixStream::connect(&socket).ok()?;
        let request = "GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
        stream.write_all(request.as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        answer.starts_with("HTTP/1.1 200 ").then_some(())
    });
    assert!(common::sys::signal(collector.child.id(), libc::SIGTERM));
    assert!(collector.child.wait().expect("its end").success());
    std::fs::read_to_string(&path).expect("a file")
}

#[test]
fn the_own_log_is_as_the_settings_say() {
    let plain = logged("initial_fields: { zone: here }");
    assert!(
        !plain.is_empty() && plain.lines().all(|line| line.ends_with("\tzone=here")),
        "{plain}"
    );
    let json = logged("encoding: json, initial_fields: { zone: here }");
    let is_json =
        |line: &str| line.starts_with("{\"level\":\"") && line.ends_with("\"zone\":\"here\"}");
    assert!(!json.is_empty() && json.lines().all(is_json), "{json}");
    assert_eq!(logged("level: error"), "");
}
