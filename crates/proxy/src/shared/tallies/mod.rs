//! The counters of statistics for frontends, listeners, backends and servers since the start: each
//! worker adds to its own rows, all threads read them.
//!
//! A row has cache lines of its own. An addition is one instruction without a lock, because a cell
//! has one writer. Changes by readers (`clear counters`, counters that are loaded from a file) go
//! to a correction beside the cells, which is added when they are read. Values that meters already
//! count have no cell here; the reader takes them from the meters.

mod quic;
mod rows;
mod times;

pub(crate) use quic::{QuicCount, QuicRow, QuicSums};
pub use rows::{BackCount, FrontCount, FrontSums};
pub(crate) use rows::{BackExtra, BackRow, Class, FrontExtra, FrontRow};
pub(crate) use times::ServerRow;
use times::TimeSums;
pub use times::{BackSums, Times};

use std::sync::atomic::Ordering;

use config::model::Config;
use net::WorkerId;

use super::grow::Grow;
use super::succession::Succession;
use crate::ids::{BindId, ProxyId, QuicUser, ServerId};

/// One worker's rows.
#[derive(Debug)]
struct Own {
    fronts: Box<[FrontRow]>,
    /// Rows of frontends and backends with QUIC.
    quics: Box<[QuicRow]>,
    /// Rows of listeners of proxies with `option socket-stats`.
    binds: Box<[FrontRow]>,
    backs: Box<[BackRow]>,
    servers: Grow<ServerRow>,
}

/// The rows of all workers, and the corrections.
#[derive(Debug)]
pub(crate) struct Tallies {
    workers: Vec<Own>,
    /// By proxy: the number of bind lines of the proxies before it.
    binds_before: Vec<u32>,
    /// By proxy: the places of its sides among those with QUIC.
    quic_places: Vec<[Option<u32>; 2]>,
    front_extras: Box<[FrontExtra]>,
    /// Added to the sums over the workers.
    quic_corrections: Box<[QuicRow]>,
    bind_extras: Box<[FrontExtra]>,
    back_extras: Box<[BackExtra]>,
    server_extras: Grow<BackExtra>,
}

fn rows<T: Default>(count: usize) -> Box<[T]> {
    (0..count).map(|_| T::default()).collect()
}

impl Tallies {
    pub fn new(config: &Config, workers: usize) -> Tallies {
        let proxies = config.proxies.len();
        let mut binds_before = Vec::new();
        let mut quic_places = Vec::new();
        let (mut servers, mut binds, mut quics) = (0, 0, 0);
        for proxy in &config.proxies {
            quic_places.push(quic::has_quic(proxy).map(|has_quic| {
                let place = has_quic.then_some(quics);
                quics += u32::from(has_quic);
                place
            }));
            binds_before.push(binds as u32);
            servers += proxy.servers.len();
            if proxy.options.socket_stats {
                binds += proxy.binds.len();
            }
        }
        let own = || Own {
            fronts: rows(proxies),
            quics: rows(quics as usize),
            binds: rows(binds),
            backs: rows(proxies),
            servers: Grow::new(rows(servers)),
        };
        Tallies {
            workers: (0..workers).map(|_| own()).collect(),
            binds_before,
            quic_places,
            quic_corrections: rows(quics as usize),
            front_extras: rows(proxies),
            bind_extras: rows(binds),
            back_extras: rows(proxies),
            server_extras: Grow::new(rows(servers)),
        }
    }

    /// Copies the rows of the objects of both configurations. `numbers`: of a server, now and
    /// before.
    pub(in crate::shared) fn succeed(
        &self,
        before: &Tallies,
        both: &Succession<'_>,
        numbers: impl Fn(ServerId) -> [usize; 2],
    ) {
        let pairs = || self.workers.iter().zip(&before.workers);
        for proxy in &both.proxies {
            let place = proxy.place();
            for (own, before) in pairs() {
                own.fronts[place].copy(&before.fronts[place]);
                own.backs[place].copy(&before.backs[place]);
            }
            for user in quic::users(*proxy) {
                let places = [self, before].map(|of| of.quic_place(user));
                let [Some(to), Some(from)] = places else {
                    continue;
                };
                for (own, before) in pairs() {
                    own.quics[to].copy(&before.quics[from]);
                }
                self.quic_corrections[to].copy(&before.quic_corrections[from]);
            }
            self.front_extras[place].copy(&before.front_extras[place]);
            self.back_extras[place].copy(&before.back_extras[place]);
        }
        let has_rows = |bind: &&BindId| {
            let proxies = both.proxy(bind.frontend);
            proxies.iter().all(|proxy| proxy.options.socket_stats)
        };
        for bind in both.binds.iter().filter(has_rows) {
            let (to, from) = (self.bind_place(*bind), before.bind_place(*bind));
            for (own, before) in pairs() {
                own.binds[to].copy(&before.binds[from]);
            }
            self.bind_extras[to].copy(&before.bind_extras[from]);
        }
        for server in &both.servers {
            let [to, from] = numbers(*server);
            for (own, before) in pairs() {
                own.servers.at(to).copy(before.servers.at(from));
            }
            self.server_extras
                .at(to)
                .copy(before.server_extras.at(from));
        }
    }

    fn bind_place(&self, bind: BindId) -> usize {
        self.binds_before[bind.frontend.place()] as usize + bind.place
    }

    /// The place of a side of a proxy among those with QUIC.
    fn quic_place(&self, user: QuicUser) -> Option<usize> {
        let (proxy, side) = match user {
            QuicUser::Frontend(proxy) => (proxy, 0),
            QuicUser::Backend(proxy) => (proxy, 1),
        };
        let place = self.quic_places.get(proxy.place())?[side];
        place.map(|place| place as usize)
    }

