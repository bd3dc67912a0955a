//! Shared parts of the program's tests: the program as a child, scripted origins and clients.
//! Nothing here sleeps: every wait is for an event, with a deadline.
#![allow(dead_code, reason = "each test program uses a part")]

pub mod cli;
pub mod collector;
pub mod dns;
pub mod grpc;
pub mod h2;
pub mod http;
pub mod origin;
pub mod otlp;
pub mod sys;
pub mod tls;

use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use http::Client;

/// A body of this many bytes that reveals lost or duplicated bytes.
pub fn pattern(bytes: u32) -> Vec<u8> {
    (0..bytes).map(|at| (at * 31 % 251) as u8).collect()
}

/// Most time for any wait. Test machines are sometimes slow; a passing test never waits that long.
pub const DEADLINE: Duration = Duration::from_secs(40);

/// Reports that a test is skipped; `make test` counts the lines of the file that SPANGATE_SKIPPED
/// names.
#[expect(clippy::print_stderr, reason = "a test that is skipped says why")]
pub fn skipped(why: &str) {
    eprintln!("skipped: {why}");
    if let Some(path) = std::env::var_os("SPANGATE_SKIPPED") {
        let mut file = fs::OpenOptions::new()
            .append(true)
            .open(path)
            .expect("the list of what is skipped");
        writeln!(file, "{why}").expect("a line");
    }
}

/// A folder that is removed with this value.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Folder {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("spangate-test-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).expect("a folder");
        Folder(path)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Writes a file. Returns its path as text.
    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(&path, text).expect("a file");
        path.display().to_string()
    }

    pub fn root(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A listener on a free port.
pub fn listener() -> TcpListener {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port")
}

/// The next connection to a listener.
pub fn accept(listener: &TcpListener, what: &str) -> TcpStream {
    let listener = listener.try_clone().expect("a descriptor");
    let accepted = join(&spawn(move || listener.accept()), what);
    accepted.expect(what).0
}

pub fn address(listener: &TcpListener) -> SocketAddr {
    listener.local_addr().expect("an address")
}

/// A reserved port, on which the program may listen; no other process gets it.
pub struct Port {
    pub number: u16,
    _held: TcpListener,
}

impl Port {
    pub fn reserve() -> Port {
        let held = TcpListener::from(sys::reserve_port().expect("a free port"));
        Port {
            number: address(&held).port(),
            _held: held,
        }
    }
}

pub fn spawn<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Receiver<T> {
    let (sender, receiver) = mpsc::channel();
    let work = move || {
        let _ = sender.send(work());
    };
    let builder = std::thread::Builder::new().name("test".into());
    builder.spawn(work).expect("a thread");
    receiver
}

/// Yields the processors to the process that is waited for; polling without a pause would slow it
/// down.
pub fn before_the_next_look() {
    std::thread::park_timeout(Duration::from_millis(2));
}

/// Polls until there is an answer.
pub fn eventually<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let deadline = now() + DEADLINE;
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(now() < deadline, "{what}: not within {DEADLINE:?}");
        before_the_next_look();
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a deadline of a test is real time"
)]
pub fn now() -> Instant {
    Instant::now()
}

