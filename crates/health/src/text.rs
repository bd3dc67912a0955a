//! Texts of messages about checks, the same as HAProxy's.

use std::io;

use config::model::{CheckAction, CheckExpect, CheckPort, CheckRule, CheckScript, Expectation};
use syntax::hex;

/// A connection error: HAProxy's name for it and the system's text.
pub(crate) fn lost(error: &io::Error) -> String {
    use io::ErrorKind as Kind;
    let name = match error.kind() {
        Kind::ConnectionRefused => "ECONNREFUSED",
        Kind::ConnectionReset => "ECONNRESET",
        Kind::NetworkUnreachable | Kind::HostUnreachable => {
            return format!("General socket error ({})", system(error));
        }
        Kind::BrokenPipe => "EPIPE",
        Kind::NotConnected => "ENCONN",
        Kind::OutOfMemory => "ENOMEM",
        _ => return system(error),
    };
    format!("{name} returned by OS ({})", system(error))
}

/// The system's text for an error, without its number.
pub(crate) fn system(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(_) => net::sys::plain_error(error),
        None => error.to_string(),
    }
}

/// The number of a step in messages; 0 is a connection without a rule.
pub(crate) fn step(rule: &CheckRule) -> u32 {
    match &rule.action {
        CheckAction::Connect(connect) if connect.is_implicit && rule.index == 0 => 0,
        _ => rule.index + 1,
    }
}

/// ` at step 2 of tcp-check (expect string 'x') comment: 'y'`: the position in a `tcp-check`
/// script; empty for other checks.
pub(crate) fn place(script: &CheckScript, rule: &CheckRule) -> String {
    if script.kind != config::model::CheckKind::Tcp {
        return String::new();
    }
    let step = step(rule);
    if step == 0 {
        return " at initial connection step of tcp-check".to_owned();
    }
    let what = match &rule.action {
        CheckAction::Connect(connect) => match connect.port {
            Some(CheckPort::Fixed(port)) => format!(" (connect port {port})"),
            _ => " (connect)".to_owned(),
        },
        CheckAction::Send(_) => " (send)".to_owned(),
        CheckAction::Expect(expect) => format!(" (expect {})", expected(expect)),
        CheckAction::Assign(_) => String::new(),
    };
    let comment = match &rule.comment {
        Some(comment) => format!(" comment: '{comment}'"),
        None => String::new(),
    };
    format!(" at step {step} of tcp-check{what}{comment}")
}

fn expected(expect: &CheckExpect) -> String {
    match &expect.what {
        Expectation::Bytes {
            bytes,
            is_binary: false,
        } => format!("string '{bytes}'"),
        Expectation::Bytes { bytes, .. } => {
            format!("binary '{}'", hex::text(bytes).to_ascii_uppercase())
        }
        Expectation::Regex { is_binary, .. } => match is_binary {
            true => "binary regex".to_owned(),
            false => "regex".to_owned(),
        },
        Expectation::Format { is_binary, .. } => match is_binary {
            true => "log-format binary".to_owned(),
            false => "log-format string".to_owned(),
        },
        Expectation::Status(_) => "HTTP status codes".to_owned(),
        Expectation::StatusRegex(_) => "HTTP status regex".to_owned(),
        Expectation::Header(_) => "HTTP header pattern".to_owned(),
        Expectation::Custom(_) => "custom function".to_owned(),
    }
}
