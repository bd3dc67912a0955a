//! The states of servers, as in HAProxy: checks, agents, commands and tracked servers change them.
//!
//! Operational: `Stopped ⇄ Starting → Running ⇄ Stopping`. Administrative flags apply on top:
//! maintenance stops a server, draining keeps new sessions from it. Each is forced, inherited from
//! the tracked server, or comes from the configuration.

use config::model::{Config, InitState, Observe, OnError, Proxy, Server};

use super::Level;
use super::check::{CheckOutcome, CheckState, Checker};
use super::ejection::{Ejection, Place};
use super::message::{self, Numbers};
use crate::ids::{ProxyId, ServerId};
use config::model::{CheckResult, CheckStatus};

/// The operational state of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OpState {
    /// It is down.
    #[default]
    Stopped = 0,
    /// It came up, and its share of the load is growing (`slowstart`).
    Starting,
    /// It is up.
    Running,
    /// It is up and accepts no new sessions (`disable-on-404`).
    Stopping,
}

/// Reasons why a server gets no sessions, or no new ones, whatever its checks report; the numbers
/// are HAProxy's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Admin(pub u8);

impl Admin {
    /// Forced into maintenance.
    pub const FORCED_MAINTENANCE: Admin = Admin(0x01);
    /// In maintenance because the server that it tracks is.
    pub const INHERITED_MAINTENANCE: Admin = Admin(0x02);
    /// `disabled` in the configuration.
    pub const CONFIGURED_MAINTENANCE: Admin = Admin(0x04);
    /// Forced to drain.
    pub const FORCED_DRAIN: Admin = Admin(0x08);
    /// Drains because the server that it tracks does.
    pub const INHERITED_DRAIN: Admin = Admin(0x10);
    /// In maintenance because its name has no address.
    pub const UNRESOLVED: Admin = Admin(0x20);
    /// Its name is not the one of the configuration.
    pub const RENAMED: Admin = Admin(0x40);
    /// All kinds of maintenance except the one of the configuration, which only records it.
    pub const MAINTENANCE: Admin = Admin(0x23);
    /// All kinds of draining.
    pub const DRAIN: Admin = Admin(0x18);

    /// Whether any of these flags is set.
    #[must_use]
    pub const fn has(self, flags: Admin) -> bool {
        self.0 & flags.0 != 0
    }

    const fn with(self, flags: Admin) -> Admin {
        Admin(self.0 | flags.0)
    }

    const fn without(self, flags: Admin) -> Admin {
        Admin(self.0 & !flags.0)
    }
}

/// Why the operational state of a server changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Not part of the message.
    Untold,
    /// A check; the message includes its result.
    Check(Checker),
    /// A command.
    Cli,
    /// The statistics page.
    Web,
    /// A file of states.
    StateFile,
}

/// An outcome of traffic with an observed server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    Connected,
    NotConnected,
    GoodResponse,
    WrongResponse,
    InvalidHead,
    InvalidResponse,
    ReadError,
    ReadTimeout,
    Closed,
}

impl Seen {
    pub fn text(self) -> &'static str {
        match self {
            Seen::Connected => "L4 successful connection",
            Seen::NotConnected => "L4 unsuccessful connection",
            Seen::GoodResponse => "Correct http response",
            Seen::WrongResponse => "Wrong http response",
            Seen::InvalidHead => "Invalid http response (headers)",
            Seen::InvalidResponse => "Invalid http response",
            Seen::ReadError => "Read error (http)",
            Seen::ReadTimeout => "Read timeout (http)",
            Seen::Closed => "Close from server (http)",
        }
    }

    /// Whether it is an error for this `observe` mode; none where it does not count.
    pub fn is_error(self, observe: config::model::Observe) -> Option<bool> {
        use config::model::Observe::{Layer4, Layer7, Nothing};
        match (self, observe) {
            (_, Nothing) => None,
            (Seen::NotConnected, _) => Some(true),
            (Seen::Connected, Layer4) => Some(false),
            (Seen::Connected, Layer7) | (_, Layer4) => None,
            (Seen::GoodResponse, Layer7) => Some(false),
            (_, Layer7) => Some(true),
        }
    }
}

