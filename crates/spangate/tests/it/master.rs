//! Master-worker mode with the real program: the manager gets notifications, a reload changes the
//! served configuration and loses nothing when it fails, and master and worker end together.

use crate::common;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::time::Duration;

use common::http::Client;
use common::{
    DEADLINE, Folder, Port, address, eventually, join, listener, now, spawn, uninterrupted,
};

/// A running master, which ends with the test.
struct Master {
    child: Child,
}

impl Drop for Master {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Master {
    fn start(dir: &Folder, option: &str, manager: Option<&Path>) -> Self {
        Master::start_with(dir, &[option], manager)
    }

    fn start_with(dir: &Folder, options: &[&str], manager: Option<&Path>) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_spangate"));
        command.args(options).arg("-f").arg(dir.path("cfg"));
        command.arg("-p").arg(dir.path("pid"));
        command.stdin(Stdio::null()).stderr(Stdio::null());
        Master::of(command, manager)
    }

    fn of(mut command: Command, manager: Option<&Path>) -> Self {
        match manager {
            Some(path) => command.env("NOTIFY_SOCKET", path),
            None => command.env_remove("NOTIFY_SOCKET"),
        };
        Master {
            child: command.spawn().expect("the program starts"),
        }
    }

    /// A master that notifies a manager.
    fn managed(dir: &Folder) -> (Self, UnixDatagram) {
        let path = dir.path("notify");
        let manager = UnixDatagram::bind(&path).expect("a manager's socket");
        manager
            .set_read_timeout(Some(DEADLINE))
            .expect("a deadline");
        (Master::start(dir, "-Ws", Some(&path)), manager)
    }

    fn signal(&self, name: &str) {
        signal(name, &self.child.id().to_string());
    }

    fn end(&mut self) -> ExitStatus {
        eventually("the master ends", || {
            self.child.try_wait().expect("a child")
        })
    }
}

/// Waits for the next message to the manager, which must contain this.
fn told(manager: &UnixDatagram, what: &str) {
    let mut message = [0; 512];
    let len = uninterrupted(|| manager.recv(&mut message)).expect("the manager is told");
    let text = String::from_utf8_lossy(&message[..len]).into_owned();
    assert!(text.contains(what), "{what}: {text}");
}

fn signal(name: &str, pid: &str) {
    let status = Command::new("kill")
        .arg(format!("-{name}"))
        .arg(pid)
        .status();
    assert!(status.expect("kill runs").success());
}

fn configure(dir: &Folder, port: u16, rule: &str) {
    let text = format!(
        "global\n    nbthread 1\ndefaults\n    mode http\n    timeout client 5s\n    timeout server 5s\n    \
         timeout connect 1s\nfrontend f\n    bind 127.0.0.1:{port}\n    {rule}\n"
    );
    dir.write("cfg", text);
}

fn answer(text: &str) -> String {
    format!("http-request return status 200 content-type text/plain string {text}")
}

/// The body of one response; None while there is no answer.
fn get(port: u16) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(DEADLINE)).ok()?;
    let request = b"GET / HTTP/1.1\r\nhost: t\r\nconnection: close\r\n\r\n";
    stream.write_all(request).ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    text.split_once("\r\n\r\n").map(|(_, body)| body.to_owned())
}

fn served(port: u16, body: &str) {
    eventually(body, || get(port).filter(|got| got == body));
}

#[test]
fn a_reload_changes_what_is_served_and_a_bad_one_nothing() {
    let (dir, reserved) = (Folder::new(), Port::reserve());
    let port = reserved.number;
    configure(&dir, port, &answer("one"));
    let (mut master, manager) = Master::managed(&dir);
    let told = |what: &str| told(&manager, what);
    told("READY=1");
    let pid = std::fs::read_to_string(dir.path("pid")).expect("a pidfile");
    assert_eq!(pid.trim(), master.child.id().to_string());
    served(port, "one");

    configure(&dir, port, &answer("two"));
    master.signal("USR2");
    told("RELOADING=1");
    told("READY=1");
    served(port, "two");

    configure(&dir, port, "no such keyword");
    master.signal("USR2");
    told("RELOADING=1");
    told("Reload failed!");
    served(port, "two");

    master.signal("INT");
    told("STOPPING=1");
    assert_eq!(master.end().code(), Some(130));
    assert_eq!(get(port), None);
}

