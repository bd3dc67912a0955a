//! Chooses the backend of a request, and reports how its server is chosen.

use std::sync::Arc;

use config::model::{BackendTarget, Mode, ServerAddress, ServerTarget, UseBackend, UseServer};

use super::rules::Told;
use super::{Ended, Walk};
use crate::ids::{ProxyId, ServerId};
use crate::persistence;
use crate::shared::ServerTables;

/// The result of a `use_backend` rule.
enum Switch {
    /// It does not match, or its backend is not eligible: the next rule follows.
    Next,
    /// No backend has this name: `default_backend` follows.
    Nobody,
    To(ProxyId),
}

impl Walk<'_> {
    /// Evaluates `use_backend` in order, then `default_backend`.
    pub(super) fn choose_backend(&mut self, frontend: ProxyId) -> Result<ProxyId, Ended> {
        let proxy = self.proxy(frontend);
        for rule in &proxy.use_backend {
            match self.use_backend(frontend, rule) {
                Switch::Next => {}
                Switch::Nobody => break,
                Switch::To(backend) => return Ok(backend),
            }
        }
        let default = proxy.default_backend.map(ProxyId::at);
        if let Some(id) = default.filter(|id| *id == frontend || self.is_eligible(*id)) {
            let told = Told::always(format!("chooses backend '{}'", self.proxy(id).name));
            let place = proxy.default_backend_place;
            self.tell(frontend, "default_backend", place, told);
            return Ok(id);
        }
        if proxy.is_backend {
            return Ok(frontend);
        }
        self.told.outcome = "No backend is chosen: the client gets 503.".to_owned();
        self.answer_with(503);
        Err(Ended)
    }

    fn use_backend(&mut self, frontend: ProxyId, rule: &UseBackend) -> Switch {
        let condition = rule.condition.as_ref();
        let holds = condition.is_none_or(|condition| {
            self.with_rules(|cx, stream| cx.scene.eval.holds(stream, condition))
        });
        let (switch, result) = if holds {
            self.target(&rule.target)
        } else {
            (Switch::Next, "does not match".to_owned())
        };
        let told = Told {
            matches: holds,
            result,
            condition,
        };
        self.tell(frontend, "use_backend", Some(rule.place), told);
        switch
    }

    /// The target of a matching rule, also in words.
    fn target(&mut self, target: &BackendTarget) -> (Switch, String) {
        let (found, name) = match target {
            BackendTarget::Static(place) => {
                let id = ProxyId::at(*place);
                (Some(id), self.proxy(id).name.to_string())
            }
            BackendTarget::Dynamic(format) => {
                let mut name = Vec::new();
                self.with_rules(|cx, stream| cx.scene.eval.render(stream, format, &mut name));
                let is_http = self.stream.txn.is_http;
                let shared = &self.ambient.shared;
                let is_deleted = |id: ProxyId| shared.is_deleted(id.place());
                let found = self
                    .runtime_config
                    .backend_named(&name, is_http, is_deleted);
                (found, String::from_utf8_lossy(&name).into_owned())
            }
        };
        match found {
            None => (
                Switch::Nobody,
                format!("there is no backend '{name}': default_backend follows"),
            ),
            Some(id) if self.is_eligible(id) => {
                (Switch::To(id), format!("chooses backend '{name}'"))
            }
            Some(_) => (
                Switch::Next,
                format!("backend '{name}' is disabled or unpublished: the next rule follows"),
            ),
        }
    }

    fn is_eligible(&self, backend: ProxyId) -> bool {
        self.ambient.shared.is_published(backend) && !self.proxy(backend).disabled
    }

    /// Runs `force-persist` and `ignore-persist`: the first that holds decides.
    pub(super) fn persist_rules(&mut self, backend: ProxyId) {
        for rule in &self.proxy(backend).persist_rules {
            let condition = &rule.condition;
            let holds = self.with_rules(|cx, stream| cx.scene.eval.holds(stream, condition));
            let (keyword, result) = match (rule.force, holds) {
                (true, true) => ("force-persist", "a server that is down may be used"),
                (false, true) => ("ignore-persist", "persistence is ignored"),
                (true, false) => ("force-persist", "does not match"),
                (false, false) => ("ignore-persist", "does not match"),
            };
            let told = Told {
                matches: holds,
                result: result.to_owned(),
                condition: Some(condition),
            };
            self.tell(backend, keyword, Some(rule.place), told);
            if holds {
                break;
            }
        }
        self.with_rules(|cx, stream| persistence::persist_rules(&cx.scene.eval, stream));
    }

    /// Reports what binds the request to a server, and the algorithm. Returns whether there is a
    /// server.
    pub(super) fn choose_server(&mut self) -> bool {
        let backend = self.stream.backend;
        let proxy = self.proxy(backend);
        let tables = Arc::clone(&self.servers);
        self.tell_servers(&tables);
        self.with_rules(|cx, stream| persistence::bind(&mut cx.scene.eval, stream));
        // The rules after the one that chooses are not evaluated.
        let chosen = self.stream.route.persist.rule();
        let evaluated = chosen.map_or(proxy.use_server.len(), |chosen| chosen + 1);
        for rule in &proxy.use_server[..evaluated] {
            self.use_server(rule, &tables);
        }
        if self.stream.route.target.is_none() && proxy.mode == Mode::Http {
            self.with_rules(|cx, stream| persistence::request_cookies(&mut cx.scene.eval, stream));
        }
        let bound = self.stream.route.target;
        let bound = bound.and_then(|server| tables.find(server));
        let algorithm = proxy.balance.facts().name;
        let choice = match bound {
            Some(server) => format!("Persistence binds it to server '{}'.", server.name),
            None if !proxy.stick_request.is_empty() => format!(
                "A stick table may bind it to a server; else 'balance {algorithm}' chooses."
            ),
            None => format!("'balance {algorithm}' chooses the server."),
        };
        let has_server = !self.told.servers.is_empty();
        self.told.outcome = if has_server {
            format!("It goes to backend '{}'. {choice}", proxy.name)
        } else {
            self.answer_with(503);
            "The backend has no server: the client gets 503.".to_owned()
        };
        self.told.server_choice = Some(choice);
        has_server
    }

    fn tell_servers(&mut self, tables: &ServerTables) {
        let servers = tables.of(self.stream.backend);
        for (_, line) in servers.filter(|(_, line)| !line.is_deleted) {
            let address = match &line.address {
                ServerAddress::Fixed(address) => address.to_string(),
                ServerAddress::PortOffset { ip, offset } => {
                    format!("{ip}, the client's port {offset:+}")
                }
            };
            let told = (line.name.clone(), address, line.weight);
            self.told.servers.push(told);
        }
    }

    fn use_server(&mut self, rule: &UseServer, tables: &ServerTables) {
        let backend = self.stream.backend;
        let holds = self.with_rules(|cx, stream| cx.scene.eval.holds(stream, &rule.condition));
        let server = match &rule.target {
            ServerTarget::Static(place) => {
                let server = tables.find(ServerId::at(backend, *place));
                server.map_or_else(String::new, |line| format!("server '{}'", line.name))
            }
            ServerTarget::Dynamic(_) => "the server that its format names".to_owned(),
        };
        let result = if holds {
            format!("binds it to {server}")
        } else {
            "does not match".to_owned()
        };
        let told = Told {
            matches: holds,
            result,
            condition: Some(&rule.condition),
        };
        self.tell(backend, "use-server", Some(rule.place), told);
    }
}
