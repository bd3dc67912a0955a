//! The program under a service manager: a unit like those of distributions for HAProxy starts,
//! reloads and stops it, and requests are answered during the whole time.

use crate::common;

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use common::{
    DEADLINE, Folder, Port, Running, address, eventually, join, listener, spawn, sys, uninterrupted,
};

/// A unit in systemd's format: `@DIR@` is a folder, `@PROGRAM@` the program.
const UNIT: &str = r#"
[Service]
EnvironmentFile=-@DIR@/missing
EnvironmentFile=-@DIR@/default
Environment="CONFIG=@DIR@/proxy.cfg" "PIDFILE=@DIR@/proxy.pid" "EXTRAOPTS=-S @DIR@/nobody.sock"
ExecStart=@PROGRAM@ -Ws -f $CONFIG -p $PIDFILE $EXTRAOPTS
ExecReload=@PROGRAM@ -Ws -f $CONFIG -c -q $EXTRAOPTS
ExecReload=/bin/kill -USR2 $MAINPID
KillMode=mixed
SuccessExitStatus=143
Type=notify
"#;

/// The parsed unit.
struct Unit {
    /// The settings in order.
    settings: Vec<(String, String)>,
    environment: HashMap<String, String>,
}

impl Unit {
    fn read(folder: &Folder, text: &str) -> Unit {
        let dir = folder.root().display().to_string();
        let text = text
            .replace("@DIR@", &dir)
            .replace("@PROGRAM@", env!("CARGO_BIN_EXE_spangate"));
        let settings: Vec<(String, String)> = text
            .lines()
            .filter_map(|line| line.split_once('='))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        let mut unit = Unit {
            settings,
            environment: HashMap::new(),
        };
        let quoted = |text: &str| -> Vec<String> {
            let words = text.split('"').skip(1).step_by(2);
            words.map(str::to_owned).collect()
        };
        let mut assignments: Vec<String> = unit.all("Environment").flat_map(quoted).collect();
        // Settings in files win.
        for path in unit.all("EnvironmentFile") {
            let file = std::fs::read_to_string(path.trim_start_matches('-')).unwrap_or_default();
            let lines = file.lines().filter(|line| !line.starts_with('#'));
            assignments.extend(lines.map(|line| line.replace('"', "")));
        }
        for assignment in assignments {
            if let Some((name, value)) = assignment.split_once('=') {
                unit.environment.insert(name.to_owned(), value.to_owned());
            }
        }
        unit
    }

    fn all<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> {
        let name = name.to_owned();
        let settings = self.settings.iter();
        settings
            .filter(move |(known, _)| *known == name)
            .map(|(_, value)| value.as_str())
    }

    fn one(&self, name: &str) -> &str {
        self.all(name).next().expect(name)
    }

    /// A command line. A variable that is a word of its own becomes as many words as its value has.
    fn command(&self, line: &str, main_pid: &str) -> Command {
        let mut words: Vec<String> = Vec::new();
        for word in line.split_whitespace() {
            match word.strip_prefix('$') {
                Some("MAINPID") => words.push(main_pid.to_owned()),
                Some(name) => {
                    let value = self.environment.get(name).expect(name);
                    words.extend(value.split_whitespace().map(str::to_owned));
                }
                None => words.push(word.to_owned()),
            }
        }
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).stdin(Stdio::null());
        command
    }
}

/// A manager that runs a unit, like systemd with `Type=notify` and `KillMode=mixed`.
struct Manager {
    unit: Unit,
    socket: UnixDatagram,
    main: Child,
}

impl Drop for Manager {
    fn drop(&mut self) {
        let _ = self.main.kill();
        let _ = self.main.wait();
    }
}

