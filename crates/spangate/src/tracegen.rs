//! `spangate tracegen`: generates a load of traces for any OTLP receiver.

mod options;
mod send;

use std::process::ExitCode;

pub(crate) use options::COMMAND;
use options::{Command, Options};

/// Runs the command with its arguments.
pub(crate) fn run(arguments: impl Iterator<Item = std::ffi::OsString>) -> ExitCode {
    let options = match Options::parse(arguments) {
        Ok(options) => options,
        Err(message) => {
            crate::say_error(&format!(
                "spangate tracegen: {message}\n{}",
                COMMAND.usage()
            ));
            return ExitCode::FAILURE;
        }
    };
    if options.command == Command::Help {
        crate::say(&COMMAND.usage());
        return ExitCode::SUCCESS;
    }
    let threads = options.workers.clamp(1, options::WORKERS_MAX) as usize;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads.min(std::thread::available_parallelism().map_or(1, usize::from)))
        .enable_all()
        .build();
    match runtime {
        Ok(runtime) => runtime.block_on(send::run(&options)),
        Err(error) => {
            crate::say_error(&format!(
                "spangate tracegen: cannot start the runtime: {error}\n"
            ));
            ExitCode::FAILURE
        }
    }
}
