//! The options of `spangate collect`.

use std::ffi::OsString;

use crate::usage::{Subcommand, file, flag, with};

/// The command, for help texts.
#[rustfmt::skip]
pub(crate) const COMMAND: Subcommand = Subcommand {
    name: "collect",
    synopsis: "[validate] --config FILE [--config FILE]... [OPTIONS]",
    about: "Runs the configuration of an OpenTelemetry Collector.\n\
            Several sources are merged. A source is a file, env:NAME or yaml:TEXT.",
    words: &[(
        "validate",
        "checks the configuration and exits: 0 valid, 1 invalid, 3 valid, but a pipeline cannot be started",
    )],
    options: &[
        file("--config", "SOURCE", "a file, file:PATH, env:NAME or yaml:TEXT; may be repeated"),
        with("--set", "KEY=VALUE", "sets one value, such as processors.batch.timeout=2s; may be repeated"),
        flag("--strict", "a pipeline that cannot be started is an error, whatever its signal"),
        with("--drop-part", "ID", "leaves a component out of all pipelines; may be repeated"),
        with("--feature-gates", "LIST", "+processor.tailsamplingprocessor.recordpolicy; other gates cause a warning and have no effect"),
        with("--threads", "N", "number of threads (default: the number of processors)"),
        flag("--documentation", "prints the reference of all options of the configuration"),
    ],
};

/// The largest number of threads that is useful.
const THREADS_MAX: usize = 256;
/// Feature gate: writes the policy that kept a trace into the trace's scopes.
const RECORD_POLICY: &str = "processor.tailsamplingprocessor.recordpolicy";

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Command {
    #[default]
    Run,
    Validate,
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
                Some("config") => options.sources.push(value()?),
                Some("set") => sets.push(set(&value()?)?),
                Some("strict") => options.strict = true,
                Some("drop-part") => options.drop_parts.push(value()?),
                Some("feature-gates") => options.gates(&value()?),
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
        let needs_config = matches!(options.command, Command::Run | Command::Validate);
        if needs_config && options.sources.is_empty() {
            return Err("name a configuration with --config".to_owned());
        }
        // `--set` overrides every file.
        options.sources.extend(sets);
        Ok(options)
    }

    fn gates(&mut self, list: &str) {
        let gates = gates(list);
        self.record_policy = gates.record_policy.unwrap_or(self.record_policy);
        for gate in gates.unknown {
            crate::say_error(&format!("warning: {}\n", ignored(gate)));
        }
    }
}

/// Gates of the Collector that would change what is kept or sent, and what happens here instead.
const NOT_BUILT_IN: [(&str, &str); 1] = [(
    "processor.tailsamplingprocessor.usetracestate",
    "'probabilistic' decides by a hash of the trace id, limits do not report what they kept, and no threshold ('th') is written \
     to a tracestate",
)];

/// The message about a gate that has no effect.
pub(crate) fn ignored(gate: &str) -> String {
    match NOT_BUILT_IN.iter().find(|(name, _)| *name == gate) {
        Some((_, instead)) => {
            format!("the feature gate '{gate}' is not built in, and ignored: {instead}")
        }
        None => format!("the unknown feature gate '{gate}' is ignored"),
    }
}

/// The content of a list of feature gates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Gates<'a> {
    /// Whether policies are recorded, if the list says so.
    pub record_policy: Option<bool>,
    /// Gates that have no effect here. A gate that is not built in is off anyway.
    pub unknown: Vec<&'a str>,
}

/// Parses gates separated by commas. Each has `+`, `-` or nothing before it; without a sign it is
/// on.
pub(crate) fn gates(list: &str) -> Gates<'_> {
    let mut gates = Gates::default();
    for gate in list.split(',').filter(|gate| !gate.is_empty()) {
        let is_on = !gate.starts_with('-');
        let gate = gate.strip_prefix(['+', '-']).unwrap_or(gate);
        match gate {
            RECORD_POLICY => gates.record_policy = Some(is_on),
            gate if !is_on && NOT_BUILT_IN.iter().any(|(name, _)| *name == gate) => {}
            gate => gates.unknown.push(gate),
        }
    }
    gates
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
        let own = "processor.tailsamplingprocessor.usetracestate";
        let lists = [
            format!("+{own}"),
            own.to_owned(),
            format!("-{own}"),
            "other".to_owned(),
        ];
        let unknown = lists.each_ref().map(|list| super::gates(list).unknown);
        assert_eq!(unknown, [vec![own], vec![own], vec![], vec!["other"]]);
        assert!(ignored(own).contains("is not built in, and ignored: 'probabilistic' decides by"));
        assert_eq!(
            ignored("other"),
            "the unknown feature gate 'other' is ignored"
        );
        for wrong in [
            "",
            "--config",
            "run --config a",
            "--config a --threads 0",
            "--config a --set x",
        ] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
        assert_eq!(parsed("--help").unwrap().command, Command::Help);
    }
}
