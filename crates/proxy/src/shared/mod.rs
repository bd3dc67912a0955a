//! What the workers share: small, atomic or rarely locked, and named.
//!
//! `counts` and `rates` have one writer each; `servers` is the state of servers and their slots; `queue` has those who wait for
//! one; `admission` bounds client connections, `room` those of servers; `mail` is what workers tell each other.

mod admission;
mod counts;
mod grow;
mod health;
mod mail;
mod queue;
pub(crate) mod rates;
mod room;
mod servers;
mod switches;
mod tables;
mod tallies;
mod turns;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use config::model::{CheckResult, Config, ServerAddress};
use net::WorkerId;

use crate::ids::{BindId, ProxyId, ServerId};
pub(crate) use counts::{Count, Pace};
pub(crate) use health::Seen;
pub use health::{
    Admin, BackendView, Cause, CheckOutcome, CheckPlan, CheckView, Checker, Herald, Level, News,
    OpState, ServerView,
};
pub(crate) use mail::{Letter, Received, Wish};
pub(crate) use queue::{Arrival, Grant, Rank, StreamRef, Ticket};
pub use servers::ServerChange;
pub(crate) use servers::Servers;
pub use switches::{Door, RateLimit};
pub use tables::{ServerRecord, ServerTables};
pub use tallies::{BackCount, BackSums, FrontCount, FrontSums, Times};
pub(crate) use tallies::{BackRow, Class, FrontRow, ServerRow};
pub(crate) use turns::Turn;

/// See the module.
#[derive(Debug)]
pub struct Shared {
    counts: counts::Counts,
    tallies: tallies::Tallies,
    pub(crate) servers: Servers,
    tables: tables::Tables,
    health: health::Health,
    queues: queue::Queues,
    mail: mail::Mail,
    admission: admission::Admission,
    switches: switches::Switches,
    /// Streams since the start, all workers together: the source of [`sample::Txn::id`].
    streams: AtomicU64,
    /// Bytes of all variables; kept only where `tune.vars` limits them for the process.
    var_bytes: AtomicUsize,
    server_conns: room::Room,
    /// Panics that were contained.
    panics: AtomicU64,
}

/// What the process did and does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    /// Client connections since the start.
    pub connections: u64,
    /// Client connections of the last second.
    pub connection_rate: u32,
    /// The most client connections within a second.
    pub connection_rate_max: u32,
    /// The most sessions within a second.
    pub session_rate_max: u32,
    /// Sessions of the last second: connections that the rules of connections let pass.
    pub session_rate: u32,
    /// Requests since the start.
    pub requests: u64,
}

/// Workers that have to be given a round.
pub(crate) trait Wake {
    /// There is something for this worker.
    fn wake(&mut self, worker: WorkerId);
}

impl<F: FnMut(WorkerId)> Wake for F {
    fn wake(&mut self, worker: WorkerId) {
        self(worker);
    }
}

impl Shared {
    /// Everything at its beginning. `fullconn`: by proxy. `server_conns_max`: of the process.
    pub(crate) fn new(
        config: &Config,
        fullconn: &[u32],
        server_conns_max: Option<u32>,
        workers: usize,
    ) -> Shared {
        let servers = config.proxies.iter().map(|proxy| proxy.servers.len());
        let shared = Shared {
            counts: counts::Counts::new(config, workers),
            tallies: tallies::Tallies::new(config, workers),
            servers: Servers::new(config, fullconn),
            tables: tables::Tables::new(config, workers),
            health: health::Health::new(config),
            queues: queue::Queues::new(servers),
            mail: mail::Mail::new(workers),
            admission: admission::Admission::new(config),
            switches: switches::Switches::new(config),
            streams: AtomicU64::new(0),
            var_bytes: AtomicUsize::new(0),
            server_conns: room::Room::new(server_conns_max),
            panics: AtomicU64::new(0),
        };
        shared.show_all();
        shared
    }

    // ---- counts

    /// One more of `worker`'s own.
    #[inline]
    pub(crate) fn add(&self, worker: WorkerId, what: Count) {
        self.counts.add(worker, what);
    }

    /// One less of `worker`'s own.
    #[inline]
    pub(crate) fn sub(&self, worker: WorkerId, what: Count) {
        self.counts.sub(worker, what);
    }

