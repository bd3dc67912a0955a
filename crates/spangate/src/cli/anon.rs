//! `set anon` and `show anon`: names and addresses as hashes in what commands show (management
//! guide §9.3).

use std::sync::atomic::Ordering;

use config::anonymise::Anonymiser;

use super::command::{Level, Reply, command, subject_command};
use super::servers::number;
use super::session::Session;
use super::{Asked, Command, Subjects};

#[rustfmt::skip]
pub(super) const COMMANDS: &[Command] = &[
    subject_command("set anon on", "[key]", Level::User, "show hashes instead of names and addresses in this session", turn_on),
    subject_command("set anon off", "", Level::User, "show names and addresses again", turn_off),
    subject_command("set anon", "", Level::User, "", |_, _, _| Reply::Refused(USAGE.to_owned())),
    command("set anon global-key", "<key>", Level::Admin, "set the default key of sessions", set_global_key),
    subject_command("show anon", "", Level::User, "show whether this session shows hashes, and the key", show),
];

const USAGE: &str = "'set anon' only supports :
   - 'on' [key] to enable the anonymized mode
   - 'off' to disable the anonymized mode
";

fn turn_on(session: &mut Session, subjects: &Subjects, rest: &[&str]) -> Reply {
    let key = match rest.first() {
        Some(word) => match key(word) {
            Some(key) if key > 0 => key,
            _ => {
                return Reply::Refused(
                    "Value out of range (1 to 4294967295 expected).\n".to_owned(),
                );
            }
        },
        None => match subjects.anon_key.load(Ordering::Relaxed) {
            // Any key other than 0 is valid; 0 means that there is no key.
            0 => (crate::sys::random_seed() as u32).max(1),
            key => key,
        },
    };
    session.anonymiser = Anonymiser::new(key);
    Reply::Done
}

fn turn_off(session: &mut Session, _: &Subjects, rest: &[&str]) -> Reply {
    if !rest.is_empty() {
        return Reply::Refused("Key can't be added while disabling anonymized mode\n".to_owned());
    }
    session.anonymiser = Anonymiser::default();
    Reply::Done
}

fn set_global_key(asked: &Asked<'_>) -> Reply {
    let Some(word) = asked.rest.first() else {
        return Reply::Refused("Expects an integer value.\n".to_owned());
    };
    match key(word) {
        Some(key) => {
            asked.subjects.anon_key.store(key, Ordering::Relaxed);
            Reply::Done
        }
        None => Reply::Refused("Value out of range (0 to 4294967295 expected).\n".to_owned()),
    }
}

/// A key, parsed like C's `atoll`.
fn key(word: &str) -> Option<u32> {
    u32::try_from(number(word)).ok()
}

fn show(session: &mut Session, _: &Subjects, _: &[&str]) -> Reply {
    let hide = session.anonymiser;
    Reply::Said(match (hide.hides(), session.level) {
        (false, _) => "Anonymized mode disabled\n".to_owned(),
        (true, Level::User) => "Anonymized mode enabled\n".to_owned(),
        (true, _) => format!("Anonymized mode enabled\nKey : {}\n", hide.key()),
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ask, subjects};
    use super::*;
    use config::model::Config;

    #[test]
    fn sessions_have_their_own_key() {
        let subjects = subjects(Config::default());
        let asked = |level, lines: &str| ask(&subjects, level, &format!("prompt i\n{lines}\n"));
        let shown = asked(
            Level::Admin,
            "set anon on 5;show anon;set anon off;show anon",
        );
        assert!(
            shown.contains("Anonymized mode enabled\nKey : 5\n"),
            "{shown}"
        );
        assert!(shown.ends_with("Anonymized mode disabled\n\n"), "{shown}");
        assert!(!asked(Level::User, "set anon on 5;show anon").contains("Key"));
        asked(Level::Admin, "set anon global-key 7");
        assert!(asked(Level::Operator, "set anon on;show anon").contains("Key : 7\n"));
        for (line, refusal) in [
            (
                "set anon on 0",
                "Value out of range (1 to 4294967295 expected).",
            ),
            (
                "set anon on 4294967296",
                "Value out of range (1 to 4294967295 expected).",
            ),
            ("set anon off 1", "Key can't be added"),
            ("set anon", "'set anon' only supports"),
            ("set anon global-key", "Expects an integer value."),
            (
                "set anon global-key -1",
                "Value out of range (0 to 4294967295 expected).",
            ),
        ] {
            let shown = asked(Level::Admin, line);
            assert!(shown.contains(refusal), "{line}: {shown}");
        }
        let shown = asked(Level::Operator, "set anon global-key 1");
        assert!(shown.contains("Permission denied"), "{shown}");
    }
}
