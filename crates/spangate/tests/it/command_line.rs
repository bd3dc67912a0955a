//! The command line, on which scripts and service managers depend (management guide §3).

use crate::common;

use common::{DEFAULTS, Folder, Proxy, Running, listener, run};
use std::process::{Command, Stdio};

const GOOD: &str = "
defaults
    mode http
    timeout client 1s
    timeout server 1s
    timeout connect 1s
listen l
    bind 127.0.0.1:1
    server s 127.0.0.1:2
";

#[test]
fn a_check_is_silent_and_says_so_only_when_asked() {
    let folder = Folder::new();
    let file = folder.write("a.cfg", GOOD);
    let quiet = run(&["-c", "-f", &file]);
    assert_eq!(
        (quiet.status.code(), &*quiet.stdout, &*quiet.stderr),
        (Some(0), "", "")
    );
    let loud = run(&["-c", "-V", "-f", &file]);
    assert_eq!(loud.status.code(), Some(0));
    assert_eq!(loud.stdout, "Configuration file is valid\n");
    assert_eq!(run(&["-c", "--", &file]).status.code(), Some(0));
    assert_eq!(
        run(&["-c", "-f", "/nonexistent/file"]).status.code(),
        Some(1)
    );
    assert_eq!(run(&["-c"]).status.code(), Some(1));
}

/// As in HAProxy, a process without a master needs something to listen for, and a check does not.
#[test]
fn a_process_without_a_listener_ends() {
    let folder = Folder::new();
    let none = "No enabled listener found (check for 'bind' directives) ! Exiting.";
    for text in [
        "",
        "backend b\n timeout server 1s\n timeout connect 1s\n server s 127.0.0.1:1\n",
        "frontend f\n disabled\n timeout client 1s\n bind 127.0.0.1:0\n",
        "log-forward f\n log 127.0.0.1:514 local0\n",
    ] {
        let file = folder.write("a.cfg", text);
        assert_eq!(run(&["-c", "-f", &file]).status.code(), Some(0), "{text}");
        let output = run(&["-db", "-f", &file]);
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(output.stderr.contains(none), "{text}: {}", output.stderr);
    }
}

/// `strict-limits` is on by default.
#[test]
fn too_few_descriptors_are_an_error() {
    let folder = Folder::new();
    let good = GOOD.replace("127.0.0.1:1\n", "127.0.0.1:0\n");
    for (lines, message) in [
        (
            "ulimit-n 300",
            "Cannot raise FD limit to 300, current limit is 200 and ",
        ),
        ("maxconn 500", "Cannot raise FD limit to "),
    ] {
        let text = format!("global\n fd-hard-limit 200\n {lines}\n{good}");
        let file = folder.write("a.cfg", &text);
        assert_eq!(run(&["-c", "-f", &file]).status.code(), Some(0));
        let output = run(&["-db", "-f", &file]);
        assert_eq!(output.status.code(), Some(1), "{}", output.stderr);
        let alert = output.stderr.lines().find(|line| line.contains(message));
        let alert = alert.unwrap_or_else(|| panic!("{}", output.stderr));
        assert!(alert.starts_with("[ALERT]"), "{alert}");
    }
    let (client, server) = (listener(), listener());
    let config = format!(
        "global\n fd-hard-limit 200\n maxconn 500\n no strict-limits\n{DEFAULTS}frontend f\n bind \"fd@${{FE}}\"\n\
         default_backend b\nbackend b\n server s {}\n",
        common::address(&server)
    );
    let proxy = Proxy::start(&config, &[("FE", &client)]);
    proxy.stop();
}

#[test]
fn a_folder_stands_for_its_files_in_order() {
    let folder = Folder::new();
    folder.write(
        "d/10.cfg",
        "defaults\n mode http\n timeout client 1s\n timeout server 1s\n timeout connect 1s\n",
    );
    folder.write(
        "d/20.cfg",
        "frontend f\n bind 127.0.0.1:1\n default_backend b\n",
    );
    folder.write("d/30.cfg", "backend b\n server s 127.0.0.1:2\n");
    folder.write("d/ignored.txt", "nonsense\n");
    let path = folder.path("d").display().to_string();
    let output = run(&["-c", "-V", "-f", &path]);
    assert_eq!(output.status.code(), Some(0), "{}", output.stderr);
}

