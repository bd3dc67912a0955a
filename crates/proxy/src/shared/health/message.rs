//! Messages about servers, in HAProxy's words.

use std::fmt::Write as _;

use config::model::CheckResult;

use super::check::Checker;
use super::states::{Admin, BackendHealth, Cause, OpState, ServerHealth, States};
use crate::ids::ServerId;

/// The severity of a message; the numbers are syslog's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// A backend has no usable server.
    Emergency = 0,
    /// A server went down.
    Alert = 1,
    /// Any other message.
    Notice = 5,
}

/// The number of remaining servers, for messages that include it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Numbers {
    is_down: bool,
    active: u32,
    backup: u32,
}

impl Numbers {
    pub fn new(backend: &BackendHealth, is_down: bool) -> Numbers {
        let (active, backup) = backend.usable();
        Numbers {
            is_down,
            active,
            backup,
        }
    }

    /// Appends the numbers of servers, the server's sessions, the requests that were requeued to or
    /// from it, and those that wait for it.
    pub fn append(self, text: &mut String, sessions: u32, requeued: usize, queued: u32) {
        let Numbers {
            is_down,
            active,
            backup,
        } = self;
        let on_backup = match (active, backup) {
            (0, 1..) => " Running on backup.",
            _ => "",
        };
        // Writing to a string cannot fail.
        let _ = if is_down {
            write!(
                text,
                ". {active} active and {backup} backup servers left.{on_backup} {sessions} sessions active, {requeued} requeued, \
             {queued} remaining in queue"
            )
        } else {
            write!(
                text,
                ". {active} active and {backup} backup servers online.{on_backup} {requeued} sessions requeued, {queued} total in \
             queue"
            )
        };
    }
}

/// `Server b/s`
pub(super) fn title(states: &States, id: ServerId) -> String {
    let backup = if states.of(id).is_backup {
        "Backup "
    } else {
        ""
    };
    format!("{backup}Server {}", full_name(states, id))
}

/// `b/s`
pub(super) fn full_name(states: &States, id: ServerId) -> String {
    format!("{}/{}", states.backend(id.backend).name, states.of(id).name)
}

/// Appends the cause of a change of a server's state.
pub(super) fn append_cause(text: &mut String, server: &ServerHealth, cause: Cause) {
    match cause {
        Cause::Untold => {}
        Cause::Check(Checker::Health) => server.check.append_info(text),
        Cause::Check(Checker::Agent) => server.agent.append_info(text),
        Cause::Cli => text.push_str(", changed from CLI"),
        Cause::Web => text.push_str(", changed from Web interface"),
        Cause::StateFile => text.push_str(", changed from server-state after a reload"),
    }
}

/// Appends why a server enters maintenance.
pub(super) fn append_why(text: &mut String, why: &str) {
    if !why.is_empty() {
        let _ = write!(text, " ({why})");
    }
}

/// Appends the server that it tracks, if any.
pub(super) fn append_via(text: &mut String, states: &States, id: ServerId) {
    if let Some(target) = states.of(id).track {
        let _ = write!(text, " via {}", full_name(states, target));
    }
}

/// A server leaves maintenance.
pub(super) fn leaves_maintenance(
    states: &States,
    id: ServerId,
    before: Admin,
    next: Admin,
) -> String {
    let server = states.of(id);
    let state = match server.state {
        OpState::Stopped => "DOWN",
        _ => "UP",
    };
    let drain = if next.has(Admin::DRAIN) {
        "DRAIN"
    } else {
        "READY"
    };
    let how = if before.has(Admin::FORCED_MAINTENANCE) {
        "leaving forced maintenance"
    } else if before.has(Admin::UNRESOLVED) {
        "resolves again"
    } else {
        "leaving maintenance"
    };
    let resolves = before.has(Admin::UNRESOLVED) && !before.has(Admin::FORCED_MAINTENANCE);
    let host = if resolves {
        host(server)
    } else {
        String::new()
    };
    format!("{}{host} is {state}/{drain} ({how})", title(states, id))
}

/// The host of a server whose name is resolved, in parentheses.
fn host(server: &ServerHealth) -> String {
    let host = server.host.as_ref();
    host.map_or_else(String::new, |host| format!(" ('{host}')"))
}

/// One of several reasons for maintenance ends; none where there is no message for that.
pub(super) fn remains_in_maintenance(
    states: &States,
    id: ServerId,
    before: Admin,
    next: Admin,
) -> Option<String> {
    let gone = |flag| before.has(flag) && !next.has(flag);
    let mut text = title(states, id);
    if gone(Admin::FORCED_MAINTENANCE) {
        text.push_str(" is leaving forced maintenance but remains in maintenance");
        append_via(&mut text, states, id);
    } else if gone(Admin::UNRESOLVED) {
        text.push_str(&host(states.of(id)));
        text.push_str(" resolves again but remains in maintenance");
        append_via(&mut text, states, id);
    } else if gone(Admin::INHERITED_MAINTENANCE) {
        text.push_str(" remains in forced maintenance");
    } else {
        return None;
    }
    Some(text)
}

/// A server leaves the drain state, or stays in it for another reason.
pub(super) fn drain_goes_on(states: &States, id: ServerId, before: Admin, leaves: bool) -> String {
    let server = states.of(id);
    let mut text = title(states, id);
    let up = match server.state {
        OpState::Stopped => "DOWN",
        _ => "UP",
    };
    match (leaves, before.has(Admin::FORCED_DRAIN)) {
        (true, true) => {
            let _ = write!(text, " is {up} (leaving forced drain)");
        }
        (true, false) => {
            let _ = write!(text, " is {up} (leaving drain)");
            append_via(&mut text, states, id);
        }
        (false, _) if server.admin.has(Admin::FORCED_DRAIN) => {
            text.push_str(" remains in forced drain mode");
        }
        (false, _) => {
            text.push_str(" remains in drain mode");
            append_via(&mut text, states, id);
        }
    }
    text
}

/// The result of a check (`option log-health-checks`).
pub(super) fn check(states: &States, id: ServerId, checker: Checker) -> String {
    let server = states.of(id);
    let check = match checker {
        Checker::Health => &server.check,
        Checker::Agent => &server.agent,
    };
    let backup = if server.is_backup { "backup " } else { "" };
    let how = match check.result {
        CheckResult::PassedConditionally => "conditionally succeeded",
        CheckResult::Passed => "succeeded",
        _ => "failed",
    };
    let name = full_name(states, id);
    let mut text = format!("{} check for {backup}server {name} {how}", checker.name());
    check.append_info(&mut text);
    let state = match (check.is_up(), server.weight) {
        (false, _) => "DOWN",
        (true, 0) => "DRAIN",
        (true, _) => "UP",
    };
    let (progress, of) = check.progress();
    let _ = write!(text, ", status: {progress}/{of} {state}");
    text
}
