//! Counts a stream in the statistics: most of it once, at the stream's end, and each cause of a
//! failure when it happens.

use config::model::HttpAction;
use net::{Driver, Now};
use sample::Txn;
use tables::Event;
use telemetry::TraceId;

use super::{Cause, Cx};
use crate::evaluation::Ambient;
use crate::ids::{BindId, ConnId, QuicUser, ServerId};
use crate::link::{HttpMajor, Links};
use crate::rules::{End, RuleSet};
use crate::runtime_config::RuntimeConfig;
use crate::shared::{BackCount, Class, FrontCount, FrontRow, Measured, QuicCount, Times, Whose};
use crate::stream::{Phase, Stream};

/// The counters that an event of a stream increments: those of the frontend, of the listener, and
/// of the backend and the server.
#[derive(Clone, Copy, Debug, Default)]
struct Told {
    front: Option<FrontCount>,
    back: Option<BackCount>,
}

/// The end of a TLS handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TlsEnd {
    Done,
    /// It resumed a session; also counted as [`TlsEnd::Done`].
    Resumed,
    Failed,
}

const fn both(front: FrontCount, back: BackCount) -> Told {
    Told {
        front: Some(front),
        back: Some(back),
    }
}

const fn front(front: FrontCount) -> Told {
    Told {
        front: Some(front),
        back: None,
    }
}

const fn back(back: BackCount) -> Told {
    Told {
        front: None,
        back: Some(back),
    }
}

/// The counters for a failure with this cause while the stream is in this phase.
fn fault(cause: Cause, phase: Phase) -> Told {
    let reads_request = matches!(phase, Phase::RequestHead(_)) || phase.awaits_upload();
    match cause {
        Cause::BadRequest(_) | Cause::BadNames => front(FrontCount::FailedRequests),
        Cause::ClientTimeout | Cause::ClientAborted | Cause::ClientGone if reads_request => {
            front(FrontCount::FailedRequests)
        }
        Cause::ClientTimeout | Cause::ClientAborted | Cause::ClientGone | Cause::ClientStuck => {
            back(BackCount::ClientAborts)
        }
        // Not counted as an error of the client, the server or the proxy.
        Cause::NoBackend | Cause::Killed => Told::default(),
        Cause::NoServer | Cause::QueueFull | Cause::QueueTimeout | Cause::NotConnected { .. } => {
            back(BackCount::FailedConnects)
        }
        Cause::ServerTimeout | Cause::ServerGone | Cause::ServerDown => match phase {
            Phase::ResponseHead | Phase::BackendResponse(_) => back(BackCount::FailedResponses),
            _ => back(BackCount::ServerAborts),
        },
        Cause::EmptyResponse | Cause::StaleServer | Cause::BadResponse => {
            back(BackCount::FailedResponses)
        }
        Cause::CacheableCookies => both(FrontCount::DeniedResponses, BackCount::DeniedResponses),
        // Already counted when the rule failed.
        Cause::RulesFailed => Told::default(),
        Cause::WrongMode | Cause::Internal => {
            both(FrontCount::InternalErrors, BackCount::InternalErrors)
        }
    }
}

/// What counting needs: it changes nothing but counters.
#[derive(Clone, Copy)]
pub(crate) struct Accounts<'a> {
    pub runtime_config: &'a RuntimeConfig,
    pub ambient: &'a Ambient,
    pub links: &'a Links,
    pub now: Now,
}