/// Counters of a server's health since the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HealthCounter {
    /// Checks that failed while it was up.
    FailedChecks,
    /// Changes from up to down.
    DownTransitions,
    /// How often `observe` found too many errors.
    FailedObservations,
}

/// A change that has happened to a server, with its consequences.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Transition {
    pub server: ServerId,
    /// The message, without a full stop; none if there is no message.
    pub message: Option<Message>,
    /// The servers whose streams end.
    pub ends_sessions_of: Vec<ServerId>,
    /// The backend has lost its last server.
    pub backend_is_down: bool,
    /// The next check, or the next step of a slow start, may be due earlier.
    pub reschedules: bool,
}

/// A message to which numbers of the traffic may be added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub level: Level,
    pub text: String,
    pub numbers: Option<Numbers>,
}

/// A server.
#[derive(Debug)]
pub(crate) struct ServerHealth {
    pub name: String,
    /// The name of its host, where that is resolved.
    pub host: Option<String>,
    pub is_backup: bool,
    pub state: OpState,
    pub admin: Admin,
    /// The weight that the user has set.
    pub weight: u32,
    pub check: CheckState,
    pub agent: CheckState,
    pub track: Option<ServerId>,
    trackers: Vec<ServerId>,
    pub slow_start_ms: u64,
    init_state: InitState,
    on_error: OnError,
    ends_sessions_when_down: bool,
    ends_backup_sessions_when_up: bool,
    /// `observe`
    pub is_observed: bool,
    /// `outlier-ejection`
    pub ejection: Option<Ejection>,
    /// The monotonic time of the last change, milliseconds.
    pub last_change_ms: u64,
    pub down_ms: u64,
    pub down_transitions: u64,
    pub failed_checks: u64,
    pub failed_observations: u64,
}

impl ServerHealth {
    fn new(line: &Server) -> ServerHealth {
        let checks = &line.checks;
        let mut check = CheckState::new(checks.rise, checks.fall, checks.inter);
        check.fastinter = checks.fastinter;
        check.downinter = checks.downinter;
        let mut agent = CheckState::new(1, 1, checks.agent.inter);
        for (state, is_there) in [
            (&mut check, checks.enabled),
            (&mut agent, checks.agent.enabled),
        ] {
            state.is_configured = is_there;
            state.is_enabled = is_there;
            if is_there {
                state.status = CheckStatus::Initializing;
            }
        }
        let mut server = ServerHealth {
            name: line.name.clone(),
            host: line.fqdn.clone(),
            is_backup: line.backup,
            state: OpState::Running,
            admin: Admin::default(),
            weight: line.weight,
            check,
            agent,
            track: None,
            trackers: Vec::new(),
            slow_start_ms: checks.slowstart.as_millis() as u64,
            init_state: checks.init_state,
            on_error: checks.on_error,
            ends_sessions_when_down: checks.ends_sessions_when_down,
            ends_backup_sessions_when_up: checks.ends_backup_sessions_when_up,
            is_observed: checks.observe != Observe::Nothing,
            ejection: checks.ejection.map(Ejection::new),
            last_change_ms: 0,
            down_ms: 0,
            down_transitions: 0,
            failed_checks: 0,
            failed_observations: 0,
        };
        if line.disabled {
            server.admin = Admin::CONFIGURED_MAINTENANCE.with(Admin::FORCED_MAINTENANCE);
        }
        if line.unresolved {
            server.admin = server.admin.with(Admin::UNRESOLVED);
        }
        if server.admin.has(Admin::MAINTENANCE) {
            server.state = OpState::Stopped;
            // As in HAProxy, nothing is paused where there is nothing to pause.
            server.check.is_paused = line.disabled || server.check.is_configured;
            server.check.health = 0;
        } else {
            server.set_initial()
        }
        server
    }

