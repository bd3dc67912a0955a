//! Moves idle server connections between workers (`tune.idle-pool.shared`): a worker that has none
//! for a request asks a worker that has some. HTTP/2 connections stay, because they serve many
//! requests at a time.

use std::sync::Arc;

use net::{Driver, Labels, Parcel};

use super::{ConnWait, Cx};
use crate::backend::Keep;
use crate::ids::{ConnId, ServerId};
use crate::link::Detached;
use crate::runtime_config::deadline;
use crate::shared::{Count, IdleConnRequest, ServerRecord, WorkerMessage};
use crate::stream::{Phase, Stream, Until};

/// How long a stream waits for the answer of another worker, milliseconds. Then it opens a new
/// connection.
const TAKE_OVER_MS: u64 = 100;
/// The shortest window over which the need of idle connections is measured, milliseconds.
const NEED_WINDOW_MIN_MS: u64 = 1000;

/// An idle connection on its way to another worker.
struct Moved {
    /// The socket, as the driver released it.
    sock: Parcel,
    connection: Detached,
    /// The server at that time. Another server may have its place by now.
    record: Arc<ServerRecord>,
}

impl<D: Driver> Cx<'_, D> {
    /// Asks another worker for an idle connection that suits a request. Returns until when the
    /// stream waits for the answer, if one will come.
    pub(super) fn ask_for_idle(
        &mut self,
        stream: &mut Stream,
        server: ServerId,
        name: &[u8],
    ) -> Option<Until> {
        let route = &stream.route;
        let may = self.runtime_config.shares_idle && stream.txn.is_http;
        if !may || route.fresh_only || route.asked_others {
            return None;
        }
        let reuse = self.runtime_config.proxy(stream.backend).http_reuse;
        let proven_only = crate::backend::proven_only(reuse, stream.txn.first_request)?;
        let (shared, worker) = (&self.core.ambient.shared, self.core.ambient.worker);
        if stream.route.labels != Labels::default() {
            return None;
        }
        let other = shared.worker_with_idle(worker, server)?;
        stream.route.asked_others = true;
        let wish = IdleConnRequest {
            stream: stream.reference(worker),
            server,
            proven_only,
            name: name.into(),
        };
        shared.post_letter(other, WorkerMessage::IdleConnRequest(wish), &mut |worker| {
            self.io.wake(worker)
        });
        Some(Until(deadline(self.now(), TAKE_OVER_MS)))
    }

    /// Another worker asks for an idle connection: sends it one, or none.
    pub fn grant_wish(&mut self, wish: &IdleConnRequest) {
        let connection = self.give_up_idle(wish);
        let letter = WorkerMessage::Answer {
            stream: wish.stream,
            connection,
        };
        let shared = &self.core.ambient.shared;
        shared.post_letter(wish.stream.worker, letter, &mut |worker| {
            self.io.wake(worker);
        });
    }

    fn give_up_idle(&mut self, wish: &IdleConnRequest) -> Option<Parcel> {
        let core = &mut *self.core;
        let id = core.backends.find_idle(&core.links, wish)?;
        let link = core.links.get(id)?;
        let is_quiet = !link.blocked
            && !link.eof
            && link.input.is_empty()
            && link.secure.as_ref().is_none_or(|secure| secure.is_quiet());
        if !is_quiet {
            return None;
        }
        let sock = self.io.give_up(link.sock)?;
        core.backends.leave_pool(&core.ambient, &mut core.links, id);
        let connection = core.links.detach(id, &mut core.timers);
        core.uncount(Count::Connections(wish.server));
        let Some(connection) = connection else {
            core.ambient.shared.sub_server_conn();
            return None;
        };
        Some(Parcel::new(Moved {
            sock,
            connection,
            record: Arc::clone(self.servers.record(wish.server)),
        }))
    }

    /// Another worker has answered: the connection that it hands over becomes idle here.
    pub fn take_over(&mut self, connection: Option<Parcel>) {
        let Some(moved) = connection.and_then(Parcel::open::<Moved>) else {
            return;
        };
        let Moved {
            sock,
            connection,
            record,
        } = *moved;
        let core = &mut *self.core;
        let Some(sock) = self.io.take_in(sock) else {
            return core.ambient.shared.sub_server_conn();
        };
        let id = connection.server.server;
        let link = core.links.add_detached(sock, connection, &mut core.timers);
        core.count(Count::Connections(id));
        let shared = &core.ambient.shared;
        let is_good =
            Arc::ptr_eq(self.servers.record(id), &record) && !shared.servers.is_in_maintenance(id);
        if is_good {
            self.pool(link)
        } else {
            self.close_server(link)
        }
    }

    /// Puts a connection that any client may use into the idle pool.
    pub(super) fn pool(&mut self, link: ConnId) {
        let server = self.core.links.server(link).map(|server| server.server);
        match server.and_then(|id| self.keep_idle_of(link, id)) {
            Some(wait) => self.wait_on(link, wait),
            None => self.close_server(link),
        }
    }

    /// Keeps a connection of this server idle, if there are not enough idle ones. Returns its wait.
    #[inline]
    pub(super) fn keep_idle_of(&mut self, link: ConnId, server: ServerId) -> Option<ConnWait> {
        let now = self.now();
        let core = &mut *self.core;
        let line = self.servers.at(server);
        let purge_ms = line.pool_purge_delay.as_millis() as u64;
        let keep = Keep {
            max: line.options.idle_max(),
            now_ms: now.ms(),
            window_ms: purge_ms.max(NEED_WINDOW_MIN_MS),
        };
        let is_kept = !core.ambient.stopping
            && core
                .backends
                .keep_idle(&core.ambient, &mut core.links, link, &keep);
        is_kept.then_some(ConnWait::Reuse { purge_ms })
    }

    /// Another worker has answered: the stream's wait is over.
    pub fn answered(&mut self, stream: &mut Stream, number: u64) {
        if stream.txn.id == number && matches!(stream.phase, Phase::TakeOver(_)) {
            stream.phase = Phase::Connect(Until::default());
            self.run(stream);
        }
    }
}
