//! Received bytes are fed to muxes, whose messages are fed to streams. Bytes that cannot be used
//! yet wait: one buffer of them with the connection, the rest in the kernel.

use config::model::Proto;
use http::h1::{ParseError, Parsed};
use http::h2::PREFACE;
use net::{Driver, Took};

use super::Turn;
use crate::ids::{ConnId, ExchangeId, LinkId, QuicUser, StreamId};
use crate::link::{Hold, HttpMajor, Ingress, Link, Reading, Role, Rules, Stage, Taken, User};
use crate::phases::{ConnWait, Core, Cx, request_read_rules, response_read_rules};
use crate::shared::{FrontCount, QuicCount};
use crate::stream::{Phase, Stream};

/// How many requests of one client are handled before other connections are served.
const REQUESTS_A_TURN_MAX: u32 = 16;

/// The result of one step with the bytes at hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Feed {
    /// This number of bytes was used; the next step follows.
    Used(usize),
    /// This number of bytes was used; the next step needs more.
    More(usize),
    /// This number of bytes was used; the rest has to wait.
    Wait(usize),
    /// The connection is closed.
    Gone,
}

/// The result of feeding bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fed {
    pub used: usize,
    /// The unused bytes need more bytes after them; otherwise they have to wait.
    pub wants_more: bool,
}

impl Fed {
    /// All bytes were used.
    pub const ALL: Fed = Fed {
        used: 0,
        wants_more: true,
    };
}

