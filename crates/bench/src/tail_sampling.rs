//! `tail-sampling`: the cost of sampling decisions for a collector: CPU and memory per span, and
//! the spans that arrive.
//!
//! The same traces go to each collector in turn, round after round, with a fresh process each time.
//! Kept traces go to a receiver in a separate process, which counts them. The number of accepted
//! spans is the sender's.

mod arms;
mod shape;
mod table;

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::Failure;
use crate::clock::{self, Deadline};
use crate::findings::{self, Findings, Options};
use crate::peers::{self, Running, fill};
use crate::process::Process;
use crate::progress::Progress;
use crate::sys;
use crate::tracing::Collector as Receiver;
use crate::workdir::Workdir;
use arms::Arm;
use shape::Shape;
use table::{Moment, Row, Sample};

/// The options.
pub const HELP: &str = findings::help!(
    "CPU and memory of a collector per sampled span: tail sampling in one step, compared with grouping by trace and policies after it",
    "--arms LIST        from tail, grouping (both)
--rounds N         rounds (3)
--seconds N        length of one run (10)
--rate N           traces per second; 0: as many as the collector accepts (0)
--batch N          spans per request (512)
--workers N        requests at the same time (4)
--send-batch N     spans that the collector puts into one request (100000)
--wait N           seconds until a decision (2)
--threads N        threads of Spangate (1)
--http             over HTTP, not gRPC
--unique N         attributes per span with a unique value (0)
--down SECONDS     the receiver refuses all requests for this time, from the middle of a run (0)
--limit MIB        memory above which the collector refuses requests; 0: the collector's default (0)
--storage          waiting data is stored on disk; measures only Spangate and the arm tail
"
);

const TEMPLATE: &str = include_str!("../templates/collector.yaml");
/// Most time of the sender in addition to the length of its run.
const SENDER_PATIENCE: Duration = Duration::from_secs(60);
/// The interval of memory measurements.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// The number of measurements between two recorded moments of a run.
const LOOKS_A_MOMENT: u32 = 5;
/// Most time to decide and to send the rest at the end.
const END_PATIENCE: Duration = Duration::from_secs(40);

/// A measured collector.
#[derive(Clone)]
struct Subject {
    name: &'static str,
    program: PathBuf,
    /// The words before `--config`.
    words: Vec<String>,
    /// The argument that prints its version.
    version: &'static str,
}

/// Runs the command.
///
/// # Errors
/// An option is invalid, or a program is missing or fails.
pub fn run(parser: lexopt::Parser) -> Result<(), Failure> {
    let quick = |shape: &mut Shape| (shape.rounds, shape.seconds, shape.wait_s) = (1, 3, 1);
    let (options, mut shape) = Options::parse(parser, Shape::default(), quick, Shape::take)?;
    if shape.storage {
        shape.arms.retain(|arm| arm.name == arms::TAIL);
    }
    let mut findings = Findings::begin(
        "tail-sampling",
        "Tail sampling in one step against grouping by trace and policies",
        "groupbytrace and a processor policysampling with the same policies accepted 110,000 to 130,000 spans/s in 5 GB; tail_sampling accepted 180,000 to 550,000 in \
         30 GB, and spans were missing.",
    );
    let workdir = Workdir::new("bench-tail-sampling")?;
    let spangate = options.proxies()?.swap_remove(0).program;
    let subjects = subjects(&shape, &spangate);
    let mut bench = Bench {
        receiver: Receiver::start(workdir.path())?,
        workdir,
        tracegen: spangate,
        shape,
    };
    let mut rows = bench.able(&subjects, &mut findings.notes)?;
    bench.measure(&mut rows)?;
    findings.method = bench.shape.method();
    findings.versions = subjects
        .iter()
        .map(|one| {
            (
                one.name.to_owned(),
                peers::first_line(&one.program, &[one.version]),
            )
        })
        .collect();
    findings.tables = vec![table::table(&rows)];
    findings.plots = table::plots(&rows);
    findings.runs = table::json(&rows);
    findings.end(&options)
}

/// Spangate, and the Collector if it is on the PATH.
fn subjects(shape: &Shape, spangate: &Path) -> Vec<Subject> {
    let mut subjects = vec![Subject {
        name: "spangate",
        program: spangate.to_owned(),
        words: vec![
            "collect".into(),
            "--threads".into(),
            shape.threads.to_string(),
        ],
        version: "-v",
    }];
    let others: &[_] = if shape.storage {
        &[]
    } else {
        &["otelcol-contrib", "otelcol"]
    };
    subjects.extend(
        others
            .iter()
            .find_map(|name| peers::on_path(name))
            .map(|program| Subject {
                name: "otelcol",
                program,
                words: Vec::new(),
                version: "--version",
            }),
    );
    subjects
}

