//! State that the workers share: small, atomic or rarely locked, and named.
//!
//! `counts` and `rates` have one writer for each cell. `servers` has the state of servers and their
//! slots, `queue` the requests that wait for a slot, `budget` the remaining retries. `admission`
//! limits client connections, `room` server connections. `mail` has messages between workers,
//! `tallies` the counters of statistics, `health` the health of servers, `tables` the servers
//! themselves. Code that uses several of them is in `statistics`, `states` and `records`.

mod activity;
mod admission;
mod budget;
mod counts;
mod grow;
mod health;
mod killed;
mod latency;
mod mail;
mod names;
mod outlier;
mod process;
mod queue;
pub(crate) mod rates;
mod reach;
mod records;
mod refused;
mod releases;
mod room;
mod servers;
mod states;
mod statistics;
mod succession;
mod switches;
mod tables;
mod tallies;
mod tls;
mod turns;

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use config::model::Config;
use net::WorkerId;

use crate::ids::{BindId, ProxyId, ServerId};
pub(crate) use activity::{ByteReading, Bytes};
pub(crate) use counts::{Count, Pace};
pub use health::{
    Admin, BackendView, Cause, CheckOutcome, CheckPlan, CheckView, Checker, HealthLevel, Level,
    OpState, ServerEvent, ServerEventSink, ServerView,
};
pub(crate) use health::{HealthCounter, Seen};
pub use killed::Killed;
pub(crate) use latency::{Measured, Whose};
pub(crate) use mail::{Forwarded, IdleConnRequest, Received, WorkerMessage};
pub use names::{NameChange, NameResolver, NameTicket, NoAddress, Resolved, ServiceHost};
pub use process::{Boot, Taint};
pub(crate) use queue::{Arrival, Grant, Rank, StreamRef, Ticket};
pub use records::{DeleteError, RenameError};
pub(crate) use refused::{How, Message};
pub use refused::{Refused, Snapshot};
pub(crate) use releases::{Position, Releases};
pub use servers::ServerChange;
pub(crate) use servers::{BalancingWeights, Servers};
pub use states::ServerLoad;
pub use statistics::Activity;
pub(crate) use succession::Step;
pub use switches::{FrontendState, RateLimit};
pub(crate) use tables::is_address_missing;
pub use tables::{ServerRecord, ServerTables};
pub use tallies::{BackCount, BackSums, FrontCount, FrontSums, Times};
pub(crate) use tallies::{Class, FrontRow, QuicCount, QuicRow, QuicSums};
pub(crate) use tls::TlsConnections;
pub use tls::TlsPlace;
pub(crate) use turns::Turn;

/// The state that the workers of a configuration share.
#[derive(Debug)]
pub struct Shared {
    counts: counts::Counts,
    activities: Arc<activity::Activities>,
    process: Arc<process::ProcessFacts>,
    tallies: tallies::Tallies,
    pub(crate) servers: Servers,
    tables: tables::Tables,
    latencies: latency::Latencies,
    health: health::Health,
    queues: queue::Queues,
    mail: mail::Mail,
    name_resolver: OnceLock<Arc<dyn NameResolver>>,
    admission: admission::Admission,
    budgets: budget::Budgets,
    switches: switches::Switches,
    refused: refused::RefusedMessages,
    /// The number of streams since the start, of all workers together: the source of
    /// [`sample::Txn::id`].
    streams: AtomicU64,
    /// Bytes of all variables; kept only where `tune.vars` limits them for the process.
    var_bytes: AtomicUsize,
    server_conns: room::Room,
    tls_connections: Arc<TlsConnections>,
    /// The number of lost log messages; none if no log writer is set.
    dropped_logs: OnceLock<Arc<net::logs::Dropped>>,
    /// Messages that sections `log-forward` have received.
    received_logs: AtomicU64,
    /// A soft stop has begun.
    is_stopping: AtomicBool,
    /// The number of contained panics.
    panics: AtomicU64,
}

/// Wakes workers.
pub(crate) trait Wake {
    /// Wakes this worker, which has messages or changes to process.
    fn wake(&mut self, worker: WorkerId);
}

impl<F: FnMut(WorkerId)> Wake for F {
    fn wake(&mut self, worker: WorkerId) {
        self(worker);
    }
}

