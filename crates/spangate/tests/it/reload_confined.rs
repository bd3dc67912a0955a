//! `reload` in a worker that cannot read its files: it is in a `chroot`, and another user's. Its
//! master reads them.

use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::common::http::Client;
use crate::common::tls::{Authority, secure};
use crate::common::{Folder, Port, address, listener, skipped, sys};
use crate::reload_in_place::{Reloaded, get};

/// Lines of `global`: only root reads the files of a test, and the process is not root's any more.
const CONFINED: &str = " chroot auto\n uid 65534\n gid 65534\n";

/// A folder that only its owner enters.
fn private_folder() -> Folder {
    let folder = Folder::new();
    let owner = std::fs::Permissions::from_mode(0o700);
    std::fs::set_permissions(folder.root(), owner).expect("a mode");
    folder
}

/// A private key with the passphrase `open`, in a PEM text with its certificate.
fn encrypted(folder: &Folder, pem: &str) -> String {
    let plain = folder.write("plain", pem);
    let command = format!("openssl pkcs8 -topk8 -v2 aes-256-cbc -passout pass:open -in {plain}");
    let mut words = command.split(' ');
    let output = std::process::Command::new(words.next().expect("a program"))
        .args(words)
        .output()
        .expect("openssl runs");
    assert!(output.status.success());
    let certificate = pem.find("-----BEGIN PRIVATE KEY").expect("a key");
    let (first, second) = pem.split_at(certificate);
    let end = "-----END PRIVATE KEY-----\n";
    let rest = second.split_once(end).expect("its end").1;
    format!("{first}{rest}{}", String::from_utf8_lossy(&output.stdout))
}

fn is_served(front: &std::net::TcpListener, authority: &Authority, name: &str) -> bool {
    let stream = TcpStream::connect(address(front)).expect("a connection");
    let mut client = Client::over(secure(stream, authority, name));
    client.get("/").status == 200
}

