//! Scripted clients and origins: the data that each receives, and the log lines.
//!
//! A scenario in `scenarios.txt` has a name in brackets, an indented configuration, and scripts.
//! Each `client` is played after the one before it. Each `origin` is played for one connection, the
//! last one for all further connections. Without a configuration or an origin, the usual ones are
//! used.
//!
//! | step | does |
//! |---|---|
//! | `> text` | sends |
//! | `>* N c` | sends a character N times |
//! | `? text` | reads up to a text; without a text, to the end of a head |
//! | `*` | reads to the end |
//! | `~ N` | waits N milliseconds |
//! | `\|` | half-closes |
//! | `!` | resets |
//! | `x` | closes |
//!
//! In a configuration, `{fe}` is the frontend's address, `{srv}` the origin's, `{dead}` one that
//! refuses connections, `{log}` that of the log, and `{dir}` a folder with files. `with its header`
//! compares the headers of log lines as well. `differs` gives the reason why the result differs
//! from HAProxy's; then the result must differ.
//!
//! Not compared: ports, dates and times, the byte count in HTTP log lines (HAProxy counts its
//! internal form of a message), texts of error pages, and whether a connection ends with FIN or
//! RST.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::common::{DEADLINE, Folder, Port, Proxy, address, listener, spawn, uninterrupted};
use super::recorded::{self, Answers, VARIES};

const SCENARIOS: &str = include_str!("scenarios.txt");

const GLOBAL: &str = "
global
    nbthread 1
    expose-experimental-directives
    log {log} local0 debug
defaults
    mode http
    log global
    timeout connect 300ms
    timeout client 500ms
    timeout server 500ms
";
const USUAL: &str = "
frontend fe
    bind {fe}
    option httplog
    default_backend be
backend be
    server s1 {srv}
";
const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
/// Files that configurations name.
const FILES: &[(&str, &str)] = &[
    (
        "503.http",
        "HTTP/1.0 503 Svc\r\nCache-Control: no-cache\r\nContent-Type: text/plain\r\n\r\nsorry\n",
    ),
    ("body.txt", "file %[path]"),
    ("body.lf", "lf %[path]"),
];

/// Most time for a peer to wait for bytes; longer than any timeout of a configuration.
const PATIENCE: Duration = Duration::from_secs(3);
/// If the number of log lines is unknown, the log is complete after this much silence.
const QUIET: Duration = Duration::from_millis(500);
/// Concurrent scenarios: they mostly wait.
const AT_A_TIME: usize = 8;
/// Most attempts for a scenario with differences: its waits are real time, and the machine may be
/// busy.
const PLAYED_MAX: u32 = 4;

enum Step {
    Send(Vec<u8>),
    /// Reads up to these bytes.
    Read(Vec<u8>),
    ReadAll,
    Wait(Duration),
    HalfClose,
    Reset,
    Close,
}

struct Scenario {
    name: String,
    config: String,
    clients: Vec<Vec<Step>>,
    origins: Arc<Vec<Vec<Step>>>,
    with_header: bool,
    /// The reason for a difference.
    differs: Option<String>,
}

#[test]
fn scenarios_go_as_with_haproxy() {
    let scenarios = parse();
    if let Some((program, version)) = recorded::haproxy() {
        let answers = play_all(&scenarios, &|scenario| {
            let first = play(&program, scenario, None);
            let again = |_| play(&program, scenario, Some(logged(&first))) == first;
            if (1..PLAYED_MAX).all(again) {
                first
            } else {
                vec![VARIES.to_owned()]
            }
        });
        recorded::write("scenarios", &version, &answers);
    }
    let theirs = recorded::read("scenarios");
    let ours = Path::new(env!("CARGO_BIN_EXE_spangate"));
    let same = |scenario: &Scenario, answer: &Vec<String>| {
        let their = theirs.get(&scenario.name);
        their.is_some_and(|lines| lines == &[VARIES])
            || (their == Some(answer)) == scenario.differs.is_none()
    };
    let answers = play_all(&scenarios, &|scenario| {
        let lines = theirs.get(&scenario.name).map_or(0, |lines| logged(lines));
        let mut answer = play(ours, scenario, Some(lines));
        for _ in 1..PLAYED_MAX {
            if same(scenario, &answer) {
                break;
            }
            answer = play(ours, scenario, Some(lines));
        }
        answer
    });
    let mut told = String::new();
    for scenario in &scenarios {
        let answer = &answers[&scenario.name];
        if same(scenario, answer) {
            continue;
        }
        match &scenario.differs {
            Some(reason) => told.push_str(&format!(
                "\n{}\n    does not differ (any more): {reason}",
                scenario.name
            )),
            None => {
                let one = Answers::from([(scenario.name.clone(), answer.clone())]);
                told.push_str(&recorded::differences(&theirs, &one));
            }
        }
    }
    assert!(told.is_empty(), "of {} scenarios:{told}", scenarios.len());
}

