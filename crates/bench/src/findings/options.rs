//! The options that every experiment has.

use std::path::PathBuf;

use lexopt::{Arg, ValueExt};

use crate::Failure;
use crate::peers::{self, Installed};

/// The help text of an experiment: what it measures, its own options, then those that every one has.
macro_rules! help {
    ($what:literal, $own:literal) => {
        concat!(
            "[OPTIONS]: ",
            $what,
            "\n",
            $own,
            "--quick            the smallest run that shows something, in less than a minute\n",
            "--report DIR       where text, JSON, plots and index.html go (report)\n",
            "--subject PATH     the Spangate to measure (beside this program)\n",
            "--haproxy PATH     the HAProxy to compare with (that of the system)"
        )
    };
}
pub(crate) use help;

/// What every experiment is told.
#[derive(Clone, Debug)]
pub struct Options {
    /// As little as shows something.
    pub quick: bool,
    /// The folder for the report.
    pub report: PathBuf,
    /// The Spangate to measure, where it is not beside this program.
    pub subject: Option<PathBuf>,
    /// The HAProxy to compare with, where it is not that of the system.
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
    /// Takes an option that is one of these, its value from `parser`, and hands back any other. The option is its name, since an
    /// [`Arg`] holds on to the parser.
    ///
    /// # Errors
    /// When the value is missing.
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

    /// Reads the options of an experiment: those that every one has, and its own, of which `own` takes the name and the parser and says
    /// whether it knows it. `--quick` is told to `quick` first, wherever it stands, so that other options win over it.
    ///
    /// # Errors
    /// When an option is not understood.
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

    /// The proxies that are installed, the subject first.
    ///
    /// # Errors
    /// When there is no subject.
    pub fn proxies(&self) -> Result<Vec<Installed>, Failure> {
        peers::with_haproxy(self.subject.clone(), self.haproxy.clone())
    }
}

/// The value of an option, parsed.
///
/// # Errors
/// When it is missing or not understood.
pub fn value<T: std::str::FromStr>(parser: &mut lexopt::Parser) -> Result<T, Failure>
where
    T::Err: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    Ok(parser.value()?.parse()?)
}
