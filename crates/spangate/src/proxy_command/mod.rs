//! `spangate proxy`: a proxy in one command line. The options generate a configuration, which is
//! loaded like any other.

mod local_tls;
mod options;
mod text;

use std::process::ExitCode;

use config::reader::Input;

pub(crate) use options::COMMAND;
use options::{Certificate, Options};

use crate::args::Args;
use crate::{load, process, say, say_error};

/// The file name in messages about the configuration.
const NAME: &str = "spangate proxy --print-config";

/// Runs the command with its arguments.
pub(crate) fn run(arguments: impl Iterator<Item = std::ffi::OsString>) -> ExitCode {
    let fail = |message: &str| {
        say_error(&format!("spangate proxy: {message}\n"));
        ExitCode::FAILURE
    };
    let options = match Options::parse(arguments) {
        Ok(options) => options,
        Err(message) => return fail(&format!("{message}. See 'spangate proxy --help'.")),
    };
    if options.help {
        say(&COMMAND.usage());
        return ExitCode::SUCCESS;
    }
    let (certificate, authority) = match &options.tls {
        None => (None, None),
        Some(Certificate::File(path)) => (Some(path.clone()), None),
        Some(Certificate::Internal) => match local_tls::certificate(&options.from) {
            Ok(files) => (Some(files.server), Some(files.authority)),
            Err(error) => {
                return fail(&format!(
                    "cannot make the certificate for --tls internal: {error}"
                ));
            }
        },
    };
    let text = text::configuration(&options, certificate.as_deref());
    if options.print {
        say(&text);
        return ExitCode::SUCCESS;
    }
    let args = Args {
        foreground: true,
        is_generated: true,
        ..Args::default()
    };
    let input = Input {
        name: NAME.to_owned(),
        text: text.into_bytes(),
    };
    match load::load_texts(&args, vec![input]) {
        Ok(loaded) => {
            say_error(&options.summary(authority.as_deref()));
            process::run(&args, loaded, None)
        }
        Err(load::Refused) => ExitCode::FAILURE,
    }
}
