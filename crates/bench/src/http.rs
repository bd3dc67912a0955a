//! `http`: the proxies side by side under wrk, in turn, round after round.
//!
//! All proxies of a group run all the time (an idle one costs nothing), so that each round meets the same machine; what is
//! reported are medians over the rounds.

use std::path::PathBuf;

use lexopt::{Arg, ValueExt};

use crate::Failure;
use crate::cases::{self, Case};
use crate::origin::{self, Bodies, Origin};
use crate::peers::{self, Installed, Running, Setting};
use crate::report::{self, Row, Sample};
use crate::sink::Sink;
use crate::sys;
use crate::workdir::Workdir;
use crate::wrk;

/// The options.
pub const HELP: &str = "[OPTIONS]: requests/s, latency, CPU per request and memory of Spangate, HAProxy and nginx
--rounds N         rounds of each case (5)
--seconds N        length of one run (3)
--case TEXT        only the cases whose name contains TEXT; may be repeated
--all              every case, not the default set (50B at 1, 64, 512 connections; all else at 64)
--workers LIST     threads or processes of each proxy (1,2)
--json FILE        where the JSON goes (bench-http.json beside this program)
--subject PATH     the Spangate to measure (beside this program); anything that reads HAProxy's configuration
--list             names the cases and ends";

/// The files that a proxy should be free to open. HAProxy throws idle server connections away when a quarter of its
/// files is in use (`tune.pool-high-fd-ratio`); with room for few, 512 connections would measure that.
const FILES_WANTED: u32 = 20_000;
/// Of them, those that are not for connections.
const FILES_SPARE: u32 = 200;
/// Threads of the origin.
const ORIGIN_THREADS: usize = 2;

struct Options {
    rounds: u32,
    seconds: u32,
    filters: Vec<String>,
    all: bool,
    workers: Vec<u32>,
    json: PathBuf,
    subject: Option<PathBuf>,
    list: bool,
}

/// Runs the command.
///
/// # Errors
/// When an option is not understood, a program is missing, or a proxy fails.
pub fn run(parser: lexopt::Parser) -> Result<(), Failure> {
    let options = parse(parser)?;
    let cases = cases::select(&options.workers, &options.filters, options.all);
    if options.list {
        cases.iter().for_each(|case| println!("{}", case.name()));
        return Ok(());
    }
    if cases.is_empty() {
        return Err("no case has such a name; --list --all names them".into());
    }
    let files =
        u32::try_from(sys::raise_open_files(u64::from(FILES_WANTED))).unwrap_or(FILES_WANTED);
    if files < FILES_WANTED {
        eprintln!(
            "only {files} files may be open: HAProxy will drop idle server connections early"
        );
    }
    let bench = Bench {
        connections_max: files.min(FILES_WANTED).saturating_sub(FILES_SPARE) / 2,
        programs: peers::installed(options.subject.clone())?,
        origin: origin::start_here(ORIGIN_THREADS, Bodies::new())?,
        sink: Sink::start()?,
        workdir: Workdir::new("bench-http")?,
        options,
    };
    let mut rows = Vec::new();
    for (done, case) in cases.iter().enumerate() {
        eprintln!("[{}/{}] {}", done + 1, cases.len(), case.name());
        rows.push(bench.case(case)?);
    }
    print!("{}", report::table(&rows));
    std::fs::write(
        &bench.options.json,
        report::json(&rows, bench.options.rounds, bench.options.seconds),
    )?;
    println!("\nJSON: {}", bench.options.json.display());
    Ok(())
}

fn parse(mut parser: lexopt::Parser) -> Result<Options, Failure> {
    let mut options = Options {
        rounds: 5,
        seconds: 3,
        filters: Vec::new(),
        all: false,
        workers: vec![1, 2],
        json: std::env::current_exe()?.with_file_name("bench-http.json"),
        subject: None,
        list: false,
    };
    while let Some(arg) = parser.next()? {
        match arg {
            Arg::Long("rounds") => options.rounds = parser.value()?.parse()?,
            Arg::Long("seconds") => options.seconds = parser.value()?.parse()?,
            Arg::Long("case") => options.filters.push(parser.value()?.string()?),
            Arg::Long("all") => options.all = true,
            Arg::Long("workers") => {
                let list = parser.value()?.string()?;
                options.workers = list.split(',').map(str::parse).collect::<Result<_, _>>()?;
            }
            Arg::Long("json") => options.json = parser.value()?.into(),
            Arg::Long("subject") => options.subject = Some(parser.value()?.into()),
            Arg::Long("list") => options.list = true,
            other => return Err(other.unexpected().into()),
        }
    }
    if options.rounds == 0 || options.seconds == 0 || options.workers.contains(&0) {
        return Err("rounds, seconds and workers are at least 1".into());
    }
    Ok(options)
}

/// What all groups share.
struct Bench {
    programs: Vec<Installed>,
    origin: Origin,
    /// The client connections that each proxy is configured for.
    connections_max: u32,
    sink: Sink,
    workdir: Workdir,
    options: Options,
}

impl Bench {
    fn start(&self, program: &Installed, case: &Case) -> Result<Running, Failure> {
        let setting = Setting {
            listen: peers::free_address()?,
            origin: self.origin.address,
            log: case.log.then_some(self.sink.address),
            workers: case.workers,
            connections_max: self.connections_max,
            strict_limits: true,
            rules: String::new(),
        };
        let running = program.start(&setting, self.workdir.path())?;
        // Not measured: connections to the origin are made and pools grow.
        wrk::load(
            running.listen,
            case.body.path,
            case.connections,
            1,
            case.close,
            &[],
        )?;
        Ok(running)
    }

    /// Runs the proxies in turn, round after round. Each round has fresh processes: how the kernel places a process and its
    /// pooled connections is luck that lasts as long as it lives, and the median is to be over it.
    fn case(&self, case: &Case) -> Result<Row, Failure> {
        let mut samples: Vec<(&'static str, Vec<Sample>)> = Vec::new();
        for _ in 0..self.options.rounds {
            let running = self
                .programs
                .iter()
                .map(|program| self.start(program, case))
                .collect::<Result<Vec<_>, _>>()?;
            samples.resize_with(running.len(), Default::default);
            for (proxy, (name, samples)) in running.iter().zip(&mut samples) {
                if sys::interrupted() {
                    return Err("interrupted".into());
                }
                *name = proxy.name;
                samples.push(self.sample(case, proxy)?);
            }
        }
        Ok(Row {
            case: *case,
            proxies: samples,
        })
    }

    fn sample(&self, case: &Case, proxy: &Running) -> Result<Sample, Failure> {
        let logged = self.sink.messages();
        let accepted = self.origin.accepted();
        let before = proxy.process.usage();
        let outcome = wrk::load(
            proxy.listen,
            case.body.path,
            case.connections,
            self.options.seconds,
            case.close,
            &[],
        )?;
        let (cpu_us, user_us) = proxy.process.usage().since(before);
        let resident_bytes = proxy.process.memory().resident;
        Ok(Sample {
            outcome,
            cpu_us,
            user_us,
            resident_bytes,
            log_messages: self.sink.messages() - logged,
            origin_connections: self.origin.accepted() - accepted,
        })
    }
}