/// State that all runs share.
struct Bench {
    receiver: Receiver,
    workdir: Workdir,
    /// The sending program.
    tracegen: PathBuf,
    shape: Shape,
}

impl Bench {
    /// One row for each collector in each arm whose configuration it accepts; otherwise, a note has
    /// the reason.
    fn able(&self, subjects: &[Subject], notes: &mut Vec<String>) -> Result<Vec<Row>, Failure> {
        let mut rows = Vec::new();
        for (place, subject) in subjects.iter().enumerate() {
            for &arm in &self.shape.arms {
                match self.start(subject, arm) {
                    Ok(_) => rows.push(Row {
                        subject: subject.clone(),
                        arm,
                        samples: Vec::new(),
                    }),
                    Err(problem) if place == 0 && arm.name == arms::TAIL => return Err(problem),
                    Err(problem) => {
                        let name = format!("{}, {}", subject.name, arm.name);
                        notes.push(findings::skipped(&name, &problem));
                    }
                }
            }
        }
        Ok(rows)
    }

    fn measure(&mut self, rows: &mut [Row]) -> Result<(), Failure> {
        let mut progress = Progress::new(rows.len() * self.shape.rounds as usize);
        for _ in 0..self.shape.rounds {
            for row in &mut *rows {
                progress.step(&format!("{}, {}", row.subject.name, row.arm.name));
                let sample = self.sample(&row.subject, row.arm)?;
                row.samples.push(sample);
            }
        }
        Ok(())
    }

    fn sample(&mut self, subject: &Subject, arm: &Arm) -> Result<Sample, Failure> {
        let before = self.receiver.settled()?.spans;
        let (mut collector, listen) = self.start(subject, arm)?;
        let used = collector.process.usage();
        let output = self.workdir.path().join("tracegen.out");
        let mut sender = self.sender(listen);
        sender.stdout(fs::File::create(&output)?);
        let progress = self.workdir.path().join("tracegen.err");
        sender.stderr(fs::File::create(&progress)?);
        let sender = Process::start(&mut sender)?;
        let (resident_bytes, course) = self.watch(sender, &collector, before)?;
        let (sent, accepted, seconds) = told(&fs::read_to_string(&output)?)?;
        let (cpu_us, _) = collector.process.usage().since(used);
        // The collector decides and sends everything before it ends.
        collector
            .process
            .end(libc::SIGTERM, END_PATIENCE)
            .ok_or("the collector does not end")?;
        let exported = self.receiver.settled()?.spans - before;
        let printed = self.workdir.path().join(format!("{}.out", subject.name));
        Ok(Sample {
            sent,
            accepted,
            seconds,
            cpu_us,
            resident_bytes,
            exported,
            dropped: dropped(&fs::read_to_string(printed)?),
            course,
            pace: pace(&fs::read_to_string(progress)?),
        })
    }

    fn sender(&self, listen: SocketAddr) -> Command {
        let shape = &self.shape;
        let mut sender = Command::new(&self.tracegen);
        sender.args(["tracegen", "--progress", "--retry"]);
        sender.args(["--duration", &shape.seconds.to_string()]);
        sender.args(["--rate", &shape.rate.to_string()]);
        sender.args(["--batch", &shape.batch.to_string()]);
        sender.args(["--workers", &shape.workers.to_string()]);
        sender.args(["--unique", &shape.unique.to_string()]);
        sender.args(["--protocol", if shape.http { "http" } else { "grpc" }]);
        sender.args(["--endpoint", &format!("http://{listen}")]);
        sender
    }

