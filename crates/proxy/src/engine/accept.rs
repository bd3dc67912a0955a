//! Client connections from accept to the start of their session: admission, counting, the PROXY
//! header, connection rules and session rules. Listeners pause while a limit is reached.

use net::timers::NEVER_MS;
use net::{Accepted, Driver, ListenerId, SockId, proxy_protocol};
use sample::{ConnError, LogOrigin, Session};

use super::Turn;
use crate::ids::{BindId, ConnId};
use crate::link::{Client, Linger, QuicLink, Stage};
use crate::phases::ConnWait;
use crate::rules::Verdict;
use crate::shared::{Count, FrontCount, Pace, RateLimit};
use crate::stream::{Inspection, Phase};

/// The period of rate limits, milliseconds.
const PERIOD_MS: u64 = 1000;

impl<D: Driver> Turn<'_, D> {
    // ---- limits

    pub(super) fn bind_of(&self, listener: ListenerId) -> BindId {
        self.cx.runtime_config.listeners[listener.0 as usize]
    }

    /// Whether one more connection may be accepted; if so, a place is reserved for it.
    pub(super) fn admit(&mut self, listener: ListenerId) -> bool {
        let bind = self.bind_of(listener);
        let admitted = !self.is_too_fast(bind, 0) && self.cx.core.ambient.shared.admit(bind);
        if admitted {
            self.pass_on(bind)
        } else {
            self.rest(listener)
        }
        admitted
    }

    /// Wakes the next paused worker after a place was reserved. Several places may have become free
    /// at once while only one worker was woken.
    fn pass_on(&mut self, bind: BindId) {
        let ambient = &self.cx.core.ambient;
        if let Some(worker) = ambient.shared.next_resting(ambient.worker)
            && !ambient.shared.is_full(bind)
        {
            self.cx.io.wake(worker);
        }
    }

    /// There was no connection to accept: releases the reserved place to another paused worker.
    pub(super) fn retract(&mut self, listener: ListenerId) {
        let bind = self.bind_of(listener);
        let ambient = &self.cx.core.ambient;
        ambient.shared.dismiss(bind);
        if let Some(worker) = ambient.shared.next_resting(ambient.worker) {
            self.cx.io.wake(worker);
        }
    }

    /// Stops accepting on a listener whose limit is reached.
    fn rest(&mut self, listener: ListenerId) {
        if !self.state.resting.contains(&listener) {
            self.state.resting.push(listener);
            self.cx.io.accepting(listener, false);
        }
        let ambient = &self.cx.core.ambient;
        ambient.shared.set_rests(ambient.worker, true);
        // A place may have become free before the others saw that this listener pauses.
        if !ambient.shared.is_full(self.bind_of(listener)) {
            self.reopen_listeners();
        }
    }

    /// A place became free: reopens a listener of this worker, and wakes another worker with paused
    /// listeners.
    pub(super) fn place_is_free(&mut self) {
        if !self.state.resting.is_empty() {
            self.reopen_listeners();
        }
        let ambient = &self.cx.core.ambient;
        if let Some(worker) = ambient.shared.next_resting(ambient.worker) {
            self.cx.io.wake(worker);
        }
    }

    /// Resumes accepting on listeners that have room.
    pub(super) fn reopen_listeners(&mut self) {
        let mut index = 0;
        while index < self.state.resting.len() {
            let listener = self.state.resting[index];
            let bind = self.bind_of(listener);
            if self.is_too_fast(bind, 0) || self.cx.core.ambient.shared.is_full(bind) {
                index += 1;
            } else {
                self.state.resting.swap_remove(index);
                self.cx.io.accepting(listener, true);
            }
        }
        if self.state.resting.is_empty() {
            let ambient = &self.cx.core.ambient;
            ambient.shared.set_rests(ambient.worker, false);
        }
    }

    /// Whether a listener has reached a rate limit (`maxconnrate`, `maxsessrate`, `maxsslrate`,
    /// `rate-limit sessions`). If so, the time for the next check is set. `coming`: sessions that
    /// are to begin and are not counted yet.
    fn is_too_fast(&mut self, bind: BindId, coming: u32) -> bool {
        if !self.cx.runtime_config.paces {
            return false;
        }
        let frontend = bind.frontend;
        let now_ms = self.cx.now_ms();
        let shared = &self.cx.core.ambient.shared;
        let speaks_tls = self.cx.runtime_config.bind(bind).tls.is_some();
        let sessions = self.cx.runtime_config.proxy(frontend).rate_limit_sessions;
        let limits = [
            (sessions, Pace::Sessions(frontend), coming),
            (
                shared.rate_limit(RateLimit::Sessions),
                Pace::ProcessSessions,
                coming,
            ),
            (
                shared.rate_limit(RateLimit::Connections),
                Pace::ProcessConnections,
                0,
            ),
            (
                shared
                    .rate_limit(RateLimit::TlsSessions)
                    .filter(|_| speaks_tls),
                Pace::TlsClients,
                0,
            ),
        ];
        let reached = limits
            .into_iter()
            .filter_map(|(limit, pace, coming)| limit.map(|limit| (limit, pace, coming)))
            .find(|(limit, pace, coming)| {
                shared.rate(*pace, now_ms).saturating_add(*coming) >= *limit
            });
        if let Some((limit, ..)) = reached {
            let wait_ms = (PERIOD_MS / u64::from(limit.max(1))).max(1);
            self.state.room_at_ms = self.state.room_at_ms.min(now_ms + wait_ms);
        }
        reached.is_some()
    }

    /// Checks the paused listeners again when it is time.
    pub(super) fn look_for_room(&mut self) {
        if self.cx.now_ms() >= self.state.room_at_ms {
            self.state.room_at_ms = NEVER_MS;
            self.reopen_listeners();
        }
    }

    // ---- connections

    /// Whether one more QUIC connection may be accepted; if so, a place is reserved for it. The
    /// socket of the listener is read on in any case, because its other connections need it.
    /// `handshakes`: those of QUIC under way, whose sessions are not counted yet.
    pub(super) fn admits_quic(&mut self, bind: BindId, handshakes: usize) -> bool {
        let coming = u32::try_from(handshakes).unwrap_or(u32::MAX);
        !self.is_too_fast(bind, coming) && self.cx.core.ambient.shared.admit(bind)
    }

    /// A connection was accepted. `quic`: it has no socket, but is a connection of QUIC. Returns its
    /// name, unless a rule has closed it.
    pub(super) fn accepted(
        &mut self,
        sock: SockId,
        accepted: Accepted,
        quic: Option<Box<QuicLink>>,
    ) -> Option<ConnId> {
        let bind = self.bind_of(accepted.listener);
        let frontend = bind.frontend;
        let now = self.cx.now();
        let session = Session::new(
            now,
            accepted.peer,
            accepted.local,
            frontend.number(),
            bind.place as u32,
        );
        let is_http = self.cx.runtime_config.is_http(frontend);
        let line = self.cx.runtime_config.bind(bind);
        let accept_proxy = line.accept_proxy && quic.is_none();
        let client = Client {
            session,
            bind,
            stage: if accept_proxy {
                Stage::ProxyHeader
            } else {
                Stage::Session
            },
            hello: None,
            streams: 0,
            is_http,
            proto: line.proto,
            kept: Vec::new(),
            linger: Linger::No,
            request_began: None,
            idle_since: now,
            rounds_after_end: 0,
            follows: None,
        };
        let core = &mut *self.cx.core;
        let link = core
            .links
            .add_client(sock, client, is_http, &mut core.timers);
        self.state.at_work.link = Some(link.into());
        if let Some(entry) = core.links.get_mut(link) {
            entry.quic = quic;
        }
        core.clients += 1;
        self.count_connection(bind);
        let proxy = self.cx.runtime_config.proxy(frontend);
        if !proxy.tcp_request_connection.is_empty() {
            match self
                .cx
                .with_session(link, |cx| cx.connection_rules(frontend))
            {
                Some(Verdict::Close) => {
                    self.cx
                        .accounts()
                        .tell_bind(bind, FrontCount::DeniedConnections);
                    self.cx.close_client(link);
                    return None;
                }
                Some(Verdict::ExpectProxy) => self.set_stage(link, Stage::ProxyHeader),
                Some(Verdict::Continue) | None => {}
            }
        }
        match self.cx.core.links.client(link).map(|client| client.stage) {
            Some(Stage::ProxyHeader) => {
                self.cx.wait_on(link, ConnWait::Handshake(frontend));
            }
            Some(_) => self.begin_client_handshake(link),
            None => {}
        }
        self.cx.core.links.get(link).map(|_| link)
    }

    /// Counts a connection of a listener.
    fn count_connection(&self, bind: BindId) {
        self.cx.core.ambient.shared.note_maxconn();
        self.cx.mark(Pace::ProcessConnections);
        self.cx.mark(Pace::Connections(bind.frontend));
        self.cx.accounts().tell_bind(bind, FrontCount::Connections);
        self.cx.core.count(Count::Frontend(bind.frontend));
        self.cx.core.count(Count::Bind(bind));
    }

    pub(super) fn set_stage(&mut self, link: ConnId, stage: Stage) {
        if let Some(client) = self.cx.core.links.client_mut(link) {
            client.stage = stage;
        }
    }

    /// The client's address is known: runs the session rules; then the first stream may begin.
    pub(super) fn begin_session(&mut self, link: ConnId) {
        let now = self.cx.now();
        let Some(client) = self.cx.core.links.client_mut(link) else {
            return;
        };
        client.stage = Stage::Ready;
        client.idle_since = now;
        client.session.handshake_ms = (now.ms() - client.session.accepted.ms()) as u32;
        let (frontend, bind) = (client.frontend(), client.bind);
        let proxy = self.cx.runtime_config.proxy(frontend);
        if !proxy.tcp_request_session.is_empty() {
            let verdict = self.cx.with_session(link, |cx| cx.session_rules(frontend));
            if verdict == Some(Verdict::Close) {
                self.cx
                    .accounts()
                    .tell_bind(bind, FrontCount::DeniedSessions);
                return self.cx.close_client(link);
            }
        }
        if self.cx.runtime_config.has_tables
            && let Some(session) = self.cx.core.links.session(link)
        {
            session.tracked.count(tables::Event::Session, now.ms());
        }
        self.cx.mark(Pace::Sessions(frontend));
        self.cx.mark(Pace::ProcessSessions);
        self.cx.accounts().tell_bind(bind, FrontCount::Sessions);
        let entry = self.cx.core.links.get(link);
        if entry.is_some_and(|entry| entry.quic.is_some()) {
            return self.client_becomes_h3(link);
        }
        if self.cx.runtime_config.is_http(frontend) && self.speaks_h2(link) {
            return self.client_becomes_h2(link);
        }
        if self.cx.runtime_config.is_http(frontend) {
            return self.cx.wait_on(link, ConnWait::Request(frontend));
        }
        let id = self.begin_stream(link.only_exchange());
        self.with_stream(id, |cx, stream| {
            stream.phase = Phase::FrontendContent(Inspection::default());
            cx.log_at(stream, LogOrigin::Accept);
            cx.run(stream);
        });
    }

    /// Reads the PROXY protocol header. Returns how many bytes were used.
    pub(super) fn read_proxy_header(&mut self, link: ConnId, bytes: &[u8]) -> usize {
        match proxy_protocol::parse(bytes) {
            Ok(None) => 0,
            Ok(Some((used, header))) => {
                if let Some(client) = self.cx.core.links.client_mut(link) {
                    let session = &mut client.session;
                    session.received_proxy = true;
                    session.tlvs = Some(header.tlv_bytes())
                        .filter(|tlvs| !tlvs.is_empty())
                        .map(Into::into);
                    if let Some(ends) = header.addresses {
                        let src = std::mem::replace(&mut session.src, ends.source);
                        let dst = std::mem::replace(&mut session.dst, ends.destination);
                        session.connection_src = Some(Box::new(src));
                        session.connection_dst = Some(Box::new(dst));
                    }
                }
                self.begin_client_handshake(link);
                used
            }
            Err(error) => {
                let why = match error {
                    proxy_protocol::Error::NotProxy => ConnError::ProxyNone,
                    proxy_protocol::Error::UnknownProtocol => ConnError::ProxyUnknown,
                    proxy_protocol::Error::BadLine
                    | proxy_protocol::Error::LineTooLong
                    | proxy_protocol::Error::BadVersion
                    | proxy_protocol::Error::BadCommand
                    | proxy_protocol::Error::BadFamily
                    | proxy_protocol::Error::TooShort
                    | proxy_protocol::Error::HeaderTooLong
                    | proxy_protocol::Error::BadTlv
                    | proxy_protocol::Error::TlvTooLong
                    | proxy_protocol::Error::BadChecksum => ConnError::ProxyBad,
                };
                self.fail_session(link, why, false);
                bytes.len()
            }
        }
    }

    /// Closes a client that failed before its session began, and logs it.
    pub(super) fn fail_session(&mut self, link: ConnId, why: ConnError, silent: bool) {
        self.log_failed_session(link, why, silent);
        self.cx.close_client(link);
    }

    pub(super) fn log_failed_session(&mut self, link: ConnId, why: ConnError, silent: bool) {
        self.handshake_abandoned(link);
        let client = self.cx.core.links.client(link);
        let Some(frontend) = client.map(Client::frontend) else {
            return;
        };
        self.cx.with_session(link, |cx| {
            let scene = &mut cx.scene;
            scene
                .logging
                .failed_session(&mut scene.eval, frontend, why, silent);
        });
    }
}
