//! TLS between collectors.

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::*;

/// A folder with an authority and what it has signed.
pub(super) struct Authority(CertifiedIssuer<'static, KeyPair>, TempFile);

impl Authority {
    pub(super) fn new() -> Authority {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let issuer = CertifiedIssuer::self_signed(params, key).unwrap();
        let file = TempFile::new();
        std::fs::write(&file.0, issuer.pem()).unwrap();
        Authority(issuer, file)
    }

    /// Where its own certificate is.
    pub(super) fn file(&self) -> String {
        self.1.0.display().to_string()
    }

    /// A certificate for a name, and its key.
    pub(super) fn signed(&self, name: &str) -> [TempFile; 2] {
        let [certificate, key] = [TempFile::new(), TempFile::new()];
        self.sign(name, &certificate, &key);
        [certificate, key]
    }

    /// A connection to a server of a name that the authority has signed.
    pub(super) async fn connect(
        &self,
        at: &str,
        name: &'static str,
        protocol: &[u8],
    ) -> TlsStream<TcpStream> {
        let mut roots = RootCertStore::empty();
        roots.add(self.0.der().clone()).expect("a certificate");
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions");
        let mut config = config.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = vec![protocol.to_vec()];
        let stream = TcpStream::connect(at).await.expect("a server");
        let name = ServerName::try_from(name).expect("a name");
        let connector = TlsConnector::from(Arc::new(config));
        connector.connect(name, stream).await.expect("TLS")
    }

    /// Writes a certificate for a name, and its key.
    pub(super) fn sign(&self, name: &str, certificate: &TempFile, key: &TempFile) {
        let pair = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let signed = params.signed_by(&pair, &self.0).unwrap();
        std::fs::write(&key.0, pair.serialize_pem()).unwrap();
        std::fs::write(&certificate.0, signed.pem()).unwrap();
    }
}

pub(super) fn served(protocol: &str, certificate: &TempFile, key: &TempFile, more: &str) -> String {
    format!(
        "{protocol}: {{ endpoint: '127.0.0.1:0', tls: {{ cert_file: '{}', key_file: '{}', {more} }} }}",
        certificate.0.display(),
        key.0.display()
    )
}

#[tokio::test]
async fn a_server_may_have_another_name_and_clients_certificates() {
    let authority = Authority::new();
    let [certificate, key] = authority.signed("other.example");
    let [own, own_key] = authority.signed("client.example");
    let clients = format!(
        "client_ca_file: '{0}', client_ca_file_reload: true, include_system_ca_certs_pool: true, curve_preferences: [P256, X25519]",
        authority.file()
    );
    let grpc_served = served("grpc", &certificate, &key, &clients);
    let http_served = served("http", &certificate, &key, &clients);
    let sink = keeper(&format!("{grpc_served}, {http_served}"), "", "");
    let (grpc_at, http_at) = (address(&sink, "otlp grpc"), address(&sink, "otlp http"));
    let tls = format!(
        "ca_file: '{}', cert_file: '{}', key_file: '{}', server_name_override: other.example",
        authority.file(),
        own.0.display(),
        own_key.0.display()
    );
    let suite = "max_version: '1.2', cipher_suites: [TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256]";
    let exporters = format!(
        "otlp: {{ endpoint: '{grpc_at}', tls: {{ {tls}, {suite} }} }}, \
         otlphttp: {{ endpoint: 'https://{http_at}', tls: {{ {tls} }} }}"
    );
    let front = sender(&exporters, "otlp, otlphttp", "", "");
    taken(&grpc(&front), request(0, 10)).await;
    until("both arrive", || traces(&sink).accepted == 40).await;
    // Without the name, or without a certificate, nothing arrives.
    let nobody = format!(
        "ca_file: '{}', server_name_override: other.example",
        authority.file()
    );
    let unnamed = tls.replace(", server_name_override: other.example", "");
    for tls in [nobody, unnamed] {
        let exporter = format!(
            "otlphttp: {{ endpoint: 'https://{http_at}', tls: {{ {tls} }}, retry_on_failure: {{ enabled: false }} }}"
        );
        let stranger = sender(&exporter, "otlphttp", "", "");
        taken(&grpc(&stranger), request(0, 10)).await;
        until("it fails", || traces(&stranger).failed == 20).await;
    }
    assert_eq!(traces(&sink).accepted, 40);
}

#[tokio::test]
async fn certificates_are_read_again() {
    let (old, new) = (Authority::new(), Authority::new());
    let [certificate, key] = std::array::from_fn(|_| TempFile::new());
    old.sign("127.0.0.1", &certificate, &key);
    let sink = keeper(
        &served("http", &certificate, &key, "reload_interval: 1ms"),
        "",
        "",
    );
    let exporter = format!(
        "otlphttp: {{ endpoint: 'https://{}', tls: {{ ca_file: '{}' }}, retry_on_failure: {{ initial_interval: 20ms, max_interval: 50ms, max_elapsed_time: 0s }} }}",
        address(&sink, "otlp http"),
        new.file()
    );
    let front = sender(&exporter, "otlphttp", "", "");
    taken(&grpc(&front), request(0, 10)).await;
    // Whoever trusts the new authority only is kept waiting until the server has its certificate.
    tokio::task::yield_now().await;
    assert_eq!(traces(&sink).accepted, 0);
    new.sign("127.0.0.1", &certificate, &key);
    until("it arrives", || traces(&front).exported == 20).await;
    assert_eq!(traces(&sink).accepted, 20);
}
