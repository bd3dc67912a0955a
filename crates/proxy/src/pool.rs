//! Idle server connections: a stack per worker and server, the last one in being the first one out.
//!
//! `http-reuse` (manual §4.2) says which requests may take one: `safe` lets a client's first request, which could not be
//! sent again by its client, only have a connection of its own; `aggressive` lets it have one that has proved to be kept
//! alive; `always` any; `never` only what the same client opened.

use config::model::HttpReuse;
use net::timers::NEVER_MS;
use net::{ConnId, Driver};

use crate::engine::{Core, Cx, Life};
use crate::running::deadline;
use crate::stream::Stream;

/// Responses a connection must have completed to be `aggressive`'s proof.
const PROVEN_RESPONSES: u32 = 2;

impl Core {
    /// An idle connection that this request may have. `header`: the PROXY protocol header it would begin with.
    pub fn take_idle<D: Driver>(
        &mut self,
        cx: &mut Cx<'_, D>,
        stream: &Stream,
        server: usize,
        header: &[u8],
    ) -> Option<ConnId> {
        if let Some(conn) = self.take_kept(stream, server, header) {
            return Some(conn);
        }
        if stream.labels != net::Labels::default() {
            return None;
        }
        let backend = cx.running.proxy(stream.backend);
        let first = stream.txn.first_request;
        let proven_only = match backend.http_reuse {
            HttpReuse::Never => return None,
            HttpReuse::Safe if first => return None,
            HttpReuse::Aggressive => first,
            HttpReuse::Safe | HttpReuse::Always => false,
        };
        let idle = &self.backends[stream.backend].idle[server];
        let conns = &mut self.conns;
        let mut fits = |conn: &ConnId| {
            !proven_only
                || conns
                    .server(*conn)
                    .is_some_and(|server| server.served >= PROVEN_RESPONSES)
        };
        let place = idle.iter().rposition(&mut fits)?;
        let conn = idle[place];
        self.leave_pool(conn);
        Some(conn)
    }

    /// The connection that this client keeps for itself.
    fn take_kept(&mut self, stream: &Stream, server: usize, header: &[u8]) -> Option<ConnId> {
        let client = self.conns.client(stream.client?)?;
        let conn = client.kept?;
        let kept = self.conns.server(conn)?;
        let same_place = kept.backend == stream.backend && kept.server == server;
        if !same_place || *kept.header != *header || kept.labels != stream.labels {
            return None;
        }
        kept.keeper = None;
        self.conns.client(stream.client?)?.kept = None;
        Some(conn)
    }

    /// Puts a connection aside for the next request.
    pub fn keep_idle<D: Driver>(&mut self, cx: &mut Cx<'_, D>, stream: &Stream, conn: ConnId) {
        let now = cx.now();
        self.unpause(cx, conn);
        let draining = self.life != Life::Serving;
        let Some(entry) = self.conns.server(conn) else {
            return;
        };
        entry.stream = None;
        entry.served += 1;
        let (backend, server, private) = (entry.backend, entry.server, entry.private);
        let line = &cx.running.proxy(backend).servers[server];
        if line.max_reuse.is_some_and(|max| entry.served > max) || draining {
            return self.close_server(cx, conn);
        }
        if private {
            return self.keep_private(cx, stream, conn);
        }
        let idle = &mut self.backends[backend].idle[server];
        if line
            .pool_max_conn
            .is_some_and(|max| idle.len() >= max as usize)
        {
            return self.close_server(cx, conn);
        }
        entry_place(&mut self.conns, conn, Some(idle.len() as u32));
        self.backends[backend].idle[server].push(conn);
        let purge_ms = line.pool_purge_delay.as_millis() as u64;
        self.set_deadline(
            conn,
            if purge_ms == 0 {
                NEVER_MS
            } else {
                deadline(now, purge_ms)
            },
        );
    }

    fn keep_private<D: Driver>(&mut self, cx: &mut Cx<'_, D>, stream: &Stream, conn: ConnId) {
        let keeper = stream.client.filter(|_| stream.keep_client);
        let Some(client) = keeper.and_then(|keeper| self.conns.client(keeper)) else {
            return self.close_server(cx, conn);
        };
        let old = client.kept.replace(conn);
        if let Some(entry) = self.conns.server(conn) {
            entry.keeper = keeper;
        }
        self.set_deadline(conn, NEVER_MS);
        if let Some(old) = old {
            self.close_server(cx, old);
        }
    }

    /// Takes a connection out of its pool, if it is in one.
    pub fn leave_pool(&mut self, conn: ConnId) {
        let Some(entry) = self.conns.server(conn) else {
            return;
        };
        let Some(place) = entry.pool_place.take() else {
            return;
        };
        let idle = &mut self.backends[entry.backend].idle[entry.server];
        debug_assert_eq!(idle.get(place as usize), Some(&conn));
        idle.swap_remove(place as usize);
        if let Some(moved) = idle.get(place as usize).copied() {
            entry_place(&mut self.conns, moved, Some(place));
        }
    }
}

fn entry_place(conns: &mut crate::conn::Conns, conn: ConnId, place: Option<u32>) {
    if let Some(entry) = conns.server(conn) {
        entry.pool_place = place;
    }
}
