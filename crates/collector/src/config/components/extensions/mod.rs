//! Extensions.

pub mod basic_auth;
pub mod bearer_token_auth;
pub mod file_storage;
mod gone;
pub mod headers_setter;
pub mod health_check;
pub mod health_check_v2;
mod pprof;
mod zpages;

use super::Entry;

/// An extension's settings.
#[derive(Clone, Debug, PartialEq)]
pub enum Extension {
    /// `health_check`
    HealthCheck(Box<health_check::HealthCheck>),
    /// `healthcheckv2`
    HealthCheckV2(Box<health_check_v2::HealthCheckV2>),
    /// `file_storage`
    FileStorage(file_storage::FileStorage),
    /// `basicauth`
    BasicAuth(basic_auth::BasicAuth),
    /// `bearertokenauth`
    BearerTokenAuth(bearer_token_auth::BearerTokenAuth),
    /// `headers_setter`
    HeadersSetter(headers_setter::HeadersSetter),
}

pub(crate) const ENTRIES: &[Entry] = &[
    health_check::ENTRY,
    health_check_v2::ENTRY,
    pprof::ENTRY,
    zpages::ENTRY,
    file_storage::ENTRY,
    basic_auth::ENTRY,
    bearer_token_auth::ENTRY,
    headers_setter::ENTRY,
    gone::MEMORY_BALLAST,
];
