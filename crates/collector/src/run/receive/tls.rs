//! TLS of receivers: rustls, as the settings say.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use export::tls::{Own, Reloading, provider, trusted, versions};
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, ServerConfig, SignatureScheme};
use telemetry::settings::Pem;

use crate::config::components::shared::tls::TlsServer;

/// How often `client_ca_file` is read again at most, where it is.
const CLIENT_CA_EVERY: Duration = Duration::from_secs(1);

/// What a listener speaks; `protocols` by ALPN, the best first.
pub(super) fn server(settings: &TlsServer, protocols: &[&[u8]]) -> Result<ServerConfig, String> {
    let common = &settings.common;
    let versions = versions(common.version_min, common.version_max);
    let provider = provider(&common.more.suites, &common.more.key_exchanges)?;
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(versions)
        .map_err(|error| error.to_string())?;
    let builder = match &settings.client_ca_file {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let clients = Clients::new(settings, path.clone(), Arc::clone(&provider))?;
            builder.with_client_cert_verifier(Arc::new(clients))
        }
    };
    let (Some(certificate), Some(key)) = (&common.certificate, &common.key) else {
        return Err("a server needs a certificate and its key".into());
    };
    let pair = (certificate.clone(), key.clone());
    let own = Own::new(pair, provider, common.more.reload_every)?;
    let mut config = builder.with_cert_resolver(Arc::new(own));
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    Ok(config)
}

/// Which certificates of clients are good, by authorities that may be read again.
struct Clients(Reloading<Arc<dyn ClientCertVerifier>>);

impl Clients {
    fn new(
        settings: &TlsServer,
        path: String,
        provider: Arc<CryptoProvider>,
    ) -> Result<Clients, String> {
        let every = settings.client_ca_reload.then_some(CLIENT_CA_EVERY);
        let system_too = settings.common.more.system_authorities;
        let load = move || {
            let roots = trusted(Some(&Pem::Path(path.clone())), system_too)?;
            let provider = Arc::clone(&provider);
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            verifier.build().map_err(|error| format!("{path}: {error}"))
        };
        Ok(Clients(Reloading::new(every, load)?))
    }
}

impl fmt::Debug for Clients {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Clients")
    }
}

impl ClientCertVerifier for Clients {
    /// None: clients send the certificate that they have, and the names may change.
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        own: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        self.0.get().verify_client_cert(own, chain, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0
            .get()
            .verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0
            .get()
            .verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.get().supported_verify_schemes()
    }
}
