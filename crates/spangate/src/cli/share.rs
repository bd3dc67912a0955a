//! `show share`, beyond HAProxy's: tables whose counters are shared through a store.

use super::{Asked, Command, Level, Reply, command};

#[rustfmt::skip]
pub(super) const COMMANDS: &[Command] = &[
    command("show share", "", Level::User, "show the tables that are shared through a store, and how their exchange goes", show),
];

fn show(asked: &Asked<'_>) -> Reply {
    let mut out = String::new();
    if let Some(share) = &asked.subjects.share {
        share.describe(&mut out);
    }
    if out.is_empty() {
        Reply::Done
    } else {
        Reply::Dump(out)
    }
}
