//! `spangate diff`: shows what a change of the configuration does, and what of it needs a restart.
//! [`config::diff`] compares.

mod options;
mod shown;
mod text;

use std::ffi::OsString;
use std::process::ExitCode;

use config::diff::{Comparison, compare};
use config::reader::Input;
use config::tree::Tree;

use crate::args::Args;
use crate::load::{self, Refused};
use crate::{say, say_error};
pub(crate) use options::COMMAND;
use options::Options;

/// The exit code for configurations that differ, as that of diff(1).
const EXIT_DIFFERENT: u8 = 1;
/// The exit code for a configuration that cannot be read or is refused.
const EXIT_TROUBLE: u8 = 2;

/// Runs the command.
pub(crate) fn run(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let options = match Options::parse(arguments) {
        Ok(options) if options.help => {
            say(&COMMAND.usage());
            return ExitCode::SUCCESS;
        }
        Ok(options) => options,
        Err(message) => {
            say_error(&format!("{message}. See 'spangate diff --help'.\n"));
            return ExitCode::from(EXIT_TROUBLE);
        }
    };
    // Both are read, so that one run shows the faults of both.
    let (old, new) = (read(&options.old), read(&options.new));
    let (Ok(old), Ok(new)) = (old, new) else {
        return ExitCode::from(EXIT_TROUBLE);
    };
    let comparison = compare(&old, &new);
    say(&shown(&comparison, &options));
    if comparison.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(EXIT_DIFFERENT)
    }
}

/// The effects of a change of texts that were accepted.
pub(crate) fn of_texts(old: &[Input], new: &[Input]) -> Comparison {
    compare(&load::tree(old), &load::tree(new))
}

/// The effects as text, for files of these names.
pub(crate) fn effects_text(comparison: &Comparison, old: &[Input], new: &[Input]) -> String {
    let names = |inputs: &[Input]| inputs.iter().map(|input| input.name.clone()).collect();
    let options = Options {
        old: names(old),
        new: names(new),
        ..Options::default()
    };
    text::text(comparison, &options)
}

fn shown(comparison: &Comparison, options: &Options) -> String {
    if options.json {
        format!("{:#}\n", shown::json(comparison))
    } else {
        text::text(comparison, options)
    }
}

/// The lines of the files of one side, which are checked as with `-c`.
fn read(files: &[String]) -> Result<Tree, Refused> {
    let args = Args {
        command: crate::args::Command::Check,
        files: files.to_vec(),
        ..Args::default()
    };
    let inputs = load::inputs(&args)?;
    load::load_texts(&args, inputs.clone())?;
    Ok(load::tree(&inputs))
}
