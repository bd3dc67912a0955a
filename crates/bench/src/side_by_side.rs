//! Shared parts of the commands that run the proxies side by side under one load: options, programs
//! that are started once, and the rounds.
//!
//! All proxies of a case run all the time (an idle one costs nothing), so that each round has the
//! same conditions. The report has the medians over the rounds.

use std::path::PathBuf;

use lexopt::{Arg, ValueExt};

use crate::Failure;
use crate::origin::{self, Bodies, Origin};
use crate::peers::{self, Installed, Running};
use crate::report::{self, Row, Sample, Shape};
use crate::sink::Sink;
use crate::sys;
use crate::workdir::Workdir;
use crate::wrk::Outcome;

/// The help text of a command: the measured quantity, the options of every such command, then its
/// own.
macro_rules! help {
    ($what:literal, $all:literal, $workers:literal, $json:literal) => {
        concat!(
            "[OPTIONS]: ",
            $what,
            "\n--rounds N         rounds of each case (5)\n",
            "--seconds N        length of one run (3)\n",
            "--case TEXT        only the cases whose name contains TEXT; may be repeated\n",
            $all,
            "--workers LIST     threads or processes of each proxy (",
            $workers,
            ")\n--json FILE        file for the results as JSON (",
            $json,
            " beside this program)\n",
            "--subject PATH     the Spangate to measure (beside this program), or another program that reads HAProxy's configuration\n",
            "--haproxy PATH     the HAProxy to compare with (the installed one)\n",
            "--list             lists the cases and exits"
        )
    };
}
pub(crate) use help;

/// The files that a proxy should be able to open. HAProxy closes idle server connections when a
/// quarter of its files is in use (`tune.pool-high-fd-ratio`). With a low limit, 512 connections
/// would measure this effect.
const FILES_WANTED: u32 = 20_000;
/// The files among them that are not for connections.
const FILES_SPARE: u32 = 200;
/// Threads of the origin.
const ORIGIN_THREADS: usize = 2;

/// The options.
pub struct Options {
    /// The command.
    name: &'static str,
    rounds: u32,
    /// The length of one run.
    pub seconds: u32,
    /// A case is selected if its name contains one of these texts; empty: no filter.
    pub filters: Vec<String>,
    /// Every case instead of the default set.
    pub all: bool,
    /// The numbers of threads or processes.
    pub workers: Vec<u32>,
    json: PathBuf,
    subject: Option<PathBuf>,
    haproxy: Option<PathBuf>,
    /// Only lists the cases.
    pub list: bool,
}

impl Options {
    /// Reads the options of the command `name`.
    ///
    /// # Errors
    /// An option is invalid.
    pub fn parse(
        mut parser: lexopt::Parser,
        name: &'static str,
        workers: &[u32],
    ) -> Result<Options, Failure> {
        let mut options = Options {
            name,
            rounds: 5,
            seconds: 3,
            filters: Vec::new(),
            all: false,
            workers: workers.to_vec(),
            json: std::env::current_exe()?.with_file_name(format!("bench-{name}.json")),
            subject: None,
            haproxy: None,
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
                Arg::Long("haproxy") => options.haproxy = Some(parser.value()?.into()),
                Arg::Long("list") => options.list = true,
                other => return Err(other.unexpected().into()),
            }
        }
        if options.rounds == 0 || options.seconds == 0 || options.workers.contains(&0) {
            return Err("--rounds, --seconds and --workers must be at least 1".into());
        }
        Ok(options)
    }

    /// The `names` that the filters select. Returns whether they are only listed.
    ///
    /// # Errors
    /// There are none.
    pub fn announce(&self, names: &[String]) -> Result<bool, Failure> {
        if names.is_empty() {
            return Err("no case has such a name; --list shows the names (with --all also those outside the default set)".into());
        }
        if self.list {
            names.iter().for_each(|name| println!("{name}"));
        }
        Ok(self.list)
    }

    /// The cases that the filters select by name, of those `every` gives for each number of workers;
    /// without filters, all. None if they are only listed.
    ///
    /// # Errors
    /// There are none.
    #[cfg(feature = "tls")]
    pub fn choose<C, I: IntoIterator<Item = C>>(
        &self,
        every: impl Fn(u32) -> I,
        name: impl Fn(&C) -> String,
    ) -> Result<Option<Vec<C>>, Failure> {
        let is_wanted = |name: &str| {
            self.filters.is_empty() || self.filters.iter().any(|filter| name.contains(filter))
        };
        let all = self.workers.iter().flat_map(|workers| every(*workers));
        let (names, cases): (Vec<String>, Vec<C>) = all
            .map(|case| (name(&case), case))
            .filter(|(name, _)| is_wanted(name))
            .unzip();
        Ok((!self.announce(&names)?).then_some(cases))
    }
}

