//! Binds a request to a server before balancing: `use-server`, the persistence cookie, the RDP
//! cookie, and the rules that force or ignore persistence (manual §4.2).
//!
//! A bound stream has a `target` and `Persist::direct`; `select_server` then takes a slot of that
//! server or queues for it. A redispatch unbinds the stream.

mod cacheable;
mod dates;
mod pairs;
mod rdp;
mod request;
mod response;

use config::model::{Proxy, ServerTarget};
use http::{FieldId, Head, Name};

use crate::evaluation::Eval;
use crate::ids::ServerId;
use crate::stream::{Binding, Stream};
pub(crate) use request::{request_cookies, watches_requests};
pub(crate) use response::{response_cookies, watches_responses};

/// The index of the two cookie characters in the termination state (manual §8.5).
const OF_CLIENT: usize = 2;
const OF_SERVER: usize = 3;

impl Stream {
    /// Initialises the cookie characters for log lines: `N` if the backend has a cookie.
    pub fn begin_cookie_state(&mut self, proxy: &Proxy) {
        let logged = proxy
            .cookie
            .as_ref()
            .is_some_and(|cookie| cookie.is_logged());
        let none = if logged { b'N' } else { 0 };
        self.txn.termination[OF_CLIENT] = none;
        self.txn.termination[OF_SERVER] = none;
    }

    /// Unbinds the stream: the chosen server is not the one that the client's cookie names.
    pub fn unbind(&mut self) {
        self.route.persist.direct = false;
        if self.txn.termination[OF_CLIENT] == b'V' {
            self.txn.termination[OF_CLIENT] = b'D';
        }
    }

    /// Sets a cookie character if log lines have them.
    fn mark_cookie(&mut self, place: usize, state: u8) {
        if self.txn.termination[place] != 0 {
            self.txn.termination[place] = state;
        }
    }
}

/// The backend is chosen: evaluates whether persistence is forced or ignored.
pub(crate) fn persist_rules(eval: &Eval<'_>, stream: &mut Stream) {
    let rules = &eval.runtime_config.proxy(stream.backend).persist_rules;
    let first = rules
        .iter()
        .find(|rule| eval.holds(stream, &rule.condition));
    match first.map(|rule| rule.force) {
        Some(true) => stream.route.persist.forced = true,
        Some(false) => stream.route.persist.ignored = true,
        None => {}
    }
}

/// Binds the request by `use-server`, then by the RDP cookie.
pub(crate) fn bind(eval: &mut Eval<'_>, stream: &mut Stream) {
    use_server(eval, stream);
    let proxy = eval.runtime_config.proxy(stream.backend);
    if let Some(name) = &proxy.rdp_cookie
        && stream.route.target.is_none()
    {
        let usable = |server| may_bind(eval, stream, server, false);
        let servers = eval.servers.of(stream.backend);
        if let Some(server) = rdp::server(&stream.up.waiting, name, servers, usable) {
            stream.bind(server, Binding::RdpCookie);
        }
    }
}

fn use_server(eval: &mut Eval<'_>, stream: &mut Stream) {
    let proxy = eval.runtime_config.proxy(stream.backend);
    for (place, rule) in (0..).zip(&proxy.use_server) {
        if !eval.holds(stream, &rule.condition) {
            continue;
        }
        let server = match &rule.target {
            ServerTarget::Static(place) => Some(ServerId::at(stream.backend, *place)),
            ServerTarget::Dynamic(format) => named_server(eval, stream, format),
        };
        let Some(server) = server else { return };
        if may_bind(eval, stream, server, true) {
            stream.route.persist.rule = Some(place);
            return stream.bind(server, Binding::UseServer);
        }
        // A later rule may name a server that is up.
    }
}

fn named_server(
    eval: &mut Eval<'_>,
    stream: &Stream,
    format: &sample::LogFormat,
) -> Option<ServerId> {
    let mut name = std::mem::take(eval.text);
    eval.render(stream, format, &mut name);
    let mut servers = eval.servers.of(stream.backend);
    let found = servers.find(|(_, server)| server.name.as_bytes() == name);
    let found = found.map(|(id, _)| id);
    name.clear();
    *eval.text = name;
    found
}

impl Stream {
    pub fn bind(&mut self, server: ServerId, by: Binding) {
        self.route.target = Some(server);
        self.route.persist.direct = true;
        self.route.persist.by = by;
    }
}

/// The first field with this name after another field.
fn next_field(head: &Head, name: Name, from: Option<FieldId>) -> Option<FieldId> {
    let mut fields = head.get_all(name).map(|(field, _)| field);
    fields.find(|field| from.is_none_or(|from| field.0 > from.0))
}

/// Whether a request may be bound to a server: the server is up, or persistence is forced. Its
/// weight and whether it is a backup do not matter.
pub(crate) fn may_bind(eval: &Eval<'_>, stream: &Stream, server: ServerId, forcible: bool) -> bool {
    let proxy = eval.runtime_config.proxy(server.backend);
    let forced = forcible && stream.route.persist.forced;
    eval.ambient.shared.servers.is_up(server) || proxy.options.persist || forced
}
