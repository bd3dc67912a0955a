//! `auth`: the extension that tells who is there.

use crate::config::components::extensions::Extension;
use crate::config::components::extensions::basic_auth::BasicAuth;
use crate::config::components::id::ComponentId;
use crate::config::options::{Kind, Opt, Section, opt};

/// On which side of a connection an authenticator stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// It asks.
    Server,
    /// It answers.
    Client,
}

#[rustfmt::skip]
const AUTHENTICATOR: Opt = opt("authenticator", Kind::Text, "", "id of an extension: basicauth, bearertokenauth, or headers_setter for an exporter (required)");

/// Options of `auth`.
#[rustfmt::skip]
pub(crate) const TABLE: &[&[Opt]] = &[&[
    AUTHENTICATOR,
    opt("request_params", Kind::Texts, "", "parameters of the URL that it sees").refused("of servers of HTTP only"),
]];
/// Those of a server of HTTP.
#[rustfmt::skip]
pub(crate) const HTTP_SERVER: &[&[Opt]] = &[&[
    AUTHENTICATOR,
    opt("request_params", Kind::Texts, "", "parameters of the URL that it sees in the places of header fields"),
]];

/// The authenticator that a section names under `auth`.
pub(crate) fn auth(section: &Section<'_>) -> Option<ComponentId> {
    let auth = section.maybe_filled("auth")?;
    let text = auth.text("authenticator");
    match ComponentId::parse(&text) {
        Ok(id) => Some(id),
        Err(_) if text.is_empty() => {
            auth.error("authenticator", "is missing: the id of an extension");
            None
        }
        Err(reason) => {
            auth.error("authenticator", &reason);
            None
        }
    }
}

/// Whether an extension can stand on a side.
pub(crate) fn fits(extension: &Extension, side: Side) -> bool {
    match extension {
        Extension::BasicAuth(BasicAuth::Server { .. }) => side == Side::Server,
        Extension::BasicAuth(BasicAuth::Client { .. }) | Extension::HeadersSetter(_) => {
            side == Side::Client
        }
        Extension::BearerTokenAuth(_) => true,
        Extension::HealthCheck(_) | Extension::HealthCheckV2(_) | Extension::FileStorage(_) => {
            false
        }
    }
}

/// Whether what it sends must not be read on the way.
pub(crate) fn is_secret(extension: &Extension) -> bool {
    matches!(
        extension,
        Extension::BasicAuth(_) | Extension::BearerTokenAuth(_)
    )
}
