//! The end of a process: no accepted data is lost, and it ends within the time limit.

use crate::common;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};

use common::http::Client;
use common::origin::{Origin, ok};
use common::{
    DEADLINE, DEFAULTS, Folder, Port, Proxy, accept, address, join, listener, spawn, uninterrupted,
};

/// Most connections of one client that may be reset before any answer. When a socket closes, the
/// kernel resets the connections that it has not passed to `accept` yet: one for each worker of the
/// old process.
const RESETS_MAX: u32 = 2;

/// Sends requests until it is told to stop, on one connection while that is kept. Returns the
/// number of answers. Every request must be answered, except for [`RESETS_MAX`] that no process has
/// accepted.
fn keep_asking(to: SocketAddr, stop: &AtomicBool, answered: &AtomicU32) -> Result<u32, String> {
    let mut count = 0;
    let mut resets = 0;
    let mut client = None;
    while !stop.load(SeqCst) {
        let path = format!("/{count}");
        let is_first = client.is_none();
        let asked = match &mut client {
            Some(client) => client,
            None => match TcpStream::connect(to) {
                Ok(stream) => client.insert(Client::on(stream)),
                Err(_) if resets < RESETS_MAX => {
                    resets += 1;
                    continue;
                }
                Err(error) => return Err(format!("no connection for request {count}: {error}")),
            },
        };
        let Some(answer) = asked.try_get(&path) else {
            if is_first && resets < RESETS_MAX {
                resets += 1;
                client = None;
                continue;
            }
            return Err(format!("request {count} is lost"));
        };
        if answer.status != 200 || !answer.text().starts_with(&format!("GET {path} ")) {
            return Err(format!("request {count}: {}", answer.line));
        }
        count += 1;
        answered.fetch_add(1, SeqCst);
        if answer.field("connection") == Some("close") {
            client = None;
        }
    }
    Ok(count)
}

/// CAP_NET_BIND_SERVICE and CAP_NET_ADMIN, in the format of /proc.
const BIND_AND_ADMIN: u64 = 1 << 10 | 1 << 12;

#[test]
fn another_user_keeps_the_capabilities_of_setcap_alone() {
    if !common::sys::is_root() {
        return common::skipped("only root becomes another user");
    }
    let front = listener();
    let config = format!(
        "global\n uid 65534\n gid 65534\n setcap cap_net_bind_service,cap_net_admin\n{DEFAULTS}\n\
         frontend f\n bind \"fd@${{FRONT}}\"\n http-request return status 200\n"
    );
    let proxy = Proxy::start(&config, &[("FRONT", &front)]);
    assert_eq!(Client::connect(address(&front)).get("/").status, 200);
    let tasks =
        std::fs::read_dir(format!("/proc/{}/task", proxy.running.pid())).expect("its threads");
    let mut serving = 0;
    for task in tasks {
        let task = task.expect("a thread").path();
        let status = std::fs::read_to_string(task.join("status")).expect("its state");
        let field = |name: &str| {
            let value = status.lines().find_map(|line| line.strip_prefix(name));
            value.expect(name).trim().to_owned()
        };
        assert!(field("Uid:").starts_with("65534\t65534\t"), "{status}");
        assert!(field("Gid:").starts_with("65534\t65534\t"), "{status}");
        for set in ["CapEff:", "CapPrm:"] {
            let bits = u64::from_str_radix(&field(set), 16).expect("a number");
            assert_eq!(bits, BIND_AND_ADMIN, "{set} of {}", task.display());
        }
        serving += 1;
    }
    assert!(serving > 1, "workers have threads of their own");
    proxy.stop();
}

#[test]
fn processes_and_privileges_are_given_up() {
    let cases = [
        ("", "1", "2"),
        (" insecure-fork-wanted\n", "1", "0"),
        (" insecure-fork-wanted\n insecure-setuid-wanted\n", "0", "0"),
        (
            " insecure-fork-wanted\n no insecure-fork-wanted\n",
            "1",
            "2",
        ),
    ];
    for (words, no_new_privileges, filter) in cases {
        let folder = Folder::new();
        let socket = folder.path("cli.sock").display().to_string();
        let config = format!("global\n{words} stats socket {socket}\n{DEFAULTS}");
        let proxy = Proxy::start_in(folder, &config, &[]);
        // Its sessions are threads, which are still allowed.
        assert!(common::cli::ask_any(socket.as_ref(), "show version").contains('.'));
        for status in statuses(&proxy) {
            let field = |name: &str| {
                let value = status.lines().find_map(|line| line.strip_prefix(name));
                value.expect(name).trim().to_owned()
            };
            assert_eq!(field("NoNewPrivs:"), no_new_privileges, "{words}");
            assert_eq!(field("Seccomp:"), filter, "{words}");
        }
        proxy.stop();
    }
}

