//! Arguments of keywords that are read and have no effect here: HAProxy's traces (manual §3.10).

use super::line::{Cursor, Parse};

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
