//! The options of `spangate tracegen`.

use std::ffi::OsString;
use std::str::FromStr;
use std::time::Duration;

use collector::generate::{Latency, Shape};

use crate::usage::{Arguments, Subcommand, flag, with};

/// The command, for help texts.
#[rustfmt::skip]
pub(crate) const COMMAND: Subcommand = Subcommand {
    name: "tracegen",
    synopsis: "[OPTIONS]",
    about: "Sends traces over OTLP, and tells what was taken, refused and lost.",
    words: &[],
    options: &[
        with("--endpoint", "URL", "where (http://127.0.0.1:4317; for http its path is added: http://127.0.0.1:4318/v1/traces)"),
        with("--protocol", "NAME", "grpc or http (grpc)"),
        flag("--gzip", "compresses requests"),
        flag("--insecure-skip-verify", "takes any certificate of https"),
        with("--rate", "N", "traces a second; 0: as fast as they are taken (0)"),
        with("--workers", "N", "requests at a time (4)"),
        with("--traces", "N", "ends after as many (with neither this nor --duration: until Ctrl-C)"),
        with("--duration", "SECONDS", "ends after so long"),
        flag("--retry", "sends again what was refused, when the receiver says so; else it is counted as refused"),
        with("--services", "N", "services that spans are of (24)"),
        with("--instances", "N", "processes of each (2)"),
        with("--spans", "N", "spans of a trace (8)"),
        with("--attributes", "N", "attributes of a span: ten as servers of HTTP have them, more without a meaning (10)"),
        with("--attribute-bytes", "N", "bytes of those without a meaning (12)"),
        with("--unique", "N", "attributes of 32 bytes that no other span has (0)"),
        with("--errors", "PERCENT", "traces with a failure (2)"),
        with("--latency", "MS:PERCENT,…", "how many traces take up to how long (20:50,100:30,400:20)"),
        with("--slow", "PERCENT", "slow traces (2)"),
        with("--slow-ms", "N", "milliseconds that those take at least (2000)"),
        with("--late", "PERCENT", "spans that come later than the rest of their trace (0)"),
        with("--late-by", "SECONDS", "how much later (15)"),
        with("--batch", "N", "spans of a request (512)"),
        with("--batch-delay", "SECONDS", "a request that is not full goes after this time (5)"),
        flag("--whole-traces", "requests of whole traces; else of spans of one process, as SDKs send them"),
        with("--seed", "N", "two runs with the same send the same (1)"),
        flag("--quiet", "no progress"),
        flag("--progress", "progress also where standard error is no terminal, a line each second"),
    ],
};

