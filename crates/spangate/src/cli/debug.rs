//! `debug dev`: commands that help to find faults (management guide §9.3); expert mode only.

use std::time::Duration;

use super::command::{Mode, command};
use super::servers::number;
use super::{Asked, Command, Level, Reply};

#[rustfmt::skip]
pub(super) const COMMANDS: &[Command] = &[
    command("debug dev delay", "[ms]", Level::Admin, "answer after this delay", delay).only_in(Mode::Expert),
    command("debug dev exit", "[code]", Level::Admin, "end the process at once", exit).only_in(Mode::Expert),
    command("debug dev hash", "[msg]", Level::Admin, "show the hash that stands for a text ('set anon')", hash),
    command("debug dev log", "[msg] ...", Level::Admin, "send a message to the logs of section global", log).only_in(Mode::Expert),
];

/// Severity `info` of syslog.
const SEVERITY_INFO: u8 = 6;

fn delay(asked: &Asked<'_>) -> Reply {
    let ms = number(asked.rest.first().copied().unwrap_or_default());
    let wait = Duration::from_millis(u64::try_from(ms).unwrap_or(0));
    // Stops waiting when the client disconnects.
    asked.client.leaves_within(wait);
    Reply::Done
}

fn exit(asked: &Asked<'_>) -> Reply {
    let code = number(asked.rest.first().copied().unwrap_or_default());
    crate::sys::exit_now(code as i32)
}

fn hash(asked: &Asked<'_>) -> Reply {
    let text = asked.rest.first().copied().unwrap_or_default();
    Reply::Said(format!("{}\n", asked.anonymiser.text(text)))
}

fn log(asked: &Asked<'_>) -> Reply {
    let text = asked.rest.join(" ");
    asked.subjects.crier.tell_of_process(SEVERITY_INFO, &text);
    Reply::Done
}
