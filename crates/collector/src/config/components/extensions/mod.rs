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
use super::shared::context::Context;

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

impl Extension {
    /// What it asks of the requests that data came with.
    #[must_use]
    pub fn contexts(&self) -> Vec<&Context> {
        let Extension::HeadersSetter(settings) = self else {
            return Vec::new();
        };
        let sources = settings.headers.iter().map(|change| &change.source);
        let contexts = sources.filter_map(|source| match source {
            headers_setter::Source::Context(context, _) => Some(context),
            headers_setter::Source::Value(_) => None,
        });
        contexts.collect()
    }
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
