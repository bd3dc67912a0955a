//! The commands that the master runs itself, and their list.

use std::os::fd::RawFd;

use super::board::{State, Worker};
use super::cli::{Facts, Session, seconds_since};
use crate::cli::{Entry, Level, help_text, unknown_command};

/// A command of the master.
pub(super) struct Command {
    entry: Entry,
    /// The lowest level that may use it.
    pub level: Level,
    /// Its input is the words after its name. Returns the answer with the line that ends it.
    pub run: fn(&mut Session<'_>, &[&str]) -> String,
}

const fn command(
    words: &'static str,
    usage: &'static str,
    level: Level,
    help: &'static str,
    run: fn(&mut Session<'_>, &[&str]) -> String,
) -> Command {
    Command {
        entry: Entry { words, usage, help },
        level,
        run,
    }
}

#[rustfmt::skip]
pub(super) const COMMANDS: &[Command] = &[
    command("echo", "<text>", Level::User, "print text", |_, rest| told(&rest.join(" "))),
    command("hard-reload", "", Level::Operator, "reload, and end the old worker at once", |session, _| session.reload(true)),
    command("help", "", Level::User, "", |_, rest| told(&help_text(&listed(), rest))),
    command("reload", "", Level::Operator, "reload, and let the old worker finish", |session, _| session.reload(false)),
    command("show cli level", "", Level::User, "show the level of this session", |session, _| told(session.level.name())),
    command("show cli sockets", "", Level::User, "show the sockets of the runtime interface", |session, _| told(&session.facts.sockets)),
    command("show env", "[var]", Level::Operator, "show environment variables of the process", |_, rest| told(&environment(rest.first().copied()))),
    command("show proc", "[debug]", Level::Operator, "show the processes", show_processes),
    command("show startup-logs", "", Level::Operator, "show the messages of the last start or reload", |session, _| session.board.lock().messages.clone() + "\n"),
    command("show version", "", Level::User, "show the version of the configuration language and commands", |_, _| told(&crate::build::info().version)),
];

/// What the list shows besides [`COMMANDS`]: the choice of a process, and the commands of the
/// session.
const SESSION: &[Entry] = &[
    Entry {
        words: "@!<pid>",
        usage: "",
        help: "send a command to the <pid> process",
    },
    Entry {
        words: "@<relative pid>",
        usage: "",
        help: "send a command to the <relative pid> process",
    },
    Entry {
        words: "@master",
        usage: "",
        help: "send a command to the master process",
    },
    Entry {
        words: "operator",
        usage: "",
        help: "lower the level of this session to operator",
    },
    Entry {
        words: "user",
        usage: "",
        help: "lower the level of this session to user",
    },
];

impl Command {
    /// Whether a line begins with the command's name.
    pub fn matches(&self, words: &[&str]) -> bool {
        let mut words = words.iter();
        let mut own = self.entry.words.split(' ');
        own.all(|wanted| words.next().is_some_and(|word| *word == wanted))
    }

    /// The words after the command's name.
    pub fn rest<'a, 'b>(&self, words: &'a [&'b str]) -> &'a [&'b str] {
        &words[self.entry.words.split(' ').count()..]
    }
}

fn listed() -> Vec<Entry> {
    let own = COMMANDS.iter().map(|command| command.entry);
    own.chain(SESSION.iter().copied()).collect()
}

/// An answer with the empty line that ends it.
pub(super) fn told(text: &str) -> String {
    format!("{}\n\n", text.trim_end_matches('\n'))
}

/// The answer to an unknown command.
pub(super) fn unknown(words: &[&str]) -> String {
    if words.is_empty() {
        return String::new();
    }
    told(&unknown_command(&listed(), words))
}

fn environment(name: Option<&str>) -> String {
    let all = std::env::vars_os().map(|(name, value)| {
        let (name, value) = (name.to_string_lossy(), value.to_string_lossy());
        (name.into_owned(), value.into_owned())
    });
    let mut wanted = all
        .filter(|(known, _)| name.is_none_or(|name| name == known))
        .peekable();
    match wanted.peek() {
        None if name.is_some() => "Variable not found\n".to_owned(),
        _ => wanted
            .map(|(name, value)| format!("{name}={value}\n"))
            .collect(),
    }
}

