//! Commands that concern the connection itself.

use std::time::Duration;

use super::command::{Asked, Level, Mode, Reply, Severity, command, session_command};
use super::session::{Prompting, Session};
use super::{Command, help, proxies, servers};
use crate::handover;

#[rustfmt::skip]
pub(super) const COMMANDS: &[Command] = &[
    session_command("help", "", Level::User, "", help::help),
    session_command("prompt", "", Level::User, "", prompt),
    session_command("quit", "", Level::User, "", |_, _| Reply::End),
    command(handover::COMMAND, "", Level::User, "", give_listeners),
    session_command("echo", "<text>", Level::User, "print text", |_, rest| Reply::Said(rest.join(" ") + "\n")),
    session_command("expert-mode", "", Level::Admin, "", |session, rest| mode(session, Mode::Expert, rest)),
    session_command("experimental-mode", "", Level::Admin, "", |session, rest| mode(session, Mode::Experimental, rest)),
    session_command("operator", "", Level::Operator, "lower the level of this session to operator", |session, rest| lower(session, Level::Operator, rest)),
    session_command("user", "", Level::User, "lower the level of this session to user", |session, rest| lower(session, Level::User, rest)),
    session_command("set severity-output", "[none|number|string]", Level::User, "choose whether messages begin with their severity", severity),
    session_command("set timeout", "[cli] <delay>", Level::User, "set the idle timeout of this session", timeout),
    session_command("show cli level", "", Level::User, "show the level of this session", |session, _| Reply::Said(session.level.name().to_owned())),
    command("show version", "", Level::User, "show the version of the configuration language and commands", |_| Reply::Said(crate::build::info().version)),
    command("wait", "{-h|<delay_ms>} cond [args...]", Level::Admin, "wait for a delay or a condition (-h lists them)", wait),
];

const PROMPT_USAGE: &str = "Usage: prompt [help | n | i | p | timed]*
Changes whether the session is interactive and shows a prompt. Available options:
  help    display this help
  n       single command, then close (no prompt)
  i       interactive (several commands, no prompt)
  p       interactive with a prompt
  timed   toggle the uptime in the prompt
Without any argument, toggles between n/i->p, p->n.
";

fn prompt(session: &mut Session, rest: &[&str]) -> Reply {
    let (mut wanted, mut timed) = (None, false);
    for word in rest {
        match *word {
            "n" => wanted = Some(Prompting::Single),
            "i" => wanted = Some(Prompting::Interactive),
            "p" => wanted = Some(Prompting::Prompt),
            "timed" => timed = true,
            "help" => return Reply::Said(PROMPT_USAGE.to_owned()),
            _ => return Reply::Refused(PROMPT_USAGE.to_owned()),
        }
    }
    session.timed ^= timed;
    session.prompting = match (wanted, session.prompting) {
        (Some(wanted), _) => wanted,
        (None, Prompting::Prompt) if !timed => Prompting::Single,
        (None, _) => Prompting::Prompt,
    };
    Reply::Done
}

/// Sends the listening sockets to a process that takes over (`-x`).
fn give_listeners(asked: &Asked<'_>) -> Reply {
    if let Some(client) = asked.client.takes_listeners() {
        // The process that takes over reports a failure.
        let _ = asked.subjects.exposed.give(client);
    }
    Reply::End
}

/// With the word `-`, the next answer has no empty line at its end.
fn set_line_feed(session: &mut Session, word: Option<&&str>) {
    session.no_line_feed = word == Some(&"-");
}

fn mode(session: &mut Session, mode: Mode, rest: &[&str]) -> Reply {
    set_line_feed(session, rest.get(1));
    let name = match mode {
        Mode::Expert => "expert-mode",
        _ => "experimental-mode",
    };
    match rest.first() {
        None => {
            let state = if session.is_in(mode) { "ON" } else { "OFF" };
            Reply::Said(format!("{name} is {state}\n"))
        }
        Some(word) => {
            session.set_mode(mode, *word == "on");
            Reply::Done
        }
    }
}

fn lower(session: &mut Session, level: Level, rest: &[&str]) -> Reply {
    set_line_feed(session, rest.first());
    session.level = level;
    session.set_mode(Mode::Expert, false);
    session.set_mode(Mode::Experimental, false);
    Reply::Done
}