#[test]
fn the_dashboard_goes_on_over_a_reload() {
    let (dir, reserved, board) = (Folder::new(), Port::reserve(), Port::reserve());
    let board = board.number;
    let section = format!("dashboard\n bind 127.0.0.1:{board}\n");
    configure(
        &dir,
        reserved.number,
        &format!("{}\n{section}", answer("one")),
    );
    let (master, manager) = Master::managed(&dir);
    told(&manager, "READY=1");
    let connect = || Client::connect(([127, 0, 0, 1], board).into());
    // The process that takes a connection answers it.
    let pid = |client: &mut Client| {
        client.send("GET /api/now HTTP/1.1\r\nhost: localhost\r\n\r\n");
        let answer = client.response().expect("an answer");
        let now: serde_json::Value = serde_json::from_slice(&answer.body).expect("JSON");
        now["process"]["pid"].as_u64().expect("a number")
    };
    let first = pid(&mut connect());
    for _ in 0..3 {
        // Connections are accepted in order: the answer to the second shows that the first is
        // accepted.
        let (mut silent, mut idle) = (connect(), connect());
        let before = pid(&mut idle);
        master.signal("USR2");
        eventually("another process answers", || {
            (pid(&mut connect()) != before).then_some(())
        });
        // An idle connection is closed when the dashboard of the old process ends.
        assert!(idle.is_closed());
        pid(&mut silent);
        told(&manager, "RELOADING=1");
        told(&manager, "READY=1");
    }
    assert_ne!(pid(&mut connect()), first);
}

#[test]
fn a_first_worker_that_does_not_start_ends_the_master() {
    let dir = Folder::new();
    // The port is in use in a way that SO_REUSEPORT cannot share.
    let taken = listener();
    configure(&dir, address(&taken).port(), &answer("one"));
    let mut master = Master::start(&dir, "-W", None);
    assert_eq!(master.end().code(), Some(1));
}

#[test]
fn a_worker_that_dies_ends_the_master_with_its_code() {
    let (dir, reserved) = (Folder::new(), Port::reserve());
    configure(&dir, reserved.number, &answer("one"));
    let (mut master, manager) = Master::managed(&dir);
    // A worker may serve before the master knows that it has started.
    told(&manager, "READY=1");
    served(reserved.number, "one");
    let children = format!("/proc/{0}/task/{0}/children", master.child.id());
    let worker = std::fs::read_to_string(children).expect("the master's children");
    signal("KILL", worker.trim());
    assert_eq!(master.end().code(), Some(137));
}

/// Sends a request on an open connection. Returns the body of the answer.
fn ask(mut stream: impl Read + Write) -> Option<String> {
    let request = b"GET / HTTP/1.1\r\nhost: t\r\nconnection: close\r\n\r\n";
    stream.write_all(request).ok()?;
    let mut text = String::new();
    uninterrupted(|| stream.read_to_string(&mut text)).ok()?;
    text.split_once("\r\n\r\n").map(|(_, body)| body.to_owned())
}

/// How long the kernel certainly keeps a `defer-accept` connection that has sent nothing.
const DEFERRED: Duration = Duration::from_millis(800);

