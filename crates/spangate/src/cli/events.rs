//! `show events`: the sinks of events, and the content of rings (management guide §9.3).

use std::fmt::Write as _;
use std::sync::Arc;

use net::ring::{Framing, Position, Ring};

use super::{Asked, Command, Level, Reply, command, denied};

#[rustfmt::skip]
pub(super) const COMMANDS: &[Command] = &[
    command("show events", "[<sink>] [-w] [-n] [-0]", Level::User, "show the event sinks, or the messages of a ring", events),
];

/// Bytes of messages that are taken from a ring at once.
const PART_BYTES: usize = 16 << 10;

/// The messages of a ring from a position on.
#[derive(Debug)]
pub(super) struct Messages {
    ring: Arc<Ring>,
    at: Position,
    framing: Framing,
}

impl Messages {
    /// The next messages; none at the end of the ring.
    pub fn take(&mut self) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        let (ring, at) = (&self.ring, &mut self.at);
        ring.read(at, self.framing, PART_BYTES, &mut out);
        (!out.is_empty()).then_some(out)
    }

    /// The messages up to the one that is the newest now: a ring that is written faster than the
    /// client reads has no end.
    fn until_now(mut self) -> impl Iterator<Item = Vec<u8>> {
        let end = self.ring.newest();
        std::iter::from_fn(move || (self.at < end).then(|| self.take()).flatten())
    }
}

fn events(asked: &Asked<'_>) -> Reply {
    let Some((name, options)) = asked.rest.split_first() else {
        return Reply::Warned(list(asked));
    };
    if asked.level < Level::Operator {
        return denied();
    }
    let subjects = asked.subjects;
    let mut rings = subjects.runtime_config.config.rings.iter();
    let ring = match rings.position(|ring| ring.name == *name) {
        Some(index) => Arc::clone(&subjects.rings[index]),
        None if matches!(*name, "stdout" | "stderr") => {
            return Reply::Noted("Nothing to report for this sink\n".to_owned());
        }
        None => return Reply::Refused("No such event sink\n".to_owned()),
    };
    let (mut waits, mut only_new, mut framing) = (false, false, Framing::LineFeed);
    for option in options {
        match *option {
            "-w" => waits = true,
            "-n" => only_new = true,
            "-0" => framing = Framing::Nul,
            "-nw" | "-wn" => (waits, only_new) = (true, true),
            _ => return Reply::Refused("unknown option\n".to_owned()),
        }
    }
    let at = if only_new {
        ring.newest()
    } else {
        ring.oldest()
    };
    let messages = Messages { ring, at, framing };
    if waits {
        Reply::Follow(messages)
    } else {
        Reply::Parts(Box::new(messages.until_now()))
    }
}

fn list(asked: &Asked<'_>) -> String {
    let subjects = asked.subjects;
    let mut out = "Supported events sinks are listed below. Add -0(zero), -w(wait), -n(new). Any key to stop.\n".to_owned();
    let mut line = |name: &str, kind: &str, dropped: u64, description: &str| {
        // Writing to memory does not fail.
        let _ = writeln!(
            out,
            "    {name:<10} : type={kind}, {dropped} dropped, {description}"
        );
    };
    line("stdout", "fd", 0, "standard output (fd#1)");
    line("stderr", "fd", 0, "standard error (fd#2)");
    let rings = &subjects.runtime_config.config.rings;
    for (ring, buffer) in rings.iter().zip(&subjects.rings) {
        line(&ring.name, "buffer", buffer.dropped(), &ring.description);
    }
    out
}
