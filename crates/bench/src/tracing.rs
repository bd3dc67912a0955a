//! `tracing`: what the filter `opentelemetry` costs, for more and less of it.
//!
//! A proxy runs at every level of a configuration in turn, round after round, as a fresh process each time. Telemetry goes
//! to a receiver of its own process, and all of it is awaited before a run counts as over: what exporting takes is in
//! the figures, and spans that do not arrive show.

mod cases;
mod chain;
mod collector;
mod table;

use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};

use lexopt::{Arg, ValueExt};

use crate::Failure;
use crate::client;
use crate::origin::{self, Bodies, Origin};
use crate::peers::{self, Installed};
use crate::rules::HEADERS;
use crate::sys;
use crate::workdir::Workdir;
use crate::wrk;
use cases::{CONFIGS, Config, LEVELS, Level, Share};
use chain::{Chain, Place};
pub use collector::Collector;
use collector::Counts;
use table::{Row, Sample};

/// The options.
pub const HELP: &str = "[OPTIONS]: CPU of requests that the filter opentelemetry traces, all or some of them
--configs LIST     of sa, cmp, ctx, fe-be (all): 18 spans; 9 spans; 18 spans by contexts; two proxies, 9 + 8 spans
--levels LIST      of 100, 75, 50, 25, 10, 2.5, 0, outcome, disabled, off (all): the share of the requests; policies
                   by outcome; option disabled; no filter
--rounds N         rounds of each case (5)
--seconds N        length of one run (2)
--connections N    client connections (64)
--workers N        threads of each proxy (1)
--subject PATH     the Spangate to measure (beside this program)";

/// Requests, one after the other, whose spans must arrive to the last one.
const EXACT_REQUESTS: u64 = 200;
/// What is asked for.
const PATH: &str = "/50";

struct Options {
    configs: Vec<&'static Config>,
    levels: Vec<&'static Level>,
    rounds: u32,
    seconds: u32,
    connections: u32,
    workers: u32,
    subject: Option<PathBuf>,
}

/// Runs the command.
///
/// # Errors
/// When an option is not understood, a program is missing, a proxy fails, or spans of single requests do not arrive.
pub fn run(parser: lexopt::Parser) -> Result<(), Failure> {
    let options = parse(parser)?;
    let workdir = Workdir::new("bench-tracing")?;
    let mut programs = peers::installed(options.subject.clone())?;
    programs.retain(|program| program.peer.traces);
    let mut bench = Bench {
        programs,
        origin: origin::start_here(1, Bodies::new())?,
        collector: Collector::start(workdir.path())?,
        workdir,
        options,
    };
    let options = &bench.options;
    println!(
        "Medians, CPU microseconds for each request, of the whole process; nbthread {}, {} connections.\n\
         added: to the same proxy without the filter. spans/req: received. lost: not received.\n",
        options.workers, options.connections
    );
    print!("{}", table::head());
    let mut faults = 0;
    for config in bench.options.configs.clone() {
        faults += bench.exact(config)?;
        let rows = bench.measure(config)?;
        let cut = u64::from(bench.options.connections);
        print!("{}", table::rows(config, &rows, cut));
    }
    match faults {
        0 => Ok(()),
        _ => Err("not every single request had its spans".into()),
    }
}

fn parse(mut parser: lexopt::Parser) -> Result<Options, Failure> {
    let mut options = Options {
        configs: CONFIGS.iter().collect(),
        levels: LEVELS.iter().collect(),
        rounds: 5,
        seconds: 2,
        connections: 64,
        workers: 1,
        subject: None,
    };
    while let Some(arg) = parser.next()? {
        match arg {
            Arg::Long("configs") => {
                options.configs = select(&parser.value()?.string()?, CONFIGS, |one| one.name)?;
            }
            Arg::Long("levels") => {
                options.levels = select(&parser.value()?.string()?, LEVELS, |one| one.name)?;
            }
            Arg::Long("rounds") => options.rounds = parser.value()?.parse()?,
            Arg::Long("seconds") => options.seconds = parser.value()?.parse()?,
            Arg::Long("connections") => options.connections = parser.value()?.parse()?,
            Arg::Long("workers") => options.workers = parser.value()?.parse()?,
            Arg::Long("subject") => options.subject = Some(parser.value()?.into()),
            other => return Err(other.unexpected().into()),
        }
    }
    let numbers = [
        options.rounds,
        options.seconds,
        options.connections,
        options.workers,
    ];
    if numbers.contains(&0) {
        return Err("rounds, seconds, connections and workers are at least 1".into());
    }
    Ok(options)
}

/// The entries of a table that a list of names means, in the table's order.
fn select<T>(
    list: &str,
    table: &'static [T],
    name: fn(&T) -> &'static str,
) -> Result<Vec<&'static T>, Failure> {
    let wanted: Vec<&str> = list.split(',').map(str::trim).collect();
    let known: Vec<&str> = table.iter().map(name).collect();
    if let Some(unknown) = wanted.iter().find(|wanted| !known.contains(wanted)) {
        return Err(format!("'{unknown}' is none of {}", known.join(", ")).into());
    }
    let entries = table.iter();
    Ok(entries
        .filter(|entry| wanted.contains(&name(entry)))
        .collect())
}