impl Shared {
    /// The initial state. `fullconn`: by proxy. `server_conns_max`: of the process. `generation`: the
    /// number of the configuration.
    pub(crate) fn new(
        config: &Config,
        fullconn: &[u32],
        server_conns_max: Option<u32>,
        workers: usize,
        generation: u32,
    ) -> Shared {
        let servers = config.proxies.iter().map(|proxy| proxy.servers.len());
        let shared = Shared {
            counts: counts::Counts::new(config, workers),
            activities: Arc::default(),
            process: Arc::default(),
            tallies: tallies::Tallies::new(config, workers),
            servers: Servers::new(config, fullconn),
            tables: tables::Tables::new(config, workers),
            latencies: latency::Latencies::new(config, workers),
            health: health::Health::new(config),
            queues: queue::Queues::new(servers),
            mail: mail::Mail::new(workers),
            name_resolver: OnceLock::new(),
            admission: admission::Admission::new(config),
            budgets: budget::Budgets::new(config),
            switches: switches::Switches::new(config, workers, generation),
            refused: refused::RefusedMessages::new(
                config.proxies.len(),
                config.global.tune.bufsize_bytes,
            ),
            streams: AtomicU64::new(0),
            var_bytes: AtomicUsize::new(0),
            server_conns: room::Room::new(server_conns_max),
            tls_connections: TlsConnections::new(config.global.tls.maxsslconn),
            dropped_logs: OnceLock::new(),
            received_logs: AtomicU64::new(0),
            is_stopping: AtomicBool::new(false),
            panics: AtomicU64::new(0),
        };
        shared.show_all();
        shared
    }

    // ---- counts

    /// Increments a count of `worker`.
    #[inline]
    pub(crate) fn add(&self, worker: WorkerId, what: Count) {
        self.counts.add(worker, what);
    }

    /// Decrements a count of `worker`.
    #[inline]
    pub(crate) fn sub(&self, worker: WorkerId, what: Count) {
        self.counts.sub(worker, what);
    }

    /// The count of `worker`.
    #[inline(always)]
    pub(crate) fn own_count(&self, worker: WorkerId, what: Count) -> u32 {
        self.counts.of(worker, what)
    }

    /// The sum over the workers.
    pub(crate) fn count(&self, what: Count) -> u32 {
        self.counts.sum(what)
    }

    /// Counts an event of a rate of `worker`.
    #[inline(always)]
    pub(crate) fn mark(&self, worker: WorkerId, what: Pace, now_ms: u64) {
        self.counts.mark(worker, what, now_ms);
    }

    /// Events of the last second, of all workers together.
    pub(crate) fn rate(&self, what: Pace, now_ms: u64) -> u32 {
        self.counts.rate(what, now_ms)
    }

    /// Events of the last second with a fraction.
    pub(crate) fn exact_rate(&self, what: Pace, now_ms: u64) -> f64 {
        self.counts.exact_rate(what, now_ms)
    }

    /// A block of stream numbers for one worker, so that a stream costs no shared write.
    pub(crate) fn stream_ids(&self, block: u64) -> u64 {
        self.streams.fetch_add(block, Relaxed)
    }

    /// Updates the total size of variables: some took `before` bytes and take `after` bytes now.
    pub(crate) fn var_bytes_change(&self, before: usize, after: usize) {
        self.var_bytes
            .fetch_add(after.wrapping_sub(before), Relaxed);
    }

    pub(crate) fn var_bytes(&self) -> usize {
        self.var_bytes.load(Relaxed)
    }

    /// Counts a contained panic.
    pub(crate) fn count_panic(&self) {
        self.panics.fetch_add(1, Relaxed);
        self.taint(Taint::Panic);
    }

    /// Panics that each ended one connection, since the start.
    #[must_use]
    pub fn panics(&self) -> u64 {
        self.panics.load(Relaxed)
    }

    /// A place for one more TLS connection; none if the limit is reached (`maxsslconn`).
    #[must_use]
    pub fn enter_tls(&self) -> Option<TlsPlace> {
        self.tls_connections.enter()
    }

    /// TLS connections of the process.
    pub(crate) fn tls_connections(&self) -> &Arc<TlsConnections> {
        &self.tls_connections
    }

    /// A soft stop begins.
    pub fn stop(&self) {
        self.is_stopping.store(true, Relaxed);
    }

    /// Whether a soft stop has begun.
    pub(crate) fn is_stopping(&self) -> bool {
        self.is_stopping.load(Relaxed)
    }

    /// Sets the counter of lost log messages. A second call has no effect.
    pub fn set_dropped_logs(&self, dropped: Arc<net::logs::Dropped>) {
        let _ = self.dropped_logs.set(dropped);
    }