    /// The sum over the workers.
    pub(crate) fn count(&self, what: Count) -> u32 {
        self.counts.sum(what)
    }

    /// One event of a rate, of `worker`'s own.
    #[inline(always)]
    pub(crate) fn mark(&self, worker: WorkerId, what: Pace, now_ms: u64) {
        self.counts.mark(worker, what, now_ms);
    }

    /// Events of the last second, all workers together.
    pub(crate) fn rate(&self, what: Pace, now_ms: u64) -> u32 {
        self.counts.rate(what, now_ms)
    }

    // ---- tallies

    /// `worker`'s row of a frontend.
    #[inline]
    pub(crate) fn front_row(&self, worker: WorkerId, frontend: ProxyId) -> &FrontRow {
        self.tallies.front(worker, frontend)
    }

    /// `worker`'s row of a listener of a frontend with `option socket-stats`.
    pub(crate) fn bind_row(&self, worker: WorkerId, bind: BindId) -> &FrontRow {
        self.tallies.bind(worker, bind)
    }

    /// `worker`'s row of a backend.
    #[inline]
    pub(crate) fn back_row(&self, worker: WorkerId, backend: ProxyId) -> &BackRow {
        self.tallies.back(worker, backend)
    }

    /// `worker`'s row of a server.
    #[inline]
    pub(crate) fn server_row(&self, worker: WorkerId, server: ServerId) -> &ServerRow {
        self.tallies
            .server(worker, self.counts.server_number(server))
    }

    /// What a frontend has counted.
    pub(crate) fn front_sums(&self, frontend: ProxyId) -> FrontSums {
        let mut sums = self.tallies.front_sums(frontend);
        let requests = self.counts.total(Pace::Requests(frontend));
        sums.add(FrontCount::Requests, requests);
        sums
    }

    /// What a listener of a frontend with `option socket-stats` has counted.
    pub(crate) fn bind_sums(&self, bind: BindId) -> FrontSums {
        self.tallies.bind_sums(bind)
    }

    /// What a backend has counted.
    pub(crate) fn back_sums(&self, backend: ProxyId) -> BackSums {
        let tables = self.server_tables();
        let servers = tables.of(backend);
        let servers = servers.map(|(server, _)| self.counts.server_number(server));
        let mut sums = self.tallies.back_sums(backend, servers);
        sums.add(
            BackCount::Streams,
            self.counts.total(Pace::Streams(backend)),
        );
        sums
    }

    /// What a server has counted.
    pub(crate) fn server_sums(&self, server: ServerId) -> BackSums {
        let mut sums = self.tallies.server_sums(self.counts.server_number(server));
        sums.add(BackCount::Streams, self.counts.total(Pace::Server(server)));
        sums
    }

    /// Puts back to zero what a frontend and its listeners have counted. `all`: not only the peaks, as of this time. `binds`: how many
    /// listeners have counts of their own.
    pub(crate) fn clear_frontend(
        &self,
        frontend: ProxyId,
        binds: usize,
        (all, now_ms): (bool, u64),
    ) {
        self.counts.clear_most(Count::Frontend(frontend));
        for pace in [
            Pace::Sessions(frontend),
            Pace::Connections(frontend),
            Pace::Requests(frontend),
        ] {
            self.counts.clear_peak(pace, now_ms);
        }
        if all {
            self.tallies
                .subtract_front(frontend, &self.front_sums(frontend));
        }
        for place in 0..binds {
            let bind = BindId { frontend, place };
            self.counts.clear_most(Count::Bind(bind));
            if all {
                self.tallies.subtract_bind(bind, &self.bind_sums(bind));
            }
        }
    }

    /// The same of a backend, without its servers.
    pub(crate) fn clear_backend(&self, backend: ProxyId, (all, now_ms): (bool, u64)) {
        self.counts.clear_most(Count::Backend(backend));
        self.counts.clear_peak(Pace::Streams(backend), now_ms);
        self.tallies.clear_back_peaks(backend);
        if all {
            self.tallies
                .subtract_back(backend, &self.back_sums(backend));
        }
    }

    /// The same of a server.
    pub(crate) fn clear_server(&self, server: ServerId, (all, now_ms): (bool, u64)) {
        self.counts.clear_most(Count::Server(server));
        self.counts.clear_peak(Pace::Server(server), now_ms);
        let number = self.counts.server_number(server);
        self.tallies.clear_server_peaks(number);
        if all {
            self.tallies
                .subtract_server(number, &self.server_sums(server));
        }
    }

