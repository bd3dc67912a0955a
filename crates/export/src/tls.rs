//! TLS of exporters, and what servers of telemetry need of the same settings: rustls, as the settings say.

use std::sync::Arc;
use std::time::Duration;

use hyper_rustls::{ConfigBuilderExt, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::version::{TLS12, TLS13};
use rustls::{
    ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme, SupportedProtocolVersion,
};
use telemetry::settings::{Pem, Tls, TlsVersion};

/// Silence of a connection after which the kernel asks whether the other side is still there.
const KEEPALIVE: Duration = Duration::from_secs(30);
/// Time that sent bytes may stay unacknowledged.
const UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(30);

/// The versions of HTTP that a connection is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    Http1,
    Http2,
}

/// Opens connections to `http` and `https` receivers.
pub(crate) fn connector(
    tls: &Tls,
    is_https: bool,
    version: Version,
    connect_max: Duration,
) -> Result<HttpsConnector<HttpConnector>, String> {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(Some(connect_max));
    tcp.set_keepalive(Some(KEEPALIVE));
    tcp.set_tcp_user_timeout(Some(UNACKNOWLEDGED_MAX));
    let config = match is_https {
        true => client_config(tls)?,
        // Not used, and so not worth reading the authorities of the system.
        false => builder(tls)?
            .with_root_certificates(RootCertStore::empty())
            .with_no_client_auth(),
    };
    let builder = HttpsConnectorBuilder::new().with_tls_config(config);
    let builder = builder.https_or_http();
    Ok(match version {
        Version::Http1 => builder.enable_http1().wrap_connector(tcp),
        Version::Http2 => builder.enable_http2().wrap_connector(tcp),
    })
}

type Builder = rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier>;

fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}

/// Versions of TLS.
type Versions = &'static [&'static SupportedProtocolVersion];

/// The versions from one to another.
#[must_use]
pub fn versions(min: TlsVersion, max: TlsVersion) -> Versions {
    static ALL: [&SupportedProtocolVersion; 2] = [&TLS12, &TLS13];
    match (min, max) {
        (TlsVersion::V12, TlsVersion::V12) => &ALL[..1],
        (TlsVersion::V12, TlsVersion::V13) => &ALL,
        (TlsVersion::V13, _) => &ALL[1..],
    }
}

fn builder(tls: &Tls) -> Result<Builder, String> {
    ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(versions(tls.version_min, tls.version_max))
        .map_err(|error| error.to_string())
}

fn client_config(tls: &Tls) -> Result<ClientConfig, String> {
    let builder = builder(tls)?;
    let builder = match (&tls.ca, tls.verify) {
        (_, false) => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Anyone(provider()))),
        (Some(pem), true) => builder.with_root_certificates(roots(pem)?),
        (None, true) => builder
            .with_native_roots()
            .map_err(|error| format!("the system's certificate authorities: {error}"))?,
    };
    let (Some(certificate), Some(key)) = (&tls.certificate, &tls.key) else {
        return Ok(builder.with_no_client_auth());
    };
    builder
        .with_client_auth_cert(certificates(certificate)?, private_key(key)?)
        .map_err(|error| format!("{}: {error}", place(certificate)))
}

/// The certificates of authorities.
///
/// # Errors
/// Where they were to be, and what is wrong there.
pub fn roots(pem: &Pem) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(pem)? {
        let added = roots.add(certificate);
        added.map_err(|error| format!("{}: {error}", place(pem)))?;
    }
    Ok(roots)
}

/// A private key.
///
/// # Errors
/// Where it was to be, and what is wrong there.
pub fn private_key(pem: &Pem) -> Result<PrivateKeyDer<'static>, String> {
    match pem {
        Pem::Path(path) => PrivateKeyDer::from_pem_file(path),
        Pem::Text(text) => PrivateKeyDer::from_pem_slice(text.as_bytes()),
    }
    .map_err(|error| format!("{}: {error}", place(pem)))
}

/// A chain of certificates, of at least one.
///
/// # Errors
/// Where they were to be, and what is wrong there.
pub fn certificates(pem: &Pem) -> Result<Vec<CertificateDer<'static>>, String> {
    let found = match pem {
        Pem::Path(path) => CertificateDer::pem_file_iter(path).and_then(Iterator::collect),
        Pem::Text(text) => CertificateDer::pem_slice_iter(text.as_bytes()).collect(),
    };
    let found: Vec<_> = found.map_err(|error| format!("{}: {error}", place(pem)))?;
    match found.is_empty() {
        true => Err(format!("{}: no certificate", place(pem))),
        false => Ok(found),
    }
}

/// What an error calls it.
#[must_use]
pub fn place(pem: &Pem) -> &str {
    match pem {
        Pem::Path(path) => path,
        Pem::Text(_) => "the PEM in the settings",
    }
}

/// Takes any certificate, as `ssl_insecure_skip_verify` asks for.
#[derive(Debug)]
struct Anyone(Arc<CryptoProvider>);

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, cert, dss, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, cert, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