/// The lines of a frontend whose filter does what the only proxy of a configuration does at a level; its files in `dir`.
///
/// # Errors
/// When there is no such configuration or level, or the files cannot be written.
pub fn rules(
    config: &str,
    level: &str,
    receiver: SocketAddr,
    dir: &Path,
) -> Result<String, Failure> {
    let config = select(config, CONFIGS, |one| one.name)?;
    let level = select(level, LEVELS, |one| one.name)?;
    let ([config], [level]) = (&config[..], &level[..]) else {
        return Err("one configuration and one level".into());
    };
    let [tier] = config.tiers else {
        return Err(format!("'{}' is more than one proxy", config.name).into());
    };
    chain::rules((0, tier), level, receiver, dir)
}

/// What all cases share.
struct Bench {
    /// Those of the proxies' table that have the filter.
    programs: Vec<Installed>,
    origin: Origin,
    collector: Collector,
    workdir: Workdir,
    options: Options,
}

impl Bench {
    fn start(
        &self,
        program: &Installed,
        config: &Config,
        level: &Level,
    ) -> Result<(Chain, SocketAddr), Failure> {
        let place = Place {
            dir: self.workdir.path(),
            origin: self.origin.address,
            receiver: self.collector.address,
            workers: self.options.workers,
            connections_max: 4 * self.options.connections + 100,
        };
        let chain = Chain::start(program, config, level, &place)?;
        let listen = chain.listen().ok_or("a configuration without proxies")?;
        Ok((chain, listen))
    }

    /// Single requests at the fullest level: whether what arrives is what was promised. The faults, which are printed.
    fn exact(&mut self, config: &Config) -> Result<u32, Failure> {
        let full = |level: &&&Level| level.share == Share::All;
        let Some(level) = self.options.levels.iter().find(full).copied() else {
            return Ok(0);
        };
        let mut faults = 0;
        for program in self.programs.clone() {
            let before = self.collector.settled()?;
            let (chain, listen) = self.start(&program, config, level)?;
            let mut stream = TcpStream::connect(listen)?;
            for number in 0..EXACT_REQUESTS {
                client::get(&mut stream, PATH)
                    .map_err(|error| format!("{}: request {number}: {error}", config.name))?;
            }
            drop(stream);
            let came = self.collector.settled()?.since(before);
            drop(chain);
            let expected = Counts {
                spans: EXACT_REQUESTS * config.spans(),
                logs: EXACT_REQUESTS * config.logs(),
                refused: 0,
            };
            if came != expected {
                faults += 1;
                println!(
                    "! {} of {}: {EXACT_REQUESTS} single requests gave {came:?}, not {expected:?}",
                    config.name, program.peer.name
                );
            }
        }
        Ok(faults)
    }

    /// Runs every program at every level in turn, round after round.
    fn measure(&mut self, config: &Config) -> Result<Vec<Row>, Failure> {
        let mut rows: Vec<Row> = Vec::new();
        for level in &self.options.levels {
            rows.extend(self.programs.iter().map(|program| Row {
                level: **level,
                program: program.peer.name,
                samples: Vec::new(),
            }));
        }
        for round in 0..self.options.rounds {
            eprintln!(
                "{}: round {} of {}",
                config.name,
                round + 1,
                self.options.rounds
            );
            for row in &mut rows {
                let mut programs = self.programs.iter();
                let program = programs.find(|program| program.peer.name == row.program);
                let program = program.ok_or("a program is gone")?.clone();
                let sample = self.sample(&program, config, &row.level)?;
                row.samples.push(sample);
            }
        }
        Ok(rows)
    }

    fn sample(
        &mut self,
        program: &Installed,
        config: &Config,
        level: &Level,
    ) -> Result<Sample, Failure> {
        let (chain, listen) = self.start(program, config, level)?;
        // Not measured: connections are made and pools grow.
        self.load(listen, 1)?;
        let counted = self.collector.settled()?;
        let before = chain.usage();
        let outcome = self.load(listen, self.options.seconds)?;
        let came = self.collector.settled()?.since(counted);
        let (cpu_us, user_us) = chain.used_since(&before);
        Ok(Sample {
            requests: outcome.requests,
            errors: outcome.errors,
            cpu_us,
            user_us,
            spans: came.spans,
            refused: came.refused,
        })
    }

    fn load(&self, listen: SocketAddr, seconds: u32) -> Result<wrk::Outcome, Failure> {
        if sys::interrupted() {
            return Err("interrupted".into());
        }
        let connections = self.options.connections;
        let url = format!("http://{listen}{PATH}");
        wrk::load(&url, connections, seconds, false, HEADERS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_name_entries_in_the_tables_order() {
        let names = |list| {
            let found = select(list, LEVELS, |level| level.name).unwrap();
            found.iter().map(|level| level.name).collect::<Vec<_>>()
        };
        assert_eq!(names("off, 2.5,100"), ["100", "2.5", "off"]);
        assert!(select("100,99", LEVELS, |level| level.name).is_err());
        assert!(select("", CONFIGS, |config| config.name).is_err());
    }
}