    /// The same of the process: its peaks.
    pub(crate) fn clear_process(&self, now_ms: u64) {
        self.counts.clear_peak(Pace::ProcessConnections, now_ms);
        self.counts.clear_peak(Pace::ProcessSessions, now_ms);
    }

    /// Adds to what a server has counted: what another process had.
    pub(crate) fn preload_server(&self, server: ServerId, what: BackCount, value: u64) {
        let number = self.counts.server_number(server);
        self.tallies.preload_server(number, what, value);
    }

    /// Counters that a file brings along.
    pub(crate) fn tallies(&self) -> &tallies::Tallies {
        &self.tallies
    }

    /// The most at once, all workers together.
    pub(crate) fn most(&self, what: Count) -> u32 {
        self.counts.most(what)
    }

    /// The most events within a second, all workers together.
    pub(crate) fn peak_rate(&self, what: Pace) -> u32 {
        self.counts.peak(what)
    }

    /// When the last event was, to the second, monotonic milliseconds.
    pub(crate) fn last_event_ms(&self, what: Pace) -> Option<u64> {
        self.counts.last_ms(what)
    }

    /// Connections that a proxy took as a frontend, and streams that it was given as a backend, since the start.
    #[must_use]
    pub fn cumulated(&self, proxy: usize) -> (u64, u64) {
        let proxy = ProxyId::at(proxy);
        let of = |what| self.counts.total(what);
        (of(Pace::Sessions(proxy)), of(Pace::Streams(proxy)))
    }

    /// What the process did and does.
    #[must_use]
    pub fn activity(&self, now_ms: u64) -> Activity {
        let proxies = (0..self.servers.backends()).map(ProxyId::at);
        Activity {
            connections: self.counts.total(Pace::ProcessConnections),
            connection_rate: self.rate(Pace::ProcessConnections, now_ms),
            connection_rate_max: self.peak_rate(Pace::ProcessConnections),
            session_rate: self.rate(Pace::ProcessSessions, now_ms),
            session_rate_max: self.peak_rate(Pace::ProcessSessions),
            requests: proxies
                .map(|proxy| self.counts.total(Pace::Requests(proxy)))
                .sum(),
        }
    }

    /// A block of stream numbers for one worker, so that a stream costs no shared write.
    pub(crate) fn stream_ids(&self, block: u64) -> u64 {
        self.streams.fetch_add(block, Relaxed)
    }

    /// Variables took `before` bytes and take `after` now.
    pub(crate) fn var_bytes_change(&self, before: usize, after: usize) {
        self.var_bytes
            .fetch_add(after.wrapping_sub(before), Relaxed);
    }

    pub(crate) fn var_bytes(&self) -> usize {
        self.var_bytes.load(Relaxed)
    }

    /// A panic was contained.
    pub(crate) fn count_panic(&self) {
        self.panics.fetch_add(1, Relaxed);
    }

    /// Panics that each ended one connection, since the start.
    #[must_use]
    pub fn panics(&self) -> u64 {
        self.panics.load(Relaxed)
    }

    // ---- client connections

    /// Takes a place for one more client connection; false where a limit is reached.
    pub(crate) fn admit(&self, bind: BindId) -> bool {
        !self.switches.is_paused(bind.frontend) && self.admission.take(bind)
    }

    /// Gives it back.
    pub(crate) fn dismiss(&self, bind: BindId) {
        self.admission.give(bind);
    }

    /// Whether a limit of client connections is reached, or a frontend is to accept none.
    pub(crate) fn is_full(&self, bind: BindId) -> bool {
        self.switches.is_paused(bind.frontend) || self.admission.is_full(bind)
    }

    /// Most client connections of the process now; 0 for any number.
    #[must_use]
    pub fn maxconn(&self) -> u32 {
        self.admission.process_max()
    }

    /// Changes it. Workers whose listeners rest look again in their next round.
    pub fn set_maxconn(&self, max: u32) {
        self.admission.set_process_max(max);
    }

