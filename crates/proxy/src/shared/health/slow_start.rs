//! `slowstart`: the share of the load that a server gets while it starts (manual §5.2 slowstart).

use super::states::{OpState, States};
use crate::ids::{ProxyId, ServerId};

/// The full share.
pub(crate) const WHOLE: u32 = 256;
/// The number of steps in which a share grows.
const STEPS: u64 = 20;
/// The shortest step, milliseconds.
const STEP_MIN_MS: u64 = 1000;

impl States {
    /// The current share of a server, up to [`WHOLE`], which it has at once where weights cannot
    /// change.
    pub fn share(&self, id: ServerId) -> u32 {
        let server = self.of(id);
        let is_starting = server.state == OpState::Starting && server.slow_start_ms > 0;
        if !is_starting || !self.backends[id.backend.place()].has_dynamic_weights {
            return WHOLE;
        }
        let elapsed_ms = self.now_ms.saturating_sub(server.last_change_ms);
        let share = elapsed_ms.saturating_mul(u64::from(WHOLE)) / server.slow_start_ms;
        u32::try_from(share).map_or(WHOLE, |share| share.clamp(1, WHOLE))
    }

    /// The servers that start slowly; those whose time is over get their full share. Also the time
    /// until the next call, milliseconds; none if no server starts slowly.
    pub fn warm_up(&mut self) -> (Vec<ServerId>, Option<u64>) {
        let mut starting = Vec::new();
        let mut next_ms: Option<u64> = None;
        for backend in 0..self.backends.len() {
            for place in 0..self.backends[backend].servers.len() {
                let id = ServerId::at(ProxyId::at(backend), place);
                let server = self.of(id);
                if server.state != OpState::Starting {
                    continue;
                }
                starting.push(id);
                let end_ms = server.last_change_ms + server.slow_start_ms;
                if end_ms <= self.now_ms {
                    self.full_speed(id);
                    continue;
                }
                let step_ms = (server.slow_start_ms / STEPS).max(STEP_MIN_MS);
                let due_ms = step_ms.min(end_ms - self.now_ms);
                next_ms = Some(next_ms.map_or(due_ms, |next| next.min(due_ms)));
            }
        }
        (starting, next_ms)
    }
}
