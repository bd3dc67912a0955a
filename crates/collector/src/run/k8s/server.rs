//! An API server of the test's making, over TLS.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::Pod;
use crate::config::components::shared::retry::Retry;

/// How long anything may take.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Waits that no test feels.
static AT_ONCE: Retry = Retry {
    first: Duration::from_millis(1),
    multiplier: 2.0,
    spread: 0.0,
    delay_max: Duration::from_millis(10),
    asked_max: Duration::MAX,
    elapsed_max: None,
};

/// The server, and the pod that knows of it.
pub struct Server {
    pub pod: Pod,
    asked: mpsc::UnboundedReceiver<Asked>,
}

/// A request that waits for its answer; without one its connection is closed.
pub struct Asked {
    /// Path and query.
    pub target: String,
    /// What `Authorization` says.
    pub token: String,
    reply: mpsc::UnboundedSender<Vec<u8>>,
}

impl Server {
    pub async fn start() -> Server {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let authority = CertifiedIssuer::self_signed(params, key).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let pod = Pod {
            host: Some("127.0.0.1".into()),
            port: Some(port.to_string()),
            account: folder(),
            again: &AT_ONCE,
        };
        std::fs::write(pod.account.join("ca.crt"), authority.pem()).unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config(&authority)));
        let (asks, asked) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, asks) = (acceptor.clone(), asks.clone());
                tokio::spawn(async move {
                    if let Ok(stream) = acceptor.accept(stream).await {
                        serve(stream, &asks).await;
                    }
                });
            }
        });
        let server = Server { pod, asked };
        server.write("token", "one\n");
        server.write("namespace", "own\n");
        server
    }

    /// Changes a file of the pod's account.
    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.pod.account.join(name), text).unwrap();
    }

    /// The next request.
    pub async fn asked(&mut self) -> Asked {
        let asked = timeout(PATIENCE, self.asked.recv()).await;
        asked.expect("a request").expect("a server")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.pod.account);
    }
}

impl Asked {
    /// Answers with a body.
    pub fn answer(&self, status: u16, body: &str) {
        let len = body.len();
        self.write(format!("HTTP/1.1 {status} x\r\nContent-Length: {len}\r\n\r\n{body}").into());
    }

    /// Begins a stream; the pieces of it follow.
    pub fn begin(&self) {
        self.write(b"HTTP/1.1 200 x\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec());
    }

    pub fn piece(&self, piece: &str) {
        self.write(format!("{:x}\r\n{piece}\r\n", piece.len()).into());
    }

    /// Ends the stream as it is to end.
    pub fn end(self) {
        self.write(b"0\r\n\r\n".to_vec());
    }

    fn write(&self, bytes: Vec<u8>) {
        // Whoever asked may be gone.
        let _ = self.reply.send(bytes);
    }
}

fn folder() -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Relaxed);
    let name = format!("spangate-k8s-{}-{number}", std::process::id());
    let path = std::env::temp_dir().join(name);
    std::fs::create_dir_all::<&Path>(&path).unwrap();
    path
}

fn config(authority: &CertifiedIssuer<'static, KeyPair>) -> ServerConfig {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let certificate = params.signed_by(&key, authority).unwrap();
    let chain = vec![CertificateDer::from_pem_slice(certificate.pem().as_bytes()).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap()
}

/// Requests one after the other, each answered by the test.
async fn serve(mut stream: TlsStream<TcpStream>, asks: &mpsc::UnboundedSender<Asked>) {
    while let Some((target, token)) = head(&mut stream).await {
        let (reply, mut replies) = mpsc::unbounded_channel();
        let asked = Asked {
            target,
            token,
            reply,
        };
        if asks.send(asked).is_err() {
            return;
        }
        let mut last = Vec::new();
        while let Some(bytes) = replies.recv().await {
            if stream.write_all(&bytes).await.is_err() {
                return;
            }
            last = bytes;
        }
        // What has not come to its end is broken off.
        let is_whole = last == b"0\r\n\r\n" || last.windows(8).any(|word| word == b"Content-");
        if !is_whole {
            return;
        }
    }
}

/// The target and the credential of a request.
async fn head(stream: &mut TlsStream<TcpStream>) -> Option<(String, String)> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).unwrap();
    let target = head.strip_prefix("GET ")?.split(' ').next()?.to_owned();
    let token = head.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("authorization").then_some(value)
    });
    Some((target, token?.to_owned()))
}
