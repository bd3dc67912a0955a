//! `tracing`: the cost of the filter `opentelemetry` at several levels.
//!
//! A proxy runs at every level of a configuration in turn, round after round, with a fresh process
//! each time. Telemetry goes to a receiver in a separate process. A run is over only when all
//! telemetry has arrived. So the figures include the cost of exporting, and missing spans are
//! visible.

mod cases;
mod chain;
mod collector;
mod exporters;
mod shape;
mod table;

use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use serde_json::json;

use crate::Failure;
use crate::client;
use crate::findings::{self, Findings, Options};
use crate::origin::{self, Bodies, Origin};
use crate::peers::Installed;
use crate::progress::Progress;
use crate::rules::HEADERS;
use crate::sys;
use crate::workdir::Workdir;
use crate::wrk;
use cases::{CONFIGS, Config, LEVELS, Level, Share};
use chain::{Chain, Place, To};
pub use collector::Collector;
use collector::Counts;
use exporters::{EXPORTERS, Exporter, TEXT_FILES, TextTo};
use shape::Shape;
use table::{Row, Sample};

/// The options.
pub const HELP: &str = findings::help!(
    "the cost of the filter opentelemetry when it traces all or some requests: CPU and rate",
    "--configs LIST     from sa, cmp, ctx, fe-be (all): 18 spans; 9 spans; 18 spans by contexts; two proxies, 9 + 8 spans
--levels LIST      from 100, 75, 50, 25, 10, 2.5, 0, outcome, disabled, off (all): the share of the requests; policies
                   by outcome; option disabled; no filter
--exporter LIST    from otlp, json, text (otlp,text): OTLP over HTTP in protobuf or in JSON to a receiver; text to /dev/null
--rounds N         rounds of each case (5)
--seconds N        length of one run (2)
--connections N    client connections (64)
--workers N        threads of each proxy (1)
"
);

/// Consecutive requests whose spans must all arrive.
const EXACT_REQUESTS: u64 = 200;
/// The requested path.
const PATH: &str = "/50";
/// Most time to wait for text that is not in the file yet: a multiple of the time that records
/// wait.
const TEXT_PATIENCE: Duration = Duration::from_millis(4 * chain::DELAY_MS as u64);

/// Runs the command.
///
/// # Errors
/// An option is invalid, a program is missing, a proxy fails, or spans of single requests do not
/// arrive.
pub fn run(parser: lexopt::Parser) -> Result<(), Failure> {
    let (options, shape) = Options::parse(parser, Shape::default(), Shape::quick, Shape::take)?;
    let mut findings = Findings::begin(
        "tracing",
        "Tracing: the cost of the filter opentelemetry",
        "HAProxy's own test of its filter, with text to /dev/null and nine levels of rate-limit: at 100 % the throughput falls by 21.6 % with sa, 7.6 % with \
         cmp, 38.0 % with ctx, 19.1 % with fe-be.",
    );
    let workdir = Workdir::new("bench-tracing")?;
    let mut programs = options.proxies()?;
    programs.retain(|program| program.peer.traces);
    let mut bench = Bench {
        programs,
        origin: origin::start_here(1, Bodies::new())?,
        collector: Collector::start(workdir.path())?,
        workdir,
        shape,
    };
    findings.method = bench.shape.method();
    findings.versions = bench
        .programs
        .iter()
        .map(|one| (one.peer.name.to_owned(), one.version()))
        .collect();
    findings.versions.push(("wrk".to_owned(), wrk::version()));
    let faults = bench.all(&mut findings)?;
    findings.end(&options)?;
    match faults {
        0 => Ok(()),
        _ => Err("some single requests did not have all their spans".into()),
    }
}

/// The table entries in a list of names, in the table's order.
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

/// The frontend lines with the filter of a configuration's only proxy at a level; its files are in
/// `dir`.
///
/// # Errors
/// There is no such configuration or level, or the files cannot be written.
pub fn rules(
    config: &str,
    level: &str,
    exporter: &str,
    receiver: SocketAddr,
    dir: &Path,
) -> Result<String, Failure> {
    let config = select(config, CONFIGS, |one| one.name)?;
    let level = select(level, LEVELS, |one| one.name)?;
    let exporter = select(exporter, EXPORTERS, Exporter::name)?;
    let ([config], [level], [exporter]) = (&config[..], &level[..], &exporter[..]) else {
        return Err("name one configuration, one level and one exporter".into());
    };
    let [tier] = config.tiers else {
        return Err(format!("'{}' has more than one proxy", config.name).into());
    };
    let to = To {
        exporter: **exporter,
        receiver,
        text: TextTo::Nowhere,
    };
    chain::rules(0, tier, level, to, dir)
}

/// State that all cases share.
struct Bench {
    /// The proxies of the table that have the filter.
    programs: Vec<Installed>,
    origin: Origin,
    collector: Collector,
    workdir: Workdir,
    shape: Shape,
}

impl Bench {
    /// Runs every configuration with every exporter. Returns the number of failures to export.
    fn all(&mut self, findings: &mut Findings) -> Result<u32, Failure> {
        let shape = self.shape.clone();
        let runs = shape.levels.len() * self.programs.len() * shape.rounds as usize;
        let mut progress = Progress::new(runs * shape.configs.len() * shape.exporters.len());
        let mut faults = 0;
        let cut = u64::from(shape.connections);
        for &&exporter in &shape.exporters {
            let mut results = Vec::new();
            for &config in &shape.configs {
                faults += self.exact(config, exporter, &mut findings.notes)?;
                results.push((config, self.measure(config, exporter, &mut progress)?));
            }
            findings.tables.push(table::table(exporter, &results, cut));
            findings.plots.extend(table::plots(exporter, &results));
            let runs = table::json(exporter, &results);
            match findings.runs.as_array_mut() {
                Some(all) => all.extend(runs),
                None => findings.runs = json!(runs),
            }
        }
        Ok(faults)
    }

