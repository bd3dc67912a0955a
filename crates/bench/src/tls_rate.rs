//! `tls-rate`: a constant rate of HTTPS requests through each proxy with its defaults, increased
//! step by step until it no longer serves 99 of 100.

mod table;

use crate::Failure;
use crate::certs::Certificates;
use crate::clock;
use crate::findings::{self, Findings, Options};
use crate::h3::load;
use crate::https::open_loop::{self, Plan};
use crate::https::probe;
use crate::origin::{self, Bodies, Origin};
use crate::peers::{self, Installed, Listener, Running, Servers, Setting, TlsFile};
use crate::process::Machine;
use crate::progress::Progress;
use crate::sys;
use crate::workdir::Workdir;
use table::Step;

/// The options.
pub const HELP: &str = findings::help!(
    "sends a constant rate of HTTPS requests through each proxy with its defaults, and doubles it until the proxy cannot serve it",
    "--rates LIST       requests per second of each step, instead of doubling
--start N          requests per second of the first step (500)
--max N            highest number of requests per second when doubling (64000)
--seconds N        length of one step (10)
--connections N    persistent client connections (200)
--waiting N        requests that can wait for a connection; further ones are dropped (1000)
--threads N        threads of the generator (1)
--http3            over HTTP/3, one request at a time on each connection; --threads is 1
"
);

/// The requested path.
const PATH: &str = "/50";
/// Files that this program needs in addition to connections; it includes the origin.
const FILES_SPARE: u32 = 200;
/// A rate is too high for a proxy if more than one of this many requests is dropped or fails.
const FAILED_SHARE: u64 = 100;

/// The parameters of the experiment.
#[derive(Clone, Debug)]
struct Shape {
    /// If empty: doubling from `start` to `max`.
    rates: Vec<u32>,
    start: u32,
    max: u32,
    seconds: u32,
    connections: u32,
    waiting: u32,
    threads: u32,
    http3: bool,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            rates: Vec::new(),
            start: 500,
            max: 64_000,
            seconds: 10,
            connections: 200,
            waiting: 1000,
            threads: 1,
            http3: false,
        }
    }
}

/// Runs the command.
///
/// # Errors
/// An option is invalid, a program is missing, or Spangate or the generator fails.
pub fn run(parser: lexopt::Parser) -> Result<(), Failure> {
    let quick = |shape: &mut Shape| (shape.rates, shape.seconds) = (vec![500, 2000], 2);
    let (options, mut shape) = Options::parse(parser, Shape::default(), quick, Shape::take)?;
    shape.settle()?;
    let mut findings = Findings::begin(
        "tls-rate",
        "A constant rate of requests over HTTPS, default configurations",
        "50,000 requests/s over TLS to each proxy with its default configuration: HAProxy 0 % not served and a p95 of 1.16 ms, Envoy 0 % and 3.34 ms, nginx 10 % \
         not served, Traefik 33 %, Caddy 36 %.",
    );
    sys::raise_open_files(u64::from(4 * shape.connections + FILES_SPARE));
    let workdir = Workdir::new("bench-tls-rate")?;
    let place = Place {
        server: TlsFile(Certificates::write(workdir.path())?.server),
        origin: origin::start_here(1, Bodies::new())?,
        workdir,
        shape,
    };
    let programs = place.able(options.proxies()?, &mut findings)?;
    let steps = place.steps(&programs)?;
    let shape = &place.shape;
    findings.method = method(shape);
    findings.tables = vec![table::table(&steps)];
    findings.plots = table::plots(&steps);
    findings.runs = table::json(&steps);
    findings.end(&options)
}

