//! `h2`: the proxies side by side with HTTP/2 clients, in turn, round after round.

use std::fs;
use std::net::SocketAddr;
use std::process::Command;

use crate::Failure;
use crate::cases::SMALL;
use crate::certs::Certificates;
use crate::h2load;
use crate::https::probe;
use crate::peers::{self, Installed, Listener, Running, Servers, Setting, TlsFile, fill};
use crate::report::{Row, Shape};
use crate::side_by_side::{self, Bench, Options};

/// The options.
pub const HELP: &str = side_by_side::help!(
    "requests over HTTP/2: rate, latency, CPU per request and memory of the proxies that speak it",
    "",
    "1",
    "bench-h2.json"
);

/// Client connections.
const CONNECTIONS: u32 = 16;
/// Most requests at a time on each connection.
const STREAMS: u32 = 32;
/// An HTTP/2 origin, served by HAProxy.
const ORIGIN: &str = include_str!("../templates/h2-origin.cfg");

/// The connections that use HTTP/2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    /// Those of clients, over TLS; HTTP/1 to the origin.
    Clients,
    /// Those of clients, over TLS, and those to the origin, without TLS.
    Both,
    /// Those of clients, with prior knowledge, without TLS; HTTP/1 to the origin.
    Clear,
}

#[derive(Clone, Copy, Debug)]
struct Case {
    side: Side,
    workers: u32,
}

impl Case {
    fn name(&self) -> String {
        let side = match self.side {
            Side::Clients => "tls",
            Side::Both => "both",
            Side::Clear => "clear",
        };
        let (body, workers) = (SMALL.name, self.workers);
        format!("h2-{side}-{body}-c{CONNECTIONS}x{STREAMS}-w{workers}")
    }

    fn shape(&self) -> Shape {
        Shape {
            name: self.name(),
            body_bytes: SMALL.bytes,
            connections: CONNECTIONS * STREAMS,
            keep_alive: true,
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
    let options = Options::parse(parser, "h2", &[1])?;
    let sides = [Side::Clients, Side::Both, Side::Clear];
    let Some(cases) = options.choose(
        |workers| sides.map(|side| Case { side, workers }),
        Case::name,
    )?
    else {
        return Ok(());
    };
    let bench = Bench::new(options)?;
    let server = TlsFile(Certificates::write(bench.workdir.path())?.server);
    let origin = http2_origin(&bench)?;
    let place = Place {
        origin: origin.as_ref().map(|origin| origin.listen),
        bench,
        server,
    };
    let mut rows = Vec::new();
    for (done, case) in cases.iter().enumerate() {
        eprintln!("[{}/{}] {}", done + 1, cases.len(), case.name());
        rows.extend(place.measure(case)?);
    }
    place.bench.report(&rows)
}

/// The HTTP/2 origin, if HAProxy is installed.
fn http2_origin(bench: &Bench) -> Result<Option<Running>, Failure> {
    let Some(program) = peers::on_path("haproxy") else {
        return Ok(None);
    };
    let listen = peers::free_address()?;
    let file = bench.workdir.path().join("h2-origin.cfg");
    let body = "x".repeat(usize::try_from(SMALL.bytes)?);
    fs::write(&file, fill(ORIGIN, &[("listen", &listen), ("body", &body)]))?;
    let mut command = Command::new(program);
    command.arg("-db").arg("-f").arg(&file);
    let (origin, _) = peers::start("h2-origin", &mut command, listen, bench.workdir.path())?;
    Ok(Some(origin))
}

/// State that all cases share.
struct Place {
    bench: Bench,
    server: TlsFile,
    /// The HTTP/2 origin.
    origin: Option<SocketAddr>,
}

impl Place {
    /// Measures the proxies that support the case, and reports the others. None if only the subject
    /// remains, or the subject does not support it.
    fn measure(&self, case: &Case) -> Result<Option<Row>, Failure> {
        let mut able = Vec::new();
        for program in &self.bench.programs {
            match self.obstacle(case, program)? {
                Some(obstacle) => println!("{}: skipped: {obstacle}", case.name()),
                None => able.push(program.clone()),
            }
        }
        if able.is_empty() {
            return Ok(None);
        }
        let load = |proxy: &Running, seconds| {
            let url = match case.side {
                Side::Clear => proxy.url(SMALL.path),
                Side::Clients | Side::Both => proxy.https_url(SMALL.path),
            };
            let log = self.bench.workdir.path().join("h2load.log");
            h2load::load(&url, CONNECTIONS, STREAMS, seconds, &log)
                .map_err(|problem| format!("{}: {problem}", proxy.name).into())
        };
        let start = |program: &Installed| self.start(case, program);
        let row = self.bench.rounds(case.shape(), &able, start, load)?;
        Ok(Some(row))
    }

    /// Why `program` does not support the case.
    fn obstacle(&self, case: &Case, program: &Installed) -> Result<Option<String>, Failure> {
        let name = program.peer.name;
        if case.side == Side::Both && !program.peer.http2_servers {
            return Ok(Some(format!("{name} does not speak h2 to servers")));
        }
        if case.side == Side::Both && self.origin.is_none() {
            let obstacle =
                "there is no h2 origin, because HAProxy, which serves it, is not installed";
            return Ok(Some(format!("{name}: {obstacle}")));
        }
        let proxy = match self.start(case, program) {
            Ok(proxy) => proxy,
            Err(failure) => {
                let printed = failure.to_string();
                let words = refusal(&printed).ok_or(failure)?;
                return Ok(Some(format!("{name} does not negotiate h2: {words}")));
            }
        };
        let http2 = match case.side {
            Side::Clear => probe::clear_http2(proxy.listen)?,
            Side::Clients | Side::Both => {
                let probed = probe::tls(proxy.listen, true)?;
                if case.side == Side::Clients {
                    println!("{name}: {}", probed.measured);
                }
                probed.measured.is_http2()
            }
        };
        Ok((!http2).then(|| format!("{name} does not negotiate h2")))
    }

    fn start(&self, case: &Case, program: &Installed) -> Result<Running, Failure> {
        let (servers, origin) = match (case.side, self.origin) {
            (Side::Both, Some(origin)) => (Servers::Http2, origin),
            _ => (Servers::Kept, self.bench.origin.address),
        };
        let setting = Setting {
            listener: match case.side {
                Side::Clear => Listener::ClearHttp2,
                Side::Clients | Side::Both => Listener::Http2(self.server.clone()),
            },
            servers,
            workers: Some(case.workers),
            connections_max: self.bench.connections_max,
            strict_limits: true,
            ..Setting::between(peers::free_address()?, origin)
        };
        program.start(&setting, self.bench.workdir.path())
    }
}

/// The line in which a proxy that did not start refuses the HTTP/2 keywords; None if it did not
/// start for another reason.
fn refusal(printed: &str) -> Option<&str> {
    const WORDS: &[&str] = &["proto h2", "'proto'", "alpn", "http2"];
    let names = |line: &&str| WORDS.iter().any(|word| line.contains(word));
    printed.lines().find(names).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_refusal_of_the_words_is_a_reason_to_skip() {
        let told = "x: it ended\n[ALERT] : [h2.cfg:16] : keyword 'proto h2' is not there yet.\n";
        let line = "[ALERT] : [h2.cfg:16] : keyword 'proto h2' is not there yet.";
        assert_eq!(refusal(told), Some(line));
        assert_eq!(
            refusal("x: it ended\n[ALERT] : [h2.cfg:16] : cannot bind socket"),
            None
        );
    }
}
