//! `all`: runs the five experiments, one after the other, into one report.

use std::ffi::OsString;

use crate::findings::{self, Options};
use crate::{Failure, routing, tail_sampling, tracing, variables};

/// The options.
pub const HELP: &str = findings::help!(
    "the experiments tracing, variables, tls-rate, routing and tail-sampling, one after the other",
    ""
);

/// An experiment: its command's name, and the function that runs it with its options.
pub struct Experiment {
    /// The command.
    pub name: &'static str,
    run: fn(lexopt::Parser) -> Result<(), Failure>,
}

/// Every experiment, in the order of the report.
pub const EXPERIMENTS: &[Experiment] = &[
    Experiment {
        name: "tracing",
        run: tracing::run,
    },
    Experiment {
        name: "variables",
        run: variables::run,
    },
    #[cfg(feature = "tls")]
    Experiment {
        name: "tls-rate",
        run: crate::tls_rate::run,
    },
    Experiment {
        name: "routing",
        run: routing::run,
    },
    Experiment {
        name: "tail-sampling",
        run: tail_sampling::run,
    },
];

/// Runs the command. An experiment that fails does not prevent the others.
///
/// # Errors
/// An option is invalid, or an experiment failed.
pub fn run(mut parser: lexopt::Parser) -> Result<(), Failure> {
    let words: Vec<OsString> = parser.raw_args()?.collect();
    // All options are parsed before the first experiment, which may run long.
    Options::parse(
        lexopt::Parser::from_args(words.clone()),
        (),
        |()| (),
        |_, _, _| Ok(false),
    )?;
    let mut failed = Vec::new();
    for experiment in EXPERIMENTS {
        if crate::sys::interrupted() {
            return Err("interrupted".into());
        }
        eprintln!("{}:", experiment.name);
        if let Err(failure) = (experiment.run)(lexopt::Parser::from_args(words.clone())) {
            eprintln!("spangate-bench {}: {failure}", experiment.name);
            failed.push(experiment.name);
        }
    }
    if failed.is_empty() {
        Ok(())
    } else {
        Err(format!("these failed: {}", failed.join(", ")).into())
    }
}