    /// The number of lost log messages.
    pub(crate) fn dropped_logs(&self) -> u32 {
        let dropped = self.dropped_logs.get();
        dropped.map_or(0, |dropped| dropped.count() as u32)
    }

    // ---- facts of the process

    /// Sets what the workers' drivers report, by worker. A second call has no effect.
    pub fn set_activities(&self, activities: Vec<Arc<net::activity::Activity>>) {
        self.activities.set_drivers(activities);
    }

    /// What the workers' drivers report, by worker; empty until they start.
    #[must_use]
    pub fn activities(&self) -> &[Arc<net::activity::Activity>] {
        self.activities.drivers()
    }

    /// The share of time in which the workers used no processor, per cent.
    pub(crate) fn idle_percent(&self, now: net::Now) -> u32 {
        self.activities.idle_percent(now)
    }

    /// Bytes per second since the last reading of `what`, at least a second before.
    pub(crate) fn byte_rate(&self, what: Bytes, reading: ByteReading) -> u64 {
        self.activities.byte_rate(what, reading)
    }

    /// The process serves.
    pub fn set_boot(&self, boot: Boot) {
        self.process.set_boot(boot);
    }

    /// The start of the process.
    pub(crate) fn boot(&self) -> Boot {
        self.process.boot()
    }

    /// Counts a client connection that took the last place of the process.
    pub(crate) fn note_maxconn(&self) {
        if self.admission.is_process_full() {
            self.process.reached_maxconn();
        }
    }

    /// How often the limit of client connections was reached.
    pub(crate) fn maxconn_reached(&self) -> u32 {
        self.process.maxconn_reached()
    }

    /// Counts a command `debug dev` that needs the expert mode.
    pub fn count_debug_command(&self) {
        self.process.count_debug_command();
    }

    /// The number of such commands.
    pub(crate) fn debug_commands(&self) -> u32 {
        self.process.debug_commands()
    }

    /// Records a reason for unexpected behaviour.
    pub fn taint(&self, taint: Taint) {
        self.process.taint(taint);
    }

    /// The recorded reasons, as bits.
    pub(crate) fn taints(&self) -> u32 {
        self.process.taints()
    }

    /// Counts a message that a section `log-forward` has received.
    pub(crate) fn count_received_log(&self) {
        self.received_logs.fetch_add(1, Relaxed);
    }

    /// The number of messages that sections `log-forward` have received.
    pub(crate) fn received_logs(&self) -> u64 {
        self.received_logs.load(Relaxed)
    }

    // ---- client connections

    /// Reserves a place for one more client connection; false if a limit is reached.
    pub(crate) fn admit(&self, bind: BindId) -> bool {
        !self.switches.is_paused(bind.frontend) && self.admission.take(bind)
    }

    /// Releases such a place.
    pub(crate) fn dismiss(&self, bind: BindId) {
        self.admission.give(bind);
    }

    /// Whether a limit of client connections is reached, or a frontend is paused or closed.
    pub(crate) fn is_full(&self, bind: BindId) -> bool {
        self.switches.is_paused(bind.frontend) || self.admission.is_full(bind)
    }

    /// The current limit of client connections of the process; 0 for none.
    #[must_use]
    pub fn maxconn(&self) -> u32 {
        self.admission.process_max()
    }

    /// Changes that limit. Workers with paused listeners check it in their next round.
    pub fn set_maxconn(&self, max: u32) {
        self.admission.set_process_max(max);
    }

    /// The current limit of client connections of a frontend; 0 for none.
    #[must_use]
    pub fn frontend_maxconn(&self, frontend: usize) -> u32 {
        self.admission.frontend_max(ProxyId::at(frontend))
    }

    /// Changes that limit, as [`Shared::set_maxconn`].
    pub fn set_frontend_maxconn(&self, frontend: usize, max: u32) {
        self.admission.set_frontend_max(ProxyId::at(frontend), max);
    }

    /// Whether a frontend accepts connections.
    #[must_use]
    pub fn frontend_state(&self, frontend: usize) -> FrontendState {
        self.switches.frontend_state(ProxyId::at(frontend))
    }

    /// Changes whether a frontend accepts connections. Workers notice at the next connection; those
    /// with paused listeners in their next round.
    pub fn set_frontend_state(&self, frontend: usize, state: FrontendState) {
        self.switches
            .set_frontend_state(ProxyId::at(frontend), state);
    }