impl Manager {
    /// Starts the unit and waits until it is ready. `activated`: the listening sockets, from
    /// descriptor 3 on.
    fn start(folder: &Folder, unit: Unit, activated: &[&std::net::TcpListener]) -> Manager {
        let path = folder.path("notify.sock");
        let socket = UnixDatagram::bind(&path).expect("a socket");
        socket.set_read_timeout(Some(DEADLINE)).expect("a deadline");
        assert_eq!(unit.one("Type"), "notify");
        assert_eq!(unit.one("KillMode"), "mixed");
        let mut command = unit.command(unit.one("ExecStart"), "");
        command.env("NOTIFY_SOCKET", &path).stderr(Stdio::null());
        command.env("LISTEN_FDS", activated.len().to_string());
        let fds = activated.iter().map(|listener| listener.as_raw_fd());
        sys::inherit_from_3(&mut command, fds.collect());
        let main = command.spawn().expect("the program starts");
        let manager = Manager { unit, socket, main };
        manager.is_told("READY=1");
        manager
    }

    /// The next message contains this line.
    fn is_told(&self, wanted: &str) -> String {
        let mut message = [0; 512];
        let received = uninterrupted(|| self.socket.recv(&mut message)).expect("a message");
        let text = String::from_utf8_lossy(&message[..received]).into_owned();
        assert!(text.lines().any(|line| line == wanted), "{wanted}: {text}");
        text
    }

    /// Runs the commands of a reload, up to the first one that fails. Returns whether all
    /// succeeded.
    fn reload(&self) -> bool {
        let main_pid = self.main.id().to_string();
        let mut lines = self.unit.all("ExecReload");
        lines.all(|line| {
            let mut command = self.unit.command(line, &main_pid);
            let status = command.stderr(Stdio::null()).status().expect("it runs");
            status.success()
        })
    }

    /// A complete reload.
    fn reload_and_wait(&self) {
        assert!(self.reload(), "the commands of a reload");
        let reloading = self.is_told("RELOADING=1");
        assert!(reloading.contains("\nMONOTONIC_USEC="), "{reloading}");
        self.is_told("READY=1");
    }

    fn workers(&self) -> Vec<u32> {
        let children = format!("/proc/{0}/task/{0}/children", self.main.id());
        let children = std::fs::read_to_string(children).expect("children");
        let pids = children.split_whitespace();
        pids.map(|pid| pid.parse().expect("a number")).collect()
    }

    /// Ends the main process. Returns its status. Remaining workers would be killed.
    fn stop(&mut self) -> ExitStatus {
        let workers = self.workers();
        assert!(sys::signal(self.main.id(), libc::SIGTERM));
        let status = eventually("the main process ends", || {
            self.main.try_wait().expect("a child")
        });
        for worker in workers {
            assert!(!sys::signal(worker, 0), "{worker} is left");
        }
        status
    }

    /// Whether a status counts as success for the unit.
    fn is_success(&self, status: ExitStatus) -> bool {
        let also: i32 = self.unit.one("SuccessExitStatus").parse().expect("a code");
        status.success() || status.code() == Some(also)
    }
}

/// Clients that send requests all the time.
struct Clients {
    stop: Arc<AtomicBool>,
    answers: Arc<AtomicU32>,
    threads: Vec<std::sync::mpsc::Receiver<Result<(), String>>>,
}

impl Clients {
    /// Half of them use one connection each, the others one connection per request.
    fn start(port: u16) -> Clients {
        let stop = Arc::new(AtomicBool::new(false));
        let answers = Arc::new(AtomicU32::new(0));
        let threads = [false, true, false, true].map(|keeps| {
            let (stop, answers) = (Arc::clone(&stop), Arc::clone(&answers));
            spawn(move || {
                let mut client: Option<common::http::Client> = None;
                while !stop.load(Ordering::Relaxed) {
                    ask(port, keeps, &mut client)?;
                    answers.fetch_add(1, Ordering::Relaxed);
                }
                Ok(())
            })
        });
        Clients {
            stop,
            answers,
            threads: threads.into(),
        }
    }

    /// Waits until more requests were answered.
    fn go_on(&self) {
        let before = self.answers.load(Ordering::Relaxed);
        eventually("more answers", || {
            (self.answers.load(Ordering::Relaxed) > before + 20).then_some(())
        });
    }

    fn end(self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads {
            join(&thread, "a client").expect("every request is answered");
        }
    }
}

