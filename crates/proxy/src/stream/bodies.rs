//! Both bodies on their way: taken from one connection, given to the other, each at the pace of its slower side.

use net::timers::NEVER_MS;
use net::{ConnId, Driver, Sent};
use telemetry::Event;

use super::finish::phase_letter;
use super::phases::Step;
use super::retry::Keeper;
use super::transfer::{Coding, Outlet};
use super::{Phase, Stream};
use crate::engine::{Core, Cx};
use crate::running::deadline;

impl Core {
    /// Bytes of the request's body; how many were used.
    pub fn upload<D: Driver>(
        &mut self,
        cx: &mut Cx<'_, D>,
        stream: &mut Stream,
        bytes: &[u8],
    ) -> usize {
        let Some(client) = stream.client else {
            return bytes.len();
        };
        let now = cx.now();
        let to = stream.server.unwrap_or(client);
        debug_assert!(stream.server.is_some() || stream.upload.coding == Coding::Discard);
        let mut pending = std::mem::take(&mut self.scratch);
        if std::mem::take(&mut stream.head_waits) {
            pending.extend_from_slice(&stream.sent);
        }
        let keeper = stream.retriable.then_some(Keeper {
            kept: Some(&mut stream.kept),
            head_bytes: pending.len(),
            bytes_max: cx
                .running
                .config
                .global
                .tune
                .bufsize_bytes
                .saturating_sub(stream.request.wire_bytes()),
        });
        let mut outlet = ToConn {
            driver: cx.driver,
            conn: to,
            bytes: 0,
            backlog: false,
            keeper,
        };
        let result = stream
            .upload
            .pump(bytes, &mut stream.trailers, &mut pending, &mut outlet);
        let backlog = outlet.backlog;
        let sent = outlet.bytes;
        stream.retriable = outlet.keeper.is_some_and(|keeper| keeper.kept.is_some());
        if stream.server.is_some() {
            stream.txn.bytes_to_server += sent;
        }
        pending.clear();
        self.scratch = pending;
        match result {
            Err(error) => {
                stream.ended_by(b'P', phase_letter(stream));
                self.refuse_request(cx, stream, error.status());
                bytes.len()
            }
            Ok(used) => {
                stream.txn.bytes_in += used as u64;
                if stream.upload.done && stream.server.is_some() {
                    self.trace(cx, stream, Event::HttpEndRequest);
                }
                let wait = if stream.upload.done || backlog {
                    NEVER_MS
                } else {
                    stream.client_ms(cx.running)
                };
                self.set_deadline(client, deadline(now, wait));
                if backlog && !stream.upload.done {
                    // The server is the slow one: the client waits, and its time with it.
                    self.pause(cx, client);
                }
                if let Some(server) = stream.server {
                    if backlog && let Some(entry) = self.conns.get(server) {
                        entry.backlog = true;
                    }
                    let options = &cx.running.proxy(stream.backend).options;
                    if !options.independent_streams || stream.upload.done {
                        self.set_deadline(server, deadline(now, stream.server_ms(cx.running)));
                    }
                }
                if stream.upload.done && stream.phase == Phase::Transfer {
                    self.run(cx, stream);
                }
                used
            }
        }
    }

    /// Bytes of the response's body; how many were used.
    pub fn download<D: Driver>(
        &mut self,
        cx: &mut Cx<'_, D>,
        stream: &mut Stream,
        bytes: &[u8],
    ) -> usize {
        let (Some(client), Some(server)) = (stream.client, stream.server) else {
            return bytes.len();
        };
        let now = cx.now();
        let mut pending = std::mem::take(&mut self.scratch);
        let head_waits = !pending.is_empty();
        let mut outlet = ToConn {
            driver: cx.driver,
            conn: client,
            bytes: 0,
            backlog: false,
            keeper: None,
        };
        let result = stream
            .download
            .pump(bytes, &mut stream.trailers, &mut pending, &mut outlet);
        let ToConn {
            bytes: sent,
            backlog,
            ..
        } = outlet;
        pending.clear();
        self.scratch = pending;
        stream.txn.bytes_out += sent;
        if backlog && let Some(entry) = self.conns.get(client) {
            entry.backlog = true;
            self.set_deadline(client, deadline(now, stream.client_ms(cx.running)));
        }
        match result {
            Err(_) if head_waits && sent == 0 => {
                // Nothing of this response has left: another one may.
                stream.answered = false;
                stream.ended_by(b'P', b'H');
                self.fail(cx, stream, 502);
                bytes.len()
            }
            Err(_) => {
                stream.ended_by(b'P', b'D');
                self.cut(cx, stream);
                bytes.len()
            }
            Ok(used) => {
                stream.txn.bytes_from_server += used as u64;
                if backlog && !stream.download.done {
                    self.pause(cx, server);
                    self.set_deadline(server, NEVER_MS);
                } else {
                    self.set_deadline(server, deadline(now, stream.server_ms(cx.running)));
                }
                if stream.download.done {
                    self.run(cx, stream);
                }
                used
            }
        }
    }

    /// Both bodies to their ends. A response that ended before its request: the rest of that is thrown away.
    pub fn transfer<D: Driver>(&mut self, cx: &mut Cx<'_, D>, stream: &mut Stream) -> Step {
        if !stream.download.done {
            return Step::Wait;
        }
        if stream.txn.server_status != 0 {
            self.trace(cx, stream, Event::HttpEndResponse);
        }
        if !stream.upload.done {
            if stream.upload.coding != Coding::Discard {
                stream.upload.coding = Coding::Discard;
                stream.keep_server = false;
                self.release_server(cx, stream);
            }
            if stream.keep_client {
                // The rest of the request may be long in coming.
                self.leave_backend(stream);
                self.log_stream(cx, stream);
                if let Some(client) = stream.client {
                    self.set_deadline(client, deadline(cx.now(), stream.client_ms(cx.running)));
                    self.update_client_flow(cx, client);
                }
                return Step::Wait;
            }
        }
        stream.txn.timing.data_end_ms = Some(cx.now().ms());
        self.finish(cx, stream);
        Step::Wait
    }
}

/// Sends the pieces of a body to a connection and counts them.
struct ToConn<'a, D> {
    driver: &'a mut D,
    conn: ConnId,
    bytes: u64,
    backlog: bool,
    keeper: Option<Keeper<'a>>,
}

impl<D: Driver> Outlet for ToConn<'_, D> {
    fn send(&mut self, head: &[u8], body: &[u8]) {
        self.bytes += (head.len() + body.len()) as u64;
        if let Some(keeper) = &mut self.keeper {
            keeper.take(head);
            keeper.take(body);
        }
        self.backlog |= self.driver.send(self.conn, head, body) == Sent::Backlog;
    }
}