#[test]
fn versions_have_the_lines_that_scripts_look_for() {
    let output = run(&["-v"]);
    assert_eq!(output.status.code(), Some(0));
    let first = output.stdout.lines().next().unwrap();
    assert!(first.starts_with("HAProxy version 3.5"), "{first}");
    let output = run(&["-vv"]);
    assert!(
        output
            .stdout
            .lines()
            .any(|line| line.trim() == "TARGET  = linux-glibc")
    );
    assert!(
        output
            .stdout
            .lines()
            .any(|line| line.starts_with("Feature list : "))
    );
    assert!(output.stdout.contains("epoll : pref=300,  test result OK"));
}

#[test]
fn a_version_alone() {
    assert_eq!(run(&["-vq"]).stdout, "3.5-dev5\n");
    assert_eq!(run(&["-vqs"]).stdout, "3.5\n");
    assert_eq!(run(&["-vqb"]).stdout, "3.5\n");
}

#[test]
fn conditions_exit_with_their_truth() {
    let cases = [
        ("version_atleast(2.0)", 0),
        ("version_before(2.0)", 1),
        ("feature(EPOLL)", 0),
        ("feature(QUIC)", 0),
        ("feature(LUA)", 1),
        ("!streq(a,b)", 0),
        ("streq(a", 2),
        ("nonsense", 2),
    ];
    for (condition, code) in cases {
        let output = run(&["-cc", condition]);
        assert_eq!(
            output.status.code(),
            Some(code),
            "{condition}: {}",
            output.stderr
        );
    }
}

/// `HAPROXY_MWORKER` is defined if a master runs the file; a configuration check has no master.
#[test]
fn a_file_knows_whether_there_is_a_master() {
    let folder = Folder::new();
    let text =
        ".if defined(HAPROXY_MWORKER)\n.alert \"a master\"\n.else\n.alert \"no master\"\n.endif\n";
    let file = folder.write("a.cfg", text);
    for (options, message) in [
        (&["-W", "-f", &file][..], "'a master'"),
        (&["-db", "-f", &file], "'no master'"),
        (&["-c", "-W", "-f", &file], "'no master'"),
    ] {
        let output = run(options);
        assert_eq!(output.status.code(), Some(1));
        assert!(
            output.stderr.contains(message),
            "{options:?}: {}",
            output.stderr
        );
    }
}

#[test]
fn warnings_are_fatal_when_asked() {
    let folder = Folder::new();
    let file = folder.write(
        "a.cfg",
        "frontend f\n mode http\n bind 127.0.0.1:1\n http-request return status 200\n",
    );
    let output = run(&["-c", "-f", &file]);
    assert_eq!(output.status.code(), Some(0), "{}", output.stderr);
    assert_eq!(output.stdout, "Warnings were found.\n");
    assert!(
        output.stderr.contains("missing timeouts for frontend 'f'"),
        "{}",
        output.stderr
    );
    let output = run(&["-c", "-dW", "-f", &file]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        output.stderr.contains("missing timeouts"),
        "{}",
        output.stderr
    );
    let file = folder.write("b.cfg", "global\n zero-warning\nfrontend f\n mode http\n bind 127.0.0.1:1\n http-request return status 200\n");
    let output = run(&["-c", "-f", &file]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        output.stderr.contains("'zero-warning' is set"),
        "{}",
        output.stderr
    );
}

/// The keywords in the file that Debian's package installs. It has no frontend, but starts and
/// answers its commands.
#[test]
fn a_distribution_s_file_starts() {
    let folder = Folder::new();
    for code in [400, 403, 408, 500, 502, 503, 504] {
        folder.write(&format!("{code}.http"), "HTTP/1.0 503 No\r\n\r\nno\n");
    }
    let root = folder.root().display().to_string();
    let socket = folder.path("admin.sock");
    let config = format!(
        "global
 log /dev/log local0
 log /dev/log local1 notice
 stats socket {} mode 660 level admin
 stats timeout 30s
 ca-base /etc/ssl/certs
 crt-base /etc/ssl/private
 ssl-default-bind-ciphers ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256
 ssl-default-bind-ciphersuites TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384
 ssl-default-bind-options ssl-min-ver TLSv1.2 no-tls-tickets
defaults
 log global
 mode http
 option httplog
 option dontlognull
 timeout connect 5000
 timeout client 50000
 timeout server 50000
 errorfile 400 {root}/400.http
 errorfile 403 {root}/403.http
 errorfile 408 {root}/408.http
 errorfile 500 {root}/500.http
 errorfile 502 {root}/502.http
 errorfile 503 {root}/503.http
 errorfile 504 {root}/504.http
",
        socket.display()
    );
    let file = folder.write("a.cfg", &config);
    let output = run(&["-c", "-dW", "-f", &file]);
    assert_eq!(output.status.code(), Some(0), "{}", output.stderr);
    let notices = output
        .stderr
        .lines()
        .filter(|line| line.starts_with("[NOTICE]"));
    assert_eq!(notices.count(), 0, "{}", output.stderr);
    let proxy = Proxy::start_in(folder, &config, &[]);
    assert!(common::cli::ask_any(&socket, "show version").starts_with("3.5"));
    proxy.stop();
}

