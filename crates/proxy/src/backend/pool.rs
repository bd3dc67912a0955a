//! Idle server connections: a stack for each worker and server; the last one in is the first one
//! out.
//!
//! `http-reuse` (manual §4.2) says which requests may reuse one. `safe`: not a client's first
//! request, because the client would not send it again. `aggressive`: a first request may reuse a
//! connection that has proved to be kept alive. `always`: any request. `never`: only requests of
//! the client that opened the connection.

use config::model::HttpReuse;
use net::Labels;

use super::Backends;
use crate::evaluation::Ambient;
use crate::ids::{ConnId, ExchangeId, ServerId};
use crate::link::{Links, Server};
use crate::shared::{Count, IdleConnRequest};

/// How many responses a connection must have completed for `aggressive`.
const PROVEN_RESPONSES: u32 = 2;

/// The properties of the connection that a request needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'a> {
    pub server: ServerId,
    pub client: ExchangeId,
    /// Whether it is the client's first request.
    pub is_first: bool,
    pub reuse: HttpReuse,
    pub labels: Labels,
    /// The PROXY protocol header of a new connection for the request.
    pub header: &'a [u8],
    /// The name that distinguishes the request's connections from other idle ones.
    pub name: &'a [u8],
}

/// A worker keeps this many idle connections of a server even if it needs fewer, because [`Need`]
/// distinguishes neither connections of different names nor connections that have been reused
/// before.
const IDLE_MIN: u32 = 16;

/// A server's idle connections.
#[derive(Clone, Debug, Default)]
pub(super) struct Pool {
    /// Those that serve one request at a time; the last one in is the first one out.
    links: Vec<ConnId>,
    /// The number of idle ones among those that take streams of many clients.
    shared: u32,
    need: Need,
}

impl Pool {
    /// Whether one more idle connection is kept: this worker has fewer than [`IDLE_MIN`], or no
    /// more than it has recently used at once. `all`: its connections to the server, idle or not.
    fn has_room(&mut self, all: u32, keep: &Keep) -> bool {
        let idle = self.links.len() as u32 + self.shared;
        let needed = self.need.note(all.saturating_sub(idle), keep);
        idle < IDLE_MIN || all <= needed
    }
}

/// How many connections of a server a worker has recently used at the same time. More idle
/// connections than that are not needed. Without this bound, each client that sends one request
/// leaves an idle connection behind (`http-reuse safe`).
#[derive(Clone, Copy, Debug, Default)]
struct Need {
    /// The most connections in this window.
    most: u32,
    /// The decayed maximum of earlier windows: its excess is halved with each window.
    before: u32,
    /// The end of this window.
    until_ms: u64,
}

impl Need {
    /// Notes that `used` connections are in use now. Returns how many are needed.
    fn note(&mut self, used: u32, keep: &Keep) -> u32 {
        if keep.now_ms >= self.until_ms {
            self.before = self.most.max(self.before.midpoint(self.most));
            self.most = 0;
            self.until_ms = keep.now_ms + keep.window_ms;
        }
        self.most = self.most.max(used);
        self.most.max(self.before)
    }
}

/// The bounds on the idle connections of a server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keep {
    /// The maximum for all workers together (`pool-max-conn`).
    pub max: Option<u32>,
    pub now_ms: u64,
    /// The window for measuring the need: the time after which idle connections are closed
    /// (`pool-purge-delay`).
    pub window_ms: u64,
}

impl Server {
    /// Whether a request may use the connection: it has the request's name, and it has proved to be
    /// kept alive if that is required.
    #[inline]
    fn suits(&self, name: &[u8], proven_only: bool) -> bool {
        (!proven_only || self.served >= PROVEN_RESPONSES) && *self.name == *name
    }

    /// The connection is counted as idle no longer. Returns its place in the pool, if it has one.
    #[inline]
    fn leave_idle(&mut self, ambient: &Ambient) -> Option<u32> {
        if std::mem::take(&mut self.is_pool_counted) {
            ambient.shared.servers.leave_pool(self.server);
        }
        let place = self.pool_place.take()?;
        ambient.shared.sub(ambient.worker, Count::Idle(self.server));
        Some(place)
    }
}

