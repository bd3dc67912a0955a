//! `outlier-ejection`: servers that are ejected because of their traffic, independently of checks.
//!
//! `In → Out → Probed → In`: an ejected server gets no requests until its ejection ends, then one
//! request. The outcome of that request readmits it or ejects it for longer.

use config::model::OutlierEjection;

use super::super::outlier::Verdict;
use super::states::{Admin, OpState, Seen, States};
use super::{Level, message};
use crate::ids::{ProxyId, ServerId};

/// The largest factor for the time of the first ejection.
const LENGTHS_MAX: u32 = 10;

/// The ejection state of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Place {
    /// It gets requests.
    #[default]
    In,
    /// It is ejected and gets no requests.
    Out { until_ms: u64 },
    /// It gets one request as a probe.
    Probed,
}

/// A server's ejections.
#[derive(Debug)]
pub(crate) struct Ejection {
    rules: OutlierEjection,
    pub place: Place,
    /// Consecutive ejections, up to [`LENGTHS_MAX`].
    lengths: u32,
    /// When the last ejection ended, and its length.
    back_ms: u64,
    length_ms: u64,
    /// The number of ejections.
    pub count: u64,
}

impl Ejection {
    pub fn new(rules: OutlierEjection) -> Ejection {
        Ejection {
            rules,
            place: Place::In,
            lengths: 0,
            back_ms: 0,
            length_ms: 0,
            count: 0,
        }
    }

    /// Ejects the server now. Returns for how long, milliseconds.
    fn leave(&mut self, now_ms: u64) -> u64 {
        let is_in_a_row =
            self.place == Place::Probed || now_ms.saturating_sub(self.back_ms) < self.length_ms;
        self.lengths = if is_in_a_row {
            (self.lengths + 1).min(LENGTHS_MAX)
        } else {
            1
        };
        let first_ms = self.rules.ejection.as_millis() as u64;
        self.length_ms = first_ms * u64::from(self.lengths);
        self.place = Place::Out {
            until_ms: now_ms + self.length_ms,
        };
        self.count += 1;
        self.length_ms
    }
}

fn reason(verdict: Verdict, last: Seen) -> String {
    match verdict {
        Verdict::Errors(errors) => {
            let last = last.text();
            format!("{errors} consecutive errors, last one was: {last}")
        }
        Verdict::SuccessRate(good, all) => format!("{good} of {all} requests succeeded"),
        Verdict::Latency(mean_us, others_us) => {
            let ms = |us: u64| us.div_ceil(1000);
            let (mean, others) = (ms(mean_us), ms(others_us));
            format!("latency {mean}ms, that of the others {others}ms")
        }
    }
}

impl States {
    /// The ejection state of a server; without the option it is always `In`.
    pub fn place(&self, id: ServerId) -> Place {
        let ejection = self.of(id).ejection.as_ref();
        ejection.map_or(Place::In, |ejection| ejection.place)
    }

    /// Ejects a server by a verdict about its traffic, unless it is ejected or down, or too many of
    /// the backend's servers are ejected.
    pub fn judged(&mut self, id: ServerId, verdict: Verdict, last: Seen) {
        let Some(ejection) = &self.of(id).ejection else {
            return;
        };
        let most_percent = ejection.rules.max_percent as usize;
        let servers = &self.backend(id.backend).servers;
        let is_there =
            |server: &&super::states::ServerHealth| !server.admin.has(Admin::MAINTENANCE);
        let all = servers.iter().filter(is_there).count();
        let is_out = |server: &&super::states::ServerHealth| server.is_ejected();
        let out = servers.iter().filter(is_there).filter(is_out).count();
        let is_down = self.of(id).state == OpState::Stopped;
        if !is_down && self.place(id) == Place::In && (out + 1) * 100 <= most_percent * all {
            self.eject(id, &reason(verdict, last));
        }
    }

    fn eject(&mut self, id: ServerId, reason: &str) {
        let now_ms = self.now_ms;
        self.moving(id, |states| {
            let ejection = states.of_mut(id).ejection.as_mut()?;
            let length_ms = ejection.leave(now_ms);
            let title = message::title(states, id);
            let text = format!("{title} is ejected, reason: {reason}, for {length_ms}ms");
            Some((Level::Alert, text, true))
        });
    }

    /// Applies the outcome of the request that probes a server.
    pub fn probed(&mut self, id: ServerId, is_good: bool, seen: Seen) {
        if self.place(id) != Place::Probed {
            return;
        }
        if !is_good {
            return self.eject(id, &format!("probe failed: {}", seen.text()));
        }
        let now_ms = self.now_ms;
        self.moving(id, |states| {
            let ejection = states.of_mut(id).ejection.as_mut()?;
            ejection.place = Place::In;
            ejection.back_ms = now_ms;
            let text = format!(
                "{} is back, reason: probe succeeded",
                message::title(states, id)
            );
            Some((Level::Notice, text, true))
        });
    }

    /// Starts to probe servers whose ejection has ended. Returns the time until the next call,
    /// milliseconds; none if no server is ejected.
    pub fn end_ejections(&mut self) -> Option<u64> {
        let mut next_ms: Option<u64> = None;
        for backend in 0..self.backends.len() {
            for place in 0..self.backends[backend].servers.len() {
                let id = ServerId::at(ProxyId::at(backend), place);
                let Place::Out { until_ms } = self.place(id) else {
                    continue;
                };
                if until_ms > self.now_ms {
                    let left_ms = until_ms - self.now_ms;
                    next_ms = Some(next_ms.map_or(left_ms, |next| next.min(left_ms)));
                } else if let Some(ejection) = &mut self.of_mut(id).ejection {
                    ejection.place = Place::Probed;
                    self.touch(id);
                }
            }
        }
        next_ms
    }
}