    /// `init-state`
    fn set_initial(&mut self) {
        let check = &mut self.check;
        let (state, health) = match self.init_state {
            InitState::Unset => return,
            InitState::FullyUp => (OpState::Running, check.best()),
            InitState::Up => (OpState::Running, check.rise),
            InitState::Down => (OpState::Stopped, check.rise - 1),
            InitState::FullyDown => (OpState::Stopped, 0),
        };
        self.state = state;
        check.health = health;
    }

    /// Whether it accepts new sessions.
    pub fn is_usable(&self) -> bool {
        !matches!(self.state, OpState::Stopped | OpState::Stopping)
            && !self.admin.has(Admin::MAINTENANCE.with(Admin::DRAIN))
            && self.weight > 0
            && !self.is_ejected()
    }

    /// Whether it is ejected by `outlier-ejection`, or being probed.
    pub fn is_ejected(&self) -> bool {
        let ejection = self.ejection.as_ref();
        ejection.is_some_and(|ejection| ejection.place != Place::In)
    }

    pub fn check_of(&mut self, checker: Checker) -> &mut CheckState {
        match checker {
            Checker::Health => &mut self.check,
            Checker::Agent => &mut self.agent,
        }
    }
}

/// The servers of a backend.
#[derive(Debug)]
pub(crate) struct BackendHealth {
    pub name: String,
    /// Its name in messages: `backend` or `proxy`.
    pub kind: &'static str,
    logs_checks: bool,
    /// See [`Proxy::has_dynamic_weights`].
    pub has_dynamic_weights: bool,
    pub servers: Vec<ServerHealth>,
    pub last_change_ms: u64,
    pub down_ms: u64,
    pub down_transitions: u64,
}

impl BackendHealth {
    fn new(proxy: &Proxy) -> BackendHealth {
        BackendHealth {
            name: proxy.name.to_string(),
            kind: if proxy.is_frontend {
                "proxy"
            } else {
                "backend"
            },
            logs_checks: proxy.options.log_health_checks,
            has_dynamic_weights: proxy.has_dynamic_weights(),
            servers: proxy
                .servers
                .iter()
                .map(|line| ServerHealth::new(line))
                .collect(),
            last_change_ms: 0,
            down_ms: 0,
            down_transitions: 0,
        }
    }

    /// The numbers of usable servers that are not backups, and of usable backups.
    pub fn usable(&self) -> (u32, u32) {
        let count = |is_backup: bool| {
            let is = |server: &&ServerHealth| server.is_backup == is_backup && server.is_usable();
            self.servers.iter().filter(is).count() as u32
        };
        (count(false), count(true))
    }

    fn has_usable(&self) -> bool {
        self.usable() != (0, 0)
    }
}

/// All servers of a configuration.
#[derive(Debug)]
pub(crate) struct States {
    pub backends: Vec<BackendHealth>,
    pub now_ms: u64,
    out: Vec<Transition>,
}

impl States {
    /// As configured.
    pub fn new(config: &Config) -> States {
        let mut states = States {
            backends: config.proxies.iter().map(BackendHealth::new).collect(),
            now_ms: 0,
            out: Vec::new(),
        };
        let ids: Vec<ServerId> = states.ids().collect();
        for id in &ids {
            let line = &config.proxies[id.backend.place()].servers[id.place()];
            if let Some((backend, place)) = line.checks.tracked {
                states.track(*id, ServerId::at(ProxyId::at(backend), place));
            }
        }
        for id in ids {
            let server = states.of(id);
            if server.track.is_none() {
                states.inherit(id);
            }
        }
        // The initial changes are not reported.
        states.out.clear();
        states
    }

    /// The process starts, or goes on with these states: sets the time of those that are new.
    pub fn begin_at(&mut self, now_ms: u64) {
        self.now_ms = now_ms;
        let set = |last_change_ms: &mut u64| {
            if *last_change_ms == 0 {
                *last_change_ms = now_ms;
            }
        };
        for backend in &mut self.backends {
            set(&mut backend.last_change_ms);
            let servers = backend.servers.iter_mut();
            servers.for_each(|server| set(&mut server.last_change_ms));
        }
    }

