//! Lines whose keywords have no effect here are refused or accepted like in HAProxy.

use crate::common;

use common::read;
use spangate_config::diagnostic::Severity;

/// A file with a line of this kind.
fn file(kind: &str, line: &str) -> String {
    const TIMEOUTS: &str =
        " mode http\n timeout client 1s\n timeout server 1s\n timeout connect 1s\n";
    match kind {
        "global" => format!("global\n expose-experimental-directives\n {line}\n"),
        "bind" => format!("frontend f\n mode http\n timeout client 1s\n bind 127.0.0.1:1 {line}\n"),
        "server" => format!("defaults\n{TIMEOUTS}backend b\n server s 127.0.0.1:1 {line}\n"),
        "backend" => format!("defaults\n{TIMEOUTS}backend b\n server s 127.0.0.1:1\n {line}\n"),
        "frontend" => format!("frontend f\n mode http\n bind :80\n timeout client 1s\n {line}\n"),
        section => format!("{section} x\n {line}\n"),
    }
}

/// The result for a line: accepted, refused, or not implemented.
fn verdict(text: &str) -> (&'static str, String) {
    let Err(diagnostics) = read(text) else {
        return ("yes", String::new());
    };
    let alerts = diagnostics
        .iter()
        .filter(|item| item.severity == Severity::Alert);
    let messages: Vec<&str> = alerts.map(|item| item.message.as_str()).collect();
    if messages
        .iter()
        .any(|message| message.contains("not implemented yet"))
    {
        ("not yet", messages.join("\n"))
    } else {
        ("no", messages.join("\n"))
    }
}

#[test]
fn arguments_without_an_effect_are_those_of_haproxy() {
    let mut wrong = Vec::new();
    let mut count = 0;
    let list = include_str!("data/haproxy-arguments.txt");
    for row in list.lines().filter(|row| !row.starts_with('#')) {
        let mut cells = row.split('\t');
        let [wanted, kind, line] = [(); 3].map(|()| cells.next().expect("three cells"));
        let (found, message) = verdict(&file(kind, line));
        count += 1;
        if found != "not yet" && found != wanted {
            wrong.push(format!(
                "{kind}: {line}: HAProxy {wanted}, here {found} {message}"
            ));
        }
    }
    assert!(count > 2200, "the list is whole: {count}");
    assert!(
        wrong.is_empty(),
        "{} of {count}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
