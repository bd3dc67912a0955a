//! Entries of the command tables, the input of a command, and its reply.

use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use config::anonymise::Anonymiser;
use config::model::Bind;

use super::events::Messages;
use super::session::Session;
use super::{FAMILIES, Subjects, known};

/// One command.
#[derive(Debug)]
pub(super) struct Command {
    /// The words of its name, separated by one space.
    pub words: &'static str,
    /// The arguments, as help shows them.
    pub usage: &'static str,
    /// One line of help; empty for a command that help does not list.
    pub help: &'static str,
    /// The lowest level that may use it.
    pub level: Level,
    /// The mode that must be on.
    pub mode: Mode,
    pub run: Run,
}

/// The function that runs a command.
#[derive(Clone, Copy, Debug)]
pub(super) enum Run {
    /// Reads or changes the process.
    Process(fn(&Asked<'_>) -> Reply),
    /// Changes the session. Its input is the words after the command's name.
    Session(fn(&mut Session, &[&str]) -> Reply),
    /// Changes the session, and needs the state of the process too.
    SubjectSession(fn(&mut Session, &Subjects, &[&str]) -> Reply),
}

/// The mode in which a command can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Always,
    /// `experimental-mode on`.
    Experimental,
    /// `expert-mode on`.
    Expert,
}

/// An entry for a command on the process.
pub(super) const fn command(
    words: &'static str,
    usage: &'static str,
    level: Level,
    help: &'static str,
    run: fn(&Asked<'_>) -> Reply,
) -> Command {
    entry(words, usage, level, help, Run::Process(run))
}

/// An entry for a command on the session.
pub(super) const fn session_command(
    words: &'static str,
    usage: &'static str,
    level: Level,
    help: &'static str,
    run: fn(&mut Session, &[&str]) -> Reply,
) -> Command {
    entry(words, usage, level, help, Run::Session(run))
}

/// An entry for a command on the session that needs the process too.
pub(super) const fn subject_command(
    words: &'static str,
    usage: &'static str,
    level: Level,
    help: &'static str,
    run: fn(&mut Session, &Subjects, &[&str]) -> Reply,
) -> Command {
    entry(words, usage, level, help, Run::SubjectSession(run))
}

const fn entry(
    words: &'static str,
    usage: &'static str,
    level: Level,
    help: &'static str,
    run: Run,
) -> Command {
    Command {
        words,
        usage,
        help,
        level,
        mode: Mode::Always,
        run,
    }
}

impl Command {
    /// The same command, available only while `mode` is on.
    pub const fn only_in(mut self, mode: Mode) -> Command {
        self.mode = mode;
        self
    }

    /// How many of `words` are the command's name. None if they name another command.
    pub fn matches(&self, words: &[&str]) -> Option<usize> {
        let mut count = 0;
        for wanted in self.words.split(' ') {
            if words.get(count) != Some(&wanted) {
                return None;
            }
            count += 1;
        }
        Some(count)
    }

    /// Whether a session may use the command now.
    pub fn is_visible(&self, session: &Session) -> bool {
        self.level <= session.level && session.is_in(self.mode)
    }
}

/// A command that was received.
pub(super) struct Asked<'a> {
    pub subjects: &'a Arc<Subjects>,
    /// The level of the session.
    pub level: Level,
    /// Replaces names by hashes where the session asks for that.
    pub anonymiser: Anonymiser,
    /// The words after the command's name. Bytes that are not UTF-8 are replaced.
    pub rest: &'a [&'a str],
    /// The same words as received.
    pub bytes: &'a [&'a [u8]],
    /// The payload after the line (`<<`), without its last line feed.
    pub payload: Option<&'a [u8]>,
    pub client: &'a dyn Client,
}

/// The client that sent a command.
pub(super) trait Client {
    /// Waits for `wait`, or until nothing can be sent to the client any more. Returns whether the
    /// client has gone.
    fn leaves_within(&self, wait: Duration) -> bool;

    /// Waits for `wait`, or until the client sends anything or closes its sending direction. Returns
    /// whether it did.
    fn interrupts_within(&self, wait: Duration) -> bool;

    /// The connection on which this process may send its listening sockets (`expose-fd listeners`).
    fn takes_listeners(&self) -> Option<&UnixStream>;
}

/// The reply to a command.
pub(super) enum Reply {
    /// Only the empty line.
    Done,
    /// Closes the connection.
    End,
    /// Output for programs. No severity precedes it.
    Dump(String),
    /// Output for programs in parts. Each part is made after the previous one was sent.
    Parts(Box<dyn Iterator<Item = Vec<u8>>>),
    /// The messages of a ring, as they come, until the client sends anything or leaves.
    Follow(Messages),
    Said(String),
    Noted(String),
    Warned(String),
    Refused(String),
}

/// `Permission denied`.
pub(super) fn denied() -> Reply {
    Reply::Refused("Permission denied\n".to_owned())
}

/// The rights of a session (manual §5.1 level).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    User,
    Operator,
    Admin,
}