#[test]
fn reloads_lose_no_connection_that_waits() {
    const WAITING: usize = 40;
    let (dir, reserved) = (Folder::new(), Port::reserve());
    let port = reserved.number;
    let (path, name) = (dir.path("f.sock"), format!("spangate-{port}"));
    let configure = |threads: u32| {
        let text = format!(
            "global\n nbthread {threads}\ndefaults\n mode http\n timeout client 5s\n timeout server 5s\n timeout connect 1s\n\
             frontend f\n bind 127.0.0.1:{port} defer-accept\n bind {}\n bind abnsz@{name}\n \
             http-request return status 200 content-type text/plain string \"{threads}\"\n",
            path.display()
        );
        dir.write("cfg", text);
    };
    configure(2);
    let (mut master, manager) = Master::managed(&dir);
    told(&manager, "READY=1");
    let inode = || std::fs::metadata(&path).expect("a socket").ino();
    let born = inode();
    let stop = Arc::new(AtomicBool::new(false));
    let clients = [(); 3].map(|()| {
        let stop = Arc::clone(&stop);
        spawn(move || {
            let mut answers = 0;
            while !stop.load(Ordering::Relaxed) {
                get(port)?;
                answers += 1;
            }
            Some(answers)
        })
    });
    let (mut reloads, mut slow) = (0, 0);
    while reloads < 12 {
        let connect = |_| TcpStream::connect(("127.0.0.1", port)).expect("a connection");
        let (since, waiting) = (now(), (0..WAITING).map(connect).collect::<Vec<_>>());
        let threads = [1, 4, 3, 2][reloads % 4];
        configure(threads);
        master.signal("USR2");
        told(&manager, "RELOADING=1");
        told(&manager, "READY=1");
        let was_fast = since.elapsed() < DEFERRED;
        // The previous worker has ended: no other process can answer.
        let children = format!("/proc/{0}/task/{0}/children", master.child.id());
        eventually("one worker", || {
            let children = std::fs::read_to_string(&children).expect("the master's children");
            (children.split_whitespace().count() == 1).then_some(())
        });
        let lost = waiting
            .into_iter()
            .filter(|stream| ask(stream).is_none_or(|body| body != threads.to_string()))
            .count();
        // A connection that waited too long went to the old worker; it is idle there and is closed.
        if !was_fast {
            slow += 1;
            assert!(slow < 100, "this machine is too slow");
            continue;
        }
        assert_eq!(lost, 0, "of {WAITING} in reload {reloads}");
        reloads += 1;
        let unix = UnixStream::connect(&path).expect("a connection");
        assert_eq!(ask(unix), Some(threads.to_string()));
        let addr = std::os::unix::net::SocketAddr::from_abstract_name(&name).expect("a name");
        let unix = UnixStream::connect_addr(&addr).expect("a connection");
        assert_eq!(ask(unix), Some(threads.to_string()));
        assert_eq!(inode(), born, "it is still the first one");
    }
    stop.store(true, Ordering::Relaxed);
    for client in clients {
        let answers = join(&client, "a client").expect("every request is answered");
        assert!(answers > 0);
    }
    master.signal("INT");
    assert_eq!(master.end().code(), Some(130));
}

#[test]
fn a_listener_that_is_no_longer_named_closes() {
    let (dir, reserved, other) = (Folder::new(), Port::reserve(), Port::reserve());
    let (port, other) = (reserved.number, other.number);
    configure(
        &dir,
        port,
        &format!("{}\n    bind 127.0.0.1:{other}", answer("one")),
    );
    let (_master, manager) = Master::managed(&dir);
    told(&manager, "READY=1");
    served(other, "one");
    configure(&dir, port, &answer("two"));
    signal(
        "USR2",
        std::fs::read_to_string(dir.path("pid"))
            .expect("a pidfile")
            .trim(),
    );
    told(&manager, "RELOADING=1");
    told(&manager, "READY=1");
    served(port, "two");
    eventually("nobody listens", || get(other).is_none().then_some(()));
}

/// The answer of a socket to these lines.
fn command(path: &Path, lines: &str) -> String {
    let mut stream = eventually("the socket", || UnixStream::connect(path).ok());
    stream.set_read_timeout(Some(DEADLINE)).expect("a deadline");
    stream.write_all(lines.as_bytes()).expect("sent");
    stream.shutdown(std::net::Shutdown::Write).expect("ended");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer");
    text
}

