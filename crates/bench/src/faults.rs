//! `faults`: misbehaving clients and servers, the results that clients see, and the memory use.

mod cases;
mod clients;
mod servers;

use std::path::PathBuf;
use std::process::Command;
use std::rc::Rc;
use std::time::Duration;

use lexopt::{Arg, ValueExt};
use tokio::task::{LocalSet, spawn_local};
use tokio::time::sleep;

use crate::Failure;
use crate::peers::{self, Installed, Running};
use crate::sys;
use crate::workdir::Workdir;
use cases::{Case, Seen};
use clients::Counts;

/// The options.
pub const HELP: &str = "[OPTIONS]: runs servers and clients that misbehave, and shows what clients receive and how much memory the proxy uses
--clients N        clients at the same time (200)
--seconds S        length of each fault (10)
--only NAME        runs only this fault
--subject PATH     the Spangate to measure (beside this program)
--haproxy PATH     also measures this HAProxy";

struct Options {
    clients: u32,
    seconds: u64,
    only: Option<String>,
    subject: Option<PathBuf>,
    haproxy: Option<PathBuf>,
}

/// Runs the command.
///
/// # Errors
/// An option is invalid, a program is missing, a proxy fails, or Spangate gives clients a result
/// that is not permitted.
pub fn run(parser: lexopt::Parser) -> Result<(), Failure> {
    let options = parse(parser)?;
    let programs = peers::subject_and_named(options.subject.clone(), options.haproxy.clone())?;
    println!(
        "{} clients, {} s for each fault; MB (2^20 bytes) of private memory after a quarter of the time and at the end\n",
        options.clients, options.seconds
    );
    let mut is_right = true;
    for program in &programs {
        println!("{}", program.peer.name);
        println!(
            "{:<18}{:>9}{:>9}  seen by clients",
            "fault", "MB at 1/4", "MB"
        );
        let only = options.only.as_deref();
        for case in cases::ALL {
            if only.is_some_and(|only| only != case.name) {
                continue;
            }
            if sys::interrupted() {
                return Err("interrupted".into());
            }
            let as_documented = phase(&options, program, case)?;
            is_right &= as_documented || program.peer.name != programs[0].peer.name;
        }
    }
    if is_right {
        Ok(())
    } else {
        Err("clients received responses that the manual does not promise".into())
    }
}

fn parse(mut parser: lexopt::Parser) -> Result<Options, Failure> {
    let mut options = Options {
        clients: 200,
        seconds: 10,
        only: None,
        subject: None,
        haproxy: None,
    };
    while let Some(arg) = parser.next()? {
        match arg {
            Arg::Long("clients") => options.clients = parser.value()?.parse()?,
            Arg::Long("seconds") => options.seconds = parser.value()?.parse()?,
            Arg::Long("only") => options.only = Some(parser.value()?.string()?),
            Arg::Long("subject") => options.subject = Some(parser.value()?.into()),
            Arg::Long("haproxy") => options.haproxy = Some(parser.value()?.into()),
            other => return Err(other.unexpected().into()),
        }
    }
    if options.clients == 0 || options.seconds == 0 {
        return Err("--clients and --seconds must be at least 1".into());
    }
    Ok(options)
}

/// One fault, on a fresh process. Returns whether clients saw only permitted results.
fn phase(options: &Options, program: &Installed, case: &Case) -> Result<bool, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let tasks = LocalSet::new();
    let server = tasks.block_on(&runtime, servers::start(case.server))?;
    let workdir = Workdir::new("bench-faults")?;
    let listen = peers::free_address()?;
    let text = peers::fill(
        include_str!("../templates/faults.cfg"),
        &[
            ("listen", &listen),
            ("server", &server),
            ("options", &case.options),
        ],
    );
    let file = workdir.path().join("faults.cfg");
    std::fs::write(&file, text)?;
    let mut command = Command::new(&program.program);
    command.args(["-db", "-f"]).arg(&file);
    let (proxy, first) = peers::start(program.peer.name, &mut command, listen, workdir.path())?;
    drop(first);
    let counts = Counts::default();
    let quarter = Duration::from_secs(options.seconds) / 4;
    let early = tasks.block_on(&runtime, async {
        for _ in 0..options.clients {
            spawn_local(clients::run(listen, case.clients, Rc::clone(&counts)));
        }
        sleep(quarter).await;
        let early = private_mb(&proxy);
        sleep(quarter * 3).await;
        early
    });
    let seen = counts.borrow();
    let as_documented = !seen.is_empty() && seen.keys().all(|seen| case.permitted.contains(seen));
    let words: Vec<String> = seen
        .iter()
        .map(|(seen, count)| match seen {
            Seen::Status(status) => format!("{status}: {count}"),
            Seen::Cut => format!("cut: {count}"),
            Seen::Nothing => format!("nothing: {count}"),
        })
        .collect();
    let mark = if as_documented {
        ""
    } else {
        "  <- not as documented"
    };
    println!(
        "{:<18}{early:>9.1}{:>9.1}  {}{mark}",
        case.name,
        private_mb(&proxy),
        words.join(", ")
    );
    Ok(as_documented)
}

fn private_mb(proxy: &Running) -> f64 {
    proxy.process.memory().private as f64 / f64::from(1 << 20)
}
