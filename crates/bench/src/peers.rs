//! The compared proxies: how each is found, configured and started. One file per proxy, one table
//! of all.

mod caddy;
mod envoy;
pub mod haproxy;
mod nginx;
mod spangate;
mod traefik;

use std::fs::{self, File};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::Failure;
use crate::process::Process;

/// Most time until a proxy listens; under valgrind it is slow.
pub const START_PATIENCE: Duration = Duration::from_secs(30);

/// Every proxy that can be compared, the subject first.
pub const ALL: &[Peer] = &[
    spangate::PEER,
    haproxy::PEER,
    nginx::PEER,
    envoy::PEER,
    caddy::PEER,
    traefik::PEER,
];

/// A proxy: its name, the place of its program, and how it is started with a setting.
pub struct Peer {
    /// The name in tables and files.
    pub name: &'static str,
    /// It reads HAProxy's language.
    pub reads_haproxy: bool,
    /// It has the filter `opentelemetry`.
    pub traces: bool,
    /// Its language supports HTTP/2 to servers.
    #[cfg_attr(
        not(feature = "tls"),
        expect(dead_code, reason = "the command `h2` asks")
    )]
    pub http2_servers: bool,
    /// Its configuration has HTTP/3.
    #[cfg_attr(
        not(feature = "tls"),
        expect(dead_code, reason = "the command `h3` asks")
    )]
    pub http3: bool,
    /// It checks the health of servers actively.
    pub checks_servers: bool,
    /// It can send access logs to a UDP socket.
    pub logs: bool,
    /// How long it listens before it has its routes and certificates, milliseconds.
    settle_ms: u64,
    /// The version that its program reports.
    version: fn(&Path) -> String,
    /// Its program, if it is installed.
    find: fn() -> Option<PathBuf>,
    /// Writes its configuration into a folder and returns the command that serves it in the
    /// foreground.
    command: fn(&Path, &Setting, &Path) -> io::Result<Command>,
}

/// The task of a proxy; the same for all proxies of one comparison.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Its listening address.
    pub listen: SocketAddr,
    /// The address of the origin.
    pub origin: SocketAddr,
    /// Further origins of the same backend; requests alternate.
    pub more_origins: Vec<SocketAddr>,
    /// Only requests with this `Host` reach the origins; None: all do.
    pub host: Option<&'static str>,
    /// The UDP address for access logs; None: no logs.
    pub log: Option<SocketAddr>,
    /// The server is checked ten times per second; statistics of all kinds are counted and
    /// exported.
    pub watched: bool,
    /// The protocol of clients.
    pub listener: Listener,
    /// How it uses connections to the origin.
    pub servers: Servers,
    /// Threads or processes that serve; None: the proxy's default.
    pub workers: Option<u32>,
    /// Most client connections at a time.
    pub connections_max: u32,
    /// HAProxy refuses to start if it cannot open two files for each of them.
    pub strict_limits: bool,
    /// Lines of section `global` in HAProxy's language, for the proxies that read it.
    pub global: String,
    /// Lines of the frontend in HAProxy's language, for the proxies that read it.
    pub rules: String,
}

impl Setting {
    /// Plain HTTP/1 between `listen` and `origin`, with one worker, room for 1,000 connections, and
    /// nothing else.
    pub fn between(listen: SocketAddr, origin: SocketAddr) -> Self {
        Self {
            listen,
            origin,
            more_origins: Vec::new(),
            host: None,
            log: None,
            watched: false,
            listener: Listener::Http,
            servers: Servers::Kept,
            workers: Some(1),
            connections_max: 1000,
            strict_limits: false,
            global: String::new(),
            rules: String::new(),
        }
    }
}

impl Setting {
    /// All origins.
    pub fn origins(&self) -> impl Iterator<Item = SocketAddr> {
        std::iter::once(self.origin).chain(self.more_origins.iter().copied())
    }
}

/// The protocol that clients use.
#[cfg_attr(
    not(feature = "tls"),
    expect(dead_code, reason = "the commands of TLS make them")
)]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listener {
    /// HTTP/1.
    Http,
    /// HTTP/1 over TLS.
    Https(TlsFile),
    /// HTTP/2 over TLS, by ALPN.
    Http2(TlsFile),
    /// HTTP/2 with prior knowledge, without TLS.
    ClearHttp2,
    /// HTTP/3, and HTTP/2 over TLS on the same port.
    Http3(TlsFile),
}