#[test]
fn the_master_s_runtime_interface() {
    let (dir, reserved) = (Folder::new(), Port::reserve());
    let port = reserved.number;
    configure(&dir, port, &answer("one"));
    let (path, limited) = (dir.path("master.sock"), dir.path("user.sock"));
    let socket = format!("{},mode,600", path.display());
    let second = format!("{},level,user", limited.display());
    let mut master = Master::start_with(&dir, &["-W", "-S", &socket, "-S", &second], None);
    served(port, "one");
    let ask = |lines: &str| command(&path, lines);
    let mode = std::fs::metadata(&path).expect("a socket").mode();
    assert_eq!(mode & 0o777, 0o600);

    // The processes, and commands for each.
    let processes = eventually("a worker that the master knows", || {
        Some(ask("show proc\n")).filter(|processes| processes.contains(" worker "))
    });
    let lines: Vec<&str> = processes.lines().collect();
    assert!(
        lines[0].starts_with("#<PID>          <type>          <reloads>"),
        "{processes}"
    );
    let own = master.child.id().to_string();
    assert!(
        lines[1].starts_with(&format!("{own:<15} master          0 [failed: 0]")),
        "{processes}"
    );
    assert_eq!(lines[2], "# workers");
    let worker = lines[3].split(' ').next().expect("a number").to_owned();
    let named = format!("\nPid: {worker}\n");
    for line in [
        "@1 show info\n".to_owned(),
        format!("@!{worker} show info\n"),
        "@1\nshow info\n".to_owned(),
        "@1; show info\n".to_owned(),
        "@@1 show version; show info\n".to_owned(),
    ] {
        assert!(ask(&line).contains(&named), "{line}");
    }
    let version = ask("show version\n");
    assert!(
        version.starts_with("3.5") && version.ends_with("\n\n"),
        "{version}"
    );
    assert_eq!(
        ask("show version;@1 show version\nshow version\n"),
        version.repeat(3)
    );
    assert_eq!(
        ask("@2 show info\n"),
        "Can't find the target PID matching the prefix '@2'\n"
    );
    assert_eq!(
        ask("prompt\n@1\nexpert-mode on\n@\nquit\n"),
        format!("master> {worker}> {worker}(e)> master(e)> ")
    );
    assert_eq!(ask("@1 echo <<\nx\n\n"), "\n\n");
    assert!(ask("nonsense\n").starts_with("Unknown command: 'nonsense'"));
    assert!(ask("help\n").contains("\n  show proc "));
    let similar = ask("shwo proc\n");
    assert!(
        similar.contains("\n  show proc ") && !similar.contains("\n  reload "),
        "{similar}"
    );
    let named = ask("help show cli\n");
    assert_eq!(named.matches("\n  show ").count(), 2, "{named}");
    assert_eq!(
        ask("show cli sockets\n"),
        format!(
            "# socket lvl processes\nunix@{} admin all\nunix@{} user all\n\n",
            path.display(),
            limited.display()
        )
    );
    assert_eq!(
        ask("show proc x\n"),
        "'show proc' only supports 'debug' as argument\n\n"
    );
    let channels = ask("show proc debug\n");
    let fds = |line: usize| -> Vec<i32> {
        let line = channels.lines().nth(line).expect("a line");
        let (_, fds) = line.split_once('\t').expect("the descriptors");
        let fds = fds.split_whitespace();
        fds.map(|fd| fd.parse().expect("a number")).collect()
    };
    assert_eq!(fds(1), [-1, -1], "{channels}");
    assert!(fds(3)[0] > 2 && fds(3)[1] == -1, "{channels}");

    // The rights are passed on.
    let user = |lines: &str| command(&limited, lines);
    assert_eq!(user("@1 show cli level\n"), "user\n\n");
    assert_eq!(user("show cli level\n"), "user\n\n");
    assert_eq!(user("reload\n"), "Permission denied\n\n");
    assert_eq!(user("@@1 show cli level\n"), "user\n\n");
    assert_eq!(user("expert-mode on\n"), "Permission denied!\n");

    // A successful reload, and a failed one.
    configure(&dir, port, &answer("two"));
    let reloaded = ask("reload\n");
    assert!(reloaded.starts_with("Success=1\n--\n"), "{reloaded}");
    assert!(reloaded.contains("Loading success."), "{reloaded}");
    served(port, "two");
    configure(&dir, port, "http-request nonsense");
    let refused = ask("reload\n");
    assert!(refused.starts_with("Success=0\n--\n"), "{refused}");
    assert!(refused.contains("nonsense"), "{refused}");
    assert_eq!(
        ask("show startup-logs\n"),
        refused["Success=0\n--\n".len()..].to_owned() + "\n"
    );
    assert_eq!(ask("prompt\nquit\n"), "master[ReloadFailed]> ");
    served(port, "two");
    let processes = ask("show proc\n");
    assert!(processes.contains(" 2 [failed: 1] "), "{processes}");

    // A session with a process that is told to end at once.
    let serving = processes.lines().nth(3).expect("a worker");
    let old = serving.split(' ').next().expect("a number").to_owned();
    configure(&dir, port, &answer("three"));
    assert!(ask("hard-reload\n").starts_with("Success=1\n"));
    eventually("the old worker has ended", || {
        let gone = format!("Can't find the target PID matching the prefix '@!{old}'\n");
        (ask(&format!("@!{old} show version\n")) == gone).then_some(())
    });
    served(port, "three");
    master.signal("TERM");
    assert_eq!(master.end().code(), Some(0));
}