    /// Most client connections of a frontend now; 0 for any number.
    #[must_use]
    pub fn frontend_maxconn(&self, frontend: usize) -> u32 {
        self.admission.frontend_max(ProxyId::at(frontend))
    }

    /// Changes it, as [`Shared::set_maxconn`].
    pub fn set_frontend_maxconn(&self, frontend: usize, max: u32) {
        self.admission.set_frontend_max(ProxyId::at(frontend), max);
    }

    /// Whether a frontend accepts connections.
    #[must_use]
    pub fn door(&self, frontend: usize) -> Door {
        self.switches.door(ProxyId::at(frontend))
    }

    /// Changes it. Workers notice with the next connection; those whose listeners rest in their next round.
    pub fn set_door(&self, frontend: usize, door: Door) {
        self.switches.set_door(ProxyId::at(frontend), door);
    }

    /// How often something may happen in a second; none for any number.
    #[must_use]
    pub fn rate_limit(&self, rate: RateLimit) -> Option<u32> {
        self.switches.rate_limit(rate)
    }

    /// Changes it; 0 for any number.
    pub fn set_rate_limit(&self, rate: RateLimit, per_second: u32) {
        self.switches.set_rate_limit(rate, per_second);
    }

    // ---- backends

    /// Whether rules may choose a backend.
    #[inline]
    pub(crate) fn is_published(&self, backend: ProxyId) -> bool {
        self.switches.is_published(backend)
    }

    /// Whether rules may choose a backend from now on.
    pub fn publish_backend(&self, backend: usize, published: bool) {
        self.switches.publish(ProxyId::at(backend), published);
    }

    /// Client connections of the process.
    #[must_use]
    pub fn clients(&self) -> u32 {
        self.admission.process()
    }

    /// A worker has listeners that rest, or none any more.
    pub(crate) fn set_rests(&self, worker: WorkerId, rests: bool) {
        self.mail.set_rests(worker, rests);
    }

    /// Another worker whose listeners rest.
    pub(crate) fn next_resting(&self, after: WorkerId) -> Option<WorkerId> {
        self.mail.next_resting(after)
    }

    // ---- server connections

    /// Whether there are as many server connections as there should be.
    pub(crate) fn is_full_of_server_conns(&self) -> bool {
        self.server_conns.is_full()
    }

    /// One more server connection.
    pub(crate) fn add_server_conn(&self) {
        self.server_conns.take();
    }

    /// One less.
    pub(crate) fn sub_server_conn(&self) {
        self.server_conns.give();
    }

    /// The other workers are to close server connections that are idle.
    pub(crate) fn ask_for_room(&self, own: WorkerId, wake: &mut impl Wake) {
        self.server_conns.ask();
        self.workers()
            .filter(|worker| *worker != own)
            .for_each(|worker| wake.wake(worker));
    }

    /// All workers.
    pub(crate) fn workers(&self) -> impl Iterator<Item = WorkerId> + use<> {
        (0..self.mail.workers()).map(WorkerId)
    }

    /// Changes when a worker asks for room.
    #[inline]
    pub(crate) fn asked_for_room(&self) -> u64 {
        self.server_conns.asked()
    }

    // ---- slots and those who wait for them

    /// How many requests a server may work on now; 0 is any number.
    #[inline]
    pub(crate) fn limit(&self, server: ServerId) -> u32 {
        let load = || self.count(Count::Backend(server.backend));
        self.servers.limit(server, load)
    }

    /// Takes one of a server's slots; whether there was one.
    pub(crate) fn take_slot(&self, server: ServerId) -> bool {
        self.servers.take(server, self.limit(server))
    }

    /// Whether a server has a free slot.
    #[inline]
    pub(crate) fn has_slot(&self, server: ServerId) -> bool {
        self.servers.has_free(server, self.limit(server))
    }

    /// Gives a slot back: it goes to the first of those who wait and whom this server can serve.
    pub(crate) fn give_slot(&self, server: ServerId, wake: &mut impl Wake) {
        self.servers.give(server);
        if self.queues.len(server.backend) > 0 {
            let mut grants = Vec::new();
            self.queues.serve(server, self, &mut grants);
            self.post(grants, wake);
        }
    }