    /// The limit of a rate per second; none for no limit.
    #[must_use]
    pub fn rate_limit(&self, rate: RateLimit) -> Option<u32> {
        self.switches.rate_limit(rate)
    }

    /// Changes that limit; 0 for none.
    pub fn set_rate_limit(&self, rate: RateLimit, per_second: u32) {
        self.switches.set_rate_limit(rate, per_second);
    }

    // ---- backends

    /// Counts a request for its backend's retry budget.
    #[inline]
    pub(crate) fn feed_retries(&self, backend: ProxyId, now_ms: u64) {
        if let Some(budget) = self.budgets.of(backend) {
            budget.request(now_ms);
        }
    }

    /// Whether a backend may make one more retry (`retry-budget`).
    pub(crate) fn take_retry(&self, backend: ProxyId, now_ms: u64) -> bool {
        let budget = self.budgets.of(backend);
        budget.is_none_or(|budget| budget.retry(now_ms))
    }

    /// Whether rules may choose a backend.
    #[inline]
    pub(crate) fn is_published(&self, backend: ProxyId) -> bool {
        self.switches.is_published(backend)
    }

    /// Changes whether rules may choose a backend.
    pub fn publish_backend(&self, backend: usize, published: bool) {
        self.switches.publish(ProxyId::at(backend), published);
    }

    /// Whether rules may not choose the backend at this place.
    #[must_use]
    pub fn is_backend_unpublished(&self, backend: usize) -> bool {
        !self.is_published(ProxyId::at(backend))
    }

    /// Names a reserved place for a backend. It is then found by name and in statistics, but not
    /// chosen before it is published.
    pub(crate) fn add_backend(&self, backend: ProxyId, name: &str) {
        self.health.lock().name_backend(backend, name);
        self.switches.add(backend);
    }

    /// Deletes a backend: it is no longer found by name or in statistics. Its streams continue.
    pub fn delete_backend(&self, backend: usize) {
        self.switches.delete(ProxyId::at(backend));
    }

    /// Whether a backend was deleted, or a reload in place has removed the proxy. Streams that
    /// began before such a reload still use it.
    #[must_use]
    pub fn is_deleted(&self, proxy: usize) -> bool {
        let proxy = ProxyId::at(proxy);
        self.switches.is_deleted(proxy) || self.switches.is_removed(proxy)
    }

    /// Whether a command has deleted a backend.
    pub(crate) fn is_backend_deleted(&self, backend: ProxyId) -> bool {
        self.switches.is_deleted(backend)
    }

    /// A worker uses these earlier configurations.
    pub(crate) fn set_older(&self, worker: WorkerId, generations: Vec<u32>) {
        self.switches.set_older(worker, generations);
    }

    /// Whether nothing uses a place any longer, so that a new proxy may get it.
    #[must_use]
    pub fn is_place_free(&self, proxy: usize) -> bool {
        let proxy = ProxyId::at(proxy);
        self.switches.is_released(proxy)
            && self.count(Count::Frontend(proxy)) == 0
            && self.count(Count::Backend(proxy)) == 0
            && self.servers.of(proxy).all(|server| {
                self.servers.is_unused(server) && self.count(Count::Connections(server)) == 0
            })
    }

    /// Keeps a request that violates the protocol.
    pub(crate) fn note_refused_request(&self, message: &Message<'_>) {
        self.refused.note_request(message);
    }

    /// Keeps a response that violates the protocol.
    pub(crate) fn note_refused_response(&self, message: &Message<'_>) {
        self.refused.note_response(message);
    }

    /// The number of refused messages since the start.
    #[must_use]
    pub fn refused_messages(&self) -> u64 {
        self.refused.events()
    }

    /// The last refused request and the last refused response of a proxy.
    #[must_use]
    pub fn last_refused(&self, proxy: usize) -> [Option<Snapshot>; 2] {
        self.refused.last(proxy)
    }

    /// The number of client connections of the process.
    #[must_use]
    pub fn clients(&self) -> u32 {
        self.admission.process()
    }

    /// Notes whether a worker has paused listeners.
    pub(crate) fn set_rests(&self, worker: WorkerId, rests: bool) {
        self.mail.set_rests(worker, rests);
    }

    /// Another worker with paused listeners.
    pub(crate) fn next_resting(&self, after: WorkerId) -> Option<WorkerId> {
        self.mail.next_resting(after)
    }

    // ---- server connections

    /// Whether the process has reached its limit of server connections.
    pub(crate) fn is_full_of_server_conns(&self) -> bool {
        self.server_conns.is_full()
    }

