//! The fields of a server's health: its state, its checks and its agent (management guide §9.1).

use std::time::Duration;

use stats::{Column, Row};

use crate::shared::{Admin, CheckView, OpState, ServerView};

/// Whole seconds.
pub(super) fn seconds(time: Duration) -> u32 {
    u32::try_from(time.as_secs()).unwrap_or(u32::MAX)
}

/// The columns of a check with a visible result.
struct Columns {
    status: Column,
    code: Column,
    duration: Column,
    meaning: Column,
    found: Column,
    rise: Column,
    fall: Column,
    health: Column,
}

const CHECK: Columns = Columns {
    status: Column::CheckStatus,
    code: Column::CheckCode,
    duration: Column::CheckDuration,
    meaning: Column::CheckDesc,
    found: Column::LastChk,
    rise: Column::CheckRise,
    fall: Column::CheckFall,
    health: Column::CheckHealth,
};

const AGENT: Columns = Columns {
    status: Column::AgentStatus,
    code: Column::AgentCode,
    duration: Column::AgentDuration,
    meaning: Column::AgentDesc,
    found: Column::LastAgt,
    rise: Column::AgentRise,
    fall: Column::AgentFall,
    health: Column::AgentHealth,
};

/// Fills the health fields of a server's row.
pub(super) fn fill(row: &mut Row<'_>, view: ServerView) {
    row.set(Column::Lastchg, seconds(view.since_change));
    if view.check.is_enabled {
        row.set(Column::Chkfail, view.failed_checks);
        row.set(Column::Chkdown, view.down_transitions);
        row.set(Column::Downtime, seconds(view.down_time));
    }
    if view.is_observed {
        row.set(Column::Hanafail, view.failed_observations);
    }
    row.set_some(Column::Ejections, view.ejections);
    if view.state == OpState::Starting && !view.admin.has(Admin::DRAIN) {
        row.set(Column::Throttle, view.throttle_percent);
    }
    // Shows the health of the deciding server, as in HAProxy.
    let (check, level) = (view.check, view.deciding);
    if check.is_active() {
        row.set(CHECK.rise, level.rise);
        row.set(CHECK.fall, level.fall);
        row.set(CHECK.health, level.health);
        // There is no result before the first check has ended.
        let has_ended = check.status >= config::model::CheckStatus::NoChange;
        fill_check(row, &CHECK, check, has_ended);
    }
    let agent = view.agent;
    if agent.is_active() {
        row.set(AGENT.rise, agent.rise);
        row.set(AGENT.fall, agent.fall);
        row.set(AGENT.health, agent.health);
        fill_check(row, &AGENT, agent, true);
    }
    row.set(Column::Status, view.status);
}

fn fill_check(row: &mut Row<'_>, columns: &Columns, check: CheckView, has_duration: bool) {
    let name = check.status.name();
    if check.is_running {
        row.set(columns.status, format!("* {name}"))
    } else {
        row.set(columns.status, name)
    }
    if check.status.has_code() {
        // HAProxy shows the low 32 bits.
        row.set(columns.code, check.code as u32);
    }
    if has_duration {
        let ms = check.duration.unwrap_or_default().as_millis();
        row.set(columns.duration, ms as u64);
    }
    row.set(columns.meaning, check.status.description());
    row.set(columns.found, check.description);
}
