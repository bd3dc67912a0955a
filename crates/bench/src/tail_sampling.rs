//! `tail-sampling`: what deciding about traces costs a collector: CPU and memory for each span, and what arrives.
//!
//! The same traces go to each collector in turn, round after round, as a fresh process each time; what is kept goes to a
//! receiver of its own process, which counts it. A collector's account is what its sender says was accepted.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use lexopt::{Arg, ValueExt};

use crate::Failure;
use crate::clock::Deadline;
use crate::peers::{self, Running, fill};
use crate::process::Process;
use crate::report;
use crate::sys;
use crate::tracing::Collector as Receiver;
use crate::workdir::Workdir;

/// The options.
pub const HELP: &str = "[OPTIONS]: CPU and memory of a collector for each span that it decides about
--rounds N         rounds (3)
--seconds N        length of one run (10)
--rate N           traces a second; 0: as many as are taken (0)
--batch N          spans of a request (512)
--wait N           seconds until a decision (2)
--threads N        threads of Spangate (1)
--http             over HTTP, not gRPC
--unique N         attributes of a span that no other span has (0)
--down SECONDS     the receiver takes nothing for so long, from the middle of a run on (0)
--limit MIB        memory from where on requests are refused; 0: the collector's own bound (0)
--storage          what waits outlives the collector; only Spangate is measured then
--subject PATH     the Spangate to measure (beside this program); otelcol is measured too where it is on the PATH";

const TEMPLATE: &str = include_str!("../templates/collector.yaml");
/// How long the sender may take beside the length of its run.
const SENDER_PATIENCE: Duration = Duration::from_secs(60);
/// How often it is looked whether it has ended.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Time to decide and to send what is left at the end.
const END_PATIENCE: Duration = Duration::from_secs(40);

struct Options {
    rounds: u32,
    seconds: u32,
    rate: u64,
    batch: u32,
    wait_s: u32,
    threads: u32,
    http: bool,
    unique: u32,
    down_s: u32,
    limit_mib: u32,
    storage: bool,
    subject: Option<PathBuf>,
}

/// A collector to be measured.
struct Subject {
    name: &'static str,
    program: PathBuf,
    /// What stands before `--config`.
    words: Vec<String>,
}

/// One run.
#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    sent: u64,
    accepted: u64,
    seconds: f64,
    cpu_us: f64,
    resident_bytes: u64,
    /// Came to the receiver.
    kept: u64,
    /// What the collector says became of the rest: it tells, or has no account.
    dropped: Option<u64>,
}

impl Sample {
    /// Spans that were accepted, and neither dropped by a decision nor received.
    fn lost(&self) -> Option<i64> {
        let settled = self.kept + self.dropped?;
        Some(self.accepted as i64 - settled as i64)
    }
}

/// Runs the command.
///
/// # Errors
/// When an option is not understood, or a program is missing or fails.
pub fn run(parser: lexopt::Parser) -> Result<(), Failure> {
    let options = parse(parser)?;
    let workdir = Workdir::new("bench-tail-sampling")?;
    let spangate = peers::installed(options.subject.clone())?
        .swap_remove(0)
        .program;
    let mut subjects = vec![Subject {
        name: "spangate",
        program: spangate.clone(),
        words: vec![
            "collect".into(),
            "--threads".into(),
            options.threads.to_string(),
        ],
    }];
    let others: &[_] = match options.storage {
        true => &[],
        false => &["otelcol-contrib", "otelcol"],
    };
    for name in others {
        if let Some(program) = peers::on_path(name) {
            subjects.push(Subject {
                name: "otelcol",
                program,
                words: Vec::new(),
            });
            break;
        }
    }
    let mut receiver = Receiver::start(workdir.path())?;
    println!(
        "Medians of {} rounds of {} s; a decision after {} s, {} spans a request, over {}.\n\
         cpu: of the whole process, for each accepted span. kept: received behind the collector.\n\
         lost: accepted, neither dropped by a decision (as the collector's account tells, where it has one) nor received.\n",
        options.rounds,
        options.seconds,
        options.wait_s,
        options.batch,
        if options.http { "HTTP" } else { "gRPC" }
    );
    println!(
        "{:<10}{:>12}{:>12}{:>14}{:>12}{:>12}{:>9}{:>8}",
        "collector", "accepted", "refused", "spans/s", "cpu ns", "peak MB", "kept %", "lost"
    );
    let mut samples: Vec<Vec<Sample>> = subjects.iter().map(|_| Vec::new()).collect();
    for round in 0..options.rounds {
        for (subject, samples) in subjects.iter().zip(&mut samples) {
            eprintln!(
                "{}: round {} of {}",
                subject.name,
                round + 1,
                options.rounds
            );
            let place = (workdir.path(), spangate.as_path());
            samples.push(sample(&options, subject, place, &mut receiver)?);
        }
    }
    for (subject, samples) in subjects.iter().zip(&samples) {
        print!("{}", row(subject.name, samples));
    }
    Ok(())
}