/// One request. A kept connection that closes instead of answering is opened again once: it was
/// idle (RFC 9112 §9.3.1).
fn ask(port: u16, keeps: bool, kept: &mut Option<common::http::Client>) -> Result<(), String> {
    let connection = if keeps { "keep-alive" } else { "close" };
    let request = format!("GET / HTTP/1.1\r\nhost: t\r\nconnection: {connection}\r\n\r\n");
    let was_kept = kept.is_some();
    let mut client = match kept.take() {
        Some(client) => client,
        None => {
            let stream = TcpStream::connect(("127.0.0.1", port));
            common::http::Client::on(stream.map_err(|error| format!("connect: {error}"))?)
        }
    };
    let sent = client.reader.wire.write_all(request.as_bytes());
    let response = client.response().filter(|_| sent.is_ok());
    match response {
        Some(response) if response.status == 200 => {
            *kept = (keeps && response.field("connection") != Some("close")).then_some(client);
            Ok(())
        }
        None if was_kept => ask(port, false, &mut None),
        other => Err(format!("{:?}", other.map(|response| response.status))),
    }
}

/// A configuration whose responses have this body.
fn configuration(bind: &str, global: &str, body: &str) -> String {
    format!(
        "global\n nbthread 2\n{global}defaults\n mode http\n timeout client 5s\n timeout server 5s\n timeout connect 1s\n\
         frontend f\n bind {bind}\n http-request return status 200 content-type text/plain string {body}\n"
    )
}

fn body(port: u16) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(DEADLINE)).ok()?;
    let request = b"GET / HTTP/1.1\r\nhost: t\r\nconnection: close\r\n\r\n";
    stream.write_all(request).ok()?;
    let mut text = String::new();
    uninterrupted(|| stream.read_to_string(&mut text)).ok()?;
    text.split_once("\r\n\r\n").map(|(_, body)| body.to_owned())
}

/// Waits until responses have this body: the previous worker still accepts for a moment.
fn served(port: u16, text: &str) {
    eventually(text, || body(port).filter(|got| got == text));
}

#[test]
fn a_unit_starts_reloads_and_stops_it() {
    let (folder, port) = (Folder::new(), Port::reserve());
    let number = port.number;
    let write = |text: &str| {
        let bind = format!("127.0.0.1:{number}");
        folder.write("proxy.cfg", configuration(&bind, "", text));
    };
    // The file of defaults replaces a variable of the unit, as on Debian.
    let master = folder.path("master.sock");
    folder.write(
        "default",
        format!("# options\nEXTRAOPTS=\"-S {}\"\n", master.display()),
    );
    write("one");
    let unit = Unit::read(&folder, UNIT);
    let mut manager = Manager::start(&folder, unit, &[]);
    let pid = std::fs::read_to_string(folder.path("proxy.pid")).expect("a pidfile");
    assert_eq!(pid.trim(), manager.main.id().to_string());
    assert!(!folder.path("nobody.sock").exists());
    assert_eq!(body(number).as_deref(), Some("one"));
    let mut stream = UnixStream::connect(&master).expect("the master's socket");
    stream.write_all(b"show proc\n").expect("sent");

    let clients = Clients::start(number);
    for text in ["two", "three", "four"] {
        clients.go_on();
        write(text);
        manager.reload_and_wait();
        served(number, text);
    }
    // The first command finds the fault, and the second one does not run.
    folder.write("proxy.cfg", "frontend f\n nonsense\n");
    assert!(!manager.reload());
    clients.go_on();
    clients.end();
    assert_eq!(body(number).as_deref(), Some("four"));
    let status = manager.stop();
    assert!(manager.is_success(status), "{status:?}");
    assert_eq!(body(number), None);
}

#[test]
fn a_socket_unit_s_listeners_stay_over_a_reload() {
    let (folder, activated) = (Folder::new(), listener());
    let port = address(&activated).port();
    let write = |text: &str| {
        folder.write("proxy.cfg", configuration("fd@3", "", text));
    };
    write("one");
    let unit = Unit::read(&folder, UNIT);
    let mut manager = Manager::start(&folder, unit, &[&activated]);
    let clients = Clients::start(port);
    for text in ["two", "three"] {
        clients.go_on();
        write(text);
        manager.reload_and_wait();
        served(port, text);
    }
    clients.go_on();
    clients.end();
    let status = manager.stop();
    assert!(manager.is_success(status), "{status:?}");
}

