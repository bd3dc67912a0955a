//! `churn`: a steady load of HTTP/1.1 and HTTP/2 over TLS while everything that can be changed at
//! run time is changed. Counts the requests that failed.

mod changes;
mod h1;
mod h2;
mod load;

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use lexopt::{Arg, ValueExt};

use crate::Failure;
use crate::certs::Certificates;
use crate::clock::{self, Deadline};
use crate::origin::{self, Bodies};
use crate::peers::{self, Running};
use crate::sys;
use crate::workdir::Workdir;
use changes::{Change, Subject};
use load::{Plan, Tally};

/// The options.
pub const HELP: &str = "[OPTIONS]: sends a steady load over TLS and meanwhile reloads the proxy and changes its servers, weights and certificates
--rate N           HTTP/1.1 requests per second (2000)
--connections N    persistent client connections of HTTP/1.1 (50)
--h2-rate N        HTTP/2 requests per second, on 4 connections (2000)
--times N          number of times that each change is made (20)
--every MS         time between two changes in milliseconds (250)
--only NAME        makes only this change
--subject PATH     the Spangate to measure (beside this program)
--haproxy PATH     also measures this HAProxy";

/// Connections of the HTTP/2 client.
const H2_CONNECTIONS: u32 = 4;
/// The servers of the proxy, and a spare one.
const SERVERS: usize = 3;

struct Options {
    rate: u32,
    connections: u32,
    h2_rate: u32,
    times: u32,
    every: Duration,
    only: Option<String>,
    subject: Option<PathBuf>,
    haproxy: Option<PathBuf>,
}

/// Runs the command.
///
/// # Errors
/// An option is invalid, a program is missing, or a proxy fails.
pub fn run(parser: lexopt::Parser) -> Result<(), Failure> {
    let options = parse(parser)?;
    let programs = peers::subject_and_named(options.subject.clone(), options.haproxy.clone())?;
    let mut is_clean = true;
    for program in &programs {
        println!("{}", program.peer.name);
        println!(
            "{:<14}{:>6}  {:<9}{:>9}{:>9}{:>9}{:>9}{:>9}{:>9}",
            "change",
            "times",
            "protocol",
            "requests",
            "failed",
            "repeated",
            "p50 ms",
            "p99 ms",
            "MB"
        );
        let named = |change: &&Change| {
            options
                .only
                .as_deref()
                .is_none_or(|only| only == change.name)
        };
        for change in changes::ALL.iter().filter(named) {
            if sys::interrupted() {
                return Err("interrupted".into());
            }
            let failed = phase(&options, program, change)?;
            is_clean &= !failed || program.peer.name != programs[0].peer.name;
        }
    }
    if is_clean {
        Ok(())
    } else {
        Err("requests or changes failed".into())
    }
}

fn parse(mut parser: lexopt::Parser) -> Result<Options, Failure> {
    let mut options = Options {
        rate: 2000,
        connections: 50,
        h2_rate: 2000,
        times: 20,
        every: Duration::from_millis(250),
        only: None,
        subject: None,
        haproxy: None,
    };
    while let Some(arg) = parser.next()? {
        match arg {
            Arg::Long("rate") => options.rate = parser.value()?.parse()?,
            Arg::Long("connections") => options.connections = parser.value()?.parse()?,
            Arg::Long("h2-rate") => options.h2_rate = parser.value()?.parse()?,
            Arg::Long("times") => options.times = parser.value()?.parse()?,
            Arg::Long("every") => options.every = Duration::from_millis(parser.value()?.parse()?),
            Arg::Long("only") => options.only = Some(parser.value()?.string()?),
            Arg::Long("subject") => options.subject = Some(parser.value()?.into()),
            Arg::Long("haproxy") => options.haproxy = Some(parser.value()?.into()),
            other => return Err(other.unexpected().into()),
        }
    }
    if options.rate == 0 || options.connections == 0 || options.times == 0 {
        return Err("--rate, --connections and --times must be at least 1".into());
    }
    Ok(options)
}