/// Most requests at a time.
pub(super) const WORKERS_MAX: u32 = 1024;
/// Most seconds of any time option.
const SECONDS_MAX: f64 = 1e7;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Command {
    #[default]
    Run,
    Help,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Protocol {
    #[default]
    Grpc,
    Http,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Options {
    pub command: Command,
    pub endpoint: Option<String>,
    pub protocol: Protocol,
    pub gzip: bool,
    pub skip_verify: bool,
    pub rate: f64,
    pub workers: u32,
    pub traces: Option<u64>,
    pub duration: Option<Duration>,
    pub retry: bool,
    pub shape: Shape,
    pub seed: u64,
    pub quiet: bool,
    pub progress: bool,
}

impl Options {
    pub(super) fn parse(arguments: impl Iterator<Item = OsString>) -> Result<Options, String> {
        let mut options = Options {
            workers: 4,
            seed: 1,
            ..Options::default()
        };
        let mut arguments = Arguments::new(arguments);
        while let Some(argument) = arguments.next() {
            let name = argument.name();
            let mut value = || arguments.value(&argument);
            let shape = &mut options.shape;
            match name {
                "--endpoint" => options.endpoint = Some(value()?),
                "--protocol" => {
                    options.protocol = match value()?.as_str() {
                        "grpc" => Protocol::Grpc,
                        "http" => Protocol::Http,
                        other => return Err(format!("'{other}' is neither grpc nor http")),
                    }
                }
                "--gzip" => options.gzip = true,
                "--insecure-skip-verify" => options.skip_verify = true,
                "--rate" => options.rate = number(name, &value()?, 0.0, 1e9)?,
                "--workers" => options.workers = number(name, &value()?, 1, WORKERS_MAX)?,
                "--traces" => options.traces = Some(number(name, &value()?, 1, u64::MAX)?),
                "--duration" => {
                    let seconds = number(name, &value()?, 0.001, SECONDS_MAX)?;
                    options.duration = Some(Duration::from_secs_f64(seconds));
                }
                "--retry" => options.retry = true,
                "--instances" => shape.instances = number(name, &value()?, 1, 1000)?,
                "--unique" => shape.unique_attributes = number(name, &value()?, 0, 100)?,
                "--latency" => shape.latency = Latency::parse(&value()?)?,
                "--late" => shape.late_percent = number(name, &value()?, 0.0, 100.0)?,
                "--late-by" => shape.late_by_ns = nanoseconds(name, &value()?)?,
                "--batch-delay" => shape.batch_delay_ns = nanoseconds(name, &value()?)?,
                "--services" => shape.services = number(name, &value()?, 1, 10_000)?,
                "--spans" => shape.spans = number(name, &value()?, 1, 10_000)?,
                "--attributes" => shape.attributes = number(name, &value()?, 0, 1000)?,
                "--attribute-bytes" => shape.attribute_bytes = number(name, &value()?, 1, 65_536)?,
                "--errors" => shape.errors_percent = number(name, &value()?, 0.0, 100.0)?,
                "--slow" => shape.slow_percent = number(name, &value()?, 0.0, 100.0)?,
                "--slow-ms" => shape.slow_ms = number(name, &value()?, 2, 86_400_000)?,
                "--batch" => shape.batch_spans = number(name, &value()?, 1, 100_000)?,
                "--whole-traces" => shape.whole_traces = true,
                "--seed" => options.seed = number(name, &value()?, 0, u64::MAX)?,
                "--quiet" => options.quiet = true,
                "--progress" => options.progress = true,
                "--help" | "-h" => options.command = Command::Help,
                _ => return Err(format!("unknown argument '{}'", argument.word)),
            }
        }
        Ok(options)
    }
}

fn nanoseconds(name: &str, seconds: &str) -> Result<u64, String> {
    let seconds = number(name, seconds, 0.0, SECONDS_MAX)?;
    Ok(Duration::from_secs_f64(seconds).as_nanos() as u64)
}

fn number<N: FromStr + PartialOrd + std::fmt::Display>(
    name: &str,
    text: &str,
    least: N,
    most: N,
) -> Result<N, String> {
    let read = text.parse::<N>().ok();
    let wrong = || format!("{name} expects a number from {least} to {most}, not '{text}'");
    read.filter(|value| (&least..=&most).contains(&value))
        .ok_or_else(wrong)
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
        let options =
            parsed("--protocol=http --rate 2.5 --traces 10 --spans 3 --whole-traces").unwrap();
        assert_eq!(options.protocol, Protocol::Http);
        assert_eq!((options.rate, options.traces), (2.5, Some(10)));
        assert!(options.shape.spans == 3 && options.shape.whole_traces);
        let late = parsed("--late 5 --late-by 0.5 --latency 7:100").unwrap();
        assert_eq!(late.shape.late_by_ns, 500_000_000);
        assert_eq!(late.shape.latency, Latency::parse("7:100").unwrap());
        for wrong in [
            "x",
            "--rate",
            "--rate x",
            "--rate -1",
            "--workers 0",
            "--errors 101",
            "--protocol udp",
            "--latency 5:50",
            "--late-by -1",
        ] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
    }
}
