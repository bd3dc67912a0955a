//! The runtime interface, for commands on the filters `opentelemetry`.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use super::{DEADLINE, before_the_next_look, now};

/// The answer to `flt-otel <line>`.
pub fn ask(path: &Path, line: &str) -> String {
    ask_any(path, &format!("flt-otel {line}"))
}

/// The answer to any command.
pub fn ask_any(path: &Path, line: &str) -> String {
    let mut stream = UnixStream::connect(path).expect("the socket");
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    stream.write_all(format!("{line}\n").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// Asks until the answer contains a text.
pub fn until(path: &Path, line: &str, text: &str) -> String {
    until_holds(path, line, |answer| answer.contains(text))
}

/// Asks until `holds` returns true for the answer to `flt-otel <line>`.
pub fn until_holds(path: &Path, line: &str, holds: impl Fn(&str) -> bool) -> String {
    until_any_holds(path, &format!("flt-otel {line}"), holds)
}

/// Asks until `holds` returns true for the answer to any command.
pub fn until_any_holds(path: &Path, line: &str, holds: impl Fn(&str) -> bool) -> String {
    let deadline = now() + DEADLINE;
    loop {
        let answer = ask_any(path, line);
        if holds(&answer) {
            return answer;
        }
        assert!(now() < deadline, "in the end: {answer}");
        before_the_next_look();
    }
}

/// The account of a pipeline in `flt-otel status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Account {
    pub started: u64,
    pub exported: u64,
    pub lost: u64,
    /// Records in its queue.
    pub queued: u64,
    pub in_flight: u64,
}

impl Account {
    /// The account of the first pipeline of a signal.
    pub fn read(status: &str, signal: &str) -> Account {
        let (_, part) = status
            .split_once(&format!("pipeline     : {signal} "))
            .unwrap_or_else(|| panic!("no {signal} in {status}"));
        let number = |line: &str, after: &str| -> u64 {
            let line = part.lines().find(|text| text.trim().starts_with(line));
            let before = line
                .and_then(|line| line.split_once(after))
                .map(|two| two.0);
            let number = before.and_then(|text| text.trim_end().rsplit(' ').next()?.parse().ok());
            number.unwrap_or_else(|| panic!("no {after:?} in {part}"))
        };
        Account {
            started: number("records ", "started"),
            exported: number("records ", "exported"),
            lost: number("records ", "lost"),
            queued: number("queue ", "of"),
            in_flight: number("records ", "in flight"),
        }
    }

    /// Whether every record is counted exactly once.
    pub fn adds_up(&self) -> bool {
        self.started == self.exported + self.lost + self.queued + self.in_flight
    }
}
