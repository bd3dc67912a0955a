//! TLS of receivers: rustls, as the settings say.

use std::sync::Arc;

use export::tls::{certificates, place, private_key, roots, versions};
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::server::WebPkiClientVerifier;
use telemetry::settings::Pem;

use crate::config::components::shared::tls::TlsServer;
use crate::run::tls::{pem, version};

/// What a listener speaks; `protocols` by ALPN, the best first.
pub(super) fn server(settings: &TlsServer, protocols: &[&[u8]]) -> Result<ServerConfig, String> {
    let common = &settings.common;
    let versions = versions(version(common.min_version), version(common.max_version));
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(versions)
        .map_err(|error| error.to_string())?;
    let builder = match &settings.client_ca_file {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let roots = Arc::new(roots(&Pem::Path(path.clone()))?);
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider).build();
            builder.with_client_cert_verifier(verifier.map_err(|error| format!("{path}: {error}"))?)
        }
    };
    let (Some(certificate), Some(key)) = (&common.cert, &common.key) else {
        return Err("a server needs a certificate and its key".into());
    };
    let (certificate, key) = (pem(certificate), pem(key));
    let mut config = builder
        .with_single_cert(certificates(&certificate)?, private_key(&key)?)
        .map_err(|error| format!("{}: {error}", place(&certificate)))?;
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    Ok(config)
}
