//! Certificates for tests, and programs with TLS and HTTP/2: curl, openssl, nginx.

use std::fs;
use std::io::Write as _;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsRawFd as _;
use std::process::{Command, Stdio};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, CustomExtension, DistinguishedName,
    DnType, IsCa, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_RSA_SHA256,
};

use super::{Folder, Output, Running, address, skipped, sys};

/// An authority that issues certificates.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Ecdsa,
    Rsa,
}

impl Authority {
    pub fn new(name: &str) -> Authority {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.distinguished_name = named(name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        Authority(CertifiedIssuer::self_signed(params, key).expect("a certificate"))
    }

    pub fn pem(&self) -> String {
        self.0.pem()
    }

    pub fn key_pem(&self) -> String {
        self.0.key().serialize_pem()
    }

    /// The certificate for these names and its key, in one text as in HAProxy's `crt`. The first
    /// name is the common name.
    pub fn issue(&self, names: &[&str]) -> String {
        self.issue_kind(names, Kind::Ecdsa)
    }

    pub fn issue_kind(&self, names: &[&str], kind: Kind) -> String {
        self.issue_with(names, kind, |_| {})
    }

    /// A certificate that names the responder for its status.
    pub fn issue_asked_at(&self, names: &[&str], responder: &str) -> String {
        self.issue_with(names, Kind::Ecdsa, |params| {
            // RFC 5280 §4.2.2.1: a sequence of pairs of a method (OCSP) and an address.
            let method = [6, 8, 0x2b, 6, 1, 5, 5, 7, 0x30, 1];
            let location = element(0x86, responder.as_bytes());
            let pair = element(0x30, &[&method[..], &location].concat());
            let id = [1, 3, 6, 1, 5, 5, 7, 1, 1];
            let list = element(0x30, &pair);
            let extension = CustomExtension::from_oid_content(&id, list);
            params.custom_extensions.push(extension);
        })
    }

    fn issue_with(
        &self,
        names: &[&str],
        kind: Kind,
        change: impl FnOnce(&mut CertificateParams),
    ) -> String {
        let all: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(all).expect("names");
        params.distinguished_name = named(names[0]);
        change(&mut params);
        let key = KeyPair::generate_for(match kind {
            Kind::Ecdsa => &PKCS_ECDSA_P256_SHA256,
            Kind::Rsa => &PKCS_RSA_SHA256,
        });
        let key = key.expect("a key");
        let certificate = params.signed_by(&key, &self.0).expect("a certificate");
        certificate.pem() + &key.serialize_pem()
    }
}

/// An element of DER with a short content.
fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let len = u8::try_from(content.len()).expect("short");
    assert!(len < 0x80);
    [&[tag, len], content].concat()
}

fn named(name: &str) -> DistinguishedName {
    let mut full = DistinguishedName::new();
    full.push(DnType::CommonName, name);
    full
}

/// Whether a program is installed; otherwise reports that the test is skipped.
pub fn has(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let sbin = ["/usr/sbin".into(), "/sbin".into()];
    let is_there = std::env::split_paths(&path)
        .chain(sbin)
        .any(|folder| folder.join(program).is_file());
    if !is_there {
        skipped(&format!("{program} is not installed"));
    }
    is_there
}

/// Runs a program to its end, with this standard input.
pub fn program(name: &str, arguments: &[&str], input: &[u8]) -> Output {
    let mut command = Command::new(name);
    command.args(arguments).stdin(Stdio::piped());
    let mut running = Running::start(command);
    let mut stdin = running.child.stdin.take().expect("piped");
    let input = input.to_vec();
    // It may end without reading.
    let written = super::spawn(move || drop(stdin.write_all(&input)));
    let output = running.end();
    super::join(&written, "its input");
    output
}

/// The result of curl.
#[derive(Debug)]
pub struct Fetched {
    pub status: u16,
    /// `1.1` or `2`.
    pub version: String,
    /// The number of connections that it made.
    pub connections: u32,
    pub uploaded: u64,
    /// All heads, one after the other.
    pub heads: String,
    pub body: Vec<u8>,
    /// 0 means success.
    pub exit: i32,
}

