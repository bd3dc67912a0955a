//! Snapshots of servers and backends as plain data, for statistics, commands and logs.

use std::time::Duration;

use config::model::{CheckResult, CheckStatus};

use super::check::{CheckState, Checker};
use super::states::{Admin, OpState, States};
use crate::ids::{ProxyId, ServerId};

/// A snapshot of a server's state.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerView {
    /// The operational state that its checks determine.
    pub state: OpState,
    /// The reasons why it is in maintenance or drains.
    pub admin: Admin,
    /// Both, in the words of HAProxy's statistics: `UP 1/3`, `DOWN (agent)`, `MAINT (via b/s)` and
    /// similar.
    pub status: String,
    /// Whether it is a backup.
    pub is_backup: bool,
    /// Whether it accepts new sessions.
    pub is_usable: bool,
    /// The weight that the user has set.
    pub weight: u32,
    /// Its share of that weight in percent, less than 100 while it starts slowly.
    pub throttle_percent: u32,
    /// Its health checks.
    pub check: CheckView,
    /// Its agent checks.
    pub agent: CheckView,
    /// The server that it tracks: the place of its backend, and its own place there.
    pub tracked: Option<(usize, usize)>,
    /// The health that decides: its own, or that of the server at the end of the chain of tracked
    /// servers.
    pub deciding: HealthLevel,
    /// Whether `observe` is set on the server whose checks decide.
    pub is_observed: bool,
    /// Time since the last change of its state.
    pub since_change: Duration,
    /// Total down time, until now.
    pub down_time: Duration,
    /// The number of changes from up to down.
    pub down_transitions: u64,
    /// Checks that failed while it was up.
    pub failed_checks: u64,
    /// How often `observe` found too many errors.
    pub failed_observations: u64,
    /// The number of ejections; none without `outlier-ejection`.
    pub ejections: Option<u64>,
}

/// A health value with its bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HealthLevel {
    /// From 0 to `rise + fall - 1`; up from `rise` on.
    pub health: u32,
    /// The number of successes after which the server is up.
    pub rise: u32,
    /// The number of failures after which it is down.
    pub fall: u32,
}

/// A snapshot of a check.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckView {
    /// The configuration has this check.
    pub is_configured: bool,
    /// The check is enabled.
    pub is_enabled: bool,
    /// The server is in maintenance.
    pub is_paused: bool,
    /// The check is running.
    pub is_running: bool,
    /// The status of the last check.
    pub status: CheckStatus,
    /// The meaning of that status.
    pub result: CheckResult,
    /// The code of the last response.
    pub code: i64,
    /// Details of the last check.
    pub description: String,
    /// The duration of the last check.
    pub duration: Option<Duration>,
    /// From 0 to `rise + fall - 1`; up from `rise` on.
    pub health: u32,
    /// The number of successes after which the server is up.
    pub rise: u32,
    /// The number of failures after which it is down.
    pub fall: u32,
}

impl CheckView {
    /// Whether it is enabled and the server is not in maintenance: then statistics show its result.
    #[must_use]
    pub const fn is_active(&self) -> bool {
        self.is_enabled && !self.is_paused
    }

    /// Its health and bounds.
    #[must_use]
    pub const fn level(&self) -> HealthLevel {
        HealthLevel {
            health: self.health,
            rise: self.rise,
            fall: self.fall,
        }
    }
}

/// A snapshot of a backend's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackendView {
    /// The number of usable servers that are not backups.
    pub active: u32,
    /// The number of usable backups.
    pub backup: u32,
    /// Time since it went down or came up.
    pub since_change: Duration,
    /// Total time without a server, until now.
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
    /// A snapshot of a server.
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

    /// A snapshot of a backend.
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