    // ---- the rows of a worker

    /// The row of a frontend.
    #[inline]
    pub fn front(&self, worker: WorkerId, proxy: ProxyId) -> &FrontRow {
        &self.workers[worker.0 as usize].fronts[proxy.place()]
    }

    /// The row of HTTP/3 and QUIC of a side of a proxy; none if its lines have no QUIC.
    pub fn quic(&self, worker: WorkerId, user: QuicUser) -> Option<&QuicRow> {
        let place = self.quic_place(user)?;
        Some(&self.workers[worker.0 as usize].quics[place])
    }

    /// The row of a listener of a frontend with `option socket-stats`.
    pub fn bind(&self, worker: WorkerId, bind: BindId) -> &FrontRow {
        &self.workers[worker.0 as usize].binds[self.bind_place(bind)]
    }

    /// The row of a backend.
    #[inline]
    pub fn back(&self, worker: WorkerId, proxy: ProxyId) -> &BackRow {
        &self.workers[worker.0 as usize].backs[proxy.place()]
    }

    /// The row of a server, by its number among all servers.
    #[inline]
    pub fn server(&self, worker: WorkerId, server: usize) -> &ServerRow {
        self.workers[worker.0 as usize].servers.at(server)
    }

    /// Makes room for a server with this number; false if there is no room.
    pub fn reach_server(&self, server: usize) -> bool {
        let mut workers = self.workers.iter();
        workers.all(|own| own.servers.reach(server, ServerRow::default))
            && self.server_extras.reach(server, BackExtra::default)
    }

    /// Updates the peaks of a queue: `all` requests wait in a backend, and of them this many for
    /// this server.
    pub fn queue_peak(&self, proxy: ProxyId, all: u32, server: Option<(usize, u32)>) {
        self.back_extra(proxy).queue_peak(all);
        if let Some((server, waiting)) = server {
            self.server_extra(server).queue_peak(waiting);
        }
    }

    // ---- the parts that all workers share

    /// The shared part of a frontend.
    pub fn front_extra(&self, proxy: ProxyId) -> &FrontExtra {
        &self.front_extras[proxy.place()]
    }

    /// The shared part of a listener of a frontend with `option socket-stats`.
    pub fn bind_extra(&self, bind: BindId) -> &FrontExtra {
        &self.bind_extras[self.bind_place(bind)]
    }

    /// The shared part of a backend.
    pub fn back_extra(&self, proxy: ProxyId) -> &BackExtra {
        &self.back_extras[proxy.place()]
    }

    /// The shared part of a server, by its number among all servers.
    pub fn server_extra(&self, server: usize) -> &BackExtra {
        self.server_extras.at(server)
    }

    // ---- sums

    /// The sums of a frontend.
    pub fn front_sums(&self, proxy: ProxyId) -> FrontSums {
        let rows = self.workers.iter().map(|own| &own.fronts[proxy.place()]);
        self.front_extra(proxy).sums(rows)
    }

    /// The sums of a frontend since the start, whatever was cleared or loaded.
    pub fn front_sums_uncorrected(&self, proxy: ProxyId) -> FrontSums {
        let rows = self.workers.iter().map(|own| &own.fronts[proxy.place()]);
        FrontExtra::default().sums(rows)
    }

    /// The sums of HTTP/3 and QUIC of a side of a proxy.
    pub fn quic_sums(&self, user: QuicUser) -> QuicSums {
        let Some(place) = self.quic_place(user) else {
            return QuicSums::default();
        };
        let rows = self.workers.iter().map(|own| &own.quics[place]);
        QuicSums::of(rows.chain([&self.quic_corrections[place]]))
    }

    /// Resets the counters of HTTP/3 and QUIC of a side of a proxy.
    pub fn clear_quic(&self, user: QuicUser) {
        if let Some(place) = self.quic_place(user) {
            self.quic_corrections[place].subtract(&self.quic_sums(user));
        }
    }

    /// The sums of a listener of a frontend with `option socket-stats`.
    pub fn bind_sums(&self, bind: BindId) -> FrontSums {
        let place = self.bind_place(bind);
        let rows = self.workers.iter().map(|own| &own.binds[place]);
        self.bind_extra(bind).sums(rows)
    }

    /// The sums of a backend; its times are those of its servers.
    pub fn back_sums(&self, proxy: ProxyId, servers: impl Iterator<Item = usize>) -> BackSums {
        let rows = self.workers.iter().map(|own| &own.backs[proxy.place()]);
        let mut times = TimeSums::default();
        for row in servers.flat_map(|server| self.server_rows(server)) {
            times.add(&TimeSums::of(row));
        }
        BackSums::of(self.back_extra(proxy), rows, times)
    }

    /// The sums of a server, by its number among all servers.
    pub fn server_sums(&self, server: usize) -> BackSums {
        let mut times = TimeSums::default();
        let rows = self.server_rows(server);
        rows.for_each(|row| times.add(&TimeSums::of(row)));
        let rows = self.server_rows(server).map(|row| &row.counts);
        BackSums::of(self.server_extra(server), rows, times)
    }

    fn server_rows(&self, server: usize) -> impl Iterator<Item = &ServerRow> {
        self.workers.iter().map(move |own| own.servers.at(server))
    }

    /// Restarts the averages of a server's times.
    pub fn restart_averages(&self, server: usize) {
        self.server_rows(server)
            .for_each(ServerRow::restart_averages);
    }

    /// Resets the longest times of a server.
    pub fn clear_longest(&self, server: usize) {
        let cells = self.server_rows(server).flat_map(|row| row.longest.all());
        cells.for_each(|cell| cell.store(0, Ordering::Relaxed));
    }
}