fn severity(session: &mut Session, rest: &[&str]) -> Reply {
    set_line_feed(session, rest.get(1));
    match rest.first().and_then(|name| Severity::named(name)) {
        Some(severity) => {
            session.severity = severity;
            Reply::Done
        }
        None => {
            Reply::Refused("one of 'none', 'number', 'string' is a required argument\n".to_owned())
        }
    }
}

fn timeout(session: &mut Session, rest: &[&str]) -> Reply {
    let refused = |text: &str| Reply::Refused(text.to_owned());
    match rest {
        ["cli"] => refused("Expects an integer value.\n"),
        ["cli", value, ..] => match duration(value, Duration::from_secs(1)) {
            Some(timeout) if timeout >= Duration::from_secs(1) => {
                session.timeout = timeout;
                Reply::Done
            }
            _ => refused("Invalid timeout value.\n"),
        },
        _ => refused("'set timeout' only supports 'cli'.\n"),
    }
}

/// A time with its unit (manual §2.5); without a unit, in `unit`.
pub(super) fn duration(text: &str, unit: Duration) -> Option<Duration> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let number: u32 = text[..digits].parse().ok()?;
    let unit = match &text[digits..] {
        "" => unit,
        "us" => Duration::from_micros(1),
        "ms" => Duration::from_millis(1),
        "s" => Duration::from_secs(1),
        "m" => Duration::from_secs(60),
        "h" => Duration::from_secs(3_600),
        "d" => Duration::from_secs(86_400),
        _ => return None,
    };
    unit.checked_mul(number)
}

const WAIT_USAGE: &str = "Usage: wait {-h|<duration>} [condition [args...]]
  - '-h' displays this help
  - <duration> is the maximum wait time, optionally suffixed by the unit among
    'us', 'ms', 's', 'm', 'h', and 'd'. ; the default unit is milliseconds.
  - <condition> indicates what to wait for, no longer than the specified
    duration. Supported conditions are:
    - <none> : by default, just sleep for the specified duration.
    - be-removable <px> : wait for this backend to become removable.
    - srv-removable <px>/<sv> : wait for this server to become removable.
";

fn wait(asked: &Asked<'_>) -> Reply {
    let refused = |text: &str| Reply::Refused(text.to_owned());
    let Some((time, condition)) = asked.rest.split_first() else {
        return refused("Expects a duration in milliseconds.\n");
    };
    if *time == "-h" {
        return Reply::Said(WAIT_USAGE.to_owned());
    }
    let Some(time) = duration(time, Duration::from_millis(1)).filter(|time| !time.is_zero()) else {
        return refused("Invalid duration.\n");
    };
    match condition {
        [] => {
            if asked.client.leaves_within(time) {
                refused("Interrupted.\n")
            } else {
                Reply::Said("Done.\n".to_owned())
            }
        }
        ["-h", ..] => Reply::Said(WAIT_USAGE.to_owned()),
        ["srv-removable"] => refused("Missing server name (<backend>/<server>).\n"),
        ["srv-removable", name, ..] => wait_until(asked, time, || servers::removable(asked, name)),
        ["be-removable"] => refused("Missing backend name.\n"),
        ["be-removable", name, ..] => wait_until(asked, time, || proxies::removable(asked, name)),
        _ => refused(WAIT_USAGE),
    }
}

/// How often `wait` checks its condition.
const LOOKS: u32 = 100;
/// The shortest pause between two checks.
const LOOK_PAUSE_MIN: Duration = Duration::from_millis(1);

/// `is_met`: whether the condition holds; otherwise why not yet, or why it never can.
fn wait_until(
    asked: &Asked<'_>,
    time: Duration,
    is_met: impl Fn() -> Result<Option<&'static str>, &'static str>,
) -> Reply {
    let pause = (time / LOOKS).max(LOOK_PAUSE_MIN);
    let mut left = time;
    loop {
        let why = match is_met() {
            Ok(None) => return Reply::Said("Done.\n".to_owned()),
            Ok(Some(why)) => why,
            Err(why) => return Reply::Refused(format!("Failed. {why}\n")),
        };
        if left.is_zero() {
            return Reply::Refused(format!("Wait delay expired. {why}\n"));
        }
        let pause = pause.min(left);
        if asked.client.leaves_within(pause) {
            return Reply::Refused(format!("Interrupted. {why}\n"));
        }
        left -= pause;
    }
}
