//! `show env`: the environment of the process.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use super::{Asked, Command, Level, Reply, command};

pub(super) const COMMANDS: &[Command] = &[command(
    "show env",
    "[var]",
    Level::Operator,
    "show environment variables of the process",
    show,
)];

fn show(asked: &Asked<'_>) -> Reply {
    let line = |(name, value): (OsString, OsString)| {
        let parts: [&[u8]; 4] = [name.as_bytes(), b"=", value.as_bytes(), b"\n"];
        parts.concat()
    };
    match asked.bytes {
        [] => Reply::Parts(Box::new(std::env::vars_os().map(line))),
        [name, ..] => {
            let name = OsStr::from_bytes(name);
            match std::env::vars_os().find(|(known, _)| known == name) {
                Some(variable) => Reply::Parts(Box::new(std::iter::once(line(variable)))),
                None => Reply::Refused("Variable not found\n".to_owned()),
            }
        }
    }
}