/// `show proc [debug]`
fn show_processes(session: &mut Session<'_>, rest: &[&str]) -> String {
    let shows_channels = match rest.first() {
        None => false,
        Some(&"debug") => true,
        Some(_) => return told("'show proc' only supports 'debug' as argument\n"),
    };
    let table = Table { shows_channels };
    table.of(&session.board.lock(), session.facts) + "\n"
}

/// The list of processes.
#[derive(Clone, Copy)]
struct Table {
    /// Shows the descriptors with which the master and a process are connected.
    shows_channels: bool,
}

/// A process of the list.
struct Process {
    pid: u32,
    kind: &'static str,
    reloads: String,
    started_ns: u64,
    /// The master's end of the channel.
    channel: Option<RawFd>,
}

impl Table {
    fn of(self, state: &State, facts: &Facts) -> String {
        let mut out = format!(
            "#{:<14} {:<15} {:<15} {:<15} {:<15}{}\n",
            "<PID>",
            "<type>",
            "<reloads>",
            "<uptime>",
            "<version>",
            self.channels("<ipc_fd[0]>", "<ipc_fd[1]>"),
        );
        out += &self.row(Process {
            pid: std::process::id(),
            kind: "master",
            reloads: format!("{} [failed: {}]", state.reloads, state.failed_reloads),
            started_ns: facts.started_ns,
            channel: None,
        });
        out += "# workers\n";
        let (leaving, current): (Vec<_>, Vec<_>) =
            state.workers.iter().partition(|worker| worker.is_leaving);
        let rows = |workers: Vec<&Worker>| -> String {
            workers.into_iter().map(|one| self.worker(one)).collect()
        };
        out += &rows(current);
        if !leaving.is_empty() {
            out += "# old workers\n";
            out += &rows(leaving);
        }
        out
    }

    fn worker(self, worker: &Worker) -> String {
        self.row(Process {
            pid: worker.pid.unsigned_abs(),
            kind: "worker",
            reloads: worker.reloads.to_string(),
            started_ns: worker.started_ns,
            channel: Some(worker.channel.as_raw_fd()),
        })
    }

    fn row(self, process: Process) -> String {
        let up = seconds_since(process.started_ns);
        let (days, hours) = (up / 86_400, up / 3_600 % 24);
        let (minutes, seconds) = (up / 60 % 60, up % 60);
        // A master holds no end of the other process.
        let channel = process.channel.unwrap_or(-1).to_string();
        format!(
            "{:<15} {:<15} {:<15} {:<15} {:<15}{}\n",
            process.pid,
            process.kind,
            process.reloads,
            format!("{days}d{hours:02}h{minutes:02}m{seconds:02}s"),
            crate::build::info().version,
            self.channels(&channel, "-1"),
        )
    }

    fn channels(self, one: &str, other: &str) -> String {
        if self.shows_channels {
            format!("\t\t {one:<15} {other:<15}")
        } else {
            String::new()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_has_what_begins_with_the_words() {
        let text = help_text(&listed(), &["show", "cli"]);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[1].starts_with("  show cli level "), "{text}");
        assert!(lines[2].starts_with("  show cli sockets "), "{text}");
        assert!(lines[3].starts_with("  help [<command>] "), "{text}");
    }

    #[test]
    fn an_unknown_command_is_answered_with_similar_ones() {
        let text = unknown(&["shwo", "proc"]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[0],
            "Unknown command: 'shwo', but maybe one of the following ones is a better match:"
        );
        assert!(lines[1].starts_with("  show proc [debug] "), "{text}");
        assert!(lines[2].starts_with("  help [<command>] "), "{text}");
    }

    #[test]
    fn each_command_is_found_by_its_whole_name() {
        for command in COMMANDS {
            let words: Vec<&str> = command.entry.words.split(' ').collect();
            let found = COMMANDS.iter().find(|other| other.matches(&words));
            let name = found.map(|found| found.entry.words);
            assert_eq!(name, Some(command.entry.words));
        }
    }
}