/// The programs that are started once.
pub struct Bench {
    /// The proxies, the subject first.
    pub programs: Vec<Installed>,
    /// The origin of all proxies.
    pub origin: Origin,
    /// The client connections that each proxy is configured for.
    pub connections_max: u32,
    /// Receives access logs.
    pub sink: Sink,
    /// A folder for configurations.
    pub workdir: Workdir,
    /// The options.
    pub options: Options,
}

impl Bench {
    /// Starts the origin and searches for the proxies.
    ///
    /// # Errors
    /// A program is missing.
    pub fn new(options: Options) -> Result<Bench, Failure> {
        let files =
            u32::try_from(sys::raise_open_files(u64::from(FILES_WANTED))).unwrap_or(FILES_WANTED);
        if files < FILES_WANTED {
            eprintln!(
                "only {files} files can be open: HAProxy will close idle server connections early"
            );
        }
        Ok(Bench {
            programs: peers::with_haproxy(options.subject.clone(), options.haproxy.clone())?,
            connections_max: files.min(FILES_WANTED).saturating_sub(FILES_SPARE) / 2,
            origin: origin::start_here(ORIGIN_THREADS, Bodies::new())?,
            sink: Sink::start()?,
            workdir: Workdir::new(&format!("bench-{}", options.name))?,
            options,
        })
    }

    /// Runs `programs` in turn, round after round; `load` loads one for a number of seconds. Each
    /// round has fresh processes: the kernel's placement of a process and its pooled connections is
    /// random and lasts as long as the process, and the median must cover it.
    ///
    /// # Errors
    /// A proxy does not start, the load fails, or this program is interrupted.
    pub fn rounds(
        &self,
        case: Shape,
        programs: &[Installed],
        start: impl Fn(&Installed) -> Result<Running, Failure>,
        load: impl Fn(&Running, u32) -> Result<Outcome, Failure>,
    ) -> Result<Row, Failure> {
        let mut proxies: Vec<(&'static str, Vec<Sample>)> = programs
            .iter()
            .map(|program| (program.peer.name, Vec::new()))
            .collect();
        for _ in 0..self.options.rounds {
            let running = programs
                .iter()
                .map(|program| {
                    let running = start(program)?;
                    // A warm-up: connections to the origin are made, and pools grow.
                    load(&running, 1)?;
                    Ok(running)
                })
                .collect::<Result<Vec<_>, Failure>>()?;
            for (proxy, (_, samples)) in running.iter().zip(&mut proxies) {
                if sys::interrupted() {
                    return Err("interrupted".into());
                }
                samples.push(self.sample(proxy, &load)?);
            }
        }
        Ok(Row { case, proxies })
    }

    fn sample(
        &self,
        proxy: &Running,
        load: impl Fn(&Running, u32) -> Result<Outcome, Failure>,
    ) -> Result<Sample, Failure> {
        let logged = self.sink.messages();
        let accepted = self.origin.accepted();
        let before = proxy.process.usage();
        let outcome = load(proxy, self.options.seconds)?;
        let (cpu_us, user_us) = proxy.process.usage().since(before);
        Ok(Sample {
            outcome,
            cpu_us,
            user_us,
            resident_bytes: proxy.process.memory().resident,
            log_messages: self.sink.messages() - logged,
            origin_connections: self.origin.accepted() - accepted,
        })
    }

    /// Prints the table and writes the JSON.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn report(&self, rows: &[Row]) -> Result<(), Failure> {
        let options = &self.options;
        print!("{}", report::table(rows));
        std::fs::write(
            &options.json,
            report::json(options.name, rows, options.rounds, options.seconds),
        )?;
        println!("\nJSON: {}", options.json.display());
        Ok(())
    }
}
