//! `instructions`: user instructions per request, counted by callgrind.
//!
//! The subject serves N requests over one keep-alive connection in one run, and 2N in another. The
//! difference is the cost of N requests, without the start, the first connections and the end.
//! Unlike a time, this count can be a gate in CI.
//!
//! With several connections, each sends a request before the responses are read: the subject then
//! serves many connections in one round of its event loop.
//!
//! The limit applies to the instructions of the program itself. Callgrind assigns each instruction
//! to the object that contains it; those of the C library and the loader depend on the machine.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use lexopt::{Arg, ValueExt};

use crate::Failure;
use crate::client;
use crate::origin::{self, Bodies};
use crate::peers::{self, Setting, haproxy};
use crate::sys;
use crate::tracing::{self, Collector};
use crate::workdir::Workdir;

/// The options.
pub const HELP: &str = "[OPTIONS] [-- COMMAND ARGS…]: counts user instructions per request with valgrind's callgrind
--requests N       requests of the shorter run (1000)
--connections N    connections that send at the same time (1)
--max N            fails if a request takes more instructions of the program itself than this plus the margin
--margin PERCENT   margin of --max for other compilers (0)
--log              with access logs to a UDP socket
--tracing NAME     with the filter opentelemetry, in a single-proxy configuration of the command tracing
--level NAME       level of that configuration (100)
--exporter NAME    exporter of that configuration (otlp)
--profile FILE     writes callgrind's report of the longer run to this file
--subject PATH     the Spangate to measure (beside this program)
COMMAND            another command to measure; {config}, {listen} and {origin} are replaced in its arguments";

/// Most time for the subject to stop under valgrind.
const END_PATIENCE: Duration = Duration::from_secs(20);
/// The path of the requests.
const PATH: &str = "/50";
/// The most connections of a run.
const CONNECTIONS_MAX: u64 = 1000;
/// How many more connections the subject accepts.
const CONNECTIONS_SPARE: u32 = 100;
/// A limit that exceeds the measured value by more than this is reported as too high.
const SLACK_PERCENT: u64 = 1;

/// Instructions of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    /// All instructions in user space.
    all: u64,
    /// The instructions in the program itself.
    own: u64,
}

struct Options {
    requests: u64,
    connections: u64,
    max: Option<u64>,
    margin_percent: u64,
    log: bool,
    tracing: Option<Traced>,
    profile: Option<PathBuf>,
    command: Vec<OsString>,
}

/// The tracing configuration, and the receiver of its telemetry.
struct Traced {
    config: String,
    level: String,
    exporter: String,
    collector: Collector,
    _workdir: Workdir,
}

/// Runs the command.
///
/// # Errors
/// An option is invalid, valgrind is missing, the subject fails, or a request takes more than
/// `--max`.
pub fn run(parser: lexopt::Parser) -> Result<(), Failure> {
    let options = parse(parser)?;
    let origin = origin::start_here(1, Bodies::new())?.address;
    let once = count(&options, origin, options.requests, None)?;
    let profile = options.profile.as_deref();
    let twice = count(&options, origin, 2 * options.requests, profile)?;
    let each = |of: fn(&Count) -> u64| of(&twice).saturating_sub(of(&once)) / options.requests;
    let own = each(|count| count.own);
    println!(
        "{} user instructions per request, {own} of them in the program itself ({} requests: {}, {}: {})",
        each(|count| count.all),
        options.requests,
        once.all,
        2 * options.requests,
        twice.all,
    );
    let Some(max) = options.max else {
        return Ok(());
    };
    let limit = max + max * options.margin_percent / 100;
    if own > limit {
        return Err(format!(
            "the program's own {own} instructions per request exceed {limit} ({max} + {} %)",
            options.margin_percent
        )
        .into());
    }
    if own < max - max * SLACK_PERCENT / 100 {
        println!("the limit of {max} can be lowered");
    }
    Ok(())
}

