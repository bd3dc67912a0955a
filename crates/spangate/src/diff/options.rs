//! The options of `spangate diff`.

use std::ffi::OsString;

use crate::usage::{Arguments, Opt, Subcommand, file, flag};

const OPTIONS: &[Opt] = &[
    file(
        "-f",
        "FILE",
        "a file or a directory of the old configuration; may be repeated",
    ),
    file(
        "--to",
        "FILE",
        "a file or a directory of the new configuration; may be repeated",
    ),
    flag("--json", "prints JSON"),
    flag("--help", "displays this text"),
];

/// The command, for help texts.
pub(crate) const COMMAND: Subcommand = Subcommand {
    name: "diff",
    synopsis: "[--json] OLD NEW | [--json] -f OLD... --to NEW...",
    about: "Shows what a change of the configuration does: listeners, servers, rules and settings that come, go and change. What has\n\
            no effect is not shown: comments, quotes, the order of independent lines, a setting that moves to 'defaults'.\n\
            Both configurations are checked as with -c. Files that they name are not compared.\n\
            Exits with 0 if there is no effect, 1 if there is one, 2 if a configuration is refused.",
    words: &[],
    options: OPTIONS,
};

/// The parsed command line.
#[derive(Debug, Default)]
pub(super) struct Options {
    pub help: bool,
    pub json: bool,
    pub old: Vec<String>,
    pub new: Vec<String>,
}

impl Options {
    pub(super) fn parse(arguments: impl Iterator<Item = OsString>) -> Result<Options, String> {
        let mut options = Options::default();
        let mut words = Vec::new();
        let mut arguments = Arguments::new(arguments);
        while let Some(argument) = arguments.next() {
            match argument.name() {
                "-f" => options.old.push(arguments.value(&argument)?),
                "--to" => options.new.push(arguments.value(&argument)?),
                "--json" => options.json = true,
                "--help" | "-h" => options.help = true,
                name if name.starts_with('-') => {
                    return Err(format!("unknown argument '{}'", argument.word));
                }
                _ => words.push(argument.word),
            }
        }
        let mut words = words.into_iter();
        if options.old.is_empty() {
            options.old.extend(words.next());
        }
        if options.new.is_empty() {
            options.new.extend(words.next());
        }
        match words.next() {
            _ if options.help => Ok(options),
            Some(word) => Err(format!("unexpected argument '{word}'")),
            None if options.old.is_empty() || options.new.is_empty() => {
                Err("name an old and a new configuration".to_owned())
            }
            None => Ok(options),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &[&str]) -> Result<Options, String> {
        Options::parse(words.iter().map(OsString::from))
    }

    #[test]
    fn both_sides_are_named() {
        for words in [
            &["a", "b"][..],
            &["--json", "a", "b"],
            &["-f", "a", "--to", "b"],
            &["-f", "a", "b"],
            &["a", "--to=b"],
        ] {
            let options = parsed(words).unwrap();
            assert_eq!(
                (&*options.old, &*options.new),
                (&["a".into()][..], &["b".into()][..])
            );
        }
        let options = parsed(&["-f", "a", "-f", "b", "--to", "c"]).unwrap();
        assert_eq!((options.old.len(), options.new.len()), (2, 1));
        for wrong in [
            &["a"][..],
            &["a", "b", "c"],
            &["-f", "a"],
            &["--none", "a", "b"],
            &["-f"],
        ] {
            assert!(parsed(wrong).is_err(), "{wrong:?}");
        }
    }
}