fn method(shape: &Shape) -> Vec<String> {
    vec![
        format!(
            "Open loop: requests are due at equal intervals for {} s, whatever the proxy does, over {} persistent TLS connections that exist before; each step \
             has a fresh process. Latency is the time from when a request was due until its response arrived. If no connection is free, a request waits \
             in a list of at most {}; if the list is full, it is dropped. A request without a response after 5 s is an error. If a proxy fails to serve \
             more than 1 % of the requests, it gets no higher rates.",
            shape.seconds, shape.connections, shape.waiting
        ),
        "Each proxy has its default number of threads or processes, and its defaults for sessions, ciphers and connections to the origin (except that nginx \
         keeps some connections, and has TLS 1.3, which is the default of newer versions). Certificates are ECDSA P-256. CPU is that of the proxy's \
         process tree per served request; cores: CPU seconds of the proxy per second; busy: share of all cores of the machine, for the proxy, the origin, the \
         generator and everything else; late: the part of the latency until the generator noticed the response, 99th percentile."
            .to_owned(),
    ]
}

impl Shape {
    fn take(&mut self, name: &str, parser: &mut lexopt::Parser) -> Result<bool, Failure> {
        let place = match name {
            "rates" => {
                let list: String = findings::value(parser)?;
                self.rates = list.split(',').map(str::parse).collect::<Result<_, _>>()?;
                return Ok(true);
            }
            "http3" => {
                self.http3 = true;
                return Ok(true);
            }
            "start" => &mut self.start,
            "max" => &mut self.max,
            "seconds" => &mut self.seconds,
            "connections" => &mut self.connections,
            "waiting" => &mut self.waiting,
            "threads" => &mut self.threads,
            _ => return Ok(false),
        };
        *place = findings::value(parser)?;
        // `start` and `max` select doubling.
        if matches!(name, "start" | "max") {
            self.rates.clear();
        }
        Ok(true)
    }

    /// Computes the rates.
    fn settle(&mut self) -> Result<(), Failure> {
        if self.rates.is_empty() {
            self.rates = doubling(self.start, self.max);
        }
        if self.rates.is_empty() || self.rates.contains(&0) || self.seconds == 0 {
            return Err(
                "the rates and --seconds must be at least 1, and --max must be at least --start"
                    .into(),
            );
        }
        if self.http3 && self.threads > 1 {
            return Err("--http3 has one thread".into());
        }
        if self.threads == 0 || self.connections < self.threads {
            return Err(
                "--threads must be at least 1, and --connections at least --threads".into(),
            );
        }
        Ok(())
    }
}

/// `start`, then doubled each time, up to `max`.
fn doubling(start: u32, max: u32) -> Vec<u32> {
    std::iter::successors(Some(start).filter(|&rate| rate > 0), |rate| {
        rate.checked_mul(2)
    })
    .take_while(|&rate| rate <= max)
    .collect()
}

/// The same load over HTTP/3.
fn over_http3(plan: &Plan) -> load::Plan {
    load::Plan {
        address: plan.address,
        path: plan.path,
        connections: plan.connections,
        streams: 1,
        fresh: false,
        seconds: plan.seconds,
        pace: Some(load::Pace {
            per_second: plan.per_second,
            waiting_max: plan.waiting_max,
        }),
    }
}

/// State that all steps share.
struct Place {
    shape: Shape,
    server: TlsFile,
    origin: Origin,
    workdir: Workdir,
}

impl Place {
    fn start(&self, program: &Installed) -> Result<Running, Failure> {
        let setting = Setting {
            listener: if self.shape.http3 {
                Listener::Http3(self.server.clone())
            } else {
                Listener::Https(self.server.clone())
            },
            servers: Servers::Default,
            workers: None,
            connections_max: 2 * self.shape.connections + FILES_SPARE,
            ..Setting::between(peers::free_address()?, self.origin.address)
        };
        program.start(&setting, self.workdir.path())
    }

    /// The proxies that start and negotiate. The clients offer what OpenSSL's clients offer; each
    /// proxy's choice is noted beside its version. Other peers are omitted, with a note.
    fn able(
        &self,
        programs: Vec<Installed>,
        findings: &mut Findings,
    ) -> Result<Vec<Installed>, Failure> {
        let mut able = Vec::new();
        for (place, program) in programs.into_iter().enumerate() {
            let name = program.peer.name;
            match self.probe(&program) {
                Ok(negotiated) => {
                    let version = format!("{}; {negotiated}", program.version());
                    findings.versions.push((name.to_owned(), version));
                    able.push(program);
                }
                Err(problem) if place == 0 => return Err(problem),
                Err(problem) => findings.notes.push(findings::skipped(name, &problem)),
            }
        }
        Ok(able)
    }