/// A file with a certificate and its private key, in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFile(pub PathBuf);

impl std::fmt::Display for TlsFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.display().fmt(f)
    }
}

/// How a proxy uses connections to the origin.
#[cfg_attr(
    not(feature = "tls"),
    expect(dead_code, reason = "the commands of TLS make them")
)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Servers {
    /// HTTP/1, kept and shared by all clients.
    Kept,
    /// HTTP/1, with the proxy's default reuse.
    Default,
    /// HTTP/1, with a new connection for each request.
    Fresh,
    /// HTTP/2 with prior knowledge, without TLS.
    Http2,
}

/// A proxy of the table with its program.
#[derive(Clone)]
pub struct Installed {
    /// Its entry.
    pub peer: &'static Peer,
    /// Its program.
    pub program: PathBuf,
}

/// A running proxy that listens.
pub struct Running {
    /// The name in tables.
    pub name: &'static str,
    /// Its process, which ends when this is dropped.
    pub process: Process,
    /// Its listening address.
    pub listen: SocketAddr,
}

impl Running {
    /// The URL of `path`, without TLS.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.listen)
    }

    /// The URL of `path`, over TLS.
    #[cfg(feature = "tls")]
    pub fn https_url(&self, path: &str) -> String {
        format!("https://{}{path}", self.listen)
    }
}

/// The installed proxies, the subject first. `subject` names its program if it is not beside this
/// one.
///
/// # Errors
/// There is no subject.
pub fn installed(subject: Option<PathBuf>) -> Result<Vec<Installed>, Failure> {
    let (first, others) = ALL.split_first().ok_or("the table is empty")?;
    let program = subject
        .or_else(first.find)
        .ok_or("spangate is not built: run `cargo build --release` first")?;
    let mut found = vec![Installed {
        peer: first,
        program,
    }];
    found.extend(others.iter().filter_map(|peer| {
        Some(Installed {
            peer,
            program: (peer.find)()?,
        })
    }));
    Ok(found)
}

/// Like [`installed`]; `haproxy` names the HAProxy to compare with, if it is not the system's.
///
/// # Errors
/// There is no subject.
pub fn with_haproxy(
    subject: Option<PathBuf>,
    haproxy: Option<PathBuf>,
) -> Result<Vec<Installed>, Failure> {
    let mut programs = installed(subject)?;
    if let Some(program) = haproxy {
        programs.retain(|installed| installed.peer.name != haproxy::PEER.name);
        let named = Installed {
            peer: &haproxy::PEER,
            program,
        };
        programs.insert(1, named);
    }
    Ok(programs)
}

/// The subject, and the HAProxy that `haproxy` names.
///
/// # Errors
/// There is no subject.
#[cfg_attr(
    not(feature = "tls"),
    expect(dead_code, reason = "the commands `churn` and `faults` ask")
)]
pub fn subject_and_named(
    subject: Option<PathBuf>,
    haproxy: Option<PathBuf>,
) -> Result<Vec<Installed>, Failure> {
    let count = 1 + usize::from(haproxy.is_some());
    let mut programs = with_haproxy(subject, haproxy)?;
    programs.truncate(count);
    Ok(programs)
}

impl Installed {
    /// Its version, as the program reports it.
    pub fn version(&self) -> String {
        (self.peer.version)(&self.program)
    }

    /// Starts it in `dir` and waits until it listens. Its output goes to `dir/NAME.out`.
    ///
    /// # Errors
    /// It does not start; its output is part of the message.
    pub fn start(&self, setting: &Setting, dir: &Path) -> Result<Running, Failure> {
        let mut command = (self.peer.command)(&self.program, setting, dir)?;
        let (running, _) = start(self.peer.name, &mut command, setting.listen, dir)?;
        self.settle();
        Ok(running)
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "nothing tells when a proxy has its routes"
    )]
    fn settle(&self) {
        std::thread::sleep(Duration::from_millis(self.peer.settle_ms));
    }
}

