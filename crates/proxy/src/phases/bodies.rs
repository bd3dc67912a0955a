//! Forwards both bodies from one end of a stream to the other, each at the pace of its slower side.
//!
//! Payload is sent on at once as far as the other end takes it. The rest stays with the connection
//! that received it, which is not read until there is room. [`Cx::forward`] is where payload enters
//! the filters of its direction.

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
    // ---- both bodies

    /// Sends payload of a direction on. Returns how many bytes were used.
    #[inline(always)]
    fn forward(&mut self, stream: &mut Stream, direction: Direction, bytes: &[u8]) -> usize {
        let used = if stream.channel_mut(direction).filters.is_some() {
            self.filter(stream, direction, bytes)
        } else {
            self.pass(stream, direction, bytes)
        };
        if direction == Direction::Up && stream.replay.keeps {
            let bufsize = self.runtime_config.bufsize();
            let room = bufsize.saturating_sub(stream.request.wire_bytes());
            stream.replay.keep(&bytes[..used], room);
        }
        used
    }

    /// Sends payload as it is, if there is any. Returns how many bytes were taken.
    #[inline(always)]
    pub(super) fn pass(
        &mut self,
        stream: &mut Stream,
        direction: Direction,
        bytes: &[u8],
    ) -> usize {
        let Some(to) = stream.receiver(direction) else {
            return bytes.len();
        };
        let wrote = if bytes.is_empty() {
            Wrote::default()
        } else {
            self.core.links.send_data(self.io, to, bytes)
        };
        self.after_sending(stream, direction, wrote);
        wrote.taken
    }

    /// Payload was sent: its receiver is active, or has to accept the rest before more is read.
    #[inline(always)]
    pub(super) fn after_sending(
        &mut self,
        stream: &mut Stream,
        direction: Direction,
        wrote: Wrote,
    ) {
        let sent_bytes = match direction {
            Direction::Up => &mut stream.txn.bytes_to_server,
            Direction::Down => &mut stream.txn.bytes_out,
        };
        *sent_bytes += wrote.wire as u64;
        stream.receiver_took(direction, wrote.blocked, self.now_ms());
        if wrote.blocked
            && let Some(sender) = stream.sender(direction)
        {
            self.core.links.hold(self.io, sender, Hold::Peer);
        }
    }

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
        self.forward(stream, Direction::Up, bytes)
    }

    /// The request's body is completely received; its trailers are in the channel.
    pub fn upload_came(&mut self, stream: &mut Stream) {
        stream.up.came = true;
        stream.txn.request_body.is_whole = true;
        if stream.up.is_open {
            self.finish_upload(stream);
        } else {
            // A compressor has something to send for an empty body, too.
            stream.up.done = stream.up.waiting.is_empty() && stream.up.compressor_mut().is_none();
        }
    }

    /// The request's body is completely received: forwards its end.
    fn finish_upload(&mut self, stream: &mut Stream) {
        if !stream.up.came || !stream.up.waiting.is_empty() || !stream.up.is_open {
            return;
        }
        if stream.up.filters.is_some() && !self.finish_filters(stream, Direction::Up) {
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
        if stream.up.filters.is_some() && !self.send_filtered(stream, Direction::Up) {
            return;
        }
        if !stream.up.waiting.is_empty() {
            let mut waiting = std::mem::take(&mut stream.up.waiting);
            let taken = self.forward(stream, Direction::Up, &waiting);
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
        self.forward(stream, Direction::Down, bytes)
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
        if stream.down.filters.is_some() && !self.finish_filters(stream, Direction::Down) {
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
        if stream.down.filters.is_some() && !self.send_filtered(stream, Direction::Down) {
            return;
        }
        if !stream.down.waiting.is_empty() {
            let mut waiting = std::mem::take(&mut stream.down.waiting);
            let taken = self.forward(stream, Direction::Down, &waiting);
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
        self.after_sending(stream, Direction::Down, wrote);
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
                stream.txn.bytes_from_server += wrote.taken as u64;
                self.after_sending(stream, Direction::Down, wrote);
                if !is_all {
                    return;
                }
                continue;
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
        stream.receiver_took(Direction::Down, blocked, self.now_ms());
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
        stream.receiver_took(Direction::Up, blocked, self.now_ms());
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
        stream.txn.timing.data_end_ms = Some(self.now_ms());
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