    /// Adds a server at a place, in maintenance.
    pub fn add(&mut self, id: ServerId, line: &Server) {
        let mut server = ServerHealth::new(line);
        server.admin = Admin::FORCED_MAINTENANCE;
        server.state = OpState::Stopped;
        // Commands enable its checks.
        server.check.is_enabled = false;
        server.agent.is_enabled = false;
        server.last_change_ms = self.now_ms;
        let servers = &mut self.backends[id.backend.place()].servers;
        match servers.get_mut(id.place()) {
            Some(place) => *place = server,
            None => servers.push(server),
        }
        if let Some((backend, place)) = line.checks.tracked {
            let target = ServerId::at(ProxyId::at(backend), place);
            self.track(id, target);
        }
    }

    /// Lets a server track another one. Trackers are told of changes in HAProxy's order: the last
    /// one first.
    fn track(&mut self, id: ServerId, target: ServerId) {
        self.of_mut(id).track = Some(target);
        self.of_mut(target).trackers.insert(0, id);
    }

    /// Removes a server: it no longer tracks another one.
    pub fn remove(&mut self, id: ServerId) {
        if let Some(target) = self.of_mut(id).track.take() {
            self.of_mut(target)
                .trackers
                .retain(|tracker| *tracker != id);
        }
        let server = self.of_mut(id);
        server.check.is_enabled = false;
        server.agent.is_enabled = false;
    }

    /// Sets the name of a backend.
    pub fn name_backend(&mut self, backend: ProxyId, name: &str) {
        name.clone_into(&mut self.backends[backend.place()].name);
    }

    /// Renames a server.
    pub fn rename(&mut self, id: ServerId, name: &str) {
        name.clone_into(&mut self.of_mut(id).name);
    }

    /// Whether other servers track this one.
    pub fn is_tracked(&self, id: ServerId) -> bool {
        !self.of(id).trackers.is_empty()
    }

    fn ids(&self) -> impl Iterator<Item = ServerId> + use<> {
        let counts: Vec<usize> = self.backends.iter().map(|of| of.servers.len()).collect();
        counts.into_iter().enumerate().flat_map(|(backend, count)| {
            (0..count).map(move |place| ServerId::at(ProxyId::at(backend), place))
        })
    }

    /// Passes the maintenance, draining and state of a server to its trackers, at the start.
    fn inherit(&mut self, id: ServerId) {
        let (admin, state) = (self.of(id).admin, self.of(id).state);
        for tracker in self.of(id).trackers.clone() {
            if admin.has(Admin::MAINTENANCE) {
                self.set_admin(tracker, Admin::INHERITED_MAINTENANCE, "");
            }
            if admin.has(Admin::DRAIN) {
                self.set_admin(tracker, Admin::INHERITED_DRAIN, "");
            }
            if state == OpState::Stopped && !admin.has(Admin::MAINTENANCE) {
                self.of_mut(tracker).state = OpState::Stopped;
            }
            self.inherit(tracker);
        }
    }

    pub fn backend(&self, id: ProxyId) -> &BackendHealth {
        &self.backends[id.place()]
    }

    pub fn of(&self, id: ServerId) -> &ServerHealth {
        &self.backends[id.backend.place()].servers[id.place()]
    }

    pub fn of_mut(&mut self, id: ServerId) -> &mut ServerHealth {
        &mut self.backends[id.backend.place()].servers[id.place()]
    }

    /// Takes the changes since the last call, in order.
    pub fn transitions(&mut self) -> Vec<Transition> {
        std::mem::take(&mut self.out)
    }

    // ---- counters

    /// Adds the value that another process had counted to a counter.
    pub fn preload(&mut self, id: ServerId, what: HealthCounter, value: u64) {
        let server = self.of_mut(id);
        let counter = match what {
            HealthCounter::FailedChecks => &mut server.failed_checks,
            HealthCounter::DownTransitions => &mut server.down_transitions,
            HealthCounter::FailedObservations => &mut server.failed_observations,
        };
        *counter = counter.wrapping_add(value);
    }