impl Fetched {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The value of a field of the last head.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.heads.lines().rev().find_map(|line| {
            let (field, value) = line.split_once(':')?;
            field.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

/// Fetches with curl, whose last argument is the URL.
pub fn curl(folder: &Folder, arguments: &[&str]) -> Fetched {
    static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let (heads, body) = (
        folder.path(&format!("curl-{number}.heads")),
        folder.path(&format!("curl-{number}.body")),
    );
    let told = "%{http_code} %{http_version} %{num_connects} %{size_upload}\n";
    let mut command = Command::new("curl");
    command
        .args([
            "-s",
            "--noproxy",
            "*",
            "--connect-timeout",
            "10",
            "-w",
            told,
        ])
        .args(["--max-time", "20"])
        .arg("-D")
        .arg(&heads)
        .arg("-o")
        .arg(&body)
        .args(arguments)
        .stdin(Stdio::null());
    let output = Running::start(command).end();
    let last = output.stdout.lines().last().unwrap_or_default();
    let mut words = last.split(' ');
    let mut word = || words.next().unwrap_or_default();
    Fetched {
        status: word().parse().unwrap_or(0),
        version: word().to_owned(),
        connections: word().parse().unwrap_or(0),
        uploaded: word().parse().unwrap_or(0),
        heads: fs::read_to_string(&heads).unwrap_or_default(),
        body: fs::read(&body).unwrap_or_default(),
        exit: output.status.code().unwrap_or(-1),
    }
}

/// The output of `openssl s_client` on a connection on which it requests `/`.
pub fn s_client(to: SocketAddr, arguments: &[&str]) -> Output {
    let at = to.to_string();
    let mut all = vec!["s_client", "-connect", &at, "-ign_eof"];
    all.extend(arguments);
    let request = b"GET / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n";
    program("openssl", &all, request)
}

/// nginx with these lines in its `http` section. It uses listeners that the test created.
pub struct Nginx {
    running: Running,
    pub folder: Folder,
}

impl Nginx {
    pub fn start(folder: Folder, http: &str, listeners: &[&TcpListener]) -> Nginx {
        let root = folder.root().display();
        let config = format!(
            "user root; daemon off; worker_processes 1; pid {root}/nginx.pid; error_log {root}/error.log;
events {{ worker_connections 512; }}
http {{
    access_log {root}/access.log;
    client_body_temp_path {root}/body; proxy_temp_path {root}/proxy; fastcgi_temp_path {root}/fastcgi;
    uwsgi_temp_path {root}/uwsgi; scgi_temp_path {root}/scgi;
    client_max_body_size 100m; root {root}/www;
    {http}
}}
"
        );
        let file = folder.write("nginx.conf", config);
        let mut command = Command::new("nginx");
        // It inherits its sockets, so no wait until it listens is needed.
        let fds: Vec<_> = listeners.iter().map(|each| each.as_raw_fd()).collect();
        let names: String = fds.iter().map(|fd| format!("{fd};")).collect();
        command
            .args(["-c", &file, "-e", &format!("{root}/error.log")])
            .env("NGINX", names)
            .stdin(Stdio::null());
        sys::inherit(&mut command, fds);
        Nginx {
            running: Running::start(command),
            folder,
        }
    }

    /// Its error output so far.
    pub fn errors(&self) -> String {
        fs::read_to_string(self.folder.path("error.log")).unwrap_or_default()
    }
}

impl Drop for Nginx {
    /// Ends nginx and its worker.
    fn drop(&mut self) {
        self.running.signal(libc::SIGTERM);
        let _ = self.running.child.wait();
    }
}

/// The address of a `listen` line.
pub fn at(listener: &TcpListener) -> String {
    address(listener).to_string()
}

/// A connection with TLS.
pub type Secure = rustls::StreamOwned<rustls::ClientConnection, std::net::TcpStream>;

impl super::http::Wire for Secure {
    fn close_write(&self) {
        super::http::Wire::close_write(&self.sock);
    }
}

/// A client that accepts certificates of `authority`, with these versions of TLS, and with a
/// certificate of its own if one is given (PEM with its key).
pub fn client_config(
    authority: &Authority,
    own: Option<&str>,
    versions: &[&'static rustls::SupportedProtocolVersion],
) -> rustls::ClientConfig {
    use rustls::pki_types::pem::PemObject as _;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer};
    let root = CertificateDer::from_pem_slice(authority.pem().as_bytes()).expect("PEM");
    let mut roots = rustls::RootCertStore::empty();
    roots.add(root).expect("an authority");
    let provider = std::sync::Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .expect("versions")
        .with_root_certificates(roots);
    match own {
        None => builder.with_no_client_auth(),
        Some(pem) => {
            let chain = CertificateDer::from_pem_slice(pem.as_bytes()).expect("a certificate");
            let key = PrivateKeyDer::from_pem_slice(pem.as_bytes()).expect("a key");
            let config = builder.with_client_auth_cert(vec![chain], key);
            config.expect("a key of the certificate")
        }
    }
}

/// Starts TLS on a connection, with a server name. The client accepts certificates of `authority`.
pub fn secure(stream: std::net::TcpStream, authority: &Authority, name: &str) -> Secure {
    let config = client_config(authority, None, rustls::ALL_VERSIONS);
    let name = name.to_owned().try_into().expect("a name");
    let session = rustls::ClientConnection::new(std::sync::Arc::new(config), name);
    stream
        .set_read_timeout(Some(super::DEADLINE))
        .expect("a timeout");
    stream.set_nodelay(true).expect("an option");
    rustls::StreamOwned::new(session.expect("a session"), stream)
}
