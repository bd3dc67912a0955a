//! Forwards both bodies from one end of a stream to the other, each at the pace of its slower side.
//!
//! Payload is sent on at once as far as the other end takes it. The rest stays with the connection
//! that received it, which is not read until there is room. Filters are called in
//! [`Cx::forward_up`] and [`Cx::forward_down`].

use config::model::Direction;
use net::Driver;
use telemetry::Event;

use super::{Cause, Cx};
use crate::ids::ExchangeId;
use crate::link::{Hold, Link, Wrote};
use crate::runtime_config::deadline;
use crate::stream::{Page, Phase, ServerEnd, Step, Stream};

/// Parts of a generated body that are made before other connections are served.
const MADE_PARTS_A_TURN: u32 = 8;
/// The pause before the next parts of a generated body are made, milliseconds.
const MADE_PAUSE_MS: u64 = 1;

impl<D: Driver> Cx<'_, D> {
    // ---- the request's body

    /// Forwards payload of the request. Returns how many bytes were used.
    pub fn upload(&mut self, stream: &mut Stream, bytes: &[u8]) -> usize {
        if !stream.up.flows() {
            return self.keep_upload(stream, bytes);
        }
        // Earlier payload goes first.
        if !stream.up.waiting.is_empty() {
            return 0;
        }
        self.forward_up(stream, bytes)
    }

    fn forward_up(&mut self, stream: &mut Stream, bytes: &[u8]) -> usize {
        let Some(server) = stream.server.link() else {
            return bytes.len();
        };
        let most = self.may_pass(stream, Direction::Up, bytes.len());
        let wrote = self.send_part(server, &bytes[..most]);
        stream.txn.bytes_to_server += wrote.wire as u64;
        if stream.replay.keeps {
            let bufsize = self.runtime_config.bufsize();
            let room = bufsize.saturating_sub(stream.request.wire_bytes());
            stream.replay.keep(&bytes[..wrote.taken], room);
        }
        self.after_upload(stream, wrote);
        self.has_passed(stream, Direction::Up, wrote.taken, bytes.len() - most);
        wrote.taken
    }

    /// Sends payload, if there is any.
    #[inline]
    fn send_part(&mut self, to: ExchangeId, bytes: &[u8]) -> Wrote {
        if bytes.is_empty() {
            Wrote::default()
        } else {
            self.core.links.send_data(self.io, to, bytes)
        }
    }

    /// Payload was sent to the server: it is active, or has to accept the rest.
    fn after_upload(&mut self, stream: &mut Stream, wrote: Wrote) {
        let Some(client) = stream.client else { return };
        stream
            .activity
            .server
            .took(&mut stream.up, wrote.blocked, self.now().ms());
        if wrote.blocked {
            // The server is the slow side: stop reading the client.
            self.core.links.hold(self.io, client, Hold::Peer);
        }
    }

    /// The request's body is completely received; its trailers are in the channel.
    pub fn upload_came(&mut self, stream: &mut Stream) {
        stream.up.came = true;
        stream.txn.request_body.is_whole = true;
        if stream.up.is_open {
            self.finish_upload(stream);
        } else {
            stream.up.done = stream.up.waiting.is_empty();
        }
    }

    /// The request's body is completely received: forwards its end.
    fn finish_upload(&mut self, stream: &mut Stream) {
        if !stream.up.came || !stream.up.waiting.is_empty() || !stream.up.is_open {
            return;
        }
        stream.up.done = true;
        if let Some(server) = stream.server.link()
            && stream.txn.is_http
        {
            if stream.up.drops_trailers {
                stream.up.trailers.clear();
            }
            let links = &mut self.core.links;
            let (_, wire) = links.send_end(self.io, server, &stream.up.trailers);
            stream.txn.bytes_to_server += wire as u64;
            self.trace(stream, Event::HttpEndRequest);
            // The server has its full timeout for the response.
            stream.activity.server.restart();
        }
        if stream.down.done && matches!(stream.phase, Phase::Transfer) {
            self.run(stream);
        }
    }

    /// The head of the request has been sent: sends the part of its body that waits here, then what
    /// the client's connection holds.
    pub(super) fn open_upload(&mut self, stream: &mut Stream) {
        stream.up.is_open = true;
        self.send_waiting_up(stream);
        if !stream.up.done
            && let Some(client) = stream.client
        {
            self.core.work.links.push_back(client.into());
        }
    }

    pub(super) fn send_waiting_up(&mut self, stream: &mut Stream) {
        if !stream.up.waiting.is_empty() {
            let mut waiting = std::mem::take(&mut stream.up.waiting);
            let taken = self.forward_up(stream, &waiting);
            waiting.drain(..taken);
            stream.up.waiting = waiting;
            self.tunnel_ends_follow(stream);
        }
        self.finish_upload(stream);
    }

    // ---- the response's body

    /// Forwards payload of the response. Returns how many bytes were used.
    pub fn download(&mut self, stream: &mut Stream, bytes: &[u8]) -> usize {
        if !stream.down.flows() {
            return self.keep_download(stream, bytes);
        }
        if !stream.down.waiting.is_empty() {
            return 0;
        }
        self.forward_down(stream, bytes)
    }

    fn forward_down(&mut self, stream: &mut Stream, bytes: &[u8]) -> usize {
        let Some(client) = stream.client else {
            return bytes.len();
        };
        let most = self.may_pass(stream, Direction::Down, bytes.len());
        if stream.compressor.is_some() {
            let used = self.compress_down(stream, &bytes[..most]);
            self.has_passed(stream, Direction::Down, used, bytes.len() - most);
            return used;
        }
        let wrote = self.send_part(client, &bytes[..most]);
        stream.txn.bytes_out += wrote.wire as u64;
        self.after_download(stream, wrote);
        self.has_passed(stream, Direction::Down, wrote.taken, bytes.len() - most);
        wrote.taken
    }

    /// Payload was sent to the client: it is active, or has to accept the rest.
    pub(super) fn after_download(&mut self, stream: &mut Stream, wrote: Wrote) {
        stream
            .activity
            .client
            .took(&mut stream.down, wrote.blocked, self.now().ms());
        if wrote.blocked
            && let Some(server) = stream.server.link()
        {
            self.core.links.hold(self.io, server, Hold::Peer);
        }
    }

    /// The response's body is completely received; its trailers are in the channel.
    pub fn download_came(&mut self, stream: &mut Stream) {
        stream.down.came = true;
        stream.txn.response_body.is_whole = true;
        if stream.down.is_open {
            self.finish_download(stream);
        }
    }

    fn finish_download(&mut self, stream: &mut Stream) {
        if !stream.down.came || !stream.down.waiting.is_empty() || !stream.down.is_open {
            return;
        }
        if stream.compressor.is_some() && !self.finish_compression(stream) {
            return;
        }
        stream.down.done = true;
        if let Some(client) = stream.client
            && stream.txn.is_http
        {
            if stream.down.drops_trailers {
                stream.down.trailers.clear();
            }
            let links = &mut self.core.links;
            let (_, wire) = links.send_end(self.io, client, &stream.down.trailers);
            stream.txn.bytes_out += wire as u64;
        }
    }

    /// The head of the response has been sent: sends the part of its body that waits here, then
    /// what the server's connection holds.
    pub(super) fn open_download(&mut self, stream: &mut Stream) {
        stream.down.is_open = true;
        self.send_waiting_down(stream);
        if !stream.down.came
            && let Some(server) = stream.server.link()
            && self.core.links.get(server).is_some_and(Link::has_waiting)
        {
            self.core.work.links.push_back(server.into());
        }
    }

    pub(super) fn send_waiting_down(&mut self, stream: &mut Stream) {
        if stream.compressor.is_some() && !self.send_compressed(stream) {
            return;
        }
        if !stream.down.waiting.is_empty() {
            let mut waiting = std::mem::take(&mut stream.down.waiting);
            let taken = self.forward_down(stream, &waiting);
            waiting.drain(..taken);
            stream.down.waiting = waiting;
            self.tunnel_ends_follow(stream);
        }
        self.finish_download(stream);
    }

    /// Sends the unsent part of a page of our own.
    pub(super) fn send_page(&mut self, stream: &mut Stream) {
        let (ServerEnd::Page(page), Some(client)) = (&mut stream.server, stream.client) else {
            return;
        };
        let rest = &page.body[page.sent..];
        let wrote = self.core.links.send_data(self.io, client, rest);
        page.sent += wrote.taken;
        let is_over = page.sent == page.body.len();
        stream.txn.bytes_out += wrote.wire as u64;
        stream
            .activity
            .client
            .took(&mut stream.down, wrote.blocked, self.now().ms());
        if is_over {
            stream.server = ServerEnd::Nobody;
            self.download_came(stream);
        }
    }

    /// Puts a page at the server's end, and sends as much of it as the client takes.
    pub(super) fn serve_page(&mut self, stream: &mut Stream, page: Page) {
        stream.server = ServerEnd::Page(page);
        self.send_page(stream);
    }

    /// Sends the part of a generated body that is made, and makes more as the client takes it.
    /// After [`MADE_PARTS_A_TURN`] parts the other connections are served.
    pub(super) fn send_made(&mut self, stream: &mut Stream) {
        let now = self.now();
        let mut parts = 0;
        loop {
            let (ServerEnd::Generated(made), Some(client)) = (&mut stream.server, stream.client)
            else {
                return;
            };
            let rest = made.rest();
            if !rest.is_empty() {
                let wrote = self.core.links.send_data(self.io, client, rest);
                let is_all = wrote.taken == rest.len();
                made.leave(wrote.taken);
                stream.txn.bytes_out += wrote.wire as u64;
                stream
                    .activity
                    .client
                    .took(&mut stream.down, wrote.blocked, now.ms());
                if !is_all {
                    return;
                }
            }
            if made.is_over() {
                stream.server = ServerEnd::Nobody;
                return self.download_came(stream);
            }
            if parts == MADE_PARTS_A_TURN {
                stream.down.delayed_until_ms = deadline(now, MADE_PAUSE_MS);
                return;
            }
            parts += 1;
            made.make(self.runtime_config, &self.core.ambient.shared, now);
        }
    }

    // ---- progress

    /// The kernel took bytes for one of the stream's connections. `blocked`: some bytes are still
    /// unsent.
    pub fn moved_on(&mut self, stream: &mut Stream, exchange: ExchangeId, blocked: bool) {
        if stream.client == Some(exchange) {
            self.client_moved_on(stream, blocked);
        } else if stream.server.link() == Some(exchange) {
            self.server_moved_on(stream, blocked);
        }
    }

    fn client_moved_on(&mut self, stream: &mut Stream, blocked: bool) {
        stream
            .activity
            .client
            .took(&mut stream.down, blocked, self.now().ms());
        if blocked {
            return;
        }
        match stream.server {
            ServerEnd::Page(_) => self.send_page(stream),
            ServerEnd::Generated(_) => self.send_made(stream),
            ServerEnd::Nobody | ServerEnd::Link(_) => {}
        }
        self.send_waiting_down(stream);
        if self.client_is_blocked(stream) {
            return;
        }
        if let Some(server) = stream.server.link() {
            self.core.links.release(self.io, server, Hold::Peer);
            self.core.work.links.push_back(server.into());
        }
        match stream.phase {
            Phase::Transfer => self.run(stream),
            Phase::Tunnel(_) => self.tunnel_maybe_over(stream),
            _ => {}
        }
    }

    fn server_moved_on(&mut self, stream: &mut Stream, blocked: bool) {
        stream
            .activity
            .server
            .took(&mut stream.up, blocked, self.now().ms());
        if blocked {
            return;
        }
        if stream.up.is_open {
            self.send_waiting_up(stream);
        }
        let server = stream.server.link();
        if server.is_some_and(|server| self.core.links.is_blocked(server)) {
            return;
        }
        if let Some(client) = stream.client {
            self.core.links.release(self.io, client, Hold::Peer);
            self.core.work.links.push_back(client.into());
        }
        if matches!(stream.phase, Phase::Tunnel(_)) {
            self.tunnel_maybe_over(stream);
        }
    }

    fn client_is_blocked(&self, stream: &Stream) -> bool {
        let client = stream.client;
        client.is_some_and(|client| self.core.links.is_blocked(client))
    }

    // ---- the end of both

    /// Forwards both bodies until their ends. The body of a request goes on after the end of its
    /// response, as long as its server takes it.
    pub(super) fn transfer(&mut self, stream: &mut Stream) -> Step {
        if !stream.down.done {
            return Step::Wait;
        }
        if stream.server.link().is_some() && self.upload_goes_on(stream) {
            return Step::Wait;
        }
        if stream.txn.server_status != 0 {
            self.trace(stream, Event::HttpEndResponse);
        }
        if !stream.up.done {
            self.end_server_after(stream);
        }
        stream.txn.timing.data_end_ms = Some(self.now().ms());
        self.finish(stream);
        Step::Wait
    }

    /// Whether more of a request's body is awaited after the end of its response. A client that
    /// still waits to be asked for the body need not send it.
    fn upload_goes_on(&mut self, stream: &Stream) -> bool {
        let is_asked = || {
            let client = stream.client;
            client.is_some_and(|client| !self.core.links.awaits_continue(client))
        };
        stream.up.is_open && !stream.up.done && is_asked()
    }

    /// The server takes no more of a request's body, and its response is complete.
    pub fn end_upload(&mut self, stream: &mut Stream) {
        stream.up.is_open = false;
        self.run(stream);
    }

    /// The body of a request breaks its framing.
    pub fn upload_broken(&mut self, stream: &mut Stream, status: u16) {
        self.fail(stream, Cause::BadRequest(status));
    }

    /// The body of a response breaks its framing.
    pub fn download_broken(&mut self, stream: &mut Stream) {
        self.end_server_after(stream);
        self.fail(stream, Cause::BadResponse);
    }
}
