//! Changes of the states of servers and their consequences.

use std::sync::Arc;

use config::model::{CheckResult, CheckStatus};
use net::WorkerId;

use super::health::{
    self, Admin, BackendView, Cause, CheckOutcome, CheckPlan, Checker, HealthCounter, Level,
    OpState, Place, Seen, ServerEvent, ServerEventSink, ServerView,
};
use super::killed::Killed;
use super::{Count, ServerChange, Shared, Wake, servers};
use crate::ids::{ProxyId, ServerId};

/// The load of a server and its limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerLoad {
    /// Its weight, 0 to 256.
    pub weight: u32,
    /// Its configured weight.
    pub initial_weight: u32,
    /// The most requests at a time; 0 for no limit.
    pub maxconn: u32,
    /// The number of streams.
    pub sessions: u32,
    /// The number of connections.
    pub connections: u32,
    /// The number of idle connections; counted where `pool-max-conn` limits them.
    pub idle: u32,
    /// The number of requests that wait for it.
    pub queued: u32,
}

impl Shared {
    /// Sets the receiver of changes of servers.
    pub fn set_event_sink(&self, event_sink: Arc<dyn ServerEventSink>) {
        self.health.set_event_sink(event_sink);
    }

    /// Writes the initial state of all servers for the data path.
    pub(super) fn show_all(&self) {
        let mut states = self.health.lock();
        for backend in (0..self.servers.backends()).map(ProxyId::at) {
            for server in self.servers.of(backend) {
                self.show(&mut states, server);
            }
        }
    }

    /// Changes a server's state; the server is given by the place of its backend and its own.
    /// Returns the workers to wake.
    pub fn change_server(
        &self,
        backend: usize,
        server: usize,
        change: ServerChange,
    ) -> Vec<WorkerId> {
        self.change_server_for(backend, server, change, Cause::Cli)
    }