fn parse(mut parser: lexopt::Parser) -> Result<Options, Failure> {
    let mut options = Options {
        rounds: 3,
        seconds: 10,
        rate: 0,
        batch: 512,
        wait_s: 2,
        threads: 1,
        http: false,
        unique: 0,
        down_s: 0,
        limit_mib: 0,
        storage: false,
        subject: None,
    };
    while let Some(arg) = parser.next()? {
        match arg {
            Arg::Long("rounds") => options.rounds = parser.value()?.parse()?,
            Arg::Long("seconds") => options.seconds = parser.value()?.parse()?,
            Arg::Long("rate") => options.rate = parser.value()?.parse()?,
            Arg::Long("batch") => options.batch = parser.value()?.parse()?,
            Arg::Long("wait") => options.wait_s = parser.value()?.parse()?,
            Arg::Long("threads") => options.threads = parser.value()?.parse()?,
            Arg::Long("http") => options.http = true,
            Arg::Long("unique") => options.unique = parser.value()?.parse()?,
            Arg::Long("down") => options.down_s = parser.value()?.parse()?,
            Arg::Long("limit") => options.limit_mib = parser.value()?.parse()?,
            Arg::Long("storage") => options.storage = true,
            Arg::Long("subject") => options.subject = Some(parser.value()?.into()),
            other => return Err(other.unexpected().into()),
        }
    }
    let numbers = [
        options.rounds,
        options.seconds,
        options.batch,
        options.wait_s,
        options.threads,
    ];
    if numbers.contains(&0) {
        return Err("rounds, seconds, batch, wait and threads are at least 1".into());
    }
    Ok(options)
}

fn sample(
    options: &Options,
    subject: &Subject,
    (dir, tracegen): (&Path, &Path),
    receiver: &mut Receiver,
) -> Result<Sample, Failure> {
    let before = receiver.settled()?;
    let (mut collector, listen) = start(options, subject, dir, receiver.address)?;
    let used = collector.process.usage();
    let mut sender = Command::new(tracegen);
    sender.args(["tracegen", "--quiet", "--retry"]);
    sender.args(["--duration", &options.seconds.to_string()]);
    sender.args(["--rate", &options.rate.to_string()]);
    sender.args(["--batch", &options.batch.to_string()]);
    sender.args(["--unique", &options.unique.to_string()]);
    sender.args(["--protocol", if options.http { "http" } else { "grpc" }]);
    sender.args(["--endpoint", &format!("http://{listen}")]);
    let output = dir.join("tracegen.out");
    sender.stdout(fs::File::create(&output)?);
    let mut sender = Process::start(&mut sender)?;
    let resident_bytes = watch(options, &mut sender, &collector, receiver)?;
    let (sent, accepted, seconds) = told(&fs::read_to_string(&output)?)?;
    sys::pause(Duration::from_secs(u64::from(options.wait_s) + 1));
    let (cpu_us, _) = collector.process.usage().since(used);
    // Everything is decided and sent before it ends.
    collector
        .process
        .end(libc::SIGTERM, END_PATIENCE)
        .ok_or("the collector does not end")?;
    let kept = receiver.settled()?.since(before).spans;
    let dropped = dropped(&fs::read_to_string(
        dir.join(format!("{}.out", subject.name)),
    )?);
    Ok(Sample {
        sent,
        accepted,
        seconds,
        cpu_us,
        resident_bytes,
        kept,
        dropped,
    })
}

/// Waits for the sender, while the receiver is down for as long as it is to be; the most memory that was seen.
fn watch(
    options: &Options,
    sender: &mut Process,
    collector: &Running,
    receiver: &mut Receiver,
) -> Result<u64, Failure> {
    let seconds = |seconds: u32| Duration::from_secs(u64::from(seconds));
    let deadline = Deadline::after(seconds(options.seconds) + SENDER_PATIENCE);
    let down = Deadline::after(seconds(options.seconds) / 2);
    let up = Deadline::after(seconds(options.seconds) / 2 + seconds(options.down_s));
    let (mut is_down, mut resident_bytes) = (false, 0);
    while sender.ended().is_none() {
        if deadline.passed() || sys::interrupted() {
            return Err("the sender does not end".into());
        }
        let should = options.down_s > 0 && down.passed() && !up.passed();
        if should != is_down {
            receiver.turn(should)?;
            is_down = should;
        }
        resident_bytes = resident_bytes.max(collector.process.memory().resident);
        sys::pause(LOOK_EVERY);
    }
    if is_down {
        receiver.turn(false)?;
    }
    Ok(resident_bytes)
}

