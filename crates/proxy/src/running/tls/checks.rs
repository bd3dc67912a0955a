//! TLS of health checks. Mostly that of the traffic; servers whose traffic is in the clear have one of their own.

use std::sync::Arc;

use config::model::{BackendCheck, CheckAction, CheckScript, Proxy, Server, ServerTls};
use tls::Connector;

use super::Tls;
use super::files::ServerRecipe;
use crate::ids::{ProxyId, ServerId};

/// The TLS words of a server whose traffic is in the clear and whose checks are not.
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
    /// Who speaks TLS with a server, by the places of its backend and its own, as its traffic does; none where that is in the clear.
    #[must_use]
    pub fn of_traffic(&self, backend: usize, server: usize) -> Option<Arc<Connector>> {
        self.server(ServerId::at(ProxyId::at(backend), server))
    }

    /// Who speaks TLS with a server for its health checks alone; none where they do not.
    ///
    /// # Errors
    /// A file cannot be used, in words.
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