    /// Somebody waits for a slot. Where one became free meanwhile, a grant is on its way already.
    pub(crate) fn wait_for_slot(&self, arrival: Arrival, wake: &mut impl Wake) -> Ticket {
        let server = arrival.server.map(|server| {
            let number = self.counts.server_number(server);
            (number, self.servers.waiting(server) + 1)
        });
        let all = self.queues.len(arrival.backend) + 1;
        self.tallies.queue_peak(arrival.backend, all, server);
        let mut grants = Vec::new();
        let ticket = self.queues.enter(arrival, self, &mut grants);
        self.post(grants, wake);
        ticket
    }

    /// Somebody waits no more. A grant may be on its way all the same; whoever gets it gives it back.
    pub(crate) fn stop_waiting(&self, ticket: Ticket) {
        self.queues.leave(ticket, &self.servers);
    }

    /// Requests that wait in a backend.
    pub(crate) fn queued(&self, backend: ProxyId) -> u32 {
        self.queues.len(backend)
    }

    fn post(&self, grants: Vec<Grant>, wake: &mut impl Wake) {
        for grant in grants {
            self.mail.post(grant);
            wake.wake(grant.stream.worker);
        }
    }

    /// Whether something came for a worker.
    #[inline]
    pub(crate) fn has_mail(&self, worker: WorkerId) -> bool {
        self.mail.has_mail(worker)
    }

    /// Takes what came.
    pub(crate) fn collect_mail(&self, worker: WorkerId) -> Received {
        self.mail.collect(worker)
    }

    /// Tells another worker something about idle connections.
    pub(crate) fn post_letter(&self, worker: WorkerId, letter: Letter, wake: &mut impl Wake) {
        self.mail.post_letter(worker, letter);
        wake.wake(worker);
    }

    /// Another worker that has an idle connection to a server: the next one, so that each has its turn.
    pub(crate) fn worker_with_idle(&self, own: WorkerId, server: ServerId) -> Option<WorkerId> {
        let count = self.mail.workers();
        (own.0 + 1..own.0 + count)
            .map(|worker| WorkerId(worker % count))
            .find(|worker| self.counts.of(*worker, Count::Idle(server)) > 0)
    }

    // ---- the state of servers

    /// Who is told of changes of servers.
    pub fn set_herald(&self, herald: Arc<dyn Herald>) {
        self.health.set_herald(herald);
    }

    /// Writes what all servers are at the beginning.
    fn show_all(&self) {
        let mut states = self.health.lock();
        for backend in (0..self.servers.backends()).map(ProxyId::at) {
            for server in self.servers.of(backend) {
                self.show(&mut states, server);
            }
        }
    }

    /// Changes a server's state, by the places of its backend and its own in the configuration. Gives the workers that have to be
    /// given a round.
    pub fn change_server(
        &self,
        backend: usize,
        server: usize,
        change: ServerChange,
    ) -> Vec<WorkerId> {
        let id = ServerId::at(ProxyId::at(backend), server);
        self.change_states(|states| {
            let mut admin = |flag, on| match on {
                true => states.set_admin(id, flag, ""),
                false => states.clear_admin(id, flag),
            };
            match change {
                ServerChange::Maintenance(on) => admin(Admin::FORCED_MAINTENANCE, on),
                ServerChange::Drain(on) => admin(Admin::FORCED_DRAIN, on),
                ServerChange::Unresolved(on) => admin(Admin::UNRESOLVED, on),
                ServerChange::Down(true) => {
                    states.set_health(id, Checker::Health, OpState::Stopped, Cause::Cli);
                }
                ServerChange::Down(false) => {
                    states.set_health(id, Checker::Health, OpState::Running, Cause::Cli);
                }
                ServerChange::Health(checker, to) => {
                    states.set_health(id, checker, to, Cause::Cli);
                }
                ServerChange::Checks(checker, on) => {
                    states.enable_check(id, checker, on);
                    if let Some(herald) = self.health.herald() {
                        herald.reschedule(backend, server);
                    }
                }
                ServerChange::Weight(weight) => states.set_weight(id, weight),
                ServerChange::Maxconn(maxconn) => {
                    self.servers.set_maxconn(id, maxconn);
                    states.touch(id);
                }
            }
        })
    }