impl<D: Driver> Cx<'_, D> {
    /// The methods that count events, with what they need.
    #[inline(always)]
    pub fn accounts(&self) -> Accounts<'_> {
        Accounts {
            runtime_config: self.runtime_config,
            ambient: &self.core.ambient,
            links: &self.core.links,
            now: self.now(),
        }
    }

    /// Counts what a connection of HTTP/2 or HTTP/3 has counted since the last time.
    pub fn tell_h2(&mut self, link: ConnId) {
        let core = &mut *self.core;
        let Some(told) = core.links.tell(link) else {
            return;
        };
        let (shared, worker) = (&core.ambient.shared, core.ambient.worker);
        if let Some(client) = core.links.client(link) {
            if told.is_h3 {
                let row = shared.quic_row(worker, QuicUser::Frontend(client.frontend()));
                return row.map_or((), |row| row.tell_frames(&told.counts));
            }
            // The streams of clients are counted one by one.
            let row = shared.front_row(worker, client.frontend());
            row.add_h2(&told.counts, 0);
        } else if let Some(server) = core.links.server(link) {
            let backend = server.server.backend;
            if told.is_h3 {
                let row = shared.quic_row(worker, QuicUser::Backend(backend));
                return row.map_or((), |row| row.tell_requests(&told.counts, told.opened));
            }
            let row = shared.back_row(worker, backend);
            row.add_h2(&told.counts, told.opened);
        }
    }
}