    /// Resets the counters of a server. Its down time is not one of them, as in HAProxy.
    pub fn clear_counters(&mut self, id: ServerId) {
        let server = self.of_mut(id);
        server.failed_checks = 0;
        server.down_transitions = 0;
        server.failed_observations = 0;
        if let Some(ejection) = &mut server.ejection {
            ejection.count = 0;
        }
    }

    // ---- operational state

    /// The server is down.
    pub fn stop(&mut self, id: ServerId, cause: Cause) {
        let server = self.of(id);
        if server.admin.has(Admin::MAINTENANCE) || server.state == OpState::Stopped {
            return;
        }
        self.enter(id, OpState::Stopped, cause);
        for tracker in self.of(id).trackers.clone() {
            self.stop(tracker, Cause::Untold);
        }
    }

    /// The server is up.
    pub fn start(&mut self, id: ServerId, cause: Cause) {
        let server = self.of(id);
        let is_up = matches!(server.state, OpState::Starting | OpState::Running);
        if server.admin.has(Admin::MAINTENANCE) || is_up {
            return;
        }
        let state = match server.slow_start_ms {
            0 => OpState::Running,
            _ => OpState::Starting,
        };
        self.enter(id, state, cause);
        for tracker in self.of(id).trackers.clone() {
            self.start(tracker, Cause::Untold);
        }
    }

    /// The server is up and accepts no new sessions.
    pub fn retire(&mut self, id: ServerId, cause: Cause) {
        let server = self.of(id);
        if server.admin.has(Admin::MAINTENANCE) || server.state == OpState::Stopping {
            return;
        }
        self.enter(id, OpState::Stopping, cause);
        for tracker in self.of(id).trackers.clone() {
            self.retire(tracker, Cause::Untold);
        }
    }

    fn enter(&mut self, id: ServerId, next: OpState, cause: Cause) {
        let server = self.of(id);
        let was_stopping = server.state == OpState::Stopping || server.admin.has(Admin::DRAIN);
        self.moving(id, |states| {
            states.of_mut(id).state = next;
            let level = match (next, was_stopping) {
                (OpState::Stopped, false) => Level::Alert,
                _ => Level::Notice,
            };
            let what = match next {
                OpState::Stopped => "is DOWN",
                OpState::Stopping => "is stopping",
                OpState::Starting | OpState::Running => "is UP",
            };
            let mut text = format!("{} {what}", message::title(states, id));
            message::append_cause(&mut text, states.of(id), cause);
            message::append_via(&mut text, states, id);
            Some((level, text, true))
        });
    }

    /// Runs a change of one server and records its message, its time and its consequences.
    pub(super) fn moving(
        &mut self,
        id: ServerId,
        change: impl FnOnce(&mut States) -> Option<(Level, String, bool)>,
    ) {
        let before = self.of(id).state;
        let had_usable = self.backend(id.backend).has_usable();
        let told = change(self);
        let now_ms = self.now_ms;
        let server = self.of_mut(id);
        let after = server.state;
        if before != after {
            if before == OpState::Stopped {
                server.down_ms += now_ms.saturating_sub(server.last_change_ms);
            } else if after == OpState::Stopped {
                server.down_transitions += 1;
            }
            server.last_change_ms = now_ms;
        }
        let (went_down, came_up) = (
            before != OpState::Stopped && after == OpState::Stopped,
            before != after && matches!(after, OpState::Starting | OpState::Running),
        );
        let mut ends_sessions_of = Vec::new();
        if went_down && server.ends_sessions_when_down {
            ends_sessions_of.push(id);
        }
        let ends_backups = came_up
            && server.ends_backup_sessions_when_up
            && !server.is_backup
            && server.weight > 0;
        let backend = &mut self.backends[id.backend.place()];
        if ends_backups {
            let places = 0..backend.servers.len();
            let backups = places.filter(|place| backend.servers[*place].is_backup);
            ends_sessions_of.extend(backups.map(|place| ServerId::at(id.backend, place)));
        }
        let has_usable = backend.has_usable();
        if had_usable && !has_usable {
            backend.last_change_ms = now_ms;
            backend.down_transitions += 1;
        } else if !had_usable && has_usable {
            backend.down_ms += now_ms.saturating_sub(backend.last_change_ms);
            backend.last_change_ms = now_ms;
        }
        let numbers = Numbers::new(backend, after == OpState::Stopped);
        self.out.push(Transition {
            server: id,
            message: told.map(|(level, text, with_numbers)| Message {
                level,
                text,
                numbers: with_numbers.then_some(numbers),
            }),
            ends_sessions_of,
            backend_is_down: had_usable && !has_usable,
            reschedules: true,
        });
    }

