//! `routing`: requests that are routed by `Host` to two origins, from many threads over many
//! connections.

use serde_json::{Value, json};

use crate::Failure;
use crate::client;
use crate::findings::{self, Axis, Cell, Findings, Options, Plot, Scale, Series, Table};
use crate::origin::{self, Bodies, Origin};
use crate::peers::{self, Installed, Running, Servers, Setting};
use crate::progress::Progress;
use crate::report::median;
use crate::sys;
use crate::workdir::Workdir;
use crate::wrk::{self, Outcome};

/// The options.
pub const HELP: &str = findings::help!(
    "routes requests by Host to two origins; each proxy uses its default number of threads: rate and CPU",
    "--rounds N         rounds (3)
--seconds N        length of one run (60)
--threads N        threads of the load generator (20)
--connections N    client connections (1000)
"
);

/// The host that is routed; other hosts are not.
const HOST: &str = "bench.test";
/// The requested path.
const PATH: &str = "/50";
/// Files that a program needs in addition to its connections.
const FILES_SPARE: u32 = 200;
/// The name for runs without a proxy.
const DIRECT: &str = "direct";

#[derive(Clone, Copy, Debug)]
struct Shape {
    rounds: u32,
    seconds: u32,
    threads: u32,
    connections: u32,
}

/// One run.
#[derive(Clone, Debug, Default)]
struct Sample {
    outcome: Outcome,
    cpu_us: f64,
    user_us: f64,
    resident_bytes: u64,
}

/// Runs the command.
///
/// # Errors
/// An option is invalid, a program is missing, or Spangate or the load generator fails.
pub fn run(parser: lexopt::Parser) -> Result<(), Failure> {
    let shape = Shape {
        rounds: 3,
        seconds: 60,
        threads: 20,
        connections: 1000,
    };
    let quick = |shape: &mut Shape| {
        *shape = Shape {
            rounds: 1,
            seconds: 2,
            threads: 2,
            connections: 100,
        }
    };
    let (options, shape) = Options::parse(parser, shape, quick, Shape::take)?;
    if shape.connections < shape.threads {
        return Err("--connections must be at least --threads".into());
    }
    let mut findings = Findings::begin(
        "routing",
        "Routing by Host to two origins",
        "wrk with 20 threads and 1,000 connections for 60 s, a rule on Host, two servers behind it: nginx 33,600 requests/s, Traefik 28,400, \
         57,900 without a proxy. CPU was not published.",
    );
    sys::raise_open_files(u64::from(6 * shape.connections + FILES_SPARE));
    let place = Place {
        origins: [
            origin::start_here(1, Bodies::new())?,
            origin::start_here(1, Bodies::new())?,
        ],
        workdir: Workdir::new("bench-routing")?,
        shape,
    };
    let programs = place.able(options.proxies()?, &mut findings.notes)?;
    let samples = place.measure(&programs)?;
    findings.method = vec![format!(
        "Medians of {} rounds of {} s; wrk with {} threads and {} persistent connections (closed loop) fetches 50 bytes with 'Host: {HOST}'. Each proxy \
         has its default number of threads or processes. The proxies run in turn, with a fresh process in each round and one second that is not measured. \
         The two origins are threads of this program. Before the measurement each proxy gets a request for another host, which it must not serve. CPU \
         is that of the proxy's process tree; proxy, origins and wrk share the cores of the machine.",
        shape.rounds, shape.seconds, shape.threads, shape.connections
    )];
    findings.versions = programs
        .iter()
        .map(|one| (one.peer.name.to_owned(), one.version()))
        .collect();
    findings.versions.push(("wrk".to_owned(), wrk::version()));
    findings.tables = vec![table(&samples)];
    findings.plots = vec![
        bars(
            &samples,
            "Requests per second, closed loop",
            "requests/s",
            |one| one.outcome.per_second,
        ),
        bars(
            &samples,
            "CPU per request",
            "CPU us per request",
            Sample::cpu_per_request,
        ),
    ];
    findings.runs = runs(&samples);
    findings.end(&options)
}