    /// A check of a server has ended. Gives the workers that have to be given a round.
    pub fn check_ended(
        &self,
        backend: usize,
        server: usize,
        checker: Checker,
        outcome: CheckOutcome,
    ) -> Vec<WorkerId> {
        let id = ServerId::at(ProxyId::at(backend), server);
        if outcome.status.result() >= CheckResult::Passed {
            self.servers.forget_errors(id);
        }
        self.change_states(|states| states.checked(id, checker, outcome))
    }

    /// A request with a server came to something: counted where the server is observed.
    #[cold]
    pub(crate) fn observe(&self, server: ServerId, seen: Seen, wake: &mut impl Wake) {
        if let Some(errors) = self.servers.observed(server, seen) {
            let woken = self.change_states(|states| states.observed(server, errors, seen));
            woken.into_iter().for_each(|worker| wake.wake(worker));
            if let Some(herald) = self.health.herald() {
                herald.reschedule(server.backend.place(), server.place());
            }
        }
    }

    /// The shares of servers that start slowly have grown. Gives the workers that have to be given a round, and when to call again, in
    /// milliseconds from now; none where no server starts.
    pub fn warm_up(&self) -> (Vec<WorkerId>, Option<u64>) {
        let mut next_ms = None;
        let woken = self.change_states(|states| {
            let (starting, next) = states.warm_up();
            starting.into_iter().for_each(|server| states.touch(server));
            next_ms = next;
        });
        (woken, next_ms)
    }

    /// When the next check of a server is due, and whether it may run.
    #[must_use]
    pub fn check_plan(&self, backend: usize, server: usize, checker: Checker) -> CheckPlan {
        let id = ServerId::at(ProxyId::at(backend), server);
        self.health.lock().plan(id, checker)
    }

    /// A server as it is now.
    #[must_use]
    pub fn server_view(&self, backend: usize, server: usize) -> ServerView {
        let mut states = self.health.lock();
        states.now_ms = self.health.now_ms();
        states.server_view(ServerId::at(ProxyId::at(backend), server))
    }

    /// A backend as it is now.
    #[must_use]
    pub fn backend_view(&self, backend: usize) -> BackendView {
        let mut states = self.health.lock();
        states.now_ms = self.health.now_ms();
        states.backend_view(ProxyId::at(backend))
    }

    /// Sessions of a server, of a backend and in the queue of a server: what `http-check send-state` tells.
    #[must_use]
    pub fn sessions(&self, backend: usize, server: usize) -> (u32, u32, u32) {
        let backend = ProxyId::at(backend);
        let id = ServerId::at(backend, server);
        (
            self.count(Count::Server(id)),
            self.count(Count::Backend(backend)),
            self.servers.waiting(id),
        )
    }

    /// Changes the states of servers; everything that follows from it is done when it returns.
    fn change_states(&self, change: impl FnOnce(&mut health::States)) -> Vec<WorkerId> {
        let mut states = self.health.lock();
        states.now_ms = self.health.now_ms();
        change(&mut states);
        let mut woken = Vec::new();
        for transition in states.transitions() {
            self.settle(&mut states, transition, &mut woken);
        }
        woken
    }

    /// Writes what a server is for the data path. Gives whether it is in maintenance now and was not before.
    fn show(&self, states: &mut health::States, server: ServerId) -> bool {
        let health = states.of(server);
        let is_in = |flags| health.admin.has(flags);
        let mut flags = 0;
        if is_in(Admin::MAINTENANCE) {
            flags |= servers::MAINTENANCE;
        } else if health.state == OpState::Stopped {
            flags |= servers::DOWN;
        }
        if is_in(Admin::DRAIN) || health.state == OpState::Stopping {
            flags |= servers::DRAIN;
        }
        let enters = flags & servers::MAINTENANCE != 0 && !self.servers.is_in_maintenance(server);
        self.servers
            .set(server, flags, health.weight, states.share(server));
        enters
    }

