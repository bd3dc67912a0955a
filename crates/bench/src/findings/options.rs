//! Options that every experiment has.

use std::path::PathBuf;

use lexopt::{Arg, ValueExt};

use crate::Failure;
use crate::peers::{self, Installed};

/// The help text of an experiment: the measured quantity, its own options, then those of every
/// experiment.
macro_rules! help {
    ($what:literal, $own:literal) => {
        concat!(
            "[OPTIONS]: ",
            $what,
            "\n",
            $own,
            "--quick            the smallest useful run, in less than a minute\n",
            "--report DIR       folder for text, JSON, plots and index.html (report)\n",
            "--subject PATH     the Spangate to measure (beside this program)\n",
            "--haproxy PATH     the HAProxy to compare with (the installed one)"
        )
    };
}
pub(crate) use help;

/// The common options.
#[derive(Clone, Debug)]
pub struct Options {
    /// Runs as little as possible.
    pub quick: bool,
    /// The folder for the report.
    pub report: PathBuf,
    /// The Spangate to measure, if it is not beside this program.
    pub subject: Option<PathBuf>,
    /// The HAProxy to compare with, if it is not the system's.
    pub haproxy: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            quick: false,
            report: "report".into(),
            subject: None,
            haproxy: None,
        }
    }
}

impl Options {
    /// Reads an option if it is one of these; `parser` provides its value. Returns whether it is.
    /// The option is given by name, because an [`Arg`] borrows the parser.
    ///
    /// # Errors
    /// The value is missing.
    pub fn take(&mut self, name: &str, parser: &mut lexopt::Parser) -> Result<bool, Failure> {
        match name {
            "quick" => self.quick = true,
            "report" => self.report = parser.value()?.into(),
            "subject" => self.subject = Some(parser.value()?.into()),
            "haproxy" => self.haproxy = Some(parser.value()?.into()),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Reads the options of an experiment: the common ones, and its own. `own` gets the name and
    /// the parser of an own option, and returns whether it knows the option. `--quick` is applied
    /// with `quick` first, at any position, so that other options override it.
    ///
    /// # Errors
    /// An option is invalid.
    pub fn parse<T>(
        mut parser: lexopt::Parser,
        mut own: T,
        quick: impl FnOnce(&mut T),
        take: impl Fn(&mut T, &str, &mut lexopt::Parser) -> Result<bool, Failure>,
    ) -> Result<(Options, T), Failure> {
        let words: Vec<_> = parser.raw_args()?.collect();
        if words.iter().any(|word| word == "--quick") {
            quick(&mut own);
        }
        let mut parser = lexopt::Parser::from_args(words);
        let mut options = Options::default();
        while let Some(arg) = parser.next()? {
            let Arg::Long(name) = arg else {
                return Err(arg.unexpected().into());
            };
            let name = name.to_owned();
            if !options.take(&name, &mut parser)? && !take(&mut own, &name, &mut parser)? {
                return Err(format!("invalid option '--{name}'").into());
            }
        }
        Ok((options, own))
    }

    /// The installed proxies, the subject first.
    ///
    /// # Errors
    /// There is no subject.
    pub fn proxies(&self) -> Result<Vec<Installed>, Failure> {
        peers::with_haproxy(self.subject.clone(), self.haproxy.clone())
    }
}

/// The parsed value of an option.
///
/// # Errors
/// It is missing or invalid.
pub fn value<T: std::str::FromStr>(parser: &mut lexopt::Parser) -> Result<T, Failure>
where
    T::Err: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    Ok(parser.value()?.parse()?)
}