impl Level {
    pub fn of(bind: &Bind) -> Self {
        match bind.level.as_deref() {
            Some("user") => Level::User,
            Some("admin") => Level::Admin,
            _ => Level::Operator,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Level::User => "user",
            Level::Operator => "operator",
            Level::Admin => "admin",
        }
    }
}

/// Whether messages begin with their severity (manual §5.1 severity-output). Dumps never do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Severity {
    None,
    Number,
    Text,
}

impl Severity {
    pub fn of(bind: &Bind) -> Self {
        let configured = bind.severity_output.as_deref();
        configured
            .and_then(Severity::named)
            .unwrap_or(Severity::None)
    }

    pub fn named(name: &str) -> Option<Self> {
        match name {
            "none" => Some(Severity::None),
            "number" => Some(Severity::Number),
            "string" => Some(Severity::Text),
            _ => None,
        }
    }

    /// The message with its severity, and with one line feed at its end.
    pub fn apply(self, number: char, name: &str, text: &str) -> String {
        let text = text.trim_end_matches('\n');
        match self {
            Severity::None => format!("{text}\n"),
            Severity::Number => format!("[{number}]: {text}\n"),
            Severity::Text => format!("[{name}]: {text}\n"),
        }
    }
}

/// All commands.
pub(super) fn commands() -> impl Iterator<Item = &'static Command> {
    FAMILIES.iter().copied().flatten()
}

/// The meaning of a line's words.
pub(super) enum Meaning {
    /// A command, and how many of the words are its name.
    Command(&'static Command, usize),
    /// A command of HAProxy that does not exist here yet.
    NotYet(&'static str),
    Unknown,
}

/// Finds a command by the words of a line; the longest name wins.
pub(super) fn find(words: &[&str]) -> Meaning {
    let matching = commands().filter_map(|command| Some((command, command.matches(words)?)));
    match matching.max_by_key(|(_, count)| *count) {
        Some((command, count)) => Meaning::Command(command, count),
        None => known::not_yet(words).map_or(Meaning::Unknown, Meaning::NotYet),
    }
}

/// Runs a command on the process with all rights, outside of a session. Returns its message.
///
/// # Errors
/// The message of a command that was refused.
#[cfg(feature = "export")]
pub(crate) fn carry_out(subjects: &Arc<Subjects>, words: &[&str]) -> Result<String, String> {
    let trimmed = |text: String| text.trim_end().to_owned();
    let Meaning::Command(command, own) = find(words) else {
        return Err("there is no such command".to_owned());
    };
    let Run::Process(run) = command.run else {
        return Err("this command is about a session".to_owned());
    };
    let bytes: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
    let reply = run(&Asked {
        subjects,
        level: Level::Admin,
        anonymiser: Anonymiser::default(),
        rest: &words[own..],
        bytes: &bytes[own..],
        payload: None,
        client: &Nobody,
    });
    match reply {
        Reply::Done | Reply::End | Reply::Parts(_) | Reply::Follow(_) => Ok(String::new()),
        Reply::Dump(text) | Reply::Said(text) | Reply::Noted(text) | Reply::Warned(text) => {
            Ok(trimmed(text))
        }
        Reply::Refused(text) => Err(trimmed(text)),
    }
}

/// A client that receives only the reply.
#[cfg(feature = "export")]
struct Nobody;

#[cfg(feature = "export")]
impl Client for Nobody {
    fn leaves_within(&self, _: Duration) -> bool {
        false
    }

    fn interrupts_within(&self, _: Duration) -> bool {
        true
    }

    fn takes_listeners(&self) -> Option<&UnixStream> {
        None
    }
}

/// The commands as `-dKcli` lists them.
pub(crate) fn listing() -> String {
    let mut all: Vec<&Command> = commands().collect();
    all.sort_unstable_by_key(|command| command.words);
    let line = |command: &Command| {
        let mode = match command.mode {
            Mode::Always => "",
            Mode::Experimental => "[EXPERIM] ",
            Mode::Expert => "[EXPERT] ",
        };
        format!("{} [WORKER] {mode}\n", command.words)
    };
    all.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_stands_in_one_table_once() {
        let mut words: Vec<&str> = commands().map(|command| command.words).collect();
        words.sort_unstable();
        for pair in words.windows(2) {
            assert_ne!(pair[0], pair[1]);
        }
        for words in words {
            let words: Vec<&str> = words.split(' ').collect();
            assert_eq!(known::not_yet(&words), None, "exists, and is not missing");
        }
    }

    #[test]
    fn the_longest_name_wins() {
        let found = |line: &str| match find(&line.split(' ').collect::<Vec<_>>()) {
            Meaning::Command(command, count) => (command.words, count),
            Meaning::NotYet(words) => (words, 0),
            Meaning::Unknown => ("", 0),
        };
        assert_eq!(found("show cli level x"), ("show cli level", 3));
        assert_eq!(found("show cli"), ("", 0));
        assert_eq!(found("show"), ("", 0));
        assert_eq!(found("shows version"), ("", 0));
    }
}