#[test]
fn the_master_reads_every_kind_of_file() {
    if !sys::is_root() {
        return skipped("only root changes its root directory");
    }
    let (authority, folder) = (Authority::new("root"), private_folder());
    let (front, tls) = (listener(), listener());
    let mut names = Vec::new();
    let mut write = |name: &str, text: &str| {
        names.push(name.to_owned());
        folder.write(name, text)
    };
    let certificates = folder.path("certificates");
    std::fs::create_dir(&certificates).expect("a folder");
    let certificates = certificates.display().to_string();
    let chains = folder.path("chains");
    std::fs::create_dir(&chains).expect("a folder");
    let chains = chains.display().to_string();
    write("chains/root.pem", &authority.pem());
    write("certificates/one.pem", &authority.issue(&["one.test"]));
    let listed = write("listed.pem", &authority.issue(&["listed.test"]));
    let list = write("list", &format!("{listed}\n"));
    let locked = encrypted(&folder, &authority.issue(&["locked.test"]));
    let locked = write("locked.pem", &locked);
    let helper = write("helper", "#!/bin/sh\necho open\n");
    let authorities = write("ca.pem", &authority.pem());
    let tickets = write("tickets", &format!("{}\n", "A".repeat(64)).repeat(3));
    let case = write("case", "host Host\n");
    let key = "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEEVs/o5+uQbTjL3chynL4wXgUg2R9q9UU8I5mEovUf86QZ7kOBIjJwqnzD1omageEHWwHdBO6B+dFabmdT9POxg==";
    let key = write(
        "key.pem",
        &format!("-----BEGIN PUBLIC KEY-----\n{key}\n-----END PUBLIC KEY-----\n"),
    );
    let map = write("map", "/ before\n");
    let blocked = write("blocked", "/never\n");
    let page = write("page", "HTTP/1.1 503 No\r\ncontent-length: 6\r\n\r\nbefore");
    for name in &names {
        let mode = if name == "helper" { 0o700 } else { 0o600 };
        let owner = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(folder.path(name), owner).expect("a mode");
    }
    let global = format!(
        "{CONFINED} ssl-passphrase-cmd {helper}\n h1-case-adjust-file {case}\n issuers-chain-path {chains}\n"
    );
    let lines = |rule: &str| {
        format!(
            "resolvers r
 parse-resolv-conf
frontend f
 bind \"fd@${{FRONT}}\"
 bind \"fd@${{TLS}}\" ssl crt {certificates} crt {locked} crt-list {list} ca-file {authorities} verify optional tls-ticket-keys {tickets}
 errorfile 503 {page}
 http-request set-var(req.right) req.hdr(token),jwt_verify(\"ES256\",\"{key}\")
 acl near src localhost
 {rule}
 http-request return status 403 if {{ path -f {blocked} }}
 http-request return status 200 content-type text/plain lf-string %[path,map({map},none)] unless {{ path /page }}
 default_backend b
backend b
 retries 0
 server s localhost:1 ssl verify required ca-file @system-ca resolvers r
"
        )
    };
    let listeners = [("FRONT", &front), ("TLS", &tls)];
    let proxy = Reloaded::start_with(folder, &global, &lines(""), &listeners, &["-W"]);
    let folder = &proxy.proxy.folder;
    assert_eq!(get(address(&front), "/"), "before");
    assert_eq!(get(address(&front), "/page"), "before");
    assert!(is_served(&tls, &authority, "locked.test"));

    folder.write("map", "/ after\n");
    folder.write("page", "HTTP/1.1 503 No\r\ncontent-length: 5\r\n\r\nafter");
    folder.write("blocked", "/blocked\n");
    folder.write("certificates/two.pem", authority.issue(&["two.test"]));
    let rule = "http-request return status 200 content-type text/plain string new if { path /new }";
    proxy.reload(&lines(rule));
    assert_eq!(get(address(&front), "/"), "after");
    assert_eq!(get(address(&front), "/page"), "after");
    assert_eq!(get(address(&front), "/new"), "new");
    let mut client = Client::connect(address(&front));
    assert_eq!(client.get("/blocked").status, 403);
    for name in ["one.test", "two.test", "listed.test", "locked.test"] {
        assert!(is_served(&tls, &authority, name), "{name}");
    }

    // The reason for a refusal is the file's.
    std::fs::remove_file(folder.path("map")).expect("a file");
    let refused = proxy.ask("reload");
    assert!(refused.contains("failed to open pattern file"), "{refused}");
    assert!(refused.contains("Nothing has changed"), "{refused}");
    assert_eq!(get(address(&front), "/"), "after");
    folder.write("map", "/ again\n");
    proxy.reload(&lines(rule));
    assert_eq!(get(address(&front), "/"), "again");
    assert!(is_served(&tls, &authority, "locked.test"));
}

#[test]
fn a_confined_process_opens_ports_but_no_paths() {
    if !sys::is_root() {
        return skipped("only root changes its root directory");
    }
    let (folder, front, port) = (private_folder(), listener(), Port::reserve());
    let socket = folder.path("front.sock");
    let lines = "frontend f\n bind \"fd@${FRONT}\"\n http-request return status 200 content-type text/plain string one\n";
    let proxy = Reloaded::start_with(folder, CONFINED, lines, &[("FRONT", &front)], &["-W"]);
    proxy.write(&format!("{lines} bind {}\n", socket.display()));
    let refused = proxy.ask("reload");
    assert!(refused.contains("outside of the chroot auto"), "{refused}");
    assert!(!Path::new(&socket).exists());
    // Only processes of the same user may share a port.
    let number = port.number;
    drop(port);
    proxy.reload(&format!("{lines} bind 127.0.0.1:{number}\n"));
    assert_eq!(get(([127, 0, 0, 1], number).into(), "/"), "one");
}

#[test]
fn without_a_master_a_chroot_refuses_a_reload() {
    if !sys::is_root() {
        return skipped("only root changes its root directory");
    }
    let front = listener();
    let lines = "frontend f\n bind \"fd@${FRONT}\"\n http-request return status 200 content-type text/plain string one\n";
    let listeners = [("FRONT", &front)];
    let proxy = Reloaded::start_with(private_folder(), CONFINED, lines, &listeners, &[]);
    let refused = proxy.ask("reload");
    assert!(refused.contains("has no master"), "{refused}");
    assert_eq!(get(address(&front), "/"), "one");
}

/// The master's reader of one reload may not have ended when the next one begins.
#[test]
fn reloads_in_a_row_are_all_done() {
    let front = listener();
    let lines = |text: &str| {
        format!(
            "frontend f\n bind \"fd@${{FRONT}}\"\n http-request return status 200 content-type text/plain string {text}\n"
        )
    };
    let listeners = [("FRONT", &front)];
    let proxy = Reloaded::start_with(Folder::new(), "", &lines("0"), &listeners, &["-W"]);
    for number in 1..40 {
        let text = number.to_string();
        proxy.reload(&lines(&text));
        assert_eq!(get(address(&front), "/"), text);
    }
}

/// Descriptors of the process itself are no listeners.
#[test]
fn a_running_process_takes_no_descriptors() {
    let front = listener();
    let lines = "frontend f\n bind \"fd@${FRONT}\"\n http-request return status 200 content-type text/plain string one\n";
    for arguments in [&["-W"][..], &[]] {
        let listeners = [("FRONT", &front)];
        let proxy = Reloaded::start_with(Folder::new(), "", lines, &listeners, arguments);
        for number in 3..24 {
            proxy.write(&format!("{lines} bind fd@{number}\n"));
            let answer = proxy.ask("reload");
            let is_refused = answer.contains("inherits no descriptor");
            assert!(is_refused, "{number}: {answer}");
        }
        proxy.reload(lines);
        assert_eq!(get(address(&front), "/"), "one");
    }
}

#[test]
fn a_pipe_is_refused_at_once() {
    let front = listener();
    let folder = Folder::new();
    let map = folder.write("map", "/ one\n");
    let lines = format!(
        "frontend f\n bind \"fd@${{FRONT}}\"\n http-request return status 200 content-type text/plain lf-string %[path,map({map},none)]\n"
    );
    let listeners = [("FRONT", &front)];
    let proxy = Reloaded::start_with(folder, "", &lines, &listeners, &["-W"]);
    let map = Path::new(&map);
    std::fs::remove_file(map).expect("a file");
    let made = std::process::Command::new("mkfifo").arg(map).status();
    assert!(made.expect("mkfifo runs").success());
    let refused = proxy.ask("reload");
    assert!(refused.contains("failed to open pattern file"), "{refused}");
    assert_eq!(get(address(&front), "/"), "one");
    std::fs::remove_file(map).expect("a pipe");
    std::fs::write(map, "/ two\n").expect("a file");
    proxy.reload(&lines);
    assert_eq!(get(address(&front), "/"), "two");
}
