//! Spangate and HAProxy with the same lines in the frontend: CPU per request, in turn, with fresh
//! processes in each round.

use std::path::{Path, PathBuf};

use lexopt::{Arg, ValueExt};

use crate::Failure;
use crate::origin::{self, Bodies, Origin};
use crate::peers::{self, Installed, Running, Setting};
use crate::progress::Progress;
use crate::report::median;
use crate::sys;
use crate::workdir::Workdir;
use crate::wrk;

/// The help text of a command: the measured quantity, then the options of every comparison.
macro_rules! help {
    ($what:literal) => {
        concat!(
            "[OPTIONS]: ",
            $what,
            "\n--rounds N         rounds of each case (5)\n",
            "--seconds N        length of one run (2)\n",
            "--connections N    client connections (64)\n",
            "--workers N        threads of each proxy (1)\n",
            "--subject PATH     the Spangate to measure (beside this program)\n",
            "--haproxy PATH     the HAProxy to compare with (the installed one)"
        )
    };
}
pub(crate) use help;

/// State that all cases of a comparison share.
pub struct Comparison {
    /// Spangate, then HAProxy if it is installed.
    pub programs: Vec<Installed>,
    origin: Origin,
    workdir: Workdir,
    load: Load,
}

/// The amount of load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Rounds of each case.
    pub rounds: u32,
    /// The length of one run.
    pub seconds: u32,
    /// Client connections.
    pub connections: u32,
    /// Threads of each proxy.
    pub workers: u32,
}

impl Default for Load {
    fn default() -> Self {
        Self {
            rounds: 5,
            seconds: 2,
            connections: 64,
            workers: 1,
        }
    }
}

impl Load {
    /// Reads an option if it is one of these. Returns whether it is.
    ///
    /// # Errors
    /// Its value is missing or invalid.
    pub fn take(&mut self, name: &str, parser: &mut lexopt::Parser) -> Result<bool, Failure> {
        let place = match name {
            "rounds" => &mut self.rounds,
            "seconds" => &mut self.seconds,
            "connections" => &mut self.connections,
            "workers" => &mut self.workers,
            _ => return Ok(false),
        };
        *place = parser.value()?.parse()?;
        match *place {
            0 => Err(format!("--{name} must be at least 1").into()),
            _ => Ok(true),
        }
    }
}

/// What one case compares.
#[derive(Clone, Copy, Debug, Default)]
pub struct Case<'a> {
    /// Its name in progress messages.
    pub name: &'a str,
    /// Lines of section `global`.
    pub global: &'a str,
    /// Lines of the frontend.
    pub rules: &'a str,
    /// Fields of each request, `name: value`.
    pub headers: &'a [&'a str],
    /// A script of wrk that makes the requests.
    pub script: Option<&'a Path>,
}

/// Medians of one proxy in one case, in microseconds per request.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// The proxy.
    pub name: &'static str,
    /// User and system time.
    pub cpu_us: f64,
    /// User time alone.
    pub user_us: f64,
    /// Requests per second.
    pub per_second: f64,
    /// Wrong answers, all rounds together.
    pub errors: u64,
}

impl Comparison {
    /// Reads the options and starts the origin.
    ///
    /// # Errors
    /// An option is invalid, or Spangate is missing.
    pub fn new(mut parser: lexopt::Parser, name: &str) -> Result<Comparison, Failure> {
        let mut load = Load::default();
        let (mut subject, mut haproxy): (Option<PathBuf>, Option<PathBuf>) = (None, None);
        while let Some(arg) = parser.next()? {
            match arg {
                Arg::Long("subject") => subject = Some(parser.value()?.into()),
                Arg::Long("haproxy") => haproxy = Some(parser.value()?.into()),
                Arg::Long(name) => {
                    let name = name.to_owned();
                    if !load.take(&name, &mut parser)? {
                        return Err(format!("invalid option '--{name}'").into());
                    }
                }
                other => return Err(other.unexpected().into()),
            }
        }
        Self::of(peers::with_haproxy(subject, haproxy)?, load, name)
    }

    /// Compares those of `programs` that read HAProxy's language.
    ///
    /// # Errors
    /// The origin cannot be started, or files cannot be created.
    pub fn of(mut programs: Vec<Installed>, load: Load, name: &str) -> Result<Self, Failure> {
        programs.retain(|program| program.peer.reads_haproxy);
        Ok(Comparison {
            programs,
            origin: origin::start_here(1, Bodies::new())?,
            workdir: Workdir::new(name)?,
            load,
        })
    }

    /// The progress of this many cases.
    pub fn progress(&self, cases: usize) -> Progress {
        Progress::new(cases * self.programs.len() * self.load.rounds as usize)
    }

    /// A folder for files that the lines name.
    pub fn dir(&self) -> &Path {
        self.workdir.path()
    }

    /// Measures a case. `prepare` is called with each proxy before it gets load.
    ///
    /// # Errors
    /// A proxy does not start, `prepare` fails, or wrk does.
    pub fn case(
        &self,
        case: &Case<'_>,
        progress: &mut Progress,
        mut prepare: impl FnMut(&Running) -> Result<(), Failure>,
    ) -> Result<Vec<Cost>, Failure> {
        let mut samples: Vec<Vec<(f64, f64, f64, u64)>> = vec![Vec::new(); self.programs.len()];
        for _ in 0..self.load.rounds {
            for (program, samples) in self.programs.iter().zip(&mut samples) {
                if sys::interrupted() {
                    return Err("interrupted".into());
                }
                progress.step(&format!("{}: {}", case.name, program.peer.name));
                let running = self.start(program, case)?;
                prepare(&running)?;
                // A warm-up: connections to the origin are made, and pools grow.
                self.load(&running, 1, case)?;
                let before = running.process.usage();
                let outcome = self.load(&running, self.load.seconds, case)?;
                let (cpu_us, user_us) = running.process.usage().since(before);
                let requests = outcome.requests.max(1) as f64;
                let (cpu_us, user_us) = (cpu_us / requests, user_us / requests);
                samples.push((cpu_us, user_us, outcome.per_second, outcome.errors));
            }
        }
        let costs = self.programs.iter().zip(samples);
        Ok(costs
            .map(|(program, samples)| Cost {
                name: program.peer.name,
                cpu_us: median(samples.iter().map(|sample| sample.0).collect()),
                user_us: median(samples.iter().map(|sample| sample.1).collect()),
                per_second: median(samples.iter().map(|sample| sample.2).collect()),
                errors: samples.iter().map(|sample| sample.3).sum(),
            })
            .collect())
    }

    fn start(&self, program: &Installed, case: &Case<'_>) -> Result<Running, Failure> {
        let setting = Setting {
            workers: Some(self.load.workers),
            connections_max: 4 * self.load.connections + 100,
            global: case.global.to_owned(),
            rules: case.rules.to_owned(),
            ..Setting::between(peers::free_address()?, self.origin.address)
        };
        program.start(&setting, self.workdir.path())
    }

    fn load(
        &self,
        running: &Running,
        seconds: u32,
        case: &Case<'_>,
    ) -> Result<wrk::Outcome, Failure> {
        let url = running.url("/50");
        let connections = self.load.connections;
        match case.script {
            Some(script) => wrk::load_script(&url, connections, seconds, script),
            None => wrk::load(&url, connections, seconds, false, case.headers),
        }
    }
}