/// The number of log lines in the result of a scenario.
fn logged(lines: &[String]) -> usize {
    lines.iter().filter(|line| line.starts_with("log ")).count()
}

fn play_all(scenarios: &[Scenario], play: &(dyn Fn(&Scenario) -> Vec<String> + Sync)) -> Answers {
    let next = AtomicUsize::new(0);
    let answers = Mutex::new(Answers::new());
    let work = || {
        while let Some(scenario) = scenarios.get(next.fetch_add(1, Ordering::Relaxed)) {
            let answer = play(scenario);
            let mut answers = answers.lock().expect("nobody failed");
            let before = answers.insert(scenario.name.clone(), answer);
            assert!(before.is_none(), "{} is there twice", scenario.name);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            let builder = std::thread::Builder::new();
            builder.spawn_scoped(scope, work).expect("a thread");
        }
    });
    answers.into_inner().expect("nobody failed")
}

// ---- parsing

fn parse() -> Vec<Scenario> {
    let mut scenarios: Vec<Scenario> = Vec::new();
    /// The owner of the following steps.
    enum Whose {
        Client,
        Origin,
    }
    let mut whose = Whose::Client;
    let mut origins: Vec<Vec<Step>> = Vec::new();
    let settle = |scenarios: &mut Vec<Scenario>, origins: Vec<Vec<Step>>| {
        let Some(scenario) = scenarios.last_mut() else {
            return;
        };
        let usual = || {
            vec![vec![
                Step::Read(b"\r\n\r\n".to_vec()),
                Step::Send(OK.to_vec()),
                Step::ReadAll,
            ]]
        };
        if scenario.config.is_empty() {
            scenario.config = USUAL.to_owned();
        }
        scenario.origins = Arc::new(if origins.is_empty() { usual() } else { origins });
    };
    for line in SCENARIOS.lines().filter(|line| !line.is_empty()) {
        if let Some(name) = line.strip_prefix('[') {
            settle(&mut scenarios, std::mem::take(&mut origins));
            scenarios.push(Scenario {
                name: name.trim_end_matches(']').to_owned(),
                config: String::new(),
                clients: Vec::new(),
                origins: Arc::default(),
                with_header: false,
                differs: None,
            });
            continue;
        }
        let scenario = scenarios.last_mut().expect("a name comes first");
        match line {
            _ if line.starts_with(' ') => scenario.config.push_str(&format!("{line}\n")),
            "with its header" => scenario.with_header = true,
            "client" => {
                whose = Whose::Client;
                scenario.clients.push(Vec::new());
            }
            "origin" => {
                whose = Whose::Origin;
                origins.push(Vec::new());
            }
            _ if line.starts_with("differs ") => {
                scenario.differs = line.strip_prefix("differs ").map(str::to_owned);
            }
            _ => {
                let scripts = match whose {
                    Whose::Client => &mut scenario.clients,
                    Whose::Origin => &mut origins,
                };
                let script = scripts.last_mut().expect("a script comes first");
                script.push(step(line));
            }
        }
    }
    settle(&mut scenarios, origins);
    scenarios
}

fn step(line: &str) -> Step {
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    match word {
        ">" => Step::Send(unescaped(rest)),
        ">*" => {
            let (count, what) = rest.split_once(' ').expect("a number and a character");
            Step::Send(what.repeat(count.parse().expect("a number")).into_bytes())
        }
        "?" if rest.is_empty() => Step::Read(b"\r\n\r\n".to_vec()),
        "?" => Step::Read(unescaped(rest)),
        "*" => Step::ReadAll,
        "~" => Step::Wait(Duration::from_millis(rest.parse().expect("milliseconds"))),
        "|" => Step::HalfClose,
        "!" => Step::Reset,
        "x" => Step::Close,
        _ => panic!("no step: {line}"),
    }
}

fn unescaped(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        bytes.extend_from_slice(before.as_bytes());
        let (byte, len) = match after.as_bytes()[0] {
            b'r' => (b'\r', 1),
            b'n' => (b'\n', 1),
            b't' => (b'\t', 1),
            b'x' => (u8::from_str_radix(&after[1..3], 16).expect("hex"), 3),
            other => (other, 1),
        };
        bytes.push(byte);
        rest = &after[len..];
    }
    bytes.extend_from_slice(rest.as_bytes());
    bytes
}

// ---- playing

/// A connection on which a script is played.
struct Played {
    stream: TcpStream,
    /// The bytes that the script read.
    read: Vec<u8>,
    /// The bytes received after those.
    rest: Vec<u8>,
}

