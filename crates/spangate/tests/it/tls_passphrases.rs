//! Private keys with a passphrase: `ssl-passphrase-cmd` (manual §3.1) and `ca-sign-pass` (§5.1).

use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt as _;

use crate::common::http::Client;
use crate::common::tls::{Authority, has, program, secure};
use crate::common::{DEFAULTS, Folder, Proxy, address, listener, run};

/// A PEM text whose key is encrypted with the passphrase `open`.
fn encrypted(pem: &str) -> String {
    let output = program(
        "openssl",
        &[
            "pkcs8",
            "-topk8",
            "-v2",
            "aes-256-cbc",
            "-passout",
            "pass:open",
        ],
        pem.as_bytes(),
    );
    assert!(output.status.success(), "{}", output.stderr);
    let end = "-----END CERTIFICATE-----\n";
    let end = pem.find(end).expect("a certificate") + end.len();
    pem[..end].to_owned() + &output.stdout
}

/// A program that notes its arguments in `asked` and prints this.
fn helper(folder: &Folder, prints: &str) -> String {
    let asked = folder.path("asked");
    let script = format!("#!/bin/sh\necho \"$@\" >> {}\n{prints}\n", asked.display());
    let path = folder.write("helper", script);
    let mode = std::fs::Permissions::from_mode(0o700);
    std::fs::set_permissions(&path, mode).expect("a mode");
    path
}

fn is_served(at: SocketAddr, authority: &Authority, name: &str) -> bool {
    let stream = TcpStream::connect(at).expect("a connection");
    let mut client = Client::over(secure(stream, authority, name));
    client.get("/").status == 200
}

#[test]
fn a_program_prints_the_passphrases() {
    if !has("openssl") {
        return;
    }
    let (authority, folder, front) = (Authority::new("root"), Folder::new(), listener());
    let one = folder.write("one.pem", encrypted(&authority.issue(&["one.test"])));
    // The same passphrase again: the program is not asked.
    let two = folder.write("two.pem", encrypted(&authority.issue(&["two.test"])));
    let helper = helper(&folder, "echo open");
    let asked = folder.path("asked");
    let config = format!(
        "global\n ssl-passphrase-cmd {helper} of mine\n{DEFAULTS}\nfrontend f\n \
         bind \"fd@${{FRONT}}\" ssl crt {one} crt {two}\n http-request return status 200\n"
    );
    let proxy = Proxy::start_in(folder, &config, &[("FRONT", &front)]);
    assert!(is_served(address(&front), &authority, "one.test"));
    assert!(is_served(address(&front), &authority, "two.test"));
    let asked = std::fs::read_to_string(&asked).expect("the program's notes");
    assert_eq!(asked, format!("{one} of mine\n"));
    proxy.stop();
}

#[test]
fn without_the_passphrase_the_configuration_is_refused() {
    if !has("openssl") {
        return;
    }
    let folder = Folder::new();
    let pem = encrypted(&Authority::new("root").issue(&["one.test"]));
    let crt = folder.write("one.pem", pem);
    for (prints, why) in [
        (None, "no 'ssl-passphrase-cmd' is defined"),
        (Some("echo other"), "its passphrase is another one"),
        (Some("exit 3"), "exit status: 3"),
        (Some("yes"), "more than 1024 bytes"),
    ] {
        let global = prints.map(|prints| {
            let helper = helper(&folder, prints);
            format!("global\n ssl-passphrase-cmd {helper}\n")
        });
        let global = global.unwrap_or_default();
        let config = format!("{global}{DEFAULTS}\nfrontend f\n bind 127.0.0.1:1 ssl crt {crt}\n");
        let output = run(&["-c", "-f", &folder.write("cfg", config)]);
        assert_eq!(output.status.code(), Some(1), "{}", output.stderr);
        let told = format!("the private key in '{crt}' is encrypted: ");
        assert!(output.stderr.contains(&told), "{}", output.stderr);
        assert!(output.stderr.contains(why), "{why}: {}", output.stderr);
    }
}

#[test]
fn the_key_of_a_signing_authority_may_have_a_passphrase() {
    if !has("openssl") {
        return;
    }
    let (authority, folder, front) = (Authority::new("root"), Folder::new(), listener());
    let signer = encrypted(&(authority.pem() + &authority.key_pem()));
    let signer = folder.write("signer.pem", signer);
    let crt = folder.write("one.pem", authority.issue(&["one.test"]));
    let config = format!(
        "{DEFAULTS}\nfrontend f\n bind \"fd@${{FRONT}}\" ssl crt {crt} generate-certificates ca-sign-file {signer} \
         ca-sign-pass open\n http-request return status 200\n"
    );
    let refused = config
        .replace("fd@${FRONT}", "127.0.0.1:1")
        .replace(" ca-sign-pass open", " ca-sign-pass other");
    let output = run(&["-c", "-f", &folder.write("cfg", refused)]);
    let why = "its passphrase is another one";
    assert!(output.stderr.contains(why), "{}", output.stderr);
    assert!(
        !output.stderr.contains("ca-sign-pass other"),
        "{}",
        output.stderr
    );
    let proxy = Proxy::start_in(folder, &config, &[("FRONT", &front)]);
    assert!(is_served(address(&front), &authority, "made.test"));
    proxy.stop();
}
