//! Ends the streams of a server that went down (`on-marked-down shutdown-sessions` and its kin).

use net::Driver;

use super::Turn;
use crate::ids::{ProxyId, ServerId};
use crate::phases::Cause;

impl<D: Driver> Turn<'_, D> {
    /// Ends the streams whose server is that at a place of its backend.
    pub(super) fn end_sessions(&mut self, backend: usize, server: usize) {
        let server = ServerId::at(ProxyId::at(backend), server);
        for id in self.streams.ids() {
            let is_there = self.streams.get(id).is_some_and(|stream| {
                stream.route.target == Some(server) && stream.server.link().is_some()
            });
            if is_there {
                self.with_stream(id, |cx, stream| cx.fail(stream, Cause::ServerDown));
            }
        }
    }
}
