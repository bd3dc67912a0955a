//! Spangate beside HAProxy with the same lines in the frontend: CPU for each request, in turn, fresh processes each round.

use std::path::PathBuf;

use lexopt::{Arg, ValueExt};

use crate::Failure;
use crate::origin::{self, Bodies, Origin};
use crate::peers::{self, Installed, Running, Setting};
use crate::report::median;
use crate::sys;
use crate::workdir::Workdir;
use crate::wrk;

/// The help text of a command: what it measures, then the options that every comparison has.
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
            "--haproxy PATH     the HAProxy to compare with (that of the system)"
        )
    };
}
pub(crate) use help;

/// What all cases of a comparison share.
pub struct Comparison {
    /// Spangate, then HAProxy where it is installed.
    programs: Vec<Installed>,
    origin: Origin,
    workdir: Workdir,
    rounds: u32,
    seconds: u32,
    connections: u32,
    workers: u32,
}

/// Medians of one proxy in one case, in microseconds for each request.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// The proxy.
    pub name: &'static str,
    /// User and system time.
    pub cpu_us: f64,
    /// User time alone.
    pub user_us: f64,
    /// Answers that were not as they should, all rounds together.
    pub errors: u64,
}

impl Comparison {
    /// Reads the options and starts the origin.
    ///
    /// # Errors
    /// When an option is not understood, or Spangate is not there.
    pub fn new(mut parser: lexopt::Parser, name: &str) -> Result<Comparison, Failure> {
        let (mut rounds, mut seconds, mut connections, mut workers) = (5, 2, 64, 1);
        let (mut subject, mut haproxy): (Option<PathBuf>, Option<PathBuf>) = (None, None);
        while let Some(arg) = parser.next()? {
            match arg {
                Arg::Long("rounds") => rounds = parser.value()?.parse()?,
                Arg::Long("seconds") => seconds = parser.value()?.parse()?,
                Arg::Long("connections") => connections = parser.value()?.parse()?,
                Arg::Long("workers") => workers = parser.value()?.parse()?,
                Arg::Long("subject") => subject = Some(parser.value()?.into()),
                Arg::Long("haproxy") => haproxy = Some(parser.value()?.into()),
                other => return Err(other.unexpected().into()),
            }
        }
        if rounds == 0 || seconds == 0 || connections == 0 || workers == 0 {
            return Err("rounds, seconds, connections and workers are at least 1".into());
        }
        let mut programs = peers::with_haproxy(subject, haproxy)?;
        programs.retain(|program| program.peer.reads_haproxy);
        Ok(Comparison {
            programs,
            origin: origin::start_here(1, Bodies::new())?,
            workdir: Workdir::new(name)?,
            rounds,
            seconds,
            connections,
            workers,
        })
    }

    /// A folder for files that the lines name.
    pub fn dir(&self) -> &std::path::Path {
        self.workdir.path()
    }

    /// Measures with these lines in the frontend and these headers in the requests.
    ///
    /// # Errors
    /// When a proxy does not start, or wrk fails.
    pub fn case(&self, rules: &str, headers: &[&str]) -> Result<Vec<Cost>, Failure> {
        let mut samples: Vec<Vec<(f64, f64, u64)>> = vec![Vec::new(); self.programs.len()];
        for _ in 0..self.rounds {
            for (program, samples) in self.programs.iter().zip(&mut samples) {
                if sys::interrupted() {
                    return Err("interrupted".into());
                }
                let running = self.start(program, rules, headers)?;
                let before = running.process.usage();
                let outcome = self.load(&running, self.seconds, headers)?;
                let (cpu_us, user_us) = running.process.usage().since(before);
                let requests = outcome.requests.max(1) as f64;
                samples.push((cpu_us / requests, user_us / requests, outcome.errors));
            }
        }
        let costs = self.programs.iter().zip(samples);
        Ok(costs
            .map(|(program, samples)| Cost {
                name: program.peer.name,
                cpu_us: median(samples.iter().map(|sample| sample.0).collect()),
                user_us: median(samples.iter().map(|sample| sample.1).collect()),
                errors: samples.iter().map(|sample| sample.2).sum(),
            })
            .collect())
    }

    fn start(
        &self,
        program: &Installed,
        rules: &str,
        headers: &[&str],
    ) -> Result<Running, Failure> {
        let setting = Setting {
            workers: Some(self.workers),
            connections_max: 4 * self.connections + 100,
            rules: rules.to_owned(),
            ..Setting::between(peers::free_address()?, self.origin.address)
        };
        let running = program.start(&setting, self.workdir.path())?;
        // Not measured: connections to the origin are made and pools grow.
        self.load(&running, 1, headers)?;
        Ok(running)
    }

    fn load(
        &self,
        running: &Running,
        seconds: u32,
        headers: &[&str],
    ) -> Result<wrk::Outcome, Failure> {
        wrk::load(
            &running.url("/50"),
            self.connections,
            seconds,
            false,
            headers,
        )
    }
}