    fn settle(
        &self,
        states: &mut health::States,
        transition: health::Transition,
        woken: &mut Vec<WorkerId>,
    ) {
        let server = transition.server;
        let enters_maintenance = self.show(states, server);
        let mut grants = Vec::new();
        self.queues.review(server.backend, self, &mut grants);
        let requeued = grants.len();
        if enters_maintenance {
            // Its idle connections are to be closed.
            self.tables.change().renew();
            woken.extend(self.workers());
        }
        self.post(grants, &mut |worker| woken.push(worker));
        let Some(herald) = self.health.herald() else {
            return;
        };
        let backend = server.backend.place();
        if states.of(server).state == OpState::Starting {
            herald.reschedule(backend, server.place());
        }
        for other in transition.ends_sessions_of {
            herald.end_sessions(backend, other.place());
        }
        if let Some(message) = transition.message {
            let mut text = message.text;
            if let Some(numbers) = message.numbers {
                let sessions = self.count(Count::Server(server));
                let waiting = self.servers.waiting(server);
                numbers.append(&mut text, sessions, requeued, waiting);
            }
            text.push('.');
            herald.tell(&News {
                backend,
                server: Some(server.place()),
                level: message.level,
                text,
                shown: None,
            });
        }
        if transition.backend_is_down {
            let of = states.backend(server.backend);
            let (kind, name) = (of.kind, &of.name);
            herald.tell(&News {
                backend,
                server: None,
                level: Level::Emergency,
                text: format!("{kind} {name} has no server available!"),
                shown: Some(format!("{kind} '{name}' has no server available!")),
            });
        }
    }

    /// What commands and statistics tell of a server's load and limits.
    #[must_use]
    pub fn server_load(&self, backend: usize, server: usize) -> ServerLoad {
        let server = ServerId::at(ProxyId::at(backend), server);
        let (in_maintenance, drains, is_down) = self.servers.flags(server);
        ServerLoad {
            in_maintenance,
            drains,
            is_down,
            weight: self.servers.weight(server),
            initial_weight: self.servers.initial_weight(server),
            maxconn: self.servers.maxconn(server),
            sessions: self.count(Count::Server(server)),
            connections: self.count(Count::Connections(server)),
            idle: self.servers.idle(server),
            queued: self.servers.waiting(server),
        }
    }

    /// Connections of each worker to a server that no stream uses, as far as each connection has one stream.
    #[must_use]
    pub fn idle_by_worker(&self, backend: usize, server: usize) -> Vec<u32> {
        let server = ServerId::at(ProxyId::at(backend), server);
        let connections = self.counts.each(Count::Connections(server));
        let streams = self.counts.each(Count::Server(server));
        let pairs = connections.zip(streams);
        pairs
            .map(|(connections, streams)| connections.saturating_sub(streams))
            .collect()
    }

    // ---- the tables of servers

    /// The servers of all backends, as they are now.
    #[must_use]
    pub fn server_tables(&self) -> Arc<ServerTables> {
        self.tables.now()
    }

    /// The version of the tables of now.
    #[inline(always)]
    pub(crate) fn server_tables_version(&self) -> u64 {
        self.tables.version()
    }

    /// Adds a server to a backend, in maintenance. `make` makes it, knowing the servers of now. Gives its place; none where the
    /// backend cannot have more servers.
    ///
    /// # Errors
    /// What `make` says.
    pub(crate) fn add_server<E>(
        &self,
        backend: ProxyId,
        make: impl FnOnce(&ServerTables) -> Result<ServerRecord, E>,
    ) -> Result<Option<ServerId>, E> {
        // Before the tables, as everywhere.
        let mut states = self.health.lock();
        let mut change = self.tables.change();
        let record = make(change.tables())?;
        let server = change.free_place(backend);
        if !self.servers.begin(server, &record) || !self.counts.add_server(server) {
            return Ok(None);
        }
        if !self.tallies.reach_server(self.counts.server_number(server)) {
            return Ok(None);
        }
        self.clear_server(server, (true, 0));
        states.now_ms = self.health.now_ms();
        states.add(server, &record);
        change.put(server, record);
        drop(change);
        self.servers.touch(backend);
        Ok(Some(server))
    }

    /// Deletes a server that nobody uses. Its place is used again once every worker has released it.
    ///
    /// Gives who has to be given a round.
    ///
    /// # Errors
    /// Why it cannot be deleted.
    pub fn delete_server(
        &self,
        backend: usize,
        server: usize,
    ) -> Result<Vec<WorkerId>, DeleteError> {
        let server = ServerId::at(ProxyId::at(backend), server);
        let mut states = self.health.lock();
        let mut change = self.tables.change();
        let is_there = change
            .tables()
            .find(server)
            .is_some_and(|record| !record.is_deleted);
        if !is_there {
            return Err(DeleteError::NotFound);
        }
        if change.tables().at(server).is_named {
            return Err(DeleteError::Named);
        }
        if !self.servers.is_in_maintenance(server) {
            return Err(DeleteError::NotInMaintenance);
        }
        if states.is_tracked(server) {
            return Err(DeleteError::InUse);
        }
        let is_unused = self.servers.is_unused(server)
            && self.count(Count::Server(server)) == 0
            && self.count(Count::Connections(server)) == 0;
        if !is_unused {
            return Err(DeleteError::InUse);
        }
        change.delete(server);
        states.remove(server);
        drop(change);
        self.servers.touch(server.backend);
        Ok(self.workers().collect())
    }

