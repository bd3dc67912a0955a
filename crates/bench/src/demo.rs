//! `demo`: Spangate before two small origins, with a configuration to read and change.

mod page;

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use lexopt::Arg;

use crate::Failure;
use crate::certs::Certificates;
use crate::client;
use crate::origin;
use crate::peers::{self, START_PATIENCE};
use crate::process::Process;
use crate::sys;
use crate::workdir::Workdir;
use page::Page;

/// The options.
pub const HELP: &str = "[OPTIONS]: two demo origins with Spangate before them, until Ctrl-C
--config FILE      the configuration (examples/demo.cfg)
--listen ADDR      where that configuration listens (127.0.0.1:8080)
--listen-tls ADDR  where it listens for HTTPS (127.0.0.1:8443)
--subject PATH     the Spangate to start (beside this program)";

/// The origins: the name each shows and the variable that carries its address into the configuration.
const ORIGINS: &[(&str, &str)] = &[("A", "SPANGATE_ORIGIN_A"), ("B", "SPANGATE_ORIGIN_B")];
/// The variable that carries the file with the certificate and its key into the configuration.
const CERTIFICATE: &str = "SPANGATE_DEMO_CERTIFICATE";
/// How long open connections may last after Ctrl-C.
const DRAIN_PATIENCE: Duration = Duration::from_secs(2);
/// How often it is looked whether Spangate still lives.
const LOOK_EVERY: Duration = Duration::from_millis(200);

struct Options {
    config: PathBuf,
    listen: SocketAddr,
    listen_tls: SocketAddr,
    subject: Option<PathBuf>,
}

/// Runs the command.
///
/// # Errors
/// When an option is not understood, or Spangate does not start, or ends by itself.
pub fn run(parser: lexopt::Parser) -> Result<(), Failure> {
    let options = parse(parser)?;
    let program = peers::installed(options.subject.clone())?
        .swap_remove(0)
        .program;
    for address in [options.listen, options.listen_tls] {
        TcpListener::bind(address).map_err(|error| format!("{address}: {error}"))?;
    }
    let workdir = Workdir::new("demo")?;
    let certificates = Certificates::write(workdir.path())?;
    let mut command = Command::new(program);
    command.arg("-db").arg("-f").arg(&options.config);
    command.env(CERTIFICATE, &certificates.server);
    for &(name, variable) in ORIGINS {
        command.env(
            variable,
            origin::start_here(1, Page::new(name))?.address.to_string(),
        );
    }
    let mut proxy = Process::start(&mut command)?;
    client::get(&mut proxy.connect(options.listen, START_PATIENCE)?, "/")
        .map_err(|error| format!("no answer: {error}"))?;
    print!("{}", welcome(&options));
    // A configuration of one's own may do without. A connection that says nothing would stand in the log.
    if TcpListener::bind(options.listen_tls).is_err() {
        print!("{}", welcome_tls(&options, &certificates.authority));
    }
    println!("\nThe access log follows. Ctrl-C stops everything.");
    while !sys::interrupted() {
        if let Some(status) = proxy.ended() {
            return Err(format!("spangate ended: {status}").into());
        }
        sys::pause(LOOK_EVERY);
    }
    println!("\nstopping: open requests may finish");
    // Dropping the process sends SIGTERM if this was not enough.
    let status = proxy.end(libc::SIGUSR1, DRAIN_PATIENCE);
    println!(
        "{}",
        status.map_or(
            "connections are still open: closing them".into(),
            |status| format!("spangate ended: {status}")
        )
    );
    Ok(())
}

fn parse(mut parser: lexopt::Parser) -> Result<Options, Failure> {
    let mut options = Options {
        config: PathBuf::from("examples/demo.cfg"),
        listen: SocketAddr::from(([127, 0, 0, 1], 8080)),
        listen_tls: SocketAddr::from(([127, 0, 0, 1], 8443)),
        subject: None,
    };
    while let Some(arg) = parser.next()? {
        match arg {
            Arg::Long("config") => options.config = parser.value()?.into(),
            Arg::Long("listen") => options.listen = parser.value()?.to_string_lossy().parse()?,
            Arg::Long("listen-tls") => {
                options.listen_tls = parser.value()?.to_string_lossy().parse()?;
            }
            Arg::Long("subject") => options.subject = Some(parser.value()?.into()),
            other => return Err(other.unexpected().into()),
        }
    }
    Ok(options)
}

fn welcome(options: &Options) -> String {
    let url = format!("http://{}", options.listen);
    format!(
        "
Spangate serves {config} on {url}

  {url}/          both origins in turn
  {url}/a/hello   origin A only
  {url}/b/hello   origin B only

  curl -i {url}/
  for i in 1 2 3 4; do curl -s {url}/text; done
  curl -i {url}/a/hello -H 'X-Forwarded-For: 192.0.2.7'
  curl -i {url}/b/hello -d 'a body'
  curl -i -H 'Bad Header: x' {url}/
",
        config = options.config.display(),
    )
}

fn welcome_tls(options: &Options, authority: &Path) -> String {
    let port = options.listen_tls.port();
    let authority = authority.display();
    format!(
        "
The same over TLS, with a certificate of an authority that this demo made for itself: {authority}

  curl --cacert {authority} https://localhost:{port}/
"
    )
}