#[test]
fn a_worker_of_another_user_ends_with_a_killed_master() {
    if !common::sys::is_root() {
        return common::skipped("only root becomes another user");
    }
    let (dir, reserved) = (Folder::new(), Port::reserve());
    let port = reserved.number;
    configure(&dir, port, &answer("one"));
    let text = std::fs::read_to_string(dir.path("cfg")).expect("a file");
    dir.write(
        "cfg",
        text.replacen("global\n", "global\n    uid 65534\n    gid 65534\n", 1),
    );
    drop(reserved);
    let mut master = Master::start(&dir, "-W", None);
    served(port, "one");
    // After a reload, the new worker has copies of the master's descriptors.
    dir.write(
        "cfg",
        std::fs::read_to_string(dir.path("cfg"))
            .expect("a file")
            .replace("one", "two"),
    );
    master.signal("USR2");
    served(port, "two");
    master.child.kill().expect("a kill");
    master.child.wait().expect("an end");
    eventually("the worker ends", || {
        TcpStream::connect(("127.0.0.1", port))
            .is_err()
            .then_some(())
    });
}

#[test]
fn after_a_reload_that_failed_late_a_soft_stop_keeps_the_runtime_interface() {
    let (dir, reserved) = (Folder::new(), Port::reserve());
    let (port, cli) = (reserved.number, dir.path("cli.sock"));
    configure(&dir, port, &answer("one"));
    let text = std::fs::read_to_string(dir.path("cfg")).expect("a file");
    let socket = format!("global\n    stats socket {}\n", cli.display());
    let text = text.replacen("global\n", &socket, 1);
    dir.write("cfg", &text);
    drop(reserved);
    let (mut master, manager) = Master::managed(&dir);
    told(&manager, "READY=1");
    served(port, "one");
    // The connection keeps the worker alive.
    let mut open = TcpStream::connect(("127.0.0.1", port)).expect("a connection");
    open.write_all(b"GET / HTTP/1.1\r\n")
        .expect("a part of a request");
    // The new worker takes the sockets over, then fails.
    let failing = text.replacen("global\n", "global\n    chroot /nonexistent\n", 1);
    dir.write("cfg", failing);
    master.signal("USR2");
    told(&manager, "RELOADING=1");
    told(&manager, "Reload failed!");
    let pid = master.child.id();
    // The master has yet to collect the failed worker.
    let worker = eventually("one worker is left", || {
        let workers = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        let workers = workers.expect("its workers");
        let mut workers = workers.split_whitespace().map(str::to_owned);
        workers.next().filter(|_| workers.next().is_none())
    });
    signal("USR1", &worker);
    eventually("it stops listening", || {
        TcpStream::connect(("127.0.0.1", port))
            .is_err()
            .then_some(())
    });
    let shown = common::cli::ask_any(&cli, "show info");
    assert!(shown.contains("Stopping: 1"), "{shown}");
    open.write_all(b"host: x\r\nconnection: close\r\n\r\n")
        .expect("the rest");
    let mut answer = String::new();
    open.read_to_string(&mut answer).expect("an answer");
    assert!(answer.ends_with("one"), "{answer}");
    master.signal("TERM");
    master.end();
}

#[test]
fn a_soft_stop_of_a_master_can_be_made_a_hard_one() {
    let (dir, reserved) = (Folder::new(), Port::reserve());
    let port = reserved.number;
    configure(&dir, port, &answer("one"));
    let text = std::fs::read_to_string(dir.path("cfg")).expect("a file");
    // The request outlives the test.
    dir.write("cfg", text.replace("client 5s", "client 1h"));
    drop(reserved);
    let mut master = Master::start(&dir, "-W", None);
    served(port, "one");
    // The request is never completed.
    let mut open = TcpStream::connect(("127.0.0.1", port)).expect("a connection");
    open.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n")
        .expect("a part of a request");
    master.signal("USR1");
    eventually("it stops listening", || {
        TcpStream::connect(("127.0.0.1", port))
            .is_err()
            .then_some(())
    });
    master.signal("TERM");
    let status = master.end();
    assert_eq!(status.code(), Some(0), "{status:?}");
}

/// A master with a runtime interface. Its worker serves `one`; [`Hanging::configure`] makes the
/// next worker hang.
struct Hanging {
    dir: Folder,
    port: u16,
    socket: std::path::PathBuf,
    master: Master,
}