/// Starts `command` and waits until it listens. Its output goes to `dir/NAME.out`. Returns also the
/// first connection to it.
///
/// # Errors
/// It does not start; its output is part of the message.
pub fn start(
    name: &'static str,
    command: &mut Command,
    listen: SocketAddr,
    dir: &Path,
) -> Result<(Running, TcpStream), Failure> {
    let output = dir.join(format!("{name}.out"));
    let file = File::create(&output)?;
    command.stdout(file.try_clone()?).stderr(file);
    let explain = |problem: &dyn std::fmt::Display| {
        let printed = fs::read_to_string(&output).unwrap_or_default();
        Failure::from(format!("{name}: {problem}\n{printed}"))
    };
    let mut process = Process::start(command).map_err(|problem| explain(&problem))?;
    let stream = process
        .connect(listen, START_PATIENCE)
        .map_err(|problem| explain(&problem))?;
    Ok((
        Running {
            name,
            process,
            listen,
        },
        stream,
    ))
}

/// A proxy is asked for HTTP/3, for which it has no configuration here.
fn no_http3() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "there is no HTTP/3 for it here")
}

/// The first line that `program` prints with `arguments`, or why there is none.
pub fn first_line(program: &Path, arguments: &[&str]) -> String {
    let printed = printed(program, arguments);
    let line = printed.lines().map(str::trim).find(|line| !line.is_empty());
    line.unwrap_or("unknown").to_owned()
}

/// The output of `program` with `arguments`, or why there is none.
fn printed(program: &Path, arguments: &[&str]) -> String {
    match Command::new(program).args(arguments).output() {
        Ok(output) => {
            String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
        }
        Err(error) => format!("{}: {error}", program.display()),
    }
}

/// A loopback address with a port that is currently free.
///
/// # Errors
/// There is none.
pub fn free_address() -> io::Result<SocketAddr> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()
}

/// `template` with each `{{name}}` replaced.
pub fn fill(template: &str, values: &[(&str, &dyn std::fmt::Display)]) -> String {
    values
        .iter()
        .fold(template.to_owned(), |text, (name, value)| {
            text.replace(&format!("{{{{{name}}}}}"), &value.to_string())
        })
}

/// `program` in the folders of `PATH` and in the system's folders for daemons.
pub fn on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from))
        .map(|dir| dir.join(program))
        .find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_template_is_filled_whole() {
        let listen = free_address().unwrap();
        let pem = TlsFile(PathBuf::from("server.pem"));
        let plain = Setting::between(listen, listen);
        let settings = [
            plain.clone(),
            Setting {
                log: Some(listen),
                workers: None,
                strict_limits: true,
                ..plain.clone()
            },
            Setting {
                listener: Listener::Https(pem.clone()),
                servers: Servers::Fresh,
                ..plain.clone()
            },
            Setting {
                listener: Listener::Http2(pem.clone()),
                servers: Servers::Default,
                ..plain.clone()
            },
            Setting {
                listener: Listener::Http3(pem),
                ..plain.clone()
            },
            Setting {
                listener: Listener::ClearHttp2,
                servers: Servers::Http2,
                ..plain.clone()
            },
            Setting {
                more_origins: vec![([127, 0, 0, 2], 81).into()],
                host: Some("bench.test"),
                ..plain
            },
        ];
        let program = PathBuf::from("proxy");
        for (setting, peer) in settings
            .iter()
            .flat_map(|s| ALL.iter().map(move |p| (s, p)))
        {
            if setting.servers == Servers::Http2 && !peer.http2_servers {
                continue;
            }
            if matches!(setting.listener, Listener::Http3(_)) && !peer.http3 {
                continue;
            }
            let dir = crate::workdir::Workdir::new("peers-test").unwrap();
            (peer.command)(&program, setting, dir.path()).unwrap();
            let mut all = String::new();
            for file in fs::read_dir(dir.path()).unwrap().flatten() {
                let text = fs::read_to_string(file.path()).unwrap();
                let whole = !text.contains("{{") && text.contains(&listen.to_string());
                assert!(whole, "{}: {text}", peer.name);
                all += &text;
            }
            let tls = matches!(
                setting.listener,
                Listener::Https(_) | Listener::Http2(_) | Listener::Http3(_)
            );
            assert_eq!(all.contains("server.pem"), tls, "{}: {all}", peer.name);
            let routes = setting.host.is_some();
            for word in ["bench.test", "127.0.0.2"] {
                assert_eq!(all.contains(word), routes, "{}: {all}", peer.name);
            }
        }
    }
}
