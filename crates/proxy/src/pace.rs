//! Limits of new connections and sessions a second (`maxconnrate`, `maxsessrate`, `rate-limit sessions`): a listener that
//! has reached one does not accept for a moment.

use net::Driver;
use net::timers::NEVER_MS;

use crate::engine::{Core, Cx};
use crate::running::Running;
use crate::shared::Pace;

/// Whether a configuration limits rates at all.
pub(crate) fn is_limited(running: &config::model::Config) -> bool {
    let global = &running.global;
    let proxies = || running.proxies.iter();
    global.maxconnrate.is_some()
        || global.maxsessrate.is_some()
        || proxies().any(|proxy| proxy.rate_limit_sessions.is_some())
}

impl Core {
    /// A connection was accepted.
    #[inline]
    pub fn pace_connection<D: Driver>(&mut self, cx: &Cx<'_, D>) {
        if cx.running.paces {
            self.mark(cx, Pace::ProcessConnections);
        }
    }

    /// A session of a frontend began on a listener.
    #[inline]
    pub fn pace_session<D: Driver>(&mut self, cx: &mut Cx<'_, D>, listener: usize) {
        if cx.running.paces {
            self.mark(cx, Pace::ProcessSessions);
            self.close_full_listener(cx, listener);
        }
    }

    /// Whether a frontend has its share of this second. If so, it is looked at again when there may be room.
    pub fn is_too_fast<D: Driver>(&mut self, cx: &Cx<'_, D>, frontend: usize) -> bool {
        if !cx.running.paces {
            return false;
        }
        let now_ms = cx.now().ms();
        let shared = &self.shared;
        let reached = limits(cx.running, frontend)
            .into_iter()
            .filter_map(|(limit, pace)| limit.map(|limit| (limit, pace)))
            .find(|(limit, pace)| shared.rate(*pace, now_ms) >= *limit);
        if let Some((limit, _)) = reached {
            let wait_ms = (PERIOD_MS / u64::from(limit.max(1))).max(1);
            self.room_at_ms = self.room_at_ms.min(now_ms + wait_ms);
        }
        reached.is_some()
    }

    /// The moment to look again has come.
    pub fn look_for_room<D: Driver>(&mut self, cx: &mut Cx<'_, D>) {
        if cx.now().ms() >= self.room_at_ms {
            self.room_at_ms = NEVER_MS;
            self.reopen_listeners(cx);
        }
    }
}

/// What rates are limited over.
const PERIOD_MS: u64 = 1000;

fn limits(running: &Running, frontend: usize) -> [(Option<u32>, Pace); 3] {
    let global = &running.config.global;
    let sessions = running.proxy(frontend).rate_limit_sessions;
    [
        (sessions, Pace::Sessions(frontend)),
        (global.maxsessrate, Pace::ProcessSessions),
        (global.maxconnrate, Pace::ProcessConnections),
    ]
}