impl<D: Driver> Turn<'_, D> {
    /// Bytes were received.
    pub(super) fn receive(&mut self, link: ConnId, data: &mut [u8]) -> Took {
        let read_bytes = self.cx.io.read_bytes();
        let mut taken = 0;
        while taken < data.len() {
            let Some(entry) = self.cx.core.links.get_mut(link) else {
                return all(data);
            };
            if entry.secure.is_some() {
                // The bytes before the handshake (a PROXY header) are used; the handshake follows.
                let took = self.receive_secure(link, &mut data[taken..]);
                return Took {
                    bytes: taken + took.bytes,
                    ..took
                };
            }
            let rest = &data[taken..];
            if entry.input.is_empty() {
                taken += self.feed(link.into(), rest).used;
                let rest = &data[taken..];
                if rest.is_empty() {
                    break;
                }
                // A large rest stays in the kernel.
                if rest.len() <= read_bytes
                    && let Some(entry) = self.cx.core.links.get_mut(link)
                {
                    entry.input.extend_from_slice(rest);
                    taken = data.len();
                }
                break;
            }
            // Appends to the waiting bytes as much as may wait.
            let most = read_bytes.max(entry.input_bytes_max(self.cx.runtime_config.bufsize()));
            let room = most.saturating_sub(entry.input.len()).max(1);
            let count = room.min(rest.len());
            entry.input.extend_from_slice(&rest[..count]);
            taken += count;
            let fed = self.use_input(link.into());
            let entry = self.cx.core.links.get(link);
            if !fed.wants_more && entry.is_some_and(|entry| !entry.input.is_empty()) {
                break;
            }
        }
        let Some(entry) = self.cx.core.links.get_mut(link) else {
            return all(data);
        };
        if taken < data.len() {
            self.cx.core.links.hold(self.cx.io, link, Hold::Full);
        } else if entry.input.is_empty() && !entry.is_held(Hold::Full) {
            entry.release_spare();
            return all(data);
        } else {
            self.update_reading(link);
        }
        let entry = self.cx.core.links.get(link);
        let held = entry.map_or(0, |link| link.input.len());
        Took { bytes: taken, held }
    }

    pub(super) fn update_reading(&mut self, link: ConnId) {
        let entry = self.cx.core.links.get_mut(link);
        match entry.map(|entry| (entry.release_spare(), &entry.role).1) {
            Some(Role::Client(_) | Role::Stream(_)) => self.cx.update_reading(link),
            Some(Role::Server(_)) => {
                let bufsize = self.cx.runtime_config.bufsize();
                let is_full = |entry: &Link| entry.is_full(bufsize);
                if self.cx.core.links.get(link).is_some_and(is_full) {
                    self.cx.core.links.hold(self.cx.io, link, Hold::Full);
                }
            }
            None => {}
        }
    }

    /// A connection's waiting bytes, here and in the kernel, may be used now; the peer's end is
    /// handled after them.
    pub(super) fn process_input(&mut self, link: LinkId) {
        let Fed { wants_more, .. } = self.use_input(link);
        let Some(entry) = self.cx.core.links.get(link) else {
            return;
        };
        if entry.is_full(self.cx.runtime_config.bufsize()) {
            // The hold may have been released while the bytes were used.
            self.cx.core.links.hold(self.cx.io, link, Hold::Full);
        } else if !entry.is_later {
            self.cx.core.links.release(self.cx.io, link, Hold::Full);
        }
        let Some(entry) = self.cx.core.links.get(link) else {
            return;
        };
        if entry.eof && (entry.input.is_empty() || wants_more) {
            match &entry.role {
                Role::Client(_) => self.client_eof(ConnId::of(link)),
                Role::Server(_) => self.server_eof(ConnId::of(link)),
                Role::Stream(_) => {}
            }
        } else if entry.eof && entry.is_http() && matches!(entry.role, Role::Client(_)) {
            self.client_eof_behind_input(ConnId::of(link));
        }
    }

    /// Continues a connection that had its turn.
    pub(super) fn go_on_later(&mut self, link: ConnId) {
        if let Some(entry) = self.cx.core.links.get_mut(link) {
            entry.is_later = false;
            self.process_input(link.into());
        }
    }

    /// Feeds the waiting bytes of a connection.
    pub(super) fn use_input(&mut self, link: LinkId) -> Fed {
        let Some(entry) = self.cx.core.links.get_mut(link) else {
            return Fed::ALL;
        };
        if entry.input.is_empty() {
            return Fed::ALL;
        }
        let mut input = std::mem::take(&mut entry.input);
        let fed = self.feed(link, &input);
        if let Some(entry) = self.cx.core.links.get_mut(link) {
            input.take(fed.used);
            // Bytes that a stream gave back meanwhile come first.
            if !entry.input.is_empty() {
                input.put_back(&entry.input);
            }
            entry.input = input;
            entry.release_spare();
        }
        fed
    }

    /// Feeds bytes to a connection's stage or stream.
    pub(super) fn feed(&mut self, link: LinkId, bytes: &[u8]) -> Fed {
        let (mut used, mut requests, mut steps) = (0, 0, 0);
        let gone = Fed {
            used: bytes.len(),
            wants_more: true,
        };
        // A stream that runs after the bytes which came with its head.
        let mut due: Option<StreamId> = None;
        let wants_more = loop {
            let rest = &bytes[used..];
            let Some(entry) = self.cx.core.links.get(link) else {
                return gone;
            };
            let conn = ConnId::of(link);
            let step = match &entry.role {
                Role::Stream(_) => self.feed_payload(ExchangeId::of(link), rest),
                Role::Client(client) => match client.stage {
                    Stage::ProxyHeader if rest.is_empty() => Feed::More(0),
                    Stage::ProxyHeader => match self.read_proxy_header(conn, rest) {
                        0 => Feed::More(0),
                        count => self.after_proxy_header(conn, rest, count),
                    },
                    Stage::Handshake | Stage::Session => Feed::Wait(0),
                    Stage::Closing => {
                        if !rest.is_empty() {
                            self.cx.discarded(conn);
                        }
                        Feed::More(rest.len())
                    }
                    Stage::Ready => self.feed_client(conn, rest, &mut requests, &mut due),
                },
                Role::Server(server) if server.socks4.is_some() => {
                    self.read_socks4_reply(conn, rest)
                }
                Role::Server(_) => self.feed_server(conn, rest),
            };
            match step {
                Feed::Used(count) => {
                    used += count;
                    steps += 1;
                    // With all bytes used, the only possible events are the end of a body and
                    // streams that a server will not process.
                    if used == bytes.len() && !self.has_more_to_tell(link) {
                        break true;
                    }
                }
                Feed::More(count) => {
                    used += count;
                    break true;
                }
                Feed::Wait(count) => {
                    used += count;
                    break false;
                }
                Feed::Gone => {
                    used = bytes.len();
                    break true;
                }
            }
        };
        if used > 0 || steps > 0 {
            self.after_feed(link, due);
        }
        Fed { used, wants_more }
    }

    /// Handles the bytes after a PROXY protocol header: a TLS handshake or plain data.
    pub(super) fn after_proxy_header(&mut self, link: ConnId, bytes: &[u8], header: usize) -> Feed {
        let entry = self.cx.core.links.get(link);
        let is_secure = entry.is_some_and(|entry| entry.secure.is_some());
        if !is_secure || header == bytes.len() {
            return Feed::Used(header);
        }
        self.receive_secure(link, &mut bytes[header..].to_vec());
        Feed::More(bytes.len())
    }

    /// Whether a connection may have events without further bytes.
    fn has_more_to_tell(&self, link: LinkId) -> bool {
        let entry = self.cx.core.links.get(link);
        entry.is_some_and(Link::has_more_to_tell)
    }

    /// Runs streams that wait for these bytes.
    pub(super) fn after_feed(&mut self, link: LinkId, due: Option<StreamId>) {
        let stream = self.cx.core.links.stream(link);
        let Some(id) = due.or(stream) else { return };
        let Some(stream) = self.streams.get(id) else {
            return;
        };
        match stream.phase {
            _ if due.is_some() => self.with_stream(id, |cx, stream| cx.run(stream)),
            phase if phase.awaits_upload() || phase.inspects_request() => {
                self.with_stream(id, |cx, stream| cx.run(stream));
            }
            Phase::BackendResponse(rules) if rules.awaits_body() => {
                self.with_stream(id, |cx, stream| cx.run(stream));
            }
            Phase::Tunnel(tunnel)
                if tunnel.inspection.is_some() && !stream.down.waiting.is_empty() =>
            {
                self.with_stream(id, |cx, stream| cx.inspect_waiting_response(stream));
            }
            _ => {}
        }
    }

    // ---- events

    /// The next step with a client's bytes.
    fn feed_client(
        &mut self,
        link: ConnId,
        bytes: &[u8],
        requests: &mut u32,
        due: &mut Option<StreamId>,
    ) -> Feed {
        let Some(entry) = self.cx.core.links.get(link) else {
            return Feed::Gone;
        };
        let Role::Client(client) = &entry.role else {
            return Feed::Gone;
        };
        let frontend = client.frontend();
        // A peer that provokes responses and does not read them is not read either.
        let must_wait = entry.must_drain_first();
        let had_its_turn =
            *requests >= REQUESTS_A_TURN_MAX && !bytes.is_empty() && entry.awaits_request();
        if let Some(first) = bytes.first()
            && (*first == PREFACE[0] || client.proto == Some(Proto::H2))
            && entry.is_before_head()
            && let Some(step) = self.detect_version(link, bytes)
        {
            return step;
        }
        if must_wait {
            return Feed::Wait(0);
        }
        if had_its_turn {
            self.later(link);
            return Feed::Wait(0);
        }
        let rules = request_read_rules(self.cx.runtime_config, frontend);
        let (used, event) = self.pull(link, None, bytes, rules);
        match event {
            Ingress::Head {
                exchange,
                parsed,
                behind,
            } => {
                *requests += 1;
                *due = self.request_head(link, exchange, parsed, behind);
                Feed::Used(used)
            }
            Ingress::More => {
                self.count_received(link, used);
                if used > 0 {
                    self.client_is_alive(link);
                }
                Feed::More(used)
            }
            Ingress::Partial => {
                self.request_began(link);
                Feed::More(used)
            }
            Ingress::Discarded(exchange) => {
                self.cx.await_rest(exchange);
                Feed::Used(used)
            }
            Ingress::Bad(error) => {
                self.request_is_bad(link, (bytes, error), rules);
                Feed::Gone
            }
            Ingress::Refused => {
                self.request_refused(link);
                Feed::Used(used)
            }
            Ingress::Alive => {
                self.client_is_alive(link);
                Feed::Used(used)
            }
            event => self.feed_event(link, used, event),
        }
    }

    /// The next step with a server's bytes.
    fn feed_server(&mut self, link: ConnId, bytes: &[u8]) -> Feed {
        let Some(entry) = self.cx.core.links.get(link) else {
            return Feed::Gone;
        };
        let Role::Server(server) = &entry.role else {
            return Feed::Gone;
        };
        if entry.must_drain_first() {
            return Feed::Wait(0);
        }
        let stream = entry.stream().and_then(|id| self.streams.get(id));
        let backend = match stream {
            Some(stream) => {
                // The client has to take interim responses before the next head is read.
                let may_begin =
                    !entry.is_held(Hold::Peer) && matches!(stream.phase, Phase::ResponseHead);
                if !may_begin && entry.is_before_head() {
                    return Feed::Wait(0);
                }
                stream.backend
            }
            None => server.server.backend,
        };
        let stream = stream.map(|stream| stream.id);
        let rules = response_read_rules(self.cx.runtime_config, backend);
        let (used, event) = self.pull(link, stream, bytes, rules);
        match event {
            Ingress::Head {
                exchange,
                parsed,
                behind,
            } => {
                self.response_head(exchange, (parsed, used), behind);
                Feed::Used(used)
            }
            Ingress::More => {
                self.count_received(link, used);
                Feed::More(used)
            }
            Ingress::Bad(error) => {
                self.response_is_bad(link, (bytes, error), rules);
                Feed::Gone
            }
            event => self.feed_event(link, used, event),
        }
    }

    /// The next event of a connection. `reader`: the stream of a server's only exchange, whose
    /// response is read right to its place; other heads are read to the worker's scratch head.
    #[inline]
    fn pull<'b>(
        &mut self,
        link: ConnId,
        reader: Option<StreamId>,
        bytes: &'b [u8],
        rules: Rules,
    ) -> (usize, Ingress<'b>) {
        let core = &mut *self.cx.core;
        let (mut head, mut trailers) = (&mut core.head, &mut core.trailers);
        if let Some(stream) = reader.and_then(|id| self.streams.get_mut(id)) {
            (head, trailers) = (&mut stream.response, &mut stream.down.trailers);
        }
        let mut reading = Reading {
            rules,
            timers: &mut core.timers,
            head,
            trailers,
            glitches: 0,
        };
        let (used, event) = core.links.pull(self.cx.io, link, bytes, &mut reading);
        let glitches = reading.glitches;
        if glitches > 0 {
            self.peer_has_glitches(link, glitches);
        }
        (used, event)
    }

    /// Handles an event that concerns clients and servers alike.
    fn feed_event(&mut self, link: ConnId, used: usize, event: Ingress<'_>) -> Feed {
        match event {
            Ingress::Data {
                exchange,
                bytes,
                framing,
            } => {
                return match self.payload(exchange, bytes, framing) {
                    0 => Feed::Used(used),
                    left => Feed::Wait(used - left),
                };
            }
            Ingress::End { exchange, wire } => {
                if let Some(user) = self.cx.core.links.user(exchange) {
                    let is_client = user.is_client;
                    // A server's only exchange has them in place.
                    let has_trailers = is_client || user.connection.is_some();
                    self.with_stream(user.stream, |cx, stream| {
                        count_wire(stream, is_client, wire);
                        message_ended(cx, stream, is_client, has_trailers);
                    });
                }
                if self.cx.core.links.shares_connection(exchange) {
                    self.after_feed(exchange.into(), None);
                }
            }
            Ingress::Drained(exchange) => self.cx.exchange_drained(exchange),
            Ingress::Reset { exchange, why } => self.exchange_reset(exchange, why),
            Ingress::Writable(exchange) => self.exchange_writable(exchange),
            Ingress::Settled => self.peer_settled(link),
            Ingress::Ending => self.peer_is_ending(link),
            Ingress::Wait => return Feed::Wait(used),
            Ingress::Failed => {
                self.connection_failed(link);
                return Feed::Gone;
            }
            Ingress::Unexpected => {
                // A late response, or a 408 at the end of an idle connection. After a complete
                // response further bytes no longer match any request.
                if self.cx.core.links.is_client(link) {
                    self.cx.close_client(link)
                } else {
                    self.cx.close_server(link)
                }
                return Feed::Gone;
            }
            Ingress::More | Ingress::Partial => return Feed::More(used),
            // These concern clients or servers alone.
            Ingress::Nothing
            | Ingress::Head { .. }
            | Ingress::Discarded(_)
            | Ingress::Bad(_)
            | Ingress::Refused
            | Ingress::Alive => {}
        }
        Feed::Used(used)
    }

    /// Counts bytes of a message that are neither a head nor payload.
    #[inline]
    fn count_received(&mut self, link: ConnId, bytes: usize) {
        if bytes == 0 {
            return;
        }
        self.cx.tell_h2(link);
        let is_client = self.cx.core.links.is_client(link);
        if let Some(id) = self.cx.core.links.stream(link)
            && let Some(stream) = self.streams.get_mut(id)
        {
            count_wire(stream, is_client, bytes);
        }
    }

    // ---- payload

    /// Passes payload of an event to the stream of its exchange. Returns how many of its last bytes
    /// are left and have to be fed again.
    #[inline]
    fn payload(&mut self, exchange: ExchangeId, bytes: &[u8], framing: usize) -> usize {
        let Some(user) = self.cx.core.links.user(exchange) else {
            return 0;
        };
        let used = self.pass_payload(exchange, user, bytes, framing);
        let rest = &bytes[used..];
        let is_kept = !rest.is_empty() && self.cx.core.links.keep_rest(exchange, rest);
        if user.connection.is_some() {
            self.after_feed(exchange.into(), None);
        }
        if is_kept { 0 } else { rest.len() }
    }

    /// Feeds payload that has waited with its exchange.
    fn feed_payload(&mut self, exchange: ExchangeId, bytes: &[u8]) -> Feed {
        let Some(user) = self.cx.core.links.user(exchange) else {
            return Feed::Gone;
        };
        let used = self.pass_payload(exchange, user, bytes, 0);
        if used < bytes.len() {
            return Feed::Wait(used);
        }
        Feed::More(used)
    }

    /// Passes payload to the stream of an exchange; if all of the message is used, ends it. Returns
    /// the number of used bytes.
    #[inline]
    fn pass_payload(
        &mut self,
        exchange: ExchangeId,
        user: User,
        bytes: &[u8],
        framing: usize,
    ) -> usize {
        let User { is_client, .. } = user;
        let (mut used, mut is_gone) = (0, true);
        self.with_stream(user.stream, |cx, stream| {
            if !bytes.is_empty() {
                used = if is_client {
                    take_upload(cx, stream, bytes, framing)
                } else {
                    take_download(cx, stream, bytes, framing)
                };
            }
            let Core {
                links, trailers, ..
            } = &mut *cx.core;
            let left = bytes.len() - used;
            let (taken, announced) = links.took(cx.io, exchange, used, left, trailers);
            let body = if is_client {
                &mut stream.txn.request_body
            } else {
                &mut stream.txn.response_body
            };
            body.announced = announced;
            is_gone = taken == Taken::Gone;
            if let Taken::Message { has_trailers } = taken {
                message_ended(cx, stream, is_client, has_trailers);
            }
        });
        if is_gone {
            if let Some(connection) = user.connection {
                // The exchange ended with these bytes, which its connection is still credited for.
                let links = &mut self.cx.core.links;
                links.credit(self.cx.io, connection, bytes.len());
            }
            return bytes.len();
        }
        used
    }

    // ---- requests

    /// A request's head is complete, in the worker's scratch head. Returns the stream if it is to
    /// run only after the bytes that came with the head have been passed to it.
    fn request_head(
        &mut self,
        link: ConnId,
        exchange: ExchangeId,
        parsed: Parsed,
        behind: usize,
    ) -> Option<StreamId> {
        let core = &mut *self.cx.core;
        let entry = core.links.get(exchange)?;
        let waiting = entry.stream();
        let is_shared = matches!(entry.role, Role::Stream(_));
        let version = if is_shared {
            core.links.speaks(link)
        } else {
            HttpMajor::H1
        };
        if is_shared {
            self.note_shared_request(link);
        }
        let id = match waiting {
            Some(id) => id,
            None => self.begin_stream(exchange),
        };
        let waits_for_body = behind > 0 && self.cx.runtime_config.config.needs.request_body;
        let mut is_due = false;
        self.with_stream(id, |cx, stream| {
            stream.account.client = version;
            std::mem::swap(&mut stream.request, &mut cx.core.head);
            cx.request_read(stream, parsed, behind);
            is_due = waits_for_body && !stream.up.came && !matches!(stream.phase, Phase::Done);
            if !is_due && !matches!(stream.phase, Phase::Done) {
                cx.run(stream);
            }
        });
        is_due.then_some(id)
    }

    /// A request came on a connection that serves several at a time.
    fn note_shared_request(&mut self, link: ConnId) {
        let now = self.cx.now();
        let Some(client) = self.cx.core.links.client_mut(link) else {
            return;
        };
        // Its requests do not follow each other, so no idle time precedes one.
        client.idle_since = now;
        let bind = client.bind;
        self.cx.accounts().tell_shared_request(link, bind);
        let ambient = &self.cx.core.ambient;
        let (shared, worker) = (&ambient.shared, ambient.worker);
        if self.cx.core.links.speaks_h2(link) {
            let row = shared.front_row(worker, bind.frontend);
            row.add(FrontCount::H2OpenStreams, 1);
        } else if let Some(row) = shared.quic_row(worker, QuicUser::Frontend(bind.frontend)) {
            row.add(QuicCount::OpenRequests, 1);
        }
        self.cx.tell_h2(link);
    }

    /// A part of a request's head has come: the request's timeout starts with its first byte.
    pub(super) fn request_began(&mut self, link: ConnId) {
        let now = self.cx.now();
        let Some(client) = self.cx.core.links.client_mut(link) else {
            return;
        };
        if client.request_began.is_none() {
            client.request_began = Some(now);
            if client.streams > 0 {
                let wait = ConnWait::Request(client.frontend());
                self.cx.wait_on(link, wait);
            }
        }
    }

    /// A request violates the protocol.
    #[cold]
    fn request_is_bad(&mut self, link: ConnId, what: (&[u8], ParseError), rules: Rules) {
        let (bytes, error) = what;
        let Some(entry) = self.cx.core.links.get(link) else {
            return;
        };
        let id = match entry.stream() {
            None if entry.discards_rest() => return self.cx.close_client(link),
            None => self.begin_stream(link.only_exchange()),
            Some(id) => id,
        };
        let status = error.status();
        self.with_stream(id, |cx, stream| {
            let has_head = matches!(stream.phase, Phase::RequestHead(_));
            cx.note_refused_request(stream, what, (rules, has_head));
            if has_head {
                cx.request_refused(stream, bytes.len(), status)
            } else {
                cx.upload_broken(stream, status)
            }
        });
    }

    /// A connection had its turn: continues it in the next round.
    pub(super) fn later(&mut self, link: ConnId) {
        if let Some(entry) = self.cx.core.links.get_mut(link)
            && !std::mem::replace(&mut entry.is_later, true)
        {
            self.state.later.push_back(link);
            self.cx.core.links.hold(self.cx.io, link, Hold::Full);
        }
    }

    // ---- responses

    /// A response's head is complete: in its stream, or in the worker's scratch head for an
    /// exchange that shares its connection. `used`: its bytes.
    fn response_head(
        &mut self,
        exchange: ExchangeId,
        (parsed, used): (Parsed, usize),
        behind: usize,
    ) {
        let links = &self.cx.core.links;
        let Some(user) = links.user(exchange) else {
            return;
        };
        let id = user.stream;
        self.with_stream(id, |cx, stream| {
            stream.txn.bytes_from_server += used as u64;
            stream.activity.server.restart();
            if !matches!(stream.phase, Phase::ResponseHead) {
                // The request was not sent yet, or was already answered.
                return cx.server_lost(stream, net::Close::Reset, true);
            }
            if user.connection.is_some() {
                std::mem::swap(&mut stream.response, &mut cx.core.head);
            }
            cx.response_read(stream, parsed, behind);
        });
    }

    /// A response violates the protocol.
    #[cold]
    fn response_is_bad(&mut self, link: ConnId, what: (&[u8], ParseError), rules: Rules) {
        let Some(id) = self.cx.core.links.stream(link) else {
            return self.cx.close_server(link);
        };
        self.with_stream(id, |cx, stream| {
            let has_head = matches!(stream.phase, Phase::ResponseHead);
            cx.note_refused_response(stream, what, (rules, has_head));
            if has_head {
                cx.response_refused(stream)
            } else {
                cx.download_broken(stream)
            }
        });
    }
}