impl Accounts<'_> {
    /// Counts the bytes, the status and the times of a stream that has ended.
    #[inline(always)]
    pub fn account(self, stream: &Stream, now_ms: u64) {
        let txn = &stream.txn;
        let bytes = self.uncounted_bytes(stream);
        let ambient = self.ambient;
        let (shared, worker) = (&ambient.shared, ambient.worker);
        let class = (txn.is_http && txn.status != 0).then(|| Class::of(txn.status));
        let frontend = shared.front_row(worker, stream.frontend);
        frontend.add_bytes(bytes);
        match class {
            Some(class) => frontend.add_response(class),
            None => frontend.add(
                FrontCount::Unanswered,
                u64::from(stream.account.request_counted),
            ),
        }
        if stream.account.is_shared() {
            self.account_h2(stream, bytes);
        }
        if self.runtime_config.socket_stats {
            self.at_listener(stream, |row| row.add_bytes(bytes));
        }
        if !stream.backend_counted {
            return;
        }
        let backend = shared.back_row(worker, stream.backend);
        backend.add_bytes(bytes);
        if let Some(class) = class {
            backend.add_response(class);
        }
        let Some(server) = txn.server else { return };
        let server = ServerId::at(stream.backend, server as usize);
        let server = shared.server_row(worker, server);
        server.counts.add_bytes(bytes);
        if txn.is_http && txn.server_status != 0 {
            server.counts.add_response(Class::of(txn.server_status));
        }
        let is_balanced = u64::from(!stream.route.persist.direct);
        let is_reused = u64::from(txn.server_reused);
        for row in [backend, &server.counts] {
            row.add(BackCount::Balanced, is_balanced);
            row.add(BackCount::Reuses, is_reused);
        }
        if let Some(times) = times(stream, now_ms) {
            server.time(times);
        }
    }

    /// Counts a response of a server that does not end its stream: an interim one, or one upon which
    /// the request is sent again.
    #[cold]
    pub fn tell_response(self, stream: &Stream, status: u16) {
        let Some(server) = stream.txn.server else {
            return;
        };
        let server = ServerId::at(stream.backend, server as usize);
        let ambient = self.ambient;
        let row = ambient.shared.server_row(ambient.worker, server);
        row.counts.add_response(Class::of(status));
    }

    /// Counts the bytes of a stream whose client or server speaks HTTP/2 or HTTP/3, in the order of a
    /// row's cells.
    #[inline(never)]
    fn tell_h2_bytes(self, stream: &Stream, bytes: [u64; 4]) {
        let ambient = self.ambient;
        let (shared, worker) = (&ambient.shared, ambient.worker);
        let [from_client, to_server, from_server, to_client] = bytes;
        match stream.account.client {
            HttpMajor::H1 => {}
            HttpMajor::H2 => {
                let row = shared.front_row(worker, stream.frontend);
                row.add(FrontCount::H2BytesIn, from_client);
                row.add(FrontCount::H2BytesOut, to_client);
            }
            HttpMajor::H3 => {
                if let Some(row) = shared.quic_row(worker, QuicUser::Frontend(stream.frontend)) {
                    row.add(QuicCount::BytesIn, from_client);
                    row.add(QuicCount::BytesOut, to_client);
                }
            }
        }
        if !stream.backend_counted {
            return;
        }
        match stream.account.server {
            HttpMajor::H1 => {}
            HttpMajor::H2 => {
                let row = shared.back_row(worker, stream.backend);
                row.add(BackCount::H2BytesIn, from_server);
                row.add(BackCount::H2BytesOut, to_server);
            }
            HttpMajor::H3 => {
                if let Some(row) = shared.quic_row(worker, QuicUser::Backend(stream.backend)) {
                    row.add(QuicCount::BytesIn, from_server);
                    row.add(QuicCount::BytesOut, to_server);
                }
            }
        }
    }

    /// Counts the end of a stream whose client or server speaks HTTP/2 or HTTP/3.
    #[inline(never)]
    fn account_h2(self, stream: &Stream, bytes: [u64; 4]) {
        self.tell_h2_bytes(stream, bytes);
        let (shared, worker) = (&self.ambient.shared, self.ambient.worker);
        match stream.account.client {
            HttpMajor::H1 => {}
            HttpMajor::H2 => {
                let row = shared.front_row(worker, stream.frontend);
                row.take(FrontCount::H2OpenStreams);
            }
            HttpMajor::H3 => {
                if let Some(row) = shared.quic_row(worker, QuicUser::Frontend(stream.frontend)) {
                    row.take(QuicCount::OpenRequests);
                }
            }
        }
    }

    /// Counts a request on a connection of HTTP/2 or HTTP/3.
    pub fn tell_shared_request(self, link: ConnId, bind: BindId) {
        if self.links.speaks_h2(link) {
            return self.tell_bind(bind, FrontCount::RequestsH2);
        }
        let (shared, worker) = (&self.ambient.shared, self.ambient.worker);
        if let Some(row) = shared.quic_row(worker, QuicUser::Frontend(bind.frontend)) {
            row.add(QuicCount::Requests, 1);
        }
    }

    /// Counts the end of a TLS handshake with a client or a server.
    pub fn tell_tls(self, link: ConnId, end: TlsEnd) {
        if let Some(client) = self.links.client(link) {
            self.tell_bind(
                client.bind,
                match end {
                    TlsEnd::Done => FrontCount::TlsSessions,
                    TlsEnd::Resumed => FrontCount::TlsResumed,
                    TlsEnd::Failed => FrontCount::TlsFailed,
                },
            );
        } else if let Some(server) = self.links.server(link) {
            let what = match end {
                TlsEnd::Done => BackCount::TlsSessions,
                TlsEnd::Resumed => BackCount::TlsResumed,
                TlsEnd::Failed => BackCount::TlsFailed,
            };
            let ambient = self.ambient;
            let (shared, worker, id) = (&ambient.shared, ambient.worker, server.server);
            shared.back_row(worker, id.backend).add(what, 1);
            shared.server_row(worker, id).counts.add(what, 1);
        }
    }

    /// `option contstats`: counts the bytes of a stream that have flowed since it was last counted.
    #[inline(always)]
    pub fn count_flow(self, stream: &mut Stream) {
        if self.runtime_config.contstats {
            self.count_flow_now(stream);
        }
    }

    #[cold]
    fn count_flow_now(self, stream: &mut Stream) {
        let frontend = self.runtime_config.proxy(stream.frontend);
        // Without a backend, little has flowed; it counts with the rest.
        if !frontend.options.contstats || !stream.backend_counted {
            return;
        }
        let flowed = self.uncounted_bytes(stream);
        self.tell_bytes_to_tables(stream, flowed);
        stream.counted = bytes(&stream.txn);
        let ambient = self.ambient;
        let (shared, worker) = (&ambient.shared, ambient.worker);
        shared.front_row(worker, stream.frontend).add_bytes(flowed);
        if self.runtime_config.socket_stats {
            self.at_listener(stream, |row| row.add_bytes(flowed));
        }
        shared.back_row(worker, stream.backend).add_bytes(flowed);
        if stream.account.is_shared() {
            self.tell_h2_bytes(stream, flowed);
        }
        if let Some(server) = stream.txn.server {
            let server = ServerId::at(stream.backend, server as usize);
            shared.server_row(worker, server).counts.add_bytes(flowed);
        }
    }

    /// The bytes of a stream that were not counted while they flowed.
    #[inline(always)]
    pub fn uncounted_bytes(self, stream: &Stream) -> [u64; 4] {
        let mut all = bytes(&stream.txn);
        if self.runtime_config.contstats {
            for (all, counted) in all.iter_mut().zip(stream.counted) {
                *all -= counted;
            }
        }
        all
    }

    /// Adds the times of a stream to the histograms of `option latency-histograms`. Called when the
    /// stream has ended and its trace is decided; `kept`: the trace, if it is kept.
    #[inline(never)]
    pub fn measure(self, stream: &Stream, kept: Option<TraceId>, had_backend: bool) {
        let now_ms = self.now.ms();
        let timing = &stream.txn.timing;
        // Excludes the idle time of the connection before the request, which HAProxy's `ttime`
        // includes.
        let start_ms = timing.request_start.unwrap_or(timing.start).ms();
        let known = times(stream, now_ms);
        let measured = Measured {
            parts: [
                known.map(|times| times.queue),
                known.map(|times| times.connect),
                known.map(|times| times.response),
                Some(now_ms.saturating_sub(start_ms)),
            ],
            trace_id: kept.map(|trace| trace.0),
            unix_ns: self.now.wall_ns,
        };
        let ambient = self.ambient;
        let (shared, worker) = (&ambient.shared, ambient.worker);
        let measures = |proxy| self.runtime_config.proxy(proxy).options.latency_histograms;
        let add = |whose| shared.latency_row(worker, whose).add(&measured);
        if measures(stream.frontend) {
            add(Whose::Frontend(stream.frontend));
        }
        if !had_backend || !measures(stream.backend) {
            return;
        }
        add(Whose::Backend(stream.backend));
        if let Some(server) = stream.txn.server {
            let server = ServerId::at(stream.backend, server as usize);
            add(Whose::Server(shared.server_number(server)));
        }
    }

    /// Increments a counter of a frontend and of its listener.
    pub fn tell_bind(self, bind: BindId, what: FrontCount) {
        let ambient = self.ambient;
        let (shared, worker) = (&ambient.shared, ambient.worker);
        shared.front_row(worker, bind.frontend).add(what, 1);
        if self
            .runtime_config
            .proxy(bind.frontend)
            .options
            .socket_stats
        {
            shared.bind_row(worker, bind).add(what, 1);
        }
    }

    /// Counts at the listener that accepted the stream's client, where its frontend has `option
    /// socket-stats`.
    fn at_listener(self, stream: &Stream, count: impl FnOnce(&FrontRow)) {
        if !self
            .runtime_config
            .proxy(stream.frontend)
            .options
            .socket_stats
        {
            return;
        }
        let ambient = self.ambient;
        let client = stream.client.and_then(|link| self.links.client(link));
        if let Some(client) = client {
            count(ambient.shared.bind_row(ambient.worker, client.bind));
        }
    }

    /// Counts that a stream fails for this cause.
    #[cold]
    pub fn tell_fault(self, stream: &Stream, cause: Cause) {
        self.tell(stream, fault(cause, stream.phase));
        self.tell_failure(stream, cause);
    }

    /// Counts a compressed response: the bytes before compression and after it.
    pub fn tell_compression(self, stream: &Stream, (given, made): (u64, u64)) {
        let ambient = self.ambient;
        let (shared, worker) = (&ambient.shared, ambient.worker);
        let front = shared.front_row(worker, stream.frontend);
        front.add(FrontCount::CompressedIn, given);
        front.add(FrontCount::CompressedOut, made);
        front.add(FrontCount::Compressed, 1);
        let back = shared.back_row(worker, stream.backend);
        back.add(BackCount::CompressedIn, given);
        back.add(BackCount::CompressedOut, made);
        back.add(BackCount::Compressed, 1);
    }

    /// Increments a counter of the frontend.
    pub fn tell_front(self, stream: &Stream, what: FrontCount) {
        self.tell(stream, front(what));
    }

    fn tell(self, stream: &Stream, told: Told) {
        let ambient = self.ambient;
        let (shared, worker) = (&ambient.shared, ambient.worker);
        if let Some(what) = told.front {
            shared.front_row(worker, stream.frontend).add(what, 1);
            self.at_listener(stream, |row| row.add(what, 1));
        }
        let Some(what) = told.back.filter(|_| stream.backend_counted) else {
            return;
        };
        shared.back_row(worker, stream.backend).add(what, 1);
        if let Some(server) = stream.txn.server {
            let server = ServerId::at(stream.backend, server as usize);
            shared.server_row(worker, server).counts.add(what, 1);
        }
    }

    /// Counts that a rule ends a stream.
    pub fn tell_end(self, stream: &Stream, end: End) {
        let denied = |is_response: bool| {
            if is_response {
                both(FrontCount::DeniedResponses, BackCount::DeniedResponses)
            } else {
                both(FrontCount::DeniedRequests, BackCount::DeniedRequests)
            }
        };
        if matches!(end, End::Challenge(..) | End::Tarpit(_)) {
            self.tell_tables(stream, Event::ClientError);
        }
        let is_own = !stream.backend_counted || stream.backend == stream.frontend;
        let told = match end {
            End::Answer(set, rule) => {
                let rules = set.rules(self.runtime_config.proxy(rule.proxy));
                match rules.get(rule.place).map(|rule| &rule.action) {
                    Some(HttpAction::Deny(_)) => {
                        if set == RuleSet::Request {
                            self.tell_tables(stream, Event::ClientError);
                        }
                        denied(set.is_response())
                    }
                    _ if set == RuleSet::Request && is_own => front(FrontCount::Intercepted),
                    _ => Told::default(),
                }
            }
            End::Redirect if is_own => front(FrontCount::Intercepted),
            // A service counts by itself.
            End::Redirect | End::Vanished | End::Service(_) => Told::default(),
            End::Challenge(..) | End::Tarpit(_) => denied(false),
            End::Close => denied(matches!(
                stream.phase,
                Phase::BackendResponse(_) | Phase::Tunnel(_)
            )),
            End::Fail(_) => both(FrontCount::FailedRewrites, BackCount::FailedRewrites),
        };
        self.tell(stream, told);
    }

    /// Increments a counter of the stream's backend and of one of its servers.
    pub fn tell_server(self, stream: &Stream, server: ServerId, what: BackCount) {
        let ambient = self.ambient;
        let (shared, worker) = (&ambient.shared, ambient.worker);
        shared.back_row(worker, stream.backend).add(what, 1);
        shared.server_row(worker, server).counts.add(what, 1);
    }
}

/// The bytes of a stream in the order of a row's cells: from the client, to the server, from the
/// server, to the client.
#[inline(always)]
fn bytes(txn: &Txn) -> [u64; 4] {
    [
        txn.bytes_in,
        txn.bytes_to_server,
        txn.bytes_from_server,
        txn.bytes_out,
    ]
}

/// The durations of a stream's parts, milliseconds. None without a server, or in HTTP without a
/// response.
#[inline(always)]
fn times(stream: &Stream, now_ms: u64) -> Option<Times<u64>> {
    let timing = &stream.txn.timing;
    let connected_ms = timing.connected_ms?;
    let answered_ms = if stream.txn.is_http {
        timing.response_start_ms?
    } else {
        connected_ms
    };
    let start_ms = timing.start.ms();
    let requested_ms = timing.request_complete_ms.unwrap_or(start_ms);
    let queued_ms = timing.queued_ms.unwrap_or(requested_ms);
    Some(Times {
        queue: queued_ms.saturating_sub(requested_ms),
        connect: connected_ms.saturating_sub(queued_ms),
        response: answered_ms.saturating_sub(connected_ms),
        total: now_ms.saturating_sub(start_ms),
    })
}