impl Hanging {
    fn start(start_seconds: Option<u32>) -> Self {
        let (dir, reserved) = (Folder::new(), Port::reserve());
        let (port, socket) = (reserved.number, dir.path("master.sock"));
        configure(&dir, port, &answer("one"));
        let fifo = Command::new("mkfifo").arg(dir.path("fifo")).status();
        assert!(fifo.expect("mkfifo runs").success());
        drop(reserved);
        let mut command = Command::new(env!("CARGO_BIN_EXE_spangate"));
        command.arg("-W").arg("-S").arg(&socket);
        command.arg("-f").arg(dir.path("cfg"));
        command.stdin(Stdio::null()).stderr(Stdio::null());
        if let Some(seconds) = start_seconds {
            command.env("SPANGATE_START_SECONDS", seconds.to_string());
        }
        let master = Master::of(command, None);
        served(port, "one");
        let hanging = Hanging {
            dir,
            port,
            socket,
            master,
        };
        eventually("a worker that the master knows", || {
            (hanging.workers().len() == 1 && hanging.ask("show proc\n").contains(" worker "))
                .then_some(())
        });
        hanging
    }

    /// The next worker reads a FIFO that nobody writes.
    fn configure(&self) {
        let errorfile = format!("errorfile 503 {}", self.dir.path("fifo").display());
        configure(&self.dir, self.port, &errorfile);
    }

    fn ask(&self, line: &str) -> String {
        command(&self.socket, line)
    }

    /// Asks on a thread of its own.
    fn ask_beside(&self, line: &'static str) -> Receiver<String> {
        let socket = self.socket.clone();
        spawn(move || command(&socket, line))
    }

    /// The process numbers of the workers.
    fn workers(&self) -> Vec<String> {
        let pid = self.master.child.id();
        let workers = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        let workers = workers.expect("its workers");
        workers.split_whitespace().map(str::to_owned).collect()
    }

    /// Waits for the worker that hangs.
    fn hanging(&self, known: &[String]) -> String {
        let worker = eventually("a new worker", || {
            let mut workers = self.workers().into_iter();
            workers.find(|worker| !known.contains(worker))
        });
        // It has read its configuration when it waits for somebody to open the FIFO.
        let opens = format!("{} ", libc::SYS_openat);
        eventually("the new worker opens the FIFO", || {
            let call = std::fs::read_to_string(format!("/proc/{worker}/syscall"));
            call.is_ok_and(|call| call.starts_with(&opens))
                .then_some(())
        });
        worker
    }
}

#[test]
fn a_worker_that_hangs_while_it_starts_is_ended() {
    let mut hanging = Hanging::start(Some(1));
    hanging.configure();
    let refused = hanging.ask("reload\n");
    assert!(refused.starts_with("Success=0\n--\n"), "{refused}");
    assert!(refused.contains("not ready after 1 seconds"), "{refused}");
    served(hanging.port, "one");
    configure(&hanging.dir, hanging.port, &answer("two"));
    let reloaded = hanging.ask("reload\n");
    assert!(reloaded.starts_with("Success=1\n--\n"), "{reloaded}");
    served(hanging.port, "two");
    hanging.master.signal("TERM");
    assert_eq!(hanging.master.end().code(), Some(0));
}

#[test]
fn a_master_ends_while_a_worker_starts() {
    let mut hanging = Hanging::start(None);
    let known = hanging.workers();
    hanging.configure();
    hanging.master.signal("USR2");
    let worker = hanging.hanging(&known);
    hanging.master.signal("TERM");
    assert_eq!(hanging.master.end().code(), Some(0));
    assert!(!Path::new(&format!("/proc/{worker}")).exists());
}

#[test]
fn a_reload_during_another_has_its_own_result() {
    let mut hanging = Hanging::start(None);
    let known = hanging.workers();
    hanging.configure();
    let first = hanging.ask_beside("reload\n");
    let worker = hanging.hanging(&known);
    configure(&hanging.dir, hanging.port, &answer("two"));
    let second = hanging.ask_beside("reload\n");
    // Later requests are answered, so the master has received the second one, too.
    for _ in 0..20 {
        assert!(hanging.ask("show proc\n").contains("# workers"));
    }
    signal("KILL", &worker);
    let (first, second) = (join(&first, "first"), join(&second, "second"));
    assert!(first.starts_with("Success=0\n--\n"), "{first}");
    assert!(second.starts_with("Success=1\n--\n"), "{second}");
    served(hanging.port, "two");
    hanging.master.signal("TERM");
    hanging.master.end();
}