/// Plays a script on a connection. Returns the bytes read.
#[expect(clippy::disallowed_methods, reason = "scripts have pauses")]
fn act(stream: TcpStream, script: &[Step]) -> Vec<u8> {
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let (read, rest) = (Vec::new(), Vec::new());
    let mut played = Played { stream, read, rest };
    for step in script {
        let stream = &mut played.stream;
        let going = match step {
            Step::Send(bytes) => stream.write_all(bytes).is_ok(),
            Step::Read(until) => played.take(Some(until)),
            Step::ReadAll => played.take(None),
            Step::Wait(time) => {
                std::thread::sleep(*time);
                true
            }
            Step::HalfClose => stream.shutdown(Shutdown::Write).is_ok(),
            Step::Reset => {
                let linger = rustix::net::sockopt::set_socket_linger(stream, Some(Duration::ZERO));
                linger.expect("an option");
                return played.read;
            }
            Step::Close => return played.read,
        };
        if !going {
            played.read.extend_from_slice(b"<END>");
            return played.read;
        }
    }
    if script
        .last()
        .is_some_and(|step| matches!(step, Step::ReadAll))
    {
        played.read.extend_from_slice(b"<END>");
    }
    played.read
}

impl Played {
    /// Reads up to a text, or to the end. Returns whether the text arrived.
    fn take(&mut self, until: Option<&[u8]>) -> bool {
        let mut chunk = [0; 64 << 10];
        loop {
            let found = |until: &[u8]| {
                let at = self
                    .rest
                    .windows(until.len())
                    .position(|part| part == until)?;
                Some(at + until.len())
            };
            if let Some(end) = until.and_then(found) {
                self.read.extend(self.rest.drain(..end));
                return true;
            }
            match uninterrupted(|| self.stream.read(&mut chunk)) {
                Ok(count) if count > 0 => self.rest.extend_from_slice(&chunk[..count]),
                result => {
                    self.read.append(&mut self.rest);
                    let waits = [ErrorKind::WouldBlock, ErrorKind::TimedOut];
                    if result.is_err_and(|error| waits.contains(&error.kind())) {
                        self.read.extend_from_slice(b"<TIMEOUT>");
                    }
                    return until.is_none();
                }
            }
        }
    }
}

/// A server that plays a script for each connection. It returns the bytes read when the connection
/// has ended.
fn serve(listener: TcpListener, scripts: Arc<Vec<Vec<Step>>>) -> Receiver<Receiver<Vec<u8>>> {
    let (sender, conns) = channel();
    let builder = std::thread::Builder::new().name("origin".into());
    let accept = move || {
        for number in 0.. {
            let Ok((stream, _)) = listener.accept() else {
                return;
            };
            let scripts = Arc::clone(&scripts);
            let script = number.min(scripts.len() - 1);
            let conn = spawn(move || act(stream, &scripts[script]));
            if sender.send(conn).is_err() {
                return;
            }
        }
    };
    builder.spawn(accept).expect("a thread");
    conns
}

/// Plays a scenario. Returns its result. `logged`: the number of log lines, if it is known.
fn play(program: &Path, scenario: &Scenario, logged: Option<usize>) -> Vec<String> {
    let folder = Folder::new();
    for (name, text) in FILES {
        folder.write(name, text);
    }
    let (front, origin, dead) = (listener(), listener(), Port::reserve());
    let log = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let places = Places {
        front: address(&front),
        origin: address(&origin),
        dead: SocketAddr::from(([127, 0, 0, 1], dead.number)),
    };
    let config = format!("{GLOBAL}{}", scenario.config)
        .replace("{fe}", "\"fd@${FE}\"")
        .replace("{srv}", &places.origin.to_string())
        .replace("{dead}", &places.dead.to_string())
        .replace("{log}", &log.local_addr().expect("an address").to_string())
        .replace("{dir}", &folder.root().display().to_string());
    let conns = serve(origin, Arc::clone(&scenario.origins));
    let proxy = Proxy::start_program(program, folder, &config, &[("FE", &front)], &[]);
    let mut lines = Vec::new();
    for script in &scenario.clients {
        let stream = TcpStream::connect(places.front).expect("a connection");
        let read = act(stream, script);
        lines.push(format!("client {}", places.plain(&message(&read))));
    }
    let mut told = Vec::new();
    log.set_read_timeout(Some(logged.map_or(QUIET, |_| PATIENCE)))
        .expect("a timeout");
    while logged.is_none_or(|count| told.len() < count) {
        let Some(line) = receive(&log) else { break };
        told.push(line);
    }
    proxy.running.signal(libc::SIGTERM);
    drop(proxy.running.end());
    // Extra lines have arrived by now.
    log.set_nonblocking(true).expect("a flag");
    told.extend(std::iter::from_fn(|| receive(&log)));
    lines.extend(told.iter().map(|line| {
        let line = places.plain(&logged_line(line, scenario.with_header));
        format!("log {line}")
    }));
    for conn in conns.try_iter() {
        let read = conn.recv_timeout(DEADLINE).expect("a script ends");
        lines.push(format!("origin {}", places.plain(&message(&read))));
    }
    lines.sort();
    lines
}

