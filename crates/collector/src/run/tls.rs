//! The settings of TLS as clients and servers of telemetry take them.

use telemetry::settings as common;

use crate::config::components::shared::tls::{Pem, TlsClient, TlsVersion};

/// Of a client.
///
/// # Errors
/// What is not supported yet.
pub fn client(settings: &TlsClient) -> Result<common::Tls, String> {
    if settings.server_name.is_some() {
        return Err("'server_name_override' is not supported yet".into());
    }
    let files = &settings.common;
    Ok(common::Tls {
        verify: !settings.skip_verify,
        ca: files.ca.as_ref().map(pem),
        certificate: files.cert.as_ref().map(pem),
        key: files.key.as_ref().map(pem),
        version_min: version(files.min_version),
        version_max: version(files.max_version),
    })
}

/// A certificate or a key.
pub fn pem(pem: &Pem) -> common::Pem {
    match pem {
        Pem::File(path) => common::Pem::Path(path.into()),
        Pem::Text(text) => common::Pem::Text(text.clone()),
    }
}

/// A version.
pub fn version(version: TlsVersion) -> common::TlsVersion {
    match version {
        TlsVersion::V12 => common::TlsVersion::V12,
        TlsVersion::V13 => common::TlsVersion::V13,
    }
}
