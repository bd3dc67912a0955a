//! `spangate`: reads HAProxy's configuration and serves its traffic.
//!
//! This crate owns the command line, the life cycle of the process and the wiring of the parts. The
//! data path is crate `proxy`.

mod args;
mod build;
mod cli;
#[cfg(feature = "export")]
mod collect;
#[cfg(feature = "export")]
mod collectors;
mod confine;
mod diff;
mod event_reporter;
mod explain;
#[cfg(feature = "export")]
mod exports;
mod frontends;
mod handover;
mod limits;
mod load;
mod log_forward;
mod logs;
mod master;
mod names;
mod pace;
#[cfg(feature = "export")]
mod pages;
mod panics;
mod passphrases;
mod peers;
mod process;
mod proxy_command;
mod quic_relay;
mod rings;
mod serve;
mod server_state;
#[cfg(feature = "share-redis")]
mod share;
mod sockets;
mod startup;
mod stats_file;
mod status_lines;
mod sys;
#[cfg(feature = "export")]
mod tracegen;
mod usage;
#[cfg(not(feature = "export"))]
mod without_export;
#[cfg(not(feature = "share-redis"))]
mod without_share;
#[cfg(not(feature = "export"))]
use without_export::{collect, collectors, exports, pages, tracegen};
#[cfg(not(feature = "share-redis"))]
use without_share as share;

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use args::{Args, Command};

/// The exit code for a condition that cannot be evaluated (`-cc`).
const EXIT_BAD_CONDITION: u8 = 2;

fn main() -> ExitCode {
    panics::hook();
    startup::begin();
    let mut arguments = std::env::args_os().skip(1);
    // These commands are programs of their own, so HAProxy's options do not apply.
    match arguments.next().as_ref().and_then(|word| word.to_str()) {
        Some("collect") => return collect::run(arguments),
        Some("diff") => return diff::run(arguments),
        Some("explain") => return explain::run(arguments),
        Some("proxy") => return proxy_command::run(arguments),
        Some("tracegen") => return tracegen::run(arguments),
        _ => {}
    }
    let args = match Args::parse(std::env::args_os().skip(1)) {
        Ok(args) => args,
        Err(message) => {
            say_error(&format!("{message} See 'spangate --help'.\n"));
            return ExitCode::FAILURE;
        }
    };
    QUIET.store(args.quiet, Ordering::Relaxed);
    match &args.command {
        Command::Version { details } => {
            say(&build::version_text(*details));
            ExitCode::SUCCESS
        }
        Command::BareVersion { branch } => {
            say(&build::bare_version(*branch));
            ExitCode::SUCCESS
        }
        Command::Usage => {
            say(&args::usage());
            ExitCode::SUCCESS
        }
        Command::Manual => {
            say(&usage::manual_page());
            ExitCode::SUCCESS
        }
        Command::Completions(shell) => {
            say(&usage::completions(*shell));
            ExitCode::SUCCESS
        }
        Command::Condition(condition) => evaluate(condition),
        Command::Documentation => {
            say(&config::docs::configuration_markdown());
            ExitCode::SUCCESS
        }
        Command::Check | Command::Run if args.listing.is_some() => {
            let form = args.listing.unwrap_or_default();
            match load::list(&args, form) {
                Ok(()) => ExitCode::SUCCESS,
                Err(load::Refused) => ExitCode::FAILURE,
            }
        }
        Command::Migrate => match load::migrate(&args) {
            Ok(()) => ExitCode::SUCCESS,
            Err(load::Refused) => ExitCode::FAILURE,
        },
        Command::Check => match load::load(&args) {
            Ok(loaded) => {
                if loaded.has_warnings && !args.quiet {
                    say("Warnings were found.\n");
                }
                if args.verbose {
                    say("Configuration file is valid\n");
                }
                ExitCode::SUCCESS
            }
            Err(load::Refused) => ExitCode::FAILURE,
        },
        Command::Run => match load::load(&args) {
            Ok(loaded) if args.master.is_some() => master::run(&args, loaded),
            Ok(loaded) => process::run(&args, loaded, None),
            Err(load::Refused) => ExitCode::FAILURE,
        },
    }
}

/// `-cc`: exits with 0 for true, 1 for false, 2 for an invalid condition.
fn evaluate(condition: &str) -> ExitCode {
    let environment = config::environment::Environment::of_process();
    match config::condition::evaluate_argument(condition.as_bytes(), &build::info(), &environment) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            alert(&format!(
                "Failed to evaluate condition: {}\n  {condition}\n  {:>width$}",
                error.message,
                "^",
                width = error.offset + 1
            ));
            ExitCode::from(EXIT_BAD_CONDITION)
        }
    }
}

/// Writes to standard output; a closed reader is not a failure.
pub(crate) fn say(text: &str) {
    use std::io::Write as _;
    let _ = std::io::stdout().write_all(text.as_bytes());
}

/// The same for bytes of any kind.
pub(crate) fn say_bytes(bytes: &[u8]) {
    use std::io::Write as _;
    let _ = std::io::stdout().write_all(bytes);
}

/// Writes to standard error.
pub(crate) fn say_error(text: &str) {
    use std::io::Write as _;
    startup::note(text);
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// Prints an alert without a place, in HAProxy's format.
pub(crate) fn alert(message: &str) {
    say_error(&format!(
        "[ALERT]    ({}) : {message}\n",
        std::process::id()
    ));
}

/// `-q`: notices and warnings without a place are suppressed.
static QUIET: AtomicBool = AtomicBool::new(false);

/// Prints a notice without a place, in HAProxy's format.
pub(crate) fn notice(message: &str) {
    if QUIET.load(Ordering::Relaxed) {
        return;
    }
    say_error(&format!(
        "[NOTICE]   ({}) : {message}\n",
        std::process::id()
    ));
}

/// Prints a warning without a place, in HAProxy's format.
pub(crate) fn warning(message: &str) {
    if QUIET.load(Ordering::Relaxed) {
        return;
    }
    say_error(&format!(
        "[WARNING]  ({}) : {message}\n",
        std::process::id()
    ));
}