/// One kind of change, on a fresh process. Returns whether anything failed.
fn phase(options: &Options, program: &peers::Installed, change: &Change) -> Result<bool, Failure> {
    let workdir = Workdir::new("bench-churn")?;
    let origins = (0..=SERVERS)
        .map(|_| origin::start_here(1, Bodies::new()).map(|origin| origin.address))
        .collect::<Result<Vec<_>, _>>()?;
    let certificate = Certificates::write(workdir.path())?.server;
    let other = Workdir::new("bench-churn-other")?;
    let other_certificate = Certificates::write(other.path())?.server;
    let listen = peers::free_address()?;
    let file = changes::write_config(workdir.path(), listen, &certificate, &origins[..SERVERS])?;
    let mut command = Command::new(&program.program);
    command.args(["-W", "-db", "-f"]).arg(&file);
    let (proxy, first) = peers::start(program.peer.name, &mut command, listen, workdir.path())?;
    drop(first);
    let subject = Subject {
        master: proxy.process.id(),
        socket: workdir.path().join("admin.sock"),
        certificates: [certificate, other_certificate],
        first: origins[0],
        spare: origins[SERVERS],
    };
    let stop = Arc::new(AtomicBool::new(false));
    let spawn =
        |name: &str, run: fn(&Plan, &Arc<AtomicBool>) -> Result<Tally, Failure>, plan: Plan| {
            let stop = Arc::clone(&stop);
            let work = move || run(&plan, &stop).map_err(|error| error.to_string());
            thread::Builder::new().name(name.to_owned()).spawn(work)
        };
    let plan = Plan {
        address: listen,
        path: "/50",
        connections: options.connections,
        per_second: options.rate,
    };
    let h2_plan = Plan {
        connections: H2_CONNECTIONS,
        per_second: options.h2_rate,
        ..plan
    };
    let loads = [
        spawn("h1-clients", h1::run, plan)?,
        spawn("h2-clients", h2::run, h2_plan)?,
    ];
    let mut problem = None;
    let mut made = 0;
    let start = clock::now();
    for n in 0..options.times {
        if let Err(error) = (change.make)(&subject, n) {
            problem = Some(error.to_string());
            break;
        }
        made += 1;
        let next = options.every * (n + 1);
        sys::pause(next.saturating_sub(clock::now() - start));
    }
    stop.store(true, Ordering::Relaxed);
    let mut failed = 0;
    for (load, protocol) in loads.into_iter().zip(["HTTP/1.1", "HTTP/2"]) {
        let mut tally = load.join().map_err(|_| "a client panicked")??;
        failed += tally.failed;
        show(change.name, made, protocol, &mut tally, &proxy);
    }
    if let Some(problem) = &problem {
        println!("    change failed: {problem}");
    }
    wait_for_old_workers(&proxy);
    Ok(problem.is_some() || failed > 0)
}

fn show(change: &str, made: u32, protocol: &str, tally: &mut Tally, proxy: &Running) {
    let requests = tally.latencies.count() + tally.failed;
    let [p50_us, p99_us] = tally.latencies.percentiles([50, 99]);
    println!(
        "{change:<14}{made:>6}  {protocol:<9}{requests:>9}{:>9}{:>9}{:>9.2}{:>9.2}{:>9.1}",
        tally.failed,
        tally.repeated,
        p50_us / 1000.0,
        p99_us / 1000.0,
        proxy.process.memory().private as f64 / f64::from(1 << 20),
    );
    if let Some(why) = &tally.example {
        println!("    request failed: {why}");
    }
}

/// Waits until old workers have ended, which they do when their clients are gone.
fn wait_for_old_workers(proxy: &Running) {
    let deadline = Deadline::after(Duration::from_secs(5));
    while !deadline.passed() && proxy.process.descendants() > 1 {
        sys::pause(Duration::from_millis(50));
    }
}