#[test]
fn every_error_of_every_file_is_told_in_one_run() {
    let folder = Folder::new();
    let one = folder.write("one.cfg", "global\n  nbthraed 2\ndefaults\n  mode htpp\n");
    let two = folder.write(
        "two.cfg",
        "listen l\n  bind 127.0.0.1:99999\n  blance roundrobin\n",
    );
    let output = run(&["-c", "-f", &one, "-f", &two]);
    assert_eq!(output.status.code(), Some(1));
    let places = [
        format!("[{one}:2]"),
        format!("[{one}:4]"),
        format!("[{two}:2]"),
        format!("[{two}:3]"),
    ];
    for place in places {
        assert!(
            output.stderr.contains(&place),
            "{place} in\n{}",
            output.stderr
        );
    }
    assert!(
        output.stderr.contains("did you mean 'nbthread'"),
        "{}",
        output.stderr
    );
    let carets = output
        .stderr
        .lines()
        .filter(|line| line.trim_start().starts_with('^'))
        .count();
    assert!(carets >= 4, "{}", output.stderr);
}

#[test]
fn options_that_are_unknown_or_still_missing_say_so() {
    for option in ["-dA", "-dV", "-dt"] {
        let output = run(&[option, "x"]);
        assert_eq!(output.status.code(), Some(1), "{option}");
        assert!(
            output.stderr.contains("not implemented yet"),
            "{option}: {}",
            output.stderr
        );
    }
    let output = run(&["-zz"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        output.stderr,
        "Unknown option '-zz'. See 'spangate --help'.\n"
    );
    let output = run(&["-f"]);
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn signals_end_it_at_once_and_a_closed_input_does_not() {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        let front = listener();
        let config = format!(
            "{DEFAULTS}\nfrontend f\n bind \"fd@${{FRONT}}\"\n http-request return status 204\n"
        );
        // Its standard input is at its end from the start.
        let proxy = Proxy::start(&config, &[("FRONT", &front)]);
        // A client that waits does not delay the end.
        let mut client = common::http::Client::connect(common::address(&front));
        assert_eq!(client.get("/").status, 204);
        proxy.running.signal(signal);
        let output = proxy.running.end();
        assert_eq!(output.status.code(), Some(0), "{}", output.stderr);
        assert!(client.is_closed());
    }
}

#[test]
fn a_daemon_leaves_its_number() {
    let folder = Folder::new();
    let socket = folder.path("front.sock").display().to_string();
    let pidfile = folder.path("pid").display().to_string();
    let file = folder.write(
        "a.cfg",
        format!("{DEFAULTS}\nfrontend f\n bind unix@{socket}\n http-request return status 204\n"),
    );
    let output = run(&["-D", "-p", &pidfile, "-f", &file]);
    assert_eq!(output.status.code(), Some(0), "{}", output.stderr);
    let pid: u32 = std::fs::read_to_string(&pidfile)
        .expect("a pid file")
        .trim()
        .parse()
        .expect("a number");
    struct Guard(u32);
    impl Drop for Guard {
        fn drop(&mut self) {
            common::sys::signal(self.0, libc::SIGKILL);
        }
    }
    let guard = Guard(pid);
    assert!(common::sys::signal(pid, 0), "it lives");
    // Its sockets were open before the first process ended.
    let stream = std::os::unix::net::UnixStream::connect(&socket).expect("it listens");
    let mut client = common::http::Client::over(stream);
    assert_eq!(client.get("/").status, 204);
    assert!(common::sys::signal(pid, libc::SIGTERM));
    assert!(client.is_closed(), "it ends");
    drop(guard);
}

#[test]
fn foreground_wins_over_the_background() {
    let front = listener();
    let config = format!(
        "global\n daemon\n{DEFAULTS}\nfrontend f\n bind \"fd@${{FRONT}}\"\n http-request return status 204\n"
    );
    let proxy = Proxy::start_with(Folder::new(), &config, &[("FRONT", &front)], &["-D"]);
    assert!(common::sys::signal(proxy.running.pid(), 0));
    proxy.stop();
}

#[test]
fn what_cannot_be_bound_is_told() {
    let taken = listener();
    let port = common::address(&taken).port();
    let folder = Folder::new();
    let file = folder.write(
        "a.cfg",
        format!(
            "{DEFAULTS}\nfrontend f\n bind 127.0.0.1:{port}\n http-request return status 204\n"
        ),
    );
    let mut command = Command::new(env!("CARGO_BIN_EXE_spangate"));
    command.args(["-db", "-f", &file]).stdin(Stdio::null());
    let output = Running::start(command).end();
    assert_eq!(output.status.code(), Some(1));
    let wanted = format!("[{file}:11] for frontend f");
    assert!(
        output.stderr.contains(&wanted),
        "{wanted} in {}",
        output.stderr
    );
    let why = format!("(Address already in use) for [127.0.0.1:{port}].");
    assert!(output.stderr.contains(&why), "{}", output.stderr);
}

#[test]
fn a_daemon_that_cannot_leave_its_number_does_not_run() {
    let folder = Folder::new();
    let socket = folder.path("front.sock");
    let config = format!(
        "{DEFAULTS}\nfrontend f\n bind {}\n http-request return status 204\n",
        socket.display()
    );
    let file = folder.write("a.cfg", config);
    for mode in [&["-D"][..], &["-W", "-D"]] {
        let nowhere = ["-p", "/no/such/folder/pid", "-f", &file];
        let output = run(&[mode, &nowhere].concat());
        assert_eq!(output.status.code(), Some(1), "{mode:?}");
        let wanted = "Cannot create pidfile /no/such/folder/pid";
        assert!(output.stderr.contains(wanted), "{}", output.stderr);
        let refused = std::os::unix::net::UnixStream::connect(&socket);
        assert!(refused.is_err(), "{mode:?}: something serves");
    }
}

#[test]
fn a_master_in_the_background_serves_before_its_starter_ends() {
    let folder = Folder::new();
    let socket = folder.path("front.sock");
    let pidfile = folder.path("pid");
    let config = format!(
        "{DEFAULTS}\nfrontend f\n bind {}\n http-request return status 204\n",
        socket.display()
    );
    let file = folder.write("a.cfg", config);
    let pid = pidfile.display().to_string();
    // It ends with its outputs closed: the serving process has closed them.
    let output = run(&["-W", "-D", "-p", &pid, "-f", &file]);
    assert_eq!(output.status.code(), Some(0), "{}", output.stderr);
    let stream = std::os::unix::net::UnixStream::connect(&socket).expect("it listens");
    let mut client = common::http::Client::over(stream);
    assert_eq!(client.get("/").status, 204);
    let pid = std::fs::read_to_string(&pidfile).expect("a pid file");
    let pid = pid.trim().parse().expect("a number");
    assert!(common::sys::signal(pid, libc::SIGTERM));
    assert!(client.is_closed(), "it ends");
}

#[test]
fn names_without_an_address_disable_their_server_where_asked_to() {
    let folder = Folder::new();
    let config = format!("{DEFAULTS}\nbackend b\n server s no-such-host.invalid:80\n");
    let file = folder.write("a.cfg", &config);
    let refused = run(&["-c", "-f", &file]);
    assert_eq!(refused.status.code(), Some(1), "{}", refused.stderr);
    let wanted = "could not resolve address 'no-such-host.invalid'";
    assert!(refused.stderr.contains(wanted), "{}", refused.stderr);
    let accepted = run(&["-c", "-dr", "-dW", "-f", &file]);
    assert_eq!(accepted.status.code(), Some(0), "{}", accepted.stderr);
    let wanted = "could not resolve address 'no-such-host.invalid', disabling server.";
    assert!(accepted.stderr.contains(wanted), "{}", accepted.stderr);
    // Other faults in the address are still faults.
    let file = folder.write("b.cfg", config.replace(".invalid:80", ":x"));
    assert_eq!(run(&["-c", "-dr", "-f", &file]).status.code(), Some(1));

    let front = listener();
    let config = format!("{config}frontend f\n bind \"fd@${{FRONT}}\"\n default_backend b\n");
    let proxy = Proxy::start_with(Folder::new(), &config, &[("FRONT", &front)], &["-dr"]);
    let mut client = common::http::Client::connect(common::address(&front));
    assert_eq!(client.get("/").status, 503);
    proxy.stop();
}

#[test]
fn the_files_are_shown_without_what_they_hide() {
    let folder = common::Folder::new();
    let text = "# secret\nglobal\n  nbthread 1 # one\nlisten front\n  bind 192.0.2.1:80 name x\n  nonsense ${X} \"${X}\"\n";
    let file = folder.write("cfg", text);
    let output = run(&["-dC", "-f", &file]);
    assert_eq!(output.status.code(), Some(0), "{}", output.stderr);
    assert_eq!(
        output.stdout,
        "global\n\tnbthread 1\nlisten front\n\tbind 192.0.2.1:80 name x\n\tnonsense ${X} \n"
    );
    let hidden = run(&["-dC5,line", "-c", "-f", &file]);
    assert_eq!(hidden.status.code(), Some(0));
    assert!(hidden.stdout.starts_with("2\tglobal\n3\t\tnbthread 1\n"));
    for secret in ["front", "192.0.2.1", "name"] {
        assert!(!hidden.stdout.contains(secret), "{}", hidden.stdout);
    }
    folder.write("cfg", "global\n  log \"x\n");
    let output = run(&["-dC", "-f", &file]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        output.stderr.contains(":2] : unmatched quote"),
        "{}",
        output.stderr
    );
}

#[test]
fn settings_of_a_master_need_one() {
    let folder = common::Folder::new();
    let front = "frontend f\n mode http\n timeout client 5s\n bind 127.0.0.1:0\n";
    let text =
        format!("global\n master-worker no-exit-on-failure\n mworker-max-reloads 3\n{front}");
    let file = folder.write("cfg", text);
    let output = run(&["-db", "-f", &file]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        output
            .stderr
            .contains("is only supported in master-worker mode"),
        "{}",
        output.stderr
    );
    let output = run(&["-c", "-f", &file]);
    assert_eq!(output.status.code(), Some(0), "{}", output.stderr);
}

#[test]
fn old_files_are_rewritten() {
    let folder = Folder::new();
    let old = folder.write(
        "old.cfg",
        "defaults\n  mode http\n  contimeout 5000\n  clitimeout 5000\n  srvtimeout 5000\nlisten l 127.0.0.1:0\n  reqadd X-A:\\ b\n  server s 127.0.0.1:1",
    );
    let refused = run(&["-c", "-f", &old]);
    assert_eq!(refused.status.code(), Some(1));
    let hint = format!(
        "'spangate --migrate -f {old}' prints this file with 6 old lines in today's words."
    );
    assert!(refused.stderr.contains(&hint), "{}", refused.stderr);
    let migrated = run(&["--migrate", "-f", &old]);
    assert_eq!(migrated.status.code(), Some(0), "{}", migrated.stderr);
    assert_eq!(migrated.stderr.lines().count(), 6, "{}", migrated.stderr);
    let new = folder.write("new.cfg", &migrated.stdout);
    let accepted = run(&["-c", "-f", &new]);
    assert_eq!(
        accepted.status.code(),
        Some(0),
        "{}\n{}",
        migrated.stdout,
        accepted.stderr
    );
    assert_eq!(run(&["--migrate", "-f", &new]).stdout, migrated.stdout);
    let hopeless = folder.write("hopeless.cfg", "backend b\n  option transparent\n");
    assert_eq!(run(&["--migrate", "-f", &hopeless]).status.code(), Some(1));
    assert_eq!(
        run(&["--migrate", "-f", &new, "-f", &old]).status.code(),
        Some(1)
    );
    assert_eq!(run(&["--migrate"]).status.code(), Some(1));
}