fn all(data: &[u8]) -> Took {
    Took {
        bytes: data.len(),
        held: 0,
    }
}

/// Passes a client's payload to its stream, and counts it. `framing`: the number of framing bytes
/// around it.
fn take_upload<D: Driver>(
    cx: &mut Cx<'_, D>,
    stream: &mut Stream,
    bytes: &[u8],
    framing: usize,
) -> usize {
    // Bytes that rules inspect may turn out to be a request, whose head is counted again.
    let flows = stream.txn.is_http || matches!(stream.phase, Phase::Tunnel(_));
    let used = cx.upload(stream, bytes);
    if used > 0 {
        stream.activity.client.restart();
    }
    stream.txn.bytes_in += (used + framing) as u64;
    if flows {
        cx.accounts().count_flow(stream);
    }
    used
}

/// Passes a server's payload to its stream in the same way.
fn take_download<D: Driver>(
    cx: &mut Cx<'_, D>,
    stream: &mut Stream,
    bytes: &[u8],
    framing: usize,
) -> usize {
    let used = cx.download(stream, bytes);
    if used > 0 {
        stream.activity.server.restart();
    }
    stream.txn.bytes_from_server += (used + framing) as u64;
    cx.accounts().count_flow(stream);
    used
}

/// Counts bytes of a message's framing.
#[inline]
fn count_wire(stream: &mut Stream, is_client: bool, bytes: usize) {
    if is_client {
        stream.txn.bytes_in += bytes as u64;
    } else {
        stream.txn.bytes_from_server += bytes as u64;
    }
}

/// A message is over, and all of its payload is used. `has_trailers`: they are in the worker's
/// scratch head.
fn message_ended<D: Driver>(
    cx: &mut Cx<'_, D>,
    stream: &mut Stream,
    is_client: bool,
    has_trailers: bool,
) {
    match (matches!(stream.phase, Phase::Tunnel(_)), is_client) {
        (true, true) => return cx.client_ended(stream, false),
        (true, false) => return cx.tunnel_server_ended(stream),
        (false, _) => {}
    }
    if has_trailers {
        let channel = if is_client {
            &mut stream.up
        } else {
            &mut stream.down
        };
        std::mem::swap(&mut channel.trailers, &mut cx.core.trailers);
    }
    if is_client {
        cx.upload_came(stream);
    } else {
        cx.download_came(stream);
        cx.run(stream);
    }
}
