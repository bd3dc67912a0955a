//! The settings of TLS as clients and servers of telemetry take them.

use std::time::Duration;

use telemetry::settings as common;

use crate::config::components::shared::tls::{Pem, TlsClient, TlsCommon, TlsVersion};

/// Of a client.
pub fn client(settings: &TlsClient) -> common::Tls {
    let files = &settings.common;
    common::Tls {
        verify: !settings.skip_verify,
        ca: files.ca.as_ref().map(pem),
        certificate: files.cert.as_ref().map(pem),
        key: files.key.as_ref().map(pem),
        version_min: version(files.min_version),
        version_max: version(files.max_version),
        more: common::TlsMore {
            system_authorities: files.system_cas,
            server_name: settings.server_name.clone(),
            suites: files.cipher_suites.clone(),
            key_exchanges: files.curves.clone(),
            reload_every: reload_every(files),
        },
    }
}

/// How often certificate and key are read again; none: never.
pub fn reload_every(settings: &TlsCommon) -> Option<Duration> {
    let every = Duration::from_nanos(settings.reload_interval_ns);
    (!every.is_zero()).then_some(every)
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
