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
    about: "Sends traces over OTLP, and reports what was accepted, refused and lost.",
    words: &[],
    options: &[
        with("--endpoint", "URL", "the receiver; http adds /v1/traces to a URL without a path (default http://127.0.0.1:4317, for http port 4318)"),
        with("--protocol", "NAME", "grpc or http (default grpc)"),
        flag("--gzip", "compresses requests"),
        flag("--insecure-skip-verify", "does not verify the receiver's certificate"),
        with("--rate", "N", "traces per second; 0: as fast as the receiver accepts them (default 0)"),
        with("--workers", "N", "requests at the same time (default 4)"),
        with("--traces", "N", "stops after N traces (without this and --duration: at Ctrl-C)"),
        with("--duration", "SECONDS", "stops after this time"),
        flag("--retry", "sends refused requests again if the receiver asks for it; without this, they only count as refused"),
        with("--services", "N", "number of services (default 24)"),
        with("--instances", "N", "processes of each service (default 2)"),
        with("--spans", "N", "spans per trace (default 8)"),
        with("--attributes", "N", "attributes per span: the first ten are those of an HTTP server, the others are filler (default 10)"),
        with("--attribute-bytes", "N", "bytes per filler attribute (default 12)"),
        with("--unique", "N", "additional attributes per span with a unique value of 32 bytes (default 0)"),
        with("--errors", "PERCENT", "share of traces with a failed span (default 2)"),
        with("--latency", "MS:PERCENT,…", "durations: PERCENT of the traces take at most MS (default 20:50,100:30,400:20)"),
        with("--slow", "PERCENT", "share of slow traces (default 2)"),
        with("--slow-ms", "N", "minimum duration of a slow trace in milliseconds (default 2000)"),
        with("--late", "PERCENT", "share of spans that are sent later than the rest of their trace (default 0)"),
        with("--late-by", "SECONDS", "delay of these spans (default 15)"),
        with("--batch", "N", "spans per request (default 512)"),
        with("--batch-delay", "SECONDS", "sends a request that is not full after this time (default 5)"),
        flag("--whole-traces", "each request contains whole traces; otherwise the spans of one process, as SDKs send them"),
        with("--seed", "N", "seed of the random numbers; the same seed makes the same traces (default 1)"),
        flag("--quiet", "shows no progress"),
        flag("--progress", "shows progress even if standard error is not a terminal, one line per second"),
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