    /// See [`Servers::is_full_of_conns`].
    pub(crate) fn is_full_of_conns(&self, server: ServerId) -> bool {
        self.servers.is_full_of_conns(server)
    }

    /// Counts one more server connection.
    pub(crate) fn add_server_conn(&self) {
        self.server_conns.take();
    }

    /// Counts one server connection less.
    pub(crate) fn sub_server_conn(&self) {
        self.server_conns.give();
    }

    /// Asks the other workers to close idle server connections.
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

    /// A counter that changes when a worker asks for room.
    #[inline]
    pub(crate) fn asked_for_room(&self) -> u64 {
        self.server_conns.asked()
    }

    // ---- slots and queues

    /// How many requests a server may have in progress now; 0 for no limit.
    #[inline]
    pub(crate) fn limit(&self, server: ServerId) -> u32 {
        let load = || self.count(Count::Backend(server.backend));
        self.servers.limit(server, load)
    }

    /// Takes one of a server's slots. Whether one was free.
    pub(crate) fn take_slot(&self, server: ServerId) -> bool {
        self.servers.take(server, self.limit(server))
    }

    /// Whether a server has a free slot.
    #[inline]
    pub(crate) fn has_slot(&self, server: ServerId) -> bool {
        self.servers.has_free(server, self.limit(server))
    }

    /// Releases a slot: it goes to the first queued request that this server can serve.
    pub(crate) fn give_slot(&self, server: ServerId, wake: &mut impl Wake) {
        self.servers.give(server);
        if self.queues.len(server.backend) > 0 {
            let mut grants = Vec::new();
            self.queues.serve(server, self, &mut grants);
            self.post(grants, wake);
        }
    }

    /// Serves the streams that wait for slots, whatever has changed.
    pub(crate) fn review_queues(&self, wake: &mut impl Wake) {
        let mut grants = Vec::new();
        for backend in (0..self.servers.backends()).map(ProxyId::at) {
            if self.queues.len(backend) > 0 {
                self.queues.review(backend, self, &mut grants);
            }
        }
        self.post(grants, wake);
    }

    /// Queues a stream for a slot. Where one became free meanwhile, a grant is already posted.
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

    /// Takes a stream out of the queue. A grant may already be posted; its receiver gives it back.
    pub(crate) fn stop_waiting(&self, ticket: Ticket) {
        self.queues.leave(ticket, &self.servers);
    }

    /// The number of queued requests of a backend.
    pub(crate) fn queued(&self, backend: ProxyId) -> u32 {
        self.queues.len(backend)
    }

    fn post(&self, grants: Vec<Grant>, wake: &mut impl Wake) {
        for grant in grants {
            self.mail.post(grant);
            wake.wake(grant.stream.worker);
        }
    }

    /// Whether a worker has messages.
    #[inline]
    pub(crate) fn has_mail(&self, worker: WorkerId) -> bool {
        self.mail.has_mail(worker)
    }

    /// Takes the messages of a worker.
    pub(crate) fn collect_mail(&self, worker: WorkerId) -> Received {
        self.mail.collect(worker)
    }

    /// Posts a letter about idle connections to another worker.
    pub(crate) fn post_letter(
        &self,
        worker: WorkerId,
        letter: WorkerMessage,
        wake: &mut impl Wake,
    ) {
        self.mail.post_letter(worker, letter);
        wake.wake(worker);
    }

    /// Posts a datagram to the worker that has its connection.
    pub(crate) fn post_datagram(
        &self,
        worker: WorkerId,
        datagram: Box<Forwarded>,
        wake: &mut impl Wake,
    ) {
        self.mail.post_datagram(worker, datagram);
        wake.wake(worker);
    }

    /// Another worker that has an idle connection to a server: the next one, so that all get their
    /// turn.
    pub(crate) fn worker_with_idle(&self, own: WorkerId, server: ServerId) -> Option<WorkerId> {
        let count = self.mail.workers();
        (own.0 + 1..own.0 + count)
            .map(|worker| WorkerId(worker % count))
            .find(|worker| self.counts.of(*worker, Count::Idle(server)) > 0)
    }

    /// Whether every count is zero again: nothing leaked.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        self.counts.is_quiet()
            && self.servers.is_quiet()
            && self.queues.is_quiet()
            && self.mail.is_quiet()
            && self.admission.is_quiet()
            && self.server_conns.is_quiet()
            && self.has_nothing_open()
    }
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
