//! The options of `spangate collect`.

use std::ffi::OsString;

use collector::config::gates;
use collector::config::print::Style;

use crate::usage::{Subcommand, file, flag, with};

/// The command, for help texts.
#[rustfmt::skip]
pub(crate) const COMMAND: Subcommand = Subcommand {
    name: "collect",
    synopsis: "[validate | print-config | components] --config FILE [--config FILE]... [OPTIONS]",
    about: "Runs the configuration of an OpenTelemetry Collector.\n\
            Several sources are merged. A source is a file, env:NAME or yaml:TEXT.",
    words: &[(
        "validate",
        "checks the configuration and exits: 0 valid, 1 invalid, 3 valid, but a pipeline cannot be started",
    ), (
        "print-config",
        "prints the configuration as it is read: merged, with what ${…} stands for; it need not be valid",
    ), (
        "components",
        "prints the components that are built in",
    )],
    options: &[
        file("--config", "SOURCE", "a file, file:PATH, env:NAME or yaml:TEXT; may be repeated"),
        with("--set", "KEY=VALUE", "sets one value, such as processors.batch.timeout=2s; may be repeated"),
        flag("--strict", "a pipeline that cannot be started is an error, whatever its signal"),
        with("--drop-part", "ID", "leaves a component out of all pipelines; may be repeated"),
        with("--feature-gates", "LIST", "+processor.tailsamplingprocessor.recordpolicy; other gates of the Collector have no effect"),
        with("--threads", "N", "number of threads (default: the number of processors)"),
        with("--mode", "MODE", "of print-config: redacted (the default), or unredacted, which prints secrets, too"),
        with("--format", "FORMAT", "of print-config: yaml (the default) or json"),
        flag("--documentation", "prints the reference of all options of the configuration"),
    ],
};

/// The largest number of threads that is useful.
const THREADS_MAX: usize = 256;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Command {
    #[default]
    Run,
    Validate,
    PrintConfig,
    Components,
    Help,
    Documentation,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Options {
    pub command: Command,
    pub sources: Vec<String>,
    pub strict: bool,
    pub drop_parts: Vec<String>,
    pub record_policy: bool,
    pub threads: usize,
    pub style: Style,
}

impl Options {
    pub(super) fn parse(arguments: impl Iterator<Item = OsString>) -> Result<Options, String> {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let mut options = Options {
            threads: processors.min(THREADS_MAX),
            ..Options::default()
        };
        let mut sets = Vec::new();
        let mut words = arguments.map(|word| word.to_string_lossy().into_owned());
        while let Some(word) = words.next() {
            let (name, inline) = match word.split_once('=') {
                Some((name, value)) if name.starts_with("--") => (name, Some(value.to_owned())),
                _ => (word.as_str(), None),
            };
            // Options begin with one dash or two, as in the Collector.
            let name = name.strip_prefix("--").or_else(|| name.strip_prefix('-'));
            let mut value = || {
                let value = inline.clone().or_else(|| words.next());
                value.ok_or_else(|| format!("{word} needs a value"))
            };
            match name {
                None if word == "validate" => options.command = Command::Validate,
                None if word == "print-config" => options.command = Command::PrintConfig,
                None if word == "components" => options.command = Command::Components,
                Some("mode") => {
                    options.style.shows_secrets = match value()?.as_str() {
                        "redacted" => false,
                        "unredacted" => true,
                        other => {
                            return Err(format!(
                                "--mode expects redacted or unredacted, not '{other}'"
                            ));
                        }
                    };
                }
                Some("format") => {
                    options.style.is_json = match value()?.as_str() {
                        "yaml" => false,
                        "json" => true,
                        other => {
                            return Err(format!("--format expects yaml or json, not '{other}'"));
                        }
                    };
                }
                Some("config") => options.sources.push(value()?),
                Some("set") => sets.push(set(&value()?)?),
                Some("strict") => options.strict = true,
                Some("drop-part") => options.drop_parts.push(value()?),
                Some("feature-gates") => options.gates(&value()?)?,
                Some("threads") => {
                    let text = value()?;
                    let threads = text.parse().ok();
                    options.threads = threads
                        .filter(|threads| (1..=THREADS_MAX).contains(threads))
                        .ok_or_else(|| {
                            format!(
                                "--threads expects a number from 1 to {THREADS_MAX}, not '{text}'"
                            )
                        })?;
                }
                Some("help" | "h") => options.command = Command::Help,
                Some("documentation") => options.command = Command::Documentation,
                _ => return Err(format!("unknown argument '{word}'")),
            }
        }
        let needs_config = matches!(
            options.command,
            Command::Run | Command::Validate | Command::PrintConfig
        );
        if needs_config && options.sources.is_empty() {
            return Err("name a configuration with --config".to_owned());
        }
        // `--set` overrides every file.
        options.sources.extend(sets);
        Ok(options)
    }

    fn gates(&mut self, list: &str) -> Result<(), String> {
        let gates = gates::parse(list)?;
        self.record_policy = gates.record_policy.unwrap_or(self.record_policy);
        for gate in gates.ignored {
            crate::say_error(&format!("warning: {}\n", gates::ignored(gate)));
        }
        Ok(())
    }
}

/// Turns `a.b.c=value` into a configuration source.
fn set(text: &str) -> Result<String, String> {
    let (path, value) = text
        .split_once('=')
        .ok_or_else(|| format!("--set '{text}' needs KEY=VALUE"))?;
    // Two colons may separate the keys of a source.
    Ok(format!("yaml:{}: {value}", path.replace('.', "::")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_of_the_table_is_known() {
        for option in COMMAND.options {
            let error = parsed(option.name).err().unwrap_or_default();
            assert!(!error.contains("unknown argument"), "{error}");
        }
    }

    fn parsed(line: &str) -> Result<Options, String> {
        Options::parse(line.split_whitespace().map(OsString::from))
    }

    #[test]
    fn options_are_read() {
        let options = parsed("--config a.yaml --config=b.yaml --set processors.batch.timeout=2s --strict --threads 3").unwrap();
        assert_eq!(
            options.sources,
            ["a.yaml", "b.yaml", "yaml:processors::batch::timeout: 2s"]
        );
        assert!(options.strict && options.threads == 3 && options.command == Command::Run);
        let options = parsed("validate -config a.yaml --drop-part x/y").unwrap();
        assert_eq!(
            (options.command, options.drop_parts.len()),
            (Command::Validate, 1)
        );
        let gates = "--config a --feature-gates=+processor.tailsamplingprocessor.recordpolicy";
        assert!(parsed(gates).unwrap().record_policy);
        for wrong in [
            "",
            "--config",
            "run --config a",
            "--config a --threads 0",
            "--config a --set x",
            "--config a --feature-gates +unknown",
        ] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
        assert_eq!(parsed("--help").unwrap().command, Command::Help);
    }
}
