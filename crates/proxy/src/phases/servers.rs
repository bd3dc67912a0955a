//! A server's connection after an exchange: kept idle, or closed.

use net::Driver;

use super::{ConnWait, Core, Cx};
use crate::ids::{ConnId, ExchangeId, ProxyId, QuicUser};
use crate::link::{Role, Told};
use crate::shared::{Count, QuicCount};
use crate::stream::Stream;

impl<D: Driver> Cx<'_, D> {
    /// Marks the stream's server connection as not reusable.
    pub(super) fn end_server_after(&mut self, stream: &Stream) {
        if let Some(link) = stream.server.link() {
            self.core.links.end_after(link);
        }
    }

    /// Releases the server's end of a stream: a reusable connection becomes idle, another one is
    /// closed. The slot goes to the next stream in the queue.
    pub(super) fn release_server(&mut self, stream: &mut Stream) {
        if let Some(exchange) = stream.server.take_link() {
            match self.core.links.own_connection(exchange) {
                None => self.end_server_exchange(exchange),
                Some(conn) if self.core.links.is_reusable(exchange) => self.keep_idle(stream, conn),
                Some(conn) => self.close_server(conn),
            }
        }
        self.uncount_server(stream);
        self.release_slot(stream);
    }

    /// Ends one exchange of a connection that serves many. The connection stays open unless it has
    /// served its maximum of exchanges.
    fn end_server_exchange(&mut self, link: ExchangeId) {
        let connection = self.core.links.connection_of(link);
        if let Some(server) = self.core.links.server_mut(link) {
            server.served += 1;
            let max = self.servers.at(server.server).max_reuse;
            if max.is_some_and(|max| server.served > max)
                && let Some(connection) = connection
            {
                let core = &mut *self.core;
                core.backends.unshare(&mut core.links, connection);
            }
        }
        self.end_exchange(link);
    }

    /// Closes the stream's server connection and keeps the slot.
    pub(super) fn drop_server(&mut self, stream: &mut Stream) {
        self.trace_failed_try(stream, None);
        if let Some(exchange) = stream.server.take_link() {
            self.leave_exchange(exchange, Self::close_server);
        }
        self.uncount_server(stream);
    }

    #[inline(always)]
    fn uncount_server(&mut self, stream: &mut Stream) {
        if let Some(server) = stream.route.counted.take() {
            self.core.uncount(Count::Server(server));
        }
    }

    /// Keeps a connection idle for the next request.
    fn keep_idle(&mut self, stream: &Stream, link: ConnId) {
        let draining = self.is_stopping();
        self.core.links.release_all(self.io, link);
        self.core.links.set_stream(link.only_exchange(), None);
        let Some(entry) = self.core.links.get_mut(link) else {
            return;
        };
        entry.release_spare();
        let timer = entry.timer;
        let Role::Server(server) = &mut entry.role else {
            return;
        };
        server.served += 1;
        let id = server.server;
        let line = self.servers.at(server.server);
        let is_over = server.is_ending || draining;
        if is_over || line.max_reuse.is_some_and(|max| server.served > max) {
            return self.close_server(link);
        }
        if server.private {
            return self.keep_private(stream, link);
        }
        match self.keep_idle_of(link, id) {
            Some(wait) => self.core.timers.set(timer, self.wait_ends_ms(wait)),
            None => self.close_server(link),
        }
    }

    fn keep_private(&mut self, stream: &Stream, link: ConnId) {
        // A client whose connection ends keeps no server connection.
        let links = &self.core.links;
        let keeper = stream
            .client
            .filter(|client| links.outlives_exchange(*client) && !stream.close_client)
            .and_then(|client| links.own_connection(client));
        let Some(client) = keeper.and_then(|keeper| self.core.links.client_mut(keeper)) else {
            return self.close_server(link);
        };
        let max = self
            .runtime_config
            .proxy(stream.frontend)
            .session_srv_conns_max;
        if client.kept.len() >= max as usize {
            return self.close_server(link);
        }
        client.kept.push(link);
        if let Some(server) = self.core.links.server_mut(link) {
            server.keeper = keeper;
        }
        self.wait_on(link, ConnWait::Keeper);
    }

    /// Closes a server's connection; bytes that were taken for sending still leave.
    pub fn close_server(&mut self, link: ConnId) {
        let Some(server) = self.core.links.server(link) else {
            return;
        };
        let backend = server.server.backend;
        let abort = self.runtime_config.proxy(backend).options.nolinger;
        self.core.links.close(self.io, link, abort);
        self.forget_server(link);
    }

    /// A server's connection is closed: forgets it.
    pub fn forget_server(&mut self, link: ConnId) {
        let core = &mut *self.core;
        core.backends.unshare(&mut core.links, link);
        core.backends
            .leave_pool(&core.ambient, &mut core.links, link);
        let Some(mut entry) = core.links.remove(link, &mut core.timers) else {
            return;
        };
        let told = entry.tell_end();
        let Role::Server(server) = entry.role else {
            return;
        };
        if let Some(told) = told {
            core.tell_mux_end(server.server.backend, &told);
        }
        core.ambient.shared.sub_server_conn();
        core.uncount(Count::Connections(server.server));
        if let Some(keeper) = server.keeper
            && let Some(client) = core.links.client_mut(keeper)
        {
            client.kept.retain(|kept| *kept != link);
        }
    }
}

impl Core {
    /// Counts what a connection of HTTP/2 or HTTP/3 to a server has counted when it ends.
    pub fn tell_mux_end(&self, backend: ProxyId, told: &Told) {
        let (shared, worker) = (&self.ambient.shared, self.ambient.worker);
        if !told.is_h3 {
            let row = shared.back_row(worker, backend);
            row.add_h2(&told.counts, told.opened);
            row.end_h2();
        } else if let Some(row) = shared.quic_row(worker, QuicUser::Backend(backend)) {
            row.tell_requests(&told.counts, told.opened);
            row.take(QuicCount::OpenConnections);
        }
    }
}
