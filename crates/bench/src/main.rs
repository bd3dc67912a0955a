//! `spangate-bench`: measures Spangate and its peers on this machine, and demonstrates Spangate to
//! newcomers.
//!
//! Every command starts its programs on loopback, in a separate folder, and ends them by process
//! id: at the end, on an error, on Ctrl-C, and through the kernel if this program dies.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line tool"
)]

mod all;
mod cases;
mod certs;
#[cfg(feature = "tls")]
mod churn;
mod client;
mod clock;
mod comparison;
mod demo;
#[cfg(feature = "tls")]
mod faults;
mod findings;
#[cfg(feature = "tls")]
mod h2;
#[cfg(feature = "tls")]
mod h2load;
#[cfg(feature = "tls")]
mod h3;
mod http;
#[cfg(feature = "tls")]
mod https;
mod idle;
mod instructions;
mod origin;
#[cfg(feature = "patterns")]
mod patterns;
mod peers;
mod process;
mod progress;
mod receiver;
mod report;
mod routing;
mod rules;
mod side_by_side;
mod sink;
mod sys;
mod tables;
mod tail_sampling;
#[cfg(feature = "tls")]
mod tls;
#[cfg(feature = "tls")]
mod tls_rate;
mod tracing;
mod variables;
mod workdir;
mod wrk;

use std::process::ExitCode;

/// Why a command failed, for the user.
type Failure = Box<dyn std::error::Error>;

/// One subcommand.
struct Command {
    name: &'static str,
    /// Its options, one per line, with their meaning.
    help: &'static str,
    run: fn(lexopt::Parser) -> Result<(), Failure>,
}

const COMMANDS: &[Command] = &[
    Command {
        name: "all",
        help: all::HELP,
        run: all::run,
    },
    Command {
        name: "http",
        help: http::HELP,
        run: http::run,
    },
    #[cfg(feature = "tls")]
    Command {
        name: "tls",
        help: tls::HELP,
        run: tls::run,
    },
    #[cfg(feature = "tls")]
    Command {
        name: "h2",
        help: h2::HELP,
        run: h2::run,
    },
    #[cfg(feature = "tls")]
    Command {
        name: "h3",
        help: h3::HELP,
        run: h3::run,
    },
    #[cfg(feature = "tls")]
    Command {
        name: "tls-rate",
        help: tls_rate::HELP,
        run: tls_rate::run,
    },
    #[cfg(feature = "tls")]
    Command {
        name: "churn",
        help: churn::HELP,
        run: churn::run,
    },
    #[cfg(feature = "tls")]
    Command {
        name: "faults",
        help: faults::HELP,
        run: faults::run,
    },
    Command {
        name: "variables",
        help: variables::HELP,
        run: variables::run,
    },
    Command {
        name: "routing",
        help: routing::HELP,
        run: routing::run,
    },
    Command {
        name: "rules",
        help: rules::HELP,
        run: rules::run,
    },
    Command {
        name: "tables",
        help: tables::HELP,
        run: tables::run,
    },
    #[cfg(feature = "patterns")]
    Command {
        name: "patterns",
        help: patterns::HELP,
        run: patterns::run,
    },
    Command {
        name: "tracing",
        help: tracing::HELP,
        run: tracing::run,
    },
    Command {
        name: "tail-sampling",
        help: tail_sampling::HELP,
        run: tail_sampling::run,
    },
    Command {
        name: "idle",
        help: idle::HELP,
        run: idle::run,
    },
    Command {
        name: "instructions",
        help: instructions::HELP,
        run: instructions::run,
    },
    Command {
        name: "origin",
        help: origin::HELP,
        run: origin::run,
    },
    Command {
        name: "receiver",
        help: receiver::HELP,
        run: receiver::run,
    },
    Command {
        name: "demo",
        help: demo::HELP,
        run: demo::run,
    },
];

fn main() -> ExitCode {
    let mut parser = lexopt::Parser::from_env();
    let command = match parser.next() {
        Ok(Some(lexopt::Arg::Value(name))) => COMMANDS.iter().find(|command| name == command.name),
        _ => None,
    };
    let Some(command) = command else {
        eprint!("{}", usage());
        return ExitCode::from(2);
    };
    sys::catch_interrupts();
    match (command.run)(parser) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("spangate-bench {}: {failure}", command.name);
            ExitCode::FAILURE
        }
    }
}

fn usage() -> String {
    let entries = COMMANDS.iter().map(|command| {
        format!(
            "\n  {} {}\n",
            command.name,
            command.help.replace('\n', "\n      ")
        )
    });
    format!(
        "usage: spangate-bench COMMAND [OPTIONS]\n{}",
        entries.collect::<String>()
    )
}
