//! `tls-rate`: a constant rate of requests over HTTPS through each proxy as it comes, step after step, until it no longer
//! serves 99 of 100.

mod table;

use std::path::PathBuf;

use lexopt::{Arg, ValueExt};

use crate::Failure;
use crate::certs::Certificates;
use crate::clock;
use crate::https::open_loop::{self, Plan};
use crate::https::probe;
use crate::origin::{self, Bodies, Origin};
use crate::peers::{self, Installed, Listener, Running, Servers, Setting, TlsFile};
use crate::process::Machine;
use crate::sys;
use crate::workdir::Workdir;
use table::Step;

/// The options.
pub const HELP: &str = "[OPTIONS]: a constant rate of requests over HTTPS through each proxy with its own defaults, until it no longer serves it
--rates LIST       requests a second, one step each, instead of doubling
--start N          requests a second of the first step (500)
--max N            requests a second at most, as they double (64000)
--seconds N        length of one step (10)
--connections N    kept client connections (200)
--waiting N        requests that may wait for one of them; what finds no room is dropped (1000)
--threads N        threads of the generator (1)
--json FILE        where the JSON goes (bench-tls-rate.json beside this program)
--subject PATH     the Spangate to measure (beside this program)
--haproxy PATH     the HAProxy to compare with (that of the system)";

/// The path that is fetched.
const PATH: &str = "/50";
/// Files that this program needs beside those of connections, of which the origin's are here, too.
const FILES_SPARE: u32 = 200;
/// A rate is too high for a proxy when of its requests more than one of so many are dropped or fail.
const FAILED_SHARE: u64 = 100;

struct Options {
    rates: Vec<u32>,
    seconds: u32,
    connections: u32,
    waiting: u32,
    threads: u32,
    json: PathBuf,
    subject: Option<PathBuf>,
    haproxy: Option<PathBuf>,
}

/// Runs the command.
///
/// # Errors
/// When an option is not understood, a program is missing, or a proxy fails.
pub fn run(parser: lexopt::Parser) -> Result<(), Failure> {
    let options = parse(parser)?;
    sys::raise_open_files(u64::from(4 * options.connections + FILES_SPARE));
    let mut programs = peers::with_haproxy(options.subject.clone(), options.haproxy.clone())?;
    let workdir = Workdir::new("bench-tls-rate")?;
    let place = Place {
        server: TlsFile(Certificates::write(workdir.path())?.server),
        origin: origin::start_here(1, Bodies::new())?,
        workdir,
        options,
    };
    place.show_negotiated(&programs)?;
    print!("\n{}", table::HEAD);
    let mut steps = Vec::new();
    for &rate in &place.options.rates {
        let mut left = Vec::new();
        for program in programs {
            let step = place.step(&program, rate)?;
            print!("{}", table::line(&step));
            if !step.failed() {
                left.push(program);
            }
            steps.push(step);
        }
        programs = left;
    }
    let options = &place.options;
    std::fs::write(
        &options.json,
        table::json(&steps, options.seconds, options.connections),
    )?;
    println!("\nJSON: {}", options.json.display());
    Ok(())
}

