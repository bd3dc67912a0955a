//! Client connections from the accept to their session: counted, told by a PROXY header who they are, passed by the rules of
//! connections and sessions; and listeners that rest while a limit is reached.

use net::proxy_protocol;
use net::{Accepted, ConnId, Driver, ListenerId};
use sample::{ConnError, LogOrigin, Session};

use crate::conn::{Client, Role, Stage};
use crate::engine::{Core, Cx};
use crate::rules::Verdict;
use crate::running::deadline;
use crate::shared::{Count, Pace};
use crate::stream::Phase;

impl Core {
    /// A connection came in.
    pub fn accepted<D: Driver>(&mut self, cx: &mut Cx<'_, D>, conn: ConnId, accepted: Accepted) {
        let listener = accepted.listener.0 as usize;
        let info = cx.running.listeners[listener];
        let now = cx.now();
        let session = Session::new(
            now,
            accepted.peer,
            accepted.local,
            info.frontend as u32,
            info.bind as u32,
        );
        let proxy = cx.running.proxy(info.frontend);
        let stage = if proxy.binds[info.bind].accept_proxy {
            Stage::ProxyHeader
        } else {
            Stage::Session
        };
        let client = Client {
            session,
            listener,
            frontend: info.frontend,
            stage,
            stream: None,
            streams: 0,
            is_http: cx.running.is_http(info.frontend),
            kept: None,
            lingers: false,
            idle_since: now,
        };
        self.conns.insert(conn, Role::Client(client));
        self.count(Count::Process);
        self.count(Count::Frontend(info.frontend));
        self.count(Count::Bind(info.frontend, info.bind));
        self.pace_connection(cx);
        self.close_full_listener(cx, listener);
        if !proxy.tcp_request_connection.is_empty() {
            match self.connection_rules(cx, conn) {
                Verdict::Continue => {}
                Verdict::Close => return self.close_client(cx, conn),
            }
        }
        let Some(client) = self.conns.client(conn) else {
            return;
        };
        if client.stage == Stage::ProxyHeader {
            let timeouts = &cx.running.timeouts[info.frontend];
            self.set_deadline(conn, deadline(now, timeouts.client_hs));
        } else {
            self.begin_session(cx, conn);
        }
    }

    /// The connection's own address is known: its first stream may begin.
    fn begin_session<D: Driver>(&mut self, cx: &mut Cx<'_, D>, conn: ConnId) {
        let now = cx.now();
        let Some(client) = self.conns.client(conn) else {
            return;
        };
        client.stage = Stage::Ready;
        client.idle_since = now;
        let (frontend, listener) = (client.frontend, client.listener);
        client.session.handshake_ms = (now.ms() - client.session.accepted.ms()) as u32;
        if !cx.running.proxy(frontend).tcp_request_session.is_empty() {
            match self.session_rules(cx, conn) {
                Verdict::Continue => {}
                Verdict::Close => return self.close_client(cx, conn),
            }
        }
        self.mark(cx, Pace::Sessions(frontend));
        self.pace_session(cx, listener);
        let timeouts = &cx.running.timeouts[frontend];
        if cx.running.is_http(frontend) {
            self.set_deadline(conn, deadline(now, timeouts.http_request));
        } else {
            self.set_deadline(conn, deadline(now, timeouts.client));
            if let Some(mut stream) = self.begin_stream(cx, conn) {
                stream.phase = Phase::FrontendContent;
                self.log_at(cx, &mut stream, LogOrigin::Accept);
                self.run(cx, &mut stream);
                self.streams.put(stream);
            }
        }
    }

    /// Reads the header of the PROXY protocol; how many bytes were used.
    pub fn read_proxy_header<D: Driver>(
        &mut self,
        cx: &mut Cx<'_, D>,
        conn: ConnId,
        bytes: &[u8],
    ) -> usize {
        match proxy_protocol::parse(bytes) {
            Ok(None) => 0,
            Ok(Some((used, header))) => {
                if let Some(client) = self.conns.client(conn) {
                    client.session.received_proxy = true;
                    let session = &mut client.session;
                    session.tlvs = Some(header.tlv_bytes())
                        .filter(|tlvs| !tlvs.is_empty())
                        .map(Into::into);
                    if let Some(ends) = header.addresses {
                        session.connection_src =
                            Some(std::mem::replace(&mut session.src, ends.source));
                        session.connection_dst =
                            Some(std::mem::replace(&mut session.dst, ends.destination));
                    }
                }
                self.begin_session(cx, conn);
                used
            }
            Err(error) => {
                let why = match error {
                    proxy_protocol::Error::NotProxy => ConnError::ProxyNone,
                    proxy_protocol::Error::UnknownProtocol => ConnError::ProxyUnknown,
                    _ => ConnError::ProxyBad,
                };
                self.fail_session(cx, conn, why, false);
                bytes.len()
            }
        }
    }

    /// Closes a client that has failed before its session began, with a line in the log.
    pub fn fail_session<D: Driver>(
        &mut self,
        cx: &mut Cx<'_, D>,
        conn: ConnId,
        why: ConnError,
        silent: bool,
    ) {
        self.log_failed_session(cx, conn, why, silent);
        self.close_client(cx, conn);
    }

    /// Stops accepting where a `maxconn` is reached.
    pub fn close_full_listener<D: Driver>(&mut self, cx: &mut Cx<'_, D>, listener: usize) {
        let is_closed = |closed: &(ListenerId, usize)| closed.1 == listener;
        if self.is_full(cx, listener) && !self.full_listeners.iter().any(is_closed) {
            let id = ListenerId(listener as u32);
            cx.driver.accepting(id, false);
            self.full_listeners.push((id, listener));
            self.shared.listener_is_full();
        }
    }

    /// Accepts again where there is room.
    pub fn reopen_listeners<D: Driver>(&mut self, cx: &mut Cx<'_, D>) {
        let mut index = 0;
        while index < self.full_listeners.len() {
            let (id, listener) = self.full_listeners[index];
            if self.is_full(cx, listener) {
                index += 1;
            } else {
                self.full_listeners.swap_remove(index);
                self.shared.listener_has_room();
                cx.driver.accepting(id, true);
            }
        }
    }

    fn is_full<D: Driver>(&mut self, cx: &Cx<'_, D>, listener: usize) -> bool {
        let info = cx.running.listeners[listener];
        let proxy = cx.running.proxy(info.frontend);
        let reached =
            |max: Option<u32>, what: Count| max.is_some_and(|max| self.shared.count(what) >= max);
        reached(proxy.maxconn, Count::Frontend(info.frontend))
            || reached(
                proxy.binds[info.bind].maxconn,
                Count::Bind(info.frontend, info.bind),
            )
            || reached(cx.running.config.global.maxconn, Count::Process)
            || self.is_too_fast(cx, info.frontend)
    }
}
