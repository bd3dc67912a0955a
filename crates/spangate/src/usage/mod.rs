//! Tables of command-line options. The help texts, the manual page and the completions of shells
//! are generated from them.

mod arguments;
mod completions;
mod man;

pub(crate) use arguments::Arguments;
pub(crate) use completions::{Shell, completions};
pub(crate) use man::manual_page;

/// How an option takes its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// The option has no value.
    None,
    /// The value is the next word. The text is its name in help.
    Next(&'static str),
    /// The value is the next word, a file or a directory.
    File(&'static str),
    /// The value is the rest of the same word, which may be empty.
    Joined(&'static str),
    /// The value is all following words that are numbers.
    Numbers(&'static str),
}

impl Value {
    /// The value as help shows it after the option's name, with the space before it.
    fn shown(self) -> String {
        match self {
            Value::None => String::new(),
            Value::Joined(text) => text.to_owned(),
            Value::Next(text) | Value::File(text) | Value::Numbers(text) => format!(" {text}"),
        }
    }
}

/// An option.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opt {
    pub name: &'static str,
    pub value: Value,
    /// One line of description.
    pub about: &'static str,
}

impl Opt {
    /// The option's line of the help text, without indentation.
    pub(crate) fn line(&self) -> String {
        format!("{}{} {}", self.name, self.value.shown(), self.about)
    }
}

/// An option without a value.
pub(crate) const fn flag(name: &'static str, about: &'static str) -> Opt {
    let value = Value::None;
    Opt { name, value, about }
}

/// An option whose value is the next word.
pub(crate) const fn with(name: &'static str, value: &'static str, about: &'static str) -> Opt {
    let value = Value::Next(value);
    Opt { name, value, about }
}

/// An option whose value is the next word, a file or a directory.
pub(crate) const fn file(name: &'static str, value: &'static str, about: &'static str) -> Opt {
    let value = Value::File(value);
    Opt { name, value, about }
}

/// A command: the word after the program's name, with options of its own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subcommand {
    pub name: &'static str,
    /// A short form of the arguments.
    pub synopsis: &'static str,
    /// What it does; one or more sentences.
    pub about: &'static str,
    /// The words that may follow the name, each with its effect.
    pub words: &'static [(&'static str, &'static str)],
    pub options: &'static [Opt],
}

impl Subcommand {
    /// The text of `--help`.
    pub(crate) fn usage(&self) -> String {
        let mut rows: Vec<(String, &str)> = Vec::new();
        for (word, about) in self.words {
            rows.push(((*word).to_owned(), about));
        }
        for option in self.options {
            rows.push((
                format!("{}{}", option.name, option.value.shown()),
                option.about,
            ));
        }
        let width = rows.iter().map(|(left, _)| left.len()).max().unwrap_or(0);
        let mut text = format!(
            "usage: spangate {} {}\n\n{}\n\n",
            self.name, self.synopsis, self.about
        );
        for (left, about) in rows {
            text.push_str(&format!("  {left:width$}  {about}\n"));
        }
        text
    }
}

/// All commands of this program.
pub(crate) fn subcommands() -> impl Iterator<Item = &'static Subcommand> {
    [
        &crate::diff::COMMAND,
        &crate::explain::COMMAND,
        &crate::proxy_command::COMMAND,
        #[cfg(feature = "export")]
        &crate::collect::COMMAND,
        #[cfg(feature = "export")]
        &crate::tracegen::COMMAND,
    ]
    .into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_has_one_line_of_description() {
        let commands = subcommands().flat_map(|command| command.options);
        for option in crate::args::options().chain(commands) {
            let about = option.about;
            assert!(!about.is_empty() && !about.contains('\n'), "{option:?}");
            assert!(option.name.starts_with('-'), "{option:?}");
        }
    }

    #[test]
    fn help_lines_up() {
        for command in subcommands() {
            let usage = command.usage();
            for option in command.options {
                assert!(usage.contains(&format!("\n  {}", option.name)), "{usage}");
            }
        }
    }
}
