//! TLS of health checks. It is mostly that of the traffic; servers with plain traffic may have
//! separate TLS for checks.

use std::sync::Arc;

use config::model::{BackendCheck, CheckAction, CheckScript, Proxy, Server, ServerTls};
use tls::Connector;

use super::Tls;
use super::files::ServerRecipe;
use crate::ids::{ProxyId, ServerId};

/// The TLS options of a server with plain traffic whose checks use TLS.
pub(super) fn alone<'a>(proxy: &Proxy, server: &'a Server) -> Option<&'a ServerTls> {
    let words = server.tls_words.as_deref().filter(|words| !words.ssl)?;
    let of_backend = match &proxy.check {
        Some(BackendCheck::Script(script)) => Some(script),
        Some(BackendCheck::External(_)) | None => None,
    };
    let uses_tls = |script: &Arc<CheckScript>| {
        let mut rules = script.rules.iter();
        rules.any(|rule| matches!(&rule.action, CheckAction::Connect(connect) if connect.ssl))
    };
    let script = server.checks.script.as_ref().or(of_backend);
    let is_asked = words.check.ssl == Some(true) || script.is_some_and(uses_tls);
    (server.checks.enabled && is_asked).then_some(words)
}

impl Tls {
    /// The connector of a server's traffic, given by the place of its backend and its own; none for
    /// plain traffic.
    #[must_use]
    pub fn of_traffic(&self, backend: usize, server: usize) -> Option<Arc<Connector>> {
        self.server(ServerId::at(ProxyId::at(backend), server))
    }

    /// The connector that only the server's health checks use; none if they use the connector of
    /// the traffic, or no TLS.
    ///
    /// # Errors
    /// A file cannot be used; the message for the user.
    pub fn of_checks(&self, proxy: &Proxy, server: &Server) -> Result<Option<Connector>, String> {
        let Some(words) = alone(proxy, server) else {
            return Ok(None);
        };
        let recipe = ServerRecipe {
            words: words.clone(),
            title: format!("'server {}' of '{}'", server.name, proxy.name),
        };
        self.files().build_server(&recipe).map(Some)
    }
}