fn parse(mut parser: lexopt::Parser) -> Result<Options, Failure> {
    let mut options = Options {
        requests: 1000,
        connections: 1,
        max: None,
        margin_percent: 0,
        log: false,
        tracing: None,
        profile: None,
        command: Vec::new(),
    };
    let mut subject = None;
    let (mut traced, mut level, mut exporter) = (None, "100".to_owned(), "otlp".to_owned());
    while let Some(arg) = parser.next()? {
        match arg {
            Arg::Long("requests") => options.requests = parser.value()?.parse()?,
            Arg::Long("connections") => options.connections = parser.value()?.parse()?,
            Arg::Long("max") => options.max = Some(parser.value()?.parse()?),
            Arg::Long("margin") => options.margin_percent = parser.value()?.parse()?,
            Arg::Long("log") => options.log = true,
            Arg::Long("tracing") => traced = Some(parser.value()?.string()?),
            Arg::Long("level") => level = parser.value()?.string()?,
            Arg::Long("exporter") => exporter = parser.value()?.string()?,
            Arg::Long("profile") => options.profile = Some(parser.value()?.into()),
            Arg::Long("subject") => subject = Some(PathBuf::from(parser.value()?)),
            Arg::Value(program) => {
                options.command = std::iter::once(program).chain(parser.raw_args()?).collect();
            }
            other => return Err(other.unexpected().into()),
        }
    }
    if options.requests == 0 {
        return Err("--requests must be at least 1".into());
    }
    if !(1..=CONNECTIONS_MAX).contains(&options.connections) {
        return Err(format!("--connections must be 1 to {CONNECTIONS_MAX}").into());
    }
    if let Some(config) = traced {
        let workdir = Workdir::new("bench-instructions-receiver")?;
        options.tracing = Some(Traced {
            config,
            level,
            exporter,
            collector: Collector::start(workdir.path())?,
            _workdir: workdir,
        });
    }
    if options.command.is_empty() {
        let program = peers::installed(subject)?.swap_remove(0).program;
        options.command = vec![program.into(), "-db".into(), "-f".into(), "{config}".into()];
    }
    Ok(options)
}

/// The instructions of a whole run of the subject that serves `requests` requests.
fn count(
    options: &Options,
    origin: SocketAddr,
    requests: u64,
    profile: Option<&Path>,
) -> Result<Count, Failure> {
    let workdir = Workdir::new("bench-instructions")?;
    let sink = crate::sink::Sink::start()?;
    let rules = match &options.tracing {
        Some(traced) => {
            let receiver = traced.collector.address;
            let (config, level) = (&traced.config, &traced.level);
            tracing::rules(config, level, &traced.exporter, receiver, workdir.path())?
        }
        None => String::new(),
    };
    let setting = Setting {
        log: options.log.then_some(sink.address),
        connections_max: options.connections as u32 + CONNECTIONS_SPARE,
        strict_limits: true,
        rules,
        ..Setting::between(peers::free_address()?, origin)
    };
    let mut command = callgrind(&options.command, &setting, workdir.path())?;
    let (mut proxy, stream) =
        peers::start("subject", &mut command, setting.listen, workdir.path())?;
    let mut streams = vec![stream];
    while (streams.len() as u64) < options.connections {
        streams.push(TcpStream::connect(setting.listen)?);
    }
    // Each connection has had its first request before the measured ones.
    for stream in &mut streams {
        client::get(stream, PATH)?;
    }
    send_requests(&mut streams, requests)?;
    drop(streams);
    proxy
        .process
        .end(libc::SIGTERM, END_PATIENCE)
        .ok_or("the subject does not stop on SIGTERM")?;
    if let Some(file) = profile {
        fs::copy(report(workdir.path())?, file)?;
    }
    let program = Path::new(&options.command[0]);
    total(
        workdir.path(),
        &fs::canonicalize(program).unwrap_or_else(|_| program.into()),
    )
}

/// Sends `requests` requests over all connections, in turns: each connection sends one, then each
/// response is read.
fn send_requests(streams: &mut [TcpStream], requests: u64) -> Result<(), Failure> {
    let mut sent = 0;
    while sent < requests {
        if sys::interrupted() {
            return Err("interrupted".into());
        }
        let turn = streams.len().min((requests - sent) as usize);
        for stream in &mut streams[..turn] {
            client::ask(stream, PATH)?;
        }
        for stream in &mut streams[..turn] {
            client::answer(stream).map_err(|error| format!("request {sent}: {error}"))?;
            sent += 1;
        }
    }
    Ok(())
}

/// The first report in `dir`.
fn report(dir: &Path) -> Result<PathBuf, Failure> {
    let files = fs::read_dir(dir)?.flatten();
    let mut reports = files.filter(|file| is_report(&file.file_name()));
    let found = reports.next().ok_or("callgrind wrote no report")?;
    Ok(found.path())
}