    /// Changes where a server is. Idle connections to the old address are closed as workers take notice. Gives the workers that have
    /// to be given a round.
    pub fn move_server(
        &self,
        backend: usize,
        server: usize,
        address: ServerAddress,
    ) -> Vec<WorkerId> {
        let server = ServerId::at(ProxyId::at(backend), server);
        let mut change = self.tables.change();
        let Some(record) = change.tables().find(server) else {
            return Vec::new();
        };
        let record = record.moved(address);
        change.put(server, record);
        drop(change);
        self.change_states(|states| {
            states.clear_admin(server, Admin::UNRESOLVED);
            states.touch(server);
        })
    }

    /// Gives a server in maintenance another name.
    ///
    /// # Errors
    /// Why it keeps the one it has.
    pub(crate) fn rename_server(&self, server: ServerId, name: &str) -> Result<(), RenameError> {
        let mut change = self.tables.change();
        let tables = change.tables();
        let record = tables.find(server).filter(|record| !record.is_deleted);
        let record = record.ok_or(RenameError::NotFound)?;
        if !self.servers.is_in_maintenance(server) {
            return Err(RenameError::NotInMaintenance);
        }
        if record.name == name {
            return Ok(());
        }
        let is_taken = tables
            .of(server.backend)
            .any(|(_, other)| !other.is_deleted && other.name == name);
        if is_taken {
            return Err(RenameError::NameTaken);
        }
        let record = record.renamed(name);
        change.put(server, record);
        drop(change);
        self.servers.touch(server.backend);
        Ok(())
    }

    /// Places of deleted servers that wait to be released.
    pub(crate) fn retired_servers(&self) -> Vec<ServerId> {
        self.tables.retired()
    }

    /// Nothing of a worker refers to the place of a deleted server.
    pub(crate) fn release_server(&self, worker: WorkerId, server: ServerId) {
        self.tables.release(worker, server);
    }

    /// Whether every count is back at zero: nothing leaked.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        self.counts.is_quiet()
            && self.servers.is_quiet()
            && self.queues.is_quiet()
            && self.mail.is_quiet()
            && self.admission.is_quiet()
            && self.server_conns.is_quiet()
    }
}

/// Why a server keeps its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RenameError {
    /// There is none.
    NotFound,
    /// It may get requests.
    NotInMaintenance,
    /// The configuration refers to it by its name.
    Referenced,
    /// Another server of its backend has that name.
    NameTaken,
}

/// The load of a server and its limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerLoad {
    /// It gets nothing.
    pub in_maintenance: bool,
    /// It gets only what is bound to it.
    pub drains: bool,
    /// It was found to be down.
    pub is_down: bool,
    /// Its weight, 0 to 256.
    pub weight: u32,
    /// The same as configured.
    pub initial_weight: u32,
    /// Requests at a time; 0 for any number.
    pub maxconn: u32,
    /// Streams.
    pub sessions: u32,
    /// Connections.
    pub connections: u32,
    /// Connections that are idle; counted where `pool-max-conn` limits them.
    pub idle: u32,
    /// Requests that wait for it.
    pub queued: u32,
}

/// Why a server is not deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeleteError {
    /// There is none.
    NotFound,
    /// Other lines of the configuration name it.
    Named,
    /// It may still get requests.
    NotInMaintenance,
    /// Requests or connections still use it.
    InUse,
}

impl queue::Slots for Shared {
    fn servers(&self) -> &Servers {
        &self.servers
    }

    fn is_usable(&self, server: ServerId) -> bool {
        self.servers.is_usable(server)
    }

    fn take(&self, server: ServerId) -> bool {
        self.take_slot(server)
    }
}