    fn start(
        &self,
        program: &Installed,
        config: &Config,
        level: &Level,
        exporter: Exporter,
        text: TextTo,
    ) -> Result<(Chain, SocketAddr), Failure> {
        let place = Place {
            dir: self.workdir.path(),
            origin: self.origin.address,
            to: To {
                exporter,
                receiver: self.collector.address,
                text,
            },
            workers: self.shape.workers,
            connections_max: 4 * self.shape.connections + 100,
        };
        let chain = Chain::start(program, config, level, &place)?;
        let listen = chain.listen().ok_or("a configuration without proxies")?;
        Ok((chain, listen))
    }

    /// Single requests at the fullest level: checks that the promised telemetry arrives. Returns
    /// the number of programs that fail, which are noted.
    fn exact(
        &mut self,
        config: &Config,
        exporter: Exporter,
        notes: &mut Vec<String>,
    ) -> Result<u32, Failure> {
        let full = |level: &&&Level| level.share == Share::All;
        let Some(level) = self.shape.levels.iter().find(full).copied() else {
            return Ok(0);
        };
        let mut faults = 0;
        for program in self.programs.clone() {
            let before = self.settled(exporter)?;
            let (chain, listen) = self.start(&program, config, level, exporter, TextTo::Files)?;
            let mut stream = TcpStream::connect(listen)?;
            for number in 0..EXACT_REQUESTS {
                client::get(&mut stream, PATH)
                    .map_err(|error| format!("{}: request {number}: {error}", config.name))?;
            }
            drop(stream);
            let mut came = self.settled(exporter)?.since(before);
            // The rest is written at the end.
            drop(chain);
            if !exporter.is_received() {
                came = self.written(config)?;
            }
            let expected = Counts {
                spans: EXACT_REQUESTS * config.spans(),
                logs: EXACT_REQUESTS * config.logs(),
                refused: 0,
            };
            if came != expected {
                faults += 1;
                notes.push(format!(
                    "{} of {} over {}: {EXACT_REQUESTS} single requests gave {came:?}, not {expected:?}",
                    config.name,
                    program.peer.name,
                    exporter.name()
                ));
            }
        }
        Ok(faults)
    }

    /// The receiver's counts after everything has arrived; zero if the exporter does not send to
    /// it.
    fn settled(&mut self, exporter: Exporter) -> Result<Counts, Failure> {
        if exporter.is_received() {
            return self.collector.settled();
        }
        sys::pause(TEXT_PATIENCE);
        Ok(Counts::default())
    }

    /// The number of records in the text files of a configuration's proxies.
    fn written(&self, config: &Config) -> Result<Counts, Failure> {
        let mut counts = Counts::default();
        for tier in config.tiers {
            let dir = self.workdir.path().join(tier.name);
            let lines = |file: &str, begin: &str| -> Result<u64, Failure> {
                let text = std::fs::read_to_string(dir.join(file))?;
                let records = text.lines().filter(|line| line.starts_with(begin));
                Ok(records.count() as u64)
            };
            counts.spans += lines(TEXT_FILES[0], "span ")?;
            counts.logs += lines(TEXT_FILES[2], "log ")?;
        }
        Ok(counts)
    }

    /// Runs every program at every level in turn, round after round.
    fn measure(
        &mut self,
        config: &Config,
        exporter: Exporter,
        progress: &mut Progress,
    ) -> Result<Vec<Row>, Failure> {
        let mut rows: Vec<Row> = Vec::new();
        for level in &self.shape.levels {
            rows.extend(self.programs.iter().map(|program| Row {
                level: **level,
                program: program.peer.name,
                samples: Vec::new(),
            }));
        }
        for _ in 0..self.shape.rounds {
            for row in &mut rows {
                progress.step(&format!(
                    "{} {} {}",
                    config.name,
                    row.level.name,
                    exporter.name()
                ));
                let mut programs = self.programs.iter();
                let program = programs.find(|program| program.peer.name == row.program);
                let program = program.ok_or("a program is gone")?.clone();
                let sample = self.sample(&program, config, &row.level, exporter)?;
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
        exporter: Exporter,
    ) -> Result<Sample, Failure> {
        let (chain, listen) = self.start(program, config, level, exporter, TextTo::Nowhere)?;
        // A warm-up: connections are made, and pools grow.
        self.load(listen, 1)?;
        let counted = self.settled(exporter)?;
        let before = chain.usage();
        let outcome = self.load(listen, self.shape.seconds)?;
        let came = self.settled(exporter)?.since(counted);
        let (cpu_us, user_us) = chain.used_since(&before);
        Ok(Sample {
            requests: outcome.requests,
            per_second: outcome.per_second,
            errors: outcome.errors,
            cpu_us,
            user_us,
            spans: exporter.is_received().then_some(came.spans),
            refused: came.refused,
        })
    }

    fn load(&self, listen: SocketAddr, seconds: u32) -> Result<wrk::Outcome, Failure> {
        if sys::interrupted() {
            return Err("interrupted".into());
        }
        let connections = self.shape.connections;
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