    /// Waits for the sender and for the last decision, while the receiver is down for its
    /// configured time. Returns the maximum memory and the course of the run. `before` is the
    /// number of spans that the receiver had counted.
    fn watch(
        &mut self,
        mut sender: Process,
        collector: &Running,
        before: u64,
    ) -> Result<(u64, Vec<Moment>), Failure> {
        let seconds = |seconds: u32| Duration::from_secs(u64::from(seconds));
        let shape = &self.shape;
        let start = clock::now();
        let deadline = Deadline::after(seconds(shape.seconds) + SENDER_PATIENCE);
        let down = Deadline::after(seconds(shape.seconds) / 2);
        let up = Deadline::after(seconds(shape.seconds) / 2 + seconds(shape.down_s));
        let (mut is_down, mut resident_bytes, mut course) = (false, 0, Vec::new());
        let mut decided: Option<Deadline> = None;
        for look in 0.. {
            if decided.is_some_and(Deadline::passed) {
                break;
            }
            if decided.is_none() && sender.ended().is_some() {
                decided = Some(Deadline::after(seconds(shape.wait_s + 1)));
            }
            if decided.is_none() && deadline.passed() || sys::interrupted() {
                return Err("the sender does not end".into());
            }
            let should = shape.down_s > 0 && down.passed() && !up.passed() && decided.is_none();
            if should != is_down {
                self.receiver.turn(should)?;
                is_down = should;
            }
            let resident = collector.process.memory().resident;
            resident_bytes = resident_bytes.max(resident);
            if look % LOOKS_A_MOMENT == 0 {
                course.push(Moment {
                    seconds: (clock::now() - start).as_secs_f64(),
                    resident_bytes: resident,
                    exported: self.receiver.counts()?.spans - before,
                });
            }
            sys::pause(LOOK_EVERY);
        }
        Ok((resident_bytes, course))
    }

    /// Starts a collector. Returns its listening address for the sender.
    fn start(&self, subject: &Subject, arm: &Arm) -> Result<(Running, SocketAddr), Failure> {
        let (grpc, http) = (peers::free_address()?, peers::free_address()?);
        let dir = self.workdir.path();
        let file = dir.join("collector.yaml");
        let shape = &self.shape;
        let (limiter, first) = match shape.limit_mib {
            0 => (String::new(), ""),
            mib => (
                format!("memory_limiter: {{ check_interval: 100ms, limit_mib: {mib} }}"),
                "memory_limiter, ",
            ),
        };
        let (storage, extensions, enabled) = if shape.storage {
            (
                "    storage: file_storage\n",
                format!(
                    "extensions: {{ file_storage: {{ directory: '{}', create_directory: true }} }}",
                    dir.join("storage").display()
                ),
                "extensions: [file_storage]",
            )
        } else {
            Default::default()
        };
        let values: [(&str, &dyn std::fmt::Display); 10] = [
            ("processors", &arm.processors(shape.wait_s, storage)),
            ("chain", &arm.chain),
            ("extensions", &extensions),
            ("enabled", &enabled),
            ("limiter", &limiter),
            ("first", &first),
            ("grpc", &grpc),
            ("http", &http),
            ("receiver", &self.receiver.address),
            ("send_batch", &shape.send_batch),
        ];
        fs::write(&file, fill(TEMPLATE, &values))?;
        let mut command = Command::new(&subject.program);
        command.args(&subject.words).arg("--config").arg(&file);
        let listen = if shape.http { http } else { grpc };
        let (running, _) = peers::start(subject.name, &mut command, listen, dir)?;
        Ok((running, listen))
    }
}

/// The spans that decisions dropped, from the account that a collector prints at its end.
fn dropped(printed: &str) -> Option<u64> {
    let line = printed.lines().find(|line| line.contains(" accepted = "))?;
    let before = line.split(" dropped ").next()?;
    before.rsplit(' ').next()?.parse().ok()
}

/// The sender's progress: seconds, and spans accepted until then.
fn pace(progress: &str) -> Vec<(f64, f64)> {
    let lines = progress.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let (seconds, _, accepted) = (words.next()?, words.next()?, words.next()?);
        Some((seconds.parse().ok()?, accepted.parse().ok()?))
    });
    std::iter::once((0.0, 0.0)).chain(lines).collect()
}

/// The sender's result: spans sent, spans accepted, seconds.
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
    fn the_pace_is_read() {
        let text = "    1.0 s  400 spans accepted  400 spans/s  0 refused\nnoise\n    2.1 s  900 spans accepted  450 spans/s  0 refused\n";
        assert_eq!(pace(text), [(0.0, 0.0), (1.0, 400.0), (2.1, 900.0)]);
    }

    #[test]
    fn an_account_is_read() {
        let printed =
            "x\n a spans: 9 accepted = 4 exported + 5 dropped + 0 failed + 0 held; 0 refused\n";
        assert_eq!(dropped(printed), Some(5));
        assert_eq!(dropped("x\n"), None);
    }
}
