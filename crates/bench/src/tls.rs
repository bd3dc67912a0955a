//! `tls`: the proxies side by side with TLS clients, in turn, round after round.

use std::path::PathBuf;

use crate::Failure;
use crate::cases::{Body, LARGE, SMALL, Secured};
use crate::certs::Certificates;
use crate::https::closed_loop::{self, Plan};
use crate::https::{self, probe};
use crate::peers::{self, Installed, Listener, Running, Servers, Setting, TlsFile};
use crate::report::{Row, Shape};
use crate::side_by_side::{self, Bench, Options};
use crate::wrk::{self, Outcome};

/// The options.
pub const HELP: &str = side_by_side::help!(
    "requests and handshakes over TLS 1.3: rate, latency, CPU per request and memory of Spangate and the proxies that are installed",
    "",
    "1",
    "bench-tls.json"
);

/// The behaviour of the clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Load {
    /// Requests over kept connections.
    Kept,
    /// Each request has a new connection with a full handshake, and a new connection to the origin.
    Full,
    /// The same with resumed handshakes.
    Resumed,
}

type Case = Secured<Load>;

const CASES: &[(Body, u32, Load)] = &[
    (SMALL, 64, Load::Kept),
    (SMALL, 64, Load::Full),
    (SMALL, 64, Load::Resumed),
    (LARGE, 16, Load::Kept),
];

impl Case {
    fn name(&self) -> String {
        let load = match self.load {
            Load::Kept => "keep",
            Load::Full => "full",
            Load::Resumed => "resumed",
        };
        let (body, connections, workers) = (self.body.name, self.connections, self.workers);
        format!("tls-{body}-c{connections}-{load}-w{workers}")
    }

    fn shape(&self) -> Shape {
        Shape {
            name: self.name(),
            body_bytes: self.body.bytes,
            connections: self.connections,
            keep_alive: self.load == Load::Kept,
            workers: self.workers,
            log: false,
            fresh_servers: self.load != Load::Kept,
        }
    }
}

/// Runs the command.
///
/// # Errors
/// An option is invalid, a program is missing, or a proxy fails.
pub fn run(parser: lexopt::Parser) -> Result<(), Failure> {
    let options = Options::parse(parser, "tls", &[1])?;
    let Some(cases) = options.choose(|workers| Case::every(CASES, workers), Case::name)? else {
        return Ok(());
    };
    let bench = Bench::new(options)?;
    let files = Files {
        server: TlsFile(Certificates::write(bench.workdir.path())?.server),
        openssl_conf: https::openssl_conf(bench.workdir.path())?,
    };
    print!("{}", negotiated(&bench, &files)?);
    let mut rows = Vec::new();
    for (done, case) in cases.iter().enumerate() {
        eprintln!("[{}/{}] {}", done + 1, cases.len(), case.name());
        rows.push(measure(&bench, &files, case)?);
    }
    bench.report(&rows)
}

struct Files {
    /// The proxies' certificate and key.
    server: TlsFile,
    /// The OpenSSL configuration for wrk's offer.
    openssl_conf: PathBuf,
}

/// The negotiated parameters of the proxies.
///
/// # Errors
/// A proxy does not negotiate TLS 1.3, or they differ, so that their work differs.
fn negotiated(bench: &Bench, files: &Files) -> Result<String, Failure> {
    let mut text = format!("{:<10}{:<48}to OpenSSL's own offer\n", "proxy", "measured");
    let mut first = None;
    for program in &bench.programs {
        let setting = Setting {
            listener: Listener::Https(files.server.clone()),
            ..Setting::between(peers::free_address()?, bench.origin.address)
        };
        let proxy = program.start(&setting, bench.workdir.path())?;
        let probed = probe::tls(proxy.listen, false)?;
        let measured = probed.measured.to_string();
        text += &format!("{:<10}{measured:<48}{}\n", proxy.name, probed.usual);
        let same = *first.get_or_insert_with(|| measured.clone()) == measured;
        if !same || !probed.measured.is_tls13() {
            return Err(format!("the proxies do not do the same work:\n{text}").into());
        }
    }
    Ok(text)
}

fn measure(bench: &Bench, files: &Files, case: &Case) -> Result<Row, Failure> {
    let start = |program: &Installed| {
        let setting = Setting {
            listener: Listener::Https(files.server.clone()),
            servers: match case.load {
                Load::Kept => Servers::Kept,
                Load::Full | Load::Resumed => Servers::Fresh,
            },
            workers: Some(case.workers),
            connections_max: bench.connections_max,
            strict_limits: true,
            ..Setting::between(peers::free_address()?, bench.origin.address)
        };
        program.start(&setting, bench.workdir.path())
    };
    let load = |proxy: &Running, seconds| -> Result<Outcome, Failure> {
        let resumes = match case.load {
            Load::Kept => {
                let url = proxy.https_url(case.body.path);
                return wrk::load_tls(&url, case.connections, seconds, &files.openssl_conf);
            }
            Load::Full => false,
            Load::Resumed => true,
        };
        let plan = Plan {
            address: proxy.listen,
            path: case.body.path,
            connections: case.connections,
            seconds,
            resumes,
        };
        closed_loop::load(&plan).map_err(|problem| format!("{}: {problem}", proxy.name).into())
    };
    bench.rounds(case.shape(), &bench.programs, start, load)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        let name = |&(body, connections, load)| {
            let case = Case {
                body,
                connections,
                load,
                workers: 1,
            };
            case.name()
        };
        let mut names: Vec<String> = CASES.iter().map(name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), CASES.len());
    }
}
