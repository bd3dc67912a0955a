//! Arguments of sections for features that do not exist here: name servers, mail servers, caches,
//! certificates, traces (manual §3.10, §3.12, §5.3.2, §6.2, §12).

use super::address::{self, Parsed, Ports};
use super::line::{Cursor, Parse};
use super::{Shared, values};

/// `nameserver <name> <addr>:<port>`, `mailer <name> <addr>:<port>`
pub fn named_address(cursor: &mut Cursor<'_>, shared: &Shared<'_>) -> Parse {
    let keyword = cursor.line.keyword();
    let missing = || format!("'{keyword}' expects <name> and <addr>[:<port>] as arguments.");
    let name = cursor.line.need(cursor.at, missing)?;
    cursor.line.need(cursor.at + 1, missing)?;
    cursor.at += 2;
    let title = format!("'{keyword} {name}'");
    let text = &*address::resolved(&cursor.line, cursor.at - 1, shared, &title)?;
    // Sockets of both kinds are accepted.
    let bare = ["tcp@", "tcp4@", "tcp6@", "udp@", "udp4@", "udp6@"]
        .iter()
        .find_map(|family| text.strip_prefix(family.as_bytes()));
    let fault = |why: String| cursor.fault(format!("{title} : {why}."));
    match address::parse(bare.unwrap_or(text), address::Names::Resolve).map_err(fault)? {
        Parsed::Inet(_, Ports::Range(..)) | Parsed::Unix(_) | Parsed::Fd(_) => Ok(()),
        Parsed::Inet(..) => {
            let text = cursor.last();
            Err(fault(format!("missing port specification in '{text}'")))
        }
    }
}

/// `timeout mail <time>`
pub fn mail_timeout(cursor: &mut Cursor<'_>) -> Parse {
    event_and_time(cursor, &["mail"])
}

fn event_and_time(cursor: &mut Cursor<'_>, events: &[&str]) -> Parse {
    let keyword = cursor.line.keyword();
    let event = cursor.take();
    if !events.contains(&event) {
        return Err(cursor.fault(format!(
            "'{keyword}' expects {} and <time> as arguments (got '{event}').",
            events.join(", ")
        )));
    }
    let text = cursor.line.need(cursor.at, || {
        format!("'{keyword} {event}' expects <time> as argument.")
    })?;
    cursor.take();
    let name = format!("{keyword} {event}");
    let time = values::whole_time(text);
    time.map(drop)
        .map_err(|bad| cursor.fault(values::time_message(bad, text, &name)))
}

/// `filter trace [name <name>] [quiet] [random-forwarding] [max-fwd <max>] [hexdump]`
pub fn filter_trace(cursor: &mut Cursor<'_>) -> Parse {
    loop {
        match cursor.peek() {
            "quiet" | "random-parsing" | "random-forwarding" | "hexdump" => {
                cursor.take();
            }
            word @ ("name" | "max-fwd") => {
                cursor.take();
                let value = cursor.take();
                if value.is_empty() {
                    return Err(cursor.fault(format!("'trace' : '{word}' option without value.")));
                }
                if word == "max-fwd" && value.parse::<u32>().is_err() {
                    return Err(cursor.fault(
                        "'trace' : 'max-fwd' expect unsigned integer (0 to 4294967295 expected).",
                    ));
                }
            }
            _ => return Ok(()),
        }
    }
}

/// The trace sources of HAProxy.
const TRACED: [&str; 18] = [
    "acme", "applet", "check", "dbg", "fcgi", "h1", "h2", "h3", "haterm", "peers", "pt", "qcm",
    "quic", "session", "spop", "ssl", "stream", "all",
];
const TRACE_LEVELS: [&str; 6] = ["error", "user", "proto", "state", "data", "developer"];

/// `trace 0|all|<source> [<command> <argument>]…`
pub fn trace(cursor: &mut Cursor<'_>) -> Parse {
    let source = cursor.take();
    if matches!(source, "" | "0") {
        return Ok(());
    }
    if !TRACED.contains(&source) {
        return Err(cursor.fault(format!("No such trace source '{source}'.")));
    }
    while !cursor.peek().is_empty() {
        let command = cursor.take();
        let is_of_all = matches!(command, "follow" | "sink" | "level");
        if source == "all" && !is_of_all {
            return Err(cursor.fault(format!("'{command}' not applicable to meta-source 'all'.")));
        }
        let is_known = is_of_all
            || matches!(
                command,
                "event" | "lock" | "pause" | "start" | "stop" | "verbosity"
            );
        if !is_known {
            return Err(cursor.fault(format!("Unknown trace keyword '{command}'.")));
        }
        let value = cursor.take();
        match command {
            "follow" if !matches!(value, "" | "none") && !TRACED.contains(&value) => {
                return Err(cursor.fault(format!("No such trace source '{value}'.")));
            }
            "level" if !value.is_empty() && !TRACE_LEVELS.contains(&value) => {
                return Err(cursor.fault(format!("No such trace level '{value}'.")));
            }
            _ => {}
        }
    }
    Ok(())
}

/// An integer other than 0.
pub fn not_zero(cursor: &mut Cursor<'_>) -> Parse {
    super::threads::not_zero(cursor)
}