/// Reads with a deadline, and continues after signals. Even a signal that the process ignores, as
/// for ended children, interrupts a read (signal(7)).
pub fn uninterrupted<T>(mut read: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match read() {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

/// The result of a thread started with [`spawn`].
pub fn join<T>(receiver: &Receiver<T>, what: &str) -> T {
    let result = receiver.recv_timeout(DEADLINE);
    result.unwrap_or_else(|error| panic!("{what}: {error}"))
}

/// The result of a run of the program with arguments.
pub struct Output {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

/// Runs the program to its end.
pub fn run(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spangate"));
    command.args(arguments).stdin(Stdio::null());
    Running::start(command).end()
}

/// The running program; it is killed when this value is dropped.
pub struct Running {
    child: Child,
    stdout: Receiver<String>,
    stderr: Receiver<String>,
    ended: bool,
}

fn read_all(mut from: impl Read + Send + 'static) -> Receiver<String> {
    spawn(move || {
        let mut bytes = Vec::new();
        let _ = from.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

impl Running {
    pub fn start(mut command: Command) -> Running {
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        Running {
            stdout: read_all(child.stdout.take().expect("piped")),
            stderr: read_all(child.stderr.take().expect("piped")),
            child,
            ended: false,
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: i32) {
        assert!(sys::signal(self.pid(), signal), "the program is gone");
    }

    /// Waits for the end, which closes its outputs.
    pub fn end(mut self) -> Output {
        let stdout = join(&self.stdout, "the program ends");
        let stderr = join(&self.stderr, "the program ends");
        let status = self.child.wait().expect("its status");
        self.ended = true;
        Output {
            status,
            stdout,
            stderr,
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.ended {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// The program, serving a configuration.
pub struct Proxy {
    pub running: Running,
    pub folder: Folder,
}

impl Proxy {
    /// Starts the program and waits until it serves. Each listener is inherited; `${NAME}` in the
    /// configuration is its descriptor.
    pub fn start(config: &str, listeners: &[(&str, &TcpListener)]) -> Proxy {
        Proxy::start_in(Folder::new(), config, listeners)
    }

    pub fn start_in(folder: Folder, config: &str, listeners: &[(&str, &TcpListener)]) -> Proxy {
        Proxy::start_with(folder, config, listeners, &[])
    }

    pub fn start_with(
        folder: Folder,
        config: &str,
        listeners: &[(&str, &TcpListener)],
        arguments: &[&str],
    ) -> Proxy {
        let program = Path::new(env!("CARGO_BIN_EXE_spangate"));
        Proxy::start_program(program, folder, config, listeners, arguments)
    }

    /// Starts any program that accepts HAProxy's arguments.
    pub fn start_program(
        program: &Path,
        folder: Folder,
        config: &str,
        listeners: &[(&str, &TcpListener)],
        arguments: &[&str],
    ) -> Proxy {
        Proxy::start_command(Command::new(program), folder, config, listeners, arguments)
    }

    /// Starts a command, which may have an environment of its own.
    pub fn start_command(
        mut command: Command,
        folder: Folder,
        config: &str,
        listeners: &[(&str, &TcpListener)],
        arguments: &[&str],
    ) -> Proxy {
        const READY: &str = "
frontend ready
    mode http
    no log
    timeout client 20s
    bind \"fd@${READY}\"
    http-request return status 200
";
        let ready = listener();
        let file = folder.write("spangate.cfg", format!("{config}\n{READY}"));
        command
            .args(["-db", "-f", &file])
            .args(arguments)
            .stdin(Stdio::null());
        let all = listeners.iter().copied().chain([("READY", &ready)]);
        let mut fds = Vec::new();
        for (name, listener) in all {
            command.env(name, listener.as_raw_fd().to_string());
            fds.push(listener.as_raw_fd());
        }
        sys::inherit(&mut command, fds);
        let mut running = Running::start(command);
        let at = address(&ready);
        // Now only the child holds it: if the child dies, the connection ends.
        drop(ready);
        if !serves(at) {
            let _ = running.child.kill();
            panic!(
                "the program does not serve:\n{}",
                join(&running.stderr, "its errors")
            );
        }
        Proxy { running, folder }
    }

    /// Ends it at once. Returns its standard output.
    pub fn stop(self) -> String {
        self.running.signal(libc::SIGTERM);
        let output = self.running.end();
        assert!(
            output.status.success(),
            "{:?}: {}",
            output.status,
            output.stderr
        );
        output.stdout
    }
}

/// Whether a request is answered. The connection is closed afterwards, because a test may count its
/// own.
fn serves(at: SocketAddr) -> bool {
    let Ok(stream) = TcpStream::connect(at) else {
        return false;
    };
    let mut client = Client::on(stream);
    let request = b"GET / HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n";
    let asked = client.reader.wire.write_all(request).is_ok();
    let answer = client.response().filter(|_| asked);
    answer.is_some_and(|answer| answer.status == 200) && client.is_closed()
}

/// Settings at the beginning of most configurations.
pub const DEFAULTS: &str = "
global
    nbthread 1
defaults
    mode http
    timeout client 40s
    timeout server 40s
    timeout connect 40s
";
