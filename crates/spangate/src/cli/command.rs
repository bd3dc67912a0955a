//! Entries of the command tables, what a command is given, and what it answers.

use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use config::anonymise::Anonymiser;
use config::model::Bind;

use super::session::Session;
use super::{FAMILIES, Subjects, known};

/// One command.
#[derive(Debug)]
pub(super) struct Command {
    /// The words that name it, with a space between them.
    pub words: &'static str,
    /// What may follow, as help shows it.
    pub usage: &'static str,
    /// One line of help; empty for a command that help does not list.
    pub help: &'static str,
    /// The least rights that it takes.
    pub level: Level,
    /// The mode that must be on.
    pub mode: Mode,
    pub run: Run,
}

/// What carries out a command.
#[derive(Clone, Copy, Debug)]
pub(super) enum Run {
    /// Something about the process.
    Process(fn(&Asked<'_>) -> Reply),
    /// Something about the connection; it gets the words that follow the command's.
    Session(fn(&mut Session, &[&str]) -> Reply),
    /// Something about the connection, for which it takes more than that.
    SubjectSession(fn(&mut Session, &Subjects, &[&str]) -> Reply),
}

/// Whether a command must be asked for in a mode of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Always,
    /// `experimental-mode on`.
    Experimental,
    /// `expert-mode on`.
    Expert,
}

/// An entry about the process.
pub(super) const fn command(
    words: &'static str,
    usage: &'static str,
    level: Level,
    help: &'static str,
    run: fn(&Asked<'_>) -> Reply,
) -> Command {
    entry(words, usage, level, help, Run::Process(run))
}

/// An entry about the connection.
pub(super) const fn session_command(
    words: &'static str,
    usage: &'static str,
    level: Level,
    help: &'static str,
    run: fn(&mut Session, &[&str]) -> Reply,
) -> Command {
    entry(words, usage, level, help, Run::Session(run))
}

/// An entry about the connection that looks at the process as well.
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
    /// The same, for a mode that must be on.
    pub const fn only_in(mut self, mode: Mode) -> Command {
        self.mode = mode;
        self
    }

    /// How many of the words that came name it; None if others do.
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

    /// Whether a session may use it now.
    pub fn is_visible(&self, session: &Session) -> bool {
        self.level <= session.level && session.is_in(self.mode)
    }
}

/// A command that came.
pub(super) struct Asked<'a> {
    pub subjects: &'a Arc<Subjects>,
    /// The rights of the session.
    pub level: Level,
    /// Hides names where the session asks for that.
    pub anonymiser: Anonymiser,
    /// The words after the command's. What is not UTF-8 is replaced.
    pub rest: &'a [&'a str],
    /// The same words as they came.
    pub bytes: &'a [&'a [u8]],
    /// What followed the line (`<<`), without its last line feed.
    pub payload: Option<&'a [u8]>,
    pub client: &'a dyn Client,
}

/// Who sent a command.
pub(super) trait Client {
    /// Waits so long, or until the client can be sent nothing any more. Whether it has come to that.
    fn leaves_within(&self, wait: Duration) -> bool;

    /// What may be given the listening sockets of this process (`expose-fd listeners`).
    fn takes_listeners(&self) -> Option<&UnixStream>;
}

/// What a command answers.
pub(super) enum Reply {
    /// Nothing but the empty line.
    Done,
    /// The end of the connection.
    End,
    /// For programs: it never begins with a severity.
    Dump(String),
    /// The same in parts, each made when the one before it was sent.
    Parts(Box<dyn Iterator<Item = Vec<u8>>>),
    Said(String),
    Noted(String),
    Warned(String),
    Refused(String),
}

/// `Permission denied`.
pub(super) fn denied() -> Reply {
    Reply::Refused("Permission denied\n".to_owned())
}

/// What a session may do (manual §5.1 level).
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

/// Whether messages begin with how severe they are (manual §5.1 severity-output); dumps never do.
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

    /// A message with its severity, and one line feed at its end.
    pub fn apply(self, (number, name): (char, &str), text: &str) -> String {
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

/// What the words of a line mean.
pub(super) enum Meaning {
    /// A command and how many of the words name it.
    Command(&'static Command, usize),
    /// One of HAProxy's that does not exist yet.
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

/// Carries out a command about the process with all rights, for who is no session: what it said.
///
/// # Errors
/// What it said where it was refused.
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
        Reply::Done | Reply::End | Reply::Parts(_) => Ok(String::new()),
        Reply::Dump(text) | Reply::Said(text) | Reply::Noted(text) | Reply::Warned(text) => {
            Ok(trimmed(text))
        }
        Reply::Refused(text) => Err(trimmed(text)),
    }
}

/// Who takes nothing but what a command says.
#[cfg(feature = "export")]
struct Nobody;

#[cfg(feature = "export")]
impl Client for Nobody {
    fn leaves_within(&self, _: Duration) -> bool {
        false
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
