//! `spangate explain`: shows what the configuration does with a request, rule by rule. The
//! dashboard uses the same code.

mod options;
mod request;
mod shown;

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;

use config::model::Config;
#[cfg(feature = "export")]
use config::reader::Input;
use proxy::explain::{Explanation, explain};
use proxy::{Process, Tls};

use crate::args::Args;
use crate::{alert, load, say, say_error};
pub(crate) use options::COMMAND;
use options::Options;
pub(crate) use request::Asked;

/// Runs the command.
pub(crate) fn run(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let options = match Options::parse(arguments) {
        Ok(options) if options.help => {
            say(&COMMAND.usage());
            return ExitCode::SUCCESS;
        }
        Ok(options) => options,
        Err(message) => {
            say_error(&format!("{message}. See 'spangate explain --help'.\n"));
            return ExitCode::FAILURE;
        }
    };
    match answer(&options) {
        Ok(text) => {
            say(&text);
            ExitCode::SUCCESS
        }
        Err(Some(message)) => {
            alert(&format!("{message}."));
            ExitCode::FAILURE
        }
        Err(None) => ExitCode::FAILURE,
    }
}

/// The text to print.
///
/// # Errors
/// The reason why there is none; None if it was printed already.
fn answer(options: &Options) -> Result<String, Option<String>> {
    let mut words = vec!["-c".to_owned()];
    for file in &options.files {
        words.extend(["-f".to_owned(), file.clone()]);
    }
    let args = Args::parse(words.into_iter().map(OsString::from)).map_err(Some)?;
    let inputs = load::inputs(&args).map_err(|load::Refused| None)?;
    let loaded = load::load_texts(&args, inputs.clone()).map_err(|load::Refused| None)?;
    let explained = of_config(loaded.config, loaded.tls, &options.asked).map_err(Some)?;
    Ok(if options.json {
        format!("{:#}\n", shown::json(&explained, &inputs))
    } else {
        shown::text(&explained, &inputs)
    })
}

/// Explains a request with a configuration that serves no traffic.
fn of_config(config: Config, tls: Tls, asked: &Asked) -> Result<Explanation, String> {
    let now = net::sys::now();
    let process = Process {
        hostname: crate::sys::hostname(),
        pid: std::process::id(),
        nbthread: 1,
        local_time: sample::Zone::local(),
        started: now,
        ..Process::default()
    };
    let runtime_config = Arc::new(proxy::prepare(config, tls, process));
    let shared = Arc::new(runtime_config.share(1));
    explain(&runtime_config, &shared, &asked.question()?, now)
}

/// The same for texts that were read before. Returns JSON.
///
/// # Errors
/// The request is malformed, or files that the texts name no longer exist.
#[cfg(feature = "export")]
pub(crate) fn of_texts(inputs: &[Input], asked: &Asked) -> Result<serde_json::Value, String> {
    let config = load::again(inputs)?;
    let explained = of_config(config, Tls::default(), asked)?;
    let mut json = shown::json(&explained, inputs);
    shown::hide_secrets(&mut json);
    Ok(json)
}