    /// The result of a negotiation, as text.
    fn probe(&self, program: &Installed) -> Result<String, Failure> {
        if !self.shape.http3 {
            let proxy = self.start(program)?;
            return Ok(probe::tls(proxy.listen, false)?.usual.to_string());
        }
        if !program.peer.http3 {
            return Err("its configuration has no HTTP/3 here".into());
        }
        let proxy = self.start(program)?;
        let plan = load::Plan {
            address: proxy.listen,
            path: PATH,
            connections: 1,
            streams: 1,
            fresh: false,
            seconds: 1,
            pace: None,
        };
        load::load(&plan).map(|_| "HTTP/3".to_owned())
    }

    /// Every rate through every proxy that still serves it, in turn.
    fn steps(&self, programs: &[Installed]) -> Result<Vec<Step>, Failure> {
        let mut progress = Progress::new(self.shape.rates.len() * programs.len());
        let mut left: Vec<&Installed> = programs.iter().collect();
        let mut steps = Vec::new();
        for (number, &rate) in self.shape.rates.iter().enumerate() {
            let mut able = Vec::new();
            for program in left {
                progress.step(&format!("{rate} requests/s: {}", program.peer.name));
                let step = self.step(program, rate)?;
                if step.failed() {
                    progress.skip(self.shape.rates.len() - number - 1);
                } else {
                    able.push(program);
                }
                steps.push(step);
            }
            left = able;
        }
        Ok(steps)
    }

    /// One rate through a fresh process.
    fn step(&self, program: &Installed, rate: u32) -> Result<Step, Failure> {
        if sys::interrupted() {
            return Err("interrupted".into());
        }
        let shape = &self.shape;
        let proxy = self.start(program)?;
        let begin = || (clock::now(), Machine::now(), proxy.process.usage());
        let plan = Plan {
            address: proxy.listen,
            path: PATH,
            per_second: rate,
            seconds: shape.seconds,
            connections: shape.connections,
            threads: shape.threads,
            waiting_max: shape.waiting,
        };
        let ran = if shape.http3 {
            load::paced(&over_http3(&plan), begin)
        } else {
            open_loop::run(&plan, begin)
        };
        let (mut tally, (start, machine, before)) =
            ran.map_err(|problem| format!("{}: {problem}", proxy.name))?;
        let busy = Machine::now().busy_since(machine);
        let wall = clock::now() - start;
        let (cpu_us, _) = proxy.process.usage().since(before);
        let [p50_us, p95_us, p99_us] = tally.latencies.percentiles([50, 95, 99]);
        let [late_p99_us] = tally.lateness.percentiles([99]);
        Ok(Step {
            proxy: proxy.name,
            rate,
            intended: u64::from(rate) * u64::from(shape.seconds),
            served: tally.latencies.count(),
            errors: tally.errors,
            dropped: tally.dropped,
            p50_us,
            p95_us,
            p99_us,
            late_p99_us,
            cpu_us,
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

    #[test]
    fn ends_ask_for_doubling_also_with_quick() {
        let rates = |words: &[&str]| {
            let parser = lexopt::Parser::from_args(words.iter().copied());
            let quick = |shape: &mut Shape| shape.rates = vec![7];
            let (_, mut shape) = Options::parse(parser, Shape::default(), quick, Shape::take)?;
            shape.settle().map(|()| shape.rates)
        };
        assert_eq!(rates(&["--quick"]).unwrap(), [7]);
        assert_eq!(rates(&["--max", "1000", "--quick"]).unwrap(), [500, 1000]);
        assert_eq!(rates(&["--rates", "3,4"]).unwrap(), [3, 4]);
        assert!(
            rates(&["--rates", "0"]).is_err() && rates(&["--start", "9", "--max", "8"]).is_err()
        );
    }
}
