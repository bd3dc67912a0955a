//! `http`: the proxies side by side under wrk, in turn, round after round.

use crate::Failure;
use crate::cases::{self, Case};
use crate::peers::{self, Installed, Running, Setting};
use crate::report::Row;
use crate::side_by_side::{self, Bench, Options};
use crate::wrk;

/// The options.
pub const HELP: &str = side_by_side::help!(
    "requests/s, latency, CPU per request and memory of Spangate and the proxies that are installed",
    "--all              every case, not only the default set (50B at 1, 64, 512 connections; all others at 64)\n",
    "1,2",
    "bench-http.json"
);

/// Runs the command.
///
/// # Errors
/// An option is invalid, a program is missing, or a proxy fails.
pub fn run(parser: lexopt::Parser) -> Result<(), Failure> {
    let options = Options::parse(parser, "http", &[1, 2])?;
    let cases = cases::select(&options.workers, &options.filters, options.all);
    if options.announce(&cases.iter().map(Case::name).collect::<Vec<_>>())? {
        return Ok(());
    }
    let bench = Bench::new(options)?;
    let mut rows = Vec::new();
    for (done, case) in cases.iter().enumerate() {
        eprintln!("[{}/{}] {}", done + 1, cases.len(), case.name());
        rows.push(measure(&bench, case)?);
    }
    bench.report(&rows)
}

fn measure(bench: &Bench, case: &Case) -> Result<Row, Failure> {
    let start = |program: &Installed| {
        let setting = Setting {
            log: case.log.then_some(bench.sink.address),
            watched: case.watched,
            workers: Some(case.workers),
            connections_max: bench.connections_max,
            strict_limits: true,
            ..Setting::between(peers::free_address()?, bench.origin.address)
        };
        program.start(&setting, bench.workdir.path())
    };
    let load = |proxy: &Running, seconds| {
        let url = proxy.url(case.body.path);
        wrk::load(&url, case.connections, seconds, case.close, &[])
    };
    // Not every proxy checks servers actively, or sends its logs over UDP.
    let takes_part = |program: &&Installed| {
        (!case.watched || program.peer.checks_servers) && (!case.log || program.peer.logs)
    };
    let programs: Vec<_> = bench.programs.iter().filter(takes_part).cloned().collect();
    bench.rounds(case.shape(), &programs, start, load)
}