impl Backends {
    /// Takes an idle connection that suits a request out of its pool.
    pub fn take_idle(
        &mut self,
        ambient: &Ambient,
        links: &mut Links,
        wanted: &Wanted<'_>,
    ) -> Option<ConnId> {
        if let Some(link) = take_kept(links, wanted) {
            return Some(link);
        }
        if wanted.labels != Labels::default() {
            return None;
        }
        let proven_only = proven_only(wanted.reuse, wanted.is_first)?;
        if let Some(link) = self.take_last(ambient, links, wanted, proven_only) {
            return Some(link);
        }
        let backend = &self.0[wanted.server.backend.place()];
        let shared = &backend.shared[wanted.server.place()];
        let is_open = |link: &&ConnId| {
            let server = links.server(**link);
            server.is_some_and(|server| server.suits(wanted.name, proven_only))
                && links.takes_more(**link)
        };
        if let Some(link) = shared.iter().rev().find(is_open).copied() {
            self.leave_pool(ambient, links, link);
            return Some(link);
        }
        let link = self.find(links, wanted.server, proven_only, wanted.name)?;
        self.leave_pool(ambient, links, link);
        Some(link)
    }

    /// Takes the connection that was used last, if it suits and none takes streams of many clients.
    #[inline]
    fn take_last(
        &mut self,
        ambient: &Ambient,
        links: &mut Links,
        wanted: &Wanted<'_>,
        proven_only: bool,
    ) -> Option<ConnId> {
        let id = wanted.server;
        let backend = &mut self.0[id.backend.place()];
        let idle = &mut backend.idle[id.place()].links;
        let link = *idle.last()?;
        let server = links.server_mut(link)?;
        if !server.suits(wanted.name, proven_only) || !backend.shared[id.place()].is_empty() {
            return None;
        }
        server.leave_idle(ambient);
        idle.pop();
        Some(link)
    }

    /// Finds an idle connection that another worker may have.
    pub fn find_idle(&self, links: &Links, wish: &IdleConnRequest) -> Option<ConnId> {
        self.find(links, wish.server, wish.proven_only, &wish.name)
    }

    /// The idle HTTP/1 connection with this name that was used last.
    #[inline(always)]
    fn find(
        &self,
        links: &Links,
        server: ServerId,
        proven_only: bool,
        name: &[u8],
    ) -> Option<ConnId> {
        let idle = &self.0[server.backend.place()].idle[server.place()].links;
        let suits = |link: &&ConnId| {
            let server = links.server(**link);
            server.is_some_and(|server| server.suits(name, proven_only))
        };
        idle.iter().rfind(suits).copied()
    }

    /// Puts a connection into its pool for the next request, or counts it there if it takes streams
    /// of many clients. False if there are enough: this worker has [`IDLE_MIN`] and more than it
    /// has recently used at once, or all workers together have `max`.
    pub fn keep_idle(
        &mut self,
        ambient: &Ambient,
        links: &mut Links,
        link: ConnId,
        keep: &Keep,
    ) -> bool {
        let Some(server) = links.server_mut(link) else {
            return true;
        };
        if server.is_shared_idle {
            return true;
        }
        let id = server.server;
        let pool = &mut self.0[id.backend.place()].idle[id.place()];
        let all = ambient
            .shared
            .own_count(ambient.worker, Count::Connections(id));
        if !pool.has_room(all, keep) {
            return false;
        }
        let max = keep.max;
        if max.is_some_and(|max| !ambient.shared.servers.enter_pool(id, max)) {
            return false;
        }
        server.is_pool_counted = max.is_some();
        if server.shared_place.is_some() {
            server.is_shared_idle = true;
            pool.shared += 1;
            return true;
        }
        server.pool_place = Some(pool.links.len() as u32);
        pool.links.push(link);
        ambient.shared.add(ambient.worker, Count::Idle(id));
        true
    }

    /// Takes a connection out of its pool, if it is in one.
    pub fn leave_pool(&mut self, ambient: &Ambient, links: &mut Links, link: ConnId) {
        let Some(server) = links.server_mut(link) else {
            return;
        };
        let id = server.server;
        let place = server.leave_idle(ambient);
        if std::mem::take(&mut server.is_shared_idle) {
            self.0[id.backend.place()].idle[id.place()].shared -= 1;
        }
        let Some(place) = place else {
            return;
        };
        let idle = &mut self.0[id.backend.place()].idle[id.place()].links;
        debug_assert_eq!(idle.get(place as usize), Some(&link));
        idle.swap_remove(place as usize);
        if let Some(moved) = idle.get(place as usize).copied()
            && let Some(moved) = links.server_mut(moved)
        {
            moved.pool_place = Some(place);
        }
    }