fn parse(mut parser: lexopt::Parser) -> Result<Options, Failure> {
    let mut options = Options {
        rates: Vec::new(),
        seconds: 10,
        connections: 200,
        waiting: 1000,
        threads: 1,
        json: std::env::current_exe()?.with_file_name("bench-tls-rate.json"),
        subject: None,
        haproxy: None,
    };
    let (mut start, mut max) = (500, 64_000);
    while let Some(arg) = parser.next()? {
        match arg {
            Arg::Long("rates") => {
                let list = parser.value()?.string()?;
                options.rates = list.split(',').map(str::parse).collect::<Result<_, _>>()?;
            }
            Arg::Long("start") => start = parser.value()?.parse()?,
            Arg::Long("max") => max = parser.value()?.parse()?,
            Arg::Long("seconds") => options.seconds = parser.value()?.parse()?,
            Arg::Long("connections") => options.connections = parser.value()?.parse()?,
            Arg::Long("waiting") => options.waiting = parser.value()?.parse()?,
            Arg::Long("threads") => options.threads = parser.value()?.parse()?,
            Arg::Long("json") => options.json = parser.value()?.into(),
            Arg::Long("subject") => options.subject = Some(parser.value()?.into()),
            Arg::Long("haproxy") => options.haproxy = Some(parser.value()?.into()),
            other => return Err(other.unexpected().into()),
        }
    }
    if options.rates.is_empty() {
        options.rates = doubling(start, max);
    }
    if options.rates.is_empty() || options.rates.contains(&0) || options.seconds == 0 {
        return Err("rates and seconds are at least 1, and --max is not below --start".into());
    }
    if options.threads == 0 || options.connections < options.threads {
        return Err("there is at least 1 thread, and a connection for each".into());
    }
    Ok(options)
}

/// `start`, then twice as much each, up to `max`.
fn doubling(start: u32, max: u32) -> Vec<u32> {
    std::iter::successors(Some(start).filter(|&rate| rate > 0), |rate| {
        rate.checked_mul(2)
    })
    .take_while(|&rate| rate <= max)
    .collect()
}

/// What all steps share.
struct Place {
    options: Options,
    server: TlsFile,
    origin: Origin,
    workdir: Workdir,
}

impl Place {
    fn start(&self, program: &Installed) -> Result<Running, Failure> {
        let setting = Setting {
            listener: Listener::Https(self.server.clone()),
            servers: Servers::Default,
            workers: None,
            connections_max: 2 * self.options.connections + FILES_SPARE,
            ..Setting::between(peers::free_address()?, self.origin.address)
        };
        program.start(&setting, self.workdir.path())
    }

    /// Says what each proxy chooses of what OpenSSL's clients offer, as here the clients do.
    fn show_negotiated(&self, programs: &[Installed]) -> Result<(), Failure> {
        for program in programs {
            let proxy = self.start(program)?;
            let probed = probe::tls(proxy.listen, false)?;
            println!("{:<10}{}", proxy.name, probed.usual);
        }
        Ok(())
    }

    /// One rate through a fresh process.
    fn step(&self, program: &Installed, rate: u32) -> Result<Step, Failure> {
        if sys::interrupted() {
            return Err("interrupted".into());
        }
        let options = &self.options;
        let proxy = self.start(program)?;
        let plan = Plan {
            address: proxy.listen,
            path: PATH,
            per_second: rate,
            seconds: options.seconds,
            connections: options.connections,
            threads: options.threads,
            waiting_max: options.waiting,
        };
        let (mut tally, (start, machine, before)) = open_loop::run(&plan, || {
            (clock::now(), Machine::now(), proxy.process.usage())
        })
        .map_err(|problem| format!("{}: {problem}", proxy.name))?;
        let busy = Machine::now().busy_since(machine);
        let wall = clock::now() - start;
        let (cpu_us, _) = proxy.process.usage().since(before);
        let [p50_us, p95_us, p99_us] = tally.latencies.percentiles([50, 95, 99]);
        let [late_p99_us] = tally.lateness.percentiles([99]);
        Ok(Step {
            proxy: proxy.name,
            rate,
            intended: u64::from(rate) * u64::from(options.seconds),
            served: tally.latencies.count(),
            errors: tally.errors,
            dropped: tally.dropped,
            p50_us,
            p95_us,
            p99_us,
            late_p99_us,
            cores: cpu_us / 1e6 / wall.as_secs_f64(),
            busy,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_double_up_to_the_highest() {
        assert_eq!(doubling(500, 4000), [500, 1000, 2000, 4000]);
        assert_eq!(doubling(3, 11), [3, 6]);
        assert!(doubling(9, 8).is_empty() && doubling(0, 8).is_empty());
        assert_eq!(doubling(1 << 31, u32::MAX), [1 << 31]);
    }
}