#[test]
fn root_is_warned_of_what_it_keeps() {
    const CHROOT: &str = "started as root without any 'chroot' directive";
    const USER: &str = "does not make use of 'user' nor 'uid' global options";
    if !common::sys::is_root() {
        return common::skipped("only root is warned");
    }
    for (words, chroot, user) in [
        ("", true, true),
        (" chroot /\n", false, true),
        (" chroot auto\n", false, true),
        (" uid 0\n", true, false),
        (" user root\n chroot /\n", false, false),
        (" uid 65534\n chroot auto\n", false, false),
    ] {
        // Warnings of the configuration alone are errors.
        let config = format!("global\n{words} zero-warning\n{DEFAULTS}");
        let proxy = Proxy::start(&config, &[]);
        proxy.running.signal(libc::SIGTERM);
        let told = proxy.running.end().stderr;
        assert_eq!(told.contains(CHROOT), chroot, "{words}: {told}");
        assert_eq!(told.contains(USER), user, "{words}: {told}");
    }
}

/// The state of each thread.
fn statuses(proxy: &Proxy) -> Vec<String> {
    let tasks = format!("/proc/{}/task", proxy.running.pid());
    let tasks = std::fs::read_dir(tasks).expect("its threads");
    let paths = tasks.map(|task| task.expect("a thread").path().join("status"));
    // A thread may have ended.
    paths
        .filter_map(|path| std::fs::read_to_string(path).ok())
        .collect()
}

#[test]
fn a_second_process_takes_over_without_a_lost_request() {
    const CLIENTS: usize = 4;
    const REQUESTS: u32 = 200;
    let (origin, held, release) = Origin::holding(|request| ok(&request.line));
    let reserved = Port::reserve();
    let port = reserved.number;
    let to = SocketAddr::from(([127, 0, 0, 1], port));
    let config = format!(
        "{DEFAULTS}\nlisten l\n bind 127.0.0.1:{port}\n server s {}\n",
        origin.at
    )
    .replace("nbthread 1", "nbthread 2");
    let old = Proxy::start(&config, &[]);
    let (stop, answered) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicU32::new(0)),
    );
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let (stop, answered) = (Arc::clone(&stop), Arc::clone(&answered));
            spawn(move || keep_asking(to, &stop, &answered))
        })
        .collect();
    let wait_for = |more: u32| {
        let from = answered.load(SeqCst);
        // A failed client has ended, and the counter stops.
        while answered.load(SeqCst) < from + more {
            crate::common::before_the_next_look();
            for client in &clients {
                if let Ok(Err(error)) = client.try_recv() {
                    panic!("{error}");
                }
            }
        }
    };
    wait_for(REQUESTS);
    let mut slow = Client::connect(to);
    slow.send("GET /hold HTTP/1.1\r\nhost: x\r\n\r\n");
    accept(&held, "it is being served");
    let new = Proxy::start(&config, &[]);
    wait_for(REQUESTS);
    old.running.signal(libc::SIGUSR1);
    wait_for(REQUESTS);
    drop(accept(&release, "it waits for the word"));
    let answer = slow.response().expect("an answer");
    assert_eq!(answer.text(), "GET /hold HTTP/1.1");
    let output = old.running.end();
    assert_eq!(output.status.code(), Some(0), "{}", output.stderr);
    wait_for(REQUESTS);
    stop.store(true, SeqCst);
    let counts: Vec<u32> = clients
        .iter()
        .map(|client| join(client, "a client").unwrap_or_else(|error| panic!("{error}")))
        .collect();
    assert!(counts.iter().all(|count| *count > 0), "{counts:?}");
    new.stop();
}

/// A server that never answers, and reports its requests.
fn silent() -> (Origin, std::net::TcpListener) {
    let asked = listener();
    let at = address(&asked);
    let origin = Origin::raw(move |mut stream| {
        let _ = uninterrupted(|| stream.read(&mut [0; 100]));
        drop(TcpStream::connect(at));
        let _ = stream.read_to_end(&mut Vec::new());
    });
    (origin, asked)
}