    /// Adds a connection to those that take streams of many clients.
    pub fn share(&mut self, links: &mut Links, link: ConnId) {
        if let Some(server) = links.server_mut(link) {
            let id = server.server;
            let shared = &mut self.0[id.backend.place()].shared[id.place()];
            server.shared_place = Some(shared.len() as u32);
            shared.push(link);
        }
    }

    /// Removes a connection that takes no new streams.
    pub fn unshare(&mut self, links: &mut Links, link: ConnId) {
        let Some(server) = links.server_mut(link) else {
            return;
        };
        let id = server.server;
        let Some(place) = server.shared_place.take() else {
            return;
        };
        let shared = &mut self.0[id.backend.place()].shared[id.place()];
        shared.swap_remove(place as usize);
        if let Some(moved) = shared.get(place as usize).copied()
            && let Some(moved) = links.server_mut(moved)
        {
            moved.shared_place = Some(place);
        }
    }

    /// An idle connection of any server: the one that has been longest in its pool.
    pub fn any_idle(&mut self, links: &Links) -> Option<ConnId> {
        let pools = self.0.iter().flat_map(|backend| &backend.idle);
        let idle = pools
            .into_iter()
            .find_map(|pool| pool.links.first().copied());
        let is_free = |link: &&ConnId| links.get(**link).is_some_and(|link| link.is_free());
        idle.or_else(|| {
            let shared = self.0.iter().flat_map(|backend| &backend.shared);
            shared.into_iter().flatten().find(is_free).copied()
        })
    }

    /// An idle connection of a server: the one that has been longest in its pool.
    pub fn idle_of(&self, links: &Links, server: ServerId) -> Option<ConnId> {
        let backend = &self.0[server.backend.place()];
        let idle = backend.idle[server.place()].links.first();
        let is_free = |link: &&ConnId| links.get(**link).is_some_and(|link| link.is_free());
        idle.or_else(|| backend.shared[server.place()].iter().find(is_free))
            .copied()
    }

    /// Whether a connection is at its recorded place.
    pub fn is_pooled(&self, server: ServerId, place: u32, link: ConnId) -> bool {
        let idle = &self.0[server.backend.place()].idle[server.place()];
        idle.links.get(place as usize) == Some(&link)
    }
}

/// Whether a request may only reuse a connection that has proved to be kept alive; none where it
/// may reuse no other client's connection.
pub(crate) fn proven_only(reuse: HttpReuse, is_first: bool) -> Option<bool> {
    match reuse {
        HttpReuse::Never => None,
        HttpReuse::Safe if is_first => None,
        HttpReuse::Aggressive => Some(is_first),
        HttpReuse::Safe | HttpReuse::Always => Some(false),
    }
}

/// A connection that this client keeps for itself.
fn take_kept(links: &mut Links, wanted: &Wanted<'_>) -> Option<ConnId> {
    let fits = |link: &ConnId| {
        links.server(*link).is_some_and(|kept| {
            kept.server == wanted.server
                && *kept.header == *wanted.header
                && *kept.name == *wanted.name
                && kept.labels == wanted.labels
        })
    };
    let place = links.client(wanted.client)?.kept.iter().rposition(fits)?;
    let link = links.client_mut(wanted.client)?.kept.remove(place);
    links.server_mut(link)?.keeper = None;
    Some(link)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_need_follows_the_most_that_was_used_and_forgets_half_a_window() {
        let mut need = Need::default();
        let mut note = |used, now_ms| {
            let keep = Keep {
                max: None,
                now_ms,
                window_ms: 1000,
            };
            need.note(used, &keep)
        };
        assert_eq!(note(1, 0), 1);
        assert_eq!(note(40, 10), 40);
        assert_eq!(note(2, 900), 40);
        assert_eq!(note(2, 1100), 40, "the window before still counts");
        assert_eq!(note(2, 2200), 21);
        assert_eq!(note(2, 3300), 11);
        assert_eq!(note(50, 3400), 50);
    }
}