impl Shape {
    fn take(&mut self, name: &str, parser: &mut lexopt::Parser) -> Result<bool, Failure> {
        let place = match name {
            "rounds" => &mut self.rounds,
            "seconds" => &mut self.seconds,
            "threads" => &mut self.threads,
            "connections" => &mut self.connections,
            _ => return Ok(false),
        };
        *place = findings::value(parser)?;
        match *place {
            0 => Err(format!("--{name} must be at least 1").into()),
            _ => Ok(true),
        }
    }
}

impl Sample {
    fn cpu_per_request(&self) -> f64 {
        self.cpu_us / self.outcome.requests.max(1) as f64
    }
}

/// State that all runs share.
struct Place {
    origins: [Origin; 2],
    workdir: Workdir,
    shape: Shape,
}

impl Place {
    /// The proxies that start and route correctly; other peers are omitted, with a note.
    fn able(
        &self,
        programs: Vec<Installed>,
        notes: &mut Vec<String>,
    ) -> Result<Vec<Installed>, Failure> {
        let mut able = Vec::new();
        for (place, program) in programs.into_iter().enumerate() {
            match self.check(&program) {
                Ok(()) => able.push(program),
                Err(problem) if place == 0 => return Err(problem),
                Err(problem) => notes.push(findings::skipped(program.peer.name, &problem)),
            }
        }
        Ok(able)
    }

    fn check(&self, program: &Installed) -> Result<(), Failure> {
        let proxy = self.start(program)?;
        let (ours, other) = (
            client::status(proxy.listen, PATH, HOST)?,
            client::status(proxy.listen, PATH, "other.test"),
        );
        // nginx may also close the connection without an answer.
        let serves_other = matches!(other, Ok(200..300));
        match (ours, serves_other) {
            (200, false) => Ok(()),
            _ => Err(format!(
                "it does not route by Host: {ours} for this host, {other:?} for another one"
            )
            .into()),
        }
    }

    fn start(&self, program: &Installed) -> Result<Running, Failure> {
        let [first, second] = &self.origins;
        let setting = Setting {
            more_origins: vec![second.address],
            host: Some(HOST),
            servers: Servers::Default,
            workers: None,
            connections_max: 2 * self.shape.connections + FILES_SPARE,
            ..Setting::between(peers::free_address()?, first.address)
        };
        program.start(&setting, self.workdir.path())
    }

    /// Measures without a proxy, then through each proxy in turn, round after round.
    fn measure(&self, programs: &[Installed]) -> Result<Vec<(&'static str, Vec<Sample>)>, Failure> {
        let mut all = vec![(DIRECT, Vec::new())];
        all.extend(
            programs
                .iter()
                .map(|program| (program.peer.name, Vec::new())),
        );
        let mut progress = Progress::new(all.len() * self.shape.rounds as usize);
        for _ in 0..self.shape.rounds {
            for (place, (name, samples)) in all.iter_mut().enumerate() {
                progress.step(name);
                let program = place.checked_sub(1).and_then(|place| programs.get(place));
                samples.push(self.sample(program)?);
            }
        }
        Ok(all)
    }

    fn sample(&self, program: Option<&Installed>) -> Result<Sample, Failure> {
        let Some(program) = program else {
            let url = format!("http://{}{PATH}", self.origins[0].address);
            let outcome = self.load(&url, self.shape.seconds)?;
            return Ok(Sample {
                outcome,
                ..Sample::default()
            });
        };
        let proxy = self.start(program)?;
        self.load(&proxy.url(PATH), 1)?;
        let before = proxy.process.usage();
        let outcome = self.load(&proxy.url(PATH), self.shape.seconds)?;
        let (cpu_us, user_us) = proxy.process.usage().since(before);
        let resident_bytes = proxy.process.memory().resident;
        Ok(Sample {
            outcome,
            cpu_us,
            user_us,
            resident_bytes,
        })
    }

    fn load(&self, url: &str, seconds: u32) -> Result<Outcome, Failure> {
        if sys::interrupted() {
            return Err("interrupted".into());
        }
        wrk::load_host(
            url,
            HOST,
            self.shape.threads,
            self.shape.connections,
            seconds,
        )
    }
}

fn of(samples: &[Sample], value: impl Fn(&Sample) -> f64) -> f64 {
    median(samples.iter().map(value).collect())
}