    /// The same with the origin of the change, which messages include.
    pub(crate) fn change_server_for(
        &self,
        backend: usize,
        server: usize,
        change: ServerChange,
        cause: Cause,
    ) -> Vec<WorkerId> {
        let id = ServerId::at(ProxyId::at(backend), server);
        self.change_states(|states| {
            let mut admin = |flag, on| {
                if on {
                    states.set_admin(id, flag, "")
                } else {
                    states.clear_admin(id, flag)
                }
            };
            match change {
                ServerChange::Maintenance(on) => admin(Admin::FORCED_MAINTENANCE, on),
                ServerChange::Drain(on) => admin(Admin::FORCED_DRAIN, on),
                ServerChange::Unresolved(on) => admin(Admin::UNRESOLVED, on),
                ServerChange::Down(true) => {
                    states.set_health(id, Checker::Health, OpState::Stopped, cause);
                }
                ServerChange::Down(false) => {
                    states.set_health(id, Checker::Health, OpState::Running, cause);
                }
                ServerChange::Health(checker, to) => {
                    states.set_health(id, checker, to, cause);
                }
                ServerChange::Checks(checker, on) => {
                    states.enable_check(id, checker, on);
                    if let Some(event_sink) = self.health.event_sink() {
                        event_sink.reschedule(backend, server);
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

    /// Ends the streams of a server at a user's request.
    pub(crate) fn kill_sessions(&self, backend: usize, server: usize) {
        if let Some(event_sink) = self.health.event_sink() {
            event_sink.end_streams(Killed::Server(backend, server));
        }
    }

    /// Sets whether a check of a server is running. [`Shared::check_ended`] reports its result.
    pub fn set_check_running(
        &self,
        backend: usize,
        server: usize,
        checker: Checker,
        is_running: bool,
    ) {
        let id = ServerId::at(ProxyId::at(backend), server);
        let mut states = self.health.lock();
        states.of_mut(id).check_of(checker).is_running = is_running;
    }

    /// Adds the value that another process had counted to a counter of a server's health.
    pub(crate) fn preload_health(&self, server: ServerId, what: HealthCounter, value: u64) {
        self.health.lock().preload(server, what, value);
    }

    /// Resets the counters of a server's health.
    pub(crate) fn clear_server_health(&self, server: ServerId) {
        self.health.lock().clear_counters(server);
    }

    /// Resets the counters of a backend's health, without those of its servers.
    pub(crate) fn clear_backend_health(&self, backend: ProxyId) {
        let mut states = self.health.lock();
        states.backends[backend.place()].down_transitions = 0;
    }

    /// Applies the result of a check. Returns the workers to wake.
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
        if outcome.status == CheckStatus::Layer4Timeout
            && let Some(event_sink) = self.health.event_sink()
        {
            event_sink.resolve_again(backend, server);
        }
        self.change_states(|states| states.checked(id, checker, outcome))
    }

    /// Reports an outcome of a request: counted where the server is observed.
    #[cold]
    pub(crate) fn observe(&self, server: ServerId, seen: Seen, wake: &mut impl Wake) {
        if let Some(errors) = self.servers.observed(server, seen) {
            let woken = self.change_states(|states| states.observed(server, errors, seen));
            woken.into_iter().for_each(|worker| wake.wake(worker));
            if let Some(event_sink) = self.health.event_sink() {
                event_sink.reschedule(server.backend.place(), server.place());
            }
        }
    }

    /// Reports an outcome of a request and its latency in microseconds: counted where the server
    /// may be ejected.
    #[cold]
    pub(crate) fn judge(
        &self,
        server: ServerId,
        seen: Seen,
        latency_us: u64,
        now_ms: u64,
        wake: &mut impl Wake,
    ) {
        let Some(is_failure) = self.servers.is_failure(server, seen) else {
            return;
        };
        if self.servers.is_ejected(server) {
            // The request was sent before the ejection.
            return;
        }
        let woken = if self.servers.is_probed(server) {
            self.change_states(|states| states.probed(server, !is_failure, seen))
        } else {
            let latency_us = (!is_failure).then_some(latency_us);
            match self.servers.judge(server, latency_us, now_ms) {
                Some(verdict) => self.change_states(|states| states.judged(server, verdict, seen)),
                None => return,
            }
        };
        woken.into_iter().for_each(|worker| wake.wake(worker));
    }

    /// Updates the shares of servers that start slowly, and starts to probe servers whose ejection
    /// has ended. Returns the workers to wake, and the time until the next call, milliseconds; none
    /// if there is nothing to update.
    pub fn warm_up(&self) -> (Vec<WorkerId>, Option<u64>) {
        let mut next_ms = None;
        let woken = self.change_states(|states| {
            let (starting, next) = states.warm_up();
            starting
                .into_iter()
                .for_each(|server| states.warmed(server));
            let ejected = states.end_ejections();
            next_ms = next.into_iter().chain(ejected).min();
        });
        (woken, next_ms)
    }

    /// When the next check of a server is due, and whether it may run.
    #[must_use]
    pub fn check_plan(&self, backend: usize, server: usize, checker: Checker) -> CheckPlan {
        let id = ServerId::at(ProxyId::at(backend), server);
        self.health.lock().plan(id, checker)
    }

    /// A snapshot of a server.
    #[must_use]
    pub fn server_view(&self, backend: usize, server: usize) -> ServerView {
        let mut states = self.health.lock();
        states.now_ms = self.health.now_ms();
        states.server_view(ServerId::at(ProxyId::at(backend), server))
    }

    /// A snapshot of a backend.
    #[must_use]
    pub fn backend_view(&self, backend: usize) -> BackendView {
        let mut states = self.health.lock();
        states.now_ms = self.health.now_ms();
        states.backend_view(ProxyId::at(backend))
    }

    /// The sessions of a server, of a backend and in the queue of a server, for `http-check
    /// send-state`.
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

    /// Changes the states of servers; all consequences have been applied when it returns.
    pub(super) fn change_states(&self, change: impl FnOnce(&mut health::States)) -> Vec<WorkerId> {
        let mut states = self.health.lock();
        states.now_ms = self.health.now_ms();
        change(&mut states);
        let mut woken = Vec::new();
        for transition in states.transitions() {
            self.settle(&mut states, transition, &mut woken);
        }
        woken
    }

    /// Writes the state of a server for the data path. Returns whether the server enters
    /// maintenance.
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
        match states.place(server) {
            Place::In => {}
            Place::Out { .. } => flags |= servers::EJECTED,
            Place::Probed => {
                flags |= servers::PROBED;
                self.servers.allow_probe(server);
            }
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
            // Workers close its idle connections.
            self.tables.change().renew();
            woken.extend(self.workers());
        }
        self.post(grants, &mut |worker| woken.push(worker));
        let Some(event_sink) = self.health.event_sink() else {
            return;
        };
        let backend = server.backend.place();
        let is_out = matches!(states.place(server), Place::Out { .. });
        let has_steps = states.of(server).state == OpState::Starting || is_out;
        if has_steps && transition.reschedules {
            event_sink.reschedule(backend, server.place());
        }
        for other in transition.ends_sessions_of {
            event_sink.end_streams(Killed::ServerDown(backend, other.place()));
        }
        if let Some(message) = transition.message {
            let mut text = message.text;
            if let Some(numbers) = message.numbers {
                let sessions = self.count(Count::Server(server));
                let waiting = self.servers.waiting(server);
                numbers.append(&mut text, sessions, requeued, waiting);
            }
            text.push('.');
            event_sink.tell(&ServerEvent {
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
            event_sink.tell(&ServerEvent {
                backend,
                server: None,
                level: Level::Emergency,
                text: format!("{kind} {name} has no server available!"),
                shown: Some(format!("{kind} '{name}' has no server available!")),
            });
        }
    }

    /// A server's load and limits, for commands and statistics.
    #[must_use]
    pub fn server_load(&self, backend: usize, server: usize) -> ServerLoad {
        let server = ServerId::at(ProxyId::at(backend), server);
        ServerLoad {
            weight: self.servers.weight(server),
            initial_weight: self.servers.initial_weight(server),
            maxconn: self.servers.maxconn(server),
            sessions: self.count(Count::Server(server)),
            connections: self.count(Count::Connections(server)),
            idle: self.servers.idle(server),
            queued: self.servers.waiting(server),
        }
    }

    /// The number of connections of each worker to a server that no stream uses, assuming one
    /// stream per connection.
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
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
    use std::time::Duration;

    use config::model::{CheckStatus, Config, Proxy, ServerOptions};

    use super::*;
    use crate::shared::ServerEvent;
    use crate::shared::health::tests::checked_server;

    /// A clock, and how often a schedule was to be looked at.
    #[derive(Debug, Default)]
    struct Schedules {
        now_ms: AtomicU64,
        changed: AtomicUsize,
    }

    impl ServerEventSink for Schedules {
        fn now_ms(&self) -> u64 {
            self.now_ms.load(Relaxed)
        }
        fn tell(&self, _: &ServerEvent) {}
        fn end_streams(&self, _: Killed) {}
        fn servers_changed(&self) {}
        fn resolve_again(&self, _: usize, _: usize) {}
        fn reschedule(&self, _: usize, _: usize) {
            self.changed.fetch_add(1, Relaxed);
        }
    }

    /// Whoever waits for the next step is woken when a slow start begins, and not by each step:
    /// steps that wake their own loop leave no time for checks.
    #[test]
    fn the_steps_of_a_slow_start_change_no_schedule() {
        let slow = |options: &mut ServerOptions| {
            options.checks.slowstart = Duration::from_secs(10);
        };
        let backend = Proxy {
            is_backend: true,
            servers: vec![checked_server("s", slow)],
            ..Proxy::default()
        };
        let config = Config {
            proxies: vec![backend],
            ..Config::default()
        };
        let shared = Shared::new(&config, &[0], None, 1, 0);
        let schedules = Arc::new(Schedules::default());
        shared.set_event_sink(schedules.clone());
        let passes = [CheckStatus::Layer4Ok; 2];
        for status in [CheckStatus::Layer4Error; 4].into_iter().chain(passes) {
            let outcome = CheckOutcome {
                status,
                duration: Some(Duration::ZERO),
                ..CheckOutcome::default()
            };
            shared.check_ended(0, 0, Checker::Health, outcome);
        }
        let began = schedules.changed.load(Relaxed);
        assert!(began > 0, "a slow start begins");
        for _ in 0..5 {
            let (_, next_ms) = shared.warm_up();
            let next_ms = next_ms.expect("a next step");
            assert!(next_ms > 0);
            schedules.now_ms.fetch_add(next_ms, Relaxed);
        }
        assert_eq!(schedules.changed.load(Relaxed), began);
    }
}
