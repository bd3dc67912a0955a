//! Received bytes are fed to muxes, whose messages are fed to streams. Bytes that cannot be used
//! yet wait: one buffer of them with the connection, the rest in the kernel.

use config::model::Proto;
use http::h1::Parsed;
use http::h2::PREFACE;
use net::timers::NEVER_MS;
use net::{Driver, Took};

use super::Turn;
use crate::ids::{LinkId, StreamId};
use crate::link::mux::Mux;
use crate::link::mux::h1::Pull;
use crate::link::{Hold, Link, Role, Stage};
use crate::phases::{Cx, request_read_rules, response_read_rules};
use crate::runtime_config::deadline;
use crate::stream::{Phase, Stream};

/// How many requests of one client are handled before other connections are served.
pub(super) const REQUESTS_A_TURN_MAX: u32 = 16;

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
    pub(super) fn receive(&mut self, link: LinkId, data: &mut [u8]) -> Took {
        match self.cx.core.links.get(link) {
            Some(entry) if entry.secure.is_some() => self.receive_secure(link, data),
            _ => self.receive_clear(link, data),
        }
    }

    fn receive_clear(&mut self, link: LinkId, data: &mut [u8]) -> Took {
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
                taken += self.feed(link, rest).used;
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
            let most = read_bytes.max(entry.mux.input_bytes_max(self.cx.runtime_config.bufsize()));
            let room = most.saturating_sub(entry.input.len()).max(1);
            let count = room.min(rest.len());
            entry.input.extend_from_slice(&rest[..count]);
            taken += count;
            let fed = self.use_input(link);
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

    pub(super) fn update_reading(&mut self, link: LinkId) {
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
                _ if matches!(entry.mux, Mux::Connection(_)) => self.connection_eof(link),
                Role::Client(_) => self.client_eof(link),
                Role::Server(_) => self.server_eof(link),
                Role::Stream(_) => {}
            }
        } else if entry.eof && matches!(entry.mux, Mux::Front(_)) {
            self.client_eof_behind_input(link);
        }
    }

    /// Continues a connection that had its turn.
    pub(super) fn go_on_later(&mut self, link: LinkId) {
        if let Some(entry) = self.cx.core.links.get_mut(link) {
            entry.is_later = false;
            self.process_input(link);
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
            let step = match &entry.role {
                Role::Stream(_) => self.feed_stream(link, rest),
                Role::Client(client) => match client.stage {
                    Stage::ProxyHeader if rest.is_empty() => Feed::More(0),
                    Stage::ProxyHeader => match self.read_proxy_header(link, rest) {
                        0 => Feed::More(0),
                        count => self.after_proxy_header(link, rest, count),
                    },
                    Stage::Handshake | Stage::Session => Feed::Wait(0),
                    Stage::Closing => {
                        if !rest.is_empty() {
                            self.cx.discarded(link);
                        }
                        Feed::More(rest.len())
                    }
                    Stage::Ready if matches!(entry.mux, Mux::Raw(_)) => self.feed_raw(link, rest),
                    Stage::Ready if matches!(entry.mux, Mux::Connection(_)) => {
                        self.feed_connection(link, rest, &mut requests)
                    }
                    Stage::Ready => self.feed_request(link, rest, &mut requests, &mut due),
                },
                Role::Server(server) if server.socks4.is_some() => {
                    self.read_socks4_reply(link, rest)
                }
                Role::Server(_) => match &entry.mux {
                    Mux::Raw(_) => self.feed_raw(link, rest),
                    Mux::Connection(_) => self.feed_connection(link, rest, &mut requests),
                    Mux::Back(_) | Mux::Front(_) | Mux::Stream(_) => self.feed_response(link, rest),
                },
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
    pub(super) fn after_proxy_header(&mut self, link: LinkId, bytes: &[u8], header: usize) -> Feed {
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
        entry.is_some_and(|entry| entry.mux.has_more_to_tell())
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

    // ---- bytes as they are

    fn feed_raw(&mut self, link: LinkId, bytes: &[u8]) -> Feed {
        if bytes.is_empty() {
            return Feed::More(0);
        }
        let Some(entry) = self.cx.core.links.get(link) else {
            return Feed::Gone;
        };
        let is_client = matches!(entry.role, Role::Client(_));
        let Some(id) = entry.mux.stream() else {
            // Bytes on a connection without a stream are unexpected.
            if is_client {
                self.cx.close_client(link)
            } else {
                self.cx.close_server(link)
            }
            return Feed::Gone;
        };
        let mut used = 0;
        self.with_stream(id, |cx, stream| {
            used = if is_client {
                take_upload(cx, stream, bytes, 0)
            } else {
                take_download(cx, stream, bytes, 0)
            };
        });
        if used == bytes.len() {
            Feed::More(used)
        } else {
            Feed::Wait(used)
        }
    }

    // ---- requests

    fn feed_request(
        &mut self,
        link: LinkId,
        bytes: &[u8],
        requests: &mut u32,
        due: &mut Option<StreamId>,
    ) -> Feed {
        if bytes.first() == Some(&PREFACE[0])
            && let Some(step) = self.try_h2(link, bytes)
        {
            return step;
        }
        let core = &mut *self.cx.core;
        let Some(entry) = core.links.get_mut(link) else {
            return Feed::Gone;
        };
        let (Mux::Front(front), Role::Client(client)) = (&mut entry.mux, &entry.role) else {
            return Feed::Gone;
        };
        if client.proto == Some(Proto::H2) && !bytes.is_empty() {
            // The bytes are not HTTP/2, which is checked above.
            match front.stream {
                Some(id) => self.with_stream(id, |cx, stream| cx.abandon(stream)),
                None => self.cx.close_client(link),
            }
            return Feed::Gone;
        }
        if front.awaits_head() && front.stream.is_none() {
            // Stops handling requests of a client that does not read its responses, so that they do
            // not accumulate.
            if entry.blocked {
                return Feed::Wait(0);
            }
            if *requests == REQUESTS_A_TURN_MAX && !bytes.is_empty() {
                self.later(link);
                return Feed::Wait(0);
            }
        }
        let drains = front.drains();
        let stream = front.stream;
        let rules = request_read_rules(self.cx.runtime_config, client.frontend());
        let (used, pull) = front.pull(bytes, rules, &mut core.head, &mut core.trailers);
        if drains && used > 0 {
            self.cx.wait_for_client(link);
        }
        match pull {
            Pull::More => {
                match stream {
                    Some(id) => self.with_stream(id, |_, stream| {
                        stream.txn.bytes_in += used as u64;
                    }),
                    None if !drains && !bytes.is_empty() => self.request_began(link),
                    None => {}
                }
                Feed::More(used)
            }
            Pull::Hold => Feed::Wait(used),
            Pull::Head(parsed) => {
                *requests += 1;
                let behind = bytes.len() - used;
                *due = self.request_head(link, stream, (parsed, behind));
                Feed::Used(used)
            }
            Pull::Data(data) => match stream {
                None => Feed::Used(used),
                Some(id) => self.feed_body(link, id, (data, used), take_upload, end_upload),
            },
            Pull::End => {
                match stream {
                    None if drains => self.request_drained(link),
                    None => {}
                    Some(id) => self.with_stream(id, |cx, stream| {
                        stream.txn.bytes_in += used as u64;
                        std::mem::swap(&mut stream.up.trailers, &mut cx.core.trailers);
                        cx.upload_came(stream);
                    }),
                }
                Feed::Used(used)
            }
            Pull::Bad(error) => {
                let id = match stream {
                    None if drains => {
                        self.cx.close_client(link);
                        return Feed::Gone;
                    }
                    None => self.begin_stream(link),
                    Some(id) => id,
                };
                let status = error.status();
                self.with_stream(id, |cx, stream| {
                    let has_head = matches!(stream.phase, Phase::RequestHead);
                    cx.note_refused_request(stream, (bytes, error), (rules, has_head));
                    if has_head {
                        cx.request_refused(stream, bytes.len(), status)
                    } else {
                        cx.upload_broken(stream, status)
                    }
                });
                Feed::Gone
            }
        }
    }

    /// Passes payload to a stream. `used`: its bytes on the wire. `end` is called when these are
    /// the last bytes of a body of announced length and all of them are taken.
    fn feed_body(
        &mut self,
        link: LinkId,
        id: StreamId,
        (data, used): (&[u8], usize),
        take: impl FnOnce(&mut Cx<'_, D>, &mut Stream, &[u8], usize) -> usize,
        end: impl FnOnce(&mut Cx<'_, D>, &mut Stream),
    ) -> Feed {
        let mut taken = 0;
        let mux = self.cx.core.links.get(link).map(|link| &link.mux);
        let announced = mux.map_or(0, Mux::announced);
        let is_last = mux.is_some_and(Mux::has_all);
        self.with_stream(id, |cx, stream| {
            taken = take(cx, stream, data, used - data.len());
            let is_request = stream.client == Some(link);
            let body = if is_request {
                &mut stream.txn.request_body
            } else {
                &mut stream.txn.response_body
            };
            body.announced = announced + (data.len() - taken) as u64;
            if is_last && taken == data.len() {
                if let Some(entry) = cx.core.links.get_mut(link) {
                    entry.mux.end_body();
                }
                end(cx, stream);
            }
        });
        match data.len() - taken {
            0 => Feed::Used(used),
            left => {
                if let Some(entry) = self.cx.core.links.get_mut(link) {
                    entry.mux.unread(left);
                }
                Feed::Wait(used - left)
            }
        }
    }

    /// A request's head is complete, in the worker's scratch head. Returns the stream if it is to
    /// run only after the bytes that came with the head have been passed to it.
    fn request_head(
        &mut self,
        link: LinkId,
        stream: Option<StreamId>,
        (parsed, behind): (Parsed, usize),
    ) -> Option<StreamId> {
        self.cx.set_link_deadline(link, NEVER_MS);
        let id = match stream {
            Some(id) => id,
            None => self.begin_stream(link),
        };
        let waits_for_body = behind > 0 && self.cx.runtime_config.config.needs.request_body;
        let mut is_due = false;
        self.with_stream(id, |cx, stream| {
            std::mem::swap(&mut stream.request, &mut cx.core.head);
            cx.request_read(stream, parsed, behind);
            is_due = waits_for_body && !stream.up.came && !matches!(stream.phase, Phase::Done);
            if !is_due && !matches!(stream.phase, Phase::Done) {
                cx.run(stream);
            }
        });
        is_due.then_some(id)
    }

    /// A part of a request's head has come: the request's timeout starts with its first byte.
    pub(super) fn request_began(&mut self, link: LinkId) {
        let now = self.cx.now();
        let Some(client) = self.cx.core.links.client_mut(link) else {
            return;
        };
        if client.request_began.is_none() {
            client.request_began = Some(now);
            if client.streams > 0 {
                let timeout_ms = self
                    .cx
                    .runtime_config
                    .timeouts(client.frontend())
                    .http_request;
                self.cx.set_link_deadline(link, deadline(now, timeout_ms));
            }
        }
    }

    /// The rest of a request that was answered early has been discarded.
    fn request_drained(&mut self, link: LinkId) {
        if let Some(Mux::Front(front)) = self.cx.core.links.get_mut(link).map(|link| &mut link.mux)
        {
            front.drained();
        }
        self.cx.next_request(link);
    }

    /// A connection had its turn: continues it in the next round.
    pub(super) fn later(&mut self, link: LinkId) {
        if let Some(entry) = self.cx.core.links.get_mut(link)
            && !std::mem::replace(&mut entry.is_later, true)
        {
            self.state.later.push_back(link);
            self.cx.core.links.hold(self.cx.io, link, Hold::Full);
        }
    }

    // ---- responses

    fn feed_response(&mut self, link: LinkId, bytes: &[u8]) -> Feed {
        let Some(entry) = self.cx.core.links.get_mut(link) else {
            return Feed::Gone;
        };
        // The client has to take interim responses before the next head is read.
        let is_held = entry.is_held(Hold::Peer);
        let Mux::Back(back) = &mut entry.mux else {
            return Feed::Gone;
        };
        let stream = back.stream.and_then(|id| self.streams.get_mut(id));
        let Some(stream) = stream else {
            if !bytes.is_empty() {
                // No bytes are expected on an idle connection (a late response, a 408 at its end).
                // On a connection that has just completed a response, further bytes no longer match
                // any request.
                self.cx.close_server(link);
                return Feed::Gone;
            }
            return Feed::More(0);
        };
        let id = stream.id;
        if back.awaits_head() && (is_held || !matches!(stream.phase, Phase::ResponseHead)) {
            return Feed::Wait(0);
        }
        let rules = response_read_rules(self.cx.runtime_config, stream.backend);
        let (used, pull) = back.pull(
            bytes,
            rules,
            &mut stream.response,
            &mut stream.down.trailers,
        );
        match pull {
            Pull::More => {
                stream.txn.bytes_from_server += used as u64;
                Feed::More(used)
            }
            Pull::Hold => Feed::Wait(used),
            Pull::Head(parsed) => {
                let behind = bytes.len() - used;
                self.with_stream(id, |cx, stream| {
                    stream.txn.bytes_from_server += used as u64;
                    cx.response_read(stream, parsed, behind);
                });
                Feed::Used(used)
            }
            Pull::Data(data) => self.feed_body(link, id, (data, used), take_download, end_download),
            Pull::End => {
                self.with_stream(id, |cx, stream| {
                    stream.txn.bytes_from_server += used as u64;
                    end_download(cx, stream);
                });
                Feed::Used(used)
            }
            Pull::Bad(error) => {
                self.with_stream(id, |cx, stream| {
                    let has_head = matches!(stream.phase, Phase::ResponseHead);
                    cx.note_refused_response(stream, (bytes, error), (rules, has_head));
                    if has_head {
                        cx.response_refused(stream)
                    } else {
                        cx.download_broken(stream)
                    }
                });
                Feed::Gone
            }
        }
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
pub(super) fn take_upload<D: Driver>(
    cx: &mut Cx<'_, D>,
    stream: &mut Stream,
    bytes: &[u8],
    framing: usize,
) -> usize {
    let counts = stream.txn.is_http || matches!(stream.phase, Phase::Tunnel(_));
    let used = cx.upload(stream, bytes);
    if counts {
        stream.txn.bytes_in += (used + framing) as u64;
        cx.count_flow(stream);
    }
    used
}

/// Passes a server's payload to its stream in the same way.
pub(super) fn take_download<D: Driver>(
    cx: &mut Cx<'_, D>,
    stream: &mut Stream,
    bytes: &[u8],
    framing: usize,
) -> usize {
    let used = cx.download(stream, bytes);
    stream.txn.bytes_from_server += (used + framing) as u64;
    cx.count_flow(stream);
    used
}

/// A request is completely received.
pub(super) fn end_upload<D: Driver>(cx: &mut Cx<'_, D>, stream: &mut Stream) {
    cx.upload_came(stream);
}

/// A response is completely received.
pub(super) fn end_download<D: Driver>(cx: &mut Cx<'_, D>, stream: &mut Stream) {
    cx.download_came(stream);
    cx.run(stream);
}
