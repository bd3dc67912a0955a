//! The options of `spangate explain`.

use std::ffi::OsString;

use super::request::Asked;
use crate::usage::{Arguments, Opt, Subcommand, file, flag, with};

const OPTIONS: &[Opt] = &[
    file("-f", "FILE", "a configuration file; may be repeated"),
    with(
        "-H",
        "'NAME: VALUE'",
        "a header field of the request; may be repeated",
    ),
    with(
        "--src",
        "ADDRESS",
        "the client's address (default: unknown)",
    ),
    with(
        "--frontend",
        "NAME",
        "the frontend that receives the request (default: the one that listens on the URL's port)",
    ),
    with(
        "--response",
        "STATUS",
        "the response to assume of the server, for the response rules: 404, or 'HTTP/1.1 404 Not Found'",
    ),
    with(
        "--response-header",
        "'NAME: VALUE'",
        "a header field of that response; may be repeated",
    ),
    flag("--json", "prints JSON"),
    flag("--help", "displays this text"),
];

/// The command, for help texts.
pub(crate) const COMMAND: Subcommand = Subcommand {
    name: "explain",
    synopsis: "-f FILE [OPTIONS] '[METHOD] URL'",
    about: "Shows what a configuration does with a request: which rules match, which backend is chosen and why. With an assumed\n\
            response it shows the response rules too.\n\
            The rules run as in a process that has just started. Nothing is sent.",
    words: &[],
    options: OPTIONS,
};

/// The parsed command line.
#[derive(Debug, Default)]
pub(super) struct Options {
    pub help: bool,
    pub json: bool,
    pub files: Vec<String>,
    pub asked: Asked,
}

impl Options {
    pub(super) fn parse(arguments: impl Iterator<Item = OsString>) -> Result<Options, String> {
        let mut options = Options::default();
        let mut words = Vec::new();
        let mut arguments = Arguments::new(arguments);
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.value(&argument);
            match argument.name() {
                "-f" => options.files.push(value()?),
                "-H" => options.asked.fields.push(value()?),
                "--src" => options.asked.source = value()?,
                "--frontend" => options.asked.frontend = value()?,
                "--response" => options.asked.response = value()?,
                "--response-header" => options.asked.response_fields.push(value()?),
                "--json" => options.json = true,
                "--help" | "-h" => options.help = true,
                name if name.starts_with('-') => {
                    return Err(format!("unknown argument '{}'", argument.word));
                }
                _ => words.push(argument.word),
            }
        }
        if options.help {
            return Ok(options);
        }
        if options.files.is_empty() {
            return Err("name a configuration file with -f".to_owned());
        }
        let words = words.join(" ");
        match *words.split_whitespace().collect::<Vec<_>>() {
            [url] => options.asked.url = url.to_owned(),
            [method, url] => {
                options.asked.method = method.to_owned();
                options.asked.url = url.to_owned();
            }
            _ => return Err("name one request: '[METHOD] URL'".to_owned()),
        }
        options.asked.question().map(|_| options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &[&str]) -> Result<Options, String> {
        Options::parse(words.iter().map(OsString::from))
    }

    #[test]
    fn requests_are_read() {
        let options = parsed(&["-f", "a.cfg", "-H", "x: y", "POST http://a/b?c=d"]).unwrap();
        assert_eq!(options.files, ["a.cfg"]);
        assert_eq!(options.asked.method, "POST");
        assert_eq!(options.asked.url, "http://a/b?c=d");
        let options = parsed(&["http://a/b?c=d", "-f", "a.cfg", "--json"]).unwrap();
        assert_eq!((&*options.asked.method, options.json), ("GET", true));
        for wrong in [
            &["http://a/"][..],
            &["-f", "a.cfg"],
            &["-f", "a.cfg", "GET", "http://a/", "x"],
            &["-f", "a.cfg", "--none", "http://a/"],
            &["-f", "a.cfg", "-H"],
        ] {
            assert!(parsed(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn every_option_of_the_table_is_known() {
        for option in COMMAND.options {
            let error = parsed(&[option.name]).err().unwrap_or_default();
            assert!(!error.contains("unknown argument"), "{error}");
        }
    }
}
