//! `idle`: the memory of an idle keep-alive connection.

use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;

use lexopt::{Arg, ValueExt};

use crate::Failure;
use crate::client;
use crate::origin::{self, Bodies};
use crate::peers::{self, Installed, Setting};
use crate::process::Memory;
use crate::sys;
use crate::workdir::Workdir;

/// The options.
pub const HELP: &str =
    "[OPTIONS]: measures memory at the start, with idle keep-alive connections, and per connection
--connections N    number of connections (10000, or fewer if the limit of open files is too low)
--workers N        threads or processes of each proxy (2)
--subject PATH     the Spangate to measure (beside this program)";

/// Descriptors that this program and a proxy need in addition to connections.
const FILES_SPARE: u32 = 200;

struct Options {
    connections: u32,
    workers: u32,
    subject: Option<PathBuf>,
}

/// Runs the command.
///
/// # Errors
/// An option is invalid, a program is missing, or a proxy fails.
pub fn run(parser: lexopt::Parser) -> Result<(), Failure> {
    let mut options = parse(parser)?;
    // HAProxy reserves two descriptors per connection, although an idle one uses one.
    let files = sys::raise_open_files(u64::from(2 * (options.connections + FILES_SPARE)));
    let strict_limits = files >= u64::from(2 * (options.connections + FILES_SPARE));
    let room = u32::try_from(files)
        .unwrap_or(u32::MAX)
        .saturating_sub(FILES_SPARE);
    if room < options.connections {
        eprintln!("only {files} files can be open: opening {room} connections");
        options.connections = room;
    }
    let origin = origin::start_here(1, Bodies::new())?.address;
    let workdir = Workdir::new("bench-idle")?;
    println!(
        "{} idle keep-alive connections, {} workers; MB (10^6 bytes), bytes per connection\n",
        options.connections, options.workers
    );
    println!(
        "{:<10}{:>14}{:>14}{:>14}{:>12}{:>12}{:>12}",
        "proxy", "RSS at start", "RSS with", "private with", "RSS each", "Pss each", "priv. each"
    );
    for program in peers::installed(options.subject.clone())? {
        let (start, held) = measure(&program, &options, strict_limits, origin, &workdir)?;
        let each = |get: fn(&Memory) -> u64| {
            (get(&held) as f64 - get(&start) as f64) / f64::from(options.connections)
        };
        println!(
            "{:<10}{:>14.1}{:>14.1}{:>14.1}{:>12.0}{:>12.0}{:>12.0}",
            program.peer.name,
            start.resident as f64 / 1e6,
            held.resident as f64 / 1e6,
            held.private as f64 / 1e6,
            each(|memory| memory.resident),
            each(|memory| memory.proportional),
            each(|memory| memory.private),
        );
    }
    Ok(())
}

fn parse(mut parser: lexopt::Parser) -> Result<Options, Failure> {
    let mut options = Options {
        connections: 10_000,
        workers: 2,
        subject: None,
    };
    while let Some(arg) = parser.next()? {
        match arg {
            Arg::Long("connections") => options.connections = parser.value()?.parse()?,
            Arg::Long("workers") => options.workers = parser.value()?.parse()?,
            Arg::Long("subject") => options.subject = Some(parser.value()?.into()),
            other => return Err(other.unexpected().into()),
        }
    }
    if options.connections == 0 || options.workers == 0 {
        return Err("--connections and --workers must be at least 1".into());
    }
    Ok(options)
}

/// The memory of a fresh proxy, and its memory with the open connections.
fn measure(
    program: &Installed,
    options: &Options,
    strict_limits: bool,
    origin: SocketAddr,
    workdir: &Workdir,
) -> Result<(Memory, Memory), Failure> {
    let setting = Setting {
        workers: Some(options.workers),
        connections_max: options.connections + FILES_SPARE / 2,
        strict_limits,
        ..Setting::between(peers::free_address()?, origin)
    };
    let proxy = program.start(&setting, workdir.path())?;
    let start = proxy.process.memory();
    let mut held = Vec::new();
    for number in 0..options.connections {
        if sys::interrupted() {
            return Err("interrupted".into());
        }
        let problem =
            |error: std::io::Error| format!("{}: connection {number}: {error}", proxy.name);
        let mut stream = TcpStream::connect(setting.listen).map_err(problem)?;
        client::get(&mut stream, "/50").map_err(problem)?;
        held.push(stream);
    }
    Ok((start, proxy.process.memory()))
}