fn table(all: &[(&'static str, Vec<Sample>)]) -> Table {
    let direct = all.iter().find(|(name, _)| *name == DIRECT);
    let direct = direct.map(|(_, samples)| of(samples, |one| one.outcome.per_second));
    let row = |(name, samples): &(&'static str, Vec<Sample>)| {
        let value = |value: fn(&Sample) -> f64| of(samples, value);
        let proxy = *name != DIRECT;
        let per_second = value(|one| one.outcome.per_second);
        vec![
            (*name).into(),
            Cell::Number(per_second, 0),
            Cell::maybe(direct.map(|direct| 100.0 * per_second / direct.max(1.0)), 1),
            Cell::Number(value(|one| one.outcome.p50_us / 1000.0), 2),
            Cell::Number(value(|one| one.outcome.p99_us / 1000.0), 2),
            Cell::maybe(proxy.then(|| value(Sample::cpu_per_request)), 2),
            Cell::maybe(
                proxy.then(|| value(|one| one.user_us / one.outcome.requests.max(1) as f64)),
                2,
            ),
            Cell::maybe(
                proxy.then(|| value(|one| one.resident_bytes as f64 / 1e6)),
                1,
            ),
            samples
                .iter()
                .map(|one| one.outcome.errors)
                .sum::<u64>()
                .into(),
        ]
    };
    Table {
        title: "Requests for one host, two origins behind it".into(),
        columns: vec![
            "proxy",
            "requests/s",
            "% of direct",
            "p50 ms",
            "p99 ms",
            "CPU us",
            "user us",
            "memory MB",
            "errors",
        ],
        rows: all.iter().map(row).collect(),
    }
}

fn bars(
    all: &[(&'static str, Vec<Sample>)],
    title: &str,
    label: &'static str,
    value: impl Fn(&Sample) -> f64,
) -> Plot {
    let measured = all
        .iter()
        .map(|(name, samples)| (*name, of(samples, &value)));
    let (names, values): (Vec<_>, Vec<_>) = measured.filter(|(_, value)| *value > 0.0).unzip();
    Plot {
        title: title.to_owned(),
        x: Axis::new(
            "",
            Scale::Names(names.iter().map(ToString::to_string).collect()),
        ),
        y: Axis::new(label, Scale::Linear),
        series: vec![Series {
            name: label.to_owned(),
            points: (0..).map(f64::from).zip(values).collect(),
        }],
    }
}

fn runs(all: &[(&'static str, Vec<Sample>)]) -> Value {
    let one = |name: &str, one: &Sample| {
        json!({
            "proxy": name,
            "requests": one.outcome.requests,
            "requests_per_second": one.outcome.per_second,
            "p50_us": one.outcome.p50_us,
            "p99_us": one.outcome.p99_us,
            "errors": one.outcome.errors,
            "cpu_us": one.cpu_us,
            "cpu_user_us": one.user_us,
            "resident_bytes": one.resident_bytes,
        })
    };
    all.iter()
        .flat_map(|(name, samples)| samples.iter().map(move |sample| one(name, sample)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_stand_beside_that_without_a_proxy() {
        let sample = |per_second, cpu_us| Sample {
            outcome: Outcome {
                requests: 100,
                per_second,
                ..Outcome::default()
            },
            cpu_us,
            ..Sample::default()
        };
        let all = [
            (DIRECT, vec![sample(200.0, 0.0)]),
            (
                "spangate",
                vec![
                    sample(50.0, 1000.0),
                    sample(150.0, 3000.0),
                    sample(100.0, 2000.0),
                ],
            ),
        ];
        let rows = table(&all).rows;
        assert_eq!(
            (&rows[0][2], &rows[0][5]),
            (&Cell::Number(100.0, 1), &Cell::None)
        );
        assert_eq!(
            (&rows[1][2], &rows[1][5]),
            (&Cell::Number(50.0, 1), &Cell::Number(20.0, 2))
        );
        let plot = bars(&all, "CPU", "us", Sample::cpu_per_request);
        assert_eq!(plot.x.scale, Scale::Names(vec!["spangate".into()]));
        assert_eq!(runs(&all).as_array().map(Vec::len), Some(4));
    }
}
