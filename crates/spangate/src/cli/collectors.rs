//! `show collectors`: what happened to the records that the collectors of this process accepted.

use super::{Asked, Command, Level, Reply, command};
use crate::collectors::describe;

pub(super) const COMMANDS: &[Command] = &[command(
    "show collectors",
    "",
    Level::User,
    "show the accounts of the sections 'collector'",
    show,
)];

fn show(asked: &Asked<'_>) -> Reply {
    if asked.subjects.collectors.is_empty() {
        return Reply::Refused("there is no section 'collector'.\n".to_owned());
    }
    let mut text = String::new();
    for one in &asked.subjects.collectors {
        // Writing to memory does not fail.
        let _ = describe(one, &mut text);
    }
    Reply::Dump(text)
}
