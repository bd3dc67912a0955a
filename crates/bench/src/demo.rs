//! `demo`: the whole product in one process tree: two origins, Spangate with a collector and the
//! dashboard in front of them, and a light load.

mod answer;
mod load;
mod origin;
mod ports;
mod random;
mod spans;
mod welcome;

use std::net::{TcpListener, UdpSocket};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use lexopt::Arg;

use crate::Failure;
use crate::certs::Certificates;
use crate::client;
use crate::peers::{self, START_PATIENCE};
use crate::process::Process;
use crate::sys;
use crate::workdir::Workdir;
use ports::Ports;
use spans::Spans;

/// The options.
pub const HELP: &str = "[OPTIONS]: runs Spangate with two demo origins, a load and the dashboard until Ctrl-C
--config FILE      the configuration (examples/demo.cfg)
--port PORT        port of HTTP; HTTPS, the dashboard and OTLP use the next three ports (8080, 8443, 8404, 8405)
--load RATE        requests per second that the demo sends, 0 for none (30)
--subject PATH     the Spangate to start (beside this program)";

/// The origins: the displayed name, the variable with its address for the configuration, and the
/// factor of its response times.
const ORIGINS: &[(&str, &str, f64)] = &[
    ("A", "SPANGATE_ORIGIN_A", 1.0),
    ("B", "SPANGATE_ORIGIN_B", 1.6),
];
/// The variable with the file of the certificate and its key, for the configuration.
const CERTIFICATE: &str = "SPANGATE_DEMO_CERTIFICATE";
/// Most time for open connections to end after Ctrl-C.
const DRAIN_PATIENCE: Duration = Duration::from_secs(2);
/// The interval of checks that Spangate still runs.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Requests per second of the load.
const LOAD_DEFAULT: u32 = 30;
/// The highest rate that counts as a light load.
const LOAD_MAX: u32 = 500;

struct Options {
    config: PathBuf,
    ports: Ports,
    load: u32,
    subject: Option<PathBuf>,
}

/// Runs the command.
///
/// # Errors
/// An option is invalid, a port is in use, or Spangate does not start, or ends unexpectedly.
pub fn run(parser: lexopt::Parser) -> Result<(), Failure> {
    let options = parse(parser)?;
    let program = peers::installed(options.subject.clone())?
        .swap_remove(0)
        .program;
    let ports = options.ports;
    ports.check()?;
    let workdir = Workdir::new("demo")?;
    let certificates = Certificates::write(workdir.path())?;
    let mut command = Command::new(program);
    command.arg("-db").arg("-f").arg(&options.config);
    command.env(CERTIFICATE, &certificates.server);
    command.envs(ports.variables());
    let spans = Spans::start(ports.otlp())?;
    for &(name, variable, slowness) in ORIGINS {
        let site = answer::Site::new(name, slowness);
        let address = origin::start(site, spans.clone())?;
        command.env(variable, address.to_string());
    }
    let mut proxy = Process::start(&mut command)?;
    client::get(&mut proxy.connect(ports.http(), START_PATIENCE)?, "/health")
        .map_err(|error| format!("no answer: {error}"))?;
    let text = std::fs::read_to_string(&options.config)?;
    print!("{}", welcome::configuration(&options.config, &text));
    // A custom configuration may have no HTTPS listener.
    let has_tls = TcpListener::bind(ports.https()).is_err();
    let has_quic = UdpSocket::bind(ports.https()).is_err();
    let tls = welcome::Tls {
        authority: has_tls.then_some(&*certificates.authority),
        key_pin: has_quic.then_some(&*certificates.key_pin),
    };
    print!("{}", welcome::addresses(ports, &tls, options.load));
    let load = load::start(ports.http(), options.load)?;
    let ended = wait(&mut proxy);
    load.end();
    ended?;
    println!("\nstopping: waiting for open requests");
    // If this is not enough, dropping the process sends SIGTERM.
    let status = proxy.end(libc::SIGUSR1, DRAIN_PATIENCE);
    println!(
        "{}",
        status.map_or(
            "closing the connections that are still open".into(),
            |status| format!("spangate ended: {status}")
        )
    );
    Ok(())
}

/// Waits for Ctrl-C.
fn wait(proxy: &mut Process) -> Result<(), Failure> {
    while !sys::interrupted() {
        if let Some(status) = proxy.ended() {
            return Err(format!("spangate ended: {status}").into());
        }
        sys::pause(LOOK_EVERY);
    }
    Ok(())
}

fn parse(mut parser: lexopt::Parser) -> Result<Options, Failure> {
    let mut options = Options {
        config: PathBuf::from("examples/demo.cfg"),
        ports: Ports::default(),
        load: LOAD_DEFAULT,
        subject: None,
    };
    while let Some(arg) = parser.next()? {
        match arg {
            Arg::Long("config") => options.config = parser.value()?.into(),
            Arg::Long("port") => options.ports = Ports::from(&parser.value()?.to_string_lossy())?,
            Arg::Long("load") => {
                let text = parser.value()?;
                let load = text.to_string_lossy().parse().ok();
                let load = load.filter(|load| *load <= LOAD_MAX);
                options.load = load
                    .ok_or_else(|| format!("--load (LOAD=) must be a number up to {LOAD_MAX}"))?;
            }
            Arg::Long("subject") => options.subject = Some(parser.value()?.into()),
            other => return Err(other.unexpected().into()),
        }
    }
    Ok(options)
}
