//! TLS of exporters, and helpers for servers of telemetry with the same settings: rustls,
//! configured by the settings.

mod anyone;
mod reload;

use std::sync::Arc;

use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use rustls::crypto::aws_lc_rs::{self, kx_group};
use rustls::crypto::{CryptoProvider, SupportedKxGroup};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, RootCertStore, SupportedCipherSuite, SupportedProtocolVersion};
use telemetry::settings::{Pem, Tls, TlsVersion};

use crate::dial::{Dial, Hop, HttpConnector};
use anyone::Anyone;
pub use reload::{Own, Reloading};

/// The HTTP versions of a connection.
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
    dial: Dial,
) -> Result<HttpsConnector<Dial>, String> {
    Ok(Secure::new(tls, is_https)?.connector(version, dial))
}

/// The TLS configuration for connections to `http` and `https` receivers, read once.
pub(crate) struct Secure {
    config: ClientConfig,
    /// The name that the certificate must have; by default that of the URL.
    name: Option<ServerName<'static>>,
}

impl Secure {
    pub(crate) fn new(tls: &Tls, is_https: bool) -> Result<Secure, String> {
        let config = if is_https {
            client_config(tls)?
        } else {
            // TLS is not used, so the system's authorities are not read.
            builder(tls)?
                .with_root_certificates(RootCertStore::empty())
                .with_no_client_auth()
        };
        let name = tls
            .more
            .server_name
            .as_deref()
            .map(server_name)
            .transpose()?;
        Ok(Secure { config, name })
    }

    /// Opens connections to proxies, whose certificates must have their own names.
    pub(crate) fn hop(&self, tcp: HttpConnector) -> Hop {
        let builder = HttpsConnectorBuilder::new().with_tls_config(self.config.clone());
        builder.https_or_http().enable_http1().wrap_connector(tcp)
    }

    /// Opens connections.
    pub(crate) fn connector(&self, version: Version, dial: Dial) -> HttpsConnector<Dial> {
        let builder = HttpsConnectorBuilder::new().with_tls_config(self.config.clone());
        let mut builder = builder.https_or_http();
        if let Some(name) = &self.name {
            let fixed = FixedServerNameResolver::new(name.clone());
            builder = builder.with_server_name_resolver(fixed);
        }
        match version {
            Version::Http1 => builder.enable_http1().wrap_connector(dial),
            Version::Http2 => builder.enable_http2().wrap_connector(dial),
        }
    }
}

fn server_name(name: &str) -> Result<ServerName<'static>, String> {
    let bare = name
        .strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'));
    let bare = bare.unwrap_or(name).to_owned();
    let wrong = |_| format!("'{}' is no name of a server", name.escape_debug());
    ServerName::try_from(bare).map_err(wrong)
}

type Builder = rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier>;

/// The crypto provider: all suites, or for TLS 1.2 those with the given names, and the key
/// exchanges with the given names.
///
/// # Errors
/// A key exchange is unknown.
pub fn provider(
    suites: &[String],
    key_exchanges: &[String],
) -> Result<Arc<CryptoProvider>, String> {
    let mut provider = aws_lc_rs::default_provider();
    if !suites.is_empty() {
        let named = |suite: &SupportedCipherSuite| {
            let name = suite.suite().as_str();
            suite.tls13().is_some() || suites.iter().any(|one| Some(one.as_str()) == name)
        };
        provider.cipher_suites.retain(named);
    }
    if !key_exchanges.is_empty() {
        let found = key_exchanges.iter().map(|name| key_exchange(name));
        provider.kx_groups = found.collect::<Result<_, _>>()?;
    }
    Ok(Arc::new(provider))
}

fn key_exchange(name: &str) -> Result<&'static dyn SupportedKxGroup, String> {
    match name {
        "X25519MLKEM768" => Ok(kx_group::X25519MLKEM768),
        "X25519" => Ok(kx_group::X25519),
        "P256" => Ok(kx_group::SECP256R1),
        "P384" => Ok(kx_group::SECP384R1),
        _ => Err(format!(
            "the key exchange '{}' is not known",
            name.escape_debug()
        )),
    }
}

/// Versions of TLS.
type Versions = &'static [&'static SupportedProtocolVersion];

/// The versions in a range.
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
    let provider = provider(&tls.more.suites, &tls.more.key_exchanges)?;
    ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(versions(tls.version_min, tls.version_max))
        .map_err(|error| error.to_string())
}

fn client_config(tls: &Tls) -> Result<ClientConfig, String> {
    let builder = builder(tls)?;
    let provider = Arc::clone(builder.crypto_provider());
    let builder = if tls.verify {
        builder.with_root_certificates(trusted(tls.ca.as_ref(), tls.more.system_authorities)?)
    } else {
        builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Anyone(Arc::clone(&provider))))
    };
    let (Some(certificate), Some(key)) = (&tls.certificate, &tls.key) else {
        return Ok(builder.with_no_client_auth());
    };
    let own = Own::new(
        (certificate.clone(), key.clone()),
        provider,
        tls.more.reload_every,
    )?;
    Ok(builder.with_client_cert_resolver(Arc::new(own)))
}

/// The trusted authorities: those of a PEM, by default the system's, or both.
///
/// # Errors
/// They cannot be read; the error names the source.
pub fn trusted(pem: Option<&Pem>, system_too: bool) -> Result<RootCertStore, String> {
    let mut roots = pem.map_or_else(|| Ok(RootCertStore::empty()), roots)?;
    if pem.is_some() && !system_too {
        return Ok(roots);
    }
    let found = rustls_native_certs::load_native_certs();
    let (added, _) = roots.add_parsable_certificates(found.certs);
    if added == 0 && pem.is_none() {
        let why = found.errors.first().map(ToString::to_string);
        let why = why.unwrap_or("there are none".to_owned());
        return Err(format!("the system's certificate authorities: {why}"));
    }
    Ok(roots)
}

/// The certificates of authorities.
///
/// # Errors
/// They cannot be read; the error names the source.
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
/// It cannot be read; the error names the source.
pub fn private_key(pem: &Pem) -> Result<PrivateKeyDer<'static>, String> {
    match pem {
        Pem::Path(path) => PrivateKeyDer::from_pem_file(path),
        Pem::Text(text) => PrivateKeyDer::from_pem_slice(text.as_bytes()),
    }
    .map_err(|error| format!("{}: {error}", place(pem)))
}

/// A chain of at least one certificate.
///
/// # Errors
/// It cannot be read; the error names the source.
pub fn certificates(pem: &Pem) -> Result<Vec<CertificateDer<'static>>, String> {
    let found = match pem {
        Pem::Path(path) => CertificateDer::pem_file_iter(path).and_then(Iterator::collect),
        Pem::Text(text) => CertificateDer::pem_slice_iter(text.as_bytes()).collect(),
    };
    let found: Vec<_> = found.map_err(|error| format!("{}: {error}", place(pem)))?;
    if found.is_empty() {
        Err(format!("{}: no certificate", place(pem)))
    } else {
        Ok(found)
    }
}

/// The name of the source in errors.
#[must_use]
pub fn place(pem: &Pem) -> &str {
    match pem {
        Pem::Path(path) => path,
        Pem::Text(_) => "the PEM in the settings",
    }
}
