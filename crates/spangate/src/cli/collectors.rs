//! `show collectors`: what became of what the collectors of this process took.

use std::fmt::Write as _;

use collector::config::Signal;
use collector::run::View;

use super::{Asked, Command, Level, Reply};
use crate::collect::account;

pub(super) const COMMANDS: &[Command] = &[Command {
    words: "show collectors",
    help: "the accounts of the sections 'collector'",
    level: Level::User,
    run: show,
}];

fn show(asked: &Asked<'_>) -> Reply {
    if asked.subjects.collectors.is_empty() {
        return Reply::Refused("there is no section 'collector'.\n".to_owned());
    }
    let mut text = String::new();
    for (name, view) in &asked.subjects.collectors {
        // Writing to memory does not fail.
        let _ = one(&mut text, name, view);
    }
    Reply::Dump(text)
}

fn one(out: &mut String, name: &str, view: &View) -> std::fmt::Result {
    writeln!(out, "collector '{name}'")?;
    let signals = Signal::ALL.into_iter().zip(&view.accounts);
    for (signal, balance) in signals.map(|(signal, account)| (signal, account.balance())) {
        let signal = signal.to_string();
        writeln!(out, "  {signal:<8} : {}", account(&balance))?;
    }
    for (pipeline, id, tail) in &view.tails {
        let (mut traces, mut spans) = (0, 0);
        tail.each_shard(|shard| {
            traces += shard.pending_traces();
            spans += shard.account().pending;
        });
        writeln!(
            out,
            "  waiting  : {traces} traces of {spans} spans in {id} of {pipeline}"
        )?;
    }
    let (used, most) = (view.budget.used_bytes(), view.budget.bytes_max());
    writeln!(out, "  memory   : {used} of {most} bytes")
}
