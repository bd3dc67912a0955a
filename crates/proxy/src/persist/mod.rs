//! What binds a request to a server before balancing: `use-server`, the persistence cookie, the RDP cookie, and the rules
//! that force or ignore them (manual §4.2).
//!
//! A stream that is bound has a `target` and [`Persist::direct`]; `select_server` then takes that one's slot or queues for
//! it. A redispatch unbinds it.

mod cacheable;
mod dates;
mod pairs;
mod rdp;
mod request;
mod response;

use config::model::{Mode, Proxy, ServerTarget};
use http::{FieldId, Head, Name};
use net::Driver;
use telemetry::Event;

use crate::engine::{Core, Cx};
use crate::stream::phases::Step;
use crate::stream::{Phase, Stream};

/// What a stream knows of its persistence.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Persist {
    /// The server was named by the request, not found by balancing.
    pub direct: bool,
    /// `force-persist`: a server that is down is as good as any.
    pub forced: bool,
    /// `ignore-persist`: cookies bind to nothing.
    pub ignored: bool,
    /// When the client was last seen and first seen, as its cookie has it: seconds of UNIX time, 0 for unknown.
    pub last_s: u64,
    pub first_s: u64,
}

impl Persist {
    /// Why the request went to its server.
    pub fn choice(&self) -> &'static str {
        if self.direct {
            "persistence"
        } else {
            "balance"
        }
    }
}

/// The place of the two cookie characters in the termination state (manual §8.5).
const OF_CLIENT: usize = 2;
const OF_SERVER: usize = 3;

/// Whether anything of a backend looks at requests to choose a server.
pub(crate) fn binds(proxy: &Proxy) -> bool {
    let cookie = proxy.cookie.is_some() && proxy.mode == Mode::Http;
    cookie || !proxy.use_server.is_empty() || proxy.rdp_cookie.is_some()
}

impl Stream {
    /// The cookie characters of log lines begin: `N` where its backend has a cookie.
    pub fn begin_cookie_state(&mut self, proxy: &Proxy) {
        let logged = proxy
            .cookie
            .as_ref()
            .is_some_and(|cookie| cookie.is_logged());
        let none = if logged { b'N' } else { 0 };
        self.txn.termination[OF_CLIENT] = none;
        self.txn.termination[OF_SERVER] = none;
    }

    /// The chosen server is not the one that the client's cookie named.
    pub fn unbind(&mut self) {
        self.persist.direct = false;
        if self.txn.termination[OF_CLIENT] == b'V' {
            self.txn.termination[OF_CLIENT] = b'D';
        }
    }

    /// Sets a cookie character, where log lines have them.
    fn mark_cookie(&mut self, place: usize, state: u8) {
        if self.txn.termination[place] != 0 {
            self.txn.termination[place] = state;
        }
    }
}

impl Core {
    /// The backend is known: whether persistence is forced or ignored.
    pub fn persist_rules<D: Driver>(&mut self, cx: &Cx<'_, D>, stream: &mut Stream) {
        let rules = &cx.running.proxy(stream.backend).persist_rules;
        let first = rules
            .iter()
            .find(|rule| self.holds(cx, stream, &rule.condition));
        match first.map(|rule| rule.force) {
            Some(true) => stream.persist.forced = true,
            Some(false) => stream.persist.ignored = true,
            None => {}
        }
    }

    /// `use-server`, then cookies.
    pub fn assign_server<D: Driver>(&mut self, cx: &mut Cx<'_, D>, stream: &mut Stream) -> Step {
        self.trace(cx, stream, Event::ProcessServerRulesRequest);
        if cx.running.binds[stream.backend] {
            self.use_server(cx, stream);
            let proxy = cx.running.proxy(stream.backend);
            if let Some(name) = &proxy.rdp_cookie
                && stream.target.is_none()
            {
                let input = stream
                    .client
                    .map_or(&[][..], |client| self.conns.input(client));
                let usable = |server: usize| may_bind(proxy, stream, server, false);
                if let Some(server) = rdp::server(input, name, &proxy.servers, usable) {
                    stream.bind(server);
                }
            }
        }
        self.request_cookies(cx, stream);
        if stream.txn.is_http {
            return Step::Go(Phase::PrepareRequest);
        }
        let events = [
            Event::TcpRdpCookieRequest,
            Event::ProcessStickingRulesRequest,
        ];
        self.trace_all(cx, stream, events);
        Step::Go(Phase::SelectServer)
    }

    fn use_server<D: Driver>(&mut self, cx: &Cx<'_, D>, stream: &mut Stream) {
        let proxy = cx.running.proxy(stream.backend);
        for rule in &proxy.use_server {
            if !self.holds(cx, stream, &rule.condition) {
                continue;
            }
            let server = match &rule.target {
                ServerTarget::Static(server) => Some(*server),
                ServerTarget::Dynamic(format) => self.named_server(cx, stream, format),
            };
            match server {
                Some(server) if may_bind(proxy, stream, server, true) => {
                    return stream.bind(server);
                }
                // The next rule may know one that is up.
                Some(_) => {}
                None => return,
            }
        }
    }

    fn named_server<D: Driver>(
        &mut self,
        cx: &Cx<'_, D>,
        stream: &Stream,
        format: &sample::LogFormat,
    ) -> Option<usize> {
        let mut name = std::mem::take(&mut self.text);
        self.render(cx, stream, format, &mut name);
        let servers = &cx.running.proxy(stream.backend).servers;
        let found = servers
            .iter()
            .position(|server| server.name.as_bytes() == name);
        name.clear();
        self.text = name;
        found
    }
}

impl Stream {
    fn bind(&mut self, server: usize) {
        self.target = Some(server);
        self.persist.direct = true;
    }
}

/// The first field of a name behind another one.
fn next_field(head: &Head, name: Name, from: Option<FieldId>) -> Option<FieldId> {
    let mut fields = head.get_all(name).map(|(field, _)| field);
    fields.find(|field| from.is_none_or(|from| field.0 > from.0))
}

/// Whether a request may be bound to a server: it is up, or it does not matter. Neither its weight nor its being a backup
/// counts.
fn may_bind(proxy: &Proxy, stream: &Stream, server: usize, forcible: bool) -> bool {
    let forced = forcible && stream.persist.forced;
    !proxy.servers[server].disabled || proxy.options.persist || forced
}
