//! TLS of receivers: rustls, as the settings say.

use std::sync::Arc;

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::version::{TLS12, TLS13};
use rustls::{RootCertStore, ServerConfig};

use crate::config::components::shared::tls::{Pem, TlsServer, TlsVersion};

/// What a listener speaks; `protocols` by ALPN, the best first.
pub(super) fn server(settings: &TlsServer, protocols: &[&[u8]]) -> Result<ServerConfig, String> {
    let common = &settings.common;
    let versions = match (common.min_version, common.max_version) {
        (TlsVersion::V12, TlsVersion::V12) => &[&TLS12][..],
        (TlsVersion::V12, TlsVersion::V13) => &[&TLS12, &TLS13],
        (TlsVersion::V13, _) => &[&TLS13],
    };
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(versions)
        .map_err(|error| error.to_string())?;
    let builder = match &settings.client_ca_file {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let mut roots = RootCertStore::empty();
            for certificate in certificates(&Pem::File(path.clone()))? {
                let added = roots.add(certificate);
                added.map_err(|error| format!("{path}: {error}"))?;
            }
            let roots = Arc::new(roots);
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider).build();
            builder.with_client_cert_verifier(verifier.map_err(|error| format!("{path}: {error}"))?)
        }
    };
    let (Some(certificate), Some(key)) = (&common.cert, &common.key) else {
        return Err("a server needs a certificate and its key".into());
    };
    let chain = certificates(certificate)?;
    let loaded = match key {
        Pem::File(path) => PrivateKeyDer::from_pem_file(path),
        Pem::Text(text) => PrivateKeyDer::from_pem_slice(text.as_bytes()),
    };
    let loaded = loaded.map_err(|error| format!("{}: {error}", place(key)))?;
    let mut config = builder
        .with_single_cert(chain, loaded)
        .map_err(|error| format!("{}: {error}", place(certificate)))?;
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    Ok(config)
}

fn certificates(pem: &Pem) -> Result<Vec<CertificateDer<'static>>, String> {
    let found = match pem {
        Pem::File(path) => CertificateDer::pem_file_iter(path).and_then(Iterator::collect),
        Pem::Text(text) => CertificateDer::pem_slice_iter(text.as_bytes()).collect(),
    };
    let found: Vec<_> = found.map_err(|error| format!("{}: {error}", place(pem)))?;
    match found.is_empty() {
        true => Err(format!("{}: no certificate", place(pem))),
        false => Ok(found),
    }
}

fn place(pem: &Pem) -> &str {
    match pem {
        Pem::File(path) => path,
        Pem::Text(_) => "the PEM in the settings",
    }
}
