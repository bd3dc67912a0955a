//! What is known of a server at a moment, as plain data: what statistics, commands and logs tell.

use std::time::Duration;

use config::model::{CheckResult, CheckStatus};

use super::check::{CheckState, Checker};
use super::states::{Admin, OpState, States};
use crate::ids::{ProxyId, ServerId};

/// A server's state at a moment.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerView {
    /// What its checks say it is.
    pub state: OpState,
    /// Why it is in maintenance or drains.
    pub admin: Admin,
    /// Both, in the words of HAProxy's statistics: `UP 1/3`, `DOWN (agent)`, `MAINT (via b/s)` and their kin.
    pub status: String,
    /// It is a backup.
    pub is_backup: bool,
    /// New sessions may go there.
    pub is_usable: bool,
    /// The weight that the user wants.
    pub weight: u32,
    /// Its share of that weight in percent, less than 100 while it starts slowly.
    pub throttle_percent: u32,
    /// Its health checks.
    pub check: CheckView,
    /// Its agent checks.
    pub agent: CheckView,
    /// The server that it tracks: the places of its backend and its own.
    pub tracked: Option<(usize, usize)>,
    /// The health that decides: its own, or that of the server at the end of the chain of tracked servers.
    pub deciding: HealthLevel,
    /// `observe` is set on the server whose checks decide.
    pub is_observed: bool,
    /// Time since the last change of its state.
    pub since_change: Duration,
    /// How long it was down, until now.
    pub down_time: Duration,
    /// How often it went down.
    pub down_transitions: u64,
    /// Checks that failed while it was up.
    pub failed_checks: u64,
    /// How often `observe` found too many errors.
    pub failed_observations: u64,
    /// How often traffic took it out; none without `outlier-ejection`.
    pub ejections: Option<u64>,
}

/// A health between its bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HealthLevel {
    /// From 0 to `rise + fall - 1`; up from `rise` on.
    pub health: u32,
    /// Successes after which the server is up.
    pub rise: u32,
    /// Failures after which it is down.
    pub fall: u32,
}

/// A check of a server at a moment.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckView {
    /// The configuration has it.
    pub is_configured: bool,
    /// It is enabled.
    pub is_enabled: bool,
    /// The server is in maintenance.
    pub is_paused: bool,
    /// One is under way.
    pub is_running: bool,
    /// What the last one came to.
    pub status: CheckStatus,
    /// What that means.
    pub result: CheckResult,
    /// The code of its answer.
    pub code: i64,
    /// More about it.
    pub description: String,
    /// How long it took.
    pub duration: Option<Duration>,
    /// From 0 to `rise + fall - 1`; up from `rise` on.
    pub health: u32,
    /// Successes after which the server is up.
    pub rise: u32,
    /// Failures after which it is down.
    pub fall: u32,
}

impl CheckView {
    /// It is enabled, and the server is not in maintenance: statistics show what it found.
    #[must_use]
    pub const fn is_active(&self) -> bool {
        self.is_enabled && !self.is_paused
    }

    /// Its health and the bounds of that.
    #[must_use]
    pub const fn level(&self) -> HealthLevel {
        HealthLevel {
            health: self.health,
            rise: self.rise,
            fall: self.fall,
        }
    }
}

/// A backend's state at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackendView {
    /// Servers that may be used and are no backups.
    pub active: u32,
    /// Backups that may be used.
    pub backup: u32,
    /// Time since it went down or came up.
    pub since_change: Duration,
    /// How long it was without a server, until now.
    pub down_time: Duration,
    /// How often it lost its last server.
    pub down_transitions: u64,
}

fn check_view(check: &CheckState) -> CheckView {
    CheckView {
        is_configured: check.is_configured,
        is_enabled: check.is_enabled,
        is_paused: check.is_paused,
        is_running: check.is_running,
        status: check.status,
        result: check.result,
        code: check.code,
        description: check.description.clone(),
        duration: check.duration,
        health: check.health,
        rise: check.rise,
        fall: check.fall,
    }
}

impl States {
    /// A server as it is now.
    pub fn server_view(&self, id: ServerId) -> ServerView {
        let server = self.of(id);
        let decides = self.of(self.deciding(id));
        let since_ms = self.now_ms.saturating_sub(server.last_change_ms);
        let down_ms = match server.state {
            OpState::Stopped => server.down_ms + since_ms,
            _ => server.down_ms,
        };
        ServerView {
            state: server.state,
            admin: server.admin,
            status: self.status(id),
            is_backup: server.is_backup,
            is_usable: server.is_usable(),
            weight: server.weight,
            throttle_percent: self.share(id) * 100 / super::slow_start::WHOLE,
            check: check_view(&server.check),
            agent: check_view(&server.agent),
            tracked: server
                .track
                .map(|target| (target.backend.place(), target.place())),
            deciding: check_view(&decides.check).level(),
            is_observed: decides.is_observed,
            since_change: Duration::from_millis(since_ms),
            down_time: Duration::from_millis(down_ms),
            down_transitions: server.down_transitions,
            failed_checks: server.failed_checks,
            failed_observations: server.failed_observations,
            ejections: server.ejection.as_ref().map(|ejection| ejection.count),
        }
    }

    /// A backend as it is now.
    pub fn backend_view(&self, id: ProxyId) -> BackendView {
        let backend = self.backend(id);
        let (active, backup) = backend.usable();
        let since_ms = self.now_ms.saturating_sub(backend.last_change_ms);
        let is_down = (active, backup) == (0, 0) && !backend.servers.is_empty();
        BackendView {
            active,
            backup,
            since_change: Duration::from_millis(since_ms),
            down_time: Duration::from_millis(backend.down_ms + if is_down { since_ms } else { 0 }),
            down_transitions: backend.down_transitions,
        }
    }

    /// When the next check of a server is due, and whether it may run.
    pub fn plan(&self, id: ServerId, checker: Checker) -> super::CheckPlan {
        let server = self.of(id);
        let (check, is_suspended) = match checker {
            Checker::Health => (&server.check, server.admin.has(Admin::MAINTENANCE)),
            Checker::Agent => (&server.agent, false),
        };
        super::CheckPlan {
            runs: check.is_enabled && !check.is_paused && !is_suspended,
            interval: check.interval(server.state == OpState::Stopped),
        }
    }
}
