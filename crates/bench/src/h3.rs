//! `h3`: the proxies side by side with HTTP/3 clients, in turn, round after round.

pub mod load;

use crate::Failure;
use crate::cases::{Body, LARGE, SMALL, Secured};
use crate::certs::Certificates;
use crate::peers::{self, Installed, Listener, Running, Servers, Setting, TlsFile};
use crate::report::{Row, Shape};
use crate::side_by_side::{self, Bench, Options};
use load::Plan;

/// The options.
pub const HELP: &str = side_by_side::help!(
    "requests over HTTP/3: rate, latency, CPU per request and memory of the proxies that speak it",
    "",
    "1",
    "bench-h3.json"
);

/// The behaviour of the clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Load {
    /// Requests over kept connections, so many at a time on each.
    Kept(u32),
    /// Each request has a new connection with a full handshake.
    Full,
}

type Case = Secured<Load>;

const CASES: &[(Body, u32, Load)] = &[
    (SMALL, 16, Load::Kept(32)),
    (SMALL, 64, Load::Kept(1)),
    (SMALL, 32, Load::Full),
    (LARGE, 16, Load::Kept(1)),
];

impl Case {
    fn streams(&self) -> u32 {
        match self.load {
            Load::Kept(streams) => streams,
            Load::Full => 1,
        }
    }

    fn name(&self) -> String {
        let load = match self.load {
            Load::Kept(streams) => format!("x{streams}"),
            Load::Full => "-full".to_owned(),
        };
        let (body, connections, workers) = (self.body.name, self.connections, self.workers);
        format!("h3-{body}-c{connections}{load}-w{workers}")
    }

    fn shape(&self) -> Shape {
        Shape {
            name: self.name(),
            body_bytes: self.body.bytes,
            connections: self.connections * self.streams(),
            keep_alive: self.load != Load::Full,
            workers: self.workers,
            log: false,
            fresh_servers: false,
        }
    }
}

/// Runs the command.
///
/// # Errors
/// An option is invalid, a program is missing, or a proxy fails.
pub fn run(parser: lexopt::Parser) -> Result<(), Failure> {
    let options = Options::parse(parser, "h3", &[1])?;
    let Some(cases) = options.choose(|workers| Case::every(CASES, workers), Case::name)? else {
        return Ok(());
    };
    let bench = Bench::new(options)?;
    let server = TlsFile(Certificates::write(bench.workdir.path())?.server);
    let able = able(&bench, &server);
    let mut rows = Vec::new();
    for (done, case) in cases.iter().enumerate() {
        eprintln!("[{}/{}] {}", done + 1, cases.len(), case.name());
        rows.push(measure(&bench, &able, &server, case)?);
    }
    bench.report(&rows)
}

/// The proxies that answer a request over HTTP/3; says which do not.
fn able(bench: &Bench, server: &TlsFile) -> Vec<Installed> {
    let case = Case {
        body: SMALL,
        connections: 1,
        load: Load::Kept(1),
        workers: 1,
    };
    let answers = |program: &Installed| -> Result<(), Failure> {
        if !program.peer.http3 {
            return Err("its configuration has no HTTP/3 here".into());
        }
        let proxy = start(bench, server, &case, program)?;
        load::load(&plan(&case, &proxy, 1)).map(drop)
    };
    let mut able = Vec::new();
    for program in &bench.programs {
        match answers(program) {
            Ok(()) => able.push(program.clone()),
            Err(why) => {
                let text = why.to_string();
                let first = text.lines().next().unwrap_or_default();
                println!("{}: skipped: {first}", program.peer.name);
            }
        }
    }
    able
}

fn plan(case: &Case, proxy: &Running, seconds: u32) -> Plan {
    Plan {
        address: proxy.listen,
        path: case.body.path,
        connections: case.connections,
        streams: case.streams(),
        fresh: case.load == Load::Full,
        seconds,
        pace: None,
    }
}

fn start(
    bench: &Bench,
    server: &TlsFile,
    case: &Case,
    program: &Installed,
) -> Result<Running, Failure> {
    let setting = Setting {
        listener: Listener::Http3(server.clone()),
        servers: Servers::Kept,
        workers: Some(case.workers),
        connections_max: bench.connections_max,
        strict_limits: true,
        ..Setting::between(peers::free_address()?, bench.origin.address)
    };
    program.start(&setting, bench.workdir.path())
}

fn measure(
    bench: &Bench,
    able: &[Installed],
    server: &TlsFile,
    case: &Case,
) -> Result<Row, Failure> {
    let load = |proxy: &Running, seconds| {
        load::load(&plan(case, proxy, seconds))
            .map_err(|problem| format!("{}: {problem}", proxy.name).into())
    };
    bench.rounds(
        case.shape(),
        able,
        |program| start(bench, server, case, program),
        load,
    )
}
