//! TLS between collectors.

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ProtocolVersion, RootCertStore, SupportedProtocolVersion};
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
        let connected = self.try_connect(at, name, protocol, rustls::ALL_VERSIONS);
        connected.await.expect("TLS")
    }

    /// The same in one of these versions, if the server has one.
    async fn try_connect(
        &self,
        at: &str,
        name: &'static str,
        protocol: &[u8],
        versions: &[&'static SupportedProtocolVersion],
    ) -> std::io::Result<TlsStream<TcpStream>> {
        let mut roots = RootCertStore::empty();
        roots.add(self.0.der().clone()).expect("a certificate");
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)
            .expect("versions");
        let mut config = config.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = vec![protocol.to_vec()];
        let stream = TcpStream::connect(at).await?;
        let name = ServerName::try_from(name).expect("a name");
        let connector = TlsConnector::from(Arc::new(config));
        connector.connect(name, stream).await
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

/// What a server of HTTP with these options of TLS speaks with a client of these versions: its
/// version, its suite and its key exchange.
async fn spoken(
    options: &str,
    versions: &[&'static SupportedProtocolVersion],
) -> Option<(ProtocolVersion, String, String)> {
    let authority = Authority::new();
    let [certificate, key] = authority.signed("here.example");
    let sink = keeper(&served("http", &certificate, &key, options), "", "");
    let at = address(&sink, "otlp http");
    let stream = authority.try_connect(&at, "here.example", b"http/1.1", versions);
    let stream = stream.await.ok()?;
    let (_, connection) = stream.get_ref();
    let suite = connection.negotiated_cipher_suite().expect("a suite");
    let exchange = connection.negotiated_key_exchange_group().expect("one");
    let [suite, exchange] = [
        format!("{:?}", suite.suite()),
        format!("{:?}", exchange.name()),
    ];
    Some((connection.protocol_version()?, suite, exchange))
}

#[tokio::test]
async fn servers_speak_what_the_settings_say() {
    let old = &[&rustls::version::TLS12][..];
    let all = rustls::ALL_VERSIONS;
    assert!(spoken("", old).await.is_some());
    assert_eq!(spoken("min_version: '1.3'", old).await, None);
    let version = async |options: &str| spoken(options, all).await.expect("they agree").0;
    assert_eq!(version("").await, ProtocolVersion::TLSv1_3);
    assert_eq!(
        version("max_version: '1.2'").await,
        ProtocolVersion::TLSv1_2
    );
    let suite = "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256";
    for (options, is_it) in [("", false), (&*format!("cipher_suites: [{suite}]"), true)] {
        let (_, spoken, _) = spoken(options, old).await.expect("they agree");
        assert_eq!(spoken == suite, is_it, "{spoken}");
    }
    for (options, is_it) in [("", false), ("curve_preferences: [P384]", true)] {
        let (_, _, spoken) = spoken(options, all).await.expect("they agree");
        assert_eq!(spoken == "secp384r1", is_it, "{spoken}");
    }
}

/// Whether spans arrive over TLS between these options of the server and of the client, one after
/// the other.
async fn arrives(server: &str, client: &str) -> bool {
    let authority = Authority::new();
    let [certificate, key] = authority.signed("127.0.0.1");
    let sink = keeper(&served("http", &certificate, &key, server), "", "");
    let at = address(&sink, "otlp http");
    let ca = authority.file();
    let client = client.replace("CA", &format!("ca_file: '{ca}'"));
    sends(
        &sink,
        &format!("endpoint: 'https://{at}', tls: {{ {client} }}"),
    )
    .await
}

/// Whether an exporter of OTLP over HTTP with these options gets spans to a collector.
async fn sends(sink: &Collector, options: &str) -> bool {
    let exporter = format!("otlphttp: {{ {options}, retry_on_failure: {{ enabled: false }} }}");
    let front = sender(&exporter, "otlphttp", "", "");
    taken(&grpc(&front), request(0, 10)).await;
    until("it is sent or lost", || traces(&front).held() == 0).await;
    let balance = traces(&front);
    assert_eq!(balance.exported + balance.failed, 20);
    balance.exported == 20 && traces(sink).accepted == 20
}

#[tokio::test]
async fn clients_speak_what_the_settings_say() {
    const SUITES: [&str; 2] = [
        "cipher_suites: [TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256]",
        "cipher_suites: [TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384]",
    ];
    let old = |suites: &str| format!("max_version: '1.2', {suites}");
    for (server, client, expected) in [
        ("", "CA", true),
        ("max_version: '1.2'", "CA, min_version: '1.3'", false),
        ("min_version: '1.3'", "CA, max_version: '1.2'", false),
        (&*old(SUITES[0]), &*format!("CA, {}", SUITES[0]), true),
        (&*old(SUITES[0]), &*format!("CA, {}", SUITES[1]), false),
        (
            "curve_preferences: [X25519]",
            "CA, curve_preferences: [P384]",
            false,
        ),
        ("", "", false),
        ("", "insecure_skip_verify: true", true),
    ] {
        assert_eq!(
            arrives(server, client).await,
            expected,
            "{server}; {client}"
        );
    }
}

#[tokio::test]
async fn certificates_may_be_texts_of_the_settings() {
    let (authority, clients) = (Authority::new(), Authority::new());
    let text = |file: &TempFile| {
        let text = std::fs::read_to_string(&file.0).expect("a file");
        format!("\"{}\"", text.replace('\n', "\\n"))
    };
    let pair = |[certificate, key]: [TempFile; 2]| {
        format!("cert_pem: {}, key_pem: {}", text(&certificate), text(&key))
    };
    let server = pair(authority.signed("127.0.0.1"));
    let own = pair(clients.signed("client.example"));
    let sink = keeper(
        &format!(
            "http: {{ endpoint: '127.0.0.1:0', tls: {{ {server}, client_ca_file: '{}' }} }}",
            clients.file()
        ),
        "",
        "",
    );
    let ca = text(&authority.1);
    let at = address(&sink, "otlp http");
    let options = format!("endpoint: 'https://{at}', tls: {{ ca_pem: {ca}, {own} }}");
    assert!(sends(&sink, &options).await);
}

#[tokio::test]
async fn clients_and_servers_read_again_who_they_are_and_whom_they_trust() {
    let (authority, old, new) = (Authority::new(), Authority::new(), Authority::new());
    let [certificate, key] = authority.signed("127.0.0.1");
    let again =
        "retry_on_failure: { initial_interval: 20ms, max_interval: 50ms, max_elapsed_time: 0s }";
    let trusted = TempFile::new();
    // A server of other clients, until the client has another certificate; or until the server
    // trusts it.
    for reload in ["", "client_ca_file_reload: true"] {
        std::fs::copy(
            if reload.is_empty() {
                new.file()
            } else {
                old.file()
            },
            &trusted.0,
        )
        .unwrap();
        let clients = format!("client_ca_file: '{}', {reload}", trusted.0.display());
        let sink = keeper(&served("http", &certificate, &key, &clients), "", "");
        let signer = if reload.is_empty() { &old } else { &new };
        let [own, own_key] = signer.signed("client.example");
        let every = if reload.is_empty() {
            "reload_interval: 1ms"
        } else {
            ""
        };
        let exporter = format!(
            "otlphttp: {{ endpoint: 'https://{}', tls: {{ ca_file: '{}', cert_file: '{}', key_file: '{}', {every} }}, {again} }}",
            address(&sink, "otlp http"),
            authority.file(),
            own.0.display(),
            own_key.0.display()
        );
        let (front, lines) = start_logged(
            Level::Warn,
            &format!(
                "receivers: {{ otlp: {{ protocols: {{ grpc: {ANYWHERE} }} }} }}\nexporters: {{ {exporter} }}\n\
                 service: {{ {NO_METRICS}, pipelines: {{ traces: {{ receivers: [otlp], exporters: [otlphttp] }} }} }}"
            ),
        );
        taken(&grpc(&front), request(0, 10)).await;
        until("an attempt fails", || {
            !lines.lock().expect("no panic").is_empty()
        })
        .await;
        assert_eq!(traces(&sink).accepted, 0, "{reload}");
        match reload {
            "" => new.sign("client.example", &own, &own_key),
            _ => drop(std::fs::copy(new.file(), &trusted.0).unwrap()),
        }
        until("it arrives", || traces(&front).exported == 20).await;
    }
}

#[tokio::test]
async fn the_systems_authorities_are_trusted_too_where_that_is_asked_for() {
    let variable = "SSL_CERT_FILE";
    let name =
        "serve::options::tls::the_systems_authorities_are_trusted_too_where_that_is_asked_for";
    if std::env::var_os("SPANGATE_TEST_CHILD").is_none() {
        // The variables of a process are set at its start.
        let (authority, file) = (Authority::new(), TempFile::new());
        let [certificate, key] = authority.signed("127.0.0.1");
        let files = [&certificate, &key].map(|file| file.0.display().to_string());
        std::fs::write(&file.0, files.join("\n")).unwrap();
        let own = std::env::current_exe().expect("a program");
        let run = std::process::Command::new(own)
            .args(["--exact", name])
            .env(variable, authority.file())
            .env("SPANGATE_TEST_CHILD", &file.0)
            .output()
            .expect("it runs");
        let told = String::from_utf8_lossy(&run.stdout);
        assert!(run.status.success() && told.contains("1 passed"), "{told}");
        return;
    }
    // Signed by the system's authority; another one is named.
    let child = std::env::var("SPANGATE_TEST_CHILD").expect("text");
    let files = std::fs::read_to_string(child).expect("a file");
    let (certificate, key) = files.split_once('\n').expect("two");
    let other = Authority::new();
    let own = format!("cert_file: '{certificate}', key_file: '{key}'");
    for (system, expected) in [("false", false), ("true", true)] {
        let system = format!("include_system_ca_certs_pool: {system}");
        let sink = keeper(
            &format!("http: {{ endpoint: '127.0.0.1:0', tls: {{ {own} }} }}"),
            "",
            "",
        );
        let at = address(&sink, "otlp http");
        let ca = format!("ca_file: '{}', {system}", other.file());
        let options = format!("endpoint: 'https://{at}', tls: {{ {ca} }}");
        assert_eq!(sends(&sink, &options).await, expected, "{system}");
        // The same of the server.
        let clients = format!("client_ca_file: '{}', {system}", other.file());
        let server = format!("http: {{ endpoint: '127.0.0.1:0', tls: {{ {own}, {clients} }} }}");
        let sink = keeper(&server, "", "");
        let at = address(&sink, "otlp http");
        let options =
            format!("endpoint: 'https://{at}', tls: {{ insecure_skip_verify: true, {own} }}");
        assert_eq!(sends(&sink, &options).await, expected, "{system}");
    }
}