#[test]
fn a_drain_has_an_end() {
    let (origin, asked) = silent();
    let front = listener();
    let config = format!(
        "global\n hard-stop-after 200ms\n{DEFAULTS}\nlisten l\n bind \"fd@${{FRONT}}\"\n \
         log stdout format raw local0\n log-format \"%ST %ts\"\n server s {}\n",
        origin.at
    );
    let proxy = Proxy::start(&config, &[("FRONT", &front)]);
    let mut client = Client::connect(address(&front));
    client.send("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
    accept(&asked, "it is being served");
    proxy.running.signal(libc::SIGUSR1);
    let output = proxy.running.end();
    assert_eq!(output.status.code(), Some(0), "{}", output.stderr);
    assert!(client.is_closed());
    // The request has its line, as one that ends by itself.
    assert_eq!(output.stdout.lines().last(), Some("-1 KH"));
}

#[test]
fn with_grace_it_still_accepts() {
    let reserved = Port::reserve();
    let port = reserved.number;
    let to = SocketAddr::from(([127, 0, 0, 1], port));
    let config = format!(
        "global\n grace 1500ms\n{DEFAULTS}\nfrontend f\n bind 127.0.0.1:{port}\n http-request return status 200\n"
    );
    let proxy = Proxy::start(&config, &[]);
    proxy.running.signal(libc::SIGUSR1);
    // If a new connection is told to close, it was accepted after the signal.
    while Client::connect(to).get("/").field("connection") != Some("close") {}
    let output = proxy.running.end();
    assert_eq!(output.status.code(), Some(0), "{}", output.stderr);
    assert!(TcpStream::connect(to).is_err(), "nobody listens any more");
}

#[test]
fn idle_clients_end_with_the_drain_or_with_their_next_response() {
    let (plain, patient) = (listener(), listener());
    let config = format!(
        "{DEFAULTS}
frontend plain
    bind \"fd@${{PLAIN}}\"
    http-request return status 200
frontend patient
    option idle-close-on-response
    bind \"fd@${{PATIENT}}\"
    http-request return status 200
"
    );
    let proxy = Proxy::start(&config, &[("PLAIN", &plain), ("PATIENT", &patient)]);
    let mut idle = Client::connect(address(&plain));
    let mut waiting = Client::connect(address(&patient));
    assert_eq!(idle.get("/").status, 200);
    assert_eq!(waiting.get("/").status, 200);
    proxy.running.signal(libc::SIGUSR1);
    assert!(idle.is_closed());
    let answer = waiting.get("/");
    assert_eq!(
        (answer.status, answer.field("connection")),
        (200, Some("close"))
    );
    assert!(waiting.is_closed());
    let output = proxy.running.end();
    assert_eq!(output.status.code(), Some(0), "{}", output.stderr);
}

#[test]
fn what_is_listened_on_and_what_stops_is_told() {
    let (front, second, origin) = (listener(), listener(), Origin::echo());
    let log = UdpSocket::bind("127.0.0.1:0").expect("a port");
    log.set_read_timeout(Some(DEADLINE)).expect("a timeout");
    let to = log.local_addr().expect("an address");
    let config = format!(
        "{DEFAULTS}
frontend f
    bind \"fd@${{FRONT}}\"
    log {to} format short local0 notice
    default_backend b
listen l
    bind \"fd@${{SECOND}}\"
    http-request return status 204
backend b
    server s {}
",
        origin.at
    );
    let listeners = [("FRONT", &front), ("SECOND", &second)];
    let config = &config;
    let started = |arguments: &[&str]| {
        let proxy = Proxy::start_with(Folder::new(), config, &listeners, arguments);
        for _ in 0..2 {
            assert_eq!(Client::connect(address(&front)).get("/").status, 200);
        }
        proxy.running.signal(libc::SIGUSR1);
        (proxy.running.pid(), proxy.running.end().stderr)
    };
    let (pid, told) = started(&[]);
    let fds = [front.as_raw_fd(), second.as_raw_fd()];
    // Root is warned of what it keeps; that has a test of its own.
    let lines = told
        .lines()
        .filter(|line| !line.contains(" was started as "));
    let [listening, stopped @ ..] = &lines.collect::<Vec<_>>()[..] else {
        panic!("nothing was told");
    };
    let wanted = format!(
        "[NOTICE]   ({pid}) : Listening on fd@{} (f), fd@{} (l), fd@",
        fds[0], fds[1]
    );
    assert!(listening.starts_with(&wanted), "{told}");
    let wanted = [("f", 2, 0), ("l", 0, 0), ("b", 0, 2), ("ready", 1, 0)];
    let wanted = wanted.map(|(name, front, back)| {
        format!(
            "[WARNING]  ({pid}) : Proxy {name} stopped (cumulated conns: FE: {front}, BE: {back})."
        )
    });
    assert_eq!(stopped, wanted);
    let mut line = [0; 256];
    let count = uninterrupted(|| log.recv(&mut line)).expect("a log line");
    assert_eq!(
        String::from_utf8_lossy(&line[..count]),
        "<4>Proxy f stopped (cumulated conns: FE: 2, BE: 0).\n"
    );
    assert_eq!(started(&["-q"]).1, "");
}

#[test]
fn the_next_process_takes_the_sockets_over() {
    const WAITING: usize = 40;
    let (folder, reserved) = (Folder::new(), Port::reserve());
    let (cli, port) = (folder.path("cli.sock"), reserved.number);
    let config = |exposes: &str, threads: u32| {
        format!(
            "{DEFAULTS}
global
    stats socket {} level admin {exposes}
    nbthread {threads}
frontend f
    bind 127.0.0.1:{port} defer-accept
    http-request return status 200
",
            cli.display()
        )
    };
    let old = Proxy::start(&config("expose-fd listeners", 3), &[]);
    let waiting: Vec<Client> = (0..WAITING)
        .map(|_| Client::connect(SocketAddr::from(([127, 0, 0, 1], port))))
        .collect();
    let (path, pid) = (cli.display().to_string(), old.running.pid().to_string());
    let arguments = ["-x", &path, "-sf", &pid];
    let new = Proxy::start_with(Folder::new(), &config("", 2), &[], &arguments);
    let output = old.running.end();
    assert_eq!(output.status.code(), Some(0), "{}", output.stderr);
    for mut client in waiting {
        assert_eq!(client.get("/").status, 200);
    }
    let info = common::cli::ask_any(&cli, "show info");
    assert!(
        info.contains(&format!("Pid: {}\n", new.running.pid())),
        "{info}"
    );
    // This one does not hand over its sockets, and gives no message.
    let file = folder.write("third.cfg", config("", 1));
    let third = common::run(&["-db", "-f", &file, "-x", &path]);
    assert_eq!(third.status.code(), Some(1));
    let told = "Cannot take over the listening sockets of the old process : it does not hand them over: see 'expose-fd listeners'.";
    assert!(third.stderr.contains(told), "{}", third.stderr);
    new.stop();
}

/// Connections that wait when the process stops: more than a worker accepts in a few turns.
const QUEUED: usize = 200;

#[test]
fn a_soft_stop_answers_all_connections_that_wait() {
    let reserved = Port::reserve();
    let to = SocketAddr::from(([127, 0, 0, 1], reserved.number));
    let config = format!("{DEFAULTS}\nfrontend f\n bind {to}\n http-request return status 200\n");
    let proxy = Proxy::start(&config, &[]);
    // A busy process: it accepts nothing for a while.
    proxy.running.signal(libc::SIGSTOP);
    let mut clients: Vec<Client> = (0..QUEUED).map(|_| Client::connect(to)).collect();
    for client in &mut clients {
        let request = b"GET / HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n";
        client.reader.wire.write_all(request).expect("it is sent");
    }
    proxy.running.signal(libc::SIGUSR1);
    proxy.running.signal(libc::SIGCONT);
    let answered = clients.iter_mut().filter_map(Client::response);
    let answered = answered.filter(|answer| answer.status == 200).count();
    assert_eq!(answered, QUEUED);
    assert!(proxy.running.end().status.success());
}

#[test]
fn states_of_servers_are_told_on_sighup() {
    let (front, log) = (listener(), UdpSocket::bind("127.0.0.1:0").unwrap());
    log.set_read_timeout(Some(DEADLINE)).unwrap();
    let origin = Origin::start(|_| ok("x"));
    let config = format!(
        "{DEFAULTS} log {} local0\nlisten l\n bind \"fd@${{FRONT}}\"\n server s1 {}\n server s2 127.0.0.1:1 disabled\n\
         backend none\n no log\nbackend spare\n no log\n server b 127.0.0.1:1 backup\n\
         backend dead\n no log\n server d 127.0.0.1:1 disabled\n",
        log.local_addr().unwrap(),
        origin.at
    );
    let proxy = Proxy::start(&config, &[("FRONT", &front)]);
    let mut client = Client::connect(address(&front));
    assert_eq!(client.get("/").status, 200);
    proxy.running.signal(libc::SIGHUP);
    let of_s1 = "SIGHUP: Server l/s1 is UP. Conn: 0 act, 0 pend, 1 tot.";
    let logged = || {
        let mut message = [0; 1024];
        let received = uninterrupted(|| log.recv(&mut message)).expect("a message");
        String::from_utf8_lossy(&message[..received]).into_owned()
    };
    let first = std::iter::repeat_with(logged).find(|text| text.contains("SIGHUP"));
    let first = first.expect("a line");
    assert!(
        first.starts_with("<133>") && first.contains(of_s1),
        "{first}"
    );
    assert_eq!(client.get("/").status, 200, "it goes on");
    proxy.running.signal(libc::SIGTERM);
    let output = proxy.running.end();
    for line in [
        "[WARNING]",
        "SIGHUP received, dumping servers states.",
        of_s1,
        "SIGHUP: Server l/s2 is DOWN. Conn: 0 act, 0 pend, 0 tot.",
        "SIGHUP: Proxy l has 1 active servers and 0 backup servers available. Conn: act(FE+BE): 1+0, 0 pend (0 unass), tot(FE+BE): 1+1.",
        "SIGHUP: Proxy none has no servers. Conn: act(FE+BE): 0+0, 0 pend (0 unass), tot(FE+BE): 0+0.",
        "SIGHUP: Proxy spare is running on backup servers ! Conn:",
        "SIGHUP: Proxy dead has no server available ! Conn:",
    ] {
        assert!(output.stderr.contains(line), "{line} in {}", output.stderr);
    }
}

/// Whether connections to the port are refused.
fn refuses(to: SocketAddr) -> bool {
    TcpStream::connect(to).is_err()
}

#[test]
fn a_paused_process_refuses_connections_until_it_is_resumed() {
    for arguments in [&[][..], &["-W"]] {
        let reserved = Port::reserve();
        let to = SocketAddr::from(([127, 0, 0, 1], reserved.number));
        let config = format!(
            "{DEFAULTS}\nfrontend f\n bind 127.0.0.1:{}\n http-request return status 200\n",
            reserved.number
        );
        drop(reserved);
        let proxy = Proxy::start_with(Folder::new(), &config, &[], arguments);
        let mut kept = Client::connect(to);
        assert_eq!(kept.get("/").status, 200);
        proxy.running.signal(libc::SIGQUIT);
        proxy.running.signal(libc::SIGTTOU);
        common::eventually("it pauses", || refuses(to).then_some(()));
        // Connections that are open go on.
        assert_eq!(kept.get("/").status, 200);
        proxy.running.signal(libc::SIGTTIN);
        common::eventually("it resumes", || (!refuses(to)).then_some(()));
        assert_eq!(Client::connect(to).get("/").status, 200);
        proxy.running.signal(libc::SIGTERM);
        proxy.running.end();
    }
}

#[test]
fn a_start_pauses_the_old_process_that_has_its_ports() {
    const OLD: &str =
        "trap 'echo ttou' TTOU; trap 'echo ttin' TTIN; echo on; while :; do sleep 0.02; done";
    for gives_way in [true, false] {
        // Without SO_REUSEPORT, no other process can bind the port.
        let held = listener();
        let to = address(&held);
        let mut old = std::process::Command::new("sh")
            .args(["-c", OLD])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .expect("a shell");
        let said = std::io::BufReader::new(old.stdout.take().expect("piped"));
        let mut said = std::io::BufRead::lines(said).map_while(Result::ok);
        assert_eq!(said.next().as_deref(), Some("on"));
        let folder = Folder::new();
        let config =
            format!("{DEFAULTS}\nfrontend f\n bind {to}\n http-request return status 200\n");
        let file = folder.write("new.cfg", config);
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_spangate"));
        command.args(["-db", "-f", &file, "-sf", &old.id().to_string()]);
        let new = common::Running::start(command);
        assert_eq!(said.next().as_deref(), Some("ttou"));
        if gives_way {
            drop(held);
            common::eventually("it serves", || {
                let mut client = Client::on(TcpStream::connect(to).ok()?);
                client.try_get("/").filter(|answer| answer.status == 200)
            });
            new.signal(libc::SIGTERM);
            assert!(new.end().status.success());
        } else {
            assert!(said.any(|line| line == "ttin"), "it listens again");
            let output = new.end();
            assert_eq!(output.status.code(), Some(1), "{}", output.stderr);
            assert_eq!(
                output.stderr.matches("Binding [").count(),
                1,
                "{}",
                output.stderr
            );
        }
        // `-sf` may have ended it already.
        let _ = old.kill();
        let _ = old.wait();
    }
}
