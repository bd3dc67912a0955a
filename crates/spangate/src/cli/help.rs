//! `help`, and the answer to an unknown command: the commands that are most similar to it.

use super::Reply;
use super::command::{Command, commands};
use super::session::Session;

/// Most commands that are proposed for an unknown one.
const PROPOSALS_MAX: usize = 5;
/// The commands that every session has, in the format of the others.
const ALWAYS: &str = "  help [<command>]                        : list matching or all commands
  prompt [help | n | i | p | timed ]*     : toggle interactive mode with prompt
  quit                                    : disconnect
";

/// `help [<command>]`: the commands that begin with these words.
pub(super) fn help(session: &mut Session, words: &[&str]) -> Reply {
    Reply::Said(help_text(&entries(session), words))
}

/// The answer to an unknown command.
pub(super) fn unknown(session: &Session, words: &[&str]) -> Reply {
    Reply::Said(unknown_command(&entries(session), words))
}

/// The commands that a session may use now.
fn entries(session: &Session) -> Vec<Entry> {
    let visible = commands().filter(|command| command.is_visible(session));
    let entry = |command: &Command| Entry {
        words: command.words,
        usage: command.usage,
        help: command.help,
    };
    visible.map(entry).collect()
}

/// A command in the list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    /// The words of its name, separated by one space.
    pub words: &'static str,
    /// Its arguments.
    pub usage: &'static str,
    /// One line of help; empty for a command that is not listed.
    pub help: &'static str,
}

/// The commands that begin with these words, or else are most similar to them; all if there are no
/// words.
pub(crate) fn help_text(entries: &[Entry], words: &[&str]) -> String {
    "The following commands are valid at this level:\n".to_owned() + &list(entries, words)
}

/// The message about an unknown command, with the commands that are most similar to it.
pub(crate) fn unknown_command(entries: &[Entry], words: &[&str]) -> String {
    let first = words.first().copied().unwrap_or_default();
    let title = format!(
        "Unknown command: '{first}', but maybe one of the following ones is a better match:\n"
    );
    title + &list(entries, words)
}

/// The longest prefix of the words with which some command begins, in words.
fn longest_beginning(entries: &[Entry], words: &[&str]) -> usize {
    let common = |entry: &Entry| {
        let pairs = entry.words.split(' ').zip(words);
        pairs.take_while(|(wanted, word)| wanted == *word).count()
    };
    entries.iter().map(common).max().unwrap_or(0)
}

fn list(entries: &[Entry], words: &[&str]) -> String {
    let known = longest_beginning(entries, words);
    let matching: Vec<&Entry> = entries
        .iter()
        .filter(|entry| !entry.help.is_empty())
        .filter(|entry| {
            let own: Vec<&str> = entry.words.split(' ').collect();
            own.starts_with(&words[..known])
        })
        .collect();
    let mut lines: Vec<String> = match proposals(&matching, &words[known..], known) {
        near if near.is_empty() => matching.into_iter().map(line).collect(),
        near => near.into_iter().map(line).collect(),
    };
    lines.sort_unstable();
    lines.concat() + ALWAYS
}

fn line(entry: &Entry) -> String {
    let name = match entry.usage {
        "" => entry.words.to_owned(),
        usage => format!("{} {usage}", entry.words),
    };
    format!("  {name:<40}: {}\n", entry.help)
}

/// The commands whose words from `known` on are most similar to these.
fn proposals<'a>(commands: &[&'a Entry], words: &[&str], known: usize) -> Vec<&'a Entry> {
    if words.is_empty() {
        return Vec::new();
    }
    let length = |words: &[&str]| words.iter().map(|word| word.len()).sum::<usize>();
    let print = Fingerprint::of(words);
    let mut near: Vec<(usize, &Entry)> = commands
        .iter()
        .filter_map(|command| {
            let own: Vec<&str> = command.words.split(' ').skip(known).collect();
            let distance = print.distance(&Fingerprint::of(&own));
            (2 * distance < 5 * (length(words) + length(&own))).then_some((distance, *command))
        })
        .collect();
    near.sort_by_key(|(distance, _)| *distance);
    near.truncate(PROPOSALS_MAX);
    let nearest = near.first().map_or(0, |(distance, _)| *distance);
    near.into_iter()
        .take_while(|(distance, _)| 2 * distance <= 5 * nearest)
        .map(|(_, command)| command)
        .collect()
}

/// How often each character follows each other one, and which characters occur. Words with similar
/// counts are similar.
struct Fingerprint(Box<[u8; Fingerprint::KINDS * Fingerprint::KINDS]>);

impl Fingerprint {
    /// Letters, digits, and one kind for all others; kind 0 stands for "occurs".
    const KINDS: usize = 29;
    const OTHER: usize = Self::KINDS - 1;

    fn of(words: &[&str]) -> Self {
        let mut counts = Box::new([0u8; Self::KINDS * Self::KINDS]);
        for word in words {
            let mut from = Self::OTHER;
            for byte in word.bytes().map(|byte| byte.to_ascii_lowercase()) {
                let to = match byte {
                    b'a'..=b'z' => usize::from(byte - b'a') + 1,
                    b'0'..=b'9' => Self::OTHER - 1,
                    _ => Self::OTHER,
                };
                counts[to] = 1;
                let count = &mut counts[from * Self::KINDS + to];
                *count = count.saturating_add(1);
                from = to;
            }
            let count = &mut counts[from * Self::KINDS + Self::OTHER];
            *count = count.saturating_add(1);
        }
        Fingerprint(counts)
    }

    fn distance(&self, other: &Self) -> usize {
        let pairs = self.0.iter().zip(other.0.iter());
        pairs
            .map(|(one, two)| usize::from(one.abs_diff(*two)))
            .sum()
    }
}
