//! `spangate proxy`: a proxy without a configuration file.

use crate::common;

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::{Command, Stdio};

use common::http::Client;
use common::origin::{Origin, ok};
use common::tls::{Authority, curl, has};
use common::{DEFAULTS, Folder, Port, Proxy, Running, address, eventually, listener, run};

/// Starts the command; the folder is the user's home.
fn start(folder: &Folder, arguments: &[&str]) -> Running {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spangate"));
    command.arg("proxy").args(arguments).stdin(Stdio::null());
    command
        .env("HOME", folder.root())
        .env_remove("XDG_DATA_HOME");
    Running::start(command)
}

fn connected(port: &Port) -> TcpStream {
    let to = SocketAddr::from((Ipv4Addr::LOCALHOST, port.number));
    eventually("the proxy listens", || TcpStream::connect(to).ok())
}

fn stopped(proxy: Running) -> common::Output {
    proxy.signal(libc::SIGTERM);
    proxy.end()
}

#[test]
fn requests_go_to_the_servers_in_turn() {
    let (folder, port) = (Folder::new(), Port::reserve());
    let origins = ["one", "two"].map(|name| Origin::start(move |_| ok(name)));
    let [one, two] = &origins.each_ref().map(|origin| origin.at.to_string());
    let from = format!("127.0.0.1:{}", port.number);
    let proxy = start(&folder, &["--from", &from, "--to", one, "--to", two]);
    let mut client = Client::on(connected(&port));
    let mut bodies = [client.get("/").text(), client.get("/").text()];
    bodies.sort();
    assert_eq!(bodies, ["one", "two"]);
    drop(client);
    let output = stopped(proxy);
    assert!(output.status.success(), "{}", output.stderr);
    assert!(
        output
            .stderr
            .contains(&format!("http://{from} -> {one}, {two}")),
        "{}",
        output.stderr
    );
    // The access log.
    assert_eq!(
        output.stdout.matches("GET / HTTP/1.1").count(),
        2,
        "{}",
        output.stdout
    );
}

#[test]
fn fields_tell_the_server_of_the_client() {
    let (folder, port) = (Folder::new(), Port::reserve());
    let origin = Origin::echo();
    let (from, to) = (format!("127.0.0.1:{}", port.number), origin.at.to_string());
    let options = [
        "--from",
        &from,
        "--to",
        &to,
        "--quiet",
        "--change-host-header",
    ];
    let proxy = start(&folder, &options);
    let seen = Client::on(connected(&port))
        .get("/x")
        .text()
        .to_ascii_lowercase();
    for field in [
        "x-forwarded-for: 127.0.0.1",
        "x-forwarded-proto: http",
        &format!("host: {to}"),
    ] {
        assert!(seen.contains(field), "{field}: {seen}");
    }
    assert_eq!(stopped(proxy).stdout, "");
}

#[test]
fn a_server_is_verified_by_its_address_and_not_by_the_name_in_the_request() {
    let (authority, folder) = (Authority::new("root"), Folder::new());
    let ca = folder.write("ca.pem", authority.pem());
    for (name, status) in [("127.0.0.1", 200), ("one.test", 503)] {
        let crt = folder.write("server.pem", authority.issue(&[name]));
        let (front, port) = (listener(), Port::reserve());
        let config = format!(
            "{DEFAULTS}\nfrontend f\n bind \"fd@${{FRONT}}\" ssl crt {crt}\n http-request return status 200\n"
        );
        let server = Proxy::start(&config, &[("FRONT", &front)]);
        let mut command = Command::new(env!("CARGO_BIN_EXE_spangate"));
        let from = format!("127.0.0.1:{}", port.number);
        let to = format!("https://{}", address(&front));
        command.args(["proxy", "--from", &from, "--to", &to, "--quiet"]);
        // The authorities of the system.
        command.env("SSL_CERT_FILE", &ca).stdin(Stdio::null());
        let proxy = Running::start(command);
        let mut client = Client::on(connected(&port));
        client.send("GET / HTTP/1.1\r\nhost: one.test\r\n\r\n");
        let response = client.response().expect("a response");
        assert_eq!(response.status, status, "{name}");
        stopped(proxy);
        server.stop();
    }
}

#[test]
fn https_by_an_authority_that_is_kept() {
    if !has("curl") {
        return;
    }
    let folder = Folder::new();
    let origin = Origin::start(|_| ok("secret"));
    let to = origin.at.to_string();
    let mut authorities = Vec::new();
    for _ in 0..2 {
        let port = Port::reserve();
        let from = format!("127.0.0.1:{}", port.number);
        let proxy = start(
            &folder,
            &["--from", &from, "--to", &to, "--tls", "internal"],
        );
        drop(connected(&port));
        let authority = folder.path(".local/share/spangate/ca.pem");
        let file = authority.display().to_string();
        let url = format!("https://localhost:{}/", port.number);
        let fetched = curl(&folder, &["--cacert", &file, &url]);
        assert_eq!(
            (fetched.status, &*fetched.text()),
            (200, "secret"),
            "{fetched:?}"
        );
        let stderr = stopped(proxy).stderr;
        assert!(
            stderr.contains(&format!("curl --cacert {file}")),
            "{stderr}"
        );
        authorities.push(std::fs::read(&authority).expect("the authority's file"));
    }
    assert_eq!(authorities[0], authorities[1]);
}

#[test]
fn the_printed_configuration_is_good_and_runs() {
    let (folder, port) = (Folder::new(), Port::reserve());
    let origin = Origin::start(|_| ok("the same"));
    let (from, to) = (format!("127.0.0.1:{}", port.number), origin.at.to_string());
    let printed = run(&["proxy", "--from", &from, "--to", &to, "--print-config"]);
    assert_eq!(printed.status.code(), Some(0), "{}", printed.stderr);
    let file = folder.write("printed.cfg", &printed.stdout);
    let checked = run(&["-c", "-dW", "-f", &file]);
    assert_eq!((checked.status.code(), &*checked.stderr), (Some(0), ""));
    let mut command = Command::new(env!("CARGO_BIN_EXE_spangate"));
    command.args(["-db", "-f", &file]).stdin(Stdio::null());
    let proxy = Running::start(command);
    assert_eq!(Client::on(connected(&port)).get("/").text(), "the same");
    assert!(stopped(proxy).status.success());
    // The line of each option is valid in the language.
    let all = [
        "proxy",
        "--to",
        "https://[::1]:1",
        "--to",
        "https://localhost",
        "--from",
        "0",
        "--quiet",
        "--trace=http://127.0.0.1:4318",
        "--print-config",
    ];
    let file = folder.write("all.cfg", run(&all).stdout.replace(":0", ":1"));
    let checked = run(&["-c", "-f", &file]);
    assert_eq!(checked.status.code(), Some(0), "{}", checked.stderr);
}

#[test]
fn what_is_wrong_is_told() {
    let output = run(&["proxy"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        output.stderr.contains("name a server with --to"),
        "{}",
        output.stderr
    );
    let taken = common::listener();
    let from = common::address(&taken).to_string();
    let output = run(&["proxy", "--from", &from, "--to", ":1"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        output.stderr.contains("Address already in use") && output.stderr.contains(&from),
        "{}",
        output.stderr
    );
}