    /// A server that starts slowly gets its full share.
    pub fn full_speed(&mut self, id: ServerId) {
        if self.of(id).state == OpState::Starting {
            self.enter(id, OpState::Running, Cause::Untold);
        }
    }

    // ---- administrative state

    /// Sets one flag; `why` is part of the message.
    pub fn set_admin(&mut self, id: ServerId, flag: Admin, why: &str) {
        let before = self.of(id).admin;
        if before.has(flag) {
            return;
        }
        self.change_admin(id, before.with(flag), why);
        let others = self.of(id).admin.without(flag);
        for (kind, inherited) in KINDS {
            if kind.has(flag) && !others.has(kind) {
                for tracker in self.of(id).trackers.clone() {
                    self.set_admin(tracker, inherited, why);
                }
            }
        }
    }

    /// Clears one flag.
    pub fn clear_admin(&mut self, id: ServerId, flag: Admin) {
        let before = self.of(id).admin;
        if !before.has(flag) {
            return;
        }
        self.change_admin(id, before.without(flag), "");
        let after = self.of(id).admin;
        for (kind, inherited) in KINDS {
            if kind.has(flag) && !after.has(kind) {
                for tracker in self.of(id).trackers.clone() {
                    self.clear_admin(tracker, inherited);
                }
            }
        }
    }

    fn change_admin(&mut self, id: ServerId, next: Admin, why: &str) {
        let server = self.of(id);
        let before = server.admin;
        let maintenance = Admin::MAINTENANCE;
        let was_stopping = server.state == OpState::Stopping || before.has(Admin::DRAIN);
        match (before.has(maintenance), next.has(maintenance)) {
            (false, true) => self.enter_maintenance(id, next, why, was_stopping),
            (true, false) => self.leave_maintenance(id, next),
            (true, true) => {
                let text = message::remains_in_maintenance(self, id, before, next);
                self.moving(id, |states| {
                    states.of_mut(id).admin = next;
                    text.map(|text| (Level::Notice, text, false))
                });
            }
            (false, false) => self.change_drain(id, next, why),
        }
    }

    fn enter_maintenance(&mut self, id: ServerId, next: Admin, why: &str, was_stopping: bool) {
        self.moving(id, |states| {
            let was_down = states.of(id).state == OpState::Stopped;
            let server = states.of_mut(id);
            server.admin = next;
            server.state = OpState::Stopped;
            if let Some(ejection) = &mut server.ejection {
                // When maintenance ends, the server returns without a probe.
                ejection.place = Place::In;
            }
            if server.check.is_enabled {
                server.check.is_paused = true;
            }
            server.check.health = 0;
            let (what, level) = match (was_down, was_stopping) {
                (true, _) => ("was DOWN and now enters maintenance", Level::Notice),
                (false, true) => ("is going DOWN for maintenance", Level::Notice),
                (false, false) => ("is going DOWN for maintenance", Level::Alert),
            };
            let mut text = format!("{} {what}", message::title(states, id));
            message::append_why(&mut text, why);
            if !next.has(Admin::FORCED_MAINTENANCE) {
                message::append_via(&mut text, states, id);
            }
            Some((level, text, !was_down))
        });
    }