/// What decisions dropped, by the account that a collector prints at its end.
fn dropped(printed: &str) -> Option<u64> {
    let line = printed.lines().find(|line| line.contains(" accepted = "))?;
    let before = line.split(" dropped ").next()?;
    before.rsplit(' ').next()?.parse().ok()
}

fn start(
    options: &Options,
    subject: &Subject,
    dir: &Path,
    receiver: SocketAddr,
) -> Result<(Running, SocketAddr), Failure> {
    let (grpc, http) = (peers::free_address()?, peers::free_address()?);
    let file = dir.join("collector.yaml");
    let limiter = match options.limit_mib {
        0 => String::new(),
        mib => format!("memory_limiter: {{ check_interval: 100ms, limit_mib: {mib} }}"),
    };
    let first = if limiter.is_empty() {
        ""
    } else {
        "memory_limiter, "
    };
    let (storage, extensions, enabled) = match options.storage {
        false => Default::default(),
        true => (
            "storage: file_storage",
            format!(
                "extensions: {{ file_storage: {{ directory: '{}', create_directory: true }} }}",
                dir.join("storage").display()
            ),
            "extensions: [file_storage]",
        ),
    };
    let values: [(&str, &dyn std::fmt::Display); 9] = [
        ("storage", &storage),
        ("extensions", &extensions),
        ("enabled", &enabled),
        ("limiter", &limiter),
        ("first", &first),
        ("grpc", &grpc),
        ("http", &http),
        ("receiver", &receiver),
        ("wait", &options.wait_s),
    ];
    fs::write(&file, fill(TEMPLATE, &values))?;
    let mut command = Command::new(&subject.program);
    command.args(&subject.words).arg("--config").arg(&file);
    let listen = if options.http { http } else { grpc };
    let (running, _) = peers::start(subject.name, &mut command, listen, dir)?;
    Ok((running, listen))
}

/// What the sender says: spans sent, spans accepted, seconds.
fn told(text: &str) -> Result<(u64, u64, f64), Failure> {
    let wrong = || Failure::from(format!("the sender says: {text}"));
    let mut lines = text.lines();
    let first = lines.next().ok_or_else(wrong)?;
    let seconds = first
        .split(" in ")
        .nth(1)
        .and_then(|rest| rest.split(' ').next());
    let second = lines.next().ok_or_else(wrong)?;
    let mut words = second.split_whitespace();
    let sent = words.next();
    let accepted = words.nth(2);
    match (sent, accepted, seconds) {
        (Some(sent), Some(accepted), Some(seconds)) => {
            Ok((sent.parse()?, accepted.parse()?, seconds.parse()?))
        }
        _ => Err(wrong()),
    }
}

fn row(name: &str, samples: &[Sample]) -> String {
    let median = |value: fn(&Sample) -> f64| report::median(samples.iter().map(value).collect());
    let lost: Option<Vec<_>> = samples.iter().map(Sample::lost).collect();
    let lost = lost.map_or("?".into(), |lost| lost.iter().sum::<i64>().to_string());
    format!(
        "{name:<10}{:>12.0}{:>12.0}{:>14.0}{:>12.0}{:>12.1}{:>9.2}{lost:>8}\n",
        median(|one| one.accepted as f64),
        median(|one| (one.sent - one.accepted) as f64),
        median(|one| one.accepted as f64 / one.seconds),
        median(|one| one.cpu_us * 1000.0 / one.accepted.max(1) as f64),
        median(|one| one.resident_bytes as f64 / 1e6),
        median(|one| one.kept as f64 * 100.0 / one.accepted.max(1) as f64),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sender_is_understood() {
        let text = "5 traces, 40 spans, 900 bytes in 1.5 s: 26 spans/s\n\
                    40 sent = 38 accepted + 1 rejected + 1 refused + 0 failed; 0 sent again\n";
        assert_eq!(told(text).unwrap(), (40, 38, 1.5));
        assert!(told("x\n").is_err());
    }

    #[test]
    fn rows_have_medians() {
        let sample = |accepted| Sample {
            sent: accepted,
            accepted,
            seconds: 1.0,
            cpu_us: 1.0,
            resident_bytes: 1_000_000,
            kept: 1,
            dropped: Some(0),
        };
        let row = row("x", &[sample(1), sample(30), sample(5)]);
        let words: Vec<_> = row.split_whitespace().collect();
        assert_eq!((words[1], words[7]), ("5", "33"));
    }

    #[test]
    fn an_account_is_read() {
        let printed =
            "x\n a spans: 9 accepted = 4 exported + 5 dropped + 0 failed + 0 held; 0 refused\n";
        assert_eq!(dropped(printed), Some(5));
        assert_eq!(dropped("x\n"), None);
    }
}