fn is_report(name: &OsStr) -> bool {
    name.to_string_lossy().starts_with("callgrind.")
}

/// `subject` under callgrind, with its configuration and the reports in `dir`.
fn callgrind(subject: &[OsString], setting: &Setting, dir: &Path) -> Result<Command, Failure> {
    let config = dir.join("subject.cfg");
    haproxy::write_config(setting, &config)?;
    let replace = |word: &OsString| {
        let word = word
            .to_string_lossy()
            .replace("{config}", &config.to_string_lossy());
        word.replace("{listen}", &setting.listen.to_string())
            .replace("{origin}", &setting.origin.to_string())
    };
    let mut command = Command::new("valgrind");
    command.args([
        "--tool=callgrind",
        "--quiet",
        &format!("--callgrind-out-file={}/callgrind.%p", dir.display()),
    ]);
    command.args(subject.iter().map(replace));
    Ok(command)
}

/// The sum of the reports in `dir`: one for each process of the subject.
fn total(dir: &Path, program: &Path) -> Result<Count, Failure> {
    let mut sum = None;
    for file in fs::read_dir(dir)?.flatten() {
        if is_report(&file.file_name()) {
            let report = fs::read_to_string(file.path())?;
            let all = summary(&report).ok_or("callgrind's report has no total")?;
            let count: &mut Count = sum.get_or_insert_default();
            count.all += all;
            count.own += instructions_of(&report, &program.to_string_lossy());
        }
    }
    sum.ok_or_else(|| "callgrind wrote no report".into())
}

/// The total of a callgrind report.
fn summary(report: &str) -> Option<u64> {
    let find = |name: &str| {
        report.lines().find_map(|line| {
            line.strip_prefix(name)?
                .split_whitespace()
                .next()?
                .parse()
                .ok()
        })
    };
    find("summary:").or_else(|| find("totals:"))
}

/// The instructions in the object with this path. In callgrind's format, an object has a number,
/// and its name where it is first mentioned. A line of a position and a count belongs to the object
/// named last, except for the line after `calls=`, which repeats the count of the called function.
fn instructions_of(report: &str, object: &str) -> u64 {
    let (mut number, mut current) = (None, None);
    let mut sum = 0;
    let mut lines = report.lines();
    while let Some(line) = lines.next() {
        let caller = line.strip_prefix("ob=");
        if line.starts_with("calls=") {
            lines.next();
        } else if let Some(named) = caller.or_else(|| line.strip_prefix("cob=")) {
            let (at, name) = named.split_once(' ').unwrap_or((named, ""));
            if name == object {
                number = Some(at);
            }
            current = caller.map_or(current, |_| Some(at));
        } else if line.starts_with(|first: char| first.is_ascii_digit() || "+-*".contains(first))
            && current.is_some()
            && current == number
        {
            let count = line.split_whitespace().nth(1);
            sum += count
                .and_then(|count| count.parse::<u64>().ok())
                .unwrap_or(0);
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_total_of_a_report() {
        assert_eq!(
            summary("version: 1\nevents: Ir\nsummary: 123456\n\nfn=(1) main\n3 4\n"),
            Some(123_456)
        );
        assert_eq!(
            summary("events: Ir\nfn=(1) main\n3 4\ntotals: 77\n"),
            Some(77)
        );
        assert_eq!(summary("events: Ir\n"), None);
    }

    #[test]
    fn tells_the_program_from_its_libraries() {
        let report = "events: Ir\nob=(1) /lib/ld.so\nfn=(1) start\n10 5\n+2 6\ncob=(2) /bin/program\ncfn=(2) main\n\
                      calls=1 -9\n* 1000\n0 7\n\nob=(2)\nfn=(2)\n3 40\n-1 50\ncob=(3) /lib/libc.so\ncfn=(3) memcpy\n\
                      calls=2 1\n5 900\n* 10\n\nob=(3)\nfn=(3)\n1 900\nob=(2)\nfn=(4) other\n8 1\n";
        assert_eq!(instructions_of(report, "/bin/program"), 101);
        assert_eq!(instructions_of(report, "/lib/ld.so"), 18);
        assert_eq!(instructions_of(report, "/lib/libc.so"), 900);
        assert_eq!(instructions_of(report, "/bin/other"), 0);
    }
}
