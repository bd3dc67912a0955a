//! HTTP/2 connections: passes the events of a codec to the streams that they concern.

mod ends;

use config::model::Proto;
use http::h1::{Framing, Parsed};
use http::h2::{Code, Event, PREFACE, StreamId as Number};
use http::{Head, Method, Name};
use net::timers::NEVER_MS;
use net::{Close, CpuOf, Driver};

use super::Turn;
use super::incoming::{
    Feed, REQUESTS_A_TURN_MAX, end_download, end_upload, take_download, take_upload,
};
use crate::ids::{LinkId, StreamId};
use crate::link::Role;
use crate::link::mux::h2::Upgrade;
use crate::link::mux::{Mux, h2};
use crate::phases::is_interim;
use crate::rules::status::reason;
use crate::shared::FrontCount;
use crate::stream::Phase;
use crate::websocket;

impl<D: Driver> Turn<'_, D> {
    // ---- beginnings

    /// Switches a client's connection to HTTP/2.
    pub(super) fn become_h2(&mut self, link: LinkId) {
        let limits = self.cx.runtime_config.h2.clients;
        let Some(bind) = self.cx.core.links.client(link).map(|client| client.bind) else {
            return;
        };
        let idle_ping = self.cx.runtime_config.bind(bind).idle_ping;
        let mut out = Vec::new();
        let connection = h2::Connection::with_client(limits, idle_ping, &mut out);
        self.cx.tell_bind(bind, FrontCount::SessionsH2);
        if let Some(entry) = self.cx.core.links.get_mut(link) {
            entry.mux = Mux::Connection(connection);
        }
        self.cx.core.links.send_whole(self.cx.io, link, &out);
        if self.cx.is_stopping() {
            // Its handshake outlasted the order to drain, which reached only the connections that
            // spoke HTTP/2 by then.
            self.cx.hurry_connection(link);
        }
    }

    /// Switches a client's HTTP/1 connection to HTTP/2 if its first bytes are the HTTP/2 preface
    /// (RFC 9113 §3.3). None if they are not.
    pub(super) fn try_h2(&mut self, link: LinkId, bytes: &[u8]) -> Option<Feed> {
        let entry = self.cx.core.links.get(link)?;
        let (Role::Client(client), Mux::Front(front)) = (&entry.role, &entry.mux) else {
            return None;
        };
        let options = &self.cx.runtime_config.proxy(client.frontend()).options;
        // A stream that waits for its head was a TCP stream.
        let was_tcp = front.stream.filter(|_| front.awaits_head());
        let is_first = client.streams == u32::from(was_tcp.is_some());
        let is_h1 = matches!(client.proto, Some(Proto::H1 | Proto::Tcp));
        if !is_first || is_h1 || options.disable_h2_upgrade {
            return None;
        }
        if bytes.starts_with(PREFACE) {
            if let Some(stream) = was_tcp {
                self.with_stream(stream, |cx, stream| cx.forget(stream));
            }
            self.become_h2(link);
            self.expect_first_stream(link);
            return Some(Feed::Used(0));
        }
        let may_be = bytes.len() < PREFACE.len() && PREFACE.starts_with(bytes);
        may_be.then(|| {
            if was_tcp.is_none() {
                self.request_began(link);
            }
            Feed::More(0)
        })
    }

    /// A server's connection is established and switches to HTTP/2: the stream that waits for it
    /// becomes its first stream.
    pub(super) fn server_becomes_h2(&mut self, link: LinkId) {
        let links = &mut self.cx.core.links;
        let Some(entry) = links.get_mut(link) else {
            return;
        };
        let Some(stream) = entry.mux.stream() else {
            return self.cx.close_server(link);
        };
        let Some(server) = links.server_mut(link) else {
            return;
        };
        server.connecting = false;
        let (is_private, is_ending) = (server.private, server.is_ending);
        let idle_ping = self.cx.servers.at(server.server).idle_ping;
        let limits = self.cx.runtime_config.h2.servers;
        let mut out = Vec::new();
        let mut connection = h2::Connection::with_server(limits, idle_ping, &mut out);
        connection.is_ending = is_ending;
        if let Some(entry) = links.get_mut(link) {
            entry.mux = Mux::Connection(connection);
        }
        let core = &mut *self.cx.core;
        let Some(child) = core.links.add_stream(link, None, &mut core.timers) else {
            return;
        };
        if let Some(entry) = core.links.get_mut(child) {
            entry.mux.set_stream(Some(stream));
        }
        if !is_private && !is_ending {
            core.backends.share(&mut core.links, link);
        }
        self.with_stream(stream, |_, stream| stream.server.set_link(child));
        self.cx.core.links.send_whole(self.cx.io, link, &out);
        self.with_stream(stream, |cx, stream| {
            let is_upgrade = stream.wants_tunnel && stream.request.method() != Method::Connect;
            match cx.core.links.stream_end_mut(child) {
                // The server's settings say whether it supports extended CONNECT.
                Some(end) if is_upgrade => end.awaits_settings = true,
                _ => cx.server_connected(stream),
            }
        });
    }

    /// A peer's settings have come: continues streams that wait for them.
    fn settings_came(&mut self, link: LinkId) {
        for child in self.cx.core.links.children(link) {
            let Some(end) = self.cx.core.links.stream_end_mut(child) else {
                continue;
            };
            if std::mem::take(&mut end.awaits_settings)
                && let Some(stream) = end.stream
            {
                self.with_stream(stream, |cx, stream| cx.server_connected(stream));
            }
        }
    }

    // ---- frames

    /// The next step with the received bytes of a connection.
    pub(super) fn feed_connection(
        &mut self,
        link: LinkId,
        bytes: &[u8],
        requests: &mut u32,
    ) -> Feed {
        let core = &mut *self.cx.core;
        let Some(entry) = core.links.get_mut(link) else {
            return Feed::Gone;
        };
        let is_client = matches!(entry.role, Role::Client(_));
        // A peer that provokes responses and does not read them is not read either.
        if entry.owes_much() {
            return Feed::Wait(0);
        }
        if *requests >= REQUESTS_A_TURN_MAX && !bytes.is_empty() {
            self.later(link);
            return Feed::Wait(0);
        }
        let Mux::Connection(connection) = &mut entry.mux else {
            return Feed::Gone;
        };
        let mut out = std::mem::take(&mut core.out);
        let limits = if is_client {
            &self.cx.runtime_config.h2.clients
        } else {
            &self.cx.runtime_config.h2.servers
        };
        if connection.is_odd(limits.glitches_max) {
            connection.is_ending = true;
            connection.codec.shutdown(&mut out);
        }
        let kill_percent = self.cx.runtime_config.h2.glitches_kill_percent;
        if kill_percent > 0 {
            let kills = self.cx.io.cpu_usage(CpuOf::Thread) >= kill_percent;
            connection.codec.set_glitch_kill(kills);
        }
        let glitches = connection.codec.glitches();
        let now_ms = self.cx.io.now().ms();
        let read = connection
            .codec
            .read(bytes, now_ms, &mut core.head, &mut out);
        let glitches = connection.codec.glitches() - glitches;
        if !out.is_empty() {
            core.links.send_whole(self.cx.io, link, &out);
            out.clear();
        }
        core.out = out;
        match (glitches, is_client) {
            (0, _) => {}
            (_, true) => self.cx.tell_glitches(link, glitches),
            (_, false) => self.tell_server_glitches(link),
        }
        let (used, event) = match read {
            Ok(read) => read,
            Err(_) => {
                self.connection_failed(link);
                return Feed::Gone;
            }
        };
        match event {
            Event::More => return Feed::More(used),
            Event::Head {
                stream,
                token,
                end,
                framing,
                expect_continue,
                ..
            } => {
                let parsed = Parsed {
                    consumed: used,
                    framing,
                    keep_alive: true,
                    expect_continue,
                    ..Parsed::default()
                };
                if is_client {
                    *requests += 1;
                    self.stream_request(link, stream, parsed, end);
                } else {
                    self.stream_response(token, parsed, end);
                }
            }
            Event::Data {
                stream,
                token,
                range,
                end,
            } => self.stream_data(link, (stream, token), &bytes[range], end),
            Event::Trailers { token, .. } => self.stream_trailers(token),
            Event::Reset { token, code, .. } => self.stream_reset(token, code),
            Event::WindowOpen { token, .. } => {
                if let Some(child) = self.cx.core.links.at(token) {
                    self.stream_writable(child);
                }
            }
            Event::WindowsOpen => self.cx.core.links.list_turns(link),
            Event::Settings => {
                self.settings_came(link);
                self.windows_changed(link);
            }
            Event::Goaway { .. } => self.connection_is_ending(link),
            Event::Refused { error, .. } => {
                // A refused stream is no fault of the request: the client sends it again.
                if error.code != Code::REFUSED_STREAM {
                    self.request_refused(link);
                }
            }
            Event::Pong(_) => self.ponged(link),
        }
        Feed::Used(used)
    }

    fn child_of(&mut self, token: u32) -> Option<(LinkId, StreamId)> {
        let child = self.cx.core.links.at(token)?;
        let stream = self.cx.core.links.stream_end_mut(child)?.stream?;
        Some((child, stream))
    }

    /// A client opens a stream with a request.
    fn stream_request(&mut self, link: LinkId, number: Number, parsed: Parsed, end: bool) {
        self.cx.set_link_deadline(link, NEVER_MS);
        let core = &mut *self.cx.core;
        let Some(child) = core.links.add_stream(link, Some(number), &mut core.timers) else {
            return;
        };
        self.count_stream(link);
        let parsed = self.open_upgrade(child, parsed);
        let core = &mut *self.cx.core;
        if let Some(stream_end) = core.links.stream_end_mut(child) {
            stream_end.has_ended = end;
            stream_end.is_end_told = end;
            stream_end.expects = parsed.expect_continue && !end;
            if let Framing::Length(length) = parsed.framing {
                stream_end.announced = length;
            }
        }
        let now = self.cx.now();
        if let Some(client) = self.cx.core.links.client(link) {
            self.cx.tell_bind(client.bind, FrontCount::RequestsH2);
        }
        if let Some(client) = self.cx.core.links.client_mut(link) {
            // HTTP/2 streams do not follow each other, so no idle time precedes a request.
            client.idle_since = now;
        }
        let id = self.begin_stream(child);
        self.with_stream(id, |cx, stream| {
            std::mem::swap(&mut stream.request, &mut cx.core.head);
            cx.request_read(stream, parsed, 0);
            if !matches!(stream.phase, Phase::Done) {
                cx.run(stream);
            }
        });
    }

    /// Converts an extended CONNECT into an HTTP/1 upgrade. For an HTTP/1 server that speaks
    /// WebSocket the key is made here.
    fn open_upgrade(&mut self, child: LinkId, parsed: Parsed) -> Parsed {
        let core = &mut *self.cx.core;
        if !core.head.make_upgrade() {
            return parsed;
        }
        let mut upgrade = Upgrade::default();
        if core.head.is_websocket() && !core.head.has(Name::SecWebsocketKey) {
            let key = websocket::key([core.ambient.random(), core.ambient.random()]);
            core.head.append(b"sec-websocket-key", key.as_bytes());
            upgrade.accept = Some(websocket::accept(key.as_bytes()).into());
        }
        if let Some(end) = core.links.stream_end_mut(child) {
            end.upgrade = Some(Box::new(upgrade));
        }
        Parsed {
            upgrade: true,
            ..parsed
        }
    }

    /// A client's request is invalid; the codec has answered or reset it.
    #[cold]
    fn request_refused(&mut self, link: LinkId) {
        let Some(bind) = self.cx.core.links.client(link).map(|client| client.bind) else {
            return;
        };
        self.cx.tell_bind(bind, FrontCount::RequestsH2);
        self.cx.tell_bind(bind, FrontCount::FailedRequests);
        self.cx.with_session(link, |cx| {
            let scene = &mut cx.scene;
            let frontend = bind.frontend;
            scene.logging.refused_request(&mut scene.eval, frontend);
        });
    }

    /// A server's connection has glitches: the streams on it are told.
    #[cold]
    fn tell_server_glitches(&mut self, link: LinkId) {
        let links = &mut self.cx.core.links;
        let Some(connection) = links.connection_mut(link) else {
            return;
        };
        let glitches = connection.codec.glitches();
        for child in links.children(link) {
            let end = self.cx.core.links.stream_end_mut(child);
            if let Some(id) = end.and_then(|end| end.stream) {
                self.with_stream(id, |_, stream| stream.txn.server_glitches = glitches);
            }
        }
    }

    /// Counts a client's stream. After the last stream that its connection may have
    /// (`tune.h2.fe.max-total-streams`), the client is told. Streams that it has sent meanwhile are
    /// accepted.
    fn count_stream(&mut self, link: LinkId) {
        let Some(connection) = self.cx.core.links.connection_mut(link) else {
            return;
        };
        connection.streams += 1;
        let most = self.cx.runtime_config.h2.total_streams_max;
        if most.is_some_and(|most| connection.streams == most) {
            connection.is_ending = true;
            self.cx.hurry_connection(link);
        }
    }

    /// A server responds on a stream.
    fn stream_response(&mut self, token: u32, parsed: Parsed, end: bool) {
        let Some((child, id)) = self.child_of(token) else {
            return;
        };
        let head = &mut self.cx.core.head;
        let status = head.status();
        if head.reason().is_empty() {
            // HTTP/2 has no reason phrases, and some HTTP/1 clients expect one.
            head.set_status(status, reason(status).as_bytes());
        }
        let parsed = self.switched(child, parsed);
        let status = self.cx.core.head.status();
        if let Some(stream_end) = self.cx.core.links.stream_end_mut(child)
            && !is_interim(status)
        {
            stream_end.has_ended = end;
            stream_end.is_end_told = end;
            if let Framing::Length(length) = parsed.framing {
                stream_end.announced = length;
            }
        }
        self.with_stream(id, |cx, stream| {
            stream.txn.bytes_from_server += parsed.consumed as u64;
            if !matches!(stream.phase, Phase::ResponseHead) {
                // The request was not sent yet, or was already answered.
                return cx.server_lost(stream, Close::Reset, true);
            }
            std::mem::swap(&mut stream.response, &mut cx.core.head);
            cx.response_read(stream, parsed, 0);
        });
    }

    /// A server accepts an extended CONNECT: converts the response into that of an upgrade.
    fn switched(&mut self, child: LinkId, parsed: Parsed) -> Parsed {
        let core = &mut *self.cx.core;
        let status = core.head.status();
        if is_interim(status) {
            // The final response follows.
            return parsed;
        }
        let is_good = (200..300).contains(&status);
        let end = core.links.stream_end_mut(child);
        let Some(upgrade) = end.and_then(|end| end.upgrade.take()).filter(|_| is_good) else {
            return parsed;
        };
        let accept = upgrade.accept.as_deref().map(str::as_bytes);
        core.head.make_switched(&upgrade.protocol, accept);
        Parsed {
            framing: Framing::None,
            ..parsed
        }
    }

    /// Payload of a stream.
    fn stream_data(
        &mut self,
        link: LinkId,
        (number, token): (Number, u32),
        bytes: &[u8],
        end: bool,
    ) {
        let child = self.child_of(token);
        let Some((child, _)) = child else {
            // No recipient is left; the peer is credited all the same.
            let links = &mut self.cx.core.links;
            links.with_codec(self.cx.io, link, |codec, frames| {
                codec.consumed(number, bytes.len(), frames);
            });
            if end {
                self.stream_drained(token);
            }
            return;
        };
        let links = &mut self.cx.core.links;
        if let Some(stream_end) = links.stream_end_mut(child) {
            stream_end.has_ended |= end;
            stream_end.announced = stream_end.announced.saturating_sub(bytes.len() as u64);
        }
        let waits = links.has_input(child);
        let used = if waits {
            0
        } else {
            match self.feed_stream(child, bytes) {
                Feed::More(used) | Feed::Wait(used) | Feed::Used(used) => used,
                Feed::Gone => bytes.len(),
            }
        };
        if let Some(entry) = self.cx.core.links.get_mut(child) {
            entry.input.extend_from_slice(&bytes[used..]);
        }
        self.after_feed(child, None);
    }

    /// Passes payload to the stream that uses this HTTP/2 stream. Used bytes are credited to the
    /// peer.
    pub(super) fn feed_stream(&mut self, link: LinkId, bytes: &[u8]) -> Feed {
        let links = &mut self.cx.core.links;
        let is_client = links.is_client(link);
        let Some(id) = links.stream_end_mut(link).and_then(|end| end.stream) else {
            return Feed::Gone;
        };
        let mut used = 0;
        if !bytes.is_empty() {
            self.with_stream(id, |cx, stream| {
                used = if is_client {
                    take_upload(cx, stream, bytes, 0)
                } else {
                    take_download(cx, stream, bytes, 0)
                };
            });
        }
        let links = &mut self.cx.core.links;
        if links.get(link).is_none() {
            // The stream has ended, and its unused bytes were credited then.
            return Feed::Gone;
        }
        links.consumed(self.cx.io, link, used);
        if used < bytes.len() {
            return Feed::Wait(used);
        }
        self.tell_end(link, id, is_client);
        Feed::More(used)
    }

    /// The peer's message has ended, and all of it is used.
    fn tell_end(&mut self, link: LinkId, id: StreamId, is_client: bool) {
        let Some(end) = self.cx.core.links.stream_end_mut(link) else {
            return;
        };
        if !end.has_ended || std::mem::replace(&mut end.is_end_told, true) {
            return;
        }
        let trailers = end.trailers.take();
        self.with_stream(id, |cx, stream| {
            let is_tunnel = matches!(stream.phase, Phase::Tunnel(_));
            match (is_tunnel, is_client) {
                (true, true) => return cx.client_ended(stream, false),
                (true, false) => return cx.tunnel_server_ended(stream),
                (false, _) => {}
            }
            let channel = if is_client {
                &mut stream.up
            } else {
                &mut stream.down
            };
            if let Some(trailers) = trailers {
                channel.trailers = *trailers;
            }
            if is_client {
                end_upload(cx, stream)
            } else {
                end_download(cx, stream)
            }
        });
    }

    /// The rest of a request that was answered early has come, or will not come.
    fn stream_drained(&mut self, token: u32) {
        if let Some(child) = self.cx.core.links.at(token)
            && let Some(end) = self.cx.core.links.stream_end_mut(child)
            && end.drains
        {
            self.cx.forget_stream_link(child);
        }
    }

    fn stream_trailers(&mut self, token: u32) {
        let Some((child, id)) = self.child_of(token) else {
            return self.stream_drained(token);
        };
        let trailers: Head = std::mem::take(&mut self.cx.core.head);
        let links = &mut self.cx.core.links;
        if let Some(end) = links.stream_end_mut(child) {
            end.has_ended = true;
            end.trailers = Some(Box::new(trailers));
        }
        if !links.has_input(child) {
            let is_client = links.is_client(child);
            self.tell_end(child, id, is_client);
            self.after_feed(child, None);
        }
    }

    /// A peer has reset a stream.
    fn stream_reset(&mut self, token: u32, code: Code) {
        let Some((child, id)) = self.child_of(token) else {
            return self.stream_drained(token);
        };
        let links = &mut self.cx.core.links;
        let is_answered = links.stream_end_mut(child).is_some_and(|end| end.has_ended);
        let is_client = links.is_client(child);
        let began = links.has_input(child);
        self.with_stream(id, |cx, stream| match is_client {
            true => cx.client_lost(stream),
            // The response is complete (RFC 9113 §8.1): the rest of the request is not sent.
            false if is_answered && code == Code::NO_ERROR => {}
            false if code == Code::REFUSED_STREAM => cx.stream_refused(stream),
            false => {
                // The server has seen the request: it must not be sent again.
                stream.replay.resendable = false;
                cx.server_lost(stream, Close::Reset, began);
            }
        });
    }
}