fn receive(log: &UdpSocket) -> Option<String> {
    let mut line = [0; 64 << 10];
    let count = uninterrupted(|| log.recv(&mut line)).ok()?;
    let text: String = line[..count].iter().copied().map(char::from).collect();
    Some(text.trim_end_matches('\n').to_owned())
}

// ---- parts that are not compared

struct Places {
    front: SocketAddr,
    origin: SocketAddr,
    dead: SocketAddr,
}

impl Places {
    /// The text without the ports of this run.
    fn plain(&self, text: &str) -> String {
        let text = text
            .replace(&self.front.to_string(), "FRONT")
            .replace(&self.origin.to_string(), "ORIGIN")
            .replace(&self.dead.to_string(), "DEAD");
        let mut plain = String::new();
        let mut rest = text.as_str();
        while let Some((before, after)) = rest.split_once("127.0.0.1:") {
            plain.push_str(before);
            let end = after.find(|c: char| !c.is_ascii_digit());
            rest = &after[end.unwrap_or(after.len())..];
            plain.push_str("CLIENT");
        }
        plain.push_str(rest);
        if let Some(rest) = plain.strip_prefix("PROXY TCP4 127.0.0.1 127.0.0.1 ") {
            let (_, rest) = rest.split_once('|').unwrap_or(("", rest));
            return format!("PROXY TCP4 CLIENT FRONT|{rest}");
        }
        plain
    }
}

/// Bytes as a line of text, without the texts of error pages and their lengths.
fn message(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in bytes {
        match byte {
            b'|' => text.push_str("\\|"),
            0x20..0x7f => text.push(char::from(*byte)),
            _ => text.extend(std::ascii::escape_default(*byte).map(char::from)),
        }
    }
    let text = text.replace("\\r\\n", "|");
    let Some((head, page)) = text.split_once("<html>") else {
        return text;
    };
    let after = page.split_once("</html>\\n").map_or("", |(_, after)| after);
    let start = head.rfind("HTTP/1.1 ").unwrap_or(0);
    let field = |line: &&str| !line.starts_with("content-length: ") && *line != "connection: close";
    let kept: Vec<&str> = head[start..].split('|').filter(field).collect();
    // More pages may follow.
    let after = message(after.replace('|', "\r\n").as_bytes());
    format!("{}{}<page>{after}", &head[..start], kept.join("|"))
}

/// A log line without its date and times and, for HTTP, its byte count; with its header if that is
/// compared.
fn logged_line(line: &str, with_header: bool) -> String {
    let (header, text) = match line.split_once("]: ") {
        Some((header, text)) if header.starts_with('<') => (header, text),
        _ => ("", line),
    };
    let mut words: Vec<String> = text.split(' ').map(str::to_owned).collect();
    if header.is_empty() && words[0].ends_with(">1") {
        // RFC 5424: a date and a process number.
        (words[1], words[4]) = ("DATE".to_owned(), "PID".to_owned());
    }
    let is_time = |part: &str| {
        let digits = part.trim_start_matches(['+', '-']);
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    let is_times = |word: &String| word.contains('/') && word.split('/').all(is_time);
    if let Some(at) = words.iter().position(is_times) {
        let parts = words[at].split('/').map(|part| match part {
            "-1" => "-1",
            _ if part.starts_with('+') => "+T",
            _ => "T",
        });
        let parts: Vec<&str> = parts.collect();
        let is_http = parts.len() >= 5;
        words[at] = parts.join("/");
        if is_http && let Some(bytes) = words.get_mut(at + 2) {
            *bytes = if bytes.starts_with('+') {
                "+B".to_owned()
            } else {
                "B".to_owned()
            };
        }
    }
    for word in &mut words {
        // A port that the system assigned.
        if word
            .parse()
            .is_ok_and(|number: u32| (30_000..61_000).contains(&number))
        {
            *word = "PORT".to_owned();
        }
    }
    let text = words.join(" ");
    // `[23/Nov/2026:05:28:20.123]`
    let text = match text.split_once('[') {
        Some((before, rest)) if rest.as_bytes().get(2) == Some(&b'/') => {
            let after = rest.split_once(']').map_or("", |(_, after)| after);
            format!("{before}[DATE]{after}")
        }
        _ => text,
    };
    match (with_header, header.split_once('>'), header.rsplit_once(' ')) {
        (true, Some((level, _)), Some((_, tag))) => {
            let tag = tag.split('[').next().unwrap_or_default();
            format!("{level}> {tag}: {text}")
        }
        _ => text,
    }
}
