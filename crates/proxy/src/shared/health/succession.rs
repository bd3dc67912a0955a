//! The health of the servers of a configuration that follows another one in a running process.

use super::super::succession::Succession;
use super::check::CheckState;
use super::states::{Admin, OpState, ServerHealth, States};

impl States {
    /// Takes the health of the servers of both configurations over.
    pub fn succeed(&mut self, before: &States, both: &Succession<'_>) {
        self.now_ms = before.now_ms;
        for proxy in &both.proxies {
            let (now, then) = (
                &mut self.backends[proxy.place()],
                &before.backends[proxy.place()],
            );
            now.name.clone_from(&then.name);
            now.last_change_ms = then.last_change_ms;
            now.down_ms = then.down_ms;
            now.down_transitions = then.down_transitions;
        }
        for id in &both.servers {
            let [line, line_before] = both.lines(*id);
            let then = before.of(*id);
            let is_of_removed = both.proxy(id.backend)[0].is_removed;
            let now = self.of_mut(*id);
            now.count_on(then);
            if line.is_removed {
                now.go_on(then);
                now.weight = then.weight;
                now.leave(is_of_removed);
                continue;
            }
            if !both.is_server_kept(*id) {
                continue;
            }
            let is_alike = both.is_reached_alike(*id)
                && line.disabled == line_before.disabled
                && now.track == then.track
                && now.check.is_configured == then.check.is_configured
                && now.agent.is_configured == then.agent.is_configured;
            if is_alike {
                now.go_on(then);
            }
            if line.weight == line_before.weight {
                now.weight = then.weight;
            }
        }
    }
}

impl ServerHealth {
    /// Takes the counters of the same server over.
    fn count_on(&mut self, before: &ServerHealth) {
        self.last_change_ms = before.last_change_ms;
        self.down_ms = before.down_ms;
        self.down_transitions = before.down_transitions;
        self.failed_checks = before.failed_checks;
        self.failed_observations = before.failed_observations;
    }

    /// The server is gone: it is not checked any longer. In a backend that exists it gets no
    /// requests; in one that is gone, `stays` lets earlier streams still choose it.
    fn leave(&mut self, stays: bool) {
        self.track = None;
        self.check.is_enabled = false;
        self.agent.is_enabled = false;
        if !stays {
            self.admin = Admin::FORCED_MAINTENANCE;
            self.state = OpState::Stopped;
        }
    }

    /// Takes the state of the same server over.
    fn go_on(&mut self, before: &ServerHealth) {
        self.host.clone_from(&before.host);
        self.name.clone_from(&before.name);
        self.state = before.state;
        self.admin = before.admin;
        self.check.go_on(&before.check);
        self.agent.go_on(&before.agent);
    }
}

impl CheckState {
    /// Takes the results of the same check over; `rise` and `fall` may differ.
    fn go_on(&mut self, before: &CheckState) {
        self.is_enabled = before.is_enabled;
        self.is_paused = before.is_paused;
        self.is_fast = before.is_fast;
        self.health = if before.is_up() && before.health == before.best() {
            self.best()
        } else if before.is_up() {
            before.health.clamp(self.rise, self.best())
        } else {
            before.health.min(self.rise.saturating_sub(1))
        };
        self.status = before.status;
        self.result = before.result;
        self.code = before.code;
        self.description.clone_from(&before.description);
        self.duration = before.duration;
    }
}
