//! One run of `h2load`: its output and its log.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::Failure;
use crate::https::latency::Latencies;
use crate::https::{CIPHER, GROUP};
use crate::sys;
use crate::wrk::Outcome;

/// Loads `url` for `seconds` over `connections` HTTP/2 connections with `streams` requests at a
/// time on each, from one thread. Without TLS, it uses HTTP/2 with prior knowledge. `log` is a file
/// for the time of each request.
///
/// # Errors
/// `h2load` cannot be run, fails, or prints unexpected text, or HTTP/2 was not negotiated.
pub fn load(
    url: &str,
    connections: u32,
    streams: u32,
    seconds: u32,
    log: &Path,
) -> Result<Outcome, Failure> {
    let mut command = Command::new("h2load");
    command
        .args(["-t1", "--npn-list=h2", "--no-tls-proto=h2c"])
        .args([
            format!("-c{connections}"),
            format!("-m{streams}"),
            format!("-D{seconds}"),
            format!("--tls13-ciphers={CIPHER}"),
            format!("--groups={GROUP}"),
            format!("--log-file={}", log.display()),
            url.to_owned(),
        ])
        .stdin(Stdio::null());
    sys::die_with_parent(&mut command);
    // `h2load` appends to the log.
    let _ = fs::remove_file(log);
    let output = command
        .output()
        .map_err(|error| format!("h2load: {error} (Debian package: nghttp2-client)"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let not_understood = || {
        let errors = String::from_utf8_lossy(&output.stderr);
        format!(
            "h2load: {}: cannot parse its output:\n{text}{errors}",
            output.status
        )
    };
    let printed = parse(&text).ok_or_else(not_understood)?;
    let log = fs::read_to_string(log)?;
    let mut latencies = times(&log).ok_or("cannot parse h2load's log")?;
    let [p50_us, p99_us] = latencies.percentiles([50, 99]);
    Ok(Outcome {
        p50_us,
        p99_us,
        ..printed
    })
}

/// Parses h2load's report, which has no percentiles. It is rejected without HTTP/2.
fn parse(text: &str) -> Option<Outcome> {
    let mut outcome = Outcome::default();
    let mut http2 = false;
    let mut seen = 0;
    for line in text.lines() {
        let words: Vec<&str> = line
            .split_whitespace()
            .map(|word| word.trim_end_matches(','))
            .collect();
        match *words.as_slice() {
            ["Application", "protocol:", "h2" | "h2c"] => http2 = true,
            ["finished", "in", _, rate, "req/s", ..] => outcome.per_second = rate.parse().ok()?,
            [
                "requests:",
                ..,
                failed,
                "failed",
                errored,
                "errored",
                timeout,
                "timeout",
            ] => {
                let bad = [failed, errored, timeout];
                outcome.errors += sum(&bad)?;
            }
            [
                "status",
                "codes:",
                good,
                "2xx",
                other,
                "3xx",
                client,
                "4xx",
                server,
                "5xx",
            ] => {
                outcome.requests = good.parse().ok()?;
                outcome.errors += sum(&[other, client, server])?;
            }
            _ => continue,
        }
        seen += 1;
    }
    // Each connection reports the protocol.
    (http2 && seen >= 4).then_some(outcome)
}

fn sum(words: &[&str]) -> Option<u64> {
    words.iter().map(|word| word.parse::<u64>().ok()).sum()
}

/// The times of the answered requests: the third column, in microseconds. The second column is the
/// status.
fn times(log: &str) -> Option<Latencies> {
    let mut latencies = Latencies::default();
    for line in log.lines() {
        let mut words = line.split_whitespace().skip(1);
        let (status, time) = (words.next()?, words.next()?);
        if status.starts_with('2') {
            latencies.record(std::time::Duration::from_micros(time.parse().ok()?));
        }
    }
    Some(latencies)
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = "starting benchmark...
TLS Protocol: TLSv1.3
Cipher: TLS_AES_128_GCM_SHA256
Server Temp Key: X25519 253 bits
Application protocol: h2
Main benchmark duration is over for thread #0. Stopping all clients.

finished in 1.00s, 36764.00 req/s, 2.42MB/s
requests: 36764 total, 36772 started, 36764 done, 36760 succeeded, 1 failed, 2 errored, 3 timeout
status codes: 36760 2xx, 1 3xx, 2 4xx, 1 5xx
traffic: 2.42MB (2536716) total, 1.30MB (1360416) headers (space savings 0.00%), 179.53KB (183840) data
                     min         max         mean         sd        +/- sd
time for request:       35us     42.16ms       215us       733us    98.81%
";

    #[test]
    fn reads_a_report_with_its_errors() {
        let expected = Outcome {
            requests: 36_760,
            per_second: 36_764.0,
            errors: 10,
            ..Outcome::default()
        };
        assert_eq!(parse(REPORT), Some(expected));
    }

    #[test]
    fn refuses_another_protocol_and_half_a_report() {
        assert_eq!(parse(&REPORT.replace(": h2", ": http/1.1")), None);
        assert_eq!(parse(&REPORT[..REPORT.find("status codes").unwrap()]), None);
    }

    #[test]
    fn reads_the_times_of_answers() {
        let mut latencies = times("17\t200\t1462\n17\t-1\t9\n18\t200\t1484\n").unwrap();
        assert_eq!(
            (latencies.count(), latencies.percentiles([50])),
            (2, [1462.0])
        );
        assert!(times("17\t200\n").is_none());
    }
}