    fn leave_maintenance(&mut self, id: ServerId, next: Admin) {
        let before = self.of(id).admin;
        let track = self.of(id).track.map(|target| self.of(target).state);
        let is_unset = self.of(id).init_state == InitState::Unset;
        self.moving(id, |states| {
            let server = states.of_mut(id);
            server.admin = next;
            server.check.is_paused = false;
            if server.check.is_enabled {
                // The server is up at once and checked at once.
                server.check.health = server.check.rise;
            }
            if !next.has(Admin::CONFIGURED_MAINTENANCE.with(Admin::FORCED_MAINTENANCE)) {
                server.set_initial();
            }
            let permitted = track != Some(OpState::Stopped)
                && server.agent.permits_up()
                && server.check.permits_up();
            if is_unset && permitted {
                server.state = match (track, server.slow_start_ms) {
                    (Some(OpState::Stopping), _) => OpState::Stopping,
                    (_, 0) => OpState::Running,
                    _ => OpState::Starting,
                };
            }
            let text = message::leaves_maintenance(states, id, before, next);
            Some((Level::Notice, text, false))
        });
        // Another reason for draining may remain.
        if next.has(Admin::DRAIN) && !before.has(Admin::DRAIN) {
            self.change_drain(id, next, "");
        }
    }

    fn change_drain(&mut self, id: ServerId, next: Admin, why: &str) {
        let before = self.of(id).admin;
        self.moving(id, |states| {
            states.of_mut(id).admin = next;
            let title = message::title(states, id);
            match (before.has(Admin::DRAIN), next.has(Admin::DRAIN)) {
                (false, true) => {
                    let mut text = format!("{title} enters drain state");
                    message::append_why(&mut text, why);
                    if !next.has(Admin::FORCED_DRAIN) {
                        message::append_via(&mut text, states, id);
                    }
                    Some((Level::Notice, text, true))
                }
                (was_draining, is_draining) => {
                    let text =
                        message::drain_goes_on(states, id, before, was_draining && !is_draining);
                    (was_draining).then_some((Level::Notice, text, false))
                }
            }
        });
    }

    // ---- checks

    /// Applies the result of a check.
    pub fn checked(&mut self, id: ServerId, checker: Checker, outcome: CheckOutcome) {
        let logs_checks = self.backend(id.backend).logs_checks;
        let server = self.of_mut(id);
        let health_before = server.check_of(checker).health;
        let said = outcome.said.is_some();
        let is_news = server.check_of(checker).take(checker, outcome);
        let check = server.check_of(checker);
        let result = check.result;
        if result == CheckResult::Failed && (check.health < health_before && !said) {
            server.failed_checks += 1;
        }
        if is_news && logs_checks {
            let text = message::check(self, id, checker);
            self.out.push(Transition {
                server: id,
                message: Some(Message {
                    level: Level::Notice,
                    text,
                    numbers: None,
                }),
                ends_sessions_of: Vec::new(),
                backend_is_down: false,
                reschedules: false,
            });
        }
        match result {
            CheckResult::Failed => self.failed(id, checker),
            CheckResult::PassedConditionally
                if checker == Checker::Health && self.may_be_up(id) =>
            {
                self.retire(id, self.cause(id, checker));
            }
            CheckResult::Passed => {
                let is_retired = self.of(id).state == OpState::Stopping;
                // Only health checks end the `Stopping` state.
                if self.may_be_up(id) && !(checker == Checker::Agent && is_retired) {
                    self.start(id, self.cause(id, checker));
                }
            }
            _ => {}
        }
        self.of_mut(id).check_of(checker).is_fast = false;
    }

    /// The cause in the message of a change. It is left out where every check result is logged.
    fn cause(&self, id: ServerId, checker: Checker) -> Cause {
        let is_told = self.backend(id.backend).logs_checks || self.of(id).track.is_some();
        if is_told {
            Cause::Untold
        } else {
            Cause::Check(checker)
        }
    }

