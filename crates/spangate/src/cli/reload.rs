//! `reload`: the process goes on with its files as they are now, without another process.

use super::Command;
use super::command::{Asked, Level, Reply, command};
use crate::process::{ANSWER_TIME, ReloadKind};

#[rustfmt::skip]
pub(super) const COMMANDS: &[Command] = &[
    command("reload", "[check]", Level::Admin, "apply the configuration files in place, or show what that would do", reload),
];

fn reload(asked: &Asked<'_>) -> Reply {
    let kind = match asked.rest {
        [] => ReloadKind::Apply,
        ["check"] => ReloadKind::Check,
        _ => return Reply::Refused("'reload' takes no argument or 'check'.\n".to_owned()),
    };
    match asked.subjects.reloads.ask(kind, ANSWER_TIME) {
        Ok(text) => Reply::Said(text),
        Err(text) => Reply::Refused(text),
    }
}
