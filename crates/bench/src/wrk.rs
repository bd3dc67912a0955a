//! One run of `wrk`, and its output.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::Failure;
use crate::sys;

/// The client's results of one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Answers received.
    pub requests: u64,
    /// Answers per second.
    pub per_second: f64,
    /// The median latency in microseconds.
    pub p50_us: f64,
    /// The latency that 1 of 100 exceeds, in microseconds.
    pub p99_us: f64,
    /// Answers with a status other than 2xx and 3xx, and socket errors of every kind.
    pub errors: u64,
}

/// Loads `url` for `seconds` over `connections` connections from one thread; each of `headers` is
/// `name: value`.
///
/// # Errors
/// `wrk` cannot be run, fails, or prints unexpected text.
pub fn load(
    url: &str,
    connections: u32,
    seconds: u32,
    close: bool,
    headers: &[&str],
) -> Result<Outcome, Failure> {
    let mut command = command(1, connections, seconds);
    if close {
        command.args(["-H", "Connection: close"]);
    }
    for header in headers {
        command.args(["-H", header]);
    }
    outcome(command.arg(url))
}

/// Loads `url` in the same way with the requests of a script.
///
/// # Errors
/// Those of [`load`].
pub fn load_script(
    url: &str,
    connections: u32,
    seconds: u32,
    script: &Path,
) -> Result<Outcome, Failure> {
    let mut command = command(1, connections, seconds);
    outcome(command.arg("-s").arg(script).arg(url))
}

/// The same over TLS, with kept connections and without headers. `openssl_conf` determines the
/// client's offer.
///
/// # Errors
/// Those of [`load`].
#[cfg(feature = "tls")]
pub fn load_tls(
    url: &str,
    connections: u32,
    seconds: u32,
    openssl_conf: &Path,
) -> Result<Outcome, Failure> {
    let mut command = command(1, connections, seconds);
    outcome(command.env("OPENSSL_CONF", openssl_conf).arg(url))
}

/// Loads `url` with requests for `host` from many threads, over kept connections.
///
/// # Errors
/// Those of [`load`].
pub fn load_host(
    url: &str,
    host: &str,
    threads: u32,
    connections: u32,
    seconds: u32,
) -> Result<Outcome, Failure> {
    let mut command = command(threads, connections, seconds);
    outcome(command.args(["-H", &format!("Host: {host}")]).arg(url))
}

/// The version that wrk reports.
pub fn version() -> String {
    crate::peers::first_line(Path::new("wrk"), &["-v"])
}

fn command(threads: u32, connections: u32, seconds: u32) -> Command {
    let mut command = Command::new("wrk");
    command.args([
        &format!("-t{threads}"),
        "--latency",
        &format!("-c{connections}"),
        &format!("-d{seconds}s"),
    ]);
    command
}

fn outcome(command: &mut Command) -> Result<Outcome, Failure> {
    command.stdin(Stdio::null());
    sys::die_with_parent(command);
    let output = command
        .output()
        .map_err(|error| format!("wrk: {error} (Debian package: wrk)"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        return Err(format!(
            "wrk: {}: {text}{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        )
        .into());
    }
    parse(&text).ok_or_else(|| format!("cannot parse the output of wrk:\n{text}").into())
}

/// Parses wrk's report.
fn parse(text: &str) -> Option<Outcome> {
    let mut outcome = Outcome::default();
    let mut seen = 0;
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match *words.as_slice() {
            ["50%", time] => outcome.p50_us = microseconds(time)?,
            ["99%", time] => outcome.p99_us = microseconds(time)?,
            [count, "requests", "in", ..] => outcome.requests = count.parse().ok()?,
            ["Requests/sec:", rate] => outcome.per_second = rate.parse().ok()?,
            ["Socket", "errors:", ref kinds @ ..] => {
                outcome.errors += kinds
                    .iter()
                    .filter_map(|word| word.trim_end_matches(',').parse::<u64>().ok())
                    .sum::<u64>();
                continue;
            }
            ["Non-2xx", .., count] => {
                outcome.errors += count.parse::<u64>().ok()?;
                continue;
            }
            _ => continue,
        }
        seen += 1;
    }
    (seen == 4).then_some(outcome)
}

/// A time in wrk's format, in microseconds.
fn microseconds(text: &str) -> Option<f64> {
    const UNITS: &[(&str, f64)] = &[
        ("us", 1.0),
        ("ms", 1e3),
        ("s", 1e6),
        ("m", 60e6),
        ("h", 3600e6),
    ];
    let (number, scale) = UNITS
        .iter()
        .find_map(|&(unit, scale)| Some((text.strip_suffix(unit)?, scale)))?;
    Some(number.parse::<f64>().ok()? * scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = "Running 2s test @ http://127.0.0.1:8080/50
  1 threads and 64 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     1.18ms  383.14us  12.03ms   91.14%
    Req/Sec    54.35k     2.35k   58.18k    75.00%
  Latency Distribution
     50%    1.15ms
     75%    1.26ms
     90%    1.43ms
     99%    2.29ms
  108263 requests in 2.00s, 12.29MB read
Requests/sec:  54096.82
Transfer/sec:      6.14MB
";

    #[test]
    fn reads_a_clean_report() {
        let expected = Outcome {
            requests: 108_263,
            per_second: 54_096.82,
            p50_us: 1150.0,
            p99_us: 2290.0,
            errors: 0,
        };
        assert_eq!(parse(REPORT), Some(expected));
    }

    #[test]
    fn counts_every_error() {
        let errors = "  Socket errors: connect 1, read 20, write 300, timeout 4000\n  Non-2xx or 3xx responses: 50000\n";
        assert_eq!(parse(&format!("{REPORT}{errors}")).unwrap().errors, 54_321);
    }

    #[test]
    fn refuses_half_a_report() {
        assert_eq!(parse(&REPORT[..REPORT.find("Requests/sec").unwrap()]), None);
        assert_eq!(
            parse("unable to connect to 127.0.0.1:1 Connection refused"),
            None
        );
    }

    #[test]
    fn knows_the_units_of_time() {
        let all = ["950.00us", "1.50ms", "2.00s", "1.00m", "1.00h"].map(microseconds);
        assert_eq!(
            all,
            [
                Some(950.0),
                Some(1500.0),
                Some(2e6),
                Some(60e6),
                Some(3600e6)
            ]
        );
        assert_eq!(microseconds("12"), None);
    }
}