    fn may_be_up(&self, id: ServerId) -> bool {
        let server = self.of(id);
        let tracked_is_down = server
            .track
            .is_some_and(|target| self.of(target).state == OpState::Stopped);
        !server.admin.has(Admin::MAINTENANCE)
            && !tracked_is_down
            && server.check.permits_up()
            && server.agent.permits_up()
    }

    fn failed(&mut self, id: ServerId, checker: Checker) {
        let check = self.of_mut(id).check_of(checker);
        let is_said = check.status == CheckStatus::Layer7WrongStatus;
        if check.health > 0 || (checker == Checker::Agent && !is_said) {
            return;
        }
        self.stop(id, self.cause(id, checker));
    }

    /// Traffic with a server has failed `errors` times in a row and has reached the limit.
    pub fn observed(&mut self, id: ServerId, errors: u32, last: Seen) {
        let text = format!(
            "Detected {errors} consecutive errors, last one was: {}",
            last.text()
        );
        let server = self.of_mut(id);
        server.failed_observations += 1;
        server.check.is_fast = true;
        match server.on_error {
            OnError::FastInter => return,
            OnError::FailCheck => {}
            OnError::SuddenDeath => {
                if server.check.health > server.check.rise {
                    server.check.health = server.check.rise + 1;
                }
            }
            OnError::MarkDown => server.check.health = server.check.rise,
        }
        let outcome = CheckOutcome {
            status: CheckStatus::Analyzed,
            description: text,
            ..CheckOutcome::default()
        };
        self.checked(id, Checker::Health, outcome);
        self.of_mut(id).check.is_fast = true;
    }

    /// Updates the state of a server for the data path.
    pub fn touch(&mut self, id: ServerId) {
        self.update(id, true);
    }

    /// The same for a step of a slow start, which changes no schedule.
    pub fn warmed(&mut self, id: ServerId) {
        self.update(id, false);
    }

    fn update(&mut self, server: ServerId, reschedules: bool) {
        self.out.push(Transition {
            server,
            message: None,
            ends_sessions_of: Vec::new(),
            backend_is_down: false,
            reschedules,
        });
    }

    /// The name of the server's host is not the one of the configuration: a user changed it, or a
    /// service has it.
    pub fn set_host(&mut self, id: ServerId, host: &str) {
        let server = self.of_mut(id);
        server.host = Some(host.to_owned());
        server.admin = server.admin.with(Admin::RENAMED);
    }

    /// Sets the user's weight.
    pub fn set_weight(&mut self, id: ServerId, weight: u32) {
        self.moving(id, |states| {
            states.of_mut(id).weight = weight;
            None
        });
    }

    /// Enables or disables a check of a server.
    pub fn enable_check(&mut self, id: ServerId, checker: Checker, on: bool) {
        let check = self.of_mut(id).check_of(checker);
        if !check.is_configured {
            return;
        }
        check.is_enabled = on;
        let in_maintenance = Admin::CONFIGURED_MAINTENANCE.with(Admin::FORCED_MAINTENANCE);
        if on && checker == Checker::Health && !self.of(id).admin.has(in_maintenance) {
            self.moving(id, |states| {
                states.of_mut(id).set_initial();
                None
            });
        }
    }

    /// Sets the result of a server's checks.
    pub fn set_health(&mut self, id: ServerId, checker: Checker, to: OpState, cause: Cause) {
        let check = self.of_mut(id).check_of(checker);
        check.health = match to {
            OpState::Stopped => 0,
            _ => check.best(),
        };
        match to {
            OpState::Stopped => self.stop(id, cause),
            OpState::Stopping => self.retire(id, cause),
            OpState::Starting | OpState::Running => self.start(id, cause),
        }
    }
}

/// Each kind of administrative state, and its inherited form.
const KINDS: [(Admin, Admin); 2] = [
    (Admin::MAINTENANCE, Admin::INHERITED_MAINTENANCE),
    (Admin::DRAIN, Admin::INHERITED_DRAIN),
];