/// A process that replaces itself without a master: `-x` takes over the listening sockets, `-sf`
/// ends the previous process.
#[test]
fn a_process_takes_the_place_of_another() {
    let (folder, port) = (Folder::new(), Port::reserve());
    let control = folder.path("control.sock");
    let start = |text: &str, old: Option<(u32, &PathBuf)>| {
        let global = format!(
            " stats socket {} level admin expose-fd listeners\n",
            control.display()
        );
        let bind = format!("127.0.0.1:{}", port.number);
        let file = folder.write("proxy.cfg", configuration(&bind, &global, text));
        let mut command = Command::new(env!("CARGO_BIN_EXE_spangate"));
        command.args(["-db", "-f", &file]).stdin(Stdio::null());
        if let Some((pid, socket)) = old {
            command
                .arg("-x")
                .arg(socket)
                .args(["-sf", &pid.to_string()]);
        }
        Running::start(command)
    };
    let mut running = start("one", None);
    served(port.number, "one");
    let clients = Clients::start(port.number);
    for text in ["two", "three"] {
        clients.go_on();
        let next = start(text, Some((running.pid(), &control)));
        let before = std::mem::replace(&mut running, next);
        let ended = before.end();
        assert!(ended.status.success(), "{}", ended.stderr);
        served(port.number, text);
    }
    clients.go_on();
    clients.end();
}

/// The lines that distinguish a worker from the others.
fn master_with(folder: &Folder, port: u16, global: &str) -> Manager {
    let bind = format!("127.0.0.1:{port}");
    folder.write("proxy.cfg", configuration(&bind, global, "one"));
    Manager::start(folder, Unit::read(folder, UNIT), &[])
}

/// A client in the middle of its second request.
fn half_asked(port: u16) -> TcpStream {
    let mut client = TcpStream::connect(("127.0.0.1", port)).expect("a connection");
    client.set_read_timeout(Some(DEADLINE)).expect("a deadline");
    let requests = b"GET / HTTP/1.1\r\nhost: t\r\n\r\nGET / HT";
    client.write_all(requests).expect("sent");
    let mut head = [0; 12];
    client
        .read_exact(&mut head)
        .expect("an answer to the first");
    client
}

#[test]
fn a_worker_that_outlives_its_reloads_is_ended() {
    let (folder, port) = (Folder::new(), Port::reserve());
    let manager = master_with(&folder, port.number, " mworker-max-reloads 1\n");
    let first = manager.workers();
    // A client in the middle of a request keeps the worker alive.
    let _busy = half_asked(port.number);
    manager.reload_and_wait();
    assert!(manager.workers().contains(&first[0]), "once is allowed");
    manager.reload_and_wait();
    eventually("the first worker is ended", || {
        (!manager.workers().contains(&first[0])).then_some(())
    });
    assert_eq!(body(port.number).as_deref(), Some("one"));
}

#[test]
fn a_master_may_survive_its_worker() {
    let (folder, port) = (Folder::new(), Port::reserve());
    let global = " master-worker no-exit-on-failure\n";
    let mut manager = master_with(&folder, port.number, global);
    let first = manager.workers()[0];
    let busy = half_asked(port.number);
    manager.reload_and_wait();
    let second = manager.workers().into_iter().find(|pid| *pid != first);
    assert!(sys::signal(second.expect("a worker"), libc::SIGKILL));
    eventually("the second worker is gone", || {
        (manager.workers() == [first]).then_some(())
    });
    manager.reload_and_wait();
    assert_eq!(body(port.number).as_deref(), Some("one"));
    assert!(manager.main.try_wait().expect("a child").is_none());
    // The master ends with the code of the worker that died, after the last worker has ended.
    drop(busy);
    assert!(sys::signal(manager.main.id(), libc::SIGUSR1));
    let status = eventually("the master ends", || {
        manager.main.try_wait().expect("a child")
    });
    assert_eq!(status.code(), Some(0), "a stop that was asked for");
}
